//! A fake node. A task of this module binds all pods to the node, and the program kwok marks the pods as
//! ready.

use std::path::Path;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;

use super::binaries;
use super::server::Server;

/// The name of the fake node.
const NODE: &str = "node-1";

/// A running fake node. Dropping the value stops the task and kwok.
pub struct FakeNode {
    binding: JoinHandle<()>,
    _kwok: Server,
}

impl FakeNode {
    /// Starts a fake node in a cluster.
    pub async fn start(client: Client, kubeconfig: &Path, directory: &Path) -> Self {
        let nodes: Api<Node> = Api::all(client.clone());
        let node = json!({"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}});
        let node = serde_json::from_value(node).expect("a node");
        nodes
            .create(&PostParams::default(), &node)
            .await
            .expect("the node is new");
        // Removes the taint that marks a new node as not ready, because no controller here does.
        let untainted = Patch::Merge(json!({"spec": {"taints": null}}));
        nodes
            .patch(NODE, &PatchParams::default(), &untainted)
            .await
            .expect("the node was just made");
        let kwok = binaries::kwok().expect("kwok can be built where the others can");
        let stages =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/assets/kwok/stages.yaml");
        let arguments = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", stages.display()),
            "--manage-all-nodes=true".to_owned(),
            "--node-lease-duration-seconds=40".to_owned(),
        ];
        Self {
            binding: tokio::spawn(bind(client)),
            _kwok: Server::start("kwok", &kwok, &arguments, directory),
        }
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.binding.abort();
    }
}

/// Binds every new pod to the fake node, because no scheduler runs.
async fn bind(client: Client) {
    let pods: Api<Pod> = Api::all(client.clone());
    let unbound = watcher::Config::default().fields("spec.nodeName=");
    let found = watcher(pods, unbound).default_backoff().applied_objects();
    let bound = found.try_for_each_concurrent(8, |pod| {
        let client = client.clone();
        async move {
            let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
            let binding = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
            });
            let request = http::Request::post(format!(
                "/api/v1/namespaces/{namespace}/pods/{name}/binding"
            ))
            .header("content-type", "application/json")
            .body(binding.to_string().into_bytes())
            .expect("a request");
            // The error is ignored: the pod is deleted or already bound.
            let _ = client.request_text(request).await;
            Ok(())
        }
    });
    // The watch restarts by itself after an error, and ends when the cluster ends.
    let _ = bound.await;
}
