//! Tests that the keyboard works while the terminal UI waits for a slow connection.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::place::Target;
use crate::pty::{ENTER, ESC, Pty};
use crate::shop::Shop;

/// Writes a kubeconfig into a home directory. Its context `slow` connects to `server` as `user`.
fn kubeconfig(home: &Path, server: &str, user: &str) {
    let text = format!(
        "{{kind: Config, apiVersion: v1, clusters: [{{name: slow, cluster: {{server: '{server}'}}}}], \
          contexts: [{{name: slow, context: {{cluster: slow, user: u}}}}], \
          users: [{{name: u, user: {user}}}]}}"
    );
    std::fs::create_dir_all(home.join(".kube")).unwrap();
    std::fs::write(home.join(".kube/config"), text).unwrap();
}

/// Returns a listener that accepts connections, but never answers a request.
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A kubeconfig context `slow`. Its credential plugin waits until the test lets it continue.
struct Slow {
    door: PathBuf,
    _server: TcpListener,
}

impl Slow {
    fn new(home: &Path) -> Self {
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
        Self {
            door,
            _server: server,
        }
    }

    /// Lets the waiting runs of the plugin and all later runs continue. A run waits until the test opens a
    /// named pipe.
    fn open(&self) {
        let door = self.door.clone();
        std::thread::spawn(move || while std::fs::write(&door, "").is_ok() {});
    }
}

/// The keys work while a credential plugin runs. When the plugin has ended, the screen shows the new context.
pub async fn a_context_is_connected_to_beside_the_keyboard(target: Arc<Target>) {
    let _shop = Shop::open(&target, &["cart"]).await;
    let home = target.home.path();
    let slow = Slow::new(home);
    let mut pty = Pty::bowline(&target.flags(), home, (120, 40));
    pty.shows("cart");
    pty.keys(":ctx slow");
    pty.keys(ENTER);
    pty.shows("connecting to context slow");
    pty.keys("gr");
    pty.shows("matrix > releases");
    pty.keys(ESC);
    pty.hides("matrix > releases");
    slow.open();
    pty.shows("now in slow");
    pty.keys("q");
    assert!(pty.ended().status.success());
}

/// A connection becomes ready while the user types a line. The screen switches to the new context only after
/// the user has pressed a key.
pub async fn a_connection_waits_until_the_typed_line_is_done(target: Arc<Target>) {
    let _shop = Shop::open(&target, &["cart"]).await;
    let home = target.home.path();
    let slow = Slow::new(home);
    let mut pty = Pty::bowline(&target.flags(), home, (120, 40));
    pty.shows("cart");
    pty.keys(":ctx slow");
    pty.keys(ENTER);
    pty.shows("connecting to context slow");
    pty.keys(":promote");
    pty.shows(":promote");
    slow.open();
    pty.shows("connected to context slow");
    pty.shows(":promote");
    pty.keys(ESC);
    pty.hides(":promote");
    pty.keys("gw");
    pty.shows("now in slow");
    pty.keys("q");
    assert!(pty.ended().status.success());
}

/// While bowline waits for a slow context at its start, the terminal shows the name of the context.
pub async fn a_slow_context_at_the_start_is_named(target: Arc<Target>) {
    let home = target.home.path();
    let slow = Slow::new(home);
    let mut pty = Pty::bowline(&["--context=slow".to_owned()], home, (120, 40));
    pty.shows("connecting to context slow; ctrl-c stops");
    slow.open();
    pty.shows("matrix");
    pty.keys("q");
    assert!(pty.ended().status.success());
}

/// A repository has a silent cluster beside it. The screen shows the files at once, and the header shows that
/// the cluster is not read yet.
pub async fn a_silent_cluster_beside_a_repository_holds_nothing_up(target: Arc<Target>) {
    let _shop = Shop::open(&target, &["cart"]).await;
    let server = silent();
    let address = server.local_addr().unwrap();
    kubeconfig(target.home.path(), &format!("http://{address}"), "{}");
    let mut flags = target.flags();
    flags.push("--context=slow".to_owned());
    let mut pty = Pty::bowline(&flags, target.home.path(), (120, 40));
    pty.shows("cart");
    pty.shows("cluster not read");
    pty.keys("q");
    assert!(pty.ended().status.success());
}
