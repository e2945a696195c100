//! The list of all controllers, and the code that starts and stops them together.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use kube::{Client, Resource};
use tokio::task::JoinSet;

use super::rendered::{self, DataPlaneOptions};
use super::{Context, component, pin, pipeline, release, retention};
use crate::api::{
    Component, ComponentEnvSnapshot, DataPlane, DeploymentPipeline, Environment, Release,
    ReleasePin, RenderedRelease,
};
use crate::connect::DataPlanes;
use crate::connect::kinds::{Discovery, kind};

/// A future that becomes ready when the controllers have to stop. Each controller then starts no new
/// reconcile, and finishes the reconciles that already run.
pub type Stop = Shared<BoxFuture<'static, ()>>;

/// The delay before [`run`] restarts a failed controller.
const PAUSE: Duration = Duration::from_secs(1);

/// The polling interval while a controller waits for a kind that the server does not serve yet.
const LOOK: Duration = Duration::from_secs(2);

type Run = Arc<dyn Fn(Arc<Context>, Stop) -> BoxFuture<'static, ()> + Send + Sync>;

/// A controller that [`run`] can start: its name, the kinds that it needs, and the function that runs it.
#[derive(Clone)]
pub struct Loop {
    name: &'static str,
    /// The kinds that the controller needs. The controller starts when the server serves all of them.
    needs: Vec<ApiResource>,
    run: Run,
}

impl Loop {
    /// Creates a controller with a name and a function that runs it until the stop future is ready.
    pub fn new<F>(
        name: &'static str,
        run: impl Fn(Arc<Context>, Stop) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            name,
            needs: Vec::new(),
            run: Arc::new(move |context, stop| run(context, stop).boxed()),
        }
    }

    /// Adds a kind that the controller needs. The controller starts when the server serves the kind.
    pub fn needing<K: Resource<DynamicType = ()>>(mut self) -> Self {
        self.needs.push(kind::<K>());
        self
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Loop").field(&self.name).finish()
    }
}

/// Returns all controllers. The caller may start them in any order, because each controller waits for the
/// kinds that it needs.
pub fn all(planes: DataPlanes) -> Vec<Loop> {
    vec![
        Loop::new("pin", pin::run)
            .needing::<ReleasePin>()
            .needing::<Release>()
            .needing::<RenderedRelease>()
            .needing::<ComponentEnvSnapshot>()
            .needing::<Environment>()
            .needing::<DataPlane>(),
        Loop::new("component", component::run).needing::<Component>(),
        Loop::new("pipeline", pipeline::run).needing::<DeploymentPipeline>(),
        Loop::new("release", release::run).needing::<Release>(),
        Loop::new("retention", retention::run).needing::<DeploymentPipeline>(),
        // The renderedrelease controller needs only its own kind: it must still delete workloads after the
        // other kinds are deleted.
        Loop::new("renderedrelease", move |context, stop| {
            rendered::run(context, DataPlaneOptions::new(planes.clone()), stop)
        })
        .needing::<RenderedRelease>(),
    ]
}

/// Returns those of bowline's kinds that the server does not serve. If the discovery of a kind failed, the
/// result does not contain the kind.
pub async fn missing(client: &Client) -> Vec<ApiResource> {
    let all: Vec<ApiResource> = crate::api::crds().iter().filter_map(resource).collect();
    absent(client, all).await
}

/// Returns the API resource that a CRD defines; None if the CRD has no version.
fn resource(kind: &CustomResourceDefinition) -> Option<ApiResource> {
    let (group, version) = (&kind.spec.group, &kind.spec.versions.first()?.name);
    Some(ApiResource {
        group: group.clone(),
        version: version.clone(),
        api_version: format!("{group}/{version}"),
        kind: kind.spec.names.kind.clone(),
        plural: kind.spec.names.plural.clone(),
    })
}

async fn absent(client: &Client, kinds: Vec<ApiResource>) -> Vec<ApiResource> {
    let discovery = Discovery::ask(client, &kinds).await;
    let is_absent = |kind: &ApiResource| discovery.serves(kind) == Some(false);
    kinds.into_iter().filter(is_absent).collect()
}

/// Waits until the server serves the given kinds. If discovery fails, returns at once, because then the
/// served kinds are unknown.
async fn until_served(client: &Client, kinds: &[ApiResource]) {
    let mut absent_kinds = kinds.to_vec();
    loop {
        absent_kinds = absent(client, absent_kinds).await;
        if absent_kinds.is_empty() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns a stop future that becomes ready together with `when`.
pub fn stop(when: impl Future<Output = ()> + Send + 'static) -> Stop {
    when.boxed().shared()
}

/// Runs the controllers until the stop future is ready and all running reconciles are finished. If the caller
/// drops the returned future, the controllers end at once.
pub async fn run(loops: Vec<Loop>, context: &Arc<Context>, stop: Stop) {
    let mut running = JoinSet::new();
    for each in loops {
        running.spawn(keep_running(each, context.clone(), stop.clone()));
    }
    while running.join_next().await.is_some() {}
    stop.await;
}

/// Runs one controller until the stop future is ready. Starts the controller again if it panics or returns
/// early.
async fn keep_running(each: Loop, context: Arc<Context>, stop: Stop) {
    tokio::select! {
        () = stop.clone() => return,
        () = until_served(&context.client, &each.needs) => {}
    }
    loop {
        let run = AssertUnwindSafe((each.run)(context.clone(), stop.clone())).catch_unwind();
        let ended = run.await;
        if stop.peek().is_some() {
            return;
        }
        let how = if ended.is_err() {
            "with a panic"
        } else {
            "early"
        };
        tracing::error!(
            controller = each.name,
            "the controller ended {how}; restarting it"
        );
        context.metrics.restarted(each.name);
        tokio::select! {
            () = stop.clone() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

#[cfg(test)]
mod tests;
