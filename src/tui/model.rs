//! The state of the UI: the target, the open screens, the running tasks.
//!
//! No function of this module draws or waits: `update` changes the model, and the screens show it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::effect::{Answer, Destination, Effect, Place, Refused, Ticket, WorkTree};
use super::keymap::{Key, Keymap};
use super::pen::Glyphs;
use super::prompt::Over;
use super::screens::{Screen, matrix};
use super::tasks::{Logged, Task};
use super::theme::Theme;
use crate::connect::{Address, Known};
use crate::engine::world::World;
use crate::engine::world::feed::Touched;
use crate::gitops::tree::LeftOutPin;
use crate::subjects::service::Command;

/// An input to `update`.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Key(crossterm::event::KeyEvent),
    /// The user pasted text.
    Paste(String),
    /// The terminal has a new size.
    Resize(u16, u16),
    /// The mouse was used.
    Mouse(crossterm::event::MouseEvent),
    /// The terminal gained or lost the focus.
    Focus(bool),
    /// Objects changed in the read model.
    World(Vec<Touched>),
    /// The answer to a request.
    Answer(Ticket, Answer),
    /// bowline connected to another target, or the error.
    Connected(Ticket, Result<Box<TargetInfo>, String>),
    /// The server has reported the name of the user.
    Known(String),
    /// Time has passed.
    Tick,
}

/// The connected target, the user, and the user's rights there.
#[derive(Clone, Debug)]
pub struct TargetInfo {
    /// The name of the target.
    pub name: String,
    /// The flags that select the target on any command line.
    pub address: Address,
    /// The namespace of the session.
    pub namespace: String,
    /// The user name, as the server reports it.
    pub user: String,
    /// The reason why writes are blocked; None if they are allowed.
    pub readonly: Option<String>,
    /// Whether the user can allow writes for some time.
    pub protected: bool,
    /// The time until which writes are allowed on a protected context.
    pub armed: Option<Timestamp>,
    /// Whether the data planes are simulated, so that nothing really runs.
    pub simulated: bool,
    /// The repository; None if the target is a server.
    pub repository: Option<RepositoryInfo>,
    /// The contexts that the user can switch to.
    pub contexts: Vec<Known>,
    /// The namespaces of the target; empty until the target lists them.
    pub namespaces: Vec<String>,
    /// Whether the user may change ReleasePins, by environment; the error is the reason why not. An environment is
    /// missing until bowline has checked it.
    pub rights: BTreeMap<String, Result<(), String>>,
    /// The time zone of displayed times.
    pub zone: TimeZone,
}

impl TargetInfo {
    /// Adds the flags of the target to a command line of bowline, so that it works from any shell.
    pub fn aimed(&self, line: String) -> String {
        self.address.bowline(&line)
    }

    /// Adds the flags of the target to kubectl commands; returns none if kubectl cannot reach the target.
    pub fn kubectl(&self, lines: &[String]) -> Vec<String> {
        let lines = lines.iter();
        lines
            .filter_map(|line| self.address.kubectl(line))
            .collect()
    }
}

/// A repository that is the target of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryInfo {
    /// The state of the work tree; None until git has reported it.
    pub work_tree: Option<Box<WorkTree>>,
    /// The directory that the user named.
    pub directory: String,
    /// The branch that the user named for commits; None for the current branch.
    pub onto: Option<String>,
    /// Whether a push is running.
    pub pushing: bool,
}

impl RepositoryInfo {
    /// Describes the state in a few words; the flag marks a word that needs the user's attention.
    pub fn words(&self) -> Vec<(String, bool)> {
        let Some(work_tree) = &self.work_tree else {
            return Vec::new();
        };
        let state = &work_tree.state;
        let mut words = vec![match &state.branch {
            Some(branch) => (branch.clone(), false),
            None => ("detached HEAD".to_owned(), true),
        }];
        let onto = self.onto.as_ref();
        if let Some(onto) = onto.filter(|onto| state.branch.as_ref() != Some(onto)) {
            words.push((format!("commits to {onto}"), false));
        }
        let count = |count: u64, text: String, known: bool| (count > 0).then_some((text, known));
        let dirty = u64::try_from(state.dirty.len()).unwrap_or(u64::MAX);
        words.extend(count(state.ahead, format!("ahead {}", state.ahead), false));
        words.extend(count(
            state.behind,
            format!("behind {}", state.behind),
            true,
        ));
        words.extend(count(dirty, format!("{dirty} dirty"), true));
        words.extend(state.under_way.map(|what| (what.to_owned(), true)));
        if work_tree.cluster_trouble.is_some() {
            words.push(("cluster not read".to_owned(), true));
        }
        if self.pushing {
            words.push(("pushing".to_owned(), false));
        }
        words
    }
}

impl TargetInfo {
    /// Returns the state of the work tree; None for a server, and until git has reported it.
    pub fn work_tree(&self) -> Option<&WorkTree> {
        self.repository.as_ref()?.work_tree.as_deref()
    }

    /// Describes the state of the work tree, see [`RepositoryInfo::words`]; empty for a server.
    pub fn work_tree_words(&self) -> Vec<(String, bool)> {
        let repository = self.repository.as_ref();
        repository.map(RepositoryInfo::words).unwrap_or_default()
    }

    /// Returns the directory of the repository; None for a server.
    pub fn directory(&self) -> Option<&str> {
        let repository = self.repository.as_ref();
        repository.map(|repository| repository.directory.as_str())
    }

    /// Returns whether the target has a controller that can observe ReleasePins; a repository has none.
    pub fn has_controller(&self) -> bool {
        self.repository.is_none()
    }

    /// Returns whether a push is running.
    pub fn is_pushing(&self) -> bool {
        let repository = self.repository.as_ref();
        repository.is_some_and(|repository| repository.pushing)
    }

    /// Notes that a push starts. The error is the reason why no push can start.
    pub fn begin_push(&mut self) -> Result<(), &'static str> {
        let repository = self.repository.as_mut();
        let repository = repository.ok_or("nothing to push: the target is not a repository")?;
        match std::mem::replace(&mut repository.pushing, true) {
            true => Err("a push is already running"),
            false => Ok(()),
        }
    }

    /// Notes that a push has ended.
    pub fn end_push(&mut self) {
        if let Some(repository) = &mut self.repository {
            repository.pushing = false;
        }
    }

    /// Returns the ReleasePin of a component in an environment if a sparse checkout leaves it out, or if it
    /// cannot be read.
    pub fn left_out(&self, component: &str, environment: &str) -> Option<&LeftOutPin> {
        self.work_tree()?.left_out.iter().find(|pin| {
            pin.namespace == self.namespace
                && pin.component == component
                && pin.environment == environment
        })
    }

    /// Returns the reason why writes are blocked at a given time; None if they are allowed.
    pub fn unwritable(&self, now: Timestamp) -> Option<&str> {
        let armed = self.armed.is_some_and(|until| now < until);
        self.readonly.as_deref().filter(|_| !armed)
    }

    /// Formats a time: only the time of day for today, otherwise with the date.
    pub fn clock(&self, at: Timestamp, now: Timestamp) -> String {
        let (at, now) = (
            at.to_zoned(self.zone.clone()),
            now.to_zoned(self.zone.clone()),
        );
        let format = match at.date() == now.date() {
            true => "%H:%M:%S",
            false => "%Y-%m-%d %H:%M",
        };
        at.strftime(format).to_string()
    }
}

/// Colours, keys and characters.
pub struct Look {
    /// The colours.
    pub theme: Theme,
    /// The keys.
    pub keymap: Keymap,
    /// The set of characters.
    pub glyphs: &'static Glyphs,
    /// The names of the available themes, the user's own first.
    pub themes: Vec<String>,
}

/// The severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Information.
    Info,
    /// An action succeeded.
    Done,
    /// A warning.
    Warning,
    /// An error.
    Error,
}

/// A message to the user, at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The text.
    pub text: String,
    /// The severity.
    pub level: Level,
    /// The time at which the notice appeared.
    pub at: Timestamp,
}

impl Notice {
    /// Returns the time at which the notice disappears: an error stays longer than a note, a long text longer
    /// than a short one.
    pub fn ends(&self) -> Timestamp {
        let seconds = match self.level {
            Level::Info | Level::Done => 5,
            Level::Warning => 10,
            Level::Error => 30,
        };
        let letters = i64::try_from(self.text.chars().count()).unwrap_or(i64::MAX);
        let lasts = SignedDuration::from_secs(seconds + letters / 20);
        self.at.checked_add(lasts).unwrap_or(Timestamp::MAX)
    }
}

/// A connection to another target, while the screen still shows the old one.
#[derive(Clone, Debug)]
pub struct Connecting {
    /// The ticket of the request for the connection.
    pub ticket: Ticket,
    /// The name of the destination.
    pub place: String,
    /// The target, once bowline is connected and waits for the user to switch; None until then.
    pub target_info: Option<Box<TargetInfo>>,
}

/// The state of the UI.
pub struct Model {
    /// The connected target.
    pub target_info: TargetInfo,
    /// Colours, keys and characters.
    pub look: Look,
    /// The open screens, the front one last; the matrix is always the first.
    pub stack: Vec<Screen>,
    /// The screens that the user can return to after going back, the next one last.
    pub forth: Vec<Screen>,
    /// The prompt or choice over the front screen.
    pub over: Option<Over>,
    /// The keys of a chord so far.
    pub pressed: Vec<Key>,
    /// The latest notice; None if there is no notice.
    pub notice: Option<Notice>,
    /// The connection to another target, until the user has switched to it.
    pub connecting: Option<Connecting>,
    /// Running and finished tasks.
    pub tasks: Vec<Task>,
    /// The command log.
    pub log: Vec<Logged>,
    /// The typed commands and filters, the newest last.
    pub typed: Vec<String>,
    /// The size of the terminal: columns and rows.
    pub size: (u16, u16),
    /// Whether the terminal has the focus.
    pub focused: bool,
    /// The tour of the demo; None while it is off.
    pub tour: Option<super::tour::Tour>,
    pub(super) tickets: Ticket,
}

impl Model {
    /// Starts with the matrix.
    pub fn new(target_info: TargetInfo, look: Look, size: (u16, u16)) -> Self {
        Self {
            target_info,
            look,
            stack: vec![Screen::Matrix(Box::default())],
            forth: Vec::new(),
            over: None,
            pressed: Vec::new(),
            notice: None,
            connecting: None,
            tasks: Vec::new(),
            log: Vec::new(),
            typed: Vec::new(),
            size,
            focused: true,
            tour: None,
            tickets: 0,
        }
    }

    /// Returns the front screen.
    pub fn front(&self) -> &Screen {
        self.stack.last().expect("BUG: the matrix is always there")
    }

    /// Returns whether the user is in the middle of a plan, a prompt or a chord. Then bowline does not switch to
    /// another target, because the next keys are meant for the current one.
    pub fn is_occupied(&self) -> bool {
        let is_plan = |screen: &Screen| matches!(screen, Screen::Plan(_));
        self.over.is_some() || !self.pressed.is_empty() || self.stack.iter().any(is_plan)
    }

    /// Records that the terminal has drawn the current model.
    pub fn was_drawn(&mut self) {
        if let Some(Screen::Plan(plan)) = self.stack.last_mut() {
            plan.was_drawn();
        }
    }

    /// Returns the matrix.
    pub fn matrix(&self) -> &matrix::State {
        match self.stack.first() {
            Some(Screen::Matrix(matrix)) => matrix,
            _ => unreachable!("BUG: the matrix is always there"),
        }
    }
}

/// The input of a screen for one event, and its output: effects and requests to the model.
pub struct Turn<'a> {
    /// The read model.
    pub world: &'a World,
    /// The current time, by the server's clock.
    pub now: Timestamp,
    /// The connected target.
    pub target_info: &'a TargetInfo,
    /// The size of the terminal: columns and rows.
    pub size: (u16, u16),
    /// The size of the area that the screen draws on: columns and rows.
    pub body: (u16, u16),
    /// Colours, keys and characters.
    pub look: &'a Look,
    /// Running and finished tasks.
    pub tasks: &'a [Task],
    /// The command log.
    pub log: &'a [Logged],
    /// The effects to perform.
    pub effects: Vec<Effect>,
    /// The requests to the model.
    pub requests: Vec<ScreenRequest>,
    pub(super) tickets: &'a mut Ticket,
}

/// A request of a screen to the model.
#[derive(Debug)]
pub enum ScreenRequest {
    /// Open another screen in front.
    Open(Box<Screen>),
    /// Close the screen.
    Close,
    /// Show a notice.
    Say(Level, String),
    /// Make a plan for an action.
    Plan(Command),
    /// Run an action, as if the user had pressed its key.
    Run(super::action::Action),
    /// Let the user choose.
    Choose(super::prompt::Choice),
    /// Show an applied plan as a task after its screen is closed.
    Follow(Box<Task>),
    /// Add a line to the command log.
    Log(Logged),
    /// Show the matrix at a past time.
    Travel(Timestamp),
    /// Connect to another context or namespace.
    Connect(Destination),
    /// Open the command prompt with this text.
    Type(String),
    /// Filter the rows of the front screen.
    Filter(String),
}

impl Turn<'_> {
    /// Returns a new ticket.
    pub fn ticket(&mut self) -> Ticket {
        *self.tickets += 1;
        *self.tickets
    }

    /// Shows a notice.
    pub fn say(&mut self, level: Level, text: impl Into<String>) {
        self.requests.push(ScreenRequest::Say(level, text.into()));
    }

    /// Opens a screen.
    pub fn open(&mut self, screen: Screen) {
        self.requests.push(ScreenRequest::Open(Box::new(screen)));
    }
}

/// The objects that an action applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The components: the marked ones, or else the selected one.
    pub components: Vec<Arc<str>>,
    /// The environment, if the selection has one.
    pub environment: Option<Arc<str>>,
    /// The release, if the selection has one.
    pub release: Option<String>,
}

impl Subject {
    /// Returns the component, if there is exactly one.
    pub fn component(&self) -> Option<&Arc<str>> {
        match self.components.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Returns the component and the environment, if there is exactly one of each.
    pub fn place(&self) -> Option<Place> {
        Some(Place {
            component: self.component()?.clone(),
            environment: self.environment.clone()?,
        })
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self {
            why: vec![why],
            ..Self::default()
        }
    }
}
