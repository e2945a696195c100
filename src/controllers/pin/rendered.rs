//! A summary of a RenderedRelease: its identity, the hash of its content, and the health of its resources.
//!
//! A RenderedRelease is large, because it contains the status of every resource. So this module parses only
//! the needed fields, and keeps only one small row of them in memory. A change that leaves the row equal
//! triggers no reconcile.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde::Deserialize;

use crate::api::choreo::rendered::Health;
use crate::api::{RenderedRelease, condition, labels};

/// The parsed fields of a RenderedRelease. The manifests of its resources are not parsed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Summary {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Option<SummaryStatus>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryStatus {
    #[serde(default)]
    observed_generation: Option<i64>,
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    resources: Vec<Part>,
}

/// One resource of a RenderedRelease, without the status of the live object.
#[derive(Clone, Debug, Deserialize)]
struct Part {
    kind: String,
    name: String,
    #[serde(default)]
    health: Health,
    #[serde(default)]
    message: Option<String>,
}

impl Resource for Summary {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        RenderedRelease::kind(&())
    }

    fn group(_: &()) -> Cow<'_, str> {
        RenderedRelease::group(&())
    }

    fn version(_: &()) -> Cow<'_, str> {
        RenderedRelease::version(&())
    }

    fn plural(_: &()) -> Cow<'_, str> {
        RenderedRelease::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The fields of a RenderedRelease that the controller keeps in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) uid: String,
    pub(super) generation: i64,
    /// The hash of the rendered manifests, from an annotation of the RenderedRelease.
    pub(super) hash: Option<String>,
    /// The uid of the ReleasePin that owns the RenderedRelease.
    pub(super) owner: Option<String>,
    pub(super) deleting: bool,
    /// Whether a field manager other than this controller has written the spec of the RenderedRelease.
    pub(super) edited: bool,
    /// The health from the status. None: the status does not describe the current generation of the
    /// RenderedRelease.
    pub(super) report: Option<Report>,
}

/// The health of the resources of a RenderedRelease.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) applied: Option<Word>,
    pub(super) ready: Option<Word>,
    pub(super) health: Health,
    /// The message of the resource with the worst health; None if it has no message.
    pub(super) worst: Option<String>,
}

/// The status, reason and message of one condition of the RenderedRelease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Row {
    pub(super) fn of(rendered: &Summary) -> Self {
        let metadata = &rendered.metadata;
        let generation = metadata.generation.unwrap_or_default();
        let owners = metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|owner| owner.controller == Some(true));
        let status = rendered.status.as_ref();
        let status = status.filter(|status| status.observed_generation == Some(generation));
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            generation,
            hash: rendered.annotations().get(labels::RENDERED_HASH).cloned(),
            owner: owners.next().map(|owner| owner.uid.clone()),
            deleting: metadata.deletion_timestamp.is_some(),
            edited: is_edited(metadata),
            report: status.map(|status| Report::of(status, generation)),
        }
    }
}

/// Returns whether a field manager other than this controller owns a field of the spec.
fn is_edited(metadata: &ObjectMeta) -> bool {
    metadata.managed_fields.iter().flatten().any(|entry| {
        let fields = entry.fields_v1.as_ref();
        entry.manager.as_deref() != Some(labels::MANAGER_CONTROLLER)
            && fields.is_some_and(|fields| fields.0.get("f:spec").is_some())
    })
}

impl Report {
    fn of(status: &SummaryStatus, generation: i64) -> Self {
        let word = |type_| {
            let found = condition::find(&status.conditions, type_)?;
            // A condition of an older generation is out of date.
            let current = found.observed_generation.is_none_or(|of| of >= generation);
            current.then(|| Word {
                status: found.status.clone(),
                reason: found.reason.clone(),
                message: found.message.clone(),
            })
        };
        let parts = status.resources.iter();
        let worst = parts.max_by_key(|part| part.health);
        let health = worst.map_or(Health::Healthy, |part| part.health);
        let says = |part: &Part| {
            let message = part.message.as_deref().filter(|text| !text.is_empty())?;
            Some(format!("{} {}: {message}", part.kind, part.name))
        };
        Self {
            applied: word(condition::APPLIED),
            ready: word(condition::READY),
            health,
            worst: worst
                .filter(|part| part.health != Health::Healthy)
                .and_then(says),
        }
    }
}
