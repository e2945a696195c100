//! Whether what a repository says holds together, and what a change of it would promote.
//!
//! For pull requests: what people edit by hand is held to the rules that the actions follow.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::pin::ReleasePinSpec;
use crate::connect::Repository;
use crate::embedded::tree::pins_between;
use crate::engine::rules::Refusal;
use crate::engine::world::{Key, Pin, World};
use crate::git::GitError;

/// What a change makes of a pin.
#[derive(Clone, Debug, PartialEq)]
pub struct Promotion {
    /// The pin.
    pub pin: Key,
    /// The component.
    pub component: String,
    /// The environment.
    pub environment: String,
    /// The release that counted before; None where the pin is new.
    pub from: Option<String>,
    /// The release that counts afterwards; None where the pin goes.
    pub to: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// What does not hold together.
    pub problems: Vec<String>,
    /// What a rule of promotion refuses.
    pub refused: Vec<String>,
    /// What should be known besides.
    pub warnings: Vec<String>,
    /// What the change promotes.
    pub promotions: Vec<Promotion>,
}

/// Checks what the files say, and against a base what they change.
pub fn check(
    repository: &Repository,
    world: &World,
    base: Option<&str>,
    now: Timestamp,
) -> Result<Checked, GitError> {
    let tree = &repository.tree;
    let mut checked = Checked::default();
    let problems = tree.problems().into_iter();
    checked
        .problems
        .extend(problems.map(|problem| problem.what));
    let components = tree.places("openchoreo.dev/components");
    let pins = tree.places("openchoreo.dev/releasepins");
    for ((namespace, name), place) in &pins {
        let Some(pin) = world.pin(&Key::new(namespace, name)) else {
            continue;
        };
        let mut wrong = |what: String| {
            let found = format!("{}:{}: {what}", place.path, place.line);
            checked.problems.push(found);
        };
        for release in pin.named_releases() {
            match world.release(&Key::new(namespace, release)) {
                None => wrong(format!(
                    "pin {name} names release {release}, which is not there"
                )),
                Some(row) => {
                    let owner = row.component.as_deref();
                    if let Some(owner) = owner.filter(|owner| *owner != &*pin.component) {
                        wrong(format!("pin {name} names {release}, a release of {owner}"));
                    }
                }
            }
        }
        if world
            .environment(&Key::new(namespace, &pin.environment))
            .is_none()
        {
            wrong(format!(
                "pin {name} is in {}, which is no environment",
                pin.environment
            ));
        }
        let key = (namespace.clone(), pin.component.to_string());
        if !components.is_empty() && !components.contains_key(&key) {
            wrong(format!(
                "pin {name} is of {}, which is no component",
                pin.component
            ));
        }
    }
    pipelines(world, &pins, &mut checked);
    if let Some(base) = base {
        let changes = pins_between(tree, base)?;
        for ((namespace, name), (before, after)) in changes {
            let key = Key::new(&namespace, &name);
            promotion(world, key, before, after, now, &mut checked);
        }
    }
    Ok(checked)
}

/// The paths of a pipeline lead somewhere, and in no circle.
fn pipelines<T>(world: &World, pins: &BTreeMap<(String, String), T>, checked: &mut Checked) {
    let mut namespaces: Vec<&String> = pins.keys().map(|(namespace, _)| namespace).collect();
    namespaces.dedup();
    for namespace in namespaces {
        let Some(pipeline) = world.pipeline(namespace) else {
            checked
                .warnings
                .push(format!("namespace {namespace} has no DeploymentPipeline"));
            continue;
        };
        match pipeline.order() {
            Err(cycle) => checked.problems.push(cycle.to_string()),
            Ok(order) => {
                for name in order {
                    if world.environment(&Key::new(namespace, name)).is_none() {
                        checked.problems.push(format!(
                            "the pipeline of {namespace} names {name}, which is no environment"
                        ));
                    }
                }
            }
        }
    }
}

/// Holds one change to the rules of promotion.
fn promotion(
    world: &World,
    pin: Key,
    before: Option<ReleasePinSpec>,
    after: Option<ReleasePinSpec>,
    now: Timestamp,
    checked: &mut Checked,
) {
    let Some(place) = after.as_ref().or(before.as_ref()) else {
        return;
    };
    let (component, environment) = (place.component.clone(), place.environment.clone());
    let counts = |spec: &ReleasePinSpec| spec.effective_release(now).to_owned();
    let (from, to) = (before.as_ref().map(counts), after.as_ref().map(counts));
    if let (Some(before), Some(after)) = (&before, &after) {
        let held: Vec<&str> = before
            .active_holds(now)
            .map(|hold| hold.owner.as_str())
            .collect();
        let moved = before.release_ref != after.release_ref;
        let still = after.active_holds(now).count() >= held.len();
        if moved && !held.is_empty() && still {
            let refusal = Refusal::Held {
                component: component.clone(),
                environment: environment.clone(),
                release: counts(before),
                holds: held.join(", "),
            };
            checked.refused.push(refusal.to_string());
        }
    }
    if let Some(to) = &to
        && from.as_ref() != Some(to)
    {
        let key = Key::new(&pin.namespace, to);
        if let Some(row) = world.release(&key)
            && row.mark == Some(crate::api::release::Verdict::Bad)
        {
            let refusal = Refusal::Bad {
                release: to.clone(),
            };
            checked.refused.push(refusal.to_string());
        }
        let went_back =
            before.is_some() && after.as_ref().is_some_and(|after| !after.holds.is_empty());
        if !went_back && let Some(why) = off_path(world, &pin, &component, &environment, to, now) {
            checked.refused.push(why);
        }
    }
    checked.promotions.push(Promotion {
        pin,
        component,
        environment,
        from,
        to,
    });
}

/// Says why a release does not come to an environment by a path.
fn off_path(
    world: &World,
    pin: &Key,
    component: &str,
    environment: &str,
    release: &str,
    now: Timestamp,
) -> Option<String> {
    let pipeline = world.pipeline(&pin.namespace)?;
    if pipeline.first_environments().contains(&environment) {
        return None;
    }
    let key = Key::new(&pin.namespace, component);
    let runs = |other: &&Pin| other.effective_release(now) == release;
    let mut sources = world.pins_of(&key).filter(runs);
    let by_path = sources.any(|source| pipeline.is_path(&source.environment, environment));
    (!by_path).then(|| {
        format!(
            "{component} in {environment}: {release} runs in no environment that promotes to {environment}"
        )
    })
}
