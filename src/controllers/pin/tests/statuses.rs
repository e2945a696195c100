//! Tests of the status of a ReleasePin after each result of a reconcile, as a table.

use jiff::Timestamp;

use crate::api::choreo::rendered::Health;
use crate::api::condition::{self, Status};
use crate::api::openchoreo::pin::{MAX_OUTCOMES, ReleasePinStatus};
use crate::pin::rendered::{Report, Word};
use crate::pin::status::{Done, Step, Subject, Trouble, status};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn word(status: Status, reason: &str) -> Option<Word> {
    Some(Word {
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message: format!("said {reason}"),
    })
}

fn report(ready: Option<Word>, applied: Option<Word>, health: Health) -> Option<Report> {
    Some(Report {
        applied,
        ready,
        health,
        worst: None,
    })
}

fn done(report: Option<Report>) -> Result<Done, Trouble> {
    Ok(Done {
        snapshot: "s".to_owned(),
        resources: 2,
        warnings: vec!["spec.x is dropped".to_owned()],
        report,
        no_plane: None,
    })
}

/// Returns the conditions in the order of the steps, each as `T`, `F` or `U` (True, False, Unknown) and the
/// reason.
fn said(status: &ReleasePinStatus) -> Vec<String> {
    let types = [
        condition::RESOLVED,
        condition::RENDERED,
        condition::APPLIED,
        condition::READY,
    ];
    let say = |type_: &&str| {
        let found = condition::find(&status.conditions, type_).unwrap();
        assert_eq!(found.observed_generation, status.observed_generation);
        format!("{} {}", &found.status[..1], found.reason)
    };
    types.iter().map(say).collect()
}

fn look(
    before: &ReleasePinStatus,
    generation: i64,
    release: &str,
    found: &Result<Done, Trouble>,
    now: i64,
) -> ReleasePinStatus {
    let subject = Subject {
        generation,
        release,
        since: None,
    };
    status(before, &subject, found, at(now))
}

#[test]
fn every_way_out_has_all_conditions() {
    use condition::*;
    let trouble = |step, reason| Err(Trouble::lasting(step, reason, "why"));
    let fine = ["T Resolved", "T Rendered", "T Applied"];
    for (found, expected, healthy) in [
        (
            trouble(Step::Resolve, RELEASE_MISSING),
            [
                "F ReleaseMissing",
                "U NotAttempted",
                "U NotAttempted",
                "F ReleaseMissing",
            ],
            Some(false),
        ),
        (
            trouble(Step::Resolve, READ_FAILED),
            [
                "U ReadFailed",
                "U NotAttempted",
                "U NotAttempted",
                "U ReadFailed",
            ],
            None,
        ),
        (
            trouble(Step::Render, RENDER_FAILED),
            [
                "T Resolved",
                "F RenderFailed",
                "U NotAttempted",
                "F RenderFailed",
            ],
            Some(false),
        ),
        (
            trouble(Step::Apply, APPLY_FAILED),
            ["T Resolved", "T Rendered", "F ApplyFailed", "F ApplyFailed"],
            Some(false),
        ),
        (
            done(None),
            [fine[0], fine[1], fine[2], "U NotObserved"],
            None,
        ),
        (
            done(report(word(Status::True, "Fine"), None, Health::Healthy)),
            [fine[0], fine[1], fine[2], "T ReconcileSuccess"],
            Some(true),
        ),
        (
            done(report(None, None, Health::Healthy)),
            [fine[0], fine[1], fine[2], "T ReconcileSuccess"],
            Some(true),
        ),
        (
            done(report(None, None, Health::Progressing)),
            [fine[0], fine[1], fine[2], "F Progressing"],
            None,
        ),
        (
            done(report(
                word(Status::False, "Rolling"),
                None,
                Health::Healthy,
            )),
            [fine[0], fine[1], fine[2], "F Rolling"],
            None,
        ),
        (
            done(report(word(Status::True, "Fine"), None, Health::Degraded)),
            [fine[0], fine[1], fine[2], "F Degraded"],
            Some(false),
        ),
        (
            done(report(
                word(Status::False, "No"),
                word(Status::False, "No"),
                Health::Unknown,
            )),
            [fine[0], fine[1], "F ApplyFailed", "F ApplyFailed"],
            Some(false),
        ),
        (
            Ok(Done {
                no_plane: Some("eu".to_owned()),
                ..done(report(word(Status::True, "Fine"), None, Health::Healthy)).unwrap()
            }),
            [fine[0], fine[1], fine[2], "F DataPlaneMissing"],
            None,
        ),
    ] {
        let status = look(&ReleasePinStatus::default(), 3, "r-1", &found, 1);
        assert_eq!(said(&status), expected, "{found:?}");
        let [outcome] = status.outcomes.as_slice() else {
            panic!("{status:?}");
        };
        assert_eq!(
            (outcome.generation, outcome.healthy),
            (3, healthy),
            "{found:?}"
        );
        assert_eq!(outcome.why.is_none(), healthy == Some(true), "{found:?}");
        assert_eq!(status.applied_release.is_some(), found.is_ok());
        // A second computation with the same inputs changes nothing.
        assert_eq!(look(&status, 3, "r-1", &found, 9), status);
    }
}

#[test]
fn outcomes_follow_the_moves() {
    let well = done(report(word(Status::True, "Fine"), None, Health::Healthy));
    let moving = done(report(None, None, Health::Progressing));
    let missing = Err(Trouble::lasting(
        Step::Resolve,
        condition::RELEASE_MISSING,
        "gone",
    ));
    type Told = (i64, String, i64, Option<i64>, Option<bool>);
    let say = |status: &ReleasePinStatus| -> Vec<Told> {
        let second =
            |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0.as_second();
        let outcomes = status.outcomes.iter();
        outcomes
            .map(|one| {
                let until = one.until.as_ref().map(second);
                (
                    one.generation,
                    one.release.clone(),
                    second(&one.since),
                    until,
                    one.healthy,
                )
            })
            .collect()
    };
    let first = look(&ReleasePinStatus::default(), 1, "a", &moving, 10);
    assert_eq!(say(&first), [(1, "a".into(), 10, None, None)]);
    let first = look(&first, 1, "a", &well, 20);
    // Resources that progress again, as in a scaling, do not make a healthy release unhealthy.
    let first = look(&first, 1, "a", &moving, 30);
    assert_eq!(say(&first), [(1, "a".into(), 10, None, Some(true))]);
    assert_eq!(
        first.outcomes[0].why.as_deref(),
        Some("resources are progressing")
    );
    let second = look(&first, 2, "b", &missing, 40);
    assert_eq!(
        say(&second),
        [
            (1, "a".into(), 10, Some(40), Some(true)),
            (2, "b".into(), 40, None, Some(false))
        ]
    );
    assert_eq!(second.applied_release.as_deref(), Some("a"));
    // When a hold ends, the effective release changes but the generation stays.
    let third = look(&second, 2, "c", &well, 50);
    assert_eq!(
        say(&third),
        [
            (1, "a".into(), 10, Some(40), Some(true)),
            (2, "c".into(), 50, None, Some(true))
        ]
    );
    // A failure does not change the health of the running release.
    let broken = Err(Trouble::lasting(
        Step::Render,
        condition::RENDER_FAILED,
        "bad settings",
    ));
    let fourth = look(&third, 2, "c", &broken, 60);
    assert_eq!(fourth.outcomes[1].healthy, Some(true));
    assert_eq!(
        fourth.outcomes[1].why.as_deref(),
        Some("bad settings; the resources of c stay")
    );

    let mut many = ReleasePinStatus::default();
    for generation in 1..=60 {
        many = look(&many, generation, "r", &well, generation);
    }
    assert_eq!(many.outcomes.len(), MAX_OUTCOMES);
    assert!(
        many.outcomes
            .iter()
            .rev()
            .skip(1)
            .all(|one| one.until.is_some())
    );
}
