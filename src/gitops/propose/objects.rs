//! The edits of objects that become one commit.

use kube::core::Resource;
use serde::Serialize;
use serde_json::Value;

use super::{CommitFacts, Message, Proposal};
use crate::gitops::tree::{EditsError, ObjectEdit, Place, Tree};

/// An object that no file contains yet.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// The resource, as `{group}/{plural}`.
    pub resource: String,
    /// The object as a document of a file.
    pub document: Value,
}

impl NewObject {
    /// Returns an object as a document of a file: without its status.
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

/// Edits of objects in a work tree, before they are edits of files.
pub struct ObjectEdits<'t> {
    tree: &'t Tree,
    edits: Vec<ObjectEdit>,
    warnings: Vec<String>,
}

impl<'t> ObjectEdits<'t> {
    /// Begins without an edit.
    pub fn of(tree: &'t Tree) -> Self {
        Self {
            tree,
            edits: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds an object, in the form of the existing objects of its kind.
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

    /// Gives an object new content.
    pub fn set(&mut self, place: Place, document: Value) {
        self.edits.push(ObjectEdit::Set { place, document });
    }

    /// Removes an object.
    pub fn remove(&mut self, place: Place) {
        self.edits.push(ObjectEdit::Remove { place });
    }

    /// Adds a warning for the user.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Computes the edits of the files: a proposal without facts. Writes nothing.
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
