//! The two sides of a comparison, and the comparison of two revisions of any subject.

use jiff::Timestamp;
use serde_json::Value;

use super::revisions::{NoRevision, Revision, Revisions};
use super::subject::command::Content;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// The title of the side for the user, such as the subject and its revision.
    pub what: String,
    /// The objects that the diff compares.
    pub objects: Vec<Value>,
    /// The time at which the objects were read.
    pub read: Timestamp,
}

/// The two sides of a comparison.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The older or left side.
    pub before: Side,
    /// The newer or right side.
    pub after: Side,
    /// Whether the `after` side has live objects, with all values that servers fill in.
    pub is_live: bool,
}

/// Compares two revisions; by default the previous with the current one.
pub fn revisions(
    found: &Revisions<Content>,
    (from, to): (Option<i64>, Option<i64>),
    read: Timestamp,
) -> Result<Sides, NoRevision> {
    let after = match to {
        Some(number) => found.find(number)?,
        None => found.current()?,
    };
    let before = match from {
        Some(number) => found.find(number)?,
        None => found.before(after.number)?,
    };
    let side = |revision: &Revision<Content>| {
        let content = revision.content.as_ref();
        let label = content.map_or("unknown content", |content| &content.label);
        Side {
            what: format!("{}, revision {}, {label}", found.subject, revision.number),
            objects: content.map_or_else(Vec::new, |content| content.objects.clone()),
            read,
        }
    };
    Ok(Sides {
        before: side(before),
        after: side(after),
        is_live: false,
    })
}
