//! The parameters of a component or an addon instance: merged, then fitted to the schema.

use kube::ResourceExt;

use super::library::Library;
use super::schema;
use super::{Definition, Inputs, Notes, Problem, merge};
use crate::api::Object;

/// Where parameters come from, to say whose a wrong one is.
pub(super) struct Sources<'a> {
    /// Those of the component.
    pub(super) base: &'a Object,
    pub(super) base_path: String,
    /// Those of the environment.
    pub(super) over: Option<&'a Object>,
    pub(super) over_path: String,
}

impl Sources<'_> {
    /// Merges the parameters and fits them to the schema of their definition.
    pub(super) fn parameters(
        &self,
        schema: &Object,
        owner: &Definition,
        inputs: &Inputs<'_>,
        library: &Library,
        notes: &mut Notes,
    ) -> Object {
        // Laid over nothing, so that a null of the component itself means absent as well.
        let mut merged = Object::new();
        merge::merge(&mut merged, self.base);
        if let Some(over) = self.over {
            merge::merge(&mut merged, over);
        }
        // A definition without a schema has said nothing about its parameters.
        if schema.is_empty() {
            return merged;
        }
        let schema = match library.schema(schema) {
            Ok(schema) => schema,
            Err(problems) => {
                let place = |problem: schema::Problem| Problem {
                    definition: owner.clone(),
                    template: None,
                    path: joined("schema.parameters", &problem.path),
                    column: None,
                    message: problem.message,
                };
                notes.problems.extend(problems.into_iter().map(place));
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
        let first = problem.path.split(['.', '[']).next();
        let overridden = self
            .over
            .zip(first)
            .is_some_and(|(over, first)| over.contains_key(first));
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

fn joined(path: &str, further: &str) -> String {
    match further.starts_with('[') || further.is_empty() {
        true => format!("{path}{further}"),
        false => format!("{path}.{further}"),
    }
}

/// Names the component.
pub(super) fn component(inputs: &Inputs<'_>) -> Definition {
    Definition {
        kind: "Component",
        name: inputs.definitions.component.name_any(),
    }
}

/// Names the settings, which are found by component and environment, not by name.
pub(super) fn settings(inputs: &Inputs<'_>) -> Definition {
    let component = inputs.definitions.component.name_any();
    let environment = inputs.environment.name_any();
    Definition {
        kind: "EnvSettings",
        name: format!("of {component} in {environment}"),
    }
}
