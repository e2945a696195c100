//! Reads a commit back after git made it, and checks it.
//!
//! During `git commit`, hooks and filters can change files, stage other files, rewrite the message, and amend
//! or remove the commit. So bowline compares the commit with the edits and the message that it passed to git.
//! If the meaning differs, bowline takes the commit back.

use std::collections::BTreeSet;

use super::arguments::{Arguments, pathspecs};
use super::commit::{CommitError, CommitNote, Made, Turn, Wanted};
use super::journal::Journal;
use super::log::{Changed, Commit, own_trailers};
use super::{Blob, GitError, State, WorkTree};

/// The result of comparing a commit with the edits and the message that bowline passed to git.
#[derive(Debug)]
pub(super) struct ReadBack {
    /// The commit of the operation; None if the branch does not have it.
    commit: Option<Commit>,
    /// Whether the commit is the only one since the base, and has the base as its only parent.
    alone: bool,
    /// The differences between the commit and what bowline passed to git, as texts.
    wrong: Vec<String>,
    /// The files that differ between the branch and the base.
    changed: BTreeSet<String>,
    notes: Vec<CommitNote>,
}

impl WorkTree {
    /// Compares the commits of a branch since `base` with the edits and the message.
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
        // If no commit has the trailers of the operation, bowline's commit is the oldest one.
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

    /// Returns the files that a commit changes although no edit names them. Adds a text to `wrong` for each
    /// file whose meaning differs.
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

    /// Returns a file of a commit with the content that a checkout would write to disk; None if the commit
    /// does not have the file.
    fn smudged(&self, revision: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let question = Arguments::plain("cat-file", ["--filters"]);
        let question = question.operand(format!("{revision}:{path}"));
        let output = self.output(self.root(), &question, &[], b"")?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// Returns the paths of the files of a commit.
    pub fn files_of(&self, revision: &str) -> Result<BTreeSet<String>, GitError> {
        let question = Arguments::plain("ls-tree", ["-r", "-z", "--name-only", "--full-tree"]);
        let listed = self.ask(question.operand(revision))?;
        let files = listed.split('\0').filter(|file| !file.is_empty());
        Ok(files.map(str::to_owned).collect())
    }

    /// Returns the files that differ between the index and a commit.
    fn staged_since(&self, commit: &str) -> Result<BTreeSet<String>, GitError> {
        let question = Arguments::plain("diff-index", ["--cached", "--name-only", "-z"]);
        let listed = self.ask(question.operand(commit))?;
        let files = listed.split('\0').filter(|file| !file.is_empty());
        Ok(files.map(str::to_owned).collect())
    }

    /// Updates the user's index to the commit. If a hook stages a file during `git commit --only`, the commit
    /// gets the file but the user's index does not. Other files that the user has staged stay staged.
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
    /// Reads back the commits that the checked out branch got since the state `before`.
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
            // The branch never got the commit, or a hook removed it.
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
            // Before the update of the index, git reported the files of the commit as changed. So the state
            // is read again.
            let mut dirty = tree.state().map_err(unread)?.dirty;
            // A hook can also change files that are not part of the commit.
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

    /// Takes back the newest commit of the checked out branch: restores the branch, the index and the files.
    /// If one of the files has changed in between, keeps the commit and returns false.
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
        // If a hook changed a file only in the index, the file on disk still has the planned content. It gets
        // the content of the commit first, so that it does not count as changed in between.
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
        // git restores a file only if the index knows that the file matches the commit.
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
        // If a hook removed an edit from the commit, the file on disk still has the edit.
        tree.put_back(journal)?;
        Ok(true)
    }
}

impl ReadBack {
    /// Returns the commit; if it differs from what bowline passed to git, returns the differences as text.
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
