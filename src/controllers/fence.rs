//! Blocks the writes of a process that lost its lease. All writes of the controllers pass the fence.
//!
//! A stopped task may still write before it notices the stop. So the fence also drops each write that is in
//! progress when the permission ends. It is then unknown whether the server executed the write, so the next
//! leader reads the objects before it writes.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connect::only_reads;

/// Stores until when this process may write. All clones of a fence share this time.
#[derive(Clone, Debug)]
pub struct Fence {
    until: Arc<watch::Sender<Option<Instant>>>,
}

/// The error of a write while the fence is closed, because the process lost its lease.
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
    /// Allows writes until the given time.
    pub fn open(&self, until: Instant) {
        self.until.send_replace(Some(until));
    }

    /// Ends the permission to write at once.
    pub fn close(&self) {
        self.until.send_replace(None);
    }

    /// Returns whether writes are allowed.
    pub fn is_open(&self) -> bool {
        let until = *self.until.borrow();
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits until writes are no longer allowed.
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

    /// Returns a copy of the client that writes through this fence. While the fence is closed, a write fails
    /// with [`Fenced`].
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

/// Returns how long a leader may write after its last renewal of a lease: two thirds of the duration of the
/// lease. So the leader stops before another process can become the leader.
pub fn trusted(lease: Duration) -> Duration {
    lease * 2 / 3
}
