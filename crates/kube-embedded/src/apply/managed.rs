//! Reads and writes `metadata.managedFields`, which records which manager owns which fields of an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fieldset::{FieldSet, Step};
use super::{Manager, Operation};

/// The identity of a field manager. A manager that uses server-side apply has one identity for all API versions; any
/// other manager has one identity per API version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: Option<String>,
    pub(super) subresource: Option<String>,
}

impl Identity {
    pub(super) fn of(manager: &Manager<'_>, operation: Operation) -> Identity {
        Identity {
            manager: if manager.name.is_empty() {
                "unknown"
            } else {
                manager.name
            }
            .to_owned(),
            operation,
            api_version: (operation == Operation::Update).then(|| manager.api_version.to_owned()),
            subresource: manager.subresource.map(str::to_owned),
        }
    }
}

/// The fields of an object that one manager owns, and the time of the manager's last write.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub(super) api_version: String,
    pub(super) fields: FieldSet,
    pub(super) time: Option<String>,
}

pub(super) type Managed = BTreeMap<Identity, Owned>;

/// The largest number of separate entries for managers that do not use server-side apply; see [`cap`].
const MAX_UPDATERS: usize = 10;
const BUCKET: &str = "ancient-changes";

pub(super) fn entries(object: &Value) -> Option<&Value> {
    object
        .pointer("/metadata/managedFields")
        .filter(|v| !v.is_null())
}

/// Returns whether the client wants to remove all owners of the object: it sends managedFields as an empty list, or
/// as a list with one empty entry.
pub(super) fn is_reset(object: &Value) -> bool {
    match entries(object).and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(only)]) => only.is_empty(),
        _ => false,
    }
}

/// Parses `metadata.managedFields` of an object; None if an entry of it is malformed.
pub(super) fn decode(object: &Value) -> Option<Managed> {
    let mut managed = Managed::new();
    let list = match entries(object) {
        None => return Some(managed),
        Some(entries) => entries.as_array()?,
    };
    for entry in list {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if text("apiVersion").is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let identity = Identity {
            manager: text("manager").to_owned(),
            operation,
            api_version: (operation == Operation::Update).then(|| text("apiVersion").to_owned()),
            subresource: Some(text("subresource").to_owned()).filter(|s| !s.is_empty()),
        };
        let owned = Owned {
            api_version: text("apiVersion").to_owned(),
            fields: entry
                .get("fieldsV1")
                .map(FieldSet::from_json)
                .unwrap_or_default(),
            time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
        };
        managed.insert(identity, owned);
    }
    Some(managed)
}

/// Writes the owners to `metadata.managedFields` of an object: managers that use server-side apply first, and older
/// entries before newer ones.
pub(super) fn encode(object: &mut Value, managed: &Managed) {
    let mut sorted: Vec<(&Identity, &Owned)> = managed.iter().collect();
    sorted.sort_by(|(a, x), (b, y)| {
        let key = |i: &Identity, o: &Owned| {
            (
                i.operation,
                seconds(o),
                i.manager.clone(),
                o.api_version.clone(),
                i.subresource.clone(),
            )
        };
        key(a, x).cmp(&key(b, y))
    });
    let list: Vec<Value> = sorted
        .into_iter()
        .map(|(identity, owned)| {
            let mut entry = json!({
                "manager": identity.manager,
                "operation": identity.operation.as_str(),
                "apiVersion": owned.api_version,
                "fieldsType": "FieldsV1",
                "fieldsV1": owned.fields.to_json(),
            });
            if let Some(map) = entry.as_object_mut() {
                map.extend(
                    owned
                        .time
                        .clone()
                        .map(|t| ("time".to_owned(), Value::from(t))),
                );
                map.extend(
                    identity
                        .subresource
                        .clone()
                        .map(|s| ("subresource".to_owned(), Value::from(s))),
                );
            }
            entry
        })
        .collect();
    forget(object);
    if list.is_empty() {
        return;
    }
    if let Some(map) = object.as_object_mut() {
        let metadata = map
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
    }
}

/// Removes `metadata.managedFields` from an object.
pub(super) fn forget(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn seconds(owned: &Owned) -> i64 {
    let time = owned
        .time
        .as_deref()
        .and_then(|t| t.parse::<jiff::Timestamp>().ok());
    time.map_or(0, |t| t.as_second())
}

/// Removes from a manager's fields those that every object has, such as `kind` and `metadata.name`, because nobody
/// owns them. Removes the manager if it owns no other field.
pub(super) fn strip(managed: &mut Managed, identity: &Identity) {
    let mut common = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        common.insert(&[Step::field(name)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        common.insert(&[Step::field("metadata"), Step::field(name)]);
    }
    if let Some(owned) = managed.get_mut(identity) {
        owned.fields = owned.fields.difference(&common);
        if owned.fields.is_empty() {
            managed.remove(identity);
        }
    }
}

/// If there are more than [`MAX_UPDATERS`] entries of managers that do not use server-side apply, merges the oldest
/// of them into one entry per API version.
pub(super) fn cap(managed: &mut Managed) {
    let mut updaters: Vec<Identity> = managed
        .keys()
        .filter(|i| i.operation == Operation::Update)
        .cloned()
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters.sort_by_key(|i| (managed.get(i).map_or(0, seconds), i.clone()));
    let mut first_of: BTreeMap<String, Identity> = BTreeMap::new();
    for identity in updaters {
        if count <= MAX_UPDATERS {
            break;
        }
        let Some(owned) = managed.get(&identity).cloned() else {
            continue;
        };
        let version = owned.api_version.clone();
        let Some(first) = first_of.get(&version) else {
            first_of.insert(version, identity);
            continue;
        };
        let bucket = Identity {
            manager: BUCKET.to_owned(),
            operation: Operation::Update,
            api_version: Some(version.clone()),
            subresource: None,
        };
        if !managed.contains_key(&bucket)
            && let Some(oldest) = managed.remove(first)
        {
            managed.insert(bucket.clone(), oldest);
        }
        let gathered = managed
            .get(&bucket)
            .map(|o| o.fields.clone())
            .unwrap_or_default();
        managed.remove(&identity);
        count -= 1;
        managed.insert(
            bucket,
            Owned {
                api_version: version,
                fields: gathered.union(&owned.fields),
                time: owned.time,
            },
        );
    }
}
