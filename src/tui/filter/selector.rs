//! Label selectors in the forms that kubectl has.

use std::fmt;

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
#[derive(Debug)]
pub(super) struct Ready(Vec<(bool, Vec<String>)>);

impl Ready {
    pub(super) fn new(selector: &Selector) -> Self {
        let requirements = selector.requirements.iter();
        let ready = requirements.map(|Requirement { name, wanted }| {
            let line = |value: &String| format!("\n{name}={value}\n");
            let begin = || vec![format!("\n{name}=")];
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

    /// Tells whether labels are as wanted.
    pub(super) fn matches(&self, labels: &Labels) -> bool {
        let text = labels.text();
        self.0
            .iter()
            .all(|(wanted, texts)| texts.iter().any(|one| text.contains(one)) == *wanted)
    }
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
