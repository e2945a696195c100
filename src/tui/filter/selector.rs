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

impl Selector {
    /// Tells whether labels are as wanted.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.name);
            match &requirement.wanted {
                Wanted::Exists => value.is_some(),
                Wanted::Absent => value.is_none(),
                Wanted::Equal(wanted) => value == Some(wanted),
                Wanted::NotEqual(unwanted) => value != Some(unwanted),
                Wanted::In(wanted) => {
                    value.is_some_and(|value| wanted.iter().any(|one| one == value))
                }
                Wanted::NotIn(unwanted) => {
                    value.is_none_or(|value| unwanted.iter().all(|one| one != value))
                }
            }
        })
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
