//! From a proposal to its commit and its push: the steps that both front ends share.
//!
//! Nothing here asks or prints: what should be known comes back.

use std::collections::BTreeSet;

use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::{Collected, Proposal, ProposeError, Unfounded, propose};
use crate::api::ReleasePin;
use crate::connect::{Connection, Repository};
use crate::embedded::tree::TreeError;
use crate::engine::desk::Draft;
use crate::engine::whoami::Clock;
use crate::engine::{apply, pages};
use crate::git::commit::{CommitError, Made};
use crate::git::push::PushError;
use crate::git::{GitError, WorkTree, check_branch_name};
use crate::text;

/// The repository of a connection, and what the flags say of commits.
pub struct Commits<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// Reads what the files say.
    client: &'a Client,
    readonly: Option<&'a str>,
}

/// What is done about the remote before a plan whose commit is to be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforePlan {
    /// Fetch, and refuse where the remote has commits that are not here.
    Fetch,
    /// Only find out which remote it is: a rollback does not wait for the network.
    NameRemote,
}

/// A commit that was made, and what became of it.
#[derive(Debug)]
pub struct Committed {
    /// The commit, as it was read back.
    pub made: Made,
    /// Whether a cluster beside the repository tells how it rolls out.
    pub observed: bool,
    /// Notes about an interrupted commit, about hooks, and about faults after the commit.
    pub notes: Vec<String>,
    /// Where it was pushed to, or why not; None where nobody wanted that.
    pub pushed: Option<Result<Pushed, NotCommitted>>,
}

impl Committed {
    /// Returns as much of the commit's id as people write.
    pub fn short(&self) -> &str {
        self.made.commit.get(..12).unwrap_or(&self.made.commit)
    }

    /// Says what was done.
    pub fn words(&self) -> String {
        let (short, branch) = (self.short(), &self.made.branch);
        let subject = text::line(&self.made.subject);
        format!("committed {short} on {branch}: {subject}")
    }
}

/// A branch that was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The branch.
    pub branch: String,
    /// Where to.
    pub remote: String,
}

impl Pushed {
    /// Says what was done.
    pub fn words(&self) -> String {
        format!("pushed {} to {}", self.branch, self.remote)
    }
}

/// Why nothing was committed, or the commit was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// Nothing may be written here.
    #[error("read-only: {0}")]
    ReadOnly(String),
    /// A file does not let itself be edited.
    #[error(transparent)]
    Propose(#[from] ProposeError),
    /// Git, or the state of the work tree, does not let it.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// What the plan rests on is no more.
    #[error("{0}, so nothing was changed")]
    Stale(String),
    /// The branch does not have what the commit would rest on.
    #[error(transparent)]
    Unfounded(#[from] Unfounded),
    /// The remote has commits that are not here, so the next push would be rejected.
    #[error("{remote} is {commits} {} ahead on {branch}, so nothing was changed", noun(*.commits))]
    Behind {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// How many.
        commits: u64,
        /// What brings them here.
        way: String,
    },
    /// What the remote has could not be looked at.
    #[error("{0}, so nothing was changed")]
    Unseen(PushError),
    /// The branch could not be pushed.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The files could not be read.
    #[error(transparent)]
    Files(#[from] TreeError),
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
    /// The work was given up while the program ends.
    #[error("interrupted: {0}")]
    Interrupted(String),
}

/// Says which pin names what goes.
fn named(pins: &[ReleasePin], collected: &Collected<'_>) -> Option<String> {
    let going = collected.going.iter().map(|found| &found.key);
    let going: BTreeSet<(&str, &str)> = going.map(|key| (&*key.namespace, &*key.name)).collect();
    pins.iter().find_map(|pin| {
        let namespace = pin.metadata.namespace.as_deref().unwrap_or_default();
        let mut named = pin.spec.named_releases();
        let release = named.find(|release| going.contains(&(namespace, release)))?;
        let pin = pin.name_any();
        Some(format!(
            "{pin} names {release} now; it changed after the plan was made"
        ))
    })
}

fn noun(commits: u64) -> &'static str {
    if commits == 1 { "commit" } else { "commits" }
}

/// Says how what a remote has of a branch comes here.
fn catch_up(work: &WorkTree, remote: &str, branch: &str) -> Result<String, GitError> {
    let quoted = text::quoted;
    let pull = format!("git pull --rebase {} {}", quoted(remote), quoted(branch));
    if work.state()?.branch.as_deref() == Some(branch) {
        return Ok(pull);
    }
    let own = format!("refs/heads/{branch}");
    let apart = work.commit_of(&own)?.is_some() && !work.is_within(&own, "FETCH_HEAD")?;
    Ok(match apart {
        true => format!("git switch {} and {pull}", quoted(branch)),
        false => {
            let refs = quoted(&format!("{branch}:{branch}"));
            format!("git fetch {} {refs}", quoted(remote))
        }
    })
}

impl From<GitError> for NotCommitted {
    fn from(error: GitError) -> Self {
        Self::Commit(CommitError::Git(error))
    }
}

impl NotCommitted {
    /// Says what the person can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Propose(error) => error.hint().map(str::to_owned),
            Self::Commit(error) => error.hint(),
            Self::Push(error) => error.hint(),
            Self::Unfounded(unfounded) => Some(unfounded.hint()),
            Self::Behind { way, .. } => Some(format!("{way}, then run the command again")),
            Self::Unseen(PushError::Unreachable { .. }) => {
                Some("try again, or leave out --push and push the commit later".to_owned())
            }
            Self::Unseen(error) => error.hint(),
            _ => None,
        }
    }
}

impl<'a> Commits<'a> {
    /// Finds the repository of a connection.
    pub fn of(connection: &'a Connection) -> Option<Self> {
        Some(Self {
            repository: connection.repository.as_ref()?,
            client: &connection.client,
            readonly: connection.readonly.as_deref(),
        })
    }

    /// Does what comes before a plan: reads all files, clears up after an interrupted action, and, where the
    /// commit is to be pushed, looks at the remote as `remote` says. Returns a message about the interrupted
    /// action.
    pub async fn begin(&self, remote: BeforePlan) -> Result<Option<String>, NotCommitted> {
        self.repository.whole().await?;
        if self.readonly.is_some() {
            return Ok(None);
        }
        let recovered = self.recover().await?;
        match (self.repository.push, remote) {
            (false, _) => {}
            (true, BeforePlan::Fetch) => self.fetch().await?,
            (true, BeforePlan::NameRemote) => self.name_remote().await?,
        }
        Ok(recovered)
    }

    /// Refuses a remote that does not exist; does not ask the remote.
    async fn name_remote(&self) -> Result<(), NotCommitted> {
        let Some(branch) = self.branch().await? else {
            return Ok(());
        };
        let named = self.repository.remote.clone();
        self.with_git(move |work| Ok(work.remote(named.as_deref(), &branch).map(drop)?))
            .await
    }

    async fn recover(&self) -> Result<Option<String>, NotCommitted> {
        if self.repository.tree.work().interrupted().is_none() {
            return Ok(None);
        }
        let interrupted = self
            .with_git(|work| {
                let (turn, interrupted) = work.turn()?;
                drop(turn);
                Ok::<_, NotCommitted>(interrupted)
            })
            .await?;
        self.repository.sync().await?;
        Ok(interrupted.map(|interrupted| interrupted.to_string()))
    }

    /// Refuses where the remote has commits that are not here.
    async fn fetch(&self) -> Result<(), NotCommitted> {
        let Some(branch) = self.branch().await? else {
            return Ok(());
        };
        let named = self.repository.remote.clone();
        self.with_git(move |work| {
            let remote = work.remote(named.as_deref(), &branch)?;
            match work.fetch(&remote, &branch) {
                Ok(0) => Ok(()),
                Ok(commits) => Err(NotCommitted::Behind {
                    way: catch_up(work, &remote, &branch)?,
                    remote,
                    branch,
                    commits,
                }),
                Err(error) => Err(NotCommitted::Unseen(error)),
            }
        })
        .await
    }

    /// Returns the branch that commits go to; None where none is checked out.
    async fn branch(&self) -> Result<Option<String>, NotCommitted> {
        match &self.repository.branch {
            Some(branch) => {
                check_branch_name(branch)?;
                Ok(Some(branch.clone()))
            }
            None => {
                let state = self.with_git(|work| Ok::<_, NotCommitted>(work.state()?));
                Ok(state.await?.branch)
            }
        }
    }

    /// Refuses what could not be committed as things stand, and what is called done and is not committed.
    pub async fn admits(&self, proposal: &Proposal) -> Result<(), NotCommitted> {
        let (own, branch) = (proposal.clone(), self.repository.branch.clone());
        self.with_git(move |work| {
            let branch = branch.as_deref();
            if !own.edits.is_empty() {
                work.admits(&own.wanted(branch))?;
            }
            own.grounds.check(work, branch)
        })
        .await
    }

    /// Commits moves of pins, if what they rest on still holds.
    pub async fn moves(
        &self,
        draft: &Draft,
        proposal: &Proposal,
        clock: Clock<'_>,
    ) -> Result<Committed, NotCommitted> {
        self.repository.sync().await?;
        if draft.unmade().is_none() {
            let broken = apply::broken(self.client, &draft.plan, clock).await?;
            if let Some(what) = broken.into_iter().next() {
                return Err(NotCommitted::Stale(what));
            }
        }
        self.commit(proposal).await
    }

    /// Commits a collection, if still no pin names what goes.
    pub async fn collection(&self, collected: &Collected<'_>) -> Result<Committed, NotCommitted> {
        self.repository.sync().await?;
        propose::all_is_read(&self.repository.tree)?;
        let pins: Api<ReleasePin> = Api::all(self.client.clone());
        let pins = pages::all(&pins, ListParams::default(), pages::PAGE).await?;
        if let Some(what) = named(&pins, collected) {
            return Err(NotCommitted::Stale(what));
        }
        self.commit(&collected.proposal).await
    }

    /// Makes a commit, serves what the files say then, and pushes it where that was asked for.
    pub async fn commit(&self, proposal: &Proposal) -> Result<Committed, NotCommitted> {
        self.writable()?;
        let (own, branch) = (proposal.clone(), self.repository.branch.clone());
        let (made, interrupted) = self
            .with_git(move |work| {
                let (turn, interrupted) = work.turn()?;
                own.grounds.check(work, branch.as_deref())?;
                let made = turn.commit(&own.wanted(branch.as_deref()))?;
                Ok::<_, NotCommitted>((made, interrupted))
            })
            .await?;
        // The commit is made: a fault from here on is a warning.
        let unread = self.repository.sync().await.err();
        let unread = unread.map(|error| {
            format!(
                "warning: the commit was made, and bowline could not read the files again: {error}"
            )
        });
        let pushed = match self.repository.push {
            true => Some(self.push_branch(None, made.branch.clone()).await),
            false => None,
        };
        let interrupted = interrupted.iter().map(ToString::to_string);
        let by_hooks = made.notes.iter().map(ToString::to_string);
        Ok(Committed {
            observed: made.here && self.repository.beside.is_some(),
            notes: interrupted.chain(by_hooks).chain(unread).collect(),
            made,
            pushed,
        })
    }

    /// Pushes the branch that commits go to.
    pub async fn push(&self, remote: Option<&str>) -> Result<Pushed, NotCommitted> {
        self.writable()?;
        let branch = self.branch().await?.ok_or(CommitError::Detached)?;
        self.push_branch(remote, branch).await
    }

    async fn push_branch(
        &self,
        remote: Option<&str>,
        branch: String,
    ) -> Result<Pushed, NotCommitted> {
        let named = remote.map(str::to_owned);
        let named = named.or_else(|| self.repository.remote.clone());
        self.with_git(move |work| {
            let remote = work.remote(named.as_deref(), &branch)?;
            match work.push(&remote, &branch) {
                Ok(()) => Ok(Pushed { branch, remote }),
                Err(error) => {
                    // Who goes on from here needs what the remote has; that it was rejected is what counts.
                    if matches!(error, PushError::Rejected { .. }) {
                        let _ = work.fetch(&remote, &branch);
                    }
                    Err(error.into())
                }
            }
        })
        .await
    }

    fn writable(&self) -> Result<(), NotCommitted> {
        match self.readonly {
            Some(why) => Err(NotCommitted::ReadOnly(why.to_owned())),
            None => Ok(()),
        }
    }

    /// Lets git work beside everything else.
    async fn with_git<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WorkTree) -> Result<T, NotCommitted> + Send + 'static,
    ) -> Result<T, NotCommitted> {
        let tree = self.repository.tree.clone();
        let working = tokio::task::spawn_blocking(move || work(tree.work()));
        let worked = working.await;
        worked.map_err(|error| NotCommitted::Interrupted(error.to_string()))?
    }
}
