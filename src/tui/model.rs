//! Everything that the UI knows: where it is, what is open, what is under way.
//!
//! Nothing here draws or waits. `update` changes it, the screens show it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::effect::{Answer, Destination, Effect, Place, Refused, Stands, Ticket};
use super::keymap::{Key, Keymap};
use super::order::Order;
use super::pen::Glyphs;
use super::prompt::Over;
use super::screens::Screen;
use super::screens::matrix;
use super::tasks::{Logged, Task};
use super::theme::Theme;
use crate::connect::{Address, Known};
use crate::engine::world::World;
use crate::engine::world::feed::Touched;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Key(crossterm::event::KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size now.
    Resize(u16, u16),
    /// The mouse was used.
    Mouse(crossterm::event::MouseEvent),
    /// The terminal got or lost the focus.
    Focus(bool),
    /// Objects changed in the read model.
    World(Vec<Touched>),
    /// A request was answered.
    Answer(Ticket, Answer),
    /// Another target is connected to, or why not.
    Connected(Ticket, Result<Box<Ground>, String>),
    /// The target says who we are.
    Known(String),
    /// Time went by.
    Tick,
}

/// Where we are, and what we may do there.
#[derive(Clone, Debug)]
pub struct Ground {
    /// What the target is called.
    pub target: String,
    /// The flags that lead to the target from anywhere.
    pub address: Address,
    /// The namespace.
    pub namespace: String,
    /// Who the server takes us for.
    pub user: String,
    /// Whether, and why, only reads pass.
    pub readonly: Option<String>,
    /// Whether that can be lifted for a while.
    pub protected: bool,
    /// Until when writes pass on a protected context.
    pub armed: Option<Timestamp>,
    /// Whether nothing really runs in the data planes.
    pub simulated: bool,
    /// Where the repository stands, where the target is one.
    pub repository: Option<Standing>,
    /// The contexts that one can go to.
    pub contexts: Vec<Known>,
    /// The namespaces of the target; empty until the target lists them.
    pub namespaces: Vec<String>,
    /// Where we may move pins; why not, where not. What is absent is not known yet.
    pub rights: BTreeMap<String, Result<(), String>>,
    /// The time zone that moments are shown in.
    pub zone: TimeZone,
}

impl Ground {
    /// Adds the whole target to a command line of bowline, so that it does the same wherever it is pasted.
    pub fn aimed(&self, line: String) -> String {
        self.address.bowline(&line)
    }

    /// Adds the whole target to command lines of kubectl; none are left if kubectl does not reach the target.
    pub fn kubectl(&self, lines: &[String]) -> Vec<String> {
        let lines = lines.iter();
        lines
            .filter_map(|line| self.address.kubectl(line))
            .collect()
    }
}

/// Where a repository stands, and what is done with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// What git says; None until it has been asked.
    pub stands: Option<Box<Stands>>,
    /// The directory that was named.
    pub directory: String,
    /// The branch that commits go to, where it was named.
    pub onto: Option<String>,
    /// Whether a push is under way.
    pub pushing: bool,
}

impl Standing {
    /// Says it in a few words, and which of them somebody should know before going on.
    pub fn words(&self) -> Vec<(String, bool)> {
        let Some(stands) = &self.stands else {
            return Vec::new();
        };
        let state = &stands.state;
        let mut words = vec![match &state.branch {
            Some(branch) => (branch.clone(), false),
            None => ("no branch".to_owned(), true),
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
        if stands.cluster_trouble.is_some() {
            words.push(("cluster unread".to_owned(), true));
        }
        if self.pushing {
            words.push(("pushing".to_owned(), false));
        }
        words
    }
}

impl Ground {
    /// Tells whether a sparse checkout leaves out the ReleasePin of a component in an environment.
    pub fn leaves_out(&self, component: &str, environment: &str) -> bool {
        let stands = self.repository.as_ref().and_then(|it| it.stands.as_ref());
        stands.is_some_and(|stands| {
            stands.left_out.iter().any(|pin| {
                pin.namespace == self.namespace
                    && pin.component == component
                    && pin.environment == environment
            })
        })
    }

    /// Says why nothing can be written at a moment, if so.
    pub fn unwritable(&self, now: Timestamp) -> Option<&str> {
        let armed = self.armed.is_some_and(|until| now < until);
        self.readonly.as_deref().filter(|_| !armed)
    }

    /// Words a moment of today as a time, and another one with its day.
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

/// How things look and which keys do what.
pub struct Look {
    /// The colours.
    pub theme: Theme,
    /// The keys.
    pub keymap: Keymap,
    /// The characters.
    pub glyphs: &'static Glyphs,
    /// The themes that can be chosen, the user's first.
    pub themes: Vec<String>,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something is so.
    Info,
    /// Something was done.
    Done,
    /// Somebody should look.
    Warning,
    /// It does not work.
    Error,
}

/// One line for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What.
    pub text: String,
    /// How much it matters.
    pub level: Level,
    /// Since when it is shown.
    pub at: Timestamp,
    /// Whether it is shown in full, over as many lines as it takes.
    pub whole: bool,
}

impl Notice {
    /// Returns when the notice goes away: an error stays longer than a note, a long text longer than a short one.
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

/// A connection to another target, beside the one that is shown.
#[derive(Clone, Debug)]
pub struct Connecting {
    /// The request for it.
    pub ticket: Ticket,
    /// The destination in words.
    pub place: String,
    /// The target, once it is connected to and waits for the user to switch; None until then.
    pub ground: Option<Box<Ground>>,
}

/// Everything that the UI knows.
pub struct Model {
    /// Where we are.
    pub ground: Ground,
    /// How things look.
    pub look: Look,
    /// The screens, the one in front last; the matrix is always there.
    pub stack: Vec<Screen>,
    /// The screens that were left, the last one last.
    pub forth: Vec<Screen>,
    /// What lies over the screen in front.
    pub over: Option<Over>,
    /// The keys of a chord so far.
    pub pressed: Vec<Key>,
    /// What was said last.
    pub notice: Option<Notice>,
    /// The connection to another target, until the user has switched to it.
    pub connecting: Option<Connecting>,
    /// What is under way, and was.
    pub tasks: Vec<Task>,
    /// What was done, as commands.
    pub log: Vec<Logged>,
    /// Commands and filters that were typed, the last one last.
    pub typed: Vec<String>,
    /// How large the terminal is.
    pub size: (u16, u16),
    /// Whether the terminal has the focus.
    pub focused: bool,
    /// The tour of the demo, while it is on.
    pub tour: Option<super::tour::Tour>,
    pub(super) tickets: Ticket,
}

impl Model {
    /// Begins with the matrix.
    pub fn new(ground: Ground, look: Look, size: (u16, u16)) -> Self {
        Self {
            ground,
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

    /// Returns the screen in front.
    pub fn front(&self) -> &Screen {
        self.stack.last().expect("BUG: the matrix is always there")
    }

    /// Tells whether the user is in the middle of a plan, a prompt or a chord: keys that are typed for it must
    /// not reach another target.
    pub fn is_occupied(&self) -> bool {
        let is_plan = |screen: &Screen| matches!(screen, Screen::Plan(_));
        self.over.is_some() || !self.pressed.is_empty() || self.stack.iter().any(is_plan)
    }

    /// Notes that the terminal shows the model as it is now.
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

/// What a screen may look at while it is told something, and what it may ask for.
pub struct Turn<'a> {
    /// The read model.
    pub world: &'a World,
    /// What time it is, by the server's clock.
    pub now: Timestamp,
    /// Where we are.
    pub ground: &'a Ground,
    /// How large the terminal is.
    pub size: (u16, u16),
    /// How large the part of the terminal is that a screen draws on.
    pub body: (u16, u16),
    /// The keys and the characters.
    pub look: &'a Look,
    /// What is under way.
    pub tasks: &'a [Task],
    /// What was done.
    pub log: &'a [Logged],
    /// What is wanted of the world outside.
    pub effects: Vec<Effect>,
    /// What is wanted of the model.
    pub wishes: Vec<Wish>,
    pub(super) tickets: &'a mut Ticket,
}

/// What a screen wants of the model.
#[derive(Debug)]
pub enum Wish {
    /// Another screen in front.
    Open(Box<Screen>),
    /// To be closed.
    Close,
    /// Something said.
    Say(Level, String),
    /// A plan of something.
    Order(Order),
    /// An action, as if its key had been pressed.
    Run(super::action::Action),
    /// A choice between several.
    Choose(super::prompt::Choice),
    /// A plan that was applied goes on without its screen.
    Follow(Box<Task>),
    /// A line of the command log.
    Log(Logged),
    /// The matrix as of a moment.
    Travel(Timestamp),
    /// To go to another context or namespace.
    Connect(Destination),
    /// The line of commands, with a beginning.
    Type(String),
}

impl Turn<'_> {
    /// Returns a ticket that nobody has had yet.
    pub fn ticket(&mut self) -> Ticket {
        *self.tickets += 1;
        *self.tickets
    }

    /// Says something.
    pub fn say(&mut self, level: Level, text: impl Into<String>) {
        self.wishes.push(Wish::Say(level, text.into()));
    }

    /// Opens a screen.
    pub fn open(&mut self, screen: Screen) {
        self.wishes.push(Wish::Open(Box::new(screen)));
    }
}

/// What an action would be done to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The components: the one that is selected, or those that are marked.
    pub components: Vec<Arc<str>>,
    /// The environment.
    pub environment: Option<Arc<str>>,
    /// The release.
    pub release: Option<String>,
}

impl Subject {
    /// Returns the component, where there is one.
    pub fn component(&self) -> Option<&Arc<str>> {
        match self.components.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Returns the component and the environment, where there is one of each.
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
