//! A commit to a branch that is not checked out.
//!
//! Nothing of the work tree or of the user's index is touched: the commit is put together in an index of its
//! own, and the branch moves by compare-and-swap. `commit-msg` is the only hook that runs, for the others
//! look at the work tree; whether it is signed is asked of the configuration, as `git commit` does.

use std::ffi::OsStr;
use std::path::Path;

use super::commit::{CommitError, FileEdit, Made, Turn, Wanted};
use super::{GitError, State, told};

impl Turn<'_> {
    /// Commits to a branch that is not checked out here.
    pub(super) fn elsewhere(
        &self,
        state: &State,
        branch: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Made, CommitError> {
        let tree = self.tree;
        let reference = format!("refs/heads/{branch}");
        if tree.ask(["check-ref-format", reference.as_str()]).is_err() {
            return Err(CommitError::NoBranchName(branch.to_owned()));
        }
        if let Some(place) = self.checked_out(&reference)? {
            return Err(CommitError::CheckedOut {
                branch: branch.to_owned(),
                place,
            });
        }
        let known = tree.commit_of(&reference)?;
        let base = known.clone().or_else(|| state.head.clone());
        let base = base.ok_or(CommitError::Detached)?;
        if known.is_some() {
            self.same_as(&base, branch, wanted.edits)?;
        }
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

    /// The files have to be on the branch as they are here.
    fn same_as(&self, base: &str, branch: &str, edits: &[FileEdit]) -> Result<(), CommitError> {
        let side = |revision: &str| -> Vec<String> {
            let paths = edits.iter().map(|edit| format!("{revision}:{}", edit.path));
            paths.collect()
        };
        let (there, here) = (
            self.tree.blobs(&side(base))?,
            self.tree.blobs(&side("HEAD"))?,
        );
        for ((there, here), edit) in there.iter().zip(&here).zip(edits) {
            if there != here {
                return Err(CommitError::Differs {
                    branch: branch.to_owned(),
                    path: edit.path.clone(),
                });
            }
        }
        Ok(())
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
        .map_err(|error| match error {
            GitError::Refused { said, .. } => CommitError::Refused(said),
            error => error.into(),
        })?;
        let mut arguments = vec!["commit-tree", made.trim(), "-p", base, "-F", &message];
        if self.signs()? {
            arguments.push("-S");
        }
        let commit = run(&arguments, b"").map_err(|error| match error {
            GitError::Refused { said, .. } => CommitError::Refused(said),
            error => error.into(),
        })?;
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

    /// Finds the work tree that a branch is checked out in.
    fn checked_out(&self, reference: &str) -> Result<Option<String>, GitError> {
        let listed = self.tree.ask(["worktree", "list", "--porcelain"])?;
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
}
