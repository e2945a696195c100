//! The revisions of a subject: what it was, why it became so, and what came of it.
//!
//! One concept for history, diff, rollback and prune, whatever the subject is. Numbers only grow, and
//! what is not known is said: revisions that nobody saw, that retention removed or that were never
//! recorded stand between the others as [`Missing`]. Pure functions over values, and one small reader.

mod made;
mod pin;
mod subject;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

pub use made::Made;
pub(in crate::engine) use made::{Span, origin};
pub use pin::{Pinned, of_pin, read_pin};
pub use subject::{NoSubject, Subject};

use crate::api::audit::Action;

/// One state of a subject that its next change replaced, or that counts now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision<C> {
    /// Its place; the pin's generation for a pin.
    pub number: i64,
    /// The hash of its content, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Since when it counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// What made it; absent where nobody recorded that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The revision that it brought back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// What became of it.
    pub state: State,
    /// What its state rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What the subject was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<C>,
}

/// What made a revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// What was done.
    pub action: Action,
    /// By whom, by the API server's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In which operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// What became of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It counts, and how it does is not known yet.
    Current,
    /// It does well, or did when it was replaced.
    Healthy,
    /// It does not do well, or did not when it was replaced.
    Unhealthy,
    /// It was watched and replaced before anybody could tell.
    Unknown,
    /// It was replaced, and nobody noted how it did.
    Superseded,
}

impl State {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Unknown => "unknown",
            Self::Superseded => "superseded",
        }
    }
}

/// Revisions in a row of which nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// The first of them.
    pub first: i64,
    /// The last of them.
    pub last: i64,
    /// Why.
    pub missing: Reason,
}

/// Why nothing is known of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// They went by before anybody looked, which is on record.
    Unseen,
    /// Retention removed them and left a checkpoint.
    Retired,
    /// Nobody has recorded them, yet or any more.
    Unrecorded,
}

impl Reason {
    /// Says it of revisions.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unseen => "not observed",
            Self::Retired => "removed by retention",
            Self::Unrecorded => "not recorded",
        }
    }
}

/// A revision, or some in a row of which nothing is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Row<C> {
    /// What is known.
    Known(Revision<C>),
    /// What is not.
    Missing(Missing),
}

/// Everything that a subject was, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisions<C> {
    /// What messages call the subject.
    pub subject: String,
    /// The number of the revision that counts.
    pub current: i64,
    /// The revisions, and what is missing between them.
    pub rows: Vec<Row<C>>,
}

/// Why a revision cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRevision {
    /// There was none of that number.
    #[error("{subject} has no revision {number}; it has {known}")]
    Never {
        /// Of what.
        subject: String,
        /// Which.
        number: i64,
        /// Which there are.
        known: String,
    },
    /// It was, and nothing is known of it.
    #[error("revision {number} of {subject} is not available: revisions {first} to {last} were {}; known revisions: {known}", .why.words())]
    Lost {
        /// Of what.
        subject: String,
        /// Which.
        number: i64,
        /// The first of those in a row.
        first: i64,
        /// The last of those in a row.
        last: i64,
        /// Why.
        why: Reason,
        /// Which there are.
        known: String,
    },
    /// There is none before it.
    #[error("{subject} has no revision before {number}")]
    First {
        /// Of what.
        subject: String,
        /// Which.
        number: i64,
    },
}

/// How many numbers a message lists.
const LISTED: usize = 10;

impl<C> Revisions<C> {
    /// Walks what is known, oldest first.
    pub fn known(&self) -> impl DoubleEndedIterator<Item = &Revision<C>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Known(revision) => Some(revision),
            Row::Missing(_) => None,
        })
    }

    /// Finds a revision, or says why it cannot be had.
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

    /// Finds the revision that counts.
    pub fn current(&self) -> Result<&Revision<C>, NoRevision> {
        self.find(self.current)
    }

    /// Finds the newest known revision before another one.
    pub fn before(&self, number: i64) -> Result<&Revision<C>, NoRevision> {
        let earlier = self.known().rfind(|revision| revision.number < number);
        earlier.ok_or_else(|| NoRevision::First {
            subject: self.subject.clone(),
            number,
        })
    }

    /// Returns what is beyond a limit, oldest first: [`beyond`].
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

/// Returns the revisions that a limit leaves no room for, oldest first: the current one, those that
/// something refers to and the newest `limit` stay.
pub fn beyond(numbers: &[i64], current: i64, referenced: &BTreeSet<i64>, limit: usize) -> Vec<i64> {
    let sorted: BTreeSet<i64> = numbers.iter().copied().collect();
    let older = sorted.into_iter().rev().skip(limit);
    let mut going: Vec<i64> = older
        .filter(|number| *number != current && !referenced.contains(number))
        .collect();
    going.reverse();
    going
}

/// Puts revisions in order and fills the holes between them, from 1 on.
///
/// `retired` is the last revision that retention removed, `unseen` are the runs that are on record as
/// seen by nobody.
fn with_missing<C>(
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

/// Splits a run of unknown revisions where the reason changes.
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
