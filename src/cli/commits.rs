//! What verbs that change something share where the target is a repository: one commit, and its push.

use super::connect::{Connection, Options, Repository};
use super::error::{Error, Exit};
use crate::engine::repository::{self, NoReference, Proposal, ProposeError, PublishError};
use crate::git::GitError;
use crate::git::commit::{CommitError, Made};
use crate::git::push::PushError;

/// A repository, and what the flags say of commits.
pub(super) struct Commits<'a> {
    pub(super) repository: &'a Repository,
    readonly: Option<&'a str>,
    options: &'a Options,
}

impl<'a> Commits<'a> {
    /// Finds the repository of a connection; flags of commits make no sense without one.
    pub(super) fn of(
        connection: &'a Connection,
        options: &'a Options,
    ) -> Result<Option<Self>, Error> {
        let Some(repository) = &connection.repository else {
            let flag = [
                (options.branch.is_some(), "--branch"),
                (options.push, "--push"),
            ];
            return match flag.into_iter().find(|(given, _)| *given) {
                None => Ok(None),
                Some((_, flag)) => Err(Error::new(
                    Exit::Usage,
                    format!(
                        "{flag} is for a repository, and the target is {}",
                        connection.target
                    ),
                )
                .with_hint("--repo DIR names one")),
            };
        };
        Ok(Some(Self {
            repository,
            readonly: connection.readonly.as_deref(),
            options,
        }))
    }

    /// Clears up after an action that was interrupted, and looks whether the remote has what is not here,
    /// where the commit is to be pushed: before anything is planned on what is half done, or old.
    pub(super) async fn begin(&self, say: &mut dyn FnMut(String)) -> Result<(), Error> {
        if self.readonly.is_some() {
            return Ok(());
        }
        self.recover(say).await?;
        match self.options.push {
            true => self.fetch().await,
            false => Ok(()),
        }
    }

    async fn recover(&self, say: &mut dyn FnMut(String)) -> Result<(), Error> {
        let tree = self.repository.tree.clone();
        if tree.work().interrupted().is_none() {
            return Ok(());
        }
        let recovered = blocking(move || {
            let (turn, interrupted) = tree.work().turn()?;
            drop(turn);
            Ok(interrupted)
        })
        .await?;
        let interrupted = recovered.map_err(|error| not_published(PublishError::Commit(error)))?;
        if let Some(interrupted) = interrupted {
            say(interrupted.to_string());
        }
        let synced = self.repository.sync().await;
        synced.map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        Ok(())
    }

    async fn fetch(&self) -> Result<(), Error> {
        let tree = self.repository.tree.clone();
        let (named, branch) = (self.options.remote.clone(), self.options.branch.clone());
        let behind = blocking(move || {
            let branch = match branch {
                Some(branch) => branch,
                None => match tree.work().state()?.branch {
                    Some(branch) => branch,
                    None => return Ok(None),
                },
            };
            let remote = tree.work().remote(named.as_deref(), &branch)?;
            let behind = tree.work().fetch(&remote, &branch)?;
            Ok((behind > 0).then_some((behind, remote, branch)))
        })
        .await?;
        match behind.map_err(not_pushed)? {
            None => Ok(()),
            Some((behind, remote, branch)) => {
                let noun = if behind == 1 { "commit" } else { "commits" };
                let message =
                    format!("{remote} is {behind} {noun} ahead on {branch}, so nothing was done");
                Err(Error::new(Exit::Conflict, message).with_hint(format!(
                    "git pull --rebase {remote} {branch}, and run it again"
                )))
            }
        }
    }

    /// Makes a commit; and pushes it, where that was asked for.
    pub(super) async fn commit(
        &self,
        proposal: &Proposal,
        say: &mut dyn FnMut(String),
    ) -> Result<(Made, Exit), Error> {
        if let Some(why) = self.readonly {
            let message = format!("only reads pass: {why}");
            return Err(Error::new(Exit::NotAllowed, message));
        }
        let branch = self.options.branch.as_deref();
        let made = repository::publish(self.repository, proposal, branch, say)
            .await
            .map_err(not_published)?;
        let short = made.commit.get(..12).unwrap_or(&made.commit);
        say(format!(
            "committed {short} on {}: {}",
            made.branch,
            proposal.subject()
        ));
        let exit = self.push(&made.branch, say).await?;
        Ok((made, exit))
    }

    /// Pushes the branch, where that was asked for; what went wrong is said, for the commit is made.
    pub(super) async fn push(
        &self,
        branch: &str,
        say: &mut dyn FnMut(String),
    ) -> Result<Exit, Error> {
        if !self.options.push {
            return Ok(Exit::Done);
        }
        let tree = self.repository.tree.clone();
        let (named, own) = (self.options.remote.clone(), branch.to_owned());
        let pushed = blocking(move || {
            let remote = tree.work().remote(named.as_deref(), &own)?;
            tree.work().push(&remote, &own).map(|()| remote)
        })
        .await?;
        match pushed {
            Ok(remote) => {
                say(format!("pushed {branch} to {remote}"));
                Ok(Exit::Done)
            }
            Err(error) => {
                let error = not_pushed(error);
                say(error.to_string());
                Ok(error.exit)
            }
        }
    }

    /// Pushes what an earlier run committed and could not push.
    pub(super) async fn push_again(&self, say: &mut dyn FnMut(String)) -> Result<Exit, Error> {
        if !self.options.push {
            return Ok(Exit::Done);
        }
        let branch = match &self.options.branch {
            Some(branch) => Some(branch.clone()),
            None => {
                let tree = self.repository.tree.clone();
                let state = blocking(move || tree.work().state()).await?;
                state
                    .map_err(|error| Error::new(Exit::Failed, error.to_string()))?
                    .branch
            }
        };
        match branch {
            Some(branch) => self.push(&branch, say).await,
            None => Ok(Exit::Done),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(Exit::Failed, error.to_string()))
}

fn not_pushed(error: PushError) -> Error {
    let exit = match &error {
        PushError::Rejected { .. } => Exit::Conflict,
        PushError::Refused { .. } => Exit::Refused,
        PushError::NoRemote(_) => Exit::Usage,
        PushError::Unreachable { .. } => Exit::Unreachable,
        PushError::Git(_) => Exit::Failed,
    };
    let hint = error.hint();
    let error = Error::new(exit, error.to_string());
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn not_published(error: PublishError) -> Error {
    let (exit, hint) = match &error {
        PublishError::Commit(error) => {
            let exit = match error {
                error if error.is_stale() => Exit::Conflict,
                CommitError::Git(_) | CommitError::Refused(_) => Exit::Failed,
                CommitError::NoBranchName(_) => Exit::Usage,
                _ => Exit::Refused,
            };
            (exit, error.hint())
        }
        PublishError::After(_) | PublishError::Interrupted(_) => (Exit::Failed, None),
    };
    let error = Error::new(exit, error.to_string());
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

impl From<ProposeError> for Error {
    fn from(error: ProposeError) -> Error {
        Error::new(Exit::Refused, error.to_string())
    }
}

impl From<NoReference> for Error {
    fn from(error: NoReference) -> Error {
        Error::new(Exit::Refused, error.to_string())
            .with_hint("or embed the definitions: bowline release create --embed")
    }
}

impl From<GitError> for Error {
    fn from(error: GitError) -> Error {
        Error::new(Exit::Failed, error.to_string())
    }
}
