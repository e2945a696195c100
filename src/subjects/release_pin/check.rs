//! Checks the files of a repository, and the changes of ReleasePins since a base commit.
//!
//! For pull requests: a manual edit of a ReleasePin must follow the same rules as an action of bowline.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::preview::{PreviewError, Stage, objects};
use super::rows::Pin;
use super::rules::Refusal;
use crate::api::bowline::audit::ContentRef;
use crate::api::hold::Hold;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::release::Verdict;
use crate::engine::diff;
use crate::engine::world::feed::Feed;
use crate::engine::world::{Key, World};
use crate::git::GitError;
use crate::gitops::check::{self, BaseError, Content, EditedPin};
use crate::gitops::tree::{PINS, Tree};
use crate::resolve::git::Git;

/// A ReleasePin that differs from the base commit, with the effect of the change.
#[derive(Clone, Debug, PartialEq)]
pub struct Promotion {
    /// The key of the ReleasePin that changed.
    pub pin: Key,
    pub component: String,
    pub environment: String,
    /// The effective release in the base commit; None if the ReleasePin is new.
    pub from: Option<String>,
    /// The effective release in the files now; None if the ReleasePin was removed.
    pub to: Option<String>,
    /// One text for each hold of the ReleasePin that was placed, removed or edited.
    pub holds: Vec<String>,
    /// The diff of the objects that the two releases render to. Empty if the objects are equal or the release cannot
    /// be rendered.
    pub diff: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Errors in the files and objects of the repository, as text for the user.
    pub problems: Vec<String>,
    /// Changes of ReleasePins that a rule for promotions refuses, as text for the user.
    pub refused: Vec<String>,
    pub warnings: Vec<String>,
    /// The changes of ReleasePins since the base commit.
    pub promotions: Vec<Promotion>,
}

/// The reason why a repository cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The base cannot be compared with the checked out commit.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A request to the API server over the files failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
    /// The rendered diff of a promotion cannot be computed.
    #[error(transparent)]
    Preview(#[from] PreviewError),
}

/// The inputs of the check of a repository.
pub struct Check<'a> {
    /// The objects in the files of the work tree.
    pub tree: &'a Tree,
    /// A client for the API server over the files of the work tree.
    pub client: &'a Client,
    /// The read model of all namespaces.
    pub feed: &'a Feed,
    /// The reader that resolves the git references in releases.
    pub git: &'a Git,
}

impl Check<'_> {
    /// Checks the files of the repository. If `base` is given, also checks and renders the changes of ReleasePins
    /// since the merge base of `base` and HEAD.
    pub async fn run(&self, base: Option<&str>, now: Timestamp) -> Result<Checked, CheckError> {
        let base = base.map(|base| check::merge_base(self.tree.work(), base));
        let base = base.transpose()?;
        let content = Content::fetch(self.client).await?;
        let (mut checked, mut others) = {
            let world = self.feed.world();
            let checked = find(self.tree, &world, &content, base.as_deref(), now)?;
            (checked, pins(&world, now))
        };
        let mut promotions = std::mem::take(&mut checked.promotions);
        // A change of settings or environments can break the rendering of a ReleasePin that did not change. So the
        // other ReleasePins are rendered too.
        let moved: BTreeSet<&Key> = promotions.iter().map(|promotion| &promotion.pin).collect();
        others.retain(|pin| !moved.contains(&pin.pin));
        let all = promotions.iter().chain(&others);
        let namespaces: BTreeSet<String> = all.map(|pin| pin.pin.namespace.to_string()).collect();
        for namespace in &namespaces {
            let stage = Stage::new(self.client, namespace, self.git);
            let is_here = |pin: &Promotion| *pin.pin.namespace == **namespace;
            for promotion in promotions.iter_mut().filter(|pin| is_here(pin)) {
                promotion.diff = rendered_diff(promotion, &stage, &mut checked).await?;
            }
            for pin in others.iter().filter(|pin| is_here(pin)) {
                fits(pin, &stage, &mut checked).await?;
            }
        }
        checked.promotions = promotions;
        checked.problems.dedup();
        Ok(checked)
    }
}

/// Finds errors in the files. With a base commit, also finds the changes of ReleasePins since that commit.
fn find(
    tree: &Tree,
    world: &World,
    content: &Content,
    base: Option<&str>,
    now: Timestamp,
) -> Result<Checked, GitError> {
    let mut checked = Checked {
        problems: check::problems(tree)?,
        ..Checked::default()
    };
    names(tree, world, &mut checked.problems);
    let (faults, warnings) = check::faults(tree, content);
    checked.problems.extend(faults);
    checked.warnings.extend(warnings);
    if let Some(base) = base {
        let changes = check::changes_since(tree, base)?;
        checked.problems.extend(changes.problems);
        checked.refused.extend(changes.refused);
        for pin in changes.pins {
            promotion(world, pin, now, &mut checked);
        }
    }
    Ok(checked)
}

/// Finds ReleasePins that name objects that do not exist, and adds a problem for each.
fn names(tree: &Tree, world: &World, problems: &mut Vec<String>) {
    let components = tree.places("openchoreo.dev/components");
    let pins = tree.places(PINS);
    let left_out = tree.left_out_releases();
    for ((namespace, name), place) in &pins {
        let Some(pin) = world.pin(&Key::new(namespace, name)) else {
            continue;
        };
        let mut wrong = |what: String| {
            problems.push(format!("{place}: {what}"));
        };
        for release in pin.named_releases() {
            match world.release(&Key::new(namespace, release)) {
                // The release is in a file that git has not checked out. Another problem already names that file.
                None if left_out.contains(release) => {}
                None => wrong(format!(
                    "ReleasePin {name} names release {release}, which does not exist"
                )),
                Some(row) => {
                    let owner = row.component.as_deref();
                    if let Some(owner) = owner.filter(|owner| *owner != &*pin.component) {
                        wrong(format!(
                            "ReleasePin {name} names {release}, a release of {owner}"
                        ));
                    }
                }
            }
        }
        if world
            .environment(&Key::new(namespace, &pin.environment))
            .is_none()
        {
            wrong(format!(
                "ReleasePin {name} names environment {}, which does not exist",
                pin.environment
            ));
        }
        let key = (namespace.clone(), pin.component.to_string());
        if !components.is_empty() && !components.contains_key(&key) {
            wrong(format!(
                "ReleasePin {name} names component {}, which does not exist",
                pin.component
            ));
        }
    }
}

/// Returns one promotion per ReleasePin with its effective release, sorted by component. So ReleasePins that did not
/// change are rendered like changed ones.
fn pins(world: &World, now: Timestamp) -> Vec<Promotion> {
    let mut components: Vec<_> = world.components().cloned().collect();
    components.sort();
    let pins = components
        .iter()
        .flat_map(|component| world.pins_of(component));
    let promotion = |pin: &Pin| Promotion {
        pin: pin.key.clone(),
        component: pin.component.to_string(),
        environment: pin.environment.to_string(),
        from: None,
        to: Some(pin.effective_release(now).to_owned()),
        holds: Vec::new(),
        diff: String::new(),
    };
    pins.map(promotion).collect()
}

/// Renders the releases of a promotion before and after the change. Returns the diff of the rendered objects as text.
async fn rendered_diff(
    promotion: &Promotion,
    stage: &Stage<'_>,
    checked: &mut Checked,
) -> Result<String, PreviewError> {
    let Some(after) = fits(promotion, stage, checked).await? else {
        return Ok(String::new());
    };
    let before = match &promotion.from {
        None => Vec::new(),
        Some(from) => {
            let identity = ContentRef::named(from);
            let (component, environment) = (&promotion.component, &promotion.environment);
            let rendered = stage
                .rendered(component, environment, &identity, &mut Vec::new())
                .await;
            // The old release may no longer be renderable. This must not forbid a promotion to another release, so it
            // counts as empty.
            rendered
                .map(|rendered| objects(&rendered))
                .unwrap_or_default()
        }
    };
    let diff = diff::diff(&before, &after, &diff::Options::default());
    // If a change touches only holds, the rendered objects stay the same, so there is nothing to show.
    let is_hold_only = diff.is_empty() && !promotion.holds.is_empty();
    Ok(match is_hold_only {
        true => String::new(),
        false => diff.text(),
    })
}

/// Renders the new release of a promotion. Returns None if the promotion has no new release, or if that release
/// cannot be rendered; then the reason is added to `checked`.
async fn fits(
    promotion: &Promotion,
    stage: &Stage<'_>,
    checked: &mut Checked,
) -> Result<Option<Vec<Value>>, PreviewError> {
    let Some(to) = &promotion.to else {
        return Ok(None);
    };
    let identity = ContentRef::named(to);
    let (component, environment) = (&promotion.component, &promotion.environment);
    let rendered = stage
        .rendered(component, environment, &identity, &mut checked.warnings)
        .await;
    match rendered {
        Ok(rendered) => Ok(Some(objects(&rendered))),
        Err(error @ (PreviewError::DoesNotFit { .. } | PreviewError::OfAnother { .. })) => {
            checked.refused.push(error.to_string());
            Ok(None)
        }
        // This is only a warning: another check reports a missing object, and a failed fetch is no error in the
        // files.
        Err(error @ (PreviewError::Unresolved { .. } | PreviewError::Body(_))) => {
            checked.warnings.push(format!("not rendered: {error}"));
            Ok(None)
        }
        Err(PreviewError::Catalog(error)) => {
            checked
                .problems
                .push(format!("{component} in {environment}: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A ReleasePin before and after a change of its file.
struct Touched<'p> {
    before: &'p ReleasePinSpec,
    after: Option<&'p ReleasePinSpec>,
    now: Timestamp,
}

impl<'p> Touched<'p> {
    /// Returns whether the change places a new hold. Such a change is a rollback, so it needs no promotion path, and
    /// other holds do not block it.
    fn is_held_anew(&self) -> bool {
        let is_new = |hold: &Hold| self.before.holds.iter().all(|known| known.id != hold.id);
        self.after
            .is_some_and(|after| after.active_holds(self.now).any(is_new))
    }

    /// Returns whether the change removes the ReleasePin, or makes another release effective. If only removed holds
    /// make another release effective, returns false.
    fn is_moved(&self) -> bool {
        let Some(after) = self.after else {
            return true;
        };
        let only_lifted = after
            .holds
            .iter()
            .all(|hold| self.before.holds.contains(hold));
        let counts = |spec: &'p ReleasePinSpec| spec.effective_release(self.now);
        self.before.release_ref != after.release_ref
            || (counts(self.before) != counts(after) && !only_lifted)
    }

    /// Returns the active holds that the change removes from the ReleasePin or ends.
    fn lifted(&self) -> impl Iterator<Item = &'p Hold> {
        let (after, now) = (self.after, self.now);
        self.before.active_holds(now).filter(move |hold| {
            after.is_some_and(|after| after.active_holds(now).all(|still| still.id != hold.id))
        })
    }

    /// Returns the active holds that the ReleasePin still has after the change.
    fn standing(&self) -> impl Iterator<Item = &'p Hold> {
        let (after, now) = (self.after, self.now);
        self.before.active_holds(now).filter(move |hold| {
            after.is_none_or(|after| after.active_holds(now).any(|still| still.id == hold.id))
        })
    }
}

/// Checks one changed ReleasePin by the rules for promotions. A change that exactly reverts a rollback needs no
/// promotion path, and may remove the hold of that rollback.
fn promotion(world: &World, edited: EditedPin, now: Timestamp, checked: &mut Checked) {
    let pin = Key::new(&edited.namespace, &edited.name);
    let EditedPin {
        before,
        after,
        reverts_rollback: reverts,
        ..
    } = edited;
    let Some(place) = after.as_ref().or(before.as_ref()) else {
        return;
    };
    let (component, environment) = (place.component.clone(), place.environment.clone());
    let counts = |spec: &ReleasePinSpec| spec.effective_release(now).to_owned();
    let (from, to) = (before.as_ref().map(counts), after.as_ref().map(counts));
    let touched = before.as_ref().map(|before| Touched {
        before,
        after: after.as_ref(),
        now,
    });
    let moved = touched.as_ref().filter(|touched| touched.is_moved());
    if let Some(touched) = moved.filter(|_| !reverts) {
        let lifted: Vec<&str> = touched.lifted().map(|hold| hold.owner.as_str()).collect();
        if !lifted.is_empty() {
            checked.refused.push(format!(
                "{component} in {environment}: the change removes the hold of {} and changes the release of the ReleasePin; remove the hold in a separate change",
                lifted.join(", ")
            ));
        }
    }
    let is_bound = touched
        .as_ref()
        .is_none_or(|touched| touched.is_moved() && !touched.is_held_anew() && !reverts);
    if let Some(touched) = touched.filter(|_| is_bound) {
        let held: Vec<&str> = touched.standing().map(|hold| hold.owner.as_str()).collect();
        if !held.is_empty() {
            let refusal = Refusal::Held {
                component: component.clone(),
                environment: environment.clone(),
                release: counts(touched.before),
                holds: held.join(", "),
                ids: Vec::new(),
                requires_reason: false,
            };
            checked.refused.push(refusal.to_string());
        }
    }
    if let Some(to) = &to
        && from.as_ref() != Some(to)
    {
        let key = Key::new(&pin.namespace, to);
        if let Some(row) = world.release(&key)
            && row.mark == Some(Verdict::Bad)
        {
            let refusal = Refusal::Bad {
                release: to.clone(),
            };
            checked.refused.push(refusal.to_string());
        }
        if is_bound && let Some(why) = off_path(world, &pin, &component, &environment, to, now) {
            checked.refused.push(why);
        }
    }
    let of = |spec: &Option<ReleasePinSpec>| -> Vec<Hold> {
        spec.as_ref()
            .map_or_else(Vec::new, |spec| spec.holds.clone())
    };
    checked.promotions.push(Promotion {
        pin,
        component,
        environment,
        from,
        to,
        holds: changed_holds(&of(&before), &of(&after)),
        diff: String::new(),
    });
}

/// Describes the differences between two lists of holds, one text per hold.
fn changed_holds(before: &[Hold], after: &[Hold]) -> Vec<String> {
    let find = |holds: &[Hold], id: &str| holds.iter().find(|hold| hold.id == id).cloned();
    let placed = after
        .iter()
        .filter_map(|hold| match find(before, &hold.id) {
            None => Some(format!("places {}", hold.words())),
            Some(old) if old != *hold => Some(format!("changes {}", hold.words())),
            Some(_) => None,
        });
    let lifted = before
        .iter()
        .filter(|hold| find(after, &hold.id).is_none())
        .map(|hold| format!("lifts {}", hold.words()));
    placed.chain(lifted).collect()
}

/// Returns the error text if no promotion path brings the new release to the environment; otherwise None.
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
            "{component} in {environment}: {release} runs in no environment that has a path to {environment}"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(release: &str, holds: &[Value]) -> ReleasePinSpec {
        let spec = json!({
            "component": "cart", "environment": "prod", "releaseRef": {"name": release}, "holds": holds,
        });
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn what_a_change_does_to_a_held_pin() {
        let since = "2026-01-01T00:00:00Z";
        let hold = |id: &str| json!({"id": id, "owner": id, "since": since});
        let fixing = |id: &str, release: &str| json!({"id": id, "owner": id, "since": since, "release": release});
        let over = |id: &str| json!({"id": id, "owner": id, "since": since, "until": since});
        let (a, b) = (hold("a"), hold("b"));
        let held = || spec("1", &[a.clone(), b.clone()]);
        // The expected values: whether another release is effective, whether the change places a hold, the kept
        // holds, the removed holds.
        for (before, after, expected) in [
            (spec("1", &[]), Some(spec("2", &[])), (true, false, "", "")),
            (held(), Some(held()), (false, false, "a b", "")),
            (
                held(),
                Some(spec("2", &[a.clone(), b.clone()])),
                (true, false, "a b", ""),
            ),
            // One of two holds is removed; the other is still active.
            (
                held(),
                Some(spec("2", &[hold("b")])),
                (true, false, "b", "a"),
            ),
            (held(), Some(spec("2", &[])), (true, false, "", "a b")),
            (held(), None, (true, false, "a b", "")),
            (
                held(),
                Some(spec("2", &[a.clone(), b.clone(), hold("c")])),
                (true, true, "a b", ""),
            ),
            // An expired hold blocks nothing, before and after the change.
            (
                held(),
                Some(spec("2", &[a.clone(), b.clone(), over("c")])),
                (true, false, "a b", ""),
            ),
            (
                spec("1", &[over("a")]),
                Some(spec("2", &[over("a")])),
                (true, false, "", ""),
            ),
            // Either a hold that fixed a release is removed, or a hold fixes another release than before.
            (
                spec("1", &[fixing("a", "2")]),
                Some(spec("1", &[])),
                (false, false, "", "a"),
            ),
            (
                spec("1", &[fixing("a", "2")]),
                Some(spec("1", &[fixing("a", "3")])),
                (true, false, "a", ""),
            ),
            (
                spec("1", &[]),
                Some(spec("1", &[fixing("a", "3")])),
                (true, true, "", ""),
            ),
        ] {
            let touched = Touched {
                before: &before,
                after: after.as_ref(),
                now: "2026-06-01T00:00:00Z".parse().unwrap(),
            };
            let standing: Vec<&str> = touched.standing().map(|hold| hold.id.as_str()).collect();
            let standing = standing.join(" ");
            let lifted: Vec<&str> = touched.lifted().map(|hold| hold.id.as_str()).collect();
            let lifted = lifted.join(" ");
            let found = (
                touched.is_moved(),
                touched.is_held_anew(),
                standing.as_str(),
                lifted.as_str(),
            );
            assert_eq!(found, expected, "{before:?} {after:?}");
        }
    }
}
