//! The read-only guard: a layer of the client that decides for each request whether to send it.
//!
//! The guard looks only at the method, the path and the headers of a request, and refuses every request that it does
//! not recognise as a read. A user interface may forget to disable a command, but it cannot bypass the guard, because
//! every client contains it.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::{Either as Side, Ready, ready};
use futures::{FutureExt, TryFutureExt};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{Either, Full};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, Status};
use kube::client::Body;
use percent_encoding::percent_decode_str;
use tokio::time::Instant;
use tower::Service;

/// The subresources that open a connection to a container, a pod or a node. Even their GET requests can change
/// something, so they do not count as reads.
const DOORS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// The reviews about the user's own identity and permissions, by API group. They count as reads, because a server
/// stores nothing for them although their method is POST.
const OWN_REVIEWS: [(&str, &str); 3] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// Returns whether a request only reads.
///
/// A dry run does not count as a read, because the server calls admission webhooks for it, which may have side
/// effects.
pub fn only_reads(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    if headers.contains_key(header::UPGRADE) {
        return false;
    }
    let Some(segments) = segments(path) else {
        return false;
    };
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => !opens_a_door(&segments),
        Method::POST => is_own_review(&segments),
        _ => false,
    }
}

/// Splits the path of a request into decoded segments. None if a server could understand a segment in another way,
/// for example `..`.
fn segments(path: &str) -> Option<Vec<String>> {
    path.strip_prefix('/')?
        .split('/')
        .map(|raw| {
            let decoded = percent_decode_str(raw).decode_utf8().ok()?;
            (decoded != "." && decoded != ".." && !decoded.contains('/'))
                .then(|| decoded.into_owned())
        })
        .filter(|segment| segment.as_deref() != Some(""))
        .collect()
}

fn opens_a_door(segments: &[&str]) -> bool {
    let resource = match segments {
        ["api", _version, rest @ ..] | ["apis", _, _version, rest @ ..] => rest,
        _ => return false,
    };
    let resource = match resource {
        // This is an older form of the proxy path: /api/v1/proxy/namespaces/...
        ["proxy", ..] => return true,
        ["watch", rest @ ..] => rest,
        rest => rest,
    };
    let resource = match resource {
        ["namespaces", _name, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    matches!(resource, [_plural, _name, subresource, ..] if DOORS.contains(subresource))
}

fn is_own_review(segments: &[&str]) -> bool {
    matches!(segments, ["apis", group, _version, plural] if OWN_REVIEWS.contains(&(group, plural)))
}

/// The state of the read-only guard: whether it refuses writes now, and why. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct WriteGuard {
    why: Option<Arc<str>>,
    /// The time until which the user has allowed writes on a protected context; the inner None if writes are not
    /// allowed now. The outer None if the context is not protected, so that the user cannot allow writes.
    lifted: Option<Arc<Mutex<Option<Until>>>>,
}

/// A time on two clocks, which counts as passed when the first of them reaches it. One clock is not sufficient: the
/// monotonic clock may stop while the machine sleeps, and a user can set the wall clock back.
#[derive(Clone, Copy, Debug)]
struct Until {
    ticks: Instant,
    clock: SystemTime,
}

impl WriteGuard {
    /// Returns a guard that never changes. With a reason it refuses all writes; with None it refuses nothing.
    pub fn fixed(why: Option<String>) -> Self {
        Self {
            why: why.map(Into::into),
            lifted: None,
        }
    }

    /// Returns the guard of a protected context: it refuses writes until the user allows them for a limited time.
    pub fn protected(why: String) -> Self {
        Self {
            why: Some(why.into()),
            lifted: Some(Arc::default()),
        }
    }

    /// Returns the reason for which the guard refuses writes, even while the user allows them. None if the guard
    /// never refuses a request.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Returns whether the guard is that of a protected context, so that the user can allow writes for a limited
    /// time.
    pub fn is_protected(&self) -> bool {
        self.lifted.is_some()
    }

    /// Allows writes for the duration `lasting`; zero forbids them again. If the context is not protected, changes
    /// nothing and returns false.
    pub fn arm(&self, lasting: Duration) -> bool {
        let Some(lifted) = &self.lifted else {
            return false;
        };
        let until = Instant::now()
            .checked_add(lasting)
            .zip(SystemTime::now().checked_add(lasting));
        let until = until.map(|(ticks, clock)| Until { ticks, clock });
        let until = until.filter(|_| !lasting.is_zero());
        *lifted.lock().unwrap_or_else(PoisonError::into_inner) = until;
        true
    }

    /// Returns the reason for which the guard refuses writes now. None if it allows them now.
    fn refuses(&self) -> Option<&str> {
        let why = self.why.as_deref()?;
        let lifted = self.lifted.as_ref();
        let until =
            lifted.and_then(|lifted| *lifted.lock().unwrap_or_else(PoisonError::into_inner));
        let passes = until
            .is_some_and(|until| Instant::now() < until.ticks && SystemTime::now() < until.clock);
        (!passes).then_some(why)
    }
}

/// The layer of the client with the read-only guard. While the guard refuses writes, the layer sends only reads.
#[derive(Clone)]
pub(super) struct ReadOnly<S> {
    pub(super) bars: WriteGuard,
    pub(super) inner: S,
}

type Answer<B> = Response<Either<Full<Bytes>, B>>;

impl<S, B> Service<Request<Body>> for ReadOnly<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
{
    type Response = Answer<B>;
    type Error = S::Error;
    type Future = Side<
        Ready<Result<Answer<B>, S::Error>>,
        futures::future::MapOk<S::Future, fn(Response<B>) -> Answer<B>>,
    >;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self.bars.refuses() {
            Some(why) if !only_reads(request.method(), request.uri().path(), request.headers()) => {
                ready(Ok(refusal(&request, why))).left_future()
            }
            _ => self
                .inner
                .call(request)
                .map_ok(pass as fn(Response<B>) -> Answer<B>)
                .right_future(),
        }
    }
}

fn pass<B>(response: Response<B>) -> Answer<B> {
    response.map(Either::Right)
}

fn refusal<B>(request: &Request<Body>, why: &str) -> Answer<B> {
    let status = Status {
        status: Some("Failure".to_owned()),
        code: Some(StatusCode::FORBIDDEN.as_u16().into()),
        reason: Some("Forbidden".to_owned()),
        message: Some(format!(
            "read-only: {} {} was not sent ({why})",
            request.method(),
            request.uri().path()
        )),
        metadata: ListMeta::default(),
        ..Status::default()
    };
    let body = serde_json::to_vec(&status).unwrap_or_default();
    let mut response = Response::new(Either::Left(Full::from(body)));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS: bool = true;
    const STOP: bool = false;

    const CASES: &[(&str, &str, bool)] = &[
        // The guard sends reads of objects, lists, watches and logs.
        ("GET", "/api/v1/namespaces/shop/configmaps", PASS),
        ("GET", "/api/v1/namespaces/shop/configmaps/flags", PASS),
        ("HEAD", "/api/v1/namespaces/shop/configmaps/flags", PASS),
        ("OPTIONS", "/api/v1/namespaces/shop/configmaps", PASS),
        ("GET", "/api/v1/namespaces", PASS),
        ("GET", "/api/v1/namespaces/shop", PASS),
        ("GET", "/api/v1/nodes/n1", PASS),
        ("GET", "/api/v1/watch/namespaces/shop/pods", PASS),
        ("GET", "/api/v1/namespaces/shop/pods/web/log", PASS),
        ("GET", "/apis/openchoreo.dev/v1alpha1/releasepins", PASS),
        (
            "GET",
            "/apis/openchoreo.dev/v1alpha1/namespaces/shop/releasepins/cart-staging",
            PASS,
        ),
        (
            "GET",
            "/apis/openchoreo.dev/v1alpha1/namespaces/shop/releasepins/cart-staging/status",
            PASS,
        ),
        (
            "GET",
            "/apis/apps/v1/namespaces/shop/deployments/cart/scale",
            PASS,
        ),
        // The guard sends requests for discovery documents and health checks.
        ("GET", "/", PASS),
        ("GET", "/version", PASS),
        ("GET", "/apis", PASS),
        ("GET", "/apis/apps/v1", PASS),
        ("GET", "/openapi/v3/apis/apps/v1", PASS),
        ("GET", "/readyz", PASS),
        // The guard sends requests for objects that only have the name of a dangerous subresource.
        ("GET", "/api/v1/namespaces/shop/pods/exec", PASS),
        ("GET", "/api/v1/namespaces/proxy", PASS),
        ("GET", "/api/v1/namespaces/exec/configmaps/attach", PASS),
        // The guard sends reviews about the user's own identity and permissions.
        (
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            PASS,
        ),
        (
            "POST",
            "/apis/authentication.k8s.io/v1beta1/selfsubjectreviews",
            PASS,
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            PASS,
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            PASS,
        ),
        // The guard refuses reviews of other users, and paths that look like reviews.
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", STOP),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            STOP,
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews",
            STOP,
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x",
            STOP,
        ),
        (
            "POST",
            "/apis/evil.example/v1/selfsubjectaccessreviews",
            STOP,
        ),
        (
            "POST",
            "/api/v1/namespaces/shop/selfsubjectaccessreviews",
            STOP,
        ),
        (
            "PUT",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            STOP,
        ),
        (
            "PATCH",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            STOP,
        ),
        (
            "DELETE",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            STOP,
        ),
        // The guard refuses writes, whatever their query is.
        ("POST", "/api/v1/namespaces/shop/configmaps", STOP),
        ("PUT", "/api/v1/namespaces/shop/configmaps/flags", STOP),
        ("PATCH", "/api/v1/namespaces/shop/configmaps/flags", STOP),
        ("DELETE", "/api/v1/namespaces/shop/configmaps/flags", STOP),
        ("DELETE", "/api/v1/namespaces/shop/configmaps", STOP),
        (
            "PUT",
            "/apis/openchoreo.dev/v1alpha1/namespaces/shop/releasepins/cart-staging/status",
            STOP,
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/shop/deployments/cart/scale",
            STOP,
        ),
        (
            "POST",
            "/api/v1/namespaces/shop/serviceaccounts/ci/token",
            STOP,
        ),
        ("POST", "/api/v1/namespaces/shop/pods/web/eviction", STOP),
        ("POST", "/api/v1/namespaces/shop/pods/web/binding", STOP),
        (
            "PATCH",
            "/api/v1/namespaces/shop/pods/web/ephemeralcontainers",
            STOP,
        ),
        ("PUT", "/api/v1/namespaces/shop/finalize", STOP),
        // The guard refuses requests for dangerous subresources.
        ("GET", "/api/v1/namespaces/shop/pods/web/exec", STOP),
        ("POST", "/api/v1/namespaces/shop/pods/web/exec", STOP),
        ("GET", "/api/v1/namespaces/shop/pods/web/attach", STOP),
        ("GET", "/api/v1/namespaces/shop/pods/web/portforward", STOP),
        ("GET", "/api/v1/namespaces/shop/pods/web/proxy", STOP),
        (
            "GET",
            "/api/v1/namespaces/shop/pods/web/proxy/shutdown",
            STOP,
        ),
        (
            "HEAD",
            "/api/v1/namespaces/shop/services/web:80/proxy/",
            STOP,
        ),
        ("GET", "/api/v1/nodes/n1/proxy/run/shop/web/main", STOP),
        ("GET", "/api/v1/proxy/nodes/n1/run", STOP),
        (
            "GET",
            "/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachineinstances/vm/portforward",
            STOP,
        ),
        // The guard refuses dangerous paths that a server recognises only after decoding or normalisation.
        ("GET", "/api/v1/namespaces/shop/pods/web/%65xec", STOP),
        ("GET", "/api/v1/namespaces/shop/pods/web/log/../exec", STOP),
        ("GET", "/api/v1/namespaces/shop/pods/web%2Fexec", STOP),
        ("GET", "/api/v1/namespaces/shop/pods//web/exec", STOP),
        ("GET", "//api/v1/namespaces/shop/pods/web/exec", STOP),
        ("GET", "/api/v1/namespaces/shop/pods/%2e%2e/exec", STOP),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/../../x",
            STOP,
        ),
        // The guard refuses methods that are never a read.
        ("CONNECT", "/api/v1/namespaces/shop/pods/web", STOP),
        ("TRACE", "/api/v1/namespaces/shop/pods/web", STOP),
        ("APPLY", "/api/v1/namespaces/shop/pods/web", STOP),
        ("get", "/api/v1/namespaces/shop/pods/web", STOP),
        ("GET", "", STOP),
    ];

    #[test]
    fn only_reads_pass() {
        assert!(CASES.len() >= 40);
        for (method, path, expected) in CASES {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(
                only_reads(&method, path, &HeaderMap::new()),
                *expected,
                "{method} {path}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_is_protected_is_lifted_and_only_for_a_while() {
        let minute = Duration::from_secs(60);
        let never = WriteGuard::fixed(Some("--readonly was given".to_owned()));
        let protected = || WriteGuard::protected("it is protected".to_owned());
        // Each row contains: the guard, the duration for which the user allows writes, the time that passes, and
        // whether the guard then sends a write.
        for (bars, armed, later, passes) in [
            (WriteGuard::default(), None, Duration::ZERO, PASS),
            (WriteGuard::fixed(None), None, Duration::ZERO, PASS),
            (never.clone(), None, Duration::ZERO, STOP),
            (never.clone(), Some(minute), Duration::ZERO, STOP),
            (protected(), None, Duration::ZERO, STOP),
            (protected(), Some(minute), Duration::ZERO, PASS),
            (protected(), Some(minute), minute / 2, PASS),
            (protected(), Some(minute), minute, STOP),
            (protected(), Some(minute), minute * 2, STOP),
            (protected(), Some(Duration::ZERO), Duration::ZERO, STOP),
            (protected(), Some(Duration::MAX), Duration::ZERO, STOP),
        ] {
            // The writes are allowed on a clone, because clones share the state of the guard.
            let armable = armed.map(|lasting| bars.clone().arm(lasting));
            assert!(armable.is_none_or(|can| can == bars.is_protected()));
            tokio::time::advance(later).await;
            assert_eq!(
                bars.refuses().is_none(),
                passes,
                "{bars:?} {armed:?} {later:?}"
            );
        }
        let armed = protected();
        armed.arm(minute);
        armed.arm(Duration::ZERO);
        assert_eq!(armed.refuses(), Some("it is protected"));
    }

    #[test]
    fn an_upgrade_is_never_a_read() {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, "websocket".parse().unwrap());
        assert!(!only_reads(&Method::GET, "/api/v1/pods", &headers));
    }

    proptest::proptest! {
        #[test]
        fn no_method_but_these_ever_passes(method in "[A-Z]{1,8}", path in "(/[a-z0-9.%:-]{0,12}){0,8}") {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let passed = only_reads(&method, &path, &HeaderMap::new());
            if !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "POST") {
                proptest::prop_assert!(!passed);
            }
            if method == Method::POST && passed {
                proptest::prop_assert!(path.contains("/selfsubject"));
            }
        }
    }
}
