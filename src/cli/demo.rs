//! `bowline demo`: a small world in a store of its own, and its matrix.
//!
//! The world goes through the API like anybody's: created as objects, read back
//! as objects. Nothing of it outlives the command.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::error::{Error, Exit};
use crate::api::{self, DeploymentPipeline, Release, ReleasePin, condition, labels};
use crate::connect::{self, Environment, Options, StoreFile};
use crate::{text, yaml};

const WORLD: &str = include_str!("demo.yaml");

/// Fills a fresh store and returns the matrix of what is in it.
pub async fn run(now: Timestamp) -> Result<String, Error> {
    let directory = tempfile::Builder::new().prefix("bowline-demo-").tempdir()?;
    let options = Options {
        embedded: Some(StoreFile::At(directory.path().join("bowline.db"))),
        ..Options::default()
    };
    let environment = Environment {
        user: "demo".to_owned(),
        ..Environment::default()
    };
    let connection = connect::connect(&options, &environment).await?;
    fill(&connection.client).await?;
    let matrix = Matrix::read(&connection.client, now).await?;
    Ok(matrix.to_string())
}

/// Creates every document of the world, and its status where it has one.
async fn fill(client: &kube::Client) -> Result<(), Error> {
    let broken = |what: String| Error::new(Exit::Failed, format!("the demo's world: {what}"));
    let kinds: Vec<ApiResource> = api::crds()
        .iter()
        .flat_map(|crd| {
            let names = &crd.spec.names;
            crd.spec.versions.iter().map(|version| {
                let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &names.kind);
                ApiResource::from_gvk_with_plural(&kind, &names.plural)
            })
        })
        .collect();
    let documents =
        yaml::documents("demo.yaml", WORLD).map_err(|error| broken(error.to_string()))?;
    for document in documents {
        let mut object: DynamicObject =
            serde_json::from_value(document.value).map_err(|error| broken(error.to_string()))?;
        let types = object.types.clone().unwrap_or_default();
        let resource = kinds
            .iter()
            .find(|known| known.kind == types.kind && known.api_version == types.api_version)
            .ok_or_else(|| broken(format!("{} {} is unknown", types.api_version, types.kind)))?;
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), resource);
        let status = object
            .data
            .as_object_mut()
            .and_then(|data| data.remove("status"));
        api.create(&PostParams::default(), &object).await?;
        if let Some(status) = status {
            let patch: Patch<Value> = Patch::Merge(json!({ "status": status }));
            api.patch_status(&object.name_any(), &PatchParams::default(), &patch)
                .await?;
        }
    }
    Ok(())
}

/// Components against environments in the order of the pipeline.
struct Matrix {
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
    async fn read(client: &kube::Client, now: Timestamp) -> Result<Matrix, Error> {
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
        let columns = table.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = table.iter().filter_map(|row| row.get(column));
                cells.map(|cell| text::width(cell)).max().unwrap_or(0)
            })
            .collect();
        for row in &table {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line += &text::line(cell);
                line.extend(std::iter::repeat_n(
                    ' ',
                    width.saturating_sub(text::width(cell)) + 3,
                ));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_world_reads_back_as_its_matrix() {
        let expected = "\
COMPONENT          DEVELOPMENT   STAGING    PRODUCTION
cart               ● v0.9.0      ● v0.9.0   ● v0.8.7
checkout-service   ● v1.2.4      ● v1.2.3   ✖ v1.2.3
ledger             ◐ v3.1.0      ● v3.0.9   ● v3.0.9 ⚓
notifier           ·             ● v2.0.0   ● v2.0.0
search             ● v7.7.1      ● v7.7.1   ● v7.7.0

● ready   ◐ progressing   ✖ degraded   ⚓ held   · not deployed
";
        let now = "2026-01-06T00:00:00Z".parse().unwrap();
        assert_eq!(run(now).await.unwrap(), expected);
    }

    /// Reads a document as its kind, and says what got lost on the way.
    fn unknown_fields<K: serde::de::DeserializeOwned + serde::Serialize>(
        value: &Value,
    ) -> Vec<String> {
        let typed: K = serde_json::from_value(value.clone()).unwrap();
        let back = serde_json::to_value(typed).unwrap();
        let mut lost = Vec::new();
        compare(value, &back, "", &mut lost);
        lost
    }

    fn compare(sent: &Value, kept: &Value, path: &str, lost: &mut Vec<String>) {
        match (sent, kept) {
            (Value::Object(sent), Value::Object(kept)) => {
                for (key, value) in sent {
                    let kept = kept.get(key).unwrap_or(&Value::Null);
                    compare(value, kept, &format!("{path}/{key}"), lost);
                }
            }
            (sent, kept) if sent == kept => {}
            (Value::Array(_), Value::Array(_)) => {}
            _ => lost.push(path.to_owned()),
        }
    }

    #[test]
    fn every_document_is_of_its_kind() {
        let documents = yaml::documents("demo.yaml", WORLD).unwrap();
        assert_eq!(documents.len(), 40);
        for document in documents {
            let value = &document.value;
            let lost = match value["kind"].as_str().unwrap() {
                "Component" => unknown_fields::<crate::api::Component>(value),
                "ComponentTypeDefinition" => {
                    unknown_fields::<crate::api::ComponentTypeDefinition>(value)
                }
                "DataPlane" => unknown_fields::<crate::api::DataPlane>(value),
                "DeploymentPipeline" => unknown_fields::<DeploymentPipeline>(value),
                "Environment" => unknown_fields::<crate::api::Environment>(value),
                "Release" => unknown_fields::<Release>(value),
                "ReleasePin" => unknown_fields::<ReleasePin>(value),
                "Workload" => unknown_fields::<crate::api::Workload>(value),
                other => panic!("{other} is not a kind of the demo"),
            };
            assert_eq!(lost, [""; 0], "line {}", document.line);
        }
    }
}
