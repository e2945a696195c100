//! Parses the keywords of a schema, such as limits, patterns, enums, alternatives and defaults.

use std::cmp::Ordering;

use kube_values::format::STRICT as FORMATS;
use kube_values::limit::{Bound, Count, compare};
use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use super::fit::Fit;
use super::node::{DefaultValue, Kind, Node, Rule};
use super::openapi::{Reader, Source};
use super::words::{Shown, did_you_mean, type_of};
use super::{MAX_DEPTH, MAX_PATTERNS, is_deeper};
use crate::api::Object;
use crate::text;

/// The formats for numbers. Only `int32` is checked: the number must be an integer of 32 bits.
const NUMERIC_FORMATS: [&str; 4] = ["double", "float", "int32", "int64"];

/// The size limits for a compiled pattern, in bytes, in ascending order. The next limit is tried if compiling with
/// one fails. All tried limits count for the total size of patterns.
const PATTERN_SIZES: [usize; 3] = [64 << 10, 512 << 10, 4 << 20];

impl Reader {
    pub(super) fn numeric_rules(
        &mut self,
        node: &mut Node,
        keywords: &Object,
        source: &Source<'_>,
    ) {
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
                    "of {} is above the maximum of {}: no value fits",
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

    /// Parses a minimum or maximum. The exclusive keyword contains a number, or `true` if it applies to the number of
    /// the inclusive keyword.
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
                // The inclusive and the exclusive limit are both given, so the narrower one is used.
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

    pub(super) fn textual_rules(
        &mut self,
        node: &mut Node,
        keywords: &Object,
        source: &Source<'_>,
    ) {
        if let Some(pattern) = self.text(keywords, "pattern", source) {
            match self.pattern(pattern) {
                Ok(pattern) => node.rules.push(Rule::Pattern(pattern)),
                Err(message) => self.keyword_problem(source, "pattern", &message),
            }
        }
        let Some(name) = self.text(keywords, "format", source) else {
            return;
        };
        let is_numeric = NUMERIC_FORMATS.contains(&name);
        let check = FORMATS.iter().find(|(known, _)| *known == name);
        let fits = match node.kind {
            Kind::Any | Kind::IntegerOrText => true,
            Kind::Text => !is_numeric,
            Kind::Integer | Kind::Number => check.is_none(),
            _ => false,
        };
        if !is_numeric && check.is_none() {
            let known: Vec<&str> = FORMATS
                .iter()
                .map(|(name, _)| *name)
                .chain(NUMERIC_FORMATS)
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
                &format!("{name} does not apply to {}", node.kind.wanted()),
            );
        } else if name == "int32" {
            node.rules.push(Rule::Int32);
        } else if let Some((name, check)) = check {
            node.rules.push(Rule::Format(name, *check));
        }
    }

    fn pattern(&mut self, source: &str) -> Result<Regex, String> {
        for size in PATTERN_SIZES {
            // The size is added even if the compilation failed, because the failed compilation takes as much time.
            self.pattern_bytes += size;
            if self.pattern_bytes > MAX_PATTERNS {
                return Err(
                    "is too large: all patterns of the schema together are over the limit"
                        .to_owned(),
                );
            }
            match RegexBuilder::new(source)
                .size_limit(size)
                .dfa_size_limit(1 << 20)
                .nest_limit(50)
                .build()
            {
                Ok(regex) => return Ok(regex),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    let error = error.to_string();
                    let last = error.lines().last().unwrap_or_default();
                    let last = last.trim_start_matches("error: ");
                    return Err(format!(
                        "is not a regular expression: {}",
                        text::fit(last, 120)
                    ));
                }
            }
        }
        Err("is too large a regular expression".to_owned())
    }

    pub(super) fn count_rules(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
        type Make = fn(Count) -> Rule;
        let pairs: [(&str, &str, Make); 3] = [
            ("minLength", "maxLength", Rule::Length),
            ("minItems", "maxItems", Rule::Items),
            ("minProperties", "maxProperties", Rule::Properties),
        ];
        for (lower, upper, rule) in pairs {
            let least = self.count(keywords, lower, source);
            let most = self.count(keywords, upper, source);
            if let (Some(least), Some(most)) = (least, most)
                && least > most
            {
                let message = format!("of {least} is above the {upper} of {most}: no value fits");
                self.keyword_problem(source, lower, &message);
            }
            if least.is_some() || most.is_some() {
                node.rules.push(rule(Count { least, most }));
            }
        }
        if self.flag(keywords, "uniqueItems", source) {
            node.rules.push(Rule::UniqueItems);
        }
    }

    pub(super) fn alternatives(
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
                                format!("is {}; expected a schema", type_of(other)),
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

    pub(super) fn choices(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
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
                    "has {}, which is {}; expected {}",
                    Shown(choice),
                    type_of(choice),
                    node.kind.wanted()
                );
                self.keyword_problem(source, "enum", &message);
            }
        }
        node.rules.push(Rule::Enum(choices));
    }

    pub(super) fn read_default(&mut self, node: &mut Node, keywords: &Object, source: &Source<'_>) {
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
                "is not allowed in allOf, anyOf, oneOf and not: they only check values",
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

    pub(super) fn flag(&mut self, keywords: &Object, keyword: &str, source: &Source<'_>) -> bool {
        match keywords.get(keyword) {
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                let message = format!("is {}; expected true or false", Shown(other));
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
                let message = format!("is {}; expected a number", Shown(other));
                self.keyword_problem(source, keyword, &message);
                None
            }
        }
    }

    fn count(&mut self, keywords: &Object, keyword: &str, source: &Source<'_>) -> Option<u64> {
        let value = keywords.get(keyword)?;
        let count = value.as_u64();
        if count.is_none() {
            let message = format!("is {}; expected an integer from 0", Shown(value));
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
            let message = format!("is {}; expected a string", Shown(value));
            self.keyword_problem(source, keyword, &message);
        }
        text
    }
}

/// Sets the default of an object schema to an object with the defaults of its fields, if this object is valid.
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

fn filling(value: Value) -> DefaultValue {
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
    DefaultValue { value, weight }
}
