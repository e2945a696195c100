//! Tests of the reasons for which bowline refuses to commit. Also tests that a commit leaves the user's own
//! changes alone.

use super::{Shop, pin, program, release};

const PROMOTE: &str = "promote cart --from dev --to staging";

#[test]
fn a_work_tree_that_is_not_ready_is_refused_with_a_hint() {
    let shop = Shop::open(&["cart"]);
    let clean = shop.read("pins/staging/cart.yaml");
    let head = shop.head();
    // A file that the plan changes has an uncommitted change.
    shop.write("pins/staging/cart.yaml", &format!("{clean}# mine\n"));
    let ran = shop.ends(
        PROMOTE,
        5,
        "pins/staging/cart.yaml has changes that are not committed",
    );
    assert!(
        ran.err
            .contains("hint: look at the changes: git diff HEAD -- pins/staging/cart.yaml"),
        "{}",
        ran.err
    );
    shop.git("add pins/staging/cart.yaml");
    shop.ends(PROMOTE, 5, "not committed");
    shop.ends(&format!("{PROMOTE} --branch other"), 5, "not committed");
    shop.git("reset -q --hard");
    assert_eq!(shop.head(), head);

    shop.git("checkout -q --detach");
    let ran = shop.ends(PROMOTE, 5, "HEAD is detached");
    assert!(ran.err.contains("git switch BRANCH"), "{}", ran.err);
    shop.git("switch -q main");

    shop.git("switch -q -c side");
    shop.write("notes.txt", "side\n");
    shop.commit("side");
    shop.git("switch -q main");
    shop.write("notes.txt", "main\n");
    shop.commit("main");
    let merged = std::process::Command::new("git")
        .args(["merge", "side"])
        .current_dir(&shop.root)
        .output()
        .unwrap();
    assert!(!merged.status.success());
    shop.ends(PROMOTE, 5, "a merge is in progress");
    shop.git("merge --abort");
    // bowline refuses to commit during a rebase, because HEAD is detached and a commit on the branch would
    // stop the rebase.
    let rebased = std::process::Command::new("git")
        .args(["rebase", "side"])
        .current_dir(&shop.root)
        .output()
        .unwrap();
    assert!(!rebased.status.success());
    shop.ends(PROMOTE, 5, "a rebase is in progress");
    let onto = format!("{PROMOTE} --branch main");
    shop.ends(&onto, 5, "a rebase of main is in progress");
    shop.git("rebase --abort");
    shop.ends(PROMOTE, 0, "cart-1 -> cart-2");

    let nowhere = tempfile::TempDir::new().unwrap();
    let stranger = Shop {
        root: nowhere.path().to_owned(),
        ..Shop::empty()
    };
    stranger.ends("status", 2, "is not in a git work tree");
}

#[test]
fn what_is_staged_stashed_or_beside_stays_as_it_is() {
    let shop = Shop::open(&["cart"]);
    shop.write("stashed.txt", "stashed\n");
    shop.git("add stashed.txt");
    shop.git("stash -q");
    shop.write("staged.txt", "staged\n");
    shop.git("add staged.txt");
    shop.write(
        "pins/dev/cart.yaml",
        &(shop.read("pins/dev/cart.yaml") + "# by hand\n"),
    );
    shop.write("untracked.txt", "untracked\n");
    let stash = shop.git("stash list");
    shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    assert_eq!(
        shop.numstat(),
        [("pins/staging/cart.yaml".to_owned(), 1, 1)]
    );
    assert_eq!(
        shop.status(),
        " M pins/dev/cart.yaml\nA  staged.txt\n?? untracked.txt"
    );
    assert_eq!(shop.git("stash list"), stash);
}

#[test]
fn hooks_run_and_what_they_refuse_leaves_nothing() {
    let shop = Shop::open(&["cart"]);
    let hooks = shop.root.join(".git/hooks");
    let seen = shop.place.path().join("seen");
    program(
        &hooks,
        "pre-commit",
        &format!(
            "#!/bin/sh\ngit diff --cached --name-only > {}\n",
            seen.display()
        ),
    );
    program(
        &hooks,
        "commit-msg",
        "#!/bin/sh\ngrep -q INC- \"$1\" || { echo 'no ticket' >&2; exit 1; }\n",
    );
    let (head, file) = (shop.head(), shop.read("pins/staging/cart.yaml"));
    shop.write("staged.txt", "staged\n");
    shop.git("add staged.txt");
    shop.ends(PROMOTE, 1, "no ticket");
    assert_eq!(
        (shop.head(), shop.read("pins/staging/cart.yaml")),
        (head.clone(), file)
    );
    assert_eq!(shop.status(), "A  staged.txt");
    // A refused creation of a ReleasePin also leaves no change.
    std::fs::remove_file(shop.root.join("pins/prod/cart.yaml")).unwrap();
    shop.git("commit -q --no-verify -m gone pins/prod/cart.yaml");
    shop.ends(
        "promote cart --from staging --to prod --yes",
        1,
        "no ticket",
    );
    assert_eq!(shop.status(), "A  staged.txt");
    shop.ends(&format!("{PROMOTE} --branch other"), 1, "no ticket");
    shop.ends(&format!("{PROMOTE} --reason INC-7"), 0, "cart-1 -> cart-2");
    assert_eq!(
        std::fs::read_to_string(seen).unwrap(),
        "pins/staging/cart.yaml\n"
    );
    assert_eq!(shop.status(), "A  staged.txt");
}

#[test]
fn commits_are_signed_where_the_configuration_says_so() {
    let shop = Shop::open(&["cart"]);
    let bin = shop.place.path().join("bin");
    let signer = program(
        &bin,
        "signer",
        "#!/bin/sh\ncat > /dev/null\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\nprintf -- '-----BEGIN PGP SIGNATURE-----\\nsigned\\n-----END PGP SIGNATURE-----\\n'\n",
    );
    shop.git_words(&["config", "gpg.program", signer.to_str().unwrap()]);
    shop.git("config commit.gpgSign true");
    shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    assert!(
        shop.git("cat-file commit HEAD")
            .contains("gpgsig -----BEGIN PGP SIGNATURE-----")
    );
    shop.ends(
        "promote cart --from staging --to prod --yes --branch other",
        0,
        "on other",
    );
    assert!(
        shop.git("cat-file commit other")
            .contains("gpgsig -----BEGIN PGP SIGNATURE-----")
    );
}

#[test]
fn nothing_is_committed_where_only_reads_pass() {
    let shop = Shop::open(&["cart"]);
    let head = shop.head();
    shop.ends(&format!("{PROMOTE} --readonly"), 6, "read-only: ");
    shop.ends(
        "gc --min-age 0s --keep 0 --confirm --readonly",
        6,
        "read-only: ",
    );
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
    let ran = shop.run(&format!("{PROMOTE} --wait"));
    assert_eq!(ran.code, 2, "{}", ran.err);
}

/// bowline plans from the files on disk, but a plan must not depend on uncommitted changes. So bowline
/// refuses such a plan.
#[test]
fn what_is_not_committed_is_nothing_to_rest_on() {
    let shop = Shop::open(&["cart"]);
    let head = shop.head();
    let promote = |more: &str| format!("{PROMOTE} {more}");
    // The ReleasePin of the source environment is not committed.
    let clean = shop.read("pins/dev/cart.yaml");
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "cart-3"));
    let ran = shop.ends(PROMOTE, 5, "is not committed");
    assert!(
        ran.err
            .contains("hint: commit it: git add -- pins/dev/cart.yaml"),
        "{}",
        ran.err
    );
    shop.ends(&promote("--dry-run"), 5, "cart.yaml is not committed");
    shop.ends(&promote("--branch new"), 5, "cart.yaml is not committed");
    shop.write("pins/dev/cart.yaml", &clean);
    // The release is not committed.
    shop.write("releases/cart/cart-4.yaml", &release("cart", 4));
    let deploy = "deploy cart -e dev --release cart-4";
    shop.ends(deploy, 5, "is not committed");
    shop.commit("cart-4");
    // The uncommitted ReleasePin of the target environment already names the release.
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-2"));
    shop.ends(PROMOTE, 5, "is not committed");
    shop.git("checkout -q -- pins/staging/cart.yaml");
    assert_eq!(shop.git("rev-parse HEAD^"), head, "nothing was committed");
    // The other branch does not have the release.
    shop.git_words(&["branch", "old", &head]);
    let ran = shop.ends(
        &format!("{deploy} --branch old"),
        4,
        "branch old does not have release cart-4",
    );
    assert!(ran.err.contains("git switch old"), "{}", ran.err);
    assert_eq!(shop.git("rev-parse old"), head);
    shop.ends(deploy, 0, "cart-2 -> cart-4");
}

#[test]
fn a_release_stays_while_what_is_committed_names_it() {
    let shop = Shop::open(&["cart"]);
    let gc = "gc --keep 0 --min-age 0s --confirm";
    // The work tree no longer names the release, but the last commit does.
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "cart-1"));
    let ran = shop.ends(gc, 5, "pin cart-dev names cart-2 in the last commit");
    assert!(
        ran.err.contains("commit the change of the ReleasePin"),
        "{}",
        ran.err
    );
    shop.git("checkout -q -- pins/dev/cart.yaml");
    // This branch does not name the release, but another branch does.
    shop.git("switch -q -c other");
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-3"));
    shop.commit("by hand");
    shop.git("switch -q main");
    shop.ends(
        &format!("{gc} --branch other"),
        4,
        "pin cart-prod names cart-3 on branch other",
    );
    shop.ends(gc, 0, "cart-3 removed");
}

#[test]
fn names_that_are_none_for_a_branch_are_refused() {
    let shop = Shop::open(&["cart"]);
    for name in ["HEAD", "-x", "refs/heads/main", "@{-1}", "a..b", "a b"] {
        let promote = ["promote", "cart", "--from", "dev", "--to", "staging"];
        let branch = format!("--branch={name}");
        let mut words = promote.to_vec();
        words.push(&branch);
        let ran = shop.run_words(&words);
        assert_eq!(ran.code, 2, "{name}: {}", ran.err);
        assert!(ran.err.contains("not a valid branch name"), "{}", ran.err);
    }
    assert_eq!(
        shop.git("for-each-ref --format=%(refname)"),
        "refs/heads/main"
    );
}

/// A git hook edits files and then fails. bowline keeps these edits, and the message reports them.
#[test]
fn what_a_hook_changes_is_told() {
    let shop = Shop::open(&["cart"]);
    let hooks = shop.root.join(".git/hooks");
    program(
        &hooks,
        "pre-commit",
        "#!/bin/sh\nfor file in $(git diff --cached --name-only); do echo '# formatted' >> $file; done\nexit 1\n",
    );
    let file = "pins/staging/cart.yaml";
    let ran = shop.ends(
        PROMOTE,
        1,
        "nothing was changed except pins/staging/cart.yaml, which changed in the meantime",
    );
    let way = "git restore --staged --worktree -- pins/staging/cart.yaml";
    assert!(ran.err.contains(way), "{}", ran.err);
    assert!(shop.read(file).ends_with("# formatted\n"));
    shop.ends(PROMOTE, 5, "is not committed");
    shop.git(way.strip_prefix("git ").unwrap());
    assert_eq!(shop.status(), "");
    // The same holds for a file that the action creates.
    std::fs::remove_file(shop.root.join(file)).unwrap();
    shop.git("commit -q --no-verify -m gone pins/staging/cart.yaml");
    shop.ends(
        PROMOTE,
        1,
        "except pins/staging/cart.yaml, which changed in the meantime",
    );
}

#[test]
fn the_patterns_of_hooks_are_patterns() {
    let shop = Shop::open(&["cart"]);
    program(
        &shop.root.join(".git/hooks"),
        "pre-commit",
        "#!/bin/sh\nif git diff --cached --name-only -- 'pins/prod/*.yaml' | grep -q .; then echo 'prod is guarded' >&2; exit 1; fi\n",
    );
    shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    let promote = "promote cart --from staging --to prod --yes";
    shop.ends(promote, 1, "prod is guarded");
    assert_eq!(shop.status(), "");
    // bowline treats a path that looks like a git pattern as exactly that path.
    let odd = "pins/staging/[cart]*.yaml";
    shop.git_words(&["mv", "pins/staging/cart.yaml", odd]);
    shop.commit("an odd name");
    shop.ends("rollback cart -e staging --to cart-1", 0, "-> cart-1");
    assert_eq!(shop.status(), "");
}

/// If git is killed after it has made the commit, the action still succeeds.
#[test]
fn a_commit_after_which_git_died_is_made() {
    let shop = Shop::open(&["cart"]);
    let before = shop.head();
    let hook = "#!/bin/sh\nkill -9 $PPID\n";
    program(&shop.root.join(".git/hooks"), "post-commit", hook);
    shop.ends(PROMOTE, 0, "cart-1 -> cart-2");
    assert_eq!(shop.git("rev-parse HEAD^"), before);
    assert_eq!(shop.status(), "");
    assert_eq!(
        shop.read("pins/staging/cart.yaml"),
        pin("cart", "staging", "cart-2")
    );
}

#[test]
fn what_git_does_not_look_at_is_refused() {
    let shop = Shop::open(&["cart"]);
    let (head, file) = (shop.head(), "pins/staging/cart.yaml");
    for (set, lift) in [
        ("--skip-worktree", "--no-skip-worktree"),
        ("--assume-unchanged", "--no-assume-unchanged"),
    ] {
        shop.git_words(&["update-index", set, file]);
        let ran = shop.ends(PROMOTE, 5, "git ignores changes of");
        assert!(ran.err.contains("git update-index"), "{}", ran.err);
        shop.git_words(&["update-index", lift, file]);
    }
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
}
