//! The loop: what happens at the terminal, on the target and in the background becomes events; what is
//! wanted is carried out; and a frame is drawn where something changed.
//!
//! A key draws at once. A change that watches tell of draws at most once in [`FRAME`], and only if it can be
//! seen. While nothing happens nothing is drawn but an age that turns over.

use std::collections::VecDeque;
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
use super::model::{Event, Ground, Level, Model, Standing};
use super::runner::{self, Runner, Session};
use super::terminal::input::{Events, Input};
use super::terminal::signals::Signal;
use super::terminal::{OpenError, Terminal};
use super::tour;
use super::update::{say, update};
use super::view::view_noting;
use super::visible::{self, Glimpse};
use crate::connect::{self, Address, Connection, DataPlanes, Environment, Options, Target};
use crate::controllers::beside::Beside;
use crate::engine::world::Source;
use crate::engine::world::feed::Touched;
use crate::resolve::git::Git;
use crate::text;

/// What watches tell is drawn at most this often.
const FRAME: Duration = Duration::from_millis(16);
/// A first connection that takes longer says so.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the terminal may take to say what its background is.
const BACKGROUND: Duration = Duration::from_millis(60);

/// How the UI is opened.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Whether the tour begins.
    pub tour: bool,
    /// The theme; as the terminal's background wants it where it is absent.
    pub theme: Option<String>,
    /// The keymap that the user's lines are laid over.
    pub keymap: Option<String>,
    /// Whether only ASCII characters are drawn.
    pub ascii: bool,
    /// Whether the mouse is used.
    pub mouse: bool,
}

/// Why the UI ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no terminal.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no target.
    #[error(transparent)]
    Connect(#[from] connect::Error),
    /// The terminal does not take what is drawn.
    #[error("cannot write to the terminal: {0}")]
    Draw(#[from] std::io::Error),
    /// A signal says so; whoever opened it tidies up and ends by it.
    #[error("ended by signal {0}")]
    Signal(i32),
}

/// Opens the UI on a target, until the person leaves it.
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
    let connection = first(&options, &environment).await?;
    let term = variable(&environment, "TERM").unwrap_or_default();
    let in_tmux = variable(&environment, "TMUX").is_some();
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
        ground(&link.session, &environment, &options),
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

/// Connects before bowline takes over the terminal: a credential plugin may ask for a password on it, and the
/// shell shows an error. If the target is slow, a line names the target.
async fn first(options: &Options, environment: &Environment) -> Result<Connection, RunError> {
    let mut connecting = std::pin::pin!(connect::connect(options, environment));
    tokio::select! {
        made = &mut connecting => return Ok(made?),
        () = tokio::time::sleep(PATIENCE) => {}
    }
    let place = options.context.as_ref();
    let place = place.map_or("the target".to_owned(), |name| format!("context {name}"));
    let line = format!("connecting to {}; ctrl-c stops\n", text::line(&place));
    // Without a place to say it, bowline waits silently.
    let _ = std::io::stderr().write_all(line.as_bytes());
    Ok(connecting.await?)
}

/// A target that is followed, with what runs beside it.
struct Link {
    session: Arc<Session>,
    runner: Runner,
    versions: watch::Receiver<u64>,
    touched: std::pin::Pin<Box<dyn Stream<Item = Touched> + Send>>,
    /// The events of this target alone: after a switch, the model gets none of them for the other target.
    answers: UnboundedReceiver<Event>,
    introducing: JoinHandle<()>,
    beside: Option<JoinHandle<()>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.introducing.abort();
        // What is cut off here is done by whoever runs the controllers next.
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

    /// Leaves the target; only the results of writes that are still under way are passed on.
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
                    // Nobody listens any more where the program ends.
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
    /// Takes the results of writes to targets that were left.
    sender: UnboundedSender<Event>,
    options: Options,
    environment: Environment,
    git: Git,
    connecting: Option<Connecting>,
    /// The frame that is on the screen.
    drawn: Option<Glimpse>,
}

/// A target that is being connected to, or that waits for the user; dropping it ends that.
struct Connecting {
    ticket: Ticket,
    task: JoinSet<Result<Connection, connect::Error>>,
    options: Options,
    made: Option<Connection>,
}

/// Waits for the connection to another target; without one, the future never ends.
async fn finished(connecting: &mut Option<Connecting>) -> Result<Connection, String> {
    let Some(connecting) = connecting.as_mut().filter(|it| it.made.is_none()) else {
        return std::future::pending().await;
    };
    match connecting.task.join_next().await {
        Some(Ok(made)) => made.map_err(|error| error.to_string()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the connection was given up".to_owned()),
    }
}

/// Whether the loop goes on.
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
        // What the watches have brought before anybody looked.
        self.tell(Event::World(Vec::new())).await?;
        let mut turns = self.draw()?;
        let mut drawn = Instant::now();
        let mut stale = false;
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
                        if let Going::Out = self.input(input).await? {
                            return Ok(());
                        }
                    }
                    stale = true;
                    drawn = Instant::now() - FRAME;
                }
                // Before what else is told: a flood of it would leave no moment to draw in.
                () = until(frame) => {
                    turns = self.draw()?;
                    drawn = Instant::now();
                    stale = false;
                }
                answer = self.link.answers.recv() => {
                    let mut next = answer;
                    while let Some(event) = next {
                        if let Going::Out = self.tell(event).await? {
                            return Ok(());
                        }
                        next = self.link.answers.try_recv().ok();
                    }
                    stale = true;
                }
                Some(event) = late.recv() => {
                    self.tell(event).await?;
                    stale = true;
                }
                made = finished(&mut self.connecting) => {
                    self.connected(made).await?;
                    stale = true;
                }
                _ = self.link.versions.changed() => stale |= self.follow().await?,
                () = until(wake) => {
                    self.tell(Event::Tick).await?;
                    turns = None;
                    stale = true;
                }
            }
        }
    }

    /// Takes in what changed in the read model since the last time; tells whether any of it can be seen.
    async fn follow(&mut self) -> Result<bool, RunError> {
        let mut touched = Vec::new();
        while let Some(Some(one)) = self.link.touched.next().now_or_never() {
            touched.push(one);
        }
        let environments = touched.iter().any(|one| one.source == Source::Environments);
        // A row may come into the window, or leave it.
        let mut is_seen = self.shows(&touched);
        if !touched.is_empty() {
            self.tell(Event::World(touched.clone())).await?;
            is_seen |= self.shows(&touched);
        }
        if environments {
            let names = {
                let world = self.link.session.feed.world();
                world.environment_names(&self.model.ground.namespace)
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

    async fn input(&mut self, input: Input) -> Result<Going, RunError> {
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
        self.tell(event).await
    }

    /// Lets the model take in an event, and does what it wants.
    async fn tell(&mut self, event: Event) -> Result<Going, RunError> {
        let mut effects = VecDeque::from(self.update(event));
        while let Some(effect) = effects.pop_front() {
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
                    effects.extend(self.update(Event::World(Vec::new())));
                }
                _ => {}
            }
        }
        Ok(Going::On)
    }

    /// Tells the model an event; returns the effects.
    fn update(&mut self, event: Event) -> Vec<Effect> {
        let world = self.link.session.feed.world();
        update(&mut self.model, &world, self.link.session.now(), event)
    }

    fn is_connecting(&self, ticket: Ticket) -> bool {
        let connecting = self.connecting.as_ref();
        connecting.is_some_and(|connecting| connecting.ticket == ticket)
    }

    /// Draws in the colours of a theme; what is wrong in its file is said.
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

    /// Begins to go to another context or namespace, beside the keyboard; of several, the last is gone to.
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

    /// Tells the model what became of a connect. The connection waits until the model switches to it.
    async fn connected(&mut self, made: Result<Connection, String>) -> Result<(), RunError> {
        let Some(connecting) = &mut self.connecting else {
            return Ok(());
        };
        let ticket = connecting.ticket;
        let made = made.map(|connection| {
            let ground = ground_of(&connection, "", &self.environment, &connecting.options);
            connecting.made = Some(connection);
            Box::new(ground)
        });
        if made.is_err() {
            self.connecting = None;
        }
        self.tell(Event::Connected(ticket, made)).await?;
        Ok(())
    }

    /// Follows the target that the model shows from now on. No key is read between the two.
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

    /// Draws a frame; returns when something on it turns over by itself.
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

/// Says where we are.
pub(super) fn ground(session: &Session, environment: &Environment, options: &Options) -> Ground {
    let who = session.who.read().unwrap_or_else(PoisonError::into_inner);
    ground_of(&session.connection, &who.user, environment, options)
}

fn ground_of(
    connection: &Connection,
    user: &str,
    environment: &Environment,
    options: &Options,
) -> Ground {
    let target = match &connection.target {
        Target::Context { name, .. } => name.clone(),
        Target::Pod => "in this pod".to_owned(),
        Target::Embedded { .. } => "embedded".to_owned(),
        // Where it is they know; which one it is tells its name.
        Target::Repository { directory } => {
            let repository = connection.repository.as_ref();
            let root = repository.map_or(directory.as_path(), |found| found.tree.work().root());
            let name = root.file_name().unwrap_or(root.as_os_str());
            name.to_string_lossy().into_owned()
        }
    };
    let repository = connection.repository.as_ref().map(|found| Standing {
        directory: found.tree.work().scope().to_string_lossy().into_owned(),
        onto: found.branch.clone(),
        ..Standing::default()
    });
    Ground {
        target,
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
        zone: TimeZone::system(),
    }
}
