//! The matrix: one line per component, one cell per environment, and a pane that explains the selected one.
//!
//! In a healthy fleet it is quiet. The cursor begins on the worst place in production.

pub(super) mod pane;
mod travel;
mod view;

pub(in crate::tui) use view::health;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Handled;
use crate::engine::matrix::{self, Columns};
use crate::engine::past::Recorded;
use crate::engine::revisions::Made;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Pin, Source, World};
use crate::text;
use crate::tui::action::Action;
use crate::tui::effect::{Answer, Effect, Place, Ticket};
use crate::tui::filter::{self, Filter};
use crate::tui::model::{Level, Subject, Turn};
use crate::tui::order::quoted;
use crate::tui::roster::{Kind, Roster, Sort};
use crate::tui::theme::Role;

/// How long the mark of somebody's change stays on a cell.
const RECENT: SignedDuration = SignedDuration::from_secs(8);

/// The rows, the cursor and what was learned of cells.
#[derive(Default)]
pub struct State {
    roster: Option<Roster>,
    /// The column that the cursor is in.
    column: usize,
    /// The first row and the first column that were seen last: the window moves only where it has to.
    first: Cell<usize>,
    left: Cell<usize>,
    /// Whether the pane is closed.
    closed: bool,
    /// Whether the cursor has been put on the worst place.
    placed: bool,
    /// The changes that made releases effective, or why they cannot be read.
    made: HashMap<Effective, Result<Made, String>>,
    /// The request for one of them.
    asking: Option<(Ticket, Effective)>,
    /// Pins that somebody changed a moment ago.
    recent: HashMap<Key, Timestamp>,
    /// The generations that pins had.
    generations: HashMap<Key, i64>,
    /// The moment that is looked at; the present where there is none.
    travel: Option<travel::Travel>,
    reading: Option<travel::Reading>,
}

/// A release that is effective in a ReleasePin: its uid, its generation, the release, and whether a GitOps
/// tool owns it.
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
    /// Returns what the trail calls it.
    pub fn title(&self) -> String {
        "matrix".to_owned()
    }

    /// Tells whether the pane is closed.
    #[cfg(test)]
    pub fn is_pane_closed(&self) -> bool {
        self.closed
    }

    /// Returns the rows, once there are some.
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// Returns the number of the first row that was drawn last.
    pub fn first(&self) -> usize {
        self.first.get()
    }

    /// Returns the rows, to filter them.
    pub fn roster_mut(&mut self) -> Option<&mut Roster> {
        self.roster.as_mut()
    }

    /// Returns the totals, for the line under the header.
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
        let rows =
            (totals.rows > 0).then(|| (text::counted(totals.rows, "components"), Role::Muted));
        let loading = self
            .loading()
            .map(|what| (what.to_owned(), Role::Progressing));
        let parts = rows.into_iter().chain(parts);
        loading.into_iter().chain(parts).collect()
    }

    /// Returns what the cursor is on.
    pub fn place(&self) -> Option<Place> {
        let roster = self.roster.as_ref()?;
        Some(Place {
            component: roster.selected()?.name.clone(),
            environment: roster.columns().names().get(self.column)?.clone(),
        })
    }

    /// Returns the environment that the cursor is in.
    fn environment(&self) -> Option<Arc<str>> {
        let columns = self.roster.as_ref()?.columns();
        columns.names().get(self.column).cloned()
    }

    /// Keeps the cursor in its environment when the columns are others.
    fn keep_column(&mut self, environment: Option<Arc<str>>) {
        let Some(roster) = &self.roster else {
            return;
        };
        let columns = roster.columns();
        let found = environment.and_then(|name| columns.position(&name));
        let last = columns.names().len().saturating_sub(1);
        self.column = found.unwrap_or(self.column).min(last);
    }

    /// Puts the cursor on a place; tells whether it is shown.
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

    /// Returns what an action would be done to: what is marked, else what the cursor is on.
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

    /// Follows what changed in the read model.
    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        let ground = turn.ground;
        self.notice(touched, turn);
        if self.travel.is_some() {
            return self.touched_past(touched, turn.world);
        }
        let environment = self.environment();
        let fresh = self.roster.is_none();
        let roster = self.roster.get_or_insert_with(|| {
            Roster::new(Kind::Components, Some(&ground.namespace), &ground.user)
        });
        let rebuild = |touched: &Touched| {
            touched.key.is_none()
                || matches!(touched.source, Source::Environments | Source::Pipelines)
        };
        if fresh || touched.is_empty() || touched.iter().any(rebuild) {
            roster.set_user(&ground.user);
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

    /// Forgets that nobody recorded a cause, for ReleasePins that changed: a controller writes the missing
    /// AuditEntries before it writes the status.
    fn forget_unknown_causes(&mut self, touched: &[Touched], world: &World) {
        let pins = touched.iter().filter(|one| one.source == Source::Pins);
        let pins = pins.filter_map(|one| world.pin(one.key.as_ref()?));
        let uids: HashSet<&str> = pins.map(|pin| &*pin.uid).collect();
        let is_known =
            |made: &Result<Made, String>| matches!(made, Ok(made) if made.cause.is_some());
        self.made
            .retain(|of, made| is_known(made) || !uids.contains(&*of.uid));
    }

    /// Puts the cursor on the worst place in production, once everything is known.
    fn place_cursor(&mut self, world: &World) {
        let Some(roster) = &mut self.roster else {
            return;
        };
        if let Some((component, column)) = roster.worst() {
            roster.select(&component);
            self.column = column;
        }
        // Until every list is there the worst may yet come.
        self.placed = world.are_live(&Source::OF_MOVES) && roster.selected().is_some();
    }

    /// Notes which pins were moved just now, and tells of what others did.
    fn notice(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        for one in touched {
            let Some(key) = one.key.as_ref().filter(|_| one.source == Source::Pins) else {
                continue;
            };
            let Some(pin) = turn.world.pin(key) else {
                self.generations.remove(key);
                continue;
            };
            let before = self.generations.insert(key.clone(), pin.generation);
            // One that was listed and never seen to change: what no controller has seen yet is new.
            let moved = match before {
                Some(before) => before < pin.generation,
                None => pin.observed != Some(pin.generation),
            };
            if !moved {
                continue;
            }
            self.recent.insert(key.clone(), turn.now);
            let by = pin.changed_by.as_deref().unwrap_or("somebody");
            if by != turn.ground.user {
                let release = pin.effective_release(turn.now);
                let words = format!(
                    "{by} changed {} in {}: {release}",
                    pin.component, pin.environment
                );
                turn.say(Level::Info, words);
            }
        }
    }

    /// Lets time go by: holds end, and what was recent is not any more.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        if let Some(roster) = self.roster.as_mut().filter(|_| self.travel.is_none()) {
            roster.tick(turn.world, turn.now);
        }
        self.recent
            .retain(|_, at| turn.now.duration_since(*at) < RECENT);
        self.ask_cause(turn, false);
    }

    /// Asks for the change that made the selected release effective, unless it is known already. After a
    /// failure only a key asks again.
    fn ask_cause(&mut self, turn: &mut Turn<'_>, again: bool) {
        let here = self.travel.is_none() && !self.closed;
        let Some(place) = self.place().filter(|_| here) else {
            return;
        };
        let component = Key::new(&turn.ground.namespace, &place.component);
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

    /// Takes what a request brought.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        let answer = match (answer, self.asking.take()) {
            (Answer::Revisions(revisions), Some((asked, of))) if asked == ticket => {
                let made = match revisions {
                    // The watch is about to bring the newer revision, and the matrix asks again then.
                    Ok(revisions) if revisions.current != of.generation => return None,
                    Ok(revisions) => Ok(revisions.made(&of.release, turn.now, of.owned)),
                    Err(why) => Err(why),
                };
                // A long session looks at many.
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

    /// Does what a key means here.
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
            action if action.plans() && self.travel.is_some() => {
                turn.say(
                    Level::Warning,
                    "this is the past: press esc to return to the present before you plan",
                );
                return Handled::Yes;
            }
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

    /// Copies the release under the cursor, or the command line that shows its row.
    fn copy(&self, action: Action, turn: &mut Turn<'_>) {
        let Some(place) = self.place() else {
            return turn.say(Level::Warning, "select a component first");
        };
        let component = Key::new(&turn.ground.namespace, &place.component);
        let columns = self.roster.as_ref().map(Roster::columns);
        let row = columns.map(|columns| self.cells(turn.world, columns, &component, turn.now));
        let shown = row.and_then(|row| row.get(self.column).copied());
        let text = match (action, shown) {
            (Action::CopyCommand, _) => {
                let line = format!("bowline status {}", quoted(&place.component));
                turn.ground.aimed(line)
            }
            (_, Some(Recorded::Ran(cell))) => cell.release.to_owned(),
            (_, shown) => {
                let Place {
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

    /// Moves the cursor to the column of the selected row that is at fault, if its own is not.
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

    /// Returns the cells of a row, at the moment that is shown.
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
                let row = matrix::row(world, columns, component, now).into_iter();
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
