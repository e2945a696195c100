//! Waits while another process has locked a store file, and reports a long wait.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::watch;

/// How long to wait for the lock of another process.
pub(super) const BUSY: Duration = Duration::from_secs(20);
/// The pause between two tries to get the lock. SQLite's own function waits up to 100 ms between two tries, so it never
/// gets the lock between two writes of a busy process.
const TRY: Duration = Duration::from_millis(2);
/// The time after which a wait is reported.
const LONG: Duration = Duration::from_secs(1);

/// The store file for which a thread of this process last had to wait long.
static LONG_WAIT: LazyLock<watch::Sender<Option<PathBuf>>> =
    LazyLock::new(|| watch::Sender::new(None));

thread_local! {
    /// The store file that this thread uses. It is kept here, because SQLite does not pass it to the function that
    /// waits.
    static FILE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Returns a channel that reports a store file whenever a wait for its lock takes longer than a second.
pub fn long_waits() -> watch::Receiver<Option<PathBuf>> {
    LONG_WAIT.subscribe()
}

/// Sets the store file that this thread uses, for the reports of its waits.
pub(super) fn set_file(path: &Path) {
    FILE.with_borrow_mut(|file| {
        if file.as_deref() != Some(path) {
            *file = Some(path.to_owned());
        }
    });
}

/// Waits a short time for the lock of another process. Returns false if the wait took [`BUSY`] in total. `tries` is
/// the number of earlier calls for the same wait.
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
