//! Pushes a branch to a remote, and fetches a branch from a remote.

use super::arguments::{Arguments, NoAddress, check_address};
use super::{GitError, WorkTree, complaint};
use crate::text::quoted;

/// The reason why a push or fetch failed. The local commits stay unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The clone has no remote, or has several and the user named none. Contains the names of the remotes.
    #[error("bowline cannot choose a remote{}", known(.0))]
    NoRemote(Vec<String>),
    /// The user named a remote that the clone does not have, and the text is no address either.
    #[error("{remote:?} is neither a remote nor an address ({why}){}", known(.remotes))]
    NoSuchRemote {
        /// The text that the user gave for the remote.
        remote: String,
        /// The reason why the text is no address.
        why: NoAddress,
        remotes: Vec<String>,
    },
    /// The clone does not have the branch to push. Contains the name of the branch.
    #[error("branch {0} does not exist, so there is nothing to push")]
    NoBranch(String),
    /// The remote refused the push, because its branch has commits that the clone does not have.
    #[error("the push was rejected: {remote} has newer commits on {branch}")]
    Rejected {
        /// The name or the address of the remote.
        remote: String,
        branch: String,
        /// Whether the pushed branch is checked out in this work tree.
        here: bool,
    },
    /// A rule of the remote refused the push.
    #[error("{remote} refused the push of {branch}: {said}")]
    Refused {
        /// The name or the address of the remote.
        remote: String,
        branch: String,
        /// The message of the remote about the refused push.
        said: String,
    },
    /// git or a local hook did not send the branch to the remote.
    #[error("git did not push {branch} to {remote}: {said}")]
    NotSent {
        /// The name or the address of the remote.
        remote: String,
        branch: String,
        /// The output of git and of the hook.
        said: String,
    },
    /// The remote did not answer, or refused the user's credentials.
    #[error("{remote} could not be reached: {said}")]
    Unreachable {
        /// The name or the address of the remote.
        remote: String,
        branch: String,
        /// The output of git about the connection.
        said: String,
    },
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

fn known(remotes: &[String]) -> String {
    match remotes.is_empty() {
        true => ": the repository has none".to_owned(),
        false => format!("; known: {}", remotes.join(", ")),
    }
}

impl PushError {
    /// Converts the error of a git command that contacts a remote. A command that exceeded its deadline becomes
    /// [`PushError::Unreachable`].
    fn of(error: GitError, remote: &str, branch: &str) -> Self {
        match error {
            error @ GitError::TooSlow { .. } => Self::Unreachable {
                remote: remote.to_owned(),
                branch: branch.to_owned(),
                said: error.to_string(),
            },
            error => Self::Git(error),
        }
    }

    /// Returns the next steps for the user, whose commit exists already; empty if there are none.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NoRemote(remotes) if remotes.is_empty() => vec![
                "add a remote: git remote add origin ADDRESS".to_owned(),
                "then push the commit: git push".to_owned(),
            ],
            Self::NoRemote(_) | Self::NoSuchRemote { .. } => {
                vec!["name one with --remote NAME, from: git remote".to_owned()]
            }
            Self::Rejected {
                remote,
                branch,
                here,
            } => {
                let there = quoted(&format!("{remote}/{branch}"));
                let (remote, branch) = (quoted(remote), quoted(branch));
                let push =
                    format!("git pull --rebase {remote} {branch} && git push {remote} {branch}");
                let (push, discard) = match here {
                    true => (push, format!("git reset --keep {there}")),
                    false => (
                        format!("git switch {branch} && {push}"),
                        format!("git branch --force {branch} {there}"),
                    ),
                };
                vec![
                    format!("your commit is kept; to push it: {push}"),
                    format!("to discard your commit: {discard}"),
                ]
            }
            Self::Refused { remote, branch, .. } => {
                let refs = quoted(&format!("{branch}:NAME"));
                vec![format!(
                    "your commit is kept; push it to a branch of its own and open a pull request: git push {} {refs}",
                    quoted(remote)
                )]
            }
            Self::NotSent { remote, branch, .. } | Self::Unreachable { remote, branch, .. } => {
                let (remote, branch) = (quoted(remote), quoted(branch));
                vec![format!(
                    "your commit is kept; try again: git push {remote} {branch}"
                )]
            }
            Self::NoBranch(_) | Self::Git(_) => Vec::new(),
        }
    }
}

impl WorkTree {
    /// Returns the names of the remotes that the clone has configured.
    pub fn remotes(&self) -> Result<Vec<String>, GitError> {
        let remotes = self.ask(Arguments::of("remote"))?;
        Ok(remotes.lines().map(str::to_owned).collect())
    }

    /// Returns the name or address of the remote to use: the remote that the user named, or else the configured
    /// remote of the branch, or else `origin`, or else the only remote.
    pub fn remote(&self, named: Option<&str>, branch: &str) -> Result<String, PushError> {
        let remotes = self.remotes()?;
        let configured = |key: String| -> Result<Option<String>, GitError> {
            let question = Arguments::plain("config", ["--get"]).operand(key);
            let output = self.output(self.root(), &question, &[], b"")?;
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Ok(output.status.success().then_some(said))
        };
        if let Some(named) = named {
            if !remotes.iter().any(|remote| remote == named)
                && let Err(why) = check_address(named)
            {
                return Err(PushError::NoSuchRemote {
                    remote: named.to_owned(),
                    why,
                    remotes,
                });
            }
            return Ok(named.to_owned());
        }
        for key in [
            format!("branch.{branch}.pushRemote"),
            "remote.pushDefault".to_owned(),
            format!("branch.{branch}.remote"),
        ] {
            if let Some(found) = configured(key)?.filter(|found| remotes.contains(found)) {
                return Ok(found);
            }
        }
        match remotes.as_slice() {
            [only] => Ok(only.clone()),
            several if several.iter().any(|name| name == "origin") => Ok("origin".to_owned()),
            _ => Err(PushError::NoRemote(remotes)),
        }
    }

    /// Pushes a local branch to the branch of the same name on the remote, without force.
    pub fn push(&self, remote: &str, branch: &str) -> Result<(), PushError> {
        let own = format!("refs/heads/{branch}");
        if self.commit_of(&own)?.is_none() {
            return Err(PushError::NoBranch(branch.to_owned()));
        }
        let refs = format!("{own}:{own}");
        let arguments = Arguments::plain("push", ["--porcelain"]);
        let arguments = arguments.operand(remote).operand(refs);
        let output = match self.output_of_remote(&arguments) {
            Ok(output) => output,
            Err(error) => return Err(PushError::of(error, remote, branch)),
        };
        if output.status.success() {
            return Ok(());
        }
        let here = self.state()?.branch.as_deref() == Some(branch);
        let (said, complaint) = (String::from_utf8_lossy(&output.stdout), complaint(&output));
        let (remote, branch) = (remote.to_owned(), branch.to_owned());
        // For a refused push, git prints `!\tref:ref\t[rejected] (fetch first)`, or `[remote rejected]` if a rule of
        // the remote refused it.
        let verdict = said.lines().find(|line| line.starts_with('!'));
        Err(match verdict {
            Some(line)
                if line.contains("[rejected]")
                    || line.contains("(failed to update ref)")
                    || line.contains("(fetch first)")
                    || line.contains("cannot lock ref") =>
            {
                PushError::Rejected {
                    remote,
                    branch,
                    here,
                }
            }
            Some(_) => PushError::Refused {
                remote,
                branch,
                said: complaint,
            },
            // If the connection failed, the output of git contains `fatal:`.
            None if !complaint.contains("fatal:") => PushError::NotSent {
                remote,
                branch,
                said: complaint,
            },
            None => PushError::Unreachable {
                remote,
                branch,
                said: complaint,
            },
        })
    }

    /// Fetches a branch of a remote, and returns how many of its commits the local branch does not have. If there is
    /// no local branch, counts the commits that HEAD does not have, because a new local branch starts at HEAD.
    /// Returns 0 if the remote does not have the branch.
    pub fn fetch(&self, remote: &str, branch: &str) -> Result<u64, PushError> {
        let own = format!("refs/heads/{branch}");
        let mut refs = own.clone();
        // The remote-tracking branch is updated too, which only a named remote has, not an address.
        if self.remotes()?.iter().any(|known| known == remote) {
            refs = format!("+{own}:refs/remotes/{remote}/{branch}");
        }
        // Submodules have their own remotes, which the user did not name.
        let arguments =
            Arguments::plain("fetch", ["--quiet", "--no-tags", "--no-recurse-submodules"]);
        let arguments = arguments.operand(remote).operand(refs);
        let output = self.output_of_remote(&arguments);
        let output = output.map_err(|error| PushError::of(error, remote, branch))?;
        let said = complaint(&output);
        if !output.status.success() {
            // The result is 0 new commits, because the remote does not have the branch.
            if said.contains("couldn't find remote ref") {
                return Ok(0);
            }
            return Err(PushError::Unreachable {
                remote: remote.to_owned(),
                branch: branch.to_owned(),
                said,
            });
        }
        let begins = match self.commit_of(&own)? {
            Some(_) => own.as_str(),
            None => "HEAD",
        };
        let question = Arguments::plain("rev-list", ["--count"]);
        let count = self.ask(question.operand(format!("{begins}..FETCH_HEAD")))?;
        Ok(count.trim().parse().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_remote_that_never_answers_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            let command = command.arg("-C").arg(folder.path()).args(words);
            assert!(command.status().unwrap().success(), "{words:?}");
        };
        git(&["init", "--quiet", "--initial-branch=main"]);
        let author = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"];
        let commit = ["commit", "--quiet", "--allow-empty", "--message=first"];
        git(&[&author[..], &commit[..]].concat());
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let work = WorkTree::open(folder.path(), &std::env::vars_os().collect()).unwrap();
        work.set_remote_deadline(Duration::from_millis(300));
        for scheme in ["git", "http"] {
            let remote = format!("{scheme}://127.0.0.1:{port}/shop");
            let begun = Instant::now();
            for error in [
                work.push(&remote, "main").unwrap_err(),
                work.fetch(&remote, "main").unwrap_err(),
            ] {
                let told = matches!(error, PushError::Unreachable { .. });
                assert!(told, "{error}");
                let error = error.to_string();
                assert!(error.contains("took longer than 300ms"), "{error}");
                assert!(error.contains("--request-timeout"), "{error}");
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
    }

    #[test]
    fn a_printed_command_quotes_remotes_and_branches() {
        let (remote, branch) = (|| "my remote".to_owned(), || "x;touch${IFS}y".to_owned());
        let said = String::new;
        for (error, words) in [
            (
                PushError::Rejected {
                    remote: remote(),
                    branch: branch(),
                    here: true,
                },
                "git reset --keep 'my remote/x;touch${IFS}y'",
            ),
            (
                PushError::Rejected {
                    remote: remote(),
                    branch: branch(),
                    here: false,
                },
                "git switch 'x;touch${IFS}y' && git pull --rebase 'my remote' 'x;touch${IFS}y'",
            ),
            (
                PushError::Refused {
                    remote: remote(),
                    branch: branch(),
                    said: said(),
                },
                "git push 'my remote' 'x;touch${IFS}y:NAME'",
            ),
            (
                PushError::Unreachable {
                    remote: remote(),
                    branch: branch(),
                    said: said(),
                },
                "git push 'my remote' 'x;touch${IFS}y'",
            ),
        ] {
            let hints = error.hints();
            assert!(hints.iter().any(|hint| hint.contains(words)), "{hints:?}");
        }
    }
}
