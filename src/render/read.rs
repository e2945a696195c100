//! Parses the definitions of a component: all templates, conditions and paths. This happens before the first
//! evaluation, so that errors in unused templates are found too.

use kube::ResourceExt;
use serde_json::Value;

use super::context::{self, Context};
use super::error::Fault;
use super::library::Library;
use super::parameters::{self, Sources};
use super::template::{Expression, Reader, Template, Text, Trail};
use super::{Definition, Inputs, Notes, Problem, patch};
use crate::api::AddonDefinition;
use crate::api::openchoreo::component::{
    AddonInstance, AddonPatch, PatchOperation, PatchVerb, ResourceTemplate,
};

/// The default name of the variable that contains the current item of a forEach.
const ITEM: &str = "item";

/// The definitions of a component in parsed form.
pub(super) struct Blueprint<'t> {
    pub(super) context: Context,
    pub(super) type_: Definition,
    pub(super) resources: Vec<Resource<'t>>,
    pub(super) addons: Vec<Instance<'t>>,
}

/// A parsed resource template.
pub(super) struct Resource<'t> {
    pub(super) id: &'t str,
    pub(super) label: String,
    pub(super) include: Option<Expression>,
    pub(super) each: Option<Expression>,
    pub(super) variable: &'t str,
    pub(super) template: Template<'t>,
}

/// An addon instance in parsed form, with its parameters.
pub(super) struct Instance<'t> {
    pub(super) definition: Definition,
    pub(super) instance_id: Value,
    pub(super) spec: Value,
    /// The prefix of the ids of all resources that this addon instance creates.
    pub(super) prefix: String,
    pub(super) creates: Vec<Resource<'t>>,
    pub(super) patches: Vec<Patch<'t>>,
}

/// A parsed patch of an addon.
pub(super) struct Patch<'t> {
    pub(super) label: String,
    pub(super) kind: &'t str,
    pub(super) filter: Option<Expression>,
    pub(super) operations: Vec<Operation<'t>>,
}

pub(super) struct Operation<'t> {
    pub(super) verb: PatchVerb,
    pub(super) path: Text<'t>,
    pub(super) value: Option<Template<'t>>,
}

/// Parses all definitions of a component.
pub(super) fn blueprint<'t>(
    inputs: &Inputs<'t>,
    library: &'t Library,
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
        over: inputs.settings.map(|settings| &settings.spec.overrides),
        over_path: "overrides".to_owned(),
    };
    let schema = &definition.spec.schema.parameters;
    let spec = sources.parameters(schema, &type_, inputs, library, notes);
    let mut reader = Reader::new(library, context::OF_TYPE);
    let templates = &definition.spec.resources;
    let resources = resources(&type_, "resource", templates, &mut reader, notes);
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
    library: &'t Library,
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
                "the release has no Addon {} for the instance {}; create a new release",
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
            .and_then(|settings| settings.spec.addon_overrides.get(&instance.name))
            .and_then(|instances| instances.get(&instance.instance_id)),
        over_path: format!("addonOverrides.{}.{}", instance.name, instance.instance_id),
    };
    let spec = &found.addon.spec;
    let mut reader = Reader::new(library, context::OF_ADDON);
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
        creates: resources(&definition, "create", &spec.creates, &mut reader, notes),
        patches: patches(&definition, &spec.patches, &mut reader, notes),
        definition,
    })
}

/// Adds a warning for each addon override in the settings for which the component has no addon instance.
fn warn_of_unused_overrides(inputs: &Inputs<'_>, notes: &mut Notes) {
    let used = &inputs.definitions.component.spec.addons;
    let overrides = inputs
        .settings
        .map(|settings| &settings.spec.addon_overrides);
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

/// Parses the resource templates of a definition.
pub(super) fn resources<'t>(
    owner: &Definition,
    word: &str,
    templates: &'t [ResourceTemplate],
    reader: &mut Reader<'t>,
    notes: &mut Notes,
) -> Vec<Resource<'t>> {
    let mut read = Vec::with_capacity(templates.len());
    for template in templates {
        let resource = resource(word, template, reader);
        notes.blame(owner, &resource.label, reader.faults());
        read.push(resource);
    }
    read
}

fn resource<'t>(
    word: &str,
    template: &'t ResourceTemplate,
    reader: &mut Reader<'t>,
) -> Resource<'t> {
    let variable = template.var.as_deref().unwrap_or(ITEM);
    let each = template.for_each.as_deref();
    match each {
        None if template.var.is_some() => {
            reader.fault(fault(
                "var",
                "it names the item of a forEach, but there is no forEach",
            ));
        }
        _ if !is_identifier(variable) => {
            let message =
                format!("{variable:?} is not a name for an expression; use letters, digits and _");
            reader.fault(fault("var", message));
        }
        Some(_) if reader.knows(variable) => {
            let message = format!("{variable} already exists; choose another name");
            reader.fault(fault("var", message));
        }
        _ => {}
    }
    if template.id.is_empty() {
        reader.fault(fault("id", "it is empty; each resource needs an id"));
    }
    let looped = each.is_some();
    let each = each.and_then(|each| reader.expression(each, &Trail::root("forEach")));
    let rest = |reader: &mut Reader<'t>| {
        let include = template.include_when.as_deref();
        let include =
            include.and_then(|include| reader.expression(include, &Trail::root("includeWhen")));
        (
            include,
            reader.map(&template.template, &Trail::root("template")),
        )
    };
    let (include, entries) = match looped {
        true => reader.with_name(variable, rest),
        false => rest(reader),
    };
    Resource {
        id: &template.id,
        label: format!("{word} {}", template.id),
        include,
        each,
        variable,
        template: Template::Map(entries),
    }
}

/// Returns whether a text is valid as the name of a CEL variable.
fn is_identifier(text: &str) -> bool {
    const RESERVED: [&str; 4] = ["true", "false", "null", "in"];
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(letters)
        && text.starts_with(|c: char| !c.is_ascii_digit())
        && !RESERVED.contains(&text)
}

pub(super) fn patches<'t>(
    owner: &Definition,
    patches: &'t [AddonPatch],
    reader: &mut Reader<'t>,
    notes: &mut Notes,
) -> Vec<Patch<'t>> {
    let mut read = Vec::with_capacity(patches.len());
    for (at, written) in patches.iter().enumerate() {
        let patch = reader.with_name("resource", |reader| patch(at, written, reader));
        notes.blame(owner, &patch.label, reader.faults());
        read.push(patch);
    }
    read
}

fn patch<'t>(at: usize, patch: &'t AddonPatch, reader: &mut Reader<'t>) -> Patch<'t> {
    let target = Trail::root("target");
    let filter = patch.target.filter.as_deref();
    let filter = filter.and_then(|filter| reader.expression(filter, &target.field("where")));
    let root = Trail::root("operations");
    let operations = patch.operations.iter().enumerate();
    Patch {
        label: format!("patch {at}"),
        kind: &patch.target.kind,
        filter,
        operations: operations
            .map(|(at, written)| operation(written, &root.item(at), reader))
            .collect(),
    }
}

fn operation<'t>(
    written: &'t PatchOperation,
    trail: &Trail<'_>,
    reader: &mut Reader<'t>,
) -> Operation<'t> {
    let at_path = trail.field("path");
    let path = reader.text(&written.path, &at_path);
    if path.is_constant()
        && let Err(error) = patch::Path::parse(&written.path)
    {
        reader.fault(fault(at_path.to_string(), error.to_string()));
    }
    let value = written.value.as_ref();
    Operation {
        verb: written.op,
        path,
        value: value.map(|value| reader.template(value, &trail.field("value"))),
    }
}

fn fault(path: impl Into<String>, message: impl Into<String>) -> Fault {
    Fault {
        path: path.into(),
        column: None,
        message: message.into(),
    }
}
