//! The revisions of a workload that a rollback or an undo replaced. An annotation of the workload lists them,
//! so that the next rollback without a target skips them.
//!
//! The annotation of the last operation is not enough, because the next action overwrites it.

use std::collections::BTreeMap;

use crate::api::labels;

/// The largest number of entries. The entries with the lowest revisions are dropped.
const MOST: usize = 20;

/// The abandoned revisions: the hash of the template, and the revision number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abandoned(BTreeMap<String, i64>);

impl Abandoned {
    /// Reads the annotation of a workload. Empty if it does not exist or cannot be parsed.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let text = annotations.get(labels::ABANDONED);
        let read = text.and_then(|text| serde_json::from_str(text).ok());
        Self(read.unwrap_or_default())
    }

    /// Returns whether a revision is abandoned. If the same template was published again, it has a higher
    /// number and is not abandoned.
    pub fn has(&self, hash: &str, number: i64) -> bool {
        self.0.get(hash).is_some_and(|at| number <= *at)
    }

    /// Returns the value of the annotation after a rollback to the revision `(hash, number)`. `newer` has the
    /// hash and the number of each revision after that one. A rollback to an abandoned revision abandons
    /// nothing.
    pub fn after_return_to<'a>(
        &self,
        (hash, number): (&str, i64),
        newer: impl Iterator<Item = (&'a str, i64)>,
    ) -> String {
        let mut all = self.0.clone();
        match self.has(hash, number) {
            true => drop(all.remove(hash)),
            false => all.extend(newer.map(|(hash, number)| (hash.to_owned(), number))),
        }
        while all.len() > MOST {
            let lowest = all.iter().min_by_key(|(_, number)| **number);
            let Some(hash) = lowest.map(|(hash, _)| hash.clone()) else {
                break;
            };
            all.remove(&hash);
        }
        serde_json::to_string(&all).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: String) -> Abandoned {
        Abandoned::of(&[(labels::ABANDONED.to_owned(), text)].into())
    }

    #[test]
    fn a_return_abandons_the_newer_revisions_and_a_return_forward_abandons_nothing() {
        let newer = [("b", 2), ("c", 3)];
        let back = of(Abandoned::default().after_return_to(("a", 1), newer.into_iter()));
        assert!(back.has("b", 2) && back.has("c", 3) && !back.has("a", 4));
        // Revision 5 has template b again, which somebody published again.
        assert!(!back.has("b", 5));
        let forward = of(back.after_return_to(("c", 3), [("a", 4)].into_iter()));
        assert!(!forward.has("c", 3) && !forward.has("a", 4) && forward.has("b", 2));
    }

    #[test]
    fn the_list_has_a_limit_and_an_unreadable_one_is_empty() {
        let hashes: Vec<String> = (0..50).map(|number| format!("hash-{number}")).collect();
        let newer = hashes
            .iter()
            .zip(10..)
            .map(|(hash, number)| (hash.as_str(), number));
        let many = of(Abandoned::default().after_return_to(("a", 1), newer));
        assert_eq!(many.0.len(), MOST);
        assert!(many.has("hash-49", 59) && !many.has("hash-0", 10));
        assert_eq!(of("[1".to_owned()), Abandoned::default());
    }
}
