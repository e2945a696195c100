//! What is wrong, in which definition, in which template, at which path and column.

use std::fmt;

use crate::text;

/// Why a component cannot be rendered: every problem that was found, never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderError(pub Vec<Problem>);

/// One thing that is wrong, or in a warning, worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The object that has to be changed.
    pub definition: Definition,
    /// Which of its templates, as in `resource deployment`, where it is in one.
    pub template: Option<String>,
    /// The fields that lead there, as in `template.spec.replicas`.
    pub path: String,
    /// Where in the string at that path.
    pub column: Option<Column>,
    /// What is wrong and what to do.
    pub message: String,
}

/// An object that a component is rendered from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
}

/// A place in a string; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The line of the string.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
}

/// A problem as a part of rendering sees it, which does not know the definition that it works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) path: String,
    pub(super) column: Option<Column>,
    pub(super) message: String,
}

impl Column {
    /// Returns the place of a byte of a text.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        Self {
            line: 1 + before.matches('\n').count(),
            column: 1 + line.chars().count(),
        }
    }

    /// Returns the place that is at a line and column of a text which begins here.
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
