//! The tasks screen: the confirmed plans of this session, the newest first, with their progress.

use super::{Handled, Scene};
use crate::action::Action;
use crate::effect::{Effect, Ticket};
use crate::engine::world::World;
use crate::from_keys;
use crate::model::{Level, ScreenRequest, Subject, Turn};
use crate::pen::Sheet;
use crate::rows::page;
use crate::subjects::service::Command;
use crate::tasks::{self, Progress, Task};
use crate::theme::Role;
use crate::widgets::table::{self, Column, Line, MARGIN, Window, cell};
use crate::widgets::{scrolled, wrap};

const COLUMNS: &[Column] = &[
    Column::new("", 1, 100),
    Column::new("AGE", 5, 60).right(),
    Column::new("ACTION", 8, 95),
    Column::new("SUBJECT", 12, 98),
    Column::new("STATUS", 12, 90),
    Column::new("REASON", 12, 45),
];

#[derive(Debug, Default)]
pub struct State {
    selected: Option<Ticket>,
    subject: Subject,
}

impl State {
    /// Opens the screen with the newest task selected.
    pub fn open(tasks: &[Task]) -> Self {
        let mut state = Self::default();
        state.select(tasks, 0);
        state
    }

    /// Selects a task by its position in the list; the newest task has position 0.
    fn select(&mut self, tasks: &[Task], number: usize) {
        let number = number.min(tasks.len().saturating_sub(1));
        let task = tasks.iter().rev().nth(number);
        self.selected = task.map(|task| task.ticket);
        let command = task.map(|task| &task.command);
        let place = command.and_then(Command::place);
        self.subject = Subject {
            components: place
                .iter()
                .map(|(component, _)| (*component).into())
                .collect(),
            environment: place.map(|(_, environment)| environment.into()),
            release: match command {
                Some(Command::Mark(mark)) => Some(mark.release.clone()),
                _ => None,
            },
        };
    }

    fn position(&self, tasks: &[Task]) -> usize {
        let found = tasks
            .iter()
            .rev()
            .position(|task| Some(task.ticket) == self.selected);
        found.unwrap_or_default()
    }

    pub fn subject(&self) -> Subject {
        self.subject.clone()
    }

    pub fn totals(tasks: &[Task], world: &World) -> Vec<(String, Role)> {
        let count = |wanted| {
            tasks
                .iter()
                .filter(|task| task.progress(world).0 == wanted)
                .count()
        };
        let parts = [
            (count(Progress::Moving), "under way", Role::Progressing),
            (count(Progress::Failed), "failed", Role::Degraded),
            (count(Progress::Done), "done", Role::Muted),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        parts
            .map(|(count, word, role)| (format!("{count} {word}"), role))
            .collect()
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let (tasks, at) = (turn.tasks, self.position(turn.tasks));
        let page = page(turn.size).unsigned_abs();
        match action {
            Action::Up => self.select(tasks, at.saturating_sub(1)),
            Action::Down => self.select(tasks, at + 1),
            Action::PageUp | Action::HalfPageUp => self.select(tasks, at.saturating_sub(page)),
            Action::PageDown | Action::HalfPageDown => self.select(tasks, at + page),
            Action::Top => self.select(tasks, 0),
            Action::Bottom => self.select(tasks, usize::MAX),
            Action::Interrupt => {
                let task = tasks.iter().rev().nth(at);
                match task.filter(|task| matches!(task.state, tasks::State::Applying)) {
                    Some(task) if task.frozen.is_some() => {
                        let name = &task.target.name;
                        turn.say(
                            Level::Warning,
                            format!("cannot stop it: it writes to {name}, which you left"),
                        );
                    }
                    Some(task) => {
                        turn.effects.push(Effect::Cancel(task.ticket));
                        turn.say(Level::Warning, "stops before the next object");
                    }
                    None => return Handled::No,
                }
            }
            Action::Undo => {
                let rolling = tasks
                    .iter()
                    .rev()
                    .nth(at)
                    .and_then(|task| match &task.state {
                        tasks::State::Rolling(pins) => Some((task, pins)),
                        _ => None,
                    });
                let Some((task, pins)) = rolling else {
                    return Handled::No;
                };
                let name = &task.target.name;
                let left = task.frozen.as_ref().map(|_| {
                    format!("this changed {name}, which is not shown: switch there to undo it")
                });
                let mut moved = pins.iter();
                let why = left.or_else(|| moved.find_map(|one| one.overtaken(turn.world)));
                let changes = task.prepared.plan().map_or(&[][..], |plan| &plan.changes);
                let made = changes
                    .iter()
                    .filter(|change| pins.iter().any(|one| one.pin == *change.key()));
                let made: Vec<(String, String)> = made
                    .map(|change| (change.name.clone(), change.environment.clone()))
                    .collect();
                match (why, from_keys::undo_of(&made)) {
                    (Some(why), _) => turn.say(Level::Warning, why),
                    (None, Some(command)) => turn.requests.push(ScreenRequest::Plan(command)),
                    (None, None) => return Handled::No,
                }
            }
            Action::CopyCommand | Action::Copy => {
                if let Some(task) = tasks.iter().rev().nth(at) {
                    let line = task.command_line();
                    turn.say(Level::Info, format!("copied {line}"));
                    turn.effects.push(Effect::Copy(line));
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let tasks = &scene.model.tasks;
        if tasks.is_empty() {
            let words = "no tasks yet; confirmed plans run here in the background";
            sheet.line(1).skip(MARGIN).put(words, Role::Muted);
            return;
        }
        let at = self.position(tasks);
        let pane = match sheet.height() < 14 {
            true => 0,
            false => (sheet.height() / 3).min(10),
        };
        let height = sheet.height() - pane;
        let seen = usize::from(height.saturating_sub(1));
        let first = scrolled(0, at, seen, tasks.len());
        let lines: Vec<Line> = tasks
            .iter()
            .rev()
            .enumerate()
            .skip(first)
            .take(seen)
            .map(|(number, task)| line(sheet, scene.world, number == at, task))
            .collect();
        let window = Window {
            first,
            count: tasks.len(),
        };
        table::draw(&mut sheet.rows(0, height), COLUMNS, &lines, window);
        if let Some(task) = tasks.iter().rev().nth(at).filter(|_| pane > 0) {
            explain(&mut sheet.rows(height, pane), scene, task);
        }
    }
}

fn line(sheet: &Sheet<'_>, world: &World, selected: bool, task: &Task) -> Line {
    let (progress, words) = task.progress(world);
    let (glyph, role) = match progress {
        Progress::Moving => (sheet.glyphs.progressing, Role::Progressing),
        Progress::Done => (sheet.glyphs.check, Role::Good),
        Progress::Failed => (sheet.glyphs.degraded, Role::Degraded),
    };
    let quiet = if progress == Progress::Done {
        Role::Muted
    } else {
        role
    };
    Line {
        cells: vec![
            cell(glyph, role),
            cell(sheet.age(task.since), Role::Muted),
            cell(task.command.verb(), Role::Text),
            cell(task.command.subject(), Role::Text),
            cell(words, quiet),
            cell(task.reason.as_deref().unwrap_or_default(), Role::Muted),
        ],
        selected,
        marked: false,
    }
}

fn explain(sheet: &mut Sheet<'_>, scene: &Scene<'_>, task: &Task) {
    sheet.rule(
        0,
        &format!("{}  {}", task.command.verb(), task.command.subject()),
        Role::Title,
    );
    let width = usize::from(sheet.width().saturating_sub(MARGIN + 1));
    let (_, words) = task.progress(scene.world);
    let mut row = 1;
    let mut put = |words: &str, role| {
        for line in wrap(words, width) {
            sheet.line(row).skip(MARGIN).put(&line, role);
            row += 1;
        }
    };
    put(&words, Role::Text);
    if let Some(reason) = &task.reason {
        put(&format!("reason: {reason}"), Role::Text);
    }
    put(&task.command_line(), Role::Muted);
}
