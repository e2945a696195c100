//! Kills bowline at every step of an action on a repository. Each file must have its old or its new text, and
//! a second run must complete the action.

use std::os::unix::process::ExitStatusExt;

use super::{Shop, pin, program};

const PROMOTE: &str = "promote cart search --from dev --to staging --reason again";

/// The call of git at which the test kills bowline.
#[derive(Clone, Copy, Debug)]
enum At {
    /// The call of git with this number. Some calls run at the same time, so their order varies.
    Number(usize),
    /// The call of git that makes the commit. Before this call, bowline has edited the files.
    Commit,
}

/// Puts a program `git` on the PATH that kills bowline at one call: after the call if `after` is true, else
/// before it.
fn deadly(shop: &Shop, at: At, after: bool) {
    let bin = shop.place.path().join("bin");
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|directory| directory.join("git"))
        .find(|git| git.exists())
        .unwrap();
    let (real, count) = (real.display(), shop.place.path().join("count"));
    std::fs::write(&count, "").unwrap();
    let count = count.display();
    let kill = "kill -9 $PPID; exit 1";
    let (before, behind) = match after {
        false => (kill, ""),
        true => ("", kill),
    };
    let is_it = match at {
        At::Number(n) => format!("[ $n = {n} ]"),
        At::Commit => "[ \"${*#* commit }\" != \"$*\" ]".to_owned(),
    };
    program(
        &bin,
        "git",
        &format!(
            "#!/bin/sh\necho \"call $$\" >> {count}\nn=$(grep -n \"^call $$$\" {count} | cut -d: -f1)\nif {is_it}; then\n  {before}\n  {real} \"$@\"\n  {behind}\nfi\nexec {real} \"$@\"\n"
        ),
    );
}

/// The changes that a killed run left in the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    Edits,
    Commit,
}

/// Kills a promotion at a call of git, and runs the promotion again. Returns what the killed run left; None
/// if the promotion makes no such call.
fn killed(at: At, after: bool) -> Option<Left> {
    let mut shop = Shop::open(&["cart", "search"]);
    shop.write("staged.txt", "staged\n");
    shop.git("add staged.txt");
    let before = shop.head();
    deadly(&shop, at, after);
    shop.path = vec![shop.place.path().join("bin")];
    let output = shop.start(PROMOTE).wait_with_output().unwrap();
    shop.path.clear();
    if output.status.signal() != Some(9) {
        assert!(output.status.success(), "{output:?}");
        return None;
    }
    // Every file has its whole old or whole new content.
    for name in ["cart", "search"] {
        let text = shop.read(&format!("pins/staging/{name}.yaml"));
        let whole = [1, 2].map(|version| pin(name, "staging", &format!("{name}-{version}")));
        assert!(whole.contains(&text), "{at:?}: {text}");
    }
    let left = match (shop.head() == before, shop.status().contains("M pins")) {
        (true, false) => Left::Nothing,
        (true, true) => Left::Edits,
        (false, _) => Left::Commit,
    };
    let lock = shop.root.join(".git/index.lock");
    assert!(!lock.exists(), "{at:?}: git was killed, not its caller");
    shop.ends("status", 0, "cart");
    shop.ends(PROMOTE, 0, "cart in staging");
    assert_eq!(shop.git("rev-parse HEAD^"), before, "{at:?}: one commit");
    assert_eq!(shop.status(), "A  staged.txt", "{at:?}");
    assert_eq!(
        shop.read("pins/staging/cart.yaml"),
        pin("cart", "staging", "cart-2")
    );
    shop.ends("audit verify", 0, "valid");
    assert!(!shop.root.join(".git/bowline/journal.json").exists());
    Some(left)
}

#[test]
fn a_second_run_ends_what_was_killed_at_any_step() {
    assert_eq!(killed(At::Commit, false), Some(Left::Edits));
    assert_eq!(killed(At::Commit, true), Some(Left::Commit));
    let full = std::env::var_os("BOWLINE_FULL").is_some();
    let mut left = Vec::new();
    for after in [false, true] {
        let numbers = (1..).step_by(if full { 1 } else { 5 });
        left.extend(numbers.map_while(|n| killed(At::Number(n), after)));
    }
    let count = |what: Left| left.iter().filter(|left| **left == what).count();
    assert!(left.len() > 5 && count(Left::Commit) > 0, "{left:?}");
    println!(
        "killed at {} calls of git: {} before anything, {} with files edited, {} after the commit; every second run ended it with one commit",
        left.len(),
        count(Left::Nothing),
        count(Left::Edits),
        count(Left::Commit)
    );
}

#[test]
fn what_was_half_done_is_put_back_and_what_somebody_changed_is_left() {
    let shop = Shop::open(&["cart", "search", "mail"]);
    let head = shop.head();
    let hash = |text: &str| {
        use std::fmt::Write;
        let digest = <sha2::Sha256 as sha2::Digest>::digest(text.as_bytes());
        digest.iter().fold(String::new(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
    };
    // The test restores the state after a kill between the first and the second of three files. Then a user
    // edits the third file.
    let new = |name: &str| pin(name, "staging", &format!("{name}-2"));
    let files: Vec<serde_json::Value> = ["cart", "search", "mail"]
        .iter()
        .map(|name| serde_json::json!({"path": format!("pins/staging/{name}.yaml"), "created": false, "after": hash(&new(name))}))
        .collect();
    let journal = serde_json::json!({"operation": "x", "subject": "promote 3 components", "head": head, "files": files});
    shop.write(".git/bowline/journal.json", &journal.to_string());
    shop.write("pins/staging/cart.yaml", &new("cart"));
    let mine = format!("{}# mine\n", pin("mail", "staging", "mail-1"));
    shop.write("pins/staging/mail.yaml", &mine);
    let ran = shop.ends(
        "promote cart --from dev --to staging",
        0,
        "cart-1 -> cart-2",
    );
    assert!(
        ran.err.contains(
            "\"promote 3 components\" was interrupted before its commit: 1 files were restored"
        ),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains(
            "these files changed afterwards and were not touched: pins/staging/mail.yaml"
        ),
        "{}",
        ran.err
    );
    assert_eq!(shop.read("pins/staging/mail.yaml"), mine);
    assert_eq!(shop.status(), " M pins/staging/mail.yaml");
}

#[test]
fn the_change_of_an_interrupted_action_is_named_and_a_dry_run_restores_nothing() {
    let mut shop = Shop::open(&["cart", "search"]);
    deadly(&shop, At::Commit, false);
    shop.path = vec![shop.place.path().join("bin")];
    let output = shop.start(PROMOTE).wait_with_output().unwrap();
    shop.path.clear();
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
    let left = shop.status();
    assert!(left.contains("pins/staging/cart.yaml"), "{left}");
    let named = "was interrupted before its commit, and its change is still in pins/staging/cart.yaml, pins/staging/search.yaml";
    let next = "it restores these files first";
    for (line, code) in [
        ("status", 0),
        ("check", 1),
        ("audit list", 0),
        ("promote cart --from dev --to staging --dry-run", 5),
        ("promote cart --from staging --to prod --dry-run", 5),
        ("rollback cart -e staging --to cart-1 --dry-run", 5),
        ("mark bad cart-1 --reason leaks --dry-run", 5),
        ("gc --dry-run", 5),
        (
            "promote cart --from dev --to staging --dry-run --readonly",
            5,
        ),
        ("promote cart --from dev --to staging --readonly", 5),
    ] {
        let ran = shop.ends(line, code, named);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains(next), "{line}: {said}");
        assert_eq!(shop.status(), left, "{line}");
    }
    shop.ends(PROMOTE, 0, "were restored");
    shop.ends("check", 0, "no problems found");
    let ran = shop.ends("status", 0, "cart");
    assert!(!ran.err.contains("interrupted"), "{}", ran.err);
}
