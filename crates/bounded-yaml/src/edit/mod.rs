//! Changes the value of one document in a text, and keeps all other bytes.
//!
//! The module compares the current with the wanted value, and converts the differences to a few edits at the byte
//! offsets that the parser reports. So comments, order, quotes, anchors and line endings are kept. Then the module
//! parses the new text: the changed document must have exactly the wanted value, and all other documents must be
//! unchanged. Otherwise it refuses the edit.
//!
//! The crate yamlpatch is not used, because its parser could read a text differently than this crate, and because it
//! supports only texts with one document and plain line feeds.

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
    /// The text has too few documents, so the requested document does not exist.
    #[error("{origin} has no document {document}")]
    NoDocument {
        /// The name of the file or source of the text, as given by the caller.
        origin: String,
        /// The index of the requested document, counted from 0.
        document: usize,
    },
    /// The change is not possible without changing other bytes of the text.
    #[error("{origin}:{line}: {why}; change it by hand")]
    NotSafe {
        /// The name of the file or source of the text, as given by the caller.
        origin: String,
        /// The number of the line of the change, counted from 1.
        line: usize,
        /// The reason why the change is not possible.
        why: String,
    },
}

/// The positions of the objects in a text, to find the line on which an object begins.
pub struct Outline {
    nodes: Vec<node::Node>,
    /// The byte offsets of the line feeds in the text.
    newlines: Vec<usize>,
}

impl Outline {
    /// Parses a text. `origin` is the name of the text for error messages.
    pub fn read(origin: &str, text: &str) -> Result<Self, YamlError> {
        Ok(Self {
            nodes: node::documents(origin, text)?,
            newlines: text.match_indices('\n').map(|(at, _)| at).collect(),
        })
    }

    /// Returns the number of the line, counted from 1, on which an object of a document begins; None if the object
    /// does not exist. An empty `at` means the document itself. For an object in a Kubernetes list, `at` is the
    /// object's index in the key `items`; for nested lists, `at` contains one index per list.
    pub fn line(&self, document: usize, at: &[usize]) -> Option<usize> {
        let start = self.nodes.get(document)?.item(at)?.start;
        Some(1 + self.newlines.partition_point(|newline| *newline < start))
    }
}

/// Changes the value of one document to `wanted`, and returns the new text. `document` is the index of the document
/// in the result of [`documents`].
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

/// Removes one of several documents or JSON objects from a text, and returns the new text; None if the text has only
/// this document.
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

/// Formats an object as the text of a new file: as JSON if `json` is true, otherwise as YAML.
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

/// Appends a document to a text, and returns the new text. The new document is JSON if the text consists of JSON
/// objects, and has the line endings of the text. The other documents are unchanged.
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
