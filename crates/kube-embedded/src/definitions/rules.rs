//! Checks that the CEL rules in a schema can be parsed, and that they use only fields that the schema declares.
//!
//! The types in expressions are not checked. If this crate does not support an expression that kube-apiserver
//! supports (a function, a size), the client gets a warning and no error (see `admission`).

use bounded_cel::{CelError, Limits, Program};
use serde_json::{Value, json};

use crate::status::Cause;

/// Returns the errors in the CEL rules of one schema. `root` is true if the schema is that of the whole object.
pub fn check(schema: &Value, root: bool, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let rules = schema["x-kubernetes-validations"].as_array();
    for (at, rule) in rules.into_iter().flatten().enumerate() {
        for (key, what) in [
            ("rule", "compilation failed"),
            ("messageExpression", "messageExpression compilation failed"),
        ] {
            let source = rule[key].as_str().unwrap_or_default();
            let field = format!("{path}.x-kubernetes-validations[{at}].{key}");
            if source.trim().is_empty() {
                if key == "rule" {
                    causes.push(Cause {
                        reason: "FieldValueRequired".into(),
                        message: "Required value: rule is not specified".into(),
                        field,
                    });
                }
            } else if let Some(why) = wrong(source, schema, root) {
                causes.push(Cause {
                    reason: "FieldValueInvalid".into(),
                    message: format!("Invalid value: {}: {what}: {why}", shown(rule)),
                    field,
                });
            }
        }
    }
    causes
}

/// Formats a rule as kube-apiserver prints it: with all its fields, in the order of the Go type.
fn shown(rule: &Value) -> String {
    let text = |key: &str| json!(rule[key].as_str().unwrap_or_default());
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        text("rule"),
        text("message"),
        text("messageExpression"),
        rule["reason"],
        text("fieldPath"),
        rule["optionalOldSelf"],
    )
}

fn wrong(source: &str, schema: &Value, root: bool) -> Option<String> {
    let program = match Program::compile(source, &Limits::default()) {
        Ok(program) => program,
        Err(CelError::Syntax(why)) => return Some(why.to_string()),
        Err(_) => return None,
    };
    if let Some(name) = program
        .names()
        .find(|name| !["self", "oldSelf"].contains(name))
    {
        let what = format!("undeclared reference to '{name}' (in container '')");
        return Some(placed(source, source.find(name), &what));
    }
    ["self", "oldSelf"].into_iter().find_map(|name| {
        let chains = program.selections(name);
        let field = chains
            .iter()
            .find_map(|chain| undeclared(schema, root, chain))?;
        let what = format!("undefined field '{field}'");
        Some(placed(source, source.find(&format!(".{field}")), &what))
    })
}

/// Formats an error like the CEL compiler: line, column, and a marker below the source line.
fn placed(source: &str, at: Option<usize>, what: &str) -> String {
    let before = at.and_then(|at| source.get(..at)).unwrap_or_default();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().len();
    let text = source.lines().nth(line).unwrap_or_default();
    format!(
        "ERROR: <input>:{}:{}: {what}\n | {text}\n | {}^",
        line + 1,
        column + 1,
        ".".repeat(column)
    )
}

/// Returns the first field in `chain` that the schema does not declare; None if it declares all of them. The chain
/// `a`, `b` stands for `self.a.b`.
fn undeclared<'c>(schema: &Value, root: bool, chain: &[&'c str]) -> Option<&'c str> {
    let mut schema = schema;
    let mut resource = root;
    let mut fields = chain.iter();
    while let Some(field) = fields.next() {
        if schema["x-kubernetes-int-or-string"] == true || schema["type"] != "object" {
            return None;
        }
        let additional = &schema["additionalProperties"];
        if additional.is_object() {
            schema = additional;
        } else if additional == true {
            return None;
        } else {
            resource |= schema["x-kubernetes-embedded-resource"] == true;
            match *field {
                "apiVersion" | "kind" if resource => return None,
                "metadata" if resource => {
                    let known = |name: &&&str| !["name", "generateName"].contains(*name);
                    return fields.next().filter(known).copied();
                }
                name => match schema["properties"].get(name) {
                    Some(property) => schema = property,
                    None => return Some(name),
                },
            }
        }
        resource = false;
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;

    #[test]
    fn rules_select_what_is_declared() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "integer"}, "x-y": {"type": "integer"}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"c": {"type": "string"}}}},
            "l": {"type": "array", "items": {"type": "string"}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
        }});
        for (rule, wanted) in [
            ("self.a.b > 1", None),
            ("has(self.a) && self.a.b > 1", None),
            ("self.a.x__dash__y > 1", None),
            ("self.m.anything.c == ''", None),
            ("self.any.thing.at.all == 1", None),
            ("self.metadata.name == 'x'", None),
            ("self.l.all(self, self.nothing == 1)", None),
            ("self.l.frobnicate()", None),
            ("self.a.c > 1", Some("<input>:1:7: undefined field 'c'")),
            ("has(self.z)", Some("undefined field 'z'")),
            ("self.m.anything.d == ''", Some("undefined field 'd'")),
            (
                "self.metadata.labels == {}",
                Some("undefined field 'labels'"),
            ),
            ("self.l.all(x, x == oldSelf.q)", Some("undefined field 'q'")),
            ("other == 1", Some("undeclared reference to 'other'")),
            ("self.a ==", Some("compilation failed: ")),
            (" ", Some("Required value: rule is not specified")),
        ] {
            let mut schema = schema.clone();
            schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
            let found = check(&schema, true, "p");
            match (found.as_slice(), wanted) {
                ([], None) => {}
                ([cause], Some(wanted)) => {
                    assert_eq!(cause.field, "p.x-kubernetes-validations[0].rule");
                    assert!(cause.message.contains(wanted), "{rule}: {}", cause.message);
                }
                (found, _) => panic!("{rule}: {found:?}"),
            }
        }
    }
}
