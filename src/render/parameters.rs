//! The parameters of a component or an addon instance: merges them from two sources, and checks them with the schema.

use kube::ResourceExt;
use serde_json::Value;

use super::library::Library;
use super::schema;
use super::{Definition, Inputs, Notes, Problem, merge};
use crate::api::Object;

/// The two sources of the parameters of a component or an addon instance. Each has its path for error messages.
pub(super) struct Sources<'a> {
    /// The parameters that the component itself contains.
    pub(super) base: &'a Object,
    pub(super) base_path: String,
    /// The parameters in the settings of the environment, which have priority; None if the settings have none.
    pub(super) over: Option<&'a Object>,
    pub(super) over_path: String,
}

impl Sources<'_> {
    /// Merges the parameters of `base` and `over`, and checks them with the schema of their definition.
    pub(super) fn parameters(
        &self,
        schema: &Object,
        owner: &Definition,
        inputs: &Inputs<'_>,
        library: &Library,
        notes: &mut Notes,
    ) -> Object {
        // `base` and `over` are merged into an empty object, so that also a null in `base` removes its key.
        let mut merged = Object::new();
        merge::merge(&mut merged, self.base);
        if let Some(over) = self.over {
            merge::merge(&mut merged, over);
        }
        // A definition without a schema accepts all parameters.
        if schema.is_empty() {
            return merged;
        }
        let schema = match library.schema(schema) {
            Ok(schema) => schema,
            Err(problems) => {
                notes.problems.extend(of_schema(owner, problems));
                return merged;
            }
        };
        let fitted = schema.fit(merged);
        let place = |problem| self.place(problem, inputs);
        notes.warnings.extend(fitted.dropped.into_iter().map(place));
        notes.problems.extend(fitted.errors.into_iter().map(place));
        fitted.value
    }

    fn place(&self, problem: schema::Problem, inputs: &Inputs<'_>) -> Problem {
        let steps = steps(&problem.path);
        let overridden = self.over.is_some_and(|over| decides(over, &steps));
        let (definition, path) = match overridden {
            true => (settings(inputs), &self.over_path),
            false => (component(inputs), &self.base_path),
        };
        Problem {
            definition,
            template: None,
            path: joined(path, &problem.path),
            column: None,
            message: problem.message,
        }
    }
}

/// Converts the errors in the schema of a definition to problems of that definition.
pub(super) fn of_schema(
    owner: &Definition,
    problems: Vec<schema::Problem>,
) -> impl Iterator<Item = Problem> {
    problems.into_iter().map(|problem| Problem {
        definition: owner.clone(),
        template: None,
        path: joined("schema.parameters", &problem.path),
        column: None,
        message: problem.message,
    })
}

fn joined(path: &str, further: &str) -> String {
    match further.starts_with('[') || further.is_empty() {
        true => format!("{path}{further}"),
        false => format!("{path}.{further}"),
    }
}

/// Returns the component, for a problem in its own parameters.
pub(super) fn component(inputs: &Inputs<'_>) -> Definition {
    Definition {
        kind: "Component",
        name: inputs.definitions.component.name_any(),
    }
}

/// Returns the settings of the environment, for a problem in their parameters.
pub(super) fn settings(inputs: &Inputs<'_>) -> Definition {
    let named = inputs
        .settings
        .and_then(|settings| settings.metadata.name.clone());
    Definition {
        kind: "EnvSettings",
        name: named.unwrap_or_default(),
    }
}

/// Returns whether the parameters `over` determine the value at a path: they contain a value at the path, or one
/// before its end that is not a map.
fn decides(over: &Object, steps: &[String]) -> bool {
    let mut map = over;
    for step in steps {
        match map.get(step) {
            Some(Value::Object(inner)) => map = inner,
            Some(_) => return true,
            None => return false,
        }
    }
    true
}

/// Splits a path such as `a.b[0]["c.d"]` into its keys and indices.
fn steps(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let mut quoted = serde_json::Deserializer::from_str(inside).into_iter::<Value>();
            let step = match quoted.next() {
                Some(Ok(Value::String(key))) => key,
                Some(Ok(index)) => index.to_string(),
                _ => return steps,
            };
            let end = quoted.byte_offset();
            rest = inside.get(end..).unwrap_or_default();
            rest = rest.strip_prefix(']').unwrap_or(rest);
            steps.push(step);
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (step, after) = rest.split_at(end);
            if step.is_empty() {
                return steps;
            }
            steps.push(step.to_owned());
            rest = after;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whose_a_parameter_is() {
        let over = json!({"r": {"mem": 1}, "list": [1], "a.b": {"c": null}});
        let over = over.as_object().unwrap();
        for (path, expected) in [
            ("r", true),
            ("r.mem", true),
            ("r.cpu", false),
            ("r.mem.deep", true),
            ("list[2].x", true),
            ("[\"a.b\"].c", true),
            ("[\"a.b\"].d", false),
            ("other", false),
            ("", true),
            ("..", true),
            ("[", true),
        ] {
            assert_eq!(decides(over, &steps(path)), expected, "{path}");
        }
    }
}
