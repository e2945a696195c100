//! The reconcile loops that make a cluster match its ReleasePins.
//!
//! Each reconcile reads the current objects again, writes only the differences, and can be repeated after a
//! crash at any line. Each controller watches every object that it refers to, so users may apply the objects
//! in any order.
//!
//! A controller does not depend on the target that its client connects to. Only the Component controller
//! changes the release of a ReleasePin; it uses the engine under the same rules as a user.

pub mod all;
pub mod beside;
pub mod component;
pub mod fence;
pub mod lease;
pub mod lock;
pub mod metrics;
pub mod pin;
pub mod pipeline;
pub mod release;
pub mod rendered;
pub mod retention;
pub mod run;
pub mod simulator;
pub mod table;
#[cfg(test)]
mod testing;

// `crate::engine` is the engine in every package.
#[cfg(test)]
use bowline_core::fixture;
use bowline_core::{api, connect, engine, render, resolve, subjects, text};

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use tokio::sync::OnceCell;

use crate::engine::bodies::Bodies;
use crate::engine::whoami;
use crate::engine::world::feed::Feed;
use crate::resolve::git::Git;
use metrics::Metrics;

/// A function that returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The clients, caches and settings that every reconcile uses.
pub struct Context {
    /// The client of the control plane, which serves bowline's kinds.
    pub client: Client,
    /// The namespace that the controllers watch; None for all namespaces.
    pub namespace: Option<String>,
    pub clock: Clock,
    /// The reader of the definitions that releases name by git reference.
    pub git: Git,
    pub metrics: Arc<Metrics>,
    /// The cache of the specs of releases and snapshots.
    pub bodies: Bodies,
    feed: OnceLock<Feed>,
    user: OnceCell<String>,
}

impl Context {
    /// Creates a context. Sends no request.
    pub fn new(
        client: Client,
        namespace: Option<String>,
        clock: Clock,
        git: Git,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            client,
            namespace,
            clock,
            git,
            metrics,
            bodies: Bodies::default(),
            feed: OnceLock::new(),
            user: OnceCell::new(),
        }
    }

    /// Returns an API client for a kind in all watched namespaces.
    pub fn all<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// Returns an API client for a kind in one namespace.
    pub fn within<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the read model that the controllers share. Its watches start with the first call.
    pub fn feed(&self) -> &Feed {
        self.feed
            .get_or_init(|| subjects::watch(&self.client, self.namespace.as_deref()))
    }

    /// Returns the user name that the server reports for the client. Only the first call sends a request.
    pub async fn user(&self) -> Result<&str, kube::Error> {
        let ask = || async {
            let said = whoami::ask(&self.client, &|| self.now()).await;
            said.map(|said| said.user)
        };
        let user = self.user.get_or_try_init(ask).await;
        user.map(String::as_str)
    }
}
