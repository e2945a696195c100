//! Creates git repositories with the installed git. The commits are the same in every run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The path of the definition file in every test repository.
pub const FILE: &str = "types/web.yaml";
pub const FIRST: &str = "kind: ComponentTypeDefinition\nversion: 1\n";
pub const SECOND: &str = "kind: ComponentTypeDefinition\nversion: 2\n";

/// Runs git without the user's configuration. Returns its output without blanks at the ends.
pub fn git(directory: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Ana")
        .env("GIT_AUTHOR_EMAIL", "ana@example.com")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_NAME", "Ana")
        .env("GIT_COMMITTER_EMAIL", "ana@example.com")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?} failed");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A bare git repository with two commits.
pub struct Repository {
    pub path: PathBuf,
    pub first: String,
    pub second: String,
}

impl Repository {
    pub fn new(path: PathBuf) -> Self {
        Self::with_format(path, "sha1")
    }

    pub fn with_format(path: PathBuf, format: &str) -> Self {
        std::fs::create_dir_all(&path).unwrap();
        let format = format!("--object-format={format}");
        git(&path, &["init", "-q", "--bare", "-b", "main", &format], b"");
        let mut repository = Self {
            path,
            first: String::new(),
            second: String::new(),
        };
        repository.first = repository.commit(&[
            ("100644", FILE, FIRST.as_bytes()),
            ("100755", "bin/run.sh", b"#!/bin/sh\n"),
            ("120000", "link.yaml", b"types/web.yaml"),
            ("120000", "linked", b"types"),
            ("100644", "large.bin", &vec![7; 2_000_000]),
            (
                "100644",
                "lfs.yaml",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n",
            ),
            ("100644", ".gitattributes", b"*.yaml filter=evil eol=crlf\n"),
        ]);
        repository.second = repository.commit(&[("100644", FILE, SECOND.as_bytes())]);
        repository
    }

    /// Adds a commit to the main branch, and returns its id.
    pub fn commit(&self, files: &[(&str, &str, &[u8])]) -> String {
        let mut stream = Vec::new();
        let parent = self.path.join("refs/heads/main").exists();
        stream.extend(b"commit refs/heads/main\n");
        stream.extend(b"committer Ana <ana@example.com> 1700000000 +0000\ndata 4\nwork\n");
        if parent {
            stream.extend(b"from refs/heads/main^0\n");
        } else if self.path.join("config").exists() {
            let id = "1234567890123456789012345678901234567890";
            let id = if self.is_sha256() {
                format!("{id}123456789012345678901234")
            } else {
                id.to_owned()
            };
            stream.extend(format!("M 160000 {id} module\n").bytes());
        }
        for (mode, path, bytes) in files {
            stream.extend(format!("M {mode} inline {path}\ndata {}\n", bytes.len()).bytes());
            stream.extend(*bytes);
            stream.push(b'\n');
        }
        stream.extend(b"done\n");
        git(&self.path, &["fast-import", "--quiet", "--done"], &stream);
        git(&self.path, &["rev-parse", "main"], b"")
    }

    fn is_sha256(&self) -> bool {
        let config = std::fs::read_to_string(self.path.join("config")).unwrap();
        config.contains("sha256")
    }

    pub fn url(&self) -> String {
        format!("file://{}", self.path.display())
    }
}
