//! Tests with hostile names, paths and texts, which would control a terminal or look like a message of
//! bowline. bowline escapes them in output for programs, and replaces their unsafe characters in output for
//! people.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use bowline::api::ReleasePin;
use bowline::text;
use http::{Request, Response, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::small::Small;
use super::{bowline, run};

/// The harmless name that the objects in the store have.
const TAME: &str = "evil";
/// The hostile name that replaces [`TAME`] in every answer of the server. It contains an escape sequence, a
/// change of the text direction and a line break.
const HOSTILE: &str = "evil\u{1b}[31m\u{202e}\nhint: injected";
/// The hostile name as bowline prints it for people on one line.
const CLEANED: &str = "evil\u{fffd}[31m\u{fffd} hint: injected";
/// The hostile name as bowline prints it for people in a message of several lines.
const INDENTED: &str = "evil\u{fffd}[31m\u{fffd}\n  hint: injected";

/// Fails if an output is unsafe for a terminal. It must contain no control characters, and no line may start
/// with foreign text.
fn check(what: &str, text: &str) {
    if let Some(c) = text.chars().find(|c| text::is_unsafe(*c)) {
        panic!("{what}: {c:?} in {text:?}");
    }
    for line in text.lines() {
        assert!(!line.starts_with("hint: injected"), "{what}: {text:?}");
    }
}

/// The body of an answer that contains the hostile name instead of the harmless one.
type Changed = UnsyncBoxBody<bytes::Bytes, kube::Error>;

/// Serves a store over HTTP. Replaces the harmless name by the hostile one in every answer.
async fn serve(api: Client) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let api = api.clone();
            let pass = hyper::service::service_fn(move |request| pass(request, api.clone()));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), pass),
            );
        }
    });
    address
}

async fn pass(request: Request<Incoming>, api: Client) -> Result<Response<Changed>, Infallible> {
    let (mut head, body) = request.into_parts();
    for name in [header::HOST, header::CONTENT_LENGTH, header::CONNECTION] {
        head.headers.remove(name);
    }
    let body = body.collect().await.unwrap().to_bytes();
    let sent = Request::from_parts(head, Body::from(body.to_vec()));
    let (mut head, body) = api.send(sent).await.unwrap().into_parts();
    head.headers.remove(header::CONTENT_LENGTH);
    let escaped = Value::from(HOSTILE).to_string();
    let escaped = escaped.trim_matches('"').to_owned();
    let body = body.map_frame(move |frame| {
        frame.map_data(|bytes| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.replace(TAME, &escaped).into()
        })
    });
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// How the output of a command must contain the hostile name.
#[derive(Clone, Copy)]
enum Shows {
    /// The output contains the name as [`CLEANED`].
    Cleaned,
    /// stderr contains the name as [`INDENTED`].
    Said,
    /// The output contains the name as a JSON string.
    Json,
    /// The output contains the name as a YAML string.
    Yaml,
    /// The output does not have to contain the name.
    Anything,
}

impl Shows {
    fn is_in(self, text: &str) -> bool {
        match self {
            Self::Cleaned => text.contains(CLEANED),
            Self::Said => text.contains(CLEANED) || text.contains(INDENTED),
            Self::Json => {
                let parsed: Result<Value, _> = serde_json::from_str(text);
                parsed.is_ok_and(|value| has(&value))
            }
            Self::Yaml => text.contains(r#"evil\x1b[31m\u202e\nhint: injected"#),
            Self::Anything => true,
        }
    }
}

/// Returns whether any string inside a JSON value contains the hostile name.
fn has(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(HOSTILE),
        Value::Array(items) => items.iter().any(has),
        Value::Object(fields) => fields.values().any(has),
        _ => false,
    }
}

fn fill(small: &Small) {
    let world = std::fs::read_to_string(small.home().join("world.yaml")).unwrap();
    let file = small.write("evil.yaml", &world.replace("cart", TAME));
    small.done(&format!("apply -f {file}"));
    for version in ["1", "2"] {
        small.done(&format!("release create {TAME} --version {version}"));
    }
    let lock = small.keep_controllers_out();
    small.done(&format!(
        "deploy {TAME} -e dev --release {TAME}-1 --reason {TAME}"
    ));
    small.done(&format!(
        "deploy {TAME} -e dev --release {TAME}-2 --reason {TAME}"
    ));
    small.done(&format!(
        "deploy {TAME} -e staging --release {TAME}-1 --skip-path --reason {TAME}"
    ));
    small.done(&format!("pin {TAME} -e staging --reason {TAME}"));
    small.done(&format!("mark bad {TAME}-1 --reason {TAME}"));
    small.done(&format!("release create {TAME} --version 3"));
    // A component with a normal name, and a release with the hostile name.
    small.done(&format!("release create cart --version {TAME}"));
    for environment in ["dev", "staging"] {
        small.done(&format!(
            "deploy cart -e {environment} --release cart-{TAME} --skip-path --reason {TAME}"
        ));
    }
    drop(lock);
}

/// Sets a failed status on a ReleasePin, with a message that contains [`TAME`].
async fn fail(client: &Client) {
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), "default");
    let generation = pins.get("evil-dev").await.unwrap().metadata.generation;
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "Degraded", "message": TAME,
        "lastTransitionTime": "2026-01-06T12:00:00Z", "observedGeneration": generation,
    });
    let status = json!({"status": {"observedGeneration": generation, "conditions": [ready]}});
    let patch = Patch::Merge(status);
    let parameters = PatchParams::default();
    let patched = pins.patch_status("evil-dev", &parameters, &patch).await;
    patched.unwrap();
}

#[test]
fn names_of_a_hostile_server_steer_no_output() {
    use Shows::{Anything, Cleaned, Json, Said, Yaml};
    let small = Small::new();
    fill(&small);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = runtime.block_on(async {
        let store = bowline::fixture::store::open(&small.store, "ana").await;
        fail(&store.client("default")).await;
        serve(store.client("default")).await
    });
    super::kubeconfig(small.home(), address, "{}");
    let entry = {
        let (out, _) = small.done("audit list -o name");
        let name = out.lines().find(|line| line.contains(TAME)).unwrap();
        name.rsplit('/').next().unwrap().to_owned()
    };
    let here = HOSTILE;
    let harmless = small.write(
        "harmless.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: evil-settings}}",
    );
    let mut hidden = Vec::new();
    for (shows, line) in [
        (Cleaned, &["status"][..]),
        (Cleaned, &["status", "-o", "wide"]),
        (Cleaned, &["status", "-o", "name"]),
        (Cleaned, &["status", "-A"]),
        (Cleaned, &["status", here]),
        (Json, &["status", "-o", "json"]),
        (Yaml, &["status", "-o", "yaml"]),
        (Anything, &["status", "nothing"]),
        (Cleaned, &["history", "cart", "-e", "dev"]),
        (Cleaned, &["history", "cart", "-e", "dev", "-o", "wide"]),
        (Json, &["history", "cart", "-e", "dev", "-o", "json"]),
        (Yaml, &["history", "cart", "-e", "dev", "-o", "yaml"]),
        (Anything, &["history", here, "-e", "dev"]),
        (Cleaned, &["revisions", "list", "releasepin/evil-dev"]),
        (Anything, &["revisions", "list", here]),
        (
            Anything,
            &["diff", "evil", "--from", "dev", "--to", "staging"],
        ),
        (Anything, &["diff", "--release", "evil-1", "evil-2"]),
        (
            Anything,
            &["diff", "--release", "evil-1", "evil-2", "-o", "unified"],
        ),
        (Anything, &["diff", "evil", "-e", "dev"]),
        (
            Anything,
            &["diff", "cart", "--from", "dev", "--to", "staging"],
        ),
        (Yaml, &["diff", "--release", "cart-1", "evil-1"]),
        (
            Yaml,
            &["diff", "--release", "cart-1", "evil-1", "-o", "unified"],
        ),
        (
            Json,
            &["diff", "--release", "cart-1", "evil-1", "-o", "json"],
        ),
        (Cleaned, &["pin", "cart", "-e", "dev", "--dry-run"]),
        (Anything, &["undo", "cart", "-e", "dev"]),
        (Cleaned, &["get", "releases"]),
        (Cleaned, &["get", "releases", "-o", "wide"]),
        (Cleaned, &["get", "releases", "-o", "name"]),
        (Json, &["get", "releases", "-o", "json"]),
        (Yaml, &["get", "releases", "-o", "yaml"]),
        (Cleaned, &["get", "pins,comp,auditentries", "-A"]),
        (Cleaned, &["get", "comp", "evil", "-o", "name"]),
        (Anything, &["get", "comp", "nothing"]),
        (Anything, &["get", here]),
        (Anything, &["get", "comp", here]),
        (Cleaned, &["release", "list"]),
        (Cleaned, &["release", "list", "-o", "wide"]),
        (Cleaned, &["release", "list", "-o", "name"]),
        (Json, &["release", "list", "-o", "json"]),
        (Yaml, &["release", "show", "evil-1"]),
        (Json, &["release", "show", "evil-1", "-o", "json"]),
        (Cleaned, &["release", "show", "evil-1", "-o", "name"]),
        (Anything, &["release", "show", here]),
        (
            Cleaned,
            &["gc", "--dry-run", "--keep", "0", "--min-age", "0"],
        ),
        (
            Cleaned,
            &[
                "gc",
                "--dry-run",
                "--keep",
                "0",
                "--min-age",
                "0",
                "-o",
                "name",
            ],
        ),
        (Json, &["gc", "--dry-run", "-o", "json"]),
        (
            Anything,
            &["gc", "--confirm", "--keep", "0", "--min-age", "0"],
        ),
        (Anything, &["audit", "list"]),
        (Anything, &["audit", "list", "-o", "wide"]),
        (Anything, &["audit", "list", "-o", "name"]),
        (Json, &["audit", "list", "-o", "json"]),
        (Yaml, &["audit", "list", "-o", "yaml"]),
        (Anything, &["audit", "show", &entry]),
        (Anything, &["audit", "verify"]),
        (Anything, &["audit", "verify", "-o", "name"]),
        (Anything, &["audit", "export", "--format", "md"]),
        (Anything, &["render", "evil", "-e", "dev"]),
        (
            Said,
            &["promote", "nothing", "--from", "dev", "--to", "staging"],
        ),
        (
            Anything,
            &["promote", here, "--from", "dev", "--to", "staging"],
        ),
        (
            Said,
            &[
                "promote",
                here,
                "--from",
                "dev",
                "--to",
                "staging",
                "--unready",
            ],
        ),
        (
            Anything,
            &["deploy", here, "-e", "dev", "--release", "evil-9"],
        ),
        (Anything, &["deploy", here, "-e", "dev"]),
        (
            Anything,
            &["rollback", here, "-e", "dev", "--to", "nothing"],
        ),
        (Anything, &["pin", here, "-e", "dev", "--dry-run"]),
        (
            Anything,
            &["unpin", here, "-e", "staging", "--hold", "nothing"],
        ),
        (Anything, &["undo", here, "-e", "dev"]),
        (Anything, &["mark", "good", here, "--dry-run"]),
        (Anything, &["delete", "comp", "evil", "--dry-run"]),
        (Anything, &["delete", "comp", here]),
        (Cleaned, &["screenshot", "matrix"]),
        (Anything, &["screenshot", "releases", "--format", "svg"]),
        (Anything, &["apply", "-f", &harmless]),
        (
            Said,
            &[
                "deploy",
                "cart",
                "-e",
                "dev",
                "--release",
                "cart-1",
                "--wait",
                "--timeout",
                "1s",
            ],
        ),
        (Anything, &["completions", here]),
        (Anything, &[here]),
    ] {
        let (_, out, err) = run(small.home(), line);
        let what = format!("{line:?}");
        check(&what, &out);
        check(&what, &err);
        let shown = match shows {
            Said => shows.is_in(&err),
            _ => shows.is_in(&out),
        };
        if !shown || out.is_empty() && err.is_empty() {
            hidden.push(format!("{what}:\n{out}\n{err}"));
        }
    }
    assert!(hidden.is_empty(), "not shown:\n{}", hidden.join("\n"));
    let (_, out, _) = run(small.home(), &["status"]);
    assert!(out.contains("Degraded: evil"), "{out}");
    // Runs a watch until it has printed the existing objects.
    let shown = until(small.home(), &["get", "comp", "-w"], CLEANED, Stream::Out);
    check("get -w", &shown);
    // Runs the controller until it listens, and then checks the log of a command that reads the names.
    for format in ["text", "json"] {
        let listen = ["controller", "--listen", "127.0.0.1:0"];
        let line = [&listen[..], &["--log-format", format]].concat();
        let shown = until(small.home(), &line, "listening on", Stream::Out);
        check("controller", &shown);
    }
    let logged = bowline(small.home())
        .arg("status")
        .env("BOWLINE_LOG", "trace")
        .output()
        .unwrap();
    let logged = String::from_utf8(logged.stderr).unwrap();
    assert!(logged.contains("TRACE"), "{logged}");
    check("the log", &logged);
}

/// The output stream of the program that a test reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// Runs a program until one of its streams contains a text, and stops the program. Returns what the stream
/// contained so far.
fn until(home: &Path, line: &[&str], text: &str, stream: Stream) -> String {
    let mut child = bowline(home)
        .args(line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (read, other): (Box<dyn Read + Send>, Box<dyn Read + Send>) = match stream {
        Stream::Out => (Box::new(out), Box::new(err)),
        Stream::Err => (Box::new(err), Box::new(out)),
    };
    // Another thread reads the other stream, because a full pipe would block the program.
    let drain = std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = BufReader::new(other).read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    });
    let mut shown = String::new();
    let mut lines = BufReader::new(read);
    while !shown.contains(text) {
        if lines.read_line(&mut shown).unwrap() == 0 {
            panic!(
                "{line:?} ended without {text:?}: {shown}{}",
                drain.join().unwrap()
            );
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    check("the other stream", &drain.join().unwrap());
    shown
}

#[cfg(unix)]
#[test]
fn paths_steer_no_output() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let directory = home.join(HOSTILE);
    std::fs::create_dir(&directory).unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).unwrap();
        path(name)
    };
    let broken = write("broken.yaml", "a: [");
    let skin = write("skin.yaml", "k9s: {body: {fgColor: nothing}}");
    let wrong = write("wrong.yaml", "{apiVersion: v1, kind: Pod}");
    let inside = directory.to_str().unwrap();
    let embedded = format!("--embedded={}", path("store.db"));
    for line in [
        &["apply", "-f", &broken, "--embedded"][..],
        &["apply", "-f", &wrong, "--embedded"],
        &["apply", "-f", &path("gone.yaml"), "--embedded"],
        &["apply", "-f", inside, "-R", "--embedded"],
        &["delete", "-f", inside, "--embedded"],
        &["render", "-f", inside],
        &["render", "-f", &path("gone")],
        &["release", "create", "cart", "-f", inside, "--embedded"],
        &["version", "--server", &embedded],
        &["status", &embedded],
        &["promote", "cart", "--from", "a", "--to", "b", &embedded],
        &["version", "--server", &format!("--kubeconfig={broken}")],
        &[
            "version",
            "--server",
            &format!("--kubeconfig={}", path("gone")),
        ],
        &["status", "--repo", inside],
        &["check", "--repo", &path("gone")],
        &["theme", "import", &skin],
        &["theme", "import", &broken],
        &["theme", "import", &path("gone")],
        &["man", &broken],
        &["serve", "--token-file", &path("gone")],
    ] {
        let (_, out, err) = run(home, line);
        let what = format!("{line:?}");
        check(&what, &out);
        check(&what, &err);
        assert!(!(out.is_empty() && err.is_empty()), "{what} says nothing");
    }
    let (_, out, _) = run(home, &["version", "--server", &embedded]);
    assert!(out.contains(CLEANED), "{out}");
    let token = write("token", "0123456789abcdef0123456789abcdef");
    let line = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        &token,
        &embedded,
    ];
    let shown = until(home, &line, "/version", Stream::Err);
    check("serve", &shown);
    assert!(shown.contains(CLEANED), "{shown}");
    assert!(shown.contains("$(cat '"), "{shown}");
}

#[test]
fn a_log_in_a_file_has_no_colour_codes() {
    let home = tempfile::tempdir().unwrap();
    logs(home.path(), &[]);
    logs(home.path(), &[("NO_COLOR", "1")]);
}

fn logs(home: &Path, variables: &[(&str, &str)]) {
    let output = bowline(home)
        .args(["version", "--server", "--embedded"])
        .env("BOWLINE_LOG", "trace")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("TRACE") || said.contains("DEBUG"), "{said}");
    check("the log", &said);
}
