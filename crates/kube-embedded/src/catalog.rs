//! The resources that the server serves: the built-in ones and those of CustomResourceDefinitions.

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

/// The storage name of CustomResourceDefinitions; see [`Resource::storage`].
pub const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// The storage name of admission policies.
pub const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
/// The storage name of the bindings of policies.
pub const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";
/// The storage name of namespaces.
pub const NAMESPACES: &str = "/namespaces";

/// One version of a resource.
#[derive(Debug)]
pub struct Resource {
    /// Group, plural and kind.
    pub subject: Subject,
    /// The API version.
    pub version: String,
    /// The singular name.
    pub singular: String,
    /// The short names, such as `po`.
    pub short_names: Vec<String>,
    /// The categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects have a namespace.
    pub namespaced: bool,
    /// The allowed verbs.
    pub verbs: Vec<String>,
    /// The subresources, such as `status` and `scale`.
    pub subresources: Vec<Subresource>,
    /// The storage name, `{group}/{plural}`: the name under which the store keeps the objects of all versions.
    pub storage: Arc<str>,
    /// The shape in which the version is served.
    pub shape: Shape,
    /// The type of its objects.
    pub schema: Arc<Schema>,
    /// The further settings of a CustomResourceDefinition; None for built-in kinds.
    pub custom: Option<Custom>,
}

/// A part of an object that clients read or write at a path of its own.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last segment of the path.
    pub name: String,
    /// The group, version and kind of its request and response bodies.
    pub kind: (String, String, String),
    /// The allowed verbs.
    pub verbs: Vec<String>,
}

/// The settings of a CustomResourceDefinition apart from the type.
#[derive(Debug)]
pub struct Custom {
    /// The schema as its author wrote it, for OpenAPI documents.
    pub openapi: Value,
    rules: OnceLock<CrdRules>,
    /// The columns for Table answers.
    pub columns: Vec<Value>,
    /// The fields, besides metadata, that a field selector may use.
    pub selectable: Vec<String>,
    /// The paths of the replica counts; None if the resource has no scale subresource.
    pub scale: Option<Scale>,
    /// Whether objects are stored in this version.
    pub storage_version: bool,
    /// The revision of the definition. Objects with an older revision may lack its defaults.
    pub since: Revision,
}

impl Custom {
    /// Returns the rules of the schema, compiled at the first use.
    pub fn rules(&self) -> &CrdRules {
        self.rules
            .get_or_init(|| CrdRules::compile(&self.openapi).0)
    }
}

/// The paths of the replica counts in a scalable custom object.
#[derive(Clone, Debug)]
pub struct Scale {
    /// A dotted path, such as `.spec.replicas`.
    pub replicas: String,
    /// A dotted path, such as `.status.replicas`.
    pub status_replicas: String,
    /// The dotted path of a label selector in text form.
    pub selector: Option<String>,
}

impl Resource {
    /// Returns `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.subject.group, &self.version)
    }

    /// Returns the key of one object in the store.
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

    /// Returns whether the status has a path of its own.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Returns the kind of a list of these objects.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.subject.kind)
    }

    /// Returns whether a change of the spec increments metadata.generation.
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

/// Returns `group/version`, or the version alone in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// All served resources and the active admission policies, at one revision.
pub struct Catalog {
    /// Keyed by (group, version, plural), in the order of discovery.
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// The versions of each group, the preferred version first; built-in groups come first.
    groups: Vec<(String, Vec<String>)>,
    rules: Arc<Rules>,
    /// The revision of the newest definition, policy or binding in the catalog.
    pub revision: Revision,
}

/// The active admission policies, compiled at the first use.
struct Rules {
    policies: Vec<Value>,
    bindings: Vec<Value>,
    compiled: OnceLock<Policies>,
}

impl Catalog {
    /// Builds a catalog from definitions alone.
    pub fn of(definitions: &[Value]) -> Catalog {
        Self::build(None, definitions, Vec::new(), Vec::new(), 0)
    }

    /// Builds a catalog from the stored definitions, policies and bindings, and reuses the unchanged parts of
    /// `earlier`.
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
        // Built-in groups keep their order. The other groups follow, those with the most stable version
        // first.
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

    /// Returns the active admission policies.
    pub fn policies(&self) -> &Policies {
        let rules = &self.rules;
        rules
            .compiled
            .get_or_init(|| Policies::compile(&rules.policies, &rules.bindings).0)
    }

    /// Returns the resources of a definition in this catalog if the definition has not changed since; otherwise
    /// nothing.
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

    /// Finds a resource by group, version and plural name.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Finds a resource by its storage name, in the storage version if possible.
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

    /// Returns all resources, by group, version and plural.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Returns the resources of one version of a group.
    pub fn of_version(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources
            .values()
            .filter(move |r| r.subject.group == group && r.version == version)
    }

    /// Returns the groups in order, each with its versions, the preferred version first.
    pub fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }
}

/// Returns the rank of a version name: v2 is before v1, then come v1beta2, v1beta1, v1alpha1 and all other names.
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

/// The built-in resources, which are the same in every catalog.
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

/// Reads a definition. If its schema cannot be parsed, its objects are not checked.
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
        // The server writes a number to this path, so it checks the path even if a client could store a wrong
        // one.
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
