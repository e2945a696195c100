//! The one place that reads foreign YAML, under bounds.
//!
//! Two readers of one file must never disagree about what it says, and no file may cost
//! more memory than its size promises. So this door builds JSON values itself from the
//! events of serde-saphyr's parser, which tell a plain scalar from a quoted one and name
//! the line of everything: a plain scalar that YAML 1.1 (kubectl, Helm, PyYAML) and YAML
//! 1.2 read differently is refused, aliases are expanded under a budget, and a key that
//! stands twice is an error. JSON is YAML, so JSON files come through here too, streams of
//! several JSON objects included.
//!
//! What is refused beyond YAML's own errors: merge keys (`<<`), tags other than the core
//! ones, keys that are not scalars, numbers that JSON cannot hold, and, in JSON too, `1e3`,
//! which YAML 1.1 takes for text. Dates stay strings, as
//! every Kubernetes tool reads them.
//!
//! It does not keep comments and does not know any schema.

pub mod edit;
mod json;
mod read;
mod scalar;
mod write;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use read::{documents, documents_with};
pub use write::{Block, Spot, block_head, block_line, key_lines, leaf, leaf_lines, open, write};

/// One document of a YAML stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What the document says, as JSON.
    pub value: Value,
    /// The line, from 1, on which its content begins.
    pub line: usize,
}

/// Bounds what one call may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of the text in bytes.
    pub bytes: usize,
    /// How deep maps and lists may be nested, aliases expanded.
    pub depth: usize,
    /// The number of scalars, maps and lists in all documents, aliases expanded.
    pub nodes: usize,
    /// The bytes of text that anchors and aliases may copy.
    pub alias_bytes: usize,
    /// The number of documents.
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

/// Says where in which text something is wrong; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file or source, as the caller named it.
    pub origin: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// Says where an offset in bytes is in a text.
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

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The text is larger than the limit.
    #[error("{origin}: {size} bytes are more than the limit of {limit}; split the file")]
    TooLarge {
        /// The file or source, as the caller named it.
        origin: String,
        /// The size of the text.
        size: usize,
        /// The limit in force.
        limit: usize,
    },
    /// The text is not YAML.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// A limit on depth, nodes, aliases or documents is reached.
    #[error("{place}: more than {limit} {what}; split or simplify the file")]
    Limit {
        /// Where the limit was passed.
        place: Place,
        /// What there is too much of.
        what: &'static str,
        /// The limit in force.
        limit: usize,
    },
    /// A plain scalar that YAML 1.1 and YAML 1.2 read differently.
    #[error(
        "{place}: {text} is {old} in YAML 1.1 and {new} in YAML 1.2; quote it ('{text}') or write {instead}"
    )]
    Ambiguous {
        /// Where.
        place: Place,
        /// The scalar, shortened.
        text: String,
        /// What YAML 1.1 reads.
        old: &'static str,
        /// What YAML 1.2 reads.
        new: &'static str,
        /// What says the same to both.
        instead: &'static str,
    },
    /// A key stands twice in one map.
    #[error("{place}: key {key} stands twice in the same map (first on line {first}); remove one")]
    Duplicate {
        /// Where the second one is.
        place: Place,
        /// The key, shortened.
        key: String,
        /// The line of the first one.
        first: usize,
    },
    /// Something of YAML that this door does not take.
    #[error("{place}: {what}; {hint}")]
    Unsupported {
        /// Where.
        place: Place,
        /// What it is.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
}

impl YamlError {
    /// Returns where the text is wrong, if it is wrong in one place.
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
