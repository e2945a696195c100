//! Publishes a plan for any kind of subject: makes its changes effective.
//!
//! On a server, each change is one write by compare-and-swap, and then its audit entry is written. In a repository,
//! all changes of a plan are one commit, which is also their record. The callers are the same for a server and a
//! repository.

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

/// The result of publishing a plan.
#[derive(Debug)]
pub enum Published {
    /// bowline sent the changes to a server. Contains one result per change, in the order of the plan.
    Written(Vec<Result<Applied, ApplyError>>),
    /// bowline wrote the changes as one commit.
    Committed {
        /// The edits of the commit.
        proposal: Proposal,
        /// The result of the commit and of its push.
        committed: Box<Committed>,
    },
}

/// Publishes plans to the target of a connection.
pub struct Publisher<'a> {
    client: &'a Client,
    commits: Option<Commits<'a>>,
}

impl<'a> Publisher<'a> {
    /// Creates a publisher for the target of a connection.
    pub fn of(connection: &'a Connection) -> Self {
        Self {
            client: &connection.client,
            commits: Commits::of(connection),
        }
    }

    /// Returns the commit for a plan in a repository; None on a server. `new` is an object that the commit also
    /// creates, such as a release. The function does not check whether the commit can be made now.
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

    /// Publishes a plan. In a repository, `new` is an object that the commit also creates, and `shown` is the commit
    /// that the user has confirmed. After `abort` is set, no further change is written to a server; a commit is not
    /// interrupted.
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
        // Edit the files again, because the user may have typed a reason after the commit was shown.
        let proposal = commit::propose(&commits.repository.tree, plan, new)?;
        proposal.check_shown(shown)?;
        commits.repository.sync().await?;
        // The read model does not contain an object that the same commit creates, so its facts cannot be checked.
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
