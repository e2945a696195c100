//! Applies a plan: its facts are read again, what it names is claimed, the pin is published by
//! compare-and-swap.
//!
//! An answer that does not come is settled by looking for the operation on the pin and repeating the same
//! compare-and-swap: nothing is done twice, and nothing that was done is called failed. A write of the
//! status between reading and writing is no change; another generation is, and ends it with who made it.

#[cfg(test)]
mod tests;

use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::audit;
use super::claim::{self, ClaimError};
use super::plan::{Fact, Item, Plan};
use super::recording::Scribe;
use super::world::{Event, Key, World};
use crate::api::pin::{Operation, ReleasePinSpec};
use crate::api::reference::NameRef;
use crate::api::{DeploymentPipeline, Environment, Release, ReleasePin, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How often a compare-and-swap is repeated on the same generation: others write the status meanwhile, or
/// answers get lost.
const ATTEMPTS: usize = 20;

/// What became of the change of one pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The pin has this generation now.
    Done(i64),
    /// The pin has this generation now, and its audit entry could not be written; whoever changes the pin
    /// next, or the controller, writes it.
    Unrecorded(i64, String),
    /// The pin was as wanted already.
    Unchanged,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Something that the plan rests on is no more.
    #[error("{what}, so nothing was done")]
    Stale {
        /// What, and who changed it when.
        what: String,
    },
    /// A release that the pin would name cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// Whether it was done could not be found out.
    #[error(
        "the target gave no answer {ATTEMPTS} times; whether {pin} was changed is not known: {error}"
    )]
    Unknown {
        /// The pin.
        pin: String,
        /// The last answer.
        error: kube::Error,
    },
    /// The target refused.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// Makes the change of one pin.
pub async fn apply(client: &Client, plan: &Plan, item: &Item) -> Result<Applied, ApplyError> {
    if item.unchanged {
        return Ok(Applied::Unchanged);
    }
    let world = read_again(client, item).await?;
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), &item.pin.namespace);
    for fact in &item.facts {
        if !fact.holds(&world, plan.at) {
            let what = match fact {
                Fact::Pin { .. } => changed(pins.get_opt(&item.pin.name).await?.as_ref(), item),
                fact => describe(fact),
            };
            return Err(ApplyError::Stale { what });
        }
    }
    for name in item.claims(world.pin(&item.pin)) {
        let key = Key::new(&item.pin.namespace, name);
        let uid = world.release(&key).map(|release| &*release.uid);
        claim::claim(client, plan, &key, uid).await?;
    }
    let scribe = Scribe::new(client, &item.pin.namespace, plan.at).await?;
    let pin = publish(&pins, &scribe, plan, item).await?;
    let generation = pin.metadata.generation.unwrap_or_default();
    Ok(match scribe.record(&pin).await {
        Ok(_) => Applied::Done(generation),
        Err(error) => Applied::Unrecorded(generation, error.to_string()),
    })
}

/// Reads what the facts of a change are about, from the server and not from a watch.
async fn read_again(client: &Client, item: &Item) -> Result<World, kube::Error> {
    let mut world = World::new();
    let namespace = &item.pin.namespace;
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
    let releases: Api<Release> = Api::namespaced(client.clone(), namespace);
    for fact in &item.facts {
        match fact {
            Fact::Pin { key, .. } | Fact::Source { key, .. } => {
                if let Some(pin) = pins.get_opt(&key.name).await? {
                    world.pins(Event::Applied(pin));
                }
            }
            Fact::Release { key, .. } => {
                if let Some(release) = releases.get_metadata_opt(&key.name).await? {
                    world.releases(Event::Applied(release));
                }
            }
            Fact::Environment { key, .. } => {
                let api: Api<Environment> = Api::namespaced(client.clone(), namespace);
                if let Some(environment) = api.get_opt(&key.name).await? {
                    world.environments(Event::Applied(environment));
                }
            }
            Fact::Path { .. } | Fact::First { .. } => {
                let api: Api<DeploymentPipeline> = Api::namespaced(client.clone(), namespace);
                for pipeline in api.list(&ListParams::default()).await? {
                    world.pipelines(Event::Applied(pipeline));
                }
            }
        }
    }
    Ok(world)
}

fn describe(fact: &Fact) -> String {
    match fact {
        Fact::Pin { key, .. } => format!("{} changed", key.name),
        Fact::Source { key, release, .. } => {
            format!(
                "{} does not run {release} any more, or is not ready",
                key.name
            )
        }
        Fact::Release { key, .. } => {
            format!("release {} is gone, going or marked bad", key.name)
        }
        Fact::Environment { key, .. } => format!("environment {} changed", key.name),
        Fact::Path { from, to, .. } => format!("{from} does not promote to {to} any more"),
        Fact::First { environment, .. } => {
            format!("{environment} is promoted to now, not deployed to")
        }
    }
}

/// Says what somebody else made of the pin.
fn changed(pin: Option<&ReleasePin>, item: &Item) -> String {
    let Some(pin) = pin else {
        return format!("{} was deleted", item.pin.name);
    };
    let operation = pin.operation().ok().flatten();
    let mut words = format!(
        "{} was changed to {}",
        pin.name_any(),
        pin.spec.release_ref.name
    );
    if let Some(by) = pin.changed_by() {
        words += &format!(" by {by}");
    }
    if let Some(operation) = operation {
        words += &format!(" at {}", operation.at.0);
    }
    words
}

/// Writes the pin, once, however often it takes to hear of it.
async fn publish(
    pins: &Api<ReleasePin>,
    scribe: &Scribe,
    plan: &Plan,
    item: &Item,
) -> Result<ReleasePin, ApplyError> {
    let manager = Some(labels::MANAGER_ENGINE.to_owned());
    let create = PostParams {
        field_manager: manager.clone(),
        ..PostParams::default()
    };
    let change = PatchParams {
        field_manager: manager,
        ..PatchParams::default()
    };
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let known = pins.get_opt(&item.pin.name).await;
        let known = match known {
            Ok(known) => known,
            Err(error) if is_ambiguous(&error) => {
                last = Some(error);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let known = match known {
            Some(pin) if is_ours(&pin, plan) => return Ok(pin),
            known => known,
        };
        let generation = known.as_ref().and_then(|pin| pin.metadata.generation);
        if generation != item.generation {
            return Err(ApplyError::Stale {
                what: changed(known.as_ref(), item),
            });
        }
        let written = match &known {
            None => pins.create(&create, &created(plan, item)).await,
            Some(pin) => {
                // What was changed before has to be on record before it is changed again.
                let newest = scribe.record(pin).await?;
                let patch = Patch::Merge(moved(plan, item, pin, newest.as_ref().map(audit::link)));
                pins.patch(&item.pin.name, &change, &patch).await
            }
        };
        match written {
            Ok(pin) => return Ok(pin),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                last = Some(kube::Error::Api(status));
            }
            Err(error) if is_ambiguous(&error) => last = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match last {
        Some(error) => Err(ApplyError::Unknown {
            pin: item.pin.name.to_string(),
            error,
        }),
        None => Err(ApplyError::Stale {
            what: format!("{} did not hold still", item.pin.name),
        }),
    }
}

/// Tells whether an error leaves open what happened.
fn is_ambiguous(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 500 | 502 | 503 | 504 | 408 | 429),
        _ => true,
    }
}

fn is_ours(pin: &ReleasePin, plan: &Plan) -> bool {
    let operation = pin.operation().ok().flatten();
    operation.is_some_and(|operation| operation.id == plan.operation)
}

fn operation(plan: &Plan, item: &Item) -> Operation {
    Operation {
        id: plan.operation.clone(),
        generation: item.generation.unwrap_or(0) + 1,
        action: plan.action,
        at: Time(plan.at),
        reason: plan.reason.clone(),
        from: item.from.clone(),
        to: Some(item.to.clone()),
        rendered_hash: item.rendered_hash.clone(),
        restored_from: item.restored_from,
    }
}

fn created(plan: &Plan, item: &Item) -> ReleasePin {
    let mut pin = ReleasePin::new(
        &item.pin.name,
        ReleasePinSpec {
            component: item.component.clone(),
            environment: item.environment.clone(),
            release_ref: NameRef::new(&item.release_ref),
            holds: item.holds.clone(),
        },
    );
    for (label, value) in [
        (labels::COMPONENT, &item.component),
        (labels::ENVIRONMENT, &item.environment),
    ] {
        pin.labels_mut().insert(label.to_owned(), value.clone());
    }
    let annotation = operation(plan, item).to_annotation();
    pin.annotations_mut()
        .insert(labels::OPERATION.to_owned(), annotation);
    pin
}

fn moved(plan: &Plan, item: &Item, pin: &ReleasePin, head: Option<String>) -> Value {
    json!({
        "metadata": {
            "uid": pin.metadata.uid,
            "resourceVersion": pin.metadata.resource_version,
            "annotations": {
                labels::OPERATION: operation(plan, item).to_annotation(),
                labels::AUDIT_HEAD: head,
            },
        },
        "spec": {
            "releaseRef": {"name": item.release_ref},
            // A merge patch replaces a list; without holds there is none.
            "holds": match item.holds.is_empty() {
                true => Value::Null,
                false => json!(item.holds),
            },
        },
    })
}
