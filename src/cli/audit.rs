//! `bowline audit`: lists audit entries, prints one entry, verifies the chains, prints a timeline.
//!
//! These verbs write nothing. They read the entries as JSON values and not as typed objects. So an entry that cannot
//! be parsed does not hide the others, and `verify` checks the values exactly as the server stores them.

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::kinds::check_name;
use super::output::{self, Format};
use super::{Outcome, commits};
use crate::api::bowline::audit::AuditEntry;
use crate::api::interval::Interval;
use crate::api::openchoreo::pin::ReleasePin;
use crate::api::{labels, names};
use crate::engine::audit::{self, Finding, Live, Row, Span, Verification};
use crate::engine::pages::{self, PAGE};
use crate::subjects::release_pin::kind::live;
use crate::{gitops, subjects, text};

/// The arguments of `audit`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the audit entries, oldest first
    List(List),
    /// Print one audit entry
    Show(Show),
    /// Check that no entry was changed, removed or left out; exit with 1 if one was. For entries that a
    /// shallow or partial clone does not contain, bowline only warns
    Verify(Verify),
    /// Print an incident timeline of the audit entries
    Export(Export),
}

/// The arguments of `audit list`.
#[derive(Args, Debug)]
pub struct List {
    /// The component [default: all]
    component: Option<String>,
    /// Only entries of this environment [default: all entries, also those of releases, which have no environment]
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,
    /// Leave out entries before this time: a day (2026-01-31), a time (2026-01-31T18:00:00Z) or a duration ago
    /// (2h, 7d)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The arguments of `audit show`.
#[derive(Args, Debug)]
pub struct Show {
    /// The name of the audit entry
    name: String,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

/// The arguments of `audit verify`.
#[derive(Args, Debug)]
pub struct Verify {
    /// The component [default: all]
    component: Option<String>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The arguments of `audit export`.
#[derive(Args, Debug)]
pub struct Export {
    /// The component [default: all]
    component: Option<String>,
    /// Only entries of this environment [default: all entries, also those of releases, which have no environment]
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,
    /// The output format
    #[arg(
        short,
        long,
        visible_alias = "format",
        value_enum,
        default_value_t = Timeline::Md
    )]
    output: Timeline,
    /// Leave out entries before this time: a day (2026-01-31), a time (2026-01-31T18:00:00Z) or a duration ago
    /// (2h, 7d)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Leave out entries from this time on; takes the same forms as --since
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// The formats of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Timeline {
    /// A Markdown document
    Md,
    /// JSON
    Json,
}

pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    // Parse the times before the first request, so that an invalid time is reported at once.
    let moment = |text: &Option<String>| text.as_deref().map(|text| moment(text, now)).transpose();
    match verb {
        Verb::List(arguments) => {
            let span = Span {
                since: moment(&arguments.since)?,
                until: None,
            };
            let connection = connect::connect(options, environment).await?;
            list(arguments, &span, &connection, say).await
        }
        Verb::Show(arguments) => {
            let connection = connect::connect(options, environment).await?;
            show(arguments, &connection, say).await
        }
        Verb::Verify(arguments) => {
            let connection = connect::connect(options, environment).await?;
            verify(arguments, &connection, say).await
        }
        Verb::Export(arguments) => {
            let span = Span {
                since: moment(&arguments.since)?,
                until: moment(&arguments.until)?,
            };
            let connection = connect::connect(options, environment).await?;
            export(arguments, &span, &connection, say).await
        }
    }
}

/// Parses a time that a user typed: a timestamp, a day in UTC, or a duration ago.
fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    let day = || {
        let date: jiff::civil::Date = text.parse().ok()?;
        let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(start.timestamp())
    };
    let ago = || {
        let ago = Interval::from(text).duration().ok()?;
        now.checked_sub(ago).ok()
    };
    let time: Option<Timestamp> = text.parse().ok();
    time.or_else(day).or_else(ago).ok_or_else(|| {
        Error::new(Exit::Usage, format!("{text:?} is not a time"))
            .with_hint("write 2026-01-31, 2026-01-31T18:00:00Z, or a duration ago: 30m, 2h, 7d")
    })
}

fn entries_api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<AuditEntry>(&());
    Api::namespaced_with(client.clone(), namespace, &resource)
}

fn selected(component: Option<&str>, environment: Option<&str>) -> ListParams {
    let term = |label: &str, value: Option<&str>| {
        value.map(|value| format!("{label}={}", names::label_value(value)))
    };
    let terms: Vec<String> = [
        term(labels::COMPONENT, component),
        term(labels::ENVIRONMENT, environment),
    ]
    .into_iter()
    .flatten()
    .collect();
    match terms.is_empty() {
        true => ListParams::default(),
        false => ListParams::default().labels(&terms.join(",")),
    }
}

async fn stored(
    connection: &Connection,
    component: Option<&str>,
    environment: Option<&str>,
) -> Result<(Vec<AuditEntry>, Vec<Finding>), Error> {
    let api = entries_api(&connection.client, &connection.namespace);
    let objects = pages::all(&api, selected(component, environment), PAGE).await?;
    let values = objects
        .iter()
        .filter_map(|object| serde_json::to_value(object).ok());
    Ok(audit::read(values.collect()))
}

fn say_unreadable(problems: &[Finding], say: &mut dyn FnMut(String)) {
    for problem in problems {
        say(format!("warning: {}: {}", problem.object, problem.what));
    }
}

async fn list(
    arguments: &List,
    span: &Span,
    connection: &Connection,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let environment = arguments.environment.as_deref();
    let (entries, problems) =
        stored(connection, arguments.component.as_deref(), environment).await?;
    commits::say_where_the_log_ends(connection, say);
    commits::say_unread(connection, say);
    say_unreadable(&problems, say);
    let rows = audit::timeline(&entries, span);
    let printed = match arguments.output {
        Format::Json => output::json(&in_order(entries, &rows)),
        Format::Yaml => output::yaml(&in_order(entries, &rows)),
        Format::Name => rows.iter().map(|row| resource_name(&row.entry)).collect(),
        Format::Table | Format::Wide => {
            say(format!("{} entries", rows.len()));
            table(&rows, arguments.output == Format::Wide)
        }
    };
    Ok(Outcome::done(printed))
}

fn resource_name(entry: &str) -> String {
    output::name_line("auditentry.bowline.dev", entry)
}

fn in_order(entries: Vec<AuditEntry>, rows: &[Row]) -> Value {
    let mut by_name: std::collections::HashMap<String, AuditEntry> = entries
        .into_iter()
        .map(|entry| (entry.name_any(), entry))
        .collect();
    let items: Vec<Value> = rows
        .iter()
        .filter_map(|row| by_name.remove(&row.entry))
        .filter_map(|entry| serde_json::to_value(entry).ok())
        .collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn table(rows: &[Row], wide: bool) -> String {
    let mut columns = vec!["NAME", "WHEN", "ACTOR", "ACTION", "FROM", "TO"];
    if wide {
        columns.extend(["REASON", "RECORDED BY", "OPERATION"]);
    }
    let mut lines = vec![columns.into_iter().map(str::to_owned).collect()];
    lines.extend(rows.iter().map(|row| {
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        let actor = row.actor.clone();
        let mut cells = vec![
            row.entry.clone(),
            row.when(),
            actor.unwrap_or_else(|| "unattributed".to_owned()),
            row.words(),
            optional(&row.from),
            optional(&row.to),
        ];
        if wide {
            cells.push(optional(&row.reason));
            cells.push(row.recorded_by.clone());
            cells.push(optional(&row.operation));
        }
        cells
    }));
    output::table(&lines)
}

async fn show(
    arguments: &Show,
    connection: &Connection,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let api = entries_api(&connection.client, &connection.namespace);
    let name = &arguments.name;
    check_name("name", name)?;
    let Some(mut entry) = api.get_opt(name).await? else {
        let message = format!("audit entry {name} does not exist");
        return Err(Error::new(Exit::Failed, message)
            .with_hint("list the entries: bowline audit list -o name"));
    };
    let flaws = serde_json::to_value(&entry)
        .map(audit::flaws)
        .unwrap_or_default();
    say_unreadable(&flaws, say);
    entry.metadata.managed_fields = None;
    Ok(Outcome::done(match arguments.output {
        Format::Json => output::json(&entry),
        Format::Name => resource_name(&entry.name_any()),
        Format::Yaml | Format::Table | Format::Wide => output::yaml(&entry),
    }))
}

async fn verify(
    arguments: &Verify,
    connection: &Connection,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let component = arguments.component.as_deref();
    commits::say_unread(connection, say);
    let mut verdict = verdict(connection, component).await?;
    if !verdict.is_valid() && connection.repository.is_none() {
        // An audit entry is written after its change, so the first reading may miss an entry. A real problem is still
        // there at the second reading.
        verdict = self::verdict(connection, component).await?;
    }
    if let Some(component) = component.filter(|_| verdict.chains.is_empty()) {
        say(format!(
            "warning: component {component} has no audit entries; check its name"
        ));
    }
    let findings = || verdict.problems.iter().chain(&verdict.warnings);
    let text = match arguments.output {
        Format::Json => output::json(&verdict),
        Format::Yaml => output::yaml(&verdict),
        Format::Name => {
            let mut objects: Vec<&str> =
                findings().map(|finding| finding.object.as_str()).collect();
            objects.dedup();
            let line = |object: &&str| format!("{}\n", crate::text::line(object));
            objects.iter().map(line).collect()
        }
        Format::Table | Format::Wide if findings().next().is_none() => String::new(),
        Format::Table | Format::Wide => {
            let header = ["STATE", "OBJECT", "WHAT"].map(str::to_owned).to_vec();
            let rows = findings().map(|finding| {
                vec![
                    finding.severity.to_string(),
                    finding.object.clone(),
                    finding.what.clone(),
                ]
            });
            let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
            output::table(&rows)
        }
    };
    say(format!(
        "{} in {}: {}",
        text::counted(verdict.entries, "entries"),
        text::counted(verdict.chains.len(), "chains"),
        match (verdict.problems.len(), verdict.warnings.len()) {
            (0, 0) => "valid".to_owned(),
            (0, warnings) if verdict.is_partial() => format!(
                "valid as far as this clone knows, {}",
                text::counted(warnings, "warnings")
            ),
            (0, warnings) => format!("valid, {}", text::counted(warnings, "warnings")),
            (problems, 0) => text::counted(problems, "problems"),
            (problems, warnings) => format!(
                "{}, {}",
                text::counted(problems, "problems"),
                text::counted(warnings, "warnings")
            ),
        }
    ));
    let exit = match verdict.is_valid() {
        true => Exit::Done,
        false => Exit::Failed,
    };
    Ok(Outcome::ending(text, exit))
}

async fn verdict(connection: &Connection, component: Option<&str>) -> Result<Verification, Error> {
    if let Some(repository) = connection.repository.clone() {
        let read = repository.whole().await;
        read.map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        let component = component.map(str::to_owned);
        let verifying = tokio::task::spawn_blocking(move || {
            gitops::verify::verify(&repository.tree, component.as_deref())
        });
        let verified = verifying.await;
        let verified = verified.map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        return Ok(verified?);
    }
    let pins: Api<ReleasePin> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let params = match component {
        Some(component) => ListParams::default().fields(&format!("spec.component={component}")),
        None => ListParams::default(),
    };
    // Read the ReleasePins before the entries, because an entry is written after its change. In the other order, more
    // changes would seem to lack an entry.
    let pins = pages::all(&pins, params, PAGE).await?;
    let (entries, problems) = stored(connection, component, None).await?;
    let mut lives = live(&pins);
    lives.extend(workloads(connection, component).await?);
    let mut verdict = audit::verify(&lives, &entries);
    verdict.problems.extend(problems);
    Ok(verdict)
}

/// Reads the workloads that bowline has changed. Leaves out kinds that the server does not have or that the user may
/// not read.
async fn workloads(connection: &Connection, named: Option<&str>) -> Result<Vec<Live>, Error> {
    let mut found = Vec::new();
    for kind in subjects::kinds().filter(|kind| kind.actions.is_some()) {
        let (client, namespace) = (connection.client.clone(), &connection.namespace);
        let objects: Api<DynamicObject> =
            Api::namespaced_with(client, namespace, &(kind.resource)());
        let objects = match pages::all(&objects, ListParams::default(), PAGE).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => continue,
            objects => objects?,
        };
        let is_changed = |object: &DynamicObject| kind.number(object).unwrap_or_default() > 0;
        let is_named = |object: &DynamicObject| named.is_none_or(|name| object.name_any() == name);
        let changed = objects
            .into_iter()
            .filter(|object| is_changed(object) && is_named(object));
        found.extend(changed.map(|object| Live { kind, object }));
    }
    Ok(found)
}

async fn export(
    arguments: &Export,
    span: &Span,
    connection: &Connection,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let (component, environment) = (
        arguments.component.as_deref(),
        arguments.environment.as_deref(),
    );
    let (entries, problems) = stored(connection, component, environment).await?;
    commits::say_where_the_log_ends(connection, say);
    say_unreadable(&problems, say);
    Ok(Outcome::done(match arguments.output {
        Timeline::Json => output::json(&audit::timeline(&entries, span)),
        Timeline::Md => audit::document(&entries, component, environment, span),
    }))
}

#[cfg(test)]
mod tests;
