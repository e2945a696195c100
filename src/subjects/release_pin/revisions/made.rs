//! Finds the change that made the effective release effective. It may not be the newest change: after a promotion,
//! somebody may place a hold on the same release.

use jiff::{SignedDuration, Timestamp};

use super::Pinned;
use crate::api::bowline::audit::Action;
use crate::api::hold::Hold;
use crate::api::openchoreo::pin;
use crate::engine::revisions::{Cause, Revision, Revisions, Row};

/// How a release became effective: by a change of the ReleasePin, or by the end of a hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The action of the change; None if it is not recorded.
    pub cause: Option<Cause>,
    /// The time of the change. If the end of a hold made the release effective, the time of that end. None if it is
    /// unknown.
    pub since: Option<Timestamp>,
    /// The hold whose end made the release effective; None if a change made it effective.
    pub ended: Option<Hold>,
}

/// The state of a ReleasePin from one change to the next.
pub(in crate::subjects::release_pin) struct Span<'s> {
    /// The time of the change that starts the span; None if it is unknown.
    pub at: Option<Timestamp>,
    /// The release that became effective with that change, according to its audit entry; None if it is not recorded.
    pub recorded: Option<&'s str>,
    /// The release that the releaseRef names during the span; None if it is not recorded.
    pub reference: Option<&'s str>,
    /// The holds of the ReleasePin during the span.
    pub holds: &'s [Hold],
}

/// The span (the time between two changes) in which a release became effective.
pub(in crate::subjects::release_pin) struct Origin<'s> {
    /// The index of the span. If the end of a hold made the release effective, it is the first of the consecutive
    /// spans that name the release.
    pub span: usize,
    /// The hold whose end made the release effective, and the time of its end. None if a change made the release
    /// effective.
    pub ended: Option<(&'s Hold, Timestamp)>,
}

impl<'s> Span<'s> {
    /// Returns the effective release at `moment`, or at the start of the span if `moment` is None. `owned` says
    /// whether a GitOps tool owns the ReleasePin.
    fn effective(&self, moment: Option<Timestamp>, owned: bool) -> Option<&'s str> {
        let by_holds = |moment: Timestamp| {
            let active = self
                .holds
                .iter()
                .filter(|hold| hold.is_effective(moment, owned));
            pin::fixed(active).or(self.reference)
        };
        let is_changed = moment.is_some_and(|moment| self.ends(moment, owned).next().is_some());
        match moment {
            Some(moment) if is_changed => by_holds(moment),
            _ => self.recorded.or_else(|| by_holds(self.at?)),
        }
    }

    /// Returns the holds of the span that fix a release and end between the start of the span and `moment`, each with
    /// the time of its end.
    fn ends(&self, moment: Timestamp, owned: bool) -> impl Iterator<Item = (&'s Hold, Timestamp)> {
        let begins = self.at.unwrap_or(Timestamp::MAX);
        let fixing = self.holds.iter();
        let fixing = fixing.filter(move |hold| hold.release.is_some() && !owned);
        let ends = fixing.filter_map(|hold| Some((hold, hold.until.as_ref()?.0)));
        ends.filter(move |(_, end)| begins < *end && *end <= moment)
    }

    /// Returns the last hold whose end made another release effective, no later than `moment`, and the time of that
    /// end. None if there is none.
    fn last_end(&self, moment: Timestamp, owned: bool) -> Option<(&'s Hold, Timestamp)> {
        let changes = self.ends(moment, owned).filter(|(hold, end)| {
            let before = end.checked_sub(SignedDuration::from_nanos(1)).ok();
            let before = self.effective(before, owned);
            hold.release.as_deref() == before && self.effective(Some(*end), owned) != before
        });
        changes.max_by_key(|(_, end)| *end)
    }

    /// Returns whether the releaseRef or a hold names the release during the span.
    fn names(&self, release: &str) -> bool {
        let mut fixed = self.holds.iter().filter_map(|hold| hold.release.as_deref());
        self.reference == Some(release)
            || self.recorded == Some(release)
            || fixed.any(|name| name == release)
    }
}

/// Finds the span in which `release` became effective; None if another release is effective at `now`. The spans
/// follow each other without a gap, and the last one ends at `now`. `owned` says whether a GitOps tool owns the
/// ReleasePin.
pub(in crate::subjects::release_pin) fn origin<'s>(
    spans: &[Span<'s>],
    release: &str,
    now: Timestamp,
    owned: bool,
) -> Option<Origin<'s>> {
    let mut end = Some(now);
    let mut first = None;
    for (number, span) in spans.iter().enumerate().rev() {
        if span.effective(end, owned) != Some(release) {
            break;
        }
        if let Some(ended) = end.and_then(|end| span.last_end(end, owned)) {
            let until = spans.get(..=number).unwrap_or_default();
            let naming = until.iter().rev().take_while(|span| span.names(release));
            return Some(Origin {
                span: (number + 1).saturating_sub(naming.count()),
                ended: Some(ended),
            });
        }
        first = Some(number);
        end = span.at;
    }
    first.map(|span| Origin { span, ended: None })
}

impl<'r> From<&'r Revision<Pinned>> for Span<'r> {
    fn from(revision: &'r Revision<Pinned>) -> Self {
        let content = revision.content.as_ref();
        Self {
            at: revision.created,
            recorded: content.map(|content| content.release.name.as_str()),
            reference: content.and_then(|content| content.reference.as_deref()),
            holds: content.map_or(&[], |content| &content.holds),
        }
    }
}

impl Revisions<Pinned> {
    /// Finds the change that made `release` effective. If it is unknown, all values of the result are None. `owned`
    /// says whether a GitOps tool owns the ReleasePin.
    pub fn made(&self, release: &str, now: Timestamp, owned: bool) -> Made {
        let unknown = Made {
            cause: None,
            since: None,
            ended: None,
        };
        let known = self.rows.iter().rev().map_while(|row| match row {
            Row::Known(revision) => Some(revision),
            Row::Missing(_) => None,
        });
        let mut known: Vec<&Revision<Pinned>> = known.collect();
        known.reverse();
        let spans: Vec<Span<'_>> = known.iter().map(|revision| Span::from(*revision)).collect();
        let Some(found) = origin(&spans, release, now, owned) else {
            return unknown;
        };
        let made = Made {
            since: found.ended.map(|(_, end)| end),
            ended: found.ended.map(|(hold, _)| hold.clone()),
            ..unknown
        };
        let Some(first) = known.get(found.span) else {
            return made;
        };
        // If earlier revisions are missing, the release may have been effective already before the first known
        // revision.
        let is_after_a_hole = found.span == 0 && known.len() < self.rows.len();
        if is_after_a_hole && !is_certain(first) {
            return made;
        }
        Made {
            cause: first.cause.clone(),
            since: made.since.or(first.created),
            ..made
        }
    }
}

/// Returns whether it is certain that this revision made its release effective, even if the revision before it is
/// missing.
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
