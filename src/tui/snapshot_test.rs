//! Snapshot tests: a test presses keys on a model with fixed data and a fixed time, and compares
//! the screen with a file.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

use super::effect::{Answer, Effect, Previews, Ticket};
use super::keymap::{Key, Keymap};
use super::model::{Event, Look, Model, TargetInfo};
use super::theme::{self, Depth, Theme};
use super::update::update;
use super::view::view;
use super::{pen, picture};
use crate::api::bowline::audit::{Action, ContentRef};
use crate::connect::{Address, Known};
use crate::engine::controller_status::ControllerStatus;
use crate::engine::diff;
use crate::engine::plan::Asked;
use crate::engine::revisions::{Cause, Revision, Revisions, Row, State};
use crate::engine::world::{Event as Told, World};
use crate::fixture::{self, outcomes, pin, release, unready};
use crate::subjects::release_pin::actions::rollback::{self, Rollback, Target};
use crate::subjects::release_pin::planner::ActionPlan;
use crate::subjects::release_pin::revisions::Pinned;
use crate::subjects::service::PlannedCommand;

/// The terminal sizes in which every screen is compared.
pub const SIZES: [(u16, u16); 4] = [(200, 60), (120, 40), (80, 24), (40, 10)];

/// The terminal sizes for golden files of plans and of the matrix.
pub const LARGE_SIZES: [(u16, u16); 4] = [(200, 60), (120, 36), (80, 24), (40, 10)];
/// The themes for golden files of plans and of the matrix. The golden file in monochrome is the
/// easiest to read.
pub const LOOKS: [(&str, Depth); 3] = [
    ("dark", Depth::True),
    ("light", Depth::True),
    ("monochrome", Depth::Mono),
];

/// A model with fixed data. Time passes and objects change only if the test says so.
pub struct SnapshotTest {
    pub world: World,
    pub model: Model,
    /// All effects that the model has returned so far.
    pub effects: Vec<Effect>,
    pub now: Timestamp,
}

/// Returns the description of a connected cluster, for user ana and namespace shop.
pub fn target_info() -> TargetInfo {
    TargetInfo {
        name: "prod-eu".to_owned(),
        address: Address::of_context("prod-eu", "/home/ana/.kube/config", "shop"),
        namespace: "shop".to_owned(),
        user: "ana".to_owned(),
        readonly: None,
        protected: false,
        armed: None,
        simulated: false,
        repository: None,
        contexts: ["prod-eu", "prod-us"].map(known).into(),
        namespaces: Vec::new(),
        rights: Default::default(),
        lacking: Default::default(),
        zone: TimeZone::UTC,
    }
}

/// Returns a kubeconfig context; all its data except the name is fixed.
pub fn known(name: &str) -> Known {
    Known {
        name: name.to_owned(),
        cluster: name.to_owned(),
        namespace: "shop".to_owned(),
        user: "ana".to_owned(),
        ..Known::default()
    }
}

/// Loads a built-in theme, the default keymap and the Unicode characters.
pub fn look(theme: &str, depth: Depth) -> Look {
    Look {
        theme: Theme::built_in(theme).unwrap().at(depth),
        keymap: Keymap::built_in("default").unwrap(),
        glyphs: &pen::UNICODE,
        themes: theme::available(None),
    }
}

/// Returns a read model with some components: one fails in production, one is rolling out, and one
/// is held.
pub fn fleet() -> World {
    let mut world = fixture::world();
    for (component, versions) in [
        (
            "checkout-service",
            &["v1.2.1", "v1.2.2", "v1.2.3", "v1.2.4"][..],
        ),
        ("cart", &["v0.8.6", "v0.8.7", "v0.9.0"]),
        ("ledger", &["v3.0.8", "v3.0.9", "v3.1.0"]),
        ("search", &["v7.6.4", "v7.7.0", "v7.7.1"]),
        ("notifier", &["v2.0.0"]),
    ] {
        for (minute, version) in (1..).zip(versions) {
            world.releases(Told::Applied(release(component, version, minute)));
        }
    }
    let mut bad = release("checkout-service", "v1.2.2", 2);
    let mark = json!({"verdict": "bad", "by": "tom", "at": "2026-11-16T09:00:00Z", "note": "leaks connections"});
    let annotations = bad.metadata.annotations.get_or_insert_default();
    annotations.insert("bowline.dev/mark".to_owned(), mark.to_string());
    world.releases(Told::Applied(bad));
    for (component, environment, version) in [
        ("checkout-service", "development", "v1.2.4"),
        ("checkout-service", "staging", "v1.2.3"),
        ("cart", "development", "v0.9.0"),
        ("cart", "staging", "v0.9.0"),
        ("cart", "production", "v0.8.7"),
        ("ledger", "staging", "v3.0.9"),
        ("search", "development", "v7.7.1"),
        ("search", "staging", "v7.7.1"),
        ("search", "production", "v7.7.0"),
        ("notifier", "staging", "v2.0.0"),
        ("notifier", "production", "v2.0.0"),
    ] {
        world.pins(Told::Applied(pin(component, environment, version)));
    }
    let broken = outcomes(
        pin("checkout-service", "production", "v1.2.3"),
        json!([
            {"generation": 1, "release": "checkout-service-v1.2.1", "since": "2026-11-08T13:38:00Z", "until": "2026-11-17T13:38:00Z", "healthy": true},
            {"generation": 2, "release": "checkout-service-v1.2.3", "since": "2026-11-17T13:38:00Z", "healthy": false},
        ]),
    );
    let message = "2 of 5 ready, web CrashLoopBackOff";
    world.pins(Told::Applied(unready(
        broken, "Degraded", message, "13:40:00",
    )));
    let rolling = pin("ledger", "development", "v3.1.0");
    world.pins(Told::Applied(unready(
        rolling,
        "Progressing",
        "2 of 5 ready",
        "13:59:20",
    )));
    let mut held = pin("ledger", "production", "v3.0.9");
    held.spec.holds = serde_json::from_value(json!([
        {"id": "freeze", "owner": "mei", "reason": "INC-41", "since": "2026-11-12T10:00:00Z"},
    ]))
    .unwrap();
    world.pins(Told::Applied(held));
    world
}

impl SnapshotTest {
    /// Opens the matrix of [`fleet`], in the dark theme.
    pub fn fleet() -> Self {
        Self::of(fleet())
    }

    /// Opens the matrix of a read model, in the dark theme.
    pub fn of(world: World) -> Self {
        let model = Model::new(target_info(), look("dark", Depth::True), (120, 40));
        let still = Self {
            world,
            model,
            effects: Vec::new(),
            now: fixture::now(),
        };
        still.tell(Event::World(Vec::new()))
    }

    /// Passes an event to the model, and records the returned effects.
    pub fn tell(mut self, event: Event) -> Self {
        let effects = update(&mut self.model, &self.world, self.now, event);
        self.effects.extend(effects);
        self.model.was_drawn();
        self
    }

    /// Presses keys, written as in keymaps. Text in double quotes is typed letter by letter.
    pub fn keys(mut self, keys: &str) -> Self {
        let typed = keys
            .strip_prefix('"')
            .and_then(|keys| keys.strip_suffix('"'));
        let keys = match typed {
            Some(text) => text.chars().map(character).collect(),
            None => Key::sequence(keys).unwrap(),
        };
        for key in keys {
            self = self.tell(Event::Key(key.event()));
        }
        self
    }

    /// Sends an answer to the last effect that expects an answer.
    pub fn answer(self, answer: impl FnOnce(&Effect) -> Answer) -> Self {
        let (ticket, answer) = {
            let asked = self
                .effects
                .iter()
                .rev()
                .find_map(|effect| Some((ticket(effect)?, effect)));
            let (ticket, effect) = asked.expect("nothing was asked");
            (ticket, answer(effect))
        };
        self.tell(Event::Answer(ticket, answer))
    }

    /// Draws the screen in this size (columns, rows).
    pub fn draw(&self, (width, height): (u16, u16)) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        view(&self.model, &self.world, self.now, &mut buffer);
        buffer
    }

    /// Returns the screen as plain text.
    pub fn screen(&self) -> String {
        picture::text(&self.draw(self.model.size))
    }

    #[track_caller]
    pub fn shows(self, words: &str) -> Self {
        let screen = self.screen();
        assert!(screen.contains(words), "{words:?} is not shown:\n{screen}");
        self
    }

    #[track_caller]
    pub fn hides(self, words: &str) -> Self {
        let screen = self.screen();
        assert!(!screen.contains(words), "{words:?} is shown:\n{screen}");
        self
    }

    /// Compares the screen with its golden file in all sizes, in the dark theme and in monochrome.
    #[track_caller]
    pub fn golden(self, name: &str) {
        let looks = [("dark", Depth::True), ("monochrome", Depth::Mono)];
        self.golden_in(name, &SIZES, &looks);
    }

    /// Compares the screen with its golden file in these sizes and themes.
    #[track_caller]
    pub fn golden_in(mut self, name: &str, sizes: &[(u16, u16)], looks: &[(&str, Depth)]) {
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path("../../snapshots/tui");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        for (theme, depth) in looks.iter().copied() {
            self.model.look = look(theme, depth);
            let mut screens = String::new();
            for size in sizes.iter().copied() {
                self = self.tell(Event::Resize(size.0, size.1));
                let drawn = self.draw(size);
                let picture = match depth {
                    Depth::Mono => picture::text(&drawn),
                    _ => picture::ansi(&drawn).replace('\u{1b}', "␛"),
                };
                screens += &format!("=== {}x{}\n{picture}\n", size.0, size.1);
            }
            settings.bind(|| insta::assert_snapshot!(format!("{name}-{theme}"), screens));
        }
    }
}

fn character(c: char) -> Key {
    Key::of(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)).unwrap()
}

/// Returns the ticket of an effect; None if the effect expects no answer.
fn ticket(effect: &Effect) -> Option<Ticket> {
    match effect {
        Effect::Plan(ticket, _)
        | Effect::Apply(ticket, _)
        | Effect::Push(ticket, _)
        | Effect::Revisions(ticket, _)
        | Effect::Compare(ticket, _)
        | Effect::Record(ticket)
        | Effect::Namespaces(ticket)
        | Effect::Rights(ticket, _)
        | Effect::Describe(ticket, _)
        | Effect::Export(ticket, ..)
        | Effect::Connect(ticket, _) => Some(*ticket),
        Effect::Quit
        | Effect::Suspend
        | Effect::Redraw
        | Effect::Copy(_)
        | Effect::Theme(_)
        | Effect::Cancel(_)
        | Effect::Switch
        | Effect::Arm(_) => None,
    }
}

/// Returns the revisions of the failing ReleasePin. Each of them is a promotion by ana.
pub fn promoted() -> Revisions<Pinned> {
    let revision = |number, release: &str| Revision {
        number,
        hash: None,
        created: None,
        cause: Some(Cause {
            action: Action::Promote,
            actor: Some("ana".to_owned()),
            reason: Some("INC-42 hotfix".to_owned()),
            operation: None,
        }),
        restored_from: None,
        state: State::Current,
        why: None,
        mark: None,
        content: Some(Pinned {
            release: ContentRef::named(release),
            holds: Vec::new(),
            reference: None,
            replaced: None,
        }),
    };
    let rows = [
        (1, "checkout-service-v1.2.1"),
        (2, "checkout-service-v1.2.3"),
    ];
    let rows = rows.map(|(number, release)| Row::Known(revision(number, release)));
    Revisions {
        subject: "checkout-service in production".to_owned(),
        current: 2,
        rows: rows.into(),
        record: None,
    }
}

#[test]
fn the_matrix_is_quiet_but_for_what_is_wrong() {
    SnapshotTest::fleet()
        .shows("loading who made it effective")
        .answer(|_| Answer::Revisions(Ok(Box::new(promoted()))))
        .shows("▸ checkout-service")
        .shows("promoted by ana: \"INC-42 hotfix\"")
        .shows("2 of 5 ready, web CrashLoopBackOff")
        .shows("Last good v1.2.1")
        .shows("BACK TO in production")
        .golden_in("matrix", &LARGE_SIZES, &LOOKS);
}

#[test]
fn a_cause_that_cannot_be_read_says_why_and_is_not_asked_for_again() {
    let asked = |still: &SnapshotTest| {
        let effects = still.effects.iter();
        effects
            .filter(|effect| matches!(effect, Effect::Revisions(..)))
            .count()
    };
    let why = "ana may not list auditentries.bowline.dev";
    let still = SnapshotTest::fleet().answer(|_| Answer::Revisions(Err(why.to_owned())));
    let before = asked(&still);
    let words = "cannot read who made it effective: ana may not list auditentries";
    let still = still
        .tell(Event::Tick)
        .tell(Event::Tick)
        .shows(words)
        .hides("loading who made it");
    assert_eq!(asked(&still), before, "a tick asks nothing");
    let still = still.keys("h l").shows(words);
    assert!(asked(&still) > before, "a key asks again");
}

#[test]
fn the_cursor_begins_on_the_worst_place_in_production() {
    let still = SnapshotTest::fleet();
    let place = still.model.matrix().place().unwrap();
    assert_eq!(
        (&*place.component, &*place.environment),
        ("checkout-service", "production")
    );
    let still = still.keys("R");
    assert!(matches!(still.effects.last(), Some(Effect::Plan(..))));
}

/// The manifests of a version: a workload, its configuration, and objects that differ only in the
/// version.
fn manifests(version: &str, image: &str, pool: &str) -> Vec<serde_json::Value> {
    let metadata = |name: &str| {
        json!({
            "name": name, "namespace": "shop-production",
            "labels": {"app.kubernetes.io/version": version},
        })
    };
    let mut objects = vec![
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("checkout-service"),
            "spec": {"template": {"spec": {"containers": [
                {"name": "web", "image": image, "env": [{"name": "POOL", "value": pool}]},
            ]}}},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("checkout-flags"),
            "data": {"new-flow": if pool == "40" { "on" } else { "off" }},
        }),
    ];
    for kind in ["Service", "ServiceAccount"] {
        objects.push(
            json!({"apiVersion": "v1", "kind": kind, "metadata": metadata("checkout-service")}),
        );
    }
    objects
}

/// Opens the plan of a rollback of the selected cell, and sends the plan and its diffs as the
/// runner does.
pub fn rolled_back(still: SnapshotTest) -> SnapshotTest {
    let asked = Asked {
        operation: "5f0c1d3a-0000".to_owned(),
        now: still.now,
        user: "ana".to_owned(),
        reason: None,
        namespace: "shop".to_owned(),
    };
    let command = Rollback {
        component: "checkout-service".to_owned(),
        environment: "production".to_owned(),
        to: Target::LastGood,
        hold: true,
        recorded: Vec::new(),
        controller: ControllerStatus::Runs,
    };
    let plan = rollback::plan(&still.world, &command, &asked).unwrap();
    let action_plan = ActionPlan::of(plan);
    let prepared = PlannedCommand::Changes(Box::new(action_plan));
    let diff = diff::diff(
        &manifests("v1.2.3", "registry/checkout:1.2.3", "40"),
        &manifests("v1.2.1", "registry/checkout:1.2.1", "20"),
        &diff::Options::default(),
    );
    let shown = Box::new(prepared.clone());
    let planned = Box::new(prepared.into());
    still.answer(|_| Answer::Planned(Ok(planned))).answer(|_| {
        Answer::Shown(Ok(Previews {
            prepared: shown,
            diffs: vec![Some(diff)],
        }))
    })
}

#[test]
fn a_plan_says_what_from_what_to_what_and_asks_for_more_where_more_is_at_stake() {
    rolled_back(SnapshotTest::fleet().keys("R"))
        .shows("type production and why")
        .shows("last good here")
        .shows("registry/checkout:1.2.1")
        .shows("bowline rollback checkout-service --environment production")
        .golden_in("plan", &LARGE_SIZES, &LOOKS);
}

#[test]
fn four_keys_and_the_confirmation_roll_the_worst_back() {
    let still = rolled_back(SnapshotTest::fleet().keys("R"));
    let still = still.keys("\"production errors up\"").keys("enter");
    assert!(
        matches!(still.effects.last(), Some(Effect::Apply(..))),
        "{:?}",
        still.effects.last()
    );
}
