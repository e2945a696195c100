//! `rollback`: makes an earlier release effective again. Places a hold so that no automation deploys the newer
//! release again.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{After, change};
use crate::api::bowline::audit::Action;
use crate::api::hold::Hold;
use crate::api::openchoreo::release::Verdict;
use crate::engine::controller_status::ControllerStatus;
use crate::engine::plan::{Asked, Plan};
use crate::engine::revisions::abandoned;
use crate::engine::world::World;
use crate::subjects::release_pin::rows::{Move, Pin, ReleaseRow};
use crate::subjects::release_pin::rules::{MarkedBad, Refusal, Rules};

/// The arguments of the command `rollback`.
#[derive(Clone, Debug)]
pub struct Rollback {
    pub component: String,
    pub environment: String,
    /// The release or revision to restore.
    pub to: Target,
    /// Whether the rollback also places a hold.
    pub hold: bool,
    /// The known revisions of the ReleasePin, each with its effective release.
    pub recorded: Vec<(i64, String)>,
    /// Whether a controller runs. If none runs, the health of revisions may be out of date.
    pub controller: ControllerStatus,
}

/// The release that a rollback restores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    LastGood,
    /// The release with this name.
    Release(String),
    /// The effective release of this revision.
    Revision(i64),
}

/// Plans a rollback. Unlike a promotion, it is allowed while holds are active.
pub fn plan(world: &World, command: &Rollback, asked: &Asked) -> Result<Plan, Refusal> {
    let Rollback {
        component,
        environment,
        ..
    } = command;
    let mut rules = Rules::new(world, asked);
    rules.current()?;
    rules.environment(environment)?;
    let pin = rules.pinned(component, environment)?;
    let (release, restored_from, skipped) = target(&rules, command, pin, asked)?;
    let row = rules.release(component, &release)?;
    // The hold of the rollback must fix the release in two cases: if a GitOps tool would revert the releaseRef, or if
    // an active hold fixes another release, because that hold has priority over the releaseRef.
    let fixed = pin
        .active_holds(asked.now)
        .any(|hold| hold.release.is_some());
    let by_hold = pin.gitops.is_some() || fixed;
    if by_hold && !command.hold {
        rules.not_owned(pin, &release)?;
        rules.not_held(pin)?;
    }
    let mut holds = pin.holds.to_vec();
    let hold = Hold {
        id: asked.hold_id(),
        owner: asked.user.clone(),
        reason: asked.reason.clone(),
        since: since(pin, asked.now),
        until: None,
        release: by_hold.then(|| release.clone()),
    };
    if command.hold && !is_held_already(pin, &hold, &release, asked) {
        holds.push(hold);
    }
    let mut after = After::moved(component, environment, Some(pin), row);
    if by_hold {
        after.release_ref = pin.release.to_string();
    }
    after.holds = holds;
    after.restored_from = restored_from;
    after.warnings.extend(skipped);
    after
        .warnings
        .extend(was_unhealthy(pin, &release, asked.now));
    if let Some(tool) = pin.gitops {
        after.warnings.push(format!(
            "{} owns this ReleasePin: git still names {}, and the hold keeps {release} running",
            tool.name(),
            pin.release
        ));
    }
    Ok(super::plan(
        Action::Rollback,
        asked,
        vec![change(rules, after)],
    ))
}

/// Returns a warning if the release was unhealthy when it was last replaced in this environment; otherwise None.
pub(super) fn was_unhealthy(pin: &Pin, release: &str, now: Timestamp) -> Option<String> {
    let replaced = |ran: &&Move| *ran.release == *release && ran.until.is_some();
    let last = pin.moves.iter().rfind(replaced)?;
    let is_unhealthy = last.healthy == Some(false) && pin.effective_release(now) != release;
    is_unhealthy.then(|| {
        format!(
            "release {release} was unhealthy in {} when it was replaced",
            pin.environment
        )
    })
}

/// Returns whether the ReleasePin already has the hold and the release of this rollback. So the same rollback again
/// places no second hold.
fn is_held_already(pin: &Pin, wanted: &Hold, release: &str, asked: &Asked) -> bool {
    let same = |hold: &Hold| {
        (&hold.owner, &hold.reason, &hold.release, &hold.until)
            == (
                &wanted.owner,
                &wanted.reason,
                &wanted.release,
                &wanted.until,
            )
    };
    pin.effective_release(asked.now) == release && pin.holds.iter().any(same)
}

/// Returns the start time of a new hold: now, or one second after the newest hold if that is later. The newest hold
/// decides which release is effective, so the new hold must be the newest.
pub(super) fn since(pin: &Pin, now: Timestamp) -> Time {
    let second = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
    let newest = pin.holds.iter().map(|hold| second(hold.since.0)).max();
    let after = newest.and_then(|newest| newest.checked_add(SignedDuration::from_secs(1)).ok());
    Time(after.map_or(second(now), |after| after.max(second(now))))
}

/// Returns the release to restore, its revision if known, and a warning for each newer release that the rollback
/// skips.
fn target(
    rules: &Rules<'_>,
    command: &Rollback,
    pin: &Pin,
    asked: &Asked,
) -> Result<(String, Option<i64>, Vec<String>), Refusal> {
    let (component, environment) = (pin.component.to_string(), pin.environment.to_string());
    match &command.to {
        Target::Release(said) => {
            let name = rules.meant(&pin.component, said);
            let ran = pin.moves.iter().rfind(|ran| *ran.release == *name);
            let ran = ran.map(|ran| ran.generation);
            Ok((name, ran, Vec::new()))
        }
        Target::Revision(revision) => {
            let moves = pin.moves.iter();
            let mut known: BTreeMap<i64, &str> =
                moves.map(|ran| (ran.generation, &*ran.release)).collect();
            let recorded = command.recorded.iter();
            known.extend(recorded.map(|(revision, release)| (*revision, release.as_str())));
            match known.get(revision) {
                Some(release) => Ok(((*release).to_owned(), Some(*revision), Vec::new())),
                None => Err(Refusal::NoRevision {
                    component,
                    environment,
                    revision: *revision,
                    known: known.keys().rev().take(10).map(i64::to_string).collect(),
                }),
            }
        }
        Target::LastGood => {
            if let ControllerStatus::Absent(why) = &command.controller {
                return Err(Refusal::NoController {
                    component,
                    environment,
                    why: why.clone(),
                });
            }
            if pin.observed != Some(pin.generation) {
                return Err(Refusal::NotObserved {
                    component,
                    environment,
                });
            }
            let Some(found) = last_good(rules.world, pin, asked.now) else {
                let healthy: Vec<Candidate<'_, '_>> =
                    healthy(rules.world, pin, asked.now).collect();
                let abandoned = healthy.iter().filter_map(|one| one.abandoned(pin));
                return Err(Refusal::NoLastGood {
                    component,
                    environment,
                    bad: healthy_but_bad(&healthy),
                    abandoned: each_once(abandoned),
                });
            };
            Ok((
                found.release.to_string(),
                Some(found.generation),
                skipped(rules.world, pin, found, asked.now),
            ))
        }
    }
}

/// A revision whose release a rollback may restore, because the release was healthy when it was replaced.
struct Candidate<'w, 'p> {
    ran: &'p Move,
    row: &'w ReleaseRow,
    /// The earlier release that a rollback or an undo put in place of this one; None if no rollback or undo replaced
    /// this one.
    left_for: Option<&'p str>,
}

impl Candidate<'_, '_> {
    fn is_bad(&self) -> bool {
        self.row.mark == Some(Verdict::Bad)
    }

    fn is_good(&self) -> bool {
        !self.is_bad() && self.left_for.is_none()
    }

    /// Returns a text for the user which says that a rollback or an undo replaced this release. None if no rollback
    /// or undo did.
    fn abandoned(&self, pin: &Pin) -> Option<String> {
        let earlier = self.left_for?;
        let (release, environment) = (&self.ran.release, &pin.environment);
        Some(format!(
            "skips {release}: {environment} went back from it to {earlier}"
        ))
    }

    fn marked_bad(&self) -> MarkedBad {
        let why = self.row.marked.as_ref().map(|mark| match &mark.note {
            Some(note) => format!("by {}: {note}", mark.by),
            None => format!("by {}", mark.by),
        });
        MarkedBad {
            release: self.row.key.name.to_string(),
            why,
        }
    }
}

/// Returns the last good revision. It is the newest revision whose release was healthy when it was replaced, still
/// exists, and is neither effective, marked bad nor abandoned.
///
/// A release is abandoned if a rollback or an undo replaced it by an earlier release, and it has not become effective
/// again.
pub fn last_good<'w>(world: &World, pin: &'w Pin, now: Timestamp) -> Option<&'w Move> {
    let found = healthy(world, pin, now).find(Candidate::is_good);
    found.map(|found| found.ran)
}

/// Returns the releases that are abandoned at the time `until`, each with the earlier release that replaced it.
/// `current` is the effective release at `until`.
pub(in crate::subjects::release_pin) fn went_back<'p>(
    pin: &'p Pin,
    current: &'p str,
    until: Timestamp,
) -> BTreeMap<&'p str, &'p str> {
    let ran = pin.moves.iter().filter(|ran| ran.since <= until);
    abandoned(ran.map(|ran| &*ran.release).chain([current]))
}

/// Returns the revisions whose release was healthy when it was replaced, still exists and is not effective. The
/// newest revision comes first.
fn healthy<'w, 'p>(
    world: &'w World,
    pin: &'p Pin,
    now: Timestamp,
) -> impl Iterator<Item = Candidate<'w, 'p>> {
    let current = pin.effective_release(now);
    let left = went_back(pin, current, Timestamp::MAX);
    let was_healthy = move |ran: &&Move| {
        *ran.release != *current && ran.until.is_some() && ran.healthy == Some(true)
    };
    let moves = pin.moves.iter().rev().filter(was_healthy);
    moves.filter_map(move |ran| {
        let row = world.release(&super::beside(&pin.key, &ran.release))?;
        let left_for = left.get(&*ran.release).copied();
        Some(Candidate { ran, row, left_for })
    })
}

/// Returns those of the candidates whose release is marked bad. The newest comes first, and each release occurs once.
fn healthy_but_bad(healthy: &[Candidate<'_, '_>]) -> Vec<MarkedBad> {
    let mut bad: Vec<MarkedBad> = Vec::new();
    let marked = healthy.iter().filter(|one| one.is_bad());
    for found in marked.map(Candidate::marked_bad) {
        if bad.iter().all(|known| known.release != found.release) {
            bad.push(found);
        }
    }
    bad
}

/// Returns a text for each release newer than the last good one: the reason why the rollback skips that release. The
/// newest release comes first.
fn skipped(world: &World, pin: &Pin, good: &Move, now: Timestamp) -> Vec<String> {
    let current = pin.effective_release(now);
    let candidates: Vec<Candidate<'_, '_>> = healthy(world, pin, now).collect();
    let newer = pin.moves.iter().rev();
    let newer = newer.take_while(|ran| ran.generation > good.generation);
    let others = newer.filter(|ran| *ran.release != *current && ran.release != good.release);
    each_once(others.map(|ran| {
        let release = &ran.release;
        let candidate = candidates.iter().find(|one| one.ran.release == *release);
        let why = candidate.and_then(|one| {
            let bad = one.is_bad().then(|| one.marked_bad().words());
            let bad = bad.map(|bad| format!("skips {bad}, which is marked bad"));
            one.abandoned(pin).or(bad)
        });
        let unhealthy = || {
            (ran.healthy == Some(false)).then(|| {
                format!(
                    "skips {release}, which was unhealthy in {} when it was replaced",
                    pin.environment
                )
            })
        };
        let why = why.or_else(unhealthy);
        why.unwrap_or_else(|| format!("skips {release}, which is not known to be good"))
    }))
}

fn each_once(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut said = Vec::new();
    for words in words {
        if !said.contains(&words) {
            said.push(words);
        }
    }
    said
}
