//! Finds the objects whose labels match a label selector.

use kube_values::selector::{Requirement, Selector, Wanted};
use memchr::memmem::Finder;

use crate::engine::world::Labels;

/// A label selector, compiled to check many objects. Each requirement is a search for label lines,
/// and the flag says whether a line must occur or must not occur.
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
                // The parser of filters never returns these requirements.
                Wanted::Greater(_) | Wanted::Less(_) | Wanted::Unknown => (true, Vec::new()),
            }
        });
        Self(ready.collect())
    }

    /// Returns whether at least one object matches. `all` is the joined text of the labels of all
    /// objects.
    pub(super) fn matches_any(&self, objects: &[Labels], all: &str) -> bool {
        // If the joined text lacks a required line, no object has it. A single required line in the
        // joined text is enough for a match.
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
