//! `bowline status`: components against environments, and what runs in each.

use std::collections::BTreeSet;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::output::{self, Format};
use super::session::live;
use crate::engine::rules::Refusal;
use crate::engine::world::{Key, Pin, Source, World};

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
    cells: Vec<Option<Cell>>,
}

struct Cell {
    release: String,
    /// The version, or the name of the release where it has none.
    version: String,
    health: Health,
    /// How many releases it is behind the environment before.
    behind: Option<usize>,
    held: bool,
    /// Whether a hold is there that has ended.
    expired: bool,
    /// What runs there instead of what is wanted, where that is known.
    runs: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Ready,
    Progressing,
    Degraded,
    Unknown,
}

impl Health {
    fn of(pin: &Pin, now: Timestamp) -> Self {
        match &pin.ready {
            // What is said is of another release than the one that is shown.
            _ if !pin.is_observed(now) => Self::Unknown,
            Some(ready) if &*ready.status == "True" => Self::Ready,
            Some(ready) if &*ready.reason == "Progressing" => Self::Progressing,
            Some(ready) if &*ready.status == "False" => Self::Degraded,
            _ => Self::Unknown,
        }
    }

    fn glyph(self) -> char {
        match self {
            Self::Ready => '●',
            Self::Progressing => '◐',
            Self::Degraded => '✖',
            Self::Unknown => '?',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Progressing => "Progressing",
            Self::Degraded => "Degraded",
            Self::Unknown => "Unknown",
        }
    }
}

impl Matrix {
    /// Reads the matrix of a namespace off the read model.
    pub fn of(world: &World, namespace: &str, now: Timestamp) -> Result<Self, Error> {
        let order = world.pipeline(namespace).map(|pipeline| pipeline.order());
        let order = order.transpose();
        let order = order.map_err(|cycle| {
            let refusal = Refusal::Cycle(cycle);
            let error = Error::new(Exit::Failed, refusal.to_string());
            error.with_hint(refusal.hint().unwrap_or_default())
        })?;
        let mut environments: Vec<String> =
            order.into_iter().flatten().map(str::to_owned).collect();
        let components = || {
            let all = world.components();
            all.filter(|key| &*key.namespace == namespace)
        };
        // A pin may be in an environment that nobody has made, or that somebody has deleted.
        let pins = components().flat_map(|component| world.pins_of(component));
        let pinned: BTreeSet<String> = pins.map(|pin| pin.environment.to_string()).collect();
        for name in world.environment_names(namespace).into_iter().chain(pinned) {
            if !environments.contains(&name) {
                environments.push(name);
            }
        }
        let mut rows: Vec<Row> = components()
            .map(|component| Row {
                component: component.name.to_string(),
                cells: cells(world, component, &environments, now),
            })
            .collect();
        rows.sort_by(|one, other| one.component.cmp(&other.component));
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
        format!("{}\n{legend}\n", output::table(&table))
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

fn cells(
    world: &World,
    component: &Key,
    environments: &[String],
    now: Timestamp,
) -> Vec<Option<Cell>> {
    let pipeline = world.pipeline(&component.namespace);
    let cell = |environment: &String| {
        let pin = world.pin_of(component, environment)?;
        let release = pin.effective_release(now);
        let row = world.release(&Key::new(&component.namespace, release));
        let version = row
            .and_then(|row| row.version.as_deref())
            .unwrap_or(release);
        let before = environments
            .iter()
            .find(|from| pipeline.is_some_and(|pipeline| pipeline.is_path(from, environment)));
        let ahead = before.and_then(|from| world.pin_of(component, from));
        Some(Cell {
            release: release.to_owned(),
            version: version.to_owned(),
            health: Health::of(pin, now),
            behind: ahead.and_then(|ahead| world.behind(pin, ahead, now)),
            held: pin.active_holds(now).next().is_some(),
            expired: pin.active_holds(now).count() < pin.holds.len(),
            runs: pin
                .applied
                .as_deref()
                .filter(|applied| *applied != release)
                .map(str::to_owned),
        })
    };
    environments.iter().map(cell).collect()
}

impl Cell {
    fn text(&self) -> String {
        let mut text = format!("{} {}", self.health.glyph(), self.version);
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
