//! The one thing that must not be forgotten: how to give the terminal back.
//!
//! It is kept where a panic and a signal find it, for neither can ask the run loop. Whoever comes first
//! gives it back; whoever comes second finds nothing to do.

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
        // Where the terminal has gone there is nobody to tell.
        let _ = self.out.write_all(&self.leave);
        let _ = self.out.flush();
        let _ = disable_raw_mode();
    }
}

/// A hold on the terminal; dropping it gives it back.
pub struct Hold(());

impl Hold {
    /// Takes the terminal: keys come unchanged, and its modes are set.
    pub fn take(out: Box<dyn Write + Send>, options: &Options) -> io::Result<Hold> {
        restore_on_panic();
        enable_raw_mode()?;
        let hold = Hold(());
        hold.enter(out, options)?;
        Ok(hold)
    }

    /// Takes it again, after somebody else had it.
    pub fn take_again(&mut self, out: Box<dyn Write + Send>, options: &Options) -> io::Result<()> {
        // The shell may have changed it meanwhile, unseen by who would find it raw already.
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

    /// Gives it back for a while.
    pub fn give_back(&mut self) {
        restore();
    }

    /// Tells whether nobody has given it back: a panic on another thread does.
    pub fn is_held(&self) -> bool {
        is_held()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        restore();
    }
}

/// Tells whether the terminal is held.
pub fn is_held() -> bool {
    HELD.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some()
}

/// Gives the terminal back, if it is held.
pub fn restore() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(held) = held {
        held.give_back();
    }
}

/// Has a panic print its message on the terminal as it was, not on a screen that is about to go.
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
