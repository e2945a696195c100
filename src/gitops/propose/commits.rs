//! The steps from a [`Proposal`] to its commit and push, which the command line and the terminal UI share.
//!
//! This module does not ask the user or print. It returns notes, which the front ends show.

use super::{Proposal, ProposeError};
use crate::connect::{Connection, Repository};
use crate::git::commit::{CommitError, Made};
use crate::git::push::PushError;
use crate::git::{GitError, Pending, WorkTree, check_branch_name};
use crate::gitops::facts::BrokenFact;
use crate::gitops::tree::TreeError;
use crate::text;

/// Makes commits in the repository of a connection, with the options of that connection.
pub struct Commits<'a> {
    pub repository: &'a Repository,
    readonly: Option<&'a str>,
}

/// Whether bowline fetches from the git remote before it plans an action. Used only if the commit will be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforePlan {
    /// Fetch the branch from the remote. If the remote has commits that the clone does not have, refuse the action.
    Fetch,
    /// Only check that the remote is configured. This needs no network, so that a rollback is not delayed.
    NameRemote,
}

/// A commit that bowline made, with the result of its push.
#[derive(Debug)]
pub struct Committed {
    /// The commit, as bowline read it back from the repository.
    pub made: Made,
    /// Whether the user also named a cluster context. Then bowline can observe the rollout in that cluster.
    pub observed: bool,
    /// Notes for the user about this commit: an interrupted action, effects of git hooks, and errors after the
    /// commit.
    pub notes: Vec<String>,
    /// The result of the push; None if the user did not ask bowline to push.
    pub pushed: Option<Result<Pushed, NotCommitted>>,
}

impl Committed {
    /// Returns the first 12 digits of the commit id.
    pub fn short(&self) -> &str {
        self.made.commit.get(..12).unwrap_or(&self.made.commit)
    }

    /// Returns the commit as text for the user.
    pub fn words(&self) -> String {
        let (short, branch) = (self.short(), &self.made.branch);
        let subject = text::line(&self.made.subject);
        format!("committed {short} on {branch}: {subject}")
    }
}

/// A pushed branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    pub branch: String,
    /// The name or the address of the remote that got the branch.
    pub remote: String,
}

impl Pushed {
    pub fn words(&self) -> String {
        format!("pushed {} to {}", self.branch, self.remote)
    }
}

/// The reason why bowline could not make a commit or push it.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// The connection is read-only, so bowline makes no commit. Contains the message for the user.
    #[error("read-only: {0}")]
    ReadOnly(String),
    /// An interrupted action has left its edits in the files. Contains these edits.
    #[error("{0}, so nothing was planned")]
    Pending(Pending),
    /// The plan cannot be converted to edits of files.
    #[error(transparent)]
    Propose(#[from] ProposeError),
    /// git failed, or the state of the work tree forbids the commit.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A fact of the plan is no longer true. Contains its description.
    #[error("{0}, so nothing was changed")]
    Stale(String),
    /// A fact about the branch of the commit is not true.
    #[error(transparent)]
    BrokenFact(#[from] BrokenFact),
    /// The remote has commits that the clone does not have, so the remote would reject the push.
    #[error("{remote} is {commits} {} ahead on {branch}, so nothing was changed", noun(*.commits))]
    Behind {
        remote: String,
        branch: String,
        /// The number of commits that the clone does not have.
        commits: u64,
        /// The command that brings these commits into the clone.
        way: String,
    },
    /// The fetch failed, so bowline does not know whether the remote would reject the push.
    #[error("{0}, so nothing was changed")]
    Unseen(PushError),
    /// The push failed.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The files of the work tree could not be read.
    #[error(transparent)]
    Files(#[from] TreeError),
    /// A request to the API server over the files failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
    /// The user or the system stopped bowline during the commit. Contains the message for the user.
    #[error("interrupted: {0}")]
    Interrupted(String),
}

fn noun(commits: u64) -> &'static str {
    if commits == 1 { "commit" } else { "commits" }
}

/// Returns the command that brings the commits of a remote branch into the clone.
fn catch_up(work: &WorkTree, remote: &str, branch: &str) -> Result<String, GitError> {
    let quoted = text::quoted;
    let pull = format!("git pull --rebase {} {}", quoted(remote), quoted(branch));
    if work.state()?.branch.as_deref() == Some(branch) {
        return Ok(pull);
    }
    let own = format!("refs/heads/{branch}");
    let apart = work.commit_of(&own)?.is_some() && !work.is_within(&own, "FETCH_HEAD")?;
    Ok(match apart {
        true => format!("git switch {} && {pull}", quoted(branch)),
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
    /// Returns the next steps for the user; empty if there are none.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Propose(error) => error.hint().into_iter().collect(),
            Self::Commit(error) => error.hints(),
            Self::Push(error) => error.hints(),
            Self::Pending(pending) => vec![pending.hint()],
            Self::BrokenFact(broken) => vec![broken.hint()],
            Self::Behind { way, .. } => {
                vec![format!("get these commits, then repeat the command: {way}")]
            }
            Self::Unseen(PushError::Unreachable { .. }) => vec![
                "try again when the remote answers".to_owned(),
                "or leave out --push, and push the commit later: git push".to_owned(),
            ],
            Self::Unseen(error) => error.hints(),
            _ => Vec::new(),
        }
    }
}

impl<'a> Commits<'a> {
    /// Returns the writer of commits for a connection; None if its target is no repository.
    pub fn of(connection: &'a Connection) -> Option<Self> {
        Some(Self {
            repository: connection.repository.as_ref()?,
            readonly: connection.readonly.as_deref(),
        })
    }

    /// Prepares for a plan: reads the changed files, and removes the edits of an interrupted action. If the commit
    /// will be pushed, also fetches or checks the remote, as `remote` says. Returns a message if an action was
    /// interrupted.
    ///
    /// In a dry run or on a read-only connection, the function removes no edits, but returns
    /// [`NotCommitted::Pending`] for an interrupted action.
    pub async fn begin(
        &self,
        remote: BeforePlan,
        dry_run: bool,
    ) -> Result<Option<String>, NotCommitted> {
        if let Some(branch) = &self.repository.branch {
            check_branch_name(branch)?;
        }
        self.repository.whole().await?;
        if (dry_run || self.readonly.is_some())
            && let Some(pending) = self.with_git(|work| Ok(work.pending()?)).await?
        {
            return Err(NotCommitted::Pending(pending));
        }
        if self.readonly.is_some() {
            return Ok(None);
        }
        let recovered = match dry_run {
            true => None,
            false => self.recover().await?,
        };
        match (self.repository.push, remote) {
            (false, _) => {}
            (true, BeforePlan::Fetch) => self.fetch().await?,
            (true, BeforePlan::NameRemote) => self.name_remote().await?,
        }
        Ok(recovered)
    }

    /// Returns an error if the remote of the branch is not configured. Does not use the network.
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

    /// Fetches the branch from its remote. Returns an error if the remote has commits that the clone does not have.
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

    /// Returns the name of the branch that gets new commits; None if no branch is checked out.
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

    /// Returns an error if the proposal cannot be committed now. For changes that are already made, also returns an
    /// error if the branch does not contain them.
    pub async fn admits(&self, proposal: &Proposal) -> Result<(), NotCommitted> {
        let (own, branch) = (proposal.clone(), self.repository.branch.clone());
        self.with_git(move |work| {
            let branch = branch.as_deref();
            if !own.edits.is_empty() {
                work.admits(&own.wanted(branch))?;
            }
            match own.facts.broken(work, branch)? {
                Some(broken) => Err(broken.into()),
                None => Ok(()),
            }
        })
        .await
    }

    /// Commits a proposal, and then reads the changed files into the store. Also pushes the branch if the user asked
    /// for this.
    pub async fn commit(&self, proposal: &Proposal) -> Result<Committed, NotCommitted> {
        self.writable()?;
        let (own, branch) = (proposal.clone(), self.repository.branch.clone());
        let (made, interrupted) = self
            .with_git(move |work| {
                let (turn, interrupted) = work.turn()?;
                if let Some(broken) = own.facts.broken(work, branch.as_deref())? {
                    return Err(broken.into());
                }
                let made = turn.commit(&own.wanted(branch.as_deref()))?;
                Ok::<_, NotCommitted>((made, interrupted))
            })
            .await?;
        // The commit exists now, so a later error must not look like a failed commit. It becomes a note.
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

    /// Pushes commits of an earlier run that were not pushed, if the user asked for pushes. Returns None if there is
    /// nothing to push.
    pub async fn push_again(&self) -> Option<Result<Pushed, NotCommitted>> {
        if !self.repository.push {
            return None;
        }
        match self.push(None).await {
            Err(
                NotCommitted::Commit(CommitError::Detached)
                | NotCommitted::Push(PushError::NoBranch(_)),
            ) => None,
            pushed => Some(pushed),
        }
    }

    /// Pushes the branch that gets new commits to `remote`; if that is None, to the remote of the branch.
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
                    // The remote has new commits, which the user needs next, so fetch them. If the fetch fails too,
                    // the rejection is still the result.
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

    /// Runs a function with git commands on a thread that may block.
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
