//! Retries reads while the server is too busy.
//!
//! This module never retries a write. If it is unknown whether a write took effect, only the engine can
//! decide whether a retry is safe, because it writes the id of the operation into the object.

use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use tower::BoxError;
use tower::retry::Policy;

/// The retry policy: reads are repeated after the answers 429, 503 and 504.
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
