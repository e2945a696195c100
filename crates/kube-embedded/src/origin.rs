//! The interface for objects that are kept outside the store, for example in files.

use futures::future::BoxFuture;
use serde_json::Value;

use super::Shared;
use super::catalog::Resource;
use super::sqlite::{Revision, StoreError};
use super::status::Failure;

/// The source of the objects of some resources, such as files. For these resources, the store is only a cache: the
/// origin fills it ([`Store::fill`](super::sqlite::Store::fill)), and each write of a client goes to the origin.
///
/// Before a write reaches the origin, the API validates it with the schema, the rules and the admission policies.
pub trait Origin: Send + Sync {
    /// Returns whether the objects of a resource are in this origin.
    fn has(&self, resource: &Resource) -> bool;

    /// Copies the objects that a request needs to the store. The API calls this before each request for a resource of
    /// this origin. `reads` is false for a write request.
    fn load<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        reads: bool,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Creates an object in the origin, and returns its revision in the store.
    fn create<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Revision, Failure>>;

    /// Replaces an object in the origin, and returns its new revision in the store. `old` is the state that the
    /// client has changed; if the object no longer has the resourceVersion of `old`, fails with a conflict.
    fn replace<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        old: &'a Value,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Revision, NotStored>>;

    /// Removes an object from the origin, and returns the revision of the deletion in the store. If the object no
    /// longer has `revision`, fails with a conflict.
    fn remove<'a>(
        &'a self,
        shared: &'a Shared,
        resource: &'a Resource,
        object: &'a Value,
        revision: Revision,
    ) -> BoxFuture<'a, Result<Revision, NotStored>>;
}

/// The reason why an object was not written.
#[derive(Debug)]
pub enum NotStored {
    /// Another writer has changed the object since it was read.
    Conflict,
    /// The write failed for another reason. Contains the answer for the client.
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
