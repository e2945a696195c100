//! The matrix: one line per component, one cell per environment, and a pane that explains the selected one.
//!
//! In a healthy fleet it is quiet. The cursor begins on the worst place in production.

pub(super) mod pane;
mod travel;
mod view;

pub(in crate::tui) use view::health;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Handled;
use crate::api::audit::AuditEntry;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source, World};
use crate::text;
use crate::tui::action::Action;
use crate::tui::effect::{Answer, Effect, Place, Ticket};
use crate::tui::filter::{self, Filter};
use crate::tui::model::{Level, Subject, Turn};
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
    /// Who put a pin where it is, by its uid and generation.
    causes: HashMap<(Box<str>, i64), Option<Box<AuditEntry>>>,
    /// Which of these was asked for last.
    asking: Option<(Ticket, (Box<str>, i64))>,
    /// Pins that somebody changed a moment ago.
    recent: HashMap<Key, Timestamp>,
    /// The generations that pins had.
    generations: HashMap<Key, i64>,
    /// The moment that is looked at; the present where there is none.
    travel: Option<travel::Travel>,
    reading: Option<travel::Reading>,
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

    /// Returns the rows, once there are some.
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
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
        rows.into_iter().chain(parts).collect()
    }

    /// Returns what the cursor is on.
    pub fn place(&self) -> Option<Place> {
        let roster = self.roster.as_ref()?;
        Some(Place {
            component: roster.selected()?.name.clone(),
            environment: roster.columns().names().get(self.column)?.clone(),
        })
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
    pub fn subject(&self, world: &World) -> Subject {
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
        let environment = roster.columns().names().get(self.column).cloned();
        let pin = roster
            .selected()
            .zip(environment.as_ref())
            .and_then(|(component, environment)| world.pin_of(component, environment));
        Subject {
            components,
            release: pin.map(|pin| pin.release.to_string()),
            environment,
        }
    }

    /// Follows what changed in the read model.
    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        let ground = turn.ground;
        let fresh = self.roster.is_none();
        let roster = self.roster.get_or_insert_with(|| {
            Roster::new(Kind::Components, Some(&ground.namespace), &ground.user)
        });
        let rebuild = |touched: &Touched| {
            touched.key.is_none()
                || matches!(touched.source, Source::Environments | Source::Pipelines)
        };
        if fresh || touched.iter().any(rebuild) {
            roster.rebuild(turn.world, turn.now);
        } else {
            for one in touched {
                roster.touch(turn.world, one, turn.now);
            }
        }
        self.column = self
            .column
            .min(roster.columns().names().len().saturating_sub(1));
        self.notice(touched, turn);
        if !self.placed {
            self.place_cursor(turn.world);
        }
        self.ask_cause(turn);
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
        if let Some(roster) = &mut self.roster {
            roster.tick(turn.world, turn.now);
        }
        self.recent
            .retain(|_, at| turn.now.duration_since(*at) < RECENT);
        self.ask_cause(turn);
    }

    /// Asks who put the selected pin where it is, where that is not known yet.
    fn ask_cause(&mut self, turn: &mut Turn<'_>) {
        let Some(place) = self.place().filter(|_| !self.closed) else {
            return;
        };
        let component = Key::new(&turn.ground.namespace, &place.component);
        let Some(pin) = turn.world.pin_of(&component, &place.environment) else {
            return;
        };
        let wanted = (pin.uid.clone(), pin.generation);
        let asked = self
            .asking
            .as_ref()
            .is_some_and(|(_, asked)| *asked == wanted);
        if asked || self.causes.contains_key(&wanted) {
            return;
        }
        let ticket = turn.ticket();
        self.asking = Some((ticket, wanted));
        turn.effects.push(Effect::Cause(ticket, place));
    }

    /// Takes what a request brought.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        match (answer, &self.asking) {
            (Answer::Cause(_, entry), Some((asked, of))) if *asked == ticket => {
                // A long session looks at many.
                if self.causes.len() > 1_000 {
                    self.causes.clear();
                }
                self.causes.insert(of.clone(), entry);
                self.asking = None;
                None
            }
            (answer, _) => self.recorded(ticket, answer, turn),
        }
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
            Action::Live | Action::Back if self.come_back() => return Handled::Yes,
            action if action.plans() && self.travel.is_some() => {
                turn.say(
                    Level::Warning,
                    "this is the past: esc comes back to the present, where plans are made",
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
                    true => self.go_to_fault(turn.world, turn.now),
                    false => turn.say(Level::Info, "nothing that is shown is at fault"),
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
                let way = if reversed {
                    ", the other way round"
                } else {
                    ""
                };
                turn.say(Level::Info, format!("sorted by {name}{way}"));
            }
            Action::FaultsOnly => {
                let mut filter = roster.filter().clone();
                filter.toggle(filter::Term::new(filter::Ask::Place(
                    filter::OfPlace::Fault,
                )));
                roster.set_filter(filter);
            }
            Action::Pane => self.closed = !self.closed,
            Action::Back if !roster.filter().is_empty() => roster.set_filter(Filter::default()),
            Action::Back if !roster.marked().is_empty() => roster.unmark(),
            _ => return Handled::No,
        }
        self.ask_cause(turn);
        Handled::Yes
    }

    /// Moves the cursor to the column of the selected row that is at fault, if its own is not.
    fn go_to_fault(&mut self, world: &World, now: Timestamp) {
        let Some((roster, component)) = self
            .roster
            .as_ref()
            .and_then(|roster| Some((roster, roster.selected()?)))
        else {
            return;
        };
        let row = crate::engine::matrix::row(world, roster.columns(), component, now);
        let fault = |column: &usize| {
            let cell = row.get(*column).and_then(Option::as_ref);
            cell.is_some_and(|cell| cell.health().is_fault())
        };
        if !fault(&self.column)
            && let Some(column) = (0..row.len()).rev().find(fault)
        {
            self.column = column;
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
