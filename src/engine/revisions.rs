//! The revisions of a subject, each with content, cause and health.
//!
//! History, diff, rollback and pruning use these types for every kind of subject. A revision without a record is part
//! of a [`Missing`] row: nobody observed it, retention removed its record, or it was never recorded. All functions
//! are pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::api::bowline::audit::Action;
use crate::api::openchoreo::release::Verdict;

/// One past or current state of a subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision<C> {
    pub number: i64,
    /// The hash of the revision's content; None if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The time at which this revision became the current one; None if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The action that made the revision; None if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The revision whose content a rollback restored; None if no rollback made this revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The health of this revision.
    pub state: State,
    /// The reason for the health, as text for the user; None if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The mark of the revision; None without a mark, and for a subject whose content has the mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Verdict>,
    /// The content, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<C>,
}

/// Returns each abandoned content with the earlier content that replaced it. `contents` are in the order in which
/// they became current.
///
/// A return to an earlier content, such as a rollback or an undo, abandons all contents in between. A content that
/// becomes current again is no longer abandoned.
pub fn abandoned<'c>(contents: impl IntoIterator<Item = &'c str>) -> BTreeMap<&'c str, &'c str> {
    let mut line: Vec<&str> = Vec::new();
    let mut abandoned = BTreeMap::new();
    for content in contents {
        match line.iter().position(|known| *known == content) {
            Some(at) => {
                let left = line.drain(at + 1..);
                abandoned.extend(left.map(|left| (left, content)));
            }
            None => {
                abandoned.remove(content);
                line.push(content);
            }
        }
    }
    abandoned
}

/// The action that made a revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    pub action: Action,
    /// The user who made the revision, by the name that the API server knows; None if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The reason that the user gave for the action; None if the user gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id of the operation that made the revision; None if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The revision is the current one, and its health is not known yet.
    Current,
    /// The revision is healthy, or was healthy when another revision replaced it.
    Healthy,
    /// The revision is not healthy, or was not healthy when another revision replaced it.
    Unhealthy,
    /// Another revision replaced this one before its health was known.
    Unknown,
    /// Another revision replaced this one, and nobody recorded its health.
    Superseded,
}

impl State {
    /// Returns the health as text for the user.
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "not known yet",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Unknown => "unknown",
            Self::Superseded => "superseded",
        }
    }
}

/// A run of consecutive revisions whose records are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    pub first: i64,
    pub last: i64,
    /// The reason why the records of these revisions are missing.
    pub missing: Reason,
}

/// The reason why the record of a revision is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// No bowline process ran when the revision was made. The audit trail has a gap entry for it.
    Unseen,
    /// Retention removed the record of the revision and left a checkpoint.
    Retired,
    /// The revision has no record, because it was never written, is not written yet, or was deleted.
    Unrecorded,
}

impl Reason {
    /// Returns the reason as text for the user.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unseen => "not observed",
            Self::Retired => "removed by retention",
            Self::Unrecorded => "not recorded",
        }
    }
}

/// A row of the history: a known revision, or a run of missing revisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Row<C> {
    Known(Revision<C>),
    Missing(Missing),
}

/// All revisions of a subject, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisions<C> {
    /// The name of the subject in messages, such as `deploy/web`.
    pub subject: String,
    /// The number of the current revision.
    pub current: i64,
    /// The known revisions and the runs of missing revisions, in the order of their numbers.
    pub rows: Vec<Row<C>>,
    /// The line that says where bowline records changes of the subject; None if it writes AuditEntries.
    pub record: Option<String>,
}

/// The reason why bowline cannot return a revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRevision {
    /// The subject never had a revision with this number.
    #[error("{subject} has no revision {number}; it has {known}")]
    Never {
        subject: String,
        /// The number of the requested revision.
        number: i64,
        /// The numbers of the known revisions, as text for the user.
        known: String,
    },
    /// The subject has later revisions, but none with this number.
    #[error(
        "{subject} has no revision {number} now; it has {known}; Kubernetes gives a restored revision a new number, and deletes old revisions"
    )]
    Gone {
        subject: String,
        /// The number of the requested revision.
        number: i64,
        /// The numbers of the known revisions, as text for the user.
        known: String,
    },
    /// The subject had this revision, but the record of its content is missing.
    #[error("revision {number} of {subject} is not available: revisions {first} to {last} were {}; known revisions: {known}", .why.words())]
    Lost {
        subject: String,
        /// The number of the requested revision.
        number: i64,
        /// The first revision of the run of missing revisions that contains the requested one.
        first: i64,
        /// The last revision of that run of missing revisions.
        last: i64,
        /// The reason why the records of that run are missing.
        why: Reason,
        /// The numbers of the known revisions, as text for the user.
        known: String,
    },
    /// There is no known revision before the requested one.
    #[error("{subject} has no revision before {number}")]
    First {
        subject: String,
        /// The number of the requested revision.
        number: i64,
    },
}

/// The largest number of revisions that an error message lists.
const LISTED: usize = 10;

impl<C> Revisions<C> {
    /// Converts the content of each revision with the function `map`.
    pub fn map<D>(self, mut map: impl FnMut(C) -> D) -> Revisions<D> {
        let rows = self.rows.into_iter().map(|row| match row {
            Row::Missing(missing) => Row::Missing(missing),
            Row::Known(revision) => Row::Known(Revision {
                content: revision.content.map(&mut map),
                number: revision.number,
                hash: revision.hash,
                created: revision.created,
                cause: revision.cause,
                restored_from: revision.restored_from,
                state: revision.state,
                why: revision.why,
                mark: revision.mark,
            }),
        });
        Revisions {
            subject: self.subject,
            current: self.current,
            rows: rows.collect(),
            record: self.record,
        }
    }

    /// Returns the known revisions, oldest first.
    pub fn known(&self) -> impl DoubleEndedIterator<Item = &Revision<C>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Known(revision) => Some(revision),
            Row::Missing(_) => None,
        })
    }

    /// Returns the revision with this number, or the reason why bowline cannot return it.
    pub fn find(&self, number: i64) -> Result<&Revision<C>, NoRevision> {
        if let Some(found) = self.known().find(|revision| revision.number == number) {
            return Ok(found);
        }
        let subject = self.subject.clone();
        let known = self.numbers();
        let lost = self.rows.iter().find_map(|row| match row {
            Row::Missing(missing) if (missing.first..=missing.last).contains(&number) => {
                Some(missing)
            }
            _ => None,
        });
        Err(match lost {
            Some(missing) => NoRevision::Lost {
                subject,
                number,
                first: missing.first,
                last: missing.last,
                why: missing.missing,
                known,
            },
            None => NoRevision::Never {
                subject,
                number,
                known,
            },
        })
    }

    /// Returns the current revision.
    pub fn current(&self) -> Result<&Revision<C>, NoRevision> {
        self.find(self.current)
    }

    /// Returns the newest known revision with a smaller number than `number`; an error if there is none.
    pub fn before(&self, number: i64) -> Result<&Revision<C>, NoRevision> {
        let earlier = self.known().rfind(|revision| revision.number < number);
        earlier.ok_or_else(|| NoRevision::First {
            subject: self.subject.clone(),
            number,
        })
    }

    /// Returns the revisions that are over the limit, oldest first, by the rules of the function [`beyond`].
    pub fn beyond(&self, referenced: &BTreeSet<i64>, limit: usize) -> Vec<i64> {
        let numbers: Vec<i64> = self.known().map(|revision| revision.number).collect();
        beyond(&numbers, self.current, referenced, limit)
    }

    fn numbers(&self) -> String {
        let newest = self.known().rev().map(|revision| revision.number);
        let mut words: Vec<String> = newest.take(LISTED).map(|it| it.to_string()).collect();
        words.reverse();
        match (words.is_empty(), self.known().nth(LISTED).is_some()) {
            (true, _) => "none".to_owned(),
            (false, false) => words.join(", "),
            (false, true) => format!("..., {}", words.join(", ")),
        }
    }
}

/// Returns the revisions that pruning may remove, oldest first. It keeps the newest `limit` revisions, the current
/// revision and the revisions in `referenced`.
pub fn beyond(numbers: &[i64], current: i64, referenced: &BTreeSet<i64>, limit: usize) -> Vec<i64> {
    let sorted: BTreeSet<i64> = numbers.iter().copied().collect();
    let older = sorted.into_iter().rev().skip(limit);
    let mut going: Vec<i64> = older
        .filter(|number| *number != current && !referenced.contains(number))
        .collect();
    going.reverse();
    going
}

/// Sorts revisions, and adds a [`Missing`] row for each run of missing numbers, counted from number 1.
///
/// `retired` is the newest revision whose record retention removed. `unseen` has the first and the last revision of
/// each gap in the audit trail.
pub fn with_missing<C>(
    mut known: Vec<Revision<C>>,
    retired: i64,
    unseen: &[(i64, i64)],
) -> Vec<Row<C>> {
    known.sort_by_key(|revision| revision.number);
    let mut rows = Vec::with_capacity(known.len());
    let mut next = 1;
    for revision in known {
        rows.extend(
            holes(next, revision.number.saturating_sub(1), retired, unseen).map(Row::Missing),
        );
        next = next.max(revision.number.saturating_add(1));
        rows.push(Row::Known(revision));
    }
    rows
}

/// Splits a run of missing revisions into runs with the same reason.
fn holes(
    first: i64,
    last: i64,
    retired: i64,
    unseen: &[(i64, i64)],
) -> impl Iterator<Item = Missing> {
    let ends = unseen
        .iter()
        .flat_map(|(from, to)| [from.saturating_sub(1), *to])
        .chain([retired, last]);
    let ends: BTreeSet<i64> = ends.filter(|end| (first..=last).contains(end)).collect();
    let reason = move |number: i64| match number {
        _ if number <= retired => Reason::Retired,
        _ if unseen
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&number)) =>
        {
            Reason::Unseen
        }
        _ => Reason::Unrecorded,
    };
    let mut from = first;
    ends.into_iter().map(move |end| {
        let run = Missing {
            first: from,
            last: end,
            missing: reason(end),
        };
        from = end.saturating_add(1);
        run
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_to_an_earlier_content_abandons_the_contents_between() {
        for (contents, expected) in [
            ("a b c", &[][..]),
            ("a a b b", &[]),
            ("a b a", &[("b", "a")]),
            ("a b c a", &[("b", "a"), ("c", "a")]),
            ("a b c b", &[("c", "b")]),
            // The letters: a promotion, a rollback, and the same promotion again.
            ("a b a b", &[]),
            ("a b a b a", &[("b", "a")]),
            ("a b a c", &[("b", "a")]),
            ("a b a c a", &[("b", "a"), ("c", "a")]),
        ] {
            let found: Vec<_> = abandoned(contents.split(' ')).into_iter().collect();
            assert_eq!(found, expected, "{contents}");
        }
    }
}
