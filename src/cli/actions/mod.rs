//! The verbs that change ReleasePins. Each verb plans, shows the plan, asks for confirmation, applies the plan and
//! waits.

pub(super) mod applied;
mod arguments;
mod committed;
pub(super) mod shown;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use super::connect::{self, Address, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::kinds::check_name;
use super::output::Format;
use super::session::{
    self, Server, live, not_applied, not_planned, refused, refused_without_controller,
};
use super::{Outcome, commits, confirm, observing};
use crate::controllers::beside::Beside;
use crate::engine::bodies::BodyError;
use crate::engine::diff::{self, Diff};
use crate::engine::plan::{Asked, Plan};
use crate::engine::world::feed::Feed;
use crate::engine::world::{Key, World};
use crate::gitops::propose::Proposal;
use crate::resolve::git::Git;
use crate::subjects::release_pin::READ_BY_CHANGES;
use crate::subjects::release_pin::actions::pin::{PinHold, Unpin};
use crate::subjects::release_pin::actions::promote::Promote;
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::actions::undo::Undo;
use crate::subjects::release_pin::planner::{ActionRequest, NotPlanned};
use crate::subjects::release_pin::preview::PreviewError;
use crate::subjects::release_pin::rollout::Rollout;
use crate::subjects::release_pin::rules::Refusal;
use crate::subjects::service::{self, Command, Confirmed, PlannedCommand, Service};

use applied::Became;
use arguments::PromoteArguments;
pub use arguments::{Changes, Verb};

/// How long a promotion waits for a release that is not ready yet in the source environment. It waits only if this
/// process runs the controllers.
const SETTLES: Duration = Duration::from_secs(60);

/// The values that each step of a verb needs: the connection, the read model, and the user's options.
struct Session<'a> {
    connection: Connection,
    options: &'a Options,
    environment: &'a Environment,
    feed: Feed,
    server: Server,
    asked: Asked,
    changes: &'a Changes,
    git: Git,
}

impl<'a> Session<'a> {
    async fn open(
        options: &'a Options,
        environment: &'a Environment,
        verb: &'a Verb,
        say: &mut dyn FnMut(String),
    ) -> Result<Session<'a>, Error> {
        let changes = verb.changes();
        let connection = connect::connect(options, environment).await?;
        let git = changes.git.on(&connection, environment)?;
        if changes.wait {
            connection.check_follows()?;
        }
        commits::begin(
            &connection,
            options,
            verb.before_plan(),
            changes.dry_run,
            say,
        )
        .await?;
        let server = Server::ask(&connection, say).await?;
        let feed = live(&connection, options, &READ_BY_CHANGES).await?;
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
        })
    }

    fn service(&self) -> Service<'_> {
        Service {
            connection: &self.connection,
            feed: &self.feed,
            git: &self.git,
        }
    }

    /// Returns the promotion of the named components. With `--all`, it promotes all components in the source
    /// environment.
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

    /// Converts the arguments of a verb to a command that can be planned.
    fn command(&self, verb: &Verb) -> Result<Command, Error> {
        Ok(Command::Change(match verb {
            Verb::Deploy(arguments) => ActionRequest::Deploy {
                component: self.component(&arguments.component)?,
                environment: arguments.environment.clone(),
                release: arguments.release.clone(),
                skip_path: arguments.skip_path,
            },
            Verb::Promote(arguments) => ActionRequest::Promote(self.promotion(arguments)?),
            Verb::Rollback(arguments) => ActionRequest::Rollback {
                component: self.component(&arguments.component)?,
                environment: named_environment(&arguments.environment)?,
                to: match (&arguments.to, arguments.to_revision) {
                    (Some(release), _) => Target::Release(release.clone()),
                    (None, Some(revision)) => Target::Revision(revision),
                    (None, None) => Target::LastGood,
                },
                hold: !arguments.no_hold,
            },
            Verb::Pin(arguments) => {
                let now = self.asked.now;
                ActionRequest::Pin(PinHold {
                    component: self.component(&arguments.component)?,
                    environment: named_environment(&arguments.environment)?,
                    until: arguments.until.map(|until| until.from(now)).transpose()?,
                    release: arguments.release.clone(),
                })
            }
            Verb::Unpin(arguments) => ActionRequest::Unpin(Unpin {
                component: self.component(&arguments.component)?,
                environment: named_environment(&arguments.environment)?,
                hold: arguments.hold.clone(),
            }),
            Verb::Undo(arguments) => ActionRequest::Undo(Undo {
                component: self.component(&arguments.component)?,
                environment: named_environment(&arguments.environment)?,
            }),
        }))
    }

    /// Returns the component that the user named. If the user named none, returns the component from the
    /// configuration; an error if there is none.
    fn component(&self, named: &Option<String>) -> Result<String, Error> {
        session::component(&self.connection, named.as_deref())
    }

    /// Returns the flags that select the target. Hints add them to the commands that they suggest.
    fn address(&self) -> Address {
        Address::of(&self.connection, self.options, self.environment)
    }

    fn beside(&self) -> Beside<'_> {
        Beside {
            connection: &self.connection,
            options: self.options,
            environment: self.environment,
            git: &self.git,
        }
    }

    /// Plans a command. If a rule refuses it because a rollout is not ready, and no process runs the controllers of
    /// the embedded store, this process runs them until the rollout ends. A dry run does not do that.
    async fn plan(
        &self,
        command: &Command,
        say: &mut dyn FnMut(String),
    ) -> Result<PlannedCommand, Error> {
        let refusals = match self.service().plan(command, &self.asked).await {
            Err(NotPlanned::Refused(refusals)) => refusals,
            planned => return planned.map_err(|error| not_planned(error, &self.address())),
        };
        if !refusals.iter().any(Refusal::waits_for_controller)
            || !observing::is_unattended(&self.connection).await
        {
            return Err(refused(refusals, &self.address()));
        }
        let address = observing::address(&self.beside());
        // The last good release is unknown until a controller has observed the past changes. `--wait` would not help,
        // so the hint does not name it.
        let how = match refusals.iter().any(Refusal::is_about_last_good) {
            true => observing::how_to_run(&address),
            false => observing::how_to_continue(&address),
        };
        let unready: Vec<(Key, &str)> = refusals.iter().filter_map(|it| self.unready(it)).collect();
        // The controllers would write to the store. A dry run and read-only mode must not write.
        let writes = !self.changes.dry_run && self.connection.readonly.is_none();
        if unready.is_empty() || !writes {
            return Err(refused_without_controller(&refusals, how, &self.address()));
        }
        say("no process runs the controllers of this store: bowline runs them until the rollout has ended".to_owned());
        let settled = |world: &World| {
            unready.iter().all(|(component, environment)| {
                let pin = world.pin_of(component, environment);
                Rollout::newest(pin).is_settled()
            })
        };
        let again = async {
            // After the timeout, plan again anyway: the refusal then names the current state of the rollout.
            let _ = tokio::time::timeout(SETTLES, self.feed.when(settled)).await;
            self.service().plan(command, &self.asked).await
        };
        match self.beside().until(again).await? {
            Err(NotPlanned::Refused(refusals)) => {
                Err(refused_without_controller(&refusals, how, &self.address()))
            }
            planned => planned.map_err(|error| not_planned(error, &self.address())),
        }
    }

    /// Returns the component and the environment of the rollout that causes a refusal; None if the refusal has
    /// another reason.
    fn unready<'r>(&self, refusal: &'r Refusal) -> Option<(Key, &'r str)> {
        match refusal {
            Refusal::Unready {
                component,
                environment,
                ..
            } => Some((Key::new(&self.asked.namespace, component), environment)),
            _ => None,
        }
    }

    /// Runs a command: plans, shows the plan, asks for confirmation if needed, applies the plan, and waits until the
    /// controllers have observed the changes.
    async fn carry_out(
        mut self,
        command: &Command,
        say: &mut dyn FnMut(String),
    ) -> Result<Outcome, Error> {
        let mut planned = Box::new(self.plan(command, say).await?);
        let shown = self.show(&mut planned, say).await?;
        let files = self.service().files(&planned).await?.map(Arc::new);
        let warnings = files.iter().flat_map(|files| &files.warnings);
        warnings.cloned().for_each(&mut *say);
        let format = self.changes.output;
        if self.changes.dry_run {
            let text = shown::planned(plan_of(&planned), &shown, files.as_deref(), format);
            return Ok(match planned.is_idle() {
                true => Outcome::done(text),
                false => Outcome::changes(text),
            });
        }
        if files.is_some() && planned.is_idle() {
            return self.push_again(&planned, &shown, say).await;
        }
        let mut confirmed = self.confirm(planned, files, &shown)?;
        let clock = self.server.clock();
        let (service, user) = (self.service(), &self.server.user);
        let (applied, interrupted) =
            applied::apply(&service, &mut confirmed, user, &clock, say).await;
        let applied = applied.map_err(|error| not_applied(error, &self.address()))?;
        let plan = plan_of(&confirmed.planned);
        match applied {
            service::Outcome::Committed(committed) => {
                let files = confirmed.files.as_deref();
                let files = files.expect("BUG: a commit without files");
                self.committed(plan, &shown, files, &committed, say).await
            }
            service::Outcome::Changed { created, results } => {
                created.into_iter().for_each(&mut *say);
                let mut became = applied::became(plan, &results, &self.address(), say);
                became.interrupted = interrupted;
                let exit = self.follow(plan, &became, say).await;
                let text = shown::done(plan, &shown, &became, None, format);
                Ok(Outcome::ending(text, exit).made())
            }
            service::Outcome::Marked(_) | service::Outcome::Collected { .. } => {
                unreachable!("BUG: a plan of changes marked or collected something")
            }
        }
    }

    /// Prints the notes of the plan, and returns the diff of each change. Fails if the plan needs a reason and
    /// bowline will not ask for one.
    async fn show(
        &self,
        planned: &mut PlannedCommand,
        say: &mut dyn FnMut(String),
    ) -> Result<Vec<Option<Diff>>, Error> {
        let lacks = planned.lacks_reason();
        let PlannedCommand::Changes(action_plan) = planned else {
            return Ok(Vec::new());
        };
        action_plan.notes.drain(..).for_each(&mut *say);
        if let Some(lacks) = lacks {
            match self.changes.dry_run {
                true => say(format!("{lacks}; without --reason bowline refuses it")),
                false if confirm::asks(self.changes.yes) => {}
                false => return Err(refused(vec![lacks], &self.address())),
            }
        }
        let (service, options) = (self.service(), diff::Options::default());
        let shown = match self.changes.dry_run {
            true => service.show_fetched(action_plan, &options).await,
            false => service.show(action_plan, &options).await,
        };
        action_plan.notes.drain(..).for_each(&mut *say);
        shown.map_err(not_shown)
    }

    /// Waits after a plan was applied. With `--wait`, waits until the changes are ready. Without it, waits on an
    /// embedded store until the controllers have observed the changes; an error there does not change the exit code.
    async fn follow(&mut self, plan: &Plan, became: &Became, say: &mut dyn FnMut(String)) -> Exit {
        if !self.changes.wait || became.exit != Exit::Done || became.interrupted {
            let results = plan.changes.iter().zip(&became.results);
            let changed: Vec<(Key, i64)> = results
                .filter_map(|(change, result)| Some((change.key().clone(), result.revision()?)))
                .collect();
            observing::observe(&self.beside(), &changed, say).await;
            return became.exit;
        }
        let beside = Beside {
            connection: &self.connection,
            options: self.options,
            environment: self.environment,
            git: &self.git,
        };
        let patience = self.changes.timeout;
        let ready = waiting::wait(&mut self.feed, plan, became, patience, say);
        let waited = beside.until(ready).await.unwrap_or_else(|error| {
            let mut error = Error::from(error);
            let why = error.message;
            error.message = format!("the change was made; bowline stopped waiting: {why}");
            Err(error)
        });
        ended(waited, say)
    }

    /// Shows a plan, and asks for confirmation on a terminal. If the plan changes nothing, does not ask.
    fn confirm(
        &self,
        planned: Box<PlannedCommand>,
        files: Option<Arc<Proposal>>,
        shown: &[Option<Diff>],
    ) -> Result<Confirmed, Error> {
        let protected = self.connection.protected_context();
        let confirmation = planned.confirmation(&self.feed.world(), protected);
        let flag = self.changes.yes || planned.is_idle();
        let mut question = String::new();
        if confirm::asks(flag) {
            let plan = plan_of(&planned);
            question += &shown::planned(plan, shown, files.as_deref(), Format::Table);
            // The first lines of a long plan may no longer be on the screen, so the question lists the changes again.
            for change in plan.changing() {
                let line = shown::line(plan.action, change);
                question += &format!("{:?} {line}\n", plan.action);
            }
        }
        let accepted = confirm::confirm(confirmation, flag, &question)?;
        Ok(Confirmed::new(planned, files, accepted))
    }
}

/// Returns the environment that the user named; an error if the user named none.
pub(super) fn named_environment(environment: &Option<String>) -> Result<String, Error> {
    let Some(named) = environment else {
        let error = Error::new(Exit::Usage, "the environment is missing");
        return Err(error
            .with_hint("add the environment: -e NAME")
            .and_hint("or name a workload with its kind, such as deploy/web"));
    };
    check_name("environment", named)?;
    Ok(named.clone())
}

/// Returns the plan in a planned command. It never fails, because every verb of this module plans changes.
fn plan_of(planned: &PlannedCommand) -> &Plan {
    planned
        .plan()
        .expect("BUG: a verb that changes ReleasePins plans no change")
}

/// Returns the exit code for the result of a wait, and prints its error.
fn ended(waited: Result<(), Error>, say: &mut dyn FnMut(String)) -> Exit {
    match waited {
        Ok(()) => Exit::Done,
        Err(error) => {
            error.tell(say);
            Exit::Failed
        }
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

pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    if let Some(named) = verb.subject() {
        let verb_on = |now| verb.on_subject(now);
        return named
            .act(verb_on, verb.changes(), options, environment, say)
            .await;
    }
    verb.check()?;
    let session = Session::open(options, environment, verb, say).await?;
    let command = session.command(verb)?;
    session.carry_out(&command, say).await
}
