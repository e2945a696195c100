//! What a pin has to know of its RenderedRelease: which one it is, what it was rendered to, how it is.
//!
//! They are large, with the status of every resource in them. Only what is needed is parsed, and only a
//! row of it is kept, so that a change that means nothing to the pin is none.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde::Deserialize;

use crate::api::rendered::Health;
use crate::api::{RenderedRelease, condition, labels};

/// A RenderedRelease without its resources.
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

/// One resource, without its status.
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

/// What is kept of a RenderedRelease.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) uid: String,
    pub(super) generation: i64,
    /// The hash of what was rendered to it.
    pub(super) hash: Option<String>,
    /// The uid of the pin that it was made for.
    pub(super) owner: Option<String>,
    pub(super) deleting: bool,
    /// Whether somebody else has written its spec.
    pub(super) edited: bool,
    /// What its status says of its present generation.
    pub(super) report: Option<Report>,
}

/// How the resources of a RenderedRelease are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) applied: Option<Word>,
    pub(super) ready: Option<Word>,
    pub(super) health: Health,
    /// What the resource says that is worst off.
    pub(super) worst: Option<String>,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Row {
    /// Keeps what matters of a RenderedRelease.
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

/// Tells whether somebody other than the controller owns something of the spec.
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
            // One of an older generation says nothing of this one.
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
