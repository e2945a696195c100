//! Tests of the verbs get, apply and delete on an embedded store. They need no kubectl.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::small::Small;
use super::{PROGRAM, bowline, kubeconfig, run, server};

fn examples() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples");
    path.to_str().unwrap().to_owned()
}

fn write(home: &Path, name: &str, text: &str) -> String {
    let file: PathBuf = home.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Runs a command that must succeed and print nothing to stderr. Returns its stdout.
fn prints(home: &Path, arguments: &[&str]) -> String {
    let (code, out, err) = run(home, arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}: {out}");
    out
}

#[test]
fn the_example_is_applied_read_and_deleted() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let examples = examples();
    let apply = ["apply", "-R", "-f", &examples];

    let (code, out, err) = run(home, &["apply", "-f", &examples]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("no YAML or JSON files in")
            && err.contains("hint: read the directories below it too: -R"),
        "{err}"
    );

    let (code, out, _) = run(home, &[&apply[..], &["--dry-run"]].concat());
    assert_eq!(code, 3);
    assert!(
        out.contains("component.openchoreo.dev/cart created (dry run)\n"),
        "{out}"
    );
    let (code, out, err) = run(home, &["get", "components"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(err, "No resources found in default namespace.\n");

    let out = prints(home, &apply);
    assert!(out.lines().all(|line| line.ends_with(" created")), "{out}");
    let count = out.lines().count();
    let out = prints(home, &apply);
    assert!(
        out.lines().all(|line| line.ends_with(" unchanged")),
        "{out}"
    );
    assert_eq!(out.lines().count(), count);
    let out = prints(home, &[&apply[..], &["--dry-run"]].concat());
    assert!(
        out.lines()
            .all(|line| line.ends_with(" unchanged (dry run)")),
        "{out}"
    );

    // get prints all output formats.
    let out = prints(home, &["get", "comp"]);
    assert!(out.starts_with("NAME               TYPE "), "{out}");
    assert_eq!(out.lines().count(), 7);
    assert_eq!(
        prints(home, &["get", "environments", "-o", "wide"])
            .lines()
            .count(),
        5
    );
    assert_eq!(
        prints(
            home,
            &[
                "get",
                "env",
                "-o",
                "name",
                "--field-selector",
                "metadata.name=staging"
            ]
        ),
        "environment.openchoreo.dev/staging\n"
    );
    let selected = prints(
        home,
        &[
            "get",
            "comp",
            "-l",
            "shop.example.com/team=payments",
            "-o",
            "name",
        ],
    );
    assert!(
        selected.contains("/cart\n") && selected.lines().count() < 6,
        "{selected}"
    );
    let cart: Value =
        serde_json::from_str(&prints(home, &["get", "comp", "cart", "-o", "json"])).unwrap();
    assert_eq!(cart["kind"], "Component");
    assert!(cart["metadata"]["uid"].is_string() && cart["metadata"]["managedFields"].is_null());
    let shown = prints(
        home,
        &["get", "comp/cart", "-o", "json", "--show-managed-fields"],
    );
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        shown["metadata"]["managedFields"][0]["manager"],
        "bowline-apply"
    );
    let yaml = prints(home, &["get", "comp", "-o", "yaml"]);
    assert!(
        yaml.contains("\nkind: List\n") && yaml.contains("  kind: Component\n"),
        "{yaml}"
    );
    let list = prints(home, &["get", "env,comp", "-o", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 10);
    let both = prints(home, &["get", "env,comp", "-A"]);
    assert!(
        both.contains("\ndefault     component.openchoreo.dev/cart "),
        "{both}"
    );
    assert!(both.contains("\n\nNAMESPACE   NAME "), "{both}");
    let empty: Value = serde_json::from_str(&prints(home, &["get", "pins", "-o", "json"])).unwrap();
    assert_eq!(empty["items"], serde_json::json!([]));

    // get also lists kinds that only the discovery of the server knows.
    assert!(
        prints(home, &["get", "ns"]).contains("default "),
        "namespaces"
    );
    let crds = prints(home, &["get", "customresourcedefinitions", "-o", "name"]);
    assert!(
        crds.contains(".apiextensions.k8s.io/releases.core.choreo.dev\n"),
        "{crds}"
    );
    assert!(prints(home, &["get", "ns", "default", "-o", "yaml"]).starts_with("apiVersion: v1\n"));

    // delete removes an object.
    assert_eq!(
        prints(home, &["delete", "comp", "cart", "--wait"]),
        "component.openchoreo.dev/cart deleted\n"
    );
    let (code, out, err) = run(home, &["delete", "comp", "crat", "frontend"]);
    assert_eq!(
        (code, out.as_str()),
        (1, "component.openchoreo.dev/frontend deleted\n")
    );
    assert!(
        err.starts_with(
            "error: component.openchoreo.dev crat does not exist in namespace default\nhint: did you mean "
        ),
        "{err}"
    );
    prints(home, &["delete", "comp", "cart", "--ignore-not-found"]);
    let all = ["delete", "-R", "-f", &examples, "--ignore-not-found"];
    let with = |flags: &[&'static str]| [&all, flags].concat();
    let (code, _, _) = run(home, &with(&["--dry-run"]));
    assert_eq!(code, 3);
    let (code, out, err) = run(home, &with(&["--wait"]));
    assert_eq!((code, out.as_str()), (5, ""), "{err}");
    assert!(err.contains("the production environment"), "{err}");
    let out = prints(home, &with(&["--wait", "--yes"]));
    assert_eq!(out.lines().count(), count - 2);
    let (code, out, err) = run(home, &["get", "comp,env,addons", "-A"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "", "No resources found.\n")
    );
}

#[test]
fn changes_conflicts_and_errors_of_files() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let map = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: flags, namespace: shop}}\ndata: {{a: {value}}}\n"
        )
    };
    let space = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    // The namespace is the last document of the file, but apply creates it first.
    let file = write(home, "flags.yaml", &format!("{}{space}", map("one")));
    assert_eq!(
        prints(home, &["apply", "-f", &file]),
        "namespace/shop created\nconfigmap/flags created\n"
    );
    let file = write(home, "flags.yaml", &map("two"));
    let (code, out, _) = run(home, &["apply", "--dry-run", "-f", &file]);
    assert_eq!(
        (code, out.as_str()),
        (3, "configmap/flags configured (dry run)\n")
    );
    let (code, out, err) = run(home, &["apply", "-f", &file, "--field-manager", "ben"]);
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(
        err.contains("flags.yaml:1: configmap/flags: ")
            && err.contains("bowline-apply")
            && err.contains("--force-conflicts"),
        "{err}"
    );
    let forced = [
        "apply",
        "-f",
        &file,
        "--field-manager",
        "ben",
        "--force-conflicts",
    ];
    assert_eq!(prints(home, &forced), "configmap/flags configured\n");
    assert_eq!(prints(home, &forced), "configmap/flags unchanged\n");

    // apply tries all documents of a file, and each error names its position.
    let bad = write(
        home,
        "bad.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ok}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndtaa: {}\n---\n\
         apiVersion: nowhere.dev/v1\nkind: Thing\nmetadata: {name: x}\n---\n\
         apiVersion: v1\nkind: ConfigMap\n",
    );
    let broken = write(home, "broken.yaml", "a: [");
    let (code, out, err) = run(home, &["apply", "-f", &bad, "-f", &broken]);
    assert_eq!((code, out.as_str()), (1, "configmap/ok created\n"));
    for says in [
        "bad.yaml:5: configmap/typo: ",
        "bad.yaml:10: the server has no kind Thing in nowhere.dev/v1\nhint: ",
        "bad.yaml:14: the object has no metadata.name\nhint: ",
        "broken.yaml:1:",
    ] {
        assert!(err.contains(says), "{says}: {err}");
    }
    let (code, _, err) = run(home, &["apply", "-f", &file, "-n", "other"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("names the namespace shop, but -n names other\nhint: "),
        "{err}"
    );

    // One apply from stdin creates a kind and its first object.
    let widgets = r#"
apiVersion: example.dev/v1
kind: Widget
metadata: {name: w}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wdg]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"#;
    let mut child = bowline(home)
        .args(["apply", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(widgets.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "customresourcedefinition.apiextensions.k8s.io/widgets.example.dev created\n\
         widget.example.dev/w created\n"
    );
    for said in [
        "wdg",
        "Widget",
        "widgets.example.dev",
        "widget.v1.example.dev",
    ] {
        assert_eq!(
            prints(home, &["get", said, "-o", "name"]),
            "widget.example.dev/w\n"
        );
    }
}

#[test]
fn bad_requests_have_their_exit_codes() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    // The first command creates the store.
    run(home, &["version", "--server"]);
    let examples = examples();
    for (arguments, exit, says) in [
        (
            &["get", "comp", "cart"][..],
            1,
            "hint: the namespace has no objects of this kind; check -n",
        ),
        (
            &["get", "frobs"],
            1,
            "error: the server has no kind frobs\nhint: ",
        ),
        (
            &["get", "component.apps"],
            1,
            "the server has no kind component.apps",
        ),
        (
            &["get", "comp", "-l", "a in ("],
            1,
            "error: component.openchoreo.dev: ",
        ),
        (
            &["get", "comp", "cart", "-A"],
            2,
            "names cannot be combined with -A",
        ),
        (&["get", "comp/../x"], 2, "cannot be a name"),
        (&["get", "comp", "-n", "../x"], 2, "cannot be a namespace"),
        (&["get"], 2, "Usage: bowline get"),
        (
            &["get", "comp", "-o", "xml"],
            2,
            "[possible values: table, wide, json, yaml, name]",
        ),
        (&["apply"], 2, "--filename"),
        (&["apply", "-f", "/nowhere"], 1, "/nowhere: "),
        (&["delete"], 2, "Usage: bowline delete"),
        (
            &["delete", "comp"],
            2,
            "hint: list the names: bowline get comp -o name --embedded=",
        ),
        (
            &["delete", "comp", "a", "-f", "b"],
            2,
            "cannot be used with",
        ),
        (
            &["--readonly", "apply", "-R", "-f", &examples],
            6,
            "error: read-only: apply is not allowed (--readonly was given)\n",
        ),
        (
            &["--readonly", "apply", "--dry-run", "-R", "-f", &examples],
            6,
            "read-only: apply",
        ),
        (
            &["--readonly", "delete", "comp", "cart"],
            6,
            "read-only: delete",
        ),
        (&["completions", "tcsh"], 2, "possible values: bash"),
    ] {
        let (code, out, err) = run(home, arguments);
        assert_eq!((code, out.as_str()), (exit, ""), "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
    assert!(prints(home, &["completions", "bash"]).contains("bowline"));
    assert!(prints(home, &["man"]).contains(".TH bowline 1"));

    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (address, user, exit) in [(server(), "{token: wrong}", 6), (gone, "{}", 7)] {
        kubeconfig(home, address, user);
        for arguments in [
            &["get", "comp"][..],
            &["get", "deployments"],
            &["apply", "-R", "-f", &examples],
            &["delete", "comp", "cart"],
        ] {
            let (code, out, err) = run(home, arguments);
            assert_eq!((code, out.as_str()), (exit, ""), "{arguments:?}: {err}");
            let gave_up = err.contains("objects were not sent");
            assert_eq!(gave_up, exit == 7 && arguments[0] == "apply", "{err}");
        }
    }
}

/// On a terminal, delete asks for a confirmation. The test creates a terminal with the program `script`, and
/// is skipped without it.
#[cfg(target_os = "linux")]
#[test]
fn deleting_asks_a_person() {
    if Command::new("script").arg("--version").output().is_err() {
        crate::cluster::missing::skip("deletions on a terminal", "there is no script here");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    prints(home, &["apply", "-R", "-f", &examples()]);
    for (typed, deleted) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let mut terminal = Command::new("script")
            .args(["--quiet", "--return", "--command"])
            .arg(format!("{PROGRAM} delete comp cart"))
            .arg("/dev/null")
            .env("HOME", home)
            .env_remove("KUBECONFIG")
            .env_remove("XDG_DATA_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut keys = terminal.stdin.take().unwrap();
        keys.write_all(typed.as_bytes()).unwrap();
        let output = terminal.wait_with_output().unwrap();
        drop(keys);
        let screen = String::from_utf8_lossy(&output.stdout);
        assert!(
            screen.contains("component.openchoreo.dev/cart in default"),
            "{screen}"
        );
        assert_eq!(screen.contains("cart deleted"), deleted, "{screen}");
        assert_eq!(output.status.success(), deleted, "{screen}");
    }
}

#[test]
fn a_watch_goes_on_printing() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let map = |name: &str| {
        let text = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
        let file = write(home, "map.json", &text);
        assert_eq!(
            prints(home, &["apply", "-f", &file]),
            format!("configmap/{name} created\n")
        );
    };
    map("first-of-all");
    let mut watch = bowline(home)
        .args(["get", "cm", "-w"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().starts_with("NAME           DATA   AGE"));
    assert!(next().starts_with("first-of-all   0      "));
    map("later");
    assert!(next().starts_with("later          0      "));
    prints(home, &["delete", "cm", "first-of-all"]);
    let mut said = BufReader::new(watch.stderr.take().unwrap()).lines();
    assert_eq!(
        said.next().unwrap().unwrap(),
        "configmap/first-of-all deleted"
    );
    // A watch ends when the reader closes the pipe.
    drop(lines);
    map("unread");
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    let (code, _, err) = run(home, &["get", "cm,pins", "-w"]);
    assert_eq!(
        (code, err.as_str()),
        (2, "error: -w takes one kind and at most one name\n")
    );
}

#[test]
fn a_fault_of_the_pipelines_is_shown_by_status_and_refuses_promotions() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let examples = examples();
    prints(home, &["apply", "-R", "-f", &examples]);
    let other = "{apiVersion: openchoreo.dev/v1alpha1, kind: DeploymentPipeline, metadata: {name: other}, spec: {}}";
    let other = write(home, "other.yaml", other);
    prints(home, &["apply", "-f", &other]);
    let (_, out, _) = run(home, &["status"]);
    assert!(
        out.contains("has 2 DeploymentPipelines (default, other), but only one is allowed"),
        "{out}"
    );
    let out: Value = serde_json::from_str(&run(home, &["status", "-o", "json"]).1).unwrap();
    assert_eq!(out["pipelineFaults"][0]["reason"], "SeveralPipelines");
    let promote = [
        "promote",
        "cart",
        "--from",
        "development",
        "--to",
        "staging",
    ];
    let (code, _, err) = run(home, &promote);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("(default, other)"), "{err}");
    let skip = [&promote[..], &["--skip-path", "--reason", "hurry"]].concat();
    let (code, _, err) = run(home, &skip);
    assert_eq!(code, 5, "{err}");

    prints(home, &["delete", "-f", &other, "--yes"]);
    let path = |from: &str, to: &str| {
        format!(
            "{{sourceEnvironmentRef: {{name: {from}}}, targetEnvironmentRefs: [{{name: {to}}}]}}"
        )
    };
    let circle = [path("a", "b"), path("b", "c"), path("c", "a")].join(", ");
    let circle = format!(
        "{{apiVersion: openchoreo.dev/v1alpha1, kind: DeploymentPipeline, metadata: {{name: default}}, spec: {{promotionPaths: [{circle}]}}}}"
    );
    let circle = write(home, "circle.yaml", &circle);
    prints(home, &["apply", "-f", &circle]);
    let (_, out, _) = run(home, &["status"]);
    assert!(out.contains("lead in a circle through a, b, c"), "{out}");
    let (code, _, err) = run(home, &promote);
    assert_eq!(code, 5, "{err}");
}

#[test]
fn the_changes_of_a_workload_are_verified_against_it() {
    let small = Small::new();
    let web = small.write(
        "web.yaml",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: \"shop/web:1\"}]}}}}",
    );
    small.done(&format!("apply -f {web}"));
    for line in ["pin", "unpin", "undo"] {
        small.done(&format!("{line} deploy/web --reason INC-1"));
    }
    let (list, _) = small.done("audit list");
    for action in ["Pin", "Unpin", "Undo"] {
        assert!(list.contains(action), "{list}");
    }
    let (_, said) = small.done("audit verify");
    assert!(said.contains("3 entries in 1 chain: valid"), "{said}");
    // audit verify reports a hold that was edited by hand, because the newest audit entry has another hold.
    let (text, _) = small.done("get deployment web -o yaml");
    assert!(text.contains("INC-1"), "{text}");
    let edited = small.write("edited.yaml", &text.replace("INC-1", "INC-9"));
    small.done(&format!("apply -f {edited} --force-conflicts"));
    let (out, said) = small.ends("audit verify", 1);
    assert!(out.contains("auditentry/web-"), "{out}{said}");
}
