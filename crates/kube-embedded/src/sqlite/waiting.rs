//! Waits for another process's lock of a file, and reports a long wait.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::watch;

/// How long to wait for another process's lock, and how often to try. SQLite's own waiting grows to a tenth
/// of a second: such a waiter never gets the lock between two writes of a busy process.
pub(super) const BUSY: Duration = Duration::from_secs(20);
const TRY: Duration = Duration::from_millis(2);
/// A wait is reported when it is this long.
const LONG: Duration = Duration::from_secs(1);

/// The file of the newest long wait in this process.
static LONG_WAIT: LazyLock<watch::Sender<Option<PathBuf>>> =
    LazyLock::new(|| watch::Sender::new(None));

thread_local! {
    /// The file that this thread uses. SQLite does not pass the file to the function that waits.
    static FILE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Returns a channel that reports the file of each wait for a lock that takes longer than a second.
pub fn long_waits() -> watch::Receiver<Option<PathBuf>> {
    LONG_WAIT.subscribe()
}

/// Sets the file for the reports of this thread.
pub(super) fn set_file(path: &Path) {
    FILE.with_borrow_mut(|file| {
        if file.as_deref() != Some(path) {
            *file = Some(path.to_owned());
        }
    });
}

/// Waits for another process's lock; returns false after [`BUSY`]. `tries` counts the calls of this wait.
pub(super) fn wait_for_lock(tries: i32) -> bool {
    std::thread::sleep(TRY);
    let tries = u128::from(tries.unsigned_abs());
    if tries == LONG.as_millis() / TRY.as_millis() {
        report();
    }
    tries < BUSY.as_millis() / TRY.as_millis()
}

fn report() {
    if let Some(file) = FILE.with_borrow(Option::clone) {
        tracing::warn!(file = %file.display(), "waiting for another process's lock");
        LONG_WAIT.send_replace(Some(file));
    }
}
