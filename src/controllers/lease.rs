//! Leader election: of many controller processes, only the holder of a Lease object acts.
//!
//! The holder renews the lease. Another process takes the lease when the holder releases it, or when the
//! lease did not change for its whole duration. A process measures that duration with its own clock, so the
//! clocks of two machines are never compared.
//!
//! After each renewal, the holder may write for two thirds of the duration. So the holder stops before
//! another process can become the holder.

#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::Clock;
use super::all::Stop;
use super::fence::{Fence, trusted};
use crate::api::labels;

/// One process that takes part in the election.
pub struct Election {
    leases: Api<Lease>,
    identity: String,
    lasts: Duration,
    clock: Clock,
    fence: Fence,
}

/// The Lease object of this process, as the server last returned it.
struct Held(Lease);

/// The last seen state of another process's lease, and the time at which this process first saw that state.
struct Sighting {
    version: Option<String>,
    since: Instant,
}

impl Election {
    /// Creates a participant in the election. `identity` must differ between the processes. `seconds` is the
    /// duration of the lease.
    pub fn new(
        client: &Client,
        identity: String,
        seconds: u16,
        clock: Clock,
        fence: Fence,
    ) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), labels::SYSTEM_NAMESPACE),
            identity,
            lasts: Duration::from_secs(seconds.max(1).into()),
            clock,
            fence,
        }
    }

    /// Returns the interval between two reads or renewals of the lease.
    fn pause(&self) -> Duration {
        self.lasts / 5
    }

    /// Takes part in the election until `end` is ready, and then releases the lease if this process holds it.
    /// Sends a new number to `terms` when this process becomes the leader, and None when it is no longer the
    /// leader.
    pub async fn take_part(
        &self,
        terms: &watch::Sender<Option<u64>>,
        mut seen: impl FnMut(Result<Option<&str>, &kube::Error>),
        end: Stop,
    ) {
        for term in 0.. {
            let mut held = tokio::select! {
                held = self.win(&mut seen) => held,
                () = end.clone() => return,
            };
            terms.send_replace(Some(term));
            let lost = tokio::select! {
                () = self.keep(&mut held) => true,
                () = end.clone() => false,
            };
            terms.send_replace(None);
            if !lost {
                self.release(held).await;
                return;
            }
            tracing::error!(
                "lost the lease; the controllers stop until this process holds it again"
            );
        }
    }

    /// Waits until this process holds the lease. After each attempt without success, calls `seen` with the
    /// identity of the current holder or with the error.
    async fn win(&self, mut seen: impl FnMut(Result<Option<&str>, &kube::Error>)) -> Held {
        let mut sighting: Option<Sighting> = None;
        loop {
            let begun = Instant::now();
            // An answer that takes longer than the duration of the lease is out of date.
            let attempt = timeout(self.lasts, self.attempt(&mut sighting));
            match attempt.await {
                Ok(Ok(Ok(held))) => {
                    self.fence.open(begun + trusted(self.lasts));
                    return held;
                }
                Ok(Ok(Err(holder))) => seen(Ok(holder.as_deref())),
                Ok(Err(error)) => seen(Err(&error)),
                Err(_elapsed) => {}
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Reads the lease, and takes it if it is free or expired. Otherwise returns the identity of the holder;
    /// None if another process took the lease during the attempt.
    async fn attempt(
        &self,
        sighting: &mut Option<Sighting>,
    ) -> Result<Result<Held, Option<String>>, kube::Error> {
        let name = labels::CONTROLLER_LEASE;
        let Some(mut lease) = self.leases.get_opt(name).await? else {
            return self.create().await;
        };
        let spec = lease.spec.get_or_insert_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        // This process may hold the lease already, if the answer to an earlier attempt was lost.
        let free = holder.is_empty() || holder == self.identity;
        let version = lease.metadata.resource_version.as_ref();
        if !free && !is_over(spec, version, sighting) {
            return Ok(Err(Some(holder)));
        }
        let now = self.now();
        *spec = LeaseSpec {
            acquire_time: Some(now.clone()),
            lease_transitions: Some(spec.lease_transitions.unwrap_or_default().saturating_add(1)),
            ..self.spec(now)
        };
        match self
            .leases
            .replace(name, &PostParams::default(), &lease)
            .await
        {
            Ok(lease) => Ok(Ok(Held(lease))),
            // A faster process took the lease; the next attempt shows its identity.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Err(None)),
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> Result<Result<Held, Option<String>>, kube::Error> {
        let now = self.now();
        let own = (
            labels::PART_OF.to_owned(),
            labels::PART_OF_BOWLINE.to_owned(),
        );
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(labels::CONTROLLER_LEASE.to_owned()),
                labels: Some([own].into()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                acquire_time: Some(now.clone()),
                lease_transitions: Some(0),
                ..self.spec(now)
            }),
        };
        match self.leases.create(&PostParams::default(), &lease).await {
            Ok(lease) => Ok(Ok(Held(lease))),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Err(None)),
            Err(error) => Err(error),
        }
    }

    /// Renews the lease until the lease is lost. Closes the fence before the return, so that the leader's
    /// tasks cannot write any more.
    async fn keep(&self, held: &mut Held) {
        let renewing = async {
            loop {
                tokio::time::sleep(self.pause()).await;
                if !self.renew(held).await {
                    return;
                }
            }
        };
        tokio::select! {
            () = renewing => {}
            () = self.fence.closed() => {}
        }
        self.fence.close();
    }

    /// Renews the lease once. Returns whether this process may still hold the lease.
    async fn renew(&self, held: &mut Held) -> bool {
        let begun = Instant::now();
        let mut lease = held.0.clone();
        let before = lease.spec.take().unwrap_or_default();
        lease.spec = Some(LeaseSpec {
            acquire_time: before.acquire_time,
            lease_transitions: before.lease_transitions,
            ..self.spec(self.now())
        });
        let params = PostParams::default();
        let renewal = self
            .leases
            .replace(labels::CONTROLLER_LEASE, &params, &lease);
        match timeout(trusted(self.lasts) / 2, renewal).await {
            Ok(Ok(lease)) => {
                *held = Held(lease);
                self.fence.open(begun + trusted(self.lasts));
                true
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                self.is_ours(held).await
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot renew the lease");
                true
            }
            Err(_elapsed) => {
                tracing::warn!("the lease could not be renewed in time");
                true
            }
        }
    }

    /// After a conflict, returns whether this process still holds the lease. Reads the lease again, because
    /// the server may have executed an earlier renewal whose answer was lost.
    async fn is_ours(&self, held: &mut Held) -> bool {
        match self.leases.get_opt(labels::CONTROLLER_LEASE).await {
            Ok(Some(lease)) => {
                let spec = lease.spec.as_ref();
                let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
                let ours = holder == Some(&*self.identity) && lease.uid() == held.0.uid();
                if ours {
                    *held = Held(lease);
                }
                ours
            }
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Releases the lease, so that another process does not have to wait until it expires.
    async fn release(&self, held: Held) {
        self.fence.close();
        let Held(mut lease) = held;
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
            spec.renew_time = Some(self.now());
        }
        let params = PostParams::default();
        let release = self
            .leases
            .replace(labels::CONTROLLER_LEASE, &params, &lease);
        // If the release fails, other processes wait until the lease expires.
        if !matches!(timeout(self.lasts, release).await, Ok(Ok(_))) {
            tracing::warn!("cannot release the lease; it expires by itself");
        }
    }

    fn spec(&self, now: MicroTime) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.lasts.as_secs()).unwrap_or(i32::MAX)),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }
    }

    fn now(&self) -> MicroTime {
        MicroTime((self.clock)())
    }
}

/// Returns whether a lease has expired: it did not change for its whole duration. Stores each new state of
/// the lease in `sighting`.
fn is_over(spec: &LeaseSpec, version: Option<&String>, sighting: &mut Option<Sighting>) -> bool {
    let seconds = spec.lease_duration_seconds.unwrap_or_default();
    let lasts = Duration::from_secs(seconds.max(1).unsigned_abs().into());
    match sighting {
        Some(seen) if seen.version.as_ref() == version => seen.since.elapsed() >= lasts,
        _ => {
            *sighting = Some(Sighting {
                version: version.cloned(),
                since: Instant::now(),
            });
            false
        }
    }
}
