//! The input line with which the user confirms a plan. It only receives the text: `engine::confirmation` decides
//! which text the user must type.

use crossterm::event::KeyEvent;
use tui_textarea::TextArea;

use crate::engine::confirmation::{Accepted, Answer, Confirmation};

/// The state of the input line that confirms a plan.
#[derive(Debug)]
pub struct ConfirmationLine {
    /// The input that the plan requires as its confirmation, for example a typed name or only a key press.
    pub needed: Confirmation,
    pub text: TextArea<'static>,
    /// Whether the line is open as a multi-line editor.
    pub editor: bool,
    /// Whether the focus is on the Apply button. If false, the focus is on the Cancel button.
    pub apply: bool,
    /// The message to the user about missing or wrong input; None if there is no message.
    pub complaint: Option<String>,
}

impl ConfirmationLine {
    /// Creates an empty line for a plan that requires this confirmation.
    pub fn new(needed: Confirmation) -> Self {
        let mut text = TextArea::default();
        // A single line of text is visible without the underline that `TextArea` adds by default.
        text.set_cursor_line_style(ratatui::style::Style::new());
        Self {
            needed,
            text,
            editor: false,
            apply: false,
            complaint: None,
        }
    }

    /// Rebuilds the text area after the terminal changed its size, because the old text area would keep its scroll
    /// position even if the whole text now fits.
    pub fn resized(&mut self) {
        // The message may be about the old size of the terminal.
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

    /// Restores the text that the user had typed before bowline computed the plan again.
    pub fn retype(&mut self, text: &str) {
        self.editor = text.contains('\n');
        self.text.insert_str(text);
    }

    /// Returns the typed text; `\n` separates its lines.
    pub fn typed(&self) -> String {
        self.text.lines().join("\n")
    }

    /// Returns whether the line takes key presses as text.
    pub fn takes_text(&self) -> bool {
        !self.needed.is_key() || self.editor
    }

    /// Passes a key press to the text area, and removes the message about the previous input.
    pub fn input(&mut self, key: KeyEvent) {
        self.complaint = None;
        super::prompt::edit(&mut self.text, key);
    }

    /// Inserts pasted text: all lines if the multi-line editor is open, otherwise only the first line.
    pub fn paste(&mut self, text: &str) {
        self.complaint = None;
        let text = crate::text::clean(text);
        match self.editor {
            true => self.text.insert_str(&*text),
            false => self.text.insert_str(crate::text::line(&text)),
        };
    }

    /// Returns the confirmation if the typed text or the pressed key is the required input. Otherwise returns None
    /// and sets the message for the user. `shown` says whether the user has seen the diff of the plan.
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
