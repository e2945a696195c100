//! Turns a request of a user into a plan. The command line and the terminal UI use this module.
//!
//! The planner of each action is a pure function; this module fetches its inputs. It also creates the new release
//! that a plan needs. It does not ask the user or print, but returns notes for the user.

use std::any::Any;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams, PartialObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::actions::deploy::{self, Deploy};
use super::actions::pin::{self, PinHold, Unpin};
use super::actions::promote::{self, Promote};
use super::actions::release::{self, Source};
use super::actions::rollback::{self, Rollback, Target};
use super::actions::undo::{self, Undo};
use super::catalog::{Catalog, CatalogError};
use super::preview::{PreviewError, Stage};
use super::rules::{Refusal, Rules};
use super::sources::{NoReference, sources};
use crate::api::bowline::audit::{Action, AuditEntry};
use crate::api::openchoreo::release::Verdict;
use crate::api::{Component, Release, labels, names};
use crate::connect::Connection;
use crate::engine::diff::{self, Diff};
use crate::engine::plan::{Asked, Fact, Plan};
use crate::engine::subject::command::SubjectError;
use crate::engine::world::feed::Feed;
use crate::engine::world::{Key, World};
use crate::engine::{controller_status, live, pages};
use crate::gitops::propose::NewObject;
use crate::resolve::git::Git;
use crate::subjects::release_pin::facts::PinFact;
use crate::subjects::release_pin::rows::ReleaseRow;

/// A user's request to change ReleasePins.
#[derive(Clone, Debug)]
pub enum ActionRequest {
    /// Deploy a release to a first environment of the pipeline; with `skip_path`, to any environment.
    Deploy {
        component: String,
        environment: String,
        /// The name of the release to deploy. None creates a new release from the current definitions.
        release: Option<String>,
        /// Whether the user accepts a deploy to an environment that is normally reached by a promotion.
        skip_path: bool,
    },
    /// Promote the effective releases of components from one environment to another.
    Promote(Promote),
    /// Roll back to an earlier release.
    Rollback {
        component: String,
        environment: String,
        /// The release or revision to restore.
        to: Target,
        /// Whether the rollback also places a hold.
        hold: bool,
    },
    Pin(PinHold),
    Unpin(Unpin),
    /// Reverse the last action on a ReleasePin.
    Undo(Undo),
    /// Mark a revision of a subject that users name with its kind, such as `deploy/web`.
    Mark {
        component: String,
        environment: String,
        revision: i64,
        verdict: Verdict,
    },
    /// The same verb on several ReleasePins, as one plan.
    Set(Vec<ActionRequest>),
}

impl ActionRequest {
    /// Returns whether the request restores an earlier state of a ReleasePin or changes only its holds. Such a
    /// request is urgent, so it does not wait for a git remote.
    pub fn is_urgent(&self) -> bool {
        match self {
            Self::Deploy { .. } | Self::Promote(_) => false,
            Self::Rollback { .. }
            | Self::Pin(_)
            | Self::Unpin(_)
            | Self::Undo(_)
            | Self::Mark { .. } => true,
            Self::Set(requests) => requests.iter().all(Self::is_urgent),
        }
    }

    /// Returns the component and the environment; None if the request is about several ReleasePins.
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
            }
            | Self::Mark {
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

    /// Returns the environment in which the component must already be deployed. None if the request is about several
    /// ReleasePins.
    fn environment(&self) -> Option<&str> {
        match self {
            Self::Promote(promote) => Some(&promote.from),
            request => request.place().map(|(_, environment)| environment),
        }
    }
}

/// A plan, with the notes and objects that front ends show with it.
#[derive(Clone, Debug)]
pub struct ActionPlan {
    pub plan: Plan,
    /// Notes about the plan, which the front end shows to the user.
    pub notes: Vec<String>,
    /// The line that says where bowline records the changes; None if it writes AuditEntries.
    pub record: Option<String>,
    /// A release that the plan needs and that does not exist yet, with its deploy request.
    unmade: Option<(Box<Release>, Deploy)>,
    /// The objects before and after each change. None if the planner has not read them, so that a preview must render
    /// them.
    objects: Option<Vec<[Value; 2]>>,
}

impl ActionPlan {
    /// Returns the release that must be created before the plan is applied; None if the plan needs no new
    /// release.
    pub fn unmade(&self) -> Option<&Release> {
        self.unmade.as_ref().map(|(release, _)| &**release)
    }

    /// Returns the new release that the plan needs as a document for a file; None if the plan needs no new release.
    pub fn new_object(&self) -> Option<NewObject> {
        self.unmade().map(NewObject::of)
    }

    /// Wraps a plan without notes that needs no new release.
    pub fn of(plan: Plan) -> Self {
        Self {
            plan,
            notes: Vec::new(),
            record: None,
            unmade: None,
            objects: None,
        }
    }

    /// Wraps a plan whose planner has read the objects before and after each change.
    pub fn of_objects(plan: Plan, notes: Vec<String>, objects: Vec<[Value; 2]>) -> Self {
        Self {
            notes,
            objects: Some(objects),
            ..Self::of(plan)
        }
    }

    /// Returns the diff of each change; None for a change without a difference. The outer None means that a preview
    /// must render the objects first.
    pub fn differences(&self, options: &diff::Options) -> Option<Vec<Option<Diff>>> {
        let one = std::slice::from_ref;
        let differs = |[before, after]: &[Value; 2]| {
            (before != after).then(|| diff::diff(one(before), one(after), options))
        };
        let objects = self.objects.as_ref()?;
        Some(objects.iter().map(differs).collect())
    }
}

/// The reason why a request could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum NotPlanned {
    /// Rules refuse the request.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<Refusal>),
    /// The definitions for a new release are not available.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A definition in the git repository cannot be referenced by a new release.
    #[error(transparent)]
    Reference(#[from] NoReference),
    /// The planner of another kind of subject refuses the request.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl From<Refusal> for NotPlanned {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(vec![refusal])
    }
}

/// Plans and previews requests in one namespace of a target.
pub struct Planner<'a> {
    pub connection: &'a Connection,
    /// The read model of the namespace, filled by watches.
    pub feed: &'a Feed,
    /// The reader that resolves the git references in releases.
    pub git: &'a Git,
}

impl Planner<'_> {
    /// Makes the plan of a request. If a rule refuses the request, adds explanations to the refusal.
    pub async fn action_plan(
        &self,
        request: &ActionRequest,
        asked: &Asked,
    ) -> Result<ActionPlan, NotPlanned> {
        match self.plan(request, asked).await {
            Err(NotPlanned::Refused(refusals)) => {
                let refusals = self.with_components(request, refusals, asked).await;
                let refusals = refusals.into_iter();
                let named = refusals.map(|refusal| self.explained(refusal, &asked.namespace));
                Err(NotPlanned::Refused(named.collect()))
            }
            planned => planned,
        }
    }

    /// Checks refusals about unknown components by asking the server. The read model knows only components with a
    /// release or a ReleasePin, so another component may exist.
    async fn with_components(
        &self,
        request: &ActionRequest,
        mut refusals: Vec<Refusal>,
        asked: &Asked,
    ) -> Vec<Refusal> {
        let Some(environment) = request.environment() else {
            return refusals;
        };
        for refusal in &mut refusals {
            if let Refusal::NoComponent { component, .. } = refusal
                && is_defined(&self.connection.client, &asked.namespace, component).await
            {
                let world = self.feed.world();
                let rules = Rules::new(&world, asked);
                *refusal = rules.not_deployed(component, environment);
            }
        }
        refusals
    }

    /// Replaces the refusal about a missing ReleasePin if the ReleasePin exists in a file that bowline cannot read.
    /// The new refusal names that file.
    fn explained(&self, refusal: Refusal, namespace: &str) -> Refusal {
        let Refusal::NoPin {
            component,
            environment,
            ..
        } = &refusal
        else {
            return refusal;
        };
        let repository = self.connection.repository.as_ref();
        let unknown = repository.and_then(|repository| {
            repository
                .tree
                .why_unknown(namespace, component, environment)
        });
        match unknown {
            Some(unknown) => Refusal::NotRead {
                component: component.clone(),
                environment: environment.clone(),
                why: unknown.why,
                check_out: unknown.check_out,
            },
            None => refusal,
        }
    }

    async fn plan(&self, request: &ActionRequest, asked: &Asked) -> Result<ActionPlan, NotPlanned> {
        let mut notes = Vec::new();
        let mut unmade = None;
        let plan = match request {
            ActionRequest::Deploy {
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
            ActionRequest::Promote(command) => {
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
                promote::plan(&self.feed.world(), &command, asked).map_err(NotPlanned::Refused)?
            }
            ActionRequest::Rollback {
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
                    controller: controller_status::controller(self.connection, asked.now).await?,
                };
                rollback::plan(&self.feed.world(), &command, asked)?
            }
            ActionRequest::Pin(command) => pin::plan_pin(&self.feed.world(), command, asked)?,
            ActionRequest::Unpin(command) => pin::plan_unpin(&self.feed.world(), command, asked)?,
            ActionRequest::Undo(command) => {
                let Undo {
                    component,
                    environment,
                } = command;
                let entries = self.entries(component, environment, asked).await?;
                undo::plan(&self.feed.world(), command, &entries, asked)?
            }
            ActionRequest::Mark {
                component, verdict, ..
            } => {
                let why =
                    format!("cannot mark a revision of {component}: its releases have the marks");
                let hint = format!("bowline mark {} RELEASE", verdict.word());
                return Err(SubjectError::refused(why, hint).into());
            }
            ActionRequest::Set(requests) => {
                let set = Box::pin(self.set(requests, asked)).await?;
                notes.extend(set.notes);
                set.plan
            }
        };
        Ok(ActionPlan {
            record: None,
            plan,
            notes,
            unmade,
            objects: None,
        })
    }

    /// Plans the same verb on several ReleasePins. If a rule refuses one of them, the whole plan is refused.
    async fn set(
        &self,
        requests: &[ActionRequest],
        asked: &Asked,
    ) -> Result<ActionPlan, NotPlanned> {
        let mut whole: Option<ActionPlan> = None;
        let mut refusals = Vec::new();
        for request in requests {
            match (self.action_plan(request, asked).await, &mut whole) {
                (Ok(action_plan), None) => whole = Some(action_plan),
                (Ok(action_plan), Some(whole)) => {
                    whole.plan.changes.extend(action_plan.plan.changes);
                    let new = action_plan.notes.into_iter();
                    let new: Vec<String> = new.filter(|note| !whole.notes.contains(note)).collect();
                    whole.notes.extend(new);
                }
                (Err(NotPlanned::Refused(more)), _) => refusals.extend(more),
                (Err(error), _) => return Err(error),
            }
        }
        match whole {
            Some(whole) if refusals.is_empty() => Ok(whole),
            _ => Err(NotPlanned::Refused(refusals)),
        }
    }

    /// Sets the release in a deploy request to the release of the current definitions. If that release does not exist
    /// yet, returns it with the request; otherwise returns None.
    async fn supposed(
        &self,
        command: &mut Deploy,
        asked: &Asked,
        notes: &mut Vec<String>,
    ) -> Result<Option<(Box<Release>, Deploy)>, NotPlanned> {
        let client = &self.connection.client;
        let catalog = Catalog::fetch(client, &asked.namespace, &command.component).await?;
        let definitions = catalog.definitions(&command.component)?;
        notes.extend(catalog.warnings());
        let sourced = match &self.connection.repository {
            None => Ok((Source::Embedded, None)),
            Some(repository) => sources(&repository.tree, &asked.namespace, &definitions),
        };
        // The name of the release depends only on its content. So an existing release is found even if its
        // definitions cannot be referenced in git.
        let source = sourced.as_ref().map(|(source, _)| source);
        let made = release::release(&definitions, None, source.unwrap_or(&Source::Embedded));
        command.release = made.name_any();
        let releases: Api<Release> = Api::namespaced(client.clone(), &asked.namespace);
        if releases.get_metadata_opt(&command.release).await?.is_some() {
            return Ok(None);
        }
        let (_, note) = sourced?;
        notes.extend(note.map(str::to_owned));
        notes.push(format!("bowline creates release {} first", command.release));
        Ok(Some((Box::new(made), command.clone())))
    }

    /// Renders the diff of each change; None for a change without a difference. A rollback, undo, pin or unpin
    /// fetches no git references, so that a slow git server cannot delay it. If such a change cannot be rendered, a
    /// note says so.
    pub async fn show(
        &self,
        action_plan: &mut ActionPlan,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        match is_way_back(action_plan.plan.action) {
            true => {
                self.show_with(&self.git.offline(), action_plan, options)
                    .await
            }
            false => self.show_fetched(action_plan, options).await,
        }
    }

    /// Renders the diffs like [`Planner::show`], but also fetches the git references. For a dry run, which may be
    /// slow.
    pub async fn show_fetched(
        &self,
        action_plan: &mut ActionPlan,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        self.show_with(self.git, action_plan, options).await
    }

    async fn show_with(
        &self,
        git: &Git,
        action_plan: &mut ActionPlan,
        options: &diff::Options,
    ) -> Result<Vec<Option<Diff>>, PreviewError> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let stage = Stage::new(client, namespace, git);
        if let Some((release, _)) = &action_plan.unmade {
            stage.suppose(release);
        }
        let mut shown = Vec::with_capacity(action_plan.plan.changes.len());
        for change in &mut action_plan.plan.changes {
            action_plan.notes.extend(change.warnings.iter().cloned());
            // A change that touches only holds does not change the manifests, so nothing is rendered.
            if change.unchanged || change.from.as_ref() == Some(&change.to) {
                shown.push(None);
                continue;
            }
            match stage.preview(change, options).await {
                Ok(preview) => {
                    action_plan.notes.extend(preview.warnings);
                    change.rendered_hash = Some(preview.hash);
                    shown.push(Some(preview.diff));
                }
                // During an incident, a rollback without a diff is better than no rollback. So an error becomes a
                // note.
                Err(error) if is_way_back(action_plan.plan.action) && !error.is_of_another() => {
                    let note = format!("the restored state cannot be shown: {error}");
                    action_plan.notes.push(note);
                    shown.push(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(shown)
    }

    /// Creates the new release of a plan on a server, and then plans again. Returns a message about the release if
    /// one was created. In a repository, the commit of the plan creates the release.
    pub async fn make(
        &self,
        action_plan: &mut ActionPlan,
        asked: &Asked,
    ) -> Result<Option<String>, NotPlanned> {
        if self.connection.repository.is_some() {
            return Ok(None);
        }
        let Some((release, command)) = action_plan.unmade.take() else {
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
        action_plan.plan.reason = again.reason;
        let is_release = |fact: &Arc<dyn Fact>| {
            let fact = (&**fact as &dyn Any).downcast_ref();
            matches!(fact, Some(PinFact::Release { .. }))
        };
        // The user confirmed the plan with the old facts, so they stay. Only the values about the new release are
        // replaced.
        for (change, again) in action_plan.plan.changes.iter_mut().zip(again.changes) {
            change.to = again.to;
            change.claims = again.claims;
            change.facts.retain(|fact| !is_release(fact));
            let new = again.facts.into_iter().filter(is_release);
            change.facts.splice(0..0, new);
        }
        Ok(made.then(|| format!("release {} created", command.release)))
    }

    /// Reads the audit entries of a ReleasePin from the server.
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

    /// Reads the known revisions of a ReleasePin from the server, each with its effective release.
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

/// Returns the row that a planned release will have in the read model.
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

/// Returns whether the component exists on the server; false if the server does not answer.
pub async fn is_defined(client: &Client, namespace: &str, component: &str) -> bool {
    let components: Api<Component> = Api::namespaced(client.clone(), namespace);
    live::fits(component) && matches!(components.get_metadata_opt(component).await, Ok(Some(_)))
}

/// Creates a release on the server. Returns false if it already exists. A release with the same name has the same
/// content, so this is no error.
async fn make(client: &Client, namespace: &str, release: &Release) -> Result<bool, kube::Error> {
    let releases: Api<Release> = Api::namespaced(client.clone(), namespace);
    match releases.create(&PostParams::default(), release).await {
        Ok(_) => Ok(true),
        // Another client has created the same release, so there is nothing to do.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether an action restores an earlier state or changes only holds.
fn is_way_back(action: Action) -> bool {
    matches!(
        action,
        Action::Rollback | Action::Undo | Action::Pin | Action::Unpin
    )
}
