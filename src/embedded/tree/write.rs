//! Writes through the API: they edit the file of the object and serve its new content.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Tree, TreeError, Wish};
use crate::api::labels;
use crate::embedded::Shared;
use crate::embedded::catalog::Resource;
use crate::embedded::object::{map_of, meta};
use crate::embedded::sqlite::Revision;
use crate::embedded::status::Failure;
use crate::embedded::write::Stored;
use crate::git::GitError;
use crate::git::commit::FileEdit;

/// Takes out what the server writes and no file holds.
pub(super) fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    map_of(&mut object).remove("status");
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "selfLink",
        ] {
            meta.remove(field);
        }
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            for name in [labels::CHANGED_BY, labels::OPERATION, labels::AUDIT_HEAD] {
                annotations.remove(name);
            }
            if annotations.is_empty() {
                meta.remove("annotations");
            }
        }
    }
    object
}

/// Carries what differs between two states of an object over to its document.
fn carry(document: &mut Map<String, Value>, old: &Map<String, Value>, new: &Map<String, Value>) {
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(before), _) if before == value => {}
            (Some(Value::Object(before)), Value::Object(after)) => {
                let own = document.entry(key.clone()).or_insert(Value::Null);
                carry(map_of(own), before, after);
            }
            _ => {
                document.insert(key.clone(), value.clone());
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        document.remove(key);
    }
}

fn refused(resource: &Resource, name: &str, error: impl std::fmt::Display) -> Failure {
    let kind = resource.subject.qualified_kind();
    Failure::other(422, "Invalid", format!("{kind} {name:?}: {error}"))
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        Failure::internal(error)
    }
}

impl Shared {
    /// Tells whether the objects of a resource lie in files.
    pub(in crate::embedded) fn tree_of(&self, resource: &Resource) -> Option<&Arc<Tree>> {
        let group = resource.subject.group.as_str();
        let ours = [
            labels::OPENCHOREO_GROUP,
            labels::CORE_CHOREO_GROUP,
            labels::BOWLINE_GROUP,
        ];
        self.tree.as_ref().filter(|_| ours.contains(&group))
    }

    pub(in crate::embedded) async fn create_in_tree(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        object: &Value,
    ) -> Result<Revision, Failure> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        if &*resource.storage == super::sync::ENTRIES {
            return Err(Failure::other(
                405,
                "MethodNotAllowed",
                "the audit trail of a repository is the git log; it cannot be written directly",
            ));
        }
        let _turn = tree.syncing.lock().await;
        // It may have come to the files a moment ago.
        self.sync_now(tree).await?;
        let key = resource.key(namespace, name);
        if self.store.get(&key).await?.is_some() {
            return Err(Failure::already_exists(&resource.subject, name));
        }
        let mut document = plain(object);
        if tree.namespace() == namespace
            && let Some(meta) = document.get_mut("metadata").and_then(Value::as_object_mut)
            && !tree.says_namespaces(&resource.storage)
        {
            meta.remove("namespace");
        }
        let wish = Wish::New {
            resource: resource.storage.to_string(),
            document,
        };
        let edits = self.write_files(tree, resource, name, &[wish]).await?;
        if let Some(row) = self.store.get(&key).await? {
            return Ok(row.revision);
        }
        // Whoever tries once more must not find it written twice.
        let back: Vec<FileEdit> = edits.into_iter().map(FileEdit::reversed).collect();
        self.put_files(tree, &back).await?;
        let why = "the file does not show the change after writing, so bowline restored the file";
        Err(refused(resource, name, why))
    }

    pub(in crate::embedded) async fn put_in_tree(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        old: &Value,
        object: &Value,
    ) -> Result<Revision, Stored> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        if old["status"] != object["status"] {
            return Err(Stored::Failed(Failure::other(
                405,
                "MethodNotAllowed",
                "a repository has no status: the controllers run in the clusters",
            )));
        }
        let _turn = tree.syncing.lock().await;
        self.sync_now(tree)
            .await
            .map_err(|error| Stored::Failed(error.into()))?;
        let row = self.store.get(&resource.key(namespace, name)).await?;
        let row = row.ok_or(Stored::Conflict)?;
        if row.revision.to_string() != meta(old, "resourceVersion") {
            return Err(Stored::Conflict);
        }
        let (before, after) = (plain(old), plain(object));
        if before == after {
            return Ok(row.revision);
        }
        let wish = || {
            let place = tree.place(&resource.storage, namespace, name);
            let place = place.ok_or_else(|| refused(resource, name, "no file contains it"))?;
            let mut document = tree
                .document(&place)
                .map_err(|error| refused(resource, name, error))?;
            if let (Value::Object(own), Value::Object(before), Value::Object(after)) =
                (&mut document, &before, &after)
            {
                carry(own, before, after);
            }
            Ok(Wish::Set { place, document })
        };
        let wish = wish().map_err(Stored::Failed)?;
        let written = self.write_files(tree, resource, name, &[wish]).await;
        written.map_err(Stored::Failed)?;
        let row = self.store.get(&resource.key(namespace, name)).await?;
        row.map(|row| row.revision).ok_or(Stored::Conflict)
    }

    pub(in crate::embedded) async fn remove_from_tree(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        object: &Value,
        revision: Revision,
    ) -> Result<Revision, Stored> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        let _turn = tree.syncing.lock().await;
        self.sync_now(tree)
            .await
            .map_err(|error| Stored::Failed(error.into()))?;
        let row = self.store.get(&resource.key(namespace, name)).await?;
        if row.is_none_or(|row| row.revision != revision) {
            return Err(Stored::Conflict);
        }
        let place = tree.place(&resource.storage, namespace, name);
        let place =
            place.ok_or_else(|| Stored::Failed(refused(resource, name, "no file contains it")))?;
        let wish = Wish::Remove { place };
        let written = self.write_files(tree, resource, name, &[wish]).await;
        written.map_err(Stored::Failed)?;
        Ok(self.store.newest().await?)
    }

    /// Edits files, and serves what they say then; the caller holds the turn. Returns what was edited.
    async fn write_files(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        name: &str,
        wishes: &[Wish],
    ) -> Result<Vec<FileEdit>, Failure> {
        let edits = tree.edits(wishes).map_err(|error| match error.hint() {
            Some(hint) => refused(resource, name, format!("{error}; {hint}")),
            None => refused(resource, name, error),
        })?;
        self.put_files(tree, &edits).await?;
        Ok(edits)
    }

    async fn put_files(&self, tree: &Arc<Tree>, edits: &[FileEdit]) -> Result<(), Failure> {
        for edit in edits {
            let written = match &edit.after {
                Some(bytes) => tree.work().replace(&edit.path, bytes),
                None => {
                    let file = tree.work().root().join(&edit.path);
                    std::fs::remove_file(&file).map_err(|error| GitError::File { file, error })
                }
            };
            written.map_err(Failure::internal)?;
        }
        self.sync_now(tree).await?;
        Ok(())
    }
}
