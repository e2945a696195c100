//! The same actions on a repository: shown with what changes in the files, carried out as one commit.

use crate::cli::Outcome;
use crate::cli::commits::Commits;
use crate::cli::error::{Error, Exit};
use crate::cli::output::Format;
use crate::engine::apply;
use crate::engine::desk::Draft;
use crate::engine::diff::Diff;
use crate::engine::plan::Plan;
use crate::engine::repository;

use super::applied::{Became, Result};
use super::{Session, shown};

impl Session<'_> {
    /// Shows a plan with its files, asks where that is due, and commits.
    pub(super) async fn commit(
        &mut self,
        draft: Draft,
        shown: &[Option<Diff>],
        say: &mut dyn FnMut(String),
    ) -> std::result::Result<Outcome, Error> {
        let plan = &draft.plan;
        let commits = Commits::of(&self.connection, self.options)?
            .expect("BUG: only a repository is committed to");
        let tree = &commits.repository.tree.clone();
        let unmade = draft.unmade();
        let proposal = repository::plan(tree, plan, unmade)?;
        proposal.warnings.iter().cloned().for_each(&mut *say);
        let changing = plan.items.iter().filter(|item| !item.unchanged).count();
        let format = self.changes.output;
        let files = match format {
            Format::Table | Format::Wide => proposal.diff(),
            _ => String::new(),
        };
        if self.changes.dry_run {
            let text = shown::planned(plan, shown, format) + &files;
            return Ok(match changing {
                0 => Outcome::done(text),
                _ => Outcome::changes(text),
            });
        }
        if changing == 0 {
            let exit = commits.push_again(say).await?;
            let became = became(plan, exit, |_| Result::Unchanged);
            return Ok(Outcome::ending(
                shown::done(plan, shown, &became, format),
                exit,
            ));
        }
        self.confirm(plan, shown, &files)?;
        let commits = Commits::of(&self.connection, self.options)?
            .expect("BUG: only a repository is committed to");
        commits
            .repository
            .sync()
            .await
            .map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        if unmade.is_none() {
            let clock = self.server.clock();
            let broken = apply::broken(&self.connection.client, plan, &clock).await?;
            if let Some(what) = broken.first() {
                let message = format!("{what}, so nothing was done");
                return Err(Error::new(Exit::Conflict, message));
            }
        }
        let (made, mut exit) = commits.commit(&proposal, say).await?;
        let here = {
            let repository = commits.repository.clone();
            let state = tokio::task::spawn_blocking(move || repository.state()).await;
            let state = state.map_err(|error| Error::new(Exit::Failed, error.to_string()))??;
            state.branch.as_deref() == Some(made.branch.as_str())
        };
        let became = became(plan, exit, |item| match (item.unchanged, here) {
            (true, _) => Result::Unchanged,
            (false, true) => Result::Done(item.generation.unwrap_or_default() + 1),
            (false, false) => Result::Committed,
        });
        if self.changes.wait && exit == Exit::Done {
            let patience = self.changes.timeout;
            exit = super::waiting::wait(&mut self.feed, plan, &became, patience, say).await;
        }
        Ok(Outcome::ending(
            shown::done(plan, shown, &became, format),
            exit,
        ))
    }
}

fn became(
    plan: &Plan,
    exit: Exit,
    result: impl Fn(&crate::engine::plan::Item) -> Result,
) -> Became {
    Became {
        results: plan.items.iter().map(result).collect(),
        exit,
        interrupted: false,
    }
}
