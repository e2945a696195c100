//! Evaluates the CEL validation rules (`x-kubernetes-validations`) in the schema of a CRD.

use std::collections::BTreeMap;

use bounded_cel::{Bindings, Bound, Budget, Program};
use serde_json::Value;

use super::violation::{Violation, ViolationValue};
use super::{compile, real_words, request_budget, worded};

const RULES: &str = "x-kubernetes-validations";

/// The compiled CEL rules of one version of a CRD.
#[derive(Debug, Clone)]
pub struct CrdRules {
    schema: Value,
    root: Option<Node>,
}

/// The rules of one node of a schema, and the rules of the nodes inside this node.
#[derive(Debug, Clone, Default)]
struct Node {
    rules: Vec<Rule>,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    items: Option<Box<Node>>,
    all_of: Vec<Node>,
}

#[derive(Debug, Clone)]
struct Rule {
    source: String,
    program: Program,
    message: Option<String>,
    message_expression: Option<Program>,
    reason: String,
    field_path: Option<String>,
    optional_old_self: bool,
    is_transition: bool,
}

/// The result of checking an object: the CEL rules that the object breaks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// The broken rules for which the API refuses the write.
    pub violations: Vec<Violation>,
    /// The broken rules about values that the write does not change. The client gets them only as warnings.
    pub warnings: Vec<Violation>,
}

impl CrdRules {
    /// Compiles all CEL rules in the schema of a CRD (`openAPIV3Schema`). Also returns a warning for each rule that
    /// cannot be compiled.
    pub fn compile(schema: &Value) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let root = Node::compile(schema, schema, "", &mut warnings);
        let rules = Self {
            schema: schema.clone(),
            root,
        };
        (rules, warnings)
    }

    /// Returns whether the schema has no rules.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Returns the violations by which an object is invalid. `old` is the object that it replaces; None for a
    /// creation.
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Violation> {
        self.findings(object, old).violations
    }

    /// Like [`check`](Self::check), and also returns the violations that are only warnings.
    pub fn findings(&self, object: &Value, old: Option<&Value>) -> Findings {
        let Some(root) = &self.root else {
            return Findings::default();
        };
        let mut check = Check {
            findings: Findings::default(),
            budget: request_budget(),
            gave_up: false,
        };
        let old = old.filter(|old| !old.is_null());
        let spot = Spot {
            path: String::new(),
            schema: &self.schema,
            value: object,
            old,
            unchanged: match old {
                Some(old) => Unchanged::Pair(object, old),
                None => Unchanged::No,
            },
        };
        check.node(root, &spot);
        check.findings
    }
}

impl Node {
    /// Compiles the rules in `rules_schema`, which is `schema` itself or one of the schemas in its `allOf`.
    fn compile(
        rules_schema: &Value,
        schema: &Value,
        path: &str,
        warnings: &mut Vec<String>,
    ) -> Option<Self> {
        let mut node = Self::default();
        for rule in array(rules_schema.get(RULES)) {
            match Rule::compile(rule) {
                Ok(Some(rule)) => node.rules.push(rule),
                Ok(None) => {}
                Err(error) => {
                    let place = if path.is_empty() { "the object" } else { path };
                    let source = text(rule, "rule").unwrap_or_default();
                    warnings.push(format!(
                        "the rule on {place} is not enforced here: {error}: {source}"
                    ));
                }
            }
        }
        if let Some(properties) = rules_schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let Some(own) = schema.get("properties").and_then(|p| p.get(name)) else {
                    continue;
                };
                let below = child_path(path, name);
                if let Some(child) = Self::compile(property, own, &below, warnings) {
                    node.properties.insert(name.clone(), child);
                }
            }
        }
        for (key, slot) in [
            ("additionalProperties", &mut node.additional),
            ("items", &mut node.items),
        ] {
            let (Some(below), Some(own)) = (rules_schema.get(key), schema.get(key)) else {
                continue;
            };
            let place = format!("{path}[*]");
            *slot = Self::compile(below, own, &place, warnings).map(Box::new);
        }
        for part in array(rules_schema.get("allOf")) {
            node.all_of
                .extend(Self::compile(part, schema, path, warnings));
        }
        let is_empty = node.rules.is_empty()
            && node.properties.is_empty()
            && node.additional.is_none()
            && node.items.is_none()
            && node.all_of.is_empty();
        (!is_empty).then_some(node)
    }
}

impl Rule {
    fn compile(rule: &Value) -> Result<Option<Self>, String> {
        let source = text(rule, "rule").unwrap_or_default();
        if source.trim().is_empty() {
            return Ok(None);
        }
        let names = ["self", "oldSelf"];
        let program = compile(source, &names)?;
        let message_expression = text(rule, "messageExpression")
            .filter(|source| !source.trim().is_empty())
            .map(|source| {
                compile(source, &names).map_err(|error| format!("messageExpression: {error}"))
            })
            .transpose()?;
        Ok(Some(Self {
            source: source.to_owned(),
            is_transition: program.uses("oldSelf"),
            program,
            message: text(rule, "message")
                .filter(|message| !message.is_empty())
                .map(|message| message.trim().to_owned()),
            message_expression,
            reason: text(rule, "reason")
                .unwrap_or("FieldValueInvalid")
                .to_owned(),
            field_path: text(rule, "fieldPath")
                .map(normalize)
                .filter(|path| !path.is_empty()),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true),
        }))
    }

    /// Returns the text that names the rule in error messages: the rule's message, or else its expression.
    fn name(&self) -> &str {
        self.message.as_deref().unwrap_or(self.source.trim())
    }
}

/// Whether a write leaves a value unchanged. If it does, violations of the value's rules are only warnings.
#[derive(Clone, Copy)]
enum Unchanged<'a> {
    No,
    /// The new and the old state to compare. If the value itself has no old state, these are the states of the
    /// nearest value around it that has one.
    Pair(&'a Value, &'a Value),
}

impl Unchanged<'_> {
    fn is(self) -> bool {
        matches!(self, Self::Pair(new, old) if new == old)
    }
}

/// A value whose rules are checked: the value in an object, its path, its schema and its old state.
struct Spot<'a> {
    path: String,
    schema: &'a Value,
    value: &'a Value,
    old: Option<&'a Value>,
    unchanged: Unchanged<'a>,
}

impl<'a> Spot<'a> {
    fn type_name(&self) -> &'a str {
        text(self.schema, "type").unwrap_or_default()
    }

    /// Returns the spot of a value inside this value. If `old` is None, the inner value counts as unchanged if this
    /// value is unchanged.
    fn below(
        &self,
        path: String,
        schema: &'a Value,
        value: &'a Value,
        old: Option<&'a Value>,
    ) -> Self {
        Self {
            path,
            schema,
            value,
            old: old.filter(|old| !old.is_null()),
            unchanged: match old {
                Some(old) => Unchanged::Pair(value, old),
                None => self.unchanged,
            },
        }
    }
}

struct Check {
    findings: Findings,
    budget: Budget,
    /// Whether the check has stopped because its budget is used up. The findings contain this as a violation.
    gave_up: bool,
}

impl Check {
    fn node(&mut self, node: &Node, spot: &Spot<'_>) {
        if spot.value.is_null() || self.gave_up {
            return;
        }
        for rule in &node.rules {
            if self.budget.is_spent() {
                self.out_of_budget(spot);
                return;
            }
            self.rule(rule, spot);
            if self.gave_up {
                return;
            }
        }
        for part in &node.all_of {
            self.node(part, spot);
        }
        match spot.value {
            Value::Array(items) => self.items(node, spot, items),
            Value::Object(entries) => self.entries(node, spot, entries),
            _ => {}
        }
    }

    fn items(&mut self, node: &Node, spot: &Spot<'_>, items: &[Value]) {
        let (Some(below), Some(schema)) = (&node.items, spot.schema.get("items")) else {
            return;
        };
        for (at, item) in items.iter().enumerate() {
            let old = counterpart(spot.schema, item, spot.old);
            self.node(
                below,
                &spot.below(format!("{}[{at}]", spot.path), schema, item, old),
            );
        }
    }

    fn entries(&mut self, node: &Node, spot: &Spot<'_>, entries: &serde_json::Map<String, Value>) {
        for (name, value) in entries {
            let old = spot.old.and_then(|old| old.get(name));
            if let (Some(below), Some(schema)) =
                (&node.additional, spot.schema.get("additionalProperties"))
            {
                self.node(
                    below,
                    &spot.below(format!("{}[{name}]", spot.path), schema, value, old),
                );
            }
            let schema = spot.schema.get("properties").and_then(|p| p.get(name));
            if let (Some(below), Some(schema)) = (node.properties.get(name), schema) {
                self.node(
                    below,
                    &spot.below(child_path(&spot.path, name), schema, value, old),
                );
            }
        }
    }

    fn rule(&mut self, rule: &Rule, spot: &Spot<'_>) {
        if rule.is_transition && spot.old.is_none() && !rule.optional_old_self {
            return;
        }
        let bindings = Bindings::new().with_schema("self", spot.value, spot.schema);
        let bindings = match spot.old {
            old if rule.optional_old_self => {
                bindings.with_optional("oldSelf", old, Some(spot.schema))
            }
            Some(old) => bindings.with_schema("oldSelf", old, spot.schema),
            None => bindings,
        };
        match rule.program.holds(&bindings, &mut self.budget) {
            Ok(true) => {}
            Ok(false) => {
                let message = rule
                    .message_expression
                    .as_ref()
                    .and_then(|program| worded(program, &bindings, &mut self.budget));
                let violation = spot.violation(rule, message);
                if !rule.is_transition && spot.unchanged.is() {
                    self.findings.warnings.push(violation);
                } else {
                    self.findings.violations.push(violation);
                }
            }
            Err(error) if error.bound() == Some(Bound::Steps) && self.budget.is_spent() => {
                self.out_of_budget(spot);
            }
            Err(error) => {
                let (words, rule) = (real_words(&error), rule.name());
                let message = if error.is_limit() {
                    self.gave_up = true;
                    format!(
                        "'{words}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
                    )
                } else if words.starts_with("no such overload") {
                    format!(
                        "'{words}': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
                    )
                } else {
                    format!("{words} evaluating rule: {rule}")
                };
                self.findings.violations.push(spot.failure(message));
            }
        }
    }

    fn out_of_budget(&mut self, spot: &Spot<'_>) {
        self.gave_up = true;
        self.findings.violations.push(spot.failure(
            "validation failed due to running out of cost budget, no further validation rules will be run"
                .to_owned(),
        ));
    }
}

impl Spot<'_> {
    fn violation(&self, rule: &Rule, message: Option<String>) -> Violation {
        let path = match &rule.field_path {
            Some(below) => child_path(&self.path, below),
            None => self.path.clone(),
        };
        let message = message.or_else(|| rule.message.clone());
        Violation {
            path,
            message: message.unwrap_or_else(|| format!("failed rule: {}", rule.source.trim())),
            reason: rule.reason.clone(),
            type_name: self.type_name().to_owned(),
            value: match self.type_name() {
                "object" | "array" => ViolationValue::Omitted,
                _ => ViolationValue::Value(self.value.clone()),
            },
        }
    }

    fn failure(&self, message: String) -> Violation {
        Violation {
            path: self.path.clone(),
            message,
            reason: "FieldValueInvalid".to_owned(),
            type_name: self.type_name().to_owned(),
            value: ViolationValue::TypeName(self.type_name().to_owned()),
        }
    }
}

/// Returns the item of the old list that has the same keys as `item`. None if the old list has no such item, or if
/// items of this list have no keys.
fn counterpart<'a>(schema: &Value, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    if text(schema, "x-kubernetes-list-type") != Some("map") {
        return None;
    }
    let keys: Vec<&str> = array(schema.get("x-kubernetes-list-map-keys"))
        .iter()
        .filter_map(Value::as_str)
        .collect();
    old?.as_array()?
        .iter()
        .find(|old| !keys.is_empty() && keys.iter().all(|key| old.get(key) == item.get(key)))
}

fn child_path(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Converts the path of a field to the format of error messages: `.spec.x['a-b']` becomes `spec.x.a-b`.
fn normalize(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            quoted.split_once("']").unwrap_or((quoted, ""))
        } else {
            let body = rest.strip_prefix('.').unwrap_or(rest);
            body.split_at(body.find(['.', '[']).unwrap_or(body.len()))
        };
        // A bracket that cannot be parsed counts as part of a name up to the end of the path, because otherwise the
        // loop would not end.
        let (name, after) = match name.is_empty() {
            true => (rest, ""),
            false => (name, after),
        };
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
        rest = after;
    }
    out
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
