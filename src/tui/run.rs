//! The event loop of the UI. It turns terminal input, changes of the target and results of background work into
//! events, performs the effects, and draws a frame if something changed.
//!
//! A key press draws a frame at once. Changes from watches draw at most one frame per [`FRAME`], and only if the user
//! can see a change. Without events, the loop draws only when a displayed age changes.

use std::io::Write;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::effect::{Answer, Destination, Effect, Ticket};
use super::looks::{self, variable};
use super::model::{Event, Level, Model, RepositoryInfo, TargetInfo};
use super::runner::{self, Runner, Session};
use super::terminal::input::{Events, Input};
use super::terminal::signals::Signal;
use super::terminal::{OpenError, Terminal};
use super::tour;
use super::update::{say, update};
use super::view::view_noting;
use super::visible::{self, FrameInputs};
use crate::connect::{
    self, Address, Connection, DataPlanes, Environment, Options, StoreWaits, Target,
};
use crate::controllers::beside::Beside;
use crate::engine::world::Source;
use crate::engine::world::feed::Touched;
use crate::resolve::git::Git;
use crate::text;

/// The minimum time between two frames that changes from watches cause.
const FRAME: Duration = Duration::from_millis(16);
/// The time after which bowline prints that it is still connecting to the target.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time limit for the terminal to report its background colour.
const BACKGROUND: Duration = Duration::from_millis(60);

/// The options of the UI from the command line.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Whether to start the tour of the demo.
    pub tour: bool,
    /// The name of the theme. None for the theme in `config.toml`, or else a theme that fits the background of the
    /// terminal.
    pub theme: Option<String>,
    /// The name of the built-in keymap, which the user's file can override. None for the keymap in `config.toml`, or
    /// else the default keymap.
    pub keymap: Option<String>,
    pub ascii: bool,
    pub mouse: bool,
}

/// The reasons why the UI ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Connect(#[from] connect::Error),
    #[error("cannot write to the terminal: {0}")]
    Draw(#[from] std::io::Error),
    /// A signal ended the UI. The caller cleans up, and then ends the process with the same signal.
    #[error("ended by signal {0}")]
    Signal(i32),
}

/// Runs the UI on a target until the user leaves it.
pub async fn open(
    options: Options,
    environment: Environment,
    git: Git,
    start: Start,
) -> Result<(), RunError> {
    let options = Options {
        asks_cluster_later: true,
        ..options
    };
    let term = variable(&environment, "TERM").unwrap_or_default();
    let in_tmux = variable(&environment, "TMUX").is_some();
    // Check the terminal before connecting, because connecting may create an embedded store.
    Terminal::check(&term, in_tmux, start.mouse)?;
    let connection = first(&options, &environment).await?;
    let (terminal, mut events) = Terminal::open(&term, in_tmux, start.mouse)?;
    let wanted = connect::looks(&environment);
    let background = match start.theme.is_some() || wanted.theme.is_some() {
        true => None,
        false => events.background(BACKGROUND).await,
    };
    let (look, faults) = looks::look(&start, &wanted, &environment, background);
    let size = terminal.size()?;
    let (sender, late) = mpsc::unbounded_channel();
    let link = Link::to(connection, &options, &environment, &git);
    let mut model = Model::new(
        target_info(&link.session, &environment, &options),
        look,
        (size.width, size.height),
    );
    model.tour = start.tour.then(|| tour::begin(0));
    if !faults.is_empty() {
        say(
            &mut model,
            Timestamp::now(),
            Level::Error,
            faults.join("\n"),
        );
    }
    let mut screen = Loop {
        terminal,
        model,
        link,
        sender,
        options,
        environment,
        git,
        connecting: None,
        drawn: None,
    };
    screen.run(events, late).await
}

/// Connects to the target before bowline takes over the terminal, because a credential plugin may ask for a password
/// there, and errors stay visible in the shell. Prints the name of the target if connecting takes longer than
/// [`PATIENCE`].
async fn first(options: &Options, environment: &Environment) -> Result<Connection, RunError> {
    let mut waits = StoreWaits::receive();
    let mut connecting = std::pin::pin!(connect::connect(options, environment));
    tokio::select! {
        made = &mut connecting => return Ok(made?),
        () = tokio::time::sleep(PATIENCE) => {}
    }
    let place = options.context.as_ref();
    let place = place.map_or("the target".to_owned(), |name| format!("context {name}"));
    let line = format!("connecting to {}; ctrl-c stops\n", text::line(&place));
    // If stderr is closed, bowline connects without printing the line.
    let _ = std::io::stderr().write_all(line.as_bytes());
    tokio::select! {
        made = &mut connecting => return Ok(made?),
        line = waits.next() => {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
    Ok(connecting.await?)
}

/// A target that the UI watches, its runner, and its controllers if they run in this process.
struct Link {
    session: Arc<Session>,
    runner: Runner,
    versions: watch::Receiver<u64>,
    touched: std::pin::Pin<Box<dyn Stream<Item = Touched> + Send>>,
    /// The events of this target. The event loop ignores them after a switch to another target.
    answers: UnboundedReceiver<Event>,
    introducing: JoinHandle<()>,
    beside: Option<JoinHandle<()>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.introducing.abort();
        // Stopping the controllers is safe, because the next process that runs them continues the interrupted work.
        if let Some(beside) = &self.beside {
            beside.abort();
        }
    }
}

impl Link {
    fn to(connection: Connection, options: &Options, environment: &Environment, git: &Git) -> Self {
        let is_ours = connection.readonly.is_none();
        let beside = (is_ours && matches!(connection.target, Target::Embedded { .. })).then(|| {
            let (connection, options, environment, git) = (
                connection.clone(),
                options.clone(),
                environment.clone(),
                git.clone(),
            );
            tokio::spawn(async move {
                let beside = Beside {
                    connection: &connection,
                    options: &options,
                    environment: &environment,
                    git: &git,
                };
                if let Err(error) = beside.until(std::future::pending::<()>()).await {
                    tracing::warn!(%error, "no controllers run in this process");
                }
            })
        });
        let planes = DataPlanes::of(&connection, options, environment);
        let session = Arc::new(Session::start(connection, git.clone(), planes));
        let (sender, answers) = mpsc::unbounded_channel();
        Self {
            introducing: runner::introduce(&session, &sender),
            versions: session.feed.versions(),
            touched: Box::pin(session.feed.touched()),
            runner: Runner::new(session.clone(), sender),
            session,
            answers,
            beside,
        }
    }

    /// Stops to watch the target. Forwards only the results of unfinished writes to `late`, so that the user still
    /// sees them.
    fn leave(mut self, late: UnboundedSender<Event>) {
        let (_, none) = mpsc::unbounded_channel();
        let mut answers = std::mem::replace(&mut self.answers, none);
        drop(self);
        tokio::spawn(async move {
            while let Some(event) = answers.recv().await {
                if matches!(
                    event,
                    Event::Answer(_, Answer::Applied(_) | Answer::Pushed(_))
                ) {
                    // The receiver is closed only if the program ends, so nobody needs the event then.
                    let _ = late.send(event);
                }
            }
        });
    }
}

struct Loop {
    terminal: Terminal,
    model: Model,
    link: Link,
    /// The sender for results of writes to targets that the user has left.
    sender: UnboundedSender<Event>,
    options: Options,
    environment: Environment,
    git: Git,
    connecting: Option<Connecting>,
    /// The visible parts of the last frame; None before the first frame.
    drawn: Option<FrameInputs>,
}

/// A connection to another target: in progress, or ready and waiting for the user. Dropping this value cancels the
/// connection.
struct Connecting {
    ticket: Ticket,
    task: JoinSet<Result<Connection, connect::Error>>,
    options: Options,
    made: Option<Connection>,
}

/// Waits until bowline has connected to another target; waits forever if no connection is in
/// progress.
async fn finished(connecting: &mut Option<Connecting>) -> Result<Connection, String> {
    let Some(connecting) = connecting.as_mut().filter(|it| it.made.is_none()) else {
        return std::future::pending().await;
    };
    match connecting.task.join_next().await {
        Some(Ok(made)) => made.map_err(|error| error.to_string()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the connection was cancelled".to_owned()),
    }
}

/// The decision of the event loop: to continue or to end.
enum Going {
    On,
    Out,
}

impl Loop {
    async fn run(
        &mut self,
        mut events: Events,
        mut late: UnboundedReceiver<Event>,
    ) -> Result<(), RunError> {
        // Pass on the objects that the watches delivered before the loop started.
        self.tell(Event::World(Vec::new()))?;
        let mut turns = self.draw()?;
        let mut drawn = Instant::now();
        let mut stale = false;
        let mut waits = StoreWaits::receive();
        loop {
            let wake = turns.map(|at| {
                let wait = at.duration_since(self.link.session.now());
                Instant::now() + Duration::try_from(wait).unwrap_or_default()
            });
            let frame = stale.then(|| drawn + FRAME);
            tokio::select! {
                biased;
                inputs = events.next() => {
                    for input in inputs {
                        if let Going::Out = self.input(input)? {
                            return Ok(());
                        }
                    }
                    stale = true;
                    drawn = Instant::now() - FRAME;
                }
                // This branch comes before the branches of the target, because otherwise many
                // changes could delay drawing forever.
                () = until(frame) => {
                    turns = self.draw()?;
                    drawn = Instant::now();
                    stale = false;
                }
                answer = self.link.answers.recv() => {
                    let mut next = answer;
                    while let Some(event) = next {
                        if let Going::Out = self.tell(event)? {
                            return Ok(());
                        }
                        next = self.link.answers.try_recv().ok();
                    }
                    stale = true;
                }
                Some(event) = late.recv() => {
                    self.tell(event)?;
                    stale = true;
                }
                made = finished(&mut self.connecting) => {
                    self.connected(made)?;
                    stale = true;
                }
                line = waits.next() => {
                    self.warn(line);
                    stale = true;
                }
                _ = self.link.versions.changed() => stale |= self.follow()?,
                () = until(wake) => {
                    self.tell(Event::Tick)?;
                    turns = None;
                    stale = true;
                }
            }
        }
    }

    /// Passes the changes of the read model to the model of the UI. Returns whether the user can see any of the
    /// changes.
    fn follow(&mut self) -> Result<bool, RunError> {
        let mut touched = Vec::new();
        while let Some(Some(one)) = self.link.touched.next().now_or_never() {
            touched.push(one);
        }
        let environments = touched.iter().any(|one| one.source == Source::ENVIRONMENTS);
        // A change may add a visible row or remove one, so check the visible rows before and after the change.
        let mut is_seen = self.shows(&touched);
        if !touched.is_empty() {
            self.tell(Event::World(touched.clone()))?;
            is_seen |= self.shows(&touched);
        }
        if environments {
            let names = {
                let world = self.link.session.feed.world();
                world.environment_names(&self.model.target_info.namespace)
            };
            self.link.runner.run(Effect::Rights(0, names));
        }
        let world = self.link.session.feed.world();
        Ok(is_seen || self.drawn.as_ref() != Some(&visible::glimpse(&self.model, &world)))
    }

    fn shows(&self, touched: &[Touched]) -> bool {
        let world = self.link.session.feed.world();
        visible::shows(&self.model, &world, touched)
    }

    fn input(&mut self, input: Input) -> Result<Going, RunError> {
        let event = match input {
            Input::Key(key) => Event::Key(key),
            Input::Paste(text) => Event::Paste(text),
            Input::Mouse(mouse) => Event::Mouse(mouse),
            Input::Focus(focused) => Event::Focus(focused),
            Input::Resize(size) => {
                self.terminal.resize(size);
                Event::Resize(size.width, size.height)
            }
            Input::Background(_) => return Ok(Going::On),
            Input::Signal(Signal::Stop) => {
                self.terminal.suspend()?;
                return Ok(Going::On);
            }
            Input::Signal(Signal::Continued) => {
                self.terminal.resume()?;
                return Ok(Going::On);
            }
            Input::Signal(Signal::End(signal)) => return Err(RunError::Signal(signal)),
            Input::Gone => return Ok(Going::Out),
        };
        self.tell(event)
    }

    /// Passes an event to the model, and performs the effects that the model returns.
    fn tell(&mut self, event: Event) -> Result<Going, RunError> {
        let effects = {
            let world = self.link.session.feed.world();
            update(&mut self.model, &world, self.link.session.now(), event)
        };
        for effect in effects {
            if matches!(&effect, Effect::Cancel(ticket) if self.is_connecting(*ticket)) {
                self.connecting = None;
                continue;
            }
            let Some(effect) = self.link.runner.run(effect) else {
                continue;
            };
            match effect {
                Effect::Quit => return Ok(Going::Out),
                Effect::Suspend => {
                    let slept = self.terminal.suspend()?;
                    let words = "cannot suspend: no shell could resume bowline";
                    if !slept {
                        self.warn(words);
                    }
                }
                Effect::Redraw => self.terminal.redraw()?,
                Effect::Theme(name) => self.dress(&name)?,
                Effect::Copy(text) => {
                    if let Err(error) = self.terminal.copy(&text) {
                        self.warn(error.to_string());
                    }
                }
                Effect::Connect(ticket, destination) => self.connect(ticket, destination),
                Effect::Switch => {
                    self.switch();
                    self.tell(Event::World(Vec::new()))?;
                }
                _ => {}
            }
        }
        Ok(Going::On)
    }

    fn is_connecting(&self, ticket: Ticket) -> bool {
        let connecting = self.connecting.as_ref();
        connecting.is_some_and(|connecting| connecting.ticket == ticket)
    }

    /// Loads and uses a theme. Shows the mistakes in the theme's file as a warning.
    fn dress(&mut self, name: &str) -> Result<(), RunError> {
        match looks::theme(name, &self.environment) {
            Err(why) => self.warn(why),
            Ok((theme, faults)) => {
                self.model.look.theme = theme;
                if !faults.is_empty() {
                    self.warn(faults.join("\n"));
                }
                self.terminal.redraw()?;
            }
        }
        Ok(())
    }

    fn warn(&mut self, words: impl Into<String>) {
        say(
            &mut self.model,
            self.link.session.now(),
            Level::Warning,
            words,
        );
    }

    /// Starts to connect to another context or namespace in the background. Cancels an earlier attempt that is still
    /// in progress.
    fn connect(&mut self, ticket: Ticket, destination: Destination) {
        let mut options = self.options.clone();
        if destination.context.is_some() {
            options.context = destination.context;
            options.embedded = None;
            options.namespace = None;
        }
        if destination.namespace.is_some() {
            options.namespace = destination.namespace;
        }
        let environment = self.environment.clone();
        let mut task = JoinSet::new();
        let wanted = options.clone();
        task.spawn(async move { connect::connect(&wanted, &environment).await });
        self.connecting = Some(Connecting {
            ticket,
            task,
            options,
            made: None,
        });
    }

    /// Passes the result of connecting to the model. Keeps the connection until the model switches to the new target.
    fn connected(&mut self, made: Result<Connection, String>) -> Result<(), RunError> {
        let Some(connecting) = &mut self.connecting else {
            return Ok(());
        };
        let ticket = connecting.ticket;
        let made = made.map(|connection| {
            let target_info =
                target_info_of(&connection, "", &self.environment, &connecting.options);
            connecting.made = Some(connection);
            Box::new(target_info)
        });
        if made.is_err() {
            self.connecting = None;
        }
        self.tell(Event::Connected(ticket, made))?;
        Ok(())
    }

    /// Starts to watch the target to which the model has just switched. The event loop handles no key press between
    /// these two steps, so that no action goes to the wrong target.
    fn switch(&mut self) {
        let Some(Connecting {
            made: Some(connection),
            options,
            ..
        }) = self.connecting.take()
        else {
            return;
        };
        let link = Link::to(connection, &options, &self.environment, &self.git);
        let left = std::mem::replace(&mut self.link, link);
        left.leave(self.sender.clone());
        self.options = options;
    }

    /// Draws a frame. Returns the time at which a label of the frame, such as an age, changes; None if no label
    /// changes.
    fn draw(&mut self) -> Result<Option<Timestamp>, RunError> {
        let now = self.link.session.now();
        let world = self.link.session.feed.world();
        let mut turns = None;
        self.terminal.draw_linked(|frame| {
            let notes = view_noting(&self.model, &world, now, frame.buffer_mut());
            turns = notes.turns.get();
            notes.links.into_inner()
        })?;
        self.model.was_drawn();
        self.drawn = Some(visible::glimpse(&self.model, &world));
        Ok(turns)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Returns the description of a session's target for the model.
pub(super) fn target_info(
    session: &Session,
    environment: &Environment,
    options: &Options,
) -> TargetInfo {
    let who = session.who.read().unwrap_or_else(PoisonError::into_inner);
    target_info_of(&session.connection, &who.user, environment, options)
}

fn target_info_of(
    connection: &Connection,
    user: &str,
    environment: &Environment,
    options: &Options,
) -> TargetInfo {
    let name = match &connection.target {
        Target::Context { name, .. } => name.clone(),
        Target::Pod => "in this pod".to_owned(),
        Target::Embedded { .. } => "embedded".to_owned(),
        // Show only the name of the repository's root directory, because the user knows the path.
        Target::Repository { directory } => {
            let repository = connection.repository.as_ref();
            let root = repository.map_or(directory.as_path(), |found| found.tree.work().root());
            let shown = root.file_name().unwrap_or(root.as_os_str());
            shown.to_string_lossy().into_owned()
        }
    };
    let repository = connection.repository.as_ref().map(|found| RepositoryInfo {
        directory: found.tree.work().scope().to_string_lossy().into_owned(),
        onto: found.branch.clone(),
        ..RepositoryInfo::default()
    });
    TargetInfo {
        name,
        address: Address::of(connection, options, environment),
        namespace: connection.namespace.clone(),
        user: user.to_owned(),
        readonly: connection.readonly.clone(),
        protected: connection.is_protected(),
        armed: None,
        simulated: matches!(connection.target, Target::Embedded { .. }),
        repository,
        contexts: connect::contexts(options, environment),
        namespaces: Vec::new(),
        rights: Default::default(),
        lacking: Default::default(),
        zone: TimeZone::system(),
    }
}
