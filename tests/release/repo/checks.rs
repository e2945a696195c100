//! Tests of `bowline check`, which CI runs for a pull request.

use super::{Shop, pin, release};

#[test]
fn a_change_is_held_to_the_rules_and_its_promotion_is_printed() {
    let shop = Shop::open(&["cart"]);
    shop.ends("check", 0, "no problems found");
    let base = shop.head();
    let check = format!("check --base {base}");
    shop.ends(&check, 0, "");

    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-2"));
    shop.commit("promote by hand");
    let ran = shop.ends(&check, 0, "cart in staging: cart-1 -> cart-2");
    assert!(ran.out.contains("shop/cart:2"), "{}", ran.out);

    // check refuses a promotion without a path, a missing release, a bad release and a move in a held
    // environment.
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-3"));
    shop.ends(
        &check,
        5,
        "cart-3 runs in no environment that has a path to prod",
    );
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-9"));
    shop.ends(&check, 1, "names release cart-9, which does not exist");
    shop.git("checkout -q .");
    shop.ends("mark bad cart-2 --reason leaks --yes", 0, "");
    shop.ends(&check, 5, "release cart-2 is marked bad");
    shop.ends("mark good cart-2 --reason mended --yes", 0, "");
    shop.ends("pin cart -e prod --reason freeze --yes", 0, "");
    let held = shop.head();
    let text = shop
        .read("pins/prod/cart.yaml")
        .replace("name: cart-1", "name: cart-2");
    shop.write("pins/prod/cart.yaml", &text);
    shop.ends(
        &format!("check --base {held}"),
        5,
        "cart in prod is held at cart-1",
    );
    shop.git("checkout -q .");

    // check reports objects that contradict each other.
    shop.write("releases/cart/cart-4.yaml", &release("mail", 4));
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "mail-4"));
    shop.ends("check", 1, "a release of mail");
    shop.git("checkout -q .");
    std::fs::remove_file(shop.root.join("releases/cart/cart-4.yaml")).unwrap();
    // check reports settings that are invalid for the promoted release.
    shop.write("settings.yaml", "apiVersion: openchoreo.dev/v1alpha1\nkind: EnvSettings\nmetadata: {name: cart-staging, namespace: shop}\nspec: {owner: {componentName: cart}, environment: staging, overrides: {replicas: many}}\n");
    let strict = release("cart", 5).replace("workloadType: deployment\n", "workloadType: deployment\n        schema: {parameters: {replicas: \"integer | default=1\"}}\n");
    shop.write("releases/cart/cart-5.yaml", &strict);
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "cart-5"));
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-5"));
    shop.commit("does not fit");
    shop.ends(
        &format!("check --base {held}"),
        5,
        "cart-5 does not fit staging",
    );
    shop.ends("check --base nowhere", 2, "is not a commit");
}

#[test]
fn the_example_repository_passes() {
    let example =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/example-repository");
    let shop = Shop::empty();
    let copied = std::process::Command::new("cp")
        .args(["-r", &format!("{}/.", example.display())])
        .arg(&shop.root)
        .status()
        .unwrap();
    assert!(copied.success());
    shop.commit("the example");
    let ran = shop.ends("check", 0, "no problems found");
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    shop.ends("status", 0, "checkout");
    shop.ends(
        "promote checkout --from staging --to production --reason the-example --yes",
        0,
        "checkout in production",
    );
    assert_eq!(shop.numstat().len(), 1);
    assert_eq!((shop.numstat()[0].1, shop.numstat()[0].2), (1, 1));
}

/// Returns a release that accepts only one parameter: the number of replicas.
fn strict(version: u32) -> String {
    release("cart", version).replace("workloadType: deployment\n", "workloadType: deployment\n        schema: {parameters: {replicas: \"integer | default=1\"}}\n")
}

#[test]
fn a_change_that_moves_no_pin_is_checked_as_well() {
    let shop = Shop::open(&["cart"]);
    shop.write("releases/cart/cart-5.yaml", &strict(5));
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-5"));
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "cart-5"));
    shop.commit("strict");
    let base = shop.head();
    let check = format!("check --base {base}");
    // check reports settings that are invalid for the current release.
    shop.write("settings.yaml", "apiVersion: openchoreo.dev/v1alpha1\nkind: EnvSettings\nmetadata: {name: cart-staging, namespace: shop}\nspec: {owner: {componentName: cart}, environment: staging, overrides: {replicas: many}}\n");
    shop.commit("settings");
    shop.ends(&check, 5, "cart-5 does not fit staging");
    shop.git("rm -q settings.yaml");

    // check refuses a release with changed content, but allows a change of its mark.
    shop.ends("mark bad cart-3 --reason leaks --yes", 0, "");
    shop.ends(&check, 0, "no problems found");
    let text = shop.read("releases/cart/cart-1.yaml");
    let other = text.replace("shop/cart:1", "shop/cart:7");
    shop.write("releases/cart/cart-1.yaml", &other);
    shop.commit("edit a release");
    shop.ends(
        &check,
        1,
        "releases/cart/cart-1.yaml:1: release cart-1 was edited, but a release never changes",
    );
    // check allows another formatting and another path of a release.
    shop.write("releases/cart/cart-1.yaml", &format!("# the first\n{text}"));
    shop.git("mv releases/cart/cart-1.yaml first.yaml");
    shop.commit("move a release");
    shop.ends(&check, 0, "no problems found");
}

#[test]
fn only_what_the_change_itself_does_is_judged() {
    let shop = Shop::open(&["cart"]);
    shop.git("switch -q -c docs");
    shop.write("README.md", "read me\n");
    shop.commit("docs");
    shop.git("switch -q main");
    shop.ends("promote cart --from dev --to staging", 0, "");
    shop.git("switch -q docs");
    let ran = shop.ends("check --base main", 0, "no problems found");
    assert_eq!(ran.out, "");
    shop.git("checkout -q --orphan other");
    shop.commit("another beginning");
    shop.ends("check --base main", 2, "have no common commit");
}

#[test]
fn a_directory_is_judged_by_itself() {
    let shop = Shop::open(&["cart"]);
    std::fs::create_dir(shop.root.join("team-a")).unwrap();
    shop.git("mv environments definitions components releases pins team-a");
    shop.write("team-b/pin.yaml", &pin("cart", "qa", "cart-1"));
    shop.commit("teams");
    let check = format!("check --base {}", shop.head());
    shop.write("team-b/pin.yaml", &pin("cart", "qa", "cart-9"));
    shop.commit("theirs");
    let team = Shop {
        root: shop.root.join("team-a"),
        ..Shop::empty()
    };
    let ran = team.ends(&check, 0, "no problems found");
    assert_eq!(ran.out, "");
    shop.ends(&check, 1, "cart in qa: cart-1 -> cart-9");
}

#[test]
fn holds_stop_what_goes_over_them_and_nothing_else() {
    let shop = Shop::open(&["cart"]);
    shop.ends("pin cart -e prod --reason freeze --yes", 0, "");
    let held = format!("check --base {}", shop.head());
    let file = "pins/prod/cart.yaml";
    let moved = |to: &str| {
        shop.read(file)
            .replace("name: cart-1", &format!("name: {to}"))
    };
    // The change deletes the held ReleasePin.
    shop.git("rm -q pins/prod/cart.yaml");
    shop.ends(&held, 5, "cart in prod is held at cart-1");
    shop.git("reset -q --hard");
    // A changed file whose name has a line break does not hide the move.
    shop.write(file, &moved("cart-2"));
    shop.write("a\nb.yaml", "# nothing\n");
    shop.commit("move");
    shop.ends(&held, 5, "cart in prod is held at cart-1");
    // A kustomization that lists the file as a patch does not hide the move.
    shop.git("reset -q --hard HEAD~1");
    shop.write(
        "pins/prod/kustomization.yaml",
        "patches: [{path: cart.yaml}]\n",
    );
    shop.commit("a patch");
    let ran = shop.ends(&held, 1, "cart in prod is held at cart-1");
    assert!(
        ran.out.contains("a patch changes a ReleasePin"),
        "{}",
        ran.out
    );
    shop.git("reset -q --hard HEAD~1");
    // check allows a rollback despite a hold and without a path.
    shop.ends("rollback cart -e prod --to cart-2 --reason x --yes", 0, "");
    shop.ends(&held, 0, "cart in prod: cart-1 -> cart-2");

    // The change removes a hold that names a release.
    let shop = Shop::open(&["cart"]);
    shop.ends("pin cart -e prod --release cart-2 --yes", 0, "");
    let fixed = format!("check --base {}", shop.head());
    shop.ends("unpin cart -e prod --yes", 0, "");
    shop.ends(&fixed, 0, "cart in prod: cart-2 -> cart-1");

    // check refuses a move without a path, also if the environment has an ended hold.
    let shop = Shop::open(&["cart"]);
    let over = "  holds: [{id: old, owner: ana, since: 2020-01-01T00:00:00Z, until: 2020-01-02T00:00:00Z}]\n";
    shop.write(file, &(pin("cart", "prod", "cart-1") + over));
    shop.commit("a hold that is over");
    let over_it = format!("check --base {}", shop.head());
    shop.write(file, &(pin("cart", "prod", "cart-3") + over));
    shop.commit("move");
    shop.ends(
        &over_it,
        5,
        "cart-3 runs in no environment that has a path to prod",
    );
}

#[test]
fn a_hold_is_not_lifted_together_with_a_move() {
    let shop = Shop::open(&["cart"]);
    shop.ends("promote cart --from dev --to staging", 0, "");
    shop.ends("pin cart -e prod --reason freeze --yes", 0, "");
    let check = format!("check --base {}", shop.head());
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-2"));
    shop.commit("lift and move");
    let words = "cart in prod: the change removes the hold of Ana <ana@example.com> and changes the release of the ReleasePin";
    shop.ends(&check, 5, words);
    // check allows the same change in two steps: first the removal of the hold, then the move.
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-1"));
    shop.commit("lift");
    shop.ends(&check, 0, "no problems found");
    let lifted = format!("check --base {}", shop.head());
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-2"));
    shop.commit("move");
    shop.ends(&lifted, 0, "cart in prod: cart-1 -> cart-2");
}

#[test]
fn a_bad_mark_is_not_removed_without_a_reason() {
    let shop = Shop::open(&["cart"]);
    let file = "releases/cart/cart-3.yaml";
    let unmarked = shop.read(file);
    shop.ends("mark bad cart-3 --reason leaks --yes", 0, "");
    let check = format!("check --base {}", shop.head());
    shop.write(file, &unmarked);
    shop.commit("it is not that bad");
    shop.ends(
        &check,
        5,
        "release cart-3 loses its bad mark without a reason",
    );
    shop.git("reset -q --hard HEAD~1");
    shop.ends("mark good cart-3 --reason mended --yes", 0, "");
    shop.ends(&check, 0, "no problems found");
    // check allows the deletion of a release with a mark.
    shop.git("rm -q releases/cart/cart-3.yaml");
    shop.ends(&check, 0, "no problems found");
}

#[test]
fn content_that_fails_later_is_a_problem() {
    let settings = "apiVersion: openchoreo.dev/v1alpha1\nkind: EnvSettings\nmetadata: {name: s, namespace: shop}\nspec: {owner: {componentName: cart}, environment: qa}\n";
    let addon = "apiVersion: openchoreo.dev/v1alpha1\nkind: Addon\nmetadata: {name: disk, namespace: shop}\nspec: {creates: [{id: claim, template: {kind: ConfigMap, x: \"${1 +}\"}}]}\n";
    let plane = "apiVersion: openchoreo.dev/v1alpha1\nkind: DataPlane\nmetadata: {name: other, namespace: shop}\nspec: {embedded: {}}\n";
    let pipeline = "apiVersion: openchoreo.dev/v1alpha1\nkind: DeploymentPipeline\nmetadata: {name: second, namespace: shop}\nspec: {}\n";
    let edge = |from: &str, to: &str| {
        format!(
            "{{sourceEnvironmentRef: {{name: {from}}}, targetEnvironmentRefs: [{{name: {to}}}]}}"
        )
    };
    let circle = format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: DeploymentPipeline\nmetadata: {{name: a, namespace: shop}}\nspec: {{promotionPaths: [{}, {}, {}]}}\n",
        edge("dev", "staging"),
        edge("staging", "prod"),
        edge("prod", "dev")
    );
    let unlabelled =
        pin("cart", "prod", "cart-1").replace("environment: prod\nspec", "environment: dev\nspec");
    for (path, text, words) in [
        (
            "x.yaml",
            settings.to_owned(),
            "x.yaml:1: EnvSettings s are for environment qa, which does not exist",
        ),
        (
            "x.yaml",
            settings.replace("qa", "dev").replace("cart", "mail"),
            "EnvSettings s are for component mail, which does not exist",
        ),
        (
            "x.yaml",
            addon.to_owned(),
            "x.yaml:1: Addon disk, create claim, template.x",
        ),
        (
            "x.yaml",
            plane.to_owned(),
            "environments/all.yaml:2: environment dev names data plane d, which does not exist",
        ),
        (
            "x.yaml",
            pipeline.to_owned(),
            "x.yaml:1: namespace shop has a second pipeline, second beside default",
        ),
        (
            "x.yaml",
            circle,
            "x.yaml:1: the promotion paths lead in a circle through",
        ),
        (
            "pins/prod/cart.yaml",
            unlabelled,
            "pins/prod/cart.yaml:2: label openchoreo.dev/environment of ReleasePin cart-prod is dev; it has to be prod",
        ),
    ] {
        let shop = Shop::open(&["cart"]);
        shop.write(path, &text);
        shop.ends("check", 1, words);
    }
}

#[test]
fn an_undone_rollback_passes_and_another_lift_with_a_move_does_not() {
    let shop = Shop::open(&["cart"]);
    shop.ends("promote cart --from dev --to staging", 0, "");
    shop.ends("promote cart --from staging --to prod --yes", 0, "");
    shop.ends(
        "rollback cart -e prod --to cart-1 --reason INC-1 --yes",
        0,
        "",
    );
    let base = shop.head();
    let check = format!("check --base {base}");
    // After the rollback, the environment before runs another release, so the undo moves to a release without
    // a path.
    shop.ends("deploy cart -e dev --release cart-3", 0, "");
    shop.ends("promote cart --from dev --to staging", 0, "");
    shop.ends(
        "undo cart -e prod --reason mended --yes",
        0,
        "cart-1 -> cart-2",
    );
    shop.ends(&check, 0, "cart in prod: cart-1 -> cart-2");
    shop.ends("audit verify", 0, "valid");
    // check refuses the same files without the trailers of the undo.
    let undone = shop.read("pins/prod/cart.yaml");
    shop.git_words(&["commit", "-q", "--amend", "-m", "lift and move"]);
    let words = "the change removes the hold of Ana <ana@example.com> and changes the release of the ReleasePin";
    shop.ends(&check, 5, words);
    // check refuses the trailers of an undo on other files.
    let message = "undo\n\nBowline-Operation: x\nBowline-Action: Undo\nBowline-Component: cart\nBowline-Environment: prod\nBowline-From: cart-1\nBowline-To: cart-3";
    shop.write("pins/prod/cart.yaml", &undone.replace("cart-2", "cart-3"));
    shop.git("add -A");
    shop.git_words(&["commit", "-q", "--amend", "-m", message]);
    shop.ends(&check, 5, words);
}

#[test]
fn text_of_a_file_forges_no_line_of_check() {
    let shop = Shop::open(&["cart"]);
    let hold = "  holds: [{id: a, owner: \"ana\\nwrong: nothing\", since: 2026-01-01T00:00:00Z}]\n";
    shop.write(
        "pins/prod/cart.yaml",
        &(pin("cart", "prod", "cart-1") + hold),
    );
    shop.commit("held");
    let check = format!("check --base {}", shop.head());
    shop.write(
        "pins/prod/cart.yaml",
        &(pin("cart", "prod", "cart-2") + hold),
    );
    shop.commit("moved");
    let ran = shop.ends(&check, 5, "refused: ");
    let forged = |line: &str| line.starts_with("wrong: ");
    assert!(!ran.out.lines().any(forged), "{}", ran.out);
    // The JSON output contains the same findings.
    let ran = shop.ends(&format!("{check} -o json"), 5, "");
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["wrong"], serde_json::json!([]));
    let refused = report["refused"].as_array().unwrap();
    assert!(
        refused
            .iter()
            .any(|what| what.as_str().unwrap().contains("cart in prod is held at")),
        "{report}"
    );
    assert_eq!(report["promotions"][0]["from"], "cart-1");
    assert_eq!(report["promotions"][0]["to"], "cart-2");
    assert!(
        report["promotions"][0]["diff"]
            .as_str()
            .unwrap()
            .contains("shop/cart:2"),
        "{report}"
    );
}

#[test]
fn a_good_mark_without_a_note_does_not_replace_a_bad_one() {
    let shop = Shop::open(&["cart"]);
    let file = "releases/cart/cart-3.yaml";
    shop.ends("mark bad cart-3 --reason leaks --yes", 0, "");
    let check = format!("check --base {}", shop.head());
    shop.ends(
        "mark good cart-3 --yes",
        5,
        "marking cart-3 good needs a reason",
    );
    let words = "release cart-3 loses its bad mark without a reason";
    let good = shop.read(file).replace("bad", "good").replace("leaks", "");
    shop.write(file, &good);
    shop.ends(&check, 5, words);
    // check treats an invalid mark as bad, so the change may not remove it.
    shop.git_words(&["checkout", "-q", "--", file]);
    let unreadable = shop.read(file).replace("verdict", "opinion");
    shop.write(file, &unreadable);
    shop.commit("an unreadable mark");
    let check = format!("check --base {}", shop.head());
    shop.write(file, &super::release("cart", 3));
    shop.ends(&check, 5, words);
}

#[test]
fn a_repository_without_our_kinds_is_named_with_next_steps() {
    let shop = Shop::empty();
    shop.write("README.md", "a repository\n");
    shop.write(
        "app.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    );
    shop.commit("begin");
    for line in [
        "status",
        "check",
        "history cart -e dev",
        "promote cart --from a --to b",
        "gc --dry-run",
    ] {
        let ran = shop.ends(line, 5, "has no objects of bowline");
        assert!(
            ran.err.contains("nothing is wrong with the repository"),
            "{}",
            ran.err
        );
        let step = format!(
            "bowline release create COMPONENT --repo {}",
            shop.root.display()
        );
        assert!(ran.err.contains(&step), "{}", ran.err);
    }
    // The first step of the hint works: after it the repository has objects of bowline.
    shop.write("definitions/all.yaml", &super::component("cart"));
    shop.write("definitions/web.yaml", super::TYPE);
    shop.commit("definitions");
    shop.ends("status", 0, "");
    // If a file names the API groups of bowline but cannot be read, check reports the file and does not call
    // the repository empty.
    let shop = Shop::empty();
    shop.write("x.yaml", "apiVersion: openchoreo.dev/v1alpha1\nkind: [\n");
    shop.commit("begin");
    shop.ends("check", 1, "x.yaml");
}

/// Returns the text of a ReleasePin, with comments that make it at least `size` bytes long. bowline does not
/// read a file above its size limit.
fn large_pin(size: usize) -> String {
    let mut text = pin("mail", "dev", "mail-1");
    while text.len() < size {
        text.push_str("# a long comment of a file that is too large for bowline to read it\n");
    }
    text
}

#[test]
fn a_file_in_the_history_over_the_limit_is_reported_and_not_read() {
    let shop = Shop::open(&["cart", "mail"]);
    shop.write("pins/dev/mail.yaml", &large_pin(9 << 20));
    shop.write("notes.yaml", &"# nothing of bowline\n".repeat(500_000));
    shop.commit("grow");
    let large = shop.head();
    shop.ends("check", 1, "are more than the limit of 8388608");
    shop.write("pins/dev/mail.yaml", &pin("mail", "dev", "mail-2"));
    shop.write("notes.yaml", "a: 1\n");
    shop.commit("shrink");
    shop.ends("check", 0, "no problems found");
    let ran = shop.ends(&format!("check --base {large}"), 1, "pins/dev/mail.yaml in");
    assert!(
        ran.out.contains("are more than the limit of 8388608"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("notes.yaml"), "{}", ran.out);
    let ran = shop.ends("audit verify", 0, "");
    let said = format!("{}{}", ran.out, ran.err);
    assert!(
        said.contains("pins/dev/mail.yaml has 9.0 MB in this commit"),
        "{said}"
    );
    assert!(!said.contains("notes.yaml"), "{said}");
}

#[test]
fn a_namespace_that_no_cluster_accepts_is_reported_at_its_line() {
    let shop = Shop::open(&["cart"]);
    for namespace in ["shop ", "a/b", "a\\nb", "a\\e[1m", "Shop", "a.b"] {
        let own = format!("namespace: \"{namespace}\"");
        let text = pin("cart", "dev", "cart-1").replace("namespace: shop", &own);
        assert!(text.contains(&own), "{text}");
        shop.write("pins/dev/cart.yaml", &text);
        let ran = shop.ends("check", 1, "pins/dev/cart.yaml:2: ReleasePin cart-dev: \"");
        assert!(ran.out.contains("cannot be a namespace"), "{}", ran.out);
        let begun = std::time::Instant::now();
        let ran = shop.run("status");
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
        assert!(!ran.err.contains("Failed to build request"), "{}", ran.err);
    }
}
