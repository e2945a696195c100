//! Checks the Dockerfile of the controller. Needs no container engine.

use std::path::Path;
use std::process::Command;

use crate::PROGRAM;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the source files of the targets that the Cargo.toml of a package declares.
fn declared(package: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let mut files = Vec::new();
    for (kind, folder) in [("bin", "src/bin"), ("test", "tests"), ("bench", "benches")] {
        let targets = manifest.get(kind).and_then(toml::Value::as_array);
        for target in targets.into_iter().flatten() {
            let name = target["name"].as_str().unwrap();
            let own = target.get("path").and_then(toml::Value::as_str);
            let usual = [
                format!("{folder}/{name}.rs"),
                format!("{folder}/{name}/main.rs"),
            ];
            let file = match own {
                Some(own) => own.to_owned(),
                None => {
                    let mut usual = usual.into_iter();
                    let found = usual.find(|file| root().join(package).join(file).exists());
                    found.unwrap_or_else(|| panic!("there is no file of the {kind} {name}"))
                }
            };
            files.push(package.join(file).to_str().unwrap().to_owned());
        }
    }
    files
}

#[test]
fn the_build_context_has_every_target_that_the_manifest_declares() {
    let mut files = declared(Path::new(""));
    assert!(files.len() > 5, "{files:?}");
    let more = ["Cargo.toml", "Cargo.lock", "src/lib.rs", "src/main.rs"];
    files.extend(more.map(str::to_owned));
    for member in ["src", "src/controllers", "src/cli", "src/tui"] {
        files.push(format!("{member}/Cargo.toml"));
    }
    for member in std::fs::read_dir(root().join("crates")).unwrap() {
        let member = Path::new("crates").join(member.unwrap().file_name());
        files.extend(declared(&member));
        files.push(format!("{}/Cargo.toml", member.display()));
        files.push(format!("{}/src/lib.rs", member.display()));
    }
    let ignored = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    let ignored: Vec<&str> = ignored.lines().filter(|line| !line.is_empty()).collect();
    for file in &files {
        assert!(root().join(file).exists(), "{file} does not exist");
        for pattern in &ignored {
            let rest = file.strip_prefix(pattern);
            let is_out = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            assert!(!is_out, ".dockerignore leaves out {file} with {pattern}");
        }
    }
}

#[test]
fn the_steps_of_the_dockerfile_work() {
    let id = Command::new("id").arg("-u").output().unwrap();
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        crate::cluster::missing::skip("deploy/check-image", "it needs root, for chroot");
        return;
    }
    let ran = Command::new(root().join("deploy/check-image"))
        .args(["--program", PROGRAM])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
}
