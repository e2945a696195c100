//! The state of the UI: the target, the open screens, the running tasks.
//!
//! No function of this module draws or waits. `update` changes the model, and the screens draw it.

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
