//! The summary of a live object in a data plane: its owner, the fields that the controller owns, and its
//! health.
//!
//! Only the needed fields are parsed, so the controller keeps a few hundred bytes per object in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::api::{Object, digest, labels, names};
use crate::engine::health::{self, Facts, SPEC_FIELDS, Verdict};

/// The summary of a live object in a data plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    pub uid: String,
    pub resource_version: String,
    pub deleting: bool,
    /// The owner that the labels of the object name.
    pub labelled: OwnerLabels,
    /// A hash over the fields that this controller applied to the object; None if it applied none.
    pub applied_fields: Option<String>,
    /// Whether this controller wrote the label that names the RenderedRelease, and not another field manager.
    pub is_label_ours: bool,
    /// The names of the field managers of the object, without this controller.
    pub others: Vec<String>,
    /// Whether the annotation `bowline.dev/adopt` allows the controller to take over the object.
    pub adoptable: bool,
    /// Whether the simulator writes the status of the object.
    pub simulated: bool,
    pub verdict: Verdict,
    /// The status of the object as JSON text; None if the object has no status.
    pub status: Option<Arc<str>>,
}

/// The RenderedRelease that the labels of an object name as its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerLabels {
    /// Whether the labels say that bowline's controller manages the object.
    pub managed: bool,
    /// The uid of the owning RenderedRelease.
    pub uid: String,
    /// The name of the owning RenderedRelease, shortened to a valid label value.
    pub name: String,
    /// The namespace of the owning RenderedRelease.
    pub namespace: String,
    /// The id of the resource in the owning RenderedRelease, as a label value.
    pub id: String,
}

/// The identity of a RenderedRelease, to compare with the owner labels of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The uid of the RenderedRelease.
    pub uid: String,
    /// The namespace of the RenderedRelease.
    pub namespace: String,
    /// The name of the RenderedRelease.
    pub name: String,
}

/// The relation of an object to a RenderedRelease, which decides whether an apply may change the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The object belongs to this RenderedRelease.
    Ours,
    /// The object belonged to a deleted RenderedRelease of the same name, so this RenderedRelease takes it
    /// over.
    Inherited,
    /// Another tool owns the object, but its annotation allows bowline to take the object over.
    Adoptable,
    /// The object belongs to another RenderedRelease. Contains the namespace and the name of that
    /// RenderedRelease.
    OfAnother(String, String),
    /// Other tools own the object. Contains the names of their field managers.
    Foreign(Vec<String>),
}

impl Live {
    /// Returns whether the object certainly belongs to this RenderedRelease: the labels name the
    /// RenderedRelease, and the controller itself wrote the labels. The controller deletes only such objects.
    pub fn is_of(&self, owner: &Owner) -> bool {
        self.labelled.managed
            && self.labelled.uid == owner.uid
            && self.applied_fields.is_some()
            && self.is_label_ours
    }

    /// Returns the relation of the object to a RenderedRelease. `known` tells whether the inventory of the
    /// RenderedRelease lists the object.
    pub fn standing(&self, owner: &Owner, known: bool) -> Standing {
        let foreign = || match self.adoptable {
            true => Standing::Adoptable,
            false => Standing::Foreign(self.others.clone()),
        };
        if self.applied_fields.is_none() {
            return foreign();
        }
        let of = &self.labelled;
        if of.uid == owner.uid {
            return Standing::Ours;
        }
        // Another user removed the labels. If the inventory lists the object, it still belongs to the
        // RenderedRelease.
        if of.uid.is_empty() || !of.managed {
            return match known {
                true => Standing::Ours,
                false => foreign(),
            };
        }
        let is_same = of.namespace == names::label_value(&owner.namespace)
            && of.name == names::label_value(&owner.name);
        match is_same {
            true => Standing::Inherited,
            false if self.adoptable => Standing::Adoptable,
            false => Standing::OfAnother(of.namespace.clone(), of.name.clone()),
        }
    }
}

/// An object as a watch event contains it. If METADATA is true, only the metadata is parsed.
#[derive(Clone, Debug)]
pub struct Seen<const METADATA: bool> {
    metadata: ObjectMeta,
    live: Live,
    generation: Option<i64>,
    spec: Object,
    status: Option<Object>,
}

/// An object that is parsed with its spec and status.
pub type Whole = Seen<false>;
/// An object of which only the metadata is parsed.
pub type Slim = Seen<true>;

impl<const METADATA: bool> Seen<METADATA> {
    pub fn keep(mut self, group: &str, kind: &str) -> Live {
        // Some kinds start with an empty status, so an empty status counts as no status.
        let status = self.status.map(without_nulls);
        let status = status.filter(|status| !status.is_empty());
        self.live.verdict = health::of(&Facts {
            group,
            kind,
            generation: self.generation,
            deleting: self.live.deleting,
            spec: &self.spec,
            status: status.as_ref(),
        });
        self.live.status = status.map(|status| Value::Object(status).to_string().into());
        self.live
    }
}

/// Removes null values, because the server also drops them when the status is written.
fn without_nulls(status: Object) -> Object {
    fn clean(value: Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(without_nulls(map)),
            Value::Array(list) => list.into_iter().map(clean).collect(),
            value => value,
        }
    }
    let given = status.into_iter().filter(|(_, value)| !value.is_null());
    given.map(|(field, value)| (field, clean(value))).collect()
}

impl<const METADATA: bool> Resource for Seen<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        METADATA
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    metadata: RawMetadata,
    #[serde(default)]
    spec: Option<Kept>,
    #[serde(default)]
    status: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMetadata {
    name: String,
    namespace: Option<String>,
    uid: String,
    resource_version: String,
    generation: Option<i64>,
    deletion_timestamp: Option<IgnoredAny>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<RawManager>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawManager {
    manager: String,
    operation: String,
    subresource: Option<String>,
    api_version: String,
    time: Option<String>,
    #[serde(rename = "fieldsV1")]
    fields: Value,
}

impl RawManager {
    fn is_ours(&self) -> bool {
        self.manager == labels::MANAGER_DATAPLANE
            && self.operation == "Apply"
            && self.subresource.as_deref().unwrap_or_default().is_empty()
    }

    fn owns_label(&self) -> bool {
        let label = format!("f:{}", labels::RELEASE_UID);
        let owned = ["f:metadata", "f:labels", &label]
            .iter()
            .try_fold(&self.fields, |fields, step| fields.get(*step));
        owned.is_some()
    }

    /// Returns a hash that changes when a writer changes the fields that the controller applied. It covers
    /// the applied fields, the time of the last apply and the applied content. The content is necessary
    /// because times are whole seconds.
    fn hash(&self, applied: &str) -> String {
        let ours = (&self.api_version, &self.time, &self.fields, applied);
        short(&digest::of(&ours))
    }
}

/// Shortens a hash to 16 characters, which are enough to distinguish the versions of one object.
pub(super) fn short(hash: &str) -> String {
    hash.chars().take(16).collect()
}

/// The part of a spec that the health rules read.
#[derive(Default)]
struct Kept(Object);

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Kept;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a spec")
            }

            // The spec of a custom kind may be any value. If it is not an object, no field is kept.
            fn visit_unit<E>(self) -> Result<Kept, E> {
                Ok(Kept::default())
            }

            fn visit_bool<E>(self, _: bool) -> Result<Kept, E> {
                Ok(Kept::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Kept, E> {
                Ok(Kept::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Kept, E> {
                Ok(Kept::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Kept, E> {
                Ok(Kept::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<Kept, E> {
                Ok(Kept::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kept, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Kept::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kept, A::Error> {
                let mut kept = Object::new();
                while let Some(field) = map.next_key::<Cow<'de, str>>()? {
                    match SPEC_FIELDS.contains(&field.as_ref()) {
                        true => {
                            kept.insert(field.into_owned(), map.next_value()?);
                        }
                        false => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Kept(kept))
            }
        }
        deserializer.deserialize_any(Fields)
    }
}

impl<'de, const METADATA: bool> Deserialize<'de> for Seen<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        let metadata = raw.metadata;
        let said = |map: &Option<BTreeMap<String, String>>, key: &str| {
            let found = map.as_ref().and_then(|map| map.get(key));
            found.cloned().unwrap_or_default()
        };
        let label = |key: &str| said(&metadata.labels, key);
        let annotation = |key: &str| said(&metadata.annotations, key);
        let applied = annotation(labels::APPLIED_HASH);
        let managers = metadata.managed_fields.unwrap_or_default();
        let ours = managers.iter().find(|manager| manager.is_ours());
        let mut others: Vec<String> = managers
            .iter()
            .filter(|manager| manager.manager != labels::MANAGER_DATAPLANE)
            .filter(|_| ours.is_none())
            .map(|manager| manager.manager.clone())
            .collect();
        others.dedup();
        let live = Live {
            uid: metadata.uid,
            resource_version: metadata.resource_version.clone(),
            deleting: metadata.deletion_timestamp.is_some(),
            labelled: OwnerLabels {
                managed: label(labels::MANAGED_BY) == labels::RELEASE_CONTROLLER,
                uid: label(labels::RELEASE_UID),
                name: label(labels::RELEASE_NAME),
                namespace: label(labels::RELEASE_NAMESPACE),
                id: label(labels::RELEASE_RESOURCE_ID),
            },
            applied_fields: ours.map(|ours| ours.hash(&applied)),
            is_label_ours: ours.is_some_and(RawManager::owns_label),
            others,
            adoptable: annotation(labels::ADOPT) == labels::ADOPT_TRUE,
            simulated: annotation(labels::SIMULATED) == labels::SIMULATED_TRUE,
            verdict: Verdict::new(Default::default(), ""),
            status: None,
        };
        Ok(Self {
            metadata: ObjectMeta {
                name: Some(metadata.name),
                namespace: metadata.namespace,
                resource_version: Some(metadata.resource_version),
                ..ObjectMeta::default()
            },
            live,
            generation: metadata.generation,
            spec: raw.spec.unwrap_or_default().0,
            status: match raw.status {
                Some(Value::Object(status)) => Some(status),
                _ => None,
            },
        })
    }
}
