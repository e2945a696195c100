//! `bowline gc`: deletes releases and snapshots that nothing uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::connect::{self, Address, Connection, Environment, Options};
use super::error::{Error, Exit, Failures};
use super::gitflags::no_git;
use super::output::{self, Format};
use super::session::{Server, live, not_applied, not_planned};
use super::{Outcome, commits, confirm};
use crate::api::interval::Interval;
use crate::engine::whoami::Clock;
use crate::gitops::propose::{Commits, Proposal};
use crate::subjects::release_pin::actions::gc::{Candidate, Collection, Gc};
use crate::subjects::release_pin::collect::Collected;
use crate::subjects::release_pin::planner::{NotPlanned, is_defined};
use crate::subjects::release_pin::repository;
use crate::subjects::release_pin::rules::Refusal;
use crate::subjects::service::{self, Command, Confirmed, PlannedCommand, Service};
use crate::text;

/// The arguments of `gc`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The components whose releases and snapshots gc may delete [default: all]
    components: Vec<String>,
    /// Keep this many of the newest releases of each component [default: the pipeline's retention, else the
    /// number of environments plus 2]
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Delete only releases that are older than this (30d, 12h) [default: the pipeline's retention, else 30d]
    #[arg(long, value_name = "AGE", value_parser = age)]
    min_age: Option<Duration>,
    /// The reason for the change; the audit trail records it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print the plan and delete nothing; exit with 3 if something would be deleted
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,
    /// Delete without asking for confirmation
    #[arg(short = 'y', long, visible_alias = "yes")]
    confirm: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

fn age(text: &str) -> Result<Duration, String> {
    Interval::from(text)
        .duration()
        .map_err(|error| error.to_string())
}

/// Plans gc, prints the plan, asks for confirmation, and deletes the objects.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let command = Command::Collect(Gc {
        components: arguments.components.clone(),
        keep: arguments.keep,
        min_age: arguments.min_age,
    });
    let connection = connect::connect(options, environment).await?;
    commits::begin(
        &connection,
        options,
        command.before_plan(),
        arguments.dry_run,
        say,
    )
    .await?;
    let server = Server::ask(&connection, say).await?;
    let address = Address::of(&connection, options, environment);
    let service = Service {
        connection: &connection,
        feed: &live(&connection, options, command.reads()).await?,
        git: &no_git(),
    };
    let asked = server.asked(&connection, arguments.reason.clone());
    let planned = match service.plan(&command, &asked).await {
        Ok(planned) => planned,
        Err(error) => return Err(not_collected(error, &connection, &address).await),
    };
    let files = match arguments.dry_run || planned.is_idle() {
        true => service.proposal(&planned)?,
        false => service.files(&planned).await?,
    };
    let files = files.map(Arc::new);
    let plan = collection(&planned);
    let text = shown(plan, files.as_deref(), arguments.output);
    let going = plan.going().count();
    if arguments.dry_run || planned.is_idle() {
        let warnings = files.iter().flat_map(|files| &files.warnings);
        warnings.cloned().for_each(&mut *say);
        summary(plan).into_iter().for_each(&mut *say);
        return Ok(match going {
            0 if arguments.dry_run => Outcome::done(text),
            0 => Outcome::ending(text, commits::push_again(&connection, say).await),
            _ => Outcome::changes(text),
        });
    }
    let protected = connection.protected_context();
    let confirmation = planned.confirmation(&service.feed.world(), protected);
    let table = shown(plan, files.as_deref(), Format::Table);
    let (objects, bytes) = (text::counted(going, "objects"), text::bytes(plan.frees()));
    let question = format!("{table}Deletes {objects}, {bytes}.\n");
    let accepted = confirm::confirm(confirmation, arguments.confirm, &question);
    let accepted = accepted.map_err(|error| match confirm::asks(arguments.confirm) {
        true => error,
        false => error
            .with_hint("list them: --dry-run")
            .and_hint("delete them: --confirm"),
    })?;
    let confirmed = Confirmed::new(Box::new(planned), files, accepted);
    let (user, clock) = (&server.user, server.clock());
    let run = Run {
        service,
        address,
        format: arguments.output,
    };
    match Commits::of(&connection) {
        Some(commits) => run.commit(&commits, confirmed, user, &clock, say).await,
        None => run.delete(confirmed, user, &clock, say).await,
    }
}

/// Returns the gc plan in a planned command. It never fails, because this module plans only gc.
fn collection(planned: &PlannedCommand) -> &Collection {
    match planned {
        PlannedCommand::Collection(collection) => collection,
        PlannedCommand::Changes(_) | PlannedCommand::Mark(_) => {
            unreachable!("BUG: gc plans a collection")
        }
    }
}

/// Returns the error for a gc that could not be planned. If the named component exists but has no release, the error
/// says so.
async fn not_collected(error: NotPlanned, connection: &Connection, address: &Address) -> Error {
    if let NotPlanned::Refused(refusals) = &error
        && let [Refusal::NoComponent { component, .. }] = refusals.as_slice()
        && is_defined(&connection.client, &connection.namespace, component).await
    {
        return Error::new(Exit::Failed, format!("{component} has no release"));
    }
    not_planned(error, address)
}

/// The values that applying a gc plan needs.
struct Run<'a> {
    service: Service<'a>,
    address: Address,
    format: Format,
}

impl Run<'_> {
    /// Removes the releases of a gc plan from their files in one commit.
    async fn commit(
        &self,
        commits: &Commits<'_>,
        mut confirmed: Confirmed,
        user: &str,
        clock: Clock<'_>,
        say: &mut dyn FnMut(String),
    ) -> Result<Outcome, Error> {
        let plan = collection(&confirmed.planned);
        let collected = repository::collection(&commits.repository.tree, plan)?;
        let warnings = collected.proposal.warnings.iter();
        warnings.cloned().for_each(&mut *say);
        if collected.going.is_empty() {
            let exit = commits::push_again(self.service.connection, say).await;
            return Ok(Outcome::ending(String::new(), exit));
        }
        let removed: Vec<String> = collected.going.iter().map(|found| name(found)).collect();
        let freed = collected.going.iter().filter_map(|found| found.size).sum();
        let never = AtomicBool::new(false);
        let applied = self.service.apply(&mut confirmed, user, clock, &never);
        let applied = applied
            .await
            .map_err(|error| not_applied(error, &self.address));
        let exit = match applied? {
            service::Outcome::Committed(committed) => commits::told(&committed, say),
            _ => unreachable!("BUG: the collection of a repository is a commit"),
        };
        say(format!("{} freed", text::bytes(freed)));
        Ok(Outcome::ending(removed_text(&removed, freed, self.format), exit).made())
    }

    async fn delete(
        &self,
        mut confirmed: Confirmed,
        user: &str,
        clock: Clock<'_>,
        say: &mut dyn FnMut(String),
    ) -> Result<Outcome, Error> {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        let interrupt = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                flag.store(true, Ordering::SeqCst);
            }
        });
        let applied = self
            .service
            .apply(&mut confirmed, user, clock, &stopped)
            .await;
        interrupt.abort();
        let applied = applied.map_err(|error| not_applied(error, &self.address))?;
        let service::Outcome::Collected { results, ended } = applied else {
            unreachable!("BUG: a collection on a server deletes objects");
        };
        let (mut removed, mut freed, mut failures) = (Vec::new(), 0, Failures::default());
        for (candidate, collected) in results {
            let name = name(&candidate);
            match collected {
                Collected::Gone => {
                    freed += candidate.size.unwrap_or_default();
                    removed.push(name);
                }
                Collected::Kept(why) => {
                    let why: Vec<String> = why.iter().map(ToString::to_string).collect();
                    say(format!("{name} kept: {}", why.join("; ")));
                }
                Collected::PutBack(environments) => say(format!(
                    "{name} was restored: a ReleasePin in {} named it after gc had checked it",
                    environments.join(", ")
                )),
                Collected::Failed(error) => failures.add(error.into(), say),
            }
        }
        if let Err(error) = ended {
            failures.add(not_planned(error.into(), &self.address), say);
        }
        if stopped.load(Ordering::SeqCst) {
            let error = Error::new(
                Exit::Failed,
                "interrupted: bowline did not touch the objects that are not listed",
            );
            failures.add(error, say);
        }
        say(format!("{} freed", text::bytes(freed)));
        let out = removed_text(&removed, freed, self.format);
        Ok(Outcome::ending(out, failures.exit()).made())
    }
}

fn removed_text(removed: &[String], freed: u64, format: Format) -> String {
    let value = json!({"removed": removed, "freed": freed});
    match format {
        Format::Json => output::json(&value),
        Format::Yaml => output::yaml(&value),
        Format::Name => removed
            .iter()
            .map(|name| format!("{}\n", text::line(name)))
            .collect(),
        Format::Table | Format::Wide => removed
            .iter()
            .map(|name| format!("{} removed\n", text::line(name)))
            .collect(),
    }
}

fn name(candidate: &Candidate) -> String {
    let kind = match candidate.environment {
        None => "release",
        Some(_) => "componentenvsnapshot",
    };
    format!("{kind}.openchoreo.dev/{}", candidate.key.name)
}

fn shown(plan: &Collection, files: Option<&Proposal>, format: Format) -> String {
    let all = || plan.releases.iter().chain(&plan.snapshots);
    let values = || {
        let mut value = value(plan);
        if let Some(files) = files {
            value["files"] = files.json();
        }
        value
    };
    match format {
        Format::Json => output::json(&values()),
        Format::Yaml => output::yaml(&values()),
        Format::Name => plan
            .going()
            .map(|found| format!("{}\n", text::line(&name(found))))
            .collect(),
        Format::Table | Format::Wide => {
            let header = ["NAME", "COMPONENT", "SIZE", "AGE", "DELETE", "WHY"];
            let mut rows = vec![header.map(str::to_owned).to_vec()];
            // The objects that gc deletes come last, so that they are directly above the question.
            rows.extend(all().filter(|found| !found.goes()).map(row));
            rows.extend(all().filter(|found| found.goes()).map(row));
            output::table(&rows)
        }
    }
}

fn row(candidate: &Candidate) -> Vec<String> {
    let seconds = i64::try_from(candidate.age.as_secs()).unwrap_or(i64::MAX);
    let goes = if candidate.goes() { "yes" } else { "no" };
    vec![
        name(candidate).replace(".openchoreo.dev", ""),
        candidate.component.as_deref().unwrap_or("?").to_owned(),
        candidate.size.map_or("?".to_owned(), text::bytes),
        text::age(seconds),
        goes.to_owned(),
        candidate.why(),
    ]
}

fn value(plan: &Collection) -> Value {
    let all = plan.releases.iter().chain(&plan.snapshots);
    let objects = all.map(|candidate| {
        json!({
            "name": name(candidate), "component": candidate.component.as_deref(),
            "environment": candidate.environment.as_deref(), "size": candidate.size,
            "ageSeconds": candidate.age.as_secs(), "goes": candidate.goes(), "why": candidate.why(),
        })
    });
    json!({"frees": plan.frees(), "keep": plan.keep, "objects": objects.collect::<Vec<_>>()})
}

/// Returns a text that says how many objects and bytes gc would delete.
fn summary(plan: &Collection) -> Vec<String> {
    let all = plan.releases.len() + plan.snapshots.len();
    let going = plan.going().count();
    let sized = plan.releases.iter().chain(&plan.snapshots);
    let total: u64 = sized.filter_map(|candidate| candidate.size).sum();
    vec![format!(
        "{going} of {all} objects can be deleted, {} of {}",
        text::bytes(plan.frees()),
        text::bytes(total)
    )]
}
