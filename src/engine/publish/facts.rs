//! Reads the facts of a plan again from the server, because a watch may be late. Describes facts that are no longer
//! true, and who changed the objects.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};

use crate::api::operation;
use crate::engine::plan::{Change, Plan};
use crate::engine::repeat::repeat;
use crate::engine::subject::Kind;
use crate::engine::world::{Key, World};

/// The live subjects of the checked changes, and the live objects of their facts.
#[derive(Default)]
pub(super) struct Now {
    world: World,
    subjects: HashMap<(&'static str, Key), DynamicObject>,
}

impl Now {
    /// Reads the subjects of `changes` and the objects of their facts from the server. An object of several facts is
    /// read once.
    pub(super) async fn read<'c>(
        client: &Client,
        changes: impl IntoIterator<Item = &'c Change>,
    ) -> Result<Self, kube::Error> {
        let mut now = Self::default();
        let mut asked = HashSet::new();
        for change in changes {
            for fact in &change.facts {
                if asked.insert(fact.about()) {
                    fact.read(client, &mut now.world).await?;
                }
            }
            // Read the subject last. If a fact about the subject changes during these reads, the subject read here
            // contains that change.
            let (kind, key) = (change.subject.kind, change.key());
            let resource = (kind.resource)();
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), &key.namespace, &resource);
            if let Some(object) = repeat(|| api.get_opt(&key.name)).await? {
                now.subjects.insert((kind.name, key.clone()), object);
            }
        }
        Ok(now)
    }

    /// Returns the live subject of a change; None if it does not exist.
    pub(super) fn object(&self, change: &Change) -> Option<&DynamicObject> {
        let key = (change.subject.kind.name, change.key().clone());
        self.subjects.get(&key)
    }

    /// Returns whether the subject has changed since plan time: its uid, its revision, or a field that the plan
    /// depends on.
    pub(super) fn has_moved(&self, change: &Change) -> bool {
        let kind = change.subject.kind;
        self.object(change).and_then(|object| kind.expected(object)) != change.expected
    }

    /// Returns whether this plan already made the newest change of the subject, for example in an earlier run.
    pub(super) fn is_of(&self, plan: &Plan, change: &Change) -> bool {
        let kind = change.subject.kind;
        let object = self.object(change);
        let operation = object.and_then(|object| kind.operation(object));
        operation.is_some_and(|operation| operation.id == plan.operation)
    }

    /// Describes the first fact of a change that is no longer true; None if all facts are true.
    pub(super) fn broken(&self, change: &Change, at: Timestamp) -> Option<String> {
        if self.has_moved(change) {
            return Some(changed(change, self.object(change), at));
        }
        let mut facts = change.facts.iter();
        let broken = facts.find(|fact| !fact.holds(&self.world, at));
        broken.map(|fact| fact.describe(&self.world, change, at))
    }
}

/// Describes the change that another user or tool made to the subject after plan time, with author and time.
pub(super) fn changed(change: &Change, object: Option<&DynamicObject>, at: Timestamp) -> String {
    let name = &change.key().name;
    let Some(object) = object else {
        let ran = change.from.as_ref();
        let ran = ran.map(|from| format!("; it ran {}", from.name));
        return format!("{name} was deleted{}", ran.unwrap_or_default());
    };
    let content = (change.subject.kind.content)(object, at, false).name;
    let what = match &change.expected {
        None => "was created with",
        Some(expected) if object.metadata.uid.as_ref() != Some(&expected.uid) => {
            "was deleted and created again with"
        }
        Some(_) => "was changed to",
    };
    let by = by_whom(change.subject.kind, object);
    format!("{name} {what} {content}{by}")
}

/// Describes the author and the time of the newest change of an object's spec. They come from the operation
/// annotation, or else from the managed fields.
fn by_whom(kind: &Kind, object: &DynamicObject) -> String {
    let operation = kind.operation(object);
    let managers = object.metadata.managed_fields.iter().flatten();
    let of_spec = managers.filter_map(|manager| {
        let spec = manager.fields_v1.as_ref()?.0.get("f:spec")?;
        let whole = manager
            .subresource
            .as_deref()
            .unwrap_or_default()
            .is_empty();
        // Managed fields have times in whole seconds. If two managers have the same time, the manager of the main
        // field is taken as the author.
        let mut path = kind.main_field.iter().skip(1);
        let owns = path.try_fold(spec, |fields, step| fields.get(format!("f:{step}")));
        whole.then(|| (manager.time.clone(), owns.is_some(), manager))
    });
    let writer = of_spec.max_by_key(|(time, owns, _)| (time.clone(), *owns));
    let writer = writer.map(|(_, _, manager)| manager);
    let tool = writer.and_then(|writer| writer.manager.as_deref());
    let by = match (operation::changed_by(object), &operation, tool) {
        (Some(user), Some(_), _) | (Some(user), None, None) => format!(" by {user}"),
        (Some(user), None, Some(tool)) => format!(" by {user} with {tool}"),
        (None, _, Some(tool)) => format!(" by an unknown user with {tool}"),
        (None, _, None) => String::new(),
    };
    let written = writer.and_then(|writer| writer.time.clone());
    let at = operation.map(|operation| operation.at).or(written);
    let at = at.map(|at| format!(" at {}", at.0)).unwrap_or_default();
    by + &at
}
