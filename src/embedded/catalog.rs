//! What the server serves: the built-in resources and those that definitions add.

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

/// Where definitions are stored.
pub const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// Where policies are stored.
pub const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
/// Where the bindings of policies are stored.
pub const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";
/// Where namespaces are stored.
pub const NAMESPACES: &str = "/namespaces";

/// One resource in one version.
#[derive(Debug)]
pub struct Resource {
    /// Group, plural and kind.
    pub subject: Subject,
    /// The API version.
    pub version: String,
    /// The singular name.
    pub singular: String,
    /// Names for hurried typing.
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
    /// Objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// `status`, `scale` and the like, with group, version, kind and verbs.
    pub subresources: Vec<Subresource>,
    /// Where its objects are stored, whatever the version.
    pub storage: Arc<str>,
    /// The shape that it is served in.
    pub shape: Shape,
    /// Its type.
    pub schema: Arc<Schema>,
    /// What a definition says beyond that; absent for built-in kinds.
    pub custom: Option<Custom>,
}

/// A part of an object with its own path.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last part of the path.
    pub name: String,
    /// (group, version, kind) of what is exchanged there.
    pub kind: (String, String, String),
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// What a definition says beyond the type.
#[derive(Debug)]
pub struct Custom {
    /// The schema as it was written, for OpenAPI documents.
    pub openapi: Value,
    rules: OnceLock<CrdRules>,
    /// Columns for Table answers.
    pub columns: Vec<Value>,
    /// Fields that a selector may name beside metadata.
    pub selectable: Vec<String>,
    /// Where replicas stand, when it scales.
    pub scale: Option<Scale>,
    /// The version that objects are stored in.
    pub storage_version: bool,
    /// The revision of the definition: objects stored before may lack its defaults.
    pub since: Revision,
}

impl Custom {
    /// The rules in its schema, compiled when they are first needed.
    pub fn rules(&self) -> &CrdRules {
        self.rules
            .get_or_init(|| CrdRules::compile(&self.openapi).0)
    }
}

/// Where a scalable custom object keeps its numbers.
#[derive(Clone, Debug)]
pub struct Scale {
    /// A dotted path such as `.spec.replicas`.
    pub replicas: String,
    /// A dotted path such as `.status.replicas`.
    pub status_replicas: String,
    /// A dotted path of a selector in text form.
    pub selector: Option<String>,
}

impl Resource {
    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.subject.group, &self.version)
    }

    /// The key of one object.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key {
            resource: self.storage.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// A part of an object, if the resource has it.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|part| part.name == name)
    }

    /// Status is written through a path of its own.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The kind of a list of it.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.subject.kind)
    }

    /// Whether a spec change counts up metadata.generation.
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

/// `group/version`, or the version alone in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// Everything that is served, and the rules that hold for it, as of a moment.
pub struct Catalog {
    /// By (group, version, plural), in the order of discovery.
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// Versions of each group, preferred first; built-in groups first.
    groups: Vec<(String, Vec<String>)>,
    rules: Arc<Rules>,
    /// The newest definition, policy or binding that went into it.
    pub revision: Revision,
}

/// The admission policies in force, compiled when they are first needed.
struct Rules {
    policies: Vec<Value>,
    bindings: Vec<Value>,
    compiled: OnceLock<Policies>,
}

impl Catalog {
    /// Builds it from definitions alone.
    pub fn of(definitions: &[Value]) -> Catalog {
        Self::build(None, definitions, Vec::new(), Vec::new(), 0)
    }

    /// Builds it from the stored definitions, policies and bindings; what did not change since
    /// an earlier one is taken over from there.
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
        // Built-in groups keep their order; of the others the most mature comes first.
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

    /// The admission policies in force.
    pub fn policies(&self) -> &Policies {
        let rules = &self.rules;
        rules
            .compiled
            .get_or_init(|| Policies::compile(&rules.policies, &rules.bindings).0)
    }

    /// The resources of a definition that is still as it was.
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

    /// Finds a resource by its path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Finds any version of what is stored under a name.
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

    /// All resources, by group, version and plural.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// The resources of one version of a group.
    pub fn of_version(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources
            .values()
            .filter(move |r| r.subject.group == group && r.version == version)
    }

    /// The groups in order, each with its versions, preferred first.
    pub fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }
}

/// v2 before v1 before v1beta2 before v1beta1 before v1alpha1 before anything else.
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

/// The built-in resources are the same in every catalog.
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

/// Reads a definition; a schema that cannot be understood leaves its objects unchecked.
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
        // A number is written there, whoever wrote the definition.
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
