//! Prints plans, and the results of applied plans.

use serde_json::{Value, json};

use super::applied::{Became, Result};
use crate::api::bowline::audit::Action;
use crate::engine::diff::Diff;
use crate::engine::plan::{Change, Plan};
use crate::git::commit::Made;
use crate::gitops::propose::Proposal;
use crate::output::{self, Format};
use crate::subjects::release_pin::kind;
use crate::text;

/// The files that a plan edits in a repository, and the commit if it was already made.
pub(crate) struct Files<'a> {
    pub(crate) proposal: &'a Proposal,
    pub(crate) made: &'a Made,
}

/// Returns a plan as text for the user, with its edits of files if the target is a repository.
pub(crate) fn planned(
    plan: &Plan,
    shown: &[Option<Diff>],
    files: Option<&Proposal>,
    format: Format,
) -> String {
    let changes = || plan.changes.iter().zip(shown);
    let values = || {
        let mut value = value(plan, changes().map(|(change, shown)| fields(change, shown)));
        if let Some(files) = files {
            value["files"] = files.json();
        }
        value
    };
    match format {
        Format::Json => output::json(&values()),
        Format::Yaml => output::yaml(&values()),
        Format::Name => plan.changes.iter().map(name).collect(),
        Format::Table | Format::Wide => {
            let change = |(change, shown): (&Change, &Option<Diff>)| {
                let diff = shown.as_ref().map(listed).unwrap_or_default();
                format!("{}\n{diff}", line(plan.action, change))
            };
            let files = files.map(Proposal::diff).unwrap_or_default();
            changes().map(change).collect::<String>() + &files
        }
    }
}

/// Returns the result of an applied plan as text for the user.
pub(crate) fn done(
    plan: &Plan,
    shown: &[Option<Diff>],
    became: &Became,
    files: Option<&Files<'_>>,
    format: Format,
) -> String {
    let changes = || plan.changes.iter().zip(shown).zip(&became.results);
    let values = || {
        let changes = changes().map(|((change, shown), result)| {
            let mut fields = fields(change, shown);
            fields["result"] = json!(result.word());
            fields["revision"] = json!(result.revision());
            fields
        });
        let mut value = value(plan, changes);
        if let Some(Files { proposal, made }) = files {
            value["files"] = proposal.json();
            value["commit"] = json!({"id": made.commit, "branch": made.branch});
        }
        value
    };
    let was_done = || changes().filter(|(_, result)| result.is_done());
    match format {
        Format::Json => output::json(&values()),
        Format::Yaml => output::yaml(&values()),
        Format::Name => was_done().map(|((change, _), _)| name(change)).collect(),
        Format::Table | Format::Wide => was_done()
            .map(|((change, _), result)| {
                let line = line(plan.action, change);
                match result {
                    // For a workload, this number counts bowline's changes and is not the number of a revision, so it
                    // is not printed.
                    Result::Done(_) if change.subject.kind.actions.is_some() => format!("{line}\n"),
                    Result::Done(revision) => format!("{line} (revision {revision})\n"),
                    Result::Committed => format!("{line}\n"),
                    _ => format!("{line} (no change)\n"),
                }
            })
            .collect(),
    }
}

/// Returns the diff as text: first the summary of changes, the most important first, then the hunks.
fn listed(diff: &Diff) -> String {
    match diff.is_empty() {
        true => diff.text(),
        false => format!("{}\n{}", diff.changes_text(), diff.text()),
    }
}

fn value(plan: &Plan, changes: impl Iterator<Item = Value>) -> Value {
    json!({
        "action": plan.action, "operation": plan.operation, "at": plan.at, "reason": plan.reason,
        "items": changes.collect::<Vec<_>>(),
    })
}

fn fields(change: &Change, shown: &Option<Diff>) -> Value {
    let mut fields = json!({
        "environment": change.environment, "from": change.from, "to": change.to, "holds": change.holds,
        "restoredFrom": change.restored_from, "unchanged": change.unchanged, "warnings": change.warnings,
        "changes": shown.as_ref().map(Diff::json),
    });
    if change.subject.kind == &kind::KIND {
        fields["component"] = json!(change.name);
        fields["pin"] = json!(&*change.key().name);
        fields["releaseRef"] = json!(kind::release_ref(change));
    } else {
        fields["subject"] = json!(change.name);
    }
    fields
}

fn name(change: &Change) -> String {
    let resource = (change.subject.kind.resource)();
    let kind = format!("{}.{}", resource.kind.to_lowercase(), resource.group);
    output::name_line(&kind, &change.key().name)
}

/// Describes a change in one line: the subject, the effective release before and after, and the holds.
pub(crate) fn line(action: Action, change: &Change) -> String {
    let from = change
        .from
        .as_ref()
        .map_or("nothing", |from| from.name.as_str());
    let to = &change.to.name;
    let what = match from == to {
        true => to.clone(),
        false => format!("{from} -> {to}"),
    };
    let holds = match change.holds.len() {
        0 => String::new(),
        count => format!(", {}", text::counted(count, "holds")),
    };
    let new = change.holds.last().filter(|_| action == Action::Pin);
    let until = new.and_then(|hold| hold.until.as_ref());
    let until = match (until, change.holds.len()) {
        (None, _) => String::new(),
        (Some(until), 1) => format!(" until {:.0}", until.0),
        (Some(until), _) => format!(", the new one until {:.0}", until.0),
    };
    let lifted = change.lifted();
    let lifted: String = lifted
        .map(|hold| format!(", lifts {}", hold.words()))
        .collect();
    let mark = change.mark.as_ref();
    let mark = mark.map(|mark| format!(", marked {}", mark.verdict.word()));
    let mark = mark.unwrap_or_default();
    let line = format!(
        "{} in {}: {what}{mark}{holds}{until}{lifted}",
        change.name, change.environment
    );
    text::line(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::hold::Hold;
    use crate::fixture;

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
            let change = Change {
                holds,
                ..fixture::change("cart", "dev", "cart-1")
            };
            assert_eq!(line(action, &change), expected);
        }
    }

    #[test]
    fn the_plan_of_an_unpin_names_the_hold_that_it_lifts() {
        let hold = |id: &str, owner: &str, reason: Option<&str>| -> Hold {
            let since = "2026-01-01T00:00:00Z";
            let hold = json!({"id": id, "owner": owner, "reason": reason, "since": since});
            serde_json::from_value(hold).unwrap()
        };
        let (ana, bob) = (
            hold("a", "ana", Some("sale weekend")),
            hold("b", "bob", None),
        );
        let change = Change {
            holds_before: vec![ana.clone(), bob.clone()],
            holds: vec![bob],
            ..fixture::change("cart", "dev", "cart-1")
        };
        assert_eq!(
            line(Action::Unpin, &change),
            "cart in dev: cart-1, 1 hold, lifts the hold of ana: sale weekend"
        );
        let change = Change {
            holds_before: vec![ana, hold("b", "bob", None)],
            ..fixture::change("cart", "dev", "cart-1")
        };
        assert!(
            line(Action::Undo, &change).ends_with("lifts the hold of bob: no reason was given")
        );
    }
}
