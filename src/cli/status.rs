//! `bowline status`: prints the matrix of components and environments, with the release in each cell. Also prints the
//! workloads that bowline did not deploy.

use std::collections::BTreeSet;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::commits;
use super::connect::{self, Address, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::observing;
use super::output::{self, Format};
use super::session::{live_matrix, refused, unread_workloads};
use crate::api::condition;
use crate::api::openchoreo::environment::PipelineFault;
use crate::engine::subject::SubjectRef;
use crate::engine::world::World;
use crate::engine::world::feed::Feed;
use crate::gitops::tree::LeftOutPin;
use crate::subjects::matrix;
use crate::subjects::release_pin::catalog;
use crate::subjects::release_pin::matrix::{Cell, Health};
use crate::subjects::release_pin::planner::is_defined;
use crate::subjects::release_pin::rows::Pin;
use crate::subjects::release_pin::rules::{self, Refusal};
use crate::text;

/// The arguments of `status`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component, or a workload with its kind (deploy/web) [default: all]
    component: Option<String>,
    /// List the objects of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Returns the matrix of one namespace or of all namespaces as output, as the arguments say.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    // Workloads can be shown even on a cluster without the CRDs of bowline, so no kinds are required.
    let any = Options {
        kinds: Vec::new(),
        ..options.clone()
    };
    let connection = connect::connect(&any, environment).await?;
    if !connection.target.is_cluster() {
        connection.require(&options.kinds).await?;
    }
    let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
    let feed = live_matrix(&connection, options, namespace).await?;
    for why in unread_workloads(&feed.world()) {
        say(format!("warning: workloads are missing here: {why}"));
    }
    let mut matrix = Matrix::of(&feed.world(), namespace, now);
    let left_out = connection.left_out();
    matrix.leave_out(left_out.pins, namespace);
    matrix.hides = left_out.may_hide_pins;
    matrix.without_releases(&left_out.releases);
    commits::say_unread(&connection, say);
    if namespace.is_some() {
        commits::say_namespaces(&connection, options, say);
    }
    if matrix.is_empty() && arguments.component.is_none() {
        let address = Address::of(&connection, options, environment);
        nothing(&connection, namespace, &feed, &address)
            .await
            .into_iter()
            .for_each(&mut *say);
    }
    if let Some(component) = &arguments.component {
        let known = matrix.rows.iter().map(|row| row.name.clone());
        let known: Vec<String> = known.take(rules::NAMES).collect();
        matrix.rows.retain(|row| row.name == *component);
        if matrix.rows.is_empty() {
            let address = Address::of(&connection, options, environment);
            return Err(absent(component, known, &feed, &connection, &address).await);
        }
    }
    matrix.warnings().into_iter().for_each(&mut *say);
    if matrix.has_component(Health::Progressing) && observing::is_unattended(&connection).await {
        let address = Address::of(&connection, options, environment);
        say(format!("hint: {}", observing::how_to_run(&address)));
    }
    Ok(match arguments.output {
        Format::Json => output::json(&matrix.value()),
        Format::Yaml => output::yaml(&matrix.value()),
        Format::Name => matrix
            .rows
            .iter()
            .map(|row| match &row.workload {
                Some(workload) => output::name_line(&label(workload), &workload.key.name),
                None => output::name_line("component.openchoreo.dev", &row.name),
            })
            .collect(),
        Format::Table => matrix.text(),
        Format::Wide => matrix.wide(now),
    })
}

/// Returns the kind of a workload with its group, in the form of `kubectl -o name`.
fn label(workload: &SubjectRef) -> String {
    let kind = (workload.kind.resource)();
    format!("{}.{}", kind.kind.to_lowercase(), kind.group)
}

/// Returns the message for an empty matrix, with the next step. `namespace` is None if the matrix is for all
/// namespaces.
async fn nothing(
    connection: &Connection,
    namespace: Option<&str>,
    feed: &Feed,
    address: &Address,
) -> Vec<String> {
    let Some(namespace) = namespace else {
        let message = "nothing is deployed in any namespace".to_owned();
        return [vec![message], first_definitions(connection, address)].concat();
    };
    let defined = catalog::components(&connection.client, namespace).await;
    let world = feed.world();
    let first = world
        .pipeline(namespace)
        .map(|found| found.first_environments());
    let steps = match (defined.first(), first.unwrap_or_default().first()) {
        (Some(component), Some(first)) => {
            let (component, first) = (text::quoted(component), text::quoted(first));
            let deploy = format!("bowline deploy {component} -e {first}");
            vec![format!(
                "hint: deploy a component: {}",
                address.bowline(&deploy)
            )]
        }
        _ => first_definitions(connection, address),
    };
    let message = format!("nothing is deployed in namespace {namespace}");
    let all = address.everywhere().bowline("bowline status -A");
    let all = format!("hint: look in all namespaces: {all}");
    [vec![message], steps, vec![all]].concat()
}

/// Returns hints that say how a user adds the first definitions to the target.
fn first_definitions(connection: &Connection, address: &Address) -> Vec<String> {
    match connection.repository.is_some() {
        true => {
            let create = address.bowline("bowline release create COMPONENT -f DIR");
            vec![format!(
                "hint: create the first release of your definitions: {create}"
            )]
        }
        false => {
            let apply = address.bowline("bowline apply -f DIR -R");
            vec![
                format!("hint: apply your definitions: {apply}"),
                "hint: or look at an example: bowline demo".to_owned(),
            ]
        }
    }
}

/// Returns the error for a component that has no row in the matrix. Either the component does not exist, or it has no
/// release and no ReleasePin.
async fn absent(
    component: &str,
    known: Vec<String>,
    feed: &Feed,
    connection: &Connection,
    address: &Address,
) -> Error {
    let namespace = &connection.namespace;
    if !is_defined(&connection.client, namespace, component).await {
        let component = component.to_owned();
        return refused(vec![Refusal::NoComponent { component, known }], address);
    }
    let message = format!("{component} has no release and is not deployed");
    let error = Error::new(Exit::Failed, message);
    let world = feed.world();
    let first = world
        .pipeline(namespace)
        .map(|pipeline| pipeline.first_environments());
    match first.unwrap_or_default().first() {
        Some(first) => {
            let (component, first) = (text::quoted(component), text::quoted(first));
            let deploy = format!("bowline deploy {component} -e {first}");
            error.with_hint(address.bowline(&deploy))
        }
        None => error,
    }
}

/// The matrix of components and environments in the form that is printed.
pub struct Matrix {
    environments: Vec<String>,
    rows: Vec<Row>,
    /// The ReleasePins in files that are not checked out: namespace, component and environment of each.
    left_out: BTreeSet<(String, String, String)>,
    /// The ReleasePins in files that cannot be parsed: namespace, component and environment of each.
    unread: BTreeSet<(String, String, String)>,
    /// Whether a file that bowline cannot read may contain more ReleasePins.
    hides: bool,
    /// The names of the releases in files that are not checked out.
    left_out_releases: BTreeSet<String>,
    faults: Vec<PipelineFault>,
    /// Whether the matrix is for all namespaces, so that each row names its namespace.
    all_namespaces: bool,
}

struct Row {
    namespace: String,
    /// The name that users type: a component, or a workload with its kind, such as `deploy/web`.
    name: String,
    /// The workload that the row is about; None if the row is about a component.
    workload: Option<SubjectRef>,
    /// The cells of the row, one per environment. A cell is None if the component is not deployed there.
    cells: Vec<Option<Shown>>,
}

/// A cell of the matrix in the form that is printed.
struct Shown {
    release: String,
    version: String,
    health: Health,
    /// The reason and the message of the Ready condition if the ReleasePin has failed; otherwise None.
    reason: Option<(String, String)>,
    behind: Option<usize>,
    held: bool,
    /// Whether the ReleasePin has only expired holds.
    expired: bool,
    /// The release that still runs, if another release is effective; otherwise None.
    runs: Option<String>,
    /// The time at which the release became effective; None if it is unknown.
    since: Option<Timestamp>,
    /// One text per active hold: its owner, reason and end.
    holds: Vec<String>,
    /// The last good release, which a rollback restores; None if there is none.
    last_good: Option<String>,
}

impl Shown {
    fn of(cell: &Cell<'_>, pin: Option<&Pin>, now: Timestamp) -> Self {
        let applied = pin.and_then(|pin| pin.applied.as_deref());
        let holds = cell.holds.iter().filter(|hold| hold.is_active(now));
        Self {
            release: cell.release.to_owned(),
            version: cell.version.to_owned(),
            health: cell.health(),
            reason: match cell.health() {
                Health::Missing => Some((
                    condition::RELEASE_MISSING.to_owned(),
                    format!("there is no release {}", cell.release),
                )),
                _ => cell
                    .reason
                    .map(|(reason, message)| (reason.to_owned(), message.to_owned())),
            },
            behind: cell.behind,
            held: cell.held > 0,
            expired: cell.held == 0 && cell.expired() > 0,
            runs: applied
                .filter(|applied| *applied != cell.release)
                .map(str::to_owned),
            since: cell.since,
            holds: holds.map(rules::hold_words).collect(),
            last_good: cell.good.map(|good| good.label.to_owned()),
        }
    }
}

fn glyph(health: Health) -> char {
    match health {
        Health::Ready => '●',
        Health::Progressing => '◐',
        Health::Degraded | Health::Missing => '✖',
        Health::Unknown => '?',
    }
}

impl Matrix {
    /// Builds the matrix from the read model, for one namespace; for all namespaces if `namespace` is None.
    pub fn of(world: &World, namespace: Option<&str>, now: Timestamp) -> Self {
        let columns = matrix::columns(world, namespace);
        let keys = matrix::keys(world);
        let keys = keys.filter(|key| namespace.is_none_or(|wanted| &*key.namespace == wanted));
        let mut rows: Vec<Row> = keys
            .map(|key| {
                let cells = matrix::row(world, &columns, key, now);
                let workload = matrix::named(&key.namespace, &key.name);
                Row {
                    namespace: key.namespace.to_string(),
                    name: key.name.to_string(),
                    workload: workload.map(|(subject, _)| subject),
                    cells: cells
                        .iter()
                        .zip(columns.names())
                        .map(|(cell, environment)| {
                            let pin = world.pin_of(key, environment);
                            Some(Shown::of(cell.as_ref()?, pin, now))
                        })
                        .collect(),
                }
            })
            .collect();
        // The rows of components come before the rows of workloads.
        let place = |row: &Row| {
            (
                row.namespace.clone(),
                row.workload.is_some(),
                row.name.clone(),
            )
        };
        rows.sort_by_cached_key(place);
        let environments = columns
            .names()
            .iter()
            .map(|name| name.to_string())
            .collect();
        Self {
            environments,
            rows,
            left_out: BTreeSet::new(),
            unread: BTreeSet::new(),
            hides: false,
            left_out_releases: BTreeSet::new(),
            faults: columns.faults().cloned().collect(),
            all_namespaces: namespace.is_none(),
        }
    }

    /// Returns whether certainly nothing is deployed. Returns false if bowline has not read some files.
    fn is_empty(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let is_known = !self.hides && self.left_out.is_empty() && self.unread.is_empty();
        is_known && cells.next().is_none()
    }

    fn has_component(&self, health: Health) -> bool {
        // bowline's controllers do not run the rollouts of workloads, so only the rows of components count.
        let components = self.rows.iter().filter(|row| row.workload.is_none());
        let mut cells = components.flat_map(|row| row.cells.iter().flatten());
        cells.any(|cell| cell.health == health)
    }

    /// Sets the health to unknown for releases in files that are not checked out. Otherwise these releases would
    /// count as missing.
    fn without_releases(&mut self, left_out: &BTreeSet<String>) {
        let cells = self.rows.iter_mut().flat_map(|row| &mut row.cells);
        for cell in cells.flatten() {
            if cell.health == Health::Missing && left_out.contains(&cell.release) {
                cell.health = Health::Unknown;
                cell.reason = None;
                self.left_out_releases.insert(cell.release.clone());
            }
        }
    }

    /// Adds the ReleasePins in files that are not checked out or cannot be parsed. Their cells show that the release
    /// is unknown.
    fn leave_out(&mut self, pins: Vec<LeftOutPin>, namespace: Option<&str>) {
        let is_wanted = |pin: &LeftOutPin| namespace.is_none_or(|wanted| pin.namespace == wanted);
        for pin in pins.into_iter().filter(is_wanted) {
            if !self.environments.contains(&pin.environment) {
                self.environments.push(pin.environment.clone());
            }
            let is_its = |row: &Row| row.name == pin.component && row.namespace == pin.namespace;
            if !self.rows.iter().any(is_its) {
                self.rows.push(Row {
                    namespace: pin.namespace.clone(),
                    name: pin.component.clone(),
                    workload: None,
                    cells: Vec::new(),
                });
            }
            let unknown = match pin.problem.is_empty() {
                true => &mut self.left_out,
                false => &mut self.unread,
            };
            unknown.insert((pin.namespace, pin.component, pin.environment));
        }
        self.rows
            .sort_by_cached_key(|row| (row.namespace.clone(), row.name.clone()));
        for row in &mut self.rows {
            row.cells.resize_with(self.environments.len(), || None);
        }
    }

    fn is_left_out(&self, row: &Row, environment: &str) -> bool {
        let place = (
            row.namespace.clone(),
            row.name.clone(),
            environment.to_owned(),
        );
        self.left_out.contains(&place)
    }

    /// Returns whether an empty cell may belong to a ReleasePin in a file that bowline has not read.
    fn is_unknown(&self, row: &Row, environment: &str) -> bool {
        let place = (
            row.namespace.clone(),
            row.name.clone(),
            environment.to_owned(),
        );
        self.hides || self.left_out.contains(&place) || self.unread.contains(&place)
    }

    /// Returns warnings about the ReleasePins and releases in files that are not checked out.
    fn warnings(&self) -> Vec<String> {
        let names: Vec<&str> = self.left_out_releases.iter().map(String::as_str).collect();
        let releases = (!names.is_empty()).then(|| {
            format!(
                "warning: these releases are not known, because they are not checked out: {}; check them out: git sparse-checkout add DIR",
                names.join(", ")
            )
        });
        self.pins_not_checked_out()
            .into_iter()
            .chain(releases)
            .collect()
    }

    fn pins_not_checked_out(&self) -> Option<String> {
        let is_shown = |component: &str| self.rows.iter().any(|row| row.name == component);
        let left_out = self
            .left_out
            .iter()
            .filter(|(_, component, _)| is_shown(component));
        let names: Vec<String> = left_out
            .map(|(_, component, environment)| format!("{component} in {environment}"))
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "warning: the release is not known, because the ReleasePin is not checked out: {}; check it out: git sparse-checkout add DIR",
                names.join(", ")
            )
        })
    }

    /// Returns one line per fault. The faults of pipelines come first, then those of ReleasePins and workloads.
    fn failures(&self) -> Vec<String> {
        let faults = self.faults.iter();
        let mut lines: Vec<String> = faults
            .map(|fault| {
                let (what, hint) = (fault.to_string(), fault.hint());
                format!("✖ {}\n  hint: {}", text::line(&what), text::line(&hint))
            })
            .collect();
        for row in &self.rows {
            for (environment, cell) in self.environments.iter().zip(&row.cells) {
                let Some(cell) = cell else { continue };
                if let Some((reason, message)) = &cell.reason {
                    let (glyph, name) = (glyph(cell.health), &row.name);
                    let line = match reason.is_empty() {
                        true => format!("{glyph} {name} in {environment}: {message}"),
                        false => format!("{glyph} {name} in {environment}: {reason}: {message}"),
                    };
                    lines.push(text::block(&line).into_owned());
                }
            }
        }
        lines
    }

    fn subject(&self) -> &'static str {
        match self.rows.iter().all(|row| row.workload.is_some()) {
            true => "WORKLOAD",
            false => "COMPONENT",
        }
    }

    /// Returns the matrix as a table for the user.
    pub fn text(&self) -> String {
        let namespace = |name: &str| self.all_namespaces.then(|| name.to_owned());
        let mut header: Vec<String> = namespace("NAMESPACE").into_iter().collect();
        header.push(self.subject().to_owned());
        header.extend(self.environments.iter().map(|name| name.to_uppercase()));
        let mut table = vec![header];
        for row in &self.rows {
            let mut cells: Vec<String> = namespace(&row.namespace).into_iter().collect();
            cells.push(row.name.clone());
            let shown = row.cells.iter().zip(&self.environments);
            cells.extend(shown.map(|(cell, environment)| match cell {
                None if self.is_unknown(row, environment) => "?".to_owned(),
                None => "·".to_owned(),
                Some(cell) => cell.text(),
            }));
            table.push(cells);
        }
        let legend = "● ready   ◐ progressing   ✖ degraded   ⚓ held   ↑n behind   · not deployed";
        let mut cells = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let is_unknown = cells.any(|cell| cell.health == Health::Unknown);
        let is_unread = self.hides || !self.left_out.is_empty() || !self.unread.is_empty();
        let unknown = match is_unknown || is_unread {
            true => "   ? not known",
            false => "",
        };
        let mut text = match self.rows.is_empty() {
            true => String::new(),
            false => format!("{}\n{legend}{unknown}\n", output::table(&table)),
        };
        for line in self.failures() {
            text += &format!("{line}\n");
        }
        text
    }

    /// Returns a table with one line per deployed component and environment, including holds and last good release.
    fn wide(&self, now: Timestamp) -> String {
        let namespace = |name: &str| self.all_namespaces.then(|| name.to_owned());
        let mut header: Vec<String> = namespace("NAMESPACE").into_iter().collect();
        let names = [
            self.subject(),
            "ENVIRONMENT",
            "RELEASE",
            "HEALTH",
            "BEHIND",
            "SINCE",
            "LAST GOOD",
            "HOLDS",
        ];
        header.extend(names.map(str::to_owned));
        let mut table = vec![header];
        for row in &self.rows {
            for (cell, environment) in row.cells.iter().zip(&self.environments) {
                let mut cells: Vec<String> = namespace(&row.namespace).into_iter().collect();
                cells.extend([row.name.clone(), environment.clone()]);
                match cell {
                    None if self.is_unknown(row, environment) => cells.push("?".to_owned()),
                    None => continue,
                    Some(cell) => cells.extend(cell.columns(now)),
                }
                table.push(cells);
            }
        }
        let mut text = match table.len() {
            1 => String::new(),
            _ => format!("{}\n", output::table(&table)),
        };
        for line in self.failures() {
            text += &format!("{line}\n");
        }
        text
    }

    fn value(&self) -> Value {
        let value = |row: &Row| {
            let cells = self.environments.iter().zip(&row.cells);
            let cells = cells.filter_map(|(environment, cell)| {
                if cell.is_none() && self.is_unknown(row, environment) {
                    let health = Health::Unknown.word();
                    return Some(json!({
                        "environment": environment, "release": null, "health": health,
                        "leftOut": self.is_left_out(row, environment),
                    }));
                }
                let cell = cell.as_ref()?;
                Some(json!({
                    "environment": environment, "release": cell.release, "version": cell.version,
                    "health": cell.health.word(),
                    "reason": cell.reason.as_ref().map(|(reason, _)| reason),
                    "message": cell.reason.as_ref().map(|(_, message)| message),
                    "behind": cell.behind, "held": cell.held, "holdExpired": cell.expired,
                    "runs": cell.runs,
                }))
            });
            let kind = match row.workload {
                Some(_) => "workload",
                None => "component",
            };
            json!({
                "namespace": row.namespace, kind: row.name,
                "environments": cells.collect::<Vec<_>>(),
            })
        };
        let (workloads, components): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.workload.is_some());
        let values = |rows: Vec<&Row>| rows.into_iter().map(value).collect::<Vec<_>>();
        let faults = self.faults.iter().map(|fault| {
            json!({"reason": fault.reason(), "message": fault.to_string(), "hint": fault.hint()})
        });
        json!({
            "environments": self.environments, "components": values(components),
            "workloads": values(workloads),
            "pipelineFaults": faults.collect::<Vec<_>>(),
        })
    }
}

impl Shown {
    fn columns(&self, now: Timestamp) -> Vec<String> {
        let behind = self.behind.filter(|behind| *behind > 0);
        let since = self.since;
        let since = since.map(|since| text::age(now.as_second() - since.as_second()));
        vec![
            self.release.clone(),
            self.health.word().to_owned(),
            behind.map_or_else(String::new, |behind| format!("↑{behind}")),
            since.unwrap_or_else(|| "?".to_owned()),
            self.last_good.clone().unwrap_or_default(),
            self.holds.join("; "),
        ]
    }

    fn text(&self) -> String {
        let mut text = format!("{} {}", glyph(self.health), self.version);
        if let Some((reason, _)) = &self.reason {
            text += &format!(" {reason}");
        }
        if let Some(behind @ 1..) = self.behind {
            text += &format!(" ↑{behind}");
        }
        if self.held {
            text += " ⚓";
        }
        if self.expired {
            text += " (hold expired)";
        }
        if let Some(runs) = &self.runs {
            text += &format!(" (runs {runs})");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::world::Event;
    use crate::fixture::{self, held, now, pin, release};

    #[test]
    fn an_active_hold_hides_the_expired_ones() {
        let hold = |id: &str, until: Option<&str>| json!({"id": id, "owner": "mei", "since": "2026-11-17T10:00:00Z", "until": until});
        let active = || hold("a", None);
        let later = || hold("b", Some("2026-11-18T00:00:00Z"));
        let expired = || hold("c", Some("2026-11-17T13:00:00Z"));
        for (holds, shown, is_held, is_expired) in [
            (json!([]), "● v1 ↑1", false, false),
            (json!([active()]), "● v1 ↑1 ⚓", true, false),
            (json!([expired()]), "● v1 ↑1 (hold expired)", false, true),
            (
                json!([active(), later(), expired()]),
                "● v1 ↑1 ⚓",
                true,
                false,
            ),
        ] {
            let mut world = fixture::world();
            world.releases(Event::Applied(release("cart", "v1", 1)));
            world.releases(Event::Applied(release("cart", "v2", 2)));
            world.pins(Event::Applied(pin("cart", "development", "v2")));
            let pin = held(pin("cart", "staging", "v1"), holds.clone());
            world.pins(Event::Applied(pin));
            let matrix = Matrix::of(&world, Some("shop"), now());
            let cell = matrix.rows[0].cells[1].as_ref().unwrap();
            assert_eq!(cell.text(), shown, "{holds}");
            let value = &matrix.value()["components"][0]["environments"][1];
            let flags = (&value["held"], &value["holdExpired"]);
            assert_eq!(flags, (&json!(is_held), &json!(is_expired)), "{holds}");
        }
    }
}
