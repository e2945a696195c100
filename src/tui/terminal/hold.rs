//! The global state from which bowline restores the terminal.
//!
//! It is global because a panic hook and a signal handler must find it without the event loop. If several of them
//! restore the terminal, only the first has an effect.

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
        // If the terminal is closed, bowline cannot report this error anywhere.
        let _ = self.out.write_all(&self.leave);
        let _ = self.out.flush();
        let _ = disable_raw_mode();
    }
}

/// The control of bowline over the terminal. Dropping this value restores the terminal.
pub struct Hold(());

impl Hold {
    /// Takes control of the terminal: sets raw mode and the modes of `options`.
    pub fn take(out: Box<dyn Write + Send>, options: &Options) -> io::Result<Hold> {
        restore_on_panic();
        enable_raw_mode()?;
        let hold = Hold(());
        hold.enter(out, options)?;
        Ok(hold)
    }

    /// Takes control of the terminal again after [`Hold::give_back`].
    pub fn take_again(&mut self, out: Box<dyn Write + Send>, options: &Options) -> io::Result<()> {
        // `enable_raw_mode` does nothing if it remembers raw mode as enabled. But the shell may have changed the
        // mode, so disable it first.
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

    /// Returns whether bowline still controls the terminal. False if a panic on another thread has restored the
    /// terminal.
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

/// Installs a panic hook that restores the terminal before the panic message is printed, because the message would
/// disappear together with the alternate screen.
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
