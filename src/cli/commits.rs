//! What verbs that change something share where the target is a repository: one commit, and its push.

use super::connect::{Connection, Options};
use super::error::{Error, Exit};
use crate::connect::Repository;
use crate::engine::repository::{
    BeforePlan, Commits, Committed, NoReference, NotCommitted, ProposeError, Pushed,
};
use crate::git::GitError;
use crate::git::commit::CommitError;
use crate::git::push::PushError;

/// Finds the repository of a connection; flags of commits make no sense without one.
pub(super) fn of<'a>(
    connection: &'a Connection,
    options: &Options,
) -> Result<Option<Commits<'a>>, Error> {
    if let Some(commits) = Commits::of(connection) {
        return Ok(Some(commits));
    }
    let flags = [
        (options.branch.is_some(), "--branch"),
        (options.push, "--push"),
    ];
    match flags.into_iter().find(|(given, _)| *given) {
        None => Ok(None),
        Some((_, flag)) => {
            let target = &connection.target;
            let message = format!("{flag} needs a repository, but the target is {target}");
            Err(Error::new(Exit::Usage, message).with_hint("name the repository with --repo DIR"))
        }
    }
}

/// Does what comes before a plan where the target is a repository, and says what was cleared up.
pub(super) async fn begin(
    connection: &Connection,
    options: &Options,
    remote: BeforePlan,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    if let Some(commits) = of(connection, options)? {
        let cleared = commits.begin(remote).await?;
        cleared.into_iter().for_each(say);
    }
    Ok(())
}

/// Warns where the history of a repository is not whole.
pub(super) fn say_where_the_log_ends(connection: &Connection, say: &mut dyn FnMut(String)) {
    let repository = connection.repository.as_ref();
    let incomplete = repository.and_then(Repository::shallow_history);
    incomplete
        .map(|what| format!("warning: {what}"))
        .into_iter()
        .for_each(say);
}

/// Pushes what an earlier run committed and could not push, where the target is a repository and that was
/// asked for.
pub(super) async fn push_again(
    commits: Option<&Commits<'_>>,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    let Some(commits) = commits.filter(|commits| commits.repository.push) else {
        return Ok(Exit::Done);
    };
    match commits.push(None).await {
        Err(
            NotCommitted::Commit(CommitError::Detached)
            | NotCommitted::Push(PushError::NoBranch(_)),
        ) => Ok(Exit::Done),
        pushed => Ok(told_push(&pushed, say)),
    }
}

/// Says what became of a commit. What went wrong with its push is said only, for the commit is made.
pub(super) fn told(committed: &Committed, say: &mut dyn FnMut(String)) -> Exit {
    committed.notes.iter().cloned().for_each(&mut *say);
    say(committed.words());
    match &committed.pushed {
        None => Exit::Done,
        Some(pushed) => told_push(pushed, say),
    }
}

fn told_push(pushed: &Result<Pushed, NotCommitted>, say: &mut dyn FnMut(String)) -> Exit {
    match pushed {
        Ok(pushed) => {
            say(pushed.words());
            Exit::Done
        }
        Err(error) => {
            let error = Error::from(error);
            error.tell(say);
            error.exit
        }
    }
}

impl From<NotCommitted> for Error {
    fn from(error: NotCommitted) -> Error {
        Error::from(&error)
    }
}

impl From<&NotCommitted> for Error {
    fn from(error: &NotCommitted) -> Error {
        let exit = match error {
            NotCommitted::Target(error) => return error.into(),
            NotCommitted::ReadOnly(_) => Exit::NotAllowed,
            NotCommitted::Propose(_) => Exit::Refused,
            NotCommitted::Stale(_) | NotCommitted::Behind { .. } => Exit::Conflict,
            NotCommitted::Unfounded(unfounded) => match unfounded.is_elsewhere() {
                true => Exit::Conflict,
                false => Exit::Refused,
            },
            NotCommitted::Files(_) | NotCommitted::Interrupted(_) => Exit::Failed,
            NotCommitted::Commit(error) => match error {
                error if error.is_stale() => Exit::Conflict,
                CommitError::Git(_)
                | CommitError::Unread(_)
                | CommitError::Altered { .. }
                | CommitError::Refused { .. } => Exit::Failed,
                CommitError::NoBranchName(_) => Exit::Usage,
                _ => Exit::Refused,
            },
            NotCommitted::Push(error) | NotCommitted::Unseen(error) => match error {
                PushError::Rejected { .. } => Exit::Conflict,
                PushError::Refused { .. } | PushError::NoBranch(_) => Exit::Refused,
                PushError::NoRemote(_) | PushError::NoSuchRemote { .. } => Exit::Usage,
                PushError::Unreachable { .. } => Exit::Unreachable,
                PushError::NotSent { .. } | PushError::Git(_) => Exit::Failed,
            },
        };
        let hint = error.hint();
        let error = Error::new(exit, error.to_string());
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl From<ProposeError> for Error {
    fn from(error: ProposeError) -> Error {
        NotCommitted::from(error).into()
    }
}

impl From<NoReference> for Error {
    fn from(error: NoReference) -> Error {
        Error::new(Exit::Refused, error.to_string()).with_hint(error.hint())
    }
}

impl From<GitError> for Error {
    fn from(error: GitError) -> Error {
        Error::new(Exit::Failed, error.to_string())
    }
}
