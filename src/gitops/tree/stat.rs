//! Reads the stat of files in a work tree: size, times and inode.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The smallest age in nanoseconds at which the last write of a file is safe to compare. File systems have coarse
/// clocks, so two writes within this time may have the same time stamp.
const TICK: i128 = 100_000_000;

/// The stat of a file: size, times and inode. If it is the same as before, the file is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat {
    size: u64,
    modified: i128,
    changed: i128,
    inode: i128,
    /// Whether the file was read so soon after its last write that a later write could have the same stat.
    racy: bool,
}

impl Stat {
    /// Records that the file was read at the time `now`, which decides whether the stat can be trusted later.
    pub(super) fn read_at(mut self, now: jiff::Timestamp) -> Self {
        let written = self.modified.max(self.changed);
        self.racy = now.as_nanosecond() - written < TICK;
        self
    }

    /// Returns the size of the file in bytes.
    pub(super) fn size(&self) -> usize {
        usize::try_from(self.size).unwrap_or_default()
    }

    /// Returns the modification time, in seconds since 1970.
    pub(super) fn written(&self) -> i64 {
        i64::try_from(self.modified / 1_000_000_000).unwrap_or_default()
    }

    /// Returns whether the file is certainly unchanged since it was read. `now` is its current stat.
    pub(super) fn is_as(&self, now: &Stat) -> bool {
        !self.racy
            && (self.size, self.modified, self.changed, self.inode)
                == (now.size, now.modified, now.changed, now.inode)
    }
}

/// The opened root directory of the files. So the system does not have to resolve its path again for each file.
#[cfg(unix)]
pub(super) struct Folder(rustix::fd::OwnedFd);

#[cfg(unix)]
impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Returns the stat of a file; None if the file does not exist or is a link.
    pub(super) fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        let links = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let found = there(rustix::fs::statat(&self.0, path, links))?;
        Ok(found.as_ref().and_then(Self::told))
    }

    /// Opens a file and returns it with its stat; None if the file does not exist or is a link.
    pub(super) fn file(&self, path: &str) -> io::Result<Option<(File, Stat)>> {
        use rustix::fs::{Mode, OFlags};
        // Without NONBLOCK, opening a named pipe would wait until another process writes to the pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.0, path, flags, Mode::empty());
        let Some(opened) = there(opened)? else {
            return Ok(None);
        };
        let stat = Self::told(&rustix::fs::fstat(&opened)?);
        Ok(stat.map(|stat| (opened.into(), stat)))
    }

    fn told(found: &rustix::fs::Stat) -> Option<Stat> {
        use rustix::fs::FileType;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return None;
        }
        let nanos = |seconds: i128, nanos: i128| seconds * 1_000_000_000 + nanos;
        Some(Stat {
            size: u64::try_from(found.st_size).unwrap_or_default(),
            modified: nanos(found.st_mtime.into(), found.st_mtime_nsec.into()),
            changed: nanos(found.st_ctime.into(), found.st_ctime_nsec.into()),
            inode: found.st_ino.into(),
            racy: false,
        })
    }
}

/// Converts the error for a file that does not exist or is a link to None. Other errors stay errors.
#[cfg(unix)]
fn there<T>(found: rustix::io::Result<T>) -> io::Result<Option<T>> {
    use rustix::io::Errno;
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The path of the root directory of the files.
#[cfg(not(unix))]
pub(super) struct Folder(std::path::PathBuf);

#[cfg(not(unix))]
impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        path.read_dir()?;
        Ok(Self(path.to_owned()))
    }

    /// Returns the stat of a file; None if the file does not exist or is a link.
    pub(super) fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        use io::ErrorKind::{NotADirectory, NotFound};
        let found = match std::fs::symlink_metadata(self.0.join(path)) {
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
            found => found?,
        };
        let since = found.modified()?.duration_since(std::time::UNIX_EPOCH);
        let nanos = since.map_err(io::Error::other)?.as_nanos();
        let modified = i128::try_from(nanos).map_err(io::Error::other)?;
        Ok(found.is_file().then_some(Stat {
            size: found.len(),
            modified,
            changed: modified,
            inode: 0,
            racy: false,
        }))
    }

    /// Opens a file and returns it with its stat; None if the file does not exist or is a link.
    pub(super) fn file(&self, path: &str) -> io::Result<Option<(File, Stat)>> {
        match self.stat(path)? {
            Some(stat) => Ok(Some((File::open(self.0.join(path))?, stat))),
            None => Ok(None),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::io::Errno;

    use super::there;

    #[test]
    fn what_is_gone_is_told_from_what_cannot_be_looked_at() {
        for (errno, gone) in [
            (Errno::NOENT, true),
            (Errno::NOTDIR, true),
            (Errno::LOOP, true),
            (Errno::ACCESS, false),
            (Errno::PERM, false),
            (Errno::IO, false),
            (Errno::MFILE, false),
            (Errno::NOMEM, false),
        ] {
            let found = there::<()>(Err(errno));
            assert_eq!(matches!(found, Ok(None)), gone, "{errno:?}");
            assert_eq!(found.is_err(), !gone, "{errno:?}");
        }
        assert!(matches!(there(Ok(1)), Ok(Some(1))));
    }
}
