//! Stories: tests that press keys and check the screen, with an embedded store and the real runner.
//!
//! A story waits until the screen shows the expected text. It never waits for a fixed time.

mod collect;
mod deploy;
mod holds;
mod looking;
mod marks;
mod promote;
mod repository;
mod rollback;
mod sequences;
mod shop;
mod time;
mod undo;
mod workloads;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use jiff::tz::TimeZone;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;

use super::effect::Effect;
use super::keymap::Key;
use super::model::{Event, Model, TargetInfo};
use super::picture;
use super::run;
use super::runner::{self, Runner, Session};
use super::snapshot_test;
use super::theme::Depth;
use super::update::update;
use super::view::view;
use crate::api::{Release, ReleasePin, names};
use crate::connect::{self, Connection, DataPlanes, Environment, Options, StoreFile};
use crate::engine::controller_status;
use crate::engine::world::World;
use crate::engine::world::feed::Touched;
use crate::fixture;
use crate::resolve::git::{Git, Settings};
use crate::subjects::release_pin::READ_BY_GC;

/// The time after which a story that waits for a text fails.
const HANG: Duration = Duration::from_secs(60);

/// A running UI with its embedded store.
pub struct Story {
    pub model: Model,
    /// The client of the user who presses the keys.
    pub client: Client,
    session: Arc<Session>,
    runner: Runner,
    answers: UnboundedReceiver<Event>,
    versions: watch::Receiver<u64>,
    touched: std::pin::Pin<Box<dyn Stream<Item = Touched> + Send>>,
    /// The texts that the UI has copied to the clipboard, the oldest first.
    pub copied: Vec<String>,
    options: Options,
    environment: Environment,
    directory: TempDir,
    /// The lock that a running controller holds. Without the lock, readers ignore the status that the story writes,
    /// because they think that no controller runs.
    _lock: Option<std::fs::File>,
}

impl Story {
    /// Opens a UI on the shop: cart is at v3 in dev, at v2 in staging, and at v2 in prod, where v1 is the last good
    /// release; ledger is at v1 everywhere. No controller runs, so the story itself writes the status of ReleasePins.
    pub async fn shop() -> Self {
        Self::with(Options::default()).await
    }

    /// Opens the shop, promotes cart to staging, and stays on the screen of the applied plan.
    pub async fn promoted() -> Self {
        let mut story = Self::shop().await;
        story.keys("g g h h P").shows("data.image").await;
        story.keys("y");
        story
            .shows("cart in staging rolls out cart-v3, revision 2")
            .await;
        story
    }

    /// Opens a UI on a store that has none of the kinds that the matrix reads.
    pub async fn without_kinds() -> Self {
        let (filling, environment, directory, lock) = Self::store();
        let connection = connect::connect(&filling, &environment).await.unwrap();
        let removed = fixture::remove_kinds(&connection.client, &READ_BY_GC).await;
        removed.unwrap();
        Self::begin(filling, environment, directory, Some(lock)).await
    }

    /// Opens a UI on the shop with these options.
    pub async fn with(options: Options) -> Self {
        let (filling, environment, directory, lock) = Self::store();
        let connection = connect::connect(&filling, &environment).await.unwrap();
        shop::fill(&connection).await;
        let options = Options {
            embedded: filling.embedded,
            ..options
        };
        Self::open(options, environment, directory, Some(lock)).await
    }

    /// Creates a temporary store. Returns its options, environment, directory, and controller lock.
    fn store() -> (Options, Environment, TempDir, std::fs::File) {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("shop.db");
        let lock = std::fs::File::create(controller_status::lock_file(&store)).unwrap();
        lock.lock().unwrap();
        fixture::store::place(&store);
        let environment = Environment {
            user: "ana".to_owned(),
            ..Environment::default()
        };
        let filling = Options {
            embedded: Some(StoreFile::At(store.clone())),
            ..Options::default()
        };
        (filling, environment, directory, lock)
    }

    /// Opens the UI on a target, and waits until the read model has listed everything.
    async fn open(
        options: Options,
        environment: Environment,
        directory: TempDir,
        lock: Option<std::fs::File>,
    ) -> Self {
        let mut story = Self::begin(options, environment, directory, lock).await;
        story.shows("ledger").await;
        story.knows(World::is_live).await;
        story
    }

    /// Opens the UI on a target, without waiting for the read model.
    async fn begin(
        options: Options,
        environment: Environment,
        directory: TempDir,
        lock: Option<std::fs::File>,
    ) -> Self {
        let connection = connect::connect(&options, &environment).await.unwrap();
        let client = connection.client.clone();
        let planes = DataPlanes::of(&connection, &options, &environment);
        let session = Arc::new(Session::start(connection, git(directory.path()), planes));
        let target_info = TargetInfo {
            zone: TimeZone::UTC,
            ..run::target_info(&session, &environment, &options)
        };
        let (sender, answers) = mpsc::unbounded_channel();
        runner::introduce(&session, &sender);
        let mut story = Self {
            model: Model::new(
                target_info,
                snapshot_test::look("dark", Depth::True),
                (120, 40),
            ),
            client,
            versions: session.feed.versions(),
            touched: Box::pin(session.feed.touched()),
            runner: Runner::new(session.clone(), sender),
            session,
            answers,
            copied: Vec::new(),
            options,
            environment,
            directory,
            _lock: lock,
        };
        story.tell(Event::World(Vec::new()));
        story
    }

    /// Returns a connection to the story's store for another user.
    pub async fn somebody(&self, user: &str) -> Connection {
        let options = Options {
            impersonate: Some(user.to_owned()),
            readonly: false,
            ..self.options.clone()
        };
        connect::connect(&options, &self.environment).await.unwrap()
    }

    fn tell(&mut self, event: Event) {
        let effects = {
            let world = self.session.feed.world();
            update(&mut self.model, &world, self.session.now(), event)
        };
        self.model.was_drawn();
        for effect in effects {
            if let Some(Effect::Copy(text)) = self.runner.run(effect) {
                self.copied.push(text);
            }
        }
    }

    /// Passes the changes that the watches have reported to the model.
    fn follow(&mut self) {
        let mut touched = Vec::new();
        while let Some(Some(one)) = self.touched.next().now_or_never() {
            touched.push(one);
        }
        if !touched.is_empty() {
            self.tell(Event::World(touched));
        }
    }

    /// Presses keys, written as in keymaps, such as `g m`.
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        for key in Key::sequence(keys).unwrap() {
            self.tell(Event::Key(key.event()));
        }
        self
    }

    pub fn types(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            let key = match c {
                ' ' => "space".parse::<Key>(),
                c => c.to_string().parse::<Key>(),
            };
            self.tell(Event::Key(key.unwrap().event()));
        }
        self
    }

    /// Returns the screen as plain text.
    pub fn screen(&self) -> String {
        let (width, height) = self.model.size;
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        view(
            &self.model,
            &self.session.feed.world(),
            self.session.now(),
            &mut buffer,
        );
        picture::text(&buffer)
    }

    /// Waits until the screen shows a text; panics after [`HANG`].
    #[track_caller]
    pub fn shows<'s>(&'s mut self, words: &'s str) -> impl Future<Output = &'s mut Self> + 's {
        let caller = std::panic::Location::caller();
        async move {
            let shown = async {
                while !self.screen().contains(words) {
                    tokio::select! {
                        event = self.answers.recv() => {
                            let event = event.expect("the runner lives as long as the story");
                            self.tell(event);
                        }
                        _ = self.versions.changed() => self.follow(),
                    }
                }
            };
            if tokio::time::timeout(HANG, shown).await.is_err() {
                panic!("{words:?} is not shown, at {caller}:\n{}", self.screen());
            }
            self
        }
    }

    /// Waits until the read model meets a condition; panics after [`HANG`].
    pub async fn knows(&mut self, known: impl Fn(&World) -> bool) {
        let known = self.session.feed.when(known);
        tokio::time::timeout(HANG, known).await.unwrap();
        self.follow();
    }

    #[track_caller]
    pub fn hides(&mut self, words: &str) -> &mut Self {
        let screen = self.screen();
        assert!(!screen.contains(words), "{words:?} is shown:\n{screen}");
        self
    }

    /// Types a line into the command prompt, and runs it.
    pub fn command(&mut self, line: &str) -> &mut Self {
        self.keys(":").types(line).keys("enter")
    }

    /// Returns the path of a file with this name in the temporary directory of the story.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Changes the releaseRef of a ReleasePin as another user, without using the UI.
    pub async fn meanwhile(&self, user: &str, pin: &str, release: &str) {
        let other = self.somebody(user).await;
        let pins: Api<ReleasePin> = Api::default_namespaced(other.client);
        let patch = json!({"spec": {"releaseRef": {"name": release}}});
        pins.patch(pin, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub async fn release(&self, name: &str) -> Option<Release> {
        let releases: Api<Release> = Api::default_namespaced(self.client.clone());
        releases.get_opt(name).await.unwrap()
    }

    /// Returns the name of the release to which the releaseRef of a ReleasePin points.
    pub async fn names(&self, component: &str, environment: &str) -> String {
        self.pin(component, environment).await.spec.release_ref.name
    }

    pub async fn pin(&self, component: &str, environment: &str) -> ReleasePin {
        let pins: Api<ReleasePin> = Api::default_namespaced(self.client.clone());
        pins.get(&names::pin(component, environment)).await.unwrap()
    }
}

fn git(cache: &Path) -> Git {
    Git::new(Settings::new(cache))
}
