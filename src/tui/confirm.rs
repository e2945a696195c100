//! The line on which the user confirms a plan. `engine::confirmation` decides what the user types.

use crossterm::event::KeyEvent;
use tui_textarea::TextArea;

use crate::engine::confirmation::{Accepted, Answer, Confirmation};

/// The line of a confirmation, while the user types it.
#[derive(Debug)]
pub struct ConfirmationLine {
    /// The required input.
    pub needed: Confirmation,
    /// The typed text.
    pub text: TextArea<'static>,
    /// Whether the line is open as an editor with several lines.
    pub editor: bool,
    /// Whether the Apply button is chosen instead of Cancel.
    pub apply: bool,
    /// The message that says which input is missing or wrong; None if there is nothing to report.
    pub complaint: Option<String>,
}

impl ConfirmationLine {
    /// Starts with an empty line.
    pub fn new(needed: Confirmation) -> Self {
        let mut text = TextArea::default();
        // A single line needs no underline to be visible.
        text.set_cursor_line_style(ratatui::style::Style::new());
        Self {
            needed,
            text,
            editor: false,
            apply: false,
            complaint: None,
        }
    }

    /// Rebuilds the line for a new size of the terminal: the text area keeps its old scroll position, although
    /// there may now be room for more text.
    pub fn resized(&mut self) {
        // The message may be about the old size.
        self.complaint = None;
        let cursor = self.text.cursor();
        let (row, column) = (cursor.0, cursor.1);
        let fresh = Self::new(self.needed.clone());
        let text = self.typed();
        self.text = fresh.text;
        self.text.insert_str(text);
        let to = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        self.text
            .move_cursor(tui_textarea::CursorMove::Jump(to(row), to(column)));
    }

    /// Inserts the text that the user typed before the plan was made again.
    pub fn retype(&mut self, text: &str) {
        self.editor = text.contains('\n');
        self.text.insert_str(text);
    }

    /// Returns the typed text, with line breaks between its lines.
    pub fn typed(&self) -> String {
        self.text.lines().join("\n")
    }

    /// Returns whether keys are typed into the line.
    pub fn takes_text(&self) -> bool {
        !self.needed.is_key() || self.editor
    }

    /// Passes a key to the line.
    pub fn input(&mut self, key: KeyEvent) {
        self.complaint = None;
        super::prompt::edit(&mut self.text, key);
    }

    /// Inserts pasted text; unless the editor is open, only one line of it.
    pub fn paste(&mut self, text: &str) {
        self.complaint = None;
        let text = crate::text::clean(text);
        match self.editor {
            true => self.text.insert_str(&*text),
            false => self.text.insert_str(crate::text::line(&text)),
        };
    }

    /// Checks the typed text or the pressed key. Returns None and shows a message if input is missing. `shown`
    /// says whether the user has seen the differences that the plan causes.
    pub fn accept(&mut self, shown: bool) -> Option<Accepted> {
        let typed = self.typed();
        let typed = typed.as_str();
        match self.needed.check(Answer::Given { typed, shown }) {
            Ok(confirmed) => Some(confirmed),
            Err(missing) => {
                self.complaint = Some(missing.to_string());
                None
            }
        }
    }
}
