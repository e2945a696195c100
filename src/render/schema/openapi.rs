//! Parses schemas in OpenAPI v3. Schemas in the shorthand are parsed here too, after the module `shorthand` has
//! converted them to OpenAPI keywords.

use std::collections::BTreeMap;

use serde_json::Value;

use super::node::{Kind, Node, Others};
use super::words::{Place, did_you_mean, type_of};
use super::{MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, Problem};
use crate::api::Object;
use crate::text;

/// The keywords of OpenAPI for numbers.
const NUMERIC: [&str; 5] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
/// The keywords of OpenAPI for strings.
const TEXTUAL: [&str; 3] = ["minLength", "maxLength", "pattern"];
/// The keywords of OpenAPI for lists.
const LISTS: [&str; 4] = ["items", "minItems", "maxItems", "uniqueItems"];
/// The keywords of OpenAPI for objects.
const MAPS: [&str; 6] = [
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "x-kubernetes-preserve-unknown-fields",
];
/// The keywords of OpenAPI for values of every type.
const GENERAL: [&str; 14] = [
    "type",
    "format",
    "enum",
    "default",
    "nullable",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "title",
    "description",
    "example",
    "externalDocs",
    "deprecated",
];

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Returns the OpenAPI schema in the parameters of a definition, with its path. None if the parameters are
/// written in the shorthand.
pub(super) fn recognise(parameters: &Object) -> Option<(&'static str, &Object)> {
    if parameters.len() == 1
        && let Some(Value::Object(inner)) = parameters.get("openAPIV3Schema")
    {
        return Some(("openAPIV3Schema", inner));
    }
    let is_object = parameters.get("type").and_then(Value::as_str) == Some("object");
    let says_more = parameters.get("properties").is_some_and(Value::is_object)
        || parameters.contains_key("additionalProperties")
        || parameters.contains_key(PRESERVE);
    (is_object && says_more).then_some(("", parameters))
}

/// The origin of keywords, for errors: a path in an OpenAPI schema, or a text of the shorthand with the column of
/// each keyword.
pub(super) struct Source<'a> {
    pub(super) path: String,
    pub(super) columns: Option<&'a BTreeMap<String, usize>>,
}

impl Source<'_> {
    pub(super) fn within(path: &str, key: &str) -> Source<'static> {
        let parent = match path {
            "" => return Source::at(Place::Key(&Place::Whole, key).to_string()),
            path => path,
        };
        let key = Place::Key(&Place::Whole, key).to_string();
        let dot = if key.starts_with('[') { "" } else { "." };
        Source::at(format!("{parent}{dot}{key}"))
    }

    pub(super) fn at(path: String) -> Source<'static> {
        Source {
            path,
            columns: None,
        }
    }
}

/// Parses the schemas of one definition, and collects the errors in them.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<Problem>,
    nodes: usize,
    pub(super) pattern_bytes: usize,
    /// Whether the parser is inside an alternative such as `anyOf`. An alternative only restricts values: it sets no
    /// defaults and removes no keys.
    pub(super) branch: bool,
}

impl Reader {
    /// Parses the schema of all parameters of a definition.
    pub(super) fn root(&mut self, path: &str, keywords: &Object) -> Node {
        let source = Source::at(path.to_owned());
        for keyword in ["default", "nullable"] {
            if keywords.contains_key(keyword) {
                self.keyword_problem(
                    &source,
                    keyword,
                    "applies to single parameters, not to the whole schema",
                );
            }
        }
        let root = self.node(keywords, &source, 0);
        if root.kind != Kind::Map && self.problems.is_empty() {
            self.keyword_problem(&source, "type", "has to be object: parameters have names");
        }
        root
    }

    pub(super) fn problem(&mut self, path: &str, message: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem {
                path: path.to_owned(),
                message: message.into(),
            });
        }
    }

    pub(super) fn keyword_problem(&mut self, source: &Source<'_>, keyword: &str, message: &str) {
        let keyword = text::fit(keyword, 80);
        match source.columns {
            None => {
                let path = Source::within(&source.path, &keyword).path;
                self.problem(&path, format!("`{keyword}` {message}"));
            }
            Some(columns) => {
                let column = columns.get(&keyword).copied().unwrap_or(1);
                self.problem(
                    &source.path,
                    format!("column {column}: `{keyword}` {message}"),
                );
            }
        }
    }

    /// Counts one more node of the schema. Returns false, with an error, if the schema has too many nodes or is
    /// nested too deep.
    pub(super) fn enter(&mut self, path: &str, depth: usize) -> bool {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            self.problem(
                path,
                format!("the schema is nested more than {MAX_DEPTH} levels deep"),
            );
            return false;
        }
        if self.nodes == MAX_NODES + 1 {
            self.problem(path, format!("the schema has more than {MAX_NODES} types"));
        }
        self.nodes <= MAX_NODES
    }

    /// Parses the keywords of a schema for one value.
    pub(super) fn node(&mut self, keywords: &Object, source: &Source<'_>, depth: usize) -> Node {
        if !self.enter(&source.path, depth) {
            return Node::default();
        }
        self.vocabulary(keywords, source);
        let mut node = Node {
            kind: self.kind(keywords, source),
            nullable: self.flag(keywords, "nullable", source) || self.branch,
            ..Node::default()
        };
        self.applicable(node.kind, keywords, source);
        self.fields(&mut node, keywords, source, depth);
        if let Some(items) = keywords.get("items") {
            node.items = self.child(items, source, "items", depth).map(Box::new);
        }
        self.numeric_rules(&mut node, keywords, source);
        self.textual_rules(&mut node, keywords, source);
        self.count_rules(&mut node, keywords, source);
        self.alternatives(&mut node, keywords, source, depth);
        self.choices(&mut node, keywords, source);
        self.read_default(&mut node, keywords, source);
        node
    }

    fn vocabulary(&mut self, keywords: &Object, source: &Source<'_>) {
        let known = || {
            [&NUMERIC[..], &TEXTUAL, &LISTS, &MAPS, &GENERAL]
                .into_iter()
                .flatten()
                .copied()
        };
        for keyword in keywords.keys() {
            if keyword == "$ref" {
                self.keyword_problem(
                    source,
                    keyword,
                    "is not supported; write the schema in its place",
                );
            } else if !keyword.starts_with("x-") && !known().any(|known| known == keyword) {
                let hint = did_you_mean(keyword, known());
                self.keyword_problem(source, keyword, &format!("is not a known keyword{hint}"));
            }
        }
    }

    fn kind(&mut self, keywords: &Object, source: &Source<'_>) -> Kind {
        if self.flag(keywords, INT_OR_STRING, source) {
            if keywords.contains_key("type") {
                self.keyword_problem(
                    source,
                    "type",
                    "is not needed beside x-kubernetes-int-or-string",
                );
            }
            return Kind::IntegerOrText;
        }
        match keywords.get("type") {
            Some(Value::String(name)) => match name.as_str() {
                "string" => Kind::Text,
                "integer" => Kind::Integer,
                "number" => Kind::Number,
                "boolean" => Kind::Boolean,
                "array" => Kind::List,
                "object" => Kind::Map,
                other => {
                    let names = ["string", "integer", "number", "boolean", "array", "object"];
                    let message = format!(
                        "is {:?}; expected one of {}{}",
                        text::fit(other, 40),
                        names.join(", "),
                        did_you_mean(other, names)
                    );
                    self.keyword_problem(source, "type", &message);
                    Kind::Any
                }
            },
            Some(other) => {
                let message = format!(
                    "is {}; expected one name of a type, and nullable: true where null is allowed",
                    type_of(other)
                );
                self.keyword_problem(source, "type", &message);
                Kind::Any
            }
            None if self.branch => Kind::Any,
            None if keywords.contains_key("properties")
                || keywords.contains_key("additionalProperties") =>
            {
                Kind::Map
            }
            None if keywords.contains_key("items") => Kind::List,
            None => Kind::Any,
        }
    }

    /// Reports the keywords that have no effect because they are for other types.
    fn applicable(&mut self, kind: Kind, keywords: &Object, source: &Source<'_>) {
        let numeric = [Kind::Integer, Kind::Number, Kind::IntegerOrText];
        let textual = [Kind::Text, Kind::IntegerOrText];
        let groups: [(&[&str], &[Kind], &str); 4] = [
            (&NUMERIC, &numeric, "integers and numbers"),
            (&TEXTUAL, &textual, "strings"),
            (&LISTS, &[Kind::List], "lists"),
            (&MAPS, &[Kind::Map], "objects"),
        ];
        for (names, kinds, what) in groups {
            for name in names {
                if keywords.contains_key(*name) && kind != Kind::Any && !kinds.contains(&kind) {
                    let message = format!("applies to {what}, but this is {}", kind.wanted());
                    self.keyword_problem(source, name, &message);
                }
            }
        }
    }

    fn fields(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>, depth: usize) {
        let properties = keywords.get("properties");
        match properties {
            Some(Value::Object(properties)) => {
                let parent = Source::within(&source.path, "properties");
                for (name, schema) in properties {
                    if let Some(field) = self.child(schema, &parent, name, depth) {
                        node.fields.insert(name.clone(), field);
                    }
                }
            }
            Some(other) => {
                let message = format!(
                    "is {}; expected an object of names and schemas",
                    type_of(other)
                );
                self.keyword_problem(source, "properties", &message);
            }
            None => {}
        }
        node.others = match keywords.get("additionalProperties") {
            Some(Value::Bool(true)) => Others::Keep,
            Some(Value::Bool(false)) => Others::Drop,
            Some(schema) => self
                .child(schema, source, "additionalProperties", depth)
                .map_or(Others::Keep, |node| Others::Each(Box::new(node))),
            None if properties.is_some() && !self.branch => Others::Drop,
            None => Others::Keep,
        };
        if self.flag(keywords, PRESERVE, source) && matches!(node.others, Others::Drop) {
            node.others = Others::Keep;
        }
        match keywords.get("required") {
            Some(Value::Array(names)) if names.iter().all(Value::is_string) => {
                for name in names.iter().filter_map(Value::as_str) {
                    let is_known =
                        node.fields.contains_key(name) || !matches!(node.others, Others::Drop);
                    if !is_known {
                        let hint = did_you_mean(name, node.fields.keys().map(String::as_str));
                        let message = format!(
                            "names {:?}, which properties does not have{hint}",
                            text::fit(name, 80)
                        );
                        self.keyword_problem(source, "required", &message);
                    }
                    node.required.push(name.to_owned());
                }
            }
            Some(_) => self.keyword_problem(
                source,
                "required",
                "has to be a list of the names of properties",
            ),
            None => {}
        }
    }

    pub(super) fn child(
        &mut self,
        schema: &Value,
        source: &Source<'_>,
        key: &str,
        depth: usize,
    ) -> Option<Node> {
        // In the shorthand, a nested type is in the same text, so it has the same path.
        let inner = match source.columns {
            Some(_) => Source {
                path: source.path.clone(),
                columns: source.columns,
            },
            None => Source::within(&source.path, key),
        };
        match schema {
            Value::Object(keywords) => Some(self.node(keywords, &inner, depth + 1)),
            other => {
                self.problem(
                    &inner.path,
                    format!("is {}; expected a schema", type_of(other)),
                );
                None
            }
        }
    }
}
