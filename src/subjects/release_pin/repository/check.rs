//! Checks the files of a repository, and the changes since a base commit.
//!
//! For pull requests: a manual edit must follow the same rules as an action of bowline.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::content::{self, Content};
use super::propose::{PINS, RELEASES};
use crate::api::bowline::audit::Action;
use crate::api::hold::Hold;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::release::Verdict;
use crate::connect::Repository;
use crate::engine::world::{Key, World};
use crate::git::GitError;
use crate::gitops::tree::{Change, LeftOutPin, Noted, Trailers, between, logged};
use crate::subjects::release_pin::rows::Pin;
use crate::subjects::release_pin::rules::Refusal;

/// A change of a ReleasePin since the base commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Promotion {
    /// The key of the ReleasePin.
    pub pin: Key,
    pub component: String,
    pub environment: String,
    /// The effective release in the base commit; None if the ReleasePin is new.
    pub from: Option<String>,
    /// The effective release now; None if the ReleasePin was removed.
    pub to: Option<String>,
    /// One text per hold that was placed, removed or edited.
    pub holds: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Errors in files and objects.
    pub problems: Vec<String>,
    /// Changes that a rule for promotions refuses.
    pub refused: Vec<String>,
    pub warnings: Vec<String>,
    /// The changes of ReleasePins since the base commit.
    pub promotions: Vec<Promotion>,
}

/// Checks the files. If there is a base commit, also checks the changes since that commit.
pub fn check(
    repository: &Repository,
    world: &World,
    content: &Content,
    base: Option<&str>,
    now: Timestamp,
) -> Result<Checked, GitError> {
    let tree = &repository.tree;
    let mut checked = Checked::default();
    let problems = tree.problems().into_iter();
    checked
        .problems
        .extend(problems.map(|problem| problem.what));
    if let Some(pending) = tree.work().pending()? {
        let problem = format!("{pending}; {}", pending.hint());
        checked.problems.push(problem);
    }
    let components = tree.places("openchoreo.dev/components");
    let pins = tree.places(PINS);
    let left_out = tree.left_out_releases();
    for ((namespace, name), place) in &pins {
        let Some(pin) = world.pin(&Key::new(namespace, name)) else {
            continue;
        };
        let mut wrong = |what: String| {
            checked.problems.push(format!("{place}: {what}"));
        };
        for release in pin.named_releases() {
            match world.release(&Key::new(namespace, release)) {
                // The release is in a file that git has not checked out; another problem names that file.
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
    let (faults, warnings) = content::faults(content);
    let faults = faults.iter().map(|fault| fault.told(tree));
    checked.problems.extend(faults);
    checked.warnings.extend(warnings);
    if let Some(base) = base {
        let changes = between(tree, base)?;
        checked.problems.extend(changes.unread);
        for ((namespace, name), sides) in changes.releases {
            if let (Some(_), Some(_)) = sides
                && let Some(place) = tree.place(RELEASES, &namespace, &name)
            {
                checked.problems.push(format!(
                    "{place}: release {name} was edited, but a release never changes; restore the file and create another release"
                ));
            }
        }
        for ((namespace, name), (before, after)) in changes.marks {
            let stays = tree.place(RELEASES, &namespace, &name).is_some();
            if let Some(why) = unmarked(&name, before.as_ref(), after.as_ref()).filter(|_| stays) {
                checked.refused.push(why);
            }
        }
        let is_held = |spec: &Option<ReleasePinSpec>| {
            spec.as_ref().is_some_and(|spec| !spec.holds.is_empty())
        };
        let undone = match changes.pins.values().any(|(before, _)| is_held(before)) {
            true => undone_rollbacks(repository, base)?,
            false => Vec::new(),
        };
        let unread = tree.left_out_pins();
        for ((namespace, name), (before, after)) in changes.pins {
            // The ReleasePin is in a file that cannot be parsed, so it is not removed; another problem names
            // that file.
            let is_unread = |pin: &LeftOutPin| pin.namespace == namespace && pin.name == name;
            if after.is_none() && unread.iter().any(is_unread) {
                continue;
            }
            let key = Key::new(&namespace, &name);
            let is_reverted = |change: &&Change| {
                (&change.before, Some(&change.after)) == (&after, before.as_ref())
                    && (&*change.namespace, &*change.name) == (&*namespace, &*name)
            };
            let reverts = after.is_some() && undone.iter().find(is_reverted).is_some();
            promotion(world, key, before, after, reverts, now, &mut checked);
        }
    }
    Ok(checked)
}

/// Lists the changes that revert a rollback, from the trailers of the commits since the base commit.
fn undone_rollbacks(repository: &Repository, base: &str) -> Result<Vec<Change>, GitError> {
    let tree = &repository.tree;
    let work = tree.work();
    let mut undone: BTreeSet<(String, String)> = BTreeSet::new();
    for commit in work.log("HEAD", Some(base))? {
        let said = Trailers::read(&commit).into_iter();
        let said = said.filter(|said| is_action(said, Action::Undo));
        undone.extend(said.filter_map(|said| Some((said.component?, said.environment?))));
    }
    if undone.is_empty() {
        return Ok(Vec::new());
    }
    let log = logged(tree, work, &BTreeSet::new())?;
    let rollbacks = log.changes.into_iter().filter(|change| {
        let spec = &change.after;
        let said = Trailers::of(&change.commit, spec);
        let pin = (spec.component.clone(), spec.environment.clone());
        said.is_some_and(|said| is_action(&said, Action::Rollback)) && undone.contains(&pin)
    });
    Ok(rollbacks.collect())
}

fn is_action(said: &Trailers, action: Action) -> bool {
    said.action == Some(format!("{action:?}"))
}

/// Returns the error if a change removes the bad mark of a release, or replaces it with a good mark without a
/// note.
fn unmarked(release: &str, before: Option<&Noted>, after: Option<&Noted>) -> Option<String> {
    let was_bad = before.is_some_and(|mark| mark.verdict == Verdict::Bad);
    let is_explained = |mark: &Noted| mark.verdict == Verdict::Bad || !mark.note.trim().is_empty();
    (was_bad && !after.is_some_and(is_explained)).then(|| {
        format!(
            "release {release} loses its bad mark without a reason; bowline mark good {release} --reason TEXT records the reason"
        )
    })
}

/// A ReleasePin before and after a change of the files.
struct Touched<'p> {
    before: &'p ReleasePinSpec,
    after: Option<&'p ReleasePinSpec>,
    now: Timestamp,
}

impl<'p> Touched<'p> {
    /// Returns whether the change places a new hold. Then it is a rollback: it needs no path, and other holds
    /// do not block it.
    fn is_held_anew(&self) -> bool {
        let is_new = |hold: &Hold| self.before.holds.iter().all(|known| known.id != hold.id);
        self.after
            .is_some_and(|after| after.active_holds(self.now).any(is_new))
    }

    /// Returns whether the change removes the ReleasePin or makes another release effective, except by the
    /// removal of holds alone.
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

    /// Returns the active holds that the change removes or ends.
    fn lifted(&self) -> impl Iterator<Item = &'p Hold> {
        let (after, now) = (self.after, self.now);
        self.before.active_holds(now).filter(move |hold| {
            after.is_some_and(|after| after.active_holds(now).all(|still| still.id != hold.id))
        })
    }

    /// Returns the active holds that the change keeps.
    fn standing(&self) -> impl Iterator<Item = &'p Hold> {
        let (after, now) = (self.after, self.now);
        self.before.active_holds(now).filter(move |hold| {
            after.is_none_or(|after| after.active_holds(now).any(|still| still.id == hold.id))
        })
    }
}

/// Checks one change by the rules for promotions. A change that exactly reverts a rollback needs no path and
/// may remove the hold of the rollback.
fn promotion(
    world: &World,
    pin: Key,
    before: Option<ReleasePinSpec>,
    after: Option<ReleasePinSpec>,
    reverts: bool,
    now: Timestamp,
    checked: &mut Checked,
) {
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
    });
}

/// Describes the holds that differ, one text each.
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

/// Returns the error if no path of the pipeline brings the release to the environment.
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
        // The expected values: whether another release is effective, whether a new hold is placed, the kept
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
            // A hold that fixed a release is removed, or a hold fixes another release.
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

    #[test]
    fn a_bad_mark_is_replaced_with_a_note_and_not_removed() {
        let mark = |verdict, note: &str| Noted {
            verdict,
            note: note.to_owned(),
        };
        let (bad, good) = (mark(Verdict::Bad, "leaks"), mark(Verdict::Good, "mended"));
        let (unreadable, silent) = (mark(Verdict::Bad, ""), mark(Verdict::Good, " "));
        for (before, after, refused) in [
            (Some(&bad), None, true),
            (Some(&bad), Some(&good), false),
            (Some(&bad), Some(&silent), true),
            (Some(&bad), Some(&unreadable), false),
            (Some(&unreadable), None, true),
            (Some(&unreadable), Some(&silent), true),
            (Some(&good), None, false),
            (Some(&good), Some(&silent), false),
            (None, Some(&bad), false),
            (None, Some(&silent), false),
        ] {
            let found = unmarked("cart-1", before, after);
            assert_eq!(found.is_some(), refused, "{before:?} {after:?}");
        }
    }
}
