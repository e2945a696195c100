//! The global state that is needed to restore the terminal.
//!
//! It is global because a panic hook and a signal handler must find it without the event loop. The
//! first call restores the terminal; further calls do nothing.

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
        // If the terminal is gone, bowline cannot report the error anywhere.
        let _ = self.out.write_all(&self.leave);
        let _ = self.out.flush();
        let _ = disable_raw_mode();
    }
}

/// The control over the terminal. Dropping it restores the terminal.
pub struct Hold(());

impl Hold {
    /// Takes over the terminal: sets raw mode and the modes of `options`.
    pub fn take(out: Box<dyn Write + Send>, options: &Options) -> io::Result<Hold> {
        restore_on_panic();
        enable_raw_mode()?;
        let hold = Hold(());
        hold.enter(out, options)?;
        Ok(hold)
    }

    /// Takes over the terminal again, after [`Hold::give_back`].
    pub fn take_again(&mut self, out: Box<dyn Write + Send>, options: &Options) -> io::Result<()> {
        // The shell may have changed the mode, but `enable_raw_mode` does nothing if it remembers
        // raw mode as enabled.
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

    /// Restores the terminal until the next [`Hold::take_again`].
    pub fn give_back(&mut self) {
        restore();
    }

    /// Returns whether bowline still controls the terminal. False if a panic on another thread has
    /// restored it.
    pub fn is_held(&self) -> bool {
        is_held()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns whether bowline controls the terminal.
pub fn is_held() -> bool {
    HELD.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some()
}

/// Restores the terminal if bowline controls it.
pub fn restore() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(held) = held {
        held.give_back();
    }
}

/// Installs a panic hook that restores the terminal before the panic message is printed. Otherwise
/// the message would disappear with the alternate screen.
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
