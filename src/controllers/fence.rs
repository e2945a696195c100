//! Keeps a process that lost its lease from writing: every write asks the fence, whoever makes it.
//!
//! Ending tasks is not enough, for one that is about to write may only be told a moment later. A write that
//! is under way when the time is up is given up; whether the server has it is then open, as it is after any
//! lost connection, and the next leader reads before it writes.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connect::only_reads;

/// Until when this process may write. Clones share it.
#[derive(Clone, Debug)]
pub struct Fence {
    until: Arc<watch::Sender<Option<Instant>>>,
}

/// The lease is not ours any more.
#[derive(Debug, thiserror::Error)]
#[error("{what} was not sent: this process no longer holds the lease")]
pub struct Fenced {
    what: String,
}

impl Default for Fence {
    fn default() -> Self {
        let (until, _) = watch::channel(None);
        Self {
            until: Arc::new(until),
        }
    }
}

impl Fence {
    /// Lets writes pass until then.
    pub fn open(&self, until: Instant) {
        self.until.send_replace(Some(until));
    }

    /// Lets no write pass.
    pub fn close(&self) {
        self.until.send_replace(None);
    }

    /// Tells whether writes pass.
    pub fn is_open(&self) -> bool {
        let until = *self.until.borrow();
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits until writes do not pass any more.
    pub async fn closed(&self) {
        let mut changes = self.until.subscribe();
        loop {
            let Some(until) = *changes.borrow_and_update() else {
                return;
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {
                    if !self.is_open() {
                        return;
                    }
                }
                changed = changes.changed() => if changed.is_err() {
                    return;
                },
            }
        }
    }

    /// Returns the same client behind the fence.
    pub fn around(&self, client: &Client) -> Client {
        let (fence, inner) = (self.clone(), client.clone());
        let guarded = tower::service_fn(move |request: Request<Body>| {
            let (fence, inner) = (fence.clone(), inner.clone());
            async move {
                if only_reads(request.method(), request.uri().path(), request.headers()) {
                    return inner.send(request).await;
                }
                let what = format!("{} {}", request.method(), request.uri().path());
                if fence.is_open() {
                    tokio::select! {
                        answer = inner.send(request) => return answer,
                        () = fence.closed() => {}
                    }
                }
                Err(kube::Error::Service(Fenced { what }.into()))
            }
        });
        Client::new(guarded, client.default_namespace()).with_valid_until(*client.valid_until())
    }
}

/// How much of a lease is used: a leader that could not renew it for this long stops, well before another
/// can begin.
pub fn trusted(lease: Duration) -> Duration {
    lease * 2 / 3
}
