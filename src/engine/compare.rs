//! The two sides of a comparison, and the comparison of two revisions of a subject.

use jiff::Timestamp;
use serde_json::Value;

use super::revisions::{NoRevision, Revision, Revisions};
use super::subject::command::Content;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// The title of the side for the user, for example the subject with its revision.
    pub what: String,
    pub objects: Vec<Value>,
    /// The time at which bowline read the objects.
    pub read: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Sides {
    /// The older or left side.
    pub before: Side,
    /// The newer or right side.
    pub after: Side,
    /// Whether `after` contains live objects, in which the server has filled in defaults.
    pub is_live: bool,
}

/// Compares revision `from` with revision `to`. By default, `to` is the current revision and `from` the
/// revision before `to`.
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
