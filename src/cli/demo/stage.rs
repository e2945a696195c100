//! The store of the demo, and everybody who does something in it.
//!
//! Each deed goes through the engine as its doer, at its own time: planned on the read model, applied with
//! claims and compare-and-swap, and on record under that name.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Api, PostParams};

use super::example::{self, ExampleError};
use super::script::{Deed, What, newest};
use crate::api::release::Verdict;
use crate::api::{Release, digest, names};
use crate::connect::{self, Connection, Deadlines, Environment, Options, Target, explain};
use crate::embedded::{Clock, Embedded, User};
use crate::engine::actions::mark::{self, Mark};
use crate::engine::actions::pin::{PinHold, Unpin};
use crate::engine::actions::promote::Promote;
use crate::engine::actions::release::{self, Source};
use crate::engine::actions::rollback;
use crate::engine::apply::{Applied, ApplyError, apply};
use crate::engine::catalog::{Catalog, CatalogError};
use crate::engine::desk::{Desk, NoDraft, Order};
use crate::engine::diff;
use crate::engine::marking::{self, MarkError};
use crate::engine::plan::Asked;
use crate::engine::preview::PreviewError;
use crate::engine::rules::Refusal;
use crate::engine::world::feed::Feed;
use crate::engine::world::{Key, World};
use crate::resolve::git::Git;

/// The namespace that everything is in.
pub(super) const NAMESPACE: &str = "default";

/// The store, and what everybody needs who does something in it.
pub(super) struct Stage {
    store: Embedded,
    file: PathBuf,
    git: Git,
    pub(super) feed: Feed,
    pub(super) catalog: Catalog,
}

/// A pin that somebody moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) environment: String,
    pub(super) generation: i64,
    pub(super) release: String,
}

/// When a deed is done, and whether anybody looks after what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Then; no controller was there to say whether anything was ready.
    Past,
    /// Now, under every rule.
    Present,
}

/// Why a deed was not done.
#[derive(Debug, thiserror::Error)]
pub(super) enum StageError {
    #[error(transparent)]
    Connect(#[from] connect::Error),
    #[error(transparent)]
    Example(#[from] ExampleError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    NoDraft(#[from] NoDraft),
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
    /// Opens the store, puts the example into it as of `since`, and begins to follow it.
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
            feed: Feed::start(&store.client(NAMESPACE), Some(NAMESPACE)),
            store,
            file,
            git,
            catalog,
        };
        stage.feed.when(World::is_live).await;
        Ok(stage)
    }

    /// Connects as somebody, by a clock.
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

    /// Does a deed, and returns the pin that it moved, once the read model has it.
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
            self.make(&connection, deed.component, version).await?;
        }
        let desk = Desk {
            connection: &connection,
            feed: &self.feed,
            git: &self.git,
        };
        let mut draft = desk.draft(&order, &asked).await?;
        if when == When::Present {
            desk.show(&mut draft, &diff::Options::default()).await?;
        }
        let Some(item) = draft.plan.items.first() else {
            return Ok(None);
        };
        let applied = apply(&connection.client, &draft.plan, item, &**clock).await?;
        let generation = match applied {
            Applied::Done(generation) | Applied::Unrecorded(generation, _) => generation,
            Applied::Superseded { .. } | Applied::Unchanged => return Ok(None),
        };
        let seen = |world: &World| {
            let pin = world.pin(&item.pin);
            pin.is_some_and(|pin| pin.generation >= generation)
        };
        self.feed.when(seen).await;
        Ok(Some(Moved {
            environment: item.environment.clone(),
            generation,
            release: item.to.name.clone(),
        }))
    }

    /// Makes the release of a version, where it is not there.
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
    /// Returns why, where somebody says so.
    fn reason(&self) -> Option<String> {
        let own = Some(self.why.to_owned()).filter(|why| !why.is_empty());
        own.or_else(|| {
            Some(format!(
                "autoDeploy: the definitions of {} changed",
                self.component
            ))
        })
    }

    /// Identifies the operation: no two deeds are the same.
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

    /// Returns what is ordered; a mark is no move.
    fn order(&self, now: Timestamp, when: When) -> Option<Order> {
        let component = self.component.to_owned();
        Some(match self.what {
            What::MarkBad(_) => return None,
            What::Deploy(version) => Order::Deploy {
                release: Some(names::release(&component, version)),
                component,
                environment: super::script::DEVELOPMENT.to_owned(),
                skip_path: false,
            },
            What::Promote(from, to) => Order::Promote(Promote {
                components: vec![component],
                from: from.to_owned(),
                to: to.to_owned(),
                unready: when == When::Past,
                skip_path: false,
            }),
            What::Rollback(environment, version) => Order::Rollback {
                to: rollback::Target::Release(names::release(&component, version)),
                component,
                environment: environment.to_owned(),
                hold: true,
            },
            What::Hold(environment, lasts) => Order::Pin(PinHold {
                component,
                environment: environment.to_owned(),
                until: lasts
                    .and_then(|lasts| now.checked_add(SignedDuration::from_secs(lasts)).ok()),
                release: None,
            }),
            What::Unhold(environment) => Order::Unpin(Unpin {
                component,
                environment: environment.to_owned(),
                hold: None,
            }),
        })
    }
}
