//! The errors of rendering. Each names the definition, the template, the path in it, and the column.

use std::fmt;

use crate::text;

/// The error of a failed render. It contains at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderError(pub Vec<Problem>);

/// An error or a warning of a render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The object that contains the error, which the user must change.
    pub definition: Definition,
    /// The template in this object, such as `resource deployment`. None if the problem is not in a template.
    pub template: Option<String>,
    /// The path of the wrong field in the template or object, such as `template.spec.replicas`.
    pub path: String,
    /// The position of the problem in the text of the field; None if the whole field is wrong.
    pub column: Option<Column>,
    /// What is wrong, and the next step for the user.
    pub message: String,
}

/// The object (component, definition or settings) that contains a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    pub kind: &'static str,
    pub name: String,
}

/// A position in the text of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The number of the line in the text, counted from 1.
    pub line: usize,
    /// The number of the character in its line, counted from 1.
    pub column: usize,
}

/// A problem without its definition, because the code that finds it does not know the definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) path: String,
    pub(super) column: Option<Column>,
    pub(super) message: String,
}

impl Column {
    /// Converts a byte offset in a text to a position.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        Self {
            line: 1 + before.matches('\n').count(),
            column: 1 + line.chars().count(),
        }
    }

    /// Returns the position of `line` and `column` in the whole text. They are counted in an inner text that begins
    /// at this position.
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
