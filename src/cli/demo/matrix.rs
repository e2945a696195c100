//! The matrix of what runs where, read back from the API.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use crate::api::{DeploymentPipeline, Release, ReleasePin, condition, labels};
use crate::cli::error::{Error, Exit};
use crate::cli::output;

/// Components against environments in the order of the pipeline.
pub(super) struct Matrix {
    environments: Vec<String>,
    rows: BTreeMap<String, BTreeMap<String, Cell>>,
}

/// One pin.
struct Cell {
    glyph: char,
    version: String,
    held: bool,
}

impl Matrix {
    pub(super) async fn read(client: &kube::Client, now: Timestamp) -> Result<Matrix, Error> {
        let all = ListParams::default();
        let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(client.clone());
        let releases: Api<Release> = Api::default_namespaced(client.clone());
        let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
        let environments = match pipelines.list(&all).await?.items.first() {
            Some(pipeline) => pipeline
                .spec
                .order()
                .map_err(|cycle| Error::new(Exit::Failed, cycle.to_string()))?
                .into_iter()
                .map(str::to_owned)
                .collect(),
            None => Vec::new(),
        };
        let versions: BTreeMap<String, String> = releases
            .list(&all)
            .await?
            .iter()
            .filter_map(|release| {
                let version = release.annotations().get(labels::VERSION_TEXT)?;
                Some((release.name_any(), version.clone()))
            })
            .collect();
        let mut rows: BTreeMap<String, BTreeMap<String, Cell>> = BTreeMap::new();
        for pin in pins.list(&all).await? {
            let release = pin.spec.effective_release(now);
            let cell = Cell {
                glyph: health(&pin),
                version: versions
                    .get(release)
                    .map_or(release, String::as_str)
                    .to_owned(),
                held: pin.spec.active_holds(now).next().is_some(),
            };
            rows.entry(pin.spec.component)
                .or_default()
                .insert(pin.spec.environment, cell);
        }
        Ok(Matrix { environments, rows })
    }
}

fn health(pin: &ReleasePin) -> char {
    let conditions = pin
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    match condition::find(conditions, condition::READY) {
        Some(ready) if ready.status == "True" => '●',
        Some(ready) if ready.reason == "Progressing" => '◐',
        Some(ready) if ready.status == "False" => '✖',
        _ => '?',
    }
}

impl std::fmt::Display for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let header = std::iter::once("COMPONENT".to_owned())
            .chain(self.environments.iter().map(|name| name.to_uppercase()));
        let mut table: Vec<Vec<String>> = vec![header.collect()];
        for (component, cells) in &self.rows {
            let cells = self.environments.iter().map(|environment| {
                cells
                    .get(environment)
                    .map_or_else(|| "·".to_owned(), Cell::to_string)
            });
            table.push(std::iter::once(component.clone()).chain(cells).collect());
        }
        f.write_str(&output::table(&table))?;
        writeln!(
            f,
            "\n● ready   ◐ progressing   ✖ degraded   ⚓ held   · not deployed"
        )
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}{}",
            self.glyph,
            self.version,
            if self.held { " ⚓" } else { "" }
        )
    }
}
