//! What stops a commit, and what a commit leaves alone.

use super::{Shop, program};

const PROMOTE: &str = "promote cart --from dev --to staging";

#[test]
fn a_work_tree_that_is_not_ready_is_refused_with_a_hint() {
    let shop = Shop::open(&["cart"]);
    let clean = shop.read("pins/staging/cart.yaml");
    let head = shop.head();
    // A file that would be touched, with something else in it.
    shop.write("pins/staging/cart.yaml", &format!("{clean}# mine\n"));
    let ran = shop.ends(
        PROMOTE,
        5,
        "pins/staging/cart.yaml has changes that are not committed",
    );
    assert!(
        ran.err.contains("hint: git diff pins/staging/cart.yaml"),
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
    shop.ends(PROMOTE, 0, "cart-1 -> cart-2");

    let nowhere = tempfile::TempDir::new().unwrap();
    let stranger = Shop {
        root: nowhere.path().to_owned(),
        ..Shop::empty()
    };
    stranger.ends("status", 2, "is in no git work tree");
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
    // A pin that is new is refused without a trace, too.
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
    shop.ends(&format!("{PROMOTE} --readonly"), 6, "only reads pass");
    shop.ends(
        "gc --min-age 0s --keep 0 --confirm --readonly",
        6,
        "only reads pass",
    );
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
    let ran = shop.run(&format!("{PROMOTE} --wait"));
    assert_eq!(ran.code, 2, "{}", ran.err);
}
