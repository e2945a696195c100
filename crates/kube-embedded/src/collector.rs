//! Does the work that remains after a deletion: deletes the dependents of an owner, the objects of a deleted
//! namespace, and the objects of a deleted CustomResourceDefinition.
//!
//! A deletion stores this follow-up work in its own transaction, so that a crash loses no work. Several processes
//! may do the same work, because doing it twice has no effect.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use serde_json::Value;

use super::catalog::{DEFINITIONS, NAMESPACES, Resource};
use super::delete::{Deletion, FOREGROUND, ORPHAN};
use super::object::{self, meta};
use super::origin::NotStored;
use super::route::Options;
use super::sqlite::{Follow, FollowUp, Key, PageRequest, Scope};
use super::status::Failure;
use super::write::nothing_holds;
use super::{Shared, User, definitions, encode};

/// Starts the task that does the follow-up work of deletions. The task ends when the store is closed.
pub(super) fn start(shared: &Arc<Shared>) {
    let weak = Arc::downgrade(shared);
    let head = shared.store.head();
    tokio::spawn(run(weak, head));
}

async fn run(weak: Weak<Shared>, mut head: tokio::sync::watch::Receiver<u64>) {
    loop {
        let Some(shared) = weak.upgrade() else { return };
        // Work that waits for another client to remove a finalizer is tried again after each change in the store.
        let waiting = shared.work_off().await;
        let woken = async {
            if waiting {
                drop(head.changed().await);
            } else {
                std::future::pending::<()>().await;
            }
        };
        let news = shared.work.clone();
        drop(shared);
        tokio::select! {
            () = news.notified() => {}
            () = woken => {}
            // The store is also checked at intervals, because another process may have stored work and ended before
            // it did the work.
            () = tokio::time::sleep(std::time::Duration::from_secs(2)) => {}
        }
    }
}

/// Returns the text that identifies an object in stored follow-up work: `{storage}|{namespace}|{name}`.
pub(super) fn place(resource: &Resource, namespace: &str, name: &str) -> String {
    format!("{}|{namespace}|{name}", resource.storage)
}

impl Shared {
    /// Does the stored follow-up work. Returns true if some work must wait until another client removes a finalizer.
    async fn work_off(&self) -> bool {
        let mut waiting = false;
        let mut tried: HashSet<FollowUp> = HashSet::new();
        loop {
            let todo = match self.store.follow_ups().await {
                Ok(todo) => todo,
                Err(cause) => {
                    tracing::warn!(%cause, "cannot read what deletions left to do");
                    return true;
                }
            };
            let fresh: Vec<FollowUp> = todo
                .into_iter()
                .filter(|item| tried.insert(item.clone()))
                .collect();
            if fresh.is_empty() {
                return waiting;
            }
            // All deleted owners are collected first, so that a dependent of several of them is written only once.
            let gone: HashSet<String> = fresh
                .iter()
                .filter(|item| item.what == Follow::Dependents)
                .map(|item| item.subject.clone())
                .collect();
            for item in fresh {
                let done = match item.what {
                    Follow::Dependents => self.delete_dependents(&item.subject, &gone).await,
                    Follow::Foreground => self.finish_owner(&item.subject, FOREGROUND).await,
                    Follow::Orphan => self.finish_owner(&item.subject, ORPHAN).await,
                    Follow::Namespace => self.empty_namespace(&item.subject).await,
                    Follow::Definition => self.empty_definition(&item.subject).await,
                };
                match done {
                    Ok(true) => {
                        if let Err(cause) = self.store.done(item).await {
                            tracing::warn!(%cause, "cannot strike finished work");
                        }
                    }
                    Ok(false) => waiting = true,
                    Err(failure) => {
                        waiting = true;
                        tracing::warn!(%failure, ?item, "work after a deletion failed; it is tried again");
                    }
                }
            }
        }
    }

    /// Removes a deleted owner from the ownerReferences of its dependents, and deletes the dependents that have no
    /// other owner.
    async fn delete_dependents(
        &self,
        owner: &str,
        gone: &HashSet<String>,
    ) -> Result<bool, Failure> {
        for key in self.store.dependents(owner).await? {
            self.release_dependent(&key, gone, false).await?;
        }
        Ok(true)
    }

    /// Removes owners from the ownerReferences of a dependent. If no owner remains, deletes the dependent, unless
    /// `orphan` is true.
    async fn release_dependent(
        &self,
        key: &Key,
        gone: &HashSet<String>,
        orphan: bool,
    ) -> Result<(), Failure> {
        let catalog = self.catalog().await?;
        let Some(resource) = catalog.stored(&key.resource).cloned() else {
            return Ok(());
        };
        loop {
            let Some(row) = self.store.get(key).await? else {
                return Ok(());
            };
            let object = encode::value(&resource, &row)?;
            let references = object["metadata"]["ownerReferences"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let others: Vec<Value> = references
                .iter()
                .filter(|reference| {
                    let uid = reference["uid"].as_str();
                    uid.is_none_or(|uid| !gone.contains(uid))
                })
                .cloned()
                .collect();
            if others.is_empty() && !orphan {
                let deletion = Deletion::of(meta(&object, "uid"));
                return self.collect(&resource, key, &deletion).await;
            }
            if others.len() == references.len() {
                return Ok(());
            }
            let mut freed = object.clone();
            let meta = object::meta_mut(&mut freed);
            match others.is_empty() {
                true => meta.remove("ownerReferences"),
                false => meta.insert("ownerReferences".into(), others.into()),
            };
            match self.put(&resource, &object, &freed, Vec::new()).await {
                Ok(_) => return Ok(()),
                Err(NotStored::Conflict) => {}
                Err(NotStored::Failed(failure)) => return Err(failure),
            }
        }
    }

    async fn collect(
        &self,
        resource: &Resource,
        key: &Key,
        deletion: &Deletion,
    ) -> Result<(), Failure> {
        let user = User {
            name: "system:serviceaccount:kube-system:generic-garbage-collector".into(),
            groups: vec!["system:masters".into()],
        };
        let deleted = self
            .delete_object(
                resource,
                &key.namespace,
                &key.name,
                deletion,
                &user,
                &Options::default(),
                &self.now(),
            )
            .await;
        match deleted {
            Ok(_) => Ok(()),
            Err(failure) if matches!(failure.code, 404 | 409) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Does the work before the deletion of an owner: deletes its dependents or orphans them, and then removes the
    /// finalizer from the owner. Returns false if a dependent still blocks this.
    async fn finish_owner(&self, place: &str, finalizer: &str) -> Result<bool, Failure> {
        let mut parts = place.split('|');
        let (Some(storage), Some(namespace), Some(name)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Ok(true);
        };
        let catalog = self.catalog().await?;
        let Some(resource) = catalog.stored(storage).cloned() else {
            return Ok(true);
        };
        let key = resource.key(namespace, name);
        let Some(row) = self.store.get(&key).await? else {
            return Ok(true);
        };
        let owner = encode::value(&resource, &row)?;
        let uid = meta(&owner, "uid").to_owned();
        let mut blocked = false;
        let gone = HashSet::from([uid.clone()]);
        for key in self.store.dependents(&uid).await? {
            self.release_dependent(&key, &gone, finalizer == ORPHAN)
                .await?;
            blocked |= self.still_blocks(&key, &uid).await?;
        }
        if blocked {
            return Ok(false);
        }
        self.drop_finalizer(&resource, &key, &uid, finalizer)
            .await?;
        Ok(true)
    }

    /// Returns whether a dependent exists and blocks the deletion of its owner (`blockOwnerDeletion`).
    async fn still_blocks(&self, key: &Key, owner: &str) -> Result<bool, Failure> {
        let Some(row) = self.store.get(key).await? else {
            return Ok(false);
        };
        let meta: Value = serde_json::from_slice(&row.meta).map_err(Failure::internal)?;
        Ok(meta["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true))
    }

    async fn drop_finalizer(
        &self,
        resource: &Resource,
        key: &Key,
        uid: &str,
        finalizer: &str,
    ) -> Result<(), Failure> {
        loop {
            let Some(row) = self.store.get(key).await? else {
                return Ok(());
            };
            let old = encode::value(resource, &row)?;
            if meta(&old, "uid") != uid || meta(&old, "deletionTimestamp").is_empty() {
                return Ok(());
            }
            let mut object = old.clone();
            let mut strike = |place: &str| {
                if let Some(Value::Array(list)) = object.pointer_mut(place) {
                    list.retain(|item| item != finalizer);
                }
            };
            strike("/metadata/finalizers");
            if &*resource.storage == NAMESPACES {
                strike("/spec/finalizers");
            }
            let stored = if nothing_holds(resource, &object) {
                object::meta_mut(&mut object).remove("finalizers");
                // The object is removed without new follow-up work, because its dependents are already deleted or
                // orphaned.
                self.remove(resource, &object, row.revision).await
            } else {
                self.put(resource, &old, &object, Vec::new()).await
            };
            match stored {
                Ok(_) => return Ok(()),
                Err(NotStored::Conflict) => {}
                Err(NotStored::Failed(failure)) => return Err(failure),
            }
        }
    }

    /// Deletes all objects in a namespace, then the namespace itself. Returns false if finalizers of objects delay
    /// this.
    async fn empty_namespace(&self, name: &str) -> Result<bool, Failure> {
        let catalog = self.catalog().await?;
        let Some(namespaces) = catalog.stored(NAMESPACES).cloned() else {
            return Ok(true);
        };
        let key = namespaces.key("", name);
        let Some(row) = self.store.get(&key).await? else {
            return Ok(true);
        };
        let namespace = encode::value(&namespaces, &row)?;
        if meta(&namespace, "deletionTimestamp").is_empty() {
            return Ok(true);
        }
        let mut seen = HashSet::new();
        let mut left = false;
        for resource in catalog.resources().filter(|resource| resource.namespaced) {
            if seen.insert(resource.storage.clone()) {
                left |= self.delete_all(resource, Some(name)).await?;
            }
        }
        if left {
            return Ok(false);
        }
        let uid = meta(&namespace, "uid").to_owned();
        self.drop_finalizer(&namespaces, &key, &uid, "kubernetes")
            .await?;
        Ok(self.store.get(&key).await?.is_none())
    }

    /// Deletes all objects of a CustomResourceDefinition, then the definition itself. Returns false if finalizers of
    /// objects delay this.
    async fn empty_definition(&self, name: &str) -> Result<bool, Failure> {
        let catalog = self.catalog().await?;
        let Some(definitions) = catalog.stored(DEFINITIONS).cloned() else {
            return Ok(true);
        };
        let key = definitions.key("", name);
        let Some(row) = self.store.get(&key).await? else {
            return Ok(true);
        };
        let definition = encode::value(&definitions, &row)?;
        if meta(&definition, "deletionTimestamp").is_empty() {
            return Ok(true);
        }
        let (group, plural) = (
            &definition["spec"]["group"],
            &definition["spec"]["names"]["plural"],
        );
        let storage = format!(
            "{}/{}",
            group.as_str().unwrap_or_default(),
            plural.as_str().unwrap_or_default()
        );
        if let Some(resource) = catalog.stored(&storage).cloned()
            && self.delete_all(&resource, None).await?
        {
            return Ok(false);
        }
        let uid = meta(&definition, "uid").to_owned();
        self.drop_finalizer(&definitions, &key, &uid, definitions::CLEANUP)
            .await?;
        self.free_names(&definitions, group, &self.now()).await?;
        Ok(true)
    }

    /// Deletes all objects of a resource in a scope. Returns whether at least one of them still exists because of its
    /// finalizers.
    async fn delete_all(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<bool, Failure> {
        let scope = Scope {
            resource: resource.storage.clone(),
            namespace: namespace.map(str::to_owned),
        };
        let mut request = PageRequest {
            scope,
            after: None,
            at: None,
            rows: 256,
            bytes: 4 << 20,
            bodies: false,
        };
        let mut left = false;
        loop {
            let page = self.store.page(request.clone()).await?;
            for row in &page.rows {
                self.collect(resource, &row.key, &Deletion::default())
                    .await?;
                left |= self.store.get(&row.key).await?.is_some();
            }
            match page.rows.last() {
                Some(last) if page.more => {
                    request.after = Some((last.key.namespace.clone(), last.key.name.clone()));
                }
                _ => return Ok(left),
            }
        }
    }
}
