//! `bowline status`: components against environments, and what runs in each.

use std::collections::BTreeSet;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::output::{self, Format};
use super::session::{live, live_everywhere};
use crate::api::condition;
use crate::api::environment::PipelineFault;
use crate::embedded::tree::LeftOutPin;
use crate::engine::matrix::{self, Cell, Columns, Health};
use crate::engine::world::{Source, World};
use crate::text;

/// The arguments of `status`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component [default: all]
    component: Option<String>,
    /// List the objects of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Returns the matrix of a namespace, or of all.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    let connection = connect::connect(options, environment).await?;
    let feed = match arguments.all_namespaces {
        true => live_everywhere(&connection, options, &Source::OF_MOVES).await?,
        false => live(&connection, options, &Source::OF_MOVES).await?,
    };
    let world = feed.world();
    let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
    let mut matrix = Matrix::of(&world, namespace, now);
    if let Some(repository) = &connection.repository {
        matrix.leave_out(repository.tree.left_out_pins(), namespace);
    }
    if let Some(component) = &arguments.component {
        matrix.rows.retain(|row| row.component == *component);
        if matrix.rows.is_empty() {
            let message = format!("component {component} has no release and is not deployed");
            return Err(Error::new(Exit::Failed, message));
        }
    }
    matrix.warning().into_iter().for_each(say);
    Ok(match arguments.output {
        Format::Json => output::json(&matrix.value()),
        Format::Yaml => output::yaml(&matrix.value()),
        Format::Name => matrix
            .rows
            .iter()
            .map(|row| output::name_line("component.openchoreo.dev", &row.component))
            .collect(),
        Format::Table | Format::Wide => matrix.text(),
    })
}

/// Components against environments in the order of the pipeline.
pub struct Matrix {
    environments: Vec<String>,
    rows: Vec<Row>,
    /// The namespaces, components and environments of ReleasePins that are not checked out.
    left_out: BTreeSet<(String, String, String)>,
    /// The faults of the pipelines.
    faults: Vec<PipelineFault>,
    /// Whether each row names its namespace.
    all_namespaces: bool,
}

struct Row {
    namespace: String,
    component: String,
    /// One per environment; None where it is not deployed.
    cells: Vec<Option<Shown>>,
}

/// What is shown of a cell.
struct Shown {
    release: String,
    version: String,
    health: Health,
    /// The reason and the message of a ReleasePin that fails.
    reason: Option<(String, String)>,
    behind: Option<usize>,
    held: bool,
    /// Whether a hold is there that has ended.
    expired: bool,
    /// What runs there instead of what is wanted, where that is known.
    runs: Option<String>,
}

impl Shown {
    fn of(cell: &Cell<'_>, applied: Option<&str>) -> Self {
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
            expired: cell.expired() > 0,
            runs: applied
                .filter(|applied| *applied != cell.release)
                .map(str::to_owned),
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
    /// Reads the matrix of a namespace, or of all, from the read model.
    pub fn of(world: &World, namespace: Option<&str>, now: Timestamp) -> Self {
        let columns = Columns::of(world, namespace);
        let components = world.components();
        let components =
            components.filter(|key| namespace.is_none_or(|wanted| &*key.namespace == wanted));
        let mut rows: Vec<Row> = components
            .map(|component| {
                let cells = matrix::row(world, &columns, component, now);
                Row {
                    namespace: component.namespace.to_string(),
                    component: component.name.to_string(),
                    cells: cells
                        .iter()
                        .zip(columns.names())
                        .map(|(cell, environment)| {
                            let pin = world.pin_of(component, environment);
                            let applied = pin.and_then(|pin| pin.applied.as_deref());
                            Some(Shown::of(cell.as_ref()?, applied))
                        })
                        .collect(),
                }
            })
            .collect();
        let place = |row: &Row| (row.namespace.clone(), row.component.clone());
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
            faults: columns.faults().cloned().collect(),
            all_namespaces: namespace.is_none(),
        }
    }

    /// Takes in the ReleasePins that a sparse checkout leaves out: their releases are not known.
    fn leave_out(&mut self, pins: Vec<LeftOutPin>, namespace: Option<&str>) {
        let is_wanted = |pin: &LeftOutPin| namespace.is_none_or(|wanted| pin.namespace == wanted);
        for pin in pins.into_iter().filter(is_wanted) {
            if !self.environments.contains(&pin.environment) {
                self.environments.push(pin.environment.clone());
            }
            let is_its =
                |row: &Row| row.component == pin.component && row.namespace == pin.namespace;
            if !self.rows.iter().any(is_its) {
                self.rows.push(Row {
                    namespace: pin.namespace.clone(),
                    component: pin.component.clone(),
                    cells: Vec::new(),
                });
            }
            self.left_out
                .insert((pin.namespace, pin.component, pin.environment));
        }
        self.rows
            .sort_by_cached_key(|row| (row.namespace.clone(), row.component.clone()));
        for row in &mut self.rows {
            row.cells.resize_with(self.environments.len(), || None);
        }
    }

    fn is_left_out(&self, row: &Row, environment: &str) -> bool {
        let (namespace, component) = (row.namespace.clone(), row.component.clone());
        self.left_out
            .contains(&(namespace, component, environment.to_owned()))
    }

    /// Names the shown ReleasePins that are not checked out.
    fn warning(&self) -> Option<String> {
        let is_shown = |component: &str| self.rows.iter().any(|row| row.component == component);
        let left_out = self
            .left_out
            .iter()
            .filter(|(_, component, _)| is_shown(component));
        let names: Vec<String> = left_out
            .map(|(_, component, environment)| format!("{component} in {environment}"))
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "warning: the release is not known, because the ReleasePin is not checked out: {}; check it out with git sparse-checkout add DIR",
                names.join(", ")
            )
        })
    }

    /// Returns a line for everything that fails: first the pipelines, then the ReleasePins.
    fn failures(&self) -> Vec<String> {
        let faults = self.faults.iter();
        let mut lines: Vec<String> = faults
            .map(|fault| {
                let (what, hint) = (fault.to_string(), fault.hint());
                format!("{}\n  hint: {}", text::line(&what), text::line(&hint))
            })
            .collect();
        for row in &self.rows {
            for (environment, cell) in self.environments.iter().zip(&row.cells) {
                let reason = cell.as_ref().and_then(|cell| cell.reason.as_ref());
                if let Some((reason, message)) = reason {
                    let component = &row.component;
                    let line = format!("{component} in {environment}: {reason}: {message}");
                    lines.push(text::block(&line).into_owned());
                }
            }
        }
        lines
    }

    /// Draws the matrix.
    pub fn text(&self) -> String {
        let namespace = |name: &str| self.all_namespaces.then(|| name.to_owned());
        let mut header: Vec<String> = namespace("NAMESPACE").into_iter().collect();
        header.push("COMPONENT".to_owned());
        header.extend(self.environments.iter().map(|name| name.to_uppercase()));
        let mut table = vec![header];
        for row in &self.rows {
            let mut cells: Vec<String> = namespace(&row.namespace).into_iter().collect();
            cells.push(row.component.clone());
            let shown = row.cells.iter().zip(&self.environments);
            cells.extend(shown.map(|(cell, environment)| match cell {
                None if self.is_left_out(row, environment) => "?".to_owned(),
                None => "·".to_owned(),
                Some(cell) => cell.text(),
            }));
            table.push(cells);
        }
        let legend = "● ready   ◐ progressing   ✖ degraded   ⚓ held   ↑n behind   · not deployed";
        let mut cells = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let is_unknown = cells.any(|cell| cell.health == Health::Unknown);
        let unknown = match is_unknown || !self.left_out.is_empty() {
            true => "   ? not known",
            false => "",
        };
        let mut text = format!("{}\n{legend}{unknown}\n", output::table(&table));
        for line in self.failures() {
            text += &format!("✖ {line}\n");
        }
        text
    }

    fn value(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = self.environments.iter().zip(&row.cells);
            let cells = cells.filter_map(|(environment, cell)| {
                if cell.is_none() && self.is_left_out(row, environment) {
                    let health = Health::Unknown.word();
                    return Some(json!({
                        "environment": environment, "release": null, "health": health, "leftOut": true,
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
            json!({
                "namespace": row.namespace, "component": row.component,
                "environments": cells.collect::<Vec<_>>(),
            })
        });
        let faults = self.faults.iter().map(|fault| {
            json!({"reason": fault.reason(), "message": fault.to_string(), "hint": fault.hint()})
        });
        json!({
            "environments": self.environments, "components": rows.collect::<Vec<_>>(),
            "pipelineFaults": faults.collect::<Vec<_>>(),
        })
    }
}

impl Shown {
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
