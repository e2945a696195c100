//! Tests of the gc plan: which releases and snapshots gc deletes or keeps, and why.

use std::time::Duration;

use super::*;
use crate::api::{ComponentEnvSnapshot, labels};
use crate::subjects::release_pin::actions::gc::{self, Gc};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Adds five releases of the component `old`, created on consecutive days from January 1, each 1000 bytes large.
fn many(world: &mut World) {
    for day in 1..=5 {
        let size = json!({"bowline.dev/size": "1000"});
        let name = format!("old-{day}");
        world.releases(Event::Applied(release(&name, "old", day, size)));
    }
}

fn labelled(name: &str, day: u8, extra: Value) -> PartialObjectMeta<Release> {
    with(
        release(name, "old", day, json!({})),
        json!({"metadata": extra}),
    )
}

fn snapshot(name: &str, day: u8) -> PartialObjectMeta<ComponentEnvSnapshot> {
    let created = format!("2026-01-{day:02}T00:00:00Z");
    let snapshot = fixture::metadata(name, "cart", &created);
    fixture::labelled(snapshot, labels::ENVIRONMENT, "dev")
}

fn gone(world: &World, command: &Gc) -> Vec<String> {
    let plan = gc::plan(world, command, &asked("")).unwrap();
    plan.going()
        .map(|found| found.key.name.to_string())
        .collect()
}

fn why(world: &World, name: &str, command: &Gc) -> String {
    let plan = gc::plan(world, command, &asked("")).unwrap();
    let mut all = plan.releases.iter().chain(&plan.snapshots);
    all.find(|found| *found.key.name == *name).unwrap().why()
}

fn keeping(keep: usize) -> Gc {
    Gc {
        keep: Some(keep),
        min_age: Some(Duration::ZERO),
        ..Gc::default()
    }
}

#[test]
fn what_keeps_a_release() {
    type Case = (&'static str, Change, usize, &'static str, &'static str);
    let table: &[Case] = &[
        (
            "nothing",
            many,
            1,
            "old-1",
            "no ReleasePin refers to it, 4 newer",
        ),
        ("the newest", many, 2, "old-4", "number 2 of the newest 2"),
        (
            "a pin",
            |world| {
                many(world);
                world.pins(Event::Applied(pin("old", "dev", "old-1", json!({}))));
            },
            1,
            "old-1",
            "named by the ReleasePin in dev",
        ),
        (
            "a hold, also one that has ended",
            |world| {
                many(world);
                let held = hold("h", Some("2026-01-04T00:00:00Z"), Some("old-2"));
                world.pins(Event::Applied(pin("old", "dev", "old-5", held)));
            },
            1,
            "old-2",
            "named by the ReleasePin in dev",
        ),
        (
            "a pin of another component",
            |world| {
                many(world);
                world.pins(Event::Applied(pin("cart", "dev", "old-1", json!({}))));
            },
            1,
            "old-1",
            "named by the ReleasePin in dev",
        ),
        (
            "the last good",
            |world| {
                many(world);
                let ran = moves(&[(1, "old-1", true), (2, "old-3", false)]);
                world.pins(Event::Applied(pin("old", "prod", "old-5", ran)));
            },
            1,
            "old-1",
            "last good in prod",
        ),
        (
            "what runs still",
            |world| {
                many(world);
                let runs = json!({"status": {"appliedRelease": "old-1"}});
                world.pins(Event::Applied(pin("old", "prod", "old-5", runs)));
            },
            1,
            "old-1",
            "runs in prod",
        ),
        (
            "no component",
            |world| {
                many(world);
                let unclear = json!({"labels": null});
                world.releases(Event::Applied(labelled("stray", 1, unclear)));
            },
            0,
            "stray",
            "its component is not known",
        ),
        (
            "a tool that owns it",
            |world| {
                many(world);
                let owned = json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:x"}});
                world.releases(Event::Applied(labelled("old-1", 1, owned)));
            },
            1,
            "old-1",
            "Argo CD owns it: remove it in git",
        ),
        (
            "a claim",
            |world| {
                many(world);
                let claim = r#"{"at":"2026-01-06T11:51:00Z","operation":"x"}"#;
                let claimed = json!({"annotations": {"bowline.dev/claimed-at": claim}});
                world.releases(Event::Applied(labelled("old-1", 1, claimed)));
            },
            1,
            "old-1",
            "claimed 9m ago: a claim protects it for 10m",
        ),
        (
            "a claim that was not followed",
            |world| {
                many(world);
                let claim = r#"{"at":"2026-01-06T11:50:00Z","operation":"x"}"#;
                let claimed = json!({"annotations": {"bowline.dev/claimed-at": claim}});
                world.releases(Event::Applied(labelled("old-1", 1, claimed)));
            },
            1,
            "old-1",
            "no ReleasePin refers to it, 4 newer",
        ),
        (
            "several things",
            |world| {
                many(world);
                world.pins(Event::Applied(pin("old", "dev", "old-5", json!({}))));
                world.pins(Event::Applied(pin("old", "prod", "old-5", json!({}))));
            },
            2,
            "old-5",
            "named by the ReleasePin in dev, prod; number 1 of the newest 2",
        ),
    ];
    for (title, change, keep, name, expected) in table {
        let world = world(change);
        assert_eq!(why(&world, name, &keeping(*keep)), *expected, "{title}");
    }
}

#[test]
fn limits_come_from_the_command_the_pipeline_or_the_number_of_environments() {
    let world_of = |retention: Value| {
        world(move |world| {
            many(world);
            let retention = json!({"spec": {"retention": retention}});
            let pipeline = with(stored(pipeline(&[])), retention);
            world.pipelines(Event::Applied(pipeline));
        })
    };
    let of_old = |command: Gc| Gc {
        components: vec!["old".to_owned()],
        ..command
    };
    let world = world_of(Value::Null);
    // By default, gc keeps the newest five releases (the number of environments plus two) and all releases
    // younger than 30 days.
    assert_eq!(gone(&world, &of_old(Gc::default())), [""; 0]);
    let aged = Gc {
        min_age: Some(DAY),
        ..Gc::default()
    };
    assert_eq!(gone(&world, &of_old(aged)), [""; 0]);
    assert_eq!(gone(&world, &of_old(keeping(3))), ["old-2", "old-1"]);
    let two_days = Gc {
        min_age: Some(4 * DAY),
        ..keeping(1)
    };
    assert_eq!(gone(&world, &of_old(two_days)), ["old-2", "old-1"]);
    let by_pipeline = world_of(json!({"keepReleases": 4, "minAge": "12h"}));
    assert_eq!(gone(&by_pipeline, &of_old(Gc::default())), ["old-1"]);
    let plan = gc::plan(&by_pipeline, &of_old(keeping(2)), &asked("")).unwrap();
    assert_eq!(plan.frees(), 3000);
    let broken = world_of(json!({"minAge": "soon"}));
    let refusal = gc::plan(&broken, &Gc::default(), &asked("")).unwrap_err();
    assert_eq!(
        told(&refusal),
        "spec.retention.minAge of the DeploymentPipeline is not valid: \"soon\" is not a duration; write for example 30s, 5m, 1h30m or 30d, or 0 for none | correct it: kubectl edit deploymentpipelines.openchoreo.dev | or set the minimum age for this command: --min-age AGE"
    );
}

#[test]
fn a_release_of_the_future_is_not_old() {
    let world = world(|world| {
        many(world);
        world.releases(Event::Applied(labelled("old-0", 30, json!({}))));
    });
    let command = Gc {
        min_age: Some(Duration::from_secs(1)),
        keep: Some(0),
        ..Gc::default()
    };
    assert_eq!(why(&world, "old-0", &command), "younger than 1s");
}

#[test]
fn the_current_snapshot_and_the_newest_stay() {
    let world = world(|world| {
        for day in 1..=5 {
            world.snapshots(Event::Applied(snapshot(&format!("cart-dev-{day}"), day)));
        }
        let current = json!({"status": {"snapshot": "cart-dev-1"}});
        world.pins(Event::Applied(pin("cart", "dev", "cart-3", current)));
    });
    let command = Gc::default();
    assert_eq!(gone(&world, &command), ["cart-dev-2"]);
    assert_eq!(
        why(&world, "cart-dev-1", &command),
        "the ReleasePin in dev was rendered from it"
    );
    assert_eq!(why(&world, "cart-dev-2", &command), "not current, 3 newer");
    assert_eq!(
        why(&world, "cart-dev-3", &command),
        "number 3 of the newest 3"
    );
}

#[test]
fn labels_that_nobody_stands_behind_are_noticed() {
    let label = json!({"labels": {"bowline.dev/pinned": "true"}});
    let world = world(|world| {
        many(world);
        world.releases(Event::Applied(labelled("old-4", 4, label.clone())));
        world.releases(Event::Applied(labelled("old-5", 5, label.clone())));
        let claim = r#"{"at":"2026-01-06T11:59:00Z","operation":"x"}"#;
        let mut claimed = json!({"annotations": {"bowline.dev/claimed-at": claim}});
        merge(&mut claimed, &label);
        world.releases(Event::Applied(labelled("old-3", 3, claimed)));
        world.pins(Event::Applied(pin("old", "dev", "old-5", json!({}))));
    });
    let plan = gc::plan(&world, &keeping(9), &asked("")).unwrap();
    let found = plan.releases.iter().filter(|found| found.mislabelled);
    let names: Vec<_> = found.map(|found| found.key.name.to_string()).collect();
    assert_eq!(names, ["old-4"]);
}

#[test]
fn nothing_goes_while_a_release_pin_names_a_release_that_does_not_exist() {
    let hold = json!({"spec": {"holds": [{"id": "a", "owner": "ana", "since": "2026-01-06T11:00:00Z", "release": "old-9"}]}});
    for pin in [
        pin("old", "dev", "old-9", json!({})),
        pin("old", "dev", "old-5", hold),
    ] {
        let world = world(|world| {
            many(world);
            world.pins(Event::Applied(pin.clone()));
        });
        let refusal = gc::plan(&world, &keeping(1), &asked("")).unwrap_err();
        assert_eq!(
            told(&refusal),
            "gc deletes nothing, because ReleasePin old-dev names release old-9, which does not exist | create release old-9 again: bowline apply -f FILE | or deploy an existing release: bowline deploy COMPONENT -e ENVIRONMENT --release NAME"
        );
        // The missing release belongs to another component, so gc is not refused for this component.
        let other = Gc {
            components: vec!["cart".to_owned()],
            ..keeping(1)
        };
        gc::plan(&world, &other, &asked("")).unwrap();
    }
}

#[test]
fn an_unknown_component_is_refused() {
    let command = Gc {
        components: vec!["nobody".to_owned()],
        ..Gc::default()
    };
    let refusal = gc::plan(&world(NONE), &command, &asked("")).unwrap_err();
    assert_eq!(
        told(&refusal),
        "component nobody does not exist; known: cart, search"
    );
}
