//! Converts plans to edits of files.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::core::Resource;
use serde_json::{Value, json};

use super::{Grounds, Proposal, ProposeError, message};
use crate::api::audit::Action;
use crate::api::pin::ReleasePinSpec;
use crate::api::reference::NameRef;
use crate::api::release::{Mark, Verdict};
use crate::api::{Release, ReleasePin, labels};
use crate::gitops::tree::{EditsError, Place, Trailers, Tree, Wish};
use crate::subjects::release_pin::actions::gc::{Candidate, Collection};
use crate::subjects::release_pin::actions::mark::Marking;
use crate::subjects::release_pin::plan::{Item, Plan};

/// The resource of ReleasePins.
pub(super) const PINS: &str = "openchoreo.dev/releasepins";
/// The resource of releases.
pub(super) const RELEASES: &str = "openchoreo.dev/releases";

/// Builds the commit of a plan, with the release that it needs and that does not exist yet.
pub fn plan(tree: &Tree, plan: &Plan, unmade: Option<&Release>) -> Result<Proposal, ProposeError> {
    let mut wishes = Vec::new();
    let mut warnings = Vec::new();
    if let Some(release) = unmade {
        wishes.push(new(tree, RELEASES, document(release), &mut warnings)?);
    }
    for item in plan.items.iter().filter(|item| !item.unchanged) {
        let place = tree.place(PINS, &item.pin.namespace, &item.pin.name);
        wishes.push(match place {
            Some(place) => moved(tree, place, item)?,
            None => new(tree, PINS, pin(item), &mut warnings)?,
        });
    }
    Ok(Proposal {
        operation: plan.operation.clone(),
        message: message::of_plan(plan),
        edits: tree.edits(&wishes)?,
        grounds: Grounds::of_plan(tree, plan)?,
        warnings,
    })
}

/// Returns the ReleasePin's document with the change; all other content stays.
fn moved(tree: &Tree, place: Place, item: &Item) -> Result<Wish, ProposeError> {
    let mut document = tree.document(&place)?;
    let holds = serde_json::to_value(&item.holds).unwrap_or_default();
    let spec = document.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec {
        let reference = spec.entry("releaseRef").or_insert_with(|| json!({}));
        if reference["name"] != item.release_ref.as_str() {
            *reference = with(reference, "name", item.release_ref.as_str().into());
        }
        let known = spec.get("holds").cloned().unwrap_or_else(|| json!([]));
        // Compare parsed holds: a file may write the same time in several forms.
        let same = serde_json::from_value::<Vec<crate::api::pin::Hold>>(known.clone());
        match same.is_ok_and(|known| known == item.holds) {
            true => {}
            false if item.holds.is_empty() => {
                spec.remove("holds");
            }
            false => {
                spec.insert("holds".to_owned(), keep(&known, holds));
            }
        }
    }
    Ok(Wish::Set { place, document })
}

/// Returns the wanted holds; unchanged holds keep the form of the file.
fn keep(known: &Value, wanted: Value) -> Value {
    let written = known.as_array().cloned().unwrap_or_default();
    let wanted = wanted.as_array().cloned().unwrap_or_default();
    let hold = |value: &Value| serde_json::from_value::<crate::api::pin::Hold>(value.clone()).ok();
    let kept = wanted.into_iter().map(|wanted| {
        let own = hold(&wanted);
        let same = written
            .iter()
            .find(|known| own.is_some() && hold(known) == own);
        same.cloned().unwrap_or(wanted)
    });
    kept.collect::<Vec<Value>>().into()
}

fn with(object: &Value, field: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[field] = value;
    object
}

fn pin(item: &Item) -> Value {
    let mut pin = ReleasePin::new(
        &item.pin.name,
        ReleasePinSpec {
            component: item.component.clone(),
            environment: item.environment.clone(),
            release_ref: NameRef::new(&item.release_ref),
            holds: item.holds.clone(),
        },
    );
    pin.metadata.namespace = Some(item.pin.namespace.to_string());
    for (label, value) in [
        (labels::COMPONENT, &item.component),
        (labels::ENVIRONMENT, &item.environment),
    ] {
        pin.labels_mut().insert(label.to_owned(), value.clone());
    }
    document(&pin)
}

/// Returns an object as a document of a file.
fn document<K: Resource<DynamicType = ()> + serde::Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.remove("status");
        map.insert("apiVersion".to_owned(), K::api_version(&()).as_ref().into());
        map.insert("kind".to_owned(), K::kind(&()).as_ref().into());
    }
    value
}

/// Returns the edit for a new object. The object names its namespace only if existing objects of its kind
/// do.
fn new(
    tree: &Tree,
    resource: &str,
    mut document: Value,
    warnings: &mut Vec<String>,
) -> Result<Wish, ProposeError> {
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
    Ok(Wish::New {
        resource: resource.to_owned(),
        document,
    })
}

/// Builds the commit of a new release.
pub fn release(
    tree: &Tree,
    release: &Release,
    operation: &str,
    reason: Option<&str>,
) -> Result<Proposal, ProposeError> {
    let mut warnings = Vec::new();
    let wish = new(tree, RELEASES, document(release), &mut warnings)?;
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
        edits: tree.edits(&[wish])?,
        grounds: Grounds::default(),
        warnings,
    })
}

/// Builds the commit of a mark.
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
        edits: tree.edits(&[Wish::Set { place, document }])?,
        grounds: Grounds::default(),
        warnings: Vec::new(),
    })
}

/// The commit of a collection, and its releases.
#[derive(Debug)]
pub struct Collected<'c> {
    /// The commit.
    pub proposal: Proposal,
    /// The removed releases. The warnings of the commit name those that stay, with reasons.
    pub going: Vec<&'c Candidate>,
}

/// Returns an error if a file cannot be read completely: it may name a release that would be removed.
pub(super) fn all_is_read(tree: &Tree) -> Result<(), ProposeError> {
    let problems = tree.problems().into_iter().chain(tree.dangling());
    let problems: Vec<String> = problems.map(|problem| problem.what).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ProposeError::Unread(problems)),
    }
}

/// Builds the commit of a collection.
pub fn collection<'c>(tree: &Tree, plan: &'c Collection) -> Result<Collected<'c>, ProposeError> {
    all_is_read(tree)?;
    let mut wishes = Vec::new();
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
                wishes.push(Wish::Remove {
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
            edits: tree.edits(&wishes)?,
            grounds: Grounds::of_collection(tree, &going),
            warnings,
        },
        going,
    })
}
