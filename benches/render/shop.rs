//! Reads the example shop from the files of deploy/examples.

use std::fs;
use std::path::{Path, PathBuf};

use bowline::api::{
    Addon, AddonDefinition, Component, ComponentTypeDefinition, Definitions, EnvSettings,
    Environment, Workload,
};
use bowline::render::{self, Inputs, Library, Rendered};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub struct Shop {
    pub folder: PathBuf,
    objects: Vec<Value>,
    environments: Vec<Environment>,
    settings: Vec<EnvSettings>,
}

impl Shop {
    pub fn read(folder: &Path) -> Self {
        let mut objects = Vec::new();
        read(folder, &mut objects);
        let mut shop = Self {
            folder: folder.to_owned(),
            objects,
            environments: Vec::new(),
            settings: Vec::new(),
        };
        shop.environments = shop.all("Environment");
        shop.settings = shop.all("EnvSettings");
        shop
    }

    /// Returns the resolved definitions of a component.
    pub fn definitions(&self, component: &str) -> Definitions {
        let component: Component = self.named("Component", component);
        let (_, type_name) = component.spec.type_parts().unwrap();
        let addons = component
            .spec
            .addons
            .iter()
            .map(|instance| AddonDefinition {
                name: instance.name.clone(),
                instance_id: instance.instance_id.clone(),
                addon: self.named::<Addon>("Addon", &instance.name),
            });
        Definitions {
            component_type_definition: self
                .named::<ComponentTypeDefinition>("ComponentTypeDefinition", type_name),
            addons: addons.collect(),
            workload: self.named::<Workload>("Workload", &component.name_any()),
            component,
        }
    }

    /// Renders a component of the example in an environment, with the EnvSettings for that environment.
    pub fn render(
        &self,
        definitions: &Definitions,
        environment: &str,
        library: &Library,
    ) -> Rendered {
        let is_here = |found: &&Environment| found.name_any() == environment;
        // The settings are found by the name of the workload, so that a component that was renamed for a
        // measurement keeps its settings.
        let owner = definitions.workload.name_any();
        let settings = self.settings.iter().find(|settings| {
            settings.spec.owner.component_name == owner && settings.spec.environment == environment
        });
        let inputs = Inputs {
            definitions,
            settings,
            environment: self.environments.iter().find(is_here).unwrap(),
            namespace: "default",
        };
        render::render(&inputs, library).unwrap_or_else(|error| panic!("{error}"))
    }

    fn named<K: DeserializeOwned + ResourceExt>(&self, kind: &str, name: &str) -> K {
        let found = self.all::<K>(kind).into_iter();
        let mut found = found.filter(|object| object.name_any() == name);
        found
            .next()
            .unwrap_or_else(|| panic!("the example has no {kind} {name}"))
    }

    fn all<K: DeserializeOwned>(&self, kind: &str) -> Vec<K> {
        let of_kind = |object: &&Value| object.get("kind").and_then(Value::as_str) == Some(kind);
        let found = self.objects.iter().filter(of_kind);
        found
            .map(|object| serde_json::from_value(object.clone()).unwrap())
            .collect()
    }
}

fn read(folder: &Path, objects: &mut Vec<Value>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, objects);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            let text = fs::read_to_string(&path).unwrap();
            let documents = bounded_yaml::documents(&path.display().to_string(), &text);
            let documents = documents.unwrap_or_else(|error| panic!("{error}"));
            objects.extend(documents.into_iter().map(|document| document.value));
        }
    }
}
