//! The abandoned revisions of a workload: those that a rollback or an undo replaced. An annotation of the workload
//! lists them, so that the next rollback to the last good revision skips them.
//!
//! The operation annotation does not contain enough for this, because each action overwrites it.

use std::collections::BTreeMap;

use crate::api::labels;

/// The largest number of abandoned revisions in the annotation. If there are more, the revisions with the lowest
/// numbers are dropped.
const MOST: usize = 20;

/// The abandoned revisions of a workload, by the hash of the pod template. The value is the number of the revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abandoned(BTreeMap<String, i64>);

impl Abandoned {
    /// Reads the abandoned revisions from the annotations of a workload. Empty if the annotation does not exist or
    /// cannot be parsed.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let text = annotations.get(labels::ABANDONED);
        let read = text.and_then(|text| serde_json::from_str(text).ok());
        Self(read.unwrap_or_default())
    }

    /// Returns whether a revision is abandoned. If its template was published again later, the new revision has a
    /// higher number, so it is not abandoned.
    pub fn has(&self, hash: &str, number: i64) -> bool {
        self.0.get(hash).is_some_and(|at| number <= *at)
    }

    /// Returns the new value of the annotation after a rollback to the revision `(hash, number)`. `newer` are the
    /// revisions after that one, which become abandoned. A rollback to an abandoned revision abandons nothing.
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
        // Somebody published template b again as revision 5, so it is not abandoned.
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
