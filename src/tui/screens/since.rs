//! The incident screen (`:since`): first the changes before the start of an incident, the closest
//! first; then the changes after it.

use jiff::Timestamp;

use super::{Handled, Scene, is_bad};
use crate::action::Action;
use crate::effect::{Answer, Effect, Ticket};
use crate::engine::world::World;
use crate::filter::{Facts, Filter, Matcher};
use crate::model::{ScreenRequest, Subject, Turn};
use crate::pen::Sheet;
use crate::rows::page;
use crate::screens::matrix::pane::word;
use crate::subjects::release_pin::matrix;
use crate::subjects::release_pin::past::Past;
use crate::subjects::release_pin::since::{self, Suspect, What};
use crate::theme::Role;
use crate::widgets::table::{self, Cell, Column, Line, MARGIN, Window, bad, cell};
use crate::widgets::{scrolled, wrap};

const COLUMNS: &[Column] = &[
    Column::new("WHEN", 16, 95),
    Column::new("COMPONENT", 10, 100).named(),
    Column::new("ENVIRONMENT", 11, 97).named(),
    Column::new("WHAT", 22, 98),
    Column::new("TIME TO THE START, STATE", 16, 96),
];

/// The maximum number of lines for the full text of the selected change.
const SELECTED_LINES: usize = 2;

#[derive(Debug)]
pub struct State {
    start: Timestamp,
    ticket: Ticket,
    found: Option<Result<Vec<Suspect>, String>>,
    /// The position of the selected change in the list of changes that match the filter.
    selected: usize,
    filter: Filter,
}

impl State {
    /// Opens the screen, and requests the audit trail.
    pub fn open(start: Timestamp, ticket: Ticket, effects: &mut Vec<Effect>) -> Self {
        effects.push(Effect::Record(ticket));
        Self {
            start,
            ticket,
            found: None,
            selected: 0,
            filter: Filter::default(),
        }
    }

    /// Handles the audit trail: finds the changes around the start of the incident, and puts them in the order in
    /// which the screen lists them.
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
                    since::rank(&past, turn.world, self.start, turn.now)
                }));
                None
            }
            other => Some(other),
        }
    }

    /// Returns the changes that match the filter.
    fn suspects(&self) -> Vec<&Suspect> {
        let all: &[Suspect] = match &self.found {
            Some(Ok(suspects)) => suspects,
            Some(Err(_)) | None => &[],
        };
        let matcher = Matcher::new(&self.filter, &[]);
        let keeps =
            |suspect: &&Suspect| self.filter.is_empty() || matcher.keeps(&facts(suspect), false);
        all.iter().filter(keeps).collect()
    }

    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
        self.selected = self.selected.min(self.suspects().len().saturating_sub(1));
    }

    pub fn subject(&self) -> Subject {
        let suspects = self.suspects();
        let suspect = suspects.get(self.selected);
        Subject {
            components: suspect
                .map(|suspect| suspect.component.name.clone())
                .into_iter()
                .collect(),
            environment: suspect.and_then(|suspect| suspect.environment.clone()),
            release: None,
        }
    }

    pub fn totals(&self) -> Vec<(String, Role)> {
        match &self.found {
            Some(Ok(suspects)) => {
                vec![(format!("{} changes around it", suspects.len()), Role::Muted)]
            }
            Some(Err(_)) | None => Vec::new(),
        }
    }

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
                turn.requests.push(ScreenRequest::Run(Action::GoComponent));
                return Handled::Yes;
            }
            Action::Back if !self.filter.is_empty() => {
                self.set_filter(Filter::default());
                return Handled::Yes;
            }
            _ => return Handled::No,
        }
        .min(last);
        Handled::Yes
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let target_info = &scene.model.target_info;
        let start = target_info.clock(self.start, sheet.now);
        let words = match &self.found {
            None => "Loading history...".to_owned(),
            Some(Err(why)) => format!("cannot read the audit trail: {why}"),
            Some(Ok(suspects)) if suspects.is_empty() => {
                format!("no changes are recorded between {start} and now")
            }
            Some(Ok(_)) if self.suspects().is_empty() => scene.no_match(),
            Some(Ok(_)) => {
                format!("changes before {start}, the closest first; then the changes after it")
            }
        };
        sheet.line(0).skip(MARGIN).put(&words, Role::Muted);
        let suspects = self.suspects();
        if suspects.is_empty() {
            return;
        }
        // The table may cut the text of the selected change, so show the full text above the table.
        let mut top = 1;
        if let Some(selected) = suspects.get(self.selected) {
            let happened = what(selected, scene.world, sheet.glyphs.arrow);
            let words = format!("{happened}: {}", selected.details);
            let width = usize::from(sheet.width().saturating_sub(MARGIN + 1));
            for line in wrap(&words, width).into_iter().take(SELECTED_LINES) {
                sheet.line(top).skip(MARGIN).put(&line, Role::Text);
                top += 1;
            }
        }
        let height = sheet.height().saturating_sub(top);
        let seen = usize::from(height.saturating_sub(1));
        let before = suspects.iter().filter(|suspect| !suspect.is_after).count();
        // A row with a title separates the changes before the start of the incident from those after it.
        let has_title = before < suspects.len();
        let row_of = |number: usize| number + usize::from(has_title && number >= before);
        let rows = suspects.len() + usize::from(has_title);
        let first = scrolled(0, row_of(self.selected), seen, rows);
        let mut lines: Vec<Line> = suspects
            .iter()
            .enumerate()
            .map(|(number, suspect)| Line {
                cells: vec![
                    cell(target_info.clock(suspect.at, sheet.now), Role::Muted),
                    cell(&*suspect.component.name, Role::Text),
                    cell(
                        suspect.environment.as_deref().unwrap_or_default(),
                        Role::Text,
                    ),
                    happened(suspect, scene.world, sheet.glyphs.arrow),
                    cell(suspect.details.clone(), Role::Muted),
                ],
                selected: number == self.selected,
                marked: false,
            })
            .collect();
        if has_title {
            let title = Line {
                cells: vec![cell("after the start", Role::Header)],
                selected: false,
                marked: false,
            };
            lines.insert(before, title);
        }
        let lines: Vec<Line> = lines.into_iter().skip(first).take(seen).collect();
        let window = Window { first, count: rows };
        table::draw(&mut sheet.rows(top, height), COLUMNS, &lines, window);
    }
}

/// Returns the table cell that describes a change. If the release of the change is marked bad, the cell has a label.
fn happened(suspect: &Suspect, world: &World, arrow: &str) -> Cell {
    let mut words = cell(what(suspect, world, arrow), role(suspect));
    let release = match &suspect.what {
        What::Made(release) => Some(&**release),
        What::Did(change) => change.to.as_deref(),
        What::Turned(_) => None,
    };
    let namespace = &suspect.component.namespace;
    let is_marked = release.is_some_and(|release| is_bad(world, namespace, release));
    words.extend(is_marked.then(bad));
    words
}

/// Returns the facts of a change that the filter checks.
fn facts(suspect: &Suspect) -> Facts {
    let mut texts: Vec<&str> = vec![&suspect.component.name, &suspect.details];
    texts.extend(suspect.environment.as_deref());
    match &suspect.what {
        What::Made(release) => texts.extend([&**release, "made"]),
        What::Turned(health) => texts.push(health.word()),
        What::Did(change) => {
            texts.push(change.action.map_or("changed", word));
            texts.extend(change.actor.as_deref());
            texts.extend(change.to.as_deref());
            texts.extend(change.reason.as_deref());
        }
    }
    Facts::of_texts(texts)
}

/// Describes a change of the list in a few words.
fn what(suspect: &Suspect, world: &World, arrow: &str) -> String {
    let label = |release: &str| matrix::label(world, &suspect.component, release).to_owned();
    match &suspect.what {
        What::Made(release) => format!("{} was created", label(release)),
        What::Turned(health) => format!("turned {}", health.word()),
        What::Did(change) => {
            let did = change.action.map_or("changed", word);
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
