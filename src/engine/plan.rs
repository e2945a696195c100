//! A plan: what an action would write, and every fact that it was computed from.
//!
//! Plans are data. Planners make them of the read model without waiting for anything, so that a rule can
//! be tested as a table; applying one checks its facts again and writes.

use jiff::Timestamp;

use super::actions::rollback;
use super::ownership::GitOps;
use super::world::{Key, Pin, ReleaseRow, World};
use crate::api::audit::{Action, ReleaseIdentity};
use crate::api::environment::{EnvironmentSpec, PipelineFault};
use crate::api::pin::Hold;
use crate::api::release::Verdict;

/// Who asks for an action, when and why.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Identifies the operation from before its first request on.
    pub operation: String,
    /// When.
    pub now: Timestamp,
    /// Who, as far as this machine knows.
    pub user: String,
    /// Why.
    pub reason: Option<String>,
    /// The namespace of the component.
    pub namespace: String,
}

/// What an action would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is done.
    pub action: Action,
    /// The operation.
    pub operation: String,
    /// When it was planned.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
    /// One change per pin.
    pub items: Vec<Item>,
}

impl Plan {
    /// Returns an environment that wants a reason for every change, where there is none: such a plan can
    /// be looked at and not applied.
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
    /// Gives a plan that was looked at the reason that it is applied for; what it places says so too.
    pub fn because(&mut self, reason: Option<String>) {
        let placed = rollback::hold_id(&self.operation);
        let holds = self.items.iter_mut().flat_map(|item| &mut item.holds);
        for hold in holds.filter(|hold| hold.id == placed) {
            hold.reason.clone_from(&reason);
        }
        self.reason = reason;
    }
}

/// The change of one pin, with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The pin's component.
    pub component: String,
    /// The pin's environment.
    pub environment: String,
    /// The pin.
    pub pin: Key,
    /// The generation that the pin has, or None where it is to be made.
    pub generation: Option<i64>,
    /// What its releaseRef names afterwards.
    pub release_ref: String,
    /// Its holds afterwards.
    pub holds: Vec<Hold>,
    /// The release that counts before.
    pub from: Option<ReleaseIdentity>,
    /// The release that counts afterwards.
    pub to: ReleaseIdentity,
    /// The revision that a rollback restores.
    pub restored_from: Option<i64>,
    /// The hash of what changes in the environment, once that was rendered.
    pub rendered_hash: Option<String>,
    /// Whether the pin is as wanted already.
    pub unchanged: bool,
    /// Whether it goes past the promotion path, which wants a reason.
    pub skips_path: bool,
    /// What the change was computed from; when one of these is no more, it is not made.
    pub facts: Vec<Fact>,
    /// What the person should know.
    pub warnings: Vec<String>,
}

/// Something that a rule looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A pin is as it was, or is not there.
    Pin {
        /// Which.
        key: Key,
        /// Its uid and generation.
        is: Option<(String, i64)>,
    },
    /// Whether a tool owns a pin, and which.
    Owner {
        /// Which pin.
        key: Key,
        /// The tool.
        is: Option<GitOps>,
    },
    /// What counts in a pin, and whether it is ready.
    Source {
        /// Which.
        key: Key,
        /// The release that counts.
        release: String,
        /// Whether it had to be ready.
        ready: bool,
    },
    /// A release is there, and not bad.
    Release {
        /// Which.
        key: Key,
        /// Its uid.
        uid: String,
    },
    /// An environment is what it was.
    Environment {
        /// Which.
        key: Key,
        /// What it was.
        spec: EnvironmentSpec,
    },
    /// A path leads from one environment to another.
    Path {
        /// In which namespace.
        namespace: String,
        /// From.
        from: String,
        /// To.
        to: String,
    },
    /// A namespace has one pipeline at most.
    OnePipeline {
        /// The namespace.
        namespace: String,
    },
    /// An environment is one that nothing promotes to.
    First {
        /// In which namespace.
        namespace: String,
        /// Which.
        environment: String,
    },
}

impl Fact {
    /// Tells whether the fact still holds.
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
    /// Returns the releases that the pin names afterwards and did not name before: those to be claimed.
    pub fn claims<'i>(&'i self, before: Option<&'i Pin>) -> impl Iterator<Item = &'i str> {
        let fixed = self.holds.iter().filter_map(|hold| hold.release.as_deref());
        let named = std::iter::once(self.release_ref.as_str()).chain(fixed);
        named.filter(move |name| {
            before.is_none_or(|pin| !pin.named_releases().any(|known| known == *name))
        })
    }
}

/// Names a release with what is known of it.
pub fn identity(name: &str, release: Option<&ReleaseRow>) -> ReleaseIdentity {
    ReleaseIdentity {
        name: name.to_owned(),
        uid: release.map(|release| release.uid.to_string()),
        hash: release.and_then(|release| Some(release.hash.as_deref()?.to_owned())),
    }
}
