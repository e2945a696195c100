//! The command log: each thing that was done, as the commands of bowline and kubectl that do the same.

use super::{Handled, Scene};
use crate::tui::action::Action;
use crate::tui::effect::Effect;
use crate::tui::model::{Level, Turn};
use crate::tui::pen::Sheet;
use crate::tui::rows::page;
use crate::tui::tasks::Logged;
use crate::tui::theme::Role;
use crate::tui::widgets::table::{self, Column, Line, MARGIN, Window, cell};
use crate::tui::widgets::{scrolled, wrap};

const COLUMNS: &[Column] = &[
    Column::new("WHEN", 8, 80),
    Column::new("COMMAND", 16, 100),
    Column::new("WHAT BECAME OF IT", 12, 60),
];

/// Which line is selected, counted from the oldest so that new ones do not move it.
#[derive(Debug, Default)]
pub struct State {
    at: usize,
}

impl State {
    /// Begins on the newest.
    pub fn open(log: &[Logged]) -> Self {
        Self {
            at: log.len().saturating_sub(1),
        }
    }

    /// Does what a key means here.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let last = turn.log.len().saturating_sub(1);
        let page = page(turn.size).unsigned_abs();
        // The newest stands first: up is later.
        match action {
            Action::Up => self.at = (self.at + 1).min(last),
            Action::Down => self.at = self.at.saturating_sub(1),
            Action::PageUp | Action::HalfPageUp => self.at = (self.at + page).min(last),
            Action::PageDown | Action::HalfPageDown => self.at = self.at.saturating_sub(page),
            Action::Top => self.at = last,
            Action::Bottom => self.at = 0,
            Action::Copy | Action::CopyCommand | Action::Open => {
                if let Some(logged) = turn.log.get(self.at) {
                    let (what, line) = match action {
                        Action::CopyCommand => ("kubectl's", logged.kubectl.join("\n")),
                        _ => ("bowline's", logged.bowline.clone()),
                    };
                    turn.effects.push(Effect::Copy(line));
                    turn.say(Level::Info, format!("copied {what} command"));
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Draws it.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let log = &scene.model.log;
        if log.is_empty() {
            let words = "nothing was done yet; each action is listed here as a command";
            sheet.line(1).skip(MARGIN).put(words, Role::Muted);
            return;
        }
        let number = log.len().saturating_sub(1).saturating_sub(self.at);
        let pane = match sheet.height() < 14 {
            true => 0,
            false => sheet.height() / 2,
        };
        let height = sheet.height() - pane;
        let seen = usize::from(height.saturating_sub(1));
        let first = scrolled(0, number, seen, log.len());
        let ground = &scene.model.ground;
        let lines: Vec<Line> = log
            .iter()
            .rev()
            .enumerate()
            .skip(first)
            .take(seen)
            .map(|(at, logged)| Line {
                cells: vec![
                    cell(ground.clock(logged.at, sheet.now), Role::Muted),
                    cell(&logged.bowline, Role::Text),
                    cell(&logged.outcome, Role::Muted),
                ],
                selected: at == number,
                marked: false,
            })
            .collect();
        let window = Window {
            first,
            count: log.len(),
        };
        table::draw(&mut sheet.rows(0, height), COLUMNS, &lines, window);
        if let Some(logged) = log.get(self.at).filter(|_| pane > 0) {
            explain(&mut sheet.rows(height, pane), logged);
        }
    }
}

/// Draws the commands of one line in full.
fn explain(sheet: &mut Sheet<'_>, logged: &Logged) {
    sheet.rule(0, "y copies bowline's command, Y kubectl's", Role::Title);
    let width = usize::from(sheet.width().saturating_sub(MARGIN + 1));
    let mut row = 1;
    let mut put = |words: &str, role| {
        for line in wrap(words, width) {
            sheet.line(row).skip(MARGIN).put(&line, role);
            row += 1;
        }
    };
    put(&logged.bowline, Role::Text);
    put(&logged.outcome, Role::Muted);
    put("", Role::Muted);
    for line in &logged.kubectl {
        put(line, Role::Muted);
    }
}
