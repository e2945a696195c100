//! The rules for actions on ReleasePins and releases.
//!
//! Each rule checks one condition in the read model, and records the value that it read as a fact of the plan. If the
//! condition is false, the rule returns a [`Refusal`].

use std::collections::BTreeSet;

use super::READ_BY_CHANGES;
use super::facts::PinFact;
pub use super::refusal::{MarkedBad, Refusal, Step, UNREADY_ANYWAY};
use crate::api::hold::Hold;
use crate::api::openchoreo::environment::{DeploymentPipelineSpec, EnvironmentSpec, PipelineFault};
use crate::api::openchoreo::release::Verdict;
use crate::engine::plan::Asked;
use crate::engine::world::{Freshness, Key, Source, World};
use crate::subjects::release_pin::rows::{Pin, ReleaseRow};

/// The largest number of existing names that a refusal suggests to the user.
pub const NAMES: usize = 10;

/// Checks the rules for one plan, and collects the facts that the rules read.
pub(super) struct Rules<'w> {
    pub(super) world: &'w World,
    pub(super) asked: &'w Asked,
    pub(super) facts: Vec<PinFact>,
    /// A release that the plan creates first. The read model does not have it yet. None if the plan creates no
    /// release.
    supposed: Option<&'w ReleaseRow>,
}

impl<'w> Rules<'w> {
    pub(super) fn new(world: &'w World, asked: &'w Asked) -> Self {
        Self::supposing(world, None, asked)
    }

    /// Creates the rules for a plan that first creates the release `supposed`. The rules treat this release as
    /// existing.
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

    /// Returns a refusal unless the watches of all kinds that the rules read are up to date. Does not check the watch
    /// of snapshots.
    pub(super) fn current(&self) -> Result<(), Refusal> {
        READ_BY_CHANGES
            .iter()
            .try_for_each(|source| self.live(*source))
    }

    /// Returns a refusal unless the watch of snapshots is up to date. Only gc needs this check, because other actions
    /// read no snapshots.
    pub(super) fn current_snapshots(&self) -> Result<(), Refusal> {
        self.live(Source::SNAPSHOTS)
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

    /// Returns the spec of an environment; a refusal if the environment does not exist. Records no fact.
    pub(super) fn known_environment(&self, name: &str) -> Result<&'w EnvironmentSpec, Refusal> {
        match self.world.environment(&self.key(name)) {
            Some(environment) => Ok(&environment.spec),
            None => Err(Refusal::NoEnvironment {
                environment: name.to_owned(),
                known: self.world.environment_names(&self.asked.namespace),
            }),
        }
    }

    /// Returns the spec of an environment, and records it as a fact. Does not check whether the environment requires
    /// a reason, because `apply` checks this.
    pub(super) fn environment(&mut self, name: &str) -> Result<&'w EnvironmentSpec, Refusal> {
        let key = self.key(name);
        let spec = self.known_environment(name)?;
        self.facts.push(PinFact::Environment {
            key,
            spec: spec.clone(),
        });
        Ok(spec)
    }

    /// Returns the ReleasePin that the plan changes; None if the plan creates it. Records the uid and the generation
    /// of the ReleasePin as a fact.
    pub(super) fn target(
        &mut self,
        component: &str,
        environment: &str,
    ) -> Result<Option<&'w Pin>, Refusal> {
        let pin = self.world.pin_of(&self.key(component), environment);
        let name = crate::api::names::pin(component, environment);
        let key = pin.map_or_else(|| self.key(&name), |pin| pin.key.clone());
        // Another pair of component and environment can have the same ReleasePin name: `a-b` in `c`, and `a` in
        // `b-c`.
        if let Some(other) = self.world.pin(&key).filter(|_| pin.is_none()) {
            return Err(Refusal::NameTaken {
                name,
                component: other.component.to_string(),
                environment: other.environment.to_string(),
            });
        }
        if let Some(pin) = pin {
            self.facts.push(PinFact::Owner {
                key: key.clone(),
                is: pin.gitops,
            });
        }
        self.facts.push(PinFact::Pin {
            key,
            is: pin.map(|pin| (pin.uid.to_string(), pin.generation)),
        });
        Ok(pin)
    }

    /// Returns the ReleasePin of a component in an environment; a refusal if there is none.
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
            true => self.not_deployed(component, environment),
            false => self.no_component(component),
        }
    }

    /// Returns the refusal for a component that is not deployed in an environment. The refusal suggests the next
    /// step.
    pub(super) fn not_deployed(&self, component: &str, environment: &str) -> Refusal {
        let step = self.step(component, environment);
        Refusal::NoPin {
            component: component.to_owned(),
            environment: environment.to_owned(),
            requires_reason: self.requires_reason(step.target()),
            step,
        }
    }

    fn requires_reason(&self, environment: &str) -> bool {
        let environment = self.world.environment(&self.key(environment));
        environment.is_some_and(|environment| environment.spec.requires_reason())
    }

    /// Finds what the user can do to deploy the component in an environment: promote from the nearest environment
    /// where it is deployed, or else deploy in a first environment.
    fn step(&self, component: &str, environment: &str) -> Step {
        let key = self.key(component);
        let mut target = environment;
        let mut seen = BTreeSet::from([target]);
        if let Ok(pipeline) = self.pipeline() {
            loop {
                let sources = pipeline.sources_of(target);
                let is_deployed = |from: &&str| self.world.pin_of(&key, from).is_some();
                if let Some(from) = sources.iter().copied().find(is_deployed) {
                    return Step::Promote {
                        from: from.to_owned(),
                        to: target.to_owned(),
                    };
                }
                match sources.into_iter().find(|from| seen.insert(*from)) {
                    Some(earlier) => target = earlier,
                    None => break,
                }
            }
        }
        Step::Deploy {
            environment: target.to_owned(),
        }
    }

    pub(super) fn no_component(&self, component: &str) -> Refusal {
        let here = self.world.components();
        let mut known: Vec<String> = here
            .filter(|key| *key.namespace == *self.asked.namespace)
            .map(|key| key.name.to_string())
            .collect();
        known.sort();
        known.truncate(NAMES);
        Refusal::NoComponent {
            component: component.to_owned(),
            known,
        }
    }

    /// Returns the release name that a user means: the typed text itself, or the only release of the component with
    /// this text as its version.
    pub(super) fn meant(&self, component: &str, said: &str) -> String {
        let supposed = self
            .supposed
            .is_some_and(|supposed| *supposed.key.name == *said);
        if supposed || self.world.release(&self.key(said)).is_some() {
            return said.to_owned();
        }
        let component = self.key(component);
        let releases = self.world.releases_of(&component);
        let mut named = releases.filter(|release| release.version.as_deref() == Some(said));
        match (named.next(), named.next()) {
            (Some(only), None) => only.key.name.to_string(),
            _ => said.to_owned(),
        }
    }

    /// Returns a refusal unless the release exists and belongs to the component. Records no fact.
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

    /// Returns a refusal unless the release exists, belongs to the component, is not marked bad and is not being
    /// deleted. Records the release as a fact.
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
        self.facts.push(PinFact::Release {
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

    /// Returns the refusal for a release that does not exist. It suggests the releases of the component whose name is
    /// the start of the wrong name.
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

    /// Returns a refusal if the namespace has several pipelines. Promotions that skip the path need this check too.
    /// Records the result as a fact.
    pub(super) fn one_pipeline(&mut self) -> Result<(), Refusal> {
        let namespace = &self.asked.namespace;
        if let Some(fault @ PipelineFault::Several { .. }) = self.world.pipeline_fault(namespace) {
            return Err(fault.into());
        }
        self.facts.push(PinFact::OnePipeline {
            namespace: namespace.clone(),
        });
        Ok(())
    }

    /// Returns a refusal unless a promotion path leads from one environment to the other. Records the path as a fact.
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
        self.facts.push(PinFact::Path {
            namespace: self.asked.namespace.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
        });
        Ok(())
    }

    /// Returns a refusal if a promotion path leads to the environment. Records the result as a fact.
    pub(super) fn first(&mut self, environment: &str) -> Result<(), Refusal> {
        let first = self.pipeline()?.first_environments();
        if !first.contains(&environment) {
            return Err(Refusal::NotFirst {
                environment: environment.to_owned(),
                first: first.into_iter().map(str::to_owned).collect(),
            });
        }
        self.facts.push(PinFact::First {
            namespace: self.asked.namespace.clone(),
            environment: environment.to_owned(),
        });
        Ok(())
    }

    /// Records the effective release of the source ReleasePin as a fact. If `needs_ready` is true, returns a refusal
    /// unless that release is ready.
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
        self.facts.push(PinFact::Source {
            key: pin.key.clone(),
            release: pin.effective_release(self.asked.now).to_owned(),
            ready: needs_ready,
        });
        Ok(())
    }

    /// Returns a refusal if the ReleasePin has active holds.
    pub(super) fn not_held(&self, pin: &Pin) -> Result<(), Refusal> {
        let now = self.asked.now;
        let holds: Vec<String> = pin.active_holds(now).map(hold_words).collect();
        let ids = pin.active_holds(now).map(|hold| hold.id.clone());
        match holds.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Held {
                ids: ids.filter(|_| pin.holds.len() > 1).collect(),
                requires_reason: self.requires_reason(&pin.environment),
                component: pin.component.to_string(),
                environment: pin.environment.to_string(),
                release: pin.effective_release(now).to_owned(),
                holds: holds.join("; "),
            }),
        }
    }

    /// Returns a refusal if a GitOps tool owns the ReleasePin.
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

/// Returns the owner, the reason and the end of a hold as text for the user.
pub fn hold_words(hold: &Hold) -> String {
    let mut words = hold.owner.clone();
    if let Some(reason) = hold.reason.as_deref().filter(|reason| !reason.is_empty()) {
        words += &format!(", {reason}");
    }
    if let Some(until) = &hold.until {
        words += &format!(", until {}", until.0);
    }
    words
}
