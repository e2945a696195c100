//! Runs a Go program on the real server and on the embedded API. The program uses every kind of client in
//! client-go and controller-runtime. Its source is in `tests/cluster/assets/goclient`.

use std::{fs, path::Path, process::Command, sync::Arc};

use libtest_mimic::{Failed, Trial};

use crate::{
    cluster::{binaries, missing},
    kubectl::Pair,
};

const SIDES: [&str; 2] = ["real", "embedded"];

/// Returns the names of the tests that need a running server.
pub fn titles() -> Vec<String> {
    SIDES
        .iter()
        .map(|side| format!("goclient::{side}"))
        .collect()
}

/// Returns the tests: one run of the Go program per server, and the check of the generated protobuf table.
pub fn trials(pair: &Option<Arc<Pair>>) -> Vec<Trial> {
    let mut trials = vec![Trial::test("goclient::wire", wire)];
    for (title, side) in titles().into_iter().zip(SIDES) {
        let pair = pair.clone();
        let missing = pair.is_none();
        let trial = Trial::test(title, move || match pair {
            Some(pair) => run(&pair, side),
            None => Err(Failed::from("there is no real server here")),
        });
        trials.push(trial.with_ignored_flag(missing));
    }
    trials
}

/// Builds the Go program. If Go is missing, returns None, so that the tests are skipped; in CI, panics.
fn program() -> Option<std::path::PathBuf> {
    binaries::goclient()
        .inspect_err(|why| missing::skip("the programs in Go", why))
        .ok()
}

fn run(pair: &Pair, side: &str) -> Result<(), Failed> {
    let Some(program) = program() else {
        return Ok(());
    };
    let (server, token) = pair.access(side);
    let output = Command::new(program)
        .args(["--server", server, "--token", token.unwrap_or_default()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let checks = said.lines().filter(|line| line.starts_with("ok ")).count();
    if output.status.success() && checks >= 25 {
        return Ok(());
    }
    let failures: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("ok "))
        .collect();
    Err(Failed::from(format!(
        "{checks} checks passed, then:\n{}\n{}",
        failures.join("\n"),
        String::from_utf8_lossy(&output.stderr)
    )))
}

/// Checks that the protobuf table matches the types of k8s.io/api. BOWLINE_BLESS=1 writes the table instead.
fn wire() -> Result<(), Failed> {
    let Some(program) = program() else {
        return Ok(());
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/kube-embedded/src");
    let output = Command::new(program)
        .arg("--wire")
        .arg(folder.join("builtin.json"))
        .output()?;
    let made = String::from_utf8(output.stdout)?;
    let path = folder.join("protobuf/wire.json");
    if std::env::var_os("KUBE_EMBEDDED_BLESS").is_some() {
        fs::write(&path, &made)?;
    }
    match fs::read_to_string(&path)? == made {
        true => Ok(()),
        false => Err(Failed::from(
            "crates/kube-embedded/src/protobuf/wire.json is not what the types say; KUBE_EMBEDDED_BLESS=1 writes it",
        )),
    }
}
