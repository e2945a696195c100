//! The list of revisions in the component screen and the revisions screen, the newest first, with
//! the gaps between them. The cursor stays on its revision when a new revision arrives.

mod view;

use jiff::Timestamp;

use super::{Handled, Screen, diff};
use crate::action::Action;
use crate::api::choreo::rendered::Health;
use crate::api::openchoreo::release::Verdict;
use crate::effect::{Answer, CellKey, Compared, Effect, Ticket};
use crate::engine::revisions::{Revision, Revisions, Row};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source, World};
use crate::filter::{Facts, Filter, Matcher};
use crate::from_keys;
use crate::model::{Level, ScreenRequest, Turn};
use crate::screens::matrix::pane::word;
use crate::subjects::matrix;
use crate::subjects::release_pin::actions::mark::Mark;
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::planner;
use crate::subjects::release_pin::revisions::{Made, Pinned};
use crate::subjects::release_pin::rows::Pin;
use crate::subjects::service::Command;

/// The revisions of one ReleasePin or workload, with a cursor and marks.
#[derive(Debug)]
pub struct History {
    /// The cell of the ReleasePin.
    pub place: CellKey,
    ticket: Ticket,
    /// The state of the ReleasePin at the time of the last request; None if it did not exist.
    seen: Option<Seen>,
    found: Found,
    /// The number of the selected revision. If a gap is selected, the last number in the gap.
    selected: Option<i64>,
    /// The numbers of the marked revisions, at most two, in the order of marking.
    marked: Vec<i64>,
    filter: Filter,
}

/// The state of a ReleasePin. If it differs from the last request, the revisions must be read
/// again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    uid: Box<str>,
    generation: i64,
    moves: usize,
    /// The number of revisions of a workload that are marked bad.
    bad: usize,
    healthy: Option<bool>,
}

#[derive(Debug)]
enum Found {
    Reading,
    Failed(String),
    Known(Box<Revisions<Pinned>>),
}

impl History {
    /// Creates the list for a cell, and requests its revisions.
    pub fn open(place: CellKey, turn: &mut Turn<'_>) -> Self {
        let mut history = Self {
            place,
            ticket: 0,
            seen: None,
            found: Found::Reading,
            selected: None,
            marked: Vec::new(),
            filter: Filter::default(),
        };
        history.ask(turn);
        history
    }

    /// Selects a revision by its number. Also works before the revisions are loaded.
    pub fn select_revision(&mut self, number: i64) {
        self.selected = Some(number);
    }

    /// Requests the revisions again if the ReleasePin has changed since the last request.
    pub fn ask(&mut self, turn: &mut Turn<'_>) {
        let seen = self.see(turn.world, &turn.target_info.namespace);
        if seen.is_none() {
            let place = &self.place;
            let words = format!(
                "{} is not deployed in {}",
                place.component, place.environment
            );
            self.found = Found::Failed(words);
            self.seen = None;
            // Ignore the answer to an open request, because it describes the deleted ReleasePin.
            self.ticket = 0;
            return;
        }
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        self.ticket = turn.ticket();
        let asked = Effect::Revisions(self.ticket, self.place.clone());
        turn.effects.push(asked);
    }

    fn see(&self, world: &World, namespace: &str) -> Option<Seen> {
        let component = Key::new(namespace, &self.place.component);
        if let Some(row) = world.workload(&component) {
            return Some(Seen {
                uid: row.uid.clone(),
                generation: row.changes,
                moves: world.workload_revisions(row).count(),
                bad: world.workload_revisions(row).filter(|it| it.bad).count(),
                healthy: Some(row.health == Health::Healthy),
            });
        }
        let pin = world.pin_of(&component, &self.place.environment)?;
        Some(Seen {
            uid: pin.uid.clone(),
            generation: pin.generation,
            moves: pin.moves.len(),
            bad: 0,
            healthy: pin.moves.last().and_then(|last| last.healthy),
        })
    }

    pub fn answer(&mut self, ticket: Ticket, answer: Answer) -> Option<Answer> {
        match answer {
            Answer::Revisions(found) if ticket == self.ticket => {
                self.found = match found {
                    Ok(revisions) => Found::Known(revisions),
                    Err(why) => Found::Failed(why),
                };
                None
            }
            answer => Some(answer),
        }
    }

    /// Returns whether one of the changed objects may belong to this subject, so that
    /// [`History::ask`] is needed.
    pub fn concerns(&self, touched: &[Touched]) -> bool {
        let is_own = |one: &Touched| {
            one.source == Source::RELEASE_PINS
                || one.component.as_ref() == Some(&self.place.component)
        };
        touched.iter().any(is_own)
    }

    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// Returns all rows, the newest first, including rows that the filter hides.
    fn all(&self) -> impl Iterator<Item = &Row<Pinned>> {
        let rows = match &self.found {
            Found::Known(revisions) => revisions.rows.as_slice(),
            Found::Reading | Found::Failed(_) => &[],
        };
        rows.iter().rev()
    }

    /// Returns the rows that match the filter, the newest first.
    fn rows(&self) -> impl Iterator<Item = &Row<Pinned>> {
        let matcher = Matcher::new(&self.filter, &[]);
        let everything = self.filter.is_empty();
        self.all()
            .filter(move |row| everything || matcher.keeps(&facts(row), false))
    }

    /// Returns the position of the selected row among the rows that match the filter.
    fn position(&self) -> usize {
        let at = self
            .selected
            .and_then(|selected| self.rows().position(|row| number(row) <= selected));
        at.unwrap_or_default()
    }

    fn row(&self) -> Option<&Row<Pinned>> {
        self.rows().nth(self.position())
    }

    /// Returns the selected revision; None if a gap is selected.
    pub fn revision(&self) -> Option<&Revision<Pinned>> {
        match self.row()? {
            Row::Known(revision) => Some(revision),
            Row::Missing(_) => None,
        }
    }

    /// Returns the change that made the release of the ReleasePin effective, or the error from
    /// reading it. None while the revisions are loading, and while they are older than the
    /// ReleasePin.
    pub fn made(&self, pin: &Pin, now: Timestamp) -> Option<Result<Made, String>> {
        match &self.found {
            Found::Reading => None,
            Found::Failed(why) => Some(Err(why.clone())),
            Found::Known(revisions) if revisions.current != pin.generation => None,
            Found::Known(revisions) => {
                let release = pin.effective_release(now);
                Some(Ok(revisions.made(release, now, pin.gitops.is_some())))
            }
        }
    }

    /// Returns the line that says where bowline records changes of the subject; None if it writes
    /// AuditEntries.
    pub fn record(&self) -> Option<&str> {
        self.known()?.record.as_deref()
    }

    /// Returns the revisions; None until they are loaded.
    fn known(&self) -> Option<&Revisions<Pinned>> {
        match &self.found {
            Found::Known(revisions) => Some(revisions),
            Found::Reading | Found::Failed(_) => None,
        }
    }

    /// Returns the current revision; None if it is not known.
    fn current(&self) -> Option<&Revision<Pinned>> {
        self.known()?.current().ok()
    }

    fn select(&mut self, at: usize) {
        let last = self.rows().count().saturating_sub(1);
        let row = self.rows().nth(at.min(last)).map(number);
        self.selected = row;
    }

    /// Handles an action on the list of revisions.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let page = usize::from(turn.size.1).saturating_sub(12).max(1);
        let at = self.position();
        match action {
            Action::Up => self.select(at.saturating_sub(1)),
            Action::Down => self.select(at + 1),
            Action::PageUp => self.select(at.saturating_sub(page)),
            Action::PageDown => self.select(at + page),
            Action::HalfPageUp => self.select(at.saturating_sub(page / 2)),
            Action::HalfPageDown => self.select(at + page / 2),
            Action::Top => self.select(0),
            Action::Bottom => self.select(usize::MAX),
            Action::Open | Action::Diff => match self.compared() {
                Ok(compared) => {
                    let opened = diff::State::open(compared, turn);
                    turn.open(Screen::Diff(Box::new(opened)));
                }
                Err(why) => turn.say(Level::Warning, why),
            },
            Action::Rollback => return self.roll_back(turn),
            Action::Mark => {
                self.mark(turn);
                self.select(at + 1);
            }
            Action::Unmark => self.marked.clear(),
            Action::Back if !self.filter.is_empty() => self.filter = Filter::default(),
            Action::Back if !self.marked.is_empty() => self.marked.clear(),
            Action::MarkBad | Action::MarkGood => {
                if let Some(why) = from_keys::not_for_workloads(action, &self.place.component) {
                    turn.say(Level::Warning, why);
                    return Handled::Yes;
                }
                let verdict = match action {
                    Action::MarkBad => Verdict::Bad,
                    _ => Verdict::Good,
                };
                if matrix::named("", &self.place.component).is_some() {
                    match self.revision() {
                        Some(revision) => {
                            let number = revision.number;
                            let command = from_keys::mark_revision(&self.place, number, verdict);
                            turn.requests.push(ScreenRequest::Plan(command));
                        }
                        None => turn.say(Level::Warning, "there is no revision to mark"),
                    }
                    return Handled::Yes;
                }
                match self.release() {
                    Some(release) => turn.requests.push(ScreenRequest::Plan(Command::Mark(Mark {
                        release,
                        verdict,
                    }))),
                    None => turn.say(
                        Level::Warning,
                        "the release of this revision is not recorded, so it cannot be marked",
                    ),
                }
            }
            Action::Copy => {
                if let Some(release) = self.release() {
                    turn.say(Level::Info, format!("{release} is on the clipboard"));
                    turn.effects.push(Effect::Copy(release));
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Marks the selected revision, or removes its mark. A third mark removes the oldest mark.
    fn mark(&mut self, turn: &mut Turn<'_>) {
        let Some(number) = self.revision().map(|revision| revision.number) else {
            return turn.say(
                Level::Warning,
                "this revision has no record, so it cannot be compared",
            );
        };
        let known = self.marked.len();
        self.marked.retain(|marked| *marked != number);
        if self.marked.len() == known {
            self.marked.push(number);
        }
        if self.marked.len() > 2 {
            self.marked.remove(0);
        }
    }

    fn release(&self) -> Option<String> {
        let content = self.revision()?.content.as_ref()?;
        Some(content.release.name.clone())
    }

    /// Returns the comparison that the diff key makes: of the two marked revisions; or of the
    /// marked and the selected revision; or of the selected revision and the one before it.
    fn compared(&self) -> Result<Compared, String> {
        let Found::Known(revisions) = &self.found else {
            return Err("the revisions are still loading".to_owned());
        };
        let selected = || match self.row() {
            Some(Row::Known(revision)) => Ok(revision.number),
            Some(row @ Row::Missing(_)) => Err(missing(row)),
            None => Err("there are no revisions".to_owned()),
        };
        let (one, other) = match self.marked.as_slice() {
            [one, other] => (*one, *other),
            [one] if selected()? != *one => (*one, selected()?),
            _ => {
                let number = selected()?;
                let before = revisions.before(number).map_err(|why| why.to_string())?;
                (before.number, number)
            }
        };
        Ok(Compared::Revisions {
            place: self.place.clone(),
            from: one.min(other),
            to: one.max(other),
        })
    }

    /// Plans a rollback to the selected revision. If this is the current revision, plans a rollback
    /// to the last good revision.
    fn roll_back(&self, turn: &mut Turn<'_>) -> Handled {
        let to = match (self.row(), self.current()) {
            (Some(Row::Known(revision)), Some(current)) if revision.number != current.number => {
                Target::Revision(revision.number)
            }
            (Some(row @ Row::Missing(_)), _) => {
                turn.say(Level::Warning, missing(row));
                return Handled::Yes;
            }
            _ => return Handled::No,
        };
        let order = planner::ActionRequest::Rollback {
            component: self.place.component.to_string(),
            environment: self.place.environment.to_string(),
            to,
            hold: true,
        };
        turn.requests
            .push(ScreenRequest::Plan(Command::Change(order)));
        Handled::Yes
    }
}

/// Returns the facts of a row that the filter checks.
fn facts(row: &Row<Pinned>) -> Facts {
    let Row::Known(revision) = row else {
        return Facts::of_texts([missing(row).as_str()]);
    };
    let number = format!("revision {}", revision.number);
    let content = revision.content.as_ref();
    let cause = revision.cause.as_ref();
    let held = content.is_some_and(|content| !content.holds.is_empty());
    let texts = [
        Some(number.as_str()),
        content.map(|content| content.release.name.as_str()),
        cause.map(|cause| word(cause.action)),
        cause.and_then(|cause| cause.actor.as_deref()),
        cause.and_then(|cause| cause.reason.as_deref()),
        Some(revision.state.word()),
        held.then_some("held"),
        revision.mark.map(Verdict::word),
    ];
    Facts::of_texts(texts.into_iter().flatten())
}

/// Returns the revision number of a row; for a gap, its last number.
fn number(row: &Row<Pinned>) -> i64 {
    match row {
        Row::Known(revision) => revision.number,
        Row::Missing(missing) => missing.last,
    }
}

/// Describes a gap: the numbers of the missing revisions, and why they are missing.
fn missing(row: &Row<Pinned>) -> String {
    match row {
        Row::Known(revision) => format!("revision {}", revision.number),
        Row::Missing(gap) if gap.first == gap.last => {
            format!("revision {}: {}", gap.first, gap.missing.words())
        }
        Row::Missing(gap) => format!(
            "revisions {} to {}: {}",
            gap.first,
            gap.last,
            gap.missing.words()
        ),
    }
}

#[cfg(test)]
pub(super) mod tests;
