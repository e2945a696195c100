//! The preview of a garbage collection: lists all releases and snapshots, and says whether gc can delete each of
//! them, or why not.

use jiff::{SignedDuration, Timestamp};

use super::{Handled, Scene, Screen, describe, is_bad};
use crate::action::Action;
use crate::effect::{Effect, Object};
use crate::engine::plan::Asked;
use crate::engine::world::World;
use crate::engine::world::feed::Touched;
use crate::filter::Facts;
use crate::model::{Level, Subject, TargetInfo, Turn};
use crate::pen::Sheet;
use crate::rows::{Row, Rows, page};
use crate::subjects::release_pin::actions::gc::{self, Candidate, Gc};
use crate::text;
use crate::theme::Role;
use crate::widgets::table::{self, Column, Line, MARGIN, Sorted, Window, bad, cell};

/// The minimum time between two computations while objects change, because each computation checks all objects.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

const COLUMNS: &[Column] = &[
    Column::new("", 5, 100),
    Column::new("KIND", 8, 40),
    Column::new("NAME", 12, 95).named(),
    Column::new("SIZE", 6, 80).right(),
    Column::new("AGE", 4, 60).right(),
    Column::new("WHY", 16, 90),
];

/// The releases and snapshots that a garbage collection would delete or keep at a given time.
#[derive(Debug)]
pub struct State {
    rows: Rows<Found>,
    sums: Sums,
    /// The reason why gc makes no plan, for example because a release is lost; None if gc can make a plan.
    refused: Option<String>,
    /// The time at which the screen last computed which objects gc would delete.
    at: Timestamp,
    /// Whether an object has changed since the screen last computed which objects gc would delete.
    stale: bool,
    /// Whether the screen shows only the objects that gc would delete.
    going: bool,
    order: By,
}

#[derive(Debug)]
struct Found {
    candidate: Candidate,
    made: Timestamp,
}

/// The number of objects, and their size in bytes: for those that gc would delete (`goes`), and for those that it
/// would keep (`stays`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    goes: (usize, u64),
    stays: (usize, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Sorts the objects to delete first, in the order in which gc deletes them.
    Fate,
    Size,
    Age,
}

impl State {
    /// Opens the screen, and computes which objects a garbage collection would delete now.
    pub fn open(world: &World, target_info: &TargetInfo, now: Timestamp) -> Self {
        let mut state = Self {
            rows: Rows::default(),
            sums: Sums::default(),
            refused: None,
            at: now,
            stale: false,
            going: false,
            order: By::Fate,
        };
        state.work_out(world, target_info, now);
        state
    }

    fn work_out(&mut self, world: &World, target_info: &TargetInfo, now: Timestamp) {
        (self.at, self.stale) = (now, false);
        let asked = Asked {
            operation: String::new(),
            now,
            user: target_info.user.clone(),
            reason: None,
            namespace: target_info.namespace.clone(),
        };
        let planned = match gc::plan(world, &Gc::default(), &asked) {
            Ok(planned) => planned,
            Err(refusal) => {
                self.refused = Some(refusal.to_string());
                return;
            }
        };
        self.refused = None;
        self.sums = Sums::default();
        let mut found: Vec<Found> = Vec::new();
        for candidate in planned.releases.into_iter().chain(planned.snapshots) {
            let sum = match candidate.goes() {
                true => &mut self.sums.goes,
                false => &mut self.sums.stays,
            };
            *sum = (sum.0 + 1, sum.1 + candidate.size.unwrap_or_default());
            if self.going && !candidate.goes() {
                continue;
            }
            let made = now.checked_sub(candidate.age).unwrap_or(now);
            found.push(Found { candidate, made });
        }
        match self.order {
            By::Fate => found.sort_by_key(|found| !found.candidate.goes()),
            By::Size => found.sort_by_key(|found| std::cmp::Reverse(found.candidate.size)),
            By::Age => found.sort_by_key(|found| found.made),
        }
        let rows = found.into_iter().map(|found| {
            let candidate = &found.candidate;
            let why = candidate.why();
            let fate = if candidate.goes() { "goes" } else { "stays" };
            let texts = [&*candidate.key.name, kind(candidate), fate, &why];
            let places = [&candidate.component, &candidate.environment];
            let places = places.into_iter().flatten().map(|name| &**name);
            Row {
                id: format!("{} {}", kind(candidate), candidate.key.name),
                facts: Facts::of_texts(texts.into_iter().chain(places)),
                item: found,
            }
        });
        let rows = rows.collect();
        self.rows.replace(rows);
    }

    pub fn filter(&self) -> &crate::filter::Filter {
        self.rows.filter()
    }

    pub fn set_filter(&mut self, filter: crate::filter::Filter) {
        self.rows.set_filter(filter);
    }

    pub fn touched(&mut self, _: &[Touched], turn: &mut Turn<'_>) {
        self.stale = true;
        self.tick(turn);
    }

    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        if self.stale && turn.now.duration_since(self.at) >= PAUSE {
            self.work_out(turn.world, turn.target_info, turn.now);
        }
    }

    pub fn subject(&self) -> Subject {
        let Some(found) = self.rows.selected() else {
            return Subject::default();
        };
        let candidate = &found.candidate;
        Subject {
            components: candidate.component.iter().cloned().collect(),
            environment: candidate.environment.clone(),
            release: candidate
                .environment
                .is_none()
                .then(|| candidate.key.name.to_string()),
        }
    }

    pub fn totals(&self) -> Vec<(String, Role)> {
        let (going, frees) = self.sums.goes;
        let (staying, kept) = self.sums.stays;
        let role = if going > 0 {
            Role::Warning
        } else {
            Role::Muted
        };
        vec![
            (
                format!("{going} can be deleted, {}", text::bytes(frees)),
                role,
            ),
            (
                format!("{staying} kept, {}", text::bytes(kept)),
                Role::Muted,
            ),
        ]
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        if self.rows.act(action, page(turn.size)) == Handled::Yes {
            return Handled::Yes;
        }
        match action {
            Action::FaultsOnly => {
                self.going = !self.going;
                self.work_out(turn.world, turn.target_info, turn.now);
                let words = match self.going {
                    true => "only objects that can be deleted",
                    false => "kept objects too",
                };
                turn.say(Level::Info, words);
            }
            Action::Sort => {
                let (order, words) = match self.order {
                    By::Fate => (By::Size, "the largest first"),
                    By::Size => (By::Age, "the oldest first"),
                    By::Age => (By::Fate, "deletable objects first"),
                };
                self.order = order;
                self.work_out(turn.world, turn.target_info, turn.now);
                turn.say(Level::Info, words);
            }
            Action::Open => {
                if let Some(found) = self.rows.selected() {
                    let name = found.candidate.key.name.to_string();
                    let object = match found.candidate.environment {
                        None => Object::Release(name),
                        Some(_) => Object::Snapshot(name),
                    };
                    let state = describe::State::open(object, turn);
                    turn.open(Screen::Describe(Box::new(state)));
                }
            }
            Action::Copy => {
                if let Some(found) = self.rows.selected() {
                    let name = found.candidate.key.name.to_string();
                    turn.say(Level::Info, format!("copied {name}"));
                    turn.effects.push(Effect::Copy(name));
                }
            }
            Action::CopyCommand => {
                let line = turn.target_info.aimed("bowline gc --dry-run".to_owned());
                turn.say(Level::Info, format!("copied {line}"));
                turn.effects.push(Effect::Copy(line));
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        if self.stale
            && let Ok(at) = self.at.checked_add(PAUSE)
        {
            sheet.turn(at);
        }
        if let Some(why) = &self.refused {
            sheet.line(1).skip(MARGIN).put(why, Role::Warning);
            return;
        }
        let height = usize::from(sheet.height().saturating_sub(1));
        let (first, seen) = self.rows.window(height);
        let lines: Vec<Line> = seen
            .into_iter()
            .map(|(selected, found)| line(sheet, scene.world, selected, found))
            .collect();
        let window = Window {
            first,
            count: self.rows.len(),
        };
        let head = match self.order {
            By::Fate => None,
            By::Size => Some("SIZE"),
            By::Age => Some("AGE"),
        };
        let falling = true;
        let sorted = head.map(|head| Sorted { head, falling });
        table::draw_sorted(sheet, COLUMNS, &lines, window, sorted);
        if lines.is_empty() {
            let words = match (self.rows.total(), self.going) {
                (0, true) => {
                    let keys = scene.keys(Action::FaultsOnly);
                    format!("nothing can be deleted; {keys} shows the kept objects")
                }
                (0, false) => "this namespace has no releases and no snapshots".to_owned(),
                _ => scene.no_match(),
            };
            sheet.line(2).skip(MARGIN).put(&words, Role::Muted);
        }
    }
}

fn kind(candidate: &Candidate) -> &'static str {
    match candidate.environment {
        None => "release",
        Some(_) => "snapshot",
    }
}

fn line(sheet: &Sheet<'_>, world: &World, selected: bool, found: &Found) -> Line {
    let candidate = &found.candidate;
    let mut name = cell(&*candidate.key.name, Role::Text);
    let key = &candidate.key;
    let is_marked = candidate.environment.is_none() && is_bad(world, &key.namespace, &key.name);
    name.extend(is_marked.then(bad));
    let (fate, role, quiet) = match candidate.goes() {
        true => ("delete", Role::Warning, Role::Text),
        false => ("keep", Role::Muted, Role::Muted),
    };
    let size = candidate.size.map_or_else(|| "?".to_owned(), text::bytes);
    Line {
        cells: vec![
            cell(fate, role),
            cell(kind(candidate), Role::Muted),
            name,
            cell(size, quiet),
            cell(sheet.age(found.made), Role::Muted),
            cell(candidate.why(), quiet),
        ],
        selected,
        marked: false,
    }
}
