//! Label selectors, in the syntax of kubectl.

use std::fmt;

use memchr::memmem::Finder;

use crate::engine::world::Labels;

/// A label selector: labels must meet all requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The requirements, one label each.
    pub requirements: Vec<Requirement>,
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the label.
    pub name: String,
    /// The condition on its value.
    pub wanted: Wanted,
}

/// A condition on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The label exists.
    Exists,
    /// The label does not exist.
    Absent,
    /// The label has this value.
    Equal(String),
    /// The label has another value, or does not exist.
    NotEqual(String),
    /// The label has one of these values.
    In(Vec<String>),
    /// The label has none of these values, or does not exist.
    NotIn(Vec<String>),
}

/// A selector, compiled to check many objects: each requirement is a search for label lines.
#[derive(Clone, Debug)]
pub(super) struct Ready(Vec<(bool, Vec<Finder<'static>>)>);

impl Ready {
    pub(super) fn new(selector: &Selector) -> Self {
        let requirements = selector.requirements.iter();
        let ready = requirements.map(|Requirement { name, wanted }| {
            let finder = |text: String| Finder::new(&text).into_owned();
            let line = |value: &String| finder(format!("\n{name}={value}\n"));
            let begin = || vec![finder(format!("\n{name}="))];
            match wanted {
                Wanted::Exists => (true, begin()),
                Wanted::Absent => (false, begin()),
                Wanted::Equal(value) => (true, vec![line(value)]),
                Wanted::NotEqual(value) => (false, vec![line(value)]),
                Wanted::In(values) => (true, values.iter().map(line).collect()),
                Wanted::NotIn(values) => (false, values.iter().map(line).collect()),
            }
        });
        Self(ready.collect())
    }

    /// Returns whether one of several objects matches; `all` is the joined text of their labels.
    pub(super) fn matches_any(&self, objects: &[Labels], all: &str) -> bool {
        // If the joined text lacks a required line, no object has it. A single required line that occurs in
        // the joined text is enough.
        let lacks = |texts: &[Finder<'static>]| !is_one_in(texts, all);
        if self.0.iter().any(|(wanted, texts)| *wanted && lacks(texts)) {
            return false;
        }
        match self.0.as_slice() {
            [(true, _)] => true,
            _ => objects.iter().any(|labels| self.matches(labels)),
        }
    }

    fn matches(&self, labels: &Labels) -> bool {
        let text = labels.text();
        self.0
            .iter()
            .all(|(wanted, texts)| is_one_in(texts, text) == *wanted)
    }
}

fn is_one_in(texts: &[Finder<'static>], text: &str) -> bool {
    texts.iter().any(|one| one.find(text.as_bytes()).is_some())
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Requirement { name, wanted }) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match wanted {
                Wanted::Exists => f.write_str(name)?,
                Wanted::Absent => write!(f, "!{name}")?,
                Wanted::Equal(value) => write!(f, "{name}={value}")?,
                Wanted::NotEqual(value) => write!(f, "{name}!={value}")?,
                Wanted::In(values) => write!(f, "{name} in ({})", values.join(","))?,
                Wanted::NotIn(values) => write!(f, "{name} notin ({})", values.join(","))?,
            }
        }
        Ok(())
    }
}
