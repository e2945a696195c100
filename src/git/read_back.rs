//! Reads a commit after git made it, and checks that it is as planned.
//!
//! The check is necessary because hooks and filters can change files, stage other files, rewrite the commit message,
//! and amend or remove the commit. If the commit does not have the planned meaning, bowline removes it from the
//! branch.

use std::collections::BTreeSet;

use super::arguments::{Arguments, pathspecs};
use super::commit::{CommitError, CommitNote, Made, Turn, Wanted};
use super::journal::Journal;
use super::log::{Changed, Commit, own_trailers};
use super::{Blob, GitError, State, WorkTree};

/// The result of comparing the commits on a branch with the planned commit.
#[derive(Debug)]
pub(super) struct ReadBack {
    /// The commit of bowline's operation; None if the branch does not have it.
    commit: Option<Commit>,
    /// Whether the commit is the only one that the branch got since the base, and has the base as its only parent.
    alone: bool,
    /// The differences between the commit and the planned commit, as texts for the user.
    wrong: Vec<String>,
    /// The paths of the files that differ between the base and the tip of the branch.
    changed: BTreeSet<String>,
    notes: Vec<CommitNote>,
}

impl WorkTree {
    /// Compares the commits that a branch got since `base` with the planned commit.
    pub(super) fn read_back(
        &self,
        base: Option<&str>,
        tip: &str,
        wanted: &Wanted<'_>,
    ) -> Result<ReadBack, GitError> {
        let changed = match base {
            Some(base) => self.changed_between(base, tip)?,
            None => self.files_of(tip)?,
        };
        let (mut wrong, mut notes) = (Vec::new(), Vec::new());
        let names = wanted
            .edits
            .iter()
            .map(|edit| format!("{tip}:{}", edit.path));
        let longest = wanted.edits.iter().filter_map(|edit| edit.after.as_ref());
        let longest = longest.map(Vec::len).max().unwrap_or_default();
        let limit = longest.max(wanted.limits.bytes);
        let found = self.blobs(&names.collect::<Vec<String>>(), limit)?;
        for (edit, found) in wanted.edits.iter().zip(&found) {
            let (after, found) = (edit.after.as_deref(), found.as_deref());
            let same = found == after
                || (wanted.means_the_same)(&edit.path, after, found)
                || (found.is_some() && self.smudged(tip, &edit.path)?.as_deref() == after);
            if !same {
                wrong.push(format!("{} is not as bowline wrote it", edit.path));
            }
        }
        let mut commits = self.log(tip, base)?;
        let count = commits.len();
        let first = commits.first();
        let alone = count == 1
            && first.is_some_and(|commit| commit.parents.iter().map(String::as_str).eq(base));
        let said = own_trailers(wanted.message);
        let is_ours = |commit: &Commit| {
            let mut trailers = own_trailers(&commit.message).into_iter();
            trailers.any(|(_, value)| value == wanted.operation)
        };
        // If no commit has the trailers of the operation, a hook removed them. Then the oldest commit is taken as
        // bowline's, because hooks commit later.
        let at = commits.iter().position(is_ours);
        let at = at.unwrap_or(count.saturating_sub(1));
        let commit = (count > 0).then(|| commits.swap_remove(at));
        if let Some(commit) = &commit {
            let others = self.others_of(commit, wanted, &mut wrong)?;
            notes.extend((!others.is_empty()).then_some(CommitNote::Added(others)));
        }
        match commit.as_ref().map(|commit| own_trailers(&commit.message)) {
            None => wrong.push("the branch does not have it".to_owned()),
            Some(found) if found == said => {}
            Some(found) if found.is_empty() => notes.push(CommitNote::NoTrailers),
            Some(_) => wrong.push("its trailers are not as bowline wrote them".to_owned()),
        }
        if count > 1 {
            notes.push(CommitNote::MoreCommits(count - 1));
        }
        Ok(ReadBack {
            commit,
            alone,
            wrong,
            changed,
            notes,
        })
    }

    /// Returns the paths of the files that a commit changes although the plan does not. Adds a text to `wrong` for
    /// each of these files whose meaning the commit changes.
    fn others_of(
        &self,
        commit: &Commit,
        wanted: &Wanted<'_>,
        wrong: &mut Vec<String>,
    ) -> Result<Vec<String>, GitError> {
        let is_edited = |path: &str| wanted.edits.iter().any(|edit| edit.path == path);
        let others = commit.files.iter().filter(|file| {
            let from = file.from.as_deref();
            !is_edited(&file.path) && !from.is_some_and(is_edited)
        });
        let others: Vec<&Changed> = others.collect();
        for file in &others {
            let read = |blob: &Option<String>| match blob {
                Some(blob) => self.blob_named(blob, wanted.limits),
                None => Ok(Blob::Missing),
            };
            let (before, after) = (read(&file.old)?, read(&file.blob)?);
            let is_unknown = before.is_unread_with_word() || after.is_unread_with_word();
            let (before, after) = (before.whole(), after.whole());
            if is_unknown
                || !(wanted.means_the_same)(&file.path, before.as_deref(), after.as_deref())
            {
                wrong.push(format!("it also changes {}", file.path));
            }
        }
        Ok(others.iter().map(|file| file.path.clone()).collect())
    }

    /// Returns the bytes that a checkout of a commit would write to a file, after git's filters; None if the commit
    /// does not have the file.
    fn smudged(&self, revision: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let question = Arguments::plain("cat-file", ["--filters"]);
        let question = question.operand(format!("{revision}:{path}"));
        let output = self.output(self.root(), &question, &[], b"")?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// Returns the paths of all files in a commit.
    pub fn files_of(&self, revision: &str) -> Result<BTreeSet<String>, GitError> {
        let question = Arguments::plain("ls-tree", ["-r", "-z", "--name-only", "--full-tree"]);
        let listed = self.ask(question.operand(revision))?;
        let files = listed.split('\0').filter(|file| !file.is_empty());
        Ok(files.map(str::to_owned).collect())
    }

    /// Returns the paths of the files that differ between git's index and a commit.
    fn staged_since(&self, commit: &str) -> Result<BTreeSet<String>, GitError> {
        let question = Arguments::plain("diff-index", ["--cached", "--name-only", "-z"]);
        let listed = self.ask(question.operand(commit))?;
        let files = listed.split('\0').filter(|file| !file.is_empty());
        Ok(files.map(str::to_owned).collect())
    }

    /// Updates the user's index for the files that a hook staged during `git commit --only`. git puts such a file
    /// into the commit, but not into the user's index. Other files that the user has staged stay staged.
    fn catch_up_index(
        &self,
        base: Option<&str>,
        tip: &str,
        changed: &BTreeSet<String>,
        wanted: &Wanted<'_>,
    ) -> Result<(), GitError> {
        let is_edited = |path: &str| wanted.edits.iter().any(|edit| edit.path == path);
        let mut behind = self.staged_since(tip)?;
        behind.retain(|path| changed.contains(path) || is_edited(path));
        if behind.is_empty() {
            return Ok(());
        }
        let own = match base {
            Some(base) => self.staged_since(base)?,
            None => BTreeSet::new(),
        };
        behind.retain(|path| is_edited(path) || !own.contains(path));
        if behind.is_empty() {
            return Ok(());
        }
        let restore = Arguments::plain("restore", ["--staged"]).value("--source", tip);
        let paths = pathspecs(behind.iter().map(String::as_str));
        self.on_paths(restore, &paths).map(drop)
    }
}

impl Turn<'_> {
    /// Reads and checks the commits that the checked out branch got since the state `before`. Returns bowline's
    /// commit if it is as planned.
    pub(super) fn read_back_here(
        &self,
        before: &State,
        branch: &str,
        wanted: &Wanted<'_>,
        journal: &Journal,
    ) -> Result<Made, CommitError> {
        let tree = self.tree;
        let base = before.head.as_deref();
        let reference = format!("refs/heads/{branch}");
        let unread = CommitError::Unread;
        let Some(tip) = tree.commit_of(&reference).map_err(unread)? else {
            return Err(self.altered("the branch is gone", "HEAD", base, branch));
        };
        if base == Some(&*tip) {
            // The branch does not have the commit: git never set the branch to it, or a hook removed it.
            tree.put_back(journal).map_err(unread)?;
            return Err(CommitError::Altered {
                what: format!("{branch} does not have it"),
                commit: String::new(),
                kept: None,
            });
        }
        let read = tree.read_back(base, &tip, wanted).map_err(unread)?;
        let state = tree.state().map_err(unread)?;
        let here = state.branch.as_deref() == Some(branch);
        if here {
            tree.catch_up_index(base, &tip, &read.changed, wanted)
                .map_err(unread)?;
        }
        let mut made = match read.made(branch, here) {
            Ok(made) => made,
            Err(what) => {
                let alone = read.alone && here;
                let taken = alone && self.take_back(base, &tip, &reference, journal)?;
                return Err(match taken {
                    true => CommitError::Altered {
                        what,
                        commit: tip,
                        kept: None,
                    },
                    false => self.altered(&what, &tip, base, branch),
                });
            }
        };
        if here {
            // The state is read again, because the update of the index changes which files git reports as changed.
            let mut dirty = tree.state().map_err(unread)?.dirty;
            // Keep the files that the plan edits, and the files that were not dirty before: a hook changed these.
            dirty.retain(|path| {
                let is_edited = wanted.edits.iter().any(|edit| edit.path == *path);
                is_edited || !before.dirty.contains(path)
            });
            if !dirty.is_empty() {
                let dirty = dirty.into_iter().collect();
                made.notes.push(CommitNote::Uncommitted(dirty));
            }
        }
        Ok(made)
    }

    fn altered(&self, what: &str, tip: &str, base: Option<&str>, branch: &str) -> CommitError {
        CommitError::Altered {
            what: what.to_owned(),
            commit: tip.to_owned(),
            kept: Some((branch.to_owned(), base.map(str::to_owned))),
        }
    }

    /// Removes the newest commit from the checked out branch, and restores the index and the files. If somebody has
    /// changed one of the files since, keeps the commit and returns false.
    fn take_back(
        &self,
        base: Option<&str>,
        tip: &str,
        reference: &str,
        journal: &Journal,
    ) -> Result<bool, CommitError> {
        let Some(base) = base else {
            return Ok(false);
        };
        let tree = self.tree;
        // A hook may have changed a file only in the index, so that the file on disk still has the planned content.
        // The file gets the content of the commit first, because otherwise it would count as changed by somebody.
        let mut own = Vec::new();
        for noted in &journal.files {
            if tree.is_as_noted(noted)? && tree.has_file(tip, &noted.path)? {
                own.push(noted.path.as_str());
            }
        }
        if !own.is_empty() {
            let restore = Arguments::plain("restore", ["--staged", "--worktree"]);
            tree.on_paths(restore.value("--source", tip), &pathspecs(own))?;
        }
        let switch = |flags: &[&'static str]| {
            let flags = flags.iter().copied();
            let switch = flags.fold(Arguments::of("read-tree"), Arguments::flag);
            tree.ask(switch.operand(tip).operand(base))
        };
        // The index is refreshed, because git restores only files of which the index knows that they match the
        // commit.
        let refresh = Arguments::plain("update-index", ["-q", "--refresh"]);
        let _ = tree.ask(refresh);
        if switch(&["-n", "-m", "-u"]).is_err() {
            return Ok(false);
        }
        let update = Arguments::of("update-ref").short("-m", "bowline: take the commit back");
        let update = update.operand(reference).operand(base).operand(tip);
        if tree.ask(update).is_err() {
            return Ok(false);
        }
        switch(&["-m", "-u"])?;
        // A hook may have removed an edit from the commit while the file on disk still has it. Such a file is
        // restored here.
        tree.put_back(journal)?;
        Ok(true)
    }
}

impl ReadBack {
    /// Returns the checked commit. If it differs from the planned commit, returns the differences as text.
    pub(super) fn made(&self, branch: &str, here: bool) -> Result<Made, String> {
        match (&self.commit, self.wrong.is_empty()) {
            (Some(commit), true) => Ok(Made {
                commit: commit.id.clone(),
                branch: branch.to_owned(),
                subject: commit.subject().to_owned(),
                here,
                notes: self.notes.clone(),
            }),
            _ => Err(self.wrong.join(", ")),
        }
    }
}
