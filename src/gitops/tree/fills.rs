//! Converts objects of files and audit entries to rows of the store. Adds the metadata from git, and the status from
//! a cluster.

use jiff::Timestamp;
use kube_embedded::catalog::Catalog;
use kube_embedded::encode;
use kube_embedded::object::{map_of, meta_mut};
use kube_embedded::sqlite::{Fill, Key};
use serde_json::{Value, json};

use super::chronicle::{self, Entry};
use super::identity::{ENTRIES, PINS, pin_key, uid};
use super::index::{Held, Index, Recorded};
use crate::api::labels;

/// Returns the row that the store keeps for an object of a file.
pub(super) fn fill(
    index: &Index,
    held: Held,
    mut object: Value,
    born: i64,
    namespace: &str,
    status: Option<&Value>,
    catalog: &Catalog,
) -> Fill {
    let resource = catalog.stored(&held.resource);
    let own_uid = uid(&held.resource, namespace, &held.name);
    let born = Timestamp::from_second(born).unwrap_or_default();
    let recorded = match held.resource == PINS {
        true => index.pins.get(&pin_key(namespace, &held.name)),
        false => None,
    };
    let meta = meta_mut(&mut object);
    meta.insert("namespace".into(), namespace.into());
    meta.insert("uid".into(), own_uid.as_str().into());
    meta.insert("creationTimestamp".into(), born.to_string().into());
    if held.resource == PINS {
        let generation = revision(recorded, &object["spec"]);
        let meta = meta_mut(&mut object);
        meta.insert("generation".into(), generation.into());
        if let Some(recorded) = recorded.filter(|recorded| !recorded.by.is_empty()) {
            let annotations = map_of(meta.entry("annotations").or_insert(Value::Null));
            annotations.insert(labels::CHANGED_BY.to_owned(), recorded.by.as_str().into());
        }
        if let Some(status) = status {
            let status = beside(status, &object["spec"], generation);
            map_of(&mut object).insert("status".into(), status);
        }
    }
    let (meta, rest) = match resource {
        Some(resource) => encode::split(resource, &object),
        None => (Vec::new(), Vec::new()),
    };
    Fill {
        key: Key {
            resource: held.resource.as_str().into(),
            namespace: namespace.to_owned(),
            name: held.name,
        },
        uid: own_uid,
        state: Some((meta, rest)),
    }
}

/// Returns the revision of a ReleasePin: the newest revision in git's log, or the next one if the file has
/// uncommitted changes.
fn revision(recorded: Option<&Recorded>, spec: &Value) -> i64 {
    match recorded {
        None => 1,
        Some(recorded) if recorded.spec == chronicle::spec(spec) => recorded.revisions.max(1),
        Some(recorded) => recorded.revisions + 1,
    }
}

/// Returns the status of a ReleasePin in a cluster for the same ReleasePin in the repository, which has another
/// generation. Sets `observedGeneration` only if the spec is the same in the cluster and in the repository.
fn beside(said: &Value, spec: &Value, generation: i64) -> Value {
    let mut status = said["status"].clone();
    let same = chronicle::spec(&said["spec"]) == chronicle::spec(spec);
    let current = said["status"]["observedGeneration"] == said["metadata"]["generation"];
    let fields = map_of(&mut status);
    match same && current {
        true => fields.insert("observedGeneration".into(), generation.into()),
        false => fields.remove("observedGeneration"),
    };
    // The generations in the cluster and in the repository differ. So the outcomes get consecutive numbers that end
    // with the generation in the repository.
    if let Some(outcomes) = fields.get_mut("outcomes").and_then(Value::as_array_mut) {
        let count = i64::try_from(outcomes.len()).unwrap_or_default();
        for (at, outcome) in (0..).zip(outcomes.iter_mut()) {
            map_of(outcome).insert("generation".into(), (generation - count + 1 + at).into());
        }
    }
    status
}

/// Returns the row that the store keeps for an audit entry.
pub(super) fn entry_fill(entry: &Entry) -> Fill {
    let namespace = entry.namespace.as_str();
    let (name, object) = chronicle::object(entry);
    let own = uid(ENTRIES, namespace, &name);
    let state = object.map(|mut object| {
        let meta = meta_mut(&mut object);
        meta.insert("uid".into(), own.as_str().into());
        (
            encode::to_bytes(&object["metadata"]),
            encode::to_bytes(&json!({"spec": object["spec"]})),
        )
    });
    Fill {
        key: Key {
            resource: ENTRIES.into(),
            namespace: namespace.to_owned(),
            name,
        },
        uid: own,
        state,
    }
}
