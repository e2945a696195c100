//! Checks the CEL expressions in a policy or a CRD when a client writes it.
//!
//! A valid expression is accepted even if this crate cannot evaluate it, and the client gets a warning that its rule
//! is not enforced (see `policy`).

use bounded_cel::{CelError, Limits, Program};
use serde_json::Value;

use super::policy::NAMES;
use super::{CrdRules, Policies};
use crate::catalog::{DEFINITIONS, POLICIES};
use crate::status::Cause;

/// The fields of a policy that contain CEL expressions: the name of a list, and the field in its items.
const PLACES: [(&str, &str); 5] = [
    ("matchConditions", "expression"),
    ("validations", "expression"),
    ("validations", "messageExpression"),
    ("variables", "expression"),
    ("auditAnnotations", "valueExpression"),
];

/// Returns an error for each expression of a policy that cannot be parsed.
pub fn unreadable(policy: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (list, key) in PLACES {
        let items = policy["spec"][list].as_array();
        for (at, item) in items.into_iter().flatten().enumerate() {
            let source = item[key].as_str().unwrap_or_default();
            if source.trim().is_empty() {
                continue;
            }
            if let Some(why) = why_not(source) {
                causes.push(Cause {
                    reason: "FieldValueInvalid".into(),
                    message: format!(
                        "Invalid value: {}: compilation failed: {why}",
                        Value::from(source)
                    ),
                    field: format!("spec.{list}[{at}].{key}"),
                });
            }
        }
    }
    causes
}

/// Returns a warning for each rule of a CRD or a policy that is accepted but not enforced. `storage` is the resource
/// of the object.
pub fn unenforced(storage: &str, object: &Value) -> Vec<String> {
    match storage {
        DEFINITIONS => object["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|version| CrdRules::compile(&version["schema"]["openAPIV3Schema"]).1)
            .collect(),
        POLICIES => Policies::compile(std::slice::from_ref(object), &[]).1,
        _ => Vec::new(),
    }
}

fn why_not(source: &str) -> Option<String> {
    match Program::compile(source, &Limits::default()) {
        Ok(program) => {
            let foreign = program.names().find(|name| !NAMES.contains(name));
            foreign.map(|name| format!("undeclared reference to '{name}' (in container '')"))
        }
        Err(CelError::Syntax(why)) => Some(why.to_string()),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::unreadable;

    #[test]
    fn expressions_that_cannot_be_read() {
        let policy = json!({"spec": {
            "matchConditions": [{"name": "a", "expression": "has(object.spec)"}],
            "variables": [{"name": "v", "expression": "object.("}],
            "validations": [
                {"expression": "variables.v == 1 && params == null"},
                {"expression": "object.frobnicate()"},
                {"expression": "other == 1", "messageExpression": "'a' +"},
            ],
        }});
        let fields: Vec<String> = unreadable(&policy).into_iter().map(|c| c.field).collect();
        assert_eq!(
            fields,
            [
                "spec.validations[2].expression",
                "spec.validations[2].messageExpression",
                "spec.variables[0].expression",
            ]
        );
    }
}
