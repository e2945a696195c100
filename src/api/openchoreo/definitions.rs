//! The resolved definitions of one release: the contents of its git references.
//!
//! The module `resolve` creates the definitions, `render` reads them, and a snapshot stores them. They
//! contain no namespace and no fields that a server adds. So equal definitions have equal hashes, whether
//! they come from git, from a release or from a cluster.

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
    /// The ComponentTypeDefinition that the component names.
    pub component_type_definition: ComponentTypeDefinition,
    /// The addons in the order of the component's addon instances.
    pub addons: Vec<AddonDefinition>,
    /// The Workload of the component: the result of its build.
    pub workload: Workload,
}

/// The Addon that one addon instance of a component uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonDefinition {
    /// The name of the Addon that is used.
    pub name: String,
    /// The id of the addon instance of the component.
    pub instance_id: String,
    /// The resolved Addon object.
    pub addon: Addon,
}

/// The reasons why the definitions of a release do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The component names another ComponentTypeDefinition than the release contains.
    #[error(
        "component {component} is of type {says:?}, and the definition is {found:?}; name one of them after the other"
    )]
    Type {
        /// The name of the component with the wrong type.
        component: String,
        /// The value of componentType in the component.
        says: String,
        /// The workload type and the name of the ComponentTypeDefinition in the release.
        found: String,
    },
    /// The release does not contain the definition of an addon that the component uses.
    #[error(
        "component {component} uses addon {addon} as {instance}, and its definition is missing"
    )]
    Addon {
        /// The name of the component that uses the addon.
        component: String,
        /// The name of the missing addon.
        addon: String,
        /// The id of the addon instance without a definition.
        instance: String,
    },
}

impl Definitions {
    /// Combines the definitions of a release. Sorts the addons in the order of the component, and leaves out
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

    /// Returns the images that the build of the component produced.
    pub fn images(&self) -> Vec<&str> {
        self.workload.spec.image.as_deref().into_iter().collect()
    }

    /// Returns the hash of all definitions. The name of a snapshot contains the start of this hash.
    pub fn content_hash(&self) -> String {
        digest::of(self)
    }
}

/// Returns the metadata that belongs to a definition: the name, the labels and the annotations, but not
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
