//! Reads foreign YAML under limits, edits it, and writes YAML.
//!
//! - [`documents`] reads a text as JSON values. The size, the depth, the number of nodes and the copies that
//!   aliases make are limited ([`Limits`]). JSON is YAML, so this function also reads JSON, including streams
//!   of several JSON objects.
//! - [`split()`] splits a text into its documents without parsing them.
//! - [`edit`] changes one document of a text and keeps all other bytes, including comments.
//! - [`write()`] writes a JSON value as YAML that all YAML readers read in the same way.
//!
//! The reader refuses texts that two YAML readers read differently: a plain scalar whose value in YAML 1.1
//! (kubectl, Helm, PyYAML) differs from its value in YAML 1.2, and a key that occurs twice in a map. It also
//! refuses merge keys (`<<`), tags other than the core tags, keys that are not scalars, numbers that JSON
//! cannot represent, and `1e3` (also in JSON), because YAML 1.1 reads it as a string. Dates stay strings, as
//! in all Kubernetes tools.
//!
//! The values contain no comments, and this crate does not use schemas.

#![warn(missing_docs)]

pub mod edit;
mod json;
mod read;
mod scalar;
mod split;
mod write;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use read::{documents, documents_with};
pub use split::split;
pub use write::{Block, Spot, block_head, block_line, key_lines, leaf, leaf_lines, open, write};

/// One document of a YAML stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value of the document as JSON.
    pub value: Value,
    /// The number of the line on which the value of the document begins, counted from 1.
    pub line: usize,
}

/// The limits for reading one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest size of the text in bytes.
    pub bytes: usize,
    /// The largest nesting depth of maps and lists, after the expansion of aliases.
    pub depth: usize,
    /// The largest number of scalars, maps and lists in all documents, after the expansion of aliases.
    pub nodes: usize,
    /// The largest number of bytes that the copies of anchored nodes may use, for the anchors and for the aliases.
    pub alias_bytes: usize,
    /// The largest number of documents.
    pub documents: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 8 << 20,
            depth: 100,
            nodes: 500_000,
            alias_bytes: 8 << 20,
            documents: 4096,
        }
    }
}

/// A position in a text, with the name of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the file or source of the text, as given by the caller.
    pub origin: String,
    /// The number of the line of this position, counted from 1.
    pub line: usize,
    /// The column of this position in characters, counted from 1.
    pub column: usize,
}

impl Place {
    /// Converts a byte offset in `text` to a position. `origin` is the name of the text.
    pub fn of(origin: &str, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            origin: origin.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.origin, self.line, self.column)
    }
}

/// The reason why the reader refuses a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The text is larger than the limit.
    #[error("{origin}: {size} bytes are more than the limit of {limit}; split the file")]
    TooLarge {
        /// The name of the file or source of the text, as given by the caller.
        origin: String,
        /// The size of the text in bytes.
        size: usize,
        /// The largest allowed size in bytes.
        limit: usize,
    },
    /// The text is not YAML.
    #[error("{place}: {message}")]
    Syntax {
        /// The position of the syntax error.
        place: Place,
        /// The message of the parser about the syntax error.
        message: String,
    },
    /// The text exceeds a limit on depth, nodes, aliases or documents.
    #[error("{place}: more than {limit} {what}; split or simplify the file")]
    Limit {
        /// The position at which the limit is exceeded.
        place: Place,
        /// What the limit counts, in words for the message, such as `nodes` or `documents`.
        what: &'static str,
        /// The value of the limit.
        limit: usize,
    },
    /// The text contains a plain scalar that YAML 1.1 and YAML 1.2 read differently.
    #[error(
        "{place}: {text} is {old} in YAML 1.1 and {new} in YAML 1.2; quote it ('{text}') or write {instead}"
    )]
    Ambiguous {
        /// The position of the ambiguous scalar.
        place: Place,
        /// The text of the ambiguous scalar, shortened.
        text: String,
        /// The value of the scalar in YAML 1.1, in words.
        old: &'static str,
        /// The value of the scalar in YAML 1.2, in words.
        new: &'static str,
        /// A text with the same meaning in both YAML versions, which the user can write instead.
        instead: &'static str,
    },
    /// A map contains a key twice.
    #[error("{place}: key {key} stands twice in the same map (first on line {first}); remove one")]
    Duplicate {
        /// The position at which the key occurs the second time.
        place: Place,
        /// The key that occurs twice, shortened.
        key: String,
        /// The number of the line on which the key occurs the first time, counted from 1.
        first: usize,
    },
    /// The text uses a YAML feature that this crate does not support.
    #[error("{place}: {what}; {hint}")]
    Unsupported {
        /// The position of the unsupported feature.
        place: Place,
        /// The unsupported feature, in words for the message.
        what: String,
        /// What the user can do about the unsupported feature.
        hint: &'static str,
    },
}

impl YamlError {
    /// Returns the position of the error; None if the text is too large.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::TooLarge { .. } => None,
            Self::Syntax { place, .. }
            | Self::Limit { place, .. }
            | Self::Ambiguous { place, .. }
            | Self::Duplicate { place, .. }
            | Self::Unsupported { place, .. } => Some(place),
        }
    }
}
