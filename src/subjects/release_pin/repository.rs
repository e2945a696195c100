//! Builds the commits for actions on releases: create a release, mark a release, delete releases by gc.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::actions::gc::{Candidate, Collection};
use super::marking::Marking;
use crate::api::bowline::audit::Action;
use crate::api::openchoreo::release::{Mark, Verdict};
use crate::api::{Release, ReleasePin, labels};
use crate::engine::pages;
use crate::gitops::facts::CommitFacts;
use crate::gitops::propose::{
    Commits, Committed, Message, NewObject, NotCommitted, ObjectEdits, Proposal, ProposeError,
};
use crate::gitops::tree::{RELEASES, Trailers, Tree};

/// Builds the commit that adds a new release.
pub fn release(
    tree: &Tree,
    release: &Release,
    operation: &str,
    reason: Option<&str>,
) -> Result<Proposal, ProposeError> {
    let mut edits = ObjectEdits::of(tree);
    edits.create(NewObject::of(release))?;
    let name = release.name_any();
    let mut message = Message::new(operation, "Release", format!("release {name}"), reason);
    message.trailer(Trailers::COMPONENT, &release.spec.component.name);
    message.trailer(Trailers::TO, name);
    Ok(edits.propose(operation, &message)?)
}

/// Builds the commit that writes a planned mark.
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
        hash: None,
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
    let mut message = Message::new(
        &marking.operation,
        &format!("{action:?}"),
        format!("mark {name} {word}"),
        marking.reason.as_deref(),
    );
    message.trailer(Trailers::COMPONENT, component);
    message.trailer(Trailers::TO, &**name);
    let mut edits = ObjectEdits::of(tree);
    edits.set(place, document);
    Ok(edits.propose(&marking.operation, &message)?)
}

/// The commit of a gc plan, with the releases that it removes.
#[derive(Debug)]
pub struct CollectionCommit<'c> {
    /// The commit that removes the files or documents of the releases.
    pub proposal: Proposal,
    /// The releases that the commit removes. For each release that stays, the commit has a warning with the reason.
    pub going: Vec<&'c Candidate>,
}

/// Returns an error if a file of the tree cannot be read completely. Such a file may name a release that gc would
/// remove.
fn all_is_read(tree: &Tree) -> Result<(), ProposeError> {
    let problems = tree.problems().into_iter().chain(tree.dangling());
    let problems: Vec<String> = problems.map(|problem| problem.what).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ProposeError::Unread(problems)),
    }
}

/// Builds the commit of a gc plan.
pub fn collection<'c>(
    tree: &Tree,
    plan: &'c Collection,
) -> Result<CollectionCommit<'c>, ProposeError> {
    all_is_read(tree)?;
    let mut edits = ObjectEdits::of(tree);
    let mut going: Vec<&Candidate> = Vec::new();
    let places = tree.places(RELEASES);
    let named = tree.named_by_kustomizations();
    for candidate in plan.releases.iter().filter(|candidate| candidate.goes()) {
        let key = (&*candidate.key.namespace, &*candidate.key.name);
        let mut stays = |why: &str| edits.warn(format!("{} kept: {why}", key.1));
        match places.get(&(key.0.to_owned(), key.1.to_owned())) {
            None => stays("no file contains it"),
            Some(place) if named.contains(&place.path) => stays(&format!(
                "a kustomization names {}: remove it there first",
                place.path
            )),
            Some(place) => {
                edits.remove(place.clone());
                going.push(candidate);
            }
        }
    }
    let noun = if going.len() == 1 {
        "release"
    } else {
        "releases"
    };
    let subject = format!("remove {} {noun} that are no longer needed", going.len());
    let (action, reason) = (format!("{:?}", Action::Collect), plan.reason.as_deref());
    let mut message = Message::new(&plan.operation, &action, subject, reason);
    let components: BTreeSet<&str> = going
        .iter()
        .filter_map(|candidate| candidate.component.as_deref())
        .collect();
    for component in components {
        message.trailer(Trailers::COMPONENT, component);
    }
    let mut proposal = edits.propose(&plan.operation, &message)?;
    let removed = going.iter().map(|found| &found.key);
    let removed = removed.map(|key| (key.namespace.to_string(), key.name.to_string()));
    proposal.facts = CommitFacts::of_removal(tree, removed.collect());
    Ok(CollectionCommit { proposal, going })
}

/// Makes the commit of a gc plan. Fails if a ReleasePin now names a release that the commit would remove.
pub async fn collect(
    commits: &Commits<'_>,
    client: &Client,
    collected: &CollectionCommit<'_>,
) -> Result<Committed, NotCommitted> {
    commits.repository.sync().await?;
    all_is_read(&commits.repository.tree)?;
    let pins: Api<ReleasePin> = Api::all(client.clone());
    let pins = pages::all(&pins, ListParams::default(), pages::PAGE).await?;
    match named(&pins, collected) {
        Some(what) => Err(NotCommitted::Stale(what)),
        None => commits.commit(&collected.proposal).await,
    }
}

/// Describes a ReleasePin that names a release which the commit would remove; None if there is none.
fn named(pins: &[ReleasePin], collected: &CollectionCommit<'_>) -> Option<String> {
    let going = collected.going.iter().map(|found| &found.key);
    let going: BTreeSet<(&str, &str)> = going.map(|key| (&*key.namespace, &*key.name)).collect();
    pins.iter().find_map(|pin| {
        let namespace = pin.metadata.namespace.as_deref().unwrap_or_default();
        let mut named = pin.spec.named_releases();
        let release = named.find(|release| going.contains(&(namespace, release)))?;
        let pin = pin.name_any();
        Some(format!(
            "{pin} names {release} now; it changed after the plan was made"
        ))
    })
}
