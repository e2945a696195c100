//! Renders definitions and settings to manifests. The functions are pure: equal inputs give equal bytes.
//!
//! First the parameters are merged and checked with the schema. Then the templates of the component type create
//! resources. Then each addon in turn creates more resources and patches the existing ones. This module does not
//! fetch definitions and does not connect to a cluster. A template can use these variables:
//!
//! | name | content |
//! |---|---|
//! | `metadata` | name, namespace, labels and annotations of the component |
//! | `spec` | merged parameters: in a type those of the component, in an addon those of the addon instance |
//! | `component` | in an addon, the component's merged parameters |
//! | `instanceId` | in an addon, the id of the instance |
//! | `workload` | the spec of the Workload |
//! | `build` | the component's `spec.build` |
//! | `environment` | name, namespace and isProduction |
//! | `resource` | in a patch, the resource that is patched |

mod context;
mod error;
mod finish;
mod inspect;
mod labels;
mod library;
mod make;
pub mod merge;
mod parameters;
pub mod patch;
mod read;
pub mod schema;
mod template;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::api::choreo::rendered::RenderedResource;
use crate::api::{Definitions, EnvSettings, Environment, digest};

pub use error::{Column, Definition, Problem, RenderError};
pub use inspect::{faults_of_addon, faults_of_type};
pub use library::Library;

/// The inputs of [`render`].
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The definitions of the release.
    pub definitions: &'a Definitions,
    /// The settings of the component in the environment; None if it has no settings.
    pub settings: Option<&'a EnvSettings>,
    /// The environment for which the component is rendered.
    pub environment: &'a Environment,
    /// The namespace of the component.
    pub namespace: &'a str,
}

/// The result of [`render`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The resources, sorted by kind, group, namespace and name.
    pub resources: Vec<RenderedResource>,
    /// Warnings about values in the inputs that were ignored, such as unknown parameters.
    pub warnings: Vec<Problem>,
}

impl Rendered {
    /// Returns the digest of the rendered resources. Equal resources have equal digests.
    pub fn hash(&self) -> String {
        digest::of(&self.resources)
    }

    /// Returns the rendered resources as YAML documents in one text.
    pub fn yaml(&self) -> String {
        let mut out = String::new();
        for resource in &self.resources {
            out.push_str("---\n");
            out.push_str(&bounded_yaml::write(&Value::Object(
                resource.object.clone(),
            )));
        }
        out
    }
}

/// Renders a component for an environment. If there are problems, fails with all of them.
pub fn render(inputs: &Inputs<'_>, library: &Library) -> Result<Rendered, RenderError> {
    let mut notes = Notes::default();
    let blueprint = read::blueprint(inputs, library, &mut notes);
    let made = match notes.problems.is_empty() {
        true => make::make(&blueprint, &mut notes),
        false => Vec::new(),
    };
    let resources = finish::finish(made, &inputs.environment.spec.namespace, &mut notes);
    match notes.problems.is_empty() {
        true => Ok(Rendered {
            resources,
            warnings: notes.warnings,
        }),
        false => Err(RenderError(notes.some_problems())),
    }
}

/// The problems and warnings that a render collects.
#[derive(Default)]
struct Notes {
    warnings: Vec<Problem>,
    problems: Vec<Problem>,
}

/// The largest number of problems that one error contains.
const PROBLEMS: usize = 100;

impl Notes {
    /// Returns the first [`PROBLEMS`] problems. The last of them says how many more problems there are.
    fn some_problems(mut self) -> Vec<Problem> {
        let more = self.problems.len().saturating_sub(PROBLEMS);
        self.problems.truncate(PROBLEMS);
        if let (Some(last), 1..) = (self.problems.last_mut(), more) {
            last.message += &format!(" ({more} more problems are not shown)");
        }
        self.problems
    }

    /// Adds the errors in a template of `definition` to the problems.
    fn blame(
        &mut self,
        definition: &Definition,
        template: &str,
        faults: impl IntoIterator<Item = error::Fault>,
    ) {
        self.problems
            .extend(faults.into_iter().map(|fault| Problem {
                definition: definition.clone(),
                template: Some(template.to_owned()),
                path: fault.path,
                column: fault.column,
                message: fault.message,
            }));
    }
}
