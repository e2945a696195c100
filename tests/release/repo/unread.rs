//! Tests with files that bowline cannot read. bowline must report such a file, and must not treat it as
//! empty.

use std::os::unix::fs::PermissionsExt;

use super::{Shop, pin};

const GC: &str = "gc --keep 1 --min-age 0s --confirm";

/// A YAML document with the value 0644, which has different meanings in YAML 1.1 and 1.2. So bowline cannot
/// read it.
const TWO_MEANINGS: &str =
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {mode: 0644}\n";

/// Returns a shop in which only production's ReleasePin names cart-1.
fn shop() -> Shop {
    let shop = Shop::open(&["cart"]);
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-2"));
    shop.commit("promote");
    shop
}

fn spoil(shop: &Shop, bytes: &[u8]) {
    let mut text = shop.read("pins/prod/cart.yaml").into_bytes();
    text.extend(bytes);
    std::fs::write(shop.root.join("pins/prod/cart.yaml"), text).unwrap();
    shop.commit("spoil");
}

#[test]
fn nothing_is_collected_while_a_pin_cannot_be_read() {
    for (bytes, words) in [
        (
            &b"# caf\xe9\n"[..],
            "pins/prod/cart.yaml:15: it is not UTF-8",
        ),
        (TWO_MEANINGS.as_bytes(), "pins/prod/cart.yaml:19:14: 0644"),
    ] {
        let shop = shop();
        spoil(&shop, bytes);
        let head = shop.head();
        shop.ends("check", 1, words);
        let ran = shop.ends(GC, 5, words);
        assert!(ran.err.contains("hint: correct the files"), "{}", ran.err);
        shop.ends("gc --keep 1 --min-age 0s --dry-run", 5, words);
        assert_eq!((shop.head(), shop.status()), (head, String::new()));

        shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-1"));
        shop.commit("mend");
        shop.ends("check", 0, "no problems found");
        shop.ends(GC, 0, "");
        assert!(shop.root.join("releases/cart/cart-1.yaml").exists());
    }
}

#[test]
fn a_file_that_may_not_be_read_is_told_until_it_may() {
    let shop = shop();
    shop.ends("check", 0, "no problems found");
    let file = shop.root.join("pins/prod/cart.yaml");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o000);
    // Root can read every file, so the test expects the error only if the read fails.
    if std::fs::read(&file).is_err() {
        let words = "pins/prod/cart.yaml: it cannot be read";
        shop.ends("check", 1, words);
        shop.ends(GC, 5, words);
    } else {
        shop.ends("check", 0, "no problems found");
    }
    mode(0o644);
    shop.ends("check", 0, "no problems found");
}

#[test]
fn a_file_that_is_too_large_is_told_where_it_says_anything_of_ours() {
    let shop = shop();
    let large = |name: &str, text: &str| {
        shop.write(name, text);
        let file = std::fs::File::options()
            .write(true)
            .open(shop.root.join(name));
        file.unwrap().set_len(64 << 20).unwrap();
    };
    large("theirs.yaml", "apiVersion: v1\n");
    shop.ends("check", 0, "no problems found");
    large("ours.yaml", "apiVersion: openchoreo.dev/v1alpha1\n");
    let words = "ours.yaml: 67108864 bytes are more than the limit of 8388608";
    shop.ends("check", 1, words);
    shop.ends(GC, 5, words);
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_told_where_it_says_anything_of_ours() {
    let shop = shop();
    shop.write("theirs/ci.yaml", "on: [push]\n");
    shop.commit("something else");
    let without = |folder: &str| {
        let folder = format!("!/{folder}/");
        shop.git_words(&["sparse-checkout", "set", "--no-cone", "/*", &folder]);
    };
    without("theirs");
    shop.ends("check", 0, "no problems found");
    without("pins/staging");
    let head = shop.head();
    for _ in 0..2 {
        shop.ends("check", 1, "pins/staging/cart.yaml: not checked out");
    }
    let status = shop.ends(
        "status",
        0,
        "warning: the release is not known, because the ReleasePin is not checked out: cart in staging",
    );
    let row = status
        .out
        .lines()
        .find(|line| line.starts_with("cart"))
        .unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert!(cells.contains(&"?") && !cells.contains(&"·"), "{row}");
    let json = shop.run("status -o json").out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let cells = json["components"][0]["environments"].as_array().unwrap();
    assert!(
        cells
            .iter()
            .any(|cell| cell["environment"] == "staging" && cell["leftOut"] == true),
        "{json}"
    );
    shop.ends(GC, 5, "not checked out");
    shop.ends(
        "promote cart --from dev --to staging",
        5,
        "hint: check it out: git sparse-checkout add pins/staging",
    );
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
    shop.git("sparse-checkout disable");
    shop.ends("check", 0, "no problems found");
}

#[test]
fn nothing_is_collected_that_a_committed_pin_names() {
    const FILE: &str = "pins/prod/cart.yaml";
    let hidden = "pin cart-prod names cart-1 in the last commit";
    let broken = "pins/prod/cart.yaml cannot be read in the last commit";
    let hide = |shop: &Shop, flag: &str| {
        shop.git(&format!("update-index {flag} {FILE}"));
        shop.write(FILE, &pin("cart", "prod", "cart-2"));
    };
    type Change<'c> = &'c dyn Fn(&Shop);
    let cases: [(Change<'_>, &str, &str); 5] = [
        (&|shop| hide(shop, "--skip-worktree"), GC, hidden),
        (&|shop| hide(shop, "--assume-unchanged"), GC, hidden),
        (
            &|shop| {
                hide(shop, "--assume-unchanged");
                std::fs::remove_file(shop.root.join(FILE)).unwrap();
            },
            GC,
            hidden,
        ),
        // The file is correct on disk, but not in the last commit.
        (
            &|shop| {
                spoil(shop, b"a: [\n");
                shop.write(FILE, &pin("cart", "prod", "cart-2"));
            },
            GC,
            broken,
        ),
        (
            &|shop| {
                shop.git("switch -q -c other");
                spoil(shop, b"a: [\n");
                shop.git("switch -q main");
                shop.write(FILE, &pin("cart", "prod", "cart-2"));
                shop.commit("promote prod");
            },
            "gc --keep 1 --min-age 0s --confirm --branch other",
            "pins/prod/cart.yaml cannot be read on branch other",
        ),
    ];
    for (change, gc, words) in cases {
        let shop = shop();
        change(&shop);
        let head = shop.head();
        shop.ends(gc, 5, words);
        assert_eq!(shop.head(), head);
        assert!(shop.root.join("releases/cart/cart-1.yaml").exists());
    }
}

#[test]
fn a_pin_that_cannot_be_read_is_not_known() {
    for bytes in [
        &b"a: [\n"[..],
        b"<<<<<<< HEAD\n",
        b"spec: {}\n",
        b"# caf\xe9\n",
        b"\tx: 1\n",
    ] {
        let shop = shop();
        let entries = shop.run("audit list").err;
        spoil(&shop, bytes);
        let status = shop.ends("status", 0, "warning: not read: pins/prod/cart.yaml:");
        let row = status.out.lines().find(|line| line.starts_with("cart"));
        let cells: Vec<&str> = row.unwrap().split_whitespace().collect();
        assert!(cells.contains(&"?") && !cells.contains(&"·"), "{cells:?}");
        let words = "the release of cart in prod is not known: pins/prod/cart.yaml:";
        shop.ends("history cart --environment prod", 5, words);
        shop.ends("rollback cart --environment prod --to cart-2", 5, words);
        shop.ends("promote cart --from staging --to prod --reason y", 5, "");
        let check = shop.ends("check --base HEAD~1", 1, "pins/prod/cart.yaml:");
        assert!(!check.out.contains("nothing"), "{}", check.out);
        let list = shop.ends("audit list", 0, "warning: not read: pins/prod/cart.yaml:");
        assert!(
            list.err.contains(entries.lines().last().unwrap()),
            "{}",
            list.err
        );
        assert_eq!(shop.status(), "");
    }
}

#[test]
fn a_pin_that_is_in_two_files_is_told() {
    let shop = shop();
    shop.write("pins/prod/again.yaml", &pin("cart", "prod", "cart-2"));
    shop.commit("twice");
    shop.ends("status", 0, "openchoreo.dev/releasepins cart-prod is in");
}

#[test]
fn a_release_that_a_sparse_checkout_leaves_out_is_not_missing() {
    let shop = shop();
    shop.git_words(&["sparse-checkout", "set", "--no-cone", "/*", "!/releases/"]);
    let words = "warning: these releases are not known, because they are not checked out: cart-1";
    let status = shop.ends("status", 0, words);
    assert!(!status.out.contains("ReleaseMissing"), "{}", status.out);
    shop.git_words(&["sparse-checkout", "set", "--no-cone", "/*", "!/pins/prod/"]);
    let words = "the release of cart in prod is not known: its ReleasePin is not checked out";
    shop.ends("history cart --environment prod", 5, words);
    shop.ends("rollback cart --environment prod --to cart-2", 5, words);
}

#[test]
fn a_pin_is_not_written_while_a_place_that_may_have_it_is_not_read() {
    const FILE: &str = "pins/prod/cart.yaml";
    let words = "and bowline cannot read this file";
    type Change<'c> = &'c dyn Fn(&Shop);
    let cases: [Change<'_>; 4] = [
        // The directory of the file is a link.
        &|shop| {
            std::fs::create_dir_all(shop.root.join("../elsewhere")).unwrap();
            let outside = shop.root.join("../elsewhere/cart.yaml");
            std::fs::rename(shop.root.join(FILE), outside).unwrap();
            std::fs::remove_dir(shop.root.join("pins/prod")).unwrap();
            std::os::unix::fs::symlink("../../elsewhere", shop.root.join("pins/prod")).unwrap();
        },
        // A kustomization names a file that bowline does not read, because of its extension.
        &|shop| {
            let text = shop.root.join("pins/prod/cart.txt");
            std::fs::rename(shop.root.join(FILE), text).unwrap();
            shop.write("pins/prod/kustomization.yaml", "resources: [cart.txt]\n");
        },
        // A chart template contains a ReleasePin whose name is an expression.
        &|shop| {
            std::fs::remove_file(shop.root.join(FILE)).unwrap();
            shop.write("c/Chart.yaml", "name: c\n");
            let text = pin("cart", "prod", "cart-1").replace("cart-prod", "cart-{{ .env }}");
            shop.write("c/templates/pin.yaml", &text);
        },
        // The path of the file is a directory.
        &|shop| {
            std::fs::remove_file(shop.root.join(FILE)).unwrap();
            std::fs::create_dir(shop.root.join(FILE)).unwrap();
            shop.write("pins/prod/cart.yaml/x.txt", "x\n");
        },
    ];
    for (at, change) in cases.into_iter().enumerate() {
        let shop = shop();
        change(&shop);
        if at != 3 {
            shop.commit("move the pin");
        }
        let head = shop.head();
        shop.ends(
            "promote cart --from staging --to prod --reason y --yes",
            5,
            words,
        );
        shop.ends("check", 1, "");
        assert_eq!(shop.head(), head);
    }
}

#[test]
fn a_kustomization_that_moves_a_pin_to_another_namespace_is_told() {
    let shop = shop();
    shop.write(
        "pins/prod/kustomization.yaml",
        "namespace: other\nresources: [cart.yaml]\n",
    );
    let text = pin("cart", "prod", "cart-1");
    assert!(text.contains("namespace:"), "{text}");
    shop.commit("kustomize");
    shop.ends(
        "check",
        1,
        "it moves the objects of pins/prod/cart.yaml to the namespace other",
    );
}

#[test]
fn objects_in_two_namespaces_are_told() {
    let shop = shop();
    let text = shop.read("pins/prod/cart.yaml");
    let own = text
        .lines()
        .find(|line| line.contains("namespace:"))
        .unwrap();
    shop.write(
        "pins/prod/cart.yaml",
        &text.replace(own, "  namespace: other"),
    );
    shop.commit("another namespace");
    shop.ends("status", 0, "choose one with -n NAME");
    let all = shop.run("status -A");
    assert!(!all.err.contains("choose one"), "{}", all.err);
}

#[test]
fn the_layout_is_no_link_and_no_large_file() {
    let shop = shop();
    std::os::unix::fs::symlink("/dev/zero", shop.root.join(".bowline.toml")).unwrap();
    shop.ends("status", 2, ".bowline.toml: it is a link");
    std::fs::remove_file(shop.root.join(".bowline.toml")).unwrap();
    shop.write(".bowline.toml", &"#".repeat(70_000));
    shop.ends("status", 2, ".bowline.toml: it is larger than 64 KiB");
}
