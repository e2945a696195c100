//! The steps from a [`Proposal`] to its commit and push, which both front ends share.
//!
//! This module does not ask the user or print; it returns notes for the user.

use std::collections::BTreeSet;

use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::{BrokenFact, Collected, Proposal, ProposeError, propose};
use crate::api::ReleasePin;
use crate::connect::{Connection, Repository};
use crate::engine::apply;
use crate::engine::pages;
use crate::engine::whoami::Clock;
use crate::git::commit::{CommitError, Made};
use crate::git::push::PushError;
use crate::git::{GitError, Pending, WorkTree, check_branch_name};
use crate::gitops::tree::TreeError;
use crate::subjects::release_pin::planner::ActionPlan;
use crate::text;

/// Commits to the repository of a connection, with the options of the connection.
pub struct Commits<'a> {
    pub repository: &'a Repository,
    /// The client that serves the objects in the files.
    client: &'a Client,
    readonly: Option<&'a str>,
}

/// How bowline uses the git remote before it plans an action whose commit it will push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforePlan {
    /// Fetch the branch. Refuse the action if the remote has commits that the clone does not have.
    Fetch,
    /// Only check that the remote is configured, without network: a rollback must not wait for it.
    NameRemote,
}

/// A commit that bowline made, and its push.
#[derive(Debug)]
pub struct Committed {
    /// The commit, as bowline read it back from the repository.
    pub made: Made,
    /// Whether the user also gave a cluster context, so that bowline can observe the rollout there.
    pub observed: bool,
    /// Notes for the user: about an interrupted commit, about hooks, and about errors after the commit.
    pub notes: Vec<String>,
    /// The result of the push; None if the user did not ask for a push.
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
    /// The name or the address of the remote.
    pub remote: String,
}

impl Pushed {
    pub fn words(&self) -> String {
        format!("pushed {} to {}", self.branch, self.remote)
    }
}

/// The reason why bowline made no commit, or could not push it.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// The connection is read-only. Contains the message.
    #[error("read-only: {0}")]
    ReadOnly(String),
    /// The files contain the edits of an interrupted action.
    #[error("{0}, so nothing was planned")]
    Pending(Pending),
    /// The plan cannot be converted to edits of files.
    #[error(transparent)]
    Propose(#[from] ProposeError),
    /// The state of the work tree or an error of git prevents the commit.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A fact of the plan is no longer true. Contains the description.
    #[error("{0}, so nothing was changed")]
    Stale(String),
    /// The branch does not contain an object that the commit depends on.
    #[error(transparent)]
    BrokenFact(#[from] BrokenFact),
    /// The remote has commits that the clone does not have, so it would reject the push.
    #[error("{remote} is {commits} {} ahead on {branch}, so nothing was changed", noun(*.commits))]
    Behind {
        remote: String,
        branch: String,
        /// The number of commits that the clone does not have.
        commits: u64,
        /// The command with which the user gets these commits.
        way: String,
    },
    /// The fetch failed, so bowline does not know whether the push would be rejected.
    #[error("{0}, so nothing was changed")]
    Unseen(PushError),
    /// The push failed.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The files of the work tree could not be read.
    #[error(transparent)]
    Files(#[from] TreeError),
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
    /// The user or the system stopped the program. Contains the message.
    #[error("interrupted: {0}")]
    Interrupted(String),
}

/// Describes a ReleasePin that names a release which gc would delete; None if no ReleasePin does.
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

/// Returns the command with which the user gets the commits of a remote branch.
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
    /// Returns the next step for the user, if there is one.
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
    /// Returns the repository of a connection; None if the target is no repository.
    pub fn of(connection: &'a Connection) -> Option<Self> {
        Some(Self {
            repository: connection.repository.as_ref()?,
            client: &connection.client,
            readonly: connection.readonly.as_deref(),
        })
    }

    /// Prepares for a plan: reads all files again, and removes the edits of an interrupted action. If the
    /// commit will be pushed, also uses the remote in the way of `remote`. Returns a message if an action was
    /// interrupted.
    ///
    /// In a dry run or on a read-only connection, removes nothing and returns [`NotCommitted::Pending`] if an
    /// action was interrupted.
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

    /// Returns an error if the remote is not configured. Does not use the network.
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

    /// Fetches the branch. Returns an error if the remote has commits that the clone does not have.
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

    /// Returns the branch that gets new commits; None if no branch is checked out.
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

    /// Returns an error if the proposal cannot be committed now. If the plan has changes that are already
    /// made, also returns an error if the branch does not contain them.
    pub async fn admits(&self, proposal: &Proposal) -> Result<(), NotCommitted> {
        let (own, branch) = (proposal.clone(), self.repository.branch.clone());
        self.with_git(move |work| {
            let branch = branch.as_deref();
            if !own.edits.is_empty() {
                work.admits(&own.wanted(branch))?;
            }
            own.facts.check(work, branch)
        })
        .await
    }

    /// Reads the files again. Returns an error if a fact of the plan is no longer true.
    pub async fn check_facts(
        &self,
        action_plan: &ActionPlan,
        clock: Clock<'_>,
    ) -> Result<(), NotCommitted> {
        self.repository.sync().await?;
        if action_plan.unmade().is_some() {
            return Ok(());
        }
        let broken = apply::broken(self.client, &action_plan.plan, clock).await?;
        match broken.into_iter().next() {
            Some(what) => Err(NotCommitted::Stale(what)),
            None => Ok(()),
        }
    }

    /// Commits the deletions of a gc plan. Fails if a ReleasePin now names one of the releases.
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

    /// Commits a proposal and reads the files again. Pushes the branch if the user asked for it.
    pub async fn commit(&self, proposal: &Proposal) -> Result<Committed, NotCommitted> {
        self.writable()?;
        let (own, branch) = (proposal.clone(), self.repository.branch.clone());
        let (made, interrupted) = self
            .with_git(move |work| {
                let (turn, interrupted) = work.turn()?;
                own.facts.check(work, branch.as_deref())?;
                let made = turn.commit(&own.wanted(branch.as_deref()))?;
                Ok::<_, NotCommitted>((made, interrupted))
            })
            .await?;
        // The commit exists now, so a later error becomes a note.
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

    /// Pushes the branch that gets new commits.
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
                    // The user will need the new commits of the remote, so they are fetched. If that fails,
                    // the result is still the rejection.
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

    /// Runs git on a blocking thread.
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
