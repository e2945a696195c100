//! A plan: the writes of an action, and every fact that the planner used.
//!
//! Plans are data. Planners are pure functions of the read model, so that a rule can be tested as a
//! table. `apply` checks the facts again and writes.

use jiff::Timestamp;

use super::actions::rollback;
use crate::api::audit::{Action, ContentRef};
use crate::api::environment::{EnvironmentSpec, PipelineFault};
use crate::api::pin::Hold;
use crate::api::release::Verdict;
use crate::engine::ownership::GitOps;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::rows::{Pin, ReleaseRow};

/// The user, time and reason of an action.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The id of the operation, chosen before its first request.
    pub operation: String,
    /// The current time.
    pub now: Timestamp,
    /// The user, as far as this machine knows.
    pub user: String,
    /// The reason.
    pub reason: Option<String>,
    /// The namespace of the component.
    pub namespace: String,
}

/// The planned changes of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The action.
    pub action: Action,
    /// The operation.
    pub operation: String,
    /// The time of the plan.
    pub at: Timestamp,
    /// The reason.
    pub reason: Option<String>,
    /// One change per ReleasePin.
    pub items: Vec<Item>,
}

impl Plan {
    /// Returns an environment that requires a reason for every change, if the plan has none: such a plan
    /// can be shown, but not applied.
    pub fn lacks_reason(&self) -> Option<&str> {
        let given = self.reason.as_deref().unwrap_or_default();
        if !given.trim().is_empty() {
            return None;
        }
        let strict =
            |fact: &Fact| matches!(fact, Fact::Environment { spec, .. } if spec.requires_reason());
        let mut changing = self.items.iter().filter(|item| !item.unchanged);
        let item = changing.find(|item| item.skips_path || item.facts.iter().any(strict))?;
        Some(&item.environment)
    }
}

impl Plan {
    /// Sets the reason of a plan, and of the holds that it places.
    pub fn because(&mut self, reason: Option<String>) {
        let placed = rollback::hold_id(&self.operation);
        let holds = self.items.iter_mut().flat_map(|item| &mut item.holds);
        for hold in holds.filter(|hold| hold.id == placed) {
            hold.reason.clone_from(&reason);
        }
        self.reason = reason;
    }
}

/// The change of one ReleasePin, with its facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The component of the ReleasePin.
    pub component: String,
    /// The environment of the ReleasePin.
    pub environment: String,
    /// The ReleasePin.
    pub pin: Key,
    /// The current generation; None if the change creates the ReleasePin.
    pub generation: Option<i64>,
    /// The release in the releaseRef afterwards.
    pub release_ref: String,
    /// The holds afterwards.
    pub holds: Vec<Hold>,
    /// The effective release before.
    pub from: Option<ContentRef>,
    /// The effective release afterwards.
    pub to: ContentRef,
    /// The revision that a rollback restores.
    pub restored_from: Option<i64>,
    /// The hash of the rendered change in the environment; None if it was not rendered.
    pub rendered_hash: Option<String>,
    /// Whether the ReleasePin already has this state.
    pub unchanged: bool,
    /// Whether the change skips the promotion path, which requires a reason.
    pub skips_path: bool,
    /// The facts of the change; if one is no longer true, the change is not made.
    pub facts: Vec<Fact>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A fact that a rule used.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A ReleasePin has this uid and generation, or does not exist.
    Pin {
        /// The ReleasePin.
        key: Key,
        /// The uid and generation; None if it does not exist.
        is: Option<(String, i64)>,
    },
    /// The GitOps tool that owns a ReleasePin.
    Owner {
        /// The ReleasePin.
        key: Key,
        /// The tool; None if no tool owns it.
        is: Option<GitOps>,
    },
    /// The effective release of a ReleasePin, and whether it is ready.
    Source {
        /// The ReleasePin.
        key: Key,
        /// The effective release.
        release: String,
        /// Whether the release has to be ready.
        ready: bool,
    },
    /// A release exists and is not bad.
    Release {
        /// The release.
        key: Key,
        /// The uid.
        uid: String,
    },
    /// An environment has this spec.
    Environment {
        /// The environment.
        key: Key,
        /// The spec.
        spec: EnvironmentSpec,
    },
    /// The pipeline has a path from one environment to another.
    Path {
        /// The namespace.
        namespace: String,
        /// The source environment.
        from: String,
        /// The target environment.
        to: String,
    },
    /// A namespace has at most one pipeline.
    OnePipeline {
        /// The namespace.
        namespace: String,
    },
    /// No path leads to an environment.
    First {
        /// The namespace.
        namespace: String,
        /// The environment.
        environment: String,
    },
}

impl Fact {
    /// Returns whether the fact is still true.
    pub fn holds(&self, world: &World, now: Timestamp) -> bool {
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

impl Item {
    /// Returns the releases that the ReleasePin names afterwards and did not name before. These need a
    /// claim.
    pub fn claims<'i>(&'i self, before: Option<&'i Pin>) -> impl Iterator<Item = &'i str> {
        let fixed = self.holds.iter().filter_map(|hold| hold.release.as_deref());
        let named = std::iter::once(self.release_ref.as_str()).chain(fixed);
        named.filter(move |name| {
            before.is_none_or(|pin| !pin.named_releases().any(|known| known == *name))
        })
    }
}

/// Returns the identity of a release, with uid and hash if known.
pub fn identity(name: &str, release: Option<&ReleaseRow>) -> ContentRef {
    ContentRef {
        name: name.to_owned(),
        uid: release.map(|release| release.uid.to_string()),
        hash: release.and_then(|release| Some(release.hash.as_deref()?.to_owned())),
    }
}
