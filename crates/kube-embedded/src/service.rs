//! The `tower::Service` of the API: parses requests, calls the function for each, and encodes the answers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use serde_json::{Value, json};

use super::catalog::{DEFINITIONS, Resource};
use super::object::Writer;
use super::protobuf::{self, Unreadable};
use super::route::{self, Options, Route, Target};
use super::status::Failure;
use super::{Embedded, Shared, User, discovery, encode, openapi, reviews};

/// The body of an answer. For a watch, it is a stream that may last very long.
pub type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

/// The largest size of a request body in bytes, as in kube-apiserver.
pub const BODY_LIMIT: usize = 3 << 20;

/// A parsed request for a resource.
pub(super) struct Call {
    pub method: Method,
    pub target: Target,
    pub options: Options,
    pub body: Bytes,
    pub content_type: String,
    pub form: Form,
    pub user: Arc<User>,
    pub writer: Writer,
}

/// The format in which the client wants objects in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Object,
    Yaml,
    Table,
    Partial,
}

/// An answer of the API, before it is converted to HTTP.
pub(super) struct Answer {
    pub code: u16,
    pub content: Content,
    pub warnings: Vec<String>,
}

/// The body of an answer, before it is converted to HTTP.
pub(super) enum Content {
    Json(Value),
    Bytes(Vec<u8>),
    Text(&'static str),
    Stream(Body),
    /// An aggregated discovery document, and the parameter of its media type that names its version.
    Aggregated(Value, String),
    /// Bytes, and their media type.
    Other(&'static str, Vec<u8>),
}

impl Answer {
    pub fn json(code: u16, value: Value) -> Answer {
        Answer {
            code,
            content: Content::Json(value),
            warnings: Vec::new(),
        }
    }

    pub fn bytes(code: u16, bytes: Vec<u8>) -> Answer {
        Answer {
            code,
            content: Content::Bytes(bytes),
            warnings: Vec::new(),
        }
    }

    pub fn warning(mut self, warnings: Vec<String>) -> Answer {
        self.warnings = warnings;
        self
    }
}

impl tower::Service<Request<kube::client::Body>> for Embedded {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.serve(request).await) })
    }
}

impl Embedded {
    /// Answers a request whose body is already in memory.
    pub async fn call(&self, request: Request<Bytes>) -> Response<Body> {
        self.serve(request.map(Full::new)).await
    }

    async fn serve<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let yaml = accepts_yaml(&parts.headers);
        let answer = match Limited::new(body, BODY_LIMIT).collect().await {
            Ok(body) => self.answer(&parts, body.to_bytes()).await,
            Err(_) => Err(Failure::too_large(BODY_LIMIT)),
        };
        respond(answer, yaml)
    }

    async fn answer(&self, parts: &http::request::Parts, body: Bytes) -> Result<Answer, Failure> {
        let options = route::options(&parts.method, parts.uri.query().unwrap_or_default())?;
        let catalog = self.shared.catalog().await?;
        let get = parts.method == Method::GET || parts.method == Method::HEAD;
        match route::route(parts.uri.path()) {
            Route::Resource(target) => {
                let call = self.understand(parts, target, options, body)?;
                self.dispatch(call).await
            }
            _ if !get => Err(Failure::method_not_allowed()),
            Route::LegacyGroup => Ok(discovery::legacy(&catalog, &parts.headers)),
            Route::Groups => Ok(discovery::groups(&catalog, &parts.headers)),
            Route::Group(group) => discovery::group(&catalog, &group),
            Route::GroupVersion(group, version) => discovery::version(&catalog, &group, &version),
            Route::Version => Ok(discovery::server_version()),
            Route::OpenApiIndex => Ok(openapi::index(&catalog)),
            Route::OpenApi(group, version) => openapi::document(&catalog, &group, &version),
            Route::Health => Ok(Answer {
                code: 200,
                content: Content::Text("ok"),
                warnings: Vec::new(),
            }),
            Route::OpenApiV2 => Ok(openapi::v2(&catalog, &parts.headers)),
            Route::Unknown => Ok(no_such_page()),
        }
    }

    fn understand(
        &self,
        parts: &http::request::Parts,
        target: Target,
        options: Options,
        body: Bytes,
    ) -> Result<Call, Failure> {
        let text = |name: header::HeaderName| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        if options
            .field_manager
            .as_ref()
            .is_some_and(|manager| manager.len() > 128)
        {
            return Err(Failure::manager_too_long(&parts.method));
        }
        let user = self.impersonated(&parts.headers);
        let agent = text(header::USER_AGENT);
        let product = agent.split('/').next().unwrap_or_default();
        let manager = match (&options.field_manager, product) {
            (Some(manager), _) => manager.clone(),
            (None, "") => "unknown".to_owned(),
            (None, product) => product.chars().take(128).collect(),
        };
        let content_type = text(header::CONTENT_TYPE);
        let content_type = content_type.split(';').next().unwrap_or_default().trim();
        let (content_type, body) = match content_type == protobuf::MEDIA_TYPE && !body.is_empty() {
            true => ("application/json", from_protobuf(&body)?),
            false => (content_type, body),
        };
        Ok(Call {
            form: negotiate(&text(header::ACCEPT))?,
            method: parts.method.clone(),
            content_type: content_type.to_owned(),
            writer: Writer {
                user: user.name.clone(),
                manager,
                now: dated((self.clock)()),
                field_validation: options.field_validation,
                stamps: self.shared.stamps.clone(),
            },
            target,
            options,
            body,
            user,
        })
    }

    /// Returns the user whom the request impersonates, or else the user of this API. No permission is necessary,
    /// because the store has only one owner.
    fn impersonated(&self, headers: &HeaderMap) -> Arc<User> {
        let name = headers
            .get("impersonate-user")
            .and_then(|value| value.to_str().ok());
        match name {
            None => self.user.clone(),
            Some(name) => Arc::new(User {
                name: name.to_owned(),
                groups: headers
                    .get_all("impersonate-group")
                    .iter()
                    .filter_map(|value| value.to_str().ok())
                    .chain(["system:authenticated"])
                    .map(str::to_owned)
                    .collect(),
            }),
        }
    }

    async fn dispatch(&self, call: Call) -> Result<Answer, Failure> {
        let shared = &self.shared;
        let Some(resource) = shared.resource(&call.target).await? else {
            return nowhere(&call.target.group);
        };
        if let Some(answer) = reviews::answer(&resource, &call)? {
            return Ok(answer);
        }
        let name = call.target.name.is_some();
        if resource.namespaced
            && call.target.namespace.is_none()
            && (name || call.method == Method::POST)
        {
            return Ok(no_such_page());
        }
        if !resource.namespaced && call.target.namespace.is_some() {
            return Ok(no_such_page());
        }
        if let Some(part) = &call.target.subresource
            && resource.subresource(part).is_none()
        {
            return match (&resource.custom, part.as_str(), &call.target.name) {
                (Some(_), "status" | "scale", Some(name)) => {
                    Err(Failure::not_found(&resource.subject, name))
                }
                _ => nowhere(&call.target.group),
            };
        }
        if call.target.subresource.is_none()
            && !resource.verbs.iter().any(|verb| verb == verb_of(&call))
        {
            return Err(Failure::method_not_allowed());
        }
        let reads = [Method::GET, Method::HEAD].contains(&call.method);
        if let Some(origin) = shared.origin_of(&resource) {
            origin.load(shared, &resource, reads).await?;
        }
        let scale = call.target.subresource.as_deref() == Some("scale");
        match (call.method.clone(), name) {
            (Method::GET | Method::HEAD, true) if scale => shared.get_scale(&resource, &call).await,
            (Method::PUT | Method::PATCH, true) if scale => {
                shared.set_scale(&resource, &call).await
            }
            (Method::GET | Method::HEAD, true) if call.options.watch => {
                shared.watch(resource, call).await
            }
            (Method::GET | Method::HEAD, true) => shared.get(&resource, &call).await,
            (Method::GET | Method::HEAD, false) if call.options.watch => {
                shared.watch(resource, call).await
            }
            (Method::GET | Method::HEAD, false) => shared.list(resource, call).await,
            (Method::POST, false) => shared.create(&resource, &call).await,
            (Method::PUT, true) => shared.replace(&resource, &call).await,
            (Method::PATCH, true) => shared.patch(&resource, &call).await,
            (Method::DELETE, true) if call.target.subresource.is_none() => {
                shared.delete(&resource, &call).await
            }
            (Method::DELETE, false) => shared.delete_collection(&resource, &call).await,
            _ => Err(Failure::method_not_allowed()),
        }
    }
}

impl Shared {
    /// Finds the resource of a request; None if it does not exist. Before None, reads the definitions in the file
    /// again, because another process may have added one.
    async fn resource(&self, target: &Target) -> Result<Option<Arc<Resource>>, Failure> {
        let catalog = self.catalog().await?;
        let found = catalog.find(&target.group, &target.version, &target.plural);
        if found.is_some() {
            return Ok(found.cloned());
        }
        let defined = self.store.newest_of(DEFINITIONS).await?;
        let catalog = self.catalog_since(defined).await?;
        Ok(catalog
            .find(&target.group, &target.version, &target.plural)
            .cloned())
    }
}

fn from_protobuf(body: &[u8]) -> Result<Bytes, Failure> {
    match protobuf::decode(body) {
        Ok(object) => Ok(encode::to_bytes(&object).into()),
        Err(why @ Unreadable::UnknownKind(..)) => Err(Failure::bad_request(why.to_string())),
        Err(why) => Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of the kind that the path names): {why}"
        ))),
    }
}

/// Formats a time as a Kubernetes timestamp.
pub(super) fn dated(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the answer for a path that does not exist: a Status in a built-in API group, otherwise a text page.
fn nowhere(group: &str) -> Result<Answer, Failure> {
    match super::builtin::resources()
        .iter()
        .any(|resource| resource.group == group)
    {
        true => Err(Failure::no_such_resource()),
        false => Ok(no_such_page()),
    }
}

/// Returns the Kubernetes verb of a request, such as `list`.
fn verb_of(call: &Call) -> &'static str {
    match (call.method.as_str(), call.target.name.is_some()) {
        ("GET" | "HEAD", _) if call.options.watch => "watch",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "",
    }
}

/// Returns the text page with which kube-apiserver answers an unknown path (404).
fn no_such_page() -> Answer {
    Answer {
        code: 404,
        content: Content::Text("404 page not found\n"),
        warnings: Vec::new(),
    }
}

const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Returns the first format in a client's Accept header that this API supports. Fails if it supports none.
fn negotiate(accept: &str) -> Result<Form, Failure> {
    if accept.trim().is_empty() {
        return Ok(Form::Object);
    }
    for clause in accept.split(',') {
        let mut words = clause.split(';').map(str::trim);
        let media = words.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
        let parameter = |name: &str| {
            parameters
                .iter()
                .find(|(key, _)| *key == name)
                .map_or("", |(_, value)| *value)
        };
        let meta = parameter("g") == "meta.k8s.io" && parameter("v") == "v1";
        match (media, parameter("as")) {
            ("application/json", "Table") if meta => return Ok(Form::Table),
            ("application/json", "PartialObjectMetadata" | "PartialObjectMetadataList") if meta => {
                return Ok(Form::Partial);
            }
            ("application/json" | "application/*" | "*/*", "") => return Ok(Form::Object),
            ("application/yaml", "") => return Ok(Form::Yaml),
            _ => {}
        }
    }
    let mut failure = Failure::not_acceptable(OFFERED);
    if accept.contains("as=") {
        failure.message = format!("only the following media types are accepted: {OFFERED}");
    }
    Err(failure)
}

fn accepts_yaml(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    negotiate(accept.unwrap_or_default()) == Ok(Form::Yaml)
}

/// Shortens the warnings for a client as kube-apiserver does. If they are too long together, each is cut, and the
/// last ones are left out.
fn told(mut warnings: Vec<String>) -> Vec<String> {
    const TOTAL: usize = 4096;
    const EACH: usize = 256;
    if warnings.iter().map(String::len).sum::<usize>() <= TOTAL {
        return warnings;
    }
    let mut left = TOTAL;
    for warning in &mut warnings {
        *warning = warning.chars().take(EACH).collect();
    }
    let mut fits = |warning: &String| {
        left = left.saturating_sub(warning.len());
        left > 0
    };
    warnings
        .into_iter()
        .take_while(|warning| fits(warning))
        .collect()
}

fn respond(answer: Result<Answer, Failure>, yaml: bool) -> Response<Body> {
    let answer = answer
        .unwrap_or_else(|failure| Answer::json(failure.status_code().as_u16(), failure.to_json()));
    let line = |mut bytes: Vec<u8>| {
        bytes.push(b'\n');
        bytes
    };
    let full = |bytes: Vec<u8>| {
        Full::new(Bytes::from(bytes))
            .map_err(|never| match never {})
            .boxed_unsync()
    };
    let mut aggregated = None;
    let (media, body) = match answer.content {
        Content::Aggregated(value, form) => {
            aggregated = Some(format!(
                "application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"
            ));
            ("application/json", full(encode::to_bytes(&value)))
        }
        Content::Text(text) => ("text/plain; charset=utf-8", full(text.into())),
        Content::Other(media, bytes) => (media, full(bytes)),
        Content::Stream(body) => ("application/json", body),
        Content::Bytes(bytes) if !yaml => ("application/json", full(line(bytes))),
        Content::Json(value) if !yaml => ("application/json", full(line(encode::to_bytes(&value)))),
        Content::Json(value) => ("application/yaml", full(bounded_yaml::write(&value).into())),
        Content::Bytes(bytes) => {
            let value = serde_json::from_slice(&bytes).unwrap_or(json!({}));
            ("application/yaml", full(bounded_yaml::write(&value).into()))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static(media),
    );
    if let Some(media) = aggregated.and_then(|media| header::HeaderValue::from_str(&media).ok()) {
        headers.insert(header::CONTENT_TYPE, media);
    }
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-cache, private"),
    );
    for warning in told(answer.warnings) {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        let text: String = quoted.chars().filter(|c| !c.is_control()).collect();
        if let Ok(value) = header::HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}
