//! The reconcile loops that make a cluster agree with its pins.
//!
//! Desired state is level-triggered: a reconcile reads everything again, writes only what differs, and is
//! safe to repeat after a crash at any line. Each controller watches every object that it refers to, so
//! that the order in which things are applied does not matter.
//!
//! Nothing here knows where a client leads, and nothing here moves a pin but automatic deployment, which
//! goes through the engine as a person does.

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

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What every reconciler is given.
pub struct Context {
    /// The control plane, where our kinds are.
    pub client: Client,
    /// The namespace that is looked after; all of them where absent.
    pub namespace: Option<String>,
    /// Tells the time.
    pub clock: Clock,
    /// Reads definitions by git reference.
    pub git: Git,
    /// Counts what happens.
    pub metrics: Arc<Metrics>,
    /// The contents of releases and snapshots that were read.
    pub bodies: Bodies,
    feed: OnceLock<Feed>,
    user: OnceCell<String>,
}

impl Context {
    /// Makes a context that has read nothing yet.
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

    /// Returns a kind of ours in the namespaces that are looked after.
    pub fn all<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// Returns a kind of ours in one namespace.
    pub fn within<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the read model that the controllers share; it follows the server from the first time on
    /// that somebody asks for it.
    pub fn feed(&self) -> &Feed {
        self.feed
            .get_or_init(|| Feed::start(&self.client, self.namespace.as_deref()))
    }

    /// Returns who the server takes us for; it is asked once.
    pub async fn user(&self) -> Result<&str, kube::Error> {
        let ask = || async {
            let said = whoami::ask(&self.client, &|| self.now()).await;
            said.map(|said| said.user)
        };
        let user = self.user.get_or_try_init(ask).await;
        user.map(String::as_str)
    }
}
