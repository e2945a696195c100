//! Tests of the status of a RenderedRelease after each result of a pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::choreo::rendered::{Health, RenderedReleaseStatus};
use crate::api::condition::{self, Status};
use crate::engine::diff::Identity;
use crate::engine::health::Verdict;
use crate::rendered::deploy::{Deployed, Found, Pruned};
use crate::rendered::kinds::Blind;
use crate::rendered::live::Whole;
use crate::rendered::status::{after, is_moving, listed};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn found(name: &str, verdict: Result<Verdict, &str>, status: Value) -> Found {
    let object = json!({"metadata": {"name": name}, "status": status});
    let seen: Whole = serde_json::from_value(object).unwrap();
    let live = Arc::new(seen.keep("apps", "Deployment"));
    Found {
        id: name.to_owned(),
        identity: Identity {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        },
        version: "v1".to_owned(),
        applied: None,
        problem: verdict.as_ref().err().map(|why| (*why).to_owned()),
        live: verdict.ok().map(|verdict| (live, verdict)),
    }
}

fn deployed(found: Vec<Found>) -> Deployed {
    Deployed {
        found,
        left: Vec::new(),
        pruned: Pruned::Done,
        seen: BTreeSet::from([("apps".to_owned(), "Deployment".to_owned())]),
        unanswered: false,
    }
}

fn ready(found: Vec<Found>) -> (String, String, String) {
    let status = after(
        &RenderedReleaseStatus::default(),
        &deployed(found),
        Some(2),
        false,
        at(1),
    );
    let ready = condition::find(&status.conditions, condition::READY).unwrap();
    assert_eq!(ready.observed_generation, Some(2));
    (
        ready.status.clone(),
        ready.reason.clone(),
        ready.message.clone(),
    )
}

#[test]
fn ready_is_as_good_as_the_worst() {
    let of = |health: Health, message: &str| Ok(Verdict::new(health, message));
    let web = |verdict| found("web", verdict, json!(null));
    let cart = |verdict| found("cart", verdict, json!(null));
    use Health::*;
    for (found, status, reason, message) in [
        (
            vec![],
            Status::True,
            "ReconcileSuccess",
            "no resources to deploy",
        ),
        (
            vec![web(of(Healthy, "2 of 2 ready"))],
            Status::True,
            "ReconcileSuccess",
            "1 resource is healthy",
        ),
        (
            vec![
                web(of(Healthy, "2 of 2 ready")),
                cart(of(Suspended, "is suspended")),
            ],
            Status::True,
            "ReconcileSuccess",
            "2 resources are healthy; cart: is suspended",
        ),
        (
            vec![web(of(Progressing, "1 of 2 ready")), cart(of(Healthy, ""))],
            Status::False,
            "Progressing",
            "web: 1 of 2 ready",
        ),
        (
            vec![
                web(of(Progressing, "1 of 2 ready")),
                cart(of(Degraded, "2 of 5 ready, CrashLoopBackOff")),
            ],
            Status::False,
            "Degraded",
            "cart: 2 of 5 ready, CrashLoopBackOff",
        ),
        (
            vec![
                web(of(Degraded, "failed")),
                cart(of(Degraded, "failed too")),
            ],
            Status::False,
            "Degraded",
            "web: failed (and 1 more)",
        ),
        (
            vec![web(of(Unknown, "its node does not answer"))],
            Status::Unknown,
            "HealthUnknown",
            "web: its node does not answer",
        ),
        (
            vec![web(Err("it is forbidden")), cart(of(Degraded, "failed"))],
            Status::False,
            "ApplyFailed",
            "web: it is forbidden",
        ),
    ] {
        let expected = (
            status.as_str().to_owned(),
            reason.to_owned(),
            message.to_owned(),
        );
        assert_eq!(ready(found), expected);
    }
}

#[test]
fn times_follow_statuses() {
    let well = || Ok(Verdict::new(Health::Healthy, "1 of 1 ready"));
    let pass = |before: &RenderedReleaseStatus, status: Value, second| {
        after(
            before,
            &deployed(vec![found("web", well(), status)]),
            Some(1),
            false,
            at(second),
        )
    };
    let time = |status: &RenderedReleaseStatus| {
        status.resources[0]
            .last_observed_time
            .as_ref()
            .map(|time| time.0)
    };
    let first = pass(
        &RenderedReleaseStatus::default(),
        json!({"readyReplicas": 1}),
        1,
    );
    assert_eq!(time(&first), Some(at(1)));
    let second = pass(&first, json!({"readyReplicas": 1}), 2);
    assert_eq!(second, first, "nothing is written when nothing changed");
    let third = pass(&second, json!({"readyReplicas": 2}), 3);
    assert_eq!(time(&third), Some(at(3)));
    let none = pass(&RenderedReleaseStatus::default(), json!(null), 4);
    assert_eq!(time(&none), None);
}

#[test]
fn what_was_not_looked_for_stays_in_the_inventory() {
    let well = || Ok(Verdict::new(Health::Healthy, ""));
    let before = after(
        &RenderedReleaseStatus::default(),
        &deployed(vec![
            found("web", well(), json!(null)),
            found("cart", well(), json!(null)),
        ]),
        Some(1),
        false,
        at(1),
    );
    let names = |status: &RenderedReleaseStatus| -> Vec<String> {
        status
            .resources
            .iter()
            .map(|entry| entry.name.clone())
            .collect()
    };
    let mut blind = deployed(vec![found("web", well(), json!(null))]);
    let kind = "Deployment of apps".to_owned();
    blind.pruned = Pruned::Blind(vec![Blind::NotServed { kind }]);
    blind.seen.clear();
    assert_eq!(
        names(&after(&before, &blind, Some(2), false, at(2))),
        ["web", "cart"]
    );
    let seen = deployed(vec![found("web", well(), json!(null))]);
    assert_eq!(
        names(&after(&before, &seen, Some(2), false, at(2))),
        ["web"]
    );
}

#[test]
fn a_resource_without_a_name_leaves_the_inventory() {
    let nameless = Found {
        identity: Identity::default(),
        version: String::new(),
        ..found("web", Err("it has no metadata.name"), json!(null))
    };
    let pass = |before: &RenderedReleaseStatus, found: Vec<Found>| {
        after(before, &deployed(found), Some(1), false, at(1))
    };
    // The inventory lists the nameless resource by its id only while the spec contains the resource.
    let before = pass(&RenderedReleaseStatus::default(), vec![nameless]);
    assert_eq!(before.resources.len(), 1);
    assert_eq!(before.resources[0].id, "web");
    let well = found("web", Ok(Verdict::new(Health::Healthy, "")), json!(null));
    let names: Vec<String> = pass(&before, vec![well])
        .resources
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["web"]);
}

#[test]
fn what_is_on_its_way_is_looked_at_more_often() {
    for (health, expected) in [
        (Health::Healthy, false),
        (Health::Suspended, false),
        (Health::Degraded, false),
        (Health::Progressing, true),
        (Health::Unknown, true),
    ] {
        let found = found("web", Ok(Verdict::new(health, "")), json!(null));
        let status = after(
            &RenderedReleaseStatus::default(),
            &deployed(vec![found]),
            None,
            false,
            at(1),
        );
        assert_eq!(is_moving(&status), expected, "{health:?}");
    }
}

#[test]
fn lists_are_cut_and_counted() {
    let items = |n: usize| (0..n).map(|it| it.to_string()).collect::<Vec<_>>();
    for (count, text) in [
        (0, ""),
        (1, "0"),
        (3, "0; 1; 2"),
        (5, "0; 1; 2; and 2 more"),
    ] {
        assert_eq!(listed(&items(count)), text);
    }
    assert!(listed(&["x".repeat(100_000)]).len() < 2_000);
}
