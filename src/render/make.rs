//! Evaluates resource templates and applies the patches of addons.

use std::time::Duration;

use bounded_cel::{Bindings, Budget};
use serde_json::{Value, json};

use super::context::Names;
use super::error::Fault;
use super::finish::{self, Made};
use super::read::{Blueprint, Patch, Resource};
use super::template::{Expression, Scope, Trail};
use super::{Definition, Notes, patch};
use crate::api::choreo::rendered::RenderedResource;
use crate::text;

/// The largest number of resources that a component may have.
const RESOURCES: usize = 1000;
/// The largest total size of a component's resources, in bytes. An API server accepts less for a single object, so no
/// valid resource exceeds this.
const BYTES: usize = 4 << 20;
/// The largest nesting depth of a resource, which is the limit of the YAML reader.
const DEPTH: usize = 100;
/// The largest number of evaluation steps for all expressions of a component together.
const STEPS: u64 = 20_000_000;
/// The longest time for all expressions of a component together.
const DEADLINE: Duration = Duration::from_secs(10);

/// Creates the resources of a component, and applies the patches of its addons.
pub(super) fn make(blueprint: &Blueprint<'_>, notes: &mut Notes) -> Vec<Made> {
    let mut workshop = Renderer {
        budget: Budget::new(STEPS, DEADLINE).with_output(BYTES),
        bytes: 0,
        made: Vec::new(),
    };
    let names = blueprint.context.of_type();
    workshop.create(&blueprint.type_, &blueprint.resources, "", &names, notes);
    for addon in &blueprint.addons {
        let names = blueprint.context.of_addon(&addon.instance_id, &addon.spec);
        let owner = &addon.definition;
        workshop.create(owner, &addon.creates, &addon.prefix, &names, notes);
        for patch in &addon.patches {
            // After an error, no patch is applied, because it could fail only because of this error.
            if notes.problems.is_empty()
                && let Err(fault) = workshop.patch(patch, &names)
            {
                notes.blame(owner, &patch.label, [fault]);
            }
        }
    }
    workshop.made
}

struct Renderer {
    budget: Budget,
    bytes: usize,
    made: Vec<Made>,
}

impl Renderer {
    fn create(
        &mut self,
        owner: &Definition,
        resources: &[Resource<'_>],
        prefix: &str,
        names: &Names<'_>,
        notes: &mut Notes,
    ) {
        for resource in resources {
            if let Err(fault) = self.expand(owner, resource, prefix, names) {
                notes.blame(owner, &resource.label, [fault]);
            }
        }
    }

    /// Creates the resources of one template: none or one; with forEach, none or one for each item.
    fn expand(
        &mut self,
        owner: &Definition,
        resource: &Resource<'_>,
        prefix: &str,
        names: &Names<'_>,
    ) -> Result<(), Fault> {
        let id = format!("{prefix}{}", resource.id);
        let Some(each) = &resource.each else {
            let bindings = names.bind();
            return match self.includes(resource, &bindings)? {
                true => self.make(owner, resource, id, &bindings),
                false => Ok(()),
            };
        };
        // The condition is evaluated for each item only if it uses the item, otherwise once.
        let by_item = resource
            .include
            .as_ref()
            .is_some_and(|include| include.uses(resource.variable));
        if !by_item && !self.includes(resource, &names.bind())? {
            return Ok(());
        }
        for (at, item) in self.items(each, &names.bind())?.iter().enumerate() {
            let bindings = names.bind().with(resource.variable, item);
            if !by_item || self.includes(resource, &bindings)? {
                self.make(owner, resource, format!("{id}-{at}"), &bindings)?;
            }
        }
        Ok(())
    }

    fn includes(
        &mut self,
        resource: &Resource<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<bool, Fault> {
        match &resource.include {
            Some(include) => include.holds(&Trail::root("includeWhen"), &mut self.scope(bindings)),
            None => Ok(true),
        }
    }

    /// Evaluates a forEach expression. Returns the items of its list, or the entries of its map as `{key, value}`,
    /// sorted by key.
    fn items(&mut self, each: &Expression, bindings: &Bindings<'_>) -> Result<Vec<Value>, Fault> {
        let trail = Trail::root("forEach");
        match each.value(&trail, &mut self.scope(bindings))? {
            Some(Value::Array(items)) => Ok(items),
            Some(Value::Object(map)) => Ok(map
                .into_iter()
                .map(|(key, value)| json!({"key": key, "value": value}))
                .collect()),
            None => Ok(Vec::new()),
            Some(_) => Err(each.fault(&trail, "this must be a list or a map")),
        }
    }

    fn make(
        &mut self,
        owner: &Definition,
        resource: &Resource<'_>,
        id: String,
        bindings: &Bindings<'_>,
    ) -> Result<(), Fault> {
        let trail = Trail::root("template");
        let value = resource.template.value(&trail, &mut self.scope(bindings))?;
        // The value exists always, because the template is a map and not a single expression.
        let value = value.unwrap_or_default();
        check_depth(&value, "template")?;
        let bytes = serde_json::to_vec(&value).map_or(0, |json| json.len());
        self.grow(bytes, "template")?;
        let Value::Object(object) = value else {
            return Err(fault("template", "this must be a map"));
        };
        if self.made.len() >= RESOURCES {
            let message = format!("there are more than {RESOURCES} resources; make fewer");
            return Err(fault("forEach", message));
        }
        self.made.push(Made {
            resource: RenderedResource { id, object },
            definition: owner.clone(),
            template: resource.label.clone(),
        });
        Ok(())
    }

    /// Applies a patch to all resources that it selects. Fails if it selects no resource.
    fn patch(&mut self, patch: &Patch<'_>, names: &Names<'_>) -> Result<(), Fault> {
        let mut found = false;
        for at in 0..self.made.len() {
            let Some(made) = self.made.get_mut(at) else {
                break;
            };
            if made.resource.object.get("kind").and_then(Value::as_str) != Some(patch.kind) {
                continue;
            }
            let before = Value::Object(made.resource.object.clone());
            let Some(after) = self.patched(&before, patch, names)? else {
                continue;
            };
            found = true;
            check_depth(&after, "operations")?;
            let (Value::Object(object), Some(made)) = (after, self.made.get_mut(at)) else {
                return Err(fault("operations", "the patched resource is not a map"));
            };
            finish::check_identity(&object).map_err(|(field, message)| {
                fault(
                    "operations",
                    format!("the patched resource has no valid {field}: {message}"),
                )
            })?;
            made.resource.object = object;
        }
        match (found, &patch.filter) {
            (true, _) => Ok(()),
            (false, None) => Err(fault(
                "target.kind",
                format!(
                    "no {} is among the resources that were rendered before",
                    patch.kind
                ),
            )),
            (false, Some(filter)) => {
                let message = format!(
                    "it selects no {} among the resources that were rendered before",
                    patch.kind
                );
                Err(filter.fault(&Trail::root("target").field("where"), &message))
            }
        }
    }

    /// Returns a resource after the operations of a patch. None if the patch does not select the resource.
    fn patched(
        &mut self,
        resource: &Value,
        patch: &Patch<'_>,
        names: &Names<'_>,
    ) -> Result<Option<Value>, Fault> {
        let bindings = names.bind().with("resource", resource);
        if let Some(filter) = &patch.filter {
            let target = Trail::root("target");
            if !filter.holds(&target.field("where"), &mut self.scope(&bindings))? {
                return Ok(None);
            }
        }
        let mut object = resource.clone();
        let operations = Trail::root("operations");
        for (at, operation) in patch.operations.iter().enumerate() {
            let trail = operations.item(at);
            let value = match &operation.value {
                Some(value) => {
                    match value.value(&trail.field("value"), &mut self.scope(&bindings))? {
                        // The patch operation is skipped, because its value is an empty optional.
                        None => continue,
                        value => value,
                    }
                }
                None => None,
            };
            let trail = trail.field("path");
            let scope = &mut self.scope(&bindings);
            let path = operation.path.text(&trail, scope, patch::escape)?;
            // A position in the evaluated path would not be a position in the template, so the error shows the
            // evaluated path and no column.
            let shown = text::fit(&path, 200);
            let failed = |message| fault(trail.to_string(), format!("{shown}: {message}"));
            let path = patch::Path::parse(&path).map_err(|error| failed(error.to_string()))?;
            let added = patch::apply(&mut object, operation.verb, &path, value.as_ref())
                .map_err(|error| failed(error.to_string()))?;
            if self.budget.is_late() {
                return Err(failed("the patches took too long; make fewer".to_owned()));
            }
            self.grow(added, "operations")?;
        }
        Ok(Some(object))
    }

    /// Adds bytes to the total size of the component's resources. Fails if the total size exceeds [`BYTES`].
    fn grow(&mut self, bytes: usize, path: &str) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes > BYTES {
            true => Err(fault(
                path,
                format!("the resources have more than {BYTES} bytes; make them smaller"),
            )),
            false => Ok(()),
        }
    }

    fn scope<'s>(&'s mut self, bindings: &'s Bindings<'s>) -> Scope<'s> {
        Scope {
            bindings,
            budget: &mut self.budget,
        }
    }
}

/// Returns an error if a value is nested deeper than [`DEPTH`], so that it can be written and compared safely.
fn check_depth(value: &Value, path: &str) -> Result<(), Fault> {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > DEPTH {
            let message = format!("the resource is nested more than {DEPTH} levels deep");
            return Err(fault(path, message));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn fault(path: impl Into<String>, message: impl Into<String>) -> Fault {
    Fault {
        path: path.into(),
        column: None,
        message: message.into(),
    }
}
