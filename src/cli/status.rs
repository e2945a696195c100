//! `bowline status`: components against environments, and what runs in each.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::output::{self, Format};
use super::session::live;
use crate::engine::matrix::{self, Cell, Columns, Health};
use crate::engine::rules::Refusal;
use crate::engine::world::{Source, World};

/// What `status` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component; all of them where it is left out
    component: Option<String>,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Returns the matrix of a namespace.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
) -> Result<String, Error> {
    let connection = connect::connect(options, environment).await?;
    let feed = live(&connection, options, &Source::OF_MOVES).await?;
    let world = feed.world();
    let mut matrix = Matrix::of(&world, &connection.namespace, now)?;
    if let Some(component) = &arguments.component {
        matrix.rows.retain(|row| row.component == *component);
        if matrix.rows.is_empty() {
            let message = format!("there is no component {component} that is deployed or released");
            return Err(Error::new(Exit::Failed, message));
        }
    }
    Ok(match arguments.output {
        Format::Json => output::json(&matrix.value()),
        Format::Yaml => output::yaml(&matrix.value()),
        Format::Name => matrix
            .rows
            .iter()
            .map(|row| format!("component.openchoreo.dev/{}\n", row.component))
            .collect(),
        Format::Table | Format::Wide => matrix.text(),
    })
}

/// Components against environments in the order of the pipeline.
pub struct Matrix {
    environments: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    component: String,
    /// One per environment; None where it is not deployed.
    cells: Vec<Option<Shown>>,
}

/// What is shown of a cell.
struct Shown {
    release: String,
    version: String,
    health: Health,
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
            health: cell.told,
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
    /// Reads the matrix of a namespace off the read model.
    pub fn of(world: &World, namespace: &str, now: Timestamp) -> Result<Self, Error> {
        let columns = Columns::of(world, Some(namespace));
        if let Some(cycle) = columns.cycle() {
            let refusal = Refusal::Cycle(cycle.clone());
            let error = Error::new(Exit::Failed, refusal.to_string());
            return Err(error.with_hint(refusal.hint().unwrap_or_default()));
        }
        let components = world.components();
        let components = components.filter(|key| &*key.namespace == namespace);
        let mut rows: Vec<Row> = components
            .map(|component| {
                let cells = matrix::row(world, &columns, component, now);
                Row {
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
        rows.sort_by(|one, other| one.component.cmp(&other.component));
        let environments = columns
            .names()
            .iter()
            .map(|name| name.to_string())
            .collect();
        Ok(Self { environments, rows })
    }

    /// Draws the matrix.
    pub fn text(&self) -> String {
        let first = "COMPONENT".to_owned();
        let header = self.environments.iter().map(|name| name.to_uppercase());
        let mut table: Vec<Vec<String>> = vec![std::iter::once(first).chain(header).collect()];
        for row in &self.rows {
            let cells = row.cells.iter().map(|cell| match cell {
                None => "·".to_owned(),
                Some(cell) => cell.text(),
            });
            table.push(
                std::iter::once(row.component.clone())
                    .chain(cells)
                    .collect(),
            );
        }
        let legend = "● ready   ◐ progressing   ✖ degraded   ⚓ held   -n behind   · not deployed";
        let mut cells = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let unknown = match cells.any(|cell| cell.health == Health::Unknown) {
            true => "   ? not known",
            false => "",
        };
        format!("{}\n{legend}{unknown}\n", output::table(&table))
    }

    fn value(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = self.environments.iter().zip(&row.cells);
            let cells = cells.filter_map(|(environment, cell)| {
                let cell = cell.as_ref()?;
                Some(json!({
                    "environment": environment, "release": cell.release, "version": cell.version,
                    "health": cell.health.word(), "behind": cell.behind, "held": cell.held, "holdExpired": cell.expired,
                    "runs": cell.runs,
                }))
            });
            json!({"component": row.component, "environments": cells.collect::<Vec<_>>()})
        });
        json!({"environments": self.environments, "components": rows.collect::<Vec<_>>()})
    }
}

impl Shown {
    fn text(&self) -> String {
        let mut text = format!("{} {}", glyph(self.health), self.version);
        if let Some(behind @ 1..) = self.behind {
            text += &format!(" -{behind}");
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
