//! The steps that all verbs share which commit to a repository: prepare, warn, commit and push.

use std::collections::BTreeSet;

use super::connect::{Address, Connection, Options};
use super::error::{Error, Exit};
use super::target_object::TargetObject;
use crate::connect::{NotFollowed, Repository};
use crate::git::GitError;
use crate::git::commit::CommitError;
use crate::git::push::PushError;
use crate::gitops::propose::{BeforePlan, Commits, Committed, NotCommitted, ProposeError, Pushed};
use crate::subjects::release_pin::sources::NoReference;
use crate::text;

/// Returns the writer of commits if the target is a repository. Otherwise returns None, or an error if the user gave
/// a flag that is only valid for commits.
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

/// Returns the path of the file that contains an object, relative to the root of the work tree. None if the target is
/// no repository, or if no file contains the object.
pub(super) fn file_of(connection: &Connection, place: &TargetObject) -> Option<String> {
    let tree = &connection.repository.as_ref()?.tree;
    let resource = &place.kind.resource;
    let resource = format!("{}/{}", resource.group, resource.plural);
    let namespace = place.namespace.as_deref().unwrap_or_default();
    let found = tree.place(&resource, namespace, &place.name)?;
    Some(found.path)
}

/// Prints that a verb has edited these files of a repository and has not committed them.
pub(super) fn say_uncommitted(files: &BTreeSet<String>, say: &mut dyn FnMut(String)) {
    let shown: Vec<&str> = files.iter().take(5).map(String::as_str).collect();
    let more = match files.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {}", text::counted(more, "other files")),
    };
    if !shown.is_empty() {
        let shown = shown.join(", ");
        say(format!(
            "changed {shown}{more}; not committed: commit with git"
        ));
    }
}

/// Prepares a repository for a plan. If an interrupted action had left edits, prints that they were removed.
pub(super) async fn begin(
    connection: &Connection,
    options: &Options,
    remote: BeforePlan,
    dry_run: bool,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    say_namespaces(connection, options, say);
    if let Some(commits) = of(connection, options)? {
        let cleared = commits.begin(remote, dry_run).await?;
        cleared.into_iter().for_each(say);
    }
    Ok(())
}

/// Prints a warning if the clone is shallow, so that a part of the history is missing.
pub(super) fn say_where_the_log_ends(connection: &Connection, say: &mut dyn FnMut(String)) {
    let repository = connection.repository.as_ref();
    let incomplete = repository.and_then(Repository::shallow_history);
    incomplete
        .map(|what| format!("warning: {what}"))
        .into_iter()
        .for_each(say);
}

/// The largest number of file problems that a warning lists.
const SHOWN: usize = 5;

/// Prints a warning if files of a repository cannot be parsed, or contain the edits of an interrupted action. In both
/// cases bowline may miss ReleasePins.
pub(super) fn say_unread(connection: &Connection, say: &mut dyn FnMut(String)) {
    let Some(repository) = &connection.repository else {
        return;
    };
    if let Ok(Some(pending)) = repository.tree.work().pending() {
        say(format!("warning: {pending}; {}", pending.hint()));
    }
    let problems = repository.tree.unread();
    for problem in problems.iter().take(SHOWN) {
        say(format!("warning: not read: {}", problem.what));
    }
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN) {
        say(format!(
            "warning: {more} more problems; list them: bowline check"
        ));
    }
}

/// Prints a warning if the files have several namespaces and the user named none. Then the default namespace may be
/// one without objects.
pub(super) fn say_namespaces(
    connection: &Connection,
    options: &Options,
    say: &mut dyn FnMut(String),
) {
    let Some(repository) = &connection.repository else {
        return;
    };
    let known = repository.tree.namespaces();
    let is_open = options.namespace.is_none() && !known.contains(&connection.namespace);
    if is_open && !known.is_empty() {
        let known: Vec<String> = known.into_iter().collect();
        say(format!(
            "warning: the objects are in the namespaces {}, and none is in {}; choose one with -n NAME (status also has -A for all)",
            known.join(", "),
            connection.namespace
        ));
    }
}

/// Returns the error for a ReleasePin that bowline does not find, if a file that is not checked out or cannot be
/// parsed may contain it. None if there is no such file.
pub(super) fn not_known(
    connection: &Connection,
    component: &str,
    environment: &str,
) -> Option<Error> {
    let tree = &connection.repository.as_ref()?.tree;
    let unknown = tree.why_unknown(&connection.namespace, component, environment)?;
    let why = unknown.why;
    let message = format!("the release of {component} in {environment} is not known: {why}");
    let hint = match unknown.check_out {
        Some(command) => format!("check it out: {command}"),
        None => "list the problems of the files: bowline check".to_owned(),
    };
    Some(Error::new(Exit::Refused, message).with_hint(hint))
}

/// Pushes the commits of an earlier run if the target is a repository and the user gave `--push`. Otherwise does
/// nothing.
pub(super) async fn push_again(connection: &Connection, say: &mut dyn FnMut(String)) -> Exit {
    let Some(commits) = Commits::of(connection) else {
        return Exit::Done;
    };
    let pushed = commits.push_again().await;
    pushed.map_or(Exit::Done, |pushed| told_push(&pushed, say))
}

/// Prints the result of a commit, and returns the exit code. If the push failed, only the exit code is different,
/// because the commit exists.
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
            NotCommitted::Propose(_) | NotCommitted::Pending(_) => Exit::Refused,
            NotCommitted::Stale(_) | NotCommitted::Behind { .. } => Exit::Conflict,
            NotCommitted::BrokenFact(broken) => match broken.is_elsewhere() {
                true => Exit::Conflict,
                false => Exit::Refused,
            },
            NotCommitted::Files(_) | NotCommitted::Interrupted(_) => Exit::Failed,
            NotCommitted::Commit(error) => match error {
                error if error.is_stale() => Exit::Conflict,
                CommitError::Git(_)
                | CommitError::Unread(_)
                | CommitError::Altered { .. }
                | CommitError::NotRestored { .. }
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
        let hints = error.hints().into_iter();
        hints.fold(Error::new(exit, error.to_string()), Error::and_hint)
    }
}

impl From<NotFollowed> for Error {
    fn from(error: NotFollowed) -> Error {
        let exit = match error {
            NotFollowed::Git(_) => Exit::Failed,
            NotFollowed::NoCluster | NotFollowed::OtherBranch(_) => Exit::Usage,
        };
        let hints = error.hints().iter().copied();
        hints.fold(Error::new(exit, error.to_string()), Error::and_hint)
    }
}

impl From<ProposeError> for Error {
    fn from(error: ProposeError) -> Error {
        NotCommitted::from(error).into()
    }
}

/// Returns the error for a release that cannot refer to a definition in git. Its hint is the command that embeds the
/// definition instead.
pub(super) fn no_reference(error: &NoReference, options: &str, address: &Address) -> Error {
    Error::new(Exit::Refused, error.to_string()).with_hint(error.hint(options, address))
}

impl From<GitError> for Error {
    fn from(error: GitError) -> Error {
        Error::new(Exit::Failed, error.to_string())
    }
}
