//! The screens that list releases, ReleasePins or snapshots. Each row shows the size of the object,
//! and the environments in which it is effective.
//!
//! An action applies to the marked rows, or else to the selected row. Enter opens the selected
//! object.

mod columns;

use std::cell::Cell;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Handled, Scene, Screen, describe};
use crate::action::Action;
use crate::api::openchoreo::release::Verdict;
use crate::effect::{Effect, Object};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Freshness, Key, Source, World};
use crate::filter::{self, Filter};
use crate::model::{Level, ScreenRequest, Subject, TargetInfo, Turn};
use crate::pen::Sheet;
use crate::prompt::Choice;
use crate::roster::{Kind, RowSet, Sort};
use crate::rows::page;
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::planner;
use crate::subjects::service::Command;
use crate::text;
use crate::text::quoted;
use crate::theme::Role;
use crate::widgets::scrolled;
use crate::widgets::table::{self, MARGIN, Window};

/// The state of a list screen: its rows, and the chosen set of columns.
pub struct State {
    kind: Kind,
    roster: RowSet,
    /// Whether the screen shows the second set of columns instead of the first.
    other: bool,
    /// The time of the last event. If holds have expired since then, their rows must be updated.
    now: Timestamp,
    /// The position of the first visible row in the last frame. Drawing starts there again, because the window must
    /// not scroll while the selected row is visible.
    first: Cell<usize>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.roster.len(), self.kind)
    }
}

impl State {
    /// Opens the list of the objects of a kind. If the previous screen had one of these objects selected, the cursor
    /// starts on it.
    pub fn open(
        kind: Kind,
        subject: &Subject,
        world: &World,
        target_info: &TargetInfo,
        now: Timestamp,
    ) -> Self {
        let mut roster = RowSet::new(kind, Some(&target_info.namespace), &target_info.user);
        roster.rebuild(world, now);
        if kind != Kind::Pins {
            roster.set_sort(Sort::Changed, false);
        }
        let pin = subject.place().and_then(|place| {
            let component = Key::new(&target_info.namespace, &place.component);
            world.pin_of(&component, &place.environment)
        });
        let name = pin.and_then(|pin| match kind {
            Kind::Pins => Some(pin.key.name.to_string()),
            Kind::Releases => Some(pin.effective_release(now).to_owned()),
            Kind::Snapshots => pin.snapshot.as_deref().map(str::to_owned),
            Kind::Components => None,
        });
        let near = name.map(|name| Key::new(&target_info.namespace, &name));
        if !near.is_some_and(|key| roster.select(&key)) {
            roster.select_at(0);
        }
        Self {
            kind,
            roster,
            other: false,
            now,
            first: Cell::new(0),
        }
    }

    #[cfg(test)]
    pub fn shows_other_columns(&self) -> bool {
        self.other
    }

    pub fn title(&self) -> &'static str {
        match self.kind {
            Kind::Releases => "releases",
            Kind::Pins => "ReleasePins",
            Kind::Snapshots => "snapshots",
            Kind::Components => "components",
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn roster(&self) -> &RowSet {
        &self.roster
    }

    /// Returns the position of the first visible row in the last frame.
    pub fn first(&self) -> usize {
        self.first.get()
    }

    pub fn roster_mut(&mut self) -> &mut RowSet {
        &mut self.roster
    }

    /// Selects an object; returns false if the row of the object is not shown.
    pub fn select(&mut self, key: &Key) -> bool {
        self.roster.select(key)
    }

    pub fn totals(&self, world: &World) -> Vec<(String, Role)> {
        let totals = self.roster.totals();
        let mut parts = vec![(text::counted(totals.rows, self.title()), Role::Muted)];
        let count =
            |count: usize, word: &str, role| (count > 0).then(|| (format!("{count} {word}"), role));
        match self.kind {
            Kind::Pins => {
                parts.extend(count(totals.degraded, "degraded", Role::Degraded));
                parts.extend(count(totals.progressing, "rolling", Role::Progressing));
                parts.extend(count(totals.held, "held", Role::Hold));
                parts.extend(count(totals.behind, "behind", Role::Behind));
            }
            Kind::Releases | Kind::Snapshots | Kind::Components => {
                parts.push((text::bytes(totals.size as u64), Role::Muted));
            }
        }
        let marked = self.roster.marked();
        if !marked.is_empty() {
            let size = |key: &&Key| match self.kind {
                Kind::Releases => world.release(key).and_then(|row| row.size),
                Kind::Snapshots => world.snapshot(key).and_then(|row| row.size),
                Kind::Pins | Kind::Components => None,
            };
            let sum: u64 = marked.iter().filter_map(size).sum();
            let words = match sum {
                0 => format!("{} marked", marked.len()),
                sum => format!("{} marked, {}", marked.len(), text::bytes(sum)),
            };
            parts.push((words, Role::Marked));
        }
        parts
    }

    pub fn subject(&self, world: &World) -> Subject {
        let marked = self.roster.marked();
        let chosen: Vec<&Key> = match marked.is_empty() {
            true => self.roster.selected().into_iter().collect(),
            false => marked,
        };
        let mut components: Vec<Arc<str>> = Vec::new();
        let mut environments: Vec<Arc<str>> = Vec::new();
        for key in &chosen {
            let (component, environment) = match self.kind {
                Kind::Pins => match world.pin(key) {
                    Some(pin) => (Some(&pin.component), Some(&pin.environment)),
                    None => (None, None),
                },
                Kind::Snapshots => match world.snapshot(key) {
                    Some(row) => (Some(&row.component), Some(&row.environment)),
                    None => (None, None),
                },
                Kind::Releases => {
                    let component = world.release(key).and_then(|row| row.component.as_ref());
                    let mut runs = columns::runs(world, self.roster.columns(), key, self.now);
                    (component, runs.pop().map(|(name, _)| name))
                }
                Kind::Components => (Some(&key.name), None),
            };
            components.extend(component.filter(|name| !components.contains(name)).cloned());
            environments.extend(
                environment
                    .filter(|name| !environments.contains(name))
                    .cloned(),
            );
        }
        Subject {
            components,
            // If the marked rows belong to different environments, the selection has no environment.
            environment: match environments.as_slice() {
                [one] => Some(one.clone()),
                _ => None,
            },
            release: match (self.kind, chosen.as_slice()) {
                (Kind::Releases, [one]) => Some(one.name.to_string()),
                _ => None,
            },
        }
    }

    /// Returns the object in the selected row; None if no row is selected.
    fn object(&self) -> Option<Object> {
        let name = self.roster.selected()?.name.to_string();
        match self.kind {
            Kind::Releases => Some(Object::Release(name)),
            Kind::Pins => Some(Object::Pin(name)),
            Kind::Snapshots => Some(Object::Snapshot(name)),
            Kind::Components => None,
        }
    }

    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        self.now = turn.now;
        let whole = |one: &Touched| {
            one.key.is_none() || matches!(one.source, Source::ENVIRONMENTS | Source::PIPELINES)
        };
        if touched.is_empty() || touched.iter().any(whole) {
            self.roster.set_user(&turn.target_info.user);
            self.roster.rebuild(turn.world, turn.now);
        } else {
            for one in touched {
                self.roster.touch(turn.world, one, turn.now);
            }
        }
        if self.roster.selected().is_none() {
            self.roster.select_at(0);
        }
    }

    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        self.now = turn.now;
        self.roster.tick(turn.world, turn.now);
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        self.now = turn.now;
        let page = page(turn.size);
        let roster = &mut self.roster;
        match action {
            Action::Up => roster.step(-1),
            Action::Down => roster.step(1),
            Action::PageUp => roster.step(-page),
            Action::PageDown => roster.step(page),
            Action::HalfPageUp => roster.step(-(page / 2).max(1)),
            Action::HalfPageDown => roster.step((page / 2).max(1)),
            Action::Top => roster.select_at(0),
            Action::Bottom => roster.select_at(usize::MAX),
            Action::NextFault | Action::PreviousFault => {
                if !roster.step_to_fault(action == Action::NextFault) {
                    turn.say(Level::Info, "no failing row is shown");
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
            Action::Sort => {
                let sort = self.next_sort();
                self.roster.set_sort(sort, false);
                self.say_sort(turn);
            }
            Action::SortReverse => {
                let (sort, reversed) = roster.sort();
                roster.set_sort(sort, !reversed);
                self.say_sort(turn);
            }
            Action::Columns => self.other = !self.other,
            Action::FaultsOnly => {
                let mut filter = roster.filter().clone();
                filter.toggle(filter::Term::new(filter::Ask::Place(
                    filter::CellCondition::Fault,
                )));
                roster.set_filter(filter);
            }
            Action::Back if !roster.filter().is_empty() => roster.set_filter(Filter::default()),
            Action::Back if !roster.marked().is_empty() => roster.unmark(),
            Action::Open => {
                if let Some(object) = self.object() {
                    let state = describe::State::open(object, turn);
                    turn.open(Screen::Describe(Box::new(state)));
                }
            }
            Action::Copy => {
                if let Some(key) = roster.selected() {
                    turn.effects.push(Effect::Copy(key.name.to_string()));
                    turn.say(Level::Info, format!("copied {}", key.name));
                }
            }
            Action::CopyCommand => {
                if let Some(line) = self
                    .object()
                    .map(|object| describe::command_line(&object, turn.target_info))
                {
                    turn.say(Level::Info, format!("copied {line}"));
                    turn.effects.push(Effect::Copy(line));
                }
            }
            Action::Deploy | Action::Rollback if self.kind == Kind::Releases => {
                return self.bring(action, turn);
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Plans to deploy the selected release into an environment at the start of the pipeline, or to roll an
    /// environment back to the release.
    fn bring(&self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let Some(release) = self
            .roster
            .selected()
            .and_then(|key| turn.world.release(key))
        else {
            return Handled::No;
        };
        let Some(component) = &release.component else {
            turn.say(Level::Warning, "the component of this release is not known");
            return Handled::Yes;
        };
        let here = Key {
            namespace: release.key.namespace.clone(),
            name: component.clone(),
        };
        let (question, environments): (&str, Vec<String>) = match action {
            Action::Deploy => {
                let firsts = turn.world.pipeline(&here.namespace).map(|pipeline| {
                    let firsts = pipeline.first_environments().into_iter();
                    firsts.map(str::to_owned).collect()
                });
                let all = || turn.world.environment_names(&here.namespace);
                ("deploy to which environment?", firsts.unwrap_or_else(all))
            }
            _ => {
                let elsewhere = self.roster.columns().names().iter().filter(|environment| {
                    let pin = turn.world.pin_of(&here, environment);
                    pin.is_some_and(|pin| pin.effective_release(turn.now) != &*release.key.name)
                });
                let elsewhere = elsewhere.map(ToString::to_string).collect();
                ("roll back in which environment?", elsewhere)
            }
        };
        let command = |environment: &String| {
            let (component, name) = (component.to_string(), release.key.name.to_string());
            let environment = environment.clone();
            Command::Change(match action {
                Action::Deploy => planner::ActionRequest::Deploy {
                    component,
                    environment,
                    release: Some(name),
                    skip_path: false,
                },
                _ => planner::ActionRequest::Rollback {
                    component,
                    environment,
                    to: Target::Release(name),
                    hold: true,
                },
            })
        };
        match environments.as_slice() {
            [] => turn.say(
                Level::Warning,
                format!(
                    "{} already runs in every environment of {component}",
                    release.key.name
                ),
            ),
            [one] => turn.requests.push(ScreenRequest::Plan(command(one))),
            several => turn.requests.push(ScreenRequest::Choose(Choice {
                question: question.to_owned(),
                options: several
                    .iter()
                    .map(|one| (one.clone(), command(one)))
                    .collect(),
                chosen: 0,
            })),
        }
        Handled::Yes
    }

    fn next_sort(&self) -> Sort {
        let known: &[Sort] = match self.kind {
            Kind::Releases => &[
                Sort::Changed,
                Sort::Name,
                Sort::Size,
                Sort::Health,
                Sort::Behind,
            ],
            Kind::Snapshots => &[Sort::Changed, Sort::Name, Sort::Size],
            Kind::Pins | Kind::Components => &[
                Sort::Name,
                Sort::Health,
                Sort::Changed,
                Sort::Behind,
                Sort::Held,
            ],
        };
        let at = known
            .iter()
            .position(|known| *known == self.roster.sort().0);
        let next = known.get(at.map_or(0, |at| (at + 1) % known.len()));
        next.copied().unwrap_or_default()
    }

    fn say_sort(&self, turn: &mut Turn<'_>) {
        let (sort, reversed) = self.roster.sort();
        let name = Sort::ALL.iter().find(|(known, _)| *known == sort);
        let name = name.map_or("", |(_, name)| name);
        let way = if reversed { ", reversed" } else { "" };
        turn.say(Level::Info, format!("sorted by {name}{way}"));
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        if self.roster.totals().rows == 0 {
            return self.nothing(sheet, scene);
        }
        if let Some(at) = self.roster.next_expiry() {
            sheet.turn(at);
        }
        let height = usize::from(sheet.height().saturating_sub(1));
        let selected = self.roster.position().unwrap_or_default();
        let first = scrolled(self.first.get(), selected, height, self.roster.len());
        self.first.set(first);
        let seen = self.roster.window(first, height);
        let lines: Vec<table::Line> = seen
            .map(|row| table::Line {
                cells: columns::cells(self.kind, self.other, sheet, scene, &self.roster, row.key),
                selected: row.selected,
                marked: row.marked,
            })
            .collect();
        let window = Window {
            first,
            count: self.roster.len(),
        };
        let sorted = columns::sorted(self.kind, self.other, self.roster.sort());
        let columns = columns::of(self.kind, self.other);
        table::draw_sorted(sheet, columns, &lines, window, Some(sorted));
        if lines.is_empty() {
            let mut pen = sheet.line(2);
            pen.skip(MARGIN).put(&scene.no_match(), Role::Muted);
        }
    }

    /// Draws the message that says why the list is empty.
    fn nothing(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let source = match self.kind {
            Kind::Releases => Source::RELEASES,
            Kind::Snapshots => Source::SNAPSHOTS,
            Kind::Pins | Kind::Components => Source::RELEASE_PINS,
        };
        let words = match scene.world.freshness(source) {
            Freshness::Absent => format!(
                "the cluster does not have the kind {}; {} installs it",
                scene.world.kind(source).map_or("", |kind| &kind.kind),
                scene.model.target_info.aimed("bowline install".to_owned())
            ),
            Freshness::Loading => "Loading...".to_owned(),
            Freshness::Stale { why, .. } => format!("cannot read {}: {why}", self.title()),
            Freshness::Live => {
                let namespace = &scene.model.target_info.namespace;
                format!("there are no {} in namespace {namespace}", self.title())
            }
        };
        sheet.line(2).skip(MARGIN).put(&words, Role::Muted);
    }
}

/// Describes the mark of a release: the verdict (good or bad), the user who gave it, and the note. None if the
/// release has no mark.
pub(super) fn opinion(
    row: &crate::subjects::release_pin::rows::ReleaseRow,
) -> Option<(String, Role)> {
    let (word, role) = match row.mark? {
        Verdict::Bad => ("bad", Role::Degraded),
        Verdict::Good => ("good", Role::Good),
    };
    let words = match row.marked.as_deref() {
        None => word.to_owned(),
        Some(mark) => match &mark.note {
            None => format!("{word}, {}", mark.by),
            Some(note) => format!("{word}, {}: {note}", mark.by),
        },
    };
    Some((words, role))
}

/// Returns a command line that reads one object: kubectl, or bowline if kubectl cannot reach the
/// target.
pub(super) fn kubectl_get(resource: &str, name: &str, target_info: &TargetInfo) -> String {
    let (name, namespace) = (quoted(name), quoted(&target_info.namespace));
    let kubectl = format!("kubectl get {resource} {name} --namespace {namespace} --output yaml");
    // Only bowline can read a repository or an embedded store.
    let bowline = || target_info.aimed(format!("bowline get {resource} {name} --output yaml"));
    target_info
        .address
        .kubectl(&kubectl)
        .unwrap_or_else(bowline)
}
