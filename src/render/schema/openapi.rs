//! OpenAPI v3 schemas, and the meaning of the keywords that the shorthand shares with them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use super::fit::{Fit, compare};
use super::node::{Bound, Filling, Kind, Node, Others, Rule};
use super::words::{Place, Shown, did_you_mean, type_of};
use super::{MAX_DEPTH, MAX_NODES, MAX_PATTERNS, MAX_PROBLEMS, Problem, format, is_deeper};
use crate::api::Object;
use crate::text;

/// The keywords with what they are for; the last group is for every type.
const NUMERIC: [&str; 5] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
const TEXTUAL: [&str; 3] = ["minLength", "maxLength", "pattern"];
const LISTS: [&str; 4] = ["items", "minItems", "maxItems", "uniqueItems"];
const MAPS: [&str; 6] = [
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "x-kubernetes-preserve-unknown-fields",
];
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

/// Compiled sizes of patterns that are tried in turn; the first that suffices is paid for.
const PATTERN_SIZES: [usize; 3] = [64 << 10, 512 << 10, 4 << 20];

/// Finds the OpenAPI schema in the parameters of a definition, if they are one, and its path.
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

/// Where keywords stand: in a schema, or in a text of the shorthand with the column of each.
pub(super) struct Source<'a> {
    pub(super) path: String,
    pub(super) columns: Option<&'a BTreeMap<String, usize>>,
}

impl Source<'_> {
    fn within(path: &str, key: &str) -> Source<'static> {
        let parent = match path {
            "" => return Source::at(Place::Key(&Place::Whole, key).to_string()),
            path => path,
        };
        let key = Place::Key(&Place::Whole, key).to_string();
        let dot = if key.starts_with('[') { "" } else { "." };
        Source::at(format!("{parent}{dot}{key}"))
    }

    fn at(path: String) -> Source<'static> {
        Source {
            path,
            columns: None,
        }
    }
}

/// Reads schemas and collects what is wrong with them.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<Problem>,
    nodes: usize,
    pattern_bytes: usize,
    /// An alternative is read: it checks, and neither fills in nor takes away.
    branch: bool,
}

impl Reader {
    /// Reads the schema of a whole set of parameters.
    pub(super) fn root(&mut self, path: &str, keywords: &Object) -> Node {
        let source = Source::at(path.to_owned());
        for keyword in ["default", "nullable"] {
            if keywords.contains_key(keyword) {
                self.keyword_problem(
                    &source,
                    keyword,
                    "is for parameters, not for all of them together",
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

    fn keyword_problem(&mut self, source: &Source<'_>, keyword: &str, message: &str) {
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

    /// Counts a node; false once there are too many or they are too deep.
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

    /// Reads the keywords of one schema.
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
        self.default(&mut node, keywords, source);
        node
    }

    fn vocabulary(&mut self, keywords: &Object, source: &Source<'_>) {
        let known = [&NUMERIC[..], &TEXTUAL, &LISTS, &MAPS, &GENERAL].concat();
        for keyword in keywords.keys() {
            if keyword == "$ref" {
                self.keyword_problem(source, keyword, "is not followed; write the schema out");
            } else if !keyword.starts_with("x-") && !known.contains(&keyword.as_str()) {
                let hint = did_you_mean(keyword, known.iter().copied());
                self.keyword_problem(
                    source,
                    keyword,
                    &format!("is no keyword that is understood here{hint}"),
                );
            }
        }
    }

    fn kind(&mut self, keywords: &Object, source: &Source<'_>) -> Kind {
        if self.flag(keywords, INT_OR_STRING, source) {
            if keywords.contains_key("type") {
                self.keyword_problem(
                    source,
                    "type",
                    "stands beside x-kubernetes-int-or-string, which says it already",
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
                        "is {:?}; wanted one of {}{}",
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
                    "is {}; wanted one name of a type, and nullable: true where null is allowed",
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

    /// Refuses keywords that say nothing about the type.
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
                    let message = format!("is for {what}, and this is {}", kind.wanted());
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
                    "is {}; wanted an object of names and schemas",
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

    fn child(
        &mut self,
        schema: &Value,
        source: &Source<'_>,
        key: &str,
        depth: usize,
    ) -> Option<Node> {
        // What the shorthand nests stands in one text, under one path.
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
                    format!("is {}; wanted a schema", type_of(other)),
                );
                None
            }
        }
    }

    fn numeric_rules(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
        let least = self.bound(
            keywords,
            "minimum",
            "exclusiveMinimum",
            Ordering::Greater,
            source,
        );
        let most = self.bound(
            keywords,
            "maximum",
            "exclusiveMaximum",
            Ordering::Less,
            source,
        );
        if let (Some(least), Some(most)) = (&least, &most) {
            let order = compare(&least.limit, &most.limit);
            let is_empty = order == Ordering::Greater
                || order == Ordering::Equal && (least.exclusive || most.exclusive);
            if is_empty {
                let keyword = if keywords.contains_key("minimum") {
                    "minimum"
                } else {
                    "exclusiveMinimum"
                };
                let message = format!(
                    "of {} is above the maximum of {}: nothing fits",
                    least.limit, most.limit
                );
                self.keyword_problem(source, keyword, &message);
            }
        }
        node.rules.extend(least.map(Rule::Least));
        node.rules.extend(most.map(Rule::Most));
        if let Some(step) = self.number(keywords, "multipleOf", source) {
            if step.as_f64().is_some_and(|step| step > 0.0) {
                node.rules.push(Rule::MultipleOf(step));
            } else {
                self.keyword_problem(source, "multipleOf", "has to be above 0");
            }
        }
    }

    /// Reads a limit; its exclusive form is a number, or `true` beside the other.
    fn bound(
        &mut self,
        keywords: &Object,
        inclusive: &str,
        exclusive: &str,
        side: Ordering,
        source: &Source<'_>,
    ) -> Option<Bound> {
        let limit = self.number(keywords, inclusive, source);
        match keywords.get(exclusive) {
            Some(Value::Bool(is_exclusive)) => {
                if limit.is_none() && *is_exclusive {
                    self.keyword_problem(
                        source,
                        exclusive,
                        &format!("needs a number, or `{inclusive}` beside it"),
                    );
                }
                limit.map(|limit| Bound {
                    limit,
                    exclusive: *is_exclusive,
                })
            }
            Some(_) => {
                let strict = self.number(keywords, exclusive, source)?;
                // Of two limits the narrower one counts.
                match limit {
                    Some(limit) if compare(&limit, &strict) == side => Some(Bound {
                        limit,
                        exclusive: false,
                    }),
                    _ => Some(Bound {
                        limit: strict,
                        exclusive: true,
                    }),
                }
            }
            None => limit.map(|limit| Bound {
                limit,
                exclusive: false,
            }),
        }
    }

    fn textual_rules(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
        if let Some(pattern) = self.text(keywords, "pattern", source) {
            match self.pattern(pattern) {
                Ok(pattern) => node.rules.push(Rule::Pattern(pattern)),
                Err(message) => self.keyword_problem(source, "pattern", &message),
            }
        }
        let Some(name) = self.text(keywords, "format", source) else {
            return;
        };
        let is_numeric = format::NUMBERS.contains(&name);
        let check = format::TEXTS.iter().find(|(known, _)| *known == name);
        let fits = match node.kind {
            Kind::Any | Kind::IntegerOrText => true,
            Kind::Text => !is_numeric,
            Kind::Integer | Kind::Number => check.is_none(),
            _ => false,
        };
        if !is_numeric && check.is_none() {
            let known: Vec<&str> = format::TEXTS
                .iter()
                .map(|(name, _)| *name)
                .chain(format::NUMBERS)
                .collect();
            let message = format!(
                "{:?} is unknown{}; known are {}",
                text::fit(name, 40),
                did_you_mean(name, known.iter().copied()),
                known.join(", ")
            );
            self.keyword_problem(source, "format", &message);
        } else if !fits {
            self.keyword_problem(
                source,
                "format",
                &format!("{name} is not for {}", node.kind.wanted()),
            );
        } else if name == "int32" {
            node.rules.push(Rule::Int32);
        } else if let Some((name, check)) = check {
            node.rules.push(Rule::Format(name, *check));
        }
    }

    fn pattern(&mut self, source: &str) -> Result<Regex, String> {
        for size in PATTERN_SIZES {
            match RegexBuilder::new(source)
                .size_limit(size)
                .dfa_size_limit(1 << 20)
                .nest_limit(50)
                .build()
            {
                Ok(regex) => {
                    self.pattern_bytes += size;
                    if self.pattern_bytes > MAX_PATTERNS {
                        return Err(
                            "is one too many: the patterns of the schema are too large together"
                                .to_owned(),
                        );
                    }
                    return Ok(regex);
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    let error = error.to_string();
                    let last = error.lines().last().unwrap_or_default();
                    let last = last.trim_start_matches("error: ");
                    return Err(format!(
                        "is no regular expression: {}",
                        text::fit(last, 120)
                    ));
                }
            }
        }
        Err("is too large a regular expression".to_owned())
    }

    fn count_rules(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
        type Make = fn(usize) -> Rule;
        let pairs: [(&str, Make, &str, Make); 3] = [
            ("minLength", Rule::MinLength, "maxLength", Rule::MaxLength),
            ("minItems", Rule::MinItems, "maxItems", Rule::MaxItems),
            (
                "minProperties",
                Rule::MinProperties,
                "maxProperties",
                Rule::MaxProperties,
            ),
        ];
        for (lower, at_least, upper, at_most) in pairs {
            let least = self.count(keywords, lower, source);
            let most = self.count(keywords, upper, source);
            if let (Some(least), Some(most)) = (least, most)
                && least > most
            {
                let message = format!("of {least} is above the {upper} of {most}: nothing fits");
                self.keyword_problem(source, lower, &message);
            }
            node.rules.extend(least.map(at_least));
            node.rules.extend(most.map(at_most));
        }
        if self.flag(keywords, "uniqueItems", source) {
            node.rules.push(Rule::UniqueItems);
        }
    }

    fn alternatives(
        &mut self,
        node: &mut Node,
        keywords: &Object,
        source: &Source<'_>,
        depth: usize,
    ) {
        let outer = std::mem::replace(&mut self.branch, true);
        type Make = fn(Vec<Node>) -> Rule;
        let lists: [(&str, Make); 3] = [
            ("allOf", Rule::AllOf),
            ("anyOf", Rule::AnyOf),
            ("oneOf", Rule::OneOf),
        ];
        for (keyword, make) in lists {
            match keywords.get(keyword) {
                Some(Value::Array(schemas)) if !schemas.is_empty() => {
                    let parent = Source::within(&source.path, keyword).path;
                    let mut nodes = Vec::new();
                    for (at, schema) in schemas.iter().enumerate() {
                        let inner = Source::at(format!("{parent}[{at}]"));
                        match schema {
                            Value::Object(keywords) => {
                                nodes.push(self.node(keywords, &inner, depth + 1))
                            }
                            other => self.problem(
                                &inner.path,
                                format!("is {}; wanted a schema", type_of(other)),
                            ),
                        }
                    }
                    node.rules.push(make(nodes));
                }
                Some(_) => self.keyword_problem(
                    source,
                    keyword,
                    "has to be a list of schemas, and not empty",
                ),
                None => {}
            }
        }
        if let Some(schema) = keywords.get("not")
            && let Some(inner) = self.child(schema, source, "not", depth)
        {
            node.rules.push(Rule::Not(Box::new(inner)));
        }
        self.branch = outer;
    }

    fn choices(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
        let mut choices = match keywords.get("enum") {
            None => return,
            Some(Value::Array(choices)) if !choices.is_empty() => choices.clone(),
            Some(_) => {
                self.keyword_problem(source, "enum", "has to be a list of values, and not empty");
                return;
            }
        };
        for choice in &mut choices {
            node.kind.settle(choice);
            let is_fine = node.kind.is(choice) || choice.is_null() && node.nullable;
            if is_deeper(choice, MAX_DEPTH) {
                self.keyword_problem(source, "enum", "has a value that is nested too deep");
                return;
            }
            if !is_fine {
                let message = format!(
                    "has {}, which is {}; wanted {}",
                    Shown(choice),
                    type_of(choice),
                    node.kind.wanted()
                );
                self.keyword_problem(source, "enum", &message);
            }
        }
        node.rules.push(Rule::Enum(choices));
    }

    fn default(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
        let Some(default) = keywords.get("default") else {
            if !self.branch {
                imply(node);
            }
            return;
        };
        if self.branch {
            self.keyword_problem(
                source,
                "default",
                "is not for allOf, anyOf, oneOf and not, which only check",
            );
            return;
        }
        if is_deeper(default, MAX_DEPTH) {
            self.keyword_problem(source, "default", "is nested too deep");
            return;
        }
        if default.is_null() && !node.nullable {
            self.keyword_problem(source, "default", "is null, and nullable is not true");
            return;
        }
        let mut value = default.clone();
        let mut fit = Fit::default();
        fit.fit(node, &mut value);
        match fit.errors.iter().chain(&fit.dropped).next() {
            Some(problem) => {
                let at = match problem.path.as_str() {
                    "" => String::new(),
                    path => format!("at {path}: "),
                };
                let message = format!("does not fit: {at}{}", problem.message);
                self.keyword_problem(source, "default", &message);
            }
            None => node.default = Some(filling(value)),
        }
    }

    fn flag(&mut self, keywords: &Object, keyword: &str, source: &Source<'_>) -> bool {
        match keywords.get(keyword) {
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                let message = format!("is {}; wanted true or false", Shown(other));
                self.keyword_problem(source, keyword, &message);
                false
            }
            None => false,
        }
    }

    fn number(&mut self, keywords: &Object, keyword: &str, source: &Source<'_>) -> Option<Number> {
        match keywords.get(keyword)? {
            Value::Number(number) => Some(number.clone()),
            other => {
                let message = format!("is {}; wanted a number", Shown(other));
                self.keyword_problem(source, keyword, &message);
                None
            }
        }
    }

    fn count(&mut self, keywords: &Object, keyword: &str, source: &Source<'_>) -> Option<usize> {
        let value = keywords.get(keyword)?;
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
        if count.is_none() {
            let message = format!("is {}; wanted an integer from 0", Shown(value));
            self.keyword_problem(source, keyword, &message);
        }
        count
    }

    fn text<'a>(
        &mut self,
        keywords: &'a Object,
        keyword: &str,
        source: &Source<'_>,
    ) -> Option<&'a str> {
        let value = keywords.get(keyword)?;
        let text = value.as_str();
        if text.is_none() {
            let message = format!("is {}; wanted a string", Shown(value));
            self.keyword_problem(source, keyword, &message);
        }
        text
    }
}

/// Gives an object the defaults of its fields as its own, where it fits with them alone.
pub(super) fn imply(node: &mut Node) {
    let fields: Object = node
        .fields
        .iter()
        .filter_map(|(name, field)| Some((name.clone(), field.default.as_ref()?.value.clone())))
        .collect();
    if fields.is_empty() {
        return;
    }
    let mut value = Value::Object(fields);
    let mut fit = Fit::default();
    fit.fit(node, &mut value);
    if fit.errors.is_empty() {
        node.default = Some(filling(value));
    }
}

fn filling(value: Value) -> Filling {
    let mut weight = 0usize;
    let mut open = vec![&value];
    while let Some(value) = open.pop() {
        weight += 16;
        match value {
            Value::String(text) => weight += text.len(),
            Value::Array(items) => open.extend(items),
            Value::Object(map) => {
                weight += map.keys().map(String::len).sum::<usize>();
                open.extend(map.values());
            }
            _ => {}
        }
    }
    Filling { value, weight }
}
