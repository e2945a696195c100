//! The DeploymentPipeline controller: if a pipeline has a fault, bowline refuses promotions in its namespace,
//! and this controller reports the fault in a condition of the pipeline.
//!
//! A pipeline without a fault gets no status, unless an earlier status reports a fault. No other controller
//! reads this status.

use std::sync::Arc;

use futures::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};
use serde_json::json;

use super::Context;
use crate::api::condition::{self, Observation, Status};
use crate::api::openchoreo::environment::DeploymentPipelineStatus;
use crate::api::{DeploymentPipeline, labels};
use crate::connect::explain;
use crate::engine::world::Source;

/// The number of pipelines that are reconciled at the same time.
const AT_ONCE: u16 = 2;

/// The reason why the controller retries to write a status.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// A request to the control plane failed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// Runs the controller until the stop future is ready.
pub async fn run(context: Arc<Context>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let pipelines = context.all::<DeploymentPipeline>();
    let controller = Controller::new(pipelines, watcher::Config::default());
    let triggers = triggers(&context, controller.store());
    let controller = controller.reconcile_on(triggers).graceful_shutdown_on(stop);
    super::run::run(
        "pipeline",
        controller,
        AT_ONCE,
        context.clone(),
        context,
        |pipeline, context| reconcile(pipeline, context).boxed(),
    )
    .await;
}

/// Returns a stream of the pipelines to reconcile. A changed pipeline triggers all pipelines of its
/// namespace, because a fault can depend on the others.
fn triggers(
    context: &Arc<Context>,
    pipelines: Store<DeploymentPipeline>,
) -> impl Stream<Item = ObjectRef<DeploymentPipeline>> + Send + use<> {
    context.feed().touched().flat_map(move |touched| {
        let here = |pipeline: &DeploymentPipeline| {
            let key = touched.key.as_ref();
            let namespace = pipeline.metadata.namespace.as_deref();
            touched.source == Source::PIPELINES
                && key.is_none_or(|key| Some(&*key.namespace) == namespace)
        };
        let found = pipelines.state_filter(here).into_iter();
        let found = found.map(|pipeline| ObjectRef::from_obj(&*pipeline));
        futures::stream::iter(found.collect::<Vec<_>>())
    })
}

async fn reconcile(
    pipeline: Arc<DeploymentPipeline>,
    context: Arc<Context>,
) -> Result<Action, PipelineError> {
    let namespace = pipeline.namespace().unwrap_or_default();
    let feed = context.feed();
    feed.when(|world| world.are_live(&[Source::PIPELINES]))
        .await;
    let fault = feed.world().pipeline_fault(&namespace);
    let before = pipeline.status.clone().unwrap_or_default();
    let is_known = condition::find(&before.conditions, condition::VALID).is_some();
    if fault.is_none() && !is_known {
        return Ok(Action::await_change());
    }
    let mut conditions = before.conditions.clone();
    let (status, reason, message) = match &fault {
        Some(fault) => (Status::False, fault.reason(), fault.to_string()),
        None => {
            let message = "the pipeline is the only one of its namespace and has no cycle";
            (Status::True, condition::VALID, message.to_owned())
        }
    };
    let observation = Observation {
        type_: condition::VALID,
        status,
        reason,
        message,
        generation: pipeline.metadata.generation,
    };
    // The API does not keep fractions of a second.
    let now = context.now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    condition::set(&mut conditions, observation, now);
    let after = DeploymentPipelineStatus {
        observed_generation: pipeline.metadata.generation,
        conditions,
    };
    if after == before {
        return Ok(Action::await_change());
    }
    let ours = PatchParams {
        field_manager: Some(labels::MANAGER_CONTROLLER.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({"status": after}));
    let pipelines = context.within::<DeploymentPipeline>(&namespace);
    match pipelines
        .patch_status(&pipeline.name_any(), &ours, &patch)
        .await
    {
        Ok(_) => Ok(Action::await_change()),
        // The pipeline is deleted, or its CRD is so old that it has no status subresource.
        Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(Action::await_change()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DeleteParams;

    use super::*;
    use crate::testing::{Shop, start};

    fn says(found: Option<&DeploymentPipeline>, status: &str, words: &str) -> bool {
        let said = found.and_then(|found| found.status.as_ref());
        let said = said.and_then(|said| condition::find(&said.conditions, condition::VALID));
        said.is_some_and(|said| said.status == status && said.message.contains(words))
    }

    #[tokio::test]
    async fn a_second_pipeline_and_a_circle_are_conditions_that_pass() {
        let shop = Shop::open().await;
        let (context, requests) = shop.context();
        let running = start(&context, run);
        let other = "apiVersion: openchoreo.dev/v1alpha1\nkind: DeploymentPipeline\nmetadata: {name: other}\nspec: {}";
        shop.apply(other).await;
        let both = "2 DeploymentPipelines (default, other)";
        for name in ["default", "other"] {
            let found = |found: Option<&DeploymentPipeline>| says(found, "False", both);
            shop.until(name, found).await;
        }
        let pipelines = shop.api::<DeploymentPipeline>();
        let now = DeleteParams::default();
        pipelines.delete("other", &now).await.unwrap();
        let found = |found: Option<&DeploymentPipeline>| says(found, "True", "only one");
        shop.until("default", found).await;
        let path = |from: &str, to: &str| json!({"sourceEnvironmentRef": {"name": from}, "targetEnvironmentRefs": [{"name": to}]});
        let paths = json!([path("a", "b"), path("b", "c"), path("c", "a")]);
        let patch = Patch::Merge(json!({"spec": {"promotionPaths": paths}}));
        let params = PatchParams::default();
        pipelines.patch("default", &params, &patch).await.unwrap();
        let found = |found: Option<&DeploymentPipeline>| says(found, "False", "through a, b, c");
        shop.until("default", found).await;
        running.stop().await;
        assert!(requests.written() <= 5, "{}", requests.written());
    }
}
