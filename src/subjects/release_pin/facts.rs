//! The facts that plans for ReleasePins depend on; `apply` checks them again.

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams};

use super::rows::ReleaseRow;
use super::stale;
use crate::api::bowline::audit::ContentRef;
use crate::api::hold::Hold;
use crate::api::openchoreo::environment::{EnvironmentSpec, PipelineFault};
use crate::api::openchoreo::release::Verdict;
use crate::api::{DeploymentPipeline, Environment, Release, ReleasePin};
use crate::engine::ownership::GitOps;
use crate::engine::plan::{Change, Fact};
use crate::engine::repeat::repeat;
use crate::engine::world::{Event, Key, World};
use crate::gitops::tree::{PINS, RELEASES};

/// A fact about ReleasePins, releases, environments or the pipeline that a rule has read; see [`Fact`].
#[derive(Clone, Debug, PartialEq)]
pub enum PinFact {
    /// A ReleasePin has the uid and generation in `is`, or does not exist.
    Pin {
        key: Key,
        /// The uid and the generation of the ReleasePin; None if it does not exist.
        is: Option<(String, i64)>,
    },
    /// The GitOps tool in `is` owns a ReleasePin, or no tool does.
    Owner {
        key: Key,
        /// The GitOps tool that owns the ReleasePin; None if no tool owns it.
        is: Option<GitOps>,
    },
    /// The ReleasePin in the source environment of a promotion has this effective release.
    Source {
        key: Key,
        /// The effective release in the source environment.
        release: String,
        /// Whether the release must also be ready in the source environment.
        ready: bool,
    },
    /// A ReleasePin has the effective release `from` before the change, and would have `to` after it. If a hold ends
    /// after the plan was made, this may become false.
    Effective {
        key: Key,
        /// The effective release before the change; None if the change creates the ReleasePin.
        from: Option<String>,
        /// The release that the releaseRef names after the change.
        release_ref: String,
        /// The holds of the ReleasePin after the change.
        holds: Vec<Hold>,
        /// The effective release after the change.
        to: String,
    },
    /// A release with this uid exists and is not marked bad.
    Release {
        key: Key,
        /// The uid of the release.
        uid: String,
    },
    /// An Environment has the same spec as at plan time.
    Environment {
        key: Key,
        /// The spec of the Environment at plan time.
        spec: EnvironmentSpec,
    },
    /// The pipeline has a promotion path from one environment to the other.
    Path {
        namespace: String,
        from: String,
        to: String,
    },
    /// The namespace has no more than one pipeline.
    OnePipeline { namespace: String },
    /// No promotion path leads to an environment, so a deploy to it is allowed.
    First {
        namespace: String,
        environment: String,
    },
}

impl Fact for PinFact {
    fn about(&self) -> (&'static str, Key) {
        match self {
            Self::Pin { key, .. }
            | Self::Owner { key, .. }
            | Self::Source { key, .. }
            | Self::Effective { key, .. } => ("ReleasePin", key.clone()),
            Self::Release { key, .. } => ("Release", key.clone()),
            Self::Environment { key, .. } => ("Environment", key.clone()),
            Self::Path { namespace, .. }
            | Self::OnePipeline { namespace }
            | Self::First { namespace, .. } => ("DeploymentPipeline", Key::new(namespace, "")),
        }
    }

    fn read<'a>(
        &'a self,
        client: &'a Client,
        into: &'a mut World,
    ) -> BoxFuture<'a, Result<(), kube::Error>> {
        let client = client.clone();
        async move {
            match self {
                Self::Pin { key, .. }
                | Self::Owner { key, .. }
                | Self::Source { key, .. }
                | Self::Effective { key, .. } => {
                    let api: Api<ReleasePin> = Api::namespaced(client, &key.namespace);
                    if let Some(pin) = repeat(|| api.get_opt(&key.name)).await? {
                        into.pins(Event::Applied(pin));
                    }
                }
                Self::Release { key, .. } => {
                    let api: Api<Release> = Api::namespaced(client, &key.namespace);
                    if let Some(release) = repeat(|| api.get_metadata_opt(&key.name)).await? {
                        into.releases(Event::Applied(release));
                    }
                }
                Self::Environment { key, .. } => {
                    let api: Api<Environment> = Api::namespaced(client, &key.namespace);
                    if let Some(environment) = repeat(|| api.get_opt(&key.name)).await? {
                        into.environments(Event::Applied(environment));
                    }
                }
                Self::Path { namespace, .. }
                | Self::OnePipeline { namespace }
                | Self::First { namespace, .. } => {
                    let api: Api<DeploymentPipeline> = Api::namespaced(client, namespace);
                    let all = ListParams::default();
                    for pipeline in repeat(|| api.list(&all)).await? {
                        into.pipelines(Event::Applied(pipeline));
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn in_files(&self) -> Option<(String, Key)> {
        let (resource, key) = match self {
            Self::Source { key, .. } => (PINS, key),
            Self::Release { key, .. } => (RELEASES, key),
            _ => return None,
        };
        Some((resource.to_owned(), key.clone()))
    }

    fn describe(&self, world: &World, change: &Change, now: Timestamp) -> String {
        stale::describe(world, self, change, now)
    }

    fn holds(&self, world: &World, now: Timestamp) -> bool {
        match self {
            Self::Pin { key, is } => {
                let pin = world.pin(key);
                pin.map(|pin| (pin.uid.to_string(), pin.generation)) == *is
            }
            Self::Owner { key, is } => world.pin(key).is_none_or(|pin| pin.gitops == *is),
            Self::Source {
                key,
                release,
                ready,
            } => world.pin(key).is_some_and(|pin| {
                pin.effective_release(now) == release && (!ready || pin.is_ready(now))
            }),
            Self::Effective { .. } => stale::ended(world, self, now).is_none(),
            Self::Release { key, uid } => world.release(key).is_some_and(|release| {
                *release.uid == **uid && !release.deleting && release.mark != Some(Verdict::Bad)
            }),
            Self::Environment { key, spec } => {
                world.environment(key).map(|environment| &environment.spec) == Some(spec)
            }
            Self::Path {
                namespace,
                from,
                to,
            } => {
                let pipeline = world.pipeline(namespace);
                pipeline.is_some_and(|pipeline| pipeline.is_path(from, to))
                    && world.pipeline_fault(namespace).is_none()
            }
            Self::OnePipeline { namespace } => !matches!(
                world.pipeline_fault(namespace),
                Some(PipelineFault::Several { .. })
            ),
            Self::First {
                namespace,
                environment,
            } => {
                let pipeline = world.pipeline(namespace);
                let first = pipeline.map(|pipeline| pipeline.first_environments());
                first.is_some_and(|first| first.contains(&environment.as_str()))
                    && world.pipeline_fault(namespace).is_none()
            }
        }
    }
}

/// Returns the facts of a change that are [`PinFact`]s, without facts of other types.
pub fn of(change: &Change) -> impl Iterator<Item = &PinFact> {
    let facts = change.facts.iter();
    facts.filter_map(|fact| (&**fact as &dyn std::any::Any).downcast_ref())
}

/// Returns the reference to a release for plans and audit entries. If the read model has the release, the reference
/// contains its uid and hash.
pub fn identity(name: &str, release: Option<&ReleaseRow>) -> ContentRef {
    ContentRef {
        name: name.to_owned(),
        uid: release.map(|release| release.uid.to_string()),
        hash: release.and_then(|release| Some(release.hash.as_deref()?.to_owned())),
    }
}
