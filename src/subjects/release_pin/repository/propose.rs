//! Converts plans to edits of files.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::core::Resource;
use serde_json::{Value, json};

use super::{CommitFacts, Proposal, ProposeError, message};
use crate::api::bowline::audit::Action;
use crate::api::hold::Hold;
use crate::api::openchoreo::release::{Mark, Verdict};
use crate::api::{Release, labels};
use crate::engine::plan::{Change, Plan};
use crate::gitops::tree::{EditsError, ObjectEdit, Place, Trailers, Tree};
use crate::subjects::release_pin::actions::gc::{Candidate, Collection};
use crate::subjects::release_pin::actions::mark::Marking;

/// ReleasePins as `{group}/{plural}`.
pub(super) const PINS: &str = "openchoreo.dev/releasepins";
/// Releases as `{group}/{plural}`.
pub(super) const RELEASES: &str = "openchoreo.dev/releases";

/// Converts a plan of changes to a commit. `unmade` is a release that the commit creates too.
pub fn plan(tree: &Tree, plan: &Plan, unmade: Option<&Release>) -> Result<Proposal, ProposeError> {
    let mut edits = Vec::new();
    let mut warnings = Vec::new();
    if let Some(release) = unmade {
        edits.push(new(tree, RELEASES, document(release), &mut warnings)?);
    }
    for change in plan.changes.iter().filter(|change| !change.unchanged) {
        let place = tree.place(PINS, &change.key().namespace, &change.key().name);
        edits.push(match place {
            Some(place) => moved(tree, place, change)?,
            None => new(tree, PINS, created(change), &mut warnings)?,
        });
    }
    Ok(Proposal {
        operation: plan.operation.clone(),
        message: message::of_plan(plan),
        edits: tree.edits(&edits)?,
        facts: CommitFacts::of_plan(tree, plan)?,
        warnings,
    })
}

/// Returns the edit of a subject's document. It keeps all content that the change does not touch.
fn moved(tree: &Tree, place: Place, change: &Change) -> Result<ObjectEdit, ProposeError> {
    let mut document = tree.document(&place)?;
    // If no hold changes, the edit leaves the holds in the file byte by byte.
    let fields = match change.holds == change.holds_before {
        true => change.fields.clone(),
        false => change.all_fields(),
    };
    for mut field in fields {
        let known = field.of(&document);
        if let (Some(known), Some(wanted)) = (known, &field.value) {
            field.value = Some(keep(known, wanted));
        }
        if field.of(&document) != field.value.as_ref() {
            field.write(&mut document);
        }
    }
    Ok(ObjectEdit::Set { place, document })
}

/// Returns `wanted`, but keeps the written form of each hold in `known` that means the same. A file can write
/// the same time in several forms.
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

/// Returns the document of a subject that the change creates.
fn created(change: &Change) -> Value {
    let mut object = change.object();
    object.metadata.namespace = Some(change.key().namespace.to_string());
    serde_json::to_value(&object).unwrap_or_default()
}

/// Converts an object to a document for a file.
fn document<K: Resource<DynamicType = ()> + serde::Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.remove("status");
        map.insert("apiVersion".to_owned(), K::api_version(&()).as_ref().into());
        map.insert("kind".to_owned(), K::kind(&()).as_ref().into());
    }
    value
}

/// Returns the edit that adds a new object. The object gets a namespace field only if the existing objects of
/// its kind have one.
fn new(
    tree: &Tree,
    resource: &str,
    mut document: Value,
    warnings: &mut Vec<String>,
) -> Result<ObjectEdit, ProposeError> {
    let namespace = document["metadata"]["namespace"]
        .as_str()
        .map(str::to_owned);
    let own = namespace.is_none_or(|namespace| namespace == tree.namespace());
    if own
        && !tree.says_namespaces(resource)
        && let Some(meta) = document.get_mut("metadata").and_then(Value::as_object_mut)
    {
        meta.remove("namespace");
    }
    let path = tree.new_file(resource, &document);
    let path = path.map_err(EditsError::from)?;
    if let Some(beside) = tree.kustomization_beside(&path) {
        warnings.push(format!(
            "{path} is new and {beside} does not name it: add it to its resources"
        ));
    }
    Ok(ObjectEdit::New {
        resource: resource.to_owned(),
        document,
    })
}

/// Converts a new release to a commit.
pub fn release(
    tree: &Tree,
    release: &Release,
    operation: &str,
    reason: Option<&str>,
) -> Result<Proposal, ProposeError> {
    let mut warnings = Vec::new();
    let edit = new(tree, RELEASES, document(release), &mut warnings)?;
    let name = release.name_any();
    let trailers = [
        (Trailers::OPERATION, operation.to_owned()),
        (Trailers::ACTION, "Release".to_owned()),
        (Trailers::COMPONENT, release.spec.component.name.clone()),
        (Trailers::TO, name.clone()),
    ];
    Ok(Proposal {
        operation: operation.to_owned(),
        message: message::message(&format!("release {name}"), reason, &trailers),
        edits: tree.edits(&[edit])?,
        facts: CommitFacts::default(),
        warnings,
    })
}

/// Converts the plan of a mark to a commit.
pub fn marking(tree: &Tree, marking: &Marking) -> Result<Proposal, ProposeError> {
    let name = &marking.release.name;
    let place = tree.place(RELEASES, &marking.release.namespace, name);
    let place = place.ok_or_else(|| ProposeError::NoFile(format!("release {name}")))?;
    let mut document = tree.document(&place)?;
    let mark = Mark {
        verdict: marking.verdict,
        by: marking.by.clone(),
        at: Time(marking.at),
        note: marking.reason.clone(),
        operation: Some(marking.operation.clone()),
    };
    let text = serde_json::to_string(&mark).unwrap_or_default();
    let meta = &mut document["metadata"];
    let mut annotations = meta["annotations"].clone();
    if !annotations.is_object() {
        annotations = json!({});
    }
    annotations[labels::MARK] = text.into();
    meta["annotations"] = annotations;
    let component = document["spec"]["component"]["name"].as_str();
    let component = component.unwrap_or_default().to_owned();
    let (action, word) = match marking.verdict {
        Verdict::Bad => (Action::MarkBad, "bad"),
        Verdict::Good => (Action::MarkGood, "good"),
    };
    let mut trailers = message::begin(&marking.operation, action);
    trailers.push((Trailers::COMPONENT, component));
    trailers.push((Trailers::TO, name.to_string()));
    Ok(Proposal {
        operation: marking.operation.clone(),
        message: message::message(
            &format!("mark {name} {word}"),
            marking.reason.as_deref(),
            &trailers,
        ),
        edits: tree.edits(&[ObjectEdit::Set { place, document }])?,
        facts: CommitFacts::default(),
        warnings: Vec::new(),
    })
}

/// A gc plan as a commit.
#[derive(Debug)]
pub struct Collected<'c> {
    /// The commit that removes the releases.
    pub proposal: Proposal,
    /// The releases that the commit removes. The warnings of the commit name the other releases, with
    /// reasons.
    pub going: Vec<&'c Candidate>,
}

/// Returns an error if a file cannot be read completely, because it may name a release that gc would remove.
pub(super) fn all_is_read(tree: &Tree) -> Result<(), ProposeError> {
    let problems = tree.problems().into_iter().chain(tree.dangling());
    let problems: Vec<String> = problems.map(|problem| problem.what).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ProposeError::Unread(problems)),
    }
}

/// Converts a gc plan to a commit.
pub fn collection<'c>(tree: &Tree, plan: &'c Collection) -> Result<Collected<'c>, ProposeError> {
    all_is_read(tree)?;
    let mut edits = Vec::new();
    let (mut going, mut warnings) = (Vec::new(), Vec::new());
    let places = tree.places(RELEASES);
    let named = tree.named_by_kustomizations();
    for candidate in plan.releases.iter().filter(|candidate| candidate.goes()) {
        let key = (&*candidate.key.namespace, &*candidate.key.name);
        let mut stays = |why: &str| warnings.push(format!("{} kept: {why}", key.1));
        match places.get(&(key.0.to_owned(), key.1.to_owned())) {
            None => stays("no file contains it"),
            Some(place) if named.contains(&place.path) => stays(&format!(
                "a kustomization names {}: remove it there first",
                place.path
            )),
            Some(place) => {
                edits.push(ObjectEdit::Remove {
                    place: place.clone(),
                });
                going.push(candidate);
            }
        }
    }
    let mut trailers = message::begin(&plan.operation, Action::Collect);
    let components: std::collections::BTreeSet<&str> = going
        .iter()
        .filter_map(|candidate| candidate.component.as_deref())
        .collect();
    trailers.extend(
        components
            .into_iter()
            .map(|component| (Trailers::COMPONENT, component.to_owned())),
    );
    let noun = if going.len() == 1 {
        "release"
    } else {
        "releases"
    };
    let subject = format!("remove {} {noun} that are no longer needed", going.len());
    Ok(Collected {
        proposal: Proposal {
            operation: plan.operation.clone(),
            message: message::message(&subject, plan.reason.as_deref(), &trailers),
            edits: tree.edits(&edits)?,
            facts: CommitFacts::of_collection(tree, &going),
            warnings,
        },
        going,
    })
}
