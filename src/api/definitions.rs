//! Definitions: everything that one release is made of, resolved.
//!
//! `resolve` makes them, `render` reads them, a snapshot keeps them. Whether a definition came from git,
//! from a release or from a cluster leaves no trace here, so that equal definitions hash alike: what a
//! server adds to an object is dropped, and so is the namespace, which belongs to where it is used.

use kube::api::ObjectMeta;
use serde::Serialize;

use super::component::{Addon, Component, ComponentTypeDefinition, Workload};
use super::digest;

/// Complete copies of what one release is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definitions {
    /// The Component.
    pub component: Component,
    /// Its ComponentTypeDefinition.
    pub component_type_definition: ComponentTypeDefinition,
    /// The Addon of each addon instance, in the order of the component's instances.
    pub addons: Vec<AddonDefinition>,
    /// What the build produced.
    pub workload: Workload,
}

/// The Addon that one addon instance of a component uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonDefinition {
    /// The name of the Addon.
    pub name: String,
    /// The instance of the component that uses it.
    pub instance_id: String,
    /// The Addon.
    pub addon: Addon,
}

impl Definitions {
    /// Returns the hash of the whole, by which a snapshot is named.
    pub fn content_hash(&self) -> String {
        digest::of(self)
    }
}

/// Returns the metadata that is part of a definition: name, labels and annotations, without what tools
/// note there about themselves.
pub fn essential(metadata: &ObjectMeta) -> ObjectMeta {
    let annotations = metadata.annotations.as_ref().map(|all| {
        all.iter()
            .filter(|(name, _)| name.as_str() != LAST_APPLIED)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    });
    ObjectMeta {
        name: metadata.name.clone(),
        labels: metadata.labels.clone().filter(|labels| !labels.is_empty()),
        annotations: annotations
            .filter(|all: &std::collections::BTreeMap<String, String>| !all.is_empty()),
        ..Default::default()
    }
}

/// Where kubectl keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
