//! Runs a table of kubectl commands against a real server and against `bowline serve`. Compares stdout,
//! stderr and the exit code.
//!
//! Commands that depend on each other form a scene. On both servers, a scene has its own namespace. The shell
//! runs the lines of a scene in the directory of the test manifests.

mod normal;
mod scenes;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;

use crate::cluster::{Cluster, Options};

/// The time limit for one kubectl command.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sequence of kubectl commands that depend on each other.
pub struct Scene {
    pub name: &'static str,
    pub rows: Vec<Row>,
}

/// One line of a scene: a kubectl command, with how to compare its output.
pub struct Row {
    line: &'static str,
    /// The commands to run while `line` watches. Each command starts after the watch has printed this number
    /// of lines.
    meanwhile: &'static [(usize, &'static str)],
    /// How many lines the watch prints before the test stops it.
    lines: usize,
    apart: Option<Apart>,
}

/// An intended difference between the outputs of the two servers.
#[derive(Clone, Copy)]
struct Apart {
    why: &'static str,
    /// The function that removes the intended difference from an output.
    rest: fn(&str) -> String,
}

/// Returns a row whose command must have the same output on both servers.
pub fn run(line: &'static str) -> Row {
    Row {
        line,
        meanwhile: &[],
        lines: 0,
        apart: None,
    }
}

/// Returns a row whose command watches. The test stops the watch after `lines` lines.
pub fn watch(line: &'static str, meanwhile: &'static [(usize, &'static str)], lines: usize) -> Row {
    Row {
        meanwhile,
        lines,
        ..run(line)
    }
}

impl Row {
    /// Adds an intended difference to the row. `rest` removes the difference from an output.
    pub fn apart(self, why: &'static str, rest: fn(&str) -> String) -> Row {
        Row {
            apart: Some(Apart { why, rest }),
            ..self
        }
    }
}

/// A real server and `bowline serve`, both with bowline's kinds and policies.
pub struct Pair {
    sides: [Side; 2],
    _cluster: Cluster,
    _served: Served,
    _folder: tempfile::TempDir,
}

/// One of the two servers, with the settings with which kubectl reaches it.
struct Side {
    name: &'static str,
    kubectl: PathBuf,
    server: String,
    token: Option<String>,
    home: PathBuf,
}

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output and the exit code of a command. The output has no parts that always differ.
#[derive(PartialEq)]
struct Outcome {
    out: String,
    err: String,
    code: Option<i32>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.out)?;
        if !self.err.is_empty() {
            write!(f, "stderr: {}", self.err)?;
        }
        writeln!(f, "exit: {:?}", self.code)
    }
}

impl Pair {
    /// Starts both servers. Returns None if no selected test needs them, or if the programs of a cluster are
    /// missing.
    pub async fn start(arguments: &Arguments) -> Option<Arc<Self>> {
        let wanted = !arguments.list
            && scenes::all()
                .iter()
                .map(title)
                .chain(crate::goclient::titles())
                .any(|title| !arguments.is_filtered_out(&Trial::test(title, || Ok(()))));
        if !wanted {
            return None;
        }
        let mut cluster = Cluster::start(Options::default()).await?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (served, address) = serve(folder.path());
        let kubectl = PathBuf::from(cluster.kubectl().get_program());
        let side = |name: &'static str, server: String, token: Option<String>| {
            let home = folder.path().join(name);
            fs::create_dir(&home).expect("a home for kubectl");
            Side {
                name,
                kubectl: kubectl.clone(),
                server,
                token,
                home,
            }
        };
        let token = cluster.token(crate::cluster::ADMIN);
        let sides = [
            side("real", cluster.url.clone(), Some(token)),
            side("embedded", address, None),
        ];
        sides[0].must(
            "kubectl apply --server-side -f ../../../../deploy/crds -f ../../../../deploy/policies.yaml",
        );
        sides[0].must("kubectl wait --for=condition=Established crd --all");
        // Waits until the real server accepts the new kinds and enforces the new policies.
        sides[0].until("kubectl create --dry-run=server -f pin.yaml -f release.yaml");
        sides[0].until("! sed /labels/d pin.yaml | kubectl create --dry-run=server -f -");
        // The garbage collector starts after the kinds are installed, because it looks for new kinds only
        // from time to time.
        cluster.start_controllers();
        Some(Arc::new(Self {
            sides,
            _cluster: cluster,
            _served: served,
            _folder: folder,
        }))
    }

    /// Returns the URL of a server, and the token if the server needs one.
    pub fn access(&self, name: &str) -> (&str, Option<&str>) {
        let side = &self.sides[usize::from(name != self.sides[0].name)];
        (&side.server, side.token.as_deref())
    }

    fn play(&self, scene: &Scene) -> Result<(), Failed> {
        for side in &self.sides {
            if scene.name != "default" {
                side.must(&format!("kubectl create namespace {}", scene.name));
            }
        }
        let mut differences = Vec::new();
        for row in &scene.rows {
            let (real, embedded) = std::thread::scope(|scope| {
                let real = scope.spawn(|| self.sides[0].outcome(scene.name, row));
                let embedded = self.sides[1].outcome(scene.name, row);
                (real.join().expect("a command ran"), embedded)
            });
            if real != embedded {
                let apart = row.apart.map_or(String::new(), |apart| {
                    format!(" (compared except for this: {})", apart.why)
                });
                differences.push(format!(
                    "$ {}{apart}\n--- real\n{real}+++ embedded\n{embedded}",
                    row.line
                ));
            }
            if std::env::var_os("BOWLINE_SHOW").is_some() {
                eprintln!("$ {}\n{real}", row.line);
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        Err(Failed::from(format!(
            "{} of {} commands differ\n{}",
            differences.len(),
            scene.rows.len(),
            differences.join("\n")
        )))
    }
}

/// Returns one test per scene of the table.
pub fn trials(pair: &Option<Arc<Pair>>) -> Vec<Trial> {
    let trial = |scene: Scene| {
        let pair = pair.clone();
        let missing = pair.is_none();
        Trial::test(title(&scene), move || match pair {
            Some(pair) => pair.play(&scene),
            None => Err(Failed::from("there is no real server here")),
        })
        .with_ignored_flag(missing)
    };
    scenes::all().into_iter().map(trial).collect()
}

fn title(scene: &Scene) -> String {
    format!("kubectl::{}", scene.name)
}

/// Starts `bowline serve` with a new store, on a free port.
fn serve(folder: &Path) -> (Served, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bowline"))
        .arg(format!("--embedded={}", folder.join("store.db").display()))
        .args(["--as", crate::cluster::ADMIN])
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bowline serve starts");
    let out = child.stdout.take().expect("its output");
    let mut line = String::new();
    BufReader::new(out)
        .read_line(&mut line)
        .expect("the line that names the address");
    let address = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap_or_else(|| panic!("bowline serve said {line:?}"));
    (Served(child), address.to_owned())
}

impl Side {
    /// Returns a shell command in which kubectl uses this server and this namespace.
    fn shell(&self, namespace: &str, line: &str) -> Command {
        let path = self.home.join(format!("kubeconfig-{namespace}"));
        if !path.exists() {
            let user = match &self.token {
                Some(token) => json!({"token": token}),
                None => json!({}),
            };
            let kubeconfig = json!({
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "side", "cluster": {"server": self.server, "insecure-skip-tls-verify": true}}],
                "users": [{"name": "admin", "user": user}],
                "contexts": [{"name": "side", "context": {"cluster": "side", "user": "admin", "namespace": namespace}}],
                "current-context": "side",
            });
            fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig");
        }
        let folder = self.kubectl.parent().unwrap_or(Path::new("/"));
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(
                Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/kubectl/manifests"),
            )
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .env("HOME", &self.home)
            .env("WORK", &self.home)
            .env("TMPDIR", &self.home)
            .env("KUBECACHEDIR", self.home.join("cache"))
            .env("KUBECONFIG", path)
            .stdin(Stdio::null());
        command
    }

    /// Runs a preparing command on this server. The command must succeed.
    fn must(&self, line: &str) {
        let output = self
            .shell("default", line)
            .output()
            .expect("sh runs a command");
        assert!(
            output.status.success(),
            "{line} on the {} side: {}",
            self.name,
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Repeats a preparing command on this server until the command succeeds.
    fn until(&self, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.shell("default", line).output().expect("sh runs");
            if output.status.success() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{line} on the {} side: {}",
                self.name,
                String::from_utf8_lossy(&output.stderr)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn outcome(&self, namespace: &str, row: &Row) -> Outcome {
        let (out, err, code) = match row.lines {
            0 => self.finish(namespace, row.line),
            _ => self.follow(namespace, row),
        };
        let rest = |text: &str| {
            let text = normal::form(text, &self.server, &self.home.to_string_lossy());
            match row.apart {
                Some(apart) => (apart.rest)(&text),
                None => text,
            }
        };
        Outcome {
            out: rest(&out),
            err: rest(&err),
            code,
        }
    }

    fn finish(&self, namespace: &str, line: &str) -> (String, String, Option<i32>) {
        let line = format!(
            "timeout {} sh -c '{}'",
            PATIENCE.as_secs(),
            line.replace('\'', r"'\''")
        );
        let output = self
            .shell(namespace, &line)
            .output()
            .expect("sh runs a command");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (
            text(output.stdout),
            text(output.stderr),
            output.status.code(),
        )
    }

    /// Runs a watch until it has printed enough lines, and runs the other commands of the row meanwhile.
    fn follow(&self, namespace: &str, row: &Row) -> (String, String, Option<i32>) {
        let mut child = self
            .shell(namespace, &format!("exec {}", row.line))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs a command");
        let out = child.stdout.take().expect("its output");
        let (sender, receiver) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut seen: Vec<String> = Vec::new();
        let mut until = |lines: usize| {
            while seen.len() < lines {
                match receiver.recv_timeout(PATIENCE) {
                    Ok(line) => seen.push(line),
                    Err(why) => {
                        seen.push(format!("(then nothing: {why})"));
                        return false;
                    }
                }
            }
            true
        };
        let steps = row.meanwhile.iter().copied();
        let mut complaints = String::new();
        for (lines, command) in steps.chain([(row.lines, "")]) {
            if !until(lines) {
                break;
            }
            complaints.push_str(&self.finish(namespace, command).1);
        }
        let _ = child.kill();
        let _ = child.wait();
        let _ = reader.join();
        (seen.join("\n") + "\n", complaints, None)
    }
}
