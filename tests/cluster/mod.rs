//! Starts a real Kubernetes API for tests and benchmarks: etcd, kube-apiserver and, on request,
//! kube-controller-manager. The servers use free ports on loopback, and one temporary directory.
//!
//! No containers run in the cluster. A test can start a fake node, which only marks its pods as ready.

#![allow(dead_code)] // each test program uses only a part of it

pub mod binaries;
mod install;
pub mod missing;
mod node;
mod server;

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use base64::Engine;
use binaries::Binaries;
use kube::config::AuthInfo;
use node::FakeNode;
use ring::signature::KeyPair;
use server::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[allow(unused_imports)] // as above
pub use install::{install_bowline, install_one, until_admitted};

/// The name of the user with all permissions.
pub const ADMIN: &str = "admin";
/// The names of the users without permissions. A test grants the permissions that it needs.
pub const USERS: [&str; 4] = ["ana", "bob", "cleo", "dan"];

/// The Kubernetes controllers that run if a test asks for controllers.
const CONTROLLERS: [&str; 2] = ["garbage-collector-controller", "namespace-controller"];
/// Further Kubernetes controllers, which create and count pods and release their volume claims.
const OF_WORKLOADS: [&str; 8] = [
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "disruption-controller",
    "persistentvolumeclaim-protection-controller",
];

/// The options with which a test cluster starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether to run the garbage collector and the namespace controller.
    pub controllers: bool,
    /// Whether etcd waits for the disk on every write, as it does in production.
    pub durable: bool,
}

/// A running test cluster. Dropping the value stops the servers and removes their directory.
pub struct Cluster {
    /// The URL of the kube-apiserver.
    pub url: String,
    etcd_port: u16,
    kubectl: PathBuf,
    node: Option<FakeNode>,
    servers: Vec<Server>,
    directory: tempfile::TempDir,
    binaries: Binaries,
}

/// Finds the programs of a cluster. If one is missing, prints a line with the reason and returns None.
///
/// # Panics
///
/// Panics in CI if a program is missing; see [`missing::skip`].
fn find() -> Option<Binaries> {
    Binaries::find()
        .inspect_err(|why| missing::skip("everything that needs a real cluster", why))
        .ok()
}

impl Cluster {
    /// Starts a cluster and waits until its API is ready. Returns None if the programs of a cluster are
    /// missing.
    ///
    /// # Panics
    ///
    /// Panics if a server does not start. The message ends with the last lines of that server's log.
    pub async fn start(options: Options) -> Option<Self> {
        let binaries = find()?;
        // Another process may take a port before the server binds it.
        for _ in 0..2 {
            if let Ok(cluster) = Self::attempt(&binaries, options).await {
                return Some(cluster);
            }
        }
        match Self::attempt(&binaries, options).await {
            Ok(cluster) => Some(cluster),
            Err(why) => panic!("the test cluster did not start: {why}"),
        }
    }

    async fn attempt(binaries: &Binaries, options: Options) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("bowline-cluster-")
            .tempdir()
            .map_err(|error| error.to_string())?;
        let [client_port, peer_port, api_port] = free_ports();
        let mut cluster = Self {
            url: format!("https://127.0.0.1:{api_port}"),
            etcd_port: client_port,
            kubectl: binaries.kubectl.clone(),
            node: None,
            servers: Vec::new(),
            directory,
            binaries: binaries.clone(),
        };
        cluster.write_credentials();
        cluster.start_etcd(client_port, peer_port, options.durable);
        cluster.start_apiserver(client_port, api_port);
        cluster.wait_until_ready().await?;
        if options.controllers {
            cluster.start_controllers();
        }
        Ok(cluster)
    }

    fn start_etcd(&mut self, client_port: u16, peer_port: u16, durable: bool) {
        let client = format!("http://127.0.0.1:{client_port}");
        let peer = format!("http://127.0.0.1:{peer_port}");
        let arguments = [
            format!("--data-dir={}", self.path("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            format!("--unsafe-no-fsync={}", !durable),
        ];
        let server = Server::start(
            "etcd",
            &self.binaries.etcd,
            &arguments,
            self.directory.path(),
        );
        self.servers.push(server);
    }

    fn start_apiserver(&mut self, etcd_port: u16, api_port: u16) {
        let private = self.path("service-account.key");
        let public = self.path("service-account.pub");
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={api_port}"),
            format!("--cert-dir={}", self.path("certificates").display()),
            format!("--token-auth-file={}", self.path("tokens.csv").display()),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-signing-key-file={}", private.display()),
            format!("--service-account-key-file={}", public.display()),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            // The plugin ServiceAccount waits for service accounts, which no controller creates here. The
            // plugin PersistentVolumeClaimResize asks a storage class, which does not exist here.
            "--disable-admission-plugins=ServiceAccount,PersistentVolumeClaimResize".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            // ServiceAccounts have no watch cache, so that a compaction of etcd has an immediate effect on
            // their watches.
            "--watch-cache-sizes=serviceaccounts#0".to_owned(),
            "--max-requests-inflight=2000".to_owned(),
            "--max-mutating-requests-inflight=1000".to_owned(),
            "--enable-priority-and-fairness=false".to_owned(),
        ];
        let server = Server::start(
            "kube-apiserver",
            &self.binaries.kube_apiserver,
            &arguments,
            self.directory.path(),
        );
        self.servers.push(server);
    }

    /// Kills the API server. etcd keeps running, so no data is lost.
    pub fn kill_apiserver(&mut self) {
        self.servers
            .retain(|server| server.name() != "kube-apiserver");
    }

    /// Starts the API server again on the same port, and waits until it is ready.
    ///
    /// # Panics
    /// Panics if the API server does not start.
    pub async fn restart_apiserver(&mut self) {
        let port = self
            .url
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        self.start_apiserver(self.etcd_port, port.expect("a port in the address"));
        if let Err(why) = self.wait_until_ready().await {
            panic!("the API server did not come back: {why}");
        }
    }

    /// Starts the garbage collector and the namespace controller.
    ///
    /// The garbage collector looks for new kinds only every 30 seconds. So a test must install its kinds
    /// before this call, if it needs the deletion of their dependents.
    pub fn start_controllers(&mut self) {
        self.start_manager(&CONTROLLERS);
    }

    /// Starts the garbage collector, the namespace controller and the workload controllers. Also starts a
    /// fake node, which marks its pods as ready at once.
    pub async fn start_node(&mut self) {
        self.start_manager(&[&CONTROLLERS[..], &OF_WORKLOADS].concat());
        let (client, kubeconfig) = (self.client(), self.kubeconfig());
        let node = FakeNode::start(client, &kubeconfig, self.directory.path()).await;
        self.node = Some(node);
    }

    fn start_manager(&mut self, controllers: &[&str]) {
        let kubeconfig = self.kubeconfig();
        let arguments = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--controllers={}", controllers.join(",")),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ];
        let server = Server::start(
            "kube-controller-manager",
            &self.binaries.kube_controller_manager,
            &arguments,
            self.directory.path(),
        );
        self.servers.push(server);
    }

    async fn wait_until_ready(&mut self) -> Result<(), String> {
        let client = self.client();
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let request = http::Request::get("/readyz")
                .body(Vec::new())
                .map_err(|error| error.to_string())?;
            let answer = client.request_text(request).await;
            if matches!(answer.as_deref(), Ok("ok")) {
                return Ok(());
            }
            let ended = self
                .servers
                .iter_mut()
                .any(|server| server.ended().is_some());
            if ended || Instant::now() > deadline {
                let logs: Vec<String> = self.servers.iter().map(Server::tail).collect();
                let why = answer.unwrap_or_else(|error| error.to_string());
                return Err(format!("/readyz answered: {why}\n{}", logs.join("\n")));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns a client for the user with all permissions.
    pub fn client(&self) -> kube::Client {
        self.client_as(ADMIN)
    }

    /// Returns a client for a user: one of [`USERS`], or [`ADMIN`].
    pub fn client_as(&self, user: &str) -> kube::Client {
        kube::Client::try_from(self.config(user)).expect("a client for a loopback address")
    }

    /// Returns the connection settings for a user.
    pub fn config(&self, user: &str) -> kube::Config {
        let mut config = kube::Config::new(self.url.parse().expect("a loopback address"));
        config.accept_invalid_certs = true;
        // The client does not retry, because a test must see the first answer, even if it is 504.
        config.default_retry = false;
        config.auth_info = AuthInfo {
            token: Some(self.token(user).into()),
            ..AuthInfo::default()
        };
        config
    }

    /// Returns the bearer token of a user.
    pub fn token(&self, user: &str) -> String {
        format!("token-of-{user}")
    }

    /// Writes a kubeconfig for the user with all permissions, and returns its path.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_of(ADMIN)
    }

    /// Writes a kubeconfig for a user, and returns its path.
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "insecure-skip-tls-verify": true}}],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": "default"}}],
            "current-context": "test",
        });
        let path = self.path(&format!("kubeconfig-{user}"));
        // The file is replaced atomically, because other tests read it at the same time.
        let mut new = tempfile::NamedTempFile::new_in(self.directory.path())
            .expect("a new file in the cluster's directory");
        std::io::Write::write_all(&mut new, kubeconfig.to_string().as_bytes())
            .expect("a kubeconfig in the cluster's directory");
        new.persist(&path).expect("a kubeconfig by its name");
        path
    }

    /// Returns a kubectl command that uses this cluster, and no configuration of the developer.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.directory.path())
            .env("KUBECACHEDIR", self.path("kubectl-cache"));
        command
    }

    /// Compacts etcd, which removes all revisions but the newest one.
    pub async fn compact(&self) {
        let range = self
            .etcd("range", &serde_json::json!({"key": "AA==", "limit": 1}))
            .await;
        let revision = range["header"]["revision"].clone();
        assert!(revision.is_string(), "etcd told no revision: {range}");
        let compacted = self
            .etcd(
                "compaction",
                &serde_json::json!({"revision": revision, "physical": true}),
            )
            .await;
        assert!(
            compacted["header"].is_object(),
            "etcd did not compact: {compacted}"
        );
    }

    /// Changes the value of a key in etcd directly, without the API server.
    pub async fn rewrite(&self, key: &str, change: impl Fn(&str) -> String) {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let found = self
            .etcd("range", &serde_json::json!({"key": encode(key)}))
            .await;
        let value = found["kvs"][0]["value"].as_str().unwrap_or_default();
        let value = base64::engine::general_purpose::STANDARD.decode(value);
        let value = String::from_utf8(value.expect("etcd answers in base64"));
        let value = value.expect("custom resources are stored as JSON");
        assert!(!value.is_empty(), "etcd has no {key}: {found}");
        self.store(key, &change(&value)).await;
    }

    /// Sets the value of a key in etcd directly, without the API server.
    pub async fn store(&self, key: &str, value: &str) {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let put = serde_json::json!({"key": encode(key), "value": encode(value)});
        let put = self.etcd("put", &put).await;
        assert!(put["header"].is_object(), "etcd did not write: {put}");
    }

    // Calls the JSON gateway of etcd with one plain HTTP/1.0 request, which needs no client library.
    async fn etcd(&self, call: &str, body: &serde_json::Value) -> serde_json::Value {
        let body = body.to_string();
        let request = format!(
            "POST /v3/kv/{call} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.etcd_port))
            .await
            .expect("etcd answers");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("etcd reads the request");
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .await
            .expect("etcd's answer is text");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or(serde_json::Value::String(answer))
    }

    fn write_credentials(&self) {
        let mut tokens = format!("{},{ADMIN},{ADMIN},\"system:masters\"\n", self.token(ADMIN));
        for user in USERS {
            tokens.push_str(&format!("{},{user},{user},\n", self.token(user)));
        }
        fs::write(self.path("tokens.csv"), tokens).expect("a token file");
        let (private, public) = signing_key();
        fs::write(self.path("service-account.key"), private).expect("a signing key");
        fs::write(self.path("service-account.pub"), public).expect("a public key");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Makes a P-256 key pair, in the two PEM formats that kube-apiserver needs.
fn signing_key() -> (String, String) {
    // The bytes of a SubjectPublicKeyInfo before the uncompressed P-256 point.
    const PREFIX: [u8; 26] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
        0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ];
    let algorithm = &ring::signature::ECDSA_P256_SHA256_ASN1_SIGNING;
    let random = ring::rand::SystemRandom::new();
    let document = ring::signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random)
        .expect("a key from the system's randomness");
    let pair = ring::signature::EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random)
        .expect("the key that was just made");
    let public = [&PREFIX[..], pair.public_key().as_ref()].concat();
    (
        pem("PRIVATE KEY", document.as_ref()),
        pem("PUBLIC KEY", &public),
    )
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

fn free_ports<const N: usize>() -> [u16; N] {
    // All listeners stay open until all ports are known, so that no port is returned twice.
    let listeners: [TcpListener; N] = std::array::from_fn(|_| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port")
    });
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}
