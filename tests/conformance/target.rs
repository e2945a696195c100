//! The API that a case tests. It sends the requests of the case, and returns answers and watch events.
//!
//! Cases send plain HTTP through `kube::Client`, so that they can compare status codes, headers and whole
//! bodies. Only the cases in the module `runtime` use the typed API.

use std::{collections::VecDeque, fmt::Write as _, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use kube_embedded::Embedded;
use serde_json::{Value, json};
use tokio::sync::RwLock;

use crate::{
    cluster::{Cluster, Options},
    widget,
};

/// The longest wait for an event that must happen.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// A server on which all cases run.
pub struct Place {
    client: Client,
    backing: Backing,
    /// Lets some cases run alone. Every case holds a read lock, and a case that disturbs others holds the
    /// write lock.
    pub turn: RwLock<()>,
}

enum Backing {
    Cluster(Box<Cluster>),
    Embedded(Embedded, #[allow(dead_code)] tempfile::TempDir),
}

impl Place {
    /// Opens the embedded API on a new file.
    pub async fn embedded() -> Option<Arc<Self>> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let embedded = Embedded::open(
            &folder.path().join("store.db"),
            "admin",
            bowline::api::store_setup(),
        )
        .await
        .expect("the embedded API opens");
        let client = embedded.client("default");
        widget::install(&client).await;
        Some(Arc::new(Self {
            client,
            backing: Backing::Embedded(embedded, folder),
            turn: RwLock::default(),
        }))
    }

    /// Starts a real cluster. Returns None if the programs of a cluster are missing.
    pub async fn cluster() -> Option<Arc<Self>> {
        let mut cluster = Cluster::start(Options::default()).await?;
        let client = cluster.client();
        widget::install(&client).await;
        crate::cluster::install_bowline(&client).await;
        cluster.start_controllers();
        Some(Arc::new(Self {
            client,
            backing: Backing::Cluster(Box::new(cluster)),
            turn: RwLock::default(),
        }))
    }
}

/// The server, and the namespace that only one case uses.
#[derive(Clone)]
pub struct Target {
    place: Arc<Place>,
    /// A client with default settings.
    pub client: Client,
    /// The namespace of this case.
    pub namespace: String,
}

/// The types of patch requests.
#[derive(Debug, Clone, Copy)]
pub enum Patch {
    Json,
    Merge,
    Strategic,
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

impl Target {
    /// Creates the namespace for a case.
    pub async fn new(place: Arc<Place>, case: &str) -> Self {
        let mut namespace = case.replace("::", "-").replace('_', "-");
        namespace.truncate(50);
        let namespace = namespace.trim_end_matches('-').to_owned();
        let target = Self {
            client: place.client.clone(),
            place,
            namespace,
        };
        target
            .post(
                "/api/v1/namespaces",
                &json!({"metadata": {"name": target.namespace}}),
            )
            .await
            .created();
        target
    }

    /// Removes the watch history of the server. A real server caches the history of most kinds, so a case may
    /// use only ServiceAccounts afterwards.
    pub async fn compact(&self) {
        match &self.place.backing {
            Backing::Cluster(cluster) => cluster.compact().await,
            Backing::Embedded(embedded, _) => {
                embedded
                    .store()
                    .compact()
                    .await
                    .expect("the store compacts");
            }
        }
    }

    /// Returns a request path of the core group, inside the namespace of the case.
    pub fn core(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// Returns a request path of another API group, inside the namespace of the case.
    pub fn group(&self, group_version: &str, rest: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{rest}", self.namespace)
    }

    /// Returns a request path of widgets, inside the namespace of the case.
    pub fn widgets(&self, rest: &str) -> String {
        self.group(widget::API_VERSION, &format!("widgets{rest}"))
    }

    /// Returns a request path of ConfigMaps, inside the namespace of the case.
    pub fn configmaps(&self, rest: &str) -> String {
        self.core(&format!("configmaps{rest}"))
    }

    /// Sends a request, and returns the answer.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Answer {
        let (parts, body) = request.into_parts();
        let sent = format!(
            "{} {}\n{}",
            parts.method,
            parts.uri,
            String::from_utf8_lossy(&body)
        );
        let response = self
            .client
            .send(Request::from_parts(parts, Body::from(body)))
            .await
            .unwrap_or_else(|error| panic!("no answer to {sent}: {error}"));
        let (parts, body) = response.into_parts();
        let bytes = body
            .collect_bytes()
            .await
            .unwrap_or_else(|error| panic!("the answer to {sent} broke off: {error}"));
        let header = |name: &str| -> Vec<String> {
            parts
                .headers
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect()
        };
        Answer {
            sent,
            code: parts.status.as_u16(),
            warnings: header("warning"),
            content_type: header("content-type").join(", "),
            body: serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        }
    }

    async fn call(&self, method: Method, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, content_type)
            .body(body)
            .expect("a path that a case writes");
        self.send(request).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_as(path, "application/json").await
    }

    /// Sends a GET request with an Accept header.
    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = Request::get(path)
            .header(header::ACCEPT, accept)
            .body(Vec::new())
            .expect("a path that a case writes");
        self.send(request).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string().into_bytes();
        self.call(Method::POST, path, "application/json", body)
            .await
    }

    /// Sends a POST request with any text as its body.
    pub async fn post_raw(&self, path: &str, content_type: &str, body: &str) -> Answer {
        self.call(Method::POST, path, content_type, body.into())
            .await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string().into_bytes();
        self.call(Method::PUT, path, "application/json", body).await
    }

    pub async fn patch(&self, path: &str, kind: Patch, body: &Value) -> Answer {
        let body = body.to_string().into_bytes();
        self.call(Method::PATCH, path, kind.content_type(), body)
            .await
    }

    /// Sends a PATCH request with any content type and any text as its body.
    pub async fn patch_raw(&self, path: &str, content_type: &str, body: &str) -> Answer {
        self.call(Method::PATCH, path, content_type, body.into())
            .await
    }

    /// Applies an object as the field manager `manager`, without force.
    pub async fn apply(&self, path: &str, manager: &str, body: &Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}");
        self.patch_raw(&path, "application/apply-patch+yaml", &body.to_string())
            .await
    }

    /// Applies an object as the field manager `manager`, with force: takes over the fields of other managers.
    pub async fn force_apply(&self, path: &str, manager: &str, body: &Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.patch_raw(&path, "application/apply-patch+yaml", &body.to_string())
            .await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, "application/json", Vec::new())
            .await
    }

    /// Sends a DELETE request with DeleteOptions as body.
    pub async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        let mut options = options.clone();
        options["apiVersion"] = json!("v1");
        options["kind"] = json!("DeleteOptions");
        let body = options.to_string().into_bytes();
        self.call(Method::DELETE, path, "application/json", body)
            .await
    }

    /// Creates a ConfigMap with one key, and returns the created object.
    pub async fn configmap(&self, name: &str) -> Value {
        self.post(
            &self.configmaps(""),
            &json!({"metadata": {"name": name}, "data": {"k": "v"}}),
        )
        .await
        .created()
    }

    /// Creates a widget with this spec, and returns the created object.
    pub async fn widget(&self, name: &str, spec: Value) -> Value {
        self.post(&self.widgets(""), &widget::with_spec(name, spec))
            .await
            .created()
    }

    /// Opens a watch. `path` contains all query parameters except `watch` itself.
    pub async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    /// Opens a watch with an Accept header.
    pub async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}watch=true");
        let request = Request::get(&path)
            .header(header::ACCEPT, accept)
            .body(Body::empty())
            .expect("a path that a case writes");
        let response = tokio::time::timeout(PATIENCE, self.client.send(request))
            .await
            .unwrap_or_else(|_| panic!("GET {path} sent no headers"))
            .unwrap_or_else(|error| panic!("no answer to GET {path}: {error}"));
        let (parts, body) = response.into_parts();
        if !parts.status.is_success() {
            let bytes = body.collect_bytes().await.unwrap_or_default();
            panic!(
                "GET {path} answered {}: {}",
                parts.status,
                String::from_utf8_lossy(&bytes)
            );
        }
        let chunks = body
            .into_data_stream()
            .map(|chunk| chunk.map(|bytes| bytes.to_vec()).unwrap_or_default());
        Watch {
            path,
            chunks: Box::pin(chunks),
            buffer: Vec::new(),
            lines: VecDeque::new(),
        }
    }

    /// Reads a path until `wanted` is true for the answer. After the time limit, panics with the last answer.
    pub async fn until(&self, path: &str, what: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path).await;
            if wanted(&answer) {
                return answer;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{what} did not happen to {path}; last: {} {:#}",
                answer.code,
                answer.body
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until no object exists at a path.
    pub async fn gone(&self, path: &str) {
        self.until(path, "its end", |answer| answer.code == 404)
            .await;
    }

    /// Returns the current resourceVersion of the ConfigMaps in the namespace.
    pub async fn now(&self) -> String {
        let list = self.get(&self.configmaps("")).await.ok();
        text(&list, "/metadata/resourceVersion")
    }
}

/// An HTTP answer, with the request that it belongs to.
#[derive(Debug, Clone)]
pub struct Answer {
    sent: String,
    pub code: u16,
    pub warnings: Vec<String>,
    pub content_type: String,
    pub body: Value,
}

impl Answer {
    /// Returns the body of the answer. Panics if the status code is not 200.
    #[track_caller]
    pub fn ok(self) -> Value {
        self.with_code(200)
    }

    /// Returns the body of the answer. Panics if the status code is not 201.
    #[track_caller]
    pub fn created(self) -> Value {
        self.with_code(201)
    }

    /// Returns the body of the answer. Panics if the status code is not `code`.
    #[track_caller]
    pub fn with_code(self, code: u16) -> Value {
        assert!(
            self.code == code,
            "expected {code}, got {}\nrequest: {}\nanswer: {:#}",
            self.code,
            self.sent,
            self.body
        );
        self.body
    }

    /// Asserts a failure whose message begins with `beginning`. The rest of the message may be any text of a
    /// parser. Returns the details of the failure.
    #[track_caller]
    pub fn refused_with(self, code: u16, reason: &str, beginning: &str) -> Value {
        let message = self.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            message.starts_with(beginning),
            "expected a message that begins with: {beginning}\ngot: {message}\nrequest: {}\nanswer: {:#}",
            self.sent,
            self.body
        );
        self.refused(code, reason, &message)
    }

    /// Asserts a failure with this code, reason and message. Returns the details of the failure.
    #[track_caller]
    pub fn refused(self, code: u16, reason: &str, message: &str) -> Value {
        let mut expected = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": code, "reason": reason, "message": message,
        });
        if let (true, Some(status)) = (reason.is_empty(), expected.as_object_mut()) {
            status.remove("reason");
        }
        let mut actual = self.body.clone();
        let details = actual
            .as_object_mut()
            .and_then(|status| {
                status.remove("metadata");
                status.remove("details")
            })
            .unwrap_or_default();
        if self.code != code || actual != expected {
            panic!(
                "{}\nrequest: {}",
                difference("the refusal", &actual, &expected),
                self.sent
            );
        }
        details
    }
}

/// An open watch request.
pub struct Watch {
    path: String,
    chunks: std::pin::Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>,
    buffer: Vec<u8>,
    lines: VecDeque<Value>,
}

impl Watch {
    /// Returns the next event of the watch; None if the server has closed the watch.
    pub async fn poll(&mut self) -> Option<Value> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            let chunk = tokio::time::timeout(PATIENCE, self.chunks.next())
                .await
                .unwrap_or_else(|_| panic!("GET {} sent no event", self.path))?;
            self.buffer.extend_from_slice(&chunk);
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let event = serde_json::from_slice(&line).unwrap_or_else(|_| {
                    panic!(
                        "GET {}: no JSON: {}",
                        self.path,
                        String::from_utf8_lossy(&line)
                    )
                });
                self.lines.push_back(event);
            }
        }
    }

    /// Returns the next event, which may be a bookmark. Panics if the server has closed the watch.
    pub async fn next(&mut self) -> Value {
        match self.poll().await {
            Some(event) => event,
            None => panic!("GET {} ended", self.path),
        }
    }

    /// Asserts the type and the object name of the next event, and returns the object. Skips bookmarks,
    /// unless the expected type is BOOKMARK.
    pub async fn expect(&mut self, kind: &str, name: &str) -> Value {
        let mut event = self.next().await;
        while event["type"] == "BOOKMARK" && kind != "BOOKMARK" {
            event = self.next().await;
        }
        let actual = format!(
            "{} {}",
            event["type"].as_str().unwrap_or("?"),
            event["object"]["metadata"]["name"].as_str().unwrap_or("?")
        );
        assert!(
            actual == format!("{kind} {name}"),
            "watch {}: expected {kind} {name}, got {actual}: {event:#}",
            self.path
        );
        event["object"].take()
    }
}

/// Asserts that two JSON documents are equal. Prints both documents if they differ.
#[track_caller]
pub fn same(what: &str, actual: &Value, expected: Value) {
    assert!(
        *actual == expected,
        "{}",
        difference(what, actual, &expected)
    );
}

fn difference(what: &str, actual: &Value, expected: &Value) -> String {
    let mut text = format!("{what} differs\nexpected: {expected:#}\n  actual: {actual:#}");
    if let (Value::String(expected), Value::String(actual)) = (expected, actual) {
        let _ = write!(text, "\nexpected text: {expected}\n  actual text: {actual}");
    }
    text
}

/// Returns the string at a JSON pointer. Panics if the value there is no string.
#[track_caller]
pub fn text(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer).and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => panic!("expected a string at {pointer} in {value:#}"),
    }
}

/// Returns a copy of an object without one metadata field.
pub fn without_metadata(value: &Value, field: &str) -> Value {
    let mut value = value.clone();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove(field);
    }
    value
}

/// Returns the names of the items in a list, in the order of the list.
#[track_caller]
pub fn names(list: &Value) -> Vec<String> {
    match list["items"].as_array() {
        Some(items) => items
            .iter()
            .map(|item| text(item, "/metadata/name"))
            .collect(),
        None => panic!("expected a list, got {list:#}"),
    }
}
