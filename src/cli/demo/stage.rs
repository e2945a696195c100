//! The store of the demo, and the actions of its simulated users.
//!
//! Each action has its own user and time. The engine plans and applies the action like one of a real user, so its
//! audit entry names the simulated user.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use kube_embedded::{Clock, Embedded, User};

use super::example::{self, ExampleError};
use super::script::{Deed, What, newest};
use crate::api::openchoreo::release::Verdict;
use crate::api::{Component, Definitions, Release, Workload, digest, names};
use crate::connect::{self, Connection, Deadlines, Environment, Options, Target, explain};
use crate::engine::diff;
use crate::engine::plan::Asked;
use crate::engine::publish::{Applied, ApplyError, apply};
use crate::engine::world::feed::Feed;
use crate::engine::world::{Key, World};
use crate::resolve::git::Git;
use crate::subjects;
use crate::subjects::release_pin::actions::mark::{self, Mark};
use crate::subjects::release_pin::actions::pin::{PinHold, Unpin};
use crate::subjects::release_pin::actions::promote::Promote;
use crate::subjects::release_pin::actions::release::{self, Source};
use crate::subjects::release_pin::actions::rollback;
use crate::subjects::release_pin::catalog::{Catalog, CatalogError};
use crate::subjects::release_pin::marking::{self, MarkError};
use crate::subjects::release_pin::planner::{ActionRequest, NotPlanned, Planner};
use crate::subjects::release_pin::preview::PreviewError;
use crate::subjects::release_pin::rules::Refusal;

/// The namespace of all objects of the demo.
pub(super) const NAMESPACE: &str = "default";

/// The store of the demo, and the values that all its simulated users share.
pub(super) struct Stage {
    store: Embedded,
    file: PathBuf,
    git: Git,
    pub(super) feed: Feed,
    pub(super) catalog: Catalog,
}

/// A ReleasePin that an action of a simulated user has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) environment: String,
    pub(super) generation: i64,
    pub(super) release: String,
}

/// Whether an action is part of the history or happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The action is part of the history. No controller had made releases ready then, so the rules about readiness
    /// are not checked.
    Past,
    /// The action happens now, and all rules are checked.
    Present,
}

/// The reason why an action of the demo failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StageError {
    #[error(transparent)]
    Connect(#[from] connect::Error),
    #[error(transparent)]
    Example(#[from] ExampleError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    NotPlanned(#[from] NotPlanned),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Preview(#[from] PreviewError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Mark(#[from] MarkError),
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
    #[error("{0} stopped too early")]
    Interrupted(&'static str),
}

impl Stage {
    /// Opens the store of the demo, creates the example with the creation time `since`, and starts the watches.
    pub(super) async fn open(
        options: &Options,
        environment: &Environment,
        git: Git,
        since: Timestamp,
    ) -> Result<Self, StageError> {
        let (store, file) = connect::embedded(options, environment).await?;
        let catalog = Catalog::from_texts(example::FILES.iter().copied())?;
        let then = store.at(Arc::new(move || since));
        example::create(&then.client(NAMESPACE), &catalog, newest).await?;
        let stage = Self {
            feed: subjects::watch(&store.client(NAMESPACE), Some(NAMESPACE)),
            store,
            file,
            git,
            catalog,
        };
        stage.feed.when(World::is_live).await;
        Ok(stage)
    }

    /// Returns a connection for the simulated user `who`, with the time of `clock`.
    pub(super) fn connection(&self, who: &str, clock: &Clock) -> Connection {
        let user = User {
            name: who.to_owned(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
        };
        let store = self.store.as_user(user).at(clock.clone());
        let client = connect::guard(store, NAMESPACE, None, Deadlines::default());
        let file = self.file.clone();
        Connection::of(client, Target::Embedded { file }, NAMESPACE)
    }

    /// Performs an action of a simulated user. Waits until the read model contains the change, and returns the
    /// changed ReleasePin; None if the action changes none.
    pub(super) async fn perform(
        &self,
        deed: &Deed,
        clock: &Clock,
        when: When,
    ) -> Result<Option<Moved>, StageError> {
        let connection = self.connection(deed.who, clock);
        let now = clock();
        let asked = Asked {
            operation: deed.operation(),
            now,
            user: deed.who.to_owned(),
            reason: deed.reason(),
            namespace: NAMESPACE.to_owned(),
        };
        let Some(order) = deed.order(now, when) else {
            self.mark(deed, &connection, &asked, clock).await?;
            return Ok(None);
        };
        if let What::Deploy(version) = deed.what {
            if when == When::Present {
                self.define(&connection, deed.component, version).await?;
            }
            self.make(&connection, deed.component, version).await?;
        }
        let planner = Planner {
            connection: &connection,
            feed: &self.feed,
            git: &self.git,
        };
        let mut action_plan = planner.action_plan(&order, &asked).await?;
        if when == When::Present {
            planner
                .show(&mut action_plan, &diff::Options::default())
                .await?;
        }
        let Some(change) = action_plan.plan.changes.first() else {
            return Ok(None);
        };
        let applied = apply(&connection.client, &action_plan.plan, change, &**clock).await?;
        let generation = match applied {
            Applied::Done(generation) | Applied::Unrecorded(generation, _) => generation,
            Applied::Superseded { .. } | Applied::Unchanged => return Ok(None),
        };
        let seen = |world: &World| {
            let pin = world.pin(change.key());
            pin.is_some_and(|pin| pin.generation >= generation)
        };
        self.feed.when(seen).await;
        Ok(Some(Moved {
            environment: change.environment.clone(),
            generation,
            release: change.to.name.clone(),
        }))
    }

    /// Writes the definitions of a version to the store. Without this, the next deploy of the current definitions
    /// would restore an older version.
    async fn define(
        &self,
        connection: &Connection,
        component: &str,
        version: &str,
    ) -> Result<(), StageError> {
        let Definitions {
            mut component,
            mut workload,
            ..
        } = example::definitions(&self.catalog, component, version)?;
        let client = &connection.client;
        let components: Api<Component> = Api::namespaced(client.clone(), NAMESPACE);
        let workloads: Api<Workload> = Api::namespaced(client.clone(), NAMESPACE);
        let name = component.name_any();
        component.metadata.resource_version = components.get(&name).await?.resource_version();
        let how = PostParams::default();
        components.replace(&name, &how, &component).await?;
        let name = workload.name_any();
        workload.metadata.resource_version = workloads.get(&name).await?.resource_version();
        workloads.replace(&name, &how, &workload).await?;
        Ok(())
    }

    /// Creates the release of a version in the store if it does not exist.
    async fn make(
        &self,
        connection: &Connection,
        component: &str,
        version: &str,
    ) -> Result<(), StageError> {
        let definitions = example::definitions(&self.catalog, component, version)?;
        let release = release::release(&definitions, Some(version), &Source::Embedded);
        let releases: Api<Release> = Api::namespaced(connection.client.clone(), NAMESPACE);
        match releases.create(&PostParams::default(), &release).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        let key = Key::new(NAMESPACE, &release.name_any());
        self.feed.when(|world| world.release(&key).is_some()).await;
        Ok(())
    }

    async fn mark(
        &self,
        deed: &Deed,
        connection: &Connection,
        asked: &Asked,
        clock: &Clock,
    ) -> Result<(), StageError> {
        let What::MarkBad(version) = deed.what else {
            return Ok(());
        };
        let command = Mark {
            release: names::release(deed.component, version),
            verdict: Verdict::Bad,
        };
        let plan = mark::plan(&self.feed.world(), &command, asked)?;
        marking::mark(&connection.client, &plan, deed.who, &**clock).await?;
        let marked = |world: &World| {
            let release = world.release(&plan.release);
            release.is_some_and(|release| release.mark == Some(Verdict::Bad))
        };
        self.feed.when(marked).await;
        Ok(())
    }
}

impl Deed {
    /// Returns the reason of an action. For an action without a reason, returns the reason that `autoDeploy` writes.
    fn reason(&self) -> Option<String> {
        let own = Some(self.why.to_owned()).filter(|why| !why.is_empty());
        own.or_else(|| {
            Some(format!(
                "autoDeploy: the definitions of {} changed",
                self.component
            ))
        })
    }

    /// Returns an operation id that is unique for the action, and the same in every demo.
    fn operation(&self) -> String {
        let hash = digest::of_bytes(format!("{self:?}").as_bytes());
        let part = |from, to| hash.get(from..to).unwrap_or_default();
        [
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32),
        ]
        .join("-")
    }

    /// Returns the action as a request for the planner. None for a mark, because it changes no ReleasePin.
    fn order(&self, now: Timestamp, when: When) -> Option<ActionRequest> {
        let component = self.component.to_owned();
        Some(match self.what {
            What::MarkBad(_) => return None,
            What::Deploy(version) => ActionRequest::Deploy {
                release: Some(names::release(&component, version)),
                component,
                environment: super::script::DEVELOPMENT.to_owned(),
                skip_path: false,
            },
            What::Promote(from, to) => ActionRequest::Promote(Promote {
                components: vec![component],
                from: from.to_owned(),
                to: to.to_owned(),
                unready: when == When::Past,
                skip_path: false,
            }),
            What::Rollback(environment, version) => ActionRequest::Rollback {
                to: rollback::Target::Release(names::release(&component, version)),
                component,
                environment: environment.to_owned(),
                hold: true,
            },
            What::Hold(environment, lasts) => ActionRequest::Pin(PinHold {
                component,
                environment: environment.to_owned(),
                until: lasts
                    .and_then(|lasts| now.checked_add(SignedDuration::from_secs(lasts)).ok()),
                release: None,
            }),
            What::Unhold(environment) => ActionRequest::Unpin(Unpin {
                component,
                environment: environment.to_owned(),
                hold: None,
            }),
        })
    }
}
