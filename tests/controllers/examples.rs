//! The commands of deploy/examples/README.md, as they stand there.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bowline::api::{Component, DataPlane};
use kube::api::{Api, ListParams};

use crate::place::Target;

pub async fn the_readme_applies_the_example_with_kubectl_and_with_bowline(target: Arc<Target>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("deploy/examples/README.md")).unwrap();
    let commands = readme.lines().filter(|line| {
        let applies = line.starts_with("kubectl apply ") || line.starts_with("bowline apply ");
        applies && !line.contains("--embedded")
    });
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for line in commands {
        let mut words = line.split_whitespace();
        let mut command = match words.next() {
            Some("kubectl") => target.kubectl(),
            _ => Command::new(env!("CARGO_BIN_EXE_bowline")),
        };
        command.args(words).args(target.flags()).current_dir(root);
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
        let ran = ran.await.unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{line}: {said}");
    }
    let components: Api<Component> = Api::default_namespaced(target.client());
    let components = components.list(&ListParams::default()).await.unwrap();
    assert_eq!(components.items.len(), 6);
    let planes: Api<DataPlane> = Api::default_namespaced(target.client());
    let planes = planes.list(&ListParams::default()).await.unwrap();
    for plane in planes {
        assert!(
            plane.spec.in_cluster.is_some(),
            "it runs on the cluster itself"
        );
    }
}
