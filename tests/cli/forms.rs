//! Tests of the flags and output formats that all verbs share.

use std::collections::BTreeSet;

use serde_json::Value;

use super::run;
use super::small::Small;

#[test]
fn the_version_is_a_flag_too() {
    let home = tempfile::tempdir().unwrap();
    let version = format!("bowline {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        let (code, out, err) = run(home.path(), &[flag]);
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (0, version.as_str(), "")
        );
    }
}

#[test]
fn every_verb_that_prints_a_result_prints_it_as_json_too() {
    let small = Small::new();
    let world = small.home().join("world.yaml");
    let world = world.to_str().unwrap();
    let at = |out: &str, pointer: &str| -> String {
        let value: Value =
            serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"));
        let found = value.pointer(pointer);
        let found = found.unwrap_or_else(|| panic!("no {pointer} in {out}"));
        found.as_str().map_or(found.to_string(), str::to_owned)
    };
    for (line, code, pointer, value) in [
        ("version --server", 0, "/target", ""),
        (
            &format!("apply -f {world}"),
            0,
            "/objects/0/result",
            "unchanged",
        ),
        (&format!("apply -f {world} --dry-run"), 0, "/dryRun", "true"),
        (
            "deploy cart -e dev --release cart-1 --dry-run",
            3,
            "/items/0/to/name",
            "cart-1",
        ),
        (
            "deploy cart -e dev --release cart-1 --wait",
            0,
            "/items/0/result",
            "done",
        ),
        (
            "promote cart --from dev --to staging --wait",
            0,
            "/items/0/result",
            "done",
        ),
        (
            "deploy cart -e dev --release cart-2 --wait",
            0,
            "/items/0/result",
            "done",
        ),
        (
            "rollback cart -e dev --to cart-1",
            0,
            "/items/0/result",
            "done",
        ),
        ("undo cart -e dev", 0, "/items/0/result", "done"),
        ("hold cart -e staging --reason INC-1", 0, "/action", "Pin"),
        ("unhold cart -e staging", 0, "/action", "Unpin"),
        ("pin cart -e staging", 0, "/action", "Pin"),
        ("unpin cart -e staging", 0, "/action", "Unpin"),
        (
            "mark bad cart-2 --reason leaks --dry-run",
            3,
            "/result",
            "planned",
        ),
        ("mark bad cart-2 --reason leaks", 0, "/mark", "bad"),
        ("mark bad cart-2 --reason leaks", 0, "/result", "unchanged"),
        ("mark good cart-2 --reason mended", 0, "/result", "done"),
        (
            "release create cart --version 3",
            0,
            "/metadata/name",
            "cart-3",
        ),
        ("release show cart-3", 0, "/metadata/name", "cart-3"),
        ("release list", 0, "/kind", "List"),
        ("status", 0, "/components/0/namespace", "default"),
        ("status -A", 0, "/components/0/component", "cart"),
        ("history cart -e dev", 0, "/0/number", ""),
        ("revisions list cart/dev", 0, "/0/number", ""),
        ("diff cart --from dev --to staging", 0, "/before/what", ""),
        ("revisions diff cart/dev", 0, "/after/what", ""),
        ("render cart -e dev", 0, "/kind", "List"),
        ("gc --dry-run", 0, "/objects/0/goes", "false"),
        ("get components", 0, "/kind", "List"),
        ("get component cart", 0, "/kind", "Component"),
        (
            "delete release cart-3 --dry-run",
            3,
            "/objects/0/result",
            "deleted",
        ),
        (
            "delete release cart-3",
            0,
            "/objects/0/name",
            "release.openchoreo.dev/cart-3",
        ),
    ] {
        let (out, _) = small.ends(&format!("{line} -o json"), code);
        let found = at(&out, pointer);
        assert!(
            value.is_empty() || found == value,
            "{line}: {found} is not {value}"
        );
    }
    for (line, pointer, value) in [
        (
            &["version", "-o", "json"][..],
            "/bowline",
            env!("CARGO_PKG_VERSION"),
        ),
        (&["crds", "-o", "json"], "/kind", "List"),
    ] {
        let (code, out, _) = run(small.home(), line);
        assert_eq!((code, at(&out, pointer).as_str()), (0, value), "{line:?}");
    }
    let entry = {
        let (out, _) = small.done("audit list -o name");
        let name = out.lines().next().unwrap().rsplit('/').next();
        name.unwrap().to_owned()
    };
    for (line, code, pointer) in [
        ("audit list".to_owned(), 0, "/kind"),
        (format!("audit show {entry}"), 0, "/kind"),
        ("audit verify".to_owned(), 0, "/chains"),
        ("audit export".to_owned(), 0, "/0/action"),
    ] {
        let (out, _) = small.ends(&format!("{line} -o json"), code);
        let value: Value = serde_json::from_str(&out).unwrap();
        assert!(value.pointer(pointer).is_some(), "{line}: {out}");
    }
    // With -o name, the verbs print the names of the objects for a pipe.
    for (line, out) in [
        (
            "mark good cart-2 --reason mended -o name",
            "release.openchoreo.dev/cart-2\n",
        ),
        ("status -o name", "component.openchoreo.dev/cart\n"),
    ] {
        assert_eq!(small.done(line).0, out, "{line}");
    }
    let (out, _) = small.done(&format!("apply -f {world} -o name"));
    assert!(out.contains("component.openchoreo.dev/cart\n"), "{out}");
    let (_, out, _) = run(small.home(), &["crds", "-o", "name"]);
    assert!(
        out.contains("customresourcedefinition.apiextensions.k8s.io/releasepins.openchoreo.dev\n"),
        "{out}"
    );
}

#[test]
fn status_looks_into_all_namespaces() {
    let small = Small::new();
    let lock = small.keep_controllers_out();
    small.done("deploy cart -e dev --release cart-1");
    let world = small.home().join("world.yaml");
    let namespace = small.write(
        "namespace.yaml",
        "{apiVersion: v1, kind: Namespace, metadata: {name: books}}",
    );
    small.done(&format!("apply -f {namespace}"));
    small.done(&format!("apply -n books -f {}", world.display()));
    small.done("release create cart --version 7 -n books");
    small.done("deploy cart -e dev --release cart-7 -n books");
    let (out, _) = small.done("status -A");
    let rows: Vec<Vec<&str>> = out
        .lines()
        .take(3)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        ["NAMESPACE", "COMPONENT", "DEV", "STAGING", "PROD"]
    );
    assert_eq!(rows[1][..2], ["books", "cart"], "{out}");
    assert!(rows[1].contains(&"7"), "{out}");
    assert_eq!(rows[2][..2], ["default", "cart"], "{out}");
    let (out, _) = small.done("status");
    assert!(out.starts_with("COMPONENT "), "{out}");
    assert!(out.contains("↑n behind"), "{out}");
    let (out, _) = small.done("status -A -o json");
    let matrix: Value = serde_json::from_str(&out).unwrap();
    let namespaces: BTreeSet<&str> = matrix["components"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["namespace"].as_str())
        .collect();
    assert_eq!(namespaces, BTreeSet::from(["books", "default"]));
    drop(lock);
}

#[test]
fn a_verb_refuses_flags_that_it_ignores() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (&["demo", "--embedded"][..], "--embedded has no effect"),
        (&["demo", "--context", "prod"], "--context has no effect"),
        (&["demo", "--readonly"], "--readonly has no effect"),
        (&["demo", "-n", "shop"], "--namespace has no effect"),
        (&["demo", "--no-tour"], "--no-tour has no effect"),
        (&["--ascii", "demo"], "--ascii before demo has no effect"),
        (
            &["crds", "--embedded"],
            "--embedded has no effect with crds",
        ),
        (
            &["completions", "bash", "-n", "shop"],
            "--namespace has no effect with completions",
        ),
        (
            &["man", "--context", "prod"],
            "--context has no effect with man",
        ),
        (
            &["theme", "import", "nord.yaml", "--embedded"],
            "--embedded has no effect with theme",
        ),
        (
            &["version", "--embedded"],
            "it uses no target without --server",
        ),
    ] {
        let (code, out, err) = run(home.path(), arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[test]
fn help_has_one_word_for_each_thing() {
    let home = tempfile::tempdir().unwrap();
    for verb in [
        "deploy",
        "promote",
        "rollback",
        "pin",
        "unpin",
        "undo",
        "mark",
        "gc",
        "status",
        "history",
        "diff",
        "revisions",
        "render",
        "release",
        "get",
        "apply",
        "delete",
        "controller",
        "version",
        "demo",
    ] {
        let (code, out, _) = run(home.path(), &[verb, "--help"]);
        assert_eq!(code, 0, "{verb}");
        let words = out.split(|c: char| !c.is_alphanumeric() && c != '-');
        let text: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        for pair in text.windows(2) {
            let noun = matches!(pair[0], "a" | "the" | "The" | "A" | "its" | "s");
            assert!(!(noun && pair[1] == "pin"), "{verb}: {pair:?} in {out}");
        }
        assert!(!text.contains(&"pins"), "{verb}: {out}");
    }
    let (_, out, _) = run(home.path(), &["--help"]);
    for alias in ["[alias: hold]", "[alias: unhold]"] {
        assert!(out.contains(alias), "{out}");
    }
}
