//! Builds the arguments of git commands, so that git cannot read a value as an option. All git commands of bowline
//! use this module.
//!
//! A flag is a constant in this program, so its type is `&'static str`. Every other text is a value: the name of a
//! remote, a revision, a path, a commit message. Each value is attached to its flag, or comes after
//! `--end-of-options`, or is a path after `--`.

use std::ffi::{OsStr, OsString};

use super::GitError;

/// The arguments of one git command.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    command: &'static str,
    settings: Vec<&'static str>,
    flags: Vec<OsString>,
    operands: Vec<OsString>,
    paths: Option<Vec<String>>,
}

impl Arguments {
    /// Starts the arguments of a git command, such as `rev-parse`.
    pub(crate) fn of(command: &'static str) -> Self {
        Self {
            command,
            settings: Vec::new(),
            flags: Vec::new(),
            operands: Vec::new(),
            paths: None,
        }
    }

    /// Creates the arguments of a git command that has flags and no values.
    pub(crate) fn plain<const N: usize>(command: &'static str, flags: [&'static str; N]) -> Self {
        flags.into_iter().fold(Self::of(command), Self::flag)
    }

    /// Returns the git command, such as `rev-parse`.
    pub(crate) fn command(&self) -> &'static str {
        self.command
    }

    /// Adds `-c name=value`, which overrides a setting of the user's configuration for this git command and for the
    /// hooks that it runs.
    pub(crate) fn setting(mut self, setting: &'static str) -> Self {
        self.settings.push(setting);
        self
    }

    pub(crate) fn flag(mut self, flag: &'static str) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Adds a flag with its value, as one argument `--flag=value`.
    pub(crate) fn value(mut self, flag: &'static str, value: impl AsRef<OsStr>) -> Self {
        let mut joined = OsString::from(flag);
        joined.push("=");
        joined.push(value);
        self.flags.push(joined);
        self
    }

    /// Adds a short flag with its value, as two arguments. This is safe even for a value that begins with `-`,
    /// because git always reads the argument after such a flag as its value.
    pub(crate) fn short(mut self, flag: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.flags.push(flag.into());
        self.flags.push(value.as_ref().to_owned());
        self
    }

    /// Adds a value without a flag, such as a revision, a remote, a refspec or the name of a setting.
    pub(crate) fn operand(mut self, value: impl AsRef<OsStr>) -> Self {
        self.operands.push(value.as_ref().to_owned());
        self
    }

    /// Adds paths, relative to the root of the work tree. git takes each path literally: `*` and other special
    /// characters in it have no effect.
    pub(crate) fn paths<'p>(mut self, paths: impl IntoIterator<Item = &'p str>) -> Self {
        let paths = paths.into_iter().map(literal);
        self.paths.get_or_insert_default().extend(paths);
        self
    }

    /// Adds `--` and a value after it, for a git command that passes the value to a hook.
    pub(crate) fn behind_dashes(mut self, value: impl AsRef<OsStr>) -> Self {
        self.flags.push("--".into());
        self.flags.push(value.as_ref().to_owned());
        self
    }

    /// Restricts the git command to the files below the directory in which git runs.
    pub(crate) fn below(mut self) -> Self {
        self.paths.get_or_insert_default().push(".".to_owned());
        self
    }

    /// Returns the arguments in the order that git needs. Fails if a value without a flag begins with `-`, or
    /// if a value contains a NUL character.
    pub(crate) fn list(&self) -> Result<Vec<OsString>, GitError> {
        let refused = |value: &OsStr| GitError::Argument {
            command: self.command,
            value: value.to_string_lossy().into_owned(),
        };
        let mut list: Vec<OsString> = Vec::new();
        for setting in &self.settings {
            list.extend(["-c".into(), (*setting).into()]);
        }
        list.push(self.command.into());
        list.extend(self.flags.iter().cloned());
        if !self.operands.is_empty() {
            list.push("--end-of-options".into());
        }
        for operand in &self.operands {
            if operand.as_encoded_bytes().starts_with(b"-") {
                return Err(refused(operand));
            }
            list.push(operand.clone());
        }
        if let Some(paths) = &self.paths {
            list.push("--".into());
            list.extend(paths.iter().map(OsString::from));
        }
        match list.iter().find(|word| has_nul(word)) {
            Some(word) => Err(refused(word)),
            None => Ok(list),
        }
    }
}

fn has_nul(word: &OsStr) -> bool {
    word.as_encoded_bytes().contains(&0)
}

fn literal(path: &str) -> String {
    format!(":(literal){path}")
}

/// Returns paths in the format of `--pathspec-from-file`, separated by NUL characters. git takes each path literally:
/// `*` and other special characters in it have no effect.
///
/// An environment variable could switch off special characters for all paths of git. It is not used, because hooks
/// inherit it, and then the patterns in their own git commands do not match.
pub(super) fn pathspecs<'p>(paths: impl IntoIterator<Item = &'p str>) -> Vec<u8> {
    let paths = paths.into_iter().map(literal);
    paths.collect::<Vec<String>>().join("\0").into_bytes()
}

/// Returns whether a text is a full object id: 40 or 64 lowercase hex digits.
pub(super) fn is_object_id(text: &str) -> bool {
    let digits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    matches!(text.len(), 40 | 64) && text.bytes().all(digits)
}

/// Returns whether a text is a valid branch name, by the rules of `git check-ref-format --branch`. `HEAD` and
/// `refs/heads/main` are not valid, although git accepts them where it needs a revision.
pub(super) fn is_branch_name(name: &str) -> bool {
    let bad = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.starts_with(['-', '/'])
        && !name.starts_with("refs/")
        && !matches!(name, "HEAD" | "@")
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(bad)
        && name.split('/').all(part)
}

/// The reason why bowline does not accept a text as the address of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// The text is a single word, so the user probably meant the name of a remote.
    #[error("no remote has this name")]
    Word,
    /// git or ssh would read the text as an option.
    #[error("it or its host begins with \"-\"")]
    Option,
    /// The text contains a line break or another control character.
    #[error("it has a control character")]
    Control,
    /// git would run a program whose name is in the text.
    #[error("only https, http, ssh, git and file addresses are allowed")]
    Transport,
}

/// Checks the address of a repository that a user gave instead of the name of a remote. Refuses an address that makes
/// git run a program: `ext::COMMAND` runs the command, and `NAME::...` and `NAME://...` run the program
/// `git-remote-NAME`.
pub(super) fn check_address(text: &str) -> Result<(), NoAddress> {
    if text.starts_with('-') {
        return Err(NoAddress::Option);
    }
    if text.chars().any(char::is_control) {
        return Err(NoAddress::Control);
    }
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let rest = text.trim_start_matches(of_scheme);
    if rest.starts_with("::") {
        return Err(NoAddress::Transport);
    }
    let host = match text.split_once("://") {
        Some((scheme, rest)) if scheme.chars().all(of_scheme) => {
            // Upper and lower case matter: for `FILE://`, git would run the program `git-remote-FILE`.
            let known = ["https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"];
            if !known.contains(&scheme) {
                return Err(NoAddress::Transport);
            }
            rest.split('/').next().unwrap_or_default()
        }
        // Every address has one of these characters, for example `:` in `user@host:path`, or is `.` or `..`.
        _ if !text.contains(['/', ':', '\\']) && !matches!(text, "." | "..") => {
            return Err(NoAddress::Word);
        }
        _ => text.split([':', '/']).next().unwrap_or_default(),
    };
    // The text before `@` is a user name. bowline refuses one that begins with `-`, because ssh could read it as an
    // option.
    match host.split('@').any(|part| part.starts_with('-')) {
        true => Err(NoAddress::Option),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
