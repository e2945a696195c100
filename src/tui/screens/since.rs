//! What changed around the start of an incident, the likeliest cause first.

use jiff::Timestamp;

use super::{Handled, Scene};
use crate::engine::matrix::{self, Columns};
use crate::engine::past::Past;
use crate::engine::since::{self, Suspect, What};
use crate::engine::world::World;
use crate::tui::action::Action;
use crate::tui::effect::{Answer, Effect, Ticket};
use crate::tui::model::{Subject, Turn, Wish};
use crate::tui::pen::Sheet;
use crate::tui::rows::page;
use crate::tui::screens::matrix::pane::done;
use crate::tui::theme::Role;
use crate::tui::widgets::scrolled;
use crate::tui::widgets::table::{self, Column, Line, MARGIN, Window, cell};

const COLUMNS: &[Column] = &[
    Column::new("WHEN", 16, 95),
    Column::new("COMPONENT", 10, 100).named(),
    Column::new("ENVIRONMENT", 11, 97).named(),
    Column::new("WHAT", 22, 98),
    Column::new("WHY IT MAY MATTER", 16, 96),
];

/// What is suspected, and which of it is selected.
#[derive(Debug)]
pub struct State {
    /// When the incident began.
    start: Timestamp,
    ticket: Ticket,
    found: Option<Result<Vec<Suspect>, String>>,
    selected: usize,
}

impl State {
    /// Asks for what is on record.
    pub fn open(start: Timestamp, ticket: Ticket, effects: &mut Vec<Effect>) -> Self {
        effects.push(Effect::Record(ticket));
        Self {
            start,
            ticket,
            found: None,
            selected: 0,
        }
    }

    /// Takes what is on record, and ranks it.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        match answer {
            Answer::Record(record) if ticket == self.ticket => {
                self.found = Some(record.map(|record| {
                    let past = Past::of(&record.entries, turn.world);
                    let columns = Columns::of(turn.world, Some(&turn.ground.namespace));
                    since::rank(&past, turn.world, &columns, self.start, turn.now)
                }));
                None
            }
            other => Some(other),
        }
    }

    fn suspects(&self) -> &[Suspect] {
        match &self.found {
            Some(Ok(suspects)) => suspects,
            Some(Err(_)) | None => &[],
        }
    }

    /// Returns what an action would be done to.
    pub fn subject(&self) -> Subject {
        let suspect = self.suspects().get(self.selected);
        Subject {
            components: suspect
                .map(|suspect| suspect.component.name.clone())
                .into_iter()
                .collect(),
            environment: suspect.and_then(|suspect| suspect.environment.clone()),
            release: None,
        }
    }

    /// Returns the totals, for the line under the header.
    pub fn totals(&self) -> Vec<(String, Role)> {
        match &self.found {
            Some(Ok(suspects)) => {
                vec![(format!("{} changes around it", suspects.len()), Role::Muted)]
            }
            Some(Err(_)) | None => Vec::new(),
        }
    }

    /// Does what a key means here.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let last = self.suspects().len().saturating_sub(1);
        let page = page(turn.size).unsigned_abs();
        self.selected = match action {
            Action::Up => self.selected.saturating_sub(1),
            Action::Down => self.selected + 1,
            Action::PageUp | Action::HalfPageUp => self.selected.saturating_sub(page),
            Action::PageDown | Action::HalfPageDown => self.selected + page,
            Action::Top => 0,
            Action::Bottom => last,
            Action::Open => {
                turn.wishes.push(Wish::Run(Action::GoComponent));
                return Handled::Yes;
            }
            _ => return Handled::No,
        }
        .min(last);
        Handled::Yes
    }

    /// Draws it.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let ground = &scene.model.ground;
        let start = ground.clock(self.start, sheet.now);
        let words = match &self.found {
            None => "what is on record is being read".to_owned(),
            Some(Err(why)) => format!("what is on record cannot be read: {why}"),
            Some(Ok(suspects)) if suspects.is_empty() => {
                format!("nothing is on record from before {start} until now")
            }
            Some(Ok(_)) => format!("an incident that began at {start}: the likeliest cause first"),
        };
        sheet.line(0).skip(MARGIN).put(&words, Role::Muted);
        let suspects = self.suspects();
        if suspects.is_empty() {
            return;
        }
        // In the table there is not always room for all of it.
        if let Some(selected) = suspects.get(self.selected) {
            let mut pen = sheet.line(1);
            pen.skip(MARGIN).put(&selected.why, Role::Text);
        }
        let height = sheet.height().saturating_sub(2);
        let seen = usize::from(height.saturating_sub(1));
        let first = scrolled(0, self.selected, seen, suspects.len());
        let lines: Vec<Line> = suspects
            .iter()
            .enumerate()
            .skip(first)
            .take(seen)
            .map(|(number, suspect)| Line {
                cells: vec![
                    cell(ground.clock(suspect.at, sheet.now), Role::Muted),
                    cell(&*suspect.component.name, Role::Text),
                    cell(
                        suspect.environment.as_deref().unwrap_or_default(),
                        Role::Text,
                    ),
                    cell(
                        what(suspect, scene.world, sheet.glyphs.arrow),
                        role(suspect),
                    ),
                    cell(suspect.why.clone(), Role::Muted),
                ],
                selected: number == self.selected,
                marked: false,
            })
            .collect();
        let window = Window {
            first,
            count: suspects.len(),
        };
        table::draw(&mut sheet.rows(2, height), COLUMNS, &lines, window);
    }
}

/// Says what happened.
fn what(suspect: &Suspect, world: &World, arrow: &str) -> String {
    let label = |release: &str| matrix::label(world, &suspect.component, release).to_owned();
    match &suspect.what {
        What::Made(release) => format!("{} was made", label(release)),
        What::Turned(health) => format!("turned {}", health.word()),
        What::Did(change) => {
            let did = change.action.map_or("changed", done);
            let actor = change.actor.as_deref().unwrap_or("somebody");
            let to = change.to.as_deref();
            let to = to.map(|to| format!(" {arrow} {}", label(to)));
            let reason = change.reason.as_deref().map(|why| format!(" \"{why}\""));
            format!(
                "{did} by {actor}{}{}",
                to.unwrap_or_default(),
                reason.unwrap_or_default()
            )
        }
    }
}

fn role(suspect: &Suspect) -> Role {
    match &suspect.what {
        What::Turned(health) if health.is_fault() => Role::Degraded,
        What::Turned(_) => Role::Progressing,
        What::Did(_) | What::Made(_) => Role::Text,
    }
}
