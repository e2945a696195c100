//! Tests that no value of a flag can become an option of git, or make git run a program.

use super::{Shop, program};

/// Returns flag values that look like options of git. If git treated one as an option, git would create the
/// file `mark`.
fn values(mark: &str) -> Vec<String> {
    vec![
        format!("--upload-pack=touch {mark};"),
        format!("--receive-pack=touch {mark};"),
        format!("--exec=touch {mark};"),
        format!("--output={mark}"),
        format!("-c core.fsmonitor=touch {mark}"),
        format!("-oProxyCommand=touch {mark}:x"),
        format!("ssh://-oProxyCommand=touch {mark}/x"),
        format!("ext::touch {mark}"),
        format!("ext::sh -c touch% {mark}"),
        "--all".to_owned(),
        "--mirror".to_owned(),
        "--force".to_owned(),
        "--".to_owned(),
        "-".to_owned(),
        "^HEAD".to_owned(),
        "a\n--force".to_owned(),
        "a:refs/heads/main".to_owned(),
    ]
}

#[test]
fn a_value_of_a_flag_is_no_option() {
    let shop = Shop::open(&["cart"]);
    let bare = shop.place.path().join("origin.git");
    shop.git_words(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    shop.git_words(&["remote", "add", "origin", bare.to_str().unwrap()]);
    // A user may have allowed every transport in the git configuration.
    shop.git("config --global protocol.ext.allow always");
    let mark = shop.place.path().join("mark");
    let (head, refs) = (
        shop.head(),
        "for-each-ref --format=%(refname)=%(objectname)",
    );
    let known = shop.git(refs);
    let promote = ["promote", "cart", "--from", "dev", "--to", "staging"];
    let mut tried = 0;
    for value in values(mark.to_str().unwrap()) {
        for (flag, more) in [
            ("--remote", &["--push"][..]),
            ("--branch", &[]),
            ("--branch", &["--push"]),
        ] {
            // As a remote, this value is a valid ssh address.
            if flag == "--remote" && value.starts_with("a:") {
                continue;
            }
            let given = format!("{flag}={value}");
            let mut words = promote.to_vec();
            words.extend([given.as_str()]);
            words.extend(more);
            let ran = shop.run_words(&words);
            assert_eq!(ran.code, 2, "{words:?}: {}{}", ran.out, ran.err);
            tried += 1;
        }
        let base = format!("--base={value}");
        let ran = shop.run_words(&["check", &base]);
        assert_eq!(ran.code, 2, "{base}: {}{}", ran.out, ran.err);
        tried += 1;
        assert!(!mark.exists(), "{value:?} ran a command");
        assert_eq!((shop.head(), shop.status()), (head.clone(), String::new()));
    }
    assert_eq!(shop.git(refs), known);
    println!("{tried} runs with option-like values: all are refused as usage errors");
    // bowline refuses an unknown remote and lists the known ones. It accepts the address of a repository.
    let ran = shop.ends(
        "promote cart --from dev --to staging --push --remote orign",
        2,
        "\"orign\" is neither a remote nor an address",
    );
    assert!(ran.err.contains("known: origin"), "{}", ran.err);
    let address = bare.to_str().unwrap();
    shop.ends(
        &format!("promote cart --from dev --to staging --push --remote {address}"),
        0,
        "pushed main to",
    );
}

/// The git configuration can contain a remote with any name. bowline must refuse a name that looks like an
/// option.
#[test]
fn a_remote_that_looks_like_an_option_is_refused() {
    let shop = Shop::open(&["cart"]);
    let mark = shop.place.path().join("mark");
    let name = format!("--receive-pack=touch {};", mark.display());
    let config = shop.read(".git/config");
    shop.write(
        ".git/config",
        &format!("{config}[remote \"{name}\"]\n\turl = ../origin.git\n"),
    );
    let head = shop.head();
    let ran = shop.ends(
        "promote cart --from dev --to staging --push",
        1,
        "a value must not begin with \"-\"",
    );
    assert!(!mark.exists(), "{}", ran.err);
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
}

/// bowline passes a path to git so that git uses exactly that file, even if the path looks like an option or
/// a pattern.
#[test]
fn a_path_is_no_option_and_no_pattern() {
    let shop = Shop::open(&["cart"]);
    let mark = shop.place.path().join("mark");
    for name in [
        "--output=x.yaml",
        "-x.yaml",
        ":(exclude)a.yaml",
        ":!a.yaml",
        "*.yaml",
        "$(touch mark).yaml",
    ] {
        let (from, to) = ("pins/staging/cart.yaml", name);
        std::fs::rename(shop.root.join(from), shop.root.join(to)).unwrap();
        shop.commit("an odd name");
        shop.ends(
            "rollback cart -e staging --to cart-3 --no-hold",
            0,
            "-> cart-3",
        );
        assert!(shop.read(name).contains("cart-3"), "{name}");
        shop.ends(
            "rollback cart -e staging --to cart-1 --no-hold",
            0,
            "-> cart-1",
        );
        assert_eq!(shop.status(), "", "{name}");
        std::fs::rename(shop.root.join(to), shop.root.join(from)).unwrap();
        shop.commit("its old name");
    }
    shop.ends("history cart -e staging", 0, "Rollback");
    shop.ends("audit verify", 0, "valid");
    assert!(!mark.exists() && !shop.root.join("mark").exists());
}

/// A directory inside a foreign work tree can look like a git repository, whose configuration names programs
/// to run. bowline must not open such a directory.
#[test]
fn a_repository_inside_of_a_work_tree_is_not_opened() {
    let mut shop = Shop::open(&["cart"]);
    let mark = shop.place.path().join("mark");
    let hook = program(
        &shop.place.path().join("bin"),
        "monitor",
        &format!("#!/bin/sh\ntouch {}\n", mark.display()),
    );
    for (file, text) in [
        ("HEAD", "ref: refs/heads/main\n".to_owned()),
        (
            "config",
            format!(
                "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = {}\n",
                hook.display()
            ),
        ),
        ("objects/keep", String::new()),
        ("refs/keep", String::new()),
    ] {
        shop.write(&format!("vendor/{file}"), &text);
    }
    shop.commit("a trap");
    shop.root = shop.root.join("vendor");
    shop.ends("status", 2, "is not in a git work tree");
    assert!(!mark.exists());
}
