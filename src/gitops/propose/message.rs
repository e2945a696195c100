//! Builds commit messages: the action in the subject line, the reason in the body, and trailers for tools.

use crate::gitops::tree::Trailers;
use crate::text;

/// The largest length of a subject line in characters; many tools cut a longer line.
const SUBJECT: usize = 72;

/// The message of a commit before it is text.
#[derive(Clone, Debug)]
pub struct Message {
    /// The first line.
    pub subject: String,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// The trailers, in order.
    trailers: Vec<(&'static str, String)>,
}

impl Message {
    /// Begins a message with the trailers that every commit of bowline has. `action` is the word of the action in the
    /// trailer.
    pub fn new(operation: &str, action: &str, subject: String, reason: Option<&str>) -> Self {
        Self {
            subject,
            reason: reason.map(str::to_owned),
            trailers: vec![
                (Trailers::OPERATION, operation.to_owned()),
                (Trailers::ACTION, action.to_owned()),
            ],
        }
    }

    /// Adds a trailer.
    pub fn trailer(&mut self, word: &'static str, value: impl Into<String>) {
        self.trailers.push((word, value.into()));
    }

    /// Writes the message as text. Every trailer is one line.
    pub fn text(&self) -> String {
        let mut out = text::fit(&self.subject, SUBJECT);
        out.push('\n');
        let reason = self.reason.as_deref().map(str::trim);
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            let lines: Vec<_> = reason.lines().map(text::line).collect();
            out += &format!("\n{}\n", lines.join("\n"));
        }
        out.push('\n');
        for (word, value) in &self.trailers {
            out += &format!("{word}: {}\n", text::line(value));
        }
        out
    }
}
