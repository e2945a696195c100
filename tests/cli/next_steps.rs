//! Tests that the hints of errors name the next step of the user, on a small embedded store.

use super::run;
use super::small::Small;

#[test]
fn a_component_without_a_release_is_not_unknown() {
    let small = Small::new();
    let mail = "{apiVersion: openchoreo.dev/v1alpha1, kind: Component, metadata: {name: mail}, spec: {componentType: deployment/web}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Workload, metadata: {name: mail}, spec: {image: \"shop/mail:1\"}}
";
    let file = small.write("mail.yaml", mail);
    small.done(&format!("apply -f {file}"));
    let deploy = "hint: to deploy it there: bowline deploy mail -e dev";
    for (line, code, says) in [
        (
            "promote mail --from dev --to staging",
            1,
            vec!["error: mail is not deployed in dev", deploy],
        ),
        (
            "pin mail -e dev",
            1,
            vec!["error: mail is not deployed in dev", deploy],
        ),
        (
            "status mail",
            1,
            vec![
                "error: mail has no release and is not deployed",
                "hint: bowline deploy mail -e dev",
            ],
        ),
        ("gc mail --dry-run", 1, vec!["error: mail has no release"]),
        (
            "promote nope --from dev --to staging",
            1,
            vec!["error: component nope does not exist; known: cart"],
        ),
        (
            "promote ../cart --from dev --to staging",
            1,
            vec!["error: component ../cart does not exist; known: cart"],
        ),
        (
            "status nope",
            1,
            vec!["error: component nope does not exist; known: cart"],
        ),
        (
            "gc nope --dry-run",
            1,
            vec!["error: component nope does not exist; known: cart"],
        ),
    ] {
        let (_, said) = small.ends(line, code);
        for words in says {
            assert!(said.contains(words), "{line}: no {words:?} in {said}");
        }
    }
    // The command of the hint works.
    small.done("deploy mail --environment dev");
}

#[test]
fn a_rollback_without_a_controller_does_not_advise_to_wait() {
    let small = Small::new();
    for release in ["cart-1", "cart-2"] {
        small.done(&format!("deploy cart -e dev --release {release} --wait"));
    }
    for line in ["rollback cart -e dev", "rollback cart -e dev --wait"] {
        let (_, said) = small.ends(line, 5);
        assert!(said.contains("bowline controller "), "{said}");
        assert!(
            said.contains("hint: choose a release with --to RELEASE"),
            "{said}"
        );
        assert!(!said.contains("--wait"), "{said}");
    }
    small.done("rollback cart -e dev --to cart-1");
}

#[test]
fn a_command_that_stores_nothing_creates_no_store() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("mistyped.db");
    let flag = format!("--embedded={}", store.display());
    for line in [
        "status",
        "history cart -e dev",
        "revisions list cart/dev",
        "get components",
        "diff cart -e dev",
        "audit verify",
        "check",
        "render cart -e dev",
        "release list",
        "screenshot",
        "promote cart --from dev --to staging",
        "gc --dry-run",
        "delete component cart",
    ] {
        let words: Vec<&str> = line.split(' ').chain([flag.as_str()]).collect();
        let (code, out, said) = run(home.path(), &words);
        assert_eq!((code, out.as_str()), (2, ""), "{line}: {said}");
        assert!(
            said.contains(&format!("there is no store {}", store.display())),
            "{line}: {said}"
        );
        assert!(said.contains("bowline apply -f DIR"), "{line}: {said}");
        assert!(!store.exists(), "{line}");
    }
}

#[test]
fn the_status_of_an_empty_store_says_that_nothing_is_deployed() {
    let home = tempfile::tempdir().unwrap();
    let store = format!("--embedded={}", home.path().join("new.db").display());
    let (code, _, said) = run(home.path(), &["version", "--server", &store]);
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = run(home.path(), &["status", &store]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("nothing is deployed in namespace default\nhint: "),
        "{said}"
    );
    assert!(said.contains("bowline apply -f DIR -R"), "{said}");
    let everywhere = format!("hint: look in all namespaces: bowline status -A {store}");
    assert!(said.contains(&everywhere), "{said}");
    assert!(said.contains("bowline demo"), "{said}");
    let (_, _, said) = run(home.path(), &["status", "-A", &store]);
    assert!(
        said.contains("nothing is deployed in any namespace"),
        "{said}"
    );
}

#[test]
fn a_wrong_name_is_answered_with_the_known_names_or_the_next_step() {
    let small = Small::new();
    let elsewhere = small.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let outside = format!("--repo={}", elsewhere.display());
    let nowhere = format!("--kubeconfig={}", elsewhere.join("none").display());
    let flag = small.flag();
    for (line, code, says) in [
        (
            "status",
            0,
            "hint: deploy a component: bowline deploy cart -e dev",
        ),
        (
            "deploy nosuch -e dev",
            1,
            "Component nosuch does not exist in namespace default; known: cart",
        ),
        (
            "release create nosuch",
            1,
            "Component nosuch does not exist in namespace default; known: cart",
        ),
        (
            "history cart -e nosuch",
            1,
            "cart is not deployed in nosuch; known: dev, prod, staging",
        ),
        (
            "diff cart --from dev --to nosuch",
            1,
            "known: dev, prod, staging",
        ),
        (
            "rollback job/x",
            2,
            "hint: name a component, or one of deploy/NAME, sts/NAME, ds/NAME",
        ),
        (
            "rollback deploy/web",
            1,
            "the target is an embedded store, which runs nothing",
        ),
    ] {
        let words: Vec<&str> = line.split(' ').chain([flag.as_str()]).collect();
        let (found, _, said) = run(small.home(), &words);
        assert_eq!(found, code, "{line}: {said}");
        assert!(said.contains(says), "{line}: {said}");
    }
    for (target, says) in [
        (
            &outside,
            "hint: name a directory of a git work tree: --repo DIR",
        ),
        (&nowhere, "none: No such file or directory (os error 2)\n"),
    ] {
        let (code, _, said) = run(small.home(), &["status", target]);
        assert_eq!(code, 2, "{target}: {said}");
        assert!(said.contains(says), "{target}: {said}");
    }
}

#[test]
fn the_hint_about_a_missing_object_names_the_target() {
    let home = tempfile::tempdir().unwrap();
    let store = format!("--embedded={}", home.path().join("new.db").display());
    let file = home.path().join("e.yaml");
    // There are more environments than bowline lists in an error.
    let environments = (0..12).map(|number| {
        format!("---\napiVersion: openchoreo.dev/v1alpha1\nkind: Environment\nmetadata: {{name: somewhere-{number}}}\nspec: {{dataPlaneRef: {{name: d}}, namespace: dev}}\n")
    });
    std::fs::write(&file, environments.collect::<String>()).unwrap();
    let (code, _, said) = run(
        home.path(),
        &["apply", "-f", file.to_str().unwrap(), &store],
    );
    assert_eq!(code, 0, "{said}");
    for line in ["get environment zzz", "delete environment zzz"] {
        let words: Vec<&str> = line.split(' ').chain([store.as_str()]).collect();
        let (_, _, said) = run(home.path(), &words);
        assert!(
            said.contains(&format!("environment.openchoreo.dev {store}")),
            "{said}"
        );
        assert!(said.contains("hint: list all: bowline get "), "{said}");
    }
}
