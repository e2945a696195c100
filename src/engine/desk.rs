//! From what a person wants to a plan that can be shown and applied: the steps that both front ends share.
//!
//! Planners are pure; here is what has to be fetched for them, and what has to be made before a plan of
//! theirs can be applied. Nothing here asks or prints: what should be known comes back as notes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams, PartialObjectMeta, PostParams};
use kube::{Client, ResourceExt};

use super::actions::deploy::{self, Deploy};
use super::actions::pin::{self, PinHold, Unpin};
use super::actions::promote::{self, Promote};
use super::actions::release::{self, Source};
use super::actions::rollback::{self, Rollback, Target};
use super::actions::undo::{self, Undo};
use super::catalog::{Catalog, CatalogError};
use super::diff::{self, Diff};
use super::plan::{Asked, Fact, Plan};
use super::preview::{PreviewError, Stage};
use super::repository::{self, NoReference};
use super::rules::Refusal;
use super::world::feed::Feed;
use super::world::{Key, ReleaseRow, World};
use super::{pages, presence};
use crate::api::audit::{Action, AuditEntry};
use crate::api::{Release, labels, names};
use crate::connect::Connection;
use crate::resolve::git::Git;

/// Something that a person wants done to pins.
#[derive(Clone, Debug)]
pub enum Order {
    /// A release to an environment that nothing promotes to.
    Deploy {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// The release; one of the current definitions where it is absent.
        release: Option<String>,
        /// Whether it may be an environment that is promoted to.
        skip_path: bool,
    },
    /// What counts in one environment, to the next.
    Promote(Promote),
    /// Back to a release that was good.
    Rollback {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
        /// Back to what.
        to: Target,
        /// Whether a hold keeps it there.
        hold: bool,
    },
    /// A hold.
    Pin(PinHold),
    /// The lifting of a hold.
    Unpin(Unpin),
    /// The reverse of the last action.
    Undo(Undo),
    /// The same verb on several pins, as one plan.
    Set(Vec<Order>),
}

impl Order {
    /// Tells whether the order restores or secures a ReleasePin, so that its write waits for no remote.
    pub fn is_urgent(&self) -> bool {
        match self {
            Self::Deploy { .. } | Self::Promote(_) => false,
            Self::Rollback { .. } | Self::Pin(_) | Self::Unpin(_) | Self::Undo(_) => true,
            Self::Set(orders) => orders.iter().all(Self::is_urgent),
        }
    }

    /// Returns the component and the environment, where there is one of each.
    pub fn place(&self) -> Option<(&str, &str)> {
        Some(match self {
            Self::Deploy {
                component,
                environment,
                ..
            }
            | Self::Rollback {
                component,
                environment,
                ..
            } => (component, environment),
            Self::Promote(promote) => match promote.components.as_slice() {
                [component] => (component, &promote.to),
                _ => return None,
            },
            Self::Pin(pin) => (&pin.component, &pin.environment),
            Self::Unpin(unpin) => (&unpin.component, &unpin.environment),
            Self::Undo(undo) => (&undo.component, &undo.environment),
            Self::Set(_) => return None,
        })
    }
}

/// A plan that is not applied yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What would be done.
    pub plan: Plan,
    /// What should be known besides.
    pub notes: Vec<String>,
    /// A release that the plan supposes, and the deployment that wants it.
    unmade: Option<(Box<Release>, Deploy)>,
}

impl Draft {
    /// Returns the release that has to be made first.
    pub fn unmade(&self) -> Option<&Release> {
        self.unmade.as_ref().map(|(release, _)| &**release)
    }

    /// Makes a draft of a plan that supposes nothing.
    pub fn of(plan: Plan) -> Self {
        Self {
            plan,
            notes: Vec::new(),
            unmade: None,
        }
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum NoDraft {
    /// Rules refuse it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<Refusal>),
    /// The definitions that a release is made of cannot be had.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A definition of a repository cannot be referred to.
    #[error(transparent)]
    Reference(#[from] NoReference),
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl From<Refusal> for NoDraft {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(vec![refusal])
    }
}

/// Where actions on one namespace of a target are planned and shown.
pub struct Desk<'a> {
    /// The target.
    pub connection: &'a Connection,
    /// The read model of its namespace.
    pub feed: &'a Feed,
    /// Who reads git references.
    pub git: &'a Git,
}

impl Desk<'_> {
    /// Plans what is wanted.
    pub async fn draft(&self, order: &Order, asked: &Asked) -> Result<Draft, NoDraft> {
        let mut notes = Vec::new();
        let mut unmade = None;
        let plan = match order {
            Order::Deploy {
                component,
                environment,
                release,
                skip_path,
            } => {
                let mut command = Deploy {
                    component: component.clone(),
                    environment: environment.clone(),
                    release: release.clone().unwrap_or_default(),
                    skip_path: *skip_path,
                };
                if release.is_none() {
                    unmade = self.supposed(&mut command, asked, &mut notes).await?;
                }
                let supposed = unmade.as_ref().map(|(release, _)| row(release, asked));
                deploy::plan_with(&self.feed.world(), supposed.as_ref(), &command, asked)?
            }
            Order::Promote(command) => {
                let mut command = command.clone();
                let repository = self.connection.repository.as_ref();
                if repository.is_some_and(|repository| repository.beside.is_none())
                    && !command.unready
                {
                    command.unready = true;
                    notes.push(format!(
                        "readiness in {} is not known: add --context NAME to name the cluster of this repository",
                        command.from
                    ));
                }
                promote::plan(&self.feed.world(), &command, asked).map_err(NoDraft::Refused)?
            }
            Order::Rollback {
                component,
                environment,
                to,
                hold,
            } => {
                let recorded = match to {
                    Target::Revision(_) => self.recorded(component, environment, asked).await?,
                    Target::LastGood | Target::Release(_) => Vec::new(),
                };
                let command = Rollback {
                    component: component.clone(),
                    environment: environment.clone(),
                    to: to.clone(),
                    hold: *hold,
                    recorded,
                    controller: presence::controller(self.connection, asked.now).await?,
                };
                rollback::plan(&self.feed.world(), &command, asked)?
            }
            Order::Pin(command) => pin::plan_pin(&self.feed.world(), command, asked)?,
            Order::Unpin(command) => pin::plan_unpin(&self.feed.world(), command, asked)?,
            Order::Undo(command) => {
                let Undo {
                    component,
                    environment,
                } = command;
                let entries = self.entries(component, environment, asked).await?;
                undo::plan(&self.feed.world(), command, &entries, asked)?
            }
            Order::Set(orders) => {
                let set = Box::pin(self.set(orders, asked)).await?;
                notes.extend(set.notes);
                set.plan
            }
        };
        Ok(Draft {
            plan,
            notes,
            unmade,
        })
    }

    /// Plans the same verb on several pins: all of them, or none where a rule refuses one.
    async fn set(&self, orders: &[Order], asked: &Asked) -> Result<Draft, NoDraft> {
        let mut whole: Option<Draft> = None;
        let mut refusals = Vec::new();
        for order in orders {
            match (self.draft(order, asked).await, &mut whole) {
                (Ok(draft), None) => whole = Some(draft),
                (Ok(draft), Some(whole)) => {
                    whole.plan.items.extend(draft.plan.items);
                    let new = draft.notes.into_iter();
                    let new: Vec<String> = new.filter(|note| !whole.notes.contains(note)).collect();
                    whole.notes.extend(new);
                }
                (Err(NoDraft::Refused(more)), _) => refusals.extend(more),
                (Err(error), _) => return Err(error),
            }
        }
        match whole {
            Some(whole) if refusals.is_empty() => Ok(whole),
            _ => Err(NoDraft::Refused(refusals)),
        }
    }

    /// Finds or supposes a release of the current definitions.
    async fn supposed(
        &self,
        command: &mut Deploy,
        asked: &Asked,
        notes: &mut Vec<String>,
    ) -> Result<Option<(Box<Release>, Deploy)>, NoDraft> {
        let client = &self.connection.client;
        let catalog = Catalog::fetch(client, &asked.namespace, &command.component).await?;
        let definitions = catalog.definitions(&command.component)?;
        notes.extend(catalog.warnings());
        let source = match &self.connection.repository {
            None => Source::Embedded,
            Some(repository) => {
                repository::sources(&repository.tree, &asked.namespace, &definitions)?
            }
        };
        let made = release::release(&definitions, None, &source);
        command.release = made.name_any();
        let releases: Api<Release> = Api::namespaced(client.clone(), &asked.namespace);
        if releases.get_metadata_opt(&command.release).await?.is_some() {
            return Ok(None);
        }
        notes.push(format!(
            "bowline would first create release {}",
            command.release
        ));
        Ok(Some((Box::new(made), command.clone())))
    }

    /// Renders what each change of a plan does to its environment; None where that is nothing, or cannot
    /// be shown on the way back. A way back fetches nothing: no git server delays it.
    pub async fn show(
        &self,
        draft: &mut Draft,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        match is_way_back(draft.plan.action) {
            true => self.show_with(&self.git.offline(), draft, options).await,
            false => self.show_fetched(draft, options).await,
        }
    }

    /// Like [`Desk::show`], and fetches every git reference of the plan: for a dry run.
    pub async fn show_fetched(
        &self,
        draft: &mut Draft,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        self.show_with(self.git, draft, options).await
    }

    async fn show_with(
        &self,
        git: &Git,
        draft: &mut Draft,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let stage = Stage::new(client, namespace, git);
        if let Some((release, _)) = &draft.unmade {
            stage.suppose(release);
        }
        let mut shown = Vec::with_capacity(draft.plan.items.len());
        for item in &mut draft.plan.items {
            draft.notes.extend(item.warnings.iter().cloned());
            // A hold alone changes nothing there.
            if item.unchanged || item.from.as_ref() == Some(&item.to) {
                shown.push(None);
                continue;
            }
            match stage.preview(item, options).await {
                Ok(preview) => {
                    draft.notes.extend(preview.warnings);
                    item.rendered_hash = Some(preview.hash);
                    shown.push(Some(preview.diff));
                }
                // In the middle of an incident it is better to go back unseen than not at all.
                Err(error) if is_way_back(draft.plan.action) && !error.is_of_another() => {
                    let note = format!("the restored state cannot be shown: {error}");
                    draft.notes.push(note);
                    shown.push(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(shown)
    }

    /// Makes the release that a plan supposed, and plans with it. Says so where one was made.
    pub async fn make(&self, draft: &mut Draft, asked: &Asked) -> Result<Option<String>, NoDraft> {
        let Some((release, command)) = draft.unmade.take() else {
            return Ok(None);
        };
        let made = make(&self.connection.client, &asked.namespace, &release).await?;
        let key = Key::new(&asked.namespace, &command.release);
        let stored = |world: &World| {
            let release = world.release(&key);
            release.is_some_and(|release| !release.uid.is_empty())
        };
        self.feed.when(stored).await;
        let again = deploy::plan(&self.feed.world(), &command, asked)?;
        draft.plan.reason = again.reason;
        let is_release = |fact: &Fact| matches!(fact, Fact::Release { .. });
        // Only the release is new. What was confirmed rests on the pin as it was shown, not as it is by now.
        for (item, again) in draft.plan.items.iter_mut().zip(again.items) {
            item.to = again.to;
            item.facts.retain(|fact| !is_release(fact));
            item.facts
                .extend(again.facts.into_iter().filter(is_release));
        }
        Ok(made.then(|| format!("release {} created", command.release)))
    }

    /// Reads what is on record of a pin.
    pub async fn entries(
        &self,
        component: &str,
        environment: &str,
        asked: &Asked,
    ) -> Result<Vec<AuditEntry>, kube::Error> {
        let entries = Api::namespaced(self.connection.client.clone(), &asked.namespace);
        let name = names::pin(component, environment);
        let of_pin = ListParams::default().fields(&format!("spec.subject.name={name}"));
        pages::all(&entries, of_pin, pages::PAGE).await
    }

    /// Reads which release each revision of a pin had.
    async fn recorded(
        &self,
        component: &str,
        environment: &str,
        asked: &Asked,
    ) -> Result<Vec<(i64, String)>, kube::Error> {
        let entries = self.entries(component, environment, asked).await?;
        let uid = {
            let world = self.feed.world();
            let component = Key::new(&asked.namespace, component);
            let pin = world.pin_of(&component, environment);
            pin.map(|pin| pin.uid.to_string())
        };
        let own = entries
            .into_iter()
            .filter(|entry| entry.spec.subject.uid == uid && entry.spec.gap.is_none());
        Ok(own
            .filter_map(|entry| Some((entry.spec.revision, entry.spec.to?.name)))
            .collect())
    }
}

/// Returns the row that the read model would have of a release that is not made yet. Only the plan sees it.
fn row(release: &Release, asked: &Asked) -> ReleaseRow {
    let mut metadata = release.metadata.clone();
    metadata.namespace = Some(asked.namespace.clone());
    metadata.creation_timestamp = Some(Time(asked.now));
    let component = release.labels().get(labels::COMPONENT);
    let component = component.map(|component| component.as_str().into());
    let key = Key::new(&asked.namespace, &release.name_any());
    let metadata = PartialObjectMeta {
        metadata,
        ..PartialObjectMeta::default()
    };
    ReleaseRow::of(&metadata, key, component)
}

/// Makes a release that is named by its content; tells whether it was not there already.
async fn make(client: &Client, namespace: &str, release: &Release) -> Result<bool, kube::Error> {
    let releases: Api<Release> = Api::namespaced(client.clone(), namespace);
    match releases.create(&PostParams::default(), release).await {
        Ok(_) => Ok(true),
        // Somebody made the same since we looked.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tells whether an action goes back, or holds what is there.
fn is_way_back(action: Action) -> bool {
    matches!(
        action,
        Action::Rollback | Action::Undo | Action::Pin | Action::Unpin
    )
}
