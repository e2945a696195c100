//! Publishes a plan of any kind of subject: makes its changes effective.
//!
//! On a server, each change is one write by compare-and-swap, and then its audit entry. In a repository, all
//! changes of a plan are one commit, which is also their record. Callers do not ask which of the two it is.

mod commit;
mod facts;
mod mark;
mod server;
mod swap;

use std::sync::atomic::AtomicBool;

use kube::Client;

use super::plan::Plan;
use super::whoami::Clock;
use crate::connect::Connection;
use crate::gitops::propose::{Commits, Committed, NewObject, NotCommitted, Proposal};

pub use server::{Applied, ApplyError, apply, apply_all};

/// A published plan.
#[derive(Debug)]
pub enum Published {
    /// The changes were sent to a server; one result per change.
    Written(Vec<Result<Applied, ApplyError>>),
    /// The changes are a commit.
    Committed {
        /// The edits of the commit.
        proposal: Proposal,
        /// The commit, and its push.
        committed: Box<Committed>,
    },
}

/// Publishes plans to the target of a connection.
pub struct Publisher<'a> {
    client: &'a Client,
    commits: Option<Commits<'a>>,
}

impl<'a> Publisher<'a> {
    /// Publishes to the target of a connection.
    pub fn of(connection: &'a Connection) -> Self {
        Self {
            client: &connection.client,
            commits: Commits::of(connection),
        }
    }

    /// Returns the commit that the plan becomes, with new objects that it needs; None on a server, where the caller
    /// creates these objects first. Does not check whether the commit can be made now.
    pub fn propose(
        &self,
        plan: &Plan,
        new: Option<NewObject>,
    ) -> Result<Option<Proposal>, NotCommitted> {
        let Some(commits) = &self.commits else {
            return Ok(None);
        };
        Ok(Some(commit::propose(&commits.repository.tree, plan, new)?))
    }

    /// Publishes a plan, with new objects that it needs. `shown` is the commit that the user has confirmed. Starts no
    /// further write after `abort` is set; a commit is not interrupted.
    pub async fn publish(
        &self,
        plan: &Plan,
        new: Option<NewObject>,
        shown: Option<&Proposal>,
        clock: Clock<'_>,
        abort: &AtomicBool,
    ) -> Result<Published, NotCommitted> {
        let Some(commits) = &self.commits else {
            let results = apply_all(self.client, plan, clock, abort).await;
            return Ok(Published::Written(results));
        };
        let creates = new.is_some();
        // The files are edited again: the user may have typed a reason after the front end showed the commit.
        let proposal = commit::propose(&commits.repository.tree, plan, new)?;
        proposal.check_shown(shown)?;
        commits.repository.sync().await?;
        // The read model cannot have the facts about an object that the same commit creates.
        if !creates
            && let Some(what) = server::broken(self.client, plan, clock)
                .await?
                .into_iter()
                .next()
        {
            return Err(NotCommitted::Stale(what));
        }
        let committed = commits.commit(&proposal).await?;
        Ok(Published::Committed {
            proposal,
            committed: Box::new(committed),
        })
    }
}
