//! Measures how long the terminal UI takes for a key press and for a watch event, with many rows.
//!
//! The section "filter" uses 1 %, 10 % and 100 % of 100,000 components in three environments. The first
//! number of a filter is its slowest key press, because each key press parses the filter and applies it to
//! the rows. Compare only ratios between machines, and not the numbers.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use bowline::api::{Release, ReleasePin};
use bowline::engine::world::feed::Touched;
use bowline::engine::world::{Event, Key, Source, World};
use bowline::fixture;
use bowline::tui::filter::{Filter, read};
use bowline::tui::jump::Jump;
use bowline::tui::keymap::Keymap;
use bowline::tui::model::{Event as Happened, Look, Model, TargetInfo};
use bowline::tui::pen::UNICODE;
use bowline::tui::roster::{Kind, RowSet, Sort};
use bowline::tui::theme::Theme;
use bowline::tui::update::update;
use bowline::tui::view::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use kube::api::PartialObjectMeta;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

const ENVIRONMENTS: [&str; 3] = ["development", "staging", "production"];
const RELEASES: usize = 3;

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let counts: &[usize] = if measured {
        &[1_000, 10_000, 100_000]
    } else {
        &[50]
    };
    for &components in counts {
        let mut world = fill(components);
        rows(&mut world, components, if measured { 10_000 } else { 10 });
        filter(&world, components);
        jump(&world);
        frames(&world, components, if measured { 500 } else { 1 });
    }
    println!(
        "goals at 100,000 rows: a frame within 1.5 ms and 1.25 times that of 1,000, a key of the filter under 10 ms, an event under 100 us, a call of jump under 5 ms"
    );
}

/// Measures how long it takes to draw the matrix at 200x60. The cursor is on another row each time.
fn frames(world: &World, components: usize, count: u32) {
    let target_info = TargetInfo {
        address: Default::default(),
        name: "bench".to_owned(),
        namespace: "shop".to_owned(),
        user: "ana".to_owned(),
        readonly: None,
        protected: false,
        armed: None,
        simulated: false,
        repository: None,
        contexts: Vec::new(),
        namespaces: Vec::new(),
        rights: Default::default(),
        lacking: Default::default(),
        zone: jiff::tz::TimeZone::UTC,
    };
    let look = Look {
        theme: Theme::built_in("dark").unwrap(),
        keymap: Keymap::built_in("default").unwrap(),
        glyphs: &UNICODE,
        themes: Vec::new(),
    };
    let mut model = Model::new(target_info, look, (200, 60));
    let _ = update(&mut model, world, now(), Happened::World(Vec::new()));
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
    let down = KeyEvent::new(KeyCode::Down, KeyModifiers::NONE);
    let began = Instant::now();
    for _ in 0..count {
        let _ = update(&mut model, world, now(), Happened::Key(down));
        buffer.reset();
        black_box(view(&model, world, now(), &mut buffer));
    }
    let each = began.elapsed() / count;
    println!("{components} components: a key and its frame at 200x60 in {each:.2?}");
}

fn now() -> Timestamp {
    "2026-01-06T00:00:00Z".parse().unwrap()
}

/// Returns a component name as in real clusters: a few words and a number.
fn component(number: usize) -> String {
    let words = [
        "checkout", "cart", "ledger", "search", "notifier", "catalog", "Orders", "pricing",
    ];
    let parts = ["service", "api", "worker", "web", "sync"];
    let word = words[number % words.len()].to_lowercase();
    format!("{word}-{}-{number}", parts[number % parts.len()])
}

fn uid(name: &str) -> String {
    format!("5d1c1f5e-0000-4000-8000-{name}")
}

fn pin(number: usize, environment: &str, release: usize, ready: bool) -> ReleasePin {
    let pin = fixture::pin(&component(number), environment, &format!("v1.{release}.0"));
    let mut pin = fixture::labelled(pin, "team", &format!("team-{}", number % 20));
    let name = pin.spec.release_ref.name.clone();
    let since = format!("2026-01-0{}T00:00:00Z", 1 + number % 5);
    let mut outcome = fixture::outcome(3, &name, &since);
    outcome["healthy"] = ready.into();
    if !ready {
        pin = fixture::unready(pin, "Degraded", "2 of 5 ready", "10:00:00");
    }
    let mut pin = fixture::outcomes(pin, json!([outcome]));
    pin.metadata.uid = pin.metadata.name.as_deref().map(uid);
    pin
}

fn release(number: usize, release: usize) -> PartialObjectMeta<Release> {
    let version = format!("v1.{release}.0");
    let mut release = fixture::release(&component(number), &version, release as u8);
    release.metadata.uid = release.metadata.name.as_deref().map(uid);
    release
}

fn fill(components: usize) -> World {
    let mut world = fixture::world_of(&ENVIRONMENTS);
    for number in 0..components {
        for made in 0..RELEASES {
            world.releases(Event::Applied(release(number, made)));
        }
        for (at, environment) in ENVIRONMENTS.iter().enumerate() {
            let made = pin(number, environment, RELEASES - 1 - at, number % 100 != 0);
            world.pins(Event::Applied(made));
        }
    }
    world
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// Measures how long it takes to build all rows, to handle an event, and to build the rows of one screen.
fn rows(world: &mut World, components: usize, rounds: usize) {
    let mut roster = RowSet::new(Kind::Components, Some("shop"), "ana");
    let begun = Instant::now();
    roster.rebuild(world, now());
    let rebuilt = milliseconds(begun);
    let begun = Instant::now();
    roster.set_sort(Sort::Health, false);
    let sorted = milliseconds(begun);
    let mut seconds = 0.0;
    for round in 0..rounds {
        let number = round.wrapping_mul(7919) % components;
        let moved = pin(number, "production", round % RELEASES, round % 3 == 0);
        let touched = Touched {
            source: Source::RELEASE_PINS,
            key: Some(Key::new("shop", moved.metadata.name.as_deref().unwrap())),
            component: Some(component(number).into()),
        };
        world.pins(Event::Applied(moved));
        let begun = Instant::now();
        black_box(roster.touch(world, &touched, now()));
        seconds += begun.elapsed().as_secs_f64();
    }
    let event = seconds / rounds as f64 * 1e6;
    let begun = Instant::now();
    for round in 0..rounds {
        black_box(roster.window(round % components, 60).count());
    }
    let window = begun.elapsed().as_secs_f64() / rounds as f64 * 1e6;
    println!(
        "{components} rows: made in {rebuilt:.1} ms, sorted in {sorted:.1} ms, an event {event:.1} us, 60 rows {window:.1} us"
    );
}

/// Measures filters that a user types letter by letter, and filters that are set as a whole.
fn filter(world: &World, components: usize) {
    let mut roster = RowSet::new(Kind::Components, Some("shop"), "ana");
    roster.rebuild(world, now());
    for text in [
        "checkout-api",
        "zzz",
        "v1.2.0 web",
        "!cart",
        "re:^ledger-w.*7$",
        "health:degraded behind:>0",
        "-l team=team-7",
        "release:v1.1*",
    ] {
        roster.set_filter(Filter::default());
        let mut slowest: f64 = 0.0;
        let mut total = 0.0;
        for (end, _) in text.char_indices().skip(1).chain([(text.len(), ' ')]) {
            let begun = Instant::now();
            roster.set_filter(read(&text[..end]).filter);
            let taken = milliseconds(begun);
            slowest = slowest.max(taken);
            total += taken;
        }
        let shown = roster.len();
        // Sets the whole filter at once, as when a user pastes it.
        roster.set_filter(Filter::default());
        roster.set_filter(read("zzzz").filter);
        let begun = Instant::now();
        roster.set_filter(read(text).filter);
        println!(
            "  filter {text:?} over {components}: slowest key {slowest:.2} ms, mean {:.2} ms, anew {:.2} ms, {shown} shown",
            total / text.chars().count() as f64,
            milliseconds(begun)
        );
    }
}

fn jump(world: &World) {
    let begun = Instant::now();
    let mut jump = Jump::new(world, Some("shop"), ["matrix"], ["prod"]);
    let opened = milliseconds(begun);
    let mut slowest: f64 = 0.0;
    let mut calls = 0;
    for query in ["c", "ch", "chk", "chk7", "chk77"] {
        jump.ask(query);
        loop {
            let begun = Instant::now();
            let more = jump.work(world, 4_000);
            slowest = slowest.max(milliseconds(begun));
            calls += 1;
            if !more {
                break;
            }
        }
    }
    let (fits, all) = jump.counts();
    println!(
        "  jump over {all}: opened in {opened:.1} ms, {calls} calls, slowest {slowest:.2} ms, {fits} fit"
    );
}
