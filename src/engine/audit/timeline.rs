//! The audit entries of all chains by time, for users who investigate an incident.

use std::fmt::Write;

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use super::chain::chains;
use crate::api::bowline::audit::{Action, AuditEntry};
use crate::api::{labels, names};
use crate::text;

/// One audit entry as a row of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The time of the change, by the clock of the client that made it.
    pub at: Timestamp,
    /// Whether this time is earlier than the time of the entry before it in the chain.
    pub clock_disagrees: bool,
    pub kind: String,
    /// The name of the subject; for a chain about releases, the component.
    pub subject: String,
    pub revision: i64,
    pub action: Action,
    /// The user who made the change; None if the API server recorded no user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The user who wrote the audit entry.
    pub recorded_by: String,
    /// The name of the content before the change, such as a release; None if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The name of the content after the change; None if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The revision that a rollback restored; None for other actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The first revision that nobody observed, if the entry records a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_from: Option<i64>,
    /// The number of entries that retention removed, if the entry is a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<i64>,
    pub entry: String,
}

/// A period of time; without a bound, it has no limit on that side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The start; the period contains it.
    pub since: Option<Timestamp>,
    /// The end; the period does not contain it.
    pub until: Option<Timestamp>,
}

impl Span {
    pub fn contains(&self, moment: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= moment)
            && self.until.is_none_or(|until| moment < until)
    }
}

/// Returns the entries of a period, sorted by time and then by chain.
///
/// Entries of one chain always keep the order of the chain. If an entry has an earlier time than the entry
/// before it, the row is marked with `clock_disagrees`.
pub fn timeline(entries: &[AuditEntry], span: &Span) -> Vec<Row> {
    let mut rows = Vec::with_capacity(entries.len());
    for (place, chain) in chains(entries).iter().enumerate() {
        let mut latest = Timestamp::MIN;
        for entry in chain.all() {
            let at = entry.spec.at.0;
            // A checkpoint comes before later revisions, although it was written long after them.
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
    /// Returns the action as text for the user, such as `Rollback to revision 4`.
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

    /// Returns the time as text, with a note if the clocks disagree.
    pub fn when(&self) -> String {
        match self.clock_disagrees {
            true => format!("{} (clocks disagree)", self.at),
            false => self.at.to_string(),
        }
    }
}

/// Prints the entries of a period as a Markdown document. `component` selects the entries of one component.
/// `environment` selects the entries of one environment; None selects all environments and the entries about
/// releases.
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

/// Prints rows as a Markdown document. Escapes the title and all values, so that they cannot change the
/// structure of the document.
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

/// Escapes a text, so that Markdown shows it as plain text on one line.
fn escaped(cell: &str) -> String {
    let mut out = String::with_capacity(cell.len());
    for c in text::line(cell).chars() {
        match c {
            // Markdown renderers disagree about a backslash before `|` in a table.
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
