//! Handles write requests to the API of a work tree: edits the file of the object, and updates the store.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube_embedded::catalog::Resource;
use kube_embedded::object::{map_of, meta};
use kube_embedded::sqlite::Revision;
use kube_embedded::status::Failure;
use kube_embedded::{NotStored, Origin, Shared};
use serde_json::{Map, Value};

use super::identity::ENTRIES;
use super::sync::is_in_files;
use super::{ObjectEdit, Tree, TreeError};
use crate::api::labels;
use crate::git::commit::FileEdit;

/// Returns the object without the fields that the server sets, because files do not contain them.
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

/// Copies the differences between two versions of an object into its document, so that the rest of the document
/// stays.
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

/// The files of a work tree, as the place where the API stores the objects of bowline's groups.
pub(super) struct Files(pub(super) Arc<Tree>);

impl Origin for Files {
    fn has(&self, resource: &Resource) -> bool {
        is_in_files(resource)
    }

    fn load<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        reads: bool,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let loaded = self.0.complete_for(shared, resource, reads);
        loaded.map(|done| done.map_err(Failure::from)).boxed()
    }

    fn create<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Revision, Failure>> {
        self.0.create_object(shared, resource, object).boxed()
    }

    fn replace<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        old: &'a Value,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Revision, NotStored>> {
        self.0.replace_object(shared, resource, old, object).boxed()
    }

    fn remove<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        object: &'a Value,
        revision: Revision,
    ) -> BoxFuture<'a, Result<Revision, NotStored>> {
        let removed = self.0.remove_object(shared, resource, object, revision);
        removed.boxed()
    }
}

impl Tree {
    async fn create_object(
        self: &Arc<Self>,
        shared: &Shared,
        resource: &Resource,
        object: &Value,
    ) -> Result<Revision, Failure> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        if &*resource.storage == ENTRIES {
            return Err(Failure::other(
                405,
                "MethodNotAllowed",
                "the audit trail of a repository is the git log; it cannot be written directly",
            ));
        }
        let _turn = self.syncing.lock().await;
        // Somebody may just have added the object to the files, so read the files again.
        self.sync_now(shared).await?;
        let key = resource.key(namespace, name);
        if shared.store().get(&key).await?.is_some() {
            return Err(Failure::already_exists(&resource.subject, name));
        }
        let edit = self.edit_of_new(resource.storage.to_string(), plain(object));
        let edits = self.write_files(shared, resource, name, &[edit]).await?;
        if let Some(row) = shared.store().get(&key).await? {
            return Ok(row.revision);
        }
        // Restore the file, so that a retry does not write the object a second time.
        let back: Vec<FileEdit> = edits.into_iter().map(FileEdit::reversed).collect();
        self.put_files(shared, &back).await?;
        let why = "the file does not show the change after writing, so bowline restored the file";
        Err(refused(resource, name, why))
    }

    async fn replace_object(
        self: &Arc<Self>,
        shared: &Shared,
        resource: &Resource,
        old: &Value,
        object: &Value,
    ) -> Result<Revision, NotStored> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        if old["status"] != object["status"] {
            return Err(NotStored::Failed(Failure::other(
                405,
                "MethodNotAllowed",
                "a repository has no status: the controllers run in the clusters",
            )));
        }
        let _turn = self.syncing.lock().await;
        let synced = self.sync_now(shared).await;
        synced.map_err(|error| NotStored::Failed(error.into()))?;
        let key = resource.key(namespace, name);
        let row = shared.store().get(&key).await?;
        let row = row.ok_or(NotStored::Conflict)?;
        if row.revision.to_string() != meta(old, "resourceVersion") {
            return Err(NotStored::Conflict);
        }
        let (before, after) = (plain(old), plain(object));
        if before == after {
            return Ok(row.revision);
        }
        let edit = || {
            let place = self.place(&resource.storage, namespace, name);
            let place = place.ok_or_else(|| refused(resource, name, "no file contains it"))?;
            let mut document = self
                .document(&place)
                .map_err(|error| refused(resource, name, error))?;
            if let (Value::Object(own), Value::Object(before), Value::Object(after)) =
                (&mut document, &before, &after)
            {
                carry(own, before, after);
            }
            Ok(ObjectEdit::Set { place, document })
        };
        let edit = edit().map_err(NotStored::Failed)?;
        let written = self.write_files(shared, resource, name, &[edit]).await;
        written.map_err(NotStored::Failed)?;
        let row = shared.store().get(&key).await?;
        row.map(|row| row.revision).ok_or(NotStored::Conflict)
    }

    async fn remove_object(
        self: &Arc<Self>,
        shared: &Shared,
        resource: &Resource,
        object: &Value,
        revision: Revision,
    ) -> Result<Revision, NotStored> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        let _turn = self.syncing.lock().await;
        let synced = self.sync_now(shared).await;
        synced.map_err(|error| NotStored::Failed(error.into()))?;
        let row = shared.store().get(&resource.key(namespace, name)).await?;
        if row.is_none_or(|row| row.revision != revision) {
            return Err(NotStored::Conflict);
        }
        let place = self.place(&resource.storage, namespace, name);
        let place = place
            .ok_or_else(|| NotStored::Failed(refused(resource, name, "no file contains it")))?;
        let edit = ObjectEdit::Remove { place };
        let written = self.write_files(shared, resource, name, &[edit]).await;
        written.map_err(NotStored::Failed)?;
        Ok(shared.store().newest().await?)
    }

    /// Writes edits to files and updates the store. Returns the edits of the files. The caller must hold the lock
    /// `syncing`.
    async fn write_files(
        self: &Arc<Self>,
        shared: &Shared,
        resource: &Resource,
        name: &str,
        edits: &[ObjectEdit],
    ) -> Result<Vec<FileEdit>, Failure> {
        let edits = self.edits(edits).map_err(|error| match error.hint() {
            Some(hint) => refused(resource, name, format!("{error}; {hint}")),
            None => refused(resource, name, error),
        })?;
        self.put_files(shared, &edits).await?;
        Ok(edits)
    }

    async fn put_files(
        self: &Arc<Self>,
        shared: &Shared,
        edits: &[FileEdit],
    ) -> Result<(), Failure> {
        for edit in edits {
            let written = self.work().write(&edit.path, edit.after.as_deref());
            written.map_err(Failure::internal)?;
        }
        self.sync_now(shared).await?;
        Ok(())
    }
}
