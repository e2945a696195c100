//! Killed at every step: a file is the old one or the new one, and a second run ends what was begun.

use std::os::unix::process::ExitStatusExt;

use super::{Shop, pin, program};

const PROMOTE: &str = "promote cart search --from dev --to staging --reason again";

/// A git that kills whoever called it, before or after what it was called for the n-th time.
fn deadly(shop: &Shop, n: usize, after: bool) {
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
    program(
        &bin,
        "git",
        &format!(
            "#!/bin/sh\necho \"call $$\" >> {count}\nn=$(grep -n \"^call $$$\" {count} | cut -d: -f1)\nif [ $n = {n} ]; then\n  {before}\n  {real} \"$@\"\n  {behind}\nfi\nexec {real} \"$@\"\n"
        ),
    );
}

#[test]
fn a_second_run_ends_what_was_killed_at_any_step() {
    let mut steps = 0;
    let (mut nothing, mut edited, mut committed) = (0, 0, 0);
    for after in [false, true] {
        for n in 1.. {
            let mut shop = Shop::open(&["cart", "search"]);
            shop.write("staged.txt", "staged\n");
            shop.git("add staged.txt");
            let before = shop.head();
            deadly(&shop, n, after);
            shop.path = vec![shop.place.path().join("bin")];
            let output = shop.start(PROMOTE).wait_with_output().unwrap();
            shop.path.clear();
            if output.status.signal() != Some(9) {
                assert!(output.status.success(), "{output:?}");
                break;
            }
            steps += 1;
            // Whatever happened, every file is whole.
            for name in ["cart", "search"] {
                let text = shop.read(&format!("pins/staging/{name}.yaml"));
                let whole =
                    [1, 2].map(|version| pin(name, "staging", &format!("{name}-{version}")));
                assert!(whole.contains(&text), "step {n}: {text}");
            }
            match (shop.head() == before, shop.status().contains("M pins")) {
                (true, false) => nothing += 1,
                (true, true) => edited += 1,
                (false, _) => committed += 1,
            }
            let lock = shop.root.join(".git/index.lock");
            assert!(
                !lock.exists(),
                "step {n}: git was not killed, only who called it"
            );
            shop.ends("status", 0, "cart");
            shop.ends(PROMOTE, 0, "cart in staging");
            assert_eq!(shop.git("rev-parse HEAD^"), before, "step {n}: once");
            assert_eq!(shop.status(), "A  staged.txt", "step {n}");
            assert_eq!(
                shop.read("pins/staging/cart.yaml"),
                pin("cart", "staging", "cart-2")
            );
            shop.ends("audit verify", 0, "valid");
            assert!(!shop.root.join(".git/bowline/journal.json").exists());
        }
    }
    assert!(
        steps > 10 && edited > 0 && committed > 0,
        "{steps} {edited} {committed}"
    );
    println!(
        "killed at {steps} steps: {nothing} before anything, {edited} with files edited, {committed} after the commit; every second run ended it with one commit"
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
    // As a run leaves it that was killed after the first of three files, before somebody edits the third.
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
            "\"promote 3 components\" was interrupted before its commit: 1 files were put back"
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
