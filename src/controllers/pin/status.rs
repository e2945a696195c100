//! The status of a pin, of what was found out: a pure function, so that every way out can be tried as a
//! table.
//!
//! Nothing is said of health that is older than what was applied. What was applied before stays as it is
//! whatever goes wrong, and the status says both.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::rendered::{Report, Word};
use crate::api::condition::{self, Observation, Status};
use crate::api::pin::{Outcome, ReleasePinStatus};
use crate::api::rendered::Health;
use crate::text;

/// How many characters of a message are kept: what a person reads, and not the whole of a long list.
const MESSAGE: usize = 4_000;
/// How many characters an outcome keeps of why it is so.
const WHY: usize = 400;

/// The steps from a pin to what runs, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Resolve,
    Render,
    Apply,
}

impl Step {
    fn condition(self) -> &'static str {
        match self {
            Self::Resolve => condition::RESOLVED,
            Self::Render => condition::RENDERED,
            Self::Apply => condition::APPLIED,
        }
    }
}

/// Why a step could not be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) step: Step,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// Whether it may go away without a change that a watch tells.
    pub(super) may_pass: bool,
}

impl Trouble {
    /// Something that only a change of what we watch can mend.
    pub(super) fn lasting(step: Step, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            step,
            reason,
            message,
            may_pass: false,
        }
    }

    /// Something that is tried again.
    pub(super) fn passing(step: Step, reason: &'static str, message: impl Into<String>) -> Self {
        let lasting = Self::lasting(step, reason, message);
        Self {
            may_pass: true,
            ..lasting
        }
    }
}

/// What was applied, and what the data plane says of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Done {
    pub(super) snapshot: String,
    pub(super) resources: usize,
    pub(super) warnings: Vec<String>,
    /// What is said of exactly what was applied; nothing where that is not known yet.
    pub(super) report: Option<Report>,
    /// The data plane that the environment names, where it is not there.
    pub(super) no_plane: Option<String>,
}

/// The pin that the status is of.
pub(super) struct Subject<'a> {
    pub(super) generation: i64,
    /// The release that counts.
    pub(super) release: &'a str,
    /// When it was asked for, where somebody said so.
    pub(super) since: Option<Timestamp>,
}

/// How what was applied is doing.
struct Verdict {
    ready: Status,
    reason: String,
    message: String,
    /// Whether it is healthy, where that is certain.
    healthy: Option<bool>,
}

/// Computes the status of a pin.
pub(super) fn status(
    before: &ReleasePinStatus,
    pin: &Subject<'_>,
    found: &Result<Done, Trouble>,
    now: Timestamp,
) -> ReleasePinStatus {
    let mut status = before.clone();
    status.observed_generation = Some(pin.generation);
    let verdict = match found {
        Ok(done) => {
            status.applied_release = Some(pin.release.to_owned());
            status.snapshot = Some(done.snapshot.clone());
            applied(done, pin.release)
        }
        Err(trouble) => Verdict {
            ready: step_failed(trouble),
            reason: trouble.reason.to_owned(),
            message: failed(trouble, before),
            // What was applied before runs on, and is as well as it was.
            healthy: match before.applied_release.as_deref() == Some(pin.release) {
                false if trouble.reason != condition::READ_FAILED => Some(false),
                _ => None,
            },
        },
    };
    for step in [Step::Resolve, Step::Render, Step::Apply] {
        let (holds, reason, message) = step_taken(step, pin.release, found);
        let observation = Observation {
            type_: step.condition(),
            status: holds,
            reason,
            message,
            generation: Some(pin.generation),
        };
        condition::set(&mut status.conditions, observation, now);
    }
    let ready = Observation {
        type_: condition::READY,
        status: verdict.ready,
        reason: &verdict.reason,
        message: cut(&verdict.message, MESSAGE),
        generation: Some(pin.generation),
    };
    condition::set(&mut status.conditions, ready, now);
    note(&mut status, pin, &verdict, found.is_ok(), now);
    status
}

/// Nothing follows from what could not be read.
fn step_failed(trouble: &Trouble) -> Status {
    match trouble.reason {
        condition::READ_FAILED => Status::Unknown,
        _ => Status::False,
    }
}

/// Says of one step whether it was taken.
fn step_taken(
    step: Step,
    release: &str,
    found: &Result<Done, Trouble>,
) -> (Status, &'static str, String) {
    let done = match found {
        Err(trouble) if trouble.step == step => {
            let message = cut(&trouble.message, MESSAGE);
            return (step_failed(trouble), trouble.reason, message);
        }
        Err(trouble) if trouble.step < step => {
            let message = format!(
                "waits until the release is {}",
                trouble.step.condition().to_lowercase()
            );
            return (Status::Unknown, condition::NOT_ATTEMPTED, message);
        }
        Err(_) => None,
        Ok(done) => Some(done),
    };
    match (step, done) {
        (Step::Resolve, _) => (
            Status::True,
            "Resolved",
            format!("release {release} is resolved"),
        ),
        (Step::Render, None) => (
            Status::True,
            "Rendered",
            format!("release {release} is rendered"),
        ),
        (Step::Render, Some(done)) => {
            let mut message = match done.resources {
                1 => "1 resource".to_owned(),
                more => format!("{more} resources"),
            };
            for warning in &done.warnings {
                message += &format!("; {warning}");
            }
            (Status::True, "Rendered", cut(&message, MESSAGE))
        }
        (Step::Apply, done) => {
            let word = done.and_then(|done| done.report.as_ref()?.applied.as_ref());
            match word {
                Some(word) if word.status == Status::False.as_str() => {
                    let message = cut(&word.message, MESSAGE);
                    (Status::False, condition::APPLY_FAILED, message)
                }
                _ => (
                    Status::True,
                    "Applied",
                    format!("release {release} is applied"),
                ),
            }
        }
    }
}

/// Says what is wrong, and what runs all the same.
fn failed(trouble: &Trouble, before: &ReleasePinStatus) -> String {
    match &before.applied_release {
        Some(runs) => format!("{}; the resources of {runs} stay", trouble.message),
        None => trouble.message.clone(),
    }
}

/// Judges what was applied by what the data plane says of it, and of nothing older.
fn applied(done: &Done, release: &str) -> Verdict {
    if let Some(plane) = &done.no_plane {
        return Verdict {
            ready: Status::False,
            reason: condition::DATA_PLANE_MISSING.to_owned(),
            message: format!("the environment names data plane {plane}, which does not exist"),
            healthy: None,
        };
    }
    let Some(report) = &done.report else {
        return Verdict {
            ready: Status::Unknown,
            reason: condition::NOT_OBSERVED.to_owned(),
            message: "no status of the last apply yet".to_owned(),
            healthy: None,
        };
    };
    let said = |word: &Option<Word>, otherwise: &str| match (word, &report.worst) {
        (_, Some(worst)) => worst.clone(),
        (Some(word), None) => word.message.clone(),
        (None, None) => otherwise.to_owned(),
    };
    let is = |word: &Option<Word>, status: Status| {
        word.as_ref()
            .is_some_and(|word| word.status == status.as_str())
    };
    if is(&report.applied, Status::False) {
        let why = report.applied.as_ref().map(|word| word.message.clone());
        return Verdict {
            ready: Status::False,
            reason: condition::APPLY_FAILED.to_owned(),
            message: why.unwrap_or_default(),
            healthy: Some(false),
        };
    }
    if report.health == Health::Degraded {
        return Verdict {
            ready: Status::False,
            reason: condition::DEGRADED.to_owned(),
            message: said(&report.ready, "a resource fails"),
            healthy: Some(false),
        };
    }
    // Without a word of its own, a rendered release is ready when its resources are.
    let well = matches!(report.health, Health::Healthy | Health::Suspended);
    let ready = is(&report.ready, Status::True) || (report.ready.is_none() && well);
    match (ready, &report.ready) {
        (true, _) => Verdict {
            ready: Status::True,
            reason: condition::RECONCILE_SUCCESS.to_owned(),
            message: format!("Release {release} successfully applied"),
            healthy: Some(true),
        },
        (false, word) => Verdict {
            ready: Status::False,
            reason: match word {
                Some(word) if !word.reason.is_empty() => word.reason.clone(),
                _ => condition::PROGRESSING.to_owned(),
            },
            message: said(word, "resources are progressing"),
            healthy: None,
        },
    }
}

/// Writes down what became of the move that the pin is at.
///
/// While resources move, an outcome stays healthy that was: a replica more or less does not make a release
/// that runs well one that never did. What keeps us from applying anew says nothing of what runs.
fn note(
    status: &mut ReleasePinStatus,
    pin: &Subject<'_>,
    verdict: &Verdict,
    is_applied: bool,
    now: Timestamp,
) {
    let second = |at: Timestamp| Time(Timestamp::from_second(at.as_second()).unwrap_or(at));
    let is_this = |one: &Outcome| one.generation == pin.generation && one.release == pin.release;
    let known = status.outcomes.iter().find(|one| is_this(one)).cloned();
    for open in &mut status.outcomes {
        if open.until.is_none() && !is_this(open) {
            open.until = Some(second(now));
        }
    }
    let mut outcome = known.unwrap_or_else(|| Outcome {
        generation: pin.generation,
        release: pin.release.to_owned(),
        since: second(pin.since.unwrap_or(now)),
        until: None,
        healthy: None,
        why: None,
    });
    outcome.until = None;
    let stays = outcome.healthy.filter(|well| *well || !is_applied);
    outcome.healthy = verdict.healthy.or(stays);
    outcome.why = (verdict.ready != Status::True).then(|| cut(&verdict.message, WHY));
    status.record(outcome);
}

fn cut(message: &str, limit: usize) -> String {
    text::clean(message).chars().take(limit).collect()
}
