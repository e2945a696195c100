//! Tests with git hooks and filters that change a commit of bowline. bowline reads its commit again and
//! reports the difference.

use super::{Shop, pin, program};

const PROMOTE: &str = "promote cart --from dev --to staging --reason why";
const FILE: &str = "pins/staging/cart.yaml";

impl Shop {
    pub(super) fn hook(&self, name: &str, script: &str) {
        let hooks = self.root.join(".git/hooks");
        program(&hooks, name, &format!("#!/bin/sh\n{script}\n"));
    }

    /// Returns the text of the ReleasePin for staging in the last commit.
    fn committed(&self) -> String {
        self.git(&format!("show HEAD:{FILE}"))
    }
}

/// Git hooks that make the commit differ from the plan. Each element is the hook, its script, and the
/// expected message.
const CHANGING: [(&str, &str, &str); 10] = [
    (
        "pre-commit",
        "git reset -q HEAD -- pins/staging/cart.yaml",
        "pins/staging/cart.yaml is not as bowline wrote it",
    ),
    (
        "pre-commit",
        "blob=$(sed s/cart-2/cart-3/ pins/staging/cart.yaml | git hash-object -w --stdin); git update-index --cacheinfo 100644,$blob,pins/staging/cart.yaml",
        "pins/staging/cart.yaml is not as bowline wrote it",
    ),
    (
        "pre-commit",
        "git checkout -q HEAD -- pins/staging/cart.yaml",
        "pins/staging/cart.yaml is not as bowline wrote it",
    ),
    (
        "pre-commit",
        "sed -i s/cart-2/cart-3/ pins/staging/cart.yaml; git add pins/staging/cart.yaml",
        "pins/staging/cart.yaml is not as bowline wrote it",
    ),
    (
        "pre-commit",
        "echo '  name: [' > pins/staging/cart.yaml; git add pins/staging/cart.yaml",
        "pins/staging/cart.yaml is not as bowline wrote it",
    ),
    (
        "pre-commit",
        "sed -i s/cart-1/cart-3/ pins/prod/cart.yaml; git add pins/prod/cart.yaml",
        "it also changes pins/prod/cart.yaml",
    ),
    (
        "pre-commit",
        "printf 'patches: [{path: p.yaml, target: {kind: ReleasePin}}]\\n' > kustomization.yaml; git add kustomization.yaml",
        "it also changes kustomization.yaml",
    ),
    (
        "commit-msg",
        "sed -i 's/^Bowline-To: .*/Bowline-To: cart-3/' $1",
        "its trailers are not as bowline wrote them",
    ),
    (
        "prepare-commit-msg",
        "sed -i '/^Bowline-Environment/d' $1",
        "its trailers are not as bowline wrote them",
    ),
    (
        "post-commit",
        "test -e .git/amended && exit; touch .git/amended; sed -i s/cart-2/cart-3/ pins/staging/cart.yaml; git commit -q --amend --no-edit pins/staging/cart.yaml",
        "pins/staging/cart.yaml is not as bowline wrote it",
    ),
];

#[test]
fn a_commit_that_a_hook_changed_is_taken_back() {
    for (hook, script, words) in CHANGING {
        let shop = Shop::open(&["cart"]);
        shop.write("staged.txt", "staged\n");
        shop.git("add staged.txt");
        shop.hook(hook, script);
        let head = shop.head();
        let ran = shop.ends(PROMOTE, 1, words);
        assert!(!ran.out.contains("cart-2"), "{script}: {}", ran.out);
        let back = "bowline took the commit back, and everything is as it was";
        assert!(ran.err.contains(back), "{script}: {}", ran.err);
        assert_eq!(shop.head(), head, "{script}");
        assert_eq!(shop.status(), "A  staged.txt", "{script}");
        assert_eq!(shop.read(FILE), pin("cart", "staging", "cart-1"));
        assert!(!shop.root.join(".git/bowline/journal.json").exists());
        shop.ends("audit verify", 0, "3 entries in 3 chains: valid");
        // The same action succeeds without the hook.
        std::fs::remove_file(shop.root.join(".git/hooks").join(hook)).unwrap();
        shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
        assert_eq!(shop.status(), "A  staged.txt", "{script}");
    }
}

#[test]
fn a_commit_that_a_hook_removed_is_not_done() {
    let shop = Shop::open(&["cart"]);
    shop.write("staged.txt", "staged\n");
    shop.git("add staged.txt");
    shop.hook("post-commit", "git reset -q --soft HEAD^");
    let head = shop.head();
    shop.ends(PROMOTE, 1, "main does not have it");
    assert_eq!(shop.head(), head);
    assert_eq!(shop.status(), "A  staged.txt");
}

#[test]
fn a_commit_that_others_follow_is_kept_and_told() {
    let shop = Shop::open(&["cart"]);
    shop.hook(
        "post-commit",
        "test -e .git/done && exit; touch .git/done; sed -i s/cart-2/cart-3/ pins/staging/cart.yaml; git commit -q -m more pins/staging/cart.yaml",
    );
    let head = shop.head();
    let ran = shop.ends(
        &format!("{PROMOTE} --push"),
        2,
        "bowline cannot choose a remote",
    );
    assert_eq!(shop.head(), head, "{}", ran.err);
    let ran = shop.ends(PROMOTE, 1, "the commit is still on main");
    assert!(!ran.out.contains("cart-2"), "{}", ran.out);
    let way = format!("to take it back: git reset --keep {head}");
    assert!(ran.err.contains(&way), "{}", ran.err);
    assert_eq!(shop.git("rev-parse HEAD~2"), head);
    // bowline accepts another commit of a hook that does not change the ReleasePin.
    shop.git_words(&["reset", "-q", "--keep", &head]);
    shop.hook(
        "post-commit",
        "test -e .git/again && exit; touch .git/again; git commit -q --allow-empty -m more",
    );
    let ran = shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    let told = "promote cart-2 to staging";
    assert!(ran.err.contains(told), "{}", ran.err);
    assert!(ran.err.contains("1 more commit"), "{}", ran.err);
    shop.ends("audit verify", 0, "valid");
}

/// A pre-commit hook formats files and stages them. Afterwards no file may have only a part of its changes
/// staged.
#[test]
fn a_hook_that_formats_files_leaves_no_file_half_staged() {
    for (action, path) in [
        (PROMOTE, FILE),
        // The action creates a new file.
        (
            "promote cart --from dev --to prod --skip-path --reason why --yes",
            "pins/prod/cart.yaml",
        ),
    ] {
        let shop = Shop::open(&["cart"]);
        if path != FILE {
            shop.git("rm -q pins/prod/cart.yaml");
            shop.commit("no prod");
        }
        shop.write("CHANGELOG.md", "changes\n");
        shop.write("other.txt", "committed\n");
        shop.commit("more files");
        shop.write("staged.txt", "staged\n");
        shop.write("other.txt", "staged\n");
        shop.git("add staged.txt other.txt");
        shop.hook(
            "pre-commit",
            "for file in $(git diff --cached --name-only); do printf '# formatted\\n' >> $file; git add $file; done
             echo promoted >> CHANGELOG.md; git add CHANGELOG.md",
        );
        let ran = shop.ends(action, 0, "-> cart-2");
        let note = "a hook added CHANGELOG.md to the commit";
        assert!(ran.err.contains(note), "{}", ran.err);
        assert_eq!(shop.status(), "M  other.txt\nA  staged.txt", "{action}");
        assert!(shop.read(path).ends_with("# formatted\n"), "{action}");
        assert_eq!(
            shop.git(&format!("show HEAD:{path}")) + "\n",
            shop.read(path)
        );
        shop.ends("audit verify", 0, "valid");
    }
}

#[test]
fn a_hook_that_formats_files_and_does_not_stage_them_is_told() {
    let shop = Shop::open(&["cart"]);
    shop.hook("pre-commit", "echo '# formatted' >> pins/staging/cart.yaml");
    let ran = shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    let note = "a hook changed pins/staging/cart.yaml and did not stage the change";
    assert!(ran.err.contains(note), "{}", ran.err);
    assert_eq!(shop.status(), " M pins/staging/cart.yaml");
    assert_eq!(shop.committed() + "\n", pin("cart", "staging", "cart-2"));
}

#[test]
fn a_message_is_what_the_commit_has() {
    let shop = Shop::open(&["cart"]);
    // The hook adds a ticket and a Change-Id to the message, as ticket systems and Gerrit do.
    shop.hook(
        "commit-msg",
        "sed -i '1s/^/[INC-7] /' $1; echo 'Change-Id: I01' >> $1",
    );
    shop.ends(PROMOTE, 0, "on main: [INC-7] promote cart-2 to staging");
    shop.ends("audit verify", 0, "valid");
    shop.hook("commit-msg", "echo 'all my own words' > $1");
    let pin = "rollback cart -e staging --to cart-1 --no-hold --reason why";
    let ran = shop.ends(pin, 0, "on main: all my own words");
    let note = "a hook removed the trailers of the commit";
    assert!(ran.err.contains(note), "{}", ran.err);
    shop.ends("audit verify", 0, "edited by hand by Ana");
    // A refused commit on a branch that is not checked out changes no file.
    shop.hook("commit-msg", "sed -i 's/^Bowline-To: .*/Bowline-To: x/' $1");
    shop.ends(
        &format!("{PROMOTE} --branch other"),
        1,
        "its trailers are not as bowline wrote them",
    );
    assert_eq!(shop.git("branch --list other"), "");
}

#[test]
fn filters_and_line_endings_do_not_change_what_a_commit_means() {
    for config in ["core.autocrlf true", "core.autocrlf input"] {
        let shop = Shop::open(&["cart"]);
        let (name, value) = config.split_once(' ').unwrap();
        shop.git_words(&["config", name, value]);
        if value == "true" {
            // git checks out the file again, so that it has the line ends of this setting.
            std::fs::remove_file(shop.root.join(FILE)).unwrap();
            shop.git(&format!("checkout -q -- {FILE}"));
            assert!(shop.read(FILE).contains("\r\n"));
        }
        shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
        assert_eq!(shop.status(), "", "{config}");
        shop.ends("audit verify", 0, "valid");
    }
    // The first filter stores the file in another form, which bowline accepts. The second filter changes the
    // meaning of the file.
    for (clean, smudge, code) in [("rev", "rev", 0), ("sed s/cart-2/cart-3/", "cat", 1)] {
        let shop = Shop::open(&["cart"]);
        shop.write(".gitattributes", &format!("{FILE} filter=own\n"));
        shop.git_words(&["config", "filter.own.clean", clean]);
        shop.git_words(&["config", "filter.own.smudge", smudge]);
        shop.git("add --renormalize .");
        shop.commit("a filter");
        let head = shop.head();
        shop.ends(PROMOTE, code, "");
        assert_eq!(shop.head() == head, code != 0, "{clean}");
        assert_eq!(shop.status(), "", "{clean}");
    }
}

/// `audit verify` reports trailers about a change that the commit does not contain. The test makes such a
/// commit itself, as a forger would.
#[test]
fn trailers_of_a_commit_that_did_nothing_are_found() {
    let shop = Shop::open(&["cart"]);
    let forge = |action: &str, rest: &str| {
        let message = format!(
            "forged\n\nBowline-Operation: x\nBowline-Action: {action}\nBowline-Component: cart\n{rest}"
        );
        shop.git_words(&["commit", "-q", "--allow-empty", "-m", &message]);
    };
    for (action, rest, words) in [
        (
            "Promote",
            "Bowline-Environment: staging\nBowline-From: cart-1\nBowline-To: cart-2",
            "its trailers name a change of this ReleasePin that it did not make",
        ),
        (
            "Release",
            "Bowline-To: cart-9",
            "its trailers say that it made cart-9, but the commit does not",
        ),
        (
            "MarkBad",
            "Bowline-To: cart-1",
            "its trailers say that it marked bad cart-1, but the commit does not",
        ),
    ] {
        forge(action, rest);
        let ran = shop.ends("audit verify", 1, words);
        assert!(ran.out.contains("tampered"), "{}", ran.out);
        shop.ends("audit verify cart", 1, words);
        shop.ends("audit verify search", 0, "valid");
        let ran = shop.ends("audit verify -o json", 1, "");
        let verdict: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(verdict["problems"][0]["severity"], "tampered");
        shop.git("reset -q --keep HEAD^");
    }
    // `audit verify` also finds such a commit on the side branch of a merge.
    shop.git("switch -q -c side");
    forge(
        "Promote",
        "Bowline-Environment: staging\nBowline-From: cart-1\nBowline-To: cart-2",
    );
    shop.git("switch -q main");
    shop.git("merge -q --no-ff -m merge side");
    shop.ends(
        "audit verify",
        1,
        "a change of this ReleasePin that it did not make",
    );
}

#[test]
fn an_unreadable_file_does_not_excuse_the_trailers() {
    let shop = Shop::open(&["cart"]);
    shop.write(
        "broken.yaml",
        "apiVersion: openchoreo.dev/v1alpha1\nkind: [\n",
    );
    shop.git("add -A");
    let message = "forged\n\nBowline-Operation: x\nBowline-Action: Promote\nBowline-Component: cart\nBowline-Environment: staging\nBowline-From: cart-1\nBowline-To: cart-2";
    shop.git_words(&["commit", "-q", "-m", message]);
    let words = "its trailers name a change of this ReleasePin that it did not make";
    shop.ends("audit verify", 1, words);
}

#[test]
fn trailers_do_not_cover_a_hold_a_mark_or_a_release_that_they_do_not_name() {
    let shop = Shop::open(&["cart"]);
    shop.ends("pin cart -e staging --reason freeze", 0, "");
    shop.ends("mark bad cart-3 --reason leaks --yes", 0, "");
    let said = |action: &str, to: &str| {
        format!(
            "forged\n\nBowline-Operation: x\nBowline-Action: {action}\nBowline-Component: cart\nBowline-Environment: staging\nBowline-From: cart-1\nBowline-To: {to}"
        )
    };
    let forged = |action: &str, to: &str, words: &str| {
        shop.git("add -A");
        shop.git_words(&["commit", "-q", "-m", &said(action, to)]);
        shop.ends("audit verify", 1, words);
        shop.git("reset -q --hard HEAD^");
        shop.ends("audit verify", 0, "valid");
    };
    shop.write(FILE, &pin("cart", "staging", "cart-1"));
    forged(
        "Pin",
        "cart-1",
        "its trailers say Pin, but it also removes or changes the hold of Ana <ana@example.com>",
    );
    let held = shop.read(FILE).replace("cart-1", "cart-2");
    shop.write(FILE, &held);
    shop.write("releases/cart/cart-3.yaml", &super::release("cart", 3));
    forged(
        "Promote",
        "cart-2",
        "the commit removed the mark of cart-3, but its trailers do not name this",
    );
    shop.write(FILE, &held);
    shop.git("rm -q releases/cart/cart-1.yaml");
    forged(
        "Promote",
        "cart-2",
        "the commit removed cart-1, but its trailers do not name this",
    );
}

#[test]
fn a_fault_after_the_commit_is_a_warning() {
    // A hook replaces the journal by a directory, so bowline cannot remove it.
    let shop = Shop::open(&["cart"]);
    shop.hook(
        "post-commit",
        "rm .git/bowline/journal.json; mkdir -p .git/bowline/journal.json/x",
    );
    let ran = shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    let words = "warning: the commit was made, and its journal could not be removed";
    assert!(ran.err.contains(words), "{}", ran.err);
    assert!(shop.committed().contains("name: cart-2"));

    // After the commit, git fails when it reads the files again.
    let mut shop = Shop::open(&["cart"]);
    let bin = shop.place.path().join("bin");
    let git = shop.git("--exec-path") + "/git";
    let broken = shop.place.path().join("broken");
    program(
        &bin,
        "git",
        &format!(
            "#!/bin/sh\ncase \" $* \" in *' ls-files '*' --full-name'*) test -e {0} && echo broken >&2 && exit 128;; esac\nexec {git} \"$@\"\n",
            broken.display()
        ),
    );
    shop.path = vec![bin];
    shop.hook("post-commit", &format!("touch {}", broken.display()));
    let ran = shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    let words = "warning: the commit was made, and bowline could not read the files again";
    assert!(ran.err.contains(words), "{}", ran.err);
    assert!(shop.committed().contains("name: cart-2"));
}

#[test]
fn a_change_of_another_pin_by_a_hook_is_named() {
    let shop = Shop::open(&["cart"]);
    shop.hook("pre-commit", "sed -i s/cart-1/cart-3/ pins/prod/cart.yaml");
    let words = "a hook changed pins/prod/cart.yaml and did not stage the change";
    shop.ends(PROMOTE, 0, words);
}

#[test]
fn a_commit_that_a_hook_removed_is_in_the_reflog() {
    let shop = Shop::open(&["cart"]);
    shop.hook("post-commit", "git reset -q --hard HEAD~1");
    let ran = shop.ends(PROMOTE, 1, "find the commit: git reflog");
    assert!(!ran.err.contains("git show"), "{}", ran.err);
}

#[test]
fn the_files_are_restored_without_git() {
    let shop = Shop::open(&["cart"]);
    let before = shop.read(FILE);
    shop.git("config diff.orderFile /nonexistent");
    let ran = shop.run(PROMOTE);
    shop.git("config --unset diff.orderFile");
    match ran.code {
        0 => assert!(shop.committed().contains("cart-2")),
        _ => assert_eq!((shop.read(FILE), shop.status()), (before, String::new())),
    }
}

#[test]
fn the_message_is_utf8_whatever_the_configuration_says() {
    for flag in ["", "--branch other"] {
        let shop = Shop::open(&["cart"]);
        shop.git("config i18n.commitEncoding latin1");
        let line = format!("promote cart --from dev --to staging --reason Prüfung {flag}");
        shop.ends(&line, 0, "");
        let branch = if flag.is_empty() { "main" } else { "other" };
        let raw = shop.git(&format!("cat-file commit {branch}"));
        assert!(
            raw.contains("Prüfung") && !raw.contains("\nencoding "),
            "{raw}"
        );
    }
}

#[test]
fn a_branch_name_is_checked_even_if_nothing_changes() {
    let shop = Shop::open(&["cart"]);
    for name in ["a b", "@"] {
        for to in ["cart-1", "cart-2"] {
            let words = [
                "deploy",
                "cart",
                "--environment",
                "dev",
                "--release",
                to,
                "--branch",
                name,
            ];
            let ran = shop.run_words(&words);
            assert_eq!(ran.code, 2, "{name}: {}", ran.err);
            assert!(
                ran.err.contains("is not a valid branch name"),
                "{}",
                ran.err
            );
        }
    }
}
