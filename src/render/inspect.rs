//! Finds errors in a definition without rendering it, because no component may use it yet.

use kube::ResourceExt;

use super::context;
use super::library::Library;
use super::read;
use super::template::Reader;
use super::{Definition, Notes, Problem};
use crate::api::{Addon, ComponentTypeDefinition, Object};

/// Returns the errors in the schema and the templates of a ComponentTypeDefinition.
pub fn faults_of_type(definition: &ComponentTypeDefinition, library: &Library) -> Vec<Problem> {
    let owner = Definition {
        kind: "ComponentTypeDefinition",
        name: definition.name_any(),
    };
    let mut notes = Notes::default();
    schema(
        &definition.spec.schema.parameters,
        &owner,
        library,
        &mut notes,
    );
    let mut reader = Reader::new(library, context::OF_TYPE);
    let templates = &definition.spec.resources;
    read::resources(&owner, "resource", templates, &mut reader, &mut notes);
    notes.some_problems()
}

/// Returns the errors in the schema, the templates and the patches of an Addon.
pub fn faults_of_addon(addon: &Addon, library: &Library) -> Vec<Problem> {
    let owner = Definition {
        kind: "Addon",
        name: addon.name_any(),
    };
    let mut notes = Notes::default();
    schema(&addon.spec.schema.parameters, &owner, library, &mut notes);
    let mut reader = Reader::new(library, context::OF_ADDON);
    read::resources(
        &owner,
        "create",
        &addon.spec.creates,
        &mut reader,
        &mut notes,
    );
    read::patches(&owner, &addon.spec.patches, &mut reader, &mut notes);
    notes.some_problems()
}

fn schema(parameters: &Object, owner: &Definition, library: &Library, notes: &mut Notes) {
    if parameters.is_empty() {
        return;
    }
    let problems = library.schema(parameters).err().unwrap_or_default();
    notes
        .problems
        .extend(super::parameters::of_schema(owner, problems));
}
