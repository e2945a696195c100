use serde_json::{Value, json};

use super::*;
use crate::engine::diff::{Options, WHOLE, diff};
use crate::engine::world::Event as Watched;
use crate::engine::world::fixture::{self, at, now, pin, world};
use crate::tui::effect::Half;
use crate::tui::model::{self, Model};
use crate::tui::screens::Screen;
use crate::tui::screens::history::tests::shop;
use crate::tui::testing::{golden, listed, model, press, seen};
use crate::tui::update::update;

fn deployment(version: &str, pool: &str, replicas: u8) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "checkout-service", "labels": {
            "app.kubernetes.io/name": "checkout-service", "app.kubernetes.io/version": version,
        }},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app.kubernetes.io/name": "checkout-service"}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "checkout-service"}},
                "spec": {
                    "containers": [{
                        "name": "web",
                        "image": format!("registry.example/shop/checkout:{version}"),
                        "args": ["serve", "--listen=0.0.0.0:8080"],
                        "env": [
                            {"name": "CACHE_TTL", "value": "30s"},
                            {"name": "LOG_LEVEL", "value": "info"},
                            {"name": "POOL", "value": pool},
                            {"name": "REGION", "value": "eu-west-1"},
                            {"name": "TRACE", "value": "off"},
                        ],
                        "ports": [{"containerPort": 8080, "name": "http"}],
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
                        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                    }],
                    "serviceAccountName": "checkout",
                    "terminationGracePeriodSeconds": 30,
                },
            },
        },
    })
}

fn flags(flow: Option<&str>) -> Value {
    let mut map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "checkout-flags"},
        "data": {"banner": "none", "currency": "EUR", "express": "on", "vouchers": "off"},
    });
    if let Some(flow) = flow {
        map["data"]["new-flow"] = flow.into();
    }
    map
}

fn compare() -> Compare {
    let named = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": {"port": 80}});
    let token = |text: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "checkout-token"}, "data": {"token": text}});
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "checkout-service"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app.kubernetes.io/name": "checkout-service"}}},
    });
    let before = [
        deployment("v1.2.1", "20", 2),
        flags(None),
        named("Service", "checkout-service"),
        token("b2xk"),
    ];
    let after = [
        deployment("v1.2.3", "40", 5),
        flags(Some("on")),
        named("Service", "checkout-service"),
        token("bmV3"),
        budget,
    ];
    let options = Options {
        context: WHOLE,
        ..Options::default()
    };
    let half = |environment: &str, version: &str, read: &str| Half {
        what: format!("checkout-service in {environment}, release checkout-service-{version}"),
        read: at(read),
    };
    Compare {
        before: half("staging", "v1.2.1", "13:59:58"),
        after: half("production", "v1.2.3", "13:59:59"),
        diff: diff(&before, &after, &options),
        notes: vec![
            "their own namespaces, shop-staging and shop-production, are left out".to_owned(),
        ],
    }
}

/// A model with a diff in front, asked for from the matrix.
fn opened(world: &World, compare: Compare) -> Model {
    let mut model = model();
    listed(&mut model, world, now());
    let effects = press(&mut model, world, now(), "d");
    let ticket = asked(&effects).unwrap().0;
    answer(&mut model, world, ticket, Ok(Box::new(compare)));
    model
}

fn asked(effects: &[Effect]) -> Option<(Ticket, &Comparison)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Compare(ticket, comparison) => Some((*ticket, &**comparison)),
        _ => None,
    })
}

fn answer(model: &mut Model, world: &World, ticket: Ticket, found: Result<Box<Compare>, String>) {
    let event = model::Event::Answer(ticket, Answer::Compared(found));
    update(model, world, now(), event);
}

fn state(model: &Model) -> &State {
    match model.front() {
        Screen::Diff(state) => state,
        other => panic!("{} is in front", other.title()),
    }
}

/// What the row under the cursor says.
fn under(model: &Model) -> String {
    let state = state(model);
    let Stage::Shown(shown) = &state.stage else {
        return String::new();
    };
    let objects = &shown.compare.diff.objects;
    match &shown.rows.rows[state.cursor] {
        Row::Object(at) => objects[*at].identity.to_string(),
        Row::Fold { count, path, .. } => format!("{count} folded {path}"),
        Row::Gap(_) => String::new(),
        Row::Line(spot) => {
            let hunk = &objects[spot.object].hunks[spot.hunk];
            let at = spot.before.or(spot.after).unwrap() as usize;
            hunk.text(&hunk.lines[at]).trim().to_owned()
        }
    }
}

#[test]
fn golden_screens() {
    let world = shop();
    let mut model = opened(&world, compare());
    press(&mut model, &world, now(), "o n n");
    golden("diff", &mut model, &world, now());
}

#[test]
fn golden_screens_unified_and_unfolded() {
    let world = shop();
    let mut coarse = compare();
    coarse.diff.coarse =
        Some("the deadline passed: 1 of 5 objects are compared in whole blocks".to_owned());
    let mut model = opened(&world, coarse);
    press(&mut model, &world, now(), "u o j enter");
    golden("diff-unified", &mut model, &world, now());
}

#[test]
fn a_place_is_compared_with_the_one_before_or_with_what_was_good_or_with_what_is_there() {
    let mut world = world();
    let moved = fixture::outcomes(
        pin("cart", "development", "v2"),
        json!([
            {"generation": 1, "release": "cart-v1", "since": at("09:00:00"), "until": at("10:00:00"), "healthy": true},
            {"generation": 2, "release": "cart-v2", "since": at("10:00:00")},
        ]),
    );
    for release in [
        fixture::release("cart", "v1", 1),
        fixture::release("cart", "v2", 2),
    ] {
        world.releases(Watched::Applied(release));
    }
    world.pins(Watched::Applied(moved));
    world.pins(Watched::Applied(pin("cart", "staging", "v1")));
    world.pins(Watched::Applied(pin("alone", "production", "v1")));
    for (component, environment, expected) in [
        (
            "cart",
            "staging",
            Ok("bowline diff cart --from development --to staging"),
        ),
        (
            "cart",
            "development",
            Ok("bowline diff cart --environment development --from-revision 1 --to-revision 2"),
        ),
        (
            "alone",
            "production",
            Ok("bowline diff alone --environment production --live"),
        ),
        (
            "cart",
            "production",
            Err("cart is not deployed in production"),
        ),
    ] {
        let place = Place::new(component, environment);
        let found = of_place(&world, "shop", &place, now());
        let found = found.map(|compared| compared.command_line());
        assert_eq!(
            found,
            expected.map(str::to_owned).map_err(str::to_owned),
            "{component} {environment}"
        );
    }
}

#[test]
fn keys_go_from_change_to_change() {
    let world = shop();
    for (keys, expected) in [
        ("n", "app.kubernetes.io/version: v1.2.1"),
        ("n n", "replicas: 2"),
        ("o", "Deployment.apps checkout-service"),
        ("o O", "ConfigMap checkout-flags"),
        (
            "o n n n n N",
            "image: registry.example/shop/checkout:v1.2.1",
        ),
        ("g g", "ConfigMap checkout-flags"),
        ("g g o o", "PodDisruptionBudget.policy checkout-service"),
        ("o j", "4 folded metadata.labels"),
        // Unfolded, and folded again from inside.
        ("o j z", "apiVersion: apps/v1"),
        ("o j z j z", "4 folded metadata.labels"),
        // The name of an object folds all of it.
        ("o z n", "apiVersion: policy/v1"),
        ("o z z n", "app.kubernetes.io/version: v1.2.1"),
        // The cursor stays with its line in another layout.
        ("o n n n u", "image: registry.example/shop/checkout:v1.2.1"),
        (
            "o n n n u u",
            "image: registry.example/shop/checkout:v1.2.1",
        ),
    ] {
        let mut model = opened(&world, compare());
        assert_eq!(under(&model), "new-flow: \"on\"", "the first change");
        press(&mut model, &world, now(), keys);
        assert_eq!(under(&model), expected, "{keys}");
    }
    let mut model = opened(&world, compare());
    press(&mut model, &world, now(), "N");
    let said = model.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("there is no hunk before this one"));
}

#[test]
fn noise_is_asked_for_and_what_is_read_stays_until_it_comes() {
    let world = shop();
    let mut model = opened(&world, compare());
    let effects = press(&mut model, &world, now(), "o w");
    let (ticket, comparison) = asked(&effects).unwrap();
    assert!(comparison.noise);
    assert!(seen(&mut model, &world, now(), (120, 40)).contains("reading again"));
    answer(&mut model, &world, ticket, Ok(Box::new(compare())));
    // The object stays, and its first change is found again.
    assert_eq!(under(&model), "app.kubernetes.io/version: v1.2.1");
    assert!(seen(&mut model, &world, now(), (120, 40)).contains("with noise"));
    let effects = press(&mut model, &world, now(), "w");
    assert!(!asked(&effects).unwrap().1.noise);
}

#[test]
fn what_is_copied_is_a_patch_and_a_command() {
    let world = shop();
    let mut model = opened(&world, compare());
    let effects = press(&mut model, &world, now(), "y Y");
    let copied: Vec<&str> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Copy(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let [patch, command] = copied.as_slice() else {
        panic!("{copied:?}");
    };
    assert!(
        patch.starts_with("--- a/core/ConfigMap/checkout-flags\n"),
        "{patch}"
    );
    assert!(!patch.contains("terminationGracePeriodSeconds"), "{patch}");
    assert!(
        !patch.contains("b2xk") && !patch.contains("bmV3"),
        "{patch}"
    );
    assert_eq!(
        *command,
        "bowline diff checkout-service --from staging --to production"
    );
}

#[test]
fn what_cannot_be_compared_says_why() {
    let world = shop();
    let mut model = model();
    listed(&mut model, &world, now());
    let effects = press(&mut model, &world, now(), "d");
    let (ticket, _) = asked(&effects).unwrap();
    let screen = seen(&mut model, &world, now(), (80, 24));
    assert!(screen.contains("both sides are being read"), "{screen}");
    answer(
        &mut model,
        &world,
        ticket,
        Err("the target is away".to_owned()),
    );
    let screen = seen(&mut model, &world, now(), (80, 24));
    assert!(screen.contains("the target is away"), "{screen}");
    press(&mut model, &world, now(), "esc");
    assert_eq!(model.stack.len(), 1);
}

#[test]
fn a_large_diff_is_laid_out_once_and_a_frame_looks_at_what_it_shows() {
    let lines = |word: &str| -> String { (0..20_000).map(|n| format!("{word} {n}\n")).collect() };
    let map = |text: String| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"file": text}});
    let mut large = compare();
    let options = Options {
        context: WHOLE,
        ..Options::default()
    };
    large.diff = diff(&[map(lines("a"))], &[map(lines("b"))], &options);
    let world = shop();
    let mut model = opened(&world, large);
    press(&mut model, &world, now(), "G");
    assert!(seen(&mut model, &world, now(), (200, 60)).contains("b 19999"));
    let Screen::Diff(state) = model.front() else {
        panic!("no diff");
    };
    let Stage::Shown(shown) = &state.stage else {
        panic!("nothing is shown");
    };
    assert_eq!(shown.rows.rows.len(), 1 + 1 + 3 + 20_000);
}
