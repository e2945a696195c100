//! The variables that templates can use.

use bounded_cel::Bindings;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::Inputs;
use crate::api::Object;

/// The names of the variables for templates of a ComponentTypeDefinition, in the order of [`Context::of_type`].
pub(super) const OF_TYPE: &[&str] = &["metadata", "spec", "build", "workload", "environment"];
/// The names of the variables for templates of an Addon, in the order of [`Context::of_addon`].
pub(super) const OF_ADDON: &[&str] = &[
    "metadata",
    "spec",
    "instanceId",
    "component",
    "build",
    "workload",
    "environment",
];

/// The values of the variables for the templates of one component.
pub(super) struct Context {
    metadata: Value,
    spec: Value,
    build: Value,
    workload: Value,
    environment: Value,
}

impl Context {
    pub(super) fn new(inputs: &Inputs<'_>, spec: Object) -> Self {
        let component = &inputs.definitions.component;
        let environment = inputs.environment;
        let build = component.spec.build.clone().unwrap_or_default();
        Self {
            metadata: json!({
                "name": component.name_any(),
                "namespace": inputs.namespace,
                "labels": component.labels(),
                "annotations": component.annotations(),
            }),
            spec: Value::Object(spec),
            build: Value::Object(build),
            workload: serde_json::to_value(&inputs.definitions.workload.spec)
                .unwrap_or_else(|_| Value::Object(Map::new())),
            environment: json!({
                "name": environment.name_any(),
                "namespace": environment.spec.namespace,
                "isProduction": environment.spec.is_production,
            }),
        }
    }

    /// Returns the variables for the templates of the component's ComponentTypeDefinition.
    pub(super) fn of_type(&self) -> Names<'_> {
        Names(vec![
            ("metadata", &self.metadata),
            ("spec", &self.spec),
            ("build", &self.build),
            ("workload", &self.workload),
            ("environment", &self.environment),
        ])
    }

    /// Returns the variables for the templates of one addon instance. `spec` contains the parameters of this
    /// instance.
    pub(super) fn of_addon<'c>(&'c self, instance_id: &'c Value, spec: &'c Value) -> Names<'c> {
        Names(vec![
            ("metadata", &self.metadata),
            ("spec", spec),
            ("instanceId", instance_id),
            ("component", &self.spec),
            ("build", &self.build),
            ("workload", &self.workload),
            ("environment", &self.environment),
        ])
    }
}

/// Variables of a template: names and values.
pub(super) struct Names<'c>(Vec<(&'static str, &'c Value)>);

impl<'c> Names<'c> {
    pub(super) fn bind(&self) -> Bindings<'c> {
        self.0
            .iter()
            .fold(Bindings::new(), |bindings, &(name, value)| {
                bindings.with(name, value)
            })
    }
}
