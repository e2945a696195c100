//! Builds commit messages. The subject line names the action, the body is the reason, and the trailers contain the
//! same values for tools.

use crate::gitops::tree::Trailers;
use crate::text;

/// The largest length of a subject line in characters. Many tools cut a longer line.
const SUBJECT: usize = 72;

/// A commit message in parts, before it becomes text.
#[derive(Clone, Debug)]
pub struct Message {
    /// The first line of the message, without a line break.
    pub subject: String,
    /// The reason that the user gave for the action; None if the user gave none.
    pub reason: Option<String>,
    /// The trailers of the message in their order: name and value.
    trailers: Vec<(&'static str, String)>,
}

impl Message {
    /// Creates a message with the trailers that every commit of bowline has. `action` is the word for the action in
    /// the trailer.
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

    /// Returns the message as text. Each trailer is one line.
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
