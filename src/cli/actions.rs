//! The verbs that move and hold pins: plan, show, ask, apply.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::{Outcome, release};
use crate::api::audit::Action;
use crate::engine::actions::deploy::{self, Deploy};
use crate::engine::actions::pin::{self, PinHold, Unpin};
use crate::engine::actions::promote::{self, Promote};
use crate::engine::actions::rollback::{self, Rollback, Target};
use crate::engine::apply::{self, Applied, ApplyError};
use crate::engine::claim::ClaimError;
use crate::engine::plan::{Asked, Item, Plan};
use crate::engine::preview::{self, PreviewError};
use crate::engine::rules::Refusal;
use crate::engine::world::feed::Feed;
use crate::engine::world::{Freshness, Key, Source, World};
use crate::render::Library;
use crate::resolve::git::Git;

/// The verbs that move and hold pins.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a release in an environment that nothing promotes to
    Deploy(DeployArguments),
    /// Run what one environment runs in the next one too
    Promote(PromoteArguments),
    /// Go back to a release that was good, and hold the pin there
    Rollback(RollbackArguments),
    /// Hold a pin, so that nothing moves it
    Pin(PinArguments),
    /// Lift a hold
    Unpin(UnpinArguments),
}

impl Verb {
    fn changes(&self) -> &Changes {
        match self {
            Self::Deploy(arguments) => &arguments.changes,
            Self::Promote(arguments) => &arguments.changes,
            Self::Rollback(arguments) => &arguments.changes,
            Self::Pin(arguments) => &arguments.changes,
            Self::Unpin(arguments) => &arguments.changes,
        }
    }
}

/// The flags of every verb that changes something.
#[derive(Args, Debug)]
pub struct Changes {
    /// Why it is done
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print the plan, change nothing, and exit with 3 if something would change
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    git: GitFlags,
}

/// What `deploy` can be told.
#[derive(Args, Debug)]
pub struct DeployArguments {
    /// The component
    component: String,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,
    /// The release; one is made of the current definitions where it is left out
    #[arg(short, long, value_name = "NAME")]
    release: Option<String>,
    /// Deploy to an environment that is promoted to; needs a reason
    #[arg(long)]
    skip_path: bool,
    #[command(flatten)]
    changes: Changes,
}

/// What `promote` can be told.
#[derive(Args, Debug)]
pub struct PromoteArguments {
    /// The components; several make one set
    #[arg(required_unless_present = "all")]
    components: Vec<String>,
    /// Every component that is deployed in the environment
    #[arg(long, conflicts_with = "components")]
    all: bool,
    /// The environment whose release is taken
    #[arg(long, value_name = "NAME")]
    from: String,
    /// The environment that gets it
    #[arg(long, value_name = "NAME")]
    to: String,
    /// Promote although the release is not ready where it comes from
    #[arg(long)]
    unready: bool,
    /// Promote where the pipeline has no path; needs a reason
    #[arg(long)]
    skip_path: bool,
    #[command(flatten)]
    changes: Changes,
}

/// What `rollback` can be told.
#[derive(Args, Debug)]
pub struct RollbackArguments {
    /// The component
    component: String,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,
    /// The release to go back to; the last good one where it is left out
    #[arg(long, value_name = "RELEASE", conflicts_with = "to_revision")]
    to: Option<String>,
    /// The revision to go back to
    #[arg(long, value_name = "N")]
    to_revision: Option<i64>,
    /// Place no hold, so that automation may move the pin again
    #[arg(long)]
    no_hold: bool,
    #[command(flatten)]
    changes: Changes,
}

/// What `pin` can be told.
#[derive(Args, Debug)]
pub struct PinArguments {
    /// The component
    component: String,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,
    /// Until when, as 2026-01-31T18:00:00Z or 4h from now; without an end where it is left out
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Timestamp>,
    /// The release that the hold fixes
    #[arg(short, long, value_name = "NAME")]
    release: Option<String>,
    #[command(flatten)]
    changes: Changes,
}

/// What `unpin` can be told.
#[derive(Args, Debug)]
pub struct UnpinArguments {
    /// The component
    component: String,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,
    /// The hold; the only one where it is left out
    #[arg(long, value_name = "ID")]
    hold: Option<String>,
    #[command(flatten)]
    changes: Changes,
}

/// Reads a moment: a time stamp, or a span from now on.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Ok(stamp);
    }
    let span = text.parse::<jiff::SignedDuration>();
    let moment = span
        .ok()
        .and_then(|span| Timestamp::now().checked_add(span).ok());
    moment
        .ok_or_else(|| "write it as 2026-01-31T18:00:00Z, or as 4h for a span from now".to_owned())
}

/// A connection with the read model of its namespace.
struct Session<'a> {
    connection: Connection,
    feed: Feed,
    asked: Asked,
    changes: &'a Changes,
    git: Git,
}

impl<'a> Session<'a> {
    async fn open(
        options: &Options,
        environment: &Environment,
        changes: &'a Changes,
        now: Timestamp,
    ) -> Result<Session<'a>, Error> {
        let connection = connect::connect(options, environment).await?;
        let feed = live(&connection, options).await?;
        let asked = Asked {
            operation: uuid::Uuid::new_v4().to_string(),
            now,
            user: environment.user.clone(),
            reason: changes.reason.clone(),
            namespace: connection.namespace.clone(),
        };
        Ok(Session {
            connection,
            feed,
            asked,
            changes,
            git: changes.git.git(environment)?,
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
        let release = match &arguments.release {
            Some(release) => release.clone(),
            None => {
                let dry_run = arguments.changes.dry_run;
                let component = &arguments.component;
                let made = release::of_current(&self.connection, component, dry_run, say).await?;
                let key = Key::new(&self.asked.namespace, &made);
                self.feed.until(|world| world.release(&key).is_some()).await;
                made
            }
        };
        Ok(Deploy {
            component: arguments.component.clone(),
            environment: arguments.environment.clone(),
            release,
            skip_path: arguments.skip_path,
        })
    }

    /// Says what is promoted: what was named, or everything that is deployed there.
    fn promotion(&self, arguments: &PromoteArguments) -> Promote {
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
        components.sort();
        components.dedup();
        Promote {
            components,
            from: arguments.from.clone(),
            to: arguments.to.clone(),
            unready: arguments.unready,
            skip_path: arguments.skip_path,
        }
    }

    /// Shows a plan, asks where that is due, and applies it.
    async fn carry_out(
        self,
        planned: Result<Plan, Vec<Refusal>>,
        say: &mut dyn FnMut(String),
    ) -> Result<Outcome, Error> {
        let mut plan = planned.map_err(refused)?;
        let mut out = String::new();
        let library = Library::new();
        for item in &mut plan.items {
            out += &format!("{}\n", line(item));
            item.warnings.iter().cloned().for_each(&mut *say);
            // A hold changes nothing in the environment; lifting one may bring back what is gone.
            if item.unchanged || plan.action == Action::Unpin {
                continue;
            }
            let preview =
                preview::preview(&self.connection.client, &self.git, item, &library).await;
            let preview = preview.map_err(not_shown)?;
            preview.warnings.into_iter().for_each(&mut *say);
            item.rendered_hash = Some(preview.hash);
            out += &preview.diff.text();
        }
        let changing = plan.items.iter().filter(|item| !item.unchanged).count();
        if self.changes.dry_run {
            return Ok(match changing {
                0 => Outcome::done(out),
                _ => Outcome::changes(out),
            });
        }
        if changing > 0 {
            self.confirm(&plan, &out)?;
        }
        let mut first = None;
        let mut out = String::new();
        for item in &plan.items {
            match apply::apply(&self.connection.client, &plan, item).await {
                Ok(Applied::Unchanged) => out += &format!("{} is there already\n", line(item)),
                Ok(Applied::Done(revision)) => {
                    out += &format!("{} (revision {revision})\n", line(item));
                }
                Ok(Applied::Unrecorded(revision, why)) => {
                    out += &format!("{} (revision {revision})\n", line(item));
                    say(format!(
                        "its audit entry follows with the next change: {why}"
                    ));
                }
                Err(error) => {
                    say(format!("{}: {error}", item.pin.name));
                    first.get_or_insert(exit(&error));
                }
            }
        }
        match first {
            None => Ok(Outcome::done(out)),
            Some(exit) => Ok(Outcome { text: out, exit }),
        }
    }

    /// Asks on a terminal; without one, only what goes to production needs `--yes`.
    fn confirm(&self, plan: &Plan, shown: &str) -> Result<(), Error> {
        if self.changes.yes {
            return Ok(());
        }
        let world = self.feed.world();
        let production = plan.items.iter().find(|item| {
            let key = Key::new(&self.asked.namespace, &item.environment);
            let environment = world.environment(&key);
            environment.is_some_and(|environment| environment.spec.is_production)
        });
        if !std::io::stdin().is_terminal() {
            return match production {
                None => Ok(()),
                Some(item) => {
                    let message = format!(
                        "{} is production, and nobody can be asked",
                        item.environment
                    );
                    Err(Error::new(Exit::Refused, message).with_hint("add --yes"))
                }
            };
        }
        let wanted = production.map_or("y", |item| item.environment.as_str());
        let mut err = std::io::stderr();
        let shown = crate::text::clean(shown);
        let _ = write!(err, "{shown}Type {wanted} to do it: ");
        let _ = err.flush();
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        match answer.trim() == wanted {
            true => Ok(()),
            false => Err(Error::new(Exit::Refused, "nothing was done")),
        }
    }
}

/// Follows the namespace of a connection, once everything of it is known.
pub(super) async fn live(connection: &Connection, options: &Options) -> Result<Feed, Error> {
    let mut feed = Feed::start(&connection.client, Some(&connection.namespace));
    let patience = options.request_timeout.unwrap_or(Duration::from_secs(30));
    match tokio::time::timeout(patience, feed.until(World::is_live)).await {
        Ok(()) => Ok(feed),
        Err(_) => Err(not_live(&feed.world())),
    }
}

/// Says why the read model is not current.
fn not_live(world: &World) -> Error {
    let why = Source::ALL
        .iter()
        .find_map(|source| match world.freshness(*source) {
            Freshness::Stale { why, .. } => Some(why.clone()),
            _ => None,
        });
    let why = why.unwrap_or_else(|| "it did not list everything in time".to_owned());
    Error::new(
        Exit::Unreachable,
        format!("the target does not answer: {why}"),
    )
    .with_hint("does kubectl cluster-info reach it? --request-timeout waits longer")
}

fn refused(refusals: Vec<Refusal>) -> Error {
    let exit = match refusals.first() {
        Some(refusal) if refusal.is_stale() => Exit::Conflict,
        Some(refusal) if refusal.is_rule() => Exit::Refused,
        _ => Exit::Failed,
    };
    let mut hints: Vec<String> = Vec::new();
    for hint in refusals.iter().filter_map(Refusal::hint) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    let messages: Vec<_> = refusals.iter().map(ToString::to_string).collect();
    let error = Error::new(exit, messages.join("\n"));
    match hints.is_empty() {
        true => error,
        false => error.with_hint(hints.join("\nhint: ")),
    }
}

fn not_shown(error: PreviewError) -> Error {
    match error {
        PreviewError::Target(error) => error.into(),
        PreviewError::Catalog(error) => error.into(),
        error @ PreviewError::DoesNotFit { .. } => Error::new(Exit::Refused, error.to_string())
            .with_hint("change the EnvSettings, or choose another release"),
        error @ PreviewError::Unresolved { .. } => Error::new(Exit::Failed, error.to_string()),
    }
}

fn exit(error: &ApplyError) -> Exit {
    match error {
        ApplyError::Stale { .. }
        | ApplyError::Claim(ClaimError::Gone(_) | ClaimError::Deleting(_)) => Exit::Conflict,
        ApplyError::Claim(ClaimError::Bad(_)) => Exit::Refused,
        ApplyError::Claim(ClaimError::Target(error)) | ApplyError::Target(error) => {
            connect::failure(error).into()
        }
        ApplyError::Unknown { .. } => Exit::Unreachable,
    }
}

/// Says what changes: the pin, and the release that counts before and after.
fn line(item: &Item) -> String {
    let from = item
        .from
        .as_ref()
        .map_or("nothing", |from| from.name.as_str());
    let to = &item.to.name;
    let what = match from == to {
        true => to.clone(),
        false => format!("{from} -> {to}"),
    };
    let holds = match item.holds.len() {
        0 => String::new(),
        1 => ", 1 hold".to_owned(),
        count => format!(", {count} holds"),
    };
    format!("{} in {}: {what}{holds}", item.component, item.environment)
}

/// Runs a verb and returns what it prints.
pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let mut session = Session::open(options, environment, verb.changes(), now).await?;
    let planned = match verb {
        Verb::Deploy(arguments) => {
            let command = session.deployment(arguments, say).await?;
            session.plan(|world, asked| deploy::plan(world, &command, asked))
        }
        Verb::Promote(arguments) => {
            let command = session.promotion(arguments);
            promote::plan(&session.feed.world(), &command, &session.asked)
        }
        Verb::Rollback(arguments) => {
            let command = Rollback {
                component: arguments.component.clone(),
                environment: arguments.environment.clone(),
                to: match (&arguments.to, arguments.to_revision) {
                    (Some(release), _) => Target::Release(release.clone()),
                    (None, Some(revision)) => Target::Revision(revision),
                    (None, None) => Target::LastGood,
                },
                hold: !arguments.no_hold,
                // Outcomes are of the generation that the controller saw, which the plan compares.
                controller_runs: true,
            };
            session.plan(|world, asked| rollback::plan(world, &command, asked))
        }
        Verb::Pin(arguments) => {
            let command = PinHold {
                component: arguments.component.clone(),
                environment: arguments.environment.clone(),
                until: arguments.until,
                release: arguments.release.clone(),
            };
            session.plan(|world, asked| pin::plan_pin(world, &command, asked))
        }
        Verb::Unpin(arguments) => {
            let command = Unpin {
                component: arguments.component.clone(),
                environment: arguments.environment.clone(),
                hold: arguments.hold.clone(),
            };
            session.plan(|world, asked| pin::plan_unpin(world, &command, asked))
        }
    };
    session.carry_out(planned, say).await
}
