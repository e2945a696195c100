use serde_json::{Value, json};

use super::view::{change, hidden};
use super::*;
use crate::effect::Half;
use crate::engine::diff::{Options, WHOLE, diff};
use crate::engine::world::Event as Watched;
use crate::fixture::{self, at, now, pin, world};
use crate::model::{self, Model};
use crate::screens::Screen;
use crate::screens::history::tests::{press, shop, tell};
use crate::snapshot_test::{LARGE_SIZES, LOOKS, SnapshotTest};
use crate::text;

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

pub(in crate::screens) fn compare() -> Compare {
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
            "the namespaces of the environments, shop-staging and shop-production, are not compared".to_owned(),
        ],
    }
}

/// Opens a diff from the matrix; the runner answers with this comparison.
pub(in crate::screens) fn opened(compare: Compare) -> SnapshotTest {
    let mut still = SnapshotTest::of(shop());
    let effects = press(&mut still, "d");
    let ticket = asked(&effects).unwrap().0;
    answer(&mut still, ticket, Ok(Box::new(compare)));
    still
}

fn asked(effects: &[Effect]) -> Option<(Ticket, &Comparison)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Compare(ticket, comparison) => Some((*ticket, &**comparison)),
        _ => None,
    })
}

fn answer(still: &mut SnapshotTest, ticket: Ticket, found: Result<Box<Compare>, String>) {
    tell(still, model::Event::Answer(ticket, Answer::Compared(found)));
}

fn state(model: &Model) -> &State {
    match model.front() {
        Screen::Diff(state) => state,
        other => panic!("{} is in front", other.title()),
    }
}

/// Returns the text of the row under the cursor.
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
    let still = opened(compare()).keys("o o n n");
    still.golden_in("diff", &LARGE_SIZES, &LOOKS);
}

#[test]
fn the_changed_end_of_a_long_line_is_in_sight_on_both_sides() {
    for (width, height) in LARGE_SIZES {
        let still = opened(compare()).tell(model::Event::Resize(width, height));
        let mut seen = String::new();
        let mut still = still;
        for _ in 0..60 {
            seen += &still.screen();
            still = still.keys("j");
        }
        for end in [":v1.2.1", ":v1.2.3"] {
            assert!(seen.contains(end), "{width}x{height} {end}:\n{seen}");
        }
    }
}

#[test]
fn a_change_far_to_the_right_is_brought_into_sight() {
    let long = |end: &str| format!("{}{end}", "x".repeat(100));
    let wide = |text: &str| text::width(text);
    for (before, after, room) in [
        (long("1"), long("2"), 20),
        (long("1 and the same tail"), long("2 and the same tail"), 20),
        (long(&"1".repeat(50)), long(&"2".repeat(50)), 20),
        ("a: 1".to_owned(), "a: 2".to_owned(), 20),
        (long(""), long("new"), 20),
    ] {
        let change = change(&before, &after);
        let hidden = hidden(&before, &change, room);
        let start = wide(&before[..change.start]);
        // One of the hidden columns is used for the dots that mark hidden text.
        assert!(
            start >= hidden && start <= hidden + room,
            "{before} {hidden}"
        );
        let end = wide(&before[..change.end]);
        // If a line is cut at the right, its last column shows dots. The changed word is visible to its end.
        match hidden > 0 {
            true => assert!(end + 5 > room, "{before}"),
            false => assert!(end <= room, "{before}"),
        }
    }
}

#[test]
fn a_cut_line_ends_with_dots_at_every_width() {
    let settings = |ttl: &str| {
        let value = format!("A_FIRST_SETTING=some-long-value;CART_TTL={ttl};LOG_LEVEL=info");
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cart"}, "data": {"settings": value}})
    };
    let options = Options {
        context: WHOLE,
        lines: true,
        ..Options::default()
    };
    let found = diff(&[settings("24h")], &[settings("72h")], &options);
    let mut compare = compare();
    compare.diff = found;
    let mut still = opened(compare);
    for width in 60..140 {
        still = still.tell(model::Event::Resize(width, 24));
        let screen = still.screen();
        for ttl in ["24h", "72h"] {
            let whole = format!("{ttl};LOG_LEVEL=info");
            let line = screen.lines().find(|line| line.contains(ttl)).unwrap();
            let (_, rest) = line.split_once(ttl).unwrap();
            let rest = rest
                .split(['\u{2502}', '-', '+'])
                .next()
                .unwrap_or_default();
            assert!(
                line.contains(&whole) || rest.contains('…'),
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn golden_screens_unified_and_unfolded() {
    let mut coarse = compare();
    coarse.diff.coarse =
        Some("deadline exceeded: 1 of 5 objects are compared as whole blocks".to_owned());
    opened(coarse).keys("u o o j enter").golden("diff-unified");
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
        let place = CellKey::new(component, environment);
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
    for (keys, expected) in [
        // The diff starts with the object that has the most important change: here the workload, because its image
        // changes.
        ("n", "replicas: 2"),
        ("o n", "new-flow: \"on\""),
        ("o o n", "token: \"***\""),
        ("o", "ConfigMap checkout-flags"),
        ("o o", "Secret checkout-token"),
        ("o O", "Deployment.apps checkout-service"),
        ("g g n n n n N", "value: \"20\""),
        ("g g", "Deployment.apps checkout-service"),
        ("g g o o o", "PodDisruptionBudget.policy checkout-service"),
        ("g g o j", "2 folded data"),
        // Unfold the lines, then fold them again with the cursor on one of them.
        ("g g o j z", "apiVersion: v1"),
        ("g g o j z j z", "2 folded data"),
        // On the title of an object, the key folds the whole object.
        ("g g o o z n", "apiVersion: policy/v1"),
        ("g g z z n", "app.kubernetes.io/version: v1.2.1"),
        // After a change of the layout, the cursor stays on its line.
        (
            "g g n n n n u",
            "image: registry.example/shop/checkout:v1.2.1",
        ),
        (
            "g g n n n n u u",
            "image: registry.example/shop/checkout:v1.2.1",
        ),
    ] {
        let mut still = opened(compare());
        let first = "app.kubernetes.io/version: v1.2.1";
        assert_eq!(under(&still.model), first, "the first change");
        press(&mut still, keys);
        assert_eq!(under(&still.model), expected, "{keys}");
    }
    let mut still = opened(compare());
    press(&mut still, "N");
    let said = still
        .model
        .notice
        .as_ref()
        .map(|notice| notice.text.as_str());
    assert_eq!(said, Some("there is no previous hunk"));
}

#[test]
fn noise_is_asked_for_and_what_is_read_stays_until_it_comes() {
    let mut still = opened(compare());
    let effects = press(&mut still, "o w");
    let (ticket, comparison) = asked(&effects).unwrap();
    assert!(comparison.noise);
    assert!(still.screen().contains("loading again"));
    answer(&mut still, ticket, Ok(Box::new(compare())));
    // After the comparison is read again, the cursor stays on its object, on the object's first change.
    assert_eq!(under(&still.model), "new-flow: \"on\"");
    assert!(still.screen().contains("with noise"));
    let effects = press(&mut still, "w");
    assert!(!asked(&effects).unwrap().1.noise);
}

#[test]
fn what_is_copied_is_a_patch_and_a_command() {
    let mut still = opened(compare());
    let effects = press(&mut still, "y Y");
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
        "bowline diff checkout-service --from staging --to production --context prod-eu --kubeconfig /home/ana/.kube/config --namespace shop"
    );
}

#[test]
fn what_cannot_be_compared_says_why() {
    let mut still = SnapshotTest::of(shop());
    let effects = press(&mut still, "d");
    let (ticket, _) = asked(&effects).unwrap();
    let screen = still.screen();
    assert!(
        screen.contains("Loading and rendering both sides"),
        "{screen}"
    );
    answer(&mut still, ticket, Err("the target is away".to_owned()));
    let screen = still.screen();
    assert!(screen.contains("the target is away"), "{screen}");
    press(&mut still, "esc");
    assert_eq!(still.model.stack.len(), 1);
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
    let mut still = opened(large);
    press(&mut still, "G");
    assert!(still.screen().contains("b 19999"), "{}", still.screen());
    let Screen::Diff(state) = still.model.front() else {
        panic!("no diff");
    };
    let Stage::Shown(shown) = &state.stage else {
        panic!("nothing is shown");
    };
    assert_eq!(shown.rows.rows.len(), 1 + 3 + 20_000 + 3);
}
