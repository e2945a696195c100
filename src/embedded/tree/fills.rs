//! What is stored of what was read: an object with what git and a cluster know of it, and an entry of the log.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::chronicle::{self, Entry};
use super::index::{Held, Index, Recorded};
use super::read;
use super::sync::{ENTRIES, PINS};
use crate::api::labels;
use crate::embedded::catalog::Catalog;
use crate::embedded::encode;
use crate::embedded::object::{map_of, meta_mut};
use crate::embedded::sqlite::{Fill, Key};

/// What tells an object from others: the same in every clone.
pub(super) fn uid(resource: &str, namespace: &str, name: &str) -> String {
    let hash = read::hash(format!("{resource}\0{namespace}\0{name}").as_bytes());
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default().to_owned();
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

/// Says what is stored of an object of a file.
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
        true => index.pins.get(&chronicle::pin_key(namespace, &held.name)),
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

/// The revision of a pin: that of the log, or the next one where the file says something else.
fn revision(recorded: Option<&Recorded>, spec: &Value) -> i64 {
    match recorded {
        None => 1,
        Some(recorded) if recorded.spec == chronicle::spec(spec) => recorded.revisions.max(1),
        Some(recorded) => recorded.revisions + 1,
    }
}

/// What a cluster says of a pin, in the terms of the repository: it has observed what git wants only if it
/// wants the same.
fn beside(said: &Value, spec: &Value, generation: i64) -> Value {
    let mut status = said["status"].clone();
    let same = chronicle::spec(&said["spec"]) == chronicle::spec(spec);
    let current = said["status"]["observedGeneration"] == said["metadata"]["generation"];
    let fields = map_of(&mut status);
    match same && current {
        true => fields.insert("observedGeneration".into(), generation.into()),
        false => fields.remove("observedGeneration"),
    };
    // Its numbers are not ours: what ran is told, in its order, before what git wants.
    if let Some(outcomes) = fields.get_mut("outcomes").and_then(Value::as_array_mut) {
        let count = i64::try_from(outcomes.len()).unwrap_or_default();
        for (at, outcome) in (0..).zip(outcomes.iter_mut()) {
            map_of(outcome).insert("generation".into(), (generation - count + 1 + at).into());
        }
    }
    status
}

/// Says what is stored of an entry of the log.
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
