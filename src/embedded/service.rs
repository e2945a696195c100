//! The `tower::Service` that answers requests: a stand-in that keeps objects in
//! memory, until the real one is merged over it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};
use tower::Service;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the store: {0}")]
pub struct OpenError(#[from] std::io::Error);

/// The API in this process.
#[derive(Clone)]
pub struct Embedded {
    user: String,
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Embedded {
    /// Opens a store.
    pub async fn open(path: &Path, user: &str) -> Result<Embedded, OpenError> {
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        Ok(Embedded {
            user: user.to_owned(),
            objects: Arc::default(),
        })
    }

    /// Makes a client of it.
    pub fn client(&self, namespace: &str) -> kube::Client {
        kube::Client::new(self.clone(), namespace)
    }

    /// Answers one request.
    pub async fn call(&self, request: Request<Bytes>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let sent: Value = serde_json::from_slice(request.body()).unwrap_or(Value::Null);
        let mut objects = self.objects.lock().unwrap_or_else(|e| e.into_inner());
        let prefix = format!("{path}/");
        match *request.method() {
            Method::GET if path == "/version" => answer(
                200,
                &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
            ),
            Method::GET if query.contains("watch=true") => {
                let events: Vec<_> = objects
                    .range(prefix.clone()..)
                    .take_while(|(key, _)| key.starts_with(&prefix))
                    .map(|(_, object)| {
                        json!({"type": "ADDED", "object": object}).to_string() + "\n"
                    })
                    .map(|line| Ok(Frame::data(Bytes::from(line))))
                    .collect();
                let stream = futures::stream::iter(events).chain(futures::stream::pending());
                Response::new(StreamBody::new(stream).boxed_unsync())
            }
            Method::GET => match objects.get(&path) {
                Some(object) => answer(200, object),
                None => {
                    let items: Vec<_> = objects
                        .range(prefix.clone()..)
                        .take_while(|(key, _)| key.starts_with(&prefix))
                        .map(|(_, object)| object.clone())
                        .collect();
                    answer(
                        200,
                        &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}),
                    )
                }
            },
            Method::POST if path.ends_with("/selfsubjectreviews") => answer(
                201,
                &json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "status": {"userInfo": {"username": self.user}}}),
            ),
            Method::POST => {
                let name = sent.pointer("/metadata/name").and_then(Value::as_str);
                let key = format!("{prefix}{}", name.unwrap_or_default());
                objects.insert(key, sent.clone());
                answer(201, &sent)
            }
            Method::PUT => {
                let key = path.trim_end_matches("/status").to_owned();
                objects.insert(key, sent.clone());
                answer(200, &sent)
            }
            Method::PATCH => {
                let key = path.trim_end_matches("/status");
                let object = objects.entry(key.to_owned()).or_default();
                json_patch::merge(object, &sent);
                answer(200, object)
            }
            _ => answer(
                405,
                &json!({"kind": "Status", "status": "Failure", "code": 405}),
            ),
        }
    }
}

fn answer(code: u16, value: &Value) -> Response<Body> {
    let mut response = Response::new(Full::from(value.to_string()).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}

impl Service<Request<kube::client::Body>> for Embedded {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let store = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            Ok(Embedded::call(&store, Request::from_parts(head, body)).await)
        })
    }
}
