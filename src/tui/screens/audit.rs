//! The audit screen: one row per audit entry, the newest first, and the result of verifying the
//! hash chains.
//!
//! If a chain is broken, a bar at the top names the entry. Enter opens an entry with the entries
//! before and after it in its chain.

pub mod entry;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{Handled, Screen, describe};
use crate::action::Action;
use crate::api::bowline::audit::{AuditEntry, COMPONENT, RELEASE_PIN};
use crate::api::{labels, names};
use crate::effect::{Answer, CellKey, Compared, Comparison, Effect, Object, Record, Ticket};
use crate::engine::audit::{self, Finding, Span};
use crate::engine::world::Source;
use crate::engine::world::feed::Touched;
use crate::filter::{Facts, Filter};
use crate::model::{Level, Subject, TargetInfo, Turn};
use crate::rows::{Row, Rows, page};
use crate::text;
use crate::theme::Role;

/// The minimum time between two requests for the audit trail while ReleasePins change.
const PAUSE: SignedDuration = SignedDuration::from_secs(5);

#[derive(Debug)]
pub struct State {
    ticket: Ticket,
    /// The time of the last request for the audit trail.
    asked: Timestamp,
    /// Whether the answer to the last request has not arrived yet.
    waits: bool,
    /// Whether a ReleasePin has changed since the last request.
    stale: bool,
    read: Option<Result<Arc<Whole>, String>>,
    rows: Rows<Shown>,
    /// The file and the period of an export that must wait until the audit trail is read.
    export: Option<(PathBuf, Span)>,
}

/// The audit trail as read from the target.
#[derive(Debug)]
struct Whole {
    record: Box<Record>,
    /// The newest revision of each ReleasePin, by its name.
    newest: BTreeMap<String, i64>,
}

/// One row of the screen.
#[derive(Debug)]
struct Shown {
    row: audit::Row,
    /// The component and the environment, as the screen shows them.
    place: String,
    /// The component. The screen omits it from release names.
    component: String,
    standing: Standing,
    /// The cell and the revision to compare; None if the entry is not about a ReleasePin.
    moved: Option<(CellKey, i64)>,
}

/// The result of verifying one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Whole,
    Doubted,
    Broken,
}

impl State {
    /// Opens the screen, and adds the effect that requests the audit trail.
    pub fn open(ticket: Ticket, now: Timestamp, effects: &mut Vec<Effect>) -> Self {
        effects.push(Effect::Record(ticket));
        Self {
            ticket,
            asked: now,
            waits: true,
            stale: false,
            read: None,
            rows: Rows::default(),
            export: None,
        }
    }

    /// Returns the effect that writes a timeline to a file. The timeline contains the rows that
    /// match the filter and lie in the period. Returns None if the audit trail is not read yet;
    /// then the screen writes the file when the audit trail arrives.
    pub fn export(
        &mut self,
        path: PathBuf,
        span: Span,
        target_info: &TargetInfo,
        ticket: Ticket,
    ) -> Option<Effect> {
        let Some(Ok(_)) = &self.read else {
            self.export = Some((path, span));
            return None;
        };
        // The newest row is first here, but a timeline starts with the oldest entry.
        let rows: Vec<audit::Row> = self
            .rows
            .shown()
            .rev()
            .filter(|shown| span.contains(shown.row.at))
            .map(|shown| shown.row.clone())
            .collect();
        let mut title = format!(
            "Timeline of {} in {}",
            target_info.namespace, target_info.name
        );
        for (word, end) in [("from", span.since), ("to", span.until)] {
            let end = end.map(|end| end.to_zoned(target_info.zone.clone()));
            let words = end.map(|end| end.strftime(" %Y-%m-%d %H:%M:%S %Z").to_string());
            title += &words.map_or(String::new(), |words| format!(" {word}{words}"));
        }
        if !self.rows.filter().is_empty() {
            title += &format!(", only {}", self.rows.filter());
        }
        Some(Effect::Export(ticket, path, audit::markdown(&rows, &title)))
    }

    pub fn filter(&self) -> &Filter {
        self.rows.filter()
    }

    pub fn set_filter(&mut self, filter: Filter) {
        self.rows.set_filter(filter);
    }

    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        let record = match answer {
            Answer::Record(record) if ticket == self.ticket => record,
            other => return Some(other),
        };
        self.waits = false;
        match record {
            Err(why) if matches!(self.read, Some(Ok(_))) => turn.say(Level::Error, why),
            Err(why) => self.read = Some(Err(why)),
            Ok(record) => {
                self.rows.replace(rows(&record));
                let mut newest = BTreeMap::new();
                for entry in &record.entries {
                    let known = newest.entry(entry.spec.subject.name.clone()).or_default();
                    *known = entry.spec.revision.max(*known);
                }
                self.read = Some(Ok(Arc::new(Whole { record, newest })));
            }
        }
        if let Some((path, span)) = self.export.take() {
            let ticket = turn.ticket();
            let wanted = self.export(path, span, turn.target_info, ticket);
            turn.effects.extend(wanted);
        }
        None
    }

    /// A changed ReleasePin has a new audit entry, so this requests the audit trail again, but not
    /// before the pause after the last request has ended.
    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        let Some(Ok(whole)) = &self.read else {
            return;
        };
        let moved = touched.iter().any(|one| {
            let key = one
                .key
                .as_ref()
                .filter(|_| one.source == Source::RELEASE_PINS);
            let pin = key.and_then(|key| turn.world.pin(key));
            pin.is_some_and(|pin| {
                let known = whole.newest.get(&*pin.key.name).copied();
                known.unwrap_or_default() < pin.generation
            })
        });
        self.stale |= moved;
        self.tick(turn);
    }

    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        if self.stale && !self.waits && turn.now.duration_since(self.asked) >= PAUSE {
            self.ask(turn);
        }
    }

    fn ask(&mut self, turn: &mut Turn<'_>) {
        self.ticket = turn.ticket();
        turn.effects.push(Effect::Record(self.ticket));
        (self.asked, self.waits, self.stale) = (turn.now, true, false);
    }

    pub fn subject(&self) -> Subject {
        let place = self.rows.selected().and_then(|shown| shown.moved.as_ref());
        match place {
            None => Subject::default(),
            Some((place, _)) => Subject {
                components: vec![place.component.clone()],
                environment: Some(place.environment.clone()),
                release: self.rows.selected().and_then(|shown| shown.row.to.clone()),
            },
        }
    }

    /// Returns the comparison of the selected entry's revision with the revision before; None
    /// without such a revision.
    pub fn comparison(&self) -> Option<Comparison> {
        comparison(self.rows.selected()?.moved.as_ref()?)
    }

    pub fn totals(&self) -> Vec<(String, Role)> {
        let Some(Ok(whole)) = &self.read else {
            return Vec::new();
        };
        let verdict = &whole.record.verdict;
        let mut parts = vec![(
            format!(
                "{} in {}",
                text::counted(verdict.entries, "entries"),
                text::counted(verdict.chains.len(), "chains")
            ),
            Role::Muted,
        )];
        parts.push(match verdict.problems.len() {
            0 => ("whole".to_owned(), Role::Good),
            count => (format!("{count} broken"), Role::Error),
        });
        if !verdict.warnings.is_empty() {
            parts.push((
                text::counted(verdict.warnings.len(), "warnings"),
                Role::Warning,
            ));
        }
        parts
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        if self.rows.act(action, page(turn.size)) == Handled::Yes {
            return Handled::Yes;
        }
        match action {
            Action::Open => {
                if let (Some(Ok(whole)), Some(shown)) = (&self.read, self.rows.selected())
                    && let Some(state) = entry::State::of(whole.clone(), &shown.row.entry)
                {
                    turn.open(Screen::Entry(Box::new(state)));
                }
            }
            Action::NextFault | Action::PreviousFault => {
                let broken = self
                    .rows
                    .shown()
                    .position(|shown| shown.standing == Standing::Broken);
                let id = self
                    .rows
                    .shown()
                    .nth(broken.unwrap_or(usize::MAX))
                    .map(|shown| shown.row.entry.clone());
                match id {
                    Some(id) => {
                        self.rows.select(&id);
                    }
                    None => turn.say(Level::Info, "no chain is broken"),
                }
            }
            Action::Redraw => {
                self.ask(turn);
                return Handled::No;
            }
            Action::Copy => {
                if let Some(shown) = self.rows.selected() {
                    turn.say(Level::Info, format!("copied {}", shown.row.entry));
                    turn.effects.push(Effect::Copy(shown.row.entry.clone()));
                }
            }
            Action::CopyCommand => {
                if let Some(shown) = self.rows.selected() {
                    let object = Object::Entry(shown.row.entry.clone());
                    let line = describe::command_line(&object, turn.target_info);
                    turn.say(Level::Info, format!("copied {line}"));
                    turn.effects.push(Effect::Copy(line));
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }
}

/// Returns the comparison of a revision with the revision before; None for revision 1.
fn comparison((place, revision): &(CellKey, i64)) -> Option<Comparison> {
    (*revision > 1).then(|| Comparison {
        what: Compared::Revisions {
            place: place.clone(),
            from: revision - 1,
            to: *revision,
        },
        noise: false,
    })
}

/// Builds the rows of the screen from the audit trail, the newest first.
fn rows(record: &Record) -> Vec<Row<Shown>> {
    let entries: BTreeMap<&str, &AuditEntry> = record
        .entries
        .iter()
        .filter_map(|entry| Some((entry.metadata.name.as_deref()?, entry)))
        .collect();
    let named = |findings: &[Finding]| -> BTreeSet<String> {
        let objects = findings.iter().map(|finding| finding.object.as_str());
        let entries = objects.filter_map(|object| object.strip_prefix("auditentry/"));
        entries.map(str::to_owned).collect()
    };
    let broken = named(&record.verdict.problems);
    // A missing entry has no row, so all rows of its chain are shown as broken.
    let chains: BTreeSet<&str> = record
        .verdict
        .problems
        .iter()
        .filter(|finding| !entries.contains_key(finding.object.trim_start_matches("auditentry/")))
        .map(|finding| finding.chain.as_str())
        .collect();
    let doubted = named(&record.verdict.warnings);
    let timeline = audit::timeline(&record.entries, &Span::default());
    let rows = timeline.into_iter().rev().map(|row| {
        let is_broken = broken.contains(&row.entry) || chains.contains(row.subject.as_str());
        let standing = match (is_broken, doubted.contains(&row.entry)) {
            (true, _) => Standing::Broken,
            (false, true) => Standing::Doubted,
            (false, false) => Standing::Whole,
        };
        let of = entries
            .get(row.entry.as_str())
            .and_then(|entry| place(entry));
        let component = match &of {
            Some(place) => place.component.to_string(),
            None => row.subject.clone(),
        };
        let place = match &of {
            Some(place) => format!("{}/{}", place.component, place.environment),
            None if row.kind == COMPONENT => format!("{} releases", row.subject),
            None => row.subject.clone(),
        };
        let action = word(&row);
        let optional = [&row.actor, &row.from, &row.to, &row.reason, &row.operation];
        let optional = optional.into_iter().flatten().map(String::as_str);
        let texts = [&place, &row.subject, &action, &row.recorded_by, &row.entry];
        let facts = Facts::of_texts(texts.into_iter().map(String::as_str).chain(optional));
        let moved = of.map(|place| (place, row.revision));
        Row {
            id: row.entry.clone(),
            facts,
            item: Shown {
                row,
                place,
                component,
                standing,
                moved,
            },
        }
    });
    rows.collect()
}

/// Returns the cell of an audit entry. None if the entry is not about a ReleasePin, or if its
/// labels do not match its subject.
fn place(entry: &AuditEntry) -> Option<CellKey> {
    let label = |name| entry.labels().get(name);
    let place = CellKey::new(label(labels::COMPONENT)?, label(labels::ENVIRONMENT)?);
    let name = names::pin(&place.component, &place.environment);
    let subject = &entry.spec.subject;
    (subject.kind == RELEASE_PIN && subject.name == name).then_some(place)
}

/// Returns the action of a row as words, such as `mark bad`.
fn word(row: &audit::Row) -> String {
    let camel = format!("{:?}", row.action);
    let mut word = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push(' ');
        }
        word.extend(c.to_lowercase());
    }
    word
}
