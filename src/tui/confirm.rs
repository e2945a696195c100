//! How a user confirms a plan: the higher the risk, the more the user types.
//!
//! For the first environments of the pipeline, a key is enough. For other environments, the screen must have
//! shown the difference first. For production, the user types the environment's name; for several components,
//! also their number. Any text after these words is the reason.

use crossterm::event::KeyEvent;
use tui_textarea::TextArea;

use super::order::Prepared;
use crate::engine::plan::Plan;
use crate::engine::world::World;

/// The input that a plan needs before it is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The words that the user must type, in this order.
    pub words: Vec<String>,
    /// The noun for the number that is the last word, such as `components`; None if the last word is a name.
    pub counts: Option<&'static str>,
    /// Whether the user must type a reason after the words.
    pub reason: bool,
    /// Whether the screen must have shown the difference first.
    pub shown: bool,
}

/// The confirmation of a plan, while the user types it.
#[derive(Debug)]
pub struct Confirmation {
    /// The required input.
    pub demand: Demand,
    /// The typed text.
    pub line: TextArea<'static>,
    /// Whether the line is open as an editor with several lines.
    pub editor: bool,
    /// Whether the Apply button is chosen instead of Cancel.
    pub apply: bool,
    /// The message about missing input.
    pub complaint: Option<String>,
}

impl Demand {
    /// Returns the input that a plan requires.
    pub fn of(prepared: &Prepared, world: &World) -> Self {
        match prepared {
            Prepared::Moves(action_plan) => Self::of_moves(&action_plan.plan, world),
            Prepared::Mark(marking) => Self {
                reason: marking.needs_reason() && marking.reason.is_none(),
                ..Self::default()
            },
            Prepared::Collection(collection) => Self {
                words: vec![collection.going().count().to_string()],
                counts: Some("objects"),
                ..Self::default()
            },
        }
    }

    fn of_moves(plan: &Plan, world: &World) -> Self {
        let changing = || plan.changing();
        let production = plan.production();
        let first = |environment: &str, namespace: &str| {
            let pipeline = world.pipeline(namespace);
            pipeline.is_some_and(|pipeline| pipeline.first_environments().contains(&environment))
        };
        let mut words: Vec<String> = Vec::new();
        words.extend(production.map(|change| change.environment.clone()));
        let count = changing().count();
        if count > 1 {
            words.push(count.to_string());
        }
        Self {
            words,
            counts: (count > 1).then_some("components"),
            reason: plan.lacks_reason().is_some(),
            shown: !changing().all(|change| first(&change.environment, &change.key().namespace)),
        }
    }

    /// Requires typed input on a protected context, because typing is what allows the write. If a key would
    /// be enough, the user types the name of the context instead.
    pub fn on_protected(&mut self, context: &str) {
        if self.words.is_empty() {
            self.words.push(context.to_owned());
        }
    }

    /// Returns whether a key is enough.
    pub fn is_key(&self) -> bool {
        self.words.is_empty() && !self.reason
    }

    /// Returns the instruction to the user: which words to type.
    pub fn prompt(&self) -> String {
        match (self.words.as_slice(), self.reason) {
            ([], true) => "type why".to_owned(),
            ([], false) => String::new(),
            (words, true) => format!("type {} and why", words.join(" ")),
            (words, false) => format!("type {}", words.join(" ")),
        }
    }

    /// Returns the instruction to the user. If a key is enough, it says that the user may type a reason.
    pub fn prompt_or_why(&self) -> String {
        match self.is_key() {
            true => "type why".to_owned(),
            false => self.prompt(),
        }
    }

    /// Reads the typed text. Returns the reason, or an error that names the missing input.
    pub fn read(&self, typed: &str) -> Result<Option<String>, String> {
        let mut rest = typed.trim();
        for (at, word) in self.words.iter().enumerate() {
            let (first, after) = match rest.split_once(char::is_whitespace) {
                Some((first, after)) => (first, after.trim_start()),
                None => (rest, ""),
            };
            if first != word {
                let last = at + 1 == self.words.len();
                return Err(match (first, self.counts.filter(|_| last)) {
                    (_, Some(counted)) => {
                        let after = if at > 0 { " after the name" } else { "" };
                        format!("Type the number of {counted} ({word}){after}")
                    }
                    ("", None) => format!("type {word} to confirm"),
                    (other, None) => format!("Type {word} (you typed {other})"),
                });
            }
            rest = after;
        }
        match (rest, self.reason) {
            ("", true) => Err(match (self.words.is_empty(), self.counts) {
                (true, _) => "Type a reason",
                (false, None) => "Add a reason after the name",
                (false, Some(_)) => "Add a reason after the number",
            }
            .to_owned()),
            ("", false) => Ok(None),
            (reason, _) => Ok(Some(reason.to_owned())),
        }
    }
}

impl Confirmation {
    /// Starts with an empty line.
    pub fn new(demand: Demand) -> Self {
        let mut line = TextArea::default();
        // A single line needs no underline to be visible.
        line.set_cursor_line_style(ratatui::style::Style::new());
        Self {
            demand,
            line,
            editor: false,
            apply: false,
            complaint: None,
        }
    }

    /// Rebuilds the line for a new size: the old line remembers how far it was scrolled, and there may now be
    /// room for more text.
    pub fn resized(&mut self) {
        // The old message may have been about the size.
        self.complaint = None;
        let cursor = self.line.cursor();
        let (row, column) = (cursor.0, cursor.1);
        let fresh = Self::new(self.demand.clone());
        let text = self.typed();
        self.line = fresh.line;
        self.line.insert_str(text);
        let to = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        self.line
            .move_cursor(tui_textarea::CursorMove::Jump(to(row), to(column)));
    }

    /// Takes over the text of an earlier confirmation.
    pub fn retype(&mut self, text: &str) {
        self.editor = text.contains('\n');
        self.line.insert_str(text);
    }

    /// Returns the typed text, with line breaks between its lines.
    pub fn typed(&self) -> String {
        self.line.lines().join("\n")
    }

    /// Returns whether keys are typed into the line.
    pub fn takes_text(&self) -> bool {
        !self.demand.is_key() || self.editor
    }

    /// Passes a key to the line.
    pub fn input(&mut self, key: KeyEvent) {
        self.complaint = None;
        super::prompt::edit(&mut self.line, key);
    }

    /// Inserts pasted text; unless the editor is open, only one line of it.
    pub fn paste(&mut self, text: &str) {
        self.complaint = None;
        let text = crate::text::clean(text);
        match self.editor {
            true => self.line.insert_str(&*text),
            false => self.line.insert_str(crate::text::line(&text)),
        };
    }

    /// Returns the reason if the typed text is complete; otherwise shows the missing input.
    pub fn accept(&mut self) -> Option<Option<String>> {
        match self.demand.read(&self.typed()) {
            Ok(reason) => Some(reason),
            Err(complaint) => {
                self.complaint = Some(complaint);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_confirms_and_says_why() {
        let demand = |words: &[&str], reason| Demand {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            counts: (words.last() == Some(&"3")).then_some("components"),
            reason,
            shown: true,
        };
        let ok = |reason: &str| Ok(Some(reason.to_owned()));
        let no = |why: &str| Err(why.to_owned());
        for (demand, typed, expected) in [
            (
                demand(&["production"], true),
                "production errors up",
                ok("errors up"),
            ),
            (
                demand(&["production"], true),
                "  production   errors\nup ",
                ok("errors\nup"),
            ),
            (
                demand(&["production"], true),
                "production",
                no("Add a reason after the name"),
            ),
            (
                demand(&["production"], true),
                "",
                no("type production to confirm"),
            ),
            (demand(&["production"], false), "production", Ok(None)),
            (
                demand(&["production"], false),
                "prod",
                no("Type production (you typed prod)"),
            ),
            (
                demand(&["production"], false),
                "productions",
                no("Type production (you typed productions)"),
            ),
            (
                demand(&["production", "3"], false),
                "production 3 all of it",
                ok("all of it"),
            ),
            (
                demand(&["production", "3"], false),
                "production 2",
                no("Type the number of components (3) after the name"),
            ),
            (
                demand(&["production", "3"], false),
                "production",
                no("Type the number of components (3) after the name"),
            ),
            (
                demand(&["3"], false),
                "ship",
                no("Type the number of components (3)"),
            ),
            (
                demand(&["3"], true),
                "3",
                no("Add a reason after the number"),
            ),
            (demand(&[], true), " ", no("Type a reason")),
            (demand(&[], true), "leaks", ok("leaks")),
            (demand(&[], false), "", Ok(None)),
        ] {
            assert_eq!(demand.read(typed), expected, "{typed:?}");
        }
    }
}
