//! The matrix: one row per component or workload, one cell per environment, and a pane that
//! describes the selected cell.
//!
//! A healthy fleet shows few colours. The cursor starts on the worst cell in production.

pub(super) mod pane;
mod travel;
mod view;

pub(crate) use view::health;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Handled;
use crate::action::Action;
use crate::effect::{Answer, CellKey, Effect, Ticket};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source, World};
use crate::filter::{self, Filter};
use crate::model::{Level, Subject, Turn};
use crate::roster::{Kind, Roster, Sort};
use crate::subjects;
use crate::subjects::release_pin::READ_BY_CHANGES;
use crate::subjects::release_pin::matrix::Columns;
use crate::subjects::release_pin::past::Recorded;
use crate::subjects::release_pin::revisions::Made;
use crate::subjects::release_pin::rows::Pin;
use crate::text;
use crate::text::quoted;
use crate::theme::Role;

/// The time for which a cell stays highlighted after another user changed its ReleasePin.
const RECENT: SignedDuration = SignedDuration::from_secs(8);

/// The state of the matrix.
#[derive(Default)]
pub struct State {
    roster: Option<Roster>,
    /// The index of the column under the cursor.
    column: usize,
    /// The first visible row (`first`) and column (`left`) of the last frame. The window scrolls
    /// only if the cursor is outside.
    first: Cell<usize>,
    left: Cell<usize>,
    /// Whether the pane is closed.
    closed: bool,
    /// Whether the cursor has found its start position, on the worst cell.
    placed: bool,
    /// The cache of the changes that made releases effective, or of the errors from reading them.
    made: HashMap<Effective, Result<Made, String>>,
    /// The open request for the change that made a release effective.
    asking: Option<(Ticket, Effective)>,
    /// The ReleasePins that changed recently, each with the time of the change. Their cells are
    /// highlighted.
    recent: HashMap<Key, Timestamp>,
    /// The last known generation of each ReleasePin.
    generations: HashMap<Key, i64>,
    /// The displayed past time; None for the live matrix.
    travel: Option<travel::Travel>,
    reading: Option<travel::Reading>,
}

/// The effective release of a ReleasePin, as the key of the cache. `uid` and `generation` belong to
/// the ReleasePin; `owned` says whether a GitOps tool owns it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Effective {
    uid: Box<str>,
    generation: i64,
    release: Box<str>,
    owned: bool,
}

impl Effective {
    fn of(pin: &Pin, now: Timestamp) -> Self {
        Self {
            uid: pin.uid.clone(),
            generation: pin.generation,
            release: pin.effective_release(now).into(),
            owned: pin.gitops.is_some(),
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matrix")
            .field("column", &self.column)
            .finish_non_exhaustive()
    }
}

impl State {
    pub fn title(&self) -> String {
        "matrix".to_owned()
    }

    #[cfg(test)]
    pub fn is_pane_closed(&self) -> bool {
        self.closed
    }

    /// Returns the rows; None before the first update of the screen.
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// Returns the position of the first row in the last frame.
    pub fn first(&self) -> usize {
        self.first.get()
    }

    pub fn roster_mut(&mut self) -> Option<&mut Roster> {
        self.roster.as_mut()
    }

    pub fn totals(&self) -> Vec<(String, Role)> {
        let Some(roster) = &self.roster else {
            return Vec::new();
        };
        let totals = roster.totals();
        let parts = [
            (totals.degraded, "degraded", Role::Degraded),
            (totals.progressing, "rolling", Role::Progressing),
            (totals.held, "held", Role::Hold),
            (totals.behind, "behind", Role::Behind),
            (roster.marked().len(), "marked", Role::Marked),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts = parts.map(|(count, word, role)| (format!("{count} {word}"), role));
        let noun = match roster.has_workloads() {
            true => "rows",
            false => "components",
        };
        let rows = (totals.rows > 0).then(|| (text::counted(totals.rows, noun), Role::Muted));
        let loading = self
            .loading()
            .map(|what| (what.to_owned(), Role::Progressing));
        let parts = rows.into_iter().chain(parts);
        loading.into_iter().chain(parts).collect()
    }

    /// Returns the cell under the cursor; None if there is no row or no column.
    pub fn place(&self) -> Option<CellKey> {
        let roster = self.roster.as_ref()?;
        Some(CellKey {
            component: roster.selected()?.name.clone(),
            environment: roster.columns().names().get(self.column)?.clone(),
        })
    }

    /// Returns the environment of the column under the cursor.
    fn environment(&self) -> Option<Arc<str>> {
        let columns = self.roster.as_ref()?.columns();
        columns.names().get(self.column).cloned()
    }

    /// Moves the cursor back to its environment after the columns changed.
    fn keep_column(&mut self, environment: Option<Arc<str>>) {
        let Some(roster) = &self.roster else {
            return;
        };
        let columns = roster.columns();
        let found = environment.and_then(|name| columns.position(&name));
        let last = columns.names().len().saturating_sub(1);
        self.column = found.unwrap_or(self.column).min(last);
    }

    /// Moves the cursor to a cell; returns false if its row is not shown.
    pub fn select(&mut self, component: &Key, environment: Option<&str>) -> bool {
        let Some(roster) = &mut self.roster else {
            return false;
        };
        if let Some(column) = environment.and_then(|name| roster.columns().position(name)) {
            self.column = column;
        }
        self.placed = true;
        roster.select(component)
    }

    pub fn subject(&self) -> Subject {
        let Some(roster) = &self.roster else {
            return Subject::default();
        };
        let marked = roster.marked();
        let components: Vec<Arc<str>> = match marked.is_empty() {
            true => roster
                .selected()
                .map(|key| key.name.clone())
                .into_iter()
                .collect(),
            false => marked.into_iter().map(|key| key.name.clone()).collect(),
        };
        Subject {
            components,
            release: None,
            environment: self.environment(),
        }
    }

    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        let target_info = turn.target_info;
        self.notice(touched, turn);
        if self.travel.is_some() {
            return self.touched_past(touched, turn.world);
        }
        let environment = self.environment();
        let fresh = self.roster.is_none();
        let roster = self.roster.get_or_insert_with(|| {
            Roster::new(
                Kind::Components,
                Some(&target_info.namespace),
                &target_info.user,
            )
        });
        let rebuild = |touched: &Touched| {
            touched.key.is_none()
                || matches!(touched.source, Source::ENVIRONMENTS | Source::PIPELINES)
        };
        if fresh || touched.is_empty() || touched.iter().any(rebuild) {
            roster.set_user(&target_info.user);
            roster.rebuild(turn.world, turn.now);
        } else {
            for one in touched {
                roster.touch(turn.world, one, turn.now);
            }
        }
        self.keep_column(environment);
        if !self.placed {
            self.place_cursor(turn.world);
        }
        self.forget_unknown_causes(touched, turn.world);
        self.ask_cause(turn, false);
    }

    /// Removes the changed ReleasePins with an unknown cause from the cache, because a controller
    /// may now have written the missing audit entries.
    fn forget_unknown_causes(&mut self, touched: &[Touched], world: &World) {
        let pins = touched
            .iter()
            .filter(|one| one.source == Source::RELEASE_PINS);
        let pins = pins.filter_map(|one| world.pin(one.key.as_ref()?));
        let uids: HashSet<&str> = pins.map(|pin| &*pin.uid).collect();
        let is_known =
            |made: &Result<Made, String>| matches!(made, Ok(made) if made.cause.is_some());
        self.made
            .retain(|of, made| is_known(made) || !uids.contains(&*of.uid));
    }

    /// Moves the cursor to the worst cell, preferably in production. Until all data is loaded, each
    /// change repeats this.
    fn place_cursor(&mut self, world: &World) {
        let Some(roster) = &mut self.roster else {
            return;
        };
        if let Some((component, column)) = roster.worst() {
            roster.select(&component);
            self.column = column;
        }
        // Before all lists are loaded, a worse cell may still arrive.
        self.placed = world.are_known(&READ_BY_CHANGES) && roster.selected().is_some();
    }

    /// Highlights the cells whose ReleasePins changed, and shows a notice if another user changed
    /// them.
    fn notice(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        for one in touched {
            let Some(key) = one
                .key
                .as_ref()
                .filter(|_| one.source == Source::RELEASE_PINS)
            else {
                continue;
            };
            let Some(pin) = turn.world.pin(key) else {
                self.generations.remove(key);
                continue;
            };
            let before = self.generations.insert(key.clone(), pin.generation);
            // This is the first event for this ReleasePin. Its generation is a recent change if no
            // controller has observed it yet.
            let moved = match before {
                Some(before) => before < pin.generation,
                None => pin.observed != Some(pin.generation),
            };
            if !moved {
                continue;
            }
            self.recent.insert(key.clone(), turn.now);
            let by = pin.changed_by.as_deref().unwrap_or("somebody");
            if by != turn.target_info.user {
                let release = pin.effective_release(turn.now);
                let words = format!(
                    "{by} changed {} in {}: {release}",
                    pin.component, pin.environment
                );
                turn.say(Level::Info, words);
            }
        }
    }

    /// Removes expired holds and highlights after time has passed.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        if let Some(roster) = self.roster.as_mut().filter(|_| self.travel.is_none()) {
            roster.tick(turn.world, turn.now);
        }
        self.recent
            .retain(|_, at| turn.now.duration_since(*at) < RECENT);
        self.ask_cause(turn, false);
    }

    /// Requests the change that made the release under the cursor effective, unless it is in the
    /// cache. `again` also repeats a request that failed.
    fn ask_cause(&mut self, turn: &mut Turn<'_>, again: bool) {
        let here = self.travel.is_none() && !self.closed;
        let Some(place) = self.place().filter(|_| here) else {
            return;
        };
        let component = Key::new(&turn.target_info.namespace, &place.component);
        let Some(pin) = turn.world.pin_of(&component, &place.environment) else {
            return;
        };
        let wanted = Effective::of(pin, turn.now);
        let asked = self
            .asking
            .as_ref()
            .is_some_and(|(_, asked)| *asked == wanted);
        let is_known = match self.made.get(&wanted) {
            Some(Ok(_)) => true,
            Some(Err(_)) => !again,
            None => false,
        };
        if asked || is_known {
            return;
        }
        let ticket = turn.ticket();
        self.asking = Some((ticket, wanted));
        turn.effects.push(Effect::Revisions(ticket, place));
    }

    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        let answer = match (answer, self.asking.take()) {
            (Answer::Revisions(revisions), Some((asked, of))) if asked == ticket => {
                let made = match revisions {
                    // The revisions are newer than the read model. The watch will deliver the new
                    // generation, and then the matrix repeats the request.
                    Ok(revisions) if revisions.current != of.generation => return None,
                    Ok(revisions) => Ok(revisions.made(&of.release, turn.now, of.owned)),
                    Err(why) => Err(why),
                };
                // Limit the cache, because a long session visits many cells.
                if self.made.len() > 1_000 {
                    self.made.clear();
                }
                self.made.insert(of, made);
                return None;
            }
            (answer, asking) => {
                self.asking = asking;
                answer
            }
        };
        self.recorded(ticket, answer, turn)
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match action {
            Action::TimeTravel => {
                self.travel(None, turn);
                return Handled::Yes;
            }
            Action::StepBack | Action::StepForth => {
                self.step(action == Action::StepBack, turn);
                return Handled::Yes;
            }
            Action::Live | Action::Back | Action::Interrupt if self.come_back(turn) => {
                self.ask_cause(turn, true);
                return Handled::Yes;
            }
            action if self.act_in_past(action, turn) => return Handled::Yes,
            _ => {}
        }
        let Some(roster) = &mut self.roster else {
            return Handled::No;
        };
        let page = isize::try_from(usize::from(turn.size.1).saturating_sub(12).max(1)).unwrap_or(1);
        let columns = roster.columns().names().len();
        match action {
            Action::Up => roster.step(-1),
            Action::Down => roster.step(1),
            Action::PageUp => roster.step(-page),
            Action::PageDown => roster.step(page),
            Action::HalfPageUp => roster.step(-page / 2),
            Action::HalfPageDown => roster.step(page / 2),
            Action::Top => roster.select_at(0),
            Action::Bottom => roster.select_at(usize::MAX),
            Action::Left => self.column = self.column.saturating_sub(1),
            Action::Right => self.column = (self.column + 1).min(columns.saturating_sub(1)),
            Action::NextFault | Action::PreviousFault => {
                match roster.step_to_fault(action == Action::NextFault) {
                    true => self.go_to_fault(turn),
                    false => turn.say(Level::Info, "no failing row is shown"),
                }
            }
            Action::Mark => {
                if let Some(key) = roster.selected().cloned() {
                    roster.toggle_mark(&key);
                    roster.step(1);
                }
            }
            Action::MarkAll => roster.mark_shown(),
            Action::Unmark => roster.unmark(),
            Action::Sort | Action::SortReverse => {
                let (sort, reversed) = roster.sort();
                let (sort, reversed) = match action == Action::Sort {
                    true => (next_sort(sort), false),
                    false => (sort, !reversed),
                };
                roster.set_sort(sort, reversed);
                let name = Sort::ALL.iter().find(|(known, _)| *known == sort);
                let name = name.map_or("", |(_, name)| name);
                let way = if reversed { ", reversed" } else { "" };
                turn.say(Level::Info, format!("sorted by {name}{way}"));
            }
            Action::FaultsOnly => {
                let mut filter = roster.filter().clone();
                filter.toggle(filter::Term::new(filter::Ask::Place(
                    filter::OfPlace::Fault,
                )));
                roster.set_filter(filter);
            }
            Action::Copy | Action::CopyCommand => {
                self.copy(action, turn);
                return Handled::Yes;
            }
            Action::Pane => self.closed = !self.closed,
            Action::Back if !roster.filter().is_empty() => roster.set_filter(Filter::default()),
            Action::Back if !roster.marked().is_empty() => roster.unmark(),
            _ => return Handled::No,
        }
        self.ask_cause(turn, true);
        Handled::Yes
    }

    /// Copies the release under the cursor, or the command line that shows the row.
    fn copy(&self, action: Action, turn: &mut Turn<'_>) {
        let Some(place) = self.place() else {
            return turn.say(Level::Warning, "select a component first");
        };
        let component = Key::new(&turn.target_info.namespace, &place.component);
        let columns = self.roster.as_ref().map(Roster::columns);
        let row = columns.map(|columns| self.cells(turn.world, columns, &component, turn.now));
        let shown = row.and_then(|row| row.get(self.column).copied());
        let text = match (action, shown) {
            (Action::CopyCommand, _) => {
                let name = quoted(&place.component);
                turn.target_info.aimed(match &self.travel {
                    None if place.component.contains('/') => format!("bowline history {name}"),
                    None => format!("bowline status {name}"),
                    // No command shows the matrix at a past time, so copy the one that shows the
                    // history of the cell.
                    Some(_) => {
                        let environment = quoted(&place.environment);
                        format!("bowline history {name} --environment {environment}")
                    }
                })
            }
            (_, Some(Recorded::Ran(cell))) => cell.release.to_owned(),
            (_, shown) => {
                let CellKey {
                    component,
                    environment,
                } = place;
                let words = match (shown, &self.travel) {
                    (Some(Recorded::Deleted(_) | Recorded::NotYet), _) => {
                        format!("the release of {component} in {environment} is not recorded")
                    }
                    (_, Some(_)) => format!("{component} was not deployed in {environment}"),
                    (_, None) => format!("{component} is not deployed in {environment}"),
                };
                return turn.say(Level::Warning, words);
            }
        };
        turn.say(Level::Info, format!("copied {text}"));
        turn.effects.push(Effect::Copy(text));
    }

    /// Moves the cursor to a column with a fault, unless its column already has a fault.
    fn go_to_fault(&mut self, turn: &Turn<'_>) {
        let Some((roster, component)) = self
            .roster
            .as_ref()
            .and_then(|roster| Some((roster, roster.selected()?)))
        else {
            return;
        };
        let row = self.cells(turn.world, roster.columns(), component, turn.now);
        let fault = |column: &usize| {
            let cell = row.get(*column).and_then(|recorded| recorded.cell());
            cell.is_some_and(|cell| cell.health().is_fault())
        };
        if !fault(&self.column)
            && let Some(column) = (0..row.len()).rev().find(fault)
        {
            self.column = column;
        }
    }

    /// Returns the cells of a row at the displayed time, past or present.
    fn cells<'w>(
        &'w self,
        world: &'w World,
        columns: &'w Columns,
        component: &Key,
        now: Timestamp,
    ) -> Vec<Recorded<'w>> {
        match &self.travel {
            Some(travel) => travel.past.then(world, columns, travel.at).row(component),
            None => {
                let row = subjects::matrix::row(world, columns, component, now).into_iter();
                row.map(|cell| cell.map_or(Recorded::Nothing, Recorded::Ran))
                    .collect()
            }
        }
    }
}

fn next_sort(sort: Sort) -> Sort {
    let known: Vec<Sort> = Sort::ALL
        .iter()
        .map(|(sort, _)| *sort)
        .filter(|sort| *sort != Sort::Size)
        .collect();
    let at = known
        .iter()
        .position(|known| *known == sort)
        .unwrap_or_default();
    known
        .get((at + 1) % known.len())
        .copied()
        .unwrap_or_default()
}
