//! The targets on which tests run: an embedded API, a namespace of a real cluster, or the files of a git work
//! tree.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bowline::connect::{self, Connection, Environment, Repository};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use kube_embedded::{Embedded, User};
use serde_json::json;

use crate::cluster::{ADMIN, Cluster, Options};

/// The kind of the target on which a test runs.
#[derive(Clone)]
pub enum Place {
    Embedded,
    Cluster(Arc<Cluster>),
    Repository,
}

impl Place {
    /// Starts a real cluster with bowline's kinds and policies. Returns None if the programs of a cluster are
    /// missing.
    pub async fn cluster() -> Option<Self> {
        let cluster = Cluster::start(Options::default()).await?;
        crate::cluster::install_bowline(&cluster.client()).await;
        Some(Self::Cluster(Arc::new(cluster)))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Cluster(_) => "cluster",
            Self::Repository => "repository",
        }
    }
}

/// The target that one test uses.
pub struct Target {
    pub name: &'static str,
    /// The namespace that only this test uses.
    pub namespace: String,
    /// The home directory of the test's users. It also contains the embedded store or the work tree, if the
    /// target is one.
    pub home: tempfile::TempDir,
    backing: Backing,
}

enum Backing {
    Embedded(Embedded),
    Cluster(Arc<Cluster>),
    Repository(Box<Connection>),
}

impl Target {
    pub async fn new(place: &Place, proof: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut namespace = proof.replace("::", "-").replace('_', "-");
        namespace.truncate(50);
        let namespace = namespace.trim_end_matches('-').to_owned();
        let backing = match place {
            Place::Embedded => {
                let file = home.path().join("store.db");
                Backing::Embedded(bowline::fixture::store::open(&file, ADMIN).await)
            }
            Place::Cluster(cluster) => Backing::Cluster(cluster.clone()),
            Place::Repository => {
                let connection = work_tree(home.path(), &namespace).await;
                Backing::Repository(Box::new(connection))
            }
        };
        let target = Self {
            name: place.name(),
            namespace,
            home,
            backing,
        };
        // A repository needs no namespace objects, because its files name the namespaces.
        if target.repository().is_some() {
            return target;
        }
        let own = Namespace {
            metadata: ObjectMeta {
                name: Some(target.namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(target.client());
        namespaces
            .create(&PostParams::default(), &own)
            .await
            .unwrap();
        target
    }

    /// Returns a client with all permissions.
    pub fn client(&self) -> Client {
        self.client_of(ADMIN)
    }

    /// Returns a client for a user with this name and all permissions.
    pub fn client_of(&self, user: &str) -> Client {
        match &self.backing {
            Backing::Embedded(embedded) => {
                let user = User {
                    name: user.to_owned(),
                    groups: vec!["system:masters".to_owned()],
                };
                embedded.as_user(user).client(&self.namespace)
            }
            Backing::Cluster(cluster) => {
                let mut config = cluster.config(ADMIN);
                config.default_namespace = self.namespace.clone();
                if user != ADMIN {
                    config.auth_info.impersonate = Some(user.to_owned());
                    config.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
                }
                Client::try_from(config).unwrap()
            }
            Backing::Repository(connection) => connection.client.clone(),
        }
    }

    /// Returns the work tree; None if the target is not a repository. A repository has no status, no claims
    /// and no snapshots. Its audit trail is the git log.
    pub fn repository(&self) -> Option<&Repository> {
        match &self.backing {
            Backing::Repository(connection) => connection.repository.as_ref(),
            _ => None,
        }
    }

    /// On a repository, commits the changes that came through the API, so that the API uses the new commit.
    /// Does nothing on other targets.
    pub async fn settle(&self) {
        let Some(repository) = self.repository() else {
            return;
        };
        if !self.git("status --porcelain").is_empty() {
            self.git("add -A");
            self.git("commit -q -m by-hand");
        }
        repository.sync().await.unwrap();
    }

    /// Runs git in the work tree of a repository, and returns its output.
    pub fn git(&self, line: &str) -> String {
        git(self.home.path(), line)
    }

    /// Gives users all permissions in the namespace of the test. Does nothing on an embedded store, because
    /// all users have all permissions there.
    pub async fn grant(&self, users: impl Iterator<Item = String>) {
        let Backing::Cluster(cluster) = &self.backing else {
            return;
        };
        let subject =
            |name| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name});
        let binding = json!({
            "metadata": {"name": "users"},
            "roleRef": {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"},
            "subjects": users.map(subject).collect::<Vec<_>>(),
        });
        let binding: RoleBinding = serde_json::from_value(binding).unwrap();
        let bindings: Api<RoleBinding> = Api::default_namespaced(self.client());
        bindings
            .create(&PostParams::default(), &binding)
            .await
            .unwrap();
        self.until_granted(cluster).await;
    }

    /// Waits until the server applies new permissions, because it notices a new binding only after some time.
    async fn until_granted(&self, cluster: &Cluster) {
        let mut config = cluster.config(ADMIN);
        config.auth_info.impersonate = Some("operator-0".to_owned());
        let reviews: Api<SelfSubjectAccessReview> = Api::all(Client::try_from(config).unwrap());
        let question = json!({"spec": {"resourceAttributes": {"namespace": self.namespace, "verb": "promote", "group": "openchoreo.dev", "resource": "environments"}}});
        let question = serde_json::from_value(question).unwrap();
        let params = PostParams::default();
        while !reviews
            .create(&params, &question)
            .await
            .unwrap()
            .status
            .is_some_and(|status| status.allowed)
        {}
    }

    /// Returns the command line flags that select this target, without a proxy.
    pub fn flags(&self) -> Vec<String> {
        let target = match &self.backing {
            Backing::Embedded(_) => format!("--embedded={}", self.store().display()),
            Backing::Cluster(cluster) => format!("--kubeconfig={}", cluster.kubeconfig().display()),
            Backing::Repository(_) => format!("--repo={}", tree(self.home.path()).display()),
        };
        vec![target, format!("--namespace={}", self.namespace)]
    }

    #[allow(dead_code)] // only proofs about controllers run it
    /// Returns a kubectl command with all permissions. Panics if the target is not a cluster.
    pub fn kubectl(&self) -> Command {
        match &self.backing {
            Backing::Cluster(cluster) => cluster.kubectl(),
            _ => panic!("kubectl is for a cluster"),
        }
    }

    fn store(&self) -> PathBuf {
        self.home.path().join("store.db")
    }

    /// Changes an audit entry directly in the storage of the server, without the API.
    pub async fn rewrite(&self, entry: &str, change: impl Fn(&str) -> String) {
        match &self.backing {
            Backing::Embedded(_) => rewrite_row(&self.store(), &self.namespace, entry, change),
            Backing::Cluster(cluster) => {
                let key = format!(
                    "/registry/bowline.dev/auditentries/{}/{entry}",
                    self.namespace
                );
                cluster.rewrite(&key, change).await;
            }
            Backing::Repository(_) => panic!("the audit trail of a repository is the git log"),
        }
    }
}

fn tree(home: &Path) -> PathBuf {
    home.join("deploy")
}

fn git(home: &Path, line: &str) -> String {
    let output = Command::new("git")
        .args(line.split_whitespace())
        .current_dir(tree(home))
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {line}: {said}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.trim_end().to_owned()
}

/// Creates a git work tree, and a bare repository as its remote. Returns a connection whose objects are the
/// files of the work tree.
async fn work_tree(home: &Path, namespace: &str) -> Connection {
    std::fs::create_dir_all(tree(home)).unwrap();
    for line in [
        "init -q -b main",
        "config user.name Ana",
        "config user.email ana@example.com",
        "commit -q --allow-empty -m begin",
        "clone -q --bare . ../origin.git",
        "remote add origin ../origin.git",
        "fetch -q origin",
        "branch -q -u origin/main",
    ] {
        git(home, line);
    }
    let options = connect::Options {
        repo: Some(tree(home)),
        namespace: Some(namespace.to_owned()),
        ..connect::Options::default()
    };
    let variables = [
        ("HOME".into(), home.into()),
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
    ];
    let environment = Environment {
        user: ADMIN.to_owned(),
        variables: variables.into(),
        ..Environment::default()
    };
    connect::connect(&options, &environment).await.unwrap()
}

/// Changes an object directly in the SQLite file of an embedded store. The newest row of the object contains
/// its metadata and its other fields, each as JSON.
fn rewrite_row(
    file: &std::path::Path,
    namespace: &str,
    name: &str,
    change: impl Fn(&str) -> String,
) {
    let store = rusqlite::Connection::open(file).unwrap();
    let newest = "SELECT max(id) FROM log WHERE resource LIKE '%auditentries%' AND namespace = ? AND name = ?";
    let id: i64 = store
        .query_row(newest, [namespace, name], |row| row.get(0))
        .unwrap();
    let rest: Vec<u8> = store
        .query_row("SELECT rest FROM log WHERE id = ?", [id], |row| row.get(0))
        .unwrap();
    let changed = change(std::str::from_utf8(&rest).unwrap());
    let update = "UPDATE log SET rest = ? WHERE id = ?";
    store
        .execute(update, rusqlite::params![changed.as_bytes(), id])
        .unwrap();
}
