//! The state of the UI: the target, the open screens, the running tasks.
//!
//! No function of this module draws or waits: `update` changes the model, and the screens show it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::effect::{Answer, CellKey, Destination, Effect, Refused, Ticket};
use super::keymap::{Key, Keymap};
use super::pen::Glyphs;
use super::prompt::Over;
use super::screens::{Screen, matrix};
pub use super::target_info::{RepositoryInfo, TargetInfo};
use super::tasks::{Logged, Task};
use super::theme::Theme;
use crate::engine::world::World;
use crate::engine::world::feed::Touched;
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
    pub fn place(&self) -> Option<CellKey> {
        Some(CellKey {
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
