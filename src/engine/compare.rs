//! The two sides of a comparison for the diff. Also builds the sides for two revisions of a subject.

use jiff::Timestamp;
use serde_json::Value;

use super::revisions::{NoRevision, Revision, Revisions};
use super::subject::command::Content;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// The title of this side for the user, for example `cart in staging, revision 4`.
    pub what: String,
    pub objects: Vec<Value>,
    /// The time at which bowline read the objects of this side.
    pub read: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Sides {
    /// The older side of the comparison, shown on the left.
    pub before: Side,
    /// The newer side of the comparison, shown on the right.
    pub after: Side,
    /// Whether `after` contains live objects. The server has filled in defaults there, which the diff hides.
    pub is_live: bool,
}

/// Returns revision `from` and revision `to` of a subject as the two sides of a comparison. If `to` is None, it is
/// the current revision. If `from` is None, it is the known revision before `to`.
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
