//! Changes what a document of a text says, and no byte that need not change.
//!
//! The difference between what the document says and what it shall say becomes a handful of edits at the
//! places that the parser names: comments, order, quoting, anchors and line endings stay as they are. What
//! comes out is read again and must say exactly what was wanted, in this document and in every other of the
//! text; otherwise the edit is refused and nothing is reformatted.
//!
//! Written by hand although crates do it: yamlpatch reads by another grammar than this door, so that the two
//! could disagree about what a file says, and takes texts of one document with plain line feeds only.

mod change;
mod node;
mod text;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{YamlError, documents};

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text cannot be read.
    #[error(transparent)]
    Unreadable(#[from] YamlError),
    /// The text has no such document.
    #[error("{origin} has no document {document}")]
    NoDocument {
        /// The file or source, as the caller named it.
        origin: String,
        /// Which, from 0.
        document: usize,
    },
    /// The change cannot be made without touching more than it must.
    #[error("{origin}:{line}: {why}; change it by hand")]
    NotSafe {
        /// The file or source, as the caller named it.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// Why.
        why: String,
    },
}

/// Edits a document of a text, counted from 0 as [`documents`] returns them, so that it says what is wanted.
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

/// Removes a document from a text of several; None where it is the only one.
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
    let cut = text::without_document(text, &nodes, document)
        .ok_or_else(|| refused("where the document begins and ends is not plain"))?;
    let left: Vec<Value> = documents(origin, &cut)?
        .into_iter()
        .map(|read| read.value)
        .collect();
    match left == wanted {
        true => Ok(Some(cut)),
        false => Err(refused("cutting the document out would change another one")),
    }
}

/// Appends a document to a text, which then says it and what it said before; line endings are those of the
/// text.
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
    if !out.is_empty() {
        out.push_str("---");
        out.push_str(eol);
    }
    out.push_str(&super::write(document).replace('\n', eol));
    match values(&out)? == wanted {
        true => Ok(out),
        false => Err(EditError::NotSafe {
            origin: origin.to_owned(),
            line: text.matches('\n').count() + 1,
            why: "one more document at its end would not be read as one".to_owned(),
        }),
    }
}
