//! A proxy between a client and an API. It can drop or delay requests.
//!
//! The proxy accepts plain HTTP on loopback, so that both the program and the engine can reach any target
//! through it.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::place::Target;

/// A write request that passes the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The number of the write. It is unique in the test process.
    pub id: usize,
    /// The resource, in the plural, for example `releasepins`.
    pub resource: String,
    /// The method and the path, for example `PATCH /apis/...`.
    pub what: String,
    /// Whether the API has answered the write. False: the API has not received it yet.
    pub answered: bool,
    /// Whether the API has answered with a success.
    pub succeeded: bool,
}

/// A function that decides about each write twice: before the API receives it, and after the answer. True
/// lets it pass, false breaks the connection. The future may wait as long as the test needs.
pub type Gate = Arc<dyn Fn(Write) -> BoxFuture<'static, bool> + Send + Sync>;

/// A running proxy. Dropping it closes its connections.
pub struct Proxy {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy to the API of a client.
    pub async fn start(api: Client, gate: Gate) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(attend(stream, api.clone(), gate.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Proxy {
            address,
            _serving: serving,
        }
    }

    /// Returns a client that uses the proxy, with the namespace of a target.
    pub fn client(&self, target: &Target) -> Client {
        let mut config = kube::Config::new(format!("http://{}", self.address).parse().unwrap());
        config.default_namespace = target.namespace.clone();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Returns the flags with which the program uses the proxy.
    pub fn flags(&self, target: &Target) -> Vec<String> {
        let file = target
            .home
            .path()
            .join(format!("proxy-{}", self.address.port()));
        let server = format!("http://{}", self.address);
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": server}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody", "namespace": target.namespace}}],
            "current-context": "proxy",
        });
        fs::write(&file, kubeconfig.to_string()).unwrap();
        vec![format!("--kubeconfig={}", file.display())]
    }
}

async fn attend(stream: TcpStream, api: Client, gate: Gate) {
    let _ = stream.set_nodelay(true);
    let pass = hyper::service::service_fn(move |request| pass(request, api.clone(), gate.clone()));
    // The error is ignored, because the proxy breaks some connections on purpose.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), pass)
        .await;
}

async fn pass(
    request: Request<Incoming>,
    api: Client,
    gate: Gate,
) -> Result<Response<Body>, std::io::Error> {
    let broken = || std::io::Error::other("lost by the proxy");
    let write = write_of(&request);
    let (mut head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?;
    // The connection to the API sets its own values of these headers.
    for name in [header::HOST, header::CONTENT_LENGTH, header::CONNECTION] {
        head.headers.remove(name);
    }
    if let Some(write) = &write
        && !gate(write.clone()).await
    {
        return Err(broken());
    }
    let sent = Request::from_parts(head, Body::from(body.to_bytes()));
    let answer = api.send(sent).await.map_err(std::io::Error::other)?;
    if let Some(write) = write {
        let answered = Write {
            answered: true,
            succeeded: answer.status().is_success(),
            ..write
        };
        if !gate(answered).await {
            return Err(broken());
        }
    }
    Ok(answer)
}

/// Returns the write that a request makes. None: it is a read, or a review of the own user, which stores
/// nothing.
fn write_of(request: &Request<Incoming>) -> Option<Write> {
    let parts: Vec<&str> = request.uri().path().split('/').collect();
    let resource = match parts.as_slice() {
        ["", "apis", _, _, "namespaces", _, resource, ..]
        | ["", "api", _, "namespaces", _, resource, ..]
        | ["", "apis", _, _, resource, ..]
        | ["", "api", _, resource, ..] => resource,
        _ => return None,
    };
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    (writes && !resource.starts_with("selfsubject")).then(|| Write {
        id: NEXT.fetch_add(1, Ordering::SeqCst),
        resource: (*resource).to_owned(),
        what: format!("{} {}", request.method(), request.uri().path()),
        answered: false,
        succeeded: false,
    })
}
