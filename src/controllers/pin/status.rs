//! Computes the status of a ReleasePin from the result of a reconcile. The functions are pure, so the tests
//! are tables.
//!
//! The health in the status never comes from before the last apply. If a step fails, the resources of the
//! applied release keep running, so the status reports both the failure and that release.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::rendered::{Report, Word};
use crate::api::choreo::rendered::Health;
use crate::api::condition::{self, Observation, Status};
use crate::api::openchoreo::pin::{Outcome, ReleasePinStatus};
use crate::text;

/// The maximum length of a condition message, in characters.
const MESSAGE: usize = 4_000;
/// The maximum length of the explanation that an outcome stores, in characters.
const WHY: usize = 400;

/// The steps from a ReleasePin to running resources, in their order.
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

/// The failure of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) step: Step,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// Whether the controller retries, because the cause of the failure can disappear without a watch event.
    pub(super) may_pass: bool,
}

impl Trouble {
    /// Creates a failure without a retry, because only a change of a watched object can fix it.
    pub(super) fn lasting(step: Step, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            step,
            reason,
            message,
            may_pass: false,
        }
    }

    /// Creates a failure that the controller retries.
    pub(super) fn passing(step: Step, reason: &'static str, message: impl Into<String>) -> Self {
        let lasting = Self::lasting(step, reason, message);
        Self {
            may_pass: true,
            ..lasting
        }
    }
}

/// The result of a reconcile without a failure, with the health report of the data plane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Done {
    pub(super) snapshot: String,
    pub(super) resources: usize,
    pub(super) warnings: Vec<String>,
    /// The health that the data plane reports for this apply; None if there is no report yet.
    pub(super) report: Option<Report>,
    /// The name of the missing data plane of the environment; None if the data plane exists.
    pub(super) no_plane: Option<String>,
}

/// The fields of a ReleasePin from which its status is computed.
pub(super) struct Subject<'a> {
    pub(super) generation: i64,
    /// The name of the effective release.
    pub(super) release: &'a str,
    /// The time of the last operation on the ReleasePin; None if unknown, for example after an edit by kubectl.
    pub(super) since: Option<Timestamp>,
}

/// The value of the condition Ready, and the health for the outcome of the revision.
struct Verdict {
    ready: Status,
    reason: String,
    message: String,
    /// Whether the release is healthy; None if not known.
    healthy: Option<bool>,
}

/// Computes the new status of a ReleasePin from its old status and the result of a reconcile.
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
            // If this release was applied before, its resources still run, and their health did not change.
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

/// Returns the status for the condition of a failed step: Unknown if the controller could not read an object,
/// else False.
fn step_failed(trouble: &Trouble) -> Status {
    match trouble.reason {
        condition::READ_FAILED => Status::Unknown,
        _ => Status::False,
    }
}

/// Returns the status, the reason and the message of the condition of one step.
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

/// Returns a message that contains the failure and the release whose resources keep running.
fn failed(trouble: &Trouble, before: &ReleasePinStatus) -> String {
    match &before.applied_release {
        Some(runs) => format!("{}; the resources of {runs} stay", trouble.message),
        None => trouble.message.clone(),
    }
}

/// Judges an applied release by the health that the data plane reports for this apply.
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
    // A RenderedRelease without a Ready condition is ready when its resources are healthy.
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

/// Records the outcome of the current revision.
///
/// A healthy outcome stays healthy while resources progress, because a scaling also makes resources progress.
/// A failure before the apply does not change the health in the outcome, because the old resources keep
/// running.
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
