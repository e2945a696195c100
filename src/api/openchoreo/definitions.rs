//! The resolved definitions of one release.
//!
//! The module `resolve` makes the definitions, `render` reads them, and a snapshot stores them. They do not
//! contain the namespace and the fields that a server adds, so equal definitions from git, from a release or
//! from a cluster have equal hashes.

use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde::Serialize;

use super::component::{Addon, Component, ComponentTypeDefinition, Workload};
use crate::api::digest;

/// Complete copies of the definitions of one release.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definitions {
    pub component: Component,
    /// The ComponentTypeDefinition of the component.
    pub component_type_definition: ComponentTypeDefinition,
    /// The Addon of each addon instance, in the order of the component's instances.
    pub addons: Vec<AddonDefinition>,
    /// The Workload: the result of the build.
    pub workload: Workload,
}

/// The Addon that one addon instance of a component uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonDefinition {
    /// The name of the Addon.
    pub name: String,
    /// The id of the addon instance.
    pub instance_id: String,
    /// The definition of the Addon.
    pub addon: Addon,
}

/// The reasons why definitions do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The ComponentTypeDefinition is not the one that the component names.
    #[error(
        "component {component} is of type {says:?}, and the definition is {found:?}; name one of them after the other"
    )]
    Type {
        /// The name of the component.
        component: String,
        /// The componentType of the component.
        says: String,
        /// The workload type and the name of the definition.
        found: String,
    },
    /// The definition of an addon is missing.
    #[error(
        "component {component} uses addon {addon} as {instance}, and its definition is missing"
    )]
    Addon {
        /// The name of the component.
        component: String,
        /// The name of the addon.
        addon: String,
        /// The id of the addon instance.
        instance: String,
    },
}

impl Definitions {
    /// Combines the definitions of a release. Sorts the addons in the order of the component, and drops the
    /// addons that the component does not use.
    pub fn assemble(
        component: Component,
        component_type_definition: ComponentTypeDefinition,
        mut addons: Vec<AddonDefinition>,
        workload: Workload,
    ) -> Result<Self, Mismatch> {
        let says = &component.spec.component_type;
        let found = format!(
            "{}/{}",
            component_type_definition.spec.workload_type,
            component_type_definition.name_any()
        );
        if *says != found {
            return Err(Mismatch::Type {
                component: component.name_any(),
                says: says.clone(),
                found,
            });
        }
        let mut used = Vec::with_capacity(component.spec.addons.len());
        for instance in &component.spec.addons {
            let own = |addon: &AddonDefinition| {
                addon.name == instance.name && addon.instance_id == instance.instance_id
            };
            match addons.iter().position(own) {
                Some(at) => used.push(addons.swap_remove(at)),
                None => {
                    return Err(Mismatch::Addon {
                        component: component.name_any(),
                        addon: instance.name.clone(),
                        instance: instance.instance_id.clone(),
                    });
                }
            }
        }
        Ok(Self {
            component,
            component_type_definition,
            addons: used,
            workload,
        })
    }

    /// Returns the images that the build produced.
    pub fn images(&self) -> Vec<&str> {
        self.workload.spec.image.as_deref().into_iter().collect()
    }

    /// Returns the hash of all definitions. The name of a snapshot contains the first characters of the hash.
    pub fn content_hash(&self) -> String {
        digest::of(self)
    }
}

/// Returns the metadata that belongs to a definition: the name, the labels, and the annotations except
/// kubectl's copy of the object.
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

/// The annotation in which kubectl stores a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
