//! Blocks the writes of a process that lost its lease. Every write of every task passes the fence.
//!
//! It is not enough to stop the tasks: a task could still write before it learns of the stop. When the
//! permission to write ends, the fence drops each write in progress. As after a lost connection, it is then
//! unknown whether the server executed the write. So the next leader reads before it writes.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connect::only_reads;

/// The time until which this process may write. Clones share it.
#[derive(Clone, Debug)]
pub struct Fence {
    until: Arc<watch::Sender<Option<Instant>>>,
}

/// The error of a write after the process lost its lease.
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

    /// Stops all writes.
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

    /// Returns a client whose writes pass the fence. A write fails with [`Fenced`] while the fence is closed.
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
/// lease, so that the leader stops before another process can become the leader.
pub fn trusted(lease: Duration) -> Duration {
    lease * 2 / 3
}
