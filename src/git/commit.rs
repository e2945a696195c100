//! Edits files and commits the edits, on the checked out branch or on another branch.
//!
//! On the checked out branch, bowline edits the files and runs `git commit --only` on them. With this command, hooks
//! run as usual, git signs the commit if the user has configured it, and other files that the user has staged stay
//! staged. [`super::elsewhere`] commits to another branch. [`super::read_back`] checks whether hooks changed the
//! commit.

mod error;
mod note;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::arguments::{Arguments, pathspecs};
use super::journal::{Interrupted, Journal, Noted, hash};
use super::{BlobLimits, GitError, State, WorkTree, told};
pub use error::CommitError;
pub(super) use error::words;
pub use note::CommitNote;

/// The edit of one file: its content before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    /// The path of the file, relative to the root of the work tree, with `/` as separator.
    pub path: String,
    /// The content of the file when the plan was made; None if the file did not exist.
    pub before: Option<Vec<u8>>,
    /// The content of the file after the edit; None if the edit deletes the file.
    pub after: Option<Vec<u8>>,
}

impl FileEdit {
    /// Returns the edit that undoes this edit.
    pub fn reversed(self) -> Self {
        Self {
            path: self.path,
            before: self.after,
            after: self.before,
        }
    }
}

/// A commit that bowline plans to make.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The edits of files that the commit must contain.
    pub edits: &'a [FileEdit],
    /// The commit message, including its trailers.
    pub message: &'a str,
    /// The id of bowline's operation. A trailer of the commit message contains it, so that bowline recognises the
    /// commit.
    pub operation: &'a str,
    /// The branch that gets the commit; None for the checked out branch.
    pub branch: Option<&'a str>,
    /// The function that decides whether two states of a file have the same meaning.
    pub means_the_same: MeansTheSame,
    /// The limits for the files of the commit that bowline reads to compare their meaning. A file that is larger than
    /// the limit counts as missing if it contains none of the words.
    pub limits: BlobLimits<'a>,
}

/// A function that returns whether two states of a file have the same meaning, ignoring their formatting. None stands
/// for a file that does not exist.
pub type MeansTheSame = fn(path: &str, one: Option<&[u8]>, other: Option<&[u8]>) -> bool;

/// A commit that bowline has made and has read back: its files have the same meaning as planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The id of the commit.
    pub commit: String,
    /// The branch that got the commit.
    pub branch: String,
    /// The first line of the commit message.
    pub subject: String,
    /// Whether the branch of the commit is checked out in this work tree.
    pub here: bool,
    /// Notes for the user about this commit, for example about the changes that hooks made.
    pub notes: Vec<CommitNote>,
}

/// How long bowline waits for another git process to release the index.
const PATIENCE: Duration = Duration::from_secs(5);

/// The exclusive right to commit in a work tree. Until this value is dropped, other bowline processes that want to
/// commit wait.
#[derive(Debug)]
pub struct Turn<'w> {
    pub(super) tree: &'w WorkTree,
    _lock: File,
}

impl WorkTree {
    /// Waits for the exclusive right to commit. Also cleans up after a commit that was interrupted, and returns what
    /// it found; None if no commit was interrupted.
    pub fn turn(&self) -> Result<(Turn<'_>, Option<Interrupted>), CommitError> {
        let notes = self.notes();
        let failed = |error| GitError::File {
            file: notes.clone(),
            error,
        };
        std::fs::create_dir_all(&notes).map_err(failed)?;
        let lock = File::create(notes.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        self.wait_for_git()?;
        let interrupted = self.recover()?;
        let turn = Turn {
            tree: self,
            _lock: lock,
        };
        Ok((turn, interrupted))
    }

    /// Waits until no other git process uses the index. Fails after [`PATIENCE`].
    fn wait_for_git(&self) -> Result<(), CommitError> {
        let lock = self.git_dir().join("index.lock");
        let begun = Instant::now();
        while lock.exists() {
            if begun.elapsed() > PATIENCE {
                return Err(CommitError::Busy { lock });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Writes a file in git's directory atomically.
    pub(super) fn write_private(&self, file: &Path, bytes: &[u8]) -> Result<(), GitError> {
        let new = file.with_extension("new");
        let write = || {
            let mut out = File::create(&new)?;
            out.write_all(bytes)?;
            out.sync_data()?;
            std::fs::rename(&new, file)
        };
        write().map_err(|error| GitError::File {
            file: file.to_owned(),
            error,
        })
    }

    /// Runs a git command with `paths`, which [`pathspecs`] has formatted, on its standard input.
    pub(super) fn on_paths(&self, command: Arguments, paths: &[u8]) -> Result<String, GitError> {
        let command = command.flag("--pathspec-from-file=-");
        let command = command.flag("--pathspec-file-nul");
        let output = self.output(self.root(), &command, &[], paths)?;
        told(command.command(), output)
    }

    /// Writes `content` to a file of the work tree; None removes the file. All writes of files in the work tree use
    /// this function.
    pub fn write(&self, path: &str, content: Option<&[u8]>) -> Result<(), GitError> {
        if let Some(bytes) = content {
            return self.replace(path, bytes);
        }
        let file = self.inside(path)?;
        std::fs::remove_file(&file).map_err(|error| GitError::File { file, error })
    }

    /// Replaces the content of a file in the work tree atomically, and keeps the permissions of the file.
    pub(super) fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), GitError> {
        let file = self.inside(path)?;
        // The temporary file has a hash as its name, because the name of a long path could be too long.
        let name = hash(path.as_bytes());
        let aside = self
            .notes()
            .join(format!("{name}.{}.new", std::process::id()));
        let write = || {
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::create_dir_all(self.notes())?;
            let mut out = File::create(&aside)?;
            out.write_all(bytes)?;
            if let Ok(known) = std::fs::metadata(&file) {
                out.set_permissions(known.permissions())?;
            }
            out.sync_data()?;
            match std::fs::rename(&aside, &file) {
                // A rename is impossible, because git's directory is on another file system than the work tree.
                Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
                    let beside = file.with_extension("bowline-new");
                    std::fs::copy(&aside, &beside)?;
                    std::fs::rename(&beside, &file)?;
                    std::fs::remove_file(&aside)
                }
                renamed => renamed,
            }
        };
        write().map_err(|error| GitError::File {
            file: file.clone(),
            error,
        })
    }
}

impl WorkTree {
    /// Checks whether the commit would be possible now, without changing anything. Returns the state of the work
    /// tree.
    pub fn admits(&self, wanted: &Wanted<'_>) -> Result<State, CommitError> {
        let state = self.state()?;
        let own = state.branch.as_deref();
        match wanted.branch.filter(|branch| own != Some(branch)) {
            Some(branch) => {
                self.check(&state, wanted)?;
                self.admits_elsewhere(&state, branch, wanted)?;
            }
            None => {
                // An operation in progress is reported before a detached HEAD, because a rebase detaches HEAD.
                if let Some(what) = state.under_way {
                    return Err(CommitError::UnderWay(what.to_owned()));
                }
                if own.is_none() {
                    return Err(CommitError::Detached);
                }
                self.check(&state, wanted)?;
            }
        }
        Ok(state)
    }

    /// Checks that every file to edit has the same content as when the plan was made, and no uncommitted changes.
    fn check(&self, state: &State, wanted: &Wanted<'_>) -> Result<(), CommitError> {
        for edit in wanted.edits {
            let path = || edit.path.clone();
            if state.dirty.contains(&edit.path) {
                return Err(CommitError::Dirty { path: path() });
            }
            let file = self.root().join(&edit.path);
            let there = match std::fs::read(&file) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(GitError::File { file, error }.into()),
            };
            if there != edit.before {
                return Err(CommitError::Changed { path: path() });
            }
        }
        // A file that git does not track is refused, because the commit would contain the whole file and not only the
        // planned edit.
        let known: Vec<String> = wanted
            .edits
            .iter()
            .filter(|edit| edit.before.is_some())
            .map(|edit| edit.path.clone())
            .collect();
        self.tracks(&known)
    }

    /// Refuses files that git does not track, and files that git does not check for changes.
    fn tracks(&self, paths: &[String]) -> Result<(), CommitError> {
        if paths.is_empty() {
            return Ok(());
        }
        // `ls-files` prints `H path` for a normal file. Another first letter, `S` or a lowercase letter, means that
        // git does not check the file for changes.
        let listed = self.ask(Arguments::plain("ls-files", ["-v", "-z"]))?;
        let tags: HashMap<&str, &str> = listed
            .split('\0')
            .filter_map(|line| line.split_once(' '))
            .map(|(tag, path)| (path, tag))
            .collect();
        let is_hidden = |tag: &str| tag == "S" || tag.starts_with(|c: char| c.is_ascii_lowercase());
        for path in paths {
            let known = tags.get(path.as_str());
            let path = path.clone();
            match known {
                None => return Err(CommitError::Untracked { path }),
                Some(tag) if is_hidden(tag) => return Err(CommitError::Hidden { path }),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl Turn<'_> {
    /// Makes the commit. After an error, the branch and the files are unchanged, unless the error says otherwise.
    pub fn commit(&self, wanted: &Wanted<'_>) -> Result<Made, CommitError> {
        let state = self.tree.admits(wanted)?;
        match (wanted.branch, state.branch.clone()) {
            (Some(branch), own) if own.as_deref() != Some(branch) => {
                self.elsewhere(&state, branch, wanted)
            }
            (_, Some(branch)) => self.here(&state, &branch, wanted),
            (_, None) => Err(CommitError::Detached),
        }
    }

    fn here(&self, state: &State, branch: &str, wanted: &Wanted<'_>) -> Result<Made, CommitError> {
        let tree = self.tree;
        let message = tree.notes().join("message");
        tree.write_private(&message, wanted.message.as_bytes())?;
        let journal = Journal {
            operation: wanted.operation.to_owned(),
            subject: wanted.message.lines().next().unwrap_or_default().to_owned(),
            head: state.head.clone(),
            files: wanted.edits.iter().map(noted).collect(),
        };
        tree.write_journal(&journal)?;
        let made = self
            .edit(wanted.edits)
            .map_err(CommitError::from)
            .and_then(|()| self.commit_only(&message, wanted.edits));
        if let Err(error) = made {
            self.undo(&journal, wanted.edits, error)?;
        }
        let read = self.read_back_here(state, branch, wanted, &journal);
        let ended = tree.end_journal();
        let mut made = read?;
        // A journal that cannot be removed is only a note and no error, because the commit is made.
        let left = ended.err().map(|error| error.to_string());
        made.notes.extend(left.map(CommitNote::JournalLeft));
        Ok(made)
    }

    /// Restores the files and the index after `git commit` failed, unless git made the commit before it failed.
    /// bowline writes the files itself, because git may fail again for the same reason.
    fn undo(
        &self,
        journal: &Journal,
        edits: &[FileEdit],
        error: CommitError,
    ) -> Result<(), CommitError> {
        let tree = self.tree;
        if tree.commit_of("HEAD")? != journal.head && tree.is_made(journal)? {
            return Ok(());
        }
        let (mut left, mut new) = (Vec::new(), Vec::new());
        for edit in edits {
            let restored = self.restore(edit).map_err(|why| CommitError::NotRestored {
                path: edit.path.clone(),
                why,
                error: error.to_string(),
            })?;
            match (restored, &edit.before) {
                (true, _) => {}
                (false, Some(_)) => left.push(edit.path.clone()),
                (false, None) => new.push(edit.path.clone()),
            }
        }
        // After a failed `git commit --only`, the index may contain new files, and edited files that a hook staged.
        // Both are reset.
        let known = edits.iter().filter(|edit| edit.before.is_some());
        let known = pathspecs(known.map(|edit| edit.path.as_str()));
        if !known.is_empty() {
            let unstage = Arguments::plain("restore", ["--source=HEAD", "--staged"]);
            let _ = tree.on_paths(unstage, &known);
        }
        let created = edits.iter().filter(|edit| edit.before.is_none());
        let created: Vec<&str> = created.map(|edit| edit.path.as_str()).collect();
        if !created.is_empty() {
            tree.forget(&created)?;
        }
        tree.end_journal()?;
        Err(match error {
            CommitError::Refused { said, .. } => CommitError::Refused { said, left, new },
            error => error,
        })
    }

    /// Restores a file that still has the planned content, and returns true. Returns false if a hook or a user has
    /// changed the file since.
    fn restore(&self, edit: &FileEdit) -> Result<bool, GitError> {
        let tree = self.tree;
        let file = tree.inside(&edit.path)?;
        let there = std::fs::read(&file).ok();
        if there == edit.before {
            return Ok(true);
        }
        if there != edit.after {
            return Ok(false);
        }
        tree.write(&edit.path, edit.before.as_deref())?;
        Ok(true)
    }

    fn edit(&self, edits: &[FileEdit]) -> Result<(), GitError> {
        let mut edits = edits.iter();
        edits.try_for_each(|edit| self.tree.write(&edit.path, edit.after.as_deref()))
    }

    fn commit_only(&self, message: &Path, edits: &[FileEdit]) -> Result<(), CommitError> {
        let tree = self.tree;
        let paths = |of: &dyn Fn(&FileEdit) -> bool| -> Vec<u8> {
            let paths = edits.iter().filter(|edit| of(edit));
            pathspecs(paths.map(|edit| edit.path.as_str()))
        };
        let created = paths(&|edit| edit.before.is_none());
        if !created.is_empty() {
            // New files are added to the index, because `git commit` accepts only paths that the index contains.
            tree.on_paths(Arguments::plain("add", ["--intent-to-add"]), &created)?;
        }
        let commit = Arguments::plain("commit", ["--only", "--quiet", "--cleanup=whitespace"]);
        // bowline writes the commit message as UTF-8, whatever encoding the user has configured.
        let commit = commit.setting("i18n.commitEncoding=UTF-8");
        tree.on_paths(commit.value("--file", message), &paths(&|_| true))
            .map(drop)
            .map_err(CommitError::refused)
    }
}

fn noted(edit: &FileEdit) -> Noted {
    Noted {
        path: edit.path.clone(),
        created: edit.before.is_none(),
        after: edit.after.as_deref().map(hash),
    }
}
