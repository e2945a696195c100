//! The change that made a release effective: not the newest change of a ReleasePin, which may be a hold on a
//! release that somebody else promoted.

use jiff::Timestamp;

use super::{Cause, Pinned, Revision, Revisions, Row};
use crate::api::audit::Action;
use crate::api::pin::Hold;

/// The change that made a release effective.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The change; None if nobody recorded it.
    pub cause: Option<Cause>,
    /// The time of the change, or the end of the hold that kept another release effective until then.
    pub since: Option<Timestamp>,
    /// The hold that kept another release effective, and has ended.
    pub ended: Option<Hold>,
}

impl Pinned {
    /// Tells whether the releaseRef or a hold names a release.
    fn names(&self, release: &str) -> bool {
        let mut fixed = self.holds.iter().filter_map(|hold| hold.release.as_deref());
        self.reference.as_deref() == Some(release) || fixed.any(|name| name == release)
    }
}

impl Revisions<Pinned> {
    /// Finds the change that made a release effective, which is effective at `now`.
    pub fn made(&self, release: &str, now: Timestamp) -> Made {
        let current = self.current().ok().and_then(|now| now.content.as_ref());
        let was_effective = current.is_some_and(|content| content.release.name == release);
        if was_effective {
            return self.made_by(|content| content.release.name == release);
        }
        // No change made it so: a hold ended that fixed another release.
        let holds = current.map_or(&[][..], |content| &content.holds);
        let ended = holds.iter().filter(|hold| {
            hold.release.is_some() && hold.until.as_ref().is_some_and(|until| until.0 <= now)
        });
        let ended = ended.max_by_key(|hold| hold.until.as_ref().map(|until| until.0));
        let made = self.made_by(|content| content.names(release));
        Made {
            since: ended.and_then(|hold| Some(hold.until.as_ref()?.0)),
            ended: ended.cloned(),
            ..made
        }
    }

    /// Finds the first of the newest revisions in a row of which something is true.
    fn made_by(&self, is_it: impl Fn(&Pinned) -> bool) -> Made {
        let mut first: Option<&Revision<Pinned>> = None;
        let mut before = None;
        for row in self.rows.iter().rev() {
            match row {
                Row::Known(revision) if revision.content.as_ref().is_some_and(&is_it) => {
                    first = Some(revision);
                }
                row => {
                    before = Some(row);
                    break;
                }
            }
        }
        let unknown = Made {
            cause: None,
            since: None,
            ended: None,
        };
        let Some(first) = first else {
            return unknown;
        };
        // After a hole, the release may have been effective before already.
        if matches!(before, Some(Row::Missing(_))) && !is_certain(first) {
            return unknown;
        }
        Made {
            cause: first.cause.clone(),
            since: first.created,
            ..unknown
        }
    }
}

/// Tells whether a revision made its release effective, though the revision before it is not known.
fn is_certain(revision: &Revision<Pinned>) -> bool {
    let Some(content) = &revision.content else {
        return false;
    };
    let moves = |cause: &Cause| !matches!(cause.action, Action::Pin | Action::Unpin | Action::Undo);
    match &content.replaced {
        Some(replaced) => *replaced != content.release.name,
        None => revision.cause.as_ref().is_some_and(moves),
    }
}
