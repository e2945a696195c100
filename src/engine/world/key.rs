//! The key and the labels of an object, in the compact form of the read model.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The namespace and the name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns a key with the same namespace and another name.
    pub fn beside(&self, name: &str) -> Self {
        Self {
            namespace: self.namespace.clone(),
            name: name.into(),
        }
    }
}

/// The labels of an object, stored as one text to save memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Option<Arc<str>>);

impl Labels {
    /// Stores a map of labels as one text, sorted by name.
    pub fn of(labels: &BTreeMap<String, String>) -> Self {
        let lines = labels.iter();
        let lines: String = lines
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        Self((!lines.is_empty()).then(|| format!("\n{lines}").into()))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Returns the names and values of all labels, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.text().lines();
        lines.filter_map(|line| line.split_once('='))
    }

    /// Returns the labels as text for a fast search: one line `name=value` per label, with a line break before the
    /// first and after each line.
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
