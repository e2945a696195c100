//! The prompts and choices that bowline draws over the front screen.

pub(super) mod keys;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_textarea::TextArea;

use super::jump::{Goal, Jump};
use crate::subjects::service::Command;

/// An open prompt or choice. While it is open, it receives the keys instead of the front screen.
#[derive(Debug)]
pub enum Over {
    Prompt(Box<Prompt>),
    /// A choice between several commands.
    Choice(Choice),
}

/// A prompt: a line in which the user types a command, a filter or a name.
#[derive(Debug)]
pub struct Prompt {
    pub kind: PromptKind,
    pub line: TextArea<'static>,
    /// The completions or the jump results for the typed text, the best first.
    pub offers: Vec<Offer>,
    /// The index in `offers` of the chosen completion; None if none is chosen.
    pub chosen: Option<usize>,
    /// The message about a mistake in the typed text; None if there is no message.
    pub complaint: Option<String>,
    /// The position in the history of the line that the prompt shows, counted from the newest line; None if the user
    /// typed a new line.
    pub recalled: Option<usize>,
    /// The text with which the prompt opened. If the user cancels a filter prompt, the filter gets this text again.
    pub before: String,
    /// The search of a jump prompt; None for other prompts.
    pub jump: Option<Box<Jump>>,
    /// Whether this prompt has already sent a request for the namespaces of the target.
    pub asked: bool,
    /// The text before the first completion, while the user steps through the completions;
    /// otherwise None.
    pub stem: Option<String>,
}

/// Passes a key press to a text line. As in shells, ctrl-u deletes from the cursor to the start of the line.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// A command to run.
    Command,
    /// A filter of the front screen, which applies while the user types.
    Filter,
    /// A name to find and to go to.
    Jump,
}

/// A completion, or a result of a jump prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The text that the prompt inserts if the user chooses this completion.
    pub text: String,
    /// The description of this completion; empty without a description.
    pub about: String,
    /// The destination of the jump if the user chooses this result; None in other prompts.
    pub goal: Option<Goal>,
    /// The positions of the characters in `text` that match the typed text, for highlighting.
    pub fits: Vec<u32>,
}

impl Offer {
    /// Returns a completion without destination and highlights.
    pub fn new(text: &str, about: &str) -> Self {
        Self {
            text: text.to_owned(),
            about: about.to_owned(),
            goal: None,
            fits: Vec::new(),
        }
    }
}

/// A choice between several commands.
#[derive(Debug)]
pub struct Choice {
    pub question: String,
    /// The options, as (label, command). Choosing an option opens the plan for its command.
    pub options: Vec<(String, Command)>,
    /// The index in `options` of the chosen option.
    pub chosen: usize,
}

impl Prompt {
    /// Opens a prompt that contains this text.
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

    pub fn text(&self) -> &str {
        self.line.lines().first().map_or("", String::as_str)
    }

    /// Replaces the typed text, and moves the cursor to the end of the new text.
    pub fn replace(&mut self, text: &str) {
        let opened = Self::open(self.kind, text);
        self.line = opened.line;
    }

    /// Returns the sign that the prompt shows before the typed text.
    pub fn sign(&self) -> &'static str {
        match self.kind {
            PromptKind::Command => ":",
            PromptKind::Filter => "/",
            PromptKind::Jump => "go to ",
        }
    }
}
