//! Reads definitions: every template, condition and path, before any is evaluated.

use kube::ResourceExt;
use serde_json::Value;

use super::context::Context;
use super::error::Fault;
use super::library::Library;
use super::parameters::{self, Sources};
use super::template::{self, Expression, Template, Text, Trail};
use super::{Definition, Inputs, Notes, Problem};
use crate::api::AddonDefinition;
use crate::api::component::{
    AddonInstance, AddonPatch, PatchOperation, PatchVerb, ResourceTemplate,
};

/// What forEach calls the item where the definition does not say.
const ITEM: &str = "item";

/// Everything that a component is made from, read.
pub(super) struct Blueprint<'t> {
    pub(super) context: Context,
    pub(super) type_: Definition,
    pub(super) resources: Vec<Resource<'t>>,
    pub(super) addons: Vec<Instance<'t>>,
}

/// A template of a resource.
pub(super) struct Resource<'t> {
    pub(super) id: &'t str,
    pub(super) label: String,
    pub(super) include: Option<Expression>,
    pub(super) each: Option<Expression>,
    pub(super) variable: &'t str,
    pub(super) template: Template<'t>,
}

/// An addon instance with its parameters.
pub(super) struct Instance<'t> {
    pub(super) definition: Definition,
    pub(super) instance_id: Value,
    pub(super) spec: Value,
    /// What the ids of its resources begin with.
    pub(super) prefix: String,
    pub(super) creates: Vec<Resource<'t>>,
    pub(super) patches: Vec<Patch<'t>>,
}

/// A patch of an addon.
pub(super) struct Patch<'t> {
    pub(super) label: String,
    pub(super) kind: &'t str,
    pub(super) filter: Option<Expression>,
    pub(super) operations: Vec<Operation<'t>>,
}

/// One operation of a patch.
pub(super) struct Operation<'t> {
    pub(super) verb: PatchVerb,
    pub(super) path: Text<'t>,
    pub(super) value: Option<Template<'t>>,
}

/// Reads all that a component is rendered from.
pub(super) fn blueprint<'t>(
    inputs: &Inputs<'t>,
    library: &Library,
    notes: &mut Notes,
) -> Blueprint<'t> {
    let definitions = inputs.definitions;
    let definition = &definitions.component_type_definition;
    let type_ = Definition {
        kind: "ComponentTypeDefinition",
        name: definition.name_any(),
    };
    let sources = Sources {
        base: &definitions.component.spec.parameters,
        base_path: "parameters".to_owned(),
        over: inputs.settings.map(|settings| &settings.overrides),
        over_path: "overrides".to_owned(),
    };
    let schema = &definition.spec.schema.parameters;
    let spec = sources.parameters(schema, &type_, inputs, library, notes);
    let resources = resources(
        &type_,
        "resource",
        &definition.spec.resources,
        library,
        notes,
    );
    let mut addons = Vec::new();
    for (at, instance) in definitions.component.spec.addons.iter().enumerate() {
        addons.extend(addon(at, instance, inputs, library, notes));
    }
    warn_of_unused_overrides(inputs, notes);
    Blueprint {
        context: Context::new(inputs, spec),
        type_,
        resources,
        addons,
    }
}

fn addon<'t>(
    at: usize,
    instance: &'t AddonInstance,
    inputs: &Inputs<'t>,
    library: &Library,
    notes: &mut Notes,
) -> Option<Instance<'t>> {
    let own = |addon: &&AddonDefinition| {
        addon.name == instance.name && addon.instance_id == instance.instance_id
    };
    let Some(found) = inputs.definitions.addons.iter().find(own) else {
        notes.problems.push(Problem {
            definition: parameters::component(inputs),
            template: None,
            path: format!("addons[{at}]"),
            column: None,
            message: format!(
                "the release has no Addon {} for the instance {}; make a new release",
                instance.name, instance.instance_id
            ),
        });
        return None;
    };
    let definition = Definition {
        kind: "Addon",
        name: found.name.clone(),
    };
    let sources = Sources {
        base: &instance.config,
        base_path: format!("addons[{at}].config"),
        over: inputs
            .settings
            .and_then(|settings| settings.addon_overrides.get(&instance.name))
            .and_then(|instances| instances.get(&instance.instance_id)),
        over_path: format!("addonOverrides.{}.{}", instance.name, instance.instance_id),
    };
    let spec = &found.addon.spec;
    Some(Instance {
        spec: Value::Object(sources.parameters(
            &spec.schema.parameters,
            &definition,
            inputs,
            library,
            notes,
        )),
        instance_id: Value::String(instance.instance_id.clone()),
        prefix: format!("{}-{}-", instance.name, instance.instance_id),
        creates: resources(&definition, "create", &spec.creates, library, notes),
        patches: patches(&definition, &spec.patches, library, notes),
        definition,
    })
}

/// Warns of settings for an addon instance that the component does not have.
fn warn_of_unused_overrides(inputs: &Inputs<'_>, notes: &mut Notes) {
    let used = &inputs.definitions.component.spec.addons;
    let overrides = inputs.settings.map(|settings| &settings.addon_overrides);
    for (addon, instances) in overrides.into_iter().flatten() {
        for instance in instances.keys() {
            if used
                .iter()
                .any(|one| one.name == *addon && one.instance_id == *instance)
            {
                continue;
            }
            notes.warnings.push(Problem {
                definition: parameters::settings(inputs),
                template: None,
                path: format!("addonOverrides.{addon}.{instance}"),
                column: None,
                message: "the component has no such addon instance, so this has no effect"
                    .to_owned(),
            });
        }
    }
}

fn resources<'t>(
    owner: &Definition,
    word: &str,
    templates: &'t [ResourceTemplate],
    library: &Library,
    notes: &mut Notes,
) -> Vec<Resource<'t>> {
    let mut read = Vec::with_capacity(templates.len());
    for template in templates {
        let mut faults = Vec::new();
        let mut condition = |field, text: &Option<String>| {
            let text = text.as_deref()?;
            template::read_expression(text, &Trail::root(field), library, &mut faults)
        };
        let include = condition("includeWhen", &template.include_when);
        let each = condition("forEach", &template.for_each);
        let entries = template::read_map(
            &template.template,
            &Trail::root("template"),
            library,
            &mut faults,
        );
        let resource = Resource {
            id: &template.id,
            label: format!("{word} {}", template.id),
            include,
            each,
            variable: template.var.as_deref().unwrap_or(ITEM),
            template: Template::Map(entries),
        };
        if template.var.is_some() && template.for_each.is_none() {
            faults.push(Fault {
                path: "var".to_owned(),
                column: None,
                message: "it names the item of a forEach, and there is none".to_owned(),
            });
        }
        notes.blame(owner, &resource.label, faults);
        read.push(resource);
    }
    read
}

fn patches<'t>(
    owner: &Definition,
    patches: &'t [AddonPatch],
    library: &Library,
    notes: &mut Notes,
) -> Vec<Patch<'t>> {
    let mut read = Vec::with_capacity(patches.len());
    for (at, patch) in patches.iter().enumerate() {
        let mut faults = Vec::new();
        let filter = patch.target.filter.as_deref().and_then(|filter| {
            let root = Trail::root("target");
            template::read_expression(filter, &root.field("where"), library, &mut faults)
        });
        let root = Trail::root("operations");
        let mut operations = Vec::with_capacity(patch.operations.len());
        for (at, written) in patch.operations.iter().enumerate() {
            operations.push(operation(written, &root.item(at), library, &mut faults));
        }
        let patch = Patch {
            label: format!("patch {at}"),
            kind: &patch.target.kind,
            filter,
            operations,
        };
        notes.blame(owner, &patch.label, faults);
        read.push(patch);
    }
    read
}

fn operation<'t>(
    written: &'t PatchOperation,
    trail: &Trail<'_>,
    library: &Library,
    faults: &mut Vec<Fault>,
) -> Operation<'t> {
    let value = written.value.as_ref();
    Operation {
        verb: written.op,
        path: template::read_text(&written.path, &trail.field("path"), library, faults),
        value: value.map(|value| template::read(value, &trail.field("value"), library, faults)),
    }
}
