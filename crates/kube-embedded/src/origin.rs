//! Objects that live outside the store, for example in files.

use futures::future::BoxFuture;
use serde_json::Value;

use super::Shared;
use super::catalog::Resource;
use super::sqlite::{Revision, StoreError};
use super::status::Failure;

/// The place where the objects of some resources live. For these resources, the store is a cache: the origin
/// fills it ([`Store::fill`](super::sqlite::Store::fill)), and the API sends each write to the origin.
///
/// The API checks a write (schema, rules, admission policies) before it calls the origin.
pub trait Origin: Send + Sync {
    /// Returns whether the objects of a resource live in this origin.
    fn has(&self, resource: &Resource) -> bool;

    /// Fills the cache with the objects that a request needs. The API calls it before each request for a
    /// resource of this origin; `reads` is false for a write.
    fn load<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        reads: bool,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Creates an object, and returns its revision in the cache.
    fn create<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Revision, Failure>>;

    /// Replaces an object, and returns its new revision in the cache. `old` is the state that the change was
    /// computed from; its resourceVersion is the precondition.
    fn replace<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        old: &'a Value,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Revision, NotStored>>;

    /// Removes an object whose revision in the cache is `revision`, and returns the revision of the deletion.
    fn remove<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        object: &'a Value,
        revision: Revision,
    ) -> BoxFuture<'a, Result<Revision, NotStored>>;
}

/// The reason why a change was not stored.
#[derive(Debug)]
pub enum NotStored {
    /// Another writer changed the object first.
    Conflict,
    /// Another reason; the client receives it.
    Failed(Failure),
}

impl From<StoreError> for NotStored {
    fn from(error: StoreError) -> NotStored {
        match error {
            StoreError::Conflict(_) => NotStored::Conflict,
            other => NotStored::Failed(other.into()),
        }
    }
}
