//! What lies over a screen: the line of commands, the filter, a choice.

use tui_textarea::TextArea;

use super::order::Order;

/// What lies over the screen in front.
#[derive(Debug)]
pub enum Over {
    /// A line that is typed.
    Prompt(Prompt),
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
