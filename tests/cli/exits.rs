//! Tests of the exit codes and of the last message of actions. If bowline made a change, the message says so,
//! even if bowline fails afterwards. A failed action never exits with 0.

use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::engine::controller_status;

use super::small::Small;
use super::{bowline, run};

#[cfg(target_os = "linux")]
#[test]
fn an_action_whose_result_cannot_be_printed_exits_0_once_the_change_is_made() {
    let small = Small::new();
    let lock = small.keep_controllers_out();
    let into_full = |line: &str| {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = bowline(small.home())
            .args(line.split(' '))
            .arg(small.flag())
            .stdout(Stdio::from(full))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    };
    for line in [
        "deploy cart -e dev --release cart-1",
        "deploy cart -e dev --release cart-2 -o json",
        "rollback cart -e dev --to cart-1",
        "undo cart -e dev",
        "pin cart -e dev",
        "mark bad cart-1 --reason leaks",
        "release create cart --version 3",
        "apply -f world.yaml --field-manager other",
        "apply -f world.yaml --field-manager another -o json",
        "delete component cart",
    ] {
        let line = line.replace(
            "world.yaml",
            small.home().join("world.yaml").to_str().unwrap(),
        );
        let (code, said) = into_full(&line);
        assert_eq!(code, 0, "{line}: {said}");
        assert!(
            said.contains("warning: cannot print the result"),
            "{line}: {said}"
        );
        assert!(!said.contains("error:"), "{line}: {said}");
    }
    let (out, _) = small.done("history cart -e dev -o json");
    let revisions: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(revisions.as_array().unwrap().len(), 5, "{out}");
    // A verb that only reads fails if it cannot print its result.
    for line in ["status", "get releases", "pin cart -e dev --dry-run"] {
        let (code, said) = into_full(line);
        assert_eq!(code, 1, "{line}: {said}");
        assert!(said.contains("error: "), "{line}: {said}");
    }
    drop(lock);
}

#[test]
fn an_action_that_nobody_observes_exits_0_and_says_how_to_go_on() {
    let small = Small::new();
    // The test puts a directory in place of the lock file, so bowline cannot lock it and runs no controllers.
    std::fs::create_dir(controller_status::lock_file(&small.store)).unwrap();
    let (out, said) = small.done("deploy cart -e dev --release cart-1");
    assert!(out.contains("cart-1 (revision 1)"), "{out}");
    assert!(
        said.contains("warning: the change was made, but "),
        "{said}"
    );
    let how = format!(
        "hint: no process runs the controllers of this store; add --wait to a command, or run them: bowline controller {}",
        small.flag()
    );
    assert!(said.contains(&how), "{said}");
    assert!(!said.contains("error:"), "{said}");

    // With --wait, bowline fails, and says that the change was made and that it stopped waiting.
    let (out, said) = small.ends("deploy cart -e dev --release cart-2 --wait", 1);
    assert!(out.contains("cart-2 (revision 2)"), "{out}");
    assert!(
        said.contains("error: the change was made; bowline stopped waiting: "),
        "{said}"
    );
    let file = small.write(
        "pin.yaml",
        "{apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, metadata: {name: cart-staging, labels: {openchoreo.dev/component: cart, openchoreo.dev/environment: staging}}, spec: {component: cart, environment: staging, releaseRef: {name: cart-2}}}",
    );
    let (_, said) = small.done(&format!("apply -f {file}"));
    assert!(
        said.contains("warning: the change was made, but "),
        "{said}"
    );
}

#[test]
fn a_rollout_that_is_not_ready_in_time_exits_1_and_says_that_the_change_was_made() {
    let small = Small::new();
    let _lock = small.keep_controllers_out();
    let line = "deploy cart -e dev --release cart-1 --wait --timeout 1s";
    let (out, said) = small.ends(line, 1);
    assert_eq!(out, "cart in dev: nothing -> cart-1 (revision 1)\n");
    assert!(
        said.contains("error: the change was made, but it is not ready in time: cart in dev: no controller has observed the change yet\nhint: "),
        "{said}"
    );
    // A second run changes nothing, but waits again.
    let (out, said) = small.ends(line, 1);
    assert!(out.contains("(no change)"), "{out}");
    assert!(
        said.contains("error: no change was needed, but it is not ready in time: "),
        "{said}"
    );
}

#[test]
fn a_rollout_that_no_time_helps_ends_the_wait() {
    let small = Small::new();
    // The component has two EnvSettings for the same environment, and nobody can choose one of them.
    small.done("deploy cart -e dev --release cart-1 --wait");
    let settings = |name: &str| {
        format!(
            "{{apiVersion: openchoreo.dev/v1alpha1, kind: EnvSettings, metadata: {{name: {name}}}, spec: {{owner: {{componentName: cart}}, environment: dev}}}}\n---\n"
        )
    };
    let file = small.write("settings.yaml", &(settings("one") + &settings("two")));
    small.done(&format!("apply -f {file}"));
    // The wait for the rollback ends long before its timeout, because no retry can help.
    let line = "rollback cart -e dev --to cart-2 --wait --timeout 1h";
    let (out, said) = small.ends(line, 1);
    assert!(
        out.contains("cart-1 -> cart-2, 1 hold (revision 2)"),
        "{out}"
    );
    assert!(
        said.contains("error: the change was made, but its rollout failed: cart in dev: ")
            && said.contains("(SettingsAmbiguous)"),
        "{said}"
    );
}

#[test]
fn what_failed_does_not_exit_0_because_nobody_reads_it() {
    let small = Small::new();
    for (line, code) in [
        ("get component cart crat", 1),
        ("get component cart", 0),
        ("apply -f gone.yaml -o json", 1),
    ] {
        let mut child = bowline(small.home())
            .args(line.split(' '))
            .arg(small.flag())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        let mut err = child.stderr.take().unwrap();
        err.read_to_string(&mut said).unwrap();
        let ended = child.wait().unwrap().code();
        assert_eq!(ended, Some(code), "{line}: {said}");
        assert_eq!(said.contains("error:"), code != 0, "{line}: {said}");
    }
}

/// Starts a git server on loopback that closes every connection at once. Returns its address and a counter of
/// the connections.
fn closing_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/defs.git", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    (address, asked)
}

#[test]
fn a_rollback_is_written_without_waiting_for_a_git_fetch() {
    let small = Small::new();
    let _lock = small.keep_controllers_out();
    let (repository, asked) = closing_server();
    let revision = "0123456789abcdef0123456789abcdef01234567";
    let release = format!(
        "apiVersion: openchoreo.dev/v1alpha1
kind: Release
metadata: {{name: cart-git, labels: {{openchoreo.dev/component: cart}}}}
spec:
  component: {{name: cart, gitRef: {{repository: '{repository}', revision: {revision}, path: cart.yaml}}}}
  componentTypeDefinition: {{name: web, gitRef: {{repository: '{repository}', revision: {revision}, path: web.yaml}}}}
  workload: {{apiVersion: openchoreo.dev/v1alpha1, kind: Workload, metadata: {{name: cart}}, spec: {{image: 'shop/cart:1'}}}}
"
    );
    let file = small.write("release.yaml", &release);
    small.done(&format!("apply -f {file}"));
    small.done("deploy cart -e dev --release cart-1");
    let back = "rollback cart -e dev --to cart-git --allow-file-repositories";
    let (out, said) = small.done(back);
    assert!(
        out.contains("cart-1 -> cart-git, 1 hold (revision 2)"),
        "{out}"
    );
    assert!(
        said.contains("the restored state cannot be shown"),
        "{said}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 0, "{said}");
    small.done("undo cart -e dev --allow-file-repositories");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // A dry run of the rollback fetches from git, because it does not delay a write.
    small.ends(&format!("{back} --dry-run"), 3);
    assert!(asked.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_dry_run_takes_wait() {
    let small = Small::new();
    let (out, _) = small.ends("deploy cart -e dev --release cart-1 --wait --dry-run", 3);
    assert!(out.contains("cart in dev: nothing -> cart-1"), "{out}");
    let line = "deploy cart -e dev --release cart-1 --wait --timeout 1s --dry-run";
    small.ends(line, 3);
}

#[test]
fn every_denial_exits_6() {
    let small = Small::new();
    let lock = small.keep_controllers_out();
    small.done("deploy cart -e dev --release cart-1");
    small.done("deploy cart -e dev --release cart-2");
    small.done("release create cart --version 5");
    drop(lock);
    let world = small.home().join("world.yaml");
    let world = world.to_str().unwrap();
    for line in [
        "deploy cart -e dev --release cart-1",
        "deploy cart -e dev",
        "promote cart --from dev --to staging --unready",
        "rollback cart -e dev --to cart-1",
        "pin cart -e dev",
        "undo cart -e dev",
        "mark bad cart-1 --reason leaks",
        "release create cart --version 9",
        "gc --keep 0 --min-age 0 --confirm",
        "delete component cart",
        "controller --listen 127.0.0.1:0",
        &format!("apply -f {world}"),
    ] {
        let (_, said) = small.ends(&format!("{line} --readonly"), 6);
        assert!(said.contains("error: "), "{line}: {said}");
        assert!(said.contains("read-only"), "{line}: {said}");
    }
    // A denial by an admission policy exits with 6.
    let (out, _) = small.done("get release cart-1 -o yaml");
    let file = small.write("release.yaml", &out.replace("shop/cart:1", "shop/cart:7"));
    let (_, said) = small.ends(&format!("apply -f {file} --force-conflicts"), 6);
    assert!(said.contains("cannot change"), "{said}");
    let (_, said) = small.ends("delete release cart-2", 6);
    assert!(said.contains("then run bowline gc"), "{said}");
}

#[test]
fn a_promotion_goes_on_with_the_rollout_that_it_starts_from() {
    let small = Small::new();
    let lock = small.keep_controllers_out();
    small.done("deploy cart -e dev --release cart-1");
    let promote = "promote cart --from dev --to staging";
    // Another process holds the lock of the controllers, so the hint says to wait for it.
    let (_, said) = small.ends(promote, 5);
    assert!(said.contains("hint: wait until it is ready"), "{said}");
    assert!(!said.contains("bowline controller"), "{said}");
    drop(lock);
    // No process runs the controllers. A dry run does not run them either, because controllers write.
    let how = format!(
        "hint: no process runs the controllers of this store; add --wait to a command, or run them: bowline controller {}",
        small.flag()
    );
    let before = small
        .done("get pins,releases.core.choreo.dev,configmaps -A -o yaml")
        .0;
    let (_, said) = small.ends(&format!("{promote} --dry-run"), 5);
    assert!(said.contains(&how), "{said}");
    assert!(!said.contains("wait until it is ready"), "{said}");
    let after = small
        .done("get pins,releases.core.choreo.dev,configmaps -A -o yaml")
        .0;
    assert_eq!(before, after);
    // A promotion without --dry-run runs the controllers.
    let (out, said) = small.done(promote);
    assert!(out.contains("cart in staging: nothing -> cart-1"), "{out}");
    assert!(
        said.contains("bowline runs them until the rollout has ended"),
        "{said}"
    );
    // In read-only mode bowline runs no controllers, and the refusal names the next step.
    small.done("deploy cart -e dev --release cart-2 --wait");
    let lock = small.keep_controllers_out();
    small.done("deploy cart -e dev --release cart-1");
    drop(lock);
    let how = format!("run them: bowline controller {}", small.flag());
    let (_, said) = small.ends(&format!("{promote} --readonly"), 5);
    assert!(said.contains(&how), "{said}");
    assert!(!said.contains("wait until it is ready"), "{said}");
    // Without a running controller, bowline does not know the last good release.
    let (_, said) = small.ends("rollback cart -e dev", 5);
    assert!(said.contains("no controller runs"), "{said}");
    assert!(said.contains(&how), "{said}");
}

#[test]
fn a_result_says_how_a_rollout_goes_on_that_is_not_at_its_end() {
    let small = Small::new();
    // A Deployment takes several steps of the simulator until it is ready.
    let slow = r#"
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: slow}
spec:
  workloadType: deployment
  resources:
    - id: deployment
      template:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: "${metadata.name}"}
        spec:
          replicas: 3
          selector: {matchLabels: {app: slow}}
          template: {metadata: {labels: {app: slow}}, spec: {containers: [{name: main, image: "${workload.image}"}]}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Component, metadata: {name: slow}, spec: {componentType: deployment/slow}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Workload, metadata: {name: slow}, spec: {image: "shop/slow:1"}}
"#;
    let file = small.write("slow.yaml", slow);
    small.done(&format!("apply -f {file}"));
    let (_, said) = small.done("deploy slow -e dev");
    assert!(said.contains("slow in dev is not ready yet: "), "{said}");
    assert!(!said.contains("NotObserved"), "{said}");
    let how = format!(
        "hint: no process runs the controllers of this store; add --wait to a command, or run them: bowline controller {}",
        small.flag()
    );
    assert!(said.contains(&how), "{said}");
    let (_, said) = small.done("deploy slow -e dev --wait");
    assert!(!said.contains("not ready"), "{said}");
    let (out, _) = small.done("status -o json");
    let matrix: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        matrix.pointer("/components/1/environments/0/health"),
        Some(&"Ready".into()),
        "{out}"
    );
}

#[test]
fn a_deletion_in_a_store_removes_what_ran() {
    let small = Small::new();
    let running = || small.done("get configmaps -A -o name").0;
    for line in ["delete pin cart-dev", "delete pin cart-dev --wait"] {
        small.done("deploy cart -e dev --release cart-1 --wait");
        assert!(running().contains("configmap/cart"), "{}", running());
        let (_, said) = small.done(line);
        assert_eq!(said, "", "{line}");
        let (left, _) = small.done("get releases.core.choreo.dev -A -o name");
        assert_eq!(left, "", "{line}");
        assert!(!running().contains("configmap/cart"), "{line}");
    }
    // A dry run of the deletion deletes nothing and runs no controllers.
    small.done("deploy cart -e dev --release cart-1 --wait");
    small.ends("delete pin cart-dev --dry-run", 3);
    assert!(running().contains("configmap/cart"));
}

#[test]
fn a_namespace_that_no_cluster_accepts_is_a_usage_error_of_every_verb() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let store = format!("--embedded={}", home.join("a.db").display());
    let (code, _, err) = run(home, &["apply", "-f", "deploy/examples", "-R", &store]);
    assert_eq!(code, 0, "{err}");
    for verb in [
        "status",
        "audit verify",
        "history checkout -e production",
        "get comp",
        "gc --dry-run",
        "release list",
        "promote checkout --from staging --to production --dry-run",
        "version",
    ] {
        for namespace in ["", "a/b", "a b", "shop\n", "..", "Shop"] {
            let words = verb.split(' ').chain([store.as_str(), "-n", namespace]);
            let (code, out, err) = run(home, &words.collect::<Vec<_>>());
            assert_eq!(code, 2, "{verb} {namespace:?}: {err}");
            assert!(out.is_empty(), "{verb} {namespace:?}: {out}");
            assert!(
                err.contains("cannot be a namespace"),
                "{verb} {namespace:?}: {err}"
            );
        }
        let words = verb.split(' ').chain([store.as_str(), "--as", ""]);
        let (code, _, err) = run(home, &words.collect::<Vec<_>>());
        assert_eq!(code, 2, "{verb}: {err}");
        assert!(
            err.contains("the name of a user cannot be empty"),
            "{verb}: {err}"
        );
    }
}

#[test]
fn a_name_that_no_object_can_have_is_a_usage_error() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let store = format!("--embedded={}", home.join("a.db").display());
    let (code, _, err) = run(home, &["apply", "-f", "deploy/examples", "-R", &store]);
    assert_eq!(code, 0, "{err}");
    for (words, said) in [
        (&["audit", "show", "../x"][..], "\"../x\" cannot be a name"),
        (&["audit", "show", ""], "\"\" cannot be a name"),
        (&["release", "create", ""], "\"\" cannot be a component"),
        (&["release", "show", ""], "\"\" cannot be a release"),
        (&["release", "show", "../x"], "\"../x\" cannot be a release"),
        (&["history", "", "-e", "dev"], "\"\" cannot be a component"),
        (
            &["unpin", "cart", "-e", ""],
            "\"\" cannot be an environment",
        ),
        (
            &["pin", "cart", "-e", "dev", "--until", "1ns"],
            "a hold lasts at least 1s",
        ),
        (
            &["controller", "--lease-duration", "99999999h"],
            "from 1s to 65535s",
        ),
    ] {
        let (code, out, err) = run(home, &[words, &[store.as_str()]].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
    }
}
