//! Gives every request a deadline, so that no caller waits without end.
//!
//! The head of an answer has one deadline, the body another. But the bodies of watches, followed logs and upgraded
//! connections have no deadline, because they last as long as the server sends data. The caller who reads such a body
//! decides how long to wait.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Service};

/// The deadlines for the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// The longest time from the request until the head of the answer arrives, including retries of a read.
    pub answer: Duration,
    /// The longest time from the head of the answer until the end of its body.
    pub body: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            answer: Duration::from_secs(30),
            body: Duration::from_secs(120),
        }
    }
}

/// The error of a request that exceeded a deadline. It is unknown whether the server has made a write.
#[derive(Debug, thiserror::Error)]
#[error("{request}: no {part} within {}", humane(*.after))]
pub struct DeadlineExceeded {
    request: String,
    part: &'static str,
    after: Duration,
}

fn humane(duration: Duration) -> String {
    format!("{duration:?}")
}

/// A service that fails each request at its deadline.
#[derive(Clone)]
pub(super) struct Deadline<S> {
    pub(super) deadlines: Deadlines,
    pub(super) inner: S,
}

impl<S, B> Service<Request<Body>> for Deadline<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Timed<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Deadlines { answer, body } = self.deadlines;
        let name = format!("{} {}", request.method(), request.uri().path());
        let endless = is_endless(&request);
        let response = self.inner.call(request);
        Box::pin(async move {
            let exceeded = |part, after| DeadlineExceeded {
                request: name,
                part,
                after,
            };
            match tokio::time::timeout(answer, response).await {
                Ok(Ok(response)) => {
                    let limit = (!endless).then(|| Limit {
                        sleep: Box::pin(tokio::time::sleep_until(Instant::now() + body)),
                        error: Some(exceeded("end of the answer", body)),
                    });
                    Ok(response.map(|body| Timed {
                        inner: Box::pin(body),
                        limit,
                    }))
                }
                Ok(Err(error)) => Err(error),
                Err(_elapsed) => Err(exceeded("answer", answer).into()),
            }
        })
    }
}

/// Returns whether the answer to a request has a body without end, such as a watch.
pub(super) fn is_endless(request: &Request<Body>) -> bool {
    let asks_for = |name: &str| {
        request.uri().query().is_some_and(|query| {
            query.split('&').any(|pair| {
                pair.split_once('=').is_some_and(|(key, value)| {
                    key == name && matches!(value, "1" | "t" | "T" | "true" | "True" | "TRUE")
                })
            })
        })
    };
    request.headers().contains_key(header::UPGRADE) || asks_for("watch") || asks_for("follow")
}

struct Limit {
    sleep: Pin<Box<Sleep>>,
    error: Option<DeadlineExceeded>,
}

/// The body of an answer. Reading it fails if it does not end before the deadline.
pub(super) struct Timed<B> {
    inner: Pin<Box<B>>,
    limit: Option<Limit>,
}

impl<B> HttpBody for Timed<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = self.inner.as_mut().poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if let Some(limit) = &mut self.limit
            && limit.sleep.as_mut().poll(cx).is_ready()
        {
            let error = limit.error.take();
            self.limit = None;
            return Poll::Ready(error.map(|error| Err(error.into())));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
