//! Lets only one process run the controllers of an embedded store: the process that has locked a file beside
//! the store.
//!
//! The operating system releases the lock when the process ends, even after a crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::engine::controller_status;

/// The interval between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(50);

/// The lock of one embedded store. Dropping the value releases the lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of an embedded store. Returns None if another process has the lock.
    pub fn take(store: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = options.open(controller_status::lock_file(store))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Waits until this process has the lock of an embedded store. Calls `waiting` once if another process
    /// has the lock.
    pub async fn win(store: &Path, waiting: impl FnOnce()) -> io::Result<Self> {
        let mut waiting = Some(waiting);
        // Ignores the first failed attempt, because a process that only checks whether controllers run also
        // has the lock for a moment.
        let mut glance = true;
        loop {
            if let Some(lock) = Self::take(store)? {
                return Ok(lock);
            }
            if !std::mem::take(&mut glance)
                && let Some(waiting) = waiting.take()
            {
                waiting();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_has_it_until_it_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let first = Lock::take(&store).unwrap().expect("nobody has it");
        assert!(Lock::take(&store).unwrap().is_none());
        let (told, mut waits) = tokio::sync::mpsc::unbounded_channel();
        let place = store.clone();
        let second =
            tokio::spawn(
                async move { Lock::win(&place, || told.send(()).unwrap()).await.unwrap() },
            );
        waits.recv().await.expect("it says that it waits");
        drop(first);
        let second = second.await.unwrap();
        assert!(Lock::take(&store).unwrap().is_none());
        drop(second);
        assert!(Lock::take(&store).unwrap().is_some());
    }
}
