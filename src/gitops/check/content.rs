//! Finds errors in the objects of a repository: references to missing objects, and content that a cluster would
//! refuse.
//!
//! If the repository has no object of a kind, a reference to that kind is at most a warning, because another
//! repository may contain the objects of that kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::api::{
    Addon, Component, ComponentTypeDefinition, DataPlane, DeploymentPipeline, EnvSettings,
    Environment, ReleasePin, labels,
};
use crate::gitops::tree::Tree;
use crate::render::{self, Library};

/// All objects of a repository that the check reads, in all namespaces.
#[derive(Clone, Debug, Default)]
pub struct Content {
    pub pins: Vec<ReleasePin>,
    pub environments: Vec<Environment>,
    pub data_planes: Vec<DataPlane>,
    pub pipelines: Vec<DeploymentPipeline>,
    pub components: Vec<Component>,
    pub types: Vec<ComponentTypeDefinition>,
    pub addons: Vec<Addon>,
    pub settings: Vec<EnvSettings>,
}

impl Content {
    /// Lists the objects of a repository through a client for its API.
    pub async fn fetch(client: &Client) -> Result<Self, kube::Error> {
        Ok(Self {
            pins: all(client).await?,
            environments: all(client).await?,
            data_planes: all(client).await?,
            pipelines: all(client).await?,
            components: all(client).await?,
            types: all(client).await?,
            addons: all(client).await?,
            settings: all(client).await?,
        })
    }
}

async fn all<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    Ok(api.list(&ListParams::default()).await?.items)
}

/// An error in an object of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    /// The object with the error: its resource as `{group}/{plural}`, its namespace and its name.
    object: (String, String, String),
    what: String,
}

impl Fault {
    fn of<K: Resource<DynamicType = ()>>(object: &K, what: String) -> Self {
        let resource = format!("{}/{}", K::group(&()), K::plural(&()));
        let namespace = object.namespace().unwrap_or_default();
        Self {
            object: (resource, namespace, object.name_any()),
            what,
        }
    }

    /// Returns the error as text, with the file and the line of the object.
    fn told(&self, tree: &Tree) -> String {
        let (resource, namespace, name) = &self.object;
        match tree.place(resource, namespace, name) {
            Some(place) => format!("{place}: {}", self.what),
            None => self.what.clone(),
        }
    }
}

/// The names of the objects of one kind, by namespace.
struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    fn of<K: Resource<DynamicType = ()>>(objects: &[K]) -> Self {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for object in objects {
            let namespace = object.namespace().unwrap_or_default();
            names
                .entry(namespace)
                .or_default()
                .insert(object.name_any());
        }
        Self(names)
    }

    /// Returns whether a namespace has an object with this name. None if the namespace has no object of the kind at
    /// all.
    fn has(&self, namespace: &str, name: &str) -> Option<bool> {
        Some(self.0.get(namespace)?.contains(name))
    }
}

/// Finds errors and warnings in the objects. Each error names the file and line of the object.
pub fn faults(tree: &Tree, content: &Content) -> (Vec<String>, Vec<String>) {
    let (found, warnings) = all_faults(content);
    (
        found.iter().map(|fault| fault.told(tree)).collect(),
        warnings,
    )
}

fn all_faults(content: &Content) -> (Vec<Fault>, Vec<String>) {
    let mut found = Vec::new();
    let mut warnings = BTreeSet::new();
    labels_of_pins(content, &mut found);
    data_planes(content, &mut found, &mut warnings);
    second_pipelines(content, &mut found);
    pipelines(content, &mut found, &mut warnings);
    components(content, &mut found);
    settings(content, &mut found);
    definitions(content, &mut found);
    (found, warnings.into_iter().collect())
}

/// Finds ReleasePins whose labels differ from their spec, because a cluster refuses such ReleasePins.
fn labels_of_pins(content: &Content, found: &mut Vec<Fault>) {
    for pin in &content.pins {
        for (label, wanted) in [
            (labels::COMPONENT, &pin.spec.component),
            (labels::ENVIRONMENT, &pin.spec.environment),
        ] {
            let name = pin.name_any();
            let what = match pin.labels().get(label) {
                Some(value) if value == wanted => continue,
                Some(value) => {
                    format!("label {label} of ReleasePin {name} is {value}; it has to be {wanted}")
                }
                None => format!("ReleasePin {name} has no label {label}; add {label}: {wanted}"),
            };
            found.push(Fault::of(pin, what));
        }
    }
}

fn data_planes(content: &Content, found: &mut Vec<Fault>, warnings: &mut BTreeSet<String>) {
    let planes = Names::of(&content.data_planes);
    for environment in &content.environments {
        let namespace = environment.namespace().unwrap_or_default();
        let (name, plane) = (
            environment.name_any(),
            &environment.spec.data_plane_ref.name,
        );
        match planes.has(&namespace, plane) {
            Some(true) => {}
            Some(false) => {
                let what =
                    format!("environment {name} names data plane {plane}, which does not exist");
                found.push(Fault::of(environment, what));
            }
            None => {
                warnings.insert(format!("namespace {namespace} has no DataPlane"));
            }
        }
    }
}

/// Finds namespaces with several pipelines, which bowline does not allow.
fn second_pipelines(content: &Content, found: &mut Vec<Fault>) {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut pipelines: Vec<&DeploymentPipeline> = content.pipelines.iter().collect();
    pipelines.sort_by_key(|pipeline| pipeline.name_any());
    for pipeline in pipelines {
        let namespace = pipeline.namespace().unwrap_or_default();
        let name = pipeline.name_any();
        match first.get(&namespace) {
            None => {
                first.insert(namespace, name);
            }
            Some(first) => {
                let what = format!(
                    "namespace {namespace} has a second pipeline, {name} beside {first}; remove one of them"
                );
                found.push(Fault::of(pipeline, what));
            }
        }
    }
}

/// Finds pipelines with a cycle, and environments that a pipeline names and that do not exist. Warns about namespaces
/// that have ReleasePins but no pipeline.
fn pipelines(content: &Content, found: &mut Vec<Fault>, warnings: &mut BTreeSet<String>) {
    let environments = Names::of(&content.environments);
    for pipeline in &content.pipelines {
        let namespace = pipeline.namespace().unwrap_or_default();
        match pipeline.spec.order() {
            Err(cycle) => found.push(Fault::of(pipeline, cycle.to_string())),
            Ok(order) => {
                for name in order {
                    if environments.has(&namespace, name) != Some(true) {
                        let what = format!(
                            "the pipeline of {namespace} names environment {name}, which does not exist"
                        );
                        found.push(Fault::of(pipeline, what));
                    }
                }
            }
        }
    }
    let pipelines = Names::of(&content.pipelines);
    for pin in &content.pins {
        let namespace = pin.namespace().unwrap_or_default();
        if !pipelines.0.contains_key(&namespace) {
            warnings.insert(format!("namespace {namespace} has no DeploymentPipeline"));
        }
    }
}

fn components(content: &Content, found: &mut Vec<Fault>) {
    let types: BTreeMap<(String, String), &str> = content
        .types
        .iter()
        .map(|type_| {
            let key = (type_.namespace().unwrap_or_default(), type_.name_any());
            (key, type_.spec.workload_type.as_str())
        })
        .collect();
    let (has_types, addons) = (Names::of(&content.types), Names::of(&content.addons));
    for component in &content.components {
        let namespace = component.namespace().unwrap_or_default();
        let name = component.name_any();
        let Some((workload, type_)) = component.spec.type_parts() else {
            continue;
        };
        let there = types.get(&(namespace.clone(), type_.to_owned()));
        let what = match there {
            None if has_types.has(&namespace, type_) == Some(false) => {
                format!("component {name} is of type {type_}, which does not exist")
            }
            Some(there) if *there != workload => format!(
                "component {name} is of type {workload}/{type_}, and the ComponentTypeDefinition is {there}/{type_}"
            ),
            _ => String::new(),
        };
        if !what.is_empty() {
            found.push(Fault::of(component, what));
        }
        for addon in &component.spec.addons {
            if addons.has(&namespace, &addon.name) == Some(false) {
                let what = format!(
                    "component {name} uses addon {}, which does not exist",
                    addon.name
                );
                found.push(Fault::of(component, what));
            }
        }
    }
}

fn settings(content: &Content, found: &mut Vec<Fault>) {
    let environments = Names::of(&content.environments);
    let components = Names::of(&content.components);
    let mut first: BTreeMap<(String, String, String), String> = BTreeMap::new();
    for settings in &content.settings {
        let namespace = settings.namespace().unwrap_or_default();
        let name = settings.name_any();
        let environment = &settings.spec.environment;
        let component = &settings.spec.owner.component_name;
        let mut wrong = |what: String| found.push(Fault::of(settings, what));
        if environments.has(&namespace, environment) != Some(true) {
            wrong(format!(
                "EnvSettings {name} are for environment {environment}, which does not exist"
            ));
        }
        if components.has(&namespace, component) == Some(false) {
            wrong(format!(
                "EnvSettings {name} are for component {component}, which does not exist"
            ));
        }
        let key = (namespace, component.clone(), environment.clone());
        match first.get(&key) {
            None => {
                first.insert(key, name);
            }
            Some(first) => wrong(format!(
                "EnvSettings {first} and {name} are both for {component} in {environment}; remove one of them"
            )),
        }
    }
}

fn definitions(content: &Content, found: &mut Vec<Fault>) {
    let library = Library::new();
    for type_ in &content.types {
        for problem in render::faults_of_type(type_, &library) {
            found.push(Fault::of(type_, problem.to_string()));
        }
    }
    for addon in &content.addons {
        for problem in render::faults_of_addon(addon, &library) {
            found.push(Fault::of(addon, problem.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<K: DeserializeOwned>(name: &str, spec: Value) -> K {
        labelled(name, json!({}), spec)
    }

    fn labelled<K: DeserializeOwned>(name: &str, labels: Value, spec: Value) -> K {
        serde_json::from_value(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "x",
            "metadata": {"name": name, "namespace": "shop", "labels": labels}, "spec": spec,
        }))
        .unwrap()
    }

    /// Returns the objects of a test repository without errors.
    fn shop() -> Content {
        let pipeline = json!({"promotionPaths": []});
        Content {
            pins: vec![labelled(
                "cart-dev",
                json!({labels::COMPONENT: "cart", labels::ENVIRONMENT: "dev"}),
                json!({"component": "cart", "environment": "dev", "releaseRef": {"name": "cart-1"}}),
            )],
            environments: vec![read(
                "dev",
                json!({"dataPlaneRef": {"name": "d"}, "namespace": "shop-dev"}),
            )],
            data_planes: vec![read("d", json!({"embedded": {}}))],
            pipelines: vec![read("default", pipeline)],
            components: vec![read("cart", json!({"componentType": "deployment/web"}))],
            types: vec![read(
                "web",
                json!({"workloadType": "deployment", "resources": [{"id": "a", "template": {"kind": "ConfigMap", "name": "${metadata.name}"}}]}),
            )],
            addons: vec![read("disk", json!({"creates": []}))],
            settings: vec![read(
                "cart-dev",
                json!({"owner": {"componentName": "cart"}, "environment": "dev"}),
            )],
        }
    }

    #[test]
    fn what_would_fail_in_a_cluster_is_a_fault() {
        let (found, warnings) = all_faults(&shop());
        assert!(
            found.is_empty() && warnings.is_empty(),
            "{found:?} {warnings:?}"
        );
        type Spoil = fn(&mut Content);
        let cases: [(Spoil, &[&str]); 15] = [
            (
                |shop| {
                    shop.pins[0]
                        .labels_mut()
                        .insert(labels::COMPONENT.to_owned(), "mail".to_owned());
                },
                &[
                    "label openchoreo.dev/component of ReleasePin cart-dev is mail; it has to be cart",
                ],
            ),
            (
                |shop| shop.pins[0].metadata.labels = None,
                &[
                    "ReleasePin cart-dev has no label openchoreo.dev/component; add openchoreo.dev/component: cart",
                    "ReleasePin cart-dev has no label openchoreo.dev/environment; add openchoreo.dev/environment: dev",
                ],
            ),
            (
                |shop| shop.environments[0].spec.data_plane_ref.name = "e".to_owned(),
                &["environment dev names data plane e, which does not exist"],
            ),
            (
                |shop| shop.pipelines.push(read("other", json!({}))),
                &["namespace shop has a second pipeline, other beside default; remove one of them"],
            ),
            (
                |shop| {
                    let path = |from: &str, to: &str| json!({"sourceEnvironmentRef": {"name": from}, "targetEnvironmentRefs": [{"name": to}]});
                    let paths = [
                        path("dev", "a"),
                        path("a", "b"),
                        path("b", "c"),
                        path("c", "a"),
                    ];
                    shop.pipelines[0] = read("default", json!({"promotionPaths": paths}));
                },
                &["the promotion paths lead in a circle through a, b, c"],
            ),
            (
                |shop| {
                    let path = json!({"sourceEnvironmentRef": {"name": "dev"}, "targetEnvironmentRefs": [{"name": "qa"}]});
                    shop.pipelines[0] = read("default", json!({"promotionPaths": [path]}));
                },
                &["the pipeline of shop names environment qa, which does not exist"],
            ),
            (
                |shop| shop.settings[0].spec.environment = "qa".to_owned(),
                &["EnvSettings cart-dev are for environment qa, which does not exist"],
            ),
            (
                |shop| shop.settings[0].spec.owner.component_name = "mail".to_owned(),
                &["EnvSettings cart-dev are for component mail, which does not exist"],
            ),
            (
                |shop| {
                    shop.settings.push(read(
                        "again",
                        json!({"owner": {"componentName": "cart"}, "environment": "dev"}),
                    ))
                },
                &["EnvSettings cart-dev and again are both for cart in dev; remove one of them"],
            ),
            (
                |shop| shop.components[0].spec.component_type = "deployment/job".to_owned(),
                &["component cart is of type job, which does not exist"],
            ),
            (
                |shop| shop.components[0].spec.component_type = "cronjob/web".to_owned(),
                &[
                    "component cart is of type cronjob/web, and the ComponentTypeDefinition is deployment/web",
                ],
            ),
            (
                |shop| {
                    let spec = json!({"componentType": "deployment/web", "addons": [{"name": "net", "instanceId": "a"}]});
                    shop.components[0] = read("cart", spec);
                },
                &["component cart uses addon net, which does not exist"],
            ),
            (
                |shop| shop.types[0].spec.resources[0].template["name"] = "${metadata.name".into(),
                &["ComponentTypeDefinition web, resource a, template.name"],
            ),
            (
                |shop| {
                    shop.types[0]
                        .spec
                        .schema
                        .parameters
                        .extend([("x".to_owned(), json!("strin"))])
                },
                &["ComponentTypeDefinition web, schema.parameters.x"],
            ),
            (
                |shop| {
                    shop.addons[0] = read(
                        "disk",
                        json!({"creates": [{"id": "a", "template": {"x": "${1 +}"}}]}),
                    )
                },
                &["Addon disk, create a, template.x"],
            ),
        ];
        for (spoil, expected) in cases {
            let mut shop = shop();
            spoil(&mut shop);
            let (found, _) = all_faults(&shop);
            let found: Vec<&str> = found.iter().map(|fault| fault.what.as_str()).collect();
            let same = found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(found, expected)| found.starts_with(expected));
            assert!(same, "{found:?}, not {expected:?}");
        }
    }

    #[test]
    fn a_kind_that_another_repository_has_is_not_missing() {
        let shop = Content {
            data_planes: Vec::new(),
            components: Vec::new(),
            types: Vec::new(),
            ..shop()
        };
        let (found, warnings) = all_faults(&shop);
        assert_eq!(found, []);
        assert_eq!(warnings, ["namespace shop has no DataPlane"]);
    }
}
