//! Dropping what a schema does not know.

use serde_json::Value;

use super::{Additional, Kind, Type};

pub(super) fn prune(ty: Type<'_>, value: &mut Value) -> Vec<String> {
    let mut dropped = Dropped::default();
    walk(ty, value, &mut String::new(), &mut dropped);
    dropped.paths.sort();
    dropped.paths
}

/// What is told about what was dropped at most.
const MOST_BYTES: usize = 64 << 10;

#[derive(Default)]
struct Dropped {
    paths: Vec<String>,
    bytes: usize,
}

impl Dropped {
    fn add(&mut self, path: &str) {
        if self.bytes < MOST_BYTES {
            self.bytes += path.len();
            self.paths.push(path.to_owned());
        }
    }
}

fn walk(ty: Type<'_>, value: &mut Value, path: &mut String, dropped: &mut Dropped) {
    let Some(node) = ty.node() else { return };
    if node.kind == Kind::Opaque {
        return;
    }
    let length = path.len();
    match value {
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(&key);
                let slot = match (node.properties.get(&key), &node.additional) {
                    (Some(slot), _) => Some(slot),
                    (None, Additional::Typed(slot)) => Some(&**slot),
                    _ => None,
                };
                match (slot, map.get_mut(&key)) {
                    (Some(slot), Some(child)) => walk(ty.at(slot), child, path, dropped),
                    _ if node.preserve || matches!(node.additional, Additional::Any) => {}
                    _ => {
                        map.remove(&key);
                        dropped.add(path);
                    }
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(slot) = &node.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(ty.at(slot), item, path, dropped);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
