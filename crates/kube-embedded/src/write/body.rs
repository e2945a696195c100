//! Parses the bodies of write requests.

use serde_json::{Map, Value};

use crate::catalog::Resource;
use crate::duplicates::duplicates;
use crate::object;
use crate::route::FieldValidation;
use crate::service::Call;
use crate::status::Failure;

/// Parses the body of a POST or PUT request. Also returns a warning for each field that occurs twice in the body.
pub(super) fn decode(resource: &Resource, call: &Call) -> Result<(Value, Vec<String>), Failure> {
    let unrecognized = |cause: &dyn std::fmt::Display| {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {cause}",
            resource.subject.kind
        ))
    };
    let value: Value = match call.content_type.as_str() {
        "" | "application/json" => {
            serde_json::from_slice(&call.body).map_err(|cause| unrecognized(&cause))?
        }
        "application/yaml" => decode_yaml(&call.body)?,
        _ => {
            return Err(Failure::unsupported_media_type(&[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ]));
        }
    };
    let value = match value {
        // The body null becomes an object without fields, as in Go.
        Value::Null if resource.custom.is_none() => Value::Object(Map::new()),
        object @ Value::Object(_) => object,
        _ => return Err(unrecognized(&"the body is not an object")),
    };
    object::readable(resource, &value)
        .map_err(|why| why.refuse(&resource.subject.kind, &resource.version))?;
    let strictness = call.writer.field_validation;
    if strictness == FieldValidation::Ignore || call.content_type == "application/yaml" {
        return Ok((value, Vec::new()));
    }
    let repeated: Vec<String> = duplicates(&call.body)
        .iter()
        .map(|path| format!("duplicate field {path:?}"))
        .collect();
    if strictness == FieldValidation::Strict && !repeated.is_empty() {
        return Err(Failure::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {}",
            resource.version,
            repeated.join(", "),
            kind = resource.subject.kind,
        )));
    }
    Ok((value, repeated))
}

pub(super) fn decode_yaml(body: &[u8]) -> Result<Value, Failure> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Failure::bad_request("error decoding YAML: the body is not UTF-8"))?;
    // The JSON parser is tried first, because it is faster and most clients send JSON.
    if let Ok(value) = serde_json::from_str(text) {
        return as_object(value);
    }
    let documents = bounded_yaml::documents("the request", text)
        .map_err(|cause| Failure::bad_request(format!("error decoding YAML: {cause}")))?;
    match <[_; 1]>::try_from(documents) {
        Ok([document]) => as_object(document.value),
        Err(documents) => Err(Failure::bad_request(format!(
            "error decoding YAML: one document is needed, and {} were sent",
            documents.len()
        ))),
    }
}

fn as_object(value: Value) -> Result<Value, Failure> {
    match value.is_object() {
        true => Ok(value),
        false => Err(Failure::bad_request(
            "error decoding YAML: the document is not an object",
        )),
    }
}
