//! The path to a value in a template, for error messages.

use std::fmt;

use crate::render::error::{Column, Fault};

/// The path from the root of a template to a value. Each element refers to the one before it.
#[derive(Clone, Copy)]
pub(in crate::render) struct Trail<'a> {
    before: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

impl<'a> Trail<'a> {
    pub(in crate::render) fn root(field: &'a str) -> Self {
        Self {
            before: None,
            step: Step::Field(field),
        }
    }

    pub(in crate::render) fn field(&'a self, name: &'a str) -> Self {
        Self {
            before: Some(self),
            step: Step::Field(name),
        }
    }

    pub(in crate::render) fn item(&'a self, at: usize) -> Self {
        Self {
            before: Some(self),
            step: Step::Item(at),
        }
    }

    pub(in crate::render) fn fault(&self, column: Column, message: impl Into<String>) -> Fault {
        Fault {
            path: self.to_string(),
            column: Some(column),
            message: message.into(),
        }
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.step {
            Step::Item(at) => write!(f, "[{at}]"),
            Step::Field(name) if is_plain(name) => match self.before {
                Some(_) => write!(f, ".{name}"),
                None => f.write_str(name),
            },
            Step::Field(name) => write!(f, "[{name:?}]"),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}
