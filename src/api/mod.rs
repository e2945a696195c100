//! The kinds that bowline works with: their types, labels, conditions and names. This module does no I/O.
//!
//! | kind | group | short | module |
//! |------|-------|-------|--------|
//! | [`Component`] | openchoreo.dev/v1alpha1 | comp | [`openchoreo::component`] |
//! | [`ComponentTypeDefinition`] | openchoreo.dev/v1alpha1 | ctd | [`openchoreo::component`] |
//! | [`Addon`] | openchoreo.dev/v1alpha1 | | [`openchoreo::component`] |
//! | [`Workload`] | openchoreo.dev/v1alpha1 | wl | [`openchoreo::component`] |
//! | [`EnvSettings`] | openchoreo.dev/v1alpha1 | | [`openchoreo::settings`] |
//! | [`Release`] | openchoreo.dev/v1alpha1 | rel | [`openchoreo::release`] |
//! | [`ReleasePin`] | openchoreo.dev/v1alpha1 | pin | [`openchoreo::pin`] |
//! | [`ComponentEnvSnapshot`] | openchoreo.dev/v1alpha1 | ces | [`openchoreo::snapshot`] |
//! | [`Environment`] | openchoreo.dev/v1alpha1 | env | [`openchoreo::environment`] |
//! | [`DataPlane`] | openchoreo.dev/v1alpha1 | dp | [`openchoreo::environment`] |
//! | [`DeploymentPipeline`] | openchoreo.dev/v1alpha1 | deppipe | [`openchoreo::environment`] |
//! | [`RenderedRelease`], kind Release | core.choreo.dev/v1 | rr, renderedrelease | [`choreo::rendered`] |
//! | [`AuditEntry`] | bowline.dev/v1alpha1 | audit | [`bowline::audit`] |
//!
//! All kinds are namespaced and in the category `bowline`. `T::crd()` is the raw output of the derive;
//! [`crds`] returns the CRDs for an API server. [`policies`] contains the rules that a CRD cannot express,
//! because they are about labels, unknown fields or the user of a request.

#![allow(
    clippy::duplicated_attributes,
    reason = "each printer column names its type, and the lint reads the second as a repetition"
)]

pub mod annotation;
pub mod bowline;
pub mod builtin;
pub mod choreo;
pub mod condition;
pub mod digest;
pub mod hold;
pub mod interval;
pub mod labels;
pub mod lists;
pub mod names;
pub mod openchoreo;
pub mod operation;
mod schema;
mod store;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use self::bowline::audit::AuditEntry;
pub use choreo::rendered::RenderedRelease;
pub use openchoreo::component::{Addon, Component, ComponentTypeDefinition, Workload};
pub use openchoreo::definitions::{AddonDefinition, Definitions};
pub use openchoreo::environment::{DataPlane, DeploymentPipeline, Environment};
pub use openchoreo::pin::ReleasePin;
pub use openchoreo::release::Release;
pub use openchoreo::settings::EnvSettings;
pub use openchoreo::snapshot::ComponentEnvSnapshot;
pub use schema::Object;
pub use store::store_setup;

/// Returns the CRDs of all kinds of bowline, as an API server accepts them.
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

/// The texts of the files in `deploy/crds`. A test checks that they are equal to the generated CRDs.
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

/// Returns the CRDs of all kinds as one stream of YAML documents.
pub fn crds_yaml() -> String {
    crds()
        .iter()
        .map(|crd| format!("---\n{}", crd_yaml(crd)))
        .collect()
}

/// Returns the admission policies and their bindings as one stream of YAML documents.
pub fn policies() -> &'static str {
    include_str!("../../deploy/policies.yaml")
}

/// Returns the roles of readers, operators and the controller as one stream of YAML documents.
pub fn rbac() -> &'static str {
    include_str!("../../deploy/rbac.yaml")
}

fn crd_yaml(crd: &CustomResourceDefinition) -> String {
    serde_yaml::to_string(crd).expect("BUG: a CRD is YAML")
}

#[cfg(test)]
mod tests;
