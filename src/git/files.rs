//! The files of a work tree: lists all files or the changed ones, and checks paths.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::arguments::Arguments;
use super::{GitError, WorkTree, told};

impl WorkTree {
    /// Returns the absolute path of a file in the work tree. Fails if the path leads out of the work tree, for
    /// example through a symbolic link, or into `.git`.
    pub fn inside(&self, path: &str) -> Result<PathBuf, GitError> {
        let mut file = self.root.clone();
        for (at, part) in path.split('/').enumerate() {
            let mut parts = Path::new(part).components();
            let plain = matches!(
                (parts.next(), parts.next()),
                (Some(Component::Normal(_)), None)
            );
            let linked = at > 0 && file.is_symlink();
            if !plain || linked || part.eq_ignore_ascii_case(".git") || part.contains('\0') {
                return Err(GitError::Outside(path.to_owned()));
            }
            file.push(part);
        }
        Ok(file)
    }

    /// Returns whether the ignore rules of git match a path.
    pub fn ignores(&self, path: &str) -> Result<bool, GitError> {
        let question = Arguments::plain("check-ignore", ["--quiet"]).operand(format!("./{path}"));
        let output = self.output(&self.root, &question, &[], b"")?;
        match output.status.code() {
            Some(1) => Ok(false),
            _ => told("check-ignore", output).map(|_| true),
        }
    }

    /// Lists the files below [`WorkTree::scope`] that differ from a commit, and those that git does not track.
    pub fn changed_since(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let question = Arguments::plain("diff", ["--name-only", "-z", "--no-renames"]);
        let question = question.operand(commit).below();
        let changed = self.ask_in(&self.scope, &question)?;
        let question = Arguments::plain(
            "ls-files",
            ["-z", "-o", "--exclude-standard", "--full-name"],
        );
        let new = self.ask_in(&self.scope, &question)?;
        let files = changed.split('\0').chain(new.split('\0'));
        let files = files.filter(|file| !file.is_empty());
        Ok(files.map(str::to_owned).collect())
    }

    /// Lists the files below [`WorkTree::scope`]: the tracked files, and the untracked files that git does not
    /// ignore.
    pub fn files(&self) -> Result<Files, GitError> {
        let question = Arguments::plain(
            "ls-files",
            [
                "-z",
                "-c",
                "-o",
                "-s",
                "-t",
                "--exclude-standard",
                "--full-name",
            ],
        );
        let listed = self.ask_in(&self.scope, &question)?;
        Ok(Files::read(&listed))
    }
}

/// The files of a work tree, as git lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The paths of all files except submodules, relative to the root of the work tree.
    pub paths: Vec<String>,
    /// The tracked files that are not on disk because of a sparse checkout: path and blob id of each file.
    pub left_out: Vec<(String, String)>,
    /// The paths of the tracked symbolic links, and of all untracked files, because git does not tell which of these
    /// are links.
    pub links: Vec<String>,
    /// The paths of the submodules, relative to the root of the work tree.
    pub submodules: BTreeSet<String>,
}

impl Files {
    /// Parses the output of `ls-files -z -s -t`: `H 100644 BLOB 0<TAB>PATH` for a tracked file, `? PATH` for
    /// an untracked file.
    fn read(listed: &str) -> Self {
        let mut files = Self::default();
        for line in listed.split('\0') {
            let Some((tag, rest)) = line.split_once(' ') else {
                continue;
            };
            let (facts, path) = match tag {
                "?" => ("", rest),
                _ => rest.split_once('\t').unwrap_or(("", rest)),
            };
            if tag == "S" {
                let blob = facts.split(' ').nth(1).unwrap_or_default();
                files.left_out.push((path.to_owned(), blob.to_owned()));
            }
            match facts.split(' ').next() {
                Some("160000") => {
                    files.submodules.insert(path.to_owned());
                    continue;
                }
                Some("120000" | "") => files.links.push(path.to_owned()),
                _ => {}
            }
            files.paths.push(path.to_owned());
        }
        // git lists a file with a merge conflict several times, once per side of the conflict.
        files.paths.dedup();
        files
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn work(place: &Path) -> WorkTree {
        let variables = std::env::vars_os().collect();
        let root = place.join("root");
        std::fs::create_dir_all(&root).unwrap();
        let run = |arguments: &[&str]| {
            let ran = Command::new("git")
                .arg("-C")
                .arg(&root)
                .args(arguments)
                .output();
            assert!(ran.unwrap().status.success(), "{arguments:?}");
        };
        run(&["init", "-q"]);
        for (file, text) in [
            ("a\nb.yaml", "two lines"),
            ("c.yaml", "one"),
            ("d.yaml", "other"),
        ] {
            std::fs::write(root.join(file), text).unwrap();
        }
        run(&["add", "-A"]);
        let ana = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"];
        run(&[&ana[..], &["commit", "-q", "-m", "begin"]].concat());
        WorkTree::open(&root, &variables).unwrap()
    }

    #[test]
    fn only_paths_of_the_work_tree_are_written_to() {
        let place = tempfile::tempdir().unwrap();
        let work = work(place.path());
        std::fs::create_dir(work.root().join("real")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(place.path(), work.root().join("linked")).unwrap();
        for (path, expected) in [
            ("a.yaml", true),
            ("real/a.yaml", true),
            ("new/er/a..b.yaml", true),
            ("../a.yaml", false),
            ("real/../../a.yaml", false),
            ("not/there/../../../a.yaml", false),
            ("/a.yaml", false),
            ("", false),
            ("./a.yaml", false),
            ("real//a.yaml", false),
            (".git/config", false),
            ("real/.GIT/config", false),
            #[cfg(unix)]
            ("linked/a.yaml", false),
            #[cfg(unix)]
            ("linked/new/a.yaml", false),
        ] {
            assert_eq!(work.inside(path).is_ok(), expected, "{path:?}");
            assert_eq!(work.replace(path, b"x").is_ok(), expected, "{path:?}");
        }
        let beside: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(beside.len(), 1, "{beside:?}");
    }

    #[test]
    fn what_git_lists_is_read() {
        let listed = "? a b.yaml\0H 100644 aa 0\tpins/c.yaml\0M 100644 bb 1\td.yaml\0M 100644 cc 2\td.yaml\0\
                      S 100644 dd 0\te f.yaml\0? g\th.yaml\0H 120000 ee 0\tl.yaml\0H 160000 ff 0\tsub\0";
        let files = Files::read(listed);
        assert_eq!(
            files.paths,
            [
                "a b.yaml",
                "pins/c.yaml",
                "d.yaml",
                "e f.yaml",
                "g\th.yaml",
                "l.yaml"
            ]
        );
        assert_eq!(files.links, ["a b.yaml", "g\th.yaml", "l.yaml"]);
        assert!(files.submodules.iter().eq(["sub"]));
        assert_eq!(files.left_out, [("e f.yaml".to_owned(), "dd".to_owned())]);
        assert_eq!(Files::read(""), Files::default());
    }

    #[test]
    fn a_name_of_two_lines_is_one_name() {
        let place = tempfile::tempdir().unwrap();
        let work = work(place.path());
        let names = [
            "c.yaml",
            "a\nb.yaml",
            "none\nsuch.yaml",
            "none.yaml",
            "d.yaml",
        ];
        let found = work
            .blobs(&names.map(|name| format!("HEAD:{name}")), 100)
            .unwrap();
        let texts: Vec<Option<&[u8]>> = found.iter().map(Option::as_deref).collect();
        let expected: [Option<&[u8]>; 5] =
            [Some(b"one"), Some(b"two lines"), None, None, Some(b"other")];
        assert_eq!(texts, expected);
    }
}
