//! Checks values with a schema. Before the check, sets defaults, removes unknown keys and converts whole numbers to
//! integers.

use std::collections::HashSet;
use std::fmt;

use kube_values::limit::{Count, is_multiple, is_same, whole};
use serde_json::Value;

use super::node::{Kind, Node, Others, Rule};
use super::words::{Place, Shown, did_you_mean, type_of};
use super::{MAX_FILLED, MAX_PROBLEMS, MAX_STEPS, Problem};
use crate::api::Object;
use crate::text;

const TOO_MANY: &str = "there are too many values to check";

/// The state and the results of checking the parameters of one definition.
#[derive(Default)]
pub(super) struct Fit {
    pub(super) dropped: Vec<Problem>,
    pub(super) errors: Vec<Problem>,
    /// Whether this check only tries an alternative (`anyOf`, `oneOf`, `not`), so that it reports no problems.
    quiet: bool,
    failed: bool,
    exhausted: bool,
    steps: usize,
    filled: usize,
}

impl Fit {
    /// Sets the defaults in a value, and checks the value with a schema.
    pub(super) fn fit(&mut self, node: &Node, value: &mut Value) {
        self.settle(node, value, &Place::Whole);
        self.check(node, value, &Place::Whole);
    }

    fn settle(&mut self, node: &Node, value: &mut Value, place: &Place<'_>) {
        if !self.step(1, place) {
            return;
        }
        node.kind.settle(value);
        match value {
            Value::Array(items) => {
                if let Some(node) = &node.items {
                    for (at, item) in items.iter_mut().enumerate() {
                        self.settle(node, item, &Place::Item(place, at));
                    }
                }
            }
            Value::Object(map) if matches!(node.kind, Kind::Map) => {
                self.settle_fields(node, map, place);
            }
            _ => {}
        }
    }

    fn settle_fields(&mut self, node: &Node, map: &mut Object, place: &Place<'_>) {
        map.retain(|key, value| {
            let at = Place::Key(place, key);
            let inner = match (node.fields.get(key), &node.others) {
                (Some(inner), _) => inner,
                (None, Others::Each(inner)) => inner,
                (None, Others::Keep) => return true,
                (None, Others::Drop) => {
                    self.drop(key, node, &at);
                    return false;
                }
            };
            if value.is_null() && !inner.nullable {
                return false;
            }
            self.settle(inner, value, &at);
            true
        });
        for (key, inner) in &node.fields {
            let Some(default) = &inner.default else {
                continue;
            };
            if map.contains_key(key) {
                continue;
            }
            self.filled = self.filled.saturating_add(default.weight);
            if self.filled > MAX_FILLED {
                self.exhaust(place, "the defaults of all its items are too large");
                return;
            }
            map.insert(key.clone(), default.value.clone());
        }
    }

    fn drop(&mut self, key: &str, node: &Node, place: &Place<'_>) {
        if self.dropped.len() < MAX_PROBLEMS {
            let hint = did_you_mean(key, node.fields.keys().map(String::as_str));
            self.dropped.push(Problem {
                path: place.to_string(),
                message: format!("the schema does not have this field, so bowline drops it{hint}"),
            });
        }
    }

    fn check(&mut self, node: &Node, value: &Value, place: &Place<'_>) {
        if !self.step(1, place) || value.is_null() && node.nullable {
            return;
        }
        if !node.kind.is(value) {
            let wanted = node.kind.wanted();
            if value.is_u64() && node.kind == Kind::Integer {
                self.fail(
                    place,
                    format!(
                        "{} is too large; expected an integer of 64 bits",
                        Shown(value)
                    ),
                );
            } else if value.is_null() {
                self.fail(place, format!("is null; expected {wanted}"));
            } else {
                let found = type_of(value);
                self.fail(
                    place,
                    format!("{} is {found}; expected {wanted}", Shown(value)),
                );
            }
            return;
        }
        match value {
            Value::Object(map) => self.check_fields(node, map, place),
            Value::Array(items) => {
                if let Some(node) = &node.items {
                    for (at, item) in items.iter().enumerate() {
                        self.check(node, item, &Place::Item(place, at));
                    }
                }
            }
            _ => {}
        }
        for rule in &node.rules {
            self.rule(rule, value, place);
        }
    }

    fn check_fields(&mut self, node: &Node, map: &Object, place: &Place<'_>) {
        for key in &node.required {
            if !map.contains_key(key) {
                let wanted = node
                    .fields
                    .get(key)
                    .map_or("anything", |field| field.kind.wanted());
                self.fail(
                    &Place::Key(place, key),
                    format!("is missing; expected {wanted}"),
                );
            }
        }
        for (key, value) in map {
            let inner = match (node.fields.get(key), &node.others) {
                (Some(inner), _) => inner,
                (None, Others::Each(inner)) => inner,
                _ => continue,
            };
            self.check(inner, value, &Place::Key(place, key));
        }
    }

    fn rule(&mut self, rule: &Rule, value: &Value, place: &Place<'_>) {
        let broken = match rule {
            Rule::AllOf(nodes) => {
                for node in nodes {
                    self.check(node, value, place);
                }
                None
            }
            Rule::AnyOf(nodes) => {
                (!nodes.iter().any(|node| self.holds(node, value, place))).then(|| {
                    let shown = Shown(value);
                    format!("{shown} fits none of the {} schemas of anyOf", nodes.len())
                })
            }
            Rule::OneOf(nodes) => {
                let fitting = nodes
                    .iter()
                    .filter(|node| self.holds(node, value, place))
                    .count();
                (fitting != 1).then(|| {
                    let shown = Shown(value);
                    let all = nodes.len();
                    format!(
                        "{shown} fits {fitting} of the {all} schemas of oneOf; expected exactly one"
                    )
                })
            }
            Rule::Not(node) => self
                .holds(node, value, place)
                .then(|| format!("{} fits the schema of not, which it must not", Shown(value))),
            Rule::UniqueItems => {
                if let Some((at, item)) = value.as_array().and_then(|items| twice(items)) {
                    let message = format!("{} appears twice; the items must differ", Shown(item));
                    self.fail(&Place::Item(place, at), message);
                }
                None
            }
            Rule::Enum(allowed) if !self.step(allowed.len(), place) => None,
            rule => broken(rule, value),
        };
        if let Some(message) = broken {
            self.fail(place, message);
        }
    }

    /// Returns whether a value matches an alternative of the schema, without reporting problems.
    fn holds(&mut self, node: &Node, value: &Value, place: &Place<'_>) -> bool {
        let mut trial = Fit {
            quiet: true,
            steps: self.steps,
            exhausted: self.exhausted,
            ..Fit::default()
        };
        trial.check(node, value, &Place::Whole);
        self.steps = trial.steps;
        if trial.exhausted {
            self.exhaust(place, TOO_MANY);
        }
        !trial.failed
    }

    fn fail(&mut self, place: &Place<'_>, message: String) {
        self.failed = true;
        if !self.quiet && self.errors.len() < MAX_PROBLEMS {
            self.errors.push(Problem {
                path: place.to_string(),
                message,
            });
        }
    }

    /// Adds steps to the number of steps of this check. Returns false if the limit [`MAX_STEPS`] is exceeded.
    fn step(&mut self, steps: usize, place: &Place<'_>) -> bool {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            self.exhaust(place, TOO_MANY);
        }
        !self.exhausted
    }

    fn exhaust(&mut self, place: &Place<'_>, message: &str) {
        if !self.exhausted {
            self.exhausted = true;
            self.fail(place, message.to_owned());
        }
    }
}

/// Returns a message if a value breaks a rule; otherwise None. A rule that is for another type than the value's type
/// is never broken.
fn broken(rule: &Rule, value: &Value) -> Option<String> {
    let shown = Shown(value);
    match (rule, value) {
        (Rule::Enum(allowed), _) => (!allowed.iter().any(|one| is_same(one, value)))
            .then(|| format!("{shown} is not allowed; expected {}", Choices(allowed))),
        (Rule::Least(bound), Value::Number(number)) => {
            let words = if bound.exclusive {
                "more than"
            } else {
                "at least"
            };
            (!bound.admits_above(number))
                .then(|| format!("{shown} is too small; expected {words} {}", bound.limit))
        }
        (Rule::Most(bound), Value::Number(number)) => {
            let words = if bound.exclusive {
                "less than"
            } else {
                "at most"
            };
            (!bound.admits_below(number))
                .then(|| format!("{shown} is too large; expected {words} {}", bound.limit))
        }
        (Rule::MultipleOf(step), Value::Number(number)) => {
            (!is_multiple(number, step)).then(|| format!("{shown} is not a multiple of {step}"))
        }
        (Rule::Int32, Value::Number(number)) => {
            let fits = number
                .as_i64()
                .is_some_and(|number| i32::try_from(number).is_ok());
            (!fits).then(|| {
                format!("{shown} is not an integer of 32 bits, which the format int32 requires")
            })
        }
        (Rule::Length(limits), Value::String(text)) => {
            counted(limits, text.chars().count(), "character")
                .map(|message| format!("{shown} {message}"))
        }
        (Rule::Pattern(pattern), Value::String(text)) => (!pattern.is_match(text)).then(|| {
            let source = text::fit(pattern.as_str(), 80);
            format!("{shown} does not match the pattern {source}")
        }),
        (Rule::Format(name, check), Value::String(text)) => {
            (!check(text)).then(|| format!("{shown} does not have the format {name}"))
        }
        (Rule::Items(limits), Value::Array(items)) => counted(limits, items.len(), "item"),
        (Rule::Properties(limits), Value::Object(map)) => counted(limits, map.len(), "key"),
        _ => None,
    }
}

fn counted(limits: &Count, count: usize, what: &str) -> Option<String> {
    let too_few = limits.too_few(count).map(|least| ("at least", least));
    let (words, limit) = too_few.or_else(|| Some(("at most", limits.too_many(count)?)))?;
    let plural = if count == 1 { "" } else { "s" };
    Some(format!(
        "has {count} {what}{plural}; expected {words} {limit}"
    ))
}

/// Returns the first item of a list that is equal to an earlier item, with its index; None if all items differ.
fn twice(items: &[Value]) -> Option<(usize, &Value)> {
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().enumerate().find(|(_, item)| {
        // The float is written as an integer, because 1 and 1.0 count as equal.
        let written = match item {
            Value::Number(number) if number.is_f64() => {
                number.as_f64().and_then(whole).map(Value::from)
            }
            _ => None,
        };
        !seen.insert(written.as_ref().unwrap_or(item).to_string())
    })
}

struct Choices<'a>(&'a [Value]);

impl fmt::Display for Choices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        if let [one] = self.0 {
            return write!(f, "{}", Shown(one));
        }
        f.write_str("one of ")?;
        for (at, value) in self.0.iter().take(SHOWN).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{}", Shown(value))?;
        }
        if self.0.len() > SHOWN {
            write!(f, " and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}
