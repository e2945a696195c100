//! The global state that restores the terminal.
//!
//! A panic hook and a signal handler must find this state, because neither can ask the event loop. The first
//! caller restores the terminal; a second call does nothing.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use super::modes::Options;

static HELD: Mutex<Option<Held>> = Mutex::new(None);

struct Held {
    out: Box<dyn Write + Send>,
    leave: Vec<u8>,
}

impl Held {
    fn give_back(mut self) {
        // If the terminal is gone, there is nobody to report the error to.
        let _ = self.out.write_all(&self.leave);
        let _ = self.out.flush();
        let _ = disable_raw_mode();
    }
}

/// Control over the terminal; dropping it restores the terminal.
pub struct Hold(());

impl Hold {
    /// Takes the terminal over: raw mode, and the modes of `options`.
    pub fn take(out: Box<dyn Write + Send>, options: &Options) -> io::Result<Hold> {
        restore_on_panic();
        enable_raw_mode()?;
        let hold = Hold(());
        hold.enter(out, options)?;
        Ok(hold)
    }

    /// Takes the terminal over again, after another program used it.
    pub fn take_again(&mut self, out: Box<dyn Write + Send>, options: &Options) -> io::Result<()> {
        // The shell may have changed the mode, and `enable_raw_mode` does nothing if it believes that raw
        // mode is on.
        let _ = disable_raw_mode();
        enable_raw_mode()?;
        self.enter(out, options)
    }

    fn enter(&self, mut out: Box<dyn Write + Send>, options: &Options) -> io::Result<()> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let entered = out.write_all(&options.enter()).and_then(|()| out.flush());
        *held = Some(Held {
            out,
            leave: options.leave(),
        });
        entered
    }

    /// Restores the terminal until [`Hold::take_again`].
    pub fn give_back(&mut self) {
        restore();
    }

    /// Returns whether the terminal is still under control: a panic on another thread restores it.
    pub fn is_held(&self) -> bool {
        is_held()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns whether the terminal is under control.
pub fn is_held() -> bool {
    HELD.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some()
}

/// Restores the terminal, if it is under control.
pub fn restore() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(held) = held {
        held.give_back();
    }
}

/// Restores the terminal before a panic prints its message; otherwise the message would be lost with the
/// screen.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            print(panic);
        }));
    });
}
