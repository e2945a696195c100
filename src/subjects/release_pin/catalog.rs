//! Reads the current definitions of a component, from which a release is created.
//!
//! The definitions come from a directory of files or from a cluster. The functions are the same for both; only the
//! locations in messages differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::refusal::instead;
use super::rules::NAMES;
use crate::api::openchoreo::definitions::Mismatch;
use crate::api::openchoreo::release::Release;
use crate::api::{
    Addon, AddonDefinition, Component, ComponentTypeDefinition, Definitions, EnvSettings,
    Environment, Object, Workload, labels, lists,
};
use crate::resolve::definition::{self, DefinitionError};

/// The name of the file in which a repository describes its layout for bowline.
const LAYOUT: &str = ".bowline.toml";
/// The largest number of files that are read from a directory. A directory with more files probably contains other
/// things than definitions.
const FILES: usize = 20_000;

/// The reason why the catalog cannot return an object.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A file or directory cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        path: String,
        /// The error of the operating system when the file or directory was read.
        error: io::Error,
    },
    /// A directory has more files than the limit. Contains the path of the directory.
    #[error("{0} has more than {FILES} files; name a directory with definitions only")]
    TooMany(String),
    /// A file is not valid YAML.
    #[error(transparent)]
    Yaml(#[from] bounded_yaml::YamlError),
    /// Two objects in the files have the same kind and name.
    #[error("{kind} {name} exists twice: in {first} and in {second}; remove one of them")]
    Twice {
        kind: String,
        name: String,
        /// The location of the first of the two objects, as file and line.
        first: String,
        /// The location of the second of the two objects, as file and line.
        second: String,
    },
    /// The files contain objects of several namespaces, and the caller selected none. Contains the names of the
    /// namespaces.
    #[error("the files have objects of the namespaces {0}; choose one with -n")]
    Namespaces(String),
    /// A requested object does not exist.
    #[error("{kind} {name} does not exist in {place}{known}")]
    Missing {
        kind: &'static str,
        name: String,
        /// The directory or the namespace where the object was searched.
        place: String,
        /// The names of the existing objects of the requested kind, as text for the user.
        known: String,
    },
    /// An object cannot be parsed as the type of its kind.
    #[error("{origin}: {kind} {name}: {cause}")]
    Broken {
        /// The location of the object that cannot be parsed.
        origin: String,
        kind: String,
        name: String,
        /// The reason why the object cannot be parsed.
        cause: DefinitionError,
    },
    /// The componentType of a component does not have the form `{workloadType}/{name}`.
    #[error(
        "component {component} has the componentType {says:?}; write {{workloadType}}/{{name}}, for example deployment/web-app"
    )]
    TypeForm {
        component: String,
        /// The wrong componentType, as the component contains it.
        says: String,
    },
    /// Two EnvSettings are for the same component and environment.
    #[error(
        "the EnvSettings {one} and {other} are both for {component} in {environment}; remove one of them"
    )]
    TwoSettings {
        /// The name of the first of the two EnvSettings.
        one: String,
        /// The name of the second of the two EnvSettings.
        other: String,
        component: String,
        environment: String,
    },
    /// The definitions of a component do not fit together.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// The OpenChoreo objects of one namespace, by kind and name.
#[derive(Debug, Default)]
pub struct Catalog {
    objects: BTreeMap<String, BTreeMap<String, Entry>>,
    /// The directory or the namespace that the objects come from, as text for messages.
    place: String,
    pub namespace: String,
    /// Warnings about objects that callers have requested, collected until the method `warnings` returns them.
    warnings: Mutex<BTreeSet<String>>,
}

#[derive(Debug)]
struct Entry {
    kind: String,
    name: String,
    object: Object,
    origin: String,
}

impl Entry {
    /// Creates an entry of the catalog from an object; None if its kind is no OpenChoreo kind.
    fn new(value: Value, origin: String) -> Option<Self> {
        let said = |pointer| value.pointer(pointer).and_then(Value::as_str);
        let (group, _) = said("/apiVersion")?.split_once('/')?;
        let (kind, name) = (
            said("/kind")?.to_owned(),
            said("/metadata/name")?.to_owned(),
        );
        match value {
            Value::Object(object) if group == labels::OPENCHOREO_GROUP => Some(Self {
                kind,
                name,
                object,
                origin,
            }),
            _ => None,
        }
    }

    fn namespace(&self) -> Option<&str> {
        self.object.get("metadata")?.get("namespace")?.as_str()
    }
}

/// Returns the names of at most `NAMES` components of a namespace, to list them in a message. Empty if the server
/// does not answer.
pub async fn components(client: &Client, namespace: &str) -> Vec<String> {
    let components: Api<Component> = Api::namespaced(client.clone(), namespace);
    let some = ListParams::default().limit(NAMES as u32);
    let found = components.list_metadata(&some).await;
    let found = found.into_iter().flat_map(|list| list.items);
    found.map(|component| component.name_any()).collect()
}

impl Catalog {
    /// Creates a catalog without objects. A caller then fetches objects of this namespace from the cluster.
    pub fn empty(namespace: &str) -> Self {
        Self {
            place: format!("namespace {namespace}"),
            namespace: namespace.to_owned(),
            ..Self::default()
        }
    }

    /// Creates a catalog from a single file, or from all YAML and JSON files of a directory and its subdirectories.
    /// `namespace` selects the objects of one namespace.
    pub fn read(path: &Path, namespace: Option<&str>) -> Result<Self, CatalogError> {
        let mut found = Vec::new();
        for file in files(path, true)? {
            let text = read_text(&file)?;
            // A repository also contains charts and manifests of other programs. So only files with the OpenChoreo
            // API group are parsed.
            if text.contains(labels::OPENCHOREO_GROUP) {
                collect(&file.display().to_string(), &text, &mut found)?;
            }
        }
        Self::choose(path.display().to_string(), found, namespace)
    }

    /// Creates a catalog from texts. Each text comes with a name for messages, then its content.
    pub fn from_texts<'t>(
        texts: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self, CatalogError> {
        let mut found = Vec::new();
        for (origin, text) in texts {
            collect(origin, text, &mut found)?;
        }
        Self::choose("the texts".to_owned(), found, None)
    }

    /// Creates a catalog with the objects of one namespace. Fails if there are objects of several namespaces and the
    /// caller selected none.
    fn choose(
        place: String,
        found: Vec<Entry>,
        namespace: Option<&str>,
    ) -> Result<Self, CatalogError> {
        let namespaces: BTreeSet<&str> = found.iter().filter_map(Entry::namespace).collect();
        let mut some = namespaces.iter();
        let namespace = match (namespace, some.next(), some.next()) {
            (Some(asked), ..) => asked,
            (None, None, _) => "default",
            (None, Some(only), None) => only,
            (None, Some(first), Some(second)) => {
                return Err(CatalogError::Namespaces(format!("{first} and {second}")));
            }
        };
        let mut catalog = Self {
            place,
            namespace: namespace.to_owned(),
            ..Self::default()
        };
        for entry in found {
            if entry.namespace().is_none_or(|own| own == catalog.namespace) {
                catalog.add(entry)?;
            }
        }
        Ok(catalog)
    }

    /// Fetches a component and all objects that the component names from the cluster, as a catalog.
    pub async fn fetch(
        client: &Client,
        namespace: &str,
        component: &str,
    ) -> Result<Self, CatalogError> {
        let mut catalog = Self::empty(namespace);
        catalog.get::<Component>(client, component).await?;
        let mut found = catalog.find("Component", component);
        if let Err(CatalogError::Missing { known, .. }) = &mut found {
            *known = instead(&components(client, namespace).await);
        }
        let component: Component = found?;
        let (_, type_) = type_parts(&component)?;
        catalog
            .get::<ComponentTypeDefinition>(client, type_)
            .await?;
        for addon in &component.spec.addons {
            catalog.get::<Addon>(client, &addon.name).await?;
        }
        let name = component.metadata.name.unwrap_or_default();
        catalog.get::<Workload>(client, &name).await?;
        Ok(catalog)
    }

    /// Fetches an environment from the cluster, and the settings of a component in that environment.
    pub async fn fetch_environment(
        &mut self,
        client: &Client,
        component: &str,
        environment: &str,
    ) -> Result<(), CatalogError> {
        self.get::<Environment>(client, environment).await?;
        let api: Api<EnvSettings> = Api::namespaced(client.clone(), &self.namespace);
        let selector =
            format!("spec.owner.componentName={component},spec.environment={environment}");
        let settings = api.list(&ListParams::default().fields(&selector)).await?;
        for settings in settings {
            self.put(&settings)?;
        }
        Ok(())
    }

    async fn get<K>(&mut self, client: &Client, name: &str) -> Result<(), CatalogError>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Serialize,
    {
        let kind = K::kind(&());
        if self
            .objects
            .get(&*kind)
            .is_some_and(|known| known.contains_key(name))
        {
            return Ok(());
        }
        let api: Api<K> = Api::namespaced(client.clone(), &self.namespace);
        match api.get_opt(name).await? {
            Some(object) => self.put(&object),
            // A later lookup reports that the object is missing, so this is no error.
            None => Ok(()),
        }
    }

    /// Adds an object to the catalog that the caller has fetched.
    pub fn put<K>(&mut self, object: &K) -> Result<(), CatalogError>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("apiVersion".to_owned(), K::api_version(&()).into());
            fields.insert("kind".to_owned(), K::kind(&()).into());
        }
        match Entry::new(value, self.place.clone()) {
            Some(entry) => self.add(entry),
            None => Ok(()),
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), CatalogError> {
        let (kind, name) = (entry.kind.clone(), entry.name.clone());
        let known = self.objects.entry(kind.clone()).or_default();
        if let Some(first) = known.get(&name) {
            return Err(CatalogError::Twice {
                kind,
                name,
                first: first.origin.clone(),
                second: entry.origin,
            });
        }
        known.insert(name, entry);
        Ok(())
    }

    /// Returns the warnings about requested objects since the previous call.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let mut noticed = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *noticed).into_iter()
    }

    /// Returns the names of the objects of a kind in the catalog, sorted.
    pub fn names(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.objects
            .get(kind)
            .into_iter()
            .flat_map(|known| known.keys().map(String::as_str))
    }

    /// Returns the location of an object: `file:line` for an object of a file, else the namespace. None if the
    /// catalog does not have the object.
    pub fn origin(&self, kind: &str, name: &str) -> Option<&str> {
        Some(&self.objects.get(kind)?.get(name)?.origin)
    }

    /// Returns the path of the file that contains an object. None if the catalog does not have the object, or if the
    /// object does not come from a file.
    pub fn file(&self, kind: &str, name: &str) -> Option<&str> {
        Some(self.origin(kind, name)?.rsplit_once(':')?.0)
    }

    /// Returns an object of the catalog, parsed as the type of its kind.
    fn find<K>(&self, kind: &'static str, name: &str) -> Result<K, CatalogError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize,
    {
        let Some(entry) = self.objects.get(kind).and_then(|known| known.get(name)) else {
            let known: Vec<_> = self.names(kind).take(NAMES).map(str::to_owned).collect();
            return Err(CatalogError::Missing {
                kind,
                name: name.to_owned(),
                place: self.place.clone(),
                known: instead(&known),
            });
        };
        let mut warnings = Vec::new();
        let found = definition::typed(entry.object.clone(), name, &mut warnings);
        let mut noticed = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            noticed.insert(format!("{}: {kind} {name}: {warning}", entry.origin));
        }
        found.map_err(|cause| CatalogError::Broken {
            origin: entry.origin.clone(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            cause,
        })
    }

    /// Returns the current definitions of a component: the Component, its type, its addons and its Workload.
    pub fn definitions(&self, component: &str) -> Result<Definitions, CatalogError> {
        let component: Component = self.find("Component", component)?;
        let (_, type_) = type_parts(&component)?;
        let type_ = self.find("ComponentTypeDefinition", type_)?;
        let mut addons = Vec::with_capacity(component.spec.addons.len());
        for instance in &component.spec.addons {
            addons.push(AddonDefinition {
                name: instance.name.clone(),
                instance_id: instance.instance_id.clone(),
                addon: self.find("Addon", &instance.name)?,
            });
        }
        let name = component.metadata.name.clone().unwrap_or_default();
        let workload = self.find("Workload", &name)?;
        Ok(Definitions::assemble(component, type_, addons, workload)?)
    }

    pub fn environment(&self, name: &str) -> Result<Environment, CatalogError> {
        self.find("Environment", name)
    }

    /// Returns a Release object.
    pub fn release(&self, name: &str) -> Result<Release, CatalogError> {
        self.find("Release", name)
    }

    /// Returns the EnvSettings of a component in an environment; None if there are none. Two EnvSettings for the same
    /// environment are an error.
    pub fn settings(
        &self,
        component: &str,
        environment: &str,
    ) -> Result<Option<EnvSettings>, CatalogError> {
        let mut found: Option<EnvSettings> = None;
        for name in self.names("EnvSettings") {
            let settings: EnvSettings = self.find("EnvSettings", name)?;
            if settings.spec.owner.component_name != component
                || settings.spec.environment != environment
            {
                continue;
            }
            if let Some(one) = found {
                return Err(CatalogError::TwoSettings {
                    one: one.metadata.name.unwrap_or_default(),
                    other: name.to_owned(),
                    component: component.to_owned(),
                    environment: environment.to_owned(),
                });
            }
            found = Some(settings);
        }
        Ok(found)
    }
}

fn type_parts(component: &Component) -> Result<(&str, &str), CatalogError> {
    component
        .spec
        .type_parts()
        .ok_or_else(|| CatalogError::TypeForm {
            component: component.metadata.name.clone().unwrap_or_default(),
            says: component.spec.component_type.clone(),
        })
}

fn unreadable(path: &Path, error: io::Error) -> CatalogError {
    CatalogError::Unreadable {
        path: path.display().to_string(),
        error,
    }
}

/// Reads a text file. Reads at most one byte more than the YAML parser accepts, so that the parser reports a file
/// that is too large.
pub fn read_text(file: &Path) -> Result<String, CatalogError> {
    let limit = bounded_yaml::Limits::default().bytes as u64;
    let mut text = String::new();
    fs::File::open(file)
        .and_then(|open| open.take(limit + 1).read_to_string(&mut text))
        .map_err(|error| unreadable(file, error))?;
    Ok(text)
}

/// Adds the OpenChoreo objects of a YAML text to `found`. For a list object, adds the items of the list.
fn collect(origin: &str, text: &str, found: &mut Vec<Entry>) -> Result<(), CatalogError> {
    for document in bounded_yaml::documents(origin, text)? {
        let origin = format!("{origin}:{}", document.line);
        let objects = lists::objects(document.value).into_iter();
        found.extend(objects.filter_map(|item| Entry::new(item.value, origin.clone())));
    }
    Ok(())
}

/// Lists the YAML and JSON files of a directory, sorted. If `below` is true, includes subdirectories, except links
/// and hidden directories. If `path` is a file, returns only this file, whatever its name.
pub fn files(path: &Path, below: bool) -> Result<Vec<PathBuf>, CatalogError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    let mut seen = 0;
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| unreadable(&directory, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&directory, error))?;
            seen += 1;
            if seen > FILES {
                return Err(CatalogError::TooMany(path.display().to_string()));
            }
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry
                .file_type()
                .map_err(|error| unreadable(&path, error))?;
            let extension = path.extension().and_then(|extension| extension.to_str());
            if kind.is_dir() {
                // A subdirectory with its own layout file is another repository, so its files are not read.
                let foreign = path.join(LAYOUT).exists();
                if below && !foreign && !name.to_string_lossy().starts_with('.') {
                    open.push(path);
                }
            } else if matches!(extension, Some("yaml" | "yml" | "json")) && path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENT: &str = "apiVersion: openchoreo.dev/v1alpha1\nkind: Component\nmetadata: {name: c}\nspec: {componentType: deployment/t, paramters: {a: 1}}\n";

    fn in_namespace(namespace: &str) -> String {
        COMPONENT.replace("{name: c}", &format!("{{name: c, namespace: {namespace}}}"))
    }

    #[test]
    fn one_namespace_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("a.yaml", &in_namespace("one"));
        write("b.yaml", &in_namespace("two"));
        let error = Catalog::read(directory.path(), None)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "the files have objects of the namespaces one and two; choose one with -n"
        );
        let catalog = Catalog::read(directory.path(), Some("two")).unwrap();
        assert!(catalog.file("Component", "c").unwrap().ends_with("b.yaml"));
        write("c.yaml", COMPONENT);
        let error = Catalog::read(directory.path(), Some("two"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("Component c exists twice: in "),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn only_files_are_read_and_only_ours() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("chart.yaml"), "{{ .Values }}: {{ no yaml }}\n").unwrap();
        fs::create_dir(path(".hidden")).unwrap();
        fs::write(path(".hidden/a.yaml"), COMPONENT).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zero.yaml")).unwrap();
        std::os::unix::fs::symlink(directory.path(), path("round.yaml")).unwrap();
        let list = "{apiVersion: v1, kind: List, items: [{apiVersion: openchoreo.dev/v1alpha1, kind: Addon, metadata: {name: a}, spec: {}}, {kind: Pod}]}";
        fs::write(path("list.json"), list).unwrap();
        let catalog = Catalog::read(directory.path(), None).unwrap();
        assert_eq!(catalog.names("Addon").collect::<Vec<_>>(), ["a"]);
        assert_eq!(catalog.names("Component").count(), 0);
        let error = Catalog::read(&path("none"), None).unwrap_err().to_string();
        assert!(error.contains("none: "), "{error}");
    }

    #[test]
    fn what_is_missing_or_unknown_is_said() {
        let catalog = Catalog::from_texts([("c.yaml", COMPONENT)]).unwrap();
        let error = catalog.definitions("c").unwrap_err().to_string();
        assert_eq!(
            error,
            "ComponentTypeDefinition t does not exist in the texts"
        );
        let error = catalog.definitions("d").unwrap_err().to_string();
        assert_eq!(error, "Component d does not exist in the texts; known: c");
        let warnings: Vec<_> = catalog.warnings().collect();
        assert_eq!(
            warnings,
            ["c.yaml:1: Component c: spec.paramters is not a field and was dropped"]
        );
        assert_eq!(catalog.warnings().count(), 0);
    }

    #[test]
    fn two_settings_for_one_place_are_refused() {
        let settings = |name: &str| {
            format!(
                "apiVersion: openchoreo.dev/v1alpha1\nkind: EnvSettings\nmetadata: {{name: {name}}}\nspec: {{owner: {{componentName: c}}, environment: e}}\n"
            )
        };
        let text = format!("{}---\n{}", settings("one"), settings("two"));
        let catalog = Catalog::from_texts([("s.yaml", text.as_str())]).unwrap();
        let error = catalog.settings("c", "e").unwrap_err().to_string();
        assert!(
            error.starts_with("the EnvSettings one and two are both for c in e"),
            "{error}"
        );
        assert!(catalog.settings("c", "other").unwrap().is_none());
    }
}
