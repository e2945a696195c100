//! The diff screen: the differences of two sides, side by side or unified.
//!
//! The screen shows both sides as they were when the runner read them, and does not follow later
//! changes. Secrets are masked before this module receives the objects.

mod rows;
mod view;

use std::sync::Arc;

use jiff::Timestamp;

use self::rows::{Count, Folds, Row, Rows};
use super::Handled;
use crate::action::Action;
use crate::effect::{Answer, CellKey, Compare, Compared, Comparison, Effect, Ticket};
use crate::engine::diff::Diff;
use crate::engine::world::{Key, World};
use crate::model::{Level, Subject, Turn};
use crate::subjects::release_pin::matrix::{self, Columns};
use crate::subjects::workload;
use crate::widgets::scrolled;

/// The number of unchanged lines around a change in copied text.
const COPIED: usize = 3;
/// The number of columns by which a key press scrolls long lines.
const SHIFT: usize = 16;

/// The state of the diff screen.
#[derive(Debug)]
pub struct State {
    /// The comparison that the screen requested; None if the caller passed a finished one, which
    /// cannot be read again.
    asked: Option<Compared>,
    /// The cell of the comparison; None if it compares two releases.
    place: Option<CellKey>,
    ticket: Ticket,
    /// Whether the diff includes noise.
    noise: bool,
    /// Whether to show the sides side by side. None until the user chooses; then the width decides.
    split: Option<bool>,
    stage: Stage,
    /// Whether the screen has requested the comparison again, and the answer has not arrived.
    again: bool,
    cursor: usize,
    first: usize,
    /// The number of columns by which long lines are scrolled to the left.
    shift: usize,
    /// The past time at which both sides were effective; None if the comparison is about the
    /// present.
    as_of: Option<Timestamp>,
}

#[derive(Debug)]
enum Stage {
    Reading,
    Failed(String),
    Shown(Box<Shown>),
}

/// A finished comparison and its rows in one layout.
#[derive(Debug)]
struct Shown {
    compare: Compare,
    counts: Vec<Count>,
    folds: Folds,
    split: bool,
    rows: Rows,
}

impl Shown {
    fn new(compare: Compare, split: bool) -> Self {
        let folds = Folds::default();
        let objects = compare.diff.objects.iter();
        Self {
            counts: objects.map(|object| Count::of(&object.hunks)).collect(),
            rows: Rows::of(&compare.diff, &folds, split),
            compare,
            folds,
            split,
        }
    }
}

/// The layout of the screen for a terminal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    /// The number of rows of the title.
    title: u16,
    /// The width of the list of objects, in columns; 0 if there is no room for the list.
    list: u16,
    /// Whether the two sides are side by side.
    split: bool,
}

impl Frame {
    fn of(width: u16, height: u16, chosen: Option<bool>) -> Self {
        Self {
            title: match height {
                ..12 => 1,
                _ => 2,
            },
            list: match width {
                ..100 => 0,
                _ => (width / 5).clamp(26, 38),
            },
            split: chosen.unwrap_or(width >= 120) && width >= 60,
        }
    }

    /// Returns the number of rows that show the diff itself.
    fn rows(self, height: u16) -> usize {
        usize::from(height.saturating_sub(self.title + 1))
    }
}

impl State {
    /// Opens the screen, and requests the comparison.
    pub fn open(asked: Compared, turn: &mut Turn<'_>) -> Self {
        let place = asked.place();
        let mut state = Self::empty(place, Some(asked));
        state.ask(turn);
        state
    }

    /// Opens the screen with a finished comparison.
    pub fn given(compare: Compare, place: Option<CellKey>, turn: &mut Turn<'_>) -> Self {
        let mut state = Self::empty(place, None);
        state.show(compare, turn.size);
        state
    }

    fn empty(place: Option<CellKey>, asked: Option<Compared>) -> Self {
        Self {
            asked,
            place,
            ticket: 0,
            noise: false,
            split: None,
            stage: Stage::Reading,
            again: false,
            cursor: 0,
            first: 0,
            shift: 0,
            as_of: None,
        }
    }

    /// Marks the comparison as one of a past time, at which both sides were effective.
    pub fn at_past(self, at: Timestamp) -> Self {
        Self {
            as_of: Some(at),
            ..self
        }
    }

    /// Returns the past time at which both sides were effective; None if the comparison is about
    /// the present.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    fn ask(&mut self, turn: &mut Turn<'_>) {
        if let Some(what) = &self.asked {
            if self.again {
                turn.effects.push(Effect::Cancel(self.ticket));
            }
            self.ticket = turn.ticket();
            let comparison = Comparison {
                what: what.clone(),
                noise: self.noise,
            };
            turn.effects
                .push(Effect::Compare(self.ticket, Box::new(comparison)));
        }
    }

    fn show(&mut self, compare: Compare, size: (u16, u16)) {
        let frame = frame(size, self.split);
        let shown = Shown::new(compare, frame.split);
        // If the comparison was read again, the cursor stays on its object.
        let object = match &self.stage {
            Stage::Shown(before) => before.rows.rows.get(self.cursor).and_then(|row| {
                let object = before.compare.diff.objects.get(row.object())?;
                let same = |known: &(usize, usize)| {
                    let known = shown.compare.diff.objects.get(known.0);
                    known.is_some_and(|known| known.identity == object.identity)
                };
                shown.rows.objects.iter().find(|known| same(known)).copied()
            }),
            Stage::Reading | Stage::Failed(_) => None,
        };
        let start = object.map_or(0, |(_, row)| row);
        let hunk = shown.rows.hunks.iter().find(|hunk| **hunk >= start);
        self.cursor = hunk.copied().unwrap_or(start);
        self.stage = Stage::Shown(Box::new(shown));
        self.again = false;
        self.first = 0;
        self.follow(size);
    }

    pub fn subject(&self) -> Subject {
        let place = self.place.as_ref();
        Subject {
            components: place
                .map(|place| Arc::clone(&place.component))
                .into_iter()
                .collect(),
            environment: place.map(|place| Arc::clone(&place.environment)),
            release: None,
        }
    }

    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        match answer {
            Answer::Compared(found) if ticket == self.ticket => {
                match found {
                    Ok(compare) => self.show(*compare, turn.size),
                    Err(why) => self.stage = Stage::Failed(why),
                }
                None
            }
            answer => Some(answer),
        }
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        self.lay_out(turn.size);
        let Stage::Shown(shown) = &mut self.stage else {
            let leaves = matches!(action, Action::Back | Action::Interrupt | Action::Quit);
            if leaves && matches!(self.stage, Stage::Reading) {
                turn.effects.push(Effect::Cancel(self.ticket));
                self.stage = Stage::Failed("cancelled before both sides were loaded".to_owned());
            }
            return Handled::No;
        };
        let frame = frame(turn.size, self.split);
        let page = frame.rows(body(turn.size)).max(1);
        let last = shown.rows.rows.len().saturating_sub(1);
        let at = self.cursor;
        match action {
            Action::Up => self.cursor = at.saturating_sub(1),
            Action::Down => self.cursor = at + 1,
            Action::PageUp => self.cursor = at.saturating_sub(page),
            Action::PageDown => self.cursor = at + page,
            Action::HalfPageUp => self.cursor = at.saturating_sub(page / 2),
            Action::HalfPageDown => self.cursor = at + page / 2,
            Action::Top => self.cursor = 0,
            Action::Bottom => self.cursor = last,
            Action::Left => self.shift = self.shift.saturating_sub(SHIFT),
            Action::Right => self.shift += SHIFT,
            Action::NextHunk
            | Action::PreviousHunk
            | Action::NextObject
            | Action::PreviousObject => self.jump(action, page, turn),
            Action::Fold => self.fold(),
            Action::Layout => {
                self.split = Some(!frame.split);
                self.lay_out(turn.size);
            }
            Action::Noise => self.toggle_noise(turn),
            Action::Copy => {
                let text = shown.compare.diff.narrowed(COPIED).unified();
                turn.effects.push(Effect::Copy(text));
                turn.say(Level::Info, "the unified diff is on the clipboard");
            }
            Action::CopyCommand => match &self.asked {
                Some(asked) => {
                    let line = turn.target_info.aimed(asked.command_line());
                    turn.effects.push(Effect::Copy(line));
                    turn.say(Level::Info, "the command line is on the clipboard");
                }
                None => turn.say(Level::Info, "no command to copy here; the plan has one"),
            },
            _ => return Handled::No,
        }
        self.follow(turn.size);
        Handled::Yes
    }

    /// Moves the cursor to the next or previous hunk or object.
    fn jump(&mut self, action: Action, page: usize, turn: &mut Turn<'_>) {
        let Stage::Shown(shown) = &self.stage else {
            return;
        };
        let at = self.cursor;
        let mut objects = shown.rows.objects.iter().map(|(_, row)| *row);
        let mut hunks = shown.rows.hunks.iter().copied();
        let (found, what) = match action {
            Action::NextHunk => (hunks.find(|row| *row > at), "next hunk"),
            Action::PreviousHunk => (hunks.rfind(|row| *row < at), "previous hunk"),
            Action::NextObject => (objects.find(|row| *row > at), "next object"),
            _ => (objects.rfind(|row| *row < at), "previous object"),
        };
        let Some(row) = found else {
            turn.say(Level::Info, format!("there is no {what}"));
            return;
        };
        self.cursor = row;
        // If the target row was not visible, also show some rows above it.
        if !(self.first..self.first + page).contains(&row) {
            self.first = row.saturating_sub(page / 3);
        }
    }

    /// Folds or unfolds the object, or the run of unchanged lines, under the cursor.
    fn fold(&mut self) {
        let Stage::Shown(shown) = &mut self.stage else {
            return;
        };
        let Some(row) = shown.rows.rows.get(self.cursor).cloned() else {
            return;
        };
        let folds = &mut shown.folds;
        match &row {
            Row::Fold {
                object, hunk, from, ..
            } => {
                folds.open.insert((*object, *hunk, *from));
            }
            Row::Line(spot) if spot.before == spot.after => {
                let line = spot.before.and_then(|line| usize::try_from(line).ok());
                let line = line.unwrap_or_default();
                let runs = folds
                    .open
                    .range((spot.object, spot.hunk, 0)..=(spot.object, spot.hunk, line));
                if let Some(run) = runs.last().copied() {
                    folds.open.remove(&run);
                }
            }
            Row::Object(object) | Row::Gap(object) => {
                if !folds.closed.remove(object) {
                    folds.closed.insert(*object);
                }
            }
            Row::Line(_) => {}
        }
        shown.rows = Rows::of(&shown.compare.diff, &shown.folds, shown.split);
        self.cursor = shown.rows.like(&row);
    }

    fn toggle_noise(&mut self, turn: &mut Turn<'_>) {
        if self.asked.is_none() {
            let words = "both sides of a plan are rendered and contain no noise";
            return turn.say(Level::Info, words);
        }
        self.noise = !self.noise;
        self.again = true;
        self.ask(turn);
    }

    /// Computes the rows again if the terminal size requires the other layout.
    fn lay_out(&mut self, size: (u16, u16)) {
        let split = frame(size, self.split).split;
        if let Stage::Shown(shown) = &mut self.stage
            && shown.split != split
        {
            let rows = Rows::of(&shown.compare.diff, &shown.folds, split);
            if let Some(row) = shown.rows.rows.get(self.cursor) {
                self.cursor = rows.like(row);
            }
            shown.rows = rows;
            shown.split = split;
        }
    }

    /// Keeps the cursor inside the rows, and scrolls until its row is visible.
    fn follow(&mut self, size: (u16, u16)) {
        let Stage::Shown(shown) = &self.stage else {
            return;
        };
        let count = shown.rows.rows.len();
        let height = frame(size, self.split).rows(body(size));
        self.cursor = self.cursor.min(count.saturating_sub(1));
        self.first = scrolled(self.first, self.cursor, height, count);
    }

    /// Updates the layout and the scroll position after the terminal changed its size.
    pub fn resized(&mut self, size: (u16, u16)) {
        self.lay_out(size);
        self.follow(size);
    }
}

/// Returns the number of terminal rows between the header and the footer.
fn body((_, height): (u16, u16)) -> u16 {
    height.saturating_sub(3)
}

fn frame(size: (u16, u16), chosen: Option<bool>) -> Frame {
    Frame::of(size.0, body(size), chosen)
}

/// Joins several diffs into one.
pub fn together<'d>(diffs: impl Iterator<Item = &'d Diff>) -> Diff {
    let mut all = Diff {
        objects: Vec::new(),
        coarse: None,
    };
    for diff in diffs {
        all.objects.extend(diff.objects.iter().cloned());
        all.coarse = all.coarse.or_else(|| diff.coarse.clone());
    }
    all
}

/// Returns the comparison that the diff key makes for a cell: with the environment before; if there
/// is none, with the last good revision; if there is none, with the live objects.
pub fn of_place(
    world: &World,
    namespace: &str,
    place: &CellKey,
    now: Timestamp,
) -> Result<Compared, String> {
    let CellKey {
        component,
        environment,
    } = place;
    let key = Key::new(namespace, component);
    if let Some(row) = world.workload(&key) {
        let current = workload::matrix::current(world, row);
        let good = workload::matrix::good(world, row);
        let sides = current.zip(good);
        return sides
            .map(|(current, good)| Compared::Revisions {
                place: place.clone(),
                from: good.number,
                to: current.number,
            })
            .ok_or_else(|| format!("{component} has no older revision with another template"));
    }
    let pin = world
        .pin_of(&key, environment)
        .ok_or_else(|| format!("{component} is not deployed in {environment}"))?;
    let columns = Columns::of(world, Some(namespace));
    let before = columns
        .position(environment)
        .and_then(|column| columns.before(namespace, column))
        .and_then(|column| columns.names().get(column));
    if let Some(before) = before.filter(|before| world.pin_of(&key, before).is_some()) {
        return Ok(Compared::Environments {
            component: component.to_string(),
            from: before.to_string(),
            to: environment.to_string(),
        });
    }
    Ok(match matrix::good(world, pin, now) {
        Some(good) => Compared::Revisions {
            place: place.clone(),
            from: good.revision,
            to: pin.generation,
        },
        None => Compared::Live(place.clone()),
    })
}

#[cfg(test)]
pub(super) mod tests;
