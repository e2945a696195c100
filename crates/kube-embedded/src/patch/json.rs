//! Applies JSON patches (RFC 6902) as kube-apiserver does.
//!
//! No existing crate does this, because kube-apiserver deviates from the RFC and clients rely on it: a test of null
//! passes for a missing field (kube's `finalizer()` sends such a test), `replace` of a missing field adds the field,
//! `add` without a value adds null, negative indexes count from the end, and text before the first slash of a path is
//! ignored.

use serde_json::Value;

use super::{MAX_COPIED, MAX_DEPTH, MAX_OPERATIONS, PatchError, json_kind};

/// Applies a JSON patch to `target`, and returns the result. Fails if one operation fails.
pub fn json_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let malformed = |value: &Value, wanted: &str| {
        PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go {wanted}",
            json_kind(value)
        ))
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(malformed(other, "value of type []handlers.jsonPatchOp")),
    };
    for operation in operations {
        let Value::Object(fields) = operation else {
            return Err(malformed(operation, "value of type handlers.jsonPatchOp"));
        };
        for name in ["op", "path", "from"] {
            if let Some(value) = fields.get(name).filter(|v| !v.is_string() && !v.is_null()) {
                return Err(malformed(
                    value,
                    &format!("struct field jsonPatchOp.{name} of type string"),
                ));
            }
        }
    }
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations(operations.len()));
    }
    let mut document = target.clone();
    let mut copied = 0;
    for (index, operation) in operations.iter().enumerate() {
        apply(&mut document, operation, &mut copied)
            .map_err(|why| PatchError::DoesNotApply { index, why })?;
    }
    Ok(document)
}

fn apply(document: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = text("path").ok_or("it has no path")?;
    let from = || text("from").ok_or("it has no from");
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match text("op").unwrap_or_default() {
        "add" => {
            let value = value();
            within(path, &value)?;
            let (holder, key) = find(document, path)?;
            insert(holder, &key, value)
        }
        "remove" => {
            let (holder, key) = find(document, path)?;
            take(holder, &key).map(drop)
        }
        "replace" if path.is_empty() => match value() {
            whole @ (Value::Object(_) | Value::Array(_)) => {
                *document = whole;
                Ok(())
            }
            _ => Err("only an object can replace the whole".to_owned()),
        },
        "replace" => {
            let value = value();
            within(path, &value)?;
            let (holder, key) = find(document, path)?;
            match holder {
                Value::Array(items) => {
                    let place = at(items, &key)?;
                    *place = value;
                }
                other => insert(other, &key, value)?,
            }
            Ok(())
        }
        "move" => {
            let (holder, key) = find(document, from()?)?;
            let moved = take(holder, &key)?;
            within(path, &moved)?;
            let (holder, key) = find(document, path)?;
            insert(holder, &key, moved)
        }
        "copy" => {
            let (holder, key) = find(document, from()?)?;
            let copy = get(holder, &key)?.cloned().unwrap_or(Value::Null);
            within(path, &copy)?;
            *copied += size(&copy);
            if *copied > MAX_COPIED {
                return Err(format!("its copies add more than {MAX_COPIED} bytes"));
            }
            let (holder, key) = find(document, path)?;
            insert(holder, &key, copy)
        }
        "test" => {
            let wanted = value();
            let found = if path.is_empty() {
                Some(&*document)
            } else {
                let (holder, key) = find(document, path)?;
                get(holder, &key)?
            };
            // A missing field counts as null, as in kube-apiserver and unlike RFC 6902.
            if same(found.unwrap_or(&Value::Null), &wanted) {
                Ok(())
            } else {
                Err(format!("the value at {path} is another one"))
            }
        }
        other => Err(format!("operation {other:?} is unknown")),
    }
}

/// Returns whether two JSON values are equal. The numbers `1` and `1.0` are equal.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// Returns an error if a value is nested too deep. A patch can copy values into each other, and dropping a value that
/// is nested too deep overflows the stack.
fn within(path: &str, value: &Value) -> Result<(), String> {
    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
            Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
            _ => 0,
        }
    }
    match path.matches('/').count() + depth(value) <= MAX_DEPTH {
        true => Ok(()),
        false => Err(format!(
            "values would stand in more than {MAX_DEPTH} others"
        )),
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Returns the object or list in which the last segment of a path is a key or index, and this segment.
fn find<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let mut parts = path.split('/').skip(1).map(unescape).collect::<Vec<_>>();
    let key = parts.pop().ok_or("an empty path names no field")?;
    let mut holder = document;
    for part in parts {
        let missing = || format!("{path} leads nowhere");
        holder = match holder {
            Value::Object(map) => map.get_mut(&part).ok_or_else(missing)?,
            Value::Array(items) => at(items, &part)?,
            _ => return Err(missing()),
        };
    }
    match holder {
        Value::Object(_) | Value::Array(_) => Ok((holder, key)),
        _ => Err(format!("{path} leads into a plain value")),
    }
}

fn position(length: usize, key: &str) -> Result<usize, String> {
    let index: i64 = key
        .parse()
        .map_err(|_| format!("{key:?} is no index of a list"))?;
    let index = if index < 0 {
        index + length as i64
    } else {
        index
    };
    usize::try_from(index).map_err(|_| format!("index {key} is before the list"))
}

fn at<'a>(items: &'a mut [Value], key: &str) -> Result<&'a mut Value, String> {
    let index = position(items.len(), key)?;
    items
        .get_mut(index)
        .ok_or_else(|| format!("index {key} is past the list"))
}

fn get<'a>(holder: &'a mut Value, key: &str) -> Result<Option<&'a Value>, String> {
    match holder {
        Value::Object(map) => Ok(map.get(key)),
        Value::Array(items) => at(items, key).map(|v| Some(&*v)),
        _ => Ok(None),
    }
}

fn insert(holder: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match holder {
        Value::Object(map) => {
            map.insert(key.to_owned(), value);
            Ok(())
        }
        Value::Array(items) if key == "-" => {
            items.push(value);
            Ok(())
        }
        Value::Array(items) => {
            let index = position(items.len() + 1, key)?;
            if index > items.len() {
                return Err(format!("index {key} is past the list"));
            }
            items.insert(index, value);
            Ok(())
        }
        _ => Err("a plain value holds no fields".to_owned()),
    }
}

fn take(holder: &mut Value, key: &str) -> Result<Value, String> {
    match holder {
        Value::Object(map) => map
            .remove(key)
            .ok_or_else(|| format!("there is no field {key:?}")),
        Value::Array(items) => {
            let index = position(items.len(), key)?;
            if index >= items.len() {
                return Err(format!("index {key} is past the list"));
            }
            Ok(items.remove(index))
        }
        _ => Err("a plain value holds no fields".to_owned()),
    }
}

/// Returns the approximate size of a value as JSON text, in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|v| size(v) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map
                .iter()
                .map(|(k, v)| k.len() + 4 + size(v))
                .sum::<usize>()
        }
    }
}
