//! Sorts the audit entries of all chains by time, for users who investigate an incident.

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
    /// The time of the change. If bowline made the change, its client recorded the time by the server's clock as the
    /// client knew it; if another tool made it, the time is by the API server's clock. In a repository, it is the time
    /// of the commit.
    pub at: Timestamp,
    /// Whether `at` is earlier than the time of an entry that is before this one in the same chain. Then the clocks by
    /// which these two times were recorded disagree (see `at`).
    pub clock_disagrees: bool,
    pub kind: String,
    /// The name of the changed subject. For a chain about releases, the name of the component.
    pub subject: String,
    pub revision: i64,
    pub action: Action,
    /// The user who made the change; None if the API server recorded no user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The name of the user who wrote the audit entry.
    pub recorded_by: String,
    /// The name of the subject's content before the change, such as a release; None if the entry does not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The name of the subject's content after the change, such as a release; None if the entry does not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The revision that a rollback restored; None for other actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// For an entry that records a gap: the first revision that nobody observed. None for other entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_from: Option<i64>,
    /// For a checkpoint: the number of entries that retention removed. None for other entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<i64>,
    pub entry: String,
}

/// A period of time for the selection of audit entries. A side that is None has no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The start of the period. Entries at exactly this time belong to the period.
    pub since: Option<Timestamp>,
    /// The end of the period. Entries at exactly this time do not belong to the period.
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
/// Entries of one chain always stay in the order of the chain. So a row may have an earlier time than the row before
/// it; then `clock_disagrees` is true.
pub fn timeline(entries: &[AuditEntry], span: &Span) -> Vec<Row> {
    let mut rows = Vec::with_capacity(entries.len());
    for (place, chain) in chains(entries).iter().enumerate() {
        let mut latest = Timestamp::MIN;
        for entry in chain.all() {
            let at = entry.spec.at.0;
            // A checkpoint is written long after the revisions that follow it in the chain, so its time is no sign of
            // a wrong clock.
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
    // The sort is stable, so entries of one chain with the same time stay in the order of the chain.
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

    /// Returns the time of the row as text. The text also says whether this time is earlier than that of an entry
    /// before it in the chain, so that the clocks by which the two times were recorded disagree.
    pub fn when(&self) -> String {
        match self.clock_disagrees {
            true => format!("{} (clocks disagree)", self.at),
            false => self.at.to_string(),
        }
    }
}

/// Returns the entries of a period as a Markdown document. `component` selects the entries of one component, and
/// `environment` those of one environment. If `environment` is None, the document includes the entries about
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

/// Returns rows as a Markdown document. Escapes the title and all values, so that they cannot change the structure of
/// the document.
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
