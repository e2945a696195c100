//! Label selectors in the forms that kubectl has.

use std::fmt;

use memchr::memmem::Finder;

use crate::engine::world::Labels;

/// What labels have to be: all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// One label each.
    pub requirements: Vec<Requirement>,
}

/// What one label has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the label.
    pub name: String,
    /// What is wanted of it.
    pub wanted: Wanted,
}

/// What can be wanted of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is there.
    Exists,
    /// It is not there.
    Absent,
    /// It has this value.
    Equal(String),
    /// It has another value, or is not there.
    NotEqual(String),
    /// It has one of these values.
    In(Vec<String>),
    /// It has none of these values, or is not there.
    NotIn(Vec<String>),
}

/// A selector made ready to look at many labels: each question is whether a text is among them.
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

    /// Tells whether the labels of one of several objects are as wanted; `all` is the text of all of them.
    pub(super) fn matches_any(&self, objects: &[Labels], all: &str) -> bool {
        // What no object has, none has; and what one has is there where nothing else is asked.
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
