//! Measures the read model with many objects: the memory per object, the time of a watch event, and the time
//! of a plan.
//!
//! The objects are 10,000 components in 5 environments, with 50,000 ReleasePins and 100,000 releases. A
//! second run with a hundredth of them shows how the numbers grow. Compare only ratios between machines, and
//! not the numbers.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use bowline::api::{Release, ReleasePin, labels};
use bowline::engine::plan::Asked;
use bowline::engine::world::{Event, Key, World};
use bowline::fixture;
use bowline::subjects::release_pin::actions::promote::{self, Promote};
use kube::ResourceExt;
use kube::api::PartialObjectMeta;
use serde_json::{Value, json};

const ENVIRONMENTS: [&str; 5] = [
    "development",
    "testing",
    "staging",
    "production-eu",
    "production-us",
];
const RELEASES: usize = 10;

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let counts: &[usize] = if measured { &[100, 10_000] } else { &[10] };
    let mut first = None;
    for &components in counts {
        let before = resident();
        let begun = Instant::now();
        let mut world = fill(components);
        let objects = components * (ENVIRONMENTS.len() + RELEASES);
        println!(
            "{components} components, {objects} objects: filled in {:.2} s, {:.0} bytes each",
            begun.elapsed().as_secs_f64(),
            resident().saturating_sub(before) as f64 / objects as f64
        );
        let event = events(&mut world, components, if measured { 100_000 } else { 10 });
        let plan = plans(&world, components, if measured { 10_000 } else { 10 });
        println!("  an event {event:.2} us, a plan of one promotion {plan:.2} us");
        let (event_before, plan_before) = *first.get_or_insert((event, plan));
        println!(
            "  ratio to the fewest: event {:.2}, plan {:.2}",
            event / event_before,
            plan / plan_before
        );
    }
    println!(
        "goals: at most 4,096 bytes an object, 20 us an event, ratio at most 3, a plan under 1,000 us"
    );
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

fn pin(component: usize, environment: &str, release: usize, generation: i64) -> ReleasePin {
    let component = format!("component-{component}");
    let outcomes: Vec<Value> = (1..=10)
        .map(|generation| {
            json!({
                "generation": generation, "release": format!("{component}-v{generation}"),
                "since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z", "healthy": true,
            })
        })
        .collect();
    let pin = fixture::pin(&component, environment, &format!("v{release}"));
    let mut pin = fixture::outcomes(pin, json!(outcomes));
    pin.metadata.generation = Some(generation);
    pin.status.as_mut().unwrap().observed_generation = Some(generation);
    pin.metadata.uid = pin.metadata.name.as_deref().map(uid);
    pin
}

fn uid(name: &str) -> String {
    format!("5d1c1f5e-0000-4000-8000-{name}")
}

fn release(component: usize, number: usize) -> PartialObjectMeta<Release> {
    let component = format!("component-{component}");
    let mut release = fixture::release(&component, &format!("v{number}"), number as u8);
    release.metadata.uid = release.metadata.name.as_deref().map(uid);
    let annotations = release.annotations_mut();
    for (name, value) in [
        (labels::SIZE, "25729".to_owned()),
        (
            labels::IMAGES,
            format!("registry.example/shop/{component}:v{number}"),
        ),
        (
            labels::CONTENT_HASH,
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
        ),
    ] {
        annotations.insert(name.to_owned(), value);
    }
    release
}

fn fill(components: usize) -> World {
    let mut world = fixture::world_of(&ENVIRONMENTS);
    for component in 0..components {
        for number in 0..RELEASES {
            world.releases(Event::Applied(release(component, number)));
        }
        for (at, environment) in ENVIRONMENTS.iter().enumerate() {
            world.pins(Event::Applied(pin(
                component,
                environment,
                RELEASES - 1 - at,
                3,
            )));
        }
    }
    world
}

/// Changes ReleasePins of many components in the read model. Returns the microseconds per event, without the
/// time to make the object.
fn events(world: &mut World, components: usize, rounds: usize) -> f64 {
    let mut seconds = 0.0;
    for round in 0..rounds {
        // The factor 7919 visits the components in an order that is bad for the CPU cache.
        let component = round.wrapping_mul(7919) % components;
        let moved = pin(
            component,
            ENVIRONMENTS[round % 5],
            round % RELEASES,
            4 + round as i64,
        );
        let begun = Instant::now();
        world.pins(Event::Applied(black_box(moved)));
        seconds += begun.elapsed().as_secs_f64();
    }
    seconds / rounds as f64 * 1e6
}

/// Plans promotions of many components. Returns the microseconds per plan.
fn plans(world: &World, components: usize, rounds: usize) -> f64 {
    let asked = Asked {
        operation: "op".to_owned(),
        now: "2026-01-06T00:00:00Z".parse().unwrap(),
        user: "ana".to_owned(),
        reason: Some("bench".to_owned()),
        namespace: "shop".to_owned(),
    };
    let mut planned = 0;
    let begun = Instant::now();
    for round in 0..rounds {
        let component = format!("component-{}", round.wrapping_mul(7919) % components);
        let command = Promote {
            components: vec![component.clone()],
            from: "development".to_owned(),
            to: "testing".to_owned(),
            unready: true,
            skip_path: false,
        };
        planned += usize::from(promote::plan(world, &command, &asked).is_ok());
        black_box(world.pin_of(&Key::new("shop", &component), "testing"));
    }
    assert_eq!(planned, rounds);
    begun.elapsed().as_secs_f64() / rounds as f64 * 1e6
}
