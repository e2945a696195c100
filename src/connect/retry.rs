//! Retries reads while the server is too busy.
//!
//! Writes are never retried here, because it may be unknown whether a write took effect. Only the engine can retry a
//! write safely, because it writes the id of the operation into the object.

use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use tower::BoxError;
use tower::retry::Policy;

/// The retry policy: a read is repeated if the server answers 429, 503 or 504.
#[derive(Clone)]
pub(super) struct ReadsOnly(RetryPolicy);

impl ReadsOnly {
    pub(super) fn new() -> Self {
        let (least, most) = (Duration::from_millis(100), Duration::from_secs(5));
        ReadsOnly(RetryPolicy::new(least, most, 3, true).unwrap_or_default())
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for ReadsOnly {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Self::Future> {
        self.0.retry(request, result)
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        Policy::<_, Response<B>, BoxError>::clone_request(&mut self.0, request)
    }
}
