//! Prints a plan and its result.

use serde_json::{Value, json};

use super::applied::{Became, Result};
use crate::api::audit::Action;
use crate::cli::output::{self, Format};
use crate::engine::diff::Diff;
use crate::git::commit::Made;
use crate::subjects::release_pin::plan::{Item, Plan};
use crate::subjects::release_pin::repository::Proposal;
use crate::text;

/// The changes in the files of a repository.
pub(super) struct Files<'a> {
    pub(super) proposal: &'a Proposal,
    pub(super) made: &'a Made,
}

/// Prints the changes of a plan; for a repository also the changes in the files.
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
                format!("{}\n{diff}", line(plan.action, item))
            };
            let files = files.map(Proposal::diff).unwrap_or_default();
            items().map(item).collect::<String>() + &files
        }
    }
}

/// Prints the result of a plan.
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
            .map(|((item, _), result)| {
                let line = line(plan.action, item);
                match result {
                    Result::Done(revision) => format!("{line} (revision {revision})\n"),
                    Result::Committed => format!("{line}\n"),
                    _ => format!("{line} (no change)\n"),
                }
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

/// Describes a change: the ReleasePin, the effective release before and after, the number of holds, and the
/// end of a new hold.
pub(super) fn line(action: Action, item: &Item) -> String {
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
        count => format!(", {}", text::counted(count, "holds")),
    };
    let new = item.holds.last().filter(|_| action == Action::Pin);
    let until = new.and_then(|hold| hold.until.as_ref());
    let until = match (until, item.holds.len()) {
        (None, _) => String::new(),
        (Some(until), 1) => format!(" until {:.0}", until.0),
        (Some(until), _) => format!(", the new one until {:.0}", until.0),
    };
    let line = format!(
        "{} in {}: {what}{holds}{until}",
        item.component, item.environment
    );
    text::line(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::audit::ContentRef;
    use crate::api::pin::Hold;
    use crate::engine::world::Key;

    #[test]
    fn the_plan_of_a_pin_shows_the_end_of_the_new_hold() {
        let hold = |until: Option<&str>| Hold {
            until: until.map(|until| {
                k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(until.parse().unwrap())
            }),
            ..serde_json::from_value(
                json!({"id": "h", "owner": "ana", "since": "2026-01-01T00:00:00Z"}),
            )
            .unwrap()
        };
        let end = Some("2026-01-06T16:00:00.5Z");
        for (action, holds, expected) in [
            (Action::Pin, vec![hold(None)], "cart in dev: cart-1, 1 hold"),
            (
                Action::Pin,
                vec![hold(end)],
                "cart in dev: cart-1, 1 hold until 2026-01-06T16:00:00Z",
            ),
            (
                Action::Pin,
                vec![hold(None), hold(end)],
                "cart in dev: cart-1, 2 holds, the new one until 2026-01-06T16:00:00Z",
            ),
            (
                Action::Unpin,
                vec![hold(end)],
                "cart in dev: cart-1, 1 hold",
            ),
            (Action::Undo, Vec::new(), "cart in dev: cart-1"),
        ] {
            let release = ContentRef::named("cart-1");
            let item = Item {
                component: "cart".to_owned(),
                environment: "dev".to_owned(),
                pin: Key::new("shop", "cart-dev"),
                generation: Some(1),
                from: Some(release.clone()),
                to: release,
                release_ref: "cart-1".to_owned(),
                holds,
                restored_from: None,
                rendered_hash: None,
                unchanged: false,
                skips_path: false,
                facts: Vec::new(),
                warnings: Vec::new(),
            };
            assert_eq!(line(action, &item), expected);
        }
    }
}
