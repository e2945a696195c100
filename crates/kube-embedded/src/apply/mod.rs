//! Server-side apply, and the field owners in `metadata.managedFields`.
//!
//! The merge has the rules of kube-apiserver: it merges maps field by field unless they are atomic, list maps by key
//! and sets by value, and replaces all other values as a whole. It compares fields only in the API version of the
//! request, also fields that an owner wrote in another version. The caller sets the defaults, prunes and validates
//! the result, and does not write an unchanged object.

mod fieldset;
mod fit;
mod managed;
mod typed;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use fieldset::{FieldSet, Step};

use self::managed::{Identity, Managed, Owned};
use crate::schema::Schema;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How a manager has got the ownership of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply, for which the manager sends all fields that it owns.
    Apply,
    /// By any other write. The manager owns the fields that this write changed.
    Update,
}

impl Operation {
    /// Returns the name of this operation in `managedFields`.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// The field manager of a write request, and the properties of the request that managedFields records.
#[derive(Debug, Clone, Copy)]
pub struct Manager<'a> {
    /// The name of the field manager: as the client sends it, or else the part of the client's user agent before the
    /// slash.
    pub name: &'a str,
    /// How this request gets the ownership of fields. The functions of this module ignore this field.
    pub operation: Operation,
    /// The API group and version of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource in the request, such as `status`; None for the object itself.
    pub subresource: Option<&'a str>,
    /// The time of the request in RFC 3339, without fractions of a second.
    pub time: &'a str,
    /// The fields that a write to this endpoint ignores, as dotted paths: for example `status` for the object itself,
    /// and `spec` for its subresource `status`.
    pub reset_fields: &'a [&'a str],
}

/// A conflict of a server-side apply: another manager owns a field with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The name of the other manager.
    pub manager: String,
    /// The subresource that the other manager wrote; None for the object itself.
    pub subresource: Option<String>,
    /// The API version in which the other manager wrote the field.
    pub api_version: String,
    /// The time of the other manager's last write; None if it is not recorded.
    pub time: Option<String>,
    /// How the other manager has got the ownership of the field.
    pub operation: Operation,
    /// The path of the field in conflict, such as `.spec.template.spec.containers[name="main"].image`.
    pub field: String,
}

impl Conflict {
    /// Describes the other manager in the words of kube-apiserver: `"kubectl" using apps/v1`.
    fn owner(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if let Some(subresource) = &self.subresource {
            text.push_str(&format!(" with subresource {subresource:?}"));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }

    /// Returns the message about this conflict for `status.details.causes[].message`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.owner())
    }
}

/// Returns the message of kube-apiserver about all conflicts of one server-side apply.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            only.message(),
            only.field
        );
    }
    let mut lines = Vec::new();
    let mut owner = String::new();
    for conflict in conflicts {
        let next = conflict.owner();
        if next != owner {
            lines.push(format!("conflicts with {next}:"));
            owner = next;
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}

/// The reason why a server-side apply failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields of the configuration with other values. The API answers 409.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<Conflict>),
    /// The applied configuration contains `metadata.managedFields`, which is not allowed. The API answers 400.
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The applied configuration is not a JSON object. The API answers 400.
    #[error("the applied configuration must be an object with apiVersion, kind and metadata")]
    NotAnObject,
    /// The types in the applied configuration do not match the schema. The API answers 500.
    #[error("failed to create typed patch object ({object}): {why}")]
    Untyped {
        /// The name of the object to which the configuration is applied.
        object: String,
        /// The type errors in the configuration, each with its field path.
        why: String,
    },
    /// The `managedFields` of the stored object cannot be parsed. The API answers 500.
    #[error(
        "failed to decode managed fields: reset them by sending metadata.managedFields: [{{}}]"
    )]
    BadManagedFields,
}

impl ApplyError {
    /// Returns the HTTP status code and the reason for the Status answer.
    pub fn status(&self) -> (u16, &'static str) {
        match self {
            ApplyError::Conflict(_) => (409, "Conflict"),
            ApplyError::ManagedFields | ApplyError::NotAnObject => (400, "BadRequest"),
            ApplyError::Untyped { .. } | ApplyError::BadManagedFields => (500, ""),
        }
    }
}

/// Records in `after.metadata.managedFields` that the manager of a write owns the fields that the write changes. The
/// write must not be a server-side apply.
///
/// `after` is the object to store, with its defaults. `before` is the stored object; None for a creation.
pub fn track_update(
    schema: &Schema,
    before: Option<&Value>,
    after: &mut Value,
    manager: &Manager<'_>,
) {
    let live = before.map_or_else(Managed::new, |b| managed::decode(b).unwrap_or_default());
    let mut owners = if manager.subresource.is_some() {
        live
    } else if managed::is_reset(after) {
        Managed::new()
    } else {
        match managed::decode(after) {
            Some(sent) if !sent.is_empty() => sent,
            _ => live,
        }
    };
    managed::forget(after);
    // An object without owners stays without owners, because only a server-side apply adds the first one.
    if owners.is_empty() && before.is_some() {
        return;
    }
    record(schema, before, after, &mut owners, manager);
    managed::cap(&mut owners);
    managed::encode(after, &owners);
}

/// Returns an object without the client's fields. A new object is compared with it, to find the fields that the
/// client has set.
fn nothing(schema: &Schema, like: &Value) -> Value {
    let mut zero = if schema.is_built_in() {
        typed::zero(schema.root())
    } else {
        Value::Object(Map::new())
    };
    for key in ["apiVersion", "kind"] {
        if let (Some(map), Some(value)) = (zero.as_object_mut(), like.get(key)) {
            map.insert(key.to_owned(), value.clone());
        }
    }
    zero
}

fn reset_set(manager: &Manager<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    for path in manager.reset_fields {
        let steps: Vec<Step> = path.split('.').map(Step::field).collect();
        set.insert(&steps);
    }
    set
}

fn record(
    schema: &Schema,
    before: Option<&Value>,
    after: &Value,
    owners: &mut Managed,
    manager: &Manager<'_>,
) {
    let old = match before {
        Some(before) => {
            let mut old = before.clone();
            managed::forget(&mut old);
            old
        }
        None => nothing(schema, after),
    };
    let comparison = typed::compare(schema.root(), &old, after).without(&reset_set(manager));
    let taken = comparison.modified.union(&comparison.added);
    for owned in owners.values_mut() {
        owned.fields = owned
            .fields
            .difference(&taken)
            .difference(&comparison.removed);
    }
    owners.retain(|_, owned| !owned.fields.is_empty());
    let identity = Identity::of(manager, Operation::Update);
    let mut own = Managed::from([(
        identity.clone(),
        Owned {
            api_version: manager.api_version.to_owned(),
            fields: taken,
            time: Some(manager.time.to_owned()),
        },
    )]);
    managed::strip(&mut own, &identity);
    if let Some(mut new) = own.remove(&identity) {
        if let Some(previous) = owners.get(&identity) {
            new.fields = new.fields.union(&previous.fields);
        }
        owners.insert(identity, new);
    }
}

/// Applies a configuration to the stored object `live`; if `live` is None, creates the object.
///
/// The result contains its owners in `metadata.managedFields`, but no defaults yet. If the result is equal to `live`,
/// the caller does not need to write it.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    if !applied.is_object() {
        return Err(ApplyError::NotAnObject);
    }
    if managed::entries(applied).is_some() {
        return Err(ApplyError::ManagedFields);
    }
    let errors = fit::errors(schema.root(), applied);
    if !errors.is_empty() {
        return Err(ApplyError::Untyped {
            object: described(applied),
            why: match errors.as_slice() {
                [only] => only.clone(),
                many => format!("errors:\n  {}", many.join("\n  ")),
            },
        });
    }
    let mut owners = match live {
        Some(live) => managed::decode(live).ok_or(ApplyError::BadManagedFields)?,
        None => Managed::new(),
    };
    let mut current = live.cloned().unwrap_or_else(|| nothing(schema, applied));
    managed::forget(&mut current);
    if owners.is_empty() && live.is_some() {
        let before = Manager {
            name: "before-first-apply",
            ..*manager
        };
        record(schema, None, &current, &mut owners, &before);
    }
    let mut result = lay_over(schema, &current, applied, owners.clone(), manager, force);
    // kubectl may take over the fields that it has set before with client-side apply, so conflicts about them are
    // ignored.
    if manager.name == "kubectl"
        && let Err(conflicts) = &result
    {
        let allowed = last_applied(schema, &current, manager);
        let others: Vec<Conflict> = conflicts
            .iter()
            .filter(|(path, _)| !allowed.has(path))
            .map(|(_, conflict)| conflict.clone())
            .collect();
        if !others.is_empty() {
            return Err(ApplyError::Conflict(others));
        }
        result = lay_over(schema, &current, applied, owners, manager, true);
    }
    let (merged, owners) = result
        .map_err(|found| ApplyError::Conflict(found.into_iter().map(|(_, c)| c).collect()))?;
    let mut object = merged.unwrap_or(current);
    if manager.name == "kubectl" {
        refresh_last_applied(&mut object, applied);
    }
    managed::encode(&mut object, &owners);
    Ok(object)
}

fn described(applied: &Value) -> String {
    let text = |pointer: &str| {
        applied
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let api_version = text("/apiVersion");
    let version = if api_version.contains('/') {
        api_version.to_owned()
    } else {
        format!("/{api_version}")
    };
    format!(
        "{}/{}; {version}, Kind={}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind")
    )
}

type Conflicts = Vec<(Vec<Step>, Conflict)>;

/// Merges the configuration into the stored object, removes the fields that the manager no longer sends, and updates
/// the owners. If other managers own fields with other values, takes them over with `force`, and fails without it.
fn lay_over(
    schema: &Schema,
    current: &Value,
    applied: &Value,
    mut owners: Managed,
    manager: &Manager<'_>,
    force: bool,
) -> Result<(Option<Value>, Managed), Conflicts> {
    let root = schema.root();
    let identity = Identity::of(manager, Operation::Apply);
    let reset = reset_set(manager);
    let merged = typed::merge(root, current, applied);
    let last = owners.get(&identity).cloned();
    let own = Owned {
        api_version: manager.api_version.to_owned(),
        fields: typed::field_set(root, applied).without(&reset),
        time: last.as_ref().and_then(|l| l.time.clone()),
    };
    owners.insert(identity.clone(), own);
    let merged = match last {
        Some(last) if !last.fields.is_empty() => dropped(schema, merged, &last.fields, &owners),
        _ => merged,
    };

    let comparison = typed::compare(root, current, &merged).without(&reset);
    let taken = comparison.modified.union(&comparison.added);
    let mut conflicts = Conflicts::new();
    for (other, owned) in owners.iter_mut().filter(|(other, _)| **other != identity) {
        let disputed = owned.fields.intersection(&taken);
        disputed.for_each(&mut |path| {
            let conflict = Conflict {
                manager: other.manager.clone(),
                subresource: other.subresource.clone(),
                api_version: owned.api_version.clone(),
                time: owned.time.clone(),
                operation: other.operation,
                field: path.iter().map(ToString::to_string).collect(),
            };
            conflicts.push((path.to_vec(), conflict));
        });
        owned.fields = owned
            .fields
            .difference(&disputed)
            .difference(&comparison.removed);
    }
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    owners.retain(|_, owned| !owned.fields.is_empty());
    managed::strip(&mut owners, &identity);
    if merged == *current {
        return Ok((None, owners));
    }
    if let Some(own) = owners.get_mut(&identity) {
        own.time = Some(manager.time.to_owned());
    }
    Ok((Some(merged), owners))
}

/// Removes the fields from an object that this manager sent in its last apply, does not send now, and that no other
/// manager owns.
fn dropped(schema: &Schema, merged: Value, last: &FieldSet, owners: &Managed) -> Value {
    let root = schema.root();
    let named = |set: &FieldSet| set.with_named_fields(root);
    let last = named(last);
    let all = named(&typed::field_set(root, &merged));
    let mut owned = FieldSet::default();
    for owner in owners.values() {
        owned = owned.union(&named(&owner.fields));
    }
    let without_last = typed::remove(root, &merged, &last);
    let kept = named(&typed::field_set(root, &without_last)).union(&owned);
    let pruned = typed::remove(root, &merged, &all.difference(&kept));
    // Some fields were removed together with their map or list although this manager did not own them. They are
    // restored.
    let remaining = named(&typed::field_set(root, &pruned));
    typed::remove(
        root,
        &merged,
        &all.difference(&remaining).intersection(&last),
    )
}

/// Returns the fields in kubectl's last-applied annotation that still have the value in the annotation.
fn last_applied(schema: &Schema, live: &Value, manager: &Manager<'_>) -> FieldSet {
    let annotation = live
        .pointer("/metadata/annotations")
        .and_then(|a| a.get(LAST_APPLIED))
        .and_then(Value::as_str);
    let Some(last) = annotation.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return FieldSet::default();
    };
    if last.get("apiVersion").and_then(Value::as_str) != Some(manager.api_version)
        || !fit::errors(schema.root(), &last).is_empty()
    {
        return FieldSet::default();
    }
    let comparison = typed::compare(schema.root(), &last, live);
    typed::field_set(schema.root(), &last)
        .difference(&comparison.modified)
        .difference(&comparison.added)
        .difference(&comparison.removed)
}

/// Updates kubectl's last-applied annotation to the applied configuration, because some clients still use client-side
/// apply.
fn refresh_last_applied(object: &mut Value, applied: &Value) {
    let annotations = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut);
    let Some(annotation) = annotations.and_then(|a| a.get_mut(LAST_APPLIED)) else {
        return;
    };
    if annotation.as_str().is_none_or(str::is_empty) {
        return;
    }
    let mut config = applied.clone();
    if let Some(annotations) = config
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(LAST_APPLIED);
    }
    *annotation = Value::from(format!("{config}\n"));
}
