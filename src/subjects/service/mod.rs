//! The steps from a command to its result, which the command line and the terminal UI share.
//!
//! A front end builds a [`Command`] from the input of the user and shows its [`PlannedCommand`]. After the user has
//! confirmed, it passes the plan to this module as [`Confirmed`]. This module does not ask the user or print.

mod command;
mod named;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use command::{Command, PlannedCommand};

use super::release_pin::actions::gc::Candidate;
use super::release_pin::actions::{gc, mark};
use super::release_pin::collect::{self, CollectError, Collected, Collector};
use super::release_pin::marking::{self, MarkError, Marked};
use super::release_pin::planner::{ActionPlan, NotPlanned, Planner};
use super::release_pin::preview::PreviewError;
use super::release_pin::repository;
use crate::connect::Connection;
use crate::engine::confirmation::Accepted;
use crate::engine::diff::{self, Diff};
use crate::engine::plan::Asked;
use crate::engine::publish::{Applied, ApplyError, Published, Publisher};
use crate::engine::whoami::Clock;
use crate::engine::world::feed::Feed;
use crate::gitops::propose::{Commits, Committed, NotCommitted, Proposal};
use crate::resolve::git::Git;

/// How long gc waits after it deletes a release, to see whether a new ReleasePin names the release. If so, gc creates
/// the release again.
const REMEMBERS: Duration = Duration::from_secs(1);

/// Plans and applies commands in one namespace of a target.
pub struct Service<'a> {
    pub connection: &'a Connection,
    /// The read model of the namespace, filled by watches.
    pub feed: &'a Feed,
    /// The reader that resolves the git references in releases.
    pub git: &'a Git,
}

/// A plan that the user has confirmed, exactly as the front end showed it.
#[derive(Clone, Debug)]
pub struct Confirmed {
    pub planned: Box<PlannedCommand>,
    /// The files that the commit changes; None if the target is no repository.
    pub files: Option<Arc<Proposal>>,
    /// Whether the user answered on a terminal. Otherwise a flag confirmed, which allows no writes on a protected
    /// context.
    answered: bool,
}

impl Confirmed {
    /// Combines a plan with the answer of the user. If the user typed a reason, it becomes the reason of the plan.
    pub fn new(
        mut planned: Box<PlannedCommand>,
        files: Option<Arc<Proposal>>,
        accepted: Accepted,
    ) -> Self {
        if accepted.reason.is_some() {
            planned.because(accepted.reason);
        }
        Self {
            planned,
            files,
            answered: accepted.answered,
        }
    }
}

/// The result of applying a plan.
#[derive(Debug)]
pub enum Outcome {
    /// bowline applied a plan of changes.
    Changed {
        /// The name of the new release that bowline created first; None if the plan needed none.
        created: Option<String>,
        /// The result of each change, in the order of the plan.
        results: Vec<Result<Applied, ApplyError>>,
    },
    /// bowline applied the plan of a mark. Contains the result.
    Marked(Result<Marked, MarkError>),
    /// bowline applied a gc plan.
    Collected {
        /// The objects of the gc plan that were processed, each with its result.
        results: Vec<(Candidate, Collected)>,
        /// The error that stopped gc before its end; Ok if gc reached its end.
        ended: Result<(), CollectError>,
    },
    /// bowline wrote the plan as a commit in the repository.
    Committed(Box<Committed>),
}

/// The reason why bowline did not apply a plan.
#[derive(Debug, thiserror::Error)]
pub enum NotApplied {
    /// A rule refused the plan, or the new release that the plan needs could not be created.
    #[error(transparent)]
    NotPlanned(#[from] NotPlanned),
    /// The repository refused the commit.
    #[error(transparent)]
    NotCommitted(#[from] NotCommitted),
}

impl From<CollectError> for NotPlanned {
    fn from(error: CollectError) -> Self {
        match error {
            CollectError::Refused(refusal) => refusal.into(),
            CollectError::Target(error) => error.into(),
        }
    }
}

impl Service<'_> {
    fn planner(&self) -> Planner<'_> {
        Planner {
            connection: self.connection,
            feed: self.feed,
            git: self.git,
        }
    }

    pub async fn plan(
        &self,
        command: &Command,
        asked: &Asked,
    ) -> Result<PlannedCommand, NotPlanned> {
        Ok(match command {
            Command::Change(order) if named::is_named(order) => {
                let action_plan = named::plan(self.connection, order, asked).await?;
                PlannedCommand::Changes(Box::new(action_plan))
            }
            Command::Change(order) => {
                let action_plan = self.planner().action_plan(order, asked).await?;
                PlannedCommand::Changes(Box::new(action_plan))
            }
            Command::Mark(command) => {
                PlannedCommand::Mark(mark::plan(&self.feed.world(), command, asked)?)
            }
            Command::Collect(command) => {
                let collection = gc::plan(&self.feed.world(), command, asked)?;
                if self.connection.repository.is_none() {
                    let Connection {
                        client, namespace, ..
                    } = self.connection;
                    collect::check_rendered(client, namespace).await?;
                }
                PlannedCommand::Collection(collection)
            }
        })
    }

    /// Returns the files that the plan changes, and checks that they can be committed now. None if the target is no
    /// repository.
    pub async fn files(&self, planned: &PlannedCommand) -> Result<Option<Proposal>, NotCommitted> {
        let proposal = self.proposal(planned)?;
        if let (Some(proposal), Some(commits)) = (&proposal, Commits::of(self.connection)) {
            commits.admits(proposal).await?;
        }
        Ok(proposal)
    }

    /// Returns the files that the plan changes, without a check whether they can be committed. For a dry run. None if
    /// the target is no repository.
    pub fn proposal(&self, planned: &PlannedCommand) -> Result<Option<Proposal>, NotCommitted> {
        let Some(repository) = &self.connection.repository else {
            return Ok(None);
        };
        let tree = &repository.tree;
        Ok(match planned {
            PlannedCommand::Changes(action_plan) => {
                let publisher = Publisher::of(self.connection);
                publisher.propose(&action_plan.plan, action_plan.new_object())?
            }
            PlannedCommand::Mark(marking) => Some(repository::marking(tree, marking)?),
            PlannedCommand::Collection(collection) => {
                Some(repository::collection(tree, collection)?.proposal)
            }
        })
    }

    /// Renders the manifests of each change and returns the diffs; see [`Planner::show`].
    pub async fn show(
        &self,
        action_plan: &mut ActionPlan,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        match action_plan.differences(options) {
            Some(shown) => Ok(shown),
            None => self.planner().show(action_plan, options).await,
        }
    }

    /// Renders the diffs like [`Service::show`], but also fetches the git references. For a dry run, which may be
    /// slow.
    pub async fn show_fetched(
        &self,
        action_plan: &mut ActionPlan,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        self.planner().show_fetched(action_plan, options).await
    }

    /// Applies a confirmed plan. `user` is the user name that the server knows. After `abort` is set, no further
    /// change or deletion is started. The created release and the committed files are added to `confirmed`.
    pub async fn apply(
        &self,
        confirmed: &mut Confirmed,
        user: &str,
        clock: Clock<'_>,
        abort: &AtomicBool,
    ) -> Result<Outcome, NotApplied> {
        // The connection refuses writes to a protected context. So the writes of this confirmed plan use a copy that
        // allows them.
        let connection = match confirmed.answered {
            true => self.connection.for_confirmed_plan(),
            false => self.connection.clone(),
        };
        let shown = confirmed.files.take();
        let commits = Commits::of(&connection);
        let outcome = match (&mut *confirmed.planned, commits) {
            (PlannedCommand::Changes(action_plan), _) => {
                let asked = Asked {
                    operation: action_plan.plan.operation.clone(),
                    now: clock(),
                    user: user.to_owned(),
                    reason: action_plan.plan.reason.clone(),
                    namespace: connection.namespace.clone(),
                };
                let planner = Planner {
                    connection: &connection,
                    ..self.planner()
                };
                let created = planner.make(action_plan, &asked).await?;
                let (plan, new) = (&action_plan.plan, action_plan.new_object());
                let publisher = Publisher::of(&connection);
                let published = publisher.publish(plan, new, shown.as_deref(), clock, abort);
                match published.await? {
                    Published::Written(results) => Outcome::Changed { created, results },
                    Published::Committed {
                        proposal,
                        committed,
                    } => {
                        confirmed.files = Some(Arc::new(proposal));
                        Outcome::Committed(committed)
                    }
                }
            }
            (PlannedCommand::Mark(marking), None) => {
                Outcome::Marked(marking::mark(&connection.client, marking, user, clock).await)
            }
            (PlannedCommand::Mark(marking), Some(commits)) => {
                let proposal = repository::marking(&commits.repository.tree, marking)
                    .map_err(NotCommitted::from)?;
                proposal.check_shown(shown.as_deref())?;
                let committed = commits.commit(&proposal).await?;
                confirmed.files = Some(Arc::new(proposal));
                Outcome::Committed(Box::new(committed))
            }
            (PlannedCommand::Collection(plan), None) => {
                let collector = Collector {
                    client: &connection.client,
                    plan,
                    by: user,
                    clock,
                    remembers: REMEMBERS,
                };
                let mut results = Vec::new();
                let mut tell = |candidate: &Candidate, collected| {
                    results.push((candidate.clone(), collected));
                };
                let stop = || abort.load(Ordering::SeqCst);
                let ended = collector.collect(&stop, &mut tell).await;
                Outcome::Collected { results, ended }
            }
            (PlannedCommand::Collection(plan), Some(commits)) => {
                let collected = repository::collection(&commits.repository.tree, plan)
                    .map_err(NotCommitted::from)?;
                collected.proposal.check_shown(shown.as_deref())?;
                let committed =
                    repository::collect(&commits, &connection.client, &collected).await?;
                confirmed.files = Some(Arc::new(collected.proposal));
                Outcome::Committed(Box::new(committed))
            }
        };
        Ok(outcome)
    }
}
