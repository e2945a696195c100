//! The state of the UI: the target, the open screens, the running tasks.
//!
//! No function of this module draws or waits. `update` changes the model, and the screens draw it.

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

/// An input to [`update`](super::update::update).
#[derive(Debug)]
pub enum Event {
    Key(crossterm::event::KeyEvent),
    Paste(String),
    /// The terminal has a new size: columns and rows.
    Resize(u16, u16),
    Mouse(crossterm::event::MouseEvent),
    Focus(bool),
    /// These objects of the read model changed.
    World(Vec<Touched>),
    /// The runner answers the request with this ticket.
    Answer(Ticket, Answer),
    /// bowline has connected to another target, or failed to connect. The ticket is that of the
    /// request.
    Connected(Ticket, Result<Box<TargetInfo>, String>),
    /// The server has reported the name of the user.
    Known(String),
    /// A timer ended: a displayed age changes, or an unfinished search continues.
    Tick,
}

/// The connected target, the user, and the rights of the user on the target.
#[derive(Clone, Debug)]
pub struct TargetInfo {
    /// The display name of the target.
    pub name: String,
    /// The flags that select the target on a command line.
    pub address: Address,
    pub namespace: String,
    /// The user name, as the server reports it; empty until the server answers.
    pub user: String,
    /// The reason why bowline blocks writes; None if it allows them. [`TargetInfo::armed`] can
    /// override it.
    pub readonly: Option<String>,
    /// Whether the context is protected: blocked for writes until the user allows them with
    /// `:write`.
    pub protected: bool,
    /// The end of the permission to write to a protected context; None if there is no permission.
    pub armed: Option<Timestamp>,
    /// Whether the data planes are simulated, so that no container runs.
    pub simulated: bool,
    /// The repository that is the target; None if the target is a server.
    pub repository: Option<RepositoryInfo>,
    /// The contexts that the user can switch to.
    pub contexts: Vec<Known>,
    /// The namespaces of the target; empty until the target has listed them.
    pub namespaces: Vec<String>,
    /// By environment: whether the user may change ReleasePins there. The error is the reason why
    /// not. The map has no entry for an environment that bowline has not checked yet.
    pub rights: BTreeMap<String, Result<(), String>>,
    /// The time zone in which screens show times.
    pub zone: TimeZone,
}

impl TargetInfo {
    /// Adds the flags of the target to a `bowline` command line, so that it works in any shell.
    pub fn aimed(&self, line: String) -> String {
        self.address.bowline(&line)
    }

    /// Adds the flags of the target to kubectl command lines. Returns an empty list if kubectl
    /// cannot reach the target.
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
    /// The state of the work tree; None until bowline has read it.
    pub work_tree: Option<Box<WorkTree>>,
    pub directory: String,
    /// The branch that the user named for the commits; None for the current branch.
    pub onto: Option<String>,
    pub pushing: bool,
}

impl RepositoryInfo {
    /// Describes the state of the work tree in a few words. The flag is true for words that need
    /// attention.
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
    /// Returns the ReleasePin of a cell if a sparse checkout leaves it out or if bowline cannot
    /// read it; None if bowline has read it.
    pub fn left_out(&self, component: &str, environment: &str) -> Option<&LeftOutPin> {
        let work_tree = self
            .repository
            .as_ref()
            .and_then(|it| it.work_tree.as_ref())?;
        work_tree.left_out.iter().find(|pin| {
            pin.namespace == self.namespace
                && pin.component == component
                && pin.environment == environment
        })
    }

    /// Returns the reason why bowline blocks writes at this time; None if it allows them.
    pub fn unwritable(&self, now: Timestamp) -> Option<&str> {
        let armed = self.armed.is_some_and(|until| now < until);
        self.readonly.as_deref().filter(|_| !armed)
    }

    /// Formats a time for display: only the time of day if it is on the same date as `now`,
    /// otherwise with the date.
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

/// The theme, the keymap and the character set.
pub struct Look {
    pub theme: Theme,
    pub keymap: Keymap,
    pub glyphs: &'static Glyphs,
    /// The names of the available themes. The themes of the user come before the built-in ones.
    pub themes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Done,
    Warning,
    Error,
}

/// A message to the user at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub level: Level,
    /// The time at which the notice appeared.
    pub at: Timestamp,
}

impl Notice {
    /// Returns the time at which the notice disappears. Errors and long texts stay longer.
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

/// A connection to another target in the background, while the screens still show the old target.
#[derive(Clone, Debug)]
pub struct Connecting {
    /// The ticket of the request to connect.
    pub ticket: Ticket,
    /// The destination in words, for messages.
    pub place: String,
    /// The connected target, which waits until the user switches to it; None while connecting.
    pub target_info: Option<Box<TargetInfo>>,
}

/// The state of the UI.
pub struct Model {
    pub target_info: TargetInfo,
    pub look: Look,
    /// The open screens; the front screen is the last. The first is always the matrix.
    pub stack: Vec<Screen>,
    /// The screens that the user left by going back. The last one is opened first when the user
    /// goes forward.
    pub forth: Vec<Screen>,
    /// The open prompt or choice; it receives the keys before the front screen.
    pub over: Option<Over>,
    /// The keys pressed so far in an unfinished chord.
    pub pressed: Vec<Key>,
    /// The latest notice, if any; it may have expired.
    pub notice: Option<Notice>,
    /// The connection to another target in the background; None after the switch.
    pub connecting: Option<Connecting>,
    /// The running and the finished tasks.
    pub tasks: Vec<Task>,
    pub log: Vec<Logged>,
    /// The history of the prompts: typed commands and filters, the newest last.
    pub typed: Vec<String>,
    /// The size of the terminal: columns and rows.
    pub size: (u16, u16),
    pub focused: bool,
    /// The tour of the demo; None if it is off.
    pub tour: Option<super::tour::Tour>,
    pub(super) tickets: Ticket,
}

impl Model {
    /// Creates a model that shows the matrix.
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

    pub fn front(&self) -> &Screen {
        self.stack.last().expect("BUG: the matrix is always there")
    }

    /// Returns whether the user is in the middle of a plan, a prompt or a chord. bowline then does
    /// not switch to another target, because the next key is meant for the current target.
    pub fn is_occupied(&self) -> bool {
        let is_plan = |screen: &Screen| matches!(screen, Screen::Plan(_));
        self.over.is_some() || !self.pressed.is_empty() || self.stack.iter().any(is_plan)
    }

    /// Records that the terminal has shown the current model. A plan accepts its confirmation only
    /// after that.
    pub fn was_drawn(&mut self) {
        if let Some(Screen::Plan(plan)) = self.stack.last_mut() {
            plan.was_drawn();
        }
    }

    pub fn matrix(&self) -> &matrix::State {
        match self.stack.first() {
            Some(Screen::Matrix(matrix)) => matrix,
            _ => unreachable!("BUG: the matrix is always there"),
        }
    }
}

/// The input and the output of a screen while it handles one event.
pub struct Turn<'a> {
    /// The read model of the target.
    pub world: &'a World,
    /// The current time, according to the server's clock.
    pub now: Timestamp,
    pub target_info: &'a TargetInfo,
    /// The size of the terminal: columns and rows.
    pub size: (u16, u16),
    /// The size of the area in which the front screen draws: columns and rows.
    pub body: (u16, u16),
    pub look: &'a Look,
    /// The running and the finished tasks.
    pub tasks: &'a [Task],
    pub log: &'a [Logged],
    /// Output: the effects to perform.
    pub effects: Vec<Effect>,
    /// Output: the requests that the model must fulfil.
    pub requests: Vec<ScreenRequest>,
    pub(super) tickets: &'a mut Ticket,
}

/// A request of a screen to the model.
#[derive(Debug)]
pub enum ScreenRequest {
    /// Open this screen in front.
    Open(Box<Screen>),
    /// Close the screen that sent the request.
    Close,
    Say(Level, String),
    /// Open a plan for this command.
    Plan(Command),
    /// Run this action, as if the user had pressed its key.
    Run(super::action::Action),
    /// Let the user choose between several commands.
    Choose(super::prompt::Choice),
    /// Show an applied plan as a task, because its screen closes.
    Follow(Box<Task>),
    Log(Logged),
    /// Show the matrix at this past time.
    Travel(Timestamp),
    /// Connect to another context or namespace in the background.
    Connect(Destination),
    /// Open the command prompt with this text in it.
    Type(String),
    /// Filter the rows of the front screen by this text.
    Filter(String),
}

impl Turn<'_> {
    /// Returns a new ticket for a request.
    pub fn ticket(&mut self) -> Ticket {
        *self.tickets += 1;
        *self.tickets
    }

    pub fn say(&mut self, level: Level, text: impl Into<String>) {
        self.requests.push(ScreenRequest::Say(level, text.into()));
    }

    pub fn open(&mut self, screen: Screen) {
        self.requests.push(ScreenRequest::Open(Box::new(screen)));
    }
}

/// The selection that an action applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The names of the marked components, or of the selected one if none is marked.
    pub components: Vec<Arc<str>>,
    /// The environment of the selection; None if it has none.
    pub environment: Option<Arc<str>>,
    /// The release of the selection; None if it has none.
    pub release: Option<String>,
}

impl Subject {
    /// Returns the component; None unless the selection has exactly one.
    pub fn component(&self) -> Option<&Arc<str>> {
        match self.components.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Returns the cell of the component and the environment; None unless the selection has exactly
    /// one of each.
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
