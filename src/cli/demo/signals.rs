//! Deletes the directory of the demo if a signal ends bowline.
//!
//! While the demo fills its store, this module handles the signals and ends bowline. Later, the terminal UI also
//! handles them, and has time to restore the terminal first.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator;
use signal_hook::low_level::emulate_default_handler;

/// How long the terminal UI may take to end bowline and to delete the directory itself.
const GRACE: Duration = Duration::from_secs(1);

/// The number of attempts to delete the directory. An attempt fails if another thread creates a file in it at the
/// same time.
const TRIES: usize = 5;

/// The handler of the signals that end bowline.
pub(super) struct Signals(Arc<Shared>);

#[derive(Default)]
struct Shared {
    directory: OnceLock<PathBuf>,
    is_elsewhere: AtomicBool,
}

impl Signals {
    /// Starts the handler of signals. It runs until bowline ends.
    pub(super) fn watch() -> io::Result<Self> {
        let mut signals = iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let thread = std::thread::Builder::new().name("demo-signals".to_owned());
        thread.spawn(move || {
            for signal in signals.forever() {
                own.answer(signal);
            }
        })?;
        Ok(Self(shared))
    }

    /// Sets the directory that the handler deletes at a signal.
    pub(super) fn delete(&self, directory: &Path) {
        let _ = self.0.directory.set(directory.to_owned());
    }

    /// Tells the handler that the terminal UI now ends bowline at a signal. The handler then only deletes the
    /// directory.
    pub(super) fn handled_elsewhere(&self) {
        self.0.is_elsewhere.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn answer(&self, signal: i32) {
        let is_elsewhere = self.is_elsewhere.load(Ordering::SeqCst);
        if is_elsewhere {
            std::thread::sleep(GRACE);
        }
        if let Some(directory) = self.directory.get() {
            let mut tries = std::iter::repeat_with(|| std::fs::remove_dir_all(directory));
            let _ = tries.by_ref().take(TRIES).find(Result::is_ok);
        }
        if !is_elsewhere {
            let _ = emulate_default_handler(signal);
        }
    }
}
