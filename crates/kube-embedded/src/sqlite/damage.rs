//! Detects whether a store file is truncated or corrupt.

use std::io::Read;
use std::path::Path;

use rusqlite::{Error, ErrorCode};

use super::open::{APPLICATION, beside};

/// The size of the header of a SQLite file, in bytes.
const HEADER: usize = 100;
/// The first bytes of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// How a store file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The end of the file is missing.
    #[error("is truncated: it has {has} of {needs} bytes")]
    Truncated {
        /// The actual size of the file, in bytes.
        has: u64,
        /// The size of the file according to its header, in bytes.
        needs: u64,
    },
    /// The file is complete, but its content is not a valid store.
    #[error("is corrupt")]
    Corrupt,
}

impl Damage {
    /// Returns the damage of an empty file that still has a write-ahead log.
    pub(super) fn emptied() -> Self {
        Self::Truncated {
            has: 0,
            needs: u64::try_from(HEADER).unwrap_or_default(),
        }
    }

    /// Returns how a store file is damaged, if SQLite failed because of the damage. None if SQLite failed for another
    /// reason, or if the file is not a store.
    pub(super) fn of(path: &Path, cause: &Error) -> Option<Self> {
        let code = cause.sqlite_error_code();
        let is_disk = code == Some(ErrorCode::SystemIoFailure);
        // A file that is too short is not damaged while its write-ahead log contains changes: SQLite writes the
        // header first, and a full disk may have stopped the next writes.
        let log = std::fs::metadata(beside(path, "-wal"));
        if is_disk && log.is_ok_and(|log| log.len() > 0) {
            return None;
        }
        match code {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {}
            _ if is_disk => {}
            // A value of a wrong type means damage, because this crate never writes one.
            None if is_unreadable(cause) => return Some(Self::Corrupt),
            _ => return None,
        }
        let mut header = Vec::new();
        let mut file = std::fs::File::open(path).ok()?;
        let has = file.metadata().ok()?.len();
        let first = u64::try_from(HEADER).unwrap_or_default();
        Read::by_ref(&mut file)
            .take(first)
            .read_to_end(&mut header)
            .ok()?;
        let read = Self::of_header(&header, has);
        // After a disk error, only a file that is too short counts as damaged.
        read.filter(|damage| !is_disk || *damage != Self::Corrupt)
    }

    /// Compares the size of a file with the size in its header, both in bytes. Returns the damage; None if there is
    /// none or the file is not a SQLite file.
    fn of_header(header: &[u8], has: u64) -> Option<Self> {
        if !header.starts_with(MAGIC) {
            return None;
        }
        let number = |at: usize, bytes: usize| {
            let bytes = header.get(at..at + bytes)?.iter();
            Some(bytes.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        // The page size 65536 is stored as 1.
        let page = number(16, 2).map(|size| if size == 1 { 65_536 } else { size });
        let needs = page.zip(number(28, 4)).map(|(page, pages)| page * pages);
        match needs {
            Some(needs) if has < needs => Some(Self::Truncated { has, needs }),
            None => Some(Self::Truncated {
                has,
                needs: u64::try_from(HEADER).unwrap_or_default(),
            }),
            Some(_) => (number(68, 4) == u64::try_from(APPLICATION).ok()).then_some(Self::Corrupt),
        }
    }
}

/// Returns whether an error of SQLite means that the file contains a value of a wrong type or encoding, or does not
/// contain a row that every store has.
fn is_unreadable(cause: &Error) -> bool {
    matches!(
        cause,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::QueryReturnedNoRows
            | Error::Utf8Error(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(pages: u32, application: i32) -> Vec<u8> {
        let mut header = vec![0; HEADER];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        header[16..18].copy_from_slice(&4096_u16.to_be_bytes());
        header[28..32].copy_from_slice(&pages.to_be_bytes());
        header[68..72].copy_from_slice(&application.to_be_bytes());
        header
    }

    #[test]
    fn a_disk_error_is_no_damage_while_the_log_has_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        std::fs::write(&file, header(3, APPLICATION)).unwrap();
        let full =
            Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR), None);
        assert!(matches!(
            Damage::of(&file, &full),
            Some(Damage::Truncated { .. })
        ));
        std::fs::write(folder.path().join("store.db-wal"), "changes").unwrap();
        assert_eq!(Damage::of(&file, &full), None);
    }

    #[test]
    fn a_missing_end_is_truncated_and_wrong_content_is_corrupt() {
        let ours = header(3, APPLICATION);
        for (header, has, expected) in [
            (
                &ours[..],
                8192,
                Some(Damage::Truncated {
                    has: 8192,
                    needs: 12_288,
                }),
            ),
            (&ours, 12_288, Some(Damage::Corrupt)),
            (
                &ours[..20],
                20,
                Some(Damage::Truncated {
                    has: 20,
                    needs: 100,
                }),
            ),
            (&header(3, 7), 12_288, None),
            (&b"not a database"[..], 14, None),
            (&[][..], 0, None),
        ] {
            assert_eq!(Damage::of_header(header, has), expected);
        }
    }
}
