//! On a repository, every action is one commit. The tests check the files and the message of that commit.

use super::{Shop, pin};

/// Returns the value of the trailer `name` in the message of the last commit.
fn trailer(shop: &Shop, name: &str) -> String {
    let format = format!("--format=%(trailers:key={name},valueonly,separator=%x2C)");
    shop.git_words(&["log", "-1", &format])
}

#[test]
fn a_promotion_is_one_line_and_one_commit() {
    let shop = Shop::open(&["cart"]);
    let before = shop.head();
    let dry = shop.ends(
        "promote cart --from dev --to staging --dry-run",
        3,
        "cart-1 -> cart-2",
    );
    assert!(
        dry.out.contains("-    name: cart-1 # moved by bowline"),
        "{}",
        dry.out
    );
    assert!(
        dry.out.contains("+    name: cart-2 # moved by bowline"),
        "{}",
        dry.out
    );
    assert!(
        dry.out.contains("shop/cart:2"),
        "the rendered change: {}",
        dry.out
    );
    assert!(
        dry.err.contains("readiness in dev is not known"),
        "{}",
        dry.err
    );
    assert_eq!(
        (shop.head(), shop.status()),
        (before.clone(), String::new())
    );

    let ran = shop.ends(
        "promote cart --from dev --to staging --reason faster-checkout",
        0,
        "cart in staging: cart-1 -> cart-2 (revision 2)",
    );
    assert!(ran.err.contains("promote cart-2 to staging"), "{}", ran.err);
    assert_eq!(shop.git("rev-parse HEAD^"), before, "one commit");
    assert_eq!(
        shop.numstat(),
        [("pins/staging/cart.yaml".to_owned(), 1, 1)]
    );
    assert_eq!(
        shop.read("pins/staging/cart.yaml"),
        pin("cart", "staging", "cart-2")
    );
    assert_eq!(shop.status(), "");
    assert_eq!(shop.git("log -1 --format=%s"), "promote cart-2 to staging");
    assert!(
        shop.git("log -1 --format=%b")
            .starts_with("faster-checkout\n\nBowline-Operation: ")
    );
    for (name, value) in [
        ("Bowline-Action", "Promote"),
        ("Bowline-Component", "cart"),
        ("Bowline-Environment", "staging"),
        ("Bowline-From", "cart-1"),
        ("Bowline-To", "cart-2"),
    ] {
        assert_eq!(trailer(&shop, name), value, "{name}");
    }
    shop.ends("promote cart --from dev --to staging", 0, "(no change)");
    shop.ends(
        "promote cart --from dev --to prod --yes",
        5,
        "the pipeline has no path from dev to prod",
    );
}

#[test]
fn a_set_is_one_commit() {
    let shop = Shop::open(&["cart", "search", "mail"]);
    let before = shop.head();
    shop.ends(
        "promote --all --from dev --to staging",
        0,
        "mail in staging: mail-1 -> mail-2",
    );
    assert_eq!(shop.git("rev-parse HEAD^"), before);
    let changed: Vec<(u64, u64)> = shop.numstat().iter().map(|(_, a, b)| (*a, *b)).collect();
    assert_eq!(changed, [(1, 1); 3]);
    assert_eq!(trailer(&shop, "Bowline-Component"), "cart,mail,search");
    shop.ends("audit verify", 0, "12 entries in 9 chains: valid");
}

#[test]
fn holds_marks_and_the_way_back() {
    let shop = Shop::open(&["cart"]);
    shop.ends("promote cart --from dev --to staging", 0, "revision 2");
    // On a repository bowline does not know the last good release, so the user must name the target.
    shop.ends("rollback cart -e staging", 5, "no controller runs");
    shop.ends(
        "rollback cart -e staging --to cart-1 --reason INC-7",
        0,
        "cart-2 -> cart-1, 1 hold",
    );
    let file = shop.read("pins/staging/cart.yaml");
    assert!(file.starts_with("# Who may move it"), "{file}");
    assert!(
        file.contains("    name: cart-1 # moved by bowline\n  holds:\n    - id: hold-"),
        "{file}"
    );
    assert!(file.contains("reason: INC-7"), "{file}");
    // The owner of the hold is the author of the commit.
    let author = shop.git_words(&["log", "-1", "--format=%an <%ae>"]);
    assert_eq!(author, "Ana <ana@example.com>");
    shop.ends(
        "promote cart --from dev --to staging",
        5,
        &format!("cart in staging is held at cart-1 ({author}, INC-7)"),
    );
    shop.ends("unpin cart -e staging", 0, "cart in staging");
    assert_eq!(
        shop.read("pins/staging/cart.yaml"),
        pin("cart", "staging", "cart-1")
    );
    shop.ends("pin cart -e prod --reason freeze --yes", 0, "1 hold");
    shop.ends("unpin cart -e prod --yes", 0, "cart in prod");
    assert_eq!(
        shop.read("pins/prod/cart.yaml"),
        pin("cart", "prod", "cart-1")
    );

    shop.ends(
        "mark bad cart-2 --reason leaks --yes",
        0,
        "cart-2 is marked bad",
    );
    assert_eq!(shop.git("log -1 --format=%s"), "mark cart-2 bad");
    let (file, added, removed) = shop.numstat().remove(0);
    assert_eq!((file.as_str(), removed), ("releases/cart/cart-2.yaml", 0));
    assert!(added <= 2, "{added}");
    shop.ends(
        "promote cart --from dev --to staging",
        5,
        "cart-2 is marked bad",
    );
    shop.ends("mark good cart-2 --reason mended --yes", 0, "marked good");
    shop.ends(
        "promote cart --from dev --to staging",
        0,
        "cart-1 -> cart-2",
    );
    // undo makes a new commit.
    shop.ends("undo cart -e staging", 0, "cart-2 -> cart-1");
    assert_eq!(
        shop.read("pins/staging/cart.yaml"),
        pin("cart", "staging", "cart-1")
    );
    shop.ends("audit verify", 0, "valid");
    // The audit trail contains the actions on releases, and `audit verify` checks them.
    let listed = shop.ends("audit list cart -o json", 0, "MarkBad").out;
    assert!(
        listed.contains("MarkGood") && listed.contains("leaks"),
        "{listed}"
    );
    shop.write("notes.txt", "nothing\n");
    shop.git("add -A");
    let lie = "mark cart-1 bad\n\nBowline-Operation: x\nBowline-Action: MarkBad\nBowline-Component: cart\nBowline-To: cart-1";
    shop.git_words(&["commit", "-q", "-m", lie]);
    shop.ends(
        "audit verify",
        1,
        "its trailers say that it marked bad cart-1, but the commit does not",
    );
}

#[test]
fn new_objects_lie_where_their_neighbours_do_or_where_the_layout_says() {
    let shop = Shop::open(&["cart", "search"]);
    std::fs::remove_file(shop.root.join("pins/staging/cart.yaml")).unwrap();
    shop.commit("take it away");
    shop.ends(
        "promote cart --from dev --to staging",
        0,
        "cart in staging: nothing -> cart-2",
    );
    let made = shop.read("pins/staging/cart.yaml");
    assert!(
        made.contains("name: cart-2") && made.contains("namespace: shop"),
        "{made}"
    );

    let head = shop.head();
    let line = "release create cart --version v4 --embed --dry-run";
    shop.ends(line, 3, "in releases/cart/cart-v4.yaml");
    assert_eq!(shop.head(), head);
    shop.ends("release create cart --version v4 --embed", 0, "cart-v4");
    assert_eq!(shop.numstat()[0].0, "releases/cart/cart-v4.yaml");
    shop.write(
        ".bowline.toml",
        "[layout]\nRelease = \"lock/{component}/{name}.yaml\"\n",
    );
    shop.commit("layout");
    shop.ends("release create cart --version v5 --embed", 0, "cart-v5");
    assert_eq!(shop.numstat()[0].0, "lock/cart/cart-v5.yaml");
    let bare = shop.place.path().join("origin.git");
    shop.git_words(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    shop.git_words(&["remote", "add", "origin", bare.to_str().unwrap()]);
    // A release of definitions in this repository refers to their commit, which must be pushed first.
    shop.ends("release create search --version v4", 5, "git push");
    shop.git("push -q -u origin main");
    let head = shop.head();
    shop.ends("release create search --version v4", 0, "search-v4");
    let made = shop.read("lock/search/search-v4.yaml");
    assert!(made.contains(&format!("revision: {head}")), "{made}");
    assert!(made.contains("path: components/search.yaml"), "{made}");
    // deploy creates the release and deploys it in one commit. bowline reads the definitions from the local
    // git objects.
    shop.git("push -q");
    let before = shop.head();
    let text = shop
        .read("components/cart.yaml")
        .replace("shop/cart:0", "shop/cart:9");
    shop.write("components/cart.yaml", &text);
    shop.commit("cart 9");
    shop.git("push -q");
    let ran = shop.ends("deploy cart -e dev", 0, "cart in dev: cart-2 -> cart-");
    assert_eq!(shop.numstat().len(), 2, "{ran:?}");
    assert_eq!(shop.git("rev-parse HEAD~2"), before);
    shop.git("push -q");
    shop.ends("deploy cart -e dev --dry-run", 0, "cart in dev");
}

#[test]
fn a_commit_can_go_to_another_branch() {
    let shop = Shop::open(&["cart"]);
    let (head, file) = (shop.head(), shop.read("pins/staging/cart.yaml"));
    shop.write("notes.txt", "mine\n");
    shop.git("add notes.txt");
    shop.ends(
        "promote cart --from dev --to staging --branch promote/cart",
        0,
        "on promote/cart",
    );
    assert_eq!(shop.head(), head);
    assert_eq!(shop.read("pins/staging/cart.yaml"), file);
    assert_eq!(shop.status(), "A  notes.txt");
    assert_eq!(shop.git("rev-parse promote/cart^"), head);
    let stat = shop.git("diff --numstat main promote/cart");
    assert_eq!(stat, "1\t1\tpins/staging/cart.yaml");
    // A second run of the same command is refused, because the file on the branch differs now.
    shop.ends(
        "promote cart --from dev --to staging --branch promote/cart",
        4,
        "pins/staging/cart.yaml on branch promote/cart differs",
    );
    shop.ends(
        "promote cart --from dev --to staging --branch a..b",
        2,
        "not a valid branch name",
    );
}

#[test]
fn gc_removes_files_in_one_commit() {
    let shop = Shop::open(&["cart"]);
    for version in 4..=9 {
        shop.write(
            &format!("releases/cart/cart-{version}.yaml"),
            &super::release("cart", version),
        );
    }
    shop.write(
        "many.yaml",
        &format!(
            "# kept\n{}---\n# goes\n{}",
            super::release("cart", 10),
            super::release("cart", 0)
        ),
    );
    shop.commit("more");
    let before = shop.head();
    shop.ends("gc --keep 2 --min-age 0s", 5, "delete them: --confirm");
    let plan = shop.ends(
        "gc --keep 2 --min-age 0s --dry-run",
        3,
        "named by the ReleasePin in",
    );
    assert!(plan.out.contains("cart-3"), "{}", plan.out);
    let files = shop
        .ends("gc --keep 2 --min-age 0s --dry-run -o json", 3, "files")
        .out;
    let files: serde_json::Value = serde_json::from_str(&files).unwrap();
    let first = &files["files"][0];
    assert_eq!(
        (&first["path"], &first["change"]),
        (&"many.yaml".into(), &"removed".into())
    );
    shop.ends("gc --keep 2 --min-age 30d --confirm", 0, "");
    assert_eq!(shop.head(), before, "all of them are young");
    let ran = shop.ends(
        "gc --keep 2 --min-age 0s --confirm --reason tidy",
        0,
        "cart-3 removed",
    );
    assert_eq!(shop.git("rev-parse HEAD^"), before);
    assert_eq!(shop.status(), "");
    let left = shop.git("ls-files releases");
    // ReleasePins name releases 1 and 2. All releases have the same time, so the newest two are the last ones
    // by name, 8 and 9.
    assert_eq!(
        left,
        "releases/cart/cart-1.yaml\nreleases/cart/cart-2.yaml\nreleases/cart/cart-8.yaml\nreleases/cart/cart-9.yaml",
        "{ran:?}"
    );
    assert!(!shop.root.join("many.yaml").exists(), "both of it went");
    // The audit trail contains each deletion with its reason.
    let listed = shop.ends("audit list -o json", 0, "tidy").out;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let entries = listed["items"].as_array().unwrap().iter();
    let mut gone: Vec<&str> = entries
        .filter(|entry| entry["spec"]["action"] == "Collect")
        .filter_map(|entry| entry["spec"]["from"]["name"].as_str())
        .collect();
    gone.sort_unstable();
    assert_eq!(
        gone,
        [
            "cart-0", "cart-10", "cart-3", "cart-4", "cart-5", "cart-6", "cart-7"
        ]
    );
    shop.ends("audit verify", 0, "10 entries in 4 chains: valid");
    shop.ends("gc --keep 2 --min-age 0s --confirm", 0, "");
}

#[test]
fn a_release_of_changes_that_are_not_committed_is_made_with_a_warning() {
    let warning = "has changes that are not committed, and the release embeds them";
    let shop = Shop::open(&["cart"]);
    let ran = shop.ends("release create cart --version v4", 0, "cart-v4");
    assert!(!ran.err.contains(warning), "{}", ran.err);
    let file = shop.git_words(&["grep", "-l", "kind: Workload"]);
    let file = file.split_whitespace().next().unwrap().to_owned();
    let changed = shop.read(&file).replace("shop/cart:2", "shop/cart:7");
    std::fs::write(shop.root.join(&file), changed + "\n").unwrap();
    shop.ends("release create cart --version v5", 0, warning);
}

#[test]
fn without_a_remote_a_release_embeds_its_definitions_and_a_note_says_so() {
    let note = "the repository has no remote to refer to, so the release embeds the definitions";
    let shop = Shop::open(&["cart", "search"]);
    shop.ends("release create cart --version v4", 0, note);
    let made = shop.read("releases/cart/cart-v4.yaml");
    assert!(
        made.contains("content:") && !made.contains("gitRef"),
        "{made}"
    );
    shop.ends("deploy cart -e dev", 0, note);
    shop.ends("deploy cart -e dev", 0, "(no change)");

    // If the remote does not have the commit, the command of the hint creates the release, and deploy uses
    // that release.
    let bare = shop.place.path().join("origin.git");
    shop.git_words(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    shop.git_words(&["remote", "add", "origin", bare.to_str().unwrap()]);
    for line in ["release create search --version v5", "deploy search -e dev"] {
        let ran = shop.ends(line, 5, "git push");
        let hint = ran.err.lines().find(|line| line.starts_with("hint: "));
        let hint = hint.and_then(|hint| hint.split_once("definitions: bowline "));
        let (_, command) = hint.unwrap_or_else(|| panic!("no command in {}", ran.err));
        // The test removes --repo from the command, because it adds the flag itself.
        let repo = format!(" --repo {}", shop.root.display());
        assert!(command.contains(&repo), "{command}");
        let command = command.replace(&repo, "");
        shop.ends(&command, 0, "release.openchoreo.dev/search-");
    }
    assert!(shop.root.join("releases/search/search-v5.yaml").exists());
    shop.ends(
        "deploy search -e dev",
        0,
        "search in dev: search-2 -> search-",
    );
}

#[test]
fn apply_and_delete_change_files_and_say_that_they_make_no_commit() {
    let shop = Shop::open(&["cart"]);
    let head = shop.head();
    let changed = shop.place.path().join("changed.yaml");
    let text = shop.read("components/cart.yaml");
    std::fs::write(&changed, text.replace("shop/cart:0", "shop/cart:9")).unwrap();
    let apply = format!("apply -f {}", changed.display());
    let said = "changed components/cart.yaml; not committed";
    assert!(
        !shop
            .ends(&format!("{apply} --dry-run"), 3, "")
            .err
            .contains("committed")
    );
    shop.ends(&apply, 0, said);
    assert!(shop.read("components/cart.yaml").contains("shop/cart:9"));
    assert!(!shop.ends(&apply, 0, "unchanged").err.contains("committed"));
    shop.ends("delete component cart", 0, said);
    shop.ends(&format!("{apply} --push"), 2, "it makes no commit");
    assert_eq!(
        (shop.head(), shop.status().trim()),
        (head, "M components/cart.yaml")
    );

    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    std::fs::write(&changed, other).unwrap();
    shop.ends(&apply, 5, "configmap/x is no object of bowline");
}
