//! Users rewrite the git log. The history that bowline prints must match the new log, with and without
//! bowline's cache.

use std::process::Command;

use super::{Shop, pin, release};

impl Shop {
    /// Runs git with this date as the author date and the committer date.
    fn git_at(&self, date: &str, words: &[&str]) {
        let mut command = self.command(Command::new("git"));
        command.env("GIT_COMMITTER_DATE", date);
        command.env("GIT_AUTHOR_DATE", date);
        let output = command.args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {said}");
    }

    /// Deletes the cache of bowline.
    fn forget(&self) {
        std::fs::remove_dir_all(self.place.path().join(".cache")).unwrap();
    }

    /// Returns the revisions that a command line of bowline prints, newest first: number, release and action.
    fn revisions(&self, line: &str) -> Vec<[String; 3]> {
        let ran = self.ends(line, 0, "");
        let rows = ran.out.lines().skip(1);
        rows.map(|row| {
            let mut words = row.split_whitespace().map(str::to_owned);
            std::array::from_fn(|_| words.next().unwrap_or_default())
        })
        .collect()
    }

    /// Like [`Shop::revisions`], but also checks that bowline prints the same without its cache.
    fn always(&self, line: &str) -> Vec<[String; 3]> {
        let kept = self.revisions(line);
        self.forget();
        assert_eq!(self.revisions(line), kept, "without what was read before");
        kept
    }

    /// Clones the repository with these options of git. From now on, the shop uses the clone.
    pub fn clone_with(&mut self, options: &str) {
        let to = self.place.path().join("clone");
        let from = format!("file://{}", self.root.display());
        let mut words = vec!["clone", "-q"];
        words.extend(options.split_whitespace());
        self.git_words(&[&words[..], &[from.as_str(), to.to_str().unwrap()]].concat());
        self.root = to;
    }
}

const STAGING: &str = "history cart -e staging";

fn move_by_hand(shop: &Shop, release: &str) {
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", release));
    shop.commit(&format!("{release} by hand"));
}

#[test]
fn each_object_of_a_file_has_its_own_age() {
    let shop = Shop::open(&["cart"]);
    shop.git("rm -rq releases");
    let releases = |to: u32| {
        let all: Vec<String> = (1..=to).map(|number| release("cart", number)).collect();
        all.join("---\n")
    };
    shop.write("all.yaml", &releases(10));
    shop.git("add -A");
    let amend = ["commit", "-q", "--amend", "--no-edit"];
    shop.git_at("2025-01-01T00:00:00Z", &amend);
    // Returns whether gc keeps a release because it is younger than 30 days.
    let is_young = |name: &str| {
        let planned = shop.ends("gc --dry-run", 3, name);
        let mut rows = planned.out.lines();
        let row = rows.find(|row| row.contains(&format!("/{name} ")));
        row.unwrap().contains("younger than 30d")
    };
    assert!(!is_young("cart-10"));
    shop.write("all.yaml", &releases(11));
    shop.commit("cart-11, made today");
    assert!(is_young("cart-11") && !is_young("cart-10"));
    // An uncommitted release in the same file does not make the other releases younger.
    shop.write("all.yaml", &releases(12));
    shop.forget();
    assert!(is_young("cart-12") && !is_young("cart-10"));
    shop.commit("cart-12, made today");
    shop.ends("gc --confirm", 0, "");
    let left = shop.read("all.yaml");
    for (name, stays) in [("cart-11", true), ("cart-12", true), ("cart-3", false)] {
        let there = left.contains(&format!("name: {name}\n"));
        assert_eq!(there, stays, "{name}: {left}");
    }
}

#[test]
fn what_a_reset_takes_away_is_gone_from_history() {
    let shop = Shop::open(&["cart"]);
    shop.ends("promote cart --from dev --to staging", 0, "revision 2");
    move_by_hand(&shop, "cart-3");
    assert_eq!(shop.revisions(STAGING).len(), 3);
    shop.git("reset -q --keep HEAD^");
    // This command updates the cache without the audit entries, so the cached entries are stale.
    shop.ends("get releasepins", 0, "cart-staging");
    let listed = shop.ends("audit list cart", 0, "Promote");
    assert!(!listed.out.contains("cart-3"), "{}", listed.out);
    let brief = shop.always(STAGING);
    assert_eq!(brief.len(), 2, "{brief:?}");
    shop.git("reset -q --keep HEAD^");
    assert_eq!(shop.revisions(STAGING).len(), 1);
}

#[test]
fn a_clone_that_becomes_deeper_tells_more() {
    let mut shop = Shop::open(&["cart"]);
    move_by_hand(&shop, "cart-2");
    move_by_hand(&shop, "cart-3");
    shop.clone_with("--depth 1");
    assert_eq!(shop.revisions(STAGING).len(), 1);
    shop.git("fetch -q --unshallow");
    assert_eq!(shop.always(STAGING).len(), 3);
}

#[test]
fn a_clone_without_old_blobs_serves_its_files() {
    let mut shop = Shop::open(&["cart"]);
    move_by_hand(&shop, "cart-2");
    move_by_hand(&shop, "cart-3");
    shop.git("config uploadpack.allowFilter true");
    let (from, away) = (shop.root.clone(), shop.place.path().join("away"));
    shop.clone_with("--filter=blob:none");
    std::fs::rename(&from, &away).unwrap();
    shop.ends("status", 0, "cart-3");
    assert_eq!(shop.revisions(STAGING).len(), 1);
    shop.ends("audit verify", 0, "valid as far as this clone knows");
    // When the remote is back, git fetches the missing objects.
    std::fs::rename(&away, &from).unwrap();
    assert_eq!(shop.revisions(STAGING).len(), 3);
}

#[test]
fn the_namespace_of_objects_that_name_none_follows_the_files() {
    let shop = Shop::open(&["cart"]);
    shop.git("rm -rq .");
    shop.git("commit -q -m empty");
    shop.ends("status", 5, "has no objects of bowline");
    shop.git("revert --no-edit HEAD");
    for environment in super::ENVIRONMENTS {
        let file = format!("pins/{environment}/cart.yaml");
        let text = shop.read(&file).replace("  namespace: shop\n", "");
        shop.write(&file, &text);
    }
    shop.commit("no namespace");
    let pins = shop.ends("get releasepins -A", 0, "cart-staging");
    assert!(!pins.out.contains("default"), "{}", pins.out);
    shop.ends(
        "promote cart --from dev --to staging",
        0,
        "cart-1 -> cart-2",
    );
    let pins = shop.ends("get releasepins -n shop", 0, "cart-staging");
    assert_eq!(pins.out.lines().count(), 4, "{}", pins.out);
}

#[test]
fn a_pin_that_says_its_namespace_is_the_one_that_did_not() {
    let shop = Shop::open(&["cart"]);
    let text = pin("cart", "staging", "cart-1").replace("  namespace: shop\n", "");
    shop.write("pins/staging/cart.yaml", &text);
    shop.git("add -A");
    shop.git("commit -q --amend --no-edit");
    for number in [2, 3] {
        let text = text.replace("cart-1", &format!("cart-{number}"));
        shop.write("pins/staging/cart.yaml", &text);
        shop.commit("by hand");
    }
    let before = shop.revisions(STAGING);
    assert_eq!(before.len(), 3, "{before:?}");
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-3"));
    shop.commit("say the namespace");
    assert_eq!(shop.always(STAGING), before);
    let listed = shop.ends("get releasepins cart-staging -o yaml", 0, "");
    assert!(listed.out.contains("generation: 3\n"), "{}", listed.out);
}

#[test]
fn a_patch_is_no_move_of_the_pin() {
    let shop = Shop::open(&["cart"]);
    shop.write(
        "overlay/kustomization.yaml",
        "resources: [../pins/staging/cart.yaml]\npatches:\n  - path: patch.yaml\n",
    );
    shop.write("overlay/patch.yaml", &pin("cart", "staging", "cart-3"));
    shop.commit("an overlay");
    assert_eq!(shop.always(STAGING).len(), 1);
    shop.ends("audit verify", 0, "3 entries in 3 chains: valid");
    // The file that was a patch becomes an object.
    shop.write("overlay/kustomization.yaml", "resources: [patch.yaml]\n");
    shop.git("rm -q pins/staging/cart.yaml");
    shop.commit("the patch is the pin");
    shop.always(STAGING);
}

#[test]
fn the_configuration_of_git_does_not_change_history() {
    let shop = Shop::open(&["cart"]);
    shop.ends(
        "promote cart --from dev --to staging --reason größer",
        0,
        "",
    );
    let expected = shop.revisions(STAGING);
    assert_eq!(expected.len(), 2);
    for setting in [
        "log.showRoot false",
        "i18n.logOutputEncoding UTF-16",
        "diff.orderFile nowhere",
        "diff.relative true",
        "log.diffMerges off",
        "color.ui always",
        "format.pretty oneline",
        "log.showSignature true",
    ] {
        let (name, value) = setting.split_once(' ').unwrap();
        shop.git_words(&["config", name, value]);
        shop.forget();
        assert_eq!(shop.revisions(STAGING), expected, "{setting}");
        shop.ends(STAGING, 0, "größer");
        shop.git_words(&["config", "--unset", name]);
    }
}

#[test]
fn a_pin_that_was_removed_begins_again() {
    let shop = Shop::open(&["cart"]);
    assert_eq!(shop.revisions(STAGING).len(), 1);
    shop.git("rm -q pins/staging/cart.yaml");
    shop.commit("no staging");
    shop.ends("get releasepins", 0, "cart-prod");
    shop.ends("promote cart --from dev --to staging", 0, "cart-2");
    let revisions = shop.always(STAGING);
    let brief: Vec<[&str; 2]> = revisions
        .iter()
        .map(|[number, release, _]| [number.as_str(), release.as_str()])
        .collect();
    assert_eq!(brief, [["2", "cart-2"], ["1", "cart-1"]]);
    shop.ends("audit verify", 0, "valid");
    // The revisions are also right if bowline reads the log between the commits.
    shop.git("rm -q pins/staging/cart.yaml");
    shop.commit("no staging");
    shop.ends("audit list", 0, "");
    shop.ends("promote cart --from dev --to staging", 0, "cart-2");
    assert_eq!(shop.always(STAGING).len(), 3);
    shop.ends("audit verify", 0, "valid");
}

/// Returns a commit message in the form in which bowline writes it.
fn said(action: &str, from: &str, to: &str) -> String {
    format!(
        "{action} cart\n\nBowline-Operation: {to}\nBowline-Action: {action}\nBowline-Component: cart\nBowline-Environment: staging\nBowline-From: {from}\nBowline-To: {to}"
    )
}

#[test]
fn a_hold_counts_as_it_did_when_it_was_made() {
    let shop = Shop::open(&["cart"]);
    shop.git("switch -q -c side");
    let hold = "  holds:\n    - id: h\n      owner: ana\n      reason: r\n      since: 2026-01-01T00:00:00Z\n      until: 2026-01-01T01:00:00Z\n      release: cart-3\n";
    let held = format!("{}{hold}", pin("cart", "staging", "cart-1"));
    shop.write("pins/staging/cart.yaml", &held);
    shop.git("add -A");
    let message = said("Pin", "cart-1", "cart-3");
    shop.git_at(
        "2026-01-01T00:00:01Z",
        &["commit", "-q", "-m", message.as_str()],
    );
    shop.git("switch -q main");
    shop.git("merge -q --no-ff -m merge side");
    shop.ends("audit verify", 0, "valid");
    let revisions = shop.revisions(STAGING);
    assert_eq!(revisions[0][1..], ["cart-3", "Pin"], "{revisions:?}");
}

#[test]
fn several_promotions_of_one_pin_may_come_at_once() {
    let shop = Shop::open(&["cart"]);
    shop.git("switch -q -c side");
    shop.ends("promote cart --from dev --to staging --reason one", 0, "");
    shop.ends(
        "rollback cart -e staging --to cart-3 --no-hold --reason two",
        0,
        "cart-2 -> cart-3",
    );
    // The branch arrives by a merge, by a squash of git, and by a squash of GitHub.
    let github = shop.git("log --reverse --format=*%x20%B main..side");
    let github = format!("two of them (#7)\n\n{github}");
    for squashed in [None, Some(None), Some(Some(github.as_str()))] {
        shop.git("switch -q -C into main");
        match squashed {
            None => drop(shop.git("merge -q --no-ff -m merge side")),
            Some(message) => {
                shop.git("merge -q --squash side");
                match message {
                    None => shop.git("commit -q --no-edit"),
                    Some(message) => shop.git_words(&["commit", "-q", "-m", message]),
                };
            }
        }
        let revisions = shop.revisions(STAGING);
        assert_eq!(revisions[0], ["2", "cart-3", "Rollback"], "{squashed:?}");
        shop.ends("audit verify", 0, "valid");
    }
    // `audit verify` reports a changed trailer as tampering, and warns about a missing message.
    let reworded = github.replace("Bowline-To: cart-3", "Bowline-To: cart-1");
    shop.git_words(&["commit", "-q", "--amend", "-m", &reworded]);
    shop.ends("audit verify", 1, "tampered");
    shop.git_words(&["commit", "-q", "--amend", "-m", "nothing"]);
    shop.ends("audit verify", 0, "1 warning");
}
