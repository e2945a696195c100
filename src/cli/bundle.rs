//! The bundle: the objects that bowline installs on a cluster. They are the files of deploy/, compiled into bowline.

use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::connect::Connection;
use super::error::{Error, Exit};
use super::kinds::Kinds;
use super::manifests::Manifest;
use super::target_object::TargetObject;
use crate::api::{self, labels};

/// The field manager under which bowline installs the objects of the bundle.
pub const MANAGER: &str = "bowline-install";

/// The files of the bundle, dependencies first. The CRDs are not files; they come after the first file.
const FILES: [(&str, &str); 5] = [
    (
        "namespace.yaml",
        include_str!("../../deploy/namespace.yaml"),
    ),
    ("rbac.yaml", include_str!("../../deploy/rbac.yaml")),
    ("account.yaml", include_str!("../../deploy/account.yaml")),
    ("policies.yaml", include_str!("../../deploy/policies.yaml")),
    (
        "controller.yaml",
        include_str!("../../deploy/controller.yaml"),
    ),
];

/// The file with the alert rules. The bundle contains them in a ConfigMap.
const RULES: &str = include_str!("../../deploy/rules.yaml");

/// The JSON pointer to the controller's image in its Deployment.
const IMAGE: &str = "/spec/template/spec/containers/0/image";

/// Returns the objects of the bundle, dependencies first. `image` is the image of the controller; None takes the
/// image of this version of bowline.
pub fn objects(image: Option<&str>) -> Result<Vec<Value>, Error> {
    let broken = |why: String| Error::new(Exit::Failed, format!("the bundle: {why}"));
    let mut objects = Vec::new();
    for (file, text) in FILES {
        let documents =
            bounded_yaml::documents(file, text).map_err(|error| broken(error.to_string()))?;
        objects.extend(documents.into_iter().map(|document| document.value));
        if file == "namespace.yaml" {
            for crd in api::crds() {
                let crd = serde_json::to_value(crd).map_err(|error| broken(error.to_string()))?;
                objects.push(crd);
            }
        }
    }
    objects.retain(|object| !object.is_null());
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "bowline-rules",
            "namespace": labels::SYSTEM_NAMESPACE,
            "labels": {labels::PART_OF: labels::PART_OF_BOWLINE},
        },
        "data": {"rules.yaml": RULES},
    }));
    if let Some(image) = image {
        for object in &mut objects {
            set_image(object, image);
        }
    }
    Ok(objects)
}

/// Sets the image of the controller if `object` is the controller's Deployment.
fn set_image(object: &mut Value, image: &str) {
    if object["kind"] == "Deployment"
        && let Some(found) = object.pointer_mut(IMAGE)
    {
        *found = json!(image);
    }
}

/// Returns the image of the controller if `object` is the controller's Deployment; otherwise None.
pub fn image(object: &Value) -> Option<&str> {
    object.pointer(IMAGE).and_then(Value::as_str)
}

/// Returns the image of the controller in its Deployment on the cluster; None if it has none.
fn installed_image(live: &Value) -> Option<&str> {
    let containers = live.pointer("/spec/template/spec/containers")?.as_array()?;
    let own = containers.iter().find(|it| it["name"] == "controller")?;
    own["image"].as_str().filter(|image| !image.is_empty())
}

/// An object of the bundle, together with the live object of the same name.
pub struct Piece {
    /// The kind, namespace and name of the object.
    pub place: TargetObject,
    /// The object as it is in the bundle.
    pub value: Value,
    /// The live object of the same name; None if the cluster has none.
    pub found: Option<Found>,
}

/// A live object on the cluster with the name of an object in the bundle.
pub struct Found {
    /// The uid of the live object, because a later object with the same name has another uid.
    pub uid: Option<String>,
    /// Whether bowline installed the live object.
    pub ours: bool,
    /// The names of the field managers that have written the live object.
    pub writers: Vec<String>,
    pub deleting: bool,
    /// The content of the live object; None for a CRD, because it is large and not needed.
    pub live: Option<Value>,
}

impl Found {
    fn new(metadata: ObjectMeta, live: Option<Value>) -> Self {
        let labels = metadata.labels.unwrap_or_default();
        let managers = metadata.managed_fields.into_iter().flatten();
        let mut writers: Vec<String> = managers.filter_map(|field| field.manager).collect();
        writers.sort();
        writers.dedup();
        Self {
            uid: metadata.uid,
            ours: labels
                .get(labels::PART_OF)
                .is_some_and(|part| part == labels::PART_OF_BOWLINE),
            writers,
            deleting: metadata.deletion_timestamp.is_some(),
            live,
        }
    }
}

impl Piece {
    pub fn is_namespace(&self) -> bool {
        self.place.kind.resource.kind == "Namespace"
    }

    pub fn is_crd(&self) -> bool {
        self.place.kind.resource.kind == "CustomResourceDefinition"
    }

    /// Returns whether the object is the mutating policy. This policy writes the author of each change into the
    /// changed object.
    pub fn is_mutating_policy(&self) -> bool {
        self.place.kind.resource.kind == "MutatingAdmissionPolicy"
    }

    pub fn is_controller(&self) -> bool {
        self.place.kind.resource.kind == "Deployment"
    }

    pub fn is_being_deleted(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.deleting)
    }

    /// Returns the image of the controller in the bundle if the object is the controller's Deployment; otherwise
    /// None.
    pub fn image(&self) -> Option<&str> {
        image(&self.value)
    }

    /// Returns whether the live object exists and bowline did not install it.
    pub fn is_foreign(&self) -> bool {
        self.found.as_ref().is_some_and(|found| !found.ours)
    }
}

/// Reads the live objects for the bundle. Leaves out kinds that the server does not have, and prints a warning. If
/// `image` is None, the installed controller keeps its image, and a new controller gets the image of this version.
pub async fn look(
    connection: &Connection,
    image: Option<&str>,
    say: &mut dyn FnMut(String),
) -> Result<Vec<Piece>, Error> {
    let mut kinds = Kinds::new(&connection.client);
    let mut pieces = Vec::new();
    for value in objects(image)? {
        let manifest = Manifest::new("the bundle".to_owned(), value)?;
        let kind = match kinds.of(&manifest.api_version, &manifest.kind).await {
            Ok(kind) => kind,
            // Servers before Kubernetes 1.36 have no mutating policies, so this is only a warning.
            Err(error) if error.exit == Exit::Failed && manifest.kind.starts_with("Mutating") => {
                say(format!(
                    "warning: the server has no {} of {}: the audit trail cannot name the author of a ReleasePin change that another tool makes",
                    manifest.kind, manifest.api_version
                ));
                continue;
            }
            Err(error) => return Err(error),
        };
        let namespace = manifest.namespace.as_deref().unwrap_or_default();
        let place = TargetObject::new(connection, kind, namespace, &manifest.name);
        let found = match manifest.is_crd() {
            true => {
                let found = place.objects.get_metadata_opt(&place.name).await?;
                found.map(|found| Found::new(found.metadata, None))
            }
            false => {
                let found = place.objects.get_opt(&place.name).await?;
                found.map(|found| {
                    let live = serde_json::to_value(&found).ok();
                    Found::new(found.metadata, live)
                })
            }
        };
        let live = found.as_ref().and_then(|found| found.live.as_ref());
        let mut value = manifest.value;
        if image.is_none()
            && let Some(installed) = live.and_then(installed_image)
        {
            set_image(&mut value, installed);
        }
        pieces.push(Piece {
            place,
            value,
            found,
        });
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use clap::CommandFactory;

    use super::*;
    use crate::api::DeploymentPipeline;

    /// Returns the YAML files of a folder and its subfolders.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files(&path));
            } else if path.extension().is_some_and(|it| it == "yaml") {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn every_pipeline_of_deploy_enables_retention() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let mut count = 0;
        for file in files(&folder) {
            let text = std::fs::read_to_string(&file).unwrap();
            if !text.contains("kind: DeploymentPipeline") {
                continue;
            }
            for document in bounded_yaml::documents("test", &text).unwrap() {
                if document.value["kind"] != "DeploymentPipeline" {
                    continue;
                }
                let pipeline: DeploymentPipeline = serde_json::from_value(document.value).unwrap();
                let retention = pipeline.spec.retention.unwrap_or_default();
                assert!(retention.enabled, "{}", file.display());
                count += 1;
            }
        }
        assert!(count >= 2, "{count} pipelines");
    }

    #[test]
    fn the_program_reads_the_secrets_where_the_deployment_mounts_them() {
        let objects = objects(None).unwrap();
        let controller = objects.iter().find(|it| it["kind"] == "Deployment");
        let pod = &controller.unwrap()["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let items = |value: &Value| value.as_array().unwrap().clone();
        let named = |list: &Value, name: &str| {
            let found = items(list).into_iter().find(|it| it["name"] == name);
            found.unwrap_or_else(|| panic!("no {name} in {list}"))
        };
        let cli = crate::Cli::command();
        let verb = cli.find_subcommand("controller").unwrap();
        for (secret, flag, key) in [
            ("bowline-kubeconfig", "data-planes", Some("config")),
            ("bowline-git-tokens", "git-tokens", None),
        ] {
            let mut volumes = items(&pod["volumes"]).into_iter();
            let volume = volumes
                .find(|it| it["secret"]["secretName"] == secret)
                .unwrap();
            assert_eq!(volume["secret"]["optional"], true, "{secret}");
            let mount = named(&container["volumeMounts"], volume["name"].as_str().unwrap());
            let mut path = mount["mountPath"].as_str().unwrap().to_owned();
            path += &key.map(|key| format!("/{key}")).unwrap_or_default();
            let mut flags = verb.get_arguments();
            let flag = flags.find(|it| it.get_long() == Some(flag)).unwrap();
            let variable = flag.get_env().unwrap().to_str().unwrap();
            assert_eq!(named(&container["env"], variable)["value"], path.as_str());
        }
        // The command in the documentation must create a Secret with the same key that the Deployment reads.
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/controllers.md");
        let page = std::fs::read_to_string(page).unwrap();
        let line = page
            .lines()
            .find(|it| it.contains("create secret generic bowline-kubeconfig"));
        assert!(line.unwrap().contains("--from-file config="), "{line:?}");
    }
}
