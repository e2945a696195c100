//! The Component controller. When a definition of a component with `autoDeploy` changes, the controller
//! creates a release and deploys it to the first environment, by a change of the ReleasePin there.
//!
//! The controller uses the engine under the same rules as a user. Therefore it changes no ReleasePin that has
//! a hold or that a GitOps tool owns. It deploys each change of the definitions once; if a hold blocked the
//! deployment, it deploys when the hold ends. If a user later deploys another release, the controller leaves
//! that release until the next change of a definition.
//!
//! Watches keep the definitions in memory, so a reconcile that finds no change sends no request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};
use kube::{Resource, ResourceExt};
use serde::Serialize;

use super::Context;
use super::table::{Change, Table};
use crate::api::bowline::audit;
use crate::api::condition::{self, Observation, Status};
use crate::api::openchoreo::component::ComponentStatus;
use crate::api::{Addon, Component, ComponentTypeDefinition, Release, Workload, labels};
use crate::connect::explain;
use crate::engine::diff;
use crate::engine::plan::{Asked, Plan};
use crate::engine::publish::{Applied, ApplyError, apply};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source, World};
use crate::subjects::release_pin::READ_BY_CHANGES;
use crate::subjects::release_pin::actions::deploy::{self, Deploy};
use crate::subjects::release_pin::actions::release as release_action;
use crate::subjects::release_pin::catalog::{Catalog, CatalogError};
use crate::subjects::release_pin::preview::{PreviewError, Stage};
use crate::subjects::release_pin::rules::Refusal;

/// How many components the controller reconciles at the same time.
const AT_ONCE: u16 = 8;

/// The longest wait until the read model contains a release that the controller created.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reasons why the reconcile of a component is retried.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// A rule or the current state does not allow the deployment now, so the controller retries later.
    #[error("{reason}: {message}")]
    NotNow {
        /// The reason field of the status condition that reports the refusal.
        reason: &'static str,
        /// Explains the refusal to the user.
        message: String,
    },
    /// The engine could not write the change of the ReleasePin.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A request to the control plane failed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// A definition from a watch. Two values are equal if their objects have the same uid and resourceVersion.
struct Written<K>(Arc<K>);

impl<K> Clone for Written<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Resource> PartialEq for Written<K> {
    fn eq(&self, other: &Self) -> bool {
        version(&*self.0) == version(&*other.0)
    }
}

/// The uid and the resourceVersion of a definition.
type Version = (Option<String>, Option<String>);

fn version(object: &impl Resource) -> Version {
    let metadata = object.meta();
    (metadata.uid.clone(), metadata.resource_version.clone())
}

fn itself<T>(key: &Key, _: &T) -> Key {
    key.clone()
}

/// A computed release, after the versions of the definitions that it was computed from.
type Made = (Vec<Version>, Arc<Release>);

/// The state that the reconciles of all components share.
struct Shared {
    base: Arc<Context>,
    types: Arc<Table<Written<ComponentTypeDefinition>>>,
    addons: Arc<Table<Written<Addon>>>,
    workloads: Arc<Table<Written<Workload>>>,
    /// The release that was last computed for each component. It is reused until the version of a definition
    /// changes.
    releases: Mutex<HashMap<Key, Made>>,
}

impl Shared {
    fn new(base: Arc<Context>) -> Arc<Self> {
        Arc::new(Self {
            base,
            types: Table::new(itself),
            addons: Table::new(itself),
            workloads: Table::new(itself),
            releases: Mutex::default(),
        })
    }

    async fn ready(&self) {
        self.types.until_listed().await;
        self.addons.until_listed().await;
        self.workloads.until_listed().await;
        let live = |world: &World| world.are_live(&READ_BY_CHANGES);
        self.base.feed().when(live).await;
    }

    /// Returns a stream of the components to reconcile when another object changes.
    fn triggers(
        self: &Arc<Self>,
        components: Store<Component>,
    ) -> impl Stream<Item = ObjectRef<Component>> + Send + use<> {
        let base = &self.base;
        let uses = |known: &Store<Component>, uses: &dyn Fn(&Component) -> bool| {
            let found =
                known.state_filter(|component| component.spec.auto_deploy && uses(component));
            let found = found.into_iter().map(|found| ObjectRef::from_obj(&*found));
            futures::stream::iter(found.collect::<Vec<_>>())
        };
        let known = components.clone();
        let types = self.types.follow(base.all(), |it| Written(Arc::new(it)));
        let types = types.flat_map(move |change: Change<_>| {
            uses(&known, &|component| {
                let (_, type_) = component.spec.type_parts().unwrap_or_default();
                is_in(component, &change.key) && type_ == &*change.key.name
            })
        });
        let known = components.clone();
        let addons = self.addons.follow(base.all(), |it| Written(Arc::new(it)));
        let addons = addons.flat_map(move |change: Change<_>| {
            uses(&known, &|component| {
                let mut used = component.spec.addons.iter();
                is_in(component, &change.key) && used.any(|addon| addon.name == *change.key.name)
            })
        });
        let known = components.clone();
        let workloads = self
            .workloads
            .follow(base.all(), |it| Written(Arc::new(it)));
        let workloads = workloads.flat_map(move |change: Change<_>| {
            uses(&known, &|component| {
                is_in(component, &change.key) && component.name_any() == *change.key.name
            })
        });
        let shared = self.clone();
        let world = base.feed().touched().flat_map(move |touched| {
            let concerns = shared.touched(&touched);
            uses(&components, &|component| concerns(component))
        });
        futures::stream::select_all([
            types.boxed(),
            addons.boxed(),
            workloads.boxed(),
            world.boxed(),
        ])
    }

    /// Returns a filter that is true for the components that a change in the read model affects. Such a
    /// change is, for example, a removed hold or a new environment.
    fn touched(&self, touched: &Touched) -> impl Fn(&Component) -> bool + use<> {
        let pin = touched
            .key
            .as_ref()
            .filter(|_| touched.source == Source::RELEASE_PINS);
        let pinned = pin.and_then(|pin| {
            let world = self.base.feed().world();
            world.pin(pin).map(|pin| pin.component.to_string())
        });
        let anybody = matches!(touched.source, Source::ENVIRONMENTS | Source::PIPELINES);
        let key = touched.key.clone();
        move |component| match &key {
            None => true,
            Some(key) => {
                is_in(component, key)
                    && (anybody || pinned.as_deref() == component.metadata.name.as_deref())
            }
        }
    }

    /// Returns the release that the current definitions of a component give. Computes it only if a definition
    /// changed since the last call.
    fn release(&self, key: &Key, component: &Component) -> Result<Arc<Release>, CatalogError> {
        let beside = |name: &str| Key::new(&key.namespace, name);
        let (_, type_) = component.spec.type_parts().unwrap_or_default();
        let type_ = self.types.get(&beside(type_));
        let used = component.spec.addons.iter();
        let used = used
            .filter_map(|addon| Some((addon.name.clone(), self.addons.get(&beside(&addon.name))?)));
        // A component may use the same addon twice; the map contains the addon once.
        let used: HashMap<String, Written<Addon>> = used.collect();
        let workload = self.workloads.get(key);
        let mut versions = vec![version(component)];
        versions.extend(type_.iter().map(|it| version(&*it.0)));
        versions.extend(workload.iter().map(|it| version(&*it.0)));
        let mut of_addons: Vec<Version> = used.values().map(|it| version(&*it.0)).collect();
        of_addons.sort();
        versions.extend(of_addons);
        let known = || self.releases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, release)) = known().get(key)
            && *of == versions
        {
            return Ok(release.clone());
        }
        let mut catalog = Catalog::empty(&key.namespace);
        put(&mut catalog, Some(component))?;
        put(&mut catalog, type_.as_ref().map(|it| &*it.0))?;
        put(&mut catalog, workload.as_ref().map(|it| &*it.0))?;
        for addon in used.values() {
            put(&mut catalog, Some(&*addon.0))?;
        }
        let definitions = catalog.definitions(&key.name)?;
        let source = release_action::Source::Embedded;
        let release = Arc::new(release_action::release(&definitions, None, &source));
        known().insert(key.clone(), (versions, release.clone()));
        Ok(release)
    }
}

fn is_in(component: &Component, key: &Key) -> bool {
    component.metadata.namespace.as_deref() == Some(&*key.namespace)
}

fn put<K>(catalog: &mut Catalog, object: Option<&K>) -> Result<(), CatalogError>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    object.map_or(Ok(()), |object| catalog.put(object))
}

/// Runs the controller until the stop future is ready.
pub async fn run(context: Arc<Context>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let shared = Shared::new(context.clone());
    let controller = Controller::new(context.all::<Component>(), watcher::Config::default());
    let triggers = shared.triggers(controller.store());
    let controller = controller.reconcile_on(triggers).graceful_shutdown_on(stop);
    super::run::run(
        "component",
        controller,
        AT_ONCE,
        context,
        shared,
        |component, shared| reconcile(component, shared).boxed(),
    )
    .await;
}

/// The result of a reconcile, from which the status of the component is written.
struct Found {
    release: Option<String>,
    status: Status,
    reason: &'static str,
    message: String,
    /// Whether the controller retries, because the cause of the failure can disappear without a watch event.
    may_pass: bool,
}

async fn reconcile(
    component: Arc<Component>,
    shared: Arc<Shared>,
) -> Result<Action, ComponentError> {
    let key = Key::new(
        &component.namespace().unwrap_or_default(),
        &component.name_any(),
    );
    if !component.spec.auto_deploy || component.metadata.deletion_timestamp.is_some() {
        shared
            .releases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
        return Ok(Action::await_change());
    }
    shared.ready().await;
    let found = match shared.release(&key, &component) {
        Ok(release) => {
            let release = existing(&shared, &key, &release).unwrap_or(release);
            if is_done(&component, &release.name_any()) {
                return Ok(Action::await_change());
            }
            deploy(&shared, &key, &release).await?
        }
        Err(error) => Found {
            release: None,
            status: Status::False,
            reason: "NotComplete",
            message: error.to_string(),
            may_pass: false,
        },
    };
    write_status(&shared, &component, &found).await?;
    match found.may_pass {
        true => Err(ComponentError::NotNow {
            reason: found.reason,
            message: found.message,
        }),
        false => Ok(Action::await_change()),
    }
}

/// If another release already has the content of the computed one, returns the computed release with the name
/// of that existing release. Returns None if no release has this content, or if the release with the computed
/// name has it.
fn existing(shared: &Shared, key: &Key, release: &Arc<Release>) -> Option<Arc<Release>> {
    let hash = release.annotations().get(labels::CONTENT_HASH)?;
    let world = shared.base.feed().world();
    let named = world.release(&Key::new(&key.namespace, &release.name_any()));
    if named.is_some_and(|row| row.hash.as_deref() == Some(hash)) {
        return None;
    }
    let same = world
        .releases_of(key)
        .find(|row| row.hash.as_deref() == Some(hash))?;
    let mut known = (**release).clone();
    known.metadata.name = Some(same.key.name.to_string());
    Some(Arc::new(known))
}

/// Returns whether this release is the one that the controller deployed last, according to the status of the
/// component.
fn is_done(component: &Component, release: &str) -> bool {
    component.status.as_ref().is_some_and(|status| {
        status.latest_release.as_deref() == Some(release)
            && condition::is_true(&status.conditions, condition::DEPLOYED, None)
    })
}

async fn deploy(shared: &Shared, key: &Key, release: &Release) -> Result<Found, ComponentError> {
    let name = release.name_any();
    make(shared, key, release).await?;
    let found = |status, reason, message: String, may_pass| Found {
        release: Some(name.clone()),
        status,
        reason,
        message,
        may_pass,
    };
    let planned = {
        let asked = asked(shared, key).await?;
        let world = shared.base.feed().world();
        plan(&world, key, &name, &asked)
    };
    let mut plan = match planned {
        Ok(plan) => plan,
        Err(refusal) => {
            let (reason, may_pass) = refused(&refusal);
            return Ok(found(Status::False, reason, refusal.to_string(), may_pass));
        }
    };
    let Some(change) = plan.changes.first_mut() else {
        return Ok(found(
            Status::False,
            "Refused",
            "the plan of this deployment is empty".to_owned(),
            false,
        ));
    };
    if !change.unchanged {
        let stage = Stage::new(&shared.base.client, &key.namespace, &shared.base.git);
        match stage.preview(change, &diff::Options::default()).await {
            Ok(preview) => change.rendered_hash = Some(preview.hash),
            Err(PreviewError::Target(error)) => return Err(error.into()),
            Err(error) => return Ok(found(Status::False, "DoesNotFit", error.to_string(), true)),
        }
    }
    let (change, environment) = (change.clone(), change.environment.clone());
    let clock = || shared.base.now();
    match apply(&shared.base.client, &plan, &change, &clock).await? {
        Applied::Superseded { by, .. } => {
            tracing::info!(%by, "another writer changed the ReleasePin after the deployment")
        }
        applied => tracing::info!(component = %key.name, release = %name, ?applied, "deployed"),
    }
    let message = format!("{name} was deployed to {environment}");
    Ok(found(Status::True, "AutoDeployed", message, false))
}

/// Creates a release unless it exists, and waits until the read model contains it. An existing release of
/// this name has the same content, because the name contains the content hash.
async fn make(shared: &Shared, key: &Key, release: &Release) -> Result<(), ComponentError> {
    let own = Key::new(&key.namespace, &release.name_any());
    let seen = |world: &World| world.release(&own).is_some();
    if seen(&shared.base.feed().world()) {
        return Ok(());
    }
    let ours = PostParams {
        field_manager: Some(labels::MANAGER_CONTROLLER.to_owned()),
        ..PostParams::default()
    };
    let releases = shared.base.within::<Release>(&key.namespace);
    match releases.create(&ours, release).await {
        Ok(_) => {}
        // Another process created the same release.
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error.into()),
    }
    let seen = shared.base.feed().when(seen);
    let in_time = tokio::time::timeout(PATIENCE, seen).await;
    in_time.map_err(|_| ComponentError::NotNow {
        reason: "NotSeen",
        message: format!(
            "release {} was created, but the watch has not shown it yet",
            own.name
        ),
    })
}

async fn asked(shared: &Shared, key: &Key) -> Result<Asked, kube::Error> {
    Ok(Asked {
        operation: uuid::Uuid::new_v4().to_string(),
        now: shared.base.now(),
        user: shared.base.user().await?.to_owned(),
        reason: Some(format!(
            "autoDeploy: the definitions of {} changed",
            key.name
        )),
        namespace: key.namespace.to_string(),
    })
}

/// Plans to deploy a release to the first environment. If the pipeline has several first environments, takes
/// the one that the pipeline lists first.
fn plan(world: &World, key: &Key, release: &str, asked: &Asked) -> Result<Plan, Refusal> {
    let pipeline = world.pipeline(&key.namespace);
    if let Some(fault) = world.pipeline_fault(&key.namespace) {
        return Err(fault.into());
    }
    let first = pipeline.and_then(|pipeline| pipeline.first_environments().first().copied());
    let Some(first) = first else {
        return Err(Refusal::NoPipeline {
            namespace: key.namespace.to_string(),
        });
    };
    let command = Deploy {
        component: key.name.to_string(),
        environment: first.to_owned(),
        release: release.to_owned(),
        skip_path: false,
    };
    let mut plan = deploy::plan(world, &command, asked)?;
    plan.action = audit::Action::AutoDeploy;
    Ok(plan)
}

/// Returns the reason for the status condition if the engine refuses the deployment. Also returns whether to
/// retry, because the cause can disappear without a watch event.
fn refused(refusal: &Refusal) -> (&'static str, bool) {
    match refusal {
        Refusal::Held { .. } => ("Held", false),
        Refusal::OwnedByGit { .. } => ("OwnedByGit", false),
        Refusal::Bad { .. } => ("ReleaseBad", true),
        Refusal::NoPipeline { .. } => ("NoPipeline", false),
        Refusal::Pipeline(fault) => (fault.reason(), false),
        Refusal::NoEnvironment { .. } => (condition::ENVIRONMENT_MISSING, false),
        refusal if refusal.is_stale() => ("Stale", true),
        _ => ("Refused", true),
    }
}

async fn write_status(
    shared: &Shared,
    component: &Component,
    found: &Found,
) -> Result<(), ComponentError> {
    let mut status: ComponentStatus = component.status.clone().unwrap_or_default();
    status.observed_generation = component.metadata.generation;
    status.latest_release = found.release.clone().or(status.latest_release);
    let deployed = Observation {
        type_: condition::DEPLOYED,
        status: found.status,
        reason: found.reason,
        message: found.message.clone(),
        generation: component.metadata.generation,
    };
    condition::set(&mut status.conditions, deployed, second(shared.base.now()));
    if component.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let mut written = component.clone();
    written.metadata.managed_fields = None;
    written.status = Some(status);
    let ours = PostParams {
        field_manager: Some(labels::MANAGER_CONTROLLER.to_owned()),
        ..PostParams::default()
    };
    let components = shared
        .base
        .within::<Component>(&component.namespace().unwrap_or_default());
    match components
        .replace_status(&component.name_any(), &ours, &written)
        .await
    {
        Ok(_) => Ok(()),
        // The component changed or was deleted, so its watch triggers another reconcile.
        Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Rounds a time down to whole seconds, because the API does not store fractions.
fn second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
mod tests;
