//! Tests with git clones that lack some commits. `audit verify` must warn that these commits are not known,
//! and must not report tampering.

use super::{Shop, pin};

const STAGING: &str = "promote cart --from dev --to staging --reason why";
const PROD: &str = "promote cart --from staging --to prod --yes --reason why";

/// Returns a shop whose git history has changes by bowline and by hand, a mark on a release, and a merge.
fn shop() -> Shop {
    let shop = Shop::open(&["cart", "search"]);
    shop.ends(STAGING, 0, "");
    shop.ends("mark bad cart-3 --reason why", 0, "");
    shop.git("switch -q -c side");
    shop.ends(PROD, 0, "");
    shop.git("switch -q main");
    shop.write("notes.txt", "meanwhile\n");
    shop.commit("meanwhile");
    shop.git("merge -q --no-ff -m merge side");
    shop.write("pins/dev/search.yaml", &pin("search", "dev", "search-3"));
    shop.commit("by hand");
    shop.ends(
        "rollback cart -e prod --to cart-1 --no-hold --yes --reason why",
        0,
        "",
    );
    shop.ends("audit verify", 0, "valid, 1 warning");
    shop
}

/// Runs `audit verify`, which must succeed. Returns how many warnings are about unknown commits.
fn not_known(shop: &Shop, what: &str) -> usize {
    let ran = shop.run("audit verify -o json");
    assert_eq!(ran.code, 0, "{what}: {}{}", ran.out, ran.err);
    let verdict: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(verdict["problems"], serde_json::json!([]), "{what}");
    let warnings = verdict["warnings"].as_array().unwrap().iter();
    let found = warnings.filter(|found| found["severity"] == "notKnown");
    found.count()
}

#[test]
fn a_shallow_clone_is_not_tampered_with() {
    let mut shop = shop();
    let whole = shop.root.clone();
    for depth in 1..=6 {
        shop.root.clone_from(&whole);
        shop.clone_with(&format!("--depth {depth}"));
        let cut = std::fs::read_to_string(shop.root.join(".git/shallow"));
        let cut = cut.unwrap_or_default().lines().count();
        assert_eq!(not_known(&shop, &format!("depth {depth}")), cut);
        let ran = shop.ends("audit verify", 0, "");
        if cut > 0 {
            let words = "valid as far as this clone knows";
            assert!(ran.err.contains(words), "{}", ran.err);
            let words = "this clone does not have the commit before it";
            assert!(ran.out.contains(words), "{}", ran.out);
            assert!(ran.out.contains("not known"), "{}", ran.out);
        }
        if depth == 1 {
            // bowline knows the actions that happened after the clone.
            shop.git("config user.name Ana");
            shop.git("config user.email ana@example.com");
            shop.ends("pin cart -e dev --reason why", 0, "");
            assert_eq!(not_known(&shop, "a commit more"), 1);
            let message = "forged\n\nBowline-Operation: x\nBowline-Action: Promote\nBowline-Component: cart\nBowline-Environment: dev\nBowline-From: cart-1\nBowline-To: cart-2";
            shop.git_words(&["commit", "-q", "--allow-empty", "-m", message]);
            shop.ends("audit verify", 1, "tampered");
        }
        std::fs::remove_dir_all(&shop.root).unwrap();
    }
}

#[test]
fn a_partial_clone_is_not_tampered_with() {
    let mut shop = shop();
    shop.git("config uploadpack.allowFilter true");
    let (whole, away) = (shop.root.clone(), shop.place.path().join("away"));
    shop.clone_with("--filter=blob:none");
    std::fs::rename(&whole, &away).unwrap();
    assert!(not_known(&shop, "blob:none") > 0);
    shop.ends("audit verify", 0, "git could not fetch them");
    // If git can fetch the missing objects, bowline knows them.
    std::fs::rename(&away, &whole).unwrap();
    assert_eq!(not_known(&shop, "fetched"), 0);
}

#[test]
fn what_is_not_checked_out_is_still_verified() {
    let shop = shop();
    shop.ends(
        "promote cart search --from dev --to staging --yes --reason why",
        0,
        "",
    );
    let set = [
        "sparse-checkout",
        "set",
        "--no-cone",
        "/*",
        "!/pins/staging/",
    ];
    shop.git_words(&set);
    assert_eq!(not_known(&shop, "sparse"), 0);
    shop.git("sparse-checkout disable");
    // Verification also succeeds after a ReleasePin is deleted, and in a directory with only some of the
    // ReleasePins.
    shop.git("rm -q pins/staging/cart.yaml");
    shop.commit("no staging");
    assert_eq!(not_known(&shop, "removed"), 0);
    let mut part = shop;
    part.root = part.root.join("pins/prod");
    assert_eq!(not_known(&part, "a directory"), 0);
}

#[test]
fn replaced_commits_are_verified_as_they_were_committed() {
    let shop = shop();
    // A git graft hides the parent of a promotion, and later a git replacement hides a forged commit.
    let promotion = shop.git("log -1 --format=%H --grep=^promote.cart-2.to.staging");
    shop.git_words(&["replace", "--graft", &promotion]);
    assert_eq!(not_known(&shop, "grafted"), 0);
    shop.git_words(&["replace", "-d", &promotion]);
    shop.write(".git/info/grafts", &format!("{promotion}\n"));
    assert_eq!(not_known(&shop, "a file of grafts"), 0);
    std::fs::remove_file(shop.root.join(".git/info/grafts")).unwrap();

    shop.git("commit -q --allow-empty -m honest");
    let honest = shop.head();
    let message = "forged\n\nBowline-Operation: x\nBowline-Action: Promote\nBowline-Component: cart\nBowline-Environment: dev\nBowline-From: cart-1\nBowline-To: cart-2";
    shop.git_words(&["commit", "-q", "--amend", "--allow-empty", "-m", message]);
    shop.ends("audit verify", 1, "tampered");
    let forged = shop.head();
    shop.git_words(&["replace", &forged, &honest]);
    shop.ends("audit verify", 1, "tampered");
}

#[test]
fn a_history_that_begins_without_a_pin_is_valid() {
    let shop = Shop::empty();
    shop.write("README.md", "nothing yet\n");
    shop.commit("begin");
    shop.ends("audit verify", 5, "has no objects of bowline");
    shop.write("environments/all.yaml", &super::environments());
    shop.commit("environments");
    assert_eq!(not_known(&shop, "no ReleasePin"), 0);
    let other = Shop::open(&["cart"]);
    for folder in [
        "environments",
        "definitions",
        "components",
        "releases",
        "pins",
    ] {
        let from = other.root.join(folder);
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(from)
            .arg(&shop.root)
            .status();
        assert!(copied.unwrap().success());
    }
    shop.commit("ReleasePins");
    shop.ends(STAGING, 0, "");
    assert_eq!(not_known(&shop, "ReleasePins later"), 0);
    shop.ends("audit verify", 0, "4 entries in 3 chains: valid");
}

#[test]
fn entries_are_filtered_by_environment_and_printed_as_json() {
    let shop = shop();
    let entries = |line: &str| -> Vec<String> {
        let ran = shop.ends(line, 0, "");
        let list: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let items = list["items"].as_array().or(list.as_array()).unwrap().iter();
        let name = |item: &serde_json::Value| {
            let name = item.pointer("/spec/subject/name").or(item.get("subject"));
            name.and_then(|name| name.as_str()).unwrap().to_owned()
        };
        // The names are sorted, because several commits have the same second.
        let mut names: Vec<String> = items.map(name).collect();
        names.sort();
        names
    };
    assert_eq!(
        entries("audit list -e staging -o json"),
        ["cart-staging", "cart-staging", "search-staging"]
    );
    assert_eq!(entries("audit list cart -e prod -o json"), ["cart-prod"; 3]);
    assert_eq!(entries("audit list -e nowhere -o json").len(), 0);
    assert_eq!(entries("audit export cart -e prod -o json").len(), 3);
    assert_eq!(entries("audit export --format json -e dev").len(), 3);
    let name = shop.ends("audit list cart -e staging -o name", 0, "").out;
    let name = name.lines().next().unwrap().rsplit('/').next().unwrap();
    let ran = shop.ends(&format!("audit show {name} -o json"), 0, "");
    let entry: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(entry["kind"], "AuditEntry");
}

#[test]
fn the_history_of_a_shallow_clone_names_no_author_of_what_it_does_not_know() {
    let mut shop = shop();
    shop.clone_with("--depth 1");
    let warning = "warning: this clone is shallow and ends at ";
    for line in [
        "history cart -e dev",
        "audit list",
        "audit export",
        "revisions list cart/dev",
    ] {
        // The table of `audit list` has no column for reasons.
        let words = match line {
            "audit list" => "unattributed",
            _ => "not known: the clone ends here",
        };
        let ran = shop.ends(line, 0, words);
        assert!(ran.err.contains(warning), "{line}: {}", ran.err);
        assert!(!ran.out.contains("Ana"), "{line}: {}", ran.out);
    }
    let ran = shop.ends("audit list -o json", 0, "");
    let entries: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let entries = entries["items"].as_array().unwrap();
    assert_eq!(entries.len(), 6, "{entries:?}");
    for entry in entries {
        assert_eq!(entry["spec"].get("actor"), None, "{entry}");
        assert_eq!(entry["spec"]["action"], "Edit", "{entry}");
    }
    let undo = shop.ends("undo cart -e dev --reason why", 5, "this clone ends here");
    assert!(undo.err.contains("git fetch --unshallow"), "{}", undo.err);
    // bowline knows the changes that happened after the clone.
    shop.git("config user.name Ana");
    shop.git("config user.email ana@example.com");
    shop.ends("pin cart -e dev --reason why", 0, "");
    shop.ends("history cart -e dev", 0, "Ana");
}
