//! A small example in an embedded store. Its only component is a ConfigMap, so a rollout takes little time.

use std::fs::File;
use std::path::{Path, PathBuf};

use bowline::engine::controller_status;

use super::run;

const WORLD: &str = r#"
{apiVersion: openchoreo.dev/v1alpha1, kind: DataPlane, metadata: {name: d}, spec: {embedded: {}}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Environment, metadata: {name: dev}, spec: {dataPlaneRef: {name: d}, namespace: shop-dev}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Environment, metadata: {name: staging}, spec: {dataPlaneRef: {name: d}, namespace: shop-staging}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Environment, metadata: {name: prod}, spec: {dataPlaneRef: {name: d}, namespace: shop-prod, isProduction: true}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: DeploymentPipeline
metadata: {name: default}
spec:
  promotionPaths:
    - {sourceEnvironmentRef: {name: dev}, targetEnvironmentRefs: [{name: staging}]}
    - {sourceEnvironmentRef: {name: staging}, targetEnvironmentRefs: [{name: prod}]}
---
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web}
spec:
  workloadType: deployment
  resources:
    - id: config
      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${metadata.name}"}, data: {image: "${workload.image}"}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Component, metadata: {name: cart}, spec: {componentType: deployment/web}}
---
{apiVersion: openchoreo.dev/v1alpha1, kind: Workload, metadata: {name: cart}, spec: {image: "shop/cart:1"}}
"#;

/// An embedded store with the small example, and with two releases of the component.
pub struct Small {
    pub home: tempfile::TempDir,
    pub store: PathBuf,
}

impl Small {
    pub fn new() -> Small {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join("store.db");
        let small = Small { home, store };
        let file = small.write("world.yaml", WORLD);
        small.done(&format!("apply -f {file}"));
        for version in ["1", "2"] {
            small.done(&format!("release create cart --version {version}"));
        }
        small
    }

    /// Locks the controllers of the store, so that commands do not run them. Dropping the returned file
    /// releases the lock.
    pub fn keep_controllers_out(&self) -> File {
        let lock = File::create(controller_status::lock_file(&self.store)).unwrap();
        lock.lock().unwrap();
        lock
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let file = self.home.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    pub fn flag(&self) -> String {
        format!("--embedded={}", self.store.display())
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn run(&self, line: &str) -> (i32, String, String) {
        let flag = self.flag();
        let words: Vec<&str> = line.split_whitespace().chain([flag.as_str()]).collect();
        run(self.home(), &words)
    }

    /// Runs a command line, which must exit with `code`. Returns stdout and stderr.
    pub fn ends(&self, line: &str, code: i32) -> (String, String) {
        let (found, out, err) = self.run(line);
        assert_eq!(found, code, "{line}: {out}{err}");
        (out, err)
    }

    /// Runs a command line, which must exit with 0. Returns stdout and stderr.
    pub fn done(&self, line: &str) -> (String, String) {
        self.ends(line, 0)
    }
}
