//! Tests of remotes on real git servers on loopback: fetch, push, a rejected push, and two users at the same
//! time.

use std::path::{Path, PathBuf};

use super::Shop;
use crate::git::Place;
use crate::git::server::Server;
use crate::git::ssh::Sshd;

const PROMOTE: &str = "promote cart --from dev --to staging --push";

/// Clones the repository of a shop to the bare repository `bare`. Makes `url` the remote of the shop.
fn publish(shop: &Shop, bare: &Path, url: &str) {
    std::fs::create_dir_all(bare.parent().unwrap()).unwrap();
    shop.git_words(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let config = bare.to_str().unwrap();
    shop.git_words(&["--git-dir", config, "config", "http.receivepack", "true"]);
    shop.git_words(&["remote", "add", "origin", url]);
    shop.git("fetch -q origin");
    shop.git("branch -q -u origin/main");
}

/// Returns the clone of a second user, Bob.
fn colleague(shop: &Shop, url: &str, more: &[(&str, &str)]) -> Shop {
    let other = Shop::empty();
    std::fs::remove_dir_all(&other.root).unwrap();
    for (key, value) in more {
        shop.git_words(&["config", "--global", key, value]);
        other_config(&other, key, value);
    }
    let root = other.root.to_str().unwrap().to_owned();
    let cloned = std::process::Command::new("git")
        .args(["clone", "-q", url, &root])
        .env("HOME", other.place.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status()
        .unwrap();
    assert!(cloned.success());
    other.git("config user.name Bob");
    other.git("config user.email bob@example.com");
    other
}

fn other_config(shop: &Shop, key: &str, value: &str) {
    let set = std::process::Command::new("git")
        .args(["config", "--global", key, value])
        .env("HOME", shop.place.path())
        .status()
        .unwrap();
    assert!(set.success());
}

/// Two users work on one remote. Each test runs this function with another transport.
fn story(shop: &Shop, bare: &Path, url: &str, more: &[(&str, &str)]) {
    let bob = colleague(shop, url, more);
    let tip = || shop.git_words(&["--git-dir", bare.to_str().unwrap(), "rev-parse", "main"]);

    // Ana promotes and pushes.
    shop.ends(PROMOTE, 0, "pushed main to origin");
    assert_eq!(tip(), shop.head());

    // Bob's clone is behind the remote: bowline refuses before it changes anything.
    let (head, file) = (bob.head(), bob.read("pins/staging/cart.yaml"));
    bob.ends(
        PROMOTE,
        4,
        "origin is 1 commit ahead on main, so nothing was changed",
    );
    assert_eq!(
        (bob.head(), bob.read("pins/staging/cart.yaml")),
        (head, file)
    );
    bob.git("pull -q --rebase origin main");
    bob.ends(PROMOTE, 0, "(no change)");

    // A hook simulates two users at the same time: it runs Ana's push between Bob's fetch and his push.
    let own = bob.read("pins/prod/cart.yaml");
    let ana = shop.root.display().to_string();
    super::program(
        &bob.root.join(".git/hooks"),
        "post-commit",
        &format!(
            "#!/bin/sh\nunset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE\ncd {ana} && HOME={} git push -q origin main\n",
            shop.place.path().display()
        ),
    );
    shop.ends(
        "promote cart --from staging --to prod --yes --reason ana",
        0,
        "cart-1 -> cart-2",
    );
    let ran = bob.ends(
        "promote cart --from staging --to prod --yes --reason bob --push",
        4,
        "the push was rejected",
    );
    assert!(
        ran.err
            .contains("your commit is kept; to push it: git pull --rebase origin main"),
        "{}",
        ran.err
    );
    assert_eq!(tip(), shop.head(), "Ana won");
    assert_eq!(
        bob.git("log -1 --format=%b").lines().next(),
        Some("bob"),
        "Bob's commit is kept"
    );
    assert_ne!(bob.read("pins/prod/cart.yaml"), own);
    assert_eq!(bob.status(), "");
    // Bob follows the hint. Both users made the same change, so the rebase drops his commit.
    std::fs::remove_file(bob.root.join(".git/hooks/post-commit")).unwrap();
    bob.git("pull -q --rebase origin main");
    bob.ends(
        "promote cart --from staging --to prod --yes --push",
        0,
        "(no change)",
    );
    bob.ends("audit verify", 0, "valid");

    // A push of a separate branch, as for a pull request.
    bob.ends(
        "rollback cart -e dev --to cart-1 --branch back/cart --push",
        0,
        "pushed back/cart to origin",
    );
    let there = shop.git_words(&[
        "--git-dir",
        bare.to_str().unwrap(),
        "log",
        "-1",
        "--format=%s",
        "back/cart",
    ]);
    assert_eq!(there, "roll back cart in dev to cart-1");
}

#[test]
fn over_a_file() {
    let shop = Shop::open(&["cart"]);
    let bare = shop.place.path().join("origin.git");
    let url = format!("file://{}", bare.display());
    publish(&shop, &bare, &url);
    story(&shop, &bare, &url, &[]);

    // The server refuses every push.
    super::program(
        &bare.join("hooks"),
        "pre-receive",
        "#!/bin/sh\necho 'main is protected' >&2\nexit 1\n",
    );
    let head = shop.head();
    // A second run tries to push the unpushed commit again, although it has nothing to change.
    let mark = "mark bad cart-3 --reason x --push";
    shop.ends(mark, 5, "main is protected");
    shop.ends(mark, 5, "main is protected");
    shop.ends("gc --min-age 30d --confirm --push", 5, "main is protected");
    assert_eq!(shop.git("rev-parse HEAD^"), head);
    let ran = shop.ends("pin cart -e dev --reason x --push", 5, "main is protected");
    assert!(ran.err.contains("open a pull request"), "{}", ran.err);
    assert_ne!(shop.head(), head, "the commit is kept");
    // A local pre-push hook refuses the push. Then the branch to push does not exist.
    let hooks = shop.root.join(".git/hooks");
    super::program(
        &hooks,
        "pre-push",
        "#!/bin/sh\necho 'tests fail' >&2\nexit 1\n",
    );
    let again = "pin cart -e staging --reason x --push";
    let ran = shop.ends(again, 1, "git did not push main to origin: tests fail");
    assert!(ran.err.contains("git push origin main"), "{}", ran.err);
    std::fs::remove_file(hooks.join("pre-push")).unwrap();
    shop.ends(
        "mark bad cart-3 --reason x --branch never --push",
        0,
        "already",
    );
    assert_eq!(shop.git("branch --list never"), "");
    std::fs::rename(&bare, bare.with_extension("away")).unwrap();
    let head = shop.head();
    let mark = "mark bad cart-2 --reason x --push";
    let ran = shop.ends(mark, 7, "so nothing was changed");
    assert!(ran.err.contains("could not be reached"), "{}", ran.err);
    assert!(!ran.err.contains("is kept"), "{}", ran.err);
    assert_eq!(shop.head(), head);
    shop.git("remote remove origin");
    shop.ends(
        "unpin cart -e dev --push",
        2,
        "bowline cannot choose a remote: the repository has none",
    );
}

/// bowline creates a release that refers to a commit only once, even while the commit with the release is not
/// pushed yet.
#[test]
fn a_release_by_reference_is_made_once() {
    let shop = Shop::open(&["cart"]);
    let bare = shop.place.path().join("origin.git");
    let url = format!("file://{}", bare.display());
    publish(&shop, &bare, &url);
    let create = "release create cart --version v9";
    shop.ends(create, 0, "release cart-v9");
    let head = shop.head();
    shop.ends(create, 0, "release cart-v9 already exists");
    assert_eq!(shop.head(), head);
    shop.ends(&format!("{create} --push"), 0, "pushed main to origin");
}

/// bowline updates a branch that is not checked out. The current branch does not change.
#[test]
fn a_branch_that_somebody_else_pushed() {
    let shop = Shop::open(&["cart"]);
    let bare = shop.place.path().join("origin.git");
    let url = format!("file://{}", bare.display());
    publish(&shop, &bare, &url);
    let bob = colleague(&shop, &url, &[]);
    bob.ends(
        "pin cart -e prod --yes --reason x --branch pr --push",
        0,
        "pushed pr",
    );

    let promote = format!("{PROMOTE} --branch pr");
    let main = shop.head();
    let ran = shop.ends(&promote, 4, "origin is 1 commit ahead on pr");
    assert!(
        ran.err
            .contains("hint: get these commits, then repeat the command: git fetch origin pr:pr"),
        "{}",
        ran.err
    );
    assert_eq!(shop.git("branch --list pr"), "", "nothing was changed");
    shop.git("fetch -q origin pr:pr");
    shop.ends(&promote, 0, "pushed pr to origin");

    // The local branch and the branch of the remote each have a commit that the other does not have.
    let mark = "mark bad cart-3 --reason x --branch pr";
    bob.ends(mark, 0, "on pr");
    let ran = bob.ends(
        &format!("{mark} --push"),
        4,
        "origin is 1 commit ahead on pr",
    );
    let way = "git switch pr && git pull --rebase origin pr";
    assert!(ran.err.contains(way), "{}", ran.err);
    assert_eq!(shop.head(), main);
}

#[test]
fn over_http_with_a_password() {
    let place = Place::new();
    let shop = Shop::open(&["cart"]);
    let bare: PathBuf = place.path("repos/deploy.git");
    let server = Server::with_password(&place.path("repos"), "ana:secret");
    let url = server.url("deploy.git");
    let helper = "!f() { echo username=ana; echo password=secret; }; f";
    let more = [("credential.helper", helper)];
    shop.git_words(&["config", "--global", "credential.helper", helper]);
    publish(&shop, &bare, &url);
    story(&shop, &bare, &url, &more);
    // Without a terminal, git fails and does not ask for a password.
    shop.git("config --global --unset credential.helper");
    let head = shop.head();
    for line in [
        "mark bad cart-3 --reason y --push",
        "pin cart -e dev --reason x --push",
    ] {
        assert_eq!(shop.head(), head, "the fetch comes before the mark");
        let ran = shop.ends(line, 7, "could not be reached");
        assert!(!ran.err.contains("secret"), "{}", ran.err);
    }
    assert_ne!(shop.head(), head, "the hold comes before the push");
}

#[test]
fn over_ssh() {
    let place = Place::new();
    let shop = Shop::open(&["cart"]);
    let bare = place.path("deploy.git");
    let Some(sshd) = Sshd::start(&place, "") else {
        return;
    };
    let command = format!("ssh -F {}", sshd.client.display());
    shop.git_words(&["config", "--global", "core.sshCommand", &command]);
    let url = sshd.url_of(&bare);
    publish(&shop, &bare, &url);
    story(&shop, &bare, &url, &[("core.sshCommand", command.as_str())]);
}

/// bowline does not fetch git objects that the local repository already has.
#[test]
fn what_is_here_is_not_fetched() {
    let shop = Shop::open(&["cart"]);
    let bare = shop.place.path().join("origin.git");
    shop.git_words(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    shop.git_words(&["remote", "add", "origin", bare.to_str().unwrap()]);
    shop.git("push -q -u origin main");
    shop.ends("deploy cart -e dev", 0, "cart in dev: cart-2 -> cart-");
    std::fs::remove_dir_all(&bare).unwrap();
    shop.ends(
        "promote cart --from dev --to staging --dry-run",
        3,
        "shop/cart:0",
    );
    shop.ends("render cart -e dev", 0, "shop/cart:0");
}

/// bowline commits a rollback or a hold before it contacts the remote, so that both work while the remote is
/// unreachable.
#[test]
fn a_rollback_and_a_hold_are_committed_though_the_remote_is_unreachable() {
    let shop = Shop::open(&["cart"]);
    shop.git("remote add origin file:///no/such/place.git");
    let head = || shop.head();
    for (line, words) in [
        (
            "rollback cart -e dev --to cart-1 --reason INC-1 --push",
            "cart-2 -> cart-1",
        ),
        ("undo cart -e dev --push", "cart-1 -> cart-2"),
        ("pin cart -e staging --reason freeze --push", "cart"),
        ("unpin cart -e staging --push", "cart"),
    ] {
        let before = head();
        let ran = shop.ends(line, 7, words);
        assert_ne!(head(), before, "{line}");
        assert!(ran.err.contains("committed "), "{line}: {}", ran.err);
        assert!(
            ran.err.contains("origin could not be reached"),
            "{line}: {}",
            ran.err
        );
        assert!(
            ran.err
                .contains("your commit is kept; try again: git push origin main"),
            "{line}: {}",
            ran.err
        );
    }
    // A promotion fetches first, so it fails before the commit. An unknown remote is refused before the
    // commit too.
    let before = head();
    shop.ends(PROMOTE, 7, "so nothing was changed");
    shop.ends(
        "rollback cart -e dev --to cart-1 --reason x --push --remote nowhere",
        2,
        "neither a remote nor an address",
    );
    assert_eq!(head(), before);
}
