//! How a plan and what became of it are printed.

use serde_json::{Value, json};

use super::applied::{Became, Result};
use crate::cli::output::{self, Format};
use crate::engine::diff::Diff;
use crate::engine::plan::{Item, Plan};
use crate::engine::repository::Proposal;
use crate::git::commit::Made;
use crate::text;

/// What was done to the files of a repository.
pub(super) struct Files<'a> {
    pub(super) proposal: &'a Proposal,
    pub(super) made: &'a Made,
}

/// Prints what would be done, in a repository with what changes in the files.
pub(super) fn planned(
    plan: &Plan,
    shown: &[Option<Diff>],
    files: Option<&Proposal>,
    format: Format,
) -> String {
    let items = || plan.items.iter().zip(shown);
    let values = || {
        let mut value = value(plan, items().map(|(item, shown)| fields(item, shown)));
        if let Some(files) = files {
            value["files"] = files.json();
        }
        value
    };
    match format {
        Format::Json => output::json(&values()),
        Format::Yaml => output::yaml(&values()),
        Format::Name => plan.items.iter().map(name).collect(),
        Format::Table | Format::Wide => {
            let item = |(item, shown): (&Item, &Option<Diff>)| {
                let diff = shown.as_ref().map(changes).unwrap_or_default();
                format!("{}\n{diff}", line(item))
            };
            let files = files.map(Proposal::diff).unwrap_or_default();
            items().map(item).collect::<String>() + &files
        }
    }
}

/// Prints what was done.
pub(super) fn done(
    plan: &Plan,
    shown: &[Option<Diff>],
    became: &Became,
    files: Option<&Files<'_>>,
    format: Format,
) -> String {
    let items = || plan.items.iter().zip(shown).zip(&became.results);
    let values = || {
        let items = items().map(|((item, shown), result)| {
            let mut fields = fields(item, shown);
            fields["result"] = json!(result.word());
            fields["revision"] = json!(result.revision());
            fields
        });
        let mut value = value(plan, items);
        if let Some(Files { proposal, made }) = files {
            value["files"] = proposal.json();
            value["commit"] = json!({"id": made.commit, "branch": made.branch});
        }
        value
    };
    let was_done = || items().filter(|(_, result)| result.is_done());
    match format {
        Format::Json => output::json(&values()),
        Format::Yaml => output::yaml(&values()),
        Format::Name => was_done().map(|((item, _), _)| name(item)).collect(),
        Format::Table | Format::Wide => was_done()
            .map(|((item, _), result)| match result {
                Result::Done(revision) => format!("{} (revision {revision})\n", line(item)),
                Result::Committed => format!("{}\n", line(item)),
                _ => format!("{} (no change)\n", line(item)),
            })
            .collect(),
    }
}

/// Prints the changes as a list, the most important first, and then their lines.
fn changes(diff: &Diff) -> String {
    match diff.is_empty() {
        true => diff.text(),
        false => format!("{}\n{}", diff.changes_text(), diff.text()),
    }
}

fn value(plan: &Plan, items: impl Iterator<Item = Value>) -> Value {
    json!({
        "action": plan.action, "operation": plan.operation, "at": plan.at, "reason": plan.reason,
        "items": items.collect::<Vec<_>>(),
    })
}

fn fields(item: &Item, shown: &Option<Diff>) -> Value {
    json!({
        "component": item.component, "environment": item.environment, "pin": &*item.pin.name,
        "from": item.from, "to": item.to, "releaseRef": item.release_ref, "holds": item.holds,
        "restoredFrom": item.restored_from, "unchanged": item.unchanged, "warnings": item.warnings,
        "changes": shown.as_ref().map(Diff::json),
    })
}

fn name(item: &Item) -> String {
    output::name_line("releasepin.openchoreo.dev", &item.pin.name)
}

/// Says what changes: the pin, and the release that counts before and after.
pub(super) fn line(item: &Item) -> String {
    let from = item
        .from
        .as_ref()
        .map_or("nothing", |from| from.name.as_str());
    let to = &item.to.name;
    let what = match from == to {
        true => to.clone(),
        false => format!("{from} -> {to}"),
    };
    let holds = match item.holds.len() {
        0 => String::new(),
        1 => ", 1 hold".to_owned(),
        count => format!(", {count} holds"),
    };
    let line = format!("{} in {}: {what}{holds}", item.component, item.environment);
    text::line(&line).into_owned()
}
