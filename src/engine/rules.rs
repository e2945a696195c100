//! The rules of actions, as questions to the read model.
//!
//! Each rule looks at one thing, notes the fact that it relied on, and refuses with what, which and what
//! to do.

use jiff::Timestamp;

use super::ownership::GitOps;
use super::plan::{Asked, Fact};
use super::world::{Freshness, Key, Pin, ReleaseRow, Source, World};
use crate::api::environment::{DeploymentPipelineSpec, EnvironmentSpec, PipelineFault};
use crate::api::pin::Hold;
use crate::api::release::Verdict;
use crate::text::{self, quoted};

/// The hint that overrides [`Refusal::Unready`].
pub const UNREADY_ANYWAY: &str = "--unready promotes a release that is not ready";

/// Why an action is not planned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// There is no such component.
    #[error("component {component} does not exist{}", instead(.known))]
    NoComponent {
        /// Which.
        component: String,
        /// Which there are.
        known: Vec<String>,
    },
    /// There is no such environment.
    #[error("environment {environment} does not exist{}", instead(.known))]
    NoEnvironment {
        /// Which.
        environment: String,
        /// Which there are.
        known: Vec<String>,
    },
    /// The component is not deployed there.
    #[error("{component} is not deployed in {environment}")]
    NoPin {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
    },
    /// The ReleasePin of another component and environment has the name.
    #[error("ReleasePin {name} belongs to {component} in {environment}")]
    NameTaken {
        /// The name.
        name: String,
        /// Its component.
        component: String,
        /// Where.
        environment: String,
    },
    /// There is nothing to promote.
    #[error("nothing is deployed in {environment}")]
    Nothing {
        /// Where.
        environment: String,
    },
    /// There is no such release.
    #[error("release {release} does not exist{}", instead(.known))]
    NoRelease {
        /// Which.
        release: String,
        /// The newest ones of the component.
        known: Vec<String>,
    },
    /// The release is of another component.
    #[error("release {release} belongs to component {owner}, not to {component}")]
    OfAnother {
        /// The release.
        release: String,
        /// The component that was asked for.
        component: String,
        /// The component that it is of.
        owner: String,
    },
    /// The release is marked bad.
    #[error("release {release} is marked bad")]
    Bad {
        /// The release.
        release: String,
    },
    /// The release is being deleted.
    #[error("release {release} is being deleted")]
    Deleting {
        /// The release.
        release: String,
    },
    /// The pipeline has no such path.
    #[error("the pipeline has no path from {from} to {to}")]
    NoPath {
        /// From.
        from: String,
        /// To.
        to: String,
        /// Where it leads instead.
        leads: Vec<String>,
    },
    /// The environment is not one that nothing promotes to.
    #[error("{environment} is not a first environment of the pipeline")]
    NotFirst {
        /// Which.
        environment: String,
        /// Where one deploys.
        first: Vec<String>,
    },
    /// The namespace has no pipeline.
    #[error("namespace {namespace} has no DeploymentPipeline, so there are no promotion paths")]
    NoPipeline {
        /// Which.
        namespace: String,
    },
    /// The pipeline leads in a circle, or is not the only one of its namespace.
    #[error(transparent)]
    Pipeline(#[from] PipelineFault),
    /// The pipelines of a namespace disagree about retention.
    #[error("the DeploymentPipelines of namespace {namespace} ({}) disagree about retention", .pipelines.join(", "))]
    RetentionDiffers {
        /// The namespace.
        namespace: String,
        /// The names of the pipelines.
        pipelines: Vec<String>,
    },
    /// A ReleasePin names a release that is not there: releases may be lost that others need.
    #[error("ReleasePin {pin} names release {release}, which does not exist")]
    ReleaseLost {
        /// The ReleasePin.
        pin: String,
        /// The release.
        release: String,
    },
    /// A RenderedRelease has lost its ReleasePin, and nothing says which releases its workloads need.
    #[error("the RenderedRelease {rendered} runs, and its ReleasePin does not exist")]
    Unpinned {
        /// The RenderedRelease.
        rendered: String,
    },
    /// The release is not ready where it comes from.
    #[error("{component} is not ready in {environment}: {why}")]
    Unready {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// Why.
        why: String,
    },
    /// A hold blocks the change.
    #[error("{component} in {environment} is held at {release} ({holds})")]
    Held {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// The release that it is held at.
        release: String,
        /// Who holds, why and until when.
        holds: String,
    },
    /// A GitOps tool owns the ReleasePin.
    #[error("{} owns {component} in {environment} and would revert a change made here", .tool.name())]
    OwnedByGit {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// The release that was wanted.
        release: String,
        /// The tool.
        tool: GitOps,
    },
    /// The environment requires a reason.
    #[error("{environment} requires a reason for every change")]
    NoReason {
        /// Which.
        environment: String,
    },
    /// A bad mark needs a reason, and so does the good mark that replaces one.
    #[error("marking {release} {verdict} needs a reason")]
    NoNote {
        /// The release.
        release: String,
        /// Bad or good.
        verdict: &'static str,
    },
    /// The data is too old to act on.
    #[error("the data of {what} is stale: the watch was disconnected at {since} ({why})")]
    Stale {
        /// Of what.
        what: &'static str,
        /// Since when.
        since: Timestamp,
        /// Why.
        why: String,
    },
    /// The cluster does not have kinds that the action needs.
    #[error("the cluster does not have the kinds {kinds}: bowline is not installed there")]
    KindsAbsent {
        /// The kinds.
        kinds: String,
    },
    /// The data is not complete yet.
    #[error("the {what} are still loading")]
    Loading {
        /// Of what.
        what: &'static str,
    },
    /// No earlier release was good.
    #[error(
        "{component} has no earlier release in {environment} that was healthy when it was replaced"
    )]
    NoLastGood {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
    },
    /// The controller has not observed the newest change, so the last good release is not known.
    #[error(
        "the controller has not observed the latest change of {component} in {environment}, so the last good release is not known"
    )]
    NotObserved {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
    },
    /// No controller runs, so the health of releases is not known.
    #[error(
        "no controller runs ({why}), so the last good release of {component} in {environment} is not known"
    )]
    NoController {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// How that is known.
        why: String,
    },
    /// There is no such revision.
    #[error("{component} has no revision {revision} in {environment}{}", instead(.known))]
    NoRevision {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// Which.
        revision: i64,
        /// Which there are.
        known: Vec<String>,
    },
    /// The retention of the pipeline is not valid.
    #[error("the retention of the DeploymentPipeline is not valid: minAge: {why}")]
    BadRetention {
        /// What is wrong.
        why: String,
    },
    /// The last action created the ReleasePin.
    #[error(
        "the last action was the first deployment of {component} in {environment}: there is no earlier state"
    )]
    NothingBefore {
        /// The ReleasePin.
        pin: String,
        /// The component.
        component: String,
        /// The environment.
        environment: String,
    },
    /// The audit trail does not have the revision before.
    #[error("revision {revision} of {component} in {environment} is not recorded")]
    NotOnRecord {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// The revision.
        revision: i64,
    },
    /// There is no such hold.
    #[error("{component} has no such hold in {environment}{}", instead(.known))]
    NoHold {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// Which there are.
        known: Vec<String>,
    },
}

/// Lists the known names, if there are any.
fn instead(names: &[String]) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!("; known: {}", text::line(&names.join(", "))),
    }
}

impl Refusal {
    /// Tells whether a rule refuses the action. Otherwise something is missing.
    pub fn is_rule(&self) -> bool {
        matches!(
            self,
            Self::Bad { .. }
                | Self::ReleaseLost { .. }
                | Self::Unpinned { .. }
                | Self::OfAnother { .. }
                | Self::NameTaken { .. }
                | Self::NoPath { .. }
                | Self::NoPipeline { .. }
                | Self::Pipeline(_)
                | Self::RetentionDiffers { .. }
                | Self::NotFirst { .. }
                | Self::Unready { .. }
                | Self::Held { .. }
                | Self::OwnedByGit { .. }
                | Self::NoReason { .. }
                | Self::NoNote { .. }
                | Self::NoLastGood { .. }
                | Self::NotObserved { .. }
                | Self::NoController { .. }
                | Self::NothingBefore { .. }
                | Self::NotOnRecord { .. }
                | Self::KindsAbsent { .. }
        )
    }

    /// Tells whether the last good release is not known, so that the user has to name one.
    pub fn is_about_last_good(&self) -> bool {
        matches!(
            self,
            Self::NoLastGood { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Tells whether the action becomes possible once a controller has run.
    pub fn waits_for_controller(&self) -> bool {
        matches!(
            self,
            Self::Unready { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Tells whether the data is too old.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. } | Self::Loading { .. })
    }

    /// Returns the next step of a user on the command line. `aim` adds the target to a command, so that it acts
    /// in the same place wherever the user pastes it.
    pub fn hint(&self, aim: &dyn Fn(&str) -> String) -> Option<String> {
        let at = |component: &str, environment: &str| {
            format!(
                "{} --environment {}",
                quoted(component),
                quoted(environment)
            )
        };
        Some(match self {
            Self::NoPin {
                component,
                environment,
            } => {
                let deploy = aim(&format!("bowline deploy {}", at(component, environment)));
                format!("promote to it, or: {deploy}")
            }
            Self::NameTaken { .. } => {
                "bowline names a ReleasePin COMPONENT-ENVIRONMENT; rename the component or the environment"
                    .to_owned()
            }
            Self::ReleaseLost { .. } => {
                "create the release again, or move the ReleasePin to one that exists: bowline deploy, bowline rollback"
                    .to_owned()
            }
            Self::Unpinned { rendered } => {
                let delete = format!(
                    "bowline delete releases.core.choreo.dev {}",
                    quoted(rendered)
                );
                format!(
                    "create the ReleasePin {rendered} again, or remove its workloads: {}",
                    aim(&delete)
                )
            }
            Self::NoRelease { .. } => {
                format!("{} lists all releases", aim("bowline release list"))
            }
            Self::Bad { release } => {
                let good = format!("bowline mark good {} --reason TEXT", quoted(release));
                format!("choose another release; if this one is good: {}", aim(&good))
            }
            Self::Deleting { .. } => "choose another release".to_owned(),
            Self::NoPath { from, leads, .. } => match leads.is_empty() {
                true => format!(
                    "no path starts at {from}; --skip-path with --reason overrides this"
                ),
                false => format!(
                    "the paths from {from} lead to {}; --skip-path with --reason overrides this",
                    leads.join(", ")
                ),
            },
            Self::NotFirst { first, .. } if first.is_empty() => {
                "the pipeline has no paths; --skip-path with --reason overrides this".to_owned()
            }
            Self::NotFirst { first, .. } => format!(
                "deploy to {} and promote from there; --skip-path with --reason overrides this",
                first.join(" or ")
            ),
            Self::NoPipeline { .. } => {
                "apply a DeploymentPipeline, or use --skip-path with --reason".to_owned()
            }
            Self::Unready { .. } => format!("wait until it is ready; {UNREADY_ANYWAY}"),
            Self::Held {
                component,
                environment,
                ..
            } => aim(&format!("bowline unpin {}", at(component, environment))),
            Self::OwnedByGit {
                component,
                environment,
                release,
                ..
            } => format!(
                "change it in git: bowline --repo DIR deploy {} --release {}",
                at(component, environment),
                quoted(release)
            ),
            Self::NoReason { .. } | Self::NoNote { .. } => "add --reason".to_owned(),
            Self::KindsAbsent { .. } => format!("{} installs the kinds", aim("bowline install")),
            Self::Stale { .. } | Self::Loading { .. } => "try again in a moment".to_owned(),
            Self::NoLastGood {
                component,
                environment,
                ..
            }
            | Self::NotObserved {
                component,
                environment,
                ..
            }
            | Self::NoController {
                component,
                environment,
                ..
            } => {
                let history = aim(&format!("bowline history {}", at(component, environment)));
                format!("name the release with --to RELEASE or --to-revision N; {history} lists them")
            }
            Self::NothingBefore { pin, .. } => {
                let delete = format!("bowline delete releasepins.openchoreo.dev {}", quoted(pin));
                format!("to remove it: {}", aim(&delete))
            }
            Self::NotOnRecord {
                component,
                environment,
                ..
            } => {
                let history = aim(&format!("bowline history {}", at(component, environment)));
                format!("{history} lists the revisions; rollback --to RELEASE chooses one")
            }
            Self::BadRetention { .. } => "correct it, or use --min-age".to_owned(),
            Self::NoHold { .. } => "name one with --hold ID".to_owned(),
            Self::Pipeline(fault) => fault.hint(),
            Self::RetentionDiffers { .. } => {
                "delete one of them, or give both --keep and --min-age".to_owned()
            }
            _ => return None,
        })
    }
}

/// The rules of one plan, with the facts that they used.
pub(super) struct Rules<'w> {
    pub(super) world: &'w World,
    pub(super) asked: &'w Asked,
    pub(super) facts: Vec<Fact>,
    /// A release that the plan makes first. The read model does not have it.
    supposed: Option<&'w ReleaseRow>,
}

impl<'w> Rules<'w> {
    pub(super) fn new(world: &'w World, asked: &'w Asked) -> Self {
        Self::supposing(world, None, asked)
    }

    /// Lays a release that is not made yet over the read model.
    pub(super) fn supposing(
        world: &'w World,
        supposed: Option<&'w ReleaseRow>,
        asked: &'w Asked,
    ) -> Self {
        Self {
            world,
            asked,
            facts: Vec::new(),
            supposed,
        }
    }

    pub(super) fn key(&self, name: &str) -> Key {
        Key::new(&self.asked.namespace, name)
    }

    /// Everything that is looked at has to be current.
    pub(super) fn current(&self) -> Result<(), Refusal> {
        Source::OF_MOVES
            .iter()
            .try_for_each(|source| self.live(*source))
    }

    /// Snapshots matter to nobody but who collects them.
    pub(super) fn current_snapshots(&self) -> Result<(), Refusal> {
        self.live(Source::Snapshots)
    }

    fn live(&self, source: Source) -> Result<(), Refusal> {
        let what = source.word();
        match self.world.freshness(source) {
            Freshness::Live => Ok(()),
            Freshness::Loading => Err(Refusal::Loading { what }),
            Freshness::Absent => Err(Refusal::KindsAbsent {
                kinds: self.world.absent_kinds().join(", "),
            }),
            Freshness::Stale { since, why, .. } => Err(Refusal::Stale {
                what,
                since: *since,
                why: why.clone(),
            }),
        }
    }

    /// The environment has to be there.
    pub(super) fn known_environment(&self, name: &str) -> Result<&'w EnvironmentSpec, Refusal> {
        match self.world.environment(&self.key(name)) {
            Some(environment) => Ok(&environment.spec),
            None => Err(Refusal::NoEnvironment {
                environment: name.to_owned(),
                known: self.world.environment_names(&self.asked.namespace),
            }),
        }
    }

    /// The environment has to be there; whether it wants a reason is asked when the plan is applied.
    pub(super) fn environment(&mut self, name: &str) -> Result<&'w EnvironmentSpec, Refusal> {
        let key = self.key(name);
        let spec = self.known_environment(name)?;
        self.facts.push(Fact::Environment {
            key,
            spec: spec.clone(),
        });
        Ok(spec)
    }

    /// The ReleasePin that is changed, if it exists.
    pub(super) fn target(
        &mut self,
        component: &str,
        environment: &str,
    ) -> Result<Option<&'w Pin>, Refusal> {
        let pin = self.world.pin_of(&self.key(component), environment);
        let name = crate::api::names::pin(component, environment);
        let key = pin.map_or_else(|| self.key(&name), |pin| pin.key.clone());
        // Two places can come to the same name: a-b in c, and a in b-c.
        if let Some(other) = self.world.pin(&key).filter(|_| pin.is_none()) {
            return Err(Refusal::NameTaken {
                name,
                component: other.component.to_string(),
                environment: other.environment.to_string(),
            });
        }
        if let Some(pin) = pin {
            self.facts.push(Fact::Owner {
                key: key.clone(),
                is: pin.gitops,
            });
        }
        self.facts.push(Fact::Pin {
            key,
            is: pin.map(|pin| (pin.uid.to_string(), pin.generation)),
        });
        Ok(pin)
    }

    /// The ReleasePin has to exist.
    pub(super) fn pinned(
        &mut self,
        component: &str,
        environment: &str,
    ) -> Result<&'w Pin, Refusal> {
        let found = self.target(component, environment)?;
        found.ok_or_else(|| self.no_pin(component, environment))
    }

    pub(super) fn no_pin(&self, component: &str, environment: &str) -> Refusal {
        let known = self.world.pins_of(&self.key(component)).next().is_some()
            || self
                .world
                .releases_of(&self.key(component))
                .next()
                .is_some();
        match known {
            true => Refusal::NoPin {
                component: component.to_owned(),
                environment: environment.to_owned(),
            },
            false => self.no_component(component),
        }
    }

    pub(super) fn no_component(&self, component: &str) -> Refusal {
        let here = self.world.components();
        let mut known: Vec<String> = here
            .filter(|key| *key.namespace == *self.asked.namespace)
            .map(|key| key.name.to_string())
            .collect();
        known.sort();
        known.truncate(10);
        Refusal::NoComponent {
            component: component.to_owned(),
            known,
        }
    }

    /// The release has to be there, and of the component.
    pub(super) fn known_release(
        &self,
        component: &str,
        release: &str,
    ) -> Result<&'w ReleaseRow, Refusal> {
        let key = self.key(release);
        let supposed = self.supposed.filter(|supposed| supposed.key == key);
        let Some(row) = self.world.release(&key).or(supposed) else {
            return Err(self.no_release_of(component, release));
        };
        if let Some(owner) = row.component.as_deref().filter(|owner| *owner != component) {
            return Err(Refusal::OfAnother {
                release: release.to_owned(),
                component: component.to_owned(),
                owner: owner.to_owned(),
            });
        }
        Ok(row)
    }

    /// The release has to be there, of the component, and good enough to be moved to.
    pub(super) fn release(
        &mut self,
        component: &str,
        release: &str,
    ) -> Result<&'w ReleaseRow, Refusal> {
        let row = self.known_release(component, release)?;
        if row.mark == Some(Verdict::Bad) {
            return Err(Refusal::Bad {
                release: release.to_owned(),
            });
        }
        if row.deleting {
            return Err(Refusal::Deleting {
                release: release.to_owned(),
            });
        }
        self.facts.push(Fact::Release {
            key: row.key.clone(),
            uid: row.uid.to_string(),
        });
        Ok(row)
    }

    fn no_release_of(&self, component: &str, release: &str) -> Refusal {
        let component = self.key(component);
        let newest = self.world.releases_of(&component).take(5);
        Refusal::NoRelease {
            release: release.to_owned(),
            known: newest.map(|row| row.key.name.to_string()).collect(),
        }
    }

    /// Names the releases of the component that the name begins with, where there is one.
    pub(super) fn no_release(&self, release: &str) -> Refusal {
        let meant =
            |key: &&Key| *key.namespace == *self.asked.namespace && release.starts_with(&*key.name);
        let component = self.world.components().filter(meant);
        let component = component.max_by_key(|key| key.name.len());
        let component = component.map_or("", |key| &key.name);
        self.no_release_of(component, release)
    }

    fn pipeline(&self) -> Result<&'w DeploymentPipelineSpec, Refusal> {
        let namespace = &self.asked.namespace;
        let pipeline = self.world.pipeline(namespace);
        let pipeline = pipeline.ok_or_else(|| Refusal::NoPipeline {
            namespace: namespace.clone(),
        })?;
        match self.world.pipeline_fault(namespace) {
            Some(fault) => Err(fault.into()),
            None => Ok(pipeline),
        }
    }

    /// The namespace may have one pipeline at most, also for a promotion that skips the path.
    pub(super) fn one_pipeline(&mut self) -> Result<(), Refusal> {
        let namespace = &self.asked.namespace;
        if let Some(fault @ PipelineFault::Several { .. }) = self.world.pipeline_fault(namespace) {
            return Err(fault.into());
        }
        self.facts.push(Fact::OnePipeline {
            namespace: namespace.clone(),
        });
        Ok(())
    }

    /// One edge of the pipeline has to lead from one environment to the other.
    pub(super) fn path(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        let pipeline = self.pipeline()?;
        if !pipeline.is_path(from, to) {
            let leads = pipeline.targets_of(from).into_iter();
            return Err(Refusal::NoPath {
                from: from.to_owned(),
                to: to.to_owned(),
                leads: leads.map(str::to_owned).collect(),
            });
        }
        self.facts.push(Fact::Path {
            namespace: self.asked.namespace.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
        });
        Ok(())
    }

    /// The environment has to be one that nothing promotes to.
    pub(super) fn first(&mut self, environment: &str) -> Result<(), Refusal> {
        let first = self.pipeline()?.first_environments();
        if !first.contains(&environment) {
            return Err(Refusal::NotFirst {
                environment: environment.to_owned(),
                first: first.into_iter().map(str::to_owned).collect(),
            });
        }
        self.facts.push(Fact::First {
            namespace: self.asked.namespace.clone(),
            environment: environment.to_owned(),
        });
        Ok(())
    }

    /// The effective release of an environment has to be ready there, if `needs_ready`.
    pub(super) fn source(&mut self, pin: &Pin, needs_ready: bool) -> Result<(), Refusal> {
        let effective = pin.effective_release(self.asked.now);
        if needs_ready && !pin.is_ready(self.asked.now) {
            let why = match &pin.ready {
                _ if pin.observed != Some(pin.generation) => {
                    "the controller has not observed its latest change".to_owned()
                }
                Some(_) if pin.applied.as_deref() != Some(effective) => {
                    format!("its effective release {effective} is not applied yet")
                }
                Some(ready) => format!("{} ({})", ready.message, ready.reason),
                None => "no status yet".to_owned(),
            };
            return Err(Refusal::Unready {
                component: pin.component.to_string(),
                environment: pin.environment.to_string(),
                why,
            });
        }
        self.facts.push(Fact::Source {
            key: pin.key.clone(),
            release: pin.effective_release(self.asked.now).to_owned(),
            ready: needs_ready,
        });
        Ok(())
    }

    /// The ReleasePin has no active hold.
    pub(super) fn not_held(&self, pin: &Pin) -> Result<(), Refusal> {
        let now = self.asked.now;
        let holds: Vec<String> = pin.active_holds(now).map(words).collect();
        match holds.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Held {
                component: pin.component.to_string(),
                environment: pin.environment.to_string(),
                release: pin.effective_release(now).to_owned(),
                holds: holds.join("; "),
            }),
        }
    }

    /// No GitOps tool owns the ReleasePin.
    pub(super) fn not_owned(&self, pin: &Pin, release: &str) -> Result<(), Refusal> {
        match pin.gitops {
            None => Ok(()),
            Some(tool) => Err(Refusal::OwnedByGit {
                component: pin.component.to_string(),
                environment: pin.environment.to_string(),
                release: release.to_owned(),
                tool,
            }),
        }
    }
}

/// Returns the owner, the reason and the end of a hold.
fn words(hold: &Hold) -> String {
    let mut words = hold.owner.clone();
    if let Some(reason) = hold.reason.as_deref().filter(|reason| !reason.is_empty()) {
        words += &format!(", {reason}");
    }
    if let Some(until) = &hold.until {
        words += &format!(", until {}", until.0);
    }
    words
}
