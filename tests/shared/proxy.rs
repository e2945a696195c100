//! A proxy between a client and an API server. It can drop or delay requests.
//!
//! The proxy accepts plain HTTP on loopback, so that both bowline and the engine inside a test can reach any
//! target through it.

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

/// A write request that passes through the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The number of the write request, unique in the test process.
    pub id: usize,
    /// The plural name of the written resource, for example `releasepins`.
    pub resource: String,
    /// The method and the path of the request, for example `PATCH /apis/...`.
    pub what: String,
    /// Whether the API has answered the write. False: the API has not even received the write.
    pub answered: bool,
    /// Whether the API has answered the write with a success.
    pub succeeded: bool,
}

/// Decides about each write twice: before the API receives the write, and after the answer of the API. True
/// lets the write pass, and false breaks the connection. The future may take as long as the test needs.
pub type Gate = Arc<dyn Fn(Write) -> BoxFuture<'static, bool> + Send + Sync>;

/// A running proxy. Dropping the value closes the connections through it.
pub struct Proxy {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy that sends all requests on through `api`.
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

    /// Returns a client that sends its requests through the proxy, with the namespace of a target.
    pub fn client(&self, target: &Target) -> Client {
        let mut config = kube::Config::new(format!("http://{}", self.address).parse().unwrap());
        config.default_namespace = target.namespace.clone();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Returns the flags that make bowline send its requests through the proxy.
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

/// Returns the write that a request contains. Returns None for a read, and for a review of the user's own
/// permissions, because a review stores nothing.
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
