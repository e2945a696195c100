//! Parses the shorthand of parameter schemas: a map of names to texts such as `integer | default=1`.
//!
//! This module converts each text to the keywords of an OpenAPI schema, each with its column in the text. The module
//! `openapi` parses these keywords.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keywords::imply;
use super::node::{Kind, Node, Others};
use super::openapi::{Reader, Source};
use super::scan::{ATTRIBUTES, Attribute, Fault, Form, Raw, Scan, column};
use super::words::{Place, did_you_mean, type_of};
use crate::api::Object;
use crate::text;

/// The largest size of the text of one parameter, in bytes.
const MAX_LENGTH: usize = 16 << 10;

/// Parses the parameters of a definition that are written in the shorthand.
pub(super) fn object(reader: &mut Reader, parameters: &Object) -> Node {
    nested(reader, parameters, &Place::Whole, 0)
}

fn nested(reader: &mut Reader, parameters: &Object, place: &Place<'_>, depth: usize) -> Node {
    let mut out = Node {
        kind: Kind::Map,
        others: Others::Drop,
        ..Node::default()
    };
    if !reader.enter(&place.to_string(), depth) {
        return out;
    }
    for (name, value) in parameters {
        let place = Place::Key(place, name);
        let path = place.to_string();
        if name.is_empty() || name.starts_with('$') {
            reader.problem(
                &path,
                "a parameter's name is not empty and does not begin with `$`",
            );
            continue;
        }
        let field = match value {
            Value::String(text) => leaf(reader, text, path, depth, &mut out, name),
            Value::Object(inner) if inner.is_empty() => {
                reader.problem(
                    &path,
                    "is an object without fields; write \"object\" to allow any fields",
                );
                continue;
            }
            Value::Object(inner) => nested(reader, inner, &place, depth + 1),
            other => {
                let message = format!(
                    "is {}; expected a type, as \"integer | default=1\". A schema with keywords is written as OpenAPI v3, from the top: type: object, properties: ...",
                    type_of(other)
                );
                reader.problem(&path, message);
                continue;
            }
        };
        out.fields.insert(name.clone(), field);
    }
    imply(&mut out);
    out
}

fn leaf(
    reader: &mut Reader,
    text: &str,
    path: String,
    depth: usize,
    parent: &mut Node,
    name: &str,
) -> Node {
    let leaf = read(text);
    let failed = !leaf.faults.is_empty();
    for (at, message) in leaf.faults {
        let column = column(text, at);
        reader.problem(&path, format!("column {column}: {message}"));
    }
    if failed {
        return Node::default();
    }
    if leaf.required {
        parent.required.push(name.to_owned());
    }
    let columns = leaf
        .places
        .into_iter()
        .map(|(name, at)| (name, column(text, at)))
        .collect();
    let source = Source {
        path,
        columns: Some(&columns),
    };
    reader.node(&leaf.keywords, &source, depth + 1)
}

/// The content of one parameter's text: OpenAPI keywords, their columns, and the syntax errors.
#[derive(Default)]
struct Leaf {
    keywords: Object,
    places: BTreeMap<String, usize>,
    required: bool,
    faults: Vec<Fault>,
}

fn read(text: &str) -> Leaf {
    let mut leaf = Leaf::default();
    if text.len() > MAX_LENGTH {
        let message = format!("the text is longer than {MAX_LENGTH} bytes");
        leaf.faults.push((0, message));
        return leaf;
    }
    let mut scan = Scan { text, at: 0 };
    match scan.header() {
        Ok(keywords) => leaf.keywords = keywords,
        Err(fault) => {
            leaf.faults.push(fault);
            return leaf;
        }
    }
    let type_name = match leaf.keywords.get("type") {
        Some(Value::String(name)) => name.clone(),
        _ => "any".to_owned(),
    };
    let mut attributes = Vec::new();
    loop {
        scan.blanks();
        if scan.rest().is_empty() {
            break;
        }
        match scan.attribute(&type_name) {
            Ok(attribute) => attributes.push(attribute),
            Err(fault) => {
                // The parser stops at the first error, because it does not know where the next attribute begins.
                leaf.faults.push(fault);
                break;
            }
        }
    }
    let nullable = attributes
        .iter()
        .any(|attribute| attribute.name == "nullable" && attribute.says("true"));
    for attribute in attributes {
        let (at, name) = (attribute.at, attribute.name);
        let Some(form) = attribute.form else {
            let hint = did_you_mean(name, ATTRIBUTES.map(|(name, _)| name));
            let message = format!("`{}` is not an attribute{hint}", text::fit(name, 40));
            leaf.faults.push((at, message));
            continue;
        };
        if leaf.places.insert(name.to_owned(), at).is_some() {
            leaf.faults.push((at, format!("`{name}` appears twice")));
            continue;
        }
        match meaning(attribute, form, &type_name, nullable) {
            Ok(Value::Bool(required)) if name == "required" => leaf.required = required,
            Ok(value) => {
                leaf.keywords.insert(name.to_owned(), value);
            }
            Err(fault) => leaf.faults.push(fault),
        }
    }
    leaf
}

/// Converts the value of an attribute to the type that its keyword needs.
fn meaning(
    attribute: Attribute<'_>,
    form: Form,
    type_name: &str,
    nullable: bool,
) -> Result<Value, Fault> {
    let is_flag = attribute.says("true") || attribute.says("false");
    let (type_name, nullable) = match form {
        Form::Text => ("string", false),
        Form::Number => ("number", false),
        Form::NumberOrFlag if !is_flag => ("number", false),
        Form::NumberOrFlag | Form::Flag => ("boolean", false),
        Form::Value | Form::Values => (type_name, nullable),
    };
    if form == Form::Values && matches!(type_name, "array" | "object") {
        let message = "`enum` is for single values; write the schema as OpenAPI v3 to choose the items of a list or map";
        return Err((attribute.at, message.to_owned()));
    }
    let is_list = form == Form::Values && !matches!(attribute.values[..], [Raw::Json(_)]);
    let mut values = attribute
        .values
        .into_iter()
        .map(|raw| typed(raw, type_name, nullable));
    if is_list {
        return values.collect::<Result<Vec<_>, _>>().map(Value::Array);
    }
    values
        .next()
        .unwrap_or_else(|| Err((attribute.at, "a value is missing".to_owned())))
}

fn typed(raw: Raw, type_name: &str, nullable: bool) -> Result<Value, Fault> {
    let (at, text, quoted) = match raw {
        Raw::Text { at, text, quoted } => (at, text, quoted),
        Raw::Json(value) => return Ok(value),
    };
    if nullable && !quoted && text == "null" {
        return Ok(Value::Null);
    }
    let shown = text::fit(&text, 40);
    match type_name {
        "string" => Ok(Value::String(text)),
        "integer" | "number" => serde_json::from_str(&text)
            .map(Value::Number)
            .map_err(|_| (at, format!("`{shown}` is not a number"))),
        "boolean" => match text.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err((at, format!("`{shown}` is neither true nor false"))),
        },
        "array" => Err((
            at,
            format!("`{shown}` is not a list; a list is written as JSON, for example [1,2]"),
        )),
        "object" => Err((
            at,
            format!(
                "`{shown}` is not an object; an object is written as JSON, for example {{\"a\":1}}"
            ),
        )),
        _ if quoted => Ok(Value::String(text)),
        _ => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
    }
}
