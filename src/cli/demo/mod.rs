//! `bowline demo`: the worked example in a store of its own, and its matrix.
//!
//! The world goes through the API like anybody's: created as objects, read back
//! as objects. Nothing of it outlives the command.

mod world;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::error::{Error, Exit};
use super::status::Matrix;
use crate::api::pin::{Hold, ReleasePinSpec};
use crate::api::reference::NameRef;
use crate::api::{self, Definitions, Release, ReleasePin, condition, labels, names};
use crate::connect::{self, Environment, Options, StoreFile};
use crate::engine::actions::release::{self, Source};
use crate::engine::catalog::Catalog;
use crate::engine::world::World;
use crate::engine::world::feed::Feed;
use crate::render::{self, Inputs, Library};
use crate::{text, yaml};
use world::{Cell, Doing, ENVIRONMENTS, FILES, PINS};

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
    let client = &connection.client;
    let catalog = Catalog::from_texts(FILES.iter().copied())?;
    create_definitions(client).await?;
    for (component, cells) in PINS {
        // From the last environment on, so that older releases are made before newer ones.
        for (environment, cell) in ENVIRONMENTS.iter().zip(cells).rev() {
            create_pin(client, &catalog, component, environment, *cell, now).await?;
        }
    }
    let mut feed = Feed::start(client, Some("default"));
    feed.until(World::is_live).await;
    let matrix = Matrix::of(&feed.world(), "default", now)?;
    Ok(format!("{}\n{}", matrix.text(), rendered(&catalog)?))
}

/// Creates the objects of the example.
async fn create_definitions(client: &Client) -> Result<(), Error> {
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
    for (file, text) in FILES {
        for document in yaml::documents(file, text).map_err(|error| broken(error.to_string()))? {
            let object: DynamicObject = serde_json::from_value(document.value)
                .map_err(|error| broken(error.to_string()))?;
            let types = object.types.clone().unwrap_or_default();
            let known = |known: &&ApiResource| {
                known.kind == types.kind && known.api_version == types.api_version
            };
            let resource = kinds
                .iter()
                .find(known)
                .ok_or_else(|| broken(format!("{file} has a {}", types.kind)))?;
            let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), resource);
            api.create(&PostParams::default(), &object).await?;
        }
    }
    Ok(())
}

/// Creates a pin with its status, and the release that it names where that is new.
async fn create_pin(
    client: &Client,
    catalog: &Catalog,
    component: &str,
    environment: &str,
    cell: Cell,
    now: Timestamp,
) -> Result<(), Error> {
    let Some((version, doing, held)) = cell else {
        return Ok(());
    };
    let definitions = at_version(catalog.definitions(component)?, version);
    let release = release::release(&definitions, Some(version), &Source::Embedded);
    let releases: Api<Release> = Api::default_namespaced(client.clone());
    if releases
        .get_metadata_opt(&release.name_any())
        .await?
        .is_none()
    {
        releases.create(&PostParams::default(), &release).await?;
    }
    let hold = Hold {
        id: "freeze".to_owned(),
        owner: "ana".to_owned(),
        reason: Some("INC-42: sale weekend".to_owned()),
        since: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now),
        until: None,
        release: None,
    };
    let name = names::pin(component, environment);
    let mut pin = ReleasePin::new(
        &name,
        ReleasePinSpec {
            component: component.to_owned(),
            environment: environment.to_owned(),
            release_ref: NameRef::new(release.name_any()),
            holds: held.then_some(hold).into_iter().collect(),
        },
    );
    for (label, value) in [
        (labels::COMPONENT, component),
        (labels::ENVIRONMENT, environment),
    ] {
        pin.labels_mut().insert(label.to_owned(), value.to_owned());
    }
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let generation = pins
        .create(&PostParams::default(), &pin)
        .await?
        .meta()
        .generation;
    let (status, reason, message) = match doing {
        Doing::Well => (
            "True",
            condition::RECONCILE_SUCCESS,
            "everything is healthy",
        ),
        Doing::Rolling => ("False", "Progressing", "2 of 5 pods are ready"),
        Doing::Badly => ("False", "Degraded", "the container main crashes"),
    };
    let status = json!({"status": {
        "appliedRelease": release.name_any(),
        "observedGeneration": generation,
        "conditions": [{
            "type": condition::READY, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": now, "observedGeneration": generation,
        }],
    }});
    let patch: Patch<Value> = Patch::Merge(status);
    pins.patch_status(&name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Returns definitions whose build made another version.
fn at_version(mut definitions: Definitions, version: &str) -> Definitions {
    let spec = &mut definitions.workload.spec;
    if let Some((image, _)) = spec
        .image
        .as_deref()
        .and_then(|image| image.rsplit_once(':'))
    {
        spec.image = Some(format!("{image}:{version}"));
    }
    spec.other.insert("version".to_owned(), version.into());
    definitions
}

/// Says what one release becomes where.
fn rendered(catalog: &Catalog) -> Result<String, Error> {
    let (component, version) = ("checkout-service", "v1.2.4");
    let definitions = at_version(catalog.definitions(component)?, version);
    let release = release::release(&definitions, Some(version), &Source::Embedded);
    let library = Library::new();
    let mut out = format!(
        "{}, stored in {}, would become:\n",
        release.name_any(),
        text::bytes(release::size(&release.spec) as u64)
    );
    for environment in ENVIRONMENTS {
        let settings = catalog.settings(component, environment)?;
        let inputs = Inputs {
            definitions: &definitions,
            settings: settings.as_ref(),
            environment: &catalog.environment(environment)?,
            namespace: &catalog.namespace,
        };
        let rendered = render::render(&inputs, &library)
            .map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        let kinds: Vec<_> = rendered
            .resources
            .iter()
            .filter_map(|resource| resource.object.get("kind")?.as_str())
            .collect();
        out += &format!("  {environment:<14} {:>2} manifests: ", kinds.len());
        out += &counted(&kinds);
        out.push('\n');
    }
    Ok(out)
}

/// Lists kinds that are in order, equal ones with their number.
fn counted(kinds: &[&str]) -> String {
    let words: Vec<String> = kinds
        .chunk_by(|one, next| one == next)
        .filter_map(|same| match same {
            [] => None,
            [one] => Some((*one).to_owned()),
            [one, ..] => Some(format!("{} {one}s", same.len())),
        })
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_world_reads_back_as_its_matrix() {
        let now = "2026-01-06T00:00:00Z".parse().unwrap();
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path("../../../snapshots/cli");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let printed = run(now).await.unwrap();
        settings.bind(|| insta::assert_snapshot!("demo", printed));
    }

    #[test]
    fn the_world_is_the_whole_example() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples");
        let mut there = Vec::new();
        let mut open = vec![root.clone()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.extension() {
                    // A repository of its own.
                    _ if path.ends_with("gitops") => {}
                    _ if path.is_dir() => open.push(path),
                    Some(extension) if extension == "yaml" => {
                        there.push(path.strip_prefix(&root).unwrap().display().to_string());
                    }
                    _ => {}
                }
            }
        }
        there.sort();
        let here: Vec<_> = FILES.iter().map(|(file, _)| (*file).to_owned()).collect();
        assert_eq!(here, there);
    }
}
