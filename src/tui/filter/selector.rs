//! Finds the objects whose labels match a label selector.

use kube_values::selector::{Requirement, Selector, Wanted};
use memchr::memmem::Finder;

use crate::engine::world::Labels;

/// A label selector, compiled to check many objects. Each requirement has a list of label lines, and a flag: true if
/// the labels must contain one of the lines, false if they must contain none.
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
                // The parser of filters never returns these requirements, so this result is never used.
                Wanted::Greater(_) | Wanted::Less(_) | Wanted::Unknown => (true, Vec::new()),
            }
        });
        Self(ready.collect())
    }

    /// Returns whether at least one object matches the selector. `all` is the joined text of the labels of all
    /// objects.
    pub(super) fn matches_any(&self, objects: &[Labels], all: &str) -> bool {
        // If the joined text contains no line of a requirement, no object has one. If the selector requires only one
        // line, the joined text alone decides.
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
