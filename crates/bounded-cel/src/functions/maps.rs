//! The functions that take maps.

use std::collections::BTreeMap;
use std::mem::size_of;
use std::rc::Rc;

use super::mismatch;
use crate::CelError;
use crate::meter::Meter;
use crate::value::{Key, Val};

/// Merges the second map into the first map. If both maps have a map at the same key, these two inner maps are merged
/// in the same way. A null in the second map removes its key from the first map; any other value replaces the value
/// of the first map.
pub(super) fn merge<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, CelError> {
    match args {
        [base, over] if base.map_len().is_some() && over.map_len().is_some() => {
            lay(base, over, meter)
        }
        _ => Err(mismatch("merge", args)),
    }
}

fn lay<'a>(base: &Val<'a>, over: &Val<'a>, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let entries = base.map_len().unwrap_or(0) + over.map_len().unwrap_or(0);
    meter.make(entries * size_of::<(Key<'_>, Val<'_>)>())?;
    let mut merged: BTreeMap<_, _> = base.entries().into_iter().collect();
    for (key, value) in over.entries() {
        let value = match merged.get(&key) {
            _ if matches!(value, Val::Null) => {
                merged.remove(&key);
                continue;
            }
            Some(below) if below.map_len().is_some() && value.map_len().is_some() => {
                lay(below, &value, meter)?
            }
            // The map is merged into an empty map, which removes its keys with the value null.
            _ if value.map_len().is_some() => lay(&Val::Map(Rc::default()), &value, meter)?,
            _ => value,
        };
        merged.insert(key, value);
    }
    Ok(Val::Map(Rc::new(merged)))
}
