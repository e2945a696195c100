//! A commit to a branch that is not checked out.
//!
//! Nothing of the work tree or of the user's index is touched: the commit is put together in an index of its
//! own, and the branch moves by compare-and-swap. `commit-msg` is the only hook that runs, for the others
//! look at the work tree; whether it is signed is asked of the configuration, as `git commit` does.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::commit::{CommitError, FileEdit, Made, Turn, Wanted};
use super::{GitError, State, WorkTree, told};

impl Turn<'_> {
    /// Commits to a branch that is not checked out here.
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
        // It is put together anew every time.
        let _ = std::fs::remove_file(&index);
        let commit = built?;
        let old = known.unwrap_or_else(|| "0".repeat(commit.len()));
        let subject = wanted.message.lines().next().unwrap_or_default();
        let moved = tree.ask([
            "update-ref",
            "-m",
            subject,
            reference.as_str(),
            commit.as_str(),
            old.as_str(),
        ]);
        match moved {
            Ok(_) => Ok(Made {
                commit,
                branch: branch.to_owned(),
            }),
            Err(GitError::Refused { .. }) => Err(CommitError::Changed {
                path: format!("branch {branch}"),
            }),
            Err(error) => Err(error.into()),
        }
    }

    fn build(&self, index: &Path, base: &str, wanted: &Wanted<'_>) -> Result<String, CommitError> {
        let tree = self.tree;
        let own: [(&str, &OsStr); 1] = [("GIT_INDEX_FILE", index.as_os_str())];
        let run = |arguments: &[&str], input: &[u8]| -> Result<String, GitError> {
            let output = tree.output(tree.root(), arguments.iter().copied(), &own, input)?;
            told(arguments.first().copied().unwrap_or_default(), output)
        };
        run(&["read-tree", base], b"")?;
        let mut entries = String::new();
        let zero = "0".repeat(base.len());
        for edit in wanted.edits {
            match &edit.after {
                None => entries += &format!("0 {zero}\t{}\0", edit.path),
                Some(bytes) => {
                    let path = format!("--path={}", edit.path);
                    let blob = run(&["hash-object", "-w", "--stdin", &path], bytes)?;
                    let mode = self.mode(edit);
                    entries += &format!("{mode} {}\t{}\0", blob.trim(), edit.path);
                }
            }
        }
        run(&["update-index", "-z", "--index-info"], entries.as_bytes())?;
        let made = run(&["write-tree"], b"")?;
        let message = tree.notes().join("message");
        tree.write_private(&message, wanted.message.as_bytes())?;
        let message = message.to_string_lossy();
        run(
            &[
                "hook",
                "run",
                "--ignore-missing",
                "commit-msg",
                "--",
                &message,
            ],
            b"",
        )
        .map_err(CommitError::refused)?;
        let mut arguments = vec!["commit-tree", made.trim(), "-p", base, "-F", &message];
        if self.signs()? {
            arguments.push("-S");
        }
        let commit = run(&arguments, b"").map_err(CommitError::refused)?;
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

    /// Tells whether the configuration wants commits signed; `git commit` asks it by itself.
    fn signs(&self) -> Result<bool, GitError> {
        let arguments = ["config", "--type=bool", "--get", "commit.gpgSign"];
        let output = self.tree.output(self.tree.root(), arguments, &[], b"")?;
        Ok(output.status.success() && output.stdout.starts_with(b"true"))
    }
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

impl WorkTree {
    /// Looks whether a commit could be made on a branch that is not checked out here.
    pub(super) fn admits_elsewhere(
        &self,
        state: &State,
        branch: &str,
        wanted: &Wanted<'_>,
    ) -> Result<(), CommitError> {
        let reference = reference(branch);
        if !self.is_branch_name(branch) {
            return Err(CommitError::NoBranchName(branch.to_owned()));
        }
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

    /// Tells whether a name is one for a branch, and no other way to write one.
    fn is_branch_name(&self, name: &str) -> bool {
        let said = self.ask(["check-ref-format", "--branch", name]);
        !name.starts_with("refs/") && said.is_ok_and(|said| said.trim_end() == name)
    }

    /// The files have to be on the branch as they are here.
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

    /// Finds the work tree that a branch is checked out in.
    fn checked_out(&self, reference: &str) -> Result<Option<String>, GitError> {
        let listed = self.ask(["worktree", "list", "--porcelain"])?;
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

    /// Tells whether a branch is being rebased in some work tree: what is put on it meanwhile would stop that.
    fn is_rebased(&self, reference: &str) -> Result<bool, GitError> {
        let common = self.ask(["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        let common = PathBuf::from(common.trim_end());
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
