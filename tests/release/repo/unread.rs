//! Files that cannot be read: told, and never taken for files that say nothing.

use std::os::unix::fs::PermissionsExt;

use super::{Shop, pin};

const GC: &str = "gc --keep 1 --min-age 0s --confirm";

/// A second document of which YAML 1.1 and 1.2 disagree what it says.
const TWO_MEANINGS: &str =
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {mode: 0644}\n";

/// A shop of which only one pin names cart-1.
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
    // Some may read whatever they want.
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
    shop.ends("promote cart --from dev --to staging", 5, "not checked out");
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
    shop.git("sparse-checkout disable");
    shop.ends("check", 0, "no problems found");
}
