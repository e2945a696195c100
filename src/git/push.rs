//! Sending a branch to a remote, and looking what is there.

use super::arguments::{Arguments, NoAddress, check_address};
use super::{GitError, WorkTree, complaint};
use crate::text::quoted;

/// Why a branch was not pushed. The commit stays.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// There is no remote, or several and none is meant.
    #[error("bowline cannot choose a remote{}", known(.0))]
    NoRemote(Vec<String>),
    /// The name that the user gave is neither a remote nor an address.
    #[error("{remote:?} is neither a remote nor an address ({why}){}", known(.remotes))]
    NoSuchRemote {
        /// The text that the user gave.
        remote: String,
        /// Why it is no address.
        why: NoAddress,
        /// The remotes that there are.
        remotes: Vec<String>,
    },
    /// There is no such branch here.
    #[error("branch {0} does not exist, so there is nothing to push")]
    NoBranch(String),
    /// Somebody else was faster.
    #[error("the push was rejected: {remote} has newer commits on {branch}")]
    Rejected {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// Whether it is checked out here.
        here: bool,
    },
    /// The remote refuses, by a rule of its own.
    #[error("{remote} refused the push of {branch}: {said}")]
    Refused {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// What it said.
        said: String,
    },
    /// Git, or a hook of this repository, did not send it.
    #[error("git did not push {branch} to {remote}: {said}")]
    NotSent {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// What they said.
        said: String,
    },
    /// The remote could not be reached, or did not let us in.
    #[error("{remote} could not be reached: {said}")]
    Unreachable {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// What git said.
        said: String,
    },
    /// Git could not be asked.
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
    /// Says how to go on; the commit is there already.
    pub fn hint(&self) -> Option<String> {
        let names = |remote: &str, branch: &str| (quoted(remote), quoted(branch));
        Some(match self {
            Self::NoRemote(remotes) if remotes.is_empty() => {
                "git remote add origin ADDRESS, then git push".to_owned()
            }
            Self::NoRemote(_) | Self::NoSuchRemote { .. } => {
                "name a remote with --remote; git remote lists them".to_owned()
            }
            Self::Rejected {
                remote,
                branch,
                here,
            } => {
                let there = quoted(&format!("{remote}/{branch}"));
                let (remote, branch) = names(remote, branch);
                let pull = format!(
                    "git pull --rebase {remote} {branch} and git push {remote} {branch}; to give it up:"
                );
                match here {
                    true => format!("your commit is kept; {pull} git reset --keep {there}"),
                    false => format!(
                        "your commit is kept; git switch {branch}, {pull} git branch --force {branch} {there}"
                    ),
                }
            }
            Self::Refused { remote, branch, .. } => {
                let refs = quoted(&format!("{branch}:NAME"));
                format!(
                    "your commit is kept; push it to a branch of its own and open a pull request: git push {} {refs}",
                    quoted(remote)
                )
            }
            Self::NotSent { remote, branch, .. } | Self::Unreachable { remote, branch, .. } => {
                let (remote, branch) = names(remote, branch);
                format!("your commit is kept; try again: git push {remote} {branch}")
            }
            Self::NoBranch(_) | Self::Git(_) => return None,
        })
    }
}

impl WorkTree {
    /// Lists the remotes.
    pub fn remotes(&self) -> Result<Vec<String>, GitError> {
        let remotes = self.ask(Arguments::of("remote"))?;
        Ok(remotes.lines().map(str::to_owned).collect())
    }

    /// Returns the remote that is meant: the one that was named, that of the branch, `origin`, or the only one.
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

    /// Pushes a branch to the branch of the same name; never by force.
    pub fn push(&self, remote: &str, branch: &str) -> Result<(), PushError> {
        let own = format!("refs/heads/{branch}");
        if self.commit_of(&own)?.is_none() {
            return Err(PushError::NoBranch(branch.to_owned()));
        }
        let refs = format!("{own}:{own}");
        let arguments = Arguments::plain("push", ["--porcelain"]);
        let arguments = arguments.operand(remote).operand(refs);
        let output = self.output(self.root(), &arguments, &quiet(), b"")?;
        if output.status.success() {
            return Ok(());
        }
        let here = self.state()?.branch.as_deref() == Some(branch);
        let (said, complaint) = (String::from_utf8_lossy(&output.stdout), complaint(&output));
        let (remote, branch) = (remote.to_owned(), branch.to_owned());
        // `!\tref:ref\t[rejected] (fetch first)`; what a server forbids is `[remote rejected]`.
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
            // Who was not even reached ends with something fatal.
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

    /// Fetches a branch of a remote, and returns how many commits it has there that are not here: not on
    /// the branch, or not where it would begin. None where the remote has no such branch.
    pub fn fetch(&self, remote: &str, branch: &str) -> Result<u64, PushError> {
        let own = format!("refs/heads/{branch}");
        let mut refs = own.clone();
        // What is no remote but an address has no branches here.
        if self.remotes()?.iter().any(|known| known == remote) {
            refs = format!("+{own}:refs/remotes/{remote}/{branch}");
        }
        // Submodules have remotes of their own, which nobody named.
        let arguments =
            Arguments::plain("fetch", ["--quiet", "--no-tags", "--no-recurse-submodules"]);
        let arguments = arguments.operand(remote).operand(refs);
        let output = self.output(self.root(), &arguments, &quiet(), b"")?;
        let said = complaint(&output);
        if !output.status.success() {
            // A branch that nobody has pushed yet is not behind anything.
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

/// Git must not ask for a password where nobody can answer.
fn quiet() -> [(&'static str, &'static std::ffi::OsStr); 1] {
    [("GIT_TERMINAL_PROMPT", "0".as_ref())]
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "git switch 'x;touch${IFS}y', git pull --rebase 'my remote' 'x;touch${IFS}y'",
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
            let hint = error.hint().unwrap();
            assert!(hint.contains(words), "{hint}");
        }
    }
}
