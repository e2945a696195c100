//! The outcome of a plan, in words for its screen, the tasks and the command log.

use jiff::Timestamp;

use crate::api::audit::Action;
use crate::api::release::Verdict;
use crate::engine::apply::Applied;
use crate::engine::plan::Change;
use crate::subjects::release_pin::collect::Collected;
use crate::subjects::release_pin::repository::Committed;
use crate::tui::effect::{Became, Refused};
use crate::tui::order::Prepared;
use crate::tui::tasks::{self, Logged, Rolling, Task};

/// The outcome of a plan, in words.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One line per change: whether it succeeded, and the text.
    pub lines: Vec<(bool, String)>,
    /// Hints about the changes that failed.
    pub hints: Vec<String>,
    /// The revisions that roll out.
    pub rolling: Vec<Rolling>,
    /// Whether all these rollouts have ended.
    pub rolled_out: bool,
    /// The short id of the commit, if the target is a repository.
    pub commit: Option<String>,
}

impl Outcome {
    /// Describes the result of applying a plan.
    pub fn of(prepared: &Prepared, became: &Became) -> Self {
        let mut outcome = Self::default();
        match (prepared, became) {
            (Prepared::Moves(action_plan), Became::Moved(results)) => {
                for (change, result) in action_plan.plan.changes.iter().zip(results) {
                    let place = format!("{} in {}", change.name, change.environment);
                    let to = &change.to.name;
                    let changed = match action_plan.plan.action {
                        Action::Pin => format!("pinned {place} at {to}"),
                        Action::Unpin => format!("unpinned {place}, which runs {to}"),
                        _ if change.from.as_ref().is_some_and(|from| from.name == *to) => {
                            format!("{place} still runs {to}")
                        }
                        // The rollout follows, and may fail.
                        _ => format!("{place} rolls out {to}"),
                    };
                    let (done, words) = match result {
                        Ok(Applied::Unchanged) => {
                            let already = already(prepared).to_lowercase();
                            (true, format!("{place}: {already}"))
                        }
                        Ok(Applied::Done(revision)) => {
                            (true, format!("{changed}, revision {revision}"))
                        }
                        Ok(Applied::Unrecorded(revision, why)) => (
                            true,
                            format!(
                                "{changed}, revision {revision}; its audit entry is not written yet, the next change writes it: {why}"
                            ),
                        ),
                        Ok(Applied::Superseded { by, .. }) => {
                            (true, format!("{place} was changed, and afterwards {by}"))
                        }
                        Err(error) => (false, format!("{place}: {error}")),
                    };
                    if let Ok(Applied::Done(revision) | Applied::Unrecorded(revision, _)) = result {
                        let rolling = Rolling::new(change.key(), *revision, to);
                        outcome.rolling.push(rolling);
                    }
                    outcome.lines.push((done, words));
                }
            }
            (Prepared::Mark(marking), Became::Marked(result)) => {
                let word = match marking.verdict {
                    Verdict::Bad => "bad",
                    Verdict::Good => "good",
                };
                let release = &marking.release.name;
                outcome.lines.push(match result {
                    Ok(None) => (true, format!("{release} is marked {word}")),
                    Ok(Some(note)) => (true, format!("{release} is marked {word}; {note}")),
                    Err(why) => (false, why.clone()),
                });
            }
            (_, Became::Collected { results, ended }) => {
                let gone = results
                    .iter()
                    .filter(|(_, result)| matches!(result, Collected::Gone))
                    .count();
                outcome.lines.push((true, format!("{gone} deleted")));
                for (key, result) in results {
                    let name = &key.name;
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
                let ended = ended.iter().map(|why| (false, why.clone()));
                outcome.lines.extend(ended);
            }
            (_, Became::Committed(committed)) => outcome.committed(prepared, committed),
            (_, Became::Failed(refused)) => outcome.refused(refused),
            (_, Became::Moved(_) | Became::Marked(_)) => {}
        }
        outcome
    }

    /// Adds a commit: its id, the result of its push, and the rollouts if a cluster beside the repository is
    /// watched.
    fn committed(&mut self, prepared: &Prepared, committed: &Committed) {
        self.commit = Some(committed.short().to_owned());
        self.lines.push((true, committed.words()));
        let notes = committed.notes.iter().map(|note| (true, note.clone()));
        self.lines.extend(notes);
        match &committed.pushed {
            None => {}
            Some(Ok(pushed)) => self.lines.push((true, pushed.words())),
            Some(Err(error)) => {
                self.lines.push((false, error.to_string()));
                self.hints.extend(error.hint());
            }
        }
        if let (Prepared::Moves(action_plan), true) = (prepared, committed.observed) {
            let changed = action_plan
                .plan
                .changes
                .iter()
                .filter(|change| !change.unchanged);
            let rolling = changed.map(|change| {
                let revision = change.number().unwrap_or_default() + 1;
                Rolling::new(change.key(), revision, &change.to.name)
            });
            self.rolling.extend(rolling);
        }
    }

    fn refused(&mut self, refused: &Refused) {
        let why = refused.why.iter().map(|why| (false, why.clone()));
        self.lines.extend(why);
        self.hints.extend(refused.hints.iter().cloned());
    }

    /// Returns the component and the environment of every change that an undo would reverse.
    pub fn undone(&self, prepared: &Prepared) -> Vec<(String, String)> {
        let changes = prepared.plan().map_or(&[][..], |plan| &plan.changes);
        let is_made = |change: &&Change| match self.commit {
            Some(_) => !change.unchanged,
            None => self.rolling.iter().any(|one| one.pin == *change.key()),
        };
        let made = changes.iter().filter(is_made);
        made.map(|change| (change.name.clone(), change.environment.clone()))
            .collect()
    }

    /// Returns whether all changes succeeded.
    pub fn is_done(&self) -> bool {
        self.lines.iter().all(|(done, _)| *done)
    }

    /// Returns the outcome in one line.
    pub fn words(&self) -> String {
        let failed = self.lines.iter().find(|(done, _)| !done);
        let said = failed.or(self.lines.first());
        said.map(|(_, words)| words.clone()).unwrap_or_default()
    }

    /// Returns the state of the task.
    pub fn task(&self) -> tasks::State {
        match (self.is_done(), self.rolling.is_empty()) {
            (false, _) => tasks::State::Failed(self.words()),
            (true, true) => tasks::State::Done(self.words()),
            (true, false) => tasks::State::Rolling(self.rolling.clone()),
        }
    }

    /// Returns the line for the command log.
    pub fn logged(&self, task: &Task, at: Timestamp) -> Logged {
        Logged {
            at,
            bowline: task.order.command_lines(task.reason.as_deref()),
            kubectl: match &self.commit {
                Some(commit) => vec![format!("git show {commit}")],
                None => task.prepared.kubectl(),
            },
            outcome: self.words(),
        }
    }
}

/// Returns the reason why a plan changes nothing.
pub(super) fn already(prepared: &Prepared) -> &'static str {
    match prepared {
        Prepared::Collection(_) => {
            "Nothing can be deleted: all objects are in use, among the newest, or too young"
        }
        Prepared::Mark(marking) => match marking.verdict {
            Verdict::Bad => "Already marked bad",
            Verdict::Good => "Already marked good",
        },
        Prepared::Moves(action_plan) => match action_plan.plan.action {
            Action::Pin => "Already pinned with the same hold",
            Action::Unpin => "Already unpinned",
            Action::Undo => "Nothing to undo: it is already as it was before",
            _ => "Already running this release",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::Plan;
    use crate::subjects::release_pin::fixture;
    use crate::subjects::release_pin::planner::ActionPlan;

    /// Returns a plan of an action that leaves cart at its release.
    fn prepared(action: Action) -> Prepared {
        let change = fixture::change("cart", "staging", "cart-v2");
        Prepared::Moves(Box::new(ActionPlan::of(Plan {
            action,
            operation: "one".to_owned(),
            at: fixture::now(),
            reason: None,
            changes: vec![change],
        })))
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
            let prepared = prepared(action);
            for (applied, expected) in [(Applied::Done(2), done), (Applied::Unchanged, idle)] {
                let outcome = Outcome::of(&prepared, &Became::Moved(vec![Ok(applied)]));
                assert_eq!(outcome.words(), expected);
            }
        }
    }
}
