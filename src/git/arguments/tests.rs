use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::git::WorkTree;
use crate::git::commit::{FileEdit, Wanted};

/// How many strings the property below tries, over all places where a value comes in.
const STRINGS: usize = 10_000;

/// Strings that git, ssh or a shell reads as something else than a value.
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

/// A work tree with one commit, a remote, and nothing of this machine's configuration.
fn work(root: &Path) -> WorkTree {
    std::fs::create_dir_all(root).unwrap();
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["config", "user.name", "Ana"]);
    git(root, &["config", "user.email", "ana@example.com"]);
    // A user may allow every transport.
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
        // No test uses the network.
        ("GIT_SSH_COMMAND", "false".into()),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value));
    WorkTree::open(root, &BTreeMap::from(variables)).unwrap()
}

#[test]
fn no_value_becomes_an_option_of_git() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    let work = work(&root);
    let head = work.commit_of("HEAD").unwrap();
    let same: crate::git::commit::MeansTheSame = |_, one, other| one == other;
    // Every way by which a flag, a file or a remote gives git a value.
    type Way<'a> = (&'a str, u32, &'a dyn Fn(&str));
    let ways: [Way<'_>; 8] = [
        ("--remote, fetch", 500, &|value| {
            if let Ok(remote) = work.remote(Some(value), "main") {
                let _ = work.fetch(&remote, "main");
            }
        }),
        ("--remote, push", 500, &|value| {
            if let Ok(remote) = work.remote(Some(value), "main") {
                let _ = work.push(&remote, "main");
            }
        }),
        // A remote of the configuration can have any name.
        ("a remote of the configuration", 2500, &|value| {
            let arguments = Arguments::of("push").operand(value).operand("main");
            let list = arguments.list();
            let end = |word: &OsString| word == "--end-of-options";
            assert!(list.is_err() || list.unwrap().iter().position(end) == Some(1));
        }),
        ("--branch", 2500, &|value| {
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
            };
            if is_branch_name(value) {
                return;
            }
            let refused = work.admits(&wanted);
            assert!(refused.is_err(), "{value:?}");
        }),
        ("check --base", 500, &|value| {
            let commit = work.commit_of(value).ok().flatten();
            assert!(commit.as_deref().is_none_or(is_object_id), "{value:?}");
        }),
        ("the revision and path of a gitRef", 500, &|value| {
            let _ = work.blob(value, "a.yaml");
            let _ = work.blob("HEAD", value);
        }),
        ("a path of a file", 500, &|value| {
            if let Ok(list) = Arguments::of("log").operand("HEAD").paths([value]).list() {
                assert_eq!(list.last(), Some(&OsString::from(literal(value))));
            }
            let _ = work.ignores(value);
        }),
        ("the message of a commit", 2500, &|value| {
            let subject = Arguments::of("update-ref").short("-m", value);
            if let Ok(list) = subject.operand("refs/heads/main").list() {
                assert_eq!(list[1..3], ["-m".into(), OsString::from(value)]);
            }
        }),
    ];
    let tried = std::cell::Cell::new(0);
    for (way, cases, run) in ways {
        let config = Config {
            cases,
            failure_persistence: None,
            ..Config::default()
        };
        // The same strings in every run.
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let ran = TestRunner::new_with_rng(config, rng).run(&option_like(), |value| {
            tried.set(tried.get() + 1);
            run(&value);
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{way}: {error}"));
    }
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
    assert_eq!(tried.get(), STRINGS);
    println!("{STRINGS} option-like strings in 8 places: none became an option of git");
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
        let expected = git.status.success() && printed.trim_end() == name && name != "HEAD";
        assert_eq!(is_branch_name(name), expected, "{name:?}");
    }
    assert!(!is_branch_name("refs/heads/main"));
}

#[test]
fn an_address_names_no_program_and_no_option() {
    use NoAddress::{Control, Option, Transport, Word};
    for (text, expected) in [
        ("https://example.com/a.git", Ok(())),
        ("HTTPS://example.com/a.git", Ok(())),
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
