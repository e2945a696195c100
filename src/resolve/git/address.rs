//! Checks git references before any connection is made.
//!
//! The check is strict because the addresses in releases are untrusted: every user who may write releases can choose
//! them, and they become URLs, command lines and file names. Only a few forms of addresses are allowed. This module
//! reads neither disk nor network.

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use gix::ObjectId;
use sha2::{Digest, Sha256};

use crate::text;

/// The largest length of a repository's address, in bytes.
const LONGEST: usize = 2048;

/// The transports that are allowed for git references, in addition to https and ssh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Whether repositories in the file system of this machine are allowed.
    pub file: bool,
    /// Whether plain http to the loopback address is allowed.
    pub loopback_http: bool,
}

/// The address of a git repository, without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
    /// How bowline reaches the repository: the transport with its host and path.
    pub transport: Transport,
}

/// How bowline reaches a git repository: the transport with its host and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The smart http protocol of git, over https or http.
    Http {
        origin: Origin,
        /// The path of the repository on the server, without a leading slash.
        path: String,
    },
    /// The program `git-upload-pack` over ssh.
    Ssh {
        /// The user name on the ssh server. None if the configuration of ssh determines it.
        user: Option<String>,
        host: String,
        /// The port of the ssh server. None if the configuration of ssh determines it.
        port: Option<u16>,
        /// The path of the repository, as `git-upload-pack` on the server gets it.
        path: String,
    },
    /// A repository in the file system of this machine. Contains its directory.
    File(PathBuf),
}

/// The server of an http request. bowline sends credentials only to the origin for which they are configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whether the scheme of the server's URL is https.
    pub secure: bool,
    /// The host name of the server, in lower case.
    pub host: String,
    /// The port of the server; None for the default port of the scheme.
    pub port: Option<u16>,
}

/// The reason why bowline refuses the address of a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum AddressError {
    #[error("the address is empty; write https://HOST/PATH or ssh://USER@HOST/PATH")]
    Empty,
    #[error("the address is longer than {LONGEST} bytes; write a shorter one")]
    TooLong,
    #[error("an address cannot begin with `-`; write https://HOST/PATH or ssh://USER@HOST/PATH")]
    LeadingDash,
    #[error(
        "the address has a space, a control character or one outside ASCII; write such characters of a path as %XX"
    )]
    Character,
    #[error(
        "remote helpers (`{0}::...`) are not allowed; write https://HOST/PATH or ssh://USER@HOST/PATH"
    )]
    RemoteHelper(String),
    #[error("the transport {0} is not allowed; write https://HOST/PATH or ssh://USER@HOST/PATH")]
    Scheme(String),
    #[error("plain http is not allowed; write https://HOST/PATH")]
    PlainHttp,
    #[error(
        "the address contains credentials, and a release must not; remove them, and put the token into the token directory or git's credential helper"
    )]
    Credentials,
    #[error("the address has a query or a fragment; leave out everything from `?` or `#` on")]
    Query,
    #[error(
        "the host is missing or not a host name; write https://HOST/PATH or ssh://USER@HOST/PATH"
    )]
    Host,
    #[error("the user is not a user name; write https://HOST/PATH or ssh://USER@HOST/PATH")]
    User,
    #[error(
        "the port is not a number from 1 to 65535; write https://HOST/PATH or ssh://USER@HOST/PATH"
    )]
    Port,
    #[error(
        "the path of the repository is missing, or has an empty segment, `.`, `..`, one that begins with `-`, or a character that is refused; write it as the server's own page for cloning shows it"
    )]
    Path,
    #[error(
        "a relative path is not allowed; write https://HOST/PATH, ssh://USER@HOST/PATH or USER@HOST:PATH"
    )]
    Relative,
    #[error(
        "repositories on this machine are not allowed here; write https://HOST/PATH or ssh://USER@HOST/PATH"
    )]
    FileNotAllowed,
}

/// The error for a revision that is not the full id of a commit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the revision is not the full id of a commit, 40 or 64 lowercase hex digits; for a short one, a branch or a tag, `git rev-parse REVISION` prints it"
)]
pub struct RevisionError;

/// The error for a path in a git reference that bowline refuses. Contains the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path is refused: {0}; write it relative to the root of the repository, as `git ls-files --full-name` prints it"
)]
pub struct PathError(pub &'static str);

/// Parses the address of a repository. Fails unless its transport is https, ssh or in `allowed`, and its form is
/// safe.
pub fn parse(repository: &str, allowed: Allowed) -> Result<Address, AddressError> {
    if repository.is_empty() {
        return Err(AddressError::Empty);
    }
    if repository.len() > LONGEST {
        return Err(AddressError::TooLong);
    }
    if repository.starts_with('-') {
        return Err(AddressError::LeadingDash);
    }
    if let Some((scheme, rest)) = text::split_scheme(repository) {
        let scheme = scheme.to_ascii_lowercase();
        return match scheme.as_str() {
            "https" | "http" => http(scheme == "https", rest, allowed),
            "ssh" => ssh(rest),
            "file" if rest.starts_with('/') => file(rest, allowed),
            "file" => Err(AddressError::Host),
            _ => Err(AddressError::Scheme(text::fit(&scheme, 32))),
        };
    }
    if repository.starts_with('/') {
        return file(repository, allowed);
    }
    if let Some(name) = helper(repository) {
        return Err(AddressError::RemoteHelper(name));
    }
    match repository.split_once(':') {
        Some((host, path)) if !host.contains('/') => scp(host, path),
        _ => Err(AddressError::Relative),
    }
}

fn helper(text: &str) -> Option<String> {
    let (name, _) = text.split_once("::")?;
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
        .then(|| text::fit(name, 32))
}

fn printable(text: &str) -> Result<(), AddressError> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(())
    } else {
        Err(AddressError::Character)
    }
}

fn http(secure: bool, rest: &str, allowed: Allowed) -> Result<Address, AddressError> {
    printable(rest)?;
    let (authority, path) = rest.split_once('/').ok_or(AddressError::Path)?;
    if authority.contains('@') || authority.to_ascii_lowercase().contains("%40") {
        return Err(AddressError::Credentials);
    }
    if rest.contains(['?', '#']) {
        return Err(AddressError::Query);
    }
    let (host, port) = host_and_port(authority)?;
    let plain_is_fine = allowed.loopback_http && is_loopback(&host);
    if !secure && !plain_is_fine {
        return Err(AddressError::PlainHttp);
    }
    let path = repository_path(path, true)?;
    let origin = Origin {
        secure,
        host,
        port: port.filter(|port| *port != if secure { 443 } else { 80 }),
    };
    Ok(Address {
        text: format!("{}/{path}", origin.url()),
        transport: Transport::Http { origin, path },
    })
}

fn ssh(rest: &str) -> Result<Address, AddressError> {
    printable(rest)?;
    let (authority, path) = rest.split_once('/').ok_or(AddressError::Path)?;
    if rest.contains(['?', '#']) {
        return Err(AddressError::Query);
    }
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user_name(user)?), host),
        None => (None, authority),
    };
    let (host, port) = host_and_port(host)?;
    let path = repository_path(path, false)?;
    let text = format!(
        "ssh://{}{host}{}/{path}",
        user.as_ref()
            .map(|user| format!("{user}@"))
            .unwrap_or_default(),
        port.map(|port| format!(":{port}")).unwrap_or_default(),
    );
    // The path `/~name` is the home directory of a user on the server, as in git.
    let path = if path.starts_with('~') {
        path
    } else {
        format!("/{path}")
    };
    Ok(Address {
        text,
        transport: Transport::Ssh {
            user,
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            path,
        },
    })
}

fn scp(host: &str, path: &str) -> Result<Address, AddressError> {
    printable(host)?;
    printable(path)?;
    if path.contains('@') {
        // In `user:secret@host:path`, the path would be `secret@host:path`. So an `@` in the path means that the
        // address contains credentials.
        return Err(AddressError::Credentials);
    }
    let (user, host) = host.rsplit_once('@').ok_or(AddressError::Relative)?;
    let user = user_name(user)?;
    let host = host_name(host)?;
    let (lead, rest) = match path.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => ("", path),
    };
    let path = format!("{lead}{}", repository_path(rest, false)?);
    Ok(Address {
        text: format!("{user}@{host}:{path}"),
        transport: Transport::Ssh {
            user: Some(user),
            host: host.trim_matches(['[', ']']).to_owned(),
            port: None,
            path,
        },
    })
}

fn file(path: &str, allowed: Allowed) -> Result<Address, AddressError> {
    if !allowed.file {
        return Err(AddressError::FileNotAllowed);
    }
    if path.chars().any(char::is_control) {
        return Err(AddressError::Character);
    }
    let inner = path.trim_end_matches('/').trim_start_matches('/');
    let fine = |segment: &str| !matches!(segment, "" | "." | "..");
    if path.starts_with("//") || inner.is_empty() || !inner.split('/').all(fine) {
        return Err(AddressError::Path);
    }
    Ok(Address {
        text: format!("file:///{inner}"),
        transport: Transport::File(PathBuf::from(format!("/{inner}"))),
    })
}

fn user_name(user: &str) -> Result<String, AddressError> {
    if user.contains(':') || user.to_ascii_lowercase().contains("%3a") {
        return Err(AddressError::Credentials);
    }
    let fine = user.len() <= 64
        && user.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && user
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    fine.then(|| user.to_owned()).ok_or(AddressError::User)
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), AddressError> {
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    let tail = authority.get(after_brackets..).unwrap_or_default();
    let Some((_, port)) = tail.split_once(':') else {
        return Ok((host_name(authority)?, None));
    };
    let host = authority
        .get(..authority.len() - port.len() - 1)
        .unwrap_or_default();
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if digits && number > 0 => Ok((host_name(host)?, Some(number))),
        _ => Err(AddressError::Port),
    }
}

fn host_name(host: &str) -> Result<String, AddressError> {
    if let Some(inner) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().map_err(|_| AddressError::Host)?;
        return Ok(format!("[{address}]"));
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with(['-', '_'])
            && label
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    if host.len() <= 253 && host.split('.').all(label) {
        Ok(host.to_ascii_lowercase())
    } else {
        Err(AddressError::Host)
    }
}

fn repository_path(path: &str, encoded: bool) -> Result<String, AddressError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let fine = |segment: &str| {
        !matches!(segment, "" | "." | "..")
            && !segment.starts_with('-')
            && characters_are_fine(segment.as_bytes(), encoded)
    };
    if path.split('/').all(fine) {
        Ok(path.to_owned())
    } else {
        Err(AddressError::Path)
    }
}

fn characters_are_fine(segment: &[u8], encoded: bool) -> bool {
    match segment {
        [] => true,
        [b'%', high, low, rest @ ..] if encoded => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            let byte = digit(high)
                .zip(digit(low))
                .map(|(high, low)| high * 16 + low);
            // The percent-encoded characters of a path must not have a meaning in paths, such as `/` and `.`.
            byte.and_then(char::from_u32)
                .is_some_and(|c| !c.is_control() && !"/.\\%-".contains(c))
                && characters_are_fine(rest, encoded)
        }
        [byte, rest @ ..] => {
            (byte.is_ascii_alphanumeric() || b"-._~+,=".contains(byte))
                && characters_are_fine(rest, encoded)
        }
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

impl Origin {
    /// Returns the URL of the origin, without a path and without a trailing slash.
    pub fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}", self.host)
    }
}

impl Address {
    /// Returns the address of the repository in normalised form, which requests use.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name of the repository's directory in the cache: a hash of the address.
    pub(super) fn key(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Parses the revision of a git reference, which must be the full id of a commit.
pub fn parse_revision(revision: &str) -> Result<ObjectId, RevisionError> {
    let digits = revision
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match ObjectId::from_hex(revision.as_bytes()) {
        Ok(id) if digits && !id.is_null() => Ok(id),
        _ => Err(RevisionError),
    }
}

/// Checks the path of a file in a git reference. Fails if it is not a plain relative path.
pub fn check_path(path: &str) -> Result<(), PathError> {
    let wrong = if path.is_empty() {
        "it is empty"
    } else if path.len() > 4096 {
        "it is longer than 4096 bytes"
    } else if path.starts_with('-') {
        "it begins with `-`"
    } else if path.starts_with('/') {
        "it is absolute"
    } else if path.chars().any(char::is_control) {
        "it has a control character"
    } else if path.contains('\\') {
        "it has a backslash"
    } else if path.split('/').any(str::is_empty) {
        "it has an empty segment"
    } else if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        "it has a segment `.` or `..`"
    } else if path
        .split('/')
        .any(|segment| segment.eq_ignore_ascii_case(".git"))
    {
        "it leads into `.git`"
    } else {
        return Ok(());
    };
    Err(PathError(wrong))
}

/// Formats the address of a repository for messages, on one line and without credentials. The address may be invalid.
pub fn shown(repository: &str) -> String {
    text::address(repository, |authority| host_and_port(authority).is_ok())
}

#[cfg(test)]
mod tests;
