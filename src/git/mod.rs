//! Runs the user's git program in one work tree, with the user's configuration.
//!
//! bowline makes commits with the program `git` and not with a library, so that hooks, signatures, filters,
//! identities and credential helpers work as in the user's own commits. This module does not interpret the content of
//! files.
//!
//! All functions block; async callers must use a blocking thread.

mod arguments;
mod blobs;
pub mod commit;
mod elsewhere;
mod files;
mod journal;
pub mod log;
pub mod push;
pub mod read_back;
pub mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::child::{self, Limits, RunError};
pub use arguments::NoAddress;
use arguments::{Arguments, is_object_id};
pub use blobs::{Blob, BlobLimits};
pub use elsewhere::check_branch_name;
pub use files::Files;
pub use journal::Pending;
pub use state::State;

/// The reason why a git command failed, or why bowline did not run it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program git is not installed.
    #[error("git cannot be started ({0}); install it, or put it on the PATH")]
    NoGit(std::io::Error),
    /// The directory is not in a git work tree.
    #[error("{} is not in a git work tree ({why})", directory.display())]
    NoWorkTree {
        directory: PathBuf,
        /// The error message of git.
        why: String,
    },
    /// git ended with an error.
    #[error("git {command}: {said}")]
    Refused {
        /// The git command, such as `commit`.
        command: String,
        /// The output of the failed git command.
        said: String,
    },
    /// A git command that contacts a remote did not end before its deadline.
    #[error("git {command} took longer than {after:?}; to wait longer: --request-timeout 5m")]
    TooSlow {
        /// The git command, such as `fetch`.
        command: &'static str,
        /// The deadline of the git command.
        after: Duration,
    },
    /// The output of a git command is longer than the limit.
    #[error("git {command} wrote more than {}", crate::text::bytes(*limit as u64))]
    TooMuch {
        /// The git command, such as `log`.
        command: &'static str,
        /// The limit for the output in bytes.
        limit: usize,
    },
    /// bowline could not read or write a file of the work tree or of git's directory.
    #[error("{}: {error}", file.display())]
    File {
        file: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// bowline refuses to pass a value to git, because it begins with `-`, so that git would read it as an option, or
    /// because it contains a NUL character.
    #[error(
        "git {command} does not get {value:?}: a value must not begin with \"-\" or have a NUL character"
    )]
    Argument {
        /// The git command, such as `log`.
        command: &'static str,
        /// The value that bowline refuses to pass to git.
        value: String,
    },
    /// bowline refuses a path that is outside of the work tree or in the `.git` directory. Contains the path.
    #[error("{0:?} is outside the work tree, or inside the .git directory")]
    Outside(String),
    /// bowline cannot parse the output of a git command.
    #[error("unexpected output of git {command}")]
    NotUnderstood {
        /// The git command, such as `log`.
        command: &'static str,
    },
}

impl GitError {
    /// Returns whether git failed because a partial clone does not have an object.
    pub fn is_of_partial_clone(&self) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains("promisor remote"))
    }
}

/// Environment variables that point git to another repository or another history, or change how git reads paths.
/// bowline removes them from the environment of git, because a git hook that runs bowline sets several of them.
const ELSEWHERE: [&str; 18] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// The default deadline of a git command that contacts a remote.
const REMOTE_DEADLINE: Duration = Duration::from_secs(120);

/// The largest output of git in bytes.
const OUTPUT: usize = 1 << 30;

/// A git work tree, and the directory in it that the user named.
#[derive(Clone, Debug)]
pub struct WorkTree {
    root: PathBuf,
    scope: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    program: PathBuf,
    variables: BTreeMap<OsString, OsString>,
    /// The deadline of git commands that contact a remote, in milliseconds. Clones of this work tree share the
    /// deadline.
    remote_deadline: Arc<AtomicU64>,
}

impl WorkTree {
    /// Finds the git work tree that contains a directory.
    pub fn open(
        directory: &Path,
        variables: &BTreeMap<OsString, OsString>,
    ) -> Result<Self, GitError> {
        let no_work_tree = |why: String| GitError::NoWorkTree {
            directory: directory.to_owned(),
            why,
        };
        let scope = directory
            .canonicalize()
            .map_err(|error| no_work_tree(error.to_string()))?;
        let mut variables = variables.clone();
        for name in ELSEWHERE {
            variables.remove(OsStr::new(name));
        }
        let mut found = Self {
            root: scope.clone(),
            git_dir: PathBuf::new(),
            common_dir: PathBuf::new(),
            scope,
            program: program(&variables),
            variables,
            remote_deadline: Arc::new(AtomicU64::new(milliseconds(REMOTE_DEADLINE))),
        };
        let question = Arguments::plain(
            "rev-parse",
            ["--show-toplevel", "--absolute-git-dir", "--git-common-dir"],
        );
        // In a work tree of somebody else, a directory can look like a bare repository whose configuration names
        // programs for git to run. With this setting, git ignores such a repository.
        let answer = found.ask(question.setting("safe.bareRepository=explicit"));
        let answer = answer.map_err(|error| match error {
            GitError::Refused { said, .. } => no_work_tree(said),
            error => error,
        })?;
        let mut lines = answer.lines();
        let (Some(root), Some(git_dir), Some(common_dir)) =
            (lines.next(), lines.next(), lines.next())
        else {
            return Err(no_work_tree("the repository is bare".to_owned()));
        };
        found.root = PathBuf::from(root);
        found.git_dir = PathBuf::from(git_dir);
        // git prints the path of the common directory relative to the directory in which git runs.
        found.common_dir = found.scope.join(common_dir);
        Ok(found)
    }

    /// Sets the deadline of git commands that contact a remote. The default is two minutes.
    pub fn set_remote_deadline(&self, deadline: Duration) {
        let deadline = milliseconds(deadline);
        self.remote_deadline.store(deadline, Ordering::Relaxed);
    }

    /// Returns the absolute path of the root of the work tree. Most paths in this module are relative to the root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory in the work tree that the user named. bowline uses only the files in this directory.
    pub fn scope(&self) -> &Path {
        &self.scope
    }

    /// Returns the path from the root of the work tree to [`WorkTree::scope`], with `/` as separator; empty if they
    /// are the same.
    pub fn within(&self) -> String {
        let scope = self.scope.strip_prefix(&self.root);
        let within = scope.map(|scope| scope.to_string_lossy().replace('\\', "/"));
        within.unwrap_or_default()
    }

    /// Returns git's own directory for this work tree, usually `.git`.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the id of the merge base of a revision and HEAD; None if they have no common commit.
    pub fn merge_base(&self, revision: &str) -> Result<Option<String>, GitError> {
        let question = Arguments::of("merge-base")
            .operand(revision)
            .operand("HEAD");
        let output = self.output(&self.root, &question, &[], b"")?;
        match output.status.code() {
            Some(1) => Ok(None),
            _ => told("merge-base", output).map(|said| Some(said.trim().to_owned())),
        }
    }

    /// Returns whether `commit` is in the history of `other`, or is the same commit.
    pub fn is_within(&self, commit: &str, other: &str) -> Result<bool, GitError> {
        let question = Arguments::plain("merge-base", ["--is-ancestor"]);
        let question = question.operand(commit).operand(other);
        let output = self.output(&self.root, &question, &[], b"")?;
        Ok(output.status.success())
    }

    /// Returns the paths of the files that differ between two commits.
    pub fn changed_between(&self, one: &str, other: &str) -> Result<BTreeSet<String>, GitError> {
        let question = Arguments::plain("diff-tree", ["-r", "-z", "--name-only"]);
        let listed = self.ask(question.operand(one).operand(other))?;
        let files = listed.split('\0').filter(|file| !file.is_empty());
        Ok(files.map(str::to_owned).collect())
    }

    /// Returns the commit id of a revision; None if the text does not name a commit.
    pub fn commit_of(&self, revision: &str) -> Result<Option<String>, GitError> {
        let name = format!("{revision}^{{commit}}");
        let question = Arguments::plain("rev-parse", ["--verify", "--quiet"]).operand(name);
        let output = match self.output(&self.root, &question, &[], b"") {
            // A text that begins with `-` is no revision, so the result is None and no error.
            Err(GitError::Argument { .. }) => return Ok(None),
            output => output?,
        };
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        // For the text `^REVISION`, git prints `^ID`. This is no commit id, so the result is None.
        Ok(Some(said).filter(|said| output.status.success() && is_object_id(said)))
    }

    /// Returns the author that git would use for a new commit, as `Name <address>`. None if git does not know the
    /// user's name or address.
    pub fn author(&self) -> Option<String> {
        let said = self
            .ask(Arguments::plain("var", ["GIT_AUTHOR_IDENT"]))
            .ok()?;
        // git prints `Name <address> TIME ZONE`.
        let (author, _) = said.rsplit_once('>')?;
        let author = format!("{author}>");
        (!author.starts_with('<')).then_some(author)
    }

    /// Runs a git command in the root of the work tree and returns its output.
    fn ask(&self, arguments: Arguments) -> Result<String, GitError> {
        self.ask_in(&self.root, &arguments)
    }

    fn ask_in(&self, directory: &Path, arguments: &Arguments) -> Result<String, GitError> {
        let output = self.output(directory, arguments, &[], b"")?;
        told(arguments.command(), output)
    }

    /// Runs a git command with this standard input and these additional environment variables. The git command has no
    /// deadline, because a hook may need much time.
    fn output(
        &self,
        directory: &Path,
        arguments: &Arguments,
        variables: &[(&str, &OsStr)],
        input: &[u8],
    ) -> Result<Output, GitError> {
        let (name, mut command) = self.program_with(directory, arguments, variables)?;
        child::run(&mut command, input, &LIMITS).map_err(|error| not_run(name, error))
    }

    /// Runs a git command that contacts a remote, and kills it after the deadline.
    fn output_of_remote(&self, arguments: &Arguments) -> Result<Output, GitError> {
        // Without a terminal, git must not ask for a password.
        let quiet = [("GIT_TERMINAL_PROMPT", OsStr::new("0"))];
        let deadline = Duration::from_millis(self.remote_deadline.load(Ordering::Relaxed));
        let limits = Limits {
            time: Some(deadline),
            ..LIMITS
        };
        let (name, mut command) = self.program_with(&self.root, arguments, &quiet)?;
        child::run(&mut command, b"", &limits).map_err(|error| not_run(name, error))
    }

    /// Runs a git command in the root of the work tree, and passes its output to `stdout` in pieces. The output may
    /// have any length.
    fn output_into(
        &self,
        arguments: &Arguments,
        input: &[u8],
        stdout: &mut dyn FnMut(&[u8]),
    ) -> Result<Output, GitError> {
        let (name, mut command) = self.program_with(&self.root, arguments, &[])?;
        let limits = Limits {
            output: usize::MAX,
            ..LIMITS
        };
        let output = child::run_into(&mut command, input, &limits, stdout);
        output.map_err(|error| not_run(name, error))
    }

    /// Returns the name of the git command, and the prepared process of git.
    fn program_with(
        &self,
        directory: &Path,
        arguments: &Arguments,
        variables: &[(&str, &OsStr)],
    ) -> Result<(&'static str, Command), GitError> {
        let name = arguments.command();
        let arguments = arguments.list()?;
        let mut command = Command::new(&self.program);
        command
            // git gets its directory with `-C` and its program as a full path. With a directory or a bare name,
            // starting the process would copy the memory map of bowline, which is slow.
            .arg("-C")
            .arg(directory)
            .env_clear()
            .envs(&self.variables)
            .env("LC_ALL", "C")
            .args(arguments);
        for (name, value) in variables {
            command.env(name, value);
        }
        Ok((name, command))
    }
}

/// The limits of a git command that contacts no remote.
const LIMITS: Limits = Limits {
    time: None,
    output: OUTPUT,
    // The process group of the terminal is kept, because in another group ssh could not ask for a passphrase.
    is_group: false,
};

fn not_run(command: &'static str, error: RunError) -> GitError {
    match error {
        RunError::System(error) => GitError::NoGit(error),
        RunError::TooLong(after) => GitError::TooSlow { command, after },
        RunError::TooMuch(limit) => GitError::TooMuch { command, limit },
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the path of the git program; only `git` if no directory in PATH contains the program.
fn program(variables: &BTreeMap<OsString, OsString>) -> PathBuf {
    let path = variables.get(OsStr::new("PATH"));
    let folders = path.into_iter().flat_map(std::env::split_paths);
    let found = folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("git"))
        .find(|file| is_program(file));
    found.unwrap_or_else(|| PathBuf::from("git"))
}

fn is_program(file: &Path) -> bool {
    #[cfg(unix)]
    let runs = |found: &std::fs::Metadata| {
        use std::os::unix::fs::PermissionsExt;
        found.permissions().mode() & 0o111 != 0
    };
    #[cfg(not(unix))]
    let runs = |_: &std::fs::Metadata| true;
    file.metadata()
        .is_ok_and(|found| found.is_file() && runs(&found))
}

/// Returns the standard output of a git command, or an error if the git command failed.
fn told(command: &str, output: Output) -> Result<String, GitError> {
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())),
        false => Err(GitError::Refused {
            command: command.to_owned(),
            said: complaint(&output),
        }),
    }
}

/// Returns the error output and the standard output of a git command as one text, because hooks write to either.
fn complaint(output: &Output) -> String {
    let said = [&output.stderr, &output.stdout]
        .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let said: Vec<&str> = said
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    match said.is_empty() {
        true => format!("it ended with {}", output.status),
        false => said.join("\n"),
    }
}
