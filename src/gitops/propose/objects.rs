//! Collects edits of objects, and converts them to the file edits of one commit.

use kube::core::Resource;
use serde::Serialize;
use serde_json::Value;

use super::{CommitFacts, Message, Proposal};
use crate::gitops::tree::{EditsError, ObjectEdit, Place, Tree};

/// A new object that no file contains yet.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// The resource of the new object, as `{group}/{plural}`.
    pub resource: String,
    /// The new object as a YAML document for a file.
    pub document: Value,
}

impl NewObject {
    /// Creates a new object for a file. Leaves out the status, because files contain none.
    pub fn of<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Self {
        let mut document = serde_json::to_value(object).unwrap_or_default();
        if let Some(map) = document.as_object_mut() {
            map.remove("status");
            map.insert("apiVersion".to_owned(), K::api_version(&()).as_ref().into());
            map.insert("kind".to_owned(), K::kind(&()).as_ref().into());
        }
        Self {
            resource: format!("{}/{}", K::group(&()), K::plural(&())),
            document,
        }
    }
}

/// Edits of objects in a work tree, before they become edits of files.
pub struct ObjectEdits<'t> {
    tree: &'t Tree,
    edits: Vec<ObjectEdit>,
    warnings: Vec<String>,
}

impl<'t> ObjectEdits<'t> {
    /// Starts a list of edits for a work tree; the list is empty.
    pub fn of(tree: &'t Tree) -> Self {
        Self {
            tree,
            edits: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds the edit that creates an object. The document gets the form of existing objects of the same kind.
    pub fn create(&mut self, object: NewObject) -> Result<(), EditsError> {
        let edit = self.tree.edit_of_new(object.resource, object.document);
        if let ObjectEdit::New { resource, document } = &edit {
            let path = self.tree.new_file(resource, document)?;
            if let Some(beside) = self.tree.kustomization_beside(&path) {
                self.warn(format!(
                    "{path} is new and {beside} does not name it: add it to its resources"
                ));
            }
        }
        self.edits.push(edit);
        Ok(())
    }

    /// Adds the edit that replaces the content of the object at `place` by `document`.
    pub fn set(&mut self, place: Place, document: Value) {
        self.edits.push(ObjectEdit::Set { place, document });
    }

    /// Adds the edit that removes the object at `place`.
    pub fn remove(&mut self, place: Place) {
        self.edits.push(ObjectEdit::Remove { place });
    }

    /// Adds a warning for the user to the proposal.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Converts the edits of objects to a proposed commit. Writes no file, and adds no facts to the proposal.
    pub fn propose(self, operation: &str, message: &Message) -> Result<Proposal, EditsError> {
        Ok(Proposal {
            operation: operation.to_owned(),
            message: message.text(),
            edits: self.tree.edits(&self.edits)?,
            facts: CommitFacts::default(),
            warnings: self.warnings,
        })
    }
}
