//! The resources of the API: the built-in ones, and those of the CustomResourceDefinitions in the store.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

use super::admission::{CrdRules, Policies};
use super::builtin;
use super::convert::Shape;
use super::definitions::is_established;
use super::scale;
use super::schema::Schema;
use super::sqlite::{Key, Revision};
use super::status::Subject;

/// The name under which CustomResourceDefinitions are stored; see [`Resource::storage`].
pub const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// The name under which ValidatingAdmissionPolicies are stored; see [`Resource::storage`].
pub const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
/// The name under which ValidatingAdmissionPolicyBindings are stored; see [`Resource::storage`].
pub const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";
/// The name under which namespaces are stored; see [`Resource::storage`].
pub const NAMESPACES: &str = "/namespaces";

/// A resource in one API version.
#[derive(Debug)]
pub struct Resource {
    /// The API group, the plural name and the kind of the resource.
    pub subject: Subject,
    /// The API version of the resource.
    pub version: String,
    /// The singular name of the resource.
    pub singular: String,
    /// The short names of the resource, such as `po`.
    pub short_names: Vec<String>,
    /// The categories of the resource, such as `all`.
    pub categories: Vec<String>,
    /// Whether the objects of the resource have a namespace.
    pub namespaced: bool,
    /// The verbs that the API allows for the resource.
    pub verbs: Vec<String>,
    /// The subresources of the resource, such as `status` and `scale`.
    pub subresources: Vec<Subresource>,
    /// The name of the resource in the store, `{group}/{plural}`. The objects of all versions of a resource are
    /// stored under it.
    pub storage: Arc<str>,
    /// How the objects in this version differ from their stored form.
    pub shape: Shape,
    /// The schema of the resource's objects in this version.
    pub schema: Arc<Schema>,
    /// The settings from the resource's CustomResourceDefinition; None for built-in kinds.
    pub custom: Option<Custom>,
}

/// A subresource: a part of an object that clients read or write at its own path.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The name of the subresource, which is the last segment of its path.
    pub name: String,
    /// The group, version and kind of the subresource's request and response bodies.
    pub kind: (String, String, String),
    /// The verbs that the API allows for the subresource.
    pub verbs: Vec<String>,
}

/// The settings from a CustomResourceDefinition for one version, without the parsed schema.
#[derive(Debug)]
pub struct Custom {
    /// The schema as it is in the definition, for the OpenAPI documents.
    pub openapi: Value,
    rules: OnceLock<CrdRules>,
    /// The printer columns of the definition, for Table answers.
    pub columns: Vec<Value>,
    /// The fields that a field selector may use in addition to the name and the namespace.
    pub selectable: Vec<String>,
    /// The paths for the subresource `scale`; None if the resource does not have this subresource.
    pub scale: Option<Scale>,
    /// Whether the definition stores objects in this version.
    pub storage_version: bool,
    /// The revision of the definition. Objects with an older revision may not have the defaults of the current
    /// schema.
    pub since: Revision,
}

impl Custom {
    /// Returns the CEL rules in the schema. The first call compiles them.
    pub fn rules(&self) -> &CrdRules {
        self.rules
            .get_or_init(|| CrdRules::compile(&self.openapi).0)
    }
}

/// The paths of the fields that the subresource `scale` of a custom resource reads and writes.
#[derive(Clone, Debug)]
pub struct Scale {
    /// The dotted path of the desired replica count, such as `.spec.replicas`.
    pub replicas: String,
    /// The dotted path of the current replica count, such as `.status.replicas`.
    pub status_replicas: String,
    /// The dotted path of a text field with a label selector; None if the definition has none.
    pub selector: Option<String>,
}

impl Resource {
    /// Returns the apiVersion of the resource's objects: `group/version`, or only the version in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.subject.group, &self.version)
    }

    /// Returns the key of an object of this resource in the store.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key {
            resource: self.storage.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Finds a subresource by name; None if the resource does not have it.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|part| part.name == name)
    }

    /// Returns whether the resource has the subresource `status`.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Returns the kind of a list of the resource's objects, such as `PodList`.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.subject.kind)
    }

    /// Returns whether a change of an object's desired state increments its metadata.generation.
    pub fn counts_generations(&self) -> bool {
        self.custom.is_some()
            || matches!(
                self.subject.group.as_str(),
                "apps"
                    | "batch"
                    | "policy"
                    | "networking.k8s.io"
                    | "apiextensions.k8s.io"
                    | "admissionregistration.k8s.io"
            )
            || self.subject.group.is_empty()
                && matches!(
                    self.subject.plural.as_str(),
                    "pods" | "replicationcontrollers"
                )
    }
}

/// Returns an apiVersion: `group/version`, or only the version in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// The resources of the API, and the active admission policies, as they are in the store at one revision.
pub struct Catalog {
    /// The resources by API group, version and plural name.
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// The API groups, each with its versions. Built-in groups come first, and the preferred version of a group comes
    /// first.
    groups: Vec<(String, Vec<String>)>,
    rules: Arc<Rules>,
    /// The revision of the store up to which this catalog contains all definitions, policies and bindings.
    pub revision: Revision,
}

/// The active admission policies with their bindings. They are compiled when they are first used.
struct Rules {
    policies: Vec<Value>,
    bindings: Vec<Value>,
    compiled: OnceLock<Policies>,
}

impl Catalog {
    /// Builds a catalog from CustomResourceDefinitions and without admission policies.
    pub fn of(definitions: &[Value]) -> Catalog {
        Self::build(None, definitions, Vec::new(), Vec::new(), 0)
    }

    /// Builds a catalog from the stored definitions, policies and bindings. The parts that have not changed are taken
    /// from the catalog `earlier`, to save time.
    pub fn build(
        earlier: Option<&Catalog>,
        definitions: &[Value],
        policies: Vec<Value>,
        bindings: Vec<Value>,
        revision: Revision,
    ) -> Catalog {
        let mut resources = BTreeMap::new();
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        let mut offer = |resource: Arc<Resource>| {
            let (group, version) = (resource.subject.group.clone(), resource.version.clone());
            match groups.iter_mut().find(|(name, _)| *name == group) {
                Some((_, versions)) if versions.contains(&version) => {}
                Some((_, versions)) => versions.push(version.clone()),
                None => groups.push((group.clone(), vec![version.clone()])),
            }
            let key = (group, version, resource.subject.plural.clone());
            resources.insert(key, resource);
        };
        BUILT_IN.iter().cloned().for_each(&mut offer);
        for definition in definitions
            .iter()
            .filter(|definition| is_established(definition))
        {
            match earlier.map(|earlier| earlier.unchanged(definition)) {
                Some(known) if !known.is_empty() => known.into_iter().for_each(&mut offer),
                _ => custom(definition)
                    .into_iter()
                    .map(Arc::new)
                    .for_each(&mut offer),
            }
        }
        for (_, versions) in &mut groups {
            versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        }
        // Built-in groups keep their order. The other groups come after them, sorted by their best version.
        let own = |group: &str| builtin::resources().iter().any(|r| r.group == group);
        groups.sort_by_cached_key(|(group, versions)| match own(group) {
            true => (false, None, String::new()),
            false => {
                let best = versions.first().map(|version| version_rank(version));
                (true, best.map(std::cmp::Reverse), group.clone())
            }
        });
        let rules = earlier
            .filter(|earlier| {
                earlier.rules.policies == policies && earlier.rules.bindings == bindings
            })
            .map(|earlier| earlier.rules.clone());
        Catalog {
            resources,
            groups,
            rules: rules.unwrap_or_else(|| {
                Arc::new(Rules {
                    policies,
                    bindings,
                    compiled: OnceLock::new(),
                })
            }),
            revision,
        }
    }

    /// Returns the active admission policies. The first call compiles them.
    pub fn policies(&self) -> &Policies {
        let rules = &self.rules;
        rules
            .compiled
            .get_or_init(|| Policies::compile(&rules.policies, &rules.bindings).0)
    }

    /// Returns this catalog's resources for a definition, to use them again; empty if the definition has changed
    /// since.
    fn unchanged(&self, definition: &Value) -> Vec<Arc<Resource>> {
        let since = revision_of(definition);
        let spec = &definition["spec"];
        let same = |resource: &&Arc<Resource>| {
            let custom = resource.custom.as_ref();
            resource.subject.plural == spec["names"]["plural"]
                && resource.subject.group == spec["group"]
                && custom.is_some_and(|custom| custom.since == since)
        };
        self.resources.values().filter(same).cloned().collect()
    }

    /// Finds a resource by API group, version and plural name.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Finds a resource by its name in the store; None if it does not exist. Of several versions, returns the one in
    /// which objects are stored.
    pub fn stored(&self, storage: &str) -> Option<&Arc<Resource>> {
        let mut versions = self.resources.values().filter(|r| &*r.storage == storage);
        let first = versions.next()?;
        let preferred = std::iter::once(first).chain(versions).find(|r| {
            r.custom
                .as_ref()
                .is_none_or(|custom| custom.storage_version)
        });
        Some(preferred.unwrap_or(first))
    }

    /// Returns all resources, sorted by group, version and plural name.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Returns the resources in one version of an API group.
    pub fn of_version(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources
            .values()
            .filter(move |r| r.subject.group == group && r.version == version)
    }

    /// Returns the API groups with their versions, in the order of the discovery documents.
    pub fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }
}

/// Returns the rank of a version name, by which versions are sorted: v2, v1, v1beta2, v1beta1, v1alpha1, all other
/// names.
fn version_rank(version: &str) -> (u8, u64, u64) {
    let numbers = |text: &str, word: &str| -> Option<(u64, u64)> {
        let (major, minor) = text.split_once(word)?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let Some(text) = version.strip_prefix('v') else {
        return (0, 0, 0);
    };
    if let Ok(major) = text.parse() {
        return (3, major, 0);
    }
    if let Some((major, minor)) = numbers(text, "beta") {
        return (2, major, minor);
    }
    match numbers(text, "alpha") {
        Some((major, minor)) => (1, major, minor),
        None => (0, 0, 0),
    }
}

/// The built-in resources, which every catalog contains.
static BUILT_IN: LazyLock<Vec<Arc<Resource>>> =
    LazyLock::new(|| built_in().into_iter().map(Arc::new).collect());

fn revision_of(definition: &Value) -> Revision {
    let text = definition["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn built_in() -> Vec<Resource> {
    builtin::resources()
        .iter()
        .filter_map(|entry| {
            let schema = builtin::schema(&entry.group, &entry.version, &entry.kind)?;
            Some(Resource {
                subject: Subject {
                    group: entry.group.clone(),
                    plural: entry.plural.clone(),
                    kind: entry.kind.clone(),
                },
                version: entry.version.clone(),
                singular: entry.singular.clone(),
                short_names: entry.short_names.clone(),
                categories: entry.categories.clone(),
                namespaced: entry.namespaced,
                verbs: entry.verbs.clone(),
                subresources: entry
                    .subresources
                    .iter()
                    .map(|part| Subresource {
                        name: part.name.clone(),
                        kind: (part.group.clone(), part.version.clone(), part.kind.clone()),
                        verbs: part.verbs.clone(),
                    })
                    .collect(),
                storage: Shape::storage(&entry.group, &entry.plural).into(),
                shape: Shape::of(&entry.group, &entry.version, &entry.plural),
                schema,
                custom: None,
            })
        })
        .collect()
}

/// Creates the resources of a definition: one for each version that the definition serves. If its schema cannot be
/// parsed, the resource has a schema that allows everything.
fn custom(definition: &Value) -> Vec<Resource> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(text).collect()
    };
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let (group, plural, kind) = (
        text(&spec["group"]),
        text(&names["plural"]),
        text(&names["kind"]),
    );
    let mut found = Vec::new();
    for version in spec["versions"].as_array().into_iter().flatten() {
        if version["served"] != true {
            continue;
        }
        let openapi = version["schema"]["openAPIV3Schema"].clone();
        let schema = Schema::from_openapi(&openapi).unwrap_or_else(|_| Schema::open());
        let parts = &version["subresources"];
        let mut subresources = Vec::new();
        let version_name = text(&version["name"]);
        if parts["status"].is_object() {
            subresources.push(Subresource {
                name: "status".into(),
                kind: (group.clone(), version_name.clone(), kind.clone()),
                verbs: words(&["get", "patch", "update"]),
            });
        }
        let scale = parts["scale"].as_object().map(|scale| Scale {
            replicas: scale.get("specReplicasPath").map(text).unwrap_or_default(),
            status_replicas: scale
                .get("statusReplicasPath")
                .map(text)
                .unwrap_or_default(),
            selector: scale.get("labelSelectorPath").map(text),
        });
        // The path is checked again, because an earlier version may have stored a wrong path, and the API writes a
        // number to it.
        let scale = scale.filter(|scale| scale::is_place(&scale.replicas, "spec"));
        if scale.is_some() {
            subresources.push(Subresource {
                name: "scale".into(),
                kind: ("autoscaling".into(), "v1".into(), "Scale".into()),
                verbs: words(&["get", "patch", "update"]),
            });
        }
        found.push(Resource {
            subject: Subject {
                group: group.clone(),
                plural: plural.clone(),
                kind: kind.clone(),
            },
            version: version_name,
            singular: match text(&names["singular"]) {
                empty if empty.is_empty() => kind.to_lowercase(),
                singular => singular,
            },
            short_names: list(&names["shortNames"]),
            categories: list(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            verbs: words(&[
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "create",
                "update",
                "watch",
            ]),
            subresources,
            storage: format!("{group}/{plural}").into(),
            shape: Shape::Stored,
            schema: Arc::new(schema),
            custom: Some(Custom {
                openapi,
                rules: OnceLock::new(),
                columns: version["additionalPrinterColumns"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default(),
                selectable: version["selectableFields"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
                    .collect(),
                scale,
                storage_version: version["storage"] == true,
                since: revision_of(definition),
            }),
        });
    }
    found
}
