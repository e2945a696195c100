//! Runs a controller as a separate process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use bowline::api::labels;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::HANG;
use crate::place::Target;

/// A running controller process. Dropping the value kills the process.
pub struct Process {
    name: String,
    child: Child,
    address: String,
    log: PathBuf,
}

impl Process {
    /// Starts a controller for a target. The lease lasts one second, unless `flags` set another duration.
    pub async fn start(target: &Target, name: &str, flags: Vec<String>) -> Self {
        let mut own = vec!["--listen=127.0.0.1:0".to_owned()];
        let is_lease = |flag: &String| flag.starts_with("--lease-duration");
        if !flags.iter().any(is_lease) {
            own.push("--lease-duration=1s".to_owned());
        }
        Self::start_with(target, name, [own, flags].concat()).await
    }

    /// Starts a controller with exactly these flags. They must make the controller choose a free port.
    pub async fn start_with(target: &Target, name: &str, flags: Vec<String>) -> Self {
        let home = target.home.path().join(name);
        std::fs::create_dir_all(&home).unwrap();
        let log = home.join("log");
        let errors = File::options()
            .append(true)
            .create(true)
            .open(&log)
            .unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_bowline"))
            .arg("controller")
            .args(flags)
            .current_dir(&home)
            .env_clear()
            .env("HOME", &home)
            .env("HOSTNAME", name)
            .env("USER", "ana")
            .env("PATH", std::env::var_os("PATH").unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let first = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            line
        });
        let first = first.await.unwrap();
        let address = first.trim().strip_prefix("listening on http://");
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let address = address
            .unwrap_or_else(|| panic!("{first}{}", said()))
            .to_owned();
        Self {
            name: name.to_owned(),
            child,
            address,
            log,
        }
    }

    /// Returns what the process has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the process with SIGTERM, and waits until it has ended.
    pub async fn stop(mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.unwrap().success());
        tokio::task::spawn_blocking(move || self.child.wait().unwrap())
            .await
            .unwrap()
    }

    /// Sends a GET request to the process. Returns the status code and the body of the answer.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    }

    /// Waits until this process holds the lease.
    pub async fn until_it_leads(&self, target: &Target) {
        let leases: Api<Lease> = Api::namespaced(target.client(), labels::SYSTEM_NAMESPACE);
        let own = format!("{}_", self.name);
        let leads = |lease: Option<&Lease>| {
            let spec = lease.and_then(|lease| lease.spec.as_ref());
            let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
            holder.is_some_and(|holder| holder.starts_with(&own))
        };
        let leads = await_condition(leases, labels::CONTROLLER_LEASE, leads);
        let leads = tokio::time::timeout(HANG, leads).await;
        leads
            .unwrap_or_else(|_| panic!("{} does not lead: {}", self.name, self.log()))
            .unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates the namespace that contains the lease, because no `bowline install` has created it.
pub async fn system_namespace(target: &Target) {
    let namespaces: Api<Namespace> = Api::all(target.client());
    let namespace = json!({"metadata": {"name": labels::SYSTEM_NAMESPACE}});
    let namespace = serde_json::from_value(namespace).unwrap();
    // The error is ignored, because another test may have created the namespace.
    let _ = namespaces.create(&PostParams::default(), &namespace).await;
}

/// Returns the last lines in the newest log of a controller process, for the message of a failed test.
pub fn logs(target: &Target) -> String {
    let homes = std::fs::read_dir(target.home.path()).unwrap();
    let logs = homes.filter_map(|home| {
        let log = home.unwrap().path().join("log");
        let written = log.metadata().ok()?.modified().ok()?;
        Some((written, log))
    });
    let Some((_, newest)) = logs.max() else {
        return "nobody logged anything".to_owned();
    };
    let text = std::fs::read_to_string(&newest).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(60)..];
    format!(
        "--- last lines of {}:\n{}",
        newest.display(),
        last.join("\n")
    )
}
