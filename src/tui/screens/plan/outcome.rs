//! Describes the outcome of a plan for the plan screen, the tasks and the command log.

use jiff::Timestamp;

use crate::api::bowline::audit::Action;
use crate::api::openchoreo::release::Verdict;
use crate::effect::Refused;
use crate::engine::plan::Change;
use crate::engine::publish::Applied;
use crate::engine::subject::Numbering;
use crate::gitops::propose::Committed;
use crate::subjects::release_pin::collect::Collected;
use crate::subjects::release_pin::marking::Marked;
use crate::subjects::service::{self, PlannedCommand};
use crate::tasks::{self, Logged, Rolling, Task};

/// The outcome of a plan as texts.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One line per change, as (whether the change succeeded, text).
    pub lines: Vec<(bool, String)>,
    /// Hints that tell the user what to do after failed changes.
    pub hints: Vec<String>,
    /// The revisions whose rollouts the screen follows.
    pub rolling: Vec<Rolling>,
    /// Whether all rollouts in `rolling` have ended.
    pub rolled_out: bool,
    /// The line that says where bowline has recorded the changes; None if it wrote AuditEntries or
    /// changed nothing.
    pub record: Option<String>,
    /// The abbreviated id of the commit; None if the target is a server.
    pub commit: Option<String>,
}

/// Returns a text with the number of the revision that a change created. Empty for a workload, because Kubernetes
/// changes the numbers of its revisions.
fn revision(change: &Change, number: i64) -> String {
    match change.subject.kind.numbering {
        Numbering::Generation => format!(", revision {number}"),
        Numbering::Annotation { .. } => String::new(),
    }
}

impl Outcome {
    /// Describes the result of applying a plan.
    pub fn of(prepared: &PlannedCommand, applied: &Result<service::Outcome, Refused>) -> Self {
        let mut outcome = Self::default();
        let applied = match applied {
            Ok(applied) => applied,
            Err(refused) => {
                outcome.refused(refused);
                return outcome;
            }
        };
        match (prepared, applied) {
            (PlannedCommand::Changes(action_plan), service::Outcome::Changed { results, .. }) => {
                for (change, result) in action_plan.plan.changes.iter().zip(results) {
                    let place = format!("{} in {}", change.name, change.environment);
                    let to = &change.to.name;
                    let changed = match action_plan.plan.action {
                        Action::Pin => format!("pinned {place} at {to}"),
                        Action::Unpin => format!("unpinned {place}, which runs {to}"),
                        Action::MarkBad => format!("{} is marked bad", change.marked()),
                        Action::MarkGood => format!("{} is marked good", change.marked()),
                        _ if change.from.as_ref().is_some_and(|from| from.name == *to) => {
                            format!("{place} still runs {to}")
                        }
                        // The plan is applied, but its rollout has only started and may fail.
                        _ => format!("{place} rolls out {to}"),
                    };
                    let (done, words) = match result {
                        Ok(Applied::Unchanged) => {
                            let already = already(prepared).to_lowercase();
                            (true, format!("{place}: {already}"))
                        }
                        Ok(Applied::Done(number)) => {
                            (true, format!("{changed}{}", revision(change, *number)))
                        }
                        Ok(Applied::Unrecorded(number, why)) => (
                            true,
                            format!("{changed}{}; {why}", revision(change, *number)),
                        ),
                        Ok(Applied::Superseded { by, .. }) => {
                            (true, format!("{place} was changed, and afterwards {by}"))
                        }
                        Err(error) => (false, format!("{place}: {error}")),
                    };
                    if let Ok(Applied::Done(revision) | Applied::Unrecorded(revision, _)) = result
                        && change.mark.is_none()
                    {
                        let rolling = Rolling::new(&change.followed(), *revision, to);
                        outcome.rolling.push(rolling);
                    }
                    outcome.lines.push((done, words));
                }
                let is_made = |result: &Result<_, _>| matches!(result, Ok(applied) if *applied != Applied::Unchanged);
                let record = action_plan.record.clone();
                outcome.record = record.filter(|_| results.iter().any(is_made));
            }
            (PlannedCommand::Mark(marking), service::Outcome::Marked(result)) => {
                let word = match marking.verdict {
                    Verdict::Bad => "bad",
                    Verdict::Good => "good",
                };
                let release = &marking.release.name;
                outcome.lines.push(match result {
                    Ok(Marked::Done) => (true, format!("{release} is marked {word}")),
                    Ok(Marked::Unrecorded(why)) => (
                        true,
                        format!(
                            "{release} is marked {word}; its audit entry is not written yet; the next change writes it: {why}"
                        ),
                    ),
                    Err(error) => (false, error.to_string()),
                });
            }
            (_, service::Outcome::Collected { results, ended }) => {
                let gone = results
                    .iter()
                    .filter(|(_, result)| matches!(result, Collected::Gone))
                    .count();
                outcome.lines.push((true, format!("{gone} deleted")));
                for (candidate, result) in results {
                    let name = &candidate.key.name;
                    outcome.lines.extend(match result {
                        Collected::Gone => None,
                        Collected::Kept(why) => {
                            let why: Vec<String> = why.iter().map(ToString::to_string).collect();
                            Some((true, format!("{name} stays: {}", why.join("; "))))
                        }
                        Collected::PutBack(environments) => Some((
                            true,
                            format!(
                                "{name} was restored: a ReleasePin in {} names it",
                                environments.join(", ")
                            ),
                        )),
                        Collected::Failed(error) => {
                            Some((false, format!("{name}: {}", crate::connect::explain(error))))
                        }
                    });
                }
                let ended = ended.as_ref().err();
                outcome
                    .lines
                    .extend(ended.map(|why| (false, why.to_string())));
            }
            (_, service::Outcome::Committed(committed)) => outcome.committed(prepared, committed),
            (_, service::Outcome::Changed { .. } | service::Outcome::Marked(_)) => {}
        }
        outcome
    }

    /// Adds the lines about a commit: its id, and the result of its push. Also adds the rollouts, if bowline watches
    /// the cluster that belongs to the repository.
    fn committed(&mut self, prepared: &PlannedCommand, committed: &Committed) {
        self.commit = Some(committed.short().to_owned());
        self.lines.push((true, committed.words()));
        let notes = committed.notes.iter().map(|note| (true, note.clone()));
        self.lines.extend(notes);
        match &committed.pushed {
            None => {}
            Some(Ok(pushed)) => self.lines.push((true, pushed.words())),
            Some(Err(error)) => {
                self.lines.push((false, error.to_string()));
                self.hints.extend(error.hints());
            }
        }
        if let (PlannedCommand::Changes(action_plan), true) = (prepared, committed.observed) {
            let changed = action_plan
                .plan
                .changes
                .iter()
                .filter(|change| !change.unchanged);
            let rolling = changed.map(|change| {
                let revision = change.number().unwrap_or_default() + 1;
                Rolling::new(&change.followed(), revision, &change.to.name)
            });
            self.rolling.extend(rolling);
        }
    }

    fn refused(&mut self, refused: &Refused) {
        let why = refused.why.iter().map(|why| (false, why.clone()));
        self.lines.extend(why);
        self.hints.extend(refused.hints.iter().cloned());
    }

    /// Returns the cells that the plan changed, as (component, environment), so that an undo can reverse these
    /// changes.
    pub fn undone(&self, prepared: &PlannedCommand) -> Vec<(String, String)> {
        let changes = prepared.plan().map_or(&[][..], |plan| &plan.changes);
        let is_made = |change: &&Change| match self.commit {
            Some(_) => !change.unchanged,
            None => self.rolling.iter().any(|one| one.pin == *change.key()),
        };
        let made = changes.iter().filter(is_made);
        made.map(|change| (change.name.clone(), change.environment.clone()))
            .collect()
    }

    pub fn is_done(&self) -> bool {
        self.lines.iter().all(|(done, _)| *done)
    }

    /// Returns the most important line of the outcome: the first failure, or else the first line.
    pub fn words(&self) -> String {
        let failed = self.lines.iter().find(|(done, _)| !done);
        let said = failed.or(self.lines.first());
        said.map(|(_, words)| words.clone()).unwrap_or_default()
    }

    /// Returns the state of the task that follows this plan.
    pub fn task(&self) -> tasks::State {
        match (self.is_done(), self.rolling.is_empty()) {
            (false, _) => tasks::State::Failed(self.words()),
            (true, true) => tasks::State::Done(self.words()),
            (true, false) => tasks::State::Rolling(self.rolling.clone()),
        }
    }

    /// Returns the entry for this plan in the command log.
    pub fn logged(&self, task: &Task, at: Timestamp) -> Logged {
        Logged {
            at,
            bowline: task.command.command_lines(task.reason.as_deref()),
            kubectl: match &self.commit {
                Some(commit) => vec![format!("git show {commit}")],
                None => task.prepared.kubectl(),
            },
            outcome: self.words(),
        }
    }
}

/// Returns the text that says why a plan changes nothing.
pub(super) fn already(prepared: &PlannedCommand) -> &'static str {
    match prepared {
        PlannedCommand::Collection(_) => {
            "Nothing can be deleted: all objects are in use, among the newest, or too young"
        }
        PlannedCommand::Mark(marking) => match marking.verdict {
            Verdict::Bad => "Already marked bad",
            Verdict::Good => "Already marked good",
        },
        PlannedCommand::Changes(action_plan) => match action_plan.plan.action {
            Action::Pin => "Already pinned with the same hold",
            Action::Unpin => "Already unpinned",
            Action::MarkBad => "Already marked bad",
            Action::MarkGood => "Already marked good",
            Action::Undo => "Nothing to undo: it is already as it was before",
            _ => "Already running this release",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::Plan;
    use crate::fixture;
    use crate::subjects::release_pin::planner::ActionPlan;

    fn changed(applied: Applied) -> service::Outcome {
        service::Outcome::Changed {
            created: None,
            results: vec![Ok(applied)],
        }
    }

    /// Creates a plan of an action on cart in staging that keeps release cart-v2.
    fn prepared(action: Action, record: Option<&str>) -> PlannedCommand {
        let change = fixture::change("cart", "staging", "cart-v2");
        let mut action_plan = ActionPlan::of(Plan {
            action,
            operation: "one".to_owned(),
            at: fixture::now(),
            reason: None,
            changes: vec![change],
        });
        action_plan.record = record.map(str::to_owned);
        PlannedCommand::Changes(Box::new(action_plan))
    }

    #[test]
    fn an_outcome_says_where_the_record_is_if_something_changed() {
        let note = "this cluster has no AuditEntries";
        let prepared = prepared(Action::Pin, Some(note));
        for (applied, expected) in [(Applied::Done(2), Some(note)), (Applied::Unchanged, None)] {
            let outcome = Outcome::of(&prepared, &Ok(changed(applied)));
            assert_eq!(outcome.record.as_deref(), expected);
        }
    }

    #[test]
    fn an_outcome_says_what_the_action_did() {
        for (action, done, idle) in [
            (
                Action::Pin,
                "pinned cart in staging at cart-v2, revision 2",
                "cart in staging: already pinned with the same hold",
            ),
            (
                Action::Unpin,
                "unpinned cart in staging, which runs cart-v2, revision 2",
                "cart in staging: already unpinned",
            ),
            (
                Action::Undo,
                "cart in staging still runs cart-v2, revision 2",
                "cart in staging: nothing to undo: it is already as it was before",
            ),
            (
                Action::Deploy,
                "cart in staging still runs cart-v2, revision 2",
                "cart in staging: already running this release",
            ),
        ] {
            let prepared = prepared(action, None);
            for (applied, expected) in [(Applied::Done(2), done), (Applied::Unchanged, idle)] {
                let outcome = Outcome::of(&prepared, &Ok(changed(applied)));
                assert_eq!(outcome.words(), expected);
            }
        }
    }
}
