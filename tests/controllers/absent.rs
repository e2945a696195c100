//! A real cluster that nothing of bowline is on.

use std::process::Command;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::user::Ran;

pub async fn a_verb_names_the_kinds_that_a_cluster_does_not_have(cluster: Arc<Cluster>) {
    let home = tempfile::tempdir().unwrap();
    let run = async |line: &'static str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", home.path())
            .env("KUBECONFIG", cluster.kubeconfig());
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
        Ran::from(ran.await.unwrap())
    };
    for line in [
        "status",
        "audit list",
        "promote cart --from dev --to prod --yes",
    ] {
        let ran = run(line).await;
        assert_eq!(ran.code, 5, "{line}: {}", ran.err);
        let said = ran.err.contains("context test does not have the kinds ");
        assert!(said, "{line}: {}", ran.err);
    }
    let ran = run("get releasepins").await;
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert_eq!(run("get deployments").await.code, 0);
}
