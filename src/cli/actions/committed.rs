//! The part of the verbs on ReleasePins that is only for repositories, where a plan becomes one commit.

use crate::Outcome;
use crate::commits::{push_again, told};
use crate::engine::diff::Diff;
use crate::engine::plan::Plan;
use crate::error::{Error, Exit};
use crate::gitops::propose::{Committed, Proposal};
use crate::subjects::service::PlannedCommand;

use super::Session;
use super::applied::{Became, Result};
use super::shown::{self, Files};

impl Session<'_> {
    /// Handles a plan that changes nothing: prints the plan. If the user gave `--push`, also pushes the commits of an
    /// earlier run.
    pub(super) async fn push_again(
        &self,
        planned: &PlannedCommand,
        shown: &[Option<Diff>],
        say: &mut dyn FnMut(String),
    ) -> std::result::Result<Outcome, Error> {
        let exit = push_again(&self.connection, say).await;
        let plan = super::plan_of(planned);
        let became = became(plan, exit, |_| Result::Unchanged);
        let text = shown::done(plan, shown, &became, None, self.changes.output);
        Ok(Outcome::ending(text, exit).made())
    }

    /// Prints the result of a commit. If the user gave `--wait`, then waits until the changes are ready.
    pub(super) async fn committed(
        &mut self,
        plan: &Plan,
        shown: &[Option<Diff>],
        proposal: &Proposal,
        committed: &Committed,
        say: &mut dyn FnMut(String),
    ) -> std::result::Result<Outcome, Error> {
        let mut exit = told(committed, say);
        let became = became(plan, exit, |change| {
            match (change.unchanged, committed.made.here) {
                (true, _) => Result::Unchanged,
                (false, true) => Result::Done(change.number().unwrap_or_default() + 1),
                (false, false) => Result::Committed,
            }
        });
        if self.changes.wait && exit == Exit::Done {
            let patience = self.changes.timeout;
            let waited = super::waiting::wait(&mut self.feed, plan, &became, patience, say).await;
            exit = super::ended(waited, say);
        }
        let files = Files {
            proposal,
            made: &committed.made,
        };
        let format = self.changes.output;
        let text = shown::done(plan, shown, &became, Some(&files), format);
        Ok(Outcome::ending(text, exit).made())
    }
}

fn became(
    plan: &Plan,
    exit: Exit,
    result: impl Fn(&crate::engine::plan::Change) -> Result,
) -> Became {
    Became {
        results: plan.changes.iter().map(result).collect(),
        exit,
        interrupted: false,
    }
}
