use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::git::commit::{FileEdit, Wanted};
use crate::git::{BlobLimits, WorkTree};

/// The number of strings that the test passes in total to the functions that take a value.
const STRINGS: usize = 10_000;

/// Generates strings that git, ssh or a shell could read as an option or a command.
fn option_like() -> impl Strategy<Value = String> {
    let flags = prop::sample::select(vec![
        "--upload-pack=",
        "--receive-pack=",
        "--exec=",
        "--output=",
        "--config-env=",
        "-c core.sshCommand=",
        "-ccore.fsmonitor=",
        "-u",
        "-o",
        "-O",
        "-",
        "--",
        "--end-of-options",
        "--pathspec-from-file=",
        "--git-dir=",
        "--exec-path=",
        "ext::",
        "ext://",
        "fd::",
        "file://-",
        "ssh://-oProxyCommand=",
        "-oProxyCommand=",
        "user@-oProxyCommand=",
        "+refs/heads/*:",
        "^",
        ":(exclude)",
        "@{-1}",
        "refs/heads/--",
        "HEAD --output=",
        "\0--",
        "\n--",
    ]);
    (
        flags,
        "(touch MARK|sh -c touch% MARK|[ -~]{0,12}|\\PC{0,6})",
    )
        .prop_map(|(flag, rest)| format!("{flag}{rest}"))
}

fn git(root: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    let run = command.arg("-C").arg(root).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{words:?}: {said}");
}

/// Returns a work tree with one commit and one remote, independent of the git configuration of this machine.
fn work(root: &Path) -> WorkTree {
    std::fs::create_dir_all(root).unwrap();
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["config", "user.name", "Ana"]);
    git(root, &["config", "user.email", "ana@example.com"]);
    // git must not be the one that refuses a transport: a user may have allowed every transport.
    git(root, &["config", "protocol.allow", "always"]);
    git(root, &["config", "protocol.ext.allow", "always"]);
    git(root, &["remote", "add", "origin", "../origin.git"]);
    std::fs::write(root.join("a.yaml"), "a: 1\n").unwrap();
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "begin"]);
    let variables: [(&str, OsString); 4] = [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", root.into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        // ssh must not use the network, so this program replaces it.
        ("GIT_SSH_COMMAND", "false".into()),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value));
    WorkTree::open(root, &BTreeMap::from(variables)).unwrap()
}

/// Returns `count` different option-like strings, which are the same in every run of the test.
fn strings(count: usize) -> Vec<String> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = option_like();
    let (mut known, mut found) = (HashSet::new(), Vec::new());
    while found.len() < count {
        let value = strategy.new_tree(&mut runner).unwrap().current();
        if known.insert(value.clone()) {
            found.push(value);
        }
    }
    found
}

#[test]
fn no_value_becomes_an_option_of_git() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    let work = work(&root);
    let head = work.commit_of("HEAD").unwrap();
    let same: crate::git::commit::MeansTheSame = |_, one, other| one == other;
    let config = std::fs::read_to_string(root.join(".git/config")).unwrap();
    let runs = |arguments: Arguments| {
        let _ = work.output(&root, &arguments, &[], b"");
    };
    // A function that passes a value to git (from a flag, a file or a remote): its name, the number of
    // strings to try, and the function.
    type Way<'a> = (&'a str, usize, &'a dyn Fn(&str));
    let ways: [Way<'_>; 8] = [
        ("--remote, fetch", 1500, &|value| {
            if let Ok(remote) = work.remote(Some(value), "main") {
                let _ = work.fetch(&remote, "main");
            }
        }),
        ("--remote, push", 1500, &|value| {
            if let Ok(remote) = work.remote(Some(value), "main") {
                let _ = work.push(&remote, "main");
            }
        }),
        // A remote in the configuration can have any name.
        ("a remote of the configuration", 500, &|value| {
            let name = value.replace('\\', "\\\\").replace('"', "\\\"");
            let own = format!("{config}[remote \"{name}\"]\n\turl = ../nowhere.git\n");
            std::fs::write(root.join(".git/config"), own).unwrap();
            for named in [Some(value), None] {
                if let Ok(remote) = work.remote(named, "main") {
                    let _ = work.fetch(&remote, "main");
                    let _ = work.push(&remote, "main");
                }
            }
            std::fs::write(root.join(".git/config"), &config).unwrap();
        }),
        ("--branch", 1500, &|value| {
            let edit = FileEdit {
                path: "a.yaml".to_owned(),
                before: Some(b"a: 1\n".to_vec()),
                after: Some(b"a: 2\n".to_vec()),
            };
            let wanted = Wanted {
                edits: &[edit],
                message: "change a\n",
                operation: "x",
                branch: Some(value),
                means_the_same: same,
                limits: BlobLimits {
                    bytes: 100,
                    words: &[],
                },
            };
            let admitted = work.admits(&wanted);
            assert_eq!(admitted.is_ok(), is_branch_name(value), "{value:?}");
        }),
        ("check --base", 2000, &|value| {
            let commit = work.commit_of(value).ok().flatten();
            assert!(commit.as_deref().is_none_or(is_object_id), "{value:?}");
        }),
        ("the revision and path of a gitRef", 1000, &|value| {
            let _ = work.blob(value, "a.yaml", 100);
            let _ = work.blob("HEAD", value, 100);
        }),
        ("a path of a file", 1500, &|value| {
            let log = Arguments::of("log").operand("HEAD").paths([value]);
            if let Ok(list) = log.list() {
                assert_eq!(list.last(), Some(&OsString::from(literal(value))));
            }
            runs(log);
            let _ = work.ignores(value);
        }),
        ("the message of a commit", 500, &|value| {
            let update = Arguments::of("update-ref").short("-m", value);
            let update = update.operand("refs/heads/main").operand("HEAD");
            if let Ok(list) = update.list() {
                assert_eq!(list[1..3], ["-m".into(), OsString::from(value)]);
            }
            runs(update);
        }),
    ];
    let mut left = strings(STRINGS).into_iter();
    for (way, cases, run) in ways {
        let mut tried = 0;
        for value in left.by_ref().take(cases) {
            run(&value);
            tried += 1;
        }
        assert_eq!(tried, cases, "{way}");
    }
    assert_eq!(left.next(), None);
    let names = |folder: &Path| -> Vec<OsString> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&root), [".git", "a.yaml"], "a value ran a command");
    assert_eq!(names(place.path()), ["root"], "a value ran a command");
    assert_eq!(work.commit_of("HEAD").unwrap(), head);
    let refs = work.ask(Arguments::plain("for-each-ref", ["--format=%(refname)"]));
    assert_eq!(refs.unwrap().trim(), "refs/heads/main");
    println!("{STRINGS} different option-like strings in 8 places: none became an option of git");
}

#[test]
fn a_name_for_a_branch_is_what_git_takes_for_one() {
    let strings = [
        "main", "a/b", "a.b", "ü", "-x", "--", "HEAD", "@", "a@", "@/a", "a/@", "", "a..b", "a b",
        "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock",
        "a.lock/b", "a.", "a/b.", "@{-1}", "a@{1", "a\tb", "a\u{7f}", "x+y", "#1", "a-", "a/-b",
        "HEAD/a", "a/HEAD",
    ];
    for name in strings {
        let git = Command::new("git")
            .args(["check-ref-format", "--branch", name])
            .current_dir(std::env::temp_dir())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&git.stdout);
        let expected =
            git.status.success() && printed.trim_end() == name && !matches!(name, "HEAD" | "@");
        assert_eq!(is_branch_name(name), expected, "{name:?}");
    }
    assert!(!is_branch_name("refs/heads/main"));
}

#[test]
fn an_address_names_no_program_and_no_option() {
    use NoAddress::{Control, Option, Transport, Word};
    for (text, expected) in [
        ("https://example.com/a.git", Ok(())),
        ("HTTPS://example.com/a.git", Err(NoAddress::Transport)),
        ("FILE:///a.git", Err(NoAddress::Transport)),
        ("ssh://git@example.com:22/a.git", Ok(())),
        ("git@example.com:a.git", Ok(())),
        ("git@[::1]:a.git", Ok(())),
        ("file:///srv/a.git", Ok(())),
        ("/srv/a.git", Ok(())),
        ("../a.git", Ok(())),
        (".", Ok(())),
        ("origin", Err(Word)),
        ("", Err(Word)),
        ("--upload-pack=touch x", Err(Option)),
        ("-oProxyCommand=x:y", Err(Option)),
        ("ssh://-oProxyCommand=x/y", Err(Option)),
        ("ssh://-oProxyCommand=x@host/y", Err(Option)),
        ("ssh://git@-oProxyCommand=x/y", Err(Option)),
        ("git@-oProxyCommand=x:y", Err(Option)),
        ("ext::sh -c touch% x", Err(Transport)),
        ("EXT::sh", Err(Transport)),
        ("::x", Err(Transport)),
        ("fd::17", Err(Transport)),
        ("ext://x/y", Err(Transport)),
        ("javascript://x", Err(Transport)),
        ("https://example.com/a\n--x", Err(Control)),
    ] {
        assert_eq!(check_address(text), expected, "{text:?}");
    }
}

#[test]
fn a_list_has_flags_then_values_then_paths() {
    let list = |arguments: Arguments| {
        let list = arguments.list().map_err(|error| error.to_string())?;
        let words = list.iter().map(|word| word.to_string_lossy().into_owned());
        Ok::<_, String>(words.collect::<Vec<String>>().join(" "))
    };
    let arguments = Arguments::plain("log", ["-z"]).setting("a.b=c");
    let arguments = arguments.value("--format", "%H").operand("HEAD");
    assert_eq!(
        list(arguments.clone().paths(["*"])).unwrap(),
        "-c a.b=c log -z --format=%H --end-of-options HEAD -- :(literal)*"
    );
    assert_eq!(
        list(arguments.clone().paths([])).unwrap(),
        "-c a.b=c log -z --format=%H --end-of-options HEAD --"
    );
    let refused = list(arguments.clone().operand("--output=x")).unwrap_err();
    assert!(
        refused.contains("git log does not get \"--output=x\""),
        "{refused}"
    );
    assert!(list(arguments.operand("a\0b")).is_err());
}
