//! The errors of rendering: the definition, the template, the path, the column and the message.

use std::fmt;

use crate::text;

/// The error of a failed render. It has at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderError(pub Vec<Problem>);

/// An error, or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The object that the user has to change.
    pub definition: Definition,
    /// The template in the object, as in `resource deployment`. None: the problem is outside of a template.
    pub template: Option<String>,
    /// The path of the field, as in `template.spec.replicas`.
    pub path: String,
    /// The position in the string at that path.
    pub column: Option<Column>,
    /// The error, and the next step for the user.
    pub message: String,
}

/// An object that a component is rendered from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// The kind of the object.
    pub kind: &'static str,
    /// The name of the object.
    pub name: String,
}

/// A position in a string; both numbers start at 1, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The number of the line in the string.
    pub line: usize,
    /// The number of the character in the line.
    pub column: usize,
}

/// A problem without its definition, for code that does not know which definition it works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) path: String,
    pub(super) column: Option<Column>,
    pub(super) message: String,
}

impl Column {
    /// Returns the position of a byte of a text.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        Self {
            line: 1 + before.matches('\n').count(),
            column: 1 + line.chars().count(),
        }
    }

    /// Returns the position of a line and column of a text that begins at this position.
    pub(super) fn further(self, line: usize, column: usize) -> Self {
        match line {
            1 => Self {
                column: self.column + column - 1,
                ..self
            },
            _ => Self {
                line: self.line + line - 1,
                column,
            },
        }
    }
}

impl Default for Column {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            1 => write!(f, "column {}", self.column),
            line => write!(f, "line {line}, column {}", self.column),
        }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.definition.to_string();
        for part in [
            self.template.clone(),
            Some(self.path.clone()).filter(|path| !path.is_empty()),
            self.column.map(|column| column.to_string()),
        ]
        .into_iter()
        .flatten()
        {
            said.push_str(", ");
            said.push_str(&part);
        }
        write!(f, "{}: {}", text::line(&said), text::clean(&self.message))
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for RenderError {}
