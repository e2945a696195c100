//! Tests that run the program as a user does. They check exit codes, output streams, signals and the use of
//! the terminal.

// Clippy allows unwrap only in `#[test]` functions, not in their helpers.
#![allow(clippy::unwrap_used)]

#[cfg(unix)]
#[path = "../cluster/mod.rs"]
mod cluster;
mod diff;
mod exits;
mod forms;
mod hostile;
#[cfg(unix)]
mod image;
mod kinds;
mod next_steps;
#[cfg(unix)]
mod readme;
mod small;
mod theme;
mod upgrade;
mod verbs;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline");

/// Returns a command that runs bowline with `home` as its home directory. Removes bowline's environment
/// variables of the test process.
fn bowline(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .env_clear()
        .env("HOME", home)
        .env("USER", "ana")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

fn run(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = bowline(home).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// Starts an API server that answers every request with its Kubernetes version.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            let (code, body) = if request.contains("authorization: bearer from-the-plugin") {
                (
                    "200 OK",
                    r#"{"major":"1","minor":"36","gitVersion":"v1.36.3","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#,
                )
            } else {
                (
                    "401 Unauthorized",
                    r#"{"kind":"Status","status":"Failure","code":401,"reason":"Unauthorized","message":"Unauthorized"}"#,
                )
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {code}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    address
}

fn kubeconfig(home: &Path, server: SocketAddr, user: &str) {
    let text = format!(
        "{{kind: Config, apiVersion: v1, current-context: c, \
          clusters: [{{name: c, cluster: {{server: 'http://{server}'}}}}], \
          contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
          users: [{{name: u, user: {user}}}]}}"
    );
    std::fs::create_dir_all(home.join(".kube")).unwrap();
    std::fs::write(home.join(".kube/config"), text).unwrap();
}

#[test]
fn exit_codes_and_streams() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();

    let (code, out, err) = run(home, &["version"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("bowline {}\n", env!("CARGO_PKG_VERSION")));

    // bowline checks the terminal before it creates any file.
    let (code, out, err) = run(home, &[]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("needs a terminal"), "{err}");
    assert!(err.contains("bowline status"), "{err}");
    assert_eq!(std::fs::read_dir(home).unwrap().count(), 0);

    let (code, out, err) = run(home, &["version", "--server"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let store = home.join(".local/share/bowline/bowline.db");
    if cfg!(target_os = "linux") {
        assert!(
            out.ends_with(&format!("target embedded store {}\n", store.display())),
            "{out}"
        );
    }

    for usage in [
        &["frobnicate"][..],
        &["version", "--context", "x", "--embedded"],
    ] {
        let (code, out, err) = run(home, usage);
        assert_eq!((code, out.as_str()), (2, ""), "{usage:?}");
        assert!(err.contains("Usage: bowline"), "{err}");
    }
    let (code, out, err) = run(home, &["version", "--server", "--context", "prod"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "error: the kubeconfig has no context prod\n\
         hint: there is no kubeconfig, or it has no contexts: name one with --kubeconfig FILE\n\
         hint: or use the embedded store: --embedded\n"
    );

    kubeconfig(home, gone, "{}");
    let (code, out, err) = run(home, &["version", "--server"]);
    assert_eq!((code, out.as_str()), (7, ""), "{err}");
    let refused = format!("error: cannot reach http://{gone}: connection refused\nhint: ");
    assert!(err.starts_with(&refused), "{err}");
    let (code, _, err) = run(home, &["status"]);
    assert_eq!(code, 7, "{err}");
    let refused = format!(
        "error: cannot read the objects: cannot reach http://{gone}: connection refused\nhint: "
    );
    assert!(err.starts_with(&refused), "{err}");

    kubeconfig(home, server(), "{token: wrong}");
    let (code, _, err) = run(home, &["version", "--server"]);
    assert_eq!((code, err.as_str()), (6, "error: Unauthorized\n"));
}

#[test]
fn the_demo_prints_its_matrix_and_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let output = bowline(home.path())
        .arg("demo")
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.starts_with("COMPONENT"), "{out}");
    assert!(out.contains("checkout-service"), "{out}");
    for left in [home.path(), temporary.path()] {
        assert_eq!(std::fs::read_dir(left).unwrap().count(), 0);
    }
}

/// A credential plugin as a shell script. It writes its environment, and whether it can use the terminal,
/// into a file in its own directory.
const PLUGIN: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
{
  if [ -t 0 ]; then echo "stdin is a terminal"; fi
  if [ -t 2 ]; then echo "stderr is a terminal"; fi
  if (echo "noise on the terminal" > /dev/tty) 2>/dev/null; then echo "has a controlling terminal"; fi
  echo "read [$(cat)]"
  case "$KUBERNETES_EXEC_INFO" in *'"interactive":false'*) echo "told not to ask";; esac
  echo "arguments $*"
} > seen
echo "noise on stderr" >&2
echo '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "from-the-plugin"}}'
"#;

#[cfg(unix)]
fn install(directory: &Path, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join("plugin");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[cfg(unix)]
fn exec(command: &str, mode: &str) -> String {
    format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: '{command}', args: [--for, a b], interactiveMode: {mode}}}}}"
    )
}

#[cfg(unix)]
#[test]
fn a_credential_plugin_never_has_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let plugin = install(home, PLUGIN);
    kubeconfig(home, server(), &exec(&plugin, "IfAvailable"));
    let quiet = "read []\ntold not to ask\narguments --for a b\n";

    let (code, out, err) = run(home, &["version", "--server"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("server v1.36.3"), "{out}");
    assert_eq!(std::fs::read_to_string(home.join("seen")).unwrap(), quiet);

    // Runs the same command in a terminal, if the program `script` can create one.
    let linux = cfg!(target_os = "linux");
    if linux && Command::new("script").arg("--version").output().is_ok() {
        std::fs::remove_file(home.join("seen")).unwrap();
        let mut terminal = Command::new("script")
            .args(["--quiet", "--return", "--command"])
            .arg(format!("tty && {PROGRAM} version --server"))
            .arg("/dev/null")
            .env("HOME", home)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut typed = terminal.stdin.take().unwrap();
        typed.write_all(b"typed by the user\n").unwrap();
        let output = terminal.wait_with_output().unwrap();
        drop(typed);
        let screen = String::from_utf8_lossy(&output.stdout);
        assert!(
            screen.contains("/dev/") && screen.contains("server v1.36.3"),
            "{screen}"
        );
        assert!(!screen.contains("noise"), "{screen}");
        assert_eq!(std::fs::read_to_string(home.join("seen")).unwrap(), quiet);
    }
}

#[cfg(unix)]
#[test]
fn a_plugin_that_needs_the_terminal_is_refused_and_one_that_fails_is_quoted() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let plugin = install(home, PLUGIN);
    kubeconfig(home, server(), &exec(&plugin, "Always"));
    let (code, _, err) = run(home, &["version", "--server"]);
    assert_eq!(code, 6);
    assert!(
        err.contains("needs the terminal") && err.contains("hint: "),
        "{err}"
    );
    assert!(!home.join("seen").exists());

    let plugin = install(
        home,
        "#!/bin/sh\necho half-a-secret\nprintf 'token \\033[31mexpired' >&2\nexit 3\n",
    );
    kubeconfig(home, server(), &exec(&plugin, "Never"));
    let (code, _, err) = run(home, &["version", "--server"]);
    assert_eq!(code, 6, "{err}");
    assert!(
        err.contains("the credential plugin failed (exit status: 3): token"),
        "{err}"
    );
    assert!(err.contains("expired") && !err.contains('\u{1b}'), "{err}");
    assert!(!err.contains("secret"), "{err}");

    let plugin = install(home, "#!/bin/sh\necho 'status: {token: half-a-secret'\n");
    kubeconfig(home, server(), &exec(&plugin, "Never"));
    let (code, _, err) = run(home, &["version", "--server"]);
    assert_eq!(code, 6, "{err}");
    assert!(
        err.contains("not an ExecCredential") && !err.contains("secret"),
        "{err}"
    );
}

#[cfg(unix)]
#[test]
fn a_plugin_that_hangs_is_ended_with_all_it_started() {
    let home = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\necho $$ > \"$1\"\nsleep 1000 &\nwait\n";
    let plugin = install(home.path(), script);
    let pid = home.path().join("pid");
    let output = bowline(home.path())
        .args(["credential-plugin", "1", &plugin])
        .arg(&pid)
        .output()
        .unwrap();
    // `output` returns only when no process has the pipes open, so the child `sleep` of the plugin has ended
    // too.
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("took longer than 1s"));
    assert!(pid.exists());
}

#[cfg(unix)]
#[test]
fn a_plugin_that_writes_without_an_end_or_leaves_a_job_behind_stops_nothing() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let plugin = install(home, "#!/bin/sh\nexec yes\n");
    kubeconfig(home, server(), &exec(&plugin, "Never"));
    let (code, _, err) = run(home, &["version", "--server"]);
    assert_eq!(code, 6, "{err}");
    assert!(err.contains("it wrote more than 1.0 MB"), "{err}");

    let left = PLUGIN.replacen(
        '\n',
        "\nsleep 60 &\necho $! > \"$(dirname \"$0\")/job\"\n",
        1,
    );
    let plugin = install(home, &left);
    kubeconfig(home, server(), &exec(&plugin, "Never"));
    let (code, out, err) = run(home, &["version", "--server"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("server v1.36.3"), "{out}");
    let job = std::fs::read_to_string(home.join("job")).unwrap();
    let killed = Command::new("kill").arg(job.trim()).status().unwrap();
    assert!(killed.success(), "bowline waited for the job");

    let token = PLUGIN.replace("from-the-plugin", "half-a\\nsecret");
    let token = token.replace("echo '{", "printf '%s\\n' '{");
    let plugin = install(home, &token);
    kubeconfig(home, server(), &exec(&plugin, "Never"));
    let (code, _, err) = run(home, &["version", "--server"]);
    assert_eq!(code, 6, "{err}");
    assert!(err.contains("the token has a line break"), "{err}");
    assert!(
        !err.contains("secret") && !err.contains("panicked"),
        "{err}"
    );
}

#[test]
fn a_setting_of_the_kubeconfig_that_cannot_be_used_is_named() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let file = home.join(".kube/config");
    let address = server();
    for (server, user, says) in [
        (
            "127.0.0.1:6443",
            "{}",
            "the server \"127.0.0.1:6443\" is not an address",
        ),
        (
            "local host",
            "{}",
            "the server \"local host\" is not an address",
        ),
        (
            "",
            "{token: \"half-a\\nsecret\"}",
            "the token has a line break",
        ),
        (
            "",
            "{auth-provider: {name: gcp, config: {cmd-path: /bin/sleep, cmd-args: '40'}}}",
            "the auth-provider gcp is not supported",
        ),
        (
            "",
            "{as: \"a\\nb\"}",
            "the user to impersonate has a line break",
        ),
    ] {
        kubeconfig(home, address, user);
        if !server.is_empty() {
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, text.replace(&format!("http://{address}"), server)).unwrap();
        }
        let (code, _, err) = run(home, &["status"]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(says) && err.contains("hint: "), "{err}");
        assert!(
            !err.contains("secret") && !err.contains("panicked"),
            "{err}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_directory_of_the_demo() {
    let home = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let entries = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path())
    };
    for signal in ["HUP", "TERM"] {
        let mut demo = bowline(home.path())
            .arg("demo")
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let is_begun = || entries(temporary.path()).any(|path| path.join("bowline.db").exists());
        while !is_begun() && demo.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let id = demo.id().to_string();
        let _ = Command::new("kill").args(["-s", signal, &id]).status();
        demo.wait().unwrap();
        assert_eq!(entries(temporary.path()).count(), 0, "{signal}");
    }
}

/// A running `bowline serve` with its address. Dropping the value ends the process.
struct Serving(Child, SocketAddr);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(home: &Path) -> Serving {
    let mut child = bowline(home)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("listening on http://")
        .unwrap()
        .parse()
        .unwrap();
    Serving(child, address)
}

#[cfg(unix)]
#[test]
fn serve_says_where_it_listens_and_stops_when_told() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::INT, Signal::TERM] {
        let home = tempfile::tempdir().unwrap();
        let mut serving = serve(home.path());
        let mut watch = TcpStream::connect(serving.1).unwrap();
        write!(
            watch,
            "GET /api/v1/namespaces/default/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        .unwrap();
        let mut answer = [0; 15];
        watch.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        kill_process(Pid::from_child(&serving.0), signal).unwrap();
        let mut rest = String::new();
        watch.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "the watch was cut: {rest}");
        assert_eq!(serving.0.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn serve_stays_on_loopback_without_a_token() {
    let home = tempfile::tempdir().unwrap();
    let empty = home.path().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    let empty = empty.to_str().unwrap();
    for (arguments, says) in [
        (
            &["serve", "--listen", "0.0.0.0:0"][..],
            "other machines can reach",
        ),
        (&["serve", "--listen", "[::]:0"], "other machines can reach"),
        (
            &["serve", "--listen", "0.0.0.0:0", "--token-file", empty],
            "the token file is empty",
        ),
        (
            &["serve", "--token-file", "/nowhere"],
            "token file /nowhere",
        ),
        (&["serve", "--listen", "everywhere"], "invalid"),
        (&["serve", "--context", "prod"], "not a cluster"),
    ] {
        let (code, out, err) = run(home.path(), arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}
