//! Tests with a git work tree as the target. They run the program as a user does.

mod actions;
mod api;
mod beside;
mod checks;
mod clones;
mod forms;
mod history;
mod hooks;
mod interrupted;
mod lines;
mod options;
mod places;
mod refusals;
mod remotes;
mod rewritten;
mod unread;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A git repository with the configuration of a shop, and a user who works in its work tree.
pub struct Shop {
    pub place: TempDir,
    pub root: PathBuf,
    /// The flags that every run of bowline gets in addition.
    pub flags: Vec<String>,
    /// The directories at the start of the PATH in every run of bowline.
    pub path: Vec<PathBuf>,
}

/// The exit code and the output of one run of bowline.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];

impl Shop {
    /// Creates an empty repository.
    pub fn empty() -> Self {
        let place = TempDir::new().unwrap();
        let root = place.path().join("deploy");
        std::fs::create_dir_all(&root).unwrap();
        let shop = Self {
            place,
            root,
            flags: Vec::new(),
            path: Vec::new(),
        };
        shop.git("init -q -b main");
        shop.git("config user.name Ana");
        shop.git("config user.email ana@example.com");
        shop
    }

    /// Creates a repository with environments, a pipeline, and these components. Each component has the
    /// releases 1 to 3; release 2 runs in dev, and release 1 in the other environments.
    pub fn open(components: &[&str]) -> Self {
        let shop = Self::empty();
        shop.write("environments/all.yaml", &environments());
        shop.write("definitions/web.yaml", TYPE);
        for name in components {
            shop.write(&format!("components/{name}.yaml"), &component(name));
            for version in 1..=3 {
                let file = format!("releases/{name}/{name}-{version}.yaml");
                shop.write(&file, &release(name, version));
            }
            for (environment, version) in ENVIRONMENTS.into_iter().zip([2, 1, 1]) {
                shop.write(
                    &format!("pins/{environment}/{name}.yaml"),
                    &pin(name, environment, &format!("{name}-{version}")),
                );
            }
        }
        shop.commit("begin");
        shop
    }

    pub fn write(&self, file: &str, text: &str) {
        let file = self.root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.root.join(file)).unwrap()
    }

    pub fn git(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.git_words(&words)
    }

    pub fn git_words(&self, words: &[&str]) -> String {
        let output = self
            .command(Command::new("git"))
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {said}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Commits all changes in the work tree, with this subject line.
    pub fn commit(&self, subject: &str) {
        self.git("add -A");
        self.git_words(&["commit", "-q", "-m", subject]);
    }

    pub fn head(&self) -> String {
        self.git("rev-parse HEAD")
    }

    /// Returns the uncommitted changes of the work tree, in the format of `git status --porcelain`.
    pub fn status(&self) -> String {
        self.git("status --porcelain")
    }

    fn command(&self, mut command: Command) -> Command {
        let system = std::env::var_os("PATH").unwrap();
        let path = self
            .path
            .iter()
            .cloned()
            .chain(std::env::split_paths(&system));
        command
            .current_dir(&self.root)
            .env_clear()
            .env("HOME", self.place.path())
            .env("USER", "ana")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PATH", std::env::join_paths(path).unwrap())
            .stdin(Stdio::null());
        command
    }

    pub fn start(&self, line: &str) -> Child {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.start_words(&words)
    }

    fn start_words(&self, words: &[&str]) -> Child {
        let program = self.command(Command::new(env!("CARGO_BIN_EXE_bowline")));
        let mut program = program;
        program
            .args(words)
            .arg("--repo")
            .arg(&self.root)
            .args(&self.flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub fn run(&self, line: &str) -> Ran {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.run_words(&words)
    }

    pub fn run_words(&self, words: &[&str]) -> Ran {
        let Output {
            status,
            stdout,
            stderr,
        } = self.start_words(words).wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran {
            code: status.code().unwrap_or(-1),
            out: text(stdout),
            err: text(stderr),
        }
    }

    /// Runs a command line of bowline. It must exit with `code`, and its output must contain `words`.
    pub fn ends(&self, line: &str, code: i32, words: &str) -> Ran {
        let ran = self.run(line);
        let said = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, code, "{line}: {said}");
        assert!(said.contains(words), "{line}: no {words:?} in {said}");
        ran
    }

    /// Returns each changed file of the last commit, with the numbers of added and removed lines.
    pub fn numstat(&self) -> Vec<(String, u64, u64)> {
        let said = self.git("show --numstat --format= HEAD");
        said.lines()
            .map(|line| {
                let words: Vec<&str> = line.split('\t').collect();
                (
                    words[2].to_owned(),
                    words[0].parse().unwrap(),
                    words[1].parse().unwrap(),
                )
            })
            .collect()
    }
}

pub const TYPE: &str = "apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web, namespace: shop}
spec:
  workloadType: deployment
  schema: {parameters: {replicas: \"integer | default=1\"}}
  resources:
    - id: config
      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${metadata.name}\"}, data: {image: \"${workload.image}\"}}
";

pub fn environments() -> String {
    let mut out = String::new();
    for name in ENVIRONMENTS {
        out += &format!(
            "---\napiVersion: openchoreo.dev/v1alpha1\nkind: Environment\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  dataPlaneRef: {{name: d}}\n  namespace: shop-{name}\n  isProduction: {}\n  requireReason: false\n",
            name == "prod"
        );
    }
    out += "---\napiVersion: openchoreo.dev/v1alpha1\nkind: DeploymentPipeline\nmetadata: {name: default, namespace: shop}\nspec:\n  promotionPaths:\n    - sourceEnvironmentRef: {name: dev}\n      targetEnvironmentRefs: [{name: staging}]\n    - sourceEnvironmentRef: {name: staging}\n      targetEnvironmentRefs: [{name: prod}]\n";
    out
}

pub fn component(name: &str) -> String {
    format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: Component\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{componentType: deployment/web}}\n---\napiVersion: openchoreo.dev/v1alpha1\nkind: Workload\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{image: \"shop/{name}:0\"}}\n"
    )
}

pub fn release(name: &str, version: u32) -> String {
    format!(
        "apiVersion: openchoreo.dev/v1alpha1
kind: Release
metadata:
  name: {name}-{version}
  namespace: shop
spec:
  component:
    name: {name}
    content: {{apiVersion: openchoreo.dev/v1alpha1, kind: Component, metadata: {{name: {name}}}, spec: {{componentType: deployment/web}}}}
  componentTypeDefinition:
    name: web
    content:
      apiVersion: openchoreo.dev/v1alpha1
      kind: ComponentTypeDefinition
      metadata: {{name: web}}
      spec:
        workloadType: deployment
        resources:
          - id: config
            template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: \"${{metadata.name}}\"}}, data: {{image: \"${{workload.image}}\"}}}}
  workload: {{apiVersion: openchoreo.dev/v1alpha1, kind: Workload, metadata: {{name: {name}}}, spec: {{image: \"shop/{name}:{version}\"}}}}
"
    )
}

pub fn pin(name: &str, environment: &str, release: &str) -> String {
    format!(
        "# Who may move it is in CODEOWNERS.
apiVersion: openchoreo.dev/v1alpha1
kind: ReleasePin
metadata:
  name: {name}-{environment}
  namespace: shop
  labels:
    openchoreo.dev/component: {name}
    openchoreo.dev/environment: {environment}
spec:
  component: {name}
  environment: {environment}
  releaseRef:
    name: {release} # moved by bowline
"
    )
}

/// Writes a shell script as an executable program into a directory. Returns its path.
pub fn program(directory: &Path, name: &str, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(directory).unwrap();
    let file = directory.join(name);
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}
