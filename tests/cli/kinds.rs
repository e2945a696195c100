//! Tests of the verbs on a cluster that lacks some or all of bowline's kinds. An embedded store behind a
//! socket plays the cluster.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};

use super::{bowline, kubeconfig, run};

/// A server process. Dropping the value kills the process.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves a store from which the kinds with a true `is_gone` are deleted. Writes a kubeconfig with the
/// context c for this server.
fn serve_without(home: &Path, is_gone: fn(&str) -> bool) -> Served {
    let store = format!("--embedded={}", home.join("cluster.db").display());
    // The first command creates the store.
    run(home, &["version", "--server", &store]);
    let (code, names, err) = run(home, &["get", "crds", "-o", "name", &store]);
    assert_eq!(code, 0, "{err}");
    let names = names.lines().filter_map(|line| line.split_once('/'));
    let gone: Vec<&str> = names
        .map(|(_, name)| name)
        .filter(|name| is_gone(name))
        .collect();
    let delete = [&["delete", "crds", &store, "--yes"][..], &gone].concat();
    let (code, _, err) = run(home, &delete);
    assert_eq!(code, 0, "{err}");
    let mut process = bowline(home)
        .args(["serve", "--listen", "127.0.0.1:0", &store])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line.trim().strip_prefix("listening on http://");
    let address: SocketAddr = address.unwrap().parse().unwrap();
    kubeconfig(home, address, "{}");
    Served(process)
}

#[test]
fn every_verb_says_that_a_cluster_does_not_have_bowlines_kinds() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let _served = serve_without(home, |_| true);
    for line in [
        "status",
        "history cart -e dev",
        "revisions list cart/dev",
        "diff cart --from dev --to prod",
        "audit list",
        "audit verify",
        "deploy cart -e dev",
        "promote cart --from dev --to prod --yes",
        "rollback cart -e dev --yes",
        "pin cart -e dev --yes",
        "unpin cart -e dev --yes",
        "undo cart -e dev --yes",
        "mark bad cart-1 --reason leaks --yes",
        "gc --dry-run",
        "release list",
        "release create cart",
        "render cart -e dev",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (code, out, err) = run(home, &words);
        assert_eq!((code, out.as_str()), (5, ""), "{line}: {err}");
        // `status` also shows workloads, so it says first that there are none.
        let begins = match line {
            "status" => {
                "error: there is no Deployment, StatefulSet or DaemonSet in namespace default, and context c does not have the kinds "
            }
            _ => "error: context c does not have the kinds ",
        };
        assert!(err.starts_with(begins), "{line}: {err}");
        assert!(err.contains("(openchoreo.dev/v1alpha1)"), "{line}: {err}");
        assert!(
            err.contains("nothing is wrong with the cluster\n"),
            "{line}: {err}"
        );
        assert!(
            err.contains("\nhint: install the kinds: bowline install --context c\n"),
            "{line}: {err}"
        );
        assert!(
            err.contains(": bowline status -A --context c\n"),
            "{line}: {err}"
        );
    }
    // get works for a kind that the server has, and names bowline install for a missing kind.
    let (code, _, err) = run(home, &["get", "deployments", "--context", "c"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(home, &["get", "releasepins"]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("the server does not have this kind"), "{err}");
    assert!(err.contains("bowline install"), "{err}");
    let (code, out, err) = run(home, &["screenshot", "matrix"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("c does not have bowline's kinds: ReleasePin, Release"),
        "{out}"
    );
    assert!(out.contains("nothing is wrong with the cluster"), "{out}");
}

#[test]
fn a_verb_runs_where_the_kinds_that_it_needs_are_there() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let _served = serve_without(home, |name| name == "auditentries.bowline.dev");
    for (line, code, said) in [
        ("status", 0, ""),
        ("release list", 0, ""),
        ("audit list", 5, "AuditEntry (bowline.dev/v1alpha1)"),
        (
            "history cart -e dev",
            5,
            "AuditEntry (bowline.dev/v1alpha1)",
        ),
        (
            "promote cart --from dev --to prod --yes",
            5,
            "does not have the kinds AuditEntry (bowline.dev/v1alpha1):",
        ),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (found, _, err) = run(home, &words);
        assert_eq!(found, code, "{line}: {err}");
        assert!(err.contains(said), "{line}: {err}");
    }
}
