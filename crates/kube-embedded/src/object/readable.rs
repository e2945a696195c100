//! Checks that a JSON value from a client can be decoded as an object of a kind: its depth, its kind, and its types.
//!
//! For a custom resource, only the types in the metadata are checked here, because the validation with the schema
//! checks the others.

use serde_json::{Map, Value};

use super::super::builtin;
use super::super::catalog::Resource;
use super::super::schema::Schema;
use super::super::status::{Cause, Failure, Subject};

/// The largest nesting depth of an object. The parser for stored objects accepts 128 levels, and managedFields is
/// nested a few levels deeper than the object.
const DEPTH: usize = 100;
/// The largest total length of the field names around a value, in bytes. Error messages contain these names as a
/// path, so it must not be too long.
const WAY: usize = 16 << 10;

/// The reason why a JSON value cannot be decoded as an object of the expected kind.
#[derive(Debug)]
pub enum Unreadable {
    /// The kind or apiVersion of the value is not a string. Contains the error.
    Kind(String),
    /// The value has another kind or apiVersion than expected. Contains the answer for the client.
    Mismatch(Failure),
    /// The value is nested too deep, or a field in it has the wrong type. Contains the error.
    Value(String),
}

impl Unreadable {
    /// Converts the reason to the answer for a client that sent the value as its request body.
    pub fn refuse(self, kind: &str, version: &str) -> Failure {
        match self {
            Unreadable::Mismatch(failure) => failure,
            Unreadable::Kind(why) => Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why}"
            )),
            Unreadable::Value(why) => {
                Failure::bad_request(format!("{}{why}", cannot_be_handled(kind, version)))
            }
        }
    }

    /// Returns the reason as text, for a part of another message.
    pub fn why(self) -> String {
        match self {
            Unreadable::Mismatch(failure) => failure.message,
            Unreadable::Kind(why) | Unreadable::Value(why) => why,
        }
    }
}

/// Returns the first words of the message about an object that cannot be decoded.
pub fn cannot_be_handled(kind: &str, version: &str) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {kind}: ")
}

/// Checks that a value can be decoded as an object of a resource: its depth, its kind and its types.
pub fn readable(resource: &Resource, object: &Value) -> Result<(), Unreadable> {
    bounded(object).map_err(Unreadable::Value)?;
    let subject = &resource.subject;
    let custom = resource.custom.as_ref().map(|_| subject);
    known_kind(&subject.kind, &resource.api_version(), custom, object)?;
    typed(&resource.schema, object).map_err(Unreadable::Value)
}

/// Checks that a value can be decoded as an object of a built-in kind. Unlike [`readable`], also accepts a kind that
/// is never stored, such as DeleteOptions.
pub fn readable_as(
    group: &str,
    version: &str,
    kind: &str,
    object: &Value,
) -> Result<(), Unreadable> {
    bounded(object).map_err(Unreadable::Value)?;
    let api_version = super::super::catalog::api_version(group, version);
    known_kind(kind, &api_version, None, object)?;
    match builtin::schema(group, version, kind) {
        Some(schema) => typed(&schema, object).map_err(Unreadable::Value),
        None => Ok(()),
    }
}

/// Checks the types in an object: for a built-in kind all types, for a custom resource only those in the metadata.
pub fn typed(schema: &Schema, object: &Value) -> Result<(), String> {
    let errors = match schema.is_built_in() {
        true => schema.type_errors(object),
        false => builtin::metadata_errors(&object["metadata"]),
    };
    match errors.into_iter().next() {
        Some(first) => Err(first.message),
        None => Ok(()),
    }
}

/// Checks that an object is not nested too deep, and that the paths in it are not too long.
pub fn bounded(object: &Value) -> Result<(), String> {
    let own = |fields: &Map<String, Value>, apart: &str| {
        let mut others = fields.iter().filter(|(name, _)| *name != apart);
        others.try_for_each(|(name, value)| walk(value, DEPTH, WAY.saturating_sub(name.len())))
    };
    let Value::Object(fields) = object else {
        return walk(object, DEPTH, WAY);
    };
    own(fields, "metadata")?;
    match fields.get("metadata") {
        Some(Value::Object(metadata)) => {
            own(metadata, "managedFields")?;
            // managedFields gets higher limits, because it repeats every field path of the object and is nested
            // deeper.
            metadata
                .get("managedFields")
                .map_or(Ok(()), |owners| walk(owners, DEPTH + 10, WAY * 2))
        }
        _ => Ok(()),
    }
}

fn walk(value: &Value, depth: usize, way: usize) -> Result<(), String> {
    let below = match value {
        Value::Array(_) | Value::Object(_) => depth.checked_sub(1).ok_or_else(|| {
            format!("exceeded max depth: values stand in more than {DEPTH} others")
        })?,
        _ => return Ok(()),
    };
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| walk(item, below, way)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, inner)| {
            let left = way.checked_sub(name.len()).ok_or_else(|| {
                format!("the names of fields that stand in each other have more than {WAY} bytes")
            })?;
            walk(inner, below, left)
        }),
        _ => Ok(()),
    }
}

fn known_kind(
    wanted: &str,
    api_version: &str,
    custom: Option<&Subject>,
    object: &Value,
) -> Result<(), Unreadable> {
    let (version, kind) = (word(object, "apiVersion")?, word(object, "kind")?);
    let refuse = |message: String| Err(Unreadable::Mismatch(Failure::bad_request(message)));
    if custom.is_some() && kind.is_empty() {
        return refuse(format!(
            "the object provided is unrecognized (must be of type {wanted}): Object 'Kind' is missing in '{object}' ({object})"
        ));
    }
    if custom.is_some() && version.is_empty() {
        return refuse(format!(
            "{kind} in version \"\" cannot be handled as a {wanted}: .apiVersion is missing; say {api_version:?}"
        ));
    }
    if let Some(subject) = custom.filter(|_| kind != wanted && version == api_version) {
        return Err(Unreadable::Mismatch(other_kind(subject, kind, object)));
    }
    if !kind.is_empty() && kind != wanted {
        return refuse(format!(
            "{kind} in version {:?} cannot be handled as a {wanted}: no kind {kind:?} is registered for version {version:?}",
            version.rsplit('/').next().unwrap_or(version),
        ));
    }
    if !version.is_empty() && version != api_version {
        return refuse(format!(
            "the API version in the data ({version}) does not match the expected API version ({api_version})"
        ));
    }
    Ok(())
}

fn other_kind(subject: &Subject, kind: &str, object: &Value) -> Failure {
    let sent = Subject {
        kind: kind.to_owned(),
        ..subject.clone()
    };
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {kind:?}: must be {}", subject.kind),
        field: "kind".into(),
    };
    Failure::invalid(&sent, super::meta(object, "name"), vec![cause])
}

/// Returns a text field of an object; empty if the field does not exist. Fails if the field has another type.
fn word<'a>(object: &'a Value, field: &str) -> Result<&'a str, Unreadable> {
    let found = match &object[field] {
        Value::Null => return Ok(""),
        Value::String(text) => return Ok(text),
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Err(Unreadable::Kind(format!(
        "json: cannot unmarshal {found} into Go struct field .{field} of type string"
    )))
}
