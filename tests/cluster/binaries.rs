//! Finds the programs of the test cluster. Builds missing programs from Go modules.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use sha2::{Digest, Sha256};

const KUBERNETES: &str = "v1.36.3";
const ETCD: &str = "v3.7.3";
const KWOK: &str = "v0.8.0";
const PROGRAMS: [&str; 4] = [
    "etcd",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
];

/// The paths of the programs that a test cluster runs.
#[derive(Debug, Clone)]
pub struct Binaries {
    pub etcd: PathBuf,
    pub kubectl: PathBuf,
    pub kube_apiserver: PathBuf,
    pub kube_controller_manager: PathBuf,
}

impl Binaries {
    /// Finds the programs of the test cluster. If Go is installed, builds the missing programs, which takes
    /// about ten minutes.
    ///
    /// # Errors
    ///
    /// Returns a message of one line: the missing programs, and how to get them.
    pub fn find() -> Result<Self, String> {
        let cache = cache();
        // The programs must come from one directory, so that an old kubectl on the PATH is not used with a
        // newer server.
        let home = env::var_os("KUBEBUILDER_ASSETS")
            .map(PathBuf::from)
            .into_iter()
            .chain(search_path())
            .find(|directory| holds(directory, "etcd") && holds(directory, "kube-apiserver"))
            .unwrap_or_else(|| cache.clone());
        let missing: Vec<&str> = PROGRAMS
            .into_iter()
            .filter(|program| !holds(&home, program) && !holds(&cache, program))
            .collect();
        if !missing.is_empty() {
            build(&cache, &missing)?;
        }
        let program = |name: &str| {
            let installed = home.join(name);
            if installed.is_file() {
                installed
            } else {
                cache.join(name)
            }
        };
        Ok(Self {
            etcd: program("etcd"),
            kubectl: program("kubectl"),
            kube_apiserver: program("kube-apiserver"),
            kube_controller_manager: program("kube-controller-manager"),
        })
    }
}

fn holds(directory: &Path, program: &str) -> bool {
    directory.join(program).is_file()
}

fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH").map_or_else(Vec::new, |path| env::split_paths(&path).collect())
}

fn cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .unwrap_or_else(env::temp_dir);
    base.join("bowline/test-assets")
        .join(format!("kubernetes-{KUBERNETES}-etcd-{ETCD}"))
}

fn build(cache: &Path, missing: &[&str]) -> Result<(), String> {
    let hint = "install Go, or set KUBEBUILDER_ASSETS to a directory with \
                etcd, kube-apiserver, kube-controller-manager and kubectl";
    let go = search_path()
        .into_iter()
        .map(|directory| directory.join("go"))
        .find(|go| go.is_file())
        .ok_or_else(|| format!("{} not found; {hint}", missing.join(", ")))?;
    let failed =
        |what: &str, error: &dyn std::fmt::Display| format!("cannot {what}: {error}; {hint}");
    fs::create_dir_all(cache).map_err(|error| failed("make the cache of test programs", &error))?;
    let lock = File::create(cache.join("lock"))
        .map_err(|error| failed("open the lock of the cache of test programs", &error))?;
    // With this lock, two test processes that start at the same time do not both build the programs.
    lock.lock()
        .map_err(|error| failed("lock the cache of test programs", &error))?;
    for program in missing {
        if holds(cache, program) {
            continue;
        }
        build_one(&go, cache, program).map_err(|error| failed("build test programs", &error))?;
    }
    Ok(())
}

/// Builds the program goclient, which uses an API through client-go and controller-runtime. Skips the build
/// if the source of goclient is unchanged.
///
/// # Errors
///
/// Returns a message of one line: the missing programs, and how to get them.
pub fn goclient() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/assets/goclient");
    let read = |error: std::io::Error| format!("cannot read the source of goclient: {error}");
    let mut files: Vec<PathBuf> = fs::read_dir(&source)
        .map_err(read)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(read)?;
    files.sort();
    let mut digest = Sha256::new();
    for file in &files {
        digest.update(fs::read(file).map_err(read)?);
    }
    let state: String = digest
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let (cache, program) = (cache(), format!("goclient-{state}"));
    if !holds(&cache, &program) {
        build(&cache, &[&program])?;
    }
    Ok(cache.join(program))
}

/// Builds kwok, the program that makes the pods of a fake node ready, unless it is already built.
///
/// # Errors
/// Returns a message of one line: the missing programs, and how to get them.
pub fn kwok() -> Result<PathBuf, String> {
    let (cache, program) = (cache(), format!("kwok-{KWOK}"));
    if !holds(&cache, &program) {
        build(&cache, &[&program])?;
    }
    Ok(cache.join(program))
}

fn build_one(go: &Path, cache: &Path, program: &str) -> Result<(), String> {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/assets");
    let (module, version, minutes, package, flags) = if program == "etcd" {
        (
            "etcd",
            ETCD,
            "half a minute",
            ".".to_owned(),
            "-s -w".to_owned(),
        )
    } else if program.starts_with("kwok-") {
        (
            "kwok",
            KWOK,
            "two minutes",
            "sigs.k8s.io/kwok/cmd/kwok".to_owned(),
            "-s -w".to_owned(),
        )
    } else if program.starts_with("goclient-") {
        (
            "goclient",
            KUBERNETES,
            "a minute",
            ".".to_owned(),
            "-s -w".to_owned(),
        )
    } else {
        let minutes = if program == "kube-apiserver" {
            "five minutes"
        } else {
            "two minutes"
        };
        (
            "kubernetes",
            KUBERNETES,
            minutes,
            format!("k8s.io/kubernetes/cmd/{program}"),
            version_flags(),
        )
    };
    eprintln!(
        "building {program} {version} with Go, once, into {}: about {minutes} on two cores",
        cache.display()
    );
    let started = Instant::now();
    let unfinished = cache.join(format!(".{program}.{}", std::process::id()));
    let output = Command::new(go)
        .args(["build", "-trimpath", "-ldflags", &flags, "-o"])
        .args([unfinished.as_os_str(), OsStr::new(&package)])
        .current_dir(assets.join(module))
        .env("CGO_ENABLED", "0")
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!(
            "go build {package}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    fs::rename(&unfinished, cache.join(program)).map_err(|error| error.to_string())?;
    eprintln!("built {program} in {} s", started.elapsed().as_secs());
    Ok(())
}

// Without these flags, a server reports version v0.0.0 and kubectl warns about the skew.
fn version_flags() -> String {
    let mut numbers = KUBERNETES.trim_start_matches('v').split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    let mut flags = "-s -w".to_owned();
    for package in [
        "k8s.io/component-base/version",
        "k8s.io/client-go/pkg/version",
    ] {
        flags.push_str(&format!(
            " -X {package}.gitVersion={KUBERNETES} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        ));
    }
    flags
}
