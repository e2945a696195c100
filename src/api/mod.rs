//! The kinds that bowline works with: types, labels, conditions, names. This module does no I/O.
//!
//! | kind | group | short | module |
//! |------|-------|-------|--------|
//! | [`Component`] | openchoreo.dev/v1alpha1 | comp | [`component`] |
//! | [`ComponentTypeDefinition`] | openchoreo.dev/v1alpha1 | ctd | [`component`] |
//! | [`Addon`] | openchoreo.dev/v1alpha1 | | [`component`] |
//! | [`Workload`] | openchoreo.dev/v1alpha1 | wl | [`component`] |
//! | [`EnvSettings`] | openchoreo.dev/v1alpha1 | | [`settings`] |
//! | [`Release`] | openchoreo.dev/v1alpha1 | rel | [`release`] |
//! | [`ReleasePin`] | openchoreo.dev/v1alpha1 | pin | [`pin`] |
//! | [`ComponentEnvSnapshot`] | openchoreo.dev/v1alpha1 | ces | [`snapshot`] |
//! | [`Environment`] | openchoreo.dev/v1alpha1 | env | [`environment`] |
//! | [`DataPlane`] | openchoreo.dev/v1alpha1 | dp | [`environment`] |
//! | [`DeploymentPipeline`] | openchoreo.dev/v1alpha1 | deppipe | [`environment`] |
//! | [`RenderedRelease`], kind Release | core.choreo.dev/v1 | rr, renderedrelease | [`rendered`] |
//! | [`AuditEntry`] | bowline.dev/v1alpha1 | audit | [`audit`] |
//!
//! All are namespaced and in the category `bowline`. `T::crd()` is the raw output of the derive; [`crds`]
//! returns the CRDs for an API server. [`policies`] contains the rules that a CRD cannot express (labels,
//! unknown fields, the user of a request).

#![allow(
    clippy::duplicated_attributes,
    reason = "each printer column names its type, and the lint reads the second as a repetition"
)]

pub mod annotation;
pub mod audit;
pub mod builtin;
pub mod component;
pub mod condition;
pub mod definitions;
pub mod digest;
pub mod environment;
pub mod interval;
pub mod labels;
pub mod lists;
pub mod names;
pub mod operation;
pub mod pin;
pub mod reference;
pub mod release;
pub mod rendered;
mod schema;
pub mod settings;
pub mod snapshot;
mod store;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use audit::AuditEntry;
pub use component::{Addon, Component, ComponentTypeDefinition, Workload};
pub use definitions::{AddonDefinition, Definitions};
pub use environment::{DataPlane, DeploymentPipeline, Environment};
pub use pin::ReleasePin;
pub use release::Release;
pub use rendered::RenderedRelease;
pub use schema::Object;
pub use settings::EnvSettings;
pub use snapshot::ComponentEnvSnapshot;
pub use store::store_setup;

/// Returns the CRD of every kind, in the form for an API server.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [
        Component::crd(),
        ComponentTypeDefinition::crd(),
        Addon::crd(),
        Workload::crd(),
        EnvSettings::crd(),
        Release::crd(),
        ReleasePin::crd(),
        ComponentEnvSnapshot::crd(),
        Environment::crd(),
        DataPlane::crd(),
        DeploymentPipeline::crd(),
        RenderedRelease::crd(),
        AuditEntry::crd(),
    ]
    .map(schema::finish)
    .into()
}

/// The CRDs of `deploy/crds`, equal to the generated ones.
pub const WRITTEN_CRDS: [&str; 13] = [
    include_str!("../../deploy/crds/addons.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/auditentries.bowline.dev.yaml"),
    include_str!("../../deploy/crds/componentenvsnapshots.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/components.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/componenttypedefinitions.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/dataplanes.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/deploymentpipelines.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/environments.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/envsettings.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/releasepins.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/releases.core.choreo.dev.yaml"),
    include_str!("../../deploy/crds/releases.openchoreo.dev.yaml"),
    include_str!("../../deploy/crds/workloads.openchoreo.dev.yaml"),
];

/// Returns every CRD as one stream of YAML documents.
pub fn crds_yaml() -> String {
    crds()
        .iter()
        .map(|crd| format!("---\n{}", crd_yaml(crd)))
        .collect()
}

/// Returns the admission policies, with their bindings, as a stream of YAML documents.
pub fn policies() -> &'static str {
    include_str!("../../deploy/policies.yaml")
}

/// Returns the roles of readers, operators and the controller as a stream of YAML documents.
pub fn rbac() -> &'static str {
    include_str!("../../deploy/rbac.yaml")
}

fn crd_yaml(crd: &CustomResourceDefinition) -> String {
    serde_yaml::to_string(crd).expect("BUG: a CRD is YAML")
}

#[cfg(test)]
mod tests;
