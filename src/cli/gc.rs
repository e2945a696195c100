//! `bowline gc`: deletes releases and snapshots that nothing uses any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::connect::{self, Address, Environment, Options};
use super::error::{Error, Exit, Failures};
use super::output::{self, Format};
use super::session::{Server, live, refused};
use super::{Outcome, commits, confirm};
use crate::api::interval::Interval;
use crate::subjects::release_pin::READ_BY_GC;
use crate::subjects::release_pin::actions::gc::{self, Candidate, Collection, Gc};
use crate::subjects::release_pin::collect::{self, CollectError, Collected, Collector};
use crate::subjects::release_pin::planner::is_defined;
use crate::subjects::release_pin::repository::{self, BeforePlan, Commits, Proposal};
use crate::subjects::release_pin::rules::Refusal;
use crate::text;

/// How long gc remembers a deleted release, to create it again if a ReleasePin names it by then.
const REMEMBERS: Duration = Duration::from_secs(1);

/// The arguments of `gc`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The components [default: all]
    components: Vec<String>,
    /// How many of the newest releases of a component to keep [default: the pipeline's retention, else the
    /// number of environments plus 2]
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// The minimum age of a release that gc may delete [default: the pipeline's retention, else 30d]
    #[arg(long, value_name = "AGE", value_parser = age)]
    min_age: Option<Duration>,
    /// The reason; the audit trail records it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print the plan and delete nothing; exit with 3 if something would be deleted
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,
    /// Do not ask for confirmation
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

/// Plans, prints the plan, and deletes.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let mut connection = connect::connect(options, environment).await?;
    commits::begin(
        &connection,
        options,
        BeforePlan::Fetch,
        arguments.dry_run,
        say,
    )
    .await?;
    let server = Server::ask(&connection, say).await?;
    let address = Address::of(&connection, options, environment);
    let plan = {
        let feed = live(&connection, options, &READ_BY_GC).await?;
        let command = Gc {
            components: arguments.components.clone(),
            keep: arguments.keep,
            min_age: arguments.min_age,
        };
        let asked = server.asked(&connection, arguments.reason.clone());
        let planned = gc::plan(&feed.world(), &command, &asked);
        match planned {
            Ok(plan) => plan,
            Err(Refusal::NoComponent { component, .. })
                if is_defined(&connection.client, &connection.namespace, &component).await =>
            {
                let message = format!("{component} has no release");
                return Err(Error::new(Exit::Failed, message));
            }
            Err(refusal) => return Err(refused(vec![refusal], &address)),
        }
    };
    if connection.repository.is_none() {
        let checked = collect::check_rendered(&connection.client, &connection.namespace).await;
        checked.map_err(|error| match error {
            CollectError::Refused(refusal) => refused(vec![refusal], &address),
            CollectError::Target(error) => error.into(),
        })?;
    }
    let files = match &connection.repository {
        None => None,
        Some(repository) => Some(repository::collection(&repository.tree, &plan)?.proposal),
    };
    let shown = shown(&plan, files.as_ref(), arguments.output);
    let going = plan.going().count();
    let mislabelled = plan.releases.iter().any(|found| found.mislabelled);
    if arguments.dry_run || (going == 0 && !mislabelled) {
        let warnings = files.into_iter().flat_map(|files| files.warnings);
        warnings.for_each(&mut *say);
        summary(&plan).into_iter().for_each(&mut *say);
        let commits = commits::of(&connection, options)?;
        return Ok(match going {
            0 if arguments.dry_run => Outcome::done(shown),
            0 => Outcome::ending(shown, commits::push_again(commits.as_ref(), say).await?),
            _ => Outcome::changes(shown),
        });
    }
    if !arguments.confirm && going > 0 {
        if !confirm::can_ask() {
            let objects = text::counted(going, "objects");
            return Err(
                confirm::no_confirmation(&format!("the deletion of {objects}"))
                    .with_hint("--dry-run lists them; --confirm deletes them"),
            );
        }
        let shown = self::shown(&plan, files.as_ref(), Format::Table);
        let (objects, bytes) = (text::counted(going, "objects"), text::bytes(plan.frees()));
        let question = format!("{shown}Deletes {objects}, {bytes}.\n");
        confirm::ask(&question, &going.to_string())?;
        connection = connection.for_confirmed_plan();
    }
    if let Some(commits) = commits::of(&connection, options)? {
        return commit(&commits, &plan, arguments.output, say).await;
    }
    let clock = server.clock();
    let collector = Collector {
        client: &connection.client,
        plan: &plan,
        by: &server.user,
        clock: &clock,
        remembers: REMEMBERS,
    };
    let address = Address::of(&connection, options, environment);
    carry_out(&collector, &address, arguments.output, say).await
}

/// Deletes the files of the collected releases, in one commit.
async fn commit(
    commits: &Commits<'_>,
    plan: &Collection,
    format: Format,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let collected = repository::collection(&commits.repository.tree, plan)?;
    let warnings = collected.proposal.warnings.iter();
    warnings.cloned().for_each(&mut *say);
    if collected.going.is_empty() {
        let exit = commits::push_again(Some(commits), say).await?;
        return Ok(Outcome::ending(String::new(), exit));
    }
    let committed = commits.collection(&collected).await?;
    let exit = commits::told(&committed, say);
    let removed: Vec<String> = collected.going.iter().map(|found| name(found)).collect();
    let freed = collected.going.iter().filter_map(|found| found.size).sum();
    say(format!("{} freed", text::bytes(freed)));
    Ok(Outcome::ending(removed_text(&removed, freed, format), exit).made())
}

async fn carry_out(
    collector: &Collector<'_>,
    address: &Address,
    format: Format,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let stopped = std::sync::Arc::new(AtomicBool::new(false));
    let flag = stopped.clone();
    let interrupt = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    let mut became: Vec<(String, Option<u64>, Collected)> = Vec::new();
    let stop = || stopped.load(Ordering::Relaxed);
    let mut tell = |candidate: &Candidate, collected| {
        became.push((name(candidate), candidate.size, collected));
    };
    let ended = collector.collect(&stop, &mut tell).await;
    interrupt.abort();
    let (mut removed, mut freed, mut failures) = (Vec::new(), 0, Failures::default());
    for (name, size, collected) in became {
        match collected {
            Collected::Gone => {
                freed += size.unwrap_or_default();
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
    match ended {
        Ok(()) => {}
        Err(CollectError::Refused(refusal)) => failures.add(refused(vec![refusal], address), say),
        Err(CollectError::Target(error)) => failures.add(error.into(), say),
    }
    if stop() {
        let error = Error::new(
            Exit::Failed,
            "interrupted: bowline did not touch the objects that are not listed",
        );
        failures.add(error, say);
    }
    say(format!("{} freed", text::bytes(freed)));
    let out = removed_text(&removed, freed, format);
    Ok(Outcome::ending(out, failures.exit()).made())
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
            let header = ["NAME", "COMPONENT", "SIZE", "AGE", "GOES", "WHY"];
            let mut rows = vec![header.map(str::to_owned).to_vec()];
            rows.extend(all().map(row));
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

/// Returns the numbers of deleted and kept releases, as text.
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
