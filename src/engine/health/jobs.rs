//! The health of Jobs and CronJobs.

use super::{Facts, Verdict, condition, count, is, said, text};
use crate::api::choreo::rendered::Health;

pub(super) fn job(facts: &Facts<'_>) -> Verdict {
    // The status of a Job has no observedGeneration, so the rule cannot check the generation. This is safe, because
    // almost the whole spec of a Job is immutable.
    let Some(status) = facts.status else {
        return match facts.flag("suspend") {
            true => Verdict::new(Health::Suspended, "is suspended"),
            false => Verdict::new(Health::Progressing, "has not started"),
        };
    };
    let (succeeded, failed) = (count(status, "succeeded"), count(status, "failed"));
    if let Some(failure) = condition(status, "Failed").filter(|it| is(Some(it), "True")) {
        let why = match (text(failure, "reason"), text(failure, "message")) {
            ("", message) => message.to_owned(),
            (reason, "") => reason.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        };
        return Verdict::new(Health::Degraded, format!("failed, {why}"));
    }
    let is_over = ["Complete", "SuccessCriteriaMet"]
        .iter()
        .any(|type_| is(condition(status, type_), "True"));
    if is_over {
        return Verdict::new(Health::Healthy, "is complete");
    }
    if facts.flag("suspend") {
        return Verdict::new(Health::Suspended, "is suspended");
    }
    let wanted = facts.number("completions", 1);
    let mut message = format!("{succeeded} of {wanted} succeeded");
    if failed > 0 {
        message += &format!(", {failed} failed");
    }
    if let Some(failing) = condition(status, "FailureTarget").filter(|it| is(Some(it), "True")) {
        message += &format!(", {}", said(failing));
    }
    Verdict::new(Health::Progressing, message)
}

pub(super) fn cron_job(facts: &Facts<'_>) -> Verdict {
    match facts.flag("suspend") {
        true => Verdict::new(Health::Suspended, "is suspended"),
        false => Verdict::healthy(),
    }
}
