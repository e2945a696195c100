//! The command log: each action of this session, as command lines of bowline and kubectl that do the same as the
//! action.

use super::{Handled, Scene};
use crate::action::Action;
use crate::effect::Effect;
use crate::filter::{Facts, Filter, Matcher};
use crate::model::{Level, Turn};
use crate::pen::Sheet;
use crate::rows::page;
use crate::tasks::Logged;
use crate::theme::Role;
use crate::widgets::table::{self, Column, Line, MARGIN, Window, cell};
use crate::widgets::{scrolled, wrap};

const COLUMNS: &[Column] = &[
    Column::new("WHEN", 8, 80),
    Column::new("COMMAND", 16, 100),
    Column::new("RESULT", 12, 60),
];

/// The state of the log screen. It stores the selected entry as a number counted from the oldest entry, so new
/// entries do not move the selection.
#[derive(Debug, Default)]
pub struct State {
    at: usize,
    filter: Filter,
}

impl State {
    /// Opens the screen with the newest entry selected.
    pub fn open(log: &[Logged]) -> Self {
        Self {
            at: log.len().saturating_sub(1),
            filter: Filter::default(),
        }
    }

    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// Returns the indexes of the log entries that match the filter, the newest first.
    fn shown(&self, log: &[Logged]) -> Vec<usize> {
        let matcher = Matcher::new(&self.filter, &[]);
        let keeps = |logged: &Logged| {
            let texts = logged.bowline.iter().chain(&logged.kubectl);
            let texts = texts.chain([&logged.outcome]).map(String::as_str);
            self.filter.is_empty() || matcher.keeps(&Facts::of_texts(texts), false)
        };
        let kept = log.iter().enumerate().rev();
        kept.filter(|(_, logged)| keeps(logged))
            .map(|(at, _)| at)
            .collect()
    }

    /// Returns the position of the selected log entry in `shown`.
    fn position(&self, shown: &[usize]) -> usize {
        let at = shown.iter().position(|at| *at <= self.at);
        at.unwrap_or(shown.len().saturating_sub(1))
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let shown = self.shown(turn.log);
        let page = page(turn.size).unsigned_abs();
        let position = self.position(&shown);
        let last = shown.len().saturating_sub(1);
        let mut select = |position: usize| {
            self.at = shown.get(position.min(last)).copied().unwrap_or_default();
        };
        match action {
            Action::Up => select(position.saturating_sub(1)),
            Action::Down => select(position + 1),
            Action::PageUp | Action::HalfPageUp => select(position.saturating_sub(page)),
            Action::PageDown | Action::HalfPageDown => select(position + page),
            Action::Top => select(0),
            Action::Bottom => select(last),
            Action::Back if !self.filter.is_empty() => self.filter = Filter::default(),
            Action::Copy | Action::CopyCommand | Action::Open => {
                let selected = shown.get(position).and_then(|at| turn.log.get(*at));
                if let Some(logged) = selected {
                    if action == Action::CopyCommand && logged.kubectl.is_empty() {
                        turn.say(Level::Info, "kubectl cannot reach this target");
                        return Handled::Yes;
                    }
                    let (what, line) = match action {
                        Action::CopyCommand => ("kubectl's", logged.kubectl.join("\n")),
                        _ => ("bowline's", logged.bowline.join(" && ")),
                    };
                    turn.effects.push(Effect::Copy(line));
                    turn.say(Level::Info, format!("copied {what} command"));
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let log = &scene.model.log;
        if log.is_empty() {
            let words = "no actions yet; this screen lists each action as a command";
            sheet.line(1).skip(MARGIN).put(words, Role::Muted);
            return;
        }
        let shown = self.shown(log);
        if shown.is_empty() {
            sheet
                .line(1)
                .skip(MARGIN)
                .put(&scene.no_match(), Role::Muted);
            return;
        }
        let number = self.position(&shown);
        let pane = match sheet.height() < 14 {
            true => 0,
            false => sheet.height() / 2,
        };
        let height = sheet.height() - pane;
        let seen = usize::from(height.saturating_sub(1));
        let first = scrolled(0, number, seen, shown.len());
        let target_info = &scene.model.target_info;
        let listed = shown.iter().filter_map(|at| log.get(*at)).enumerate();
        let lines: Vec<Line> = listed
            .skip(first)
            .take(seen)
            .map(|(at, logged)| Line {
                cells: vec![
                    cell(target_info.clock(logged.at, sheet.now), Role::Muted),
                    cell(logged.bowline.join(" && "), Role::Text),
                    cell(&logged.outcome, Role::Muted),
                ],
                selected: at == number,
                marked: false,
            })
            .collect();
        let window = Window {
            first,
            count: shown.len(),
        };
        table::draw(&mut sheet.rows(0, height), COLUMNS, &lines, window);
        let selected = shown.get(number).and_then(|at| log.get(*at));
        if let Some(logged) = selected.filter(|_| pane > 0) {
            explain(&mut sheet.rows(height, pane), scene, logged);
        }
    }
}

/// Draws the full command lines of one log entry.
fn explain(sheet: &mut Sheet<'_>, scene: &Scene<'_>, logged: &Logged) {
    let (bowline, kubectl) = (scene.keys(Action::Copy), scene.keys(Action::CopyCommand));
    let words = format!("{bowline} copies the bowline command, {kubectl} the kubectl command");
    sheet.rule(0, &words, Role::Title);
    let width = usize::from(sheet.width().saturating_sub(MARGIN + 1));
    let mut row = 1;
    let mut put = |words: &str, role| {
        for line in wrap(words, width) {
            sheet.line(row).skip(MARGIN).put(&line, role);
            row += 1;
        }
    };
    for line in &logged.bowline {
        put(line, Role::Text);
    }
    put(&logged.outcome, Role::Muted);
    put("", Role::Muted);
    for line in &logged.kubectl {
        put(line, Role::Muted);
    }
}
