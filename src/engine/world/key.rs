//! The identity of an object, and its labels, as rows keep them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace of the object.
    pub namespace: Arc<str>,
    /// The name of the object.
    pub name: Arc<str>,
}

impl Key {
    /// Creates a key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns the key of an object in the same namespace.
    pub fn beside(&self, name: &str) -> Self {
        Self {
            namespace: self.namespace.clone(),
            name: name.into(),
        }
    }
}

/// The labels of an object in one allocation, which copies share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Option<Arc<str>>);

impl Labels {
    /// Stores labels, by name.
    pub fn of(labels: &BTreeMap<String, String>) -> Self {
        let lines = labels.iter();
        let lines: String = lines
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        Self((!lines.is_empty()).then(|| format!("\n{lines}").into()))
    }

    /// Returns the value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Returns all labels, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.text().lines();
        lines.filter_map(|line| line.split_once('='))
    }

    /// Returns the labels as text, each as `\nname=value\n`, for a fast search.
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
