//! The user's git: the program itself, in one work tree, under the user's own configuration.
//!
//! Commits are made by `git` and not by a library: hooks, signatures, filters, identities, credential helpers
//! and whatever a later version of git knows are then as everywhere else on this machine. What is here asks
//! and tells the program, and knows nothing of what the files mean.
//!
//! Everything blocks; whoever must not wait calls it from a thread that may.

mod arguments;
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
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub use arguments::NoAddress;
use arguments::{Arguments, is_object_id};
pub use elsewhere::check_branch_name;
pub use files::Files;
pub use state::State;

/// Why git could not be asked, or what it answered.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program is not there.
    #[error("git cannot be started ({0}); install it, or put it on the PATH")]
    NoGit(std::io::Error),
    /// The directory is in no work tree.
    #[error("{} is not in a git work tree ({why})", directory.display())]
    NoWorkTree {
        /// The directory.
        directory: PathBuf,
        /// What git says.
        why: String,
    },
    /// Git refused.
    #[error("git {command}: {said}")]
    Refused {
        /// What it was told.
        command: String,
        /// What it said.
        said: String,
    },
    /// A file of the work tree or of git's directory could not be read or written.
    #[error("{}: {error}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A value that git would read as an option, or cannot be given.
    #[error(
        "git {command} does not get {value:?}: a value must not begin with \"-\" or have a NUL character"
    )]
    Argument {
        /// The command.
        command: &'static str,
        /// The value.
        value: String,
    },
    /// A path that is none of the work tree's.
    #[error("{0:?} is outside the work tree, or inside the .git directory")]
    Outside(String),
    /// Git's answer makes no sense.
    #[error("unexpected output of git {command}")]
    NotUnderstood {
        /// What it was told.
        command: &'static str,
    },
}

impl GitError {
    /// Tells whether something is missing that a partial clone would have to fetch.
    pub fn is_of_partial_clone(&self) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains("promisor remote"))
    }
}

/// Variables that point git to another repository or another history than the one that bowline names, or
/// change how git reads paths. A hook of git that runs bowline sets several of them.
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

/// A git work tree, or a directory of one.
#[derive(Clone, Debug)]
pub struct WorkTree {
    root: PathBuf,
    scope: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    program: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl WorkTree {
    /// Finds the work tree that a directory is in.
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
        };
        let question = Arguments::plain(
            "rev-parse",
            ["--show-toplevel", "--absolute-git-dir", "--git-common-dir"],
        );
        // A directory of somebody else's work tree can have the form of a bare repository, and its
        // configuration can name programs.
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
        // Git says it from where it was asked.
        found.common_dir = found.scope.join(common_dir);
        Ok(found)
    }

    /// Returns the directory that paths are relative to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory that was named; files outside of it are left alone.
    pub fn scope(&self) -> &Path {
        &self.scope
    }

    /// Returns git's own directory of this work tree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the commit that a revision and what is checked out both come from; None where there is none.
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

    /// Returns what a commit has at a path; None where it has nothing there.
    pub fn blob(&self, revision: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        self.blob_named(&format!("{revision}:{path}"))
    }

    fn blob_named(&self, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        let question = Arguments::plain("cat-file", ["blob"]).operand(name);
        let output = self.output(&self.root, &question, &[], b"")?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// Reads many blobs at once, by their ids or by `REVISION:PATH`; None for what is not there.
    pub fn blobs(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        // Names are told apart by lines, so one of several lines is asked for by itself.
        let (lines, plain): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| name.contains('\n'));
        if lines.is_empty() {
            return self.blobs_by_line(&plain);
        }
        let mut found = self.blobs_by_line(&plain)?.into_iter();
        let each = names.iter().map(|name| match name.contains('\n') {
            true => self.blob_named(name),
            false => Ok(found.next().flatten()),
        });
        each.collect()
    }

    fn blobs_by_line(&self, names: &[&String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let asked: String = names
            .iter()
            .flat_map(|name| [name.as_str(), "\n"])
            .collect();
        let question = Arguments::plain("cat-file", ["--batch", "--buffer"]);
        let output = self.output(&self.root, &question, &[], asked.as_bytes())?;
        let broken = || GitError::NotUnderstood {
            command: "cat-file --batch",
        };
        if !output.status.success() {
            return Err(GitError::Refused {
                command: "cat-file".to_owned(),
                said: complaint(&output),
            });
        }
        let mut rest = output.stdout.as_slice();
        let mut found = Vec::with_capacity(names.len());
        for _ in names {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or_else(broken)?;
            let (line, after) = rest.split_at_checked(end).ok_or_else(broken)?;
            let line = String::from_utf8_lossy(line);
            rest = after.get(1..).unwrap_or_default();
            let size = line.rsplit(' ').next().and_then(|size| size.parse().ok());
            let size: Option<usize> = size.filter(|_| line.contains(" blob "));
            found.push(match size {
                None => None,
                Some(size) => {
                    let (bytes, after) = rest.split_at_checked(size).ok_or_else(broken)?;
                    rest = after.get(1..).unwrap_or_default();
                    Some(bytes.to_vec())
                }
            });
        }
        Ok(found)
    }

    /// Tells whether a commit is another one or comes before it.
    pub fn is_within(&self, commit: &str, other: &str) -> Result<bool, GitError> {
        let question = Arguments::plain("merge-base", ["--is-ancestor"]);
        let question = question.operand(commit).operand(other);
        let output = self.output(&self.root, &question, &[], b"")?;
        Ok(output.status.success())
    }

    /// Lists the files that differ between two commits.
    pub fn changed_between(&self, one: &str, other: &str) -> Result<BTreeSet<String>, GitError> {
        let question = Arguments::plain("diff-tree", ["-r", "-z", "--name-only"]);
        let listed = self.ask(question.operand(one).operand(other))?;
        let files = listed.split('\0').filter(|file| !file.is_empty());
        Ok(files.map(str::to_owned).collect())
    }

    /// Returns the commit that a revision names; None where it names none.
    pub fn commit_of(&self, revision: &str) -> Result<Option<String>, GitError> {
        let name = format!("{revision}^{{commit}}");
        let question = Arguments::plain("rev-parse", ["--verify", "--quiet"]).operand(name);
        let output = match self.output(&self.root, &question, &[], b"") {
            // A text that begins with `-` names no commit.
            Err(GitError::Argument { .. }) => return Ok(None),
            output => output?,
        };
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        // Git answers `^ID` for `^REVISION`.
        Ok(Some(said).filter(|said| output.status.success() && is_object_id(said)))
    }

    /// Runs git in the root of the work tree and returns what it printed.
    fn ask(&self, arguments: Arguments) -> Result<String, GitError> {
        self.ask_in(&self.root, &arguments)
    }

    fn ask_in(&self, directory: &Path, arguments: &Arguments) -> Result<String, GitError> {
        let output = self.output(directory, arguments, &[], b"")?;
        told(arguments.command(), output)
    }

    /// Runs git with something on its standard input, and with variables of its own.
    fn output(
        &self,
        directory: &Path,
        arguments: &Arguments,
        variables: &[(&str, &OsStr)],
        input: &[u8],
    ) -> Result<Output, GitError> {
        let arguments = arguments.list()?;
        let mut command = Command::new(&self.program);
        command
            // Not by the directory of the process: with it, or with a program that is still to be looked for,
            // all of our memory would be mapped once more for each call.
            .arg("-C")
            .arg(directory)
            .env_clear()
            .envs(&self.variables)
            .env("LC_ALL", "C")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in variables {
            command.env(name, value);
        }
        let mut child = command.spawn().map_err(GitError::NoGit)?;
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                scope.spawn(move || {
                    // Whoever does not read all of it has its reasons, and says them.
                    let _ = stdin.write_all(input);
                });
            }
            child.wait_with_output().map_err(GitError::NoGit)
        })
    }
}

/// Finds git on the user's path; its bare name where it is not there.
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

/// Returns what git printed, or its complaint.
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

/// What git said when it refused: hooks speak on either channel.
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
