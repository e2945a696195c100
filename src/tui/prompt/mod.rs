//! The prompts over a screen: the command prompt, the filter, a choice.

pub(super) mod keys;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_textarea::TextArea;

use super::jump::{Goal, Jump};
use crate::subjects::service::Command;

/// A prompt or choice over the front screen.
#[derive(Debug)]
pub enum Over {
    /// A line that the user types.
    Prompt(Box<Prompt>),
    /// A choice between several options.
    Choice(Choice),
}

/// A line that the user types.
#[derive(Debug)]
pub struct Prompt {
    /// The purpose of the prompt.
    pub kind: PromptKind,
    /// The typed text.
    pub line: TextArea<'static>,
    /// The completions, the best first.
    pub offers: Vec<Offer>,
    /// The index of the chosen completion; None if none is chosen.
    pub chosen: Option<usize>,
    /// The mistake in the typed text; None if there is no mistake.
    pub complaint: Option<String>,
    /// The position in the history of typed lines, counted from the newest; None for a new line.
    pub recalled: Option<usize>,
    /// The text with which the prompt opened. A filter returns to this text if the user cancels.
    pub before: String,
    /// The running search of a jump prompt.
    pub jump: Option<Box<Jump>>,
    /// Whether this prompt has requested the namespaces of the target.
    pub asked: bool,
    /// The text before the completion, while the user steps through the completions.
    pub stem: Option<String>,
}

/// Passes a key to a line. Ctrl-u deletes to the start of the line, as in shells.
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

/// The purpose of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// A command.
    Command,
    /// A filter; it applies while the user types.
    Filter,
    /// A jump by a part of a name.
    Jump,
}

/// A completion, or a result of a jump prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The text that is inserted.
    pub text: String,
    /// The description of the text; empty if the text needs none.
    pub about: String,
    /// The destination; None if the prompt is not a jump prompt.
    pub goal: Option<Goal>,
    /// The positions of the characters of `text` that match the typed text.
    pub fits: Vec<u32>,
}

impl Offer {
    /// Returns a completion without a destination.
    pub fn new(text: &str, about: &str) -> Self {
        Self {
            text: text.to_owned(),
            about: about.to_owned(),
            goal: None,
            fits: Vec::new(),
        }
    }
}

/// A choice between several options.
#[derive(Debug)]
pub struct Choice {
    /// The question to the user.
    pub question: String,
    /// The options: their labels, and the commands that they plan.
    pub options: Vec<(String, Command)>,
    /// The index of the chosen option.
    pub chosen: usize,
}

impl Prompt {
    /// Opens a prompt with this text.
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

    /// Returns the typed text.
    pub fn text(&self) -> &str {
        self.line.lines().first().map_or("", String::as_str)
    }

    /// Replaces the text of the line.
    pub fn replace(&mut self, text: &str) {
        let opened = Self::open(self.kind, text);
        self.line = opened.line;
    }

    /// Returns the text before the line that the user types.
    pub fn sign(&self) -> &'static str {
        match self.kind {
            PromptKind::Command => ":",
            PromptKind::Filter => "/",
            PromptKind::Jump => "go to ",
        }
    }
}
