//! The cache of fetched commits on disk: one small bare repository per commit.
//!
//! ```text
//! repositories/{sha256 of the address}/{commit}/       complete, verified, never changed
//! repositories/{sha256 of the address}/{commit}.part/  being made by the holder of the lock
//! locks/{sha256 of the address}                        held while a commit is fetched
//! ```
//!
//! A directory `{commit}/` is always complete, even after a crash, because it gets this name only when it is
//! complete. The next holder of the lock removes a `.part` directory that a crash left behind. If the cache exceeds
//! its size limit, the commits that were not read for the longest time are removed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gix::ObjectId;

use super::budget::Budget;
use super::error::Cause;

/// The time between two attempts to get the lock of a repository.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The name of a file in each commit's directory. Its mtime is the time at which the commit was last read.
const USED: &str = "used";

#[derive(Clone, Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

/// The directory of one commit in the cache.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub directory: PathBuf,
}

/// The lock of a repository in the cache. While it is held, no other process fetches from this repository.
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file is unlocked before it is closed, because a process that is just being started may have a copy of
        // the file handle for a moment.
        let _ = self.file.unlock();
    }
}

impl Cache {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn entry(&self, key: &str, commit: &ObjectId) -> Entry {
        Entry {
            directory: self.repositories().join(key).join(commit.to_string()),
        }
    }

    fn repositories(&self) -> PathBuf {
        self.root.join("repositories")
    }

    fn lock_file(&self, key: &str) -> Result<File, Cause> {
        let directory = self.root.join("locks");
        create(&directory)?;
        let path = directory.join(key);
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed(&path))
    }

    /// Waits for the lock of the repository `key`. Fails at the deadline of the fetch.
    pub fn lock(&self, key: &str, budget: &Budget) -> Result<Lock, Cause> {
        let file = self.lock_file(key)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => {
                    return Err(failed(&self.root.join("locks").join(key))(source));
                }
            }
            match budget.remaining() {
                Ok(left) => std::thread::sleep(left.min(LOCK_POLL)),
                Err(error) => return Err(budget.verdict(|| failed(&self.root)(error))),
            }
        }
    }

    /// Removes the commits that were not read for the longest time, until the cache has at most `limit` bytes. Never
    /// removes `newest`, the commit that was just fetched.
    pub fn evict(&self, limit: u64, newest: &Entry) -> Result<(), Cause> {
        let mut kept = Vec::new();
        for repository in list(&self.repositories())? {
            for directory in list(&repository)? {
                let used = fs::metadata(directory.join(USED)).and_then(|file| file.modified());
                kept.push((
                    used.unwrap_or(SystemTime::UNIX_EPOCH),
                    size(&directory),
                    directory,
                ));
            }
        }
        let mut total: u64 = kept.iter().map(|(_, size, _)| size).sum();
        kept.sort();
        for (_, size, directory) in kept {
            if total <= limit {
                break;
            }
            if directory != newest.directory && self.remove(&directory)? {
                total = total.saturating_sub(size);
            }
        }
        Ok(())
    }

    /// Removes a commit from the cache and returns true. If another process holds the lock of the commit's
    /// repository, keeps it and returns false.
    fn remove(&self, directory: &Path) -> Result<bool, Cause> {
        let repository = directory.parent().unwrap_or(directory);
        let Some(key) = repository.file_name().and_then(|name| name.to_str()) else {
            return Ok(false);
        };
        let file = self.lock_file(key)?;
        if file.try_lock().is_err() {
            return Ok(false);
        }
        let _lock = Lock { file };
        discard(directory)?;
        // An error is ignored, because this fails if the cache has another commit of the repository.
        let _ = fs::remove_dir(repository);
        Ok(true)
    }
}

impl Entry {
    /// Returns whether the commit is in the cache. If it is, also records that the commit was read now.
    pub fn is_published(&self) -> bool {
        let published = self.directory.is_dir();
        if published {
            // An error is ignored, because the cache may be read-only.
            let _ = fs::write(self.directory.join(USED), "\n");
        }
        published
    }

    /// Creates an empty `.part` directory, into which the commit can be fetched.
    pub fn stage(&self, _held: &Lock) -> Result<PathBuf, Cause> {
        let part = self.directory.with_extension("part");
        remove_all(&part)?;
        create(&part)?;
        Ok(part)
    }

    /// Renames the `.part` directory with the complete commit to its final name.
    pub fn publish(&self, part: &Path, _held: &Lock) -> Result<(), Cause> {
        fs::write(part.join(USED), "\n").map_err(failed(part))?;
        // A directory that already has this name is damaged, because otherwise the commit would not have been
        // fetched. It is renamed first, and deleted at the end.
        let old = self.directory.with_extension("old");
        remove_all(&old)?;
        match fs::rename(&self.directory, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&self.directory)(error));
            }
            _ => {}
        }
        fs::rename(part, &self.directory).map_err(failed(&self.directory))?;
        remove_all(&old)
    }
}

/// Deletes a commit's directory. Renames it first, so that no reader sees an incomplete directory.
fn discard(directory: &Path) -> Result<(), Cause> {
    let part = directory.with_extension("part");
    remove_all(&part)?;
    match fs::rename(directory, &part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(directory)(error)),
        Ok(()) => remove_all(&part),
    }
}

fn remove_all(directory: &Path) -> Result<(), Cause> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(directory)(error)),
        _ => Ok(()),
    }
}

/// Creates a directory that only its owner can read.
fn create(directory: &Path) -> Result<(), Cause> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(failed(directory))
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> Cause + use<> {
    let path = path.to_owned();
    move |source| Cause::Cache { path, source }
}

fn list(directory: &Path) -> Result<Vec<PathBuf>, Cause> {
    match fs::read_dir(directory) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(directory)(error)),
    }
}

fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, data)| {
            if data.is_dir() {
                size(&path)
            } else {
                data.len()
            }
        })
        .sum()
}
