//! The same actions on a repository: prints the plan with the changes in the files, and writes it as one
//! commit.

use crate::cli::Outcome;
use crate::cli::commits::{push_again, told};
use crate::cli::error::{Error, Exit};
use crate::engine::diff::Diff;
use crate::engine::plan::Plan;
use crate::subjects::release_pin::planner::ActionPlan;
use crate::subjects::release_pin::repository::{self, Commits};

use super::Session;
use super::applied::{Became, Result};
use super::shown::{self, Files};

impl Session<'_> {
    /// Prints a plan with its file changes, asks for a confirmation if it needs one, and commits.
    pub(super) async fn commit(
        &mut self,
        action_plan: ActionPlan,
        shown: &[Option<Diff>],
        say: &mut dyn FnMut(String),
    ) -> std::result::Result<Outcome, Error> {
        let plan = &action_plan.plan;
        let format = self.changes.output;
        let (proposal, changing) = {
            let commits = self.commits();
            let tree = &commits.repository.tree;
            let proposal = repository::plan(tree, plan, action_plan.unmade())?;
            proposal.warnings.iter().cloned().for_each(&mut *say);
            commits.admits(&proposal).await?;
            let changing = plan.changes.iter().any(|change| !change.unchanged);
            if !changing && !self.changes.dry_run {
                let exit = push_again(Some(&commits), say).await?;
                let became = became(plan, exit, |_| Result::Unchanged);
                let text = shown::done(plan, shown, &became, None, format);
                return Ok(Outcome::ending(text, exit).made());
            }
            (proposal, changing)
        };
        if self.changes.dry_run {
            let text = shown::planned(plan, shown, Some(&proposal), format);
            return Ok(match changing {
                false => Outcome::done(text),
                true => Outcome::changes(text),
            });
        }
        self.confirm(plan, shown, Some(&proposal))?;
        let clock = self.server.clock();
        let committed = {
            let commits = self.commits();
            commits.moves(&action_plan, &proposal, &clock).await?
        };
        let mut exit = told(&committed, say);
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
            proposal: &proposal,
            made: &committed.made,
        };
        let text = shown::done(plan, shown, &became, Some(&files), format);
        Ok(Outcome::ending(text, exit).made())
    }

    fn commits(&self) -> Commits<'_> {
        Commits::of(&self.connection).expect("BUG: only a repository is committed to")
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
