//! Changes the value of one document in a text, and keeps all other bytes.
//!
//! The module converts the difference between the current and the wanted value to a few edits at the offsets
//! that the parser reports. Comments, order, quotes, anchors and line endings are kept. The module parses the
//! new text again: the changed document must have exactly the wanted value, and all other documents must be
//! unchanged. Otherwise the edit is refused. The module never formats a text again.
//!
//! The crate yamlpatch is not used: it has another grammar than this module, so the two could disagree about
//! the content of a file, and it supports only texts with one document and plain line feeds.

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
    /// The text has fewer documents.
    #[error("{origin} has no document {document}")]
    NoDocument {
        /// The name of the file or source, as given by the caller.
        origin: String,
        /// The index of the requested document, counted from 0.
        document: usize,
    },
    /// The change would also change other bytes of the text.
    #[error("{origin}:{line}: {why}; change it by hand")]
    NotSafe {
        /// The name of the file or source, as given by the caller.
        origin: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// The reason why the change is not possible.
        why: String,
    },
}

/// The lines on which the objects of a text begin.
pub struct Outline {
    nodes: Vec<node::Node>,
    /// The byte offsets of the line feeds.
    newlines: Vec<usize>,
}

impl Outline {
    /// Parses a text. `origin` is its name for error messages.
    pub fn read(origin: &str, text: &str) -> Result<Self, YamlError> {
        Ok(Self {
            nodes: node::documents(origin, text)?,
            newlines: text.match_indices('\n').map(|(at, _)| at).collect(),
        })
    }

    /// Returns the number of the line, counted from 1, on which an item of a document begins. `at` is a path
    /// of indexes, the outermost list first; each list is the value of a key `items`. An empty `at` means the
    /// document itself. Returns None if the item does not exist.
    pub fn line(&self, document: usize, at: &[usize]) -> Option<usize> {
        let start = self.nodes.get(document)?.item(at)?.start;
        Some(1 + self.newlines.partition_point(|newline| *newline < start))
    }
}

/// Changes the value of one document, and returns the new text. `document` counts from 0, in the order of
/// [`documents`].
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

/// Removes one of several documents or JSON objects, and returns the new text; None if the text has no other
/// document.
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

/// Formats an object as the text of a new file, as JSON or YAML.
pub fn new_text(document: &Value, json: bool) -> String {
    match json {
        true => flow::pretty(document, "  ") + "\n",
        false => super::write(document),
    }
}

/// Returns whether a text consists of one or more JSON objects.
pub fn is_json(text: &str) -> bool {
    json::is_json(text)
}

/// Appends a document to a text. Keeps the other documents, uses the line endings of the text, and adds JSON
/// to a text of JSON objects.
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
