//! What lies over a screen: the line of commands, the filter, a choice.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_textarea::TextArea;

use super::jump::{Goal, Jump};
use super::order::Order;

/// What lies over the screen in front.
#[derive(Debug)]
pub enum Over {
    /// A line that is typed.
    Prompt(Box<Prompt>),
    /// A choice between several.
    Choice(Choice),
}

/// A line that is typed.
#[derive(Debug)]
pub struct Prompt {
    /// What it is for.
    pub kind: PromptKind,
    /// What is typed.
    pub line: TextArea<'static>,
    /// What could be meant, the best first.
    pub offers: Vec<Offer>,
    /// Which of these is chosen.
    pub chosen: Option<usize>,
    /// What is wrong with what is typed.
    pub complaint: Option<String>,
    /// Which line of the past is shown, counted from the newest.
    pub recalled: Option<usize>,
    /// What was there before, for who gives up.
    pub before: String,
    /// The search, where somewhere to jump to is looked for.
    pub jump: Option<Box<Jump>>,
    /// Whether this line has asked for the namespaces of the target.
    pub asked: bool,
    /// The text that the offers complete, while a key goes from one offer to the next.
    pub stem: Option<String>,
}

/// Takes a key into a line that is typed. Deletes to the start of the line with ctrl-u, as shells do.
pub fn edit(line: &mut TextArea<'_>, key: KeyEvent) {
    match (key.modifiers, key.code) {
        (KeyModifiers::CONTROL, KeyCode::Char('u')) => {
            line.delete_line_by_head();
        }
        _ => {
            line.input(key);
        }
    }
}

/// What a line is typed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// A command.
    Command,
    /// A filter, which counts while it is typed.
    Filter,
    /// A part of a name to jump to.
    Jump,
}

/// Something that could be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What is taken.
    pub text: String,
    /// What it is.
    pub about: String,
    /// Where it leads, where it is somewhere to jump to.
    pub goal: Option<Goal>,
    /// The characters of it that fit what is typed, by number.
    pub fits: Vec<u32>,
}

impl Offer {
    /// Offers a word.
    pub fn new(text: &str, about: &str) -> Self {
        Self {
            text: text.to_owned(),
            about: about.to_owned(),
            goal: None,
            fits: Vec::new(),
        }
    }
}

/// A choice between several.
#[derive(Debug)]
pub struct Choice {
    /// What is asked.
    pub question: String,
    /// What there is, each with what it orders.
    pub options: Vec<(String, Order)>,
    /// Which is chosen.
    pub chosen: usize,
}

impl Prompt {
    /// Opens a line with a text in it.
    pub fn open(kind: PromptKind, text: &str) -> Self {
        let mut line = TextArea::new(vec![text.to_owned()]);
        line.move_cursor(tui_textarea::CursorMove::End);
        line.set_cursor_line_style(ratatui::style::Style::new());
        Self {
            kind,
            line,
            offers: Vec::new(),
            chosen: None,
            complaint: None,
            recalled: None,
            before: text.to_owned(),
            jump: None,
            asked: false,
            stem: None,
        }
    }

    /// Returns what is typed.
    pub fn text(&self) -> &str {
        self.line.lines().first().map_or("", String::as_str)
    }

    /// Puts another text on the line.
    pub fn replace(&mut self, text: &str) {
        let opened = Self::open(self.kind, text);
        self.line = opened.line;
    }

    /// Returns the sign before the line.
    pub fn sign(&self) -> &'static str {
        match self.kind {
            PromptKind::Command => ":",
            PromptKind::Filter => "/",
            PromptKind::Jump => "go to ",
        }
    }
}
