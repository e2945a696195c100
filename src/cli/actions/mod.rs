//! The verbs that move and hold pins: plan, show, ask, apply, wait.

mod applied;
mod arguments;
mod committed;
mod shown;
mod waiting;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, ListParams, PartialObjectMeta};

use super::beside::Beside;
use super::commits::Commits;
use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::output::Format;
use super::session::{self, Server, live, refused};
use super::{Outcome, confirm, release};
use crate::api::audit::{Action, AuditEntry};
use crate::api::{Release, names};
use crate::engine::actions::deploy::{self, Deploy};
use crate::engine::actions::pin::{self, PinHold, Unpin};
use crate::engine::actions::promote::{self, Promote};
use crate::engine::actions::rollback::{self, Rollback, Target};
use crate::engine::actions::undo::{self, Undo};
use crate::engine::bodies::BodyError;
use crate::engine::plan::{Asked, Plan};
use crate::engine::preview::{PreviewError, Stage};
use crate::engine::rules::Refusal;
use crate::engine::world::feed::Feed;
use crate::engine::world::{Key, Source, World};
use crate::engine::{pages, presence};
use crate::resolve::git::Git;

use applied::Became;
pub use arguments::Verb;
use arguments::{Changes, DeployArguments, PromoteArguments};
use shown::Shown;

/// A connection with the read model of its namespace.
struct Session<'a> {
    connection: Connection,
    options: &'a Options,
    environment: &'a Environment,
    feed: Feed,
    server: Server,
    asked: Asked,
    changes: &'a Changes,
    git: Git,
    /// A release that the plan supposes, and the deployment that wants it.
    unmade: Option<(Release, Deploy)>,
}

impl<'a> Session<'a> {
    async fn open(
        options: &'a Options,
        environment: &'a Environment,
        changes: &'a Changes,
        say: &mut dyn FnMut(String),
    ) -> Result<Session<'a>, Error> {
        let connection = connect::connect(options, environment).await?;
        let git = changes.git.git(environment)?;
        let git = match Commits::of(&connection, options)? {
            None => git,
            Some(commits) => {
                commits.fetch().await?;
                if changes.wait && commits.repository.beside.is_none() {
                    let message = "--wait needs a cluster: a repository knows nothing of what runs";
                    return Err(Error::new(Exit::Usage, message)
                        .with_hint("--context names one beside the repository"));
                }
                git.beside(commits.repository.tree.work().clone())
            }
        };
        let server = Server::ask(&connection, say).await?;
        let feed = live(&connection, options, &Source::OF_MOVES).await?;
        let asked = server.asked(&connection, changes.reason.clone());
        Ok(Session {
            connection,
            options,
            environment,
            feed,
            server,
            asked,
            changes,
            git,
            unmade: None,
        })
    }

    /// Makes the plan of one pin.
    fn plan(
        &self,
        plan: impl FnOnce(&World, &Asked) -> Result<Plan, Refusal>,
    ) -> Result<Plan, Vec<Refusal>> {
        plan(&self.feed.world(), &self.asked).map_err(|refusal| vec![refusal])
    }

    /// Says what is deployed, for which a release may have to be made first.
    async fn deployment(
        &mut self,
        arguments: &DeployArguments,
        say: &mut dyn FnMut(String),
    ) -> Result<Deploy, Error> {
        let component = self.component(&arguments.component)?;
        let mut command = Deploy {
            component,
            environment: arguments.environment.clone(),
            release: arguments.release.clone().unwrap_or_default(),
            skip_path: arguments.skip_path,
        };
        if arguments.release.is_none() {
            let (made, there) =
                release::of_current(&self.connection, &command.component, say).await?;
            command.release = made.name_any();
            if !there {
                say(format!("release {} would be made first", command.release));
                let mut supposed = made.metadata.clone();
                supposed.namespace = Some(self.asked.namespace.clone());
                supposed.creation_timestamp = Some(Time(self.asked.now));
                self.feed.suppose(PartialObjectMeta {
                    metadata: supposed,
                    ..PartialObjectMeta::default()
                });
                self.unmade = Some((made, command.clone()));
            }
        }
        Ok(command)
    }

    /// Makes the release that a plan supposed, and plans with it.
    async fn make(&mut self, plan: &mut Plan, say: &mut dyn FnMut(String)) -> Result<(), Error> {
        let Some((release, command)) = self.unmade.take() else {
            return Ok(());
        };
        release::make(&self.connection, &release, say).await?;
        let key = Key::new(&self.asked.namespace, &command.release);
        let stored = |world: &World| {
            let release = world.release(&key);
            release.is_some_and(|release| !release.uid.is_empty())
        };
        self.feed.until(stored).await;
        let again = self.plan(|world, asked| deploy::plan(world, &command, asked));
        let shown = std::mem::replace(plan, again.map_err(refused)?);
        for (item, shown) in plan.items.iter_mut().zip(shown.items) {
            item.rendered_hash = shown.rendered_hash;
        }
        Ok(())
    }

    /// Reads what is on record of a pin.
    async fn entries(&self, component: &str, environment: &str) -> Result<Vec<AuditEntry>, Error> {
        let entries = Api::namespaced(self.connection.client.clone(), &self.asked.namespace);
        let name = names::pin(component, environment);
        let of_pin = ListParams::default().fields(&format!("spec.subject.name={name}"));
        Ok(pages::all(&entries, of_pin, pages::PAGE).await?)
    }

    /// Reads which release each revision of a pin had.
    async fn revisions(
        &self,
        component: &str,
        environment: &str,
    ) -> Result<Vec<(i64, String)>, Error> {
        let entries = self.entries(component, environment).await?;
        let key = self.asked.namespace.as_str();
        let uid = {
            let world = self.feed.world();
            let pin = world.pin_of(&Key::new(key, component), environment);
            pin.map(|pin| pin.uid.to_string())
        };
        let own = entries
            .into_iter()
            .filter(|entry| entry.spec.subject.uid == uid && entry.spec.gap.is_none());
        Ok(own
            .filter_map(|entry| Some((entry.spec.revision, entry.spec.to?.name)))
            .collect())
    }

    /// Says what is promoted: what was named, or everything that is deployed there.
    fn promotion(&self, arguments: &PromoteArguments) -> Result<Promote, Error> {
        let world = self.feed.world();
        let mut components = arguments.components.clone();
        if arguments.all {
            let deployed = world.components().filter(|component| {
                *component.namespace == *self.asked.namespace
                    && world.pin_of(component, &arguments.from).is_some()
            });
            components = deployed
                .map(|component| component.name.to_string())
                .collect();
        }
        if components.is_empty() && !arguments.all {
            components.push(self.component(&None)?);
        }
        components.sort();
        components.dedup();
        Ok(Promote {
            components,
            from: arguments.from.clone(),
            to: arguments.to.clone(),
            unready: arguments.unready,
            skip_path: arguments.skip_path,
        })
    }

    /// Tells whether nobody can say what is ready.
    fn knows_no_readiness(&self) -> bool {
        let repository = self.connection.repository.as_ref();
        repository.is_some_and(|repository| repository.beside.is_none())
    }

    /// Returns the component that is meant.
    fn component(&self, named: &Option<String>) -> Result<String, Error> {
        session::component(&self.connection, named.as_deref())
    }

    /// Shows a plan, asks where that is due, applies it, and waits for it.
    async fn carry_out(
        mut self,
        planned: Result<Plan, Vec<Refusal>>,
        say: &mut dyn FnMut(String),
    ) -> Result<Outcome, Error> {
        let mut plan = planned.map_err(refused)?;
        if let Some(environment) = plan.lacks_reason() {
            let lacks = Refusal::NoReason {
                environment: environment.to_owned(),
            };
            match self.changes.dry_run {
                true => say(format!("{lacks}: it would be refused without --reason")),
                false => return Err(refused(vec![lacks])),
            }
        }
        if self.connection.repository.is_some() {
            return self.commit(plan, say).await;
        }
        let shown = self.show(&mut plan, say).await?;
        let changing = plan.items.iter().filter(|item| !item.unchanged).count();
        let format = self.changes.output;
        if self.changes.dry_run {
            let text = shown::planned(&plan, &shown, format);
            return Ok(match changing {
                0 => Outcome::done(text),
                _ => Outcome::changes(text),
            });
        }
        if changing > 0 {
            self.confirm(&plan, &shown, "")?;
        }
        self.make(&mut plan, say).await?;
        let clock = self.server.clock();
        let became = applied::apply(&self.connection.client, &plan, &clock, say).await;
        let mut exit = became.exit;
        if let Some(worse) = self.follow(&plan, &became, say).await? {
            exit = worse;
        }
        let text = shown::done(&plan, &shown, &became, format);
        Ok(Outcome::ending(text, exit))
    }

    /// Waits until what was done is ready, where that is wanted; beside an embedded store, at least until
    /// controllers have observed it.
    async fn follow(
        &mut self,
        plan: &Plan,
        became: &Became,
        say: &mut dyn FnMut(String),
    ) -> Result<Option<Exit>, Error> {
        let changed: Vec<(Key, i64)> = plan
            .items
            .iter()
            .zip(&became.results)
            .filter_map(|(item, result)| Some((item.pin.clone(), result.revision()?)))
            .collect();
        let beside = Beside {
            connection: &self.connection,
            options: self.options,
            environment: self.environment,
            git: &self.git,
        };
        if self.changes.wait && became.exit == Exit::Done && !became.interrupted {
            let patience = self.changes.timeout;
            let ready = waiting::wait(&mut self.feed, plan, became, patience, say);
            return beside.until(ready).await.map(Some);
        }
        // It was done, whoever sees it.
        if let Err(error) = beside.observed(&changed).await {
            say(error.to_string());
        }
        Ok(None)
    }

    /// Renders what each change of a plan does to its environment.
    async fn show(
        &self,
        plan: &mut Plan,
        say: &mut dyn FnMut(String),
    ) -> Result<Vec<Shown>, Error> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let stage = Stage::new(client, namespace, &self.git);
        if let Some((release, _)) = &self.unmade {
            stage.suppose(release);
        }
        let mut shown = Vec::with_capacity(plan.items.len());
        for item in &mut plan.items {
            item.warnings.iter().cloned().for_each(&mut *say);
            // A hold alone changes nothing there.
            if item.unchanged || item.from.as_ref() == Some(&item.to) {
                shown.push(Shown::default());
                continue;
            }
            match stage.preview(item).await {
                Ok(preview) => {
                    preview.warnings.into_iter().for_each(&mut *say);
                    item.rendered_hash = Some(preview.hash);
                    shown.push(Shown {
                        diff: Some(preview.diff),
                    });
                }
                // In the middle of an incident it is better to go back unseen than not at all.
                Err(error) if is_way_back(plan.action) && !error.is_of_another() => {
                    say(format!("what it brings back cannot be shown: {error}"));
                    shown.push(Shown::default());
                }
                Err(error) => return Err(not_shown(error)),
            }
        }
        Ok(shown)
    }

    /// Asks on a terminal; without one, only what goes to production needs `--yes`.
    fn confirm(&self, plan: &Plan, shown: &[Shown], files: &str) -> Result<(), Error> {
        if self.changes.yes {
            return Ok(());
        }
        let production = {
            let world = self.feed.world();
            plan.items.iter().find(|item| {
                let key = Key::new(&self.asked.namespace, &item.environment);
                let environment = world.environment(&key);
                environment.is_some_and(|environment| environment.spec.is_production)
            })
        };
        if !confirm::can_ask() {
            return match production {
                None => Ok(()),
                Some(item) => Err(confirm::nobody_to_ask(&item.environment)),
            };
        }
        // The more is at stake, the more has to be typed.
        let count = plan.items.len().to_string();
        let wanted = match (production, plan.items.len()) {
            (None, ..=1) => "y".to_owned(),
            (None, _) => count,
            (Some(item), ..=1) => item.environment.clone(),
            (Some(item), _) => format!("{} {count}", item.environment),
        };
        let mut question = shown::planned(plan, shown, Format::Table) + files;
        // What it comes down to has scrolled away by now.
        for item in plan.items.iter().filter(|item| !item.unchanged) {
            question += &format!("{:?} {}\n", plan.action, shown::line(item));
        }
        confirm::ask(&question, &wanted)
    }
}

pub(super) fn not_shown(error: PreviewError) -> Error {
    match error {
        PreviewError::Target(error) => error.into(),
        PreviewError::Body(error) => match &*error {
            BodyError::Target(error) => error.into(),
            error => Error::new(Exit::Failed, error.to_string()),
        },
        PreviewError::Catalog(error) => error.into(),
        error @ PreviewError::OfAnother { .. } => Error::new(Exit::Refused, error.to_string()),
        error @ PreviewError::DoesNotFit { .. } => Error::new(Exit::Refused, error.to_string())
            .with_hint("change the EnvSettings, or choose another release"),
        error @ PreviewError::Unresolved { .. } => Error::new(Exit::Failed, error.to_string()),
    }
}

/// Tells whether an action goes back, or holds what is there.
fn is_way_back(action: Action) -> bool {
    matches!(
        action,
        Action::Rollback | Action::Undo | Action::Pin | Action::Unpin
    )
}

/// Runs a verb and returns what it prints.
pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let mut session = Session::open(options, environment, verb.changes(), say).await?;
    let planned = match verb {
        Verb::Deploy(arguments) => {
            let command = session.deployment(arguments, say).await?;
            session.plan(|world, asked| deploy::plan(world, &command, asked))
        }
        Verb::Promote(arguments) => {
            let mut command = session.promotion(arguments)?;
            if session.knows_no_readiness() && !command.unready {
                command.unready = true;
                say(format!(
                    "whether it is ready in {} is not known: no cluster was named beside the repository (--context)",
                    command.from
                ));
            }
            promote::plan(&session.feed.world(), &command, &session.asked)
        }
        Verb::Rollback(arguments) => {
            let now = session.asked.now;
            let component = session.component(&arguments.component)?;
            let recorded = match arguments.to_revision {
                None => Vec::new(),
                Some(_) => {
                    session
                        .revisions(&component, &arguments.environment)
                        .await?
                }
            };
            let command = Rollback {
                component,
                environment: arguments.environment.clone(),
                recorded,
                to: match (&arguments.to, arguments.to_revision) {
                    (Some(release), _) => Target::Release(release.clone()),
                    (None, Some(revision)) => Target::Revision(revision),
                    (None, None) => Target::LastGood,
                },
                hold: !arguments.no_hold,
                controller: presence::controller(&session.connection, now).await?,
            };
            session.plan(|world, asked| rollback::plan(world, &command, asked))
        }
        Verb::Pin(arguments) => {
            let now = session.asked.now;
            let until = arguments.until.map(|until| until.from(now)).transpose()?;
            let command = PinHold {
                component: session.component(&arguments.component)?,
                environment: arguments.environment.clone(),
                until,
                release: arguments.release.clone(),
            };
            session.plan(|world, asked| pin::plan_pin(world, &command, asked))
        }
        Verb::Unpin(arguments) => {
            let command = Unpin {
                component: session.component(&arguments.component)?,
                environment: arguments.environment.clone(),
                hold: arguments.hold.clone(),
            };
            session.plan(|world, asked| pin::plan_unpin(world, &command, asked))
        }
        Verb::Undo(arguments) => {
            let command = Undo {
                component: session.component(&arguments.component)?,
                environment: arguments.environment.clone(),
            };
            let entries = session
                .entries(&command.component, &command.environment)
                .await?;
            session.plan(|world, asked| undo::plan(world, &command, &entries, asked))
        }
    };
    session.carry_out(planned, say).await
}
