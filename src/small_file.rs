//! Reads small settings files, such as the configuration, a keymap, a theme, or the layout of a repository.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// The maximum size of a settings file, in bytes.
const LIMIT: u64 = 64 << 10;

/// Whether [`small_file`] reads a file through a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Follows the link. For the user's own files, because many users link their settings from another
    /// directory.
    Follow,
    /// Refuses a link. For files of a foreign repository, because the link could lead to a private file.
    Refuse,
}

/// Reads a small text file; None if the file does not exist. Fails if the file has more than 64 KiB. Also
/// fails for a pipe or a device, because reading could never end.
pub fn small_file(path: &Path, links: Links) -> Result<Option<String>> {
    let found = match links {
        Links::Follow => path.metadata(),
        Links::Refuse => path.symlink_metadata(),
    };
    let found = match found {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let refused = |why: &str| Err(Error::new(ErrorKind::InvalidInput, why));
    if found.is_symlink() {
        return refused("it is a link, and bowline does not follow it; put the file in its place");
    }
    if !found.is_file() {
        return refused("it is no regular file");
    }
    let mut text = String::new();
    File::open(path)?
        .take(LIMIT + 1)
        .read_to_string(&mut text)?;
    match text.len() as u64 > LIMIT {
        true => refused("it is larger than 64 KiB"),
        false => Ok(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_regular_file_is_read() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("small"), "a = 1\n").unwrap();
        std::fs::write(path("large"), vec![b'#'; 70 << 10]).unwrap();
        std::fs::create_dir(path("directory")).unwrap();
        let words = |name: &str, links| match small_file(&path(name), links) {
            Ok(text) => format!("{text:?}"),
            Err(error) => error.to_string(),
        };
        for (name, expected) in [
            ("small", "Some(\"a = 1\\n\")"),
            ("none", "None"),
            ("large", "it is larger than 64 KiB"),
            ("directory", "it is no regular file"),
        ] {
            for links in [Links::Follow, Links::Refuse] {
                assert_eq!(words(name, links), expected, "{name} {links:?}");
            }
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(path("small"), path("link")).unwrap();
            symlink("/dev/zero", path("device")).unwrap();
            assert_eq!(words("link", Links::Follow), "Some(\"a = 1\\n\")");
            assert_eq!(words("device", Links::Follow), "it is no regular file");
            for name in ["link", "device"] {
                let said = words(name, Links::Refuse);
                assert!(said.starts_with("it is a link"), "{name}: {said}");
            }
        }
    }
}
