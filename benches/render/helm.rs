//! Finds the program helm: an installed version 4, or a build from Go modules that an earlier run cached.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "v4.3.1";

/// Returns the path of helm. If only Go is installed, builds helm once, which takes about four minutes.
///
/// # Errors
///
/// Returns a message of one line that names the missing program.
pub fn find() -> Result<PathBuf, String> {
    let installed = Command::new("helm")
        .args(["version", "--template={{.Version}}"])
        .output();
    if installed.is_ok_and(|output| output.stdout.starts_with(b"v4.")) {
        return Ok("helm".into());
    }
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .unwrap_or_else(env::temp_dir);
    let cache = base.join(format!("bowline/test-assets/helm-{VERSION}"));
    let helm = cache.join("helm");
    if !helm.is_file() {
        build(&cache, &helm).map_err(|error| format!("cannot build helm with Go: {error}"))?;
    }
    Ok(helm)
}

fn build(cache: &Path, helm: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(cache).map_err(text)?;
    let lock = File::create(cache.join("lock")).map_err(text)?;
    // With this lock, two processes that start at the same time do not both build helm.
    lock.lock().map_err(text)?;
    if helm.is_file() {
        return Ok(());
    }
    eprintln!(
        "building helm {VERSION} with Go, once, into {}: about four minutes on two cores",
        cache.display()
    );
    let unfinished = cache.join(format!(".helm.{}", std::process::id()));
    let output = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
        .args([
            unfinished.as_os_str(),
            OsStr::new("helm.sh/helm/v4/cmd/helm"),
        ])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/assets/helm"))
        .env("CGO_ENABLED", "0")
        .output()
        .map_err(text)?;
    match output.status.success() {
        true => fs::rename(&unfinished, helm).map_err(text),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
