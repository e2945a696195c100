//! Connecting to something slow leaves the keyboard alone.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::place::Target;
use crate::pty::{ENTER, ESC, Pty};
use crate::shop::Shop;

/// Writes the kubeconfig of a home with the context `slow`.
fn kubeconfig(home: &Path, server: &str, user: &str) {
    let text = format!(
        "{{kind: Config, apiVersion: v1, clusters: [{{name: slow, cluster: {{server: '{server}'}}}}], \
          contexts: [{{name: slow, context: {{cluster: slow, user: u}}}}], \
          users: [{{name: u, user: {user}}}]}}"
    );
    std::fs::create_dir_all(home.join(".kube")).unwrap();
    std::fs::write(home.join(".kube/config"), text).unwrap();
}

/// A server that takes connections and never answers.
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// The keys work while a credential plugin runs; when it ends, the screen shows the new context.
pub async fn a_context_is_connected_to_beside_the_keyboard(target: Arc<Target>) {
    let _shop = Shop::open(&target, &["cart"]).await;
    let home = target.home.path();
    let server = silent();
    let door = home.join("door");
    let made = Command::new("mkfifo").arg(&door).status().unwrap();
    assert!(made.success());
    let plugin = home.join("plugin");
    let credential = r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t"}}"#;
    let script = format!(
        "#!/bin/sh\ncat {} >&2\necho '{credential}'\n",
        door.display()
    );
    std::fs::write(&plugin, script).unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o700)).unwrap();
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: '{}'}}}}",
        plugin.display()
    );
    let address = server.local_addr().unwrap();
    kubeconfig(home, &format!("http://{address}"), &user);
    let mut pty = Pty::bowline(&target.flags(), home, (120, 40));
    pty.shows("cart");
    pty.keys(":ctx slow");
    pty.keys(ENTER);
    pty.shows("connecting to context slow");
    pty.keys("gr");
    pty.shows("matrix > releases");
    pty.keys(ESC);
    pty.hides("matrix > releases");
    // Each run of the plugin waits until somebody opens the other end.
    std::thread::spawn(move || while std::fs::write(&door, "").is_ok() {});
    pty.shows("now in slow");
    pty.keys("q");
    assert!(pty.ended().status.success());
}

/// The screen shows the files at once, and the header says that the cluster is unread.
pub async fn a_silent_cluster_beside_a_repository_holds_nothing_up(target: Arc<Target>) {
    let _shop = Shop::open(&target, &["cart"]).await;
    let server = silent();
    let address = server.local_addr().unwrap();
    kubeconfig(target.home.path(), &format!("http://{address}"), "{}");
    let mut flags = target.flags();
    flags.push("--context=slow".to_owned());
    let mut pty = Pty::bowline(&flags, target.home.path(), (120, 40));
    pty.shows("cart");
    pty.shows("cluster unread");
    pty.keys("q");
    assert!(pty.ended().status.success());
}
