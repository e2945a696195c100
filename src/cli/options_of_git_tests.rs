//! Tests that git never treats the value of a bowline flag as an option or runs it as a command. The tests pass
//! option-like values to bowline, and use a fake git that records its arguments.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::connect::{Environment, Options};
use super::{parsed, required, run};

const OBJECTS: &str = "apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: dev, namespace: shop}
spec: {dataPlaneRef: {name: d}, namespace: dev}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: prod, namespace: shop}
spec: {dataPlaneRef: {name: d}, namespace: prod}
---
apiVersion: openchoreo.dev/v1alpha1
kind: DeploymentPipeline
metadata: {name: default, namespace: shop}
spec: {promotionPaths: [{sourceEnvironmentRef: {name: dev}, targetEnvironmentRefs: [{name: prod}]}]}
---
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web, namespace: shop}
spec: {workloadType: deployment, resources: []}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: cart, namespace: shop}
spec: {componentType: deployment/web}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: cart, namespace: shop}
spec: {image: cart}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Release
metadata: {name: cart-1, namespace: shop}
spec:
  component: {name: cart, content: {apiVersion: openchoreo.dev/v1alpha1, kind: Component, metadata: {name: cart}, spec: {componentType: deployment/web}}}
  componentTypeDefinition: {name: web, content: {apiVersion: openchoreo.dev/v1alpha1, kind: ComponentTypeDefinition, metadata: {name: web}, spec: {workloadType: deployment, resources: []}}}
  workload: {apiVersion: openchoreo.dev/v1alpha1, kind: Workload, metadata: {name: cart}, spec: {image: cart}}
";

const PIN: &str = "apiVersion: openchoreo.dev/v1alpha1
kind: ReleasePin
metadata: {name: cart-dev, namespace: shop, labels: {openchoreo.dev/component: cart, openchoreo.dev/environment: dev}}
spec: {component: cart, environment: dev, releaseRef: {name: cart-1}}
";

/// A repository for a test, and a fake git that records its arguments.
struct Shop {
    place: tempfile::TempDir,
    root: PathBuf,
    environment: Environment,
}

impl Shop {
    fn open() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("deploy");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("objects.yaml"), OBJECTS).unwrap();
        std::fs::write(root.join("pin.yaml"), PIN).unwrap();
        let variable = |name: &str, value: OsString| (OsString::from(name), value);
        let system = std::env::var_os("PATH").unwrap();
        let git = std::env::split_paths(&system).map(|folder| folder.join("git"));
        let git = git.into_iter().find(|file| file.is_file()).unwrap();
        let bin = place.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        // The script writes each argument to a file, and a separator at the end of each call.
        let script = format!(
            "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\" >> {0}; done\nexec {1} \"$@\"\n",
            place.path().join("words").display(),
            git.display()
        );
        std::fs::write(bin.join("git"), script).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bin.join("git"), mode).unwrap();
        let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&system)));
        let environment = Environment {
            home: Some(place.path().to_owned()),
            cache_dir: Some(place.path().join("cache")),
            config_dir: Some(place.path().join("config")),
            working_dir: Some(root.clone()),
            user: "ana".to_owned(),
            variables: [
                variable("HOME", place.path().into()),
                variable("GIT_CONFIG_NOSYSTEM", "1".into()),
                variable("GIT_SSH_COMMAND", "false".into()),
                variable("PATH", path.unwrap()),
            ]
            .into(),
            ..Environment::default()
        };
        let shop = Self {
            place,
            root,
            environment,
        };
        shop.git(&["init", "-q", "-b", "main"]);
        shop.git(&["config", "user.name", "Ana"]);
        shop.git(&["config", "user.email", "ana@example.com"]);
        shop.git(&["config", "protocol.ext.allow", "always"]);
        shop.git(&["remote", "add", "origin", "../origin.git"]);
        shop.git(&["add", "-A"]);
        shop.git(&["commit", "-q", "-m", "begin"]);
        shop
    }

    fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(&self.root).args(words).env_clear();
        let output = command.envs(&self.environment.variables).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs a bowline command in this process. Returns false if the command fails.
    async fn runs(&self, words: &[&str]) -> bool {
        let words = std::iter::once("bowline").chain(words.iter().copied());
        let words: Vec<OsString> = words.map(OsString::from).collect();
        let Ok(cli) = parsed(&words) else {
            return false;
        };
        let verb = cli.verb.unwrap();
        let options = Options {
            kinds: required::kinds(&verb),
            ..Options::from(cli.global)
        };
        run(verb, &options, &self.environment).await.is_ok()
    }

    /// Returns the arguments that the fake git has got since the previous call of this function.
    fn words(&self) -> Vec<String> {
        let file = self.place.path().join("words");
        let words = std::fs::read(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        let words = String::from_utf8_lossy(&words).into_owned();
        words.split('\0').map(str::to_owned).collect()
    }
}

/// Returns values that git, ssh or a shell could treat as an option or a command.
fn values(mark: &Path) -> Vec<String> {
    let mark = mark.display();
    vec![
        format!("--upload-pack=touch {mark};"),
        format!("--receive-pack=touch {mark};"),
        format!("--output={mark}"),
        format!("-ccore.fsmonitor=touch {mark}"),
        format!("-oProxyCommand=touch {mark}"),
        format!("ext::touch {mark}"),
        format!("$(touch {mark})"),
        format!("`touch {mark}`;touch {mark}"),
        "--force".to_owned(),
        "--".to_owned(),
        "-".to_owned(),
        "a\n--force".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_a_parsed_flag_is_no_option_of_git() {
    let shop = Shop::open();
    let mark = shop.place.path().join("mark");
    let root = shop.root.to_str().unwrap().to_owned();
    let repo = ["--repo", &root];
    let promote = ["promote", "cart", "--from", "dev", "--to", "prod", "--yes"];
    let begin = shop.git(&["rev-parse", "HEAD"]);
    for value in values(&mark) {
        let given = |flag: &str| format!("{flag}={value}");
        // Create a directory with the value as its name, and use it as the repository.
        let directory = shop.place.path().join(value.replace('/', "_"));
        std::fs::create_dir_all(&directory).unwrap();
        let beside = format!("--repo={}", directory.display());
        let (remote, branch, base) = (given("--remote"), given("--branch"), given("--base"));
        let (own, reason, version) = (given("--repo"), given("--reason"), given("--version"));
        let (file, place) = (given("-f"), given("-e"));
        let lines: Vec<Vec<&str>> = vec![
            [&promote[..], &["--push", &remote], &repo].concat(),
            [&promote[..], &[&branch], &repo].concat(),
            [&promote[..], &["--push", &branch], &repo].concat(),
            [&["check", &base][..], &repo].concat(),
            vec!["status", &own],
            vec!["status", &beside],
            [&promote[..], &[&reason], &repo].concat(),
            [
                &["promote", "--from=dev", "--to=prod", "--yes"][..],
                &repo,
                &["--", &value],
            ]
            .concat(),
            [&["history", "cart", &place][..], &repo].concat(),
            [
                &["rollback", "cart", &place, "--to=cart-1", "--yes"][..],
                &repo,
            ]
            .concat(),
            [&["release", "create", "cart", &version][..], &repo].concat(),
            [&["release", "create", "cart", &file][..], &repo].concat(),
            [&["release", "create"][..], &repo, &["--", &value]].concat(),
        ];
        for line in lines {
            shop.words();
            shop.runs(&line).await;
            let words = shop.words();
            let became = |word: &&String| value.starts_with('-') && word.starts_with(&value);
            // bowline itself passes `--` and `-` to git, so the test cannot search for these values.
            let plain = ["--", "-"].contains(&value.as_str());
            let found = words.iter().find(became).filter(|_| !plain);
            assert_eq!(found, None, "{line:?}: {words:?}");
            assert!(!mark.exists(), "{line:?} ran a command");
            shop.git(&["reset", "-q", "--hard", &begin]);
            shop.git(&["clean", "-q", "-f", "-d"]);
        }
        // A layout file also contains values, because it chooses the paths of new files. So they are tested too.
        for path in [format!("{value}.yaml"), format!("{value}/{{name}}.yaml")] {
            let layout = serde_json::Value::from(path.as_str()).to_string();
            let layout = format!("[layout]\nReleasePin = {layout}\n");
            std::fs::write(shop.root.join(".bowline.toml"), layout).unwrap();
            shop.words();
            shop.runs(&[&promote[..], &repo].concat()).await;
            let words = shop.words();
            let became = |word: &&String| value.starts_with('-') && word.starts_with(&value);
            let plain = ["--", "-"].contains(&value.as_str());
            let found = words.iter().find(became).filter(|_| !plain);
            assert_eq!(found, None, "{path}: {words:?}");
            assert!(!mark.exists(), "{path} ran a command");
            shop.git(&["reset", "-q", "--hard", &begin]);
            shop.git(&["clean", "-q", "-f", "-d"]);
        }
    }
    // With normal values, the same commands succeed. This shows that the test reaches the right code.
    assert!(
        shop.runs(&[&promote[..], &["--reason=why"], &repo].concat())
            .await
    );
    assert_ne!(shop.git(&["rev-parse", "HEAD"]), begin);
}
