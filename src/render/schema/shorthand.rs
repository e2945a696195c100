//! The shorthand of component type definitions: names and texts such as `integer | default=1`.
//!
//! A text becomes the keywords of an OpenAPI schema, with the column of each; what they mean is
//! read there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::MAX_DEPTH;
use super::node::{Kind, Node, Others};
use super::openapi::{Reader, Source, imply};
use super::words::{Place, did_you_mean, type_of};
use crate::api::Object;
use crate::text;

/// The most bytes of one text.
const MAX_LENGTH: usize = 16 << 10;

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "object", "any"];

/// How the value of an attribute is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Flag,
    Number,
    NumberOrFlag,
    Text,
    /// A value of the parameter's type.
    Value,
    /// Several of them.
    Values,
}

const ATTRIBUTES: [(&str, Form); 21] = [
    ("default", Form::Value),
    ("description", Form::Text),
    ("enum", Form::Values),
    ("example", Form::Text),
    ("exclusiveMaximum", Form::NumberOrFlag),
    ("exclusiveMinimum", Form::NumberOrFlag),
    ("format", Form::Text),
    ("maxItems", Form::Number),
    ("maxLength", Form::Number),
    ("maxProperties", Form::Number),
    ("maximum", Form::Number),
    ("minItems", Form::Number),
    ("minLength", Form::Number),
    ("minProperties", Form::Number),
    ("minimum", Form::Number),
    ("multipleOf", Form::Number),
    ("nullable", Form::Flag),
    ("pattern", Form::Text),
    ("required", Form::Flag),
    ("title", Form::Text),
    ("uniqueItems", Form::Flag),
];

/// Reads the parameters of a definition.
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
                    "is an object without fields; write \"object\" for one of free form",
                );
                continue;
            }
            Value::Object(inner) => nested(reader, inner, &place, depth + 1),
            other => {
                let message = format!(
                    "is {}; wanted a type, as \"integer | default=1\". A schema with keywords is written as OpenAPI v3, from the top: type: object, properties: ...",
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

/// Counts characters from 1.
fn column(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).chars().count() + 1
}

/// A byte of the text and what is wrong there.
type Fault = (usize, String);

/// What a text says: keywords, where each stands, and what is wrong.
#[derive(Default)]
struct Leaf {
    keywords: Object,
    places: BTreeMap<String, usize>,
    required: bool,
    faults: Vec<Fault>,
}

struct Attribute<'a> {
    at: usize,
    name: &'a str,
    /// None for an attribute that there is not.
    form: Option<Form>,
    raw: Raw,
}

/// The value of an attribute before the type gives it its meaning.
enum Raw {
    Text {
        at: usize,
        text: String,
        quoted: bool,
    },
    Json(Value),
    List(Vec<Raw>),
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
                // Where one ends is unknown, and so is where the next begins.
                leaf.faults.push(fault);
                break;
            }
        }
    }
    let nullable = attributes.iter().any(|attribute| {
        attribute.name == "nullable"
            && matches!(&attribute.raw, Raw::Text { text, .. } if text == "true")
    });
    for attribute in attributes {
        let Attribute {
            at,
            name,
            form,
            raw,
        } = attribute;
        let Some(form) = form else {
            let hint = did_you_mean(name, ATTRIBUTES.map(|(name, _)| name));
            let message = format!("`{}` is no attribute{hint}", text::fit(name, 40));
            leaf.faults.push((at, message));
            continue;
        };
        if leaf.places.insert(name.to_owned(), at).is_some() {
            leaf.faults.push((at, format!("`{name}` is there twice")));
            continue;
        }
        match meaning(name, form, raw, &type_name, nullable) {
            Ok(Value::Bool(required)) if name == "required" => leaf.required = required,
            Ok(value) => {
                leaf.keywords.insert(name.to_owned(), value);
            }
            Err((within, message)) => {
                leaf.faults
                    .push((if within == 0 { at } else { within }, message));
            }
        }
    }
    leaf
}

/// Gives the value of an attribute its type.
fn meaning(
    name: &str,
    form: Form,
    raw: Raw,
    type_name: &str,
    nullable: bool,
) -> Result<Value, Fault> {
    match form {
        Form::Text => typed(raw, "string", false),
        Form::Flag => typed(raw, "boolean", false),
        Form::Number => typed(raw, "number", false),
        Form::NumberOrFlag if matches!(&raw, Raw::Text { text, .. } if text == "true" || text == "false") => {
            typed(raw, "boolean", false)
        }
        Form::NumberOrFlag => typed(raw, "number", false),
        Form::Value => typed(raw, type_name, nullable),
        Form::Values if matches!(type_name, "array" | "object") => Err((
            0,
            format!(
                "`{name}` is for single values; write the schema as OpenAPI v3 to choose the items of a list or map"
            ),
        )),
        Form::Values => match raw {
            Raw::List(items) => items
                .into_iter()
                .map(|item| typed(item, type_name, nullable))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
            other => typed(other, type_name, nullable),
        },
    }
}

fn typed(raw: Raw, type_name: &str, nullable: bool) -> Result<Value, Fault> {
    let (at, text, quoted) = match raw {
        Raw::Text { at, text, quoted } => (at, text, quoted),
        Raw::Json(value) => return Ok(value),
        Raw::List(_) => return Err((0, "is several values; wanted one".to_owned())),
    };
    if nullable && !quoted && text == "null" {
        return Ok(Value::Null);
    }
    let shown = text::fit(&text, 40);
    match type_name {
        "string" => Ok(Value::String(text)),
        "integer" | "number" => serde_json::from_str(&text)
            .map(Value::Number)
            .map_err(|_| (at, format!("`{shown}` is no number"))),
        "boolean" => match text.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err((at, format!("`{shown}` is neither true nor false"))),
        },
        "array" => Err((
            at,
            format!("`{shown}` is no list; a list is written as JSON, for example [1,2]"),
        )),
        "object" => Err((
            at,
            format!(
                "`{shown}` is no object; an object is written as JSON, for example {{\"a\":1}}"
            ),
        )),
        _ if quoted => Ok(Value::String(text)),
        _ => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn expected(&self, what: &str) -> Fault {
        let found = match self.rest() {
            "" => "the end".to_owned(),
            rest => format!("`{}`", text::fit(rest, 20)),
        };
        (self.at, format!("expected {what}, found {found}"))
    }

    /// Reads the type up to the first attribute.
    fn header(&mut self) -> Result<Object, Fault> {
        let keywords = self.type_keywords()?;
        self.blanks();
        if self.rest().is_empty() {
            return Ok(keywords);
        }
        if !self.eat("|") {
            return Err(self.expected("`|` and attributes, or the end"));
        }
        self.blanks();
        if self.rest().is_empty() {
            return Err(self.expected("an attribute after `|`"));
        }
        Ok(keywords)
    }

    fn type_keywords(&mut self) -> Result<Object, Fault> {
        // The lists and maps around a type, outermost first; a map has to be closed.
        let mut around = Vec::new();
        let inner = loop {
            self.blanks();
            let start = self.at;
            if around.len() > MAX_DEPTH {
                return Err((
                    start,
                    format!("the type is nested more than {MAX_DEPTH} levels deep"),
                ));
            }
            if self.eat("[]") {
                around.push(None);
                continue;
            }
            let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
            if word == "map" {
                self.blanks();
                if !self.eat("<") {
                    return Err(
                        self.expected("`<` and the type of the values, as in `map<string>`")
                    );
                }
                around.push(Some(start));
                continue;
            }
            if word == "any" {
                break Object::new();
            }
            if TYPES.contains(&word) {
                break Object::from_iter([("type".to_owned(), json!(word))]);
            }
            self.at = start;
            return Err(self.no_type(word));
        };
        let mut keywords = inner;
        for wrap in around.into_iter().rev() {
            let (name, key) = match wrap {
                None => ("array", "items"),
                Some(start) => {
                    self.blanks();
                    if !self.eat(">") {
                        let column = column(self.text, start);
                        return Err(
                            self.expected(&format!("`>` for the `map<` of column {column}"))
                        );
                    }
                    ("object", "additionalProperties")
                }
            };
            keywords = Object::from_iter([
                ("type".to_owned(), json!(name)),
                (key.to_owned(), Value::Object(keywords)),
            ]);
        }
        Ok(keywords)
    }

    fn no_type(&self, word: &str) -> Fault {
        if word.is_empty() {
            return self
                .expected("a type: string, integer, number, boolean, object, any, []T or map<T>");
        }
        let known = match word.to_ascii_lowercase().as_str() {
            "int" | "int32" | "int64" | "long" => "integer",
            "bool" => "boolean",
            "str" | "text" => "string",
            "float" | "double" => "number",
            "list" | "array" => "[]T",
            "dict" | "mapping" => "map<T>",
            _ => "",
        };
        let hint = match known {
            "" => did_you_mean(word, TYPES),
            known => format!(", did you mean `{known}`?"),
        };
        let message = format!(
            "`{}` is no type{hint}; types are {}, []T and map<T>",
            text::fit(word, 40),
            TYPES.join(", ")
        );
        (self.at, message)
    }

    fn attribute(&mut self, type_name: &str) -> Result<Attribute<'a>, Fault> {
        let at = self.at;
        let name = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
        if name.is_empty() {
            return Err(self.expected("an attribute, as `default=1`"));
        }
        if !self.eat("=") {
            let shown = text::fit(name, 40);
            let message = format!(
                "`{shown}` has no value: write {shown}=..., and quote a value that has blanks"
            );
            return Err((at, message));
        }
        let form = ATTRIBUTES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, form)| *form);
        let is_composite = matches!(type_name, "array" | "object" | "any");
        let begins_json = match form {
            Some(Form::Value) => is_composite && self.rest().starts_with(['[', '{']),
            Some(Form::Values) => self.rest().starts_with('['),
            _ => false,
        };
        let raw = if begins_json {
            Raw::Json(self.json()?)
        } else if form == Some(Form::Values) {
            let mut items = vec![self.word(&[','])?];
            while self.eat(",") {
                items.push(self.word(&[','])?);
            }
            Raw::List(items)
        } else {
            self.word(&[])?
        };
        if !self.rest().is_empty() && !self.rest().starts_with(char::is_whitespace) {
            return Err(self.expected("a blank after the value"));
        }
        Ok(Attribute {
            at,
            name,
            form,
            raw,
        })
    }

    fn json(&mut self) -> Result<Value, Fault> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => {
                let within = if error.line() == 1 {
                    error.column().saturating_sub(1)
                } else {
                    0
                };
                let error = error.to_string();
                // The place is ours to say.
                let what = error.split(" at line ").next().unwrap_or_default();
                Err((
                    self.at + within,
                    format!("is no JSON: {}", text::fit(what, 80)),
                ))
            }
            None => Err(self.expected("JSON")),
        }
    }

    /// Reads a quoted text, or one up to a blank or one of the ends.
    fn word(&mut self, ends: &[char]) -> Result<Raw, Fault> {
        let at = self.at;
        if self.rest().starts_with('"') {
            return match self.json()? {
                Value::String(text) => Ok(Raw::Text {
                    at,
                    text,
                    quoted: true,
                }),
                other => Ok(Raw::Json(other)),
            };
        }
        if self.eat("'") {
            let text = self.take_while(|c| c != '\'').to_owned();
            return if self.eat("'") {
                Ok(Raw::Text {
                    at,
                    text,
                    quoted: true,
                })
            } else {
                Err((at, "the quote is not closed".to_owned()))
            };
        }
        let text = self
            .take_while(|c| !c.is_whitespace() && !ends.contains(&c))
            .to_owned();
        if text.is_empty() {
            return Err(self.expected("a value (`\"\"` is the empty text)"));
        }
        Ok(Raw::Text {
            at,
            text,
            quoted: false,
        })
    }
}
