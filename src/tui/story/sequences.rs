//! Random sequences of actions, cancellations, resizes, changes by other users and passing time. The test checks two
//! rules. After each sequence, the UI shows the same content as a newly started UI on the same store. And each frame
//! that the UI skipped would have been equal to the previous frame.
//!
//! The seed of a sequence determines all its steps. `BOWLINE_FULL=1 cargo test --lib story::sequences -- --nocapture`
//! runs 500 sequences. `BOWLINE_SEED=N` runs only the sequence with this seed, and prints its steps.

mod steps;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};

use super::Story;
use super::shop;
use crate::api::{ComponentEnvSnapshot, DeploymentPipeline, Environment, Release, ReleasePin};
use crate::connect::Options;
use crate::engine::audit::AuditWriter;
use crate::engine::subject::dynamic;
use crate::engine::world::Key;
use crate::model::Event;
use crate::picture;
use crate::roster::Kind;
use crate::screens::{Scene, Screen};
use crate::subjects::release_pin::kind::KIND;
use crate::view::view;
use crate::visible::{self, FrameInputs};
use steps::{Dice, Foreign, PLACES, Step, step};

/// The number of sequences in a short run.
const SHORT: u64 = 20;
/// The number of sequences in a long run.
const FULL: u64 = 500;
const STEPS: usize = 14;
/// The time limit for the tested UI and a new UI to show the same content.
const AGREE: Duration = Duration::from_secs(20);
/// The time for which the test waits for an answer of the runner. Then it checks whether the runner is still busy.
const POLL: Duration = Duration::from_millis(2);
/// The terminal size for the comparison of two UIs. It is large enough for the whole content.
const WIDE: (u16, u16) = (200, 60);

/// A UI that runs a sequence, with its last frame.
struct Walk {
    story: Story,
    tom: Client,
    drawn: (FrameInputs, String, Timestamp),
    ahead: SignedDuration,
    /// The number of frames that the UI did not draw because no visible change had happened.
    spared: u64,
    /// The number of plans that the sequence has confirmed.
    confirmed: u64,
}

impl Walk {
    async fn begin() -> Self {
        let story = Story::shop().await;
        let tom = story.somebody("tom").await.client;
        let drawn = frame(&story);
        let mut walk = Self {
            story,
            tom,
            drawn,
            ahead: SignedDuration::ZERO,
            spared: 0,
            confirmed: 0,
        };
        walk.known().await;
        walk.calm().await;
        walk
    }

    /// Waits until the store has reported the user name and the time of its clock.
    async fn known(&mut self) {
        while self.story.model.target_info.user.is_empty() {
            let event = self.story.answers.recv().await.unwrap();
            self.tell(event);
        }
    }

    /// Draws a frame, as the event loop does after each key press.
    fn draw(&mut self) {
        self.drawn = frame(&self.story);
    }

    fn tell(&mut self, event: Event) {
        self.story.tell(event);
        self.draw();
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.split(' ') {
            self.story.keys(key);
            self.draw();
        }
    }

    /// Passes the changes from the watches to the model. If the UI then draws no frame, asserts that a frame would be
    /// unchanged.
    fn follow(&mut self) {
        use futures::{FutureExt, StreamExt};
        let mut touched = Vec::new();
        while let Some(Some(one)) = self.story.touched.next().now_or_never() {
            touched.push(one);
        }
        let shows = |story: &Story| {
            let world = story.session.feed.world();
            visible::shows(&story.model, &world, &touched)
        };
        let mut is_seen = shows(&self.story);
        if !touched.is_empty() {
            self.story.tell(Event::World(touched.clone()));
            is_seen |= shows(&self.story);
        }
        let (glimpse, before, at) = &self.drawn;
        is_seen |=
            visible::glimpse(&self.story.model, &self.story.session.feed.world()) != *glimpse;
        if is_seen {
            return self.draw();
        }
        self.spared += 1;
        let after = drawn_at(&self.story, *at);
        assert_eq!(after, *before, "a frame was left out: {touched:?}");
    }

    /// Waits until the runner has no running task.
    async fn calm(&mut self) {
        loop {
            self.follow();
            match tokio::time::timeout(POLL, self.story.answers.recv()).await {
                Ok(event) => self.tell(event.unwrap()),
                Err(_) if self.story.runner.is_busy() => {}
                Err(_) => return,
            }
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Keys(keys) => self.keys(keys),
            Step::Cancelled(keys) => self.keys(keys),
            Step::Command(line) => self.command(line),
            Step::Resize(width, height) => self.tell(Event::Resize(width, height)),
            Step::Time(seconds) => {
                self.ahead += SignedDuration::from_secs(seconds);
                self.set_clock();
                self.tell(Event::Tick);
            }
            Step::Commanded { line, confirm } => {
                self.keys("esc");
                let depth = self.story.model.stack.len();
                self.command(line);
                self.decide(depth, confirm).await;
            }
            Step::Plan { keys, confirm } => {
                let depth = self.story.model.stack.len();
                self.keys(keys);
                self.decide(depth, confirm).await;
            }
            Step::Foreign(foreign) => self.other(foreign).await,
        }
    }

    fn command(&mut self, line: &str) {
        self.story.command(line);
        self.draw();
    }

    /// Handles what an action opened: chooses the first option of a choice, confirms the plan if `confirm` is true,
    /// and closes the plan screen.
    async fn decide(&mut self, depth: usize, confirm: bool) {
        self.calm().await;
        if self.story.model.over.is_some() {
            self.keys("1");
            self.calm().await;
        }
        let is_open = self.story.model.stack.len() > depth;
        if is_open && confirm {
            self.confirm().await;
        }
        if is_open {
            self.keys("esc");
        }
    }

    /// Types the input that the plan in front requires as its confirmation.
    async fn confirm(&mut self) {
        let Some(Screen::Plan(plan)) = self.story.model.stack.last() else {
            return;
        };
        let Some(needed) = plan.needed() else {
            return;
        };
        let mut words = needed.words.clone();
        if needed.needs_reason() {
            words.push("errors are up".to_owned());
        }
        match needed.is_key() {
            true => self.story.keys("y"),
            false => self.story.types(&words.join(" ")).keys("enter"),
        };
        self.draw();
        self.calm().await;
        if let Some(Screen::Plan(plan)) = self.story.model.stack.last()
            && plan.needed().is_none()
        {
            self.confirmed += 1;
        }
    }

    fn set_clock(&self) {
        self.story.session.who.write().unwrap().ahead = self.ahead;
    }

    /// Makes a change as another user. Ignores an error of the store, because the random change may be impossible.
    async fn other(&mut self, foreign: Foreign) {
        let tom = self.tom.clone();
        let pins: Api<ReleasePin> = Api::default_namespaced(tom.clone());
        let releases: Api<Release> = Api::default_namespaced(tom.clone());
        let (params, merge) = (PatchParams::default(), Patch::Merge::<Value>);
        let name = |at: usize| format!("{}-{}", PLACES[at].0, PLACES[at].1);
        match foreign {
            Foreign::Moves(at) => {
                let release = format!("{}-v1", PLACES[at].0);
                let patch = merge(json!({"spec": {"releaseRef": {"name": release}}}));
                let _ = pins.patch(&name(at), &params, &patch).await;
            }
            Foreign::Settles(at) => {
                if let Ok(Some(pin)) = pins.get_opt(&name(at)).await {
                    let status = settled(&pin, None);
                    let patch = merge(json!({"status": status}));
                    let _ = pins.patch_status(&name(at), &params, &patch).await;
                }
            }
            Foreign::Records(at) => {
                if let Ok(Some(pin)) = pins.get_opt(&name(at)).await {
                    let now = self.story.session.now();
                    let namespace = &self.story.model.target_info.namespace;
                    let audit = AuditWriter::of(&tom, namespace, "tom".to_owned(), now);
                    let _ = audit.record(&KIND, &dynamic(&pin)).await;
                    let patch = merge(json!({"status": settled(&pin, None)}));
                    let _ = pins.patch_status(&name(at), &params, &patch).await;
                }
            }
            Foreign::Snapshots(at, is_current) => {
                let (component, environment) = PLACES[at];
                let snapshot = format!("{}-{}", name(at), self.ahead.as_secs() % 7);
                let snapshots: Api<ComponentEnvSnapshot> = Api::default_namespaced(tom.clone());
                let made = snapshot_of(&snapshot, component, environment);
                let _ = snapshots.create(&PostParams::default(), &made).await;
                if is_current {
                    let patch = merge(json!({"status": {"snapshot": snapshot}}));
                    let _ = pins.patch_status(&name(at), &params, &patch).await;
                }
            }
            Foreign::Fails(at, reason) => {
                if let Ok(Some(pin)) = pins.get_opt(&name(at)).await {
                    let status = settled(&pin, Some(reason));
                    let patch = merge(json!({"status": status}));
                    let _ = pins.patch_status(&name(at), &params, &patch).await;
                }
            }
            Foreign::Holds(at, lasting, fixes) => {
                if let Ok(Some(pin)) = pins.get_opt(&name(at)).await {
                    let now = self.story.session.now();
                    let second = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap();
                    let mut holds = json!(pin.spec.holds);
                    let list = holds.as_array_mut().unwrap();
                    let number = list.len();
                    let mut hold = json!({
                        "id": format!("tom-{number}"), "owner": "tom", "since": second(now),
                    });
                    if let Some(lasting) = lasting {
                        hold["until"] = json!(second(now + SignedDuration::from_secs(lasting)));
                    }
                    if fixes {
                        hold["release"] = json!(format!("{}-v1", PLACES[at].0));
                    }
                    list.retain(|known| known["id"] != hold["id"]);
                    list.push(hold);
                    let patch = merge(json!({"spec": {"holds": holds}}));
                    let _ = pins.patch(&name(at), &params, &patch).await;
                }
            }
            Foreign::Lifts(at) => {
                let patch = merge(json!({"spec": {"holds": null}}));
                let _ = pins.patch(&name(at), &params, &patch).await;
            }
            Foreign::Releases(at) => {
                let version = format!("v{}", 10 + self.ahead.as_secs() % 90);
                let release = format!("{}-{version}", PLACES[at].0);
                if let Ok(None) = releases.get_metadata_opt(&release).await {
                    shop::released(&tom, PLACES[at].0, &version).await;
                }
            }
            Foreign::Marks(at) => {
                let mark = json!({"verdict": "bad", "by": "tom", "at": "2026-01-06T12:00:00Z"});
                let mark = mark.to_string();
                let patch = merge(json!({"metadata": {"annotations": {"bowline.dev/mark": mark}}}));
                let release = format!("{}-v1", PLACES[at].0);
                let _ = releases.patch(&release, &params, &patch).await;
            }
            Foreign::Collects(at) => {
                let release = format!("{}-v2", PLACES[at].0);
                let _ = releases.delete(&release, &DeleteParams::default()).await;
            }
            Foreign::Deletes(at) => {
                let _ = pins.delete(&name(at), &DeleteParams::default()).await;
            }
            Foreign::Restores(at) => {
                if let Ok(None) = pins.get_opt(&name(at)).await {
                    shop::pinned(&tom, PLACES[at].0, PLACES[at].1, &["v1"]).await;
                }
            }
            Foreign::SecondPipeline(there) => {
                let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(tom);
                let spec = json!({"promotionPaths": []});
                let other = DeploymentPipeline::new("other", serde_json::from_value(spec).unwrap());
                let _ = match there {
                    true => pipelines
                        .create(&PostParams::default(), &other)
                        .await
                        .is_ok(),
                    false => pipelines
                        .delete("other", &DeleteParams::default())
                        .await
                        .is_ok(),
                };
            }
            Foreign::Circle(there) => {
                let path = |from: &str, to: &str| json!({"sourceEnvironmentRef": {"name": from}, "targetEnvironmentRefs": [{"name": to}]});
                let mut paths = vec![path("dev", "staging"), path("staging", "prod")];
                if there {
                    paths.push(path("prod", "dev"));
                }
                let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(tom);
                let patch = merge(json!({"spec": {"promotionPaths": paths}}));
                let _ = pipelines.patch("default", &params, &patch).await;
            }
            Foreign::Environment(there) => {
                let environments: Api<Environment> = Api::default_namespaced(tom);
                let spec = json!({"dataPlaneRef": {"name": "here"}, "namespace": "shop-canary"});
                let canary = Environment::new("canary", serde_json::from_value(spec).unwrap());
                let _ = match there {
                    true => environments
                        .create(&PostParams::default(), &canary)
                        .await
                        .is_ok(),
                    false => environments
                        .delete("canary", &DeleteParams::default())
                        .await
                        .is_ok(),
                };
            }
        }
        self.follow();
    }

    /// Opens a new UI on the same store, with the same current time.
    async fn fresh(&self) -> Walk {
        let options = Options {
            embedded: self.story.options.embedded.clone(),
            ..Options::default()
        };
        let environment = self.story.environment.clone();
        let directory = tempfile::tempdir().unwrap();
        let story = Story::open(options, environment, directory, None).await;
        let drawn = frame(&story);
        let mut fresh = Walk {
            story,
            tom: self.tom.clone(),
            drawn,
            ahead: self.ahead,
            spared: 0,
            confirmed: 0,
        };
        fresh.known().await;
        fresh.calm().await;
        fresh.set_clock();
        fresh.tell(Event::World(Vec::new()));
        fresh
    }

    /// Compares each open screen with the same screen of a newly started UI.
    async fn agrees(&mut self, seed: u64, steps: &[Step]) {
        self.calm().await;
        self.story.model.over = None;
        self.story.model.pressed.clear();
        self.tell(Event::Resize(WIDE.0, WIDE.1));
        let mut fresh = self.fresh().await;
        fresh.tell(Event::Resize(WIDE.0, WIDE.1));
        // Compare the list screens, starting with the front screen.
        while self.story.model.stack.len() > 1 {
            if let Some(Screen::List(list)) = self.story.model.stack.last_mut() {
                list.roster_mut().unmark();
                let (kind, sort) = (list.kind(), list.roster().sort());
                let filter = list.roster().filter().clone();
                let selected = list.roster().selected().cloned();
                let other = list.shows_other_columns();
                fresh.keys(match kind {
                    Kind::Releases => "g r",
                    Kind::Pins => "g p",
                    Kind::Snapshots | Kind::Components => "g s",
                });
                if other {
                    fresh.keys("c");
                }
                if let Some(Screen::List(list)) = fresh.story.model.stack.last_mut() {
                    let roster = list.roster_mut();
                    roster.set_sort(sort.0, sort.1);
                    roster.set_filter(filter);
                    if let Some(selected) = &selected {
                        roster.select(selected);
                    }
                }
                self.draw();
                fresh.draw();
                self.same(&mut fresh, "a list", seed, steps).await;
                fresh.story.model.stack.truncate(1);
                fresh.draw();
            }
            self.story.model.stack.pop();
            self.draw();
        }
        // Compare the live matrix, after moving the cursor of both UIs to the same cell.
        for _ in 0..4 {
            self.keys("esc");
        }
        if let Some(Screen::Matrix(matrix)) = self.story.model.stack.first_mut()
            && let Some(roster) = matrix.roster_mut()
        {
            roster.unmark();
        }
        if self.story.model.matrix().is_pane_closed() {
            self.keys("p");
        }
        self.place(&mut fresh);
        self.same(&mut fresh, "the matrix", seed, steps).await;
        // Compare the matrix at the time of the last change.
        self.keys("T");
        fresh.keys("T");
        self.calm().await;
        fresh.calm().await;
        self.place(&mut fresh);
        self.same(&mut fresh, "the matrix of the last change", seed, steps)
            .await;
    }

    /// Gives the matrix of the new UI the same cursor, sort order and filter.
    fn place(&mut self, fresh: &mut Walk) {
        let place = self.story.model.matrix().place();
        let ours = self.story.model.matrix().roster().unwrap();
        let (sort, filter) = (ours.sort(), ours.filter().clone());
        if let Some(Screen::Matrix(matrix)) = fresh.story.model.stack.first_mut() {
            let roster = matrix.roster_mut().unwrap();
            roster.set_sort(sort.0, sort.1);
            roster.set_filter(filter);
            if let Some(place) = place {
                let namespace = &fresh.story.model.target_info.namespace;
                let component = Key::new(namespace, &place.component);
                matrix.select(&component, Some(&place.environment));
            }
        }
        self.draw();
        fresh.tell(Event::Tick);
    }

    /// Waits until both UIs show the same content, because their watches may deliver changes at different times.
    /// Panics after [`AGREE`].
    async fn same(&mut self, fresh: &mut Walk, what: &str, seed: u64, steps: &[Step]) {
        let deadline = tokio::time::Instant::now() + AGREE;
        loop {
            self.calm().await;
            fresh.calm().await;
            let now = self.story.session.now();
            self.tell(Event::Tick);
            fresh.tell(Event::Tick);
            self.calm().await;
            fresh.calm().await;
            let (ours, theirs) = (
                content(&mut self.story, now),
                content(&mut fresh.story, now),
            );
            if ours == theirs {
                return;
            }
            if tokio::time::Instant::now() > deadline {
                panic!(
                    "seed {seed}: {what} is not what a fresh program shows after {steps:#?}\n\n=== ours\n{ours}\n=== fresh\n{theirs}"
                );
            }
        }
    }
}

fn snapshot_of(name: &str, component: &str, environment: &str) -> ComponentEnvSnapshot {
    let definition = |kind: &str| json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": {}});
    let snapshot = json!({
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ComponentEnvSnapshot",
        "metadata": {"name": name, "labels": {
            "openchoreo.dev/component": component, "openchoreo.dev/environment": environment,
        }},
        "spec": {
            "owner": {"componentName": component}, "environment": environment,
            "component": definition("Component"), "componentTypeDefinition": definition("ComponentTypeDefinition"),
            "workload": definition("Workload"),
        },
    });
    serde_json::from_value(snapshot).unwrap()
}

/// Returns the status that a controller would write to a ReleasePin: ready, or failing with this reason.
fn settled(pin: &ReleasePin, failing: Option<&str>) -> Value {
    let generation = pin.metadata.generation;
    let release = &pin.spec.release_ref.name;
    let (status, reason, message) = match failing {
        None => ("True", "ReconcileSuccess", "everything is healthy"),
        Some(reason) => ("False", reason, "1 of 3 ready"),
    };
    let mut outcomes = json!(pin.status.as_ref().map(|status| &status.outcomes));
    if !outcomes.is_array() {
        outcomes = json!([]);
    }
    let list = outcomes.as_array_mut().unwrap();
    let since = "2026-01-06T13:00:00Z";
    for known in list.iter_mut() {
        if known["generation"] != json!(generation) && known["until"].is_null() {
            known["until"] = json!(since);
        }
    }
    list.retain(|known| known["generation"] != json!(generation));
    list.push(json!({
        "generation": generation, "release": release, "since": since, "healthy": failing.is_none(),
    }));
    json!({
        "appliedRelease": release, "observedGeneration": generation, "outcomes": outcomes,
        "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-06T13:00:00Z", "observedGeneration": generation,
        }],
    })
}

fn frame(story: &Story) -> (FrameInputs, String, Timestamp) {
    let now = story.session.now();
    let text = drawn_at(story, now);
    let world = story.session.feed.world();
    (visible::glimpse(&story.model, &world), text, now)
}

fn drawn_at(story: &Story, now: Timestamp) -> String {
    let (width, height) = story.model.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    view(&story.model, &story.session.feed.world(), now, &mut buffer);
    picture::text(&buffer)
}

/// Returns what the front screen shows: its rows, pane and totals.
fn content(story: &mut Story, now: Timestamp) -> String {
    story.model.notice = None;
    let text = drawn_at(story, now);
    let lines: Vec<&str> = text.lines().collect();
    let body = lines.get(2..lines.len() - 1).unwrap_or_default().join("\n");
    let world = story.session.feed.world();
    let scene = Scene {
        world: &world,
        model: &story.model,
    };
    let totals = story.model.front().totals(&scene);
    let totals: Vec<String> = totals.into_iter().map(|(words, _)| words).collect();
    format!("{}\n{}\n{body}", lines[0], totals.join("  "))
}

#[tokio::test]
async fn after_any_sequence_the_screen_shows_what_a_fresh_program_shows() {
    let one = std::env::var("BOWLINE_SEED").ok();
    let one: Option<u64> = one.map(|seed| seed.parse().unwrap());
    let seeds = match (one, std::env::var_os("BOWLINE_FULL")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(_)) => 0..FULL,
        (None, None) => 0..SHORT,
    };
    let (count, mut spared, mut confirmed) = (seeds.end - seeds.start, 0, 0);
    for seed in seeds {
        let mut dice = Dice(seed);
        let steps: Vec<Step> = (0..STEPS).map(|_| step(&mut dice)).collect();
        let mut walk = Walk::begin().await;
        for step in &steps {
            if one.is_some() {
                eprintln!("{step:?}");
            }
            walk.take(*step).await;
        }
        walk.agrees(seed, &steps).await;
        spared += walk.spared;
        confirmed += walk.confirmed;
        if seed % 50 == 49 {
            eprintln!("{} sequences", seed + 1);
        }
    }
    println!(
        "{count} sequences of {STEPS} steps, {confirmed} plans confirmed, {spared} frames left out"
    );
}
