//! Commits to a branch that is not checked out.
//!
//! The work tree and the user's index stay unchanged: bowline builds the commit with a temporary index, and then
//! changes the branch by compare-and-swap. Of the user's hooks, only `commit-msg` runs, because the others need the
//! work tree. The commit is signed if the user's configuration requires it, as for `git commit`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::arguments::{Arguments, is_branch_name};
use super::commit::{CommitError, FileEdit, Made, Turn, Wanted};
use super::{GitError, State, WorkTree, told};

impl Turn<'_> {
    /// Makes a commit on a branch that is not checked out in this work tree.
    pub(super) fn elsewhere(
        &self,
        state: &State,
        branch: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Made, CommitError> {
        let tree = self.tree;
        let reference = reference(branch);
        let known = tree.commit_of(&reference)?;
        let base = known.clone().or_else(|| state.head.clone());
        let base = base.ok_or(CommitError::Detached)?;
        let index = tree.notes().join("index");
        let built = self.build(&index, &base, wanted);
        // The temporary index is deleted first, also if the commit failed.
        let _ = std::fs::remove_file(&index);
        let commit = built?;
        // An error here needs no undo, because no branch has the commit yet.
        let read = tree.read_back(Some(&base), &commit, wanted)?;
        let made = read
            .made(branch, false)
            .map_err(|what| CommitError::Altered {
                what,
                commit: commit.clone(),
                kept: None,
            })?;
        let old = known.unwrap_or_else(|| "0".repeat(commit.len()));
        let subject = wanted.message.lines().next().unwrap_or_default();
        let update = Arguments::of("update-ref").short("-m", subject);
        let update = update.operand(&reference).operand(&commit).operand(&old);
        match tree.ask(update) {
            Ok(_) => Ok(made),
            Err(GitError::Refused { .. }) => Err(CommitError::Changed {
                path: format!("branch {branch}"),
            }),
            Err(error) => Err(error.into()),
        }
    }

    fn build(&self, index: &Path, base: &str, wanted: &Wanted<'_>) -> Result<String, CommitError> {
        let tree = self.tree;
        let own: [(&str, &OsStr); 1] = [("GIT_INDEX_FILE", index.as_os_str())];
        let run = |arguments: Arguments, input: &[u8]| -> Result<String, GitError> {
            let output = tree.output(tree.root(), &arguments, &own, input)?;
            told(arguments.command(), output)
        };
        run(Arguments::of("read-tree").operand(base), b"")?;
        let mut entries = String::new();
        let zero = "0".repeat(base.len());
        for edit in wanted.edits {
            match &edit.after {
                None => entries += &format!("0 {zero}\t{}\0", edit.path),
                Some(bytes) => {
                    let hash = Arguments::plain("hash-object", ["-w", "--stdin"]);
                    let blob = run(hash.value("--path", &edit.path), bytes)?;
                    let mode = self.mode(edit);
                    entries += &format!("{mode} {}\t{}\0", blob.trim(), edit.path);
                }
            }
        }
        let update = Arguments::plain("update-index", ["-z", "--index-info"]);
        run(update, entries.as_bytes())?;
        let made = run(Arguments::of("write-tree"), b"")?;
        let message = tree.notes().join("message");
        tree.write_private(&message, wanted.message.as_bytes())?;
        let hook = Arguments::plain("hook", ["run", "--ignore-missing", "commit-msg"]);
        run(hook.behind_dashes(&message), b"").map_err(CommitError::refused)?;
        let mut arguments = Arguments::of("commit-tree")
            .setting("i18n.commitEncoding=UTF-8")
            .short("-p", base)
            .short("-F", &message)
            .operand(made.trim());
        if self.signs()? {
            arguments = arguments.flag("-S");
        }
        let commit = run(arguments, b"").map_err(CommitError::refused)?;
        Ok(commit.trim().to_owned())
    }

    fn mode(&self, edit: &FileEdit) -> &'static str {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = self.tree.root().join(&edit.path);
            let known = std::fs::metadata(file).map(|known| known.permissions().mode());
            if known.is_ok_and(|mode| mode & 0o111 != 0) {
                return "100755";
            }
        }
        #[cfg(not(unix))]
        let _ = edit;
        "100644"
    }

    /// Returns whether the user's configuration requires signed commits. bowline reads this setting, because `git
    /// commit-tree` ignores it.
    fn signs(&self) -> Result<bool, GitError> {
        let question = Arguments::plain("config", ["--type=bool", "--get", "commit.gpgSign"]);
        let output = self.tree.output(self.tree.root(), &question, &[], b"")?;
        Ok(output.status.success() && output.stdout.starts_with(b"true"))
    }
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// Returns an error if a text is no valid branch name.
pub fn check_branch_name(name: &str) -> Result<(), CommitError> {
    match is_branch_name(name) {
        true => Ok(()),
        false => Err(CommitError::NoBranchName(name.to_owned())),
    }
}

impl WorkTree {
    /// Checks whether a commit to a branch that is not checked out would be possible now.
    pub(super) fn admits_elsewhere(
        &self,
        state: &State,
        branch: &str,
        wanted: &Wanted<'_>,
    ) -> Result<(), CommitError> {
        let reference = reference(branch);
        check_branch_name(branch)?;
        if let Some(place) = self.checked_out(&reference)? {
            return Err(CommitError::CheckedOut {
                branch: branch.to_owned(),
                place,
            });
        }
        if self.is_rebased(&reference)? {
            return Err(CommitError::UnderWay(format!("a rebase of {branch}")));
        }
        match (self.commit_of(&reference)?, &state.head) {
            (Some(base), Some(head)) => self.same_as(&base, head, branch, wanted.edits),
            (_, None) => Err(CommitError::Detached),
            (None, Some(_)) => Ok(()),
        }
    }

    /// Checks that every file to edit is the same in `base`, the tip of the branch, and in `head`, the checked out
    /// commit from which the plan was made.
    fn same_as(
        &self,
        base: &str,
        head: &str,
        branch: &str,
        edits: &[FileEdit],
    ) -> Result<(), CommitError> {
        let changed = self.changed_between(head, base)?;
        match edits.iter().find(|edit| changed.contains(&edit.path)) {
            None => Ok(()),
            Some(edit) => Err(CommitError::Differs {
                branch: branch.to_owned(),
                path: edit.path.clone(),
            }),
        }
    }

    /// Returns the directory of the work tree in which a branch is checked out; None if no work tree has checked out
    /// the branch.
    fn checked_out(&self, reference: &str) -> Result<Option<String>, GitError> {
        let listed = self.ask(Arguments::plain("worktree", ["list", "--porcelain"]))?;
        let mut place = None;
        for line in listed.lines() {
            if let Some(found) = line.strip_prefix("worktree ") {
                place = Some(found.to_owned());
            }
            if line.strip_prefix("branch ") == Some(reference) {
                return Ok(place);
            }
        }
        Ok(None)
    }

    /// Returns whether a work tree is rebasing the branch. A new commit on the branch would break the rebase.
    fn is_rebased(&self, reference: &str) -> Result<bool, GitError> {
        let question =
            Arguments::plain("rev-parse", ["--path-format=absolute", "--git-common-dir"]);
        let common = PathBuf::from(self.ask(question)?.trim_end());
        let others = std::fs::read_dir(common.join("worktrees"));
        let others = others.into_iter().flatten().flatten();
        let folders = others.map(|other| other.path()).chain([common]);
        let names = folders.flat_map(|folder| {
            ["rebase-merge", "rebase-apply"].map(|kind| folder.join(kind).join("head-name"))
        });
        let mut said = names.filter_map(|name| std::fs::read_to_string(name).ok());
        Ok(said.any(|said| said.trim_end() == reference))
    }
}
