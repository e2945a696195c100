//! Changes the value of a document in a text, and no other bytes.
//!
//! The difference between the current and the wanted value becomes a few edits at the positions that the parser
//! gives: comments, order, quoting, anchors and line endings stay as they are. The new text is parsed again: the
//! changed document must have exactly the wanted value, and all other documents must be unchanged. Otherwise the
//! edit is refused; nothing is reformatted.
//!
//! This module does not use the crate yamlpatch, for two reasons: yamlpatch parses with another grammar than this
//! module, so the two could disagree about the content of a file, and it supports only texts of one document with
//! plain line feeds.

mod change;
mod flow;
mod node;
mod text;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{YamlError, documents, json};

/// The reason why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text cannot be parsed.
    #[error(transparent)]
    Unreadable(#[from] YamlError),
    /// The text does not have this document.
    #[error("{origin} has no document {document}")]
    NoDocument {
        /// The file or source, as the caller named it.
        origin: String,
        /// The index of the document, from 0.
        document: usize,
    },
    /// The change is not possible without changing other bytes.
    #[error("{origin}:{line}: {why}; change it by hand")]
    NotSafe {
        /// The file or source, as the caller named it.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
}

/// The positions of the objects in a text.
pub struct Outline {
    nodes: Vec<node::Node>,
    /// The offsets of the line feeds.
    newlines: Vec<usize>,
}

impl Outline {
    /// Finds the positions of the objects in a text.
    pub fn read(origin: &str, text: &str) -> Result<Self, YamlError> {
        Ok(Self {
            nodes: node::documents(origin, text)?,
            newlines: text.match_indices('\n').map(|(at, _)| at).collect(),
        })
    }

    /// Returns the line, from 1, on which an item of a document begins. `at` is the path to an item of nested
    /// lists: each number is an index in a list with the key `items`, the outermost list first. An empty `at`
    /// means the document itself.
    pub fn line(&self, document: usize, at: &[usize]) -> Option<usize> {
        let start = self.nodes.get(document)?.item(at)?.start;
        Some(1 + self.newlines.partition_point(|newline| *newline < start))
    }
}

/// Gives a document of a text a new value. The index counts from 0, in the order of [`documents`].
pub fn edit(
    origin: &str,
    text: &str,
    document: usize,
    wanted: &Value,
) -> Result<String, EditError> {
    let before = documents(origin, text)?;
    let nodes = node::documents(origin, text)?;
    let (Some(read), Some(node)) = (before.get(document), nodes.get(document)) else {
        return Err(EditError::NoDocument {
            origin: origin.to_owned(),
            document,
        });
    };
    if read.value == *wanted {
        return Ok(text.to_owned());
    }
    let not_safe = |at: usize, why: String| EditError::NotSafe {
        origin: origin.to_owned(),
        line: 1 + text.get(..at).unwrap_or(text).matches('\n').count(),
        why,
    };
    let edited = change::changes(text, node, &read.value, wanted)
        .and_then(|edits| text::apply(text, edits))
        .map_err(|refused| not_safe(refused.at, refused.why))?;
    let wrong = |why: &str| not_safe(node.start, why.to_owned());
    let after = documents(origin, &edited)
        .map_err(|error| wrong(&format!("the edited text could not be read ({error})")))?;
    let others = |all: &[super::Document]| -> Vec<Value> {
        let others = all.iter().enumerate().filter(|(at, _)| *at != document);
        others.map(|(_, other)| other.value.clone()).collect()
    };
    if others(&before) != others(&after) {
        return Err(wrong("the edit would change another document"));
    }
    if after.get(document).map(|read| &read.value) != Some(wanted) {
        return Err(wrong(
            "the edit would change more than was asked for, as where an anchor is used elsewhere",
        ));
    }
    Ok(edited)
}

/// Removes a document from a text with several documents or JSON objects; None if it is the only one.
pub fn remove(origin: &str, text: &str, document: usize) -> Result<Option<String>, EditError> {
    let before = documents(origin, text)?;
    if document >= before.len() {
        return Err(EditError::NoDocument {
            origin: origin.to_owned(),
            document,
        });
    }
    if before.len() == 1 {
        return Ok(None);
    }
    let nodes = node::documents(origin, text)?;
    let mut wanted: Vec<Value> = before.into_iter().map(|read| read.value).collect();
    wanted.remove(document);
    let refused = |why: &str| EditError::NotSafe {
        origin: origin.to_owned(),
        line: 1,
        why: why.to_owned(),
    };
    let cut = match json::is_json(text) {
        true => text::without_value(text, &nodes, document),
        false => text::without_document(text, &nodes, document),
    };
    let cut = cut.ok_or_else(|| refused("where the document begins and ends is not plain"))?;
    let left: Vec<Value> = documents(origin, &cut)?
        .into_iter()
        .map(|read| read.value)
        .collect();
    match left == wanted {
        true => Ok(Some(cut)),
        false => Err(refused("cutting the document out would change another one")),
    }
}

/// Formats an object as a new text: JSON if `json`, otherwise YAML.
pub fn new_text(document: &Value, json: bool) -> String {
    match json {
        true => flow::pretty(document, "  ") + "\n",
        false => super::write(document),
    }
}

/// Returns whether a text is one JSON object, or several in sequence.
pub fn is_json(text: &str) -> bool {
    json::is_json(text)
}

/// Appends a document to a text, and leaves the other documents unchanged. It uses the line endings of the
/// text, and a text of JSON objects stays JSON.
pub fn append(origin: &str, text: &str, document: &Value) -> Result<String, EditError> {
    let values = |text: &str| -> Result<Vec<Value>, EditError> {
        let read = documents(origin, text)?.into_iter();
        Ok(read.map(|document| document.value).collect())
    };
    let mut wanted = values(text)?;
    wanted.push(document.clone());
    let eol = text::line_ending(text, text.len());
    let mut out = text.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push_str(eol);
    }
    let json = json::is_json(text);
    if !out.is_empty() && !json {
        out.push_str("---");
        out.push_str(eol);
    }
    out.push_str(&new_text(document, json).replace('\n', eol));
    match values(&out)? == wanted {
        true => Ok(out),
        false => Err(EditError::NotSafe {
            origin: origin.to_owned(),
            line: text.matches('\n').count() + 1,
            why: "one more document at its end would not be read as one".to_owned(),
        }),
    }
}
