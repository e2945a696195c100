//! Turns a plan into a commit: edits the files of the subjects, and writes a message about the plan.

use serde_json::Value;

use crate::api::bowline::audit::Action;
use crate::api::hold::Hold;
use crate::engine::plan::{Change, Plan};
use crate::gitops::facts::CommitFacts;
use crate::gitops::propose::{Message, NewObject, ObjectEdits, Proposal, ProposeError};
use crate::gitops::tree::{EditsError, Trailers, Tree};

/// Builds the commit of a plan. `new` is an object that the plan needs and that the commit creates, such as a
/// release.
pub(super) fn propose(
    tree: &Tree,
    plan: &Plan,
    new: Option<NewObject>,
) -> Result<Proposal, ProposeError> {
    let mut edits = ObjectEdits::of(tree);
    if let Some(object) = new {
        edits.create(object)?;
    }
    for change in plan.changing() {
        let resource = change.subject.kind.group_resource();
        match tree.place(&resource, &change.key().namespace, &change.key().name) {
            Some(place) => {
                let mut document = tree.document(&place)?;
                write(change, &mut document);
                edits.set(place, document);
            }
            None => edits.create(NewObject {
                resource,
                document: created(change),
            })?,
        }
    }
    let mut proposal = edits.propose(&plan.operation, &message(plan))?;
    proposal.facts = facts(tree, plan)?;
    Ok(proposal)
}

/// Returns the objects that the branch of the commit must contain unchanged: the objects that the rules of the plan
/// have read, and the subjects that already have the desired state.
fn facts(tree: &Tree, plan: &Plan) -> Result<CommitFacts, EditsError> {
    let mut objects = Vec::new();
    for change in &plan.changes {
        if change.unchanged {
            objects.push((change.subject.kind.group_resource(), change.key().clone()));
            continue;
        }
        objects.extend(change.facts.iter().filter_map(|fact| fact.in_files()));
    }
    let objects = objects.iter();
    let objects = objects.map(|(resource, key)| (resource.clone(), &*key.namespace, &*key.name));
    CommitFacts::of_objects(tree, objects)
}

/// Writes the fields of a change into the subject's document. All other content of the document stays.
fn write(change: &Change, document: &mut Value) {
    // If no hold changes, the holds are left out, so that their text in the file stays the same byte by byte.
    let fields = match change.holds == change.holds_before {
        true => change.fields.clone(),
        false => change.all_fields(),
    };
    for mut field in fields {
        let known = field.of(document);
        if let (Some(known), Some(wanted)) = (known, &field.value) {
            field.value = Some(keep(known, wanted));
        }
        if field.of(document) != field.value.as_ref() {
            field.write(document);
        }
    }
}

/// Returns the list of holds `wanted`. If a hold means the same as one in `known`, the result has the text of
/// `known`, because a file can write the same time in several forms.
fn keep(known: &Value, wanted: &Value) -> Value {
    let (Some(written), Some(items)) = (known.as_array(), wanted.as_array()) else {
        return wanted.clone();
    };
    let hold = |value: &Value| serde_json::from_value::<Hold>(value.clone()).ok();
    let kept = items.iter().map(|item| {
        let own = hold(item);
        let same = written
            .iter()
            .find(|known| own.is_some() && hold(known) == own);
        same.unwrap_or(item).clone()
    });
    kept.collect::<Vec<Value>>().into()
}

/// Returns the document of the new subject, for a change that creates its subject.
fn created(change: &Change) -> Value {
    let mut object = change.object();
    object.metadata.namespace = Some(change.key().namespace.to_string());
    serde_json::to_value(&object).unwrap_or_default()
}

/// Returns the commit message of a plan.
fn message(plan: &Plan) -> Message {
    let changing: Vec<&Change> = plan.changing().collect();
    let subject = match changing.as_slice() {
        [change] => of_change(plan.action, change),
        several => {
            let place = several
                .first()
                .map_or("", |change| change.environment.as_str());
            format!(
                "{} {} components in {place}",
                verb(plan.action),
                several.len()
            )
        }
    };
    let (action, reason) = (format!("{:?}", plan.action), plan.reason.as_deref());
    let mut message = Message::new(&plan.operation, &action, subject, reason);
    for change in changing {
        message.trailer(Trailers::COMPONENT, &change.name);
        message.trailer(Trailers::ENVIRONMENT, &change.environment);
        if let Some(from) = &change.from {
            message.trailer(Trailers::FROM, &from.name);
        }
        message.trailer(Trailers::TO, &change.to.name);
        if let Some(revision) = change.restored_from {
            message.trailer(Trailers::RESTORED, revision.to_string());
        }
    }
    message
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Promote => "promote",
        Action::Deploy | Action::AutoDeploy => "deploy",
        Action::Rollback => "roll back",
        Action::Pin => "pin",
        Action::Unpin => "unpin",
        Action::Undo => "undo",
        _ => "change",
    }
}

fn of_change(action: Action, change: &Change) -> String {
    let Change {
        name: component,
        environment,
        to,
        ..
    } = change;
    // The name of a release usually begins with the name of its component, so the subject line does not repeat the
    // component.
    let release = to.name.as_str();
    match action {
        Action::Promote => format!("promote {release} to {environment}"),
        Action::Deploy | Action::AutoDeploy => format!("deploy {release} to {environment}"),
        Action::Rollback => format!("roll back {component} in {environment} to {release}"),
        Action::Pin => format!("pin {component} in {environment} at {release}"),
        Action::Unpin => format!("unpin {component} in {environment}"),
        Action::Undo => format!("undo the last change of {component} in {environment}"),
        _ => format!("change {component} in {environment}"),
    }
}
