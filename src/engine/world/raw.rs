//! An object of a kind that another program defines. Its spec and status are untyped JSON, because bowline does not
//! know all their fields.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde_json::Value;

/// An object of kind `K` with untyped spec and status. It keeps fields that bowline does not know, so a hash of its
/// parts is the same as on the server.
#[derive(Clone, Deserialize)]
pub struct Raw<K> {
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The spec of the object; null if the object has none.
    #[serde(default)]
    pub spec: Value,
    /// The status of the object; null if the object has none.
    #[serde(default)]
    pub status: Value,
    /// The field `data` of the object. Only a ControllerRevision has it, instead of a spec.
    #[serde(default)]
    pub data: Value,
    /// The field `revision` of the object. Only a ControllerRevision has it.
    #[serde(default)]
    pub revision: i64,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K> Debug for Raw<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.metadata.name)
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Raw<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
