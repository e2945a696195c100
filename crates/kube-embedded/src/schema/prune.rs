//! Removes the fields that are not in a schema.

use serde_json::Value;

use super::place::Place;
use super::{Additional, Kind, Type};

pub(super) fn prune(ty: Type<'_>, value: &mut Value) -> Vec<String> {
    let mut dropped = Dropped::default();
    walk(ty, value, &Place::Root, &mut dropped);
    dropped.paths.sort();
    dropped.paths
}

/// The largest total length of the removed fields' paths that are returned, in bytes.
const MOST_BYTES: usize = 64 << 10;

#[derive(Default)]
struct Dropped {
    paths: Vec<String>,
    bytes: usize,
}

impl Dropped {
    fn add(&mut self, path: &Place<'_>) {
        if self.bytes < MOST_BYTES {
            let path = path.to_string();
            self.bytes += path.len();
            self.paths.push(path);
        }
    }
}

fn walk(ty: Type<'_>, value: &mut Value, path: &Place<'_>, dropped: &mut Dropped) {
    let Some(node) = ty.node() else { return };
    if node.kind == Kind::Opaque {
        return;
    }
    match value {
        Value::Object(map) => map.retain(|key, child| {
            let path = Place::Field(path, key);
            let slot = match (node.properties.get(key), &node.additional) {
                (Some(slot), _) => Some(slot),
                (None, Additional::Typed(slot)) => Some(&**slot),
                _ => None,
            };
            if let Some(slot) = slot {
                walk(ty.at(slot), child, &path, dropped);
                return true;
            }
            let kept = node.preserve || matches!(node.additional, Additional::Any);
            if !kept {
                dropped.add(&path);
            }
            kept
        }),
        Value::Array(items) => {
            let Some(slot) = &node.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                walk(ty.at(slot), item, &Place::Element(path, index), dropped);
            }
        }
        _ => {}
    }
}
