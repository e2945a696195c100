//! Tests that the command in the hint of each refusal works.

use super::*;

fn rolled_back(to: Target, change: impl FnOnce(&mut World)) -> Result<Plan, Vec<Refusal>> {
    let command = Rollback {
        component: "cart".to_owned(),
        environment: "staging".to_owned(),
        to,
        hold: true,
        recorded: Vec::new(),
        controller: ControllerStatus::Runs,
    };
    rollback::plan(&world(change), &command, &asked("")).map_err(|refusal| vec![refusal])
}

#[test]
fn a_rollback_names_the_healthy_releases_that_are_marked_bad() {
    let mark = |world: &mut World, name: &str, day: u8, mark: &str| {
        let mark = json!({"bowline.dev/mark": mark});
        world.releases(Event::Applied(release(name, "cart", day, mark)));
    };
    let ran = [
        (1, "cart-1", true),
        (2, "cart-1", true),
        (3, "cart-2", true),
    ];
    let by_bob = r#"{"verdict":"bad","by":"bob","at":"2026-01-02T03:04:05Z","note":"leaks"}"#;
    compare(
        "all are bad",
        rolled_back(Target::LastGood, |world| {
            let pin = pin("cart", "staging", "cart-3", moves(&ran));
            world.pins(Event::Applied(pin));
            mark(world, "cart-1", 1, by_bob);
            mark(world, "cart-2", 2, "bad");
        }),
        "cart has no release to roll back to in staging: the earlier releases that were healthy are marked bad: cart-2, cart-1 (by bob: leaks) | if cart-2 is good: bowline mark good cart-2 --reason TEXT | otherwise choose a release with --to RELEASE, from: bowline history cart -e staging",
    );
    compare(
        "an unhealthy release is not named",
        rolled_back(Target::LastGood, |world| {
            let ran = moves(&[(1, "cart-1", false)]);
            world.pins(Event::Applied(pin("cart", "staging", "cart-3", ran)));
            mark(world, "cart-1", 1, by_bob);
        }),
        "cart has no release to roll back to in staging: no earlier release was healthy when it was replaced | choose a release…",
    );
}

#[test]
fn a_rollback_says_which_newer_releases_it_skips_and_why() {
    let ran = moves(&[
        (1, "cart-1", true),
        (2, "cart-0", true),
        (3, "cart-2", true),
        (4, "cart-3", true),
        (5, "cart-2", true),
    ]);
    let plan = rolled_back(Target::LastGood, |world| {
        let marked = json!({"bowline.dev/mark": "bad"});
        world.releases(Event::Applied(release("cart-0", "cart", 1, marked)));
        world.pins(Event::Applied(pin("cart", "staging", "cart-2", ran)));
    });
    let change = plan.unwrap().changes.remove(0);
    assert_eq!(change.to.name, "cart-1");
    assert_eq!(
        change.warnings,
        [
            "skips cart-3: staging went back from it to cart-2",
            "skips cart-0, which is marked bad"
        ]
    );
}

#[test]
fn a_rollback_warns_about_a_release_that_was_unhealthy_when_it_was_replaced() {
    let ran = [
        (1, "cart-1", false),
        (2, "cart-1", true),
        (3, "cart-2", false),
    ];
    let to = |target: Target| {
        let plan = rolled_back(target, |world| {
            let pin = pin("cart", "staging", "cart-3", moves(&ran));
            world.pins(Event::Applied(pin));
        });
        plan.unwrap().changes.remove(0).warnings
    };
    let warning = "release cart-2 was unhealthy in staging when it was replaced";
    assert_eq!(to(Target::Release("cart-2".to_owned())), [warning]);
    assert_eq!(to(Target::Revision(3)), [warning]);
    assert_eq!(to(Target::Release("cart-1".to_owned())), [] as [&str; 0]);
    let skips = "skips cart-2, which was unhealthy in staging when it was replaced";
    assert_eq!(to(Target::LastGood), [skips]);
}

#[test]
fn the_hint_about_a_missing_deployment_follows_the_pipeline() {
    let without = |gone: &[&str]| {
        world(|world| {
            for environment in gone {
                let pin = pin("cart", environment, "cart-1", json!({}));
                world.pins(Event::Deleted(pin));
            }
        })
    };
    let promote = "bowline promote cart --from";
    for (gone, environment, expected) in [
        (
            &["prod"][..],
            "prod",
            format!("to deploy it there: {promote} staging --to prod --reason TEXT"),
        ),
        (
            &["prod", "staging"],
            "prod",
            format!("to deploy it there, begin with: {promote} dev --to staging"),
        ),
        (
            &["prod", "staging", "dev"],
            "prod",
            "to deploy it there, begin with: bowline deploy cart -e dev".to_owned(),
        ),
        (
            &["dev"],
            "dev",
            "to deploy it there: bowline deploy cart -e dev".to_owned(),
        ),
    ] {
        let world = without(gone);
        let asked = asked("");
        let pinned = PinHold {
            component: "cart".to_owned(),
            environment: environment.to_owned(),
            until: None,
            release: None,
        };
        let found = pin::plan_pin(&world, &pinned, &asked).map_err(|refusal| vec![refusal]);
        let expected = format!("cart is not deployed in {environment} | {expected}");
        compare(environment, found, &expected);
    }
}

#[test]
fn several_holds_are_named_by_their_ids() {
    let held: Change = |world| {
        let holds = json!({"spec": {"holds": [
            {"id": "hold-1", "owner": "bob", "reason": "INC-42", "since": "2026-01-03T00:00:00Z"},
            {"id": "hold-2", "owner": "cleo", "since": "2026-01-03T00:00:01Z", "until": "2026-01-07T00:00:00Z"},
            {"id": "hold-3", "owner": "dan", "since": "2026-01-03T00:00:02Z", "until": "2026-01-04T00:00:00Z"},
        ]}});
        world.pins(Event::Applied(pin("cart", "staging", "cart-2", holds)));
    };
    let unpin = Unpin {
        component: "cart".to_owned(),
        environment: "staging".to_owned(),
        hold: None,
    };
    compare(
        "unpin",
        pin::plan_unpin(&world(held), &unpin, &asked("")).map_err(|refusal| vec![refusal]),
        "cart has 3 holds in staging: name one\n  hold-1: bob, INC-42\n  hold-2: cleo, until 2026-01-07T00:00:00Z\n  hold-3: dan, until 2026-01-04T00:00:00Z | add --hold ID",
    );
    let promotion = Promote {
        components: vec!["cart".to_owned()],
        from: "dev".to_owned(),
        to: "staging".to_owned(),
        unready: false,
        skip_path: false,
    };
    compare(
        "promote",
        promote::plan(&world(held), &promotion, &asked("")),
        "cart in staging is held at cart-2 (bob, INC-42; cleo, until 2026-01-07T00:00:00Z) | bowline unpin cart -e staging --hold hold-1 | bowline unpin cart -e staging --hold hold-2",
    );
}

#[test]
fn a_version_names_the_only_release_of_the_component_that_has_it() {
    let versioned = |world: &mut World, name: &str, component: &str, version: &str| {
        let version = json!({"bowline.dev/version": version});
        world.releases(Event::Applied(release(name, component, 1, version)));
    };
    let to = |said: &str| {
        let plan = rolled_back(Target::Release(said.to_owned()), |world| {
            versioned(world, "cart-1", "cart", "v1");
            versioned(world, "search-1", "search", "v1");
            versioned(world, "cart-8", "cart", "v8");
            versioned(world, "cart-9", "cart", "v8");
        });
        plan.map(|plan| plan.changes[0].to.name.clone())
            .map_err(|refusals| refusals[0].to_string())
    };
    assert_eq!(to("v1").as_deref(), Ok("cart-1"));
    assert_eq!(to("cart-1").as_deref(), Ok("cart-1"));
    assert!(to("v8").unwrap_err().contains("release v8 does not exist"));
    let deploy = Deploy {
        component: "cart".to_owned(),
        environment: "dev".to_owned(),
        release: "v1".to_owned(),
        skip_path: false,
    };
    let world = world(|world| versioned(world, "cart-1", "cart", "v1"));
    let plan = deploy::plan(&world, &deploy, &asked("")).unwrap();
    assert_eq!(plan.changes[0].to.name, "cart-1");
}

#[test]
fn the_hint_about_a_hold_in_production_has_the_reason_that_it_needs() {
    for (environment, expected) in [
        ("staging", "bowline unpin cart -e staging"),
        ("prod", "bowline unpin cart -e prod --reason TEXT"),
    ] {
        let world = world(|world| {
            let held = hold("h", None, None);
            world.pins(Event::Applied(pin("cart", environment, "cart-1", held)));
        });
        let command = Promote {
            components: vec!["cart".to_owned()],
            from: if environment == "prod" {
                "staging"
            } else {
                "dev"
            }
            .to_owned(),
            to: environment.to_owned(),
            unready: true,
            skip_path: false,
        };
        let refusals = promote::plan(&world, &command, &asked("ok")).unwrap_err();
        assert_eq!(refusals[0].hints(&str::to_owned), [expected]);
    }
}
