//! The interface to objects that are not in the store but, for example, in files.

use futures::future::BoxFuture;
use serde_json::Value;

use super::Shared;
use super::catalog::Resource;
use super::sqlite::{Revision, StoreError};
use super::status::Failure;

/// The place in which the objects of some resources live, such as files. For these resources, the store is
/// only a cache: the origin fills it ([`Store::fill`](super::sqlite::Store::fill)), and the API sends each
/// write to the origin.
///
/// The API validates a write (schema, rules, admission policies) before it calls the origin.
pub trait Origin: Send + Sync {
    /// Returns whether this origin contains the objects of a resource.
    fn has(&self, resource: &Resource) -> bool;

    /// Copies the objects that a request needs to the cache. The API calls this function before each request
    /// for a resource of the origin; `reads` is false for a write request.
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

    /// Replaces an object, and returns its new revision in the cache. `old` is the state on which the change
    /// is based; its resourceVersion is the precondition.
    fn replace<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        old: &'a Value,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Revision, NotStored>>;

    /// Removes an object, and returns the revision of the deletion in the cache. `revision` is the object's
    /// expected revision.
    fn remove<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        object: &'a Value,
        revision: Revision,
    ) -> BoxFuture<'a, Result<Revision, NotStored>>;
}

/// The reason why a change was not written.
#[derive(Debug)]
pub enum NotStored {
    /// Another writer has changed the object.
    Conflict,
    /// The change failed for a reason that the client receives.
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
