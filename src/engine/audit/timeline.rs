//! The audit entries by time, for people who investigate an incident.

use std::fmt::Write;

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use super::chain::chains;
use crate::api::bowline::audit::{Action, AuditEntry};
use crate::api::{labels, names};
use crate::text;

/// One line of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The time, by the clock of the client that made the change.
    pub at: Timestamp,
    /// Whether the time is before that of an earlier entry of the chain.
    pub clock_disagrees: bool,
    /// The kind of the chain's subject.
    pub kind: String,
    /// The name of the subject; for a chain about releases, the name of the component.
    pub subject: String,
    /// The revision in the chain.
    pub revision: i64,
    /// The recorded action.
    pub action: Action,
    /// The user who made the change; None if the API server did not name the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The user who wrote the entry.
    pub recorded_by: String,
    /// The name of the content before the change, such as a release; None if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The name of the content after the change; None if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The reason that the user gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id of the operation that made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The revision that a rollback restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The first unrecorded revision, if the action is Gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_from: Option<i64>,
    /// The number of entries that retention removed, if the action is Checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<i64>,
    /// The name of the entry.
    pub entry: String,
}

/// The time span of a timeline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The start, inclusive.
    pub since: Option<Timestamp>,
    /// The end, exclusive.
    pub until: Option<Timestamp>,
}

impl Span {
    /// Returns whether a time is in the span.
    pub fn contains(&self, moment: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= moment)
            && self.until.is_none_or(|until| moment < until)
    }
}

/// Returns the entries in a span, by time and then by chain.
///
/// Entries of a chain keep the order of the chain: an entry with an earlier time than its predecessor
/// comes after it, and is marked.
pub fn timeline(entries: &[AuditEntry], span: &Span) -> Vec<Row> {
    let mut rows = Vec::with_capacity(entries.len());
    for (place, chain) in chains(entries).iter().enumerate() {
        let mut latest = Timestamp::MIN;
        for entry in chain.all() {
            let at = entry.spec.at.0;
            // A checkpoint is written long after the entries that it replaces, and comes before the
            // entries that follow them.
            let checkpoint = entry.spec.checkpoint.is_some();
            let disagrees = at < latest && !checkpoint;
            let moment = at.max(latest);
            if !checkpoint {
                latest = moment;
            }
            if span.contains(at) || span.contains(moment) {
                rows.push(((moment, place), row(entry, disagrees)));
            }
        }
    }
    // The sort is stable: entries of one chain with the same time keep their order.
    rows.sort_by_key(|(key, _)| *key);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(entry: &AuditEntry, clock_disagrees: bool) -> Row {
    let spec = entry.spec.clone();
    Row {
        at: spec.at.0,
        clock_disagrees,
        kind: spec.subject.kind.clone(),
        subject: spec.subject.name,
        revision: spec.revision,
        action: spec.action,
        actor: spec.actor,
        recorded_by: spec.recorded_by,
        from: spec.from.map(|release| release.name),
        to: spec.to.map(|release| release.name),
        reason: spec.reason,
        operation: spec.operation,
        restored_from: spec.restored_from,
        unseen_from: spec.gap.map(|gap| gap.first),
        removed: spec.checkpoint.map(|checkpoint| checkpoint.entries),
        entry: entry.name_any(),
    }
}

impl Row {
    /// Describes the action in a few words.
    pub fn words(&self) -> String {
        let mut words = format!("{:?}", self.action);
        if let Some(revision) = self.restored_from {
            let _ = write!(words, " to revision {revision}");
        }
        match self.unseen_from {
            Some(first) if first == self.revision => {
                let _ = write!(words, ": revision {first} was not observed");
            }
            Some(first) => {
                let last = self.revision;
                let _ = write!(words, ": revisions {first} to {last} were not observed");
            }
            None => {}
        }
        if let Some(removed) = self.removed {
            let _ = write!(words, ": retention removed {removed} entries");
        }
        words
    }

    /// Returns the time, with a mark if the clocks disagree.
    pub fn when(&self) -> String {
        match self.clock_disagrees {
            true => format!("{} (clocks disagree)", self.at),
            false => self.at.to_string(),
        }
    }
}

/// Prints the entries in a span as a Markdown document. `component` selects the entries of one
/// component. `environment` selects the entries of one environment; without it, the document has
/// the entries of all environments and of releases.
pub fn document(
    entries: &[AuditEntry],
    component: Option<&str>,
    environment: Option<&str>,
    span: &Span,
) -> String {
    let of = |entry: &&AuditEntry| {
        let is = |label, wanted: Option<&str>| {
            let wanted = wanted.map(names::label_value);
            wanted.is_none_or(|wanted| entry.labels().get(label) == Some(&wanted))
        };
        is(labels::COMPONENT, component) && is(labels::ENVIRONMENT, environment)
    };
    let entries: Vec<AuditEntry> = entries.iter().filter(of).cloned().collect();
    markdown(
        &timeline(&entries, span),
        &title(component, environment, span),
    )
}

fn title(component: Option<&str>, environment: Option<&str>, span: &Span) -> String {
    let mut title = format!("Timeline of {}", component.unwrap_or("all components"));
    for (word, value) in [
        ("in", environment.map(str::to_owned)),
        ("since", span.since.map(|since| since.to_string())),
        ("until", span.until.map(|until| until.to_string())),
    ] {
        if let Some(value) = value {
            let _ = write!(title, " {word} {value}");
        }
    }
    title
}

/// Prints a timeline as a Markdown document. Escapes the texts of the rows and the title, so that
/// no text can change the structure of the document.
pub fn markdown(rows: &[Row], title: &str) -> String {
    let mut out = format!("# {}\n\n", escaped(title));
    if rows.is_empty() {
        return out + "No audit entries.\n";
    }
    out += "| When | Who | What | Subject | Revision | From | To | Why | Entry |\n";
    out += "| --- | --- | --- | --- | ---: | --- | --- | --- | --- |\n";
    for row in rows {
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        let who = match &row.actor {
            Some(actor) => actor.clone(),
            None => format!("unattributed, recorded by {}", row.recorded_by),
        };
        let cells = [
            row.when(),
            who,
            row.words(),
            row.subject.clone(),
            row.revision.to_string(),
            optional(&row.from),
            optional(&row.to),
            optional(&row.reason),
            row.entry.clone(),
        ];
        for cell in cells {
            let _ = write!(out, "| {} ", escaped(&cell));
        }
        out += "|\n";
    }
    if rows.iter().any(|row| row.clock_disagrees) {
        out += "\n\"Clocks disagree\" means that the entry has an earlier time than the entry before it; the order is that of the chain.\n";
    }
    out
}

/// Escapes a text, so that Markdown shows it as one line of plain text.
fn escaped(cell: &str) -> String {
    let mut out = String::with_capacity(cell.len());
    for c in text::line(cell).chars() {
        match c {
            // Renderers disagree about a backslash before a pipe.
            '|' => out += "&#124;",
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}
