//! Applies a `gc` plan: deletes its releases and snapshots. No race leaves a ReleasePin without its release.
//!
//! A client claims a release before it writes a ReleasePin that names the release. The claim changes the
//! resourceVersion of the release. Gc writes the release, lists the ReleasePins, applies the rules of the plan again,
//! and deletes the release with its resourceVersion as precondition. Another client may write a ReleasePin without a
//! claim. So after the deletion, gc lists the ReleasePins twice more. If one of them names the deleted release, gc
//! creates the release again.
//!
//! Gc writes the audit entry before the deletion, so that a crash leaves no deletion without an entry. If gc then
//! keeps the release, it writes another entry that says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::actions::gc::{self, Candidate, Collection, Gc, KeepReason};
use super::ledger::Ledger;
use super::rules::Refusal;
use super::{READ_BY_GC, marking};
use crate::api::bowline::audit::{Action, ContentRef};
use crate::api::openchoreo::release::{Claim, claimed_at};
use crate::api::{ComponentEnvSnapshot, Release, ReleasePin, RenderedRelease, labels};
use crate::engine::audit::OnRelease;
use crate::engine::pages;
use crate::engine::plan::Asked;
use crate::engine::repeat::{ATTEMPTS, is_ambiguous, pause, repeat};
use crate::engine::whoami::Clock;
use crate::engine::world::{Event, World};

/// The largest number of releases in memory at a time, because releases can be large.
const BATCH: usize = 32;
/// The largest number of concurrent requests to the server.
const AT_ONCE: usize = 8;

/// The result of gc for one release or snapshot.
#[derive(Debug)]
pub enum Collected {
    /// Gc deleted the object, or the object did not exist any more.
    Gone,
    /// Gc kept the object. Contains the reasons.
    Kept(Vec<KeepReason>),
    /// Gc deleted the release, and then created it again because ReleasePins in these environments name it.
    PutBack(Vec<String>),
    /// A request to the server failed.
    Failed(kube::Error),
}

/// The reason why gc stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A rule refuses to delete releases.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// Deletes the objects of a gc plan from a server.
pub struct Collector<'a> {
    pub client: &'a Client,
    /// The gc plan to apply.
    pub plan: &'a Collection,
    /// The name under which the server knows the user.
    pub by: &'a str,
    pub clock: Clock<'a>,
    /// How long gc waits after a deletion before it checks again whether a ReleasePin names the deleted release.
    pub remembers: Duration,
}

/// Refuses gc if a RenderedRelease has no ReleasePin, for example after the ReleasePin CRD was deleted and installed
/// again. Then no ReleasePin protects the releases of running workloads.
pub async fn check_rendered(client: &Client, namespace: &str) -> Result<(), CollectError> {
    let rendered: Api<RenderedRelease> = Api::namespaced(client.clone(), namespace);
    let rendered = match pages::all_metadata(&rendered).await {
        // Without the CRD of RenderedReleases there are none, so gc is not refused.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        rendered => rendered?,
    };
    let owner = |object: &PartialObjectMeta<RenderedRelease>| {
        let mut owners = object.owner_references().iter();
        let pin = owners.find(|owner| owner.kind == ReleasePin::kind(&()));
        pin.map(|owner| owner.name.clone())
    };
    let owned: Vec<(String, String)> = rendered
        .iter()
        .filter_map(|object| Some((object.name_any(), owner(object)?)))
        .collect();
    if owned.is_empty() {
        return Ok(());
    }
    // List the ReleasePins last. A ReleasePin always exists before its RenderedRelease, so no new RenderedRelease
    // looks as if its ReleasePin were missing.
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
    let pins = pages::all_metadata(&pins).await?;
    let pins: BTreeSet<String> = pins.iter().map(ResourceExt::name_any).collect();
    let unpinned = owned.into_iter().find(|(_, pin)| !pins.contains(pin));
    match unpinned {
        None => Ok(()),
        Some((rendered, _)) => Err(Refusal::Unpinned { rendered }.into()),
    }
}

/// A release of the plan, as gc read it from the server.
struct Held<'a> {
    candidate: &'a Candidate,
    release: Release,
}

/// The deleted releases of one component, which gc keeps in memory to create them again.
struct Deleted<'a> {
    component: String,
    since: Instant,
    releases: Vec<Held<'a>>,
}

impl Held<'_> {
    fn identity(&self) -> ContentRef {
        let hash = self.release.annotations().get(labels::CONTENT_HASH);
        ContentRef {
            name: self.release.name_any(),
            uid: self.release.uid(),
            hash: hash.cloned(),
        }
    }
}

impl<'a> Collector<'a> {
    /// Deletes the releases and snapshots of the plan, and reports the result of each. If `stop` returns true, the
    /// function ends before the next batch.
    pub async fn collect(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        tell: &mut (dyn FnMut(&Candidate, Collected) + Send),
    ) -> Result<(), CollectError> {
        check_rendered(self.client, &self.plan.namespace).await?;
        let mut by_component: BTreeMap<Arc<str>, Vec<&Candidate>> = BTreeMap::new();
        for candidate in &self.plan.releases {
            if let Some(component) = &candidate.component
                && (candidate.goes() || candidate.mislabelled)
            {
                let of_component = by_component.entry(component.clone());
                of_component.or_default().push(candidate);
            }
        }
        // The deleted releases stay in memory until the last check, even after an error, because gc may have to
        // create them again.
        let mut memory = VecDeque::new();
        let mut swept = Ok(());
        'all: for (component, candidates) in by_component {
            let known = match self.releases_of(&component).await {
                Ok(known) => known,
                Err(error) => {
                    swept = Err(error.into());
                    break;
                }
            };
            for batch in candidates.chunks(BATCH) {
                if stop() {
                    break 'all;
                }
                swept = self
                    .releases(&component, &known, batch, &mut memory, tell)
                    .await;
                if swept.is_err() {
                    break 'all;
                }
                while memory.len() > 1 {
                    if let Some(before) = memory.pop_front() {
                        self.look_after(before, tell).await;
                    }
                }
            }
        }
        for deleted in memory {
            self.look_after(deleted, tell).await;
        }
        swept?;
        let snapshots = self.plan.snapshots.iter().filter(|found| found.goes());
        for candidate in snapshots {
            if stop() {
                return Ok(());
            }
            let collected = self.snapshot(candidate).await;
            tell(candidate, collected.unwrap_or_else(Collected::Failed));
        }
        Ok(())
    }

    async fn releases(
        &self,
        component: &str,
        known: &[PartialObjectMeta<Release>],
        batch: &[&'a Candidate],
        memory: &mut VecDeque<Deleted<'a>>,
        tell: &mut (dyn FnMut(&Candidate, Collected) + Send),
    ) -> Result<(), CollectError> {
        // Read the releases before the ReleasePins. Then a later claim changes the resourceVersion of its release,
        // and the deletion fails.
        let mut read = Vec::with_capacity(batch.len());
        for some in batch.chunks(AT_ONCE) {
            let found = some.iter().map(|candidate| self.read(candidate).boxed());
            let found = join_all(found.collect::<Vec<_>>()).await;
            for (candidate, found) in some.iter().zip(found) {
                match found {
                    Ok(held) => read.push(held),
                    Err(collected) if candidate.goes() => tell(candidate, collected),
                    Err(_) => {}
                }
            }
        }
        let fresh = self.look_again(component, known, &read).await?;
        let mut ledger = Ledger::of(self.client, &self.plan.namespace, component, self.by);
        let mut ready = Vec::new();
        for mut held in read {
            if !held.candidate.goes() {
                let again = fresh.get(&held.candidate.uid);
                if again.is_some_and(|again| again.mislabelled) {
                    // If this write fails, the release keeps a label that it does not need, which does no harm.
                    let _ = self.unlabel(&mut ledger, &mut held).await;
                }
                continue;
            }
            if let Some(why) = kept(&fresh, &held) {
                tell(held.candidate, Collected::Kept(why));
                continue;
            }
            match self.announce(&mut ledger, &mut held).await {
                Ok(()) => ready.push(held),
                Err(collected) => tell(held.candidate, collected),
            }
        }
        match ready.is_empty() {
            true => Ok(()),
            false => {
                let known = (component, known);
                self.delete_all(known, ready, &mut ledger, memory, tell)
                    .await
            }
        }
    }

    /// Lists the ReleasePins, deletes the releases that no rule protects, and lists the ReleasePins again. Returns
    /// the deleted releases.
    async fn delete_all(
        &self,
        (component, known): (&str, &[PartialObjectMeta<Release>]),
        ready: Vec<Held<'a>>,
        ledger: &mut Ledger,
        memory: &mut VecDeque<Deleted<'a>>,
        tell: &mut (dyn FnMut(&Candidate, Collected) + Send),
    ) -> Result<(), CollectError> {
        let fresh = self.look_again(component, known, &ready).await?;
        let (mut deleting, mut staying) = (Vec::new(), Vec::new());
        for held in ready {
            match kept(&fresh, &held) {
                None => deleting.push(held),
                Some(why) => staying.push((held, Collected::Kept(why))),
            }
        }
        let mut answers = Vec::with_capacity(deleting.len());
        for some in deleting.chunks(AT_ONCE) {
            let deleted = some.iter().map(|held| self.delete(held).boxed());
            answers.extend(join_all(deleted.collect::<Vec<_>>()).await);
        }
        let mut gone = Vec::new();
        for (held, collected) in deleting.into_iter().zip(answers) {
            match collected {
                Collected::Gone => gone.push(held),
                collected => staying.push((held, collected)),
            }
        }
        let deleted = Deleted {
            component: component.to_owned(),
            since: Instant::now(),
            releases: gone,
        };
        memory.push_back(self.put_back_named(deleted, tell).await);
        for (held, collected) in staying {
            let collected = match self.record(ledger, Action::Restore, &held).await {
                Ok(()) => collected,
                Err(error) => Collected::Failed(error),
            };
            tell(held.candidate, collected);
        }
        Ok(())
    }

    /// Waits for the duration [`Collector::remembers`], then checks again whether a ReleasePin names a deleted
    /// release.
    async fn look_after(
        &self,
        deleted: Deleted<'a>,
        tell: &mut (dyn FnMut(&Candidate, Collected) + Send),
    ) {
        if deleted.releases.is_empty() {
            return;
        }
        let waits = self.remembers.saturating_sub(deleted.since.elapsed());
        tokio::time::sleep(waits).await;
        for held in self.put_back_named(deleted, tell).await.releases {
            tell(held.candidate, Collected::Gone);
        }
    }

    /// Creates a deleted release again if a ReleasePin names it now. Returns the releases that stay deleted.
    async fn put_back_named(
        &self,
        deleted: Deleted<'a>,
        tell: &mut (dyn FnMut(&Candidate, Collected) + Send),
    ) -> Deleted<'a> {
        let component = deleted.component.as_str();
        // If the ReleasePins cannot be listed, gc cannot know what to create again, so it creates nothing.
        let pins = repeat(|| self.pins(component)).await.unwrap_or_default();
        let mut ledger = Ledger::of(self.client, &self.plan.namespace, component, self.by);
        let mut releases = Vec::with_capacity(deleted.releases.len());
        for held in deleted.releases {
            let name = held.release.name_any();
            let naming = pins
                .iter()
                .filter(|pin| pin.spec.named_releases().any(|named| named == name));
            let naming: Vec<String> = naming.map(|pin| pin.spec.environment.clone()).collect();
            if naming.is_empty() {
                releases.push(held);
                continue;
            }
            let put_back = match self.put_back(&held.release).await {
                Ok(()) => self.record(&mut ledger, Action::Restore, &held).await,
                Err(error) => Err(error),
            };
            let collected = match put_back {
                Ok(()) => Collected::PutBack(naming),
                Err(error) => Collected::Failed(error),
            };
            tell(held.candidate, collected);
        }
        Deleted {
            releases,
            ..deleted
        }
    }

    /// Reads a release of the plan from the server. If gc cannot delete the release, the error is the result to
    /// report.
    async fn read(&self, candidate: &'a Candidate) -> Result<Held<'a>, Collected> {
        let releases = self.api::<Release>();
        let found = releases.get_opt(&candidate.key.name).await;
        let Some(release) = found.map_err(Collected::Failed)? else {
            return Err(Collected::Gone);
        };
        if release.uid().as_deref() != Some(&*candidate.uid) {
            return Err(Collected::Kept(vec![KeepReason::Changed]));
        }
        if candidate.component.as_deref() != Some(&*release.spec.component.name) {
            return Err(Collected::Kept(vec![KeepReason::NoComponent]));
        }
        Ok(Held { candidate, release })
    }

    /// Lists the releases of a component by a field of their spec, because users may change the labels.
    async fn releases_of(
        &self,
        component: &str,
    ) -> Result<Vec<PartialObjectMeta<Release>>, kube::Error> {
        let releases = self.api::<PartialObjectMeta<Release>>();
        let of_component = format!("spec.component.name={component}");
        let of_component = ListParams::default().fields(&of_component);
        let mut known = pages::all(&releases, of_component, pages::PAGE).await?;
        for release in &mut known {
            let label = (labels::COMPONENT.to_owned(), component.to_owned());
            release.labels_mut().extend([label]);
        }
        Ok(known)
    }

    /// Applies the rules of the plan to the ReleasePins that the server has now. Returns the releases by uid, each
    /// with the reasons to keep it. For releases in `read`, uses their newer state instead of that in `known`.
    async fn look_again(
        &self,
        component: &str,
        known: &[PartialObjectMeta<Release>],
        read: &[Held<'_>],
    ) -> Result<BTreeMap<String, Candidate>, CollectError> {
        let mut world = World::new();
        for release in known {
            world.releases(Event::Applied(release.clone()));
        }
        for held in read {
            let mut metadata = held.release.metadata.clone();
            let label = (labels::COMPONENT.to_owned(), component.to_owned());
            metadata.labels.get_or_insert_default().extend([label]);
            world.releases(Event::Applied(PartialObjectMeta {
                metadata,
                ..PartialObjectMeta::default()
            }));
        }
        for pin in repeat(|| self.pins(component)).await? {
            world.pins(Event::Applied(pin));
        }
        world.all_listed(&READ_BY_GC);
        let again = Gc {
            components: vec![component.to_owned()],
            keep: Some(self.plan.keep),
            min_age: Some(self.plan.min_age),
        };
        let asked = Asked {
            operation: self.plan.operation.clone(),
            now: (self.clock)(),
            user: self.by.to_owned(),
            reason: self.plan.reason.clone(),
            namespace: self.plan.namespace.clone(),
        };
        // A ReleasePin may name a release that gc has just deleted. This is no error here, because `put_back_named`
        // creates that release again.
        match gc::judge(&world, &again, &asked) {
            Ok(plan) => Ok(plan
                .releases
                .into_iter()
                .map(|candidate| (candidate.uid.clone(), candidate))
                .collect()),
            // The component has neither releases nor ReleasePins any more, so there is nothing to keep.
            Err(Refusal::NoComponent { .. }) => Ok(BTreeMap::new()),
            Err(refusal) => Err(refusal.into()),
        }
    }

    async fn pins(&self, component: &str) -> Result<Vec<ReleasePin>, kube::Error> {
        let of_component = ListParams::default().fields(&format!("spec.component={component}"));
        pages::all(&self.api::<ReleasePin>(), of_component, pages::PAGE).await
    }

    /// Prepares the deletion of a release that no ReleasePin names: removes its label, announces the deletion in an
    /// annotation, and writes the audit entry.
    ///
    /// An earlier gc may have announced the deletion of this release and then stopped. Then this gc continues the
    /// operation of the earlier gc. If somebody has claimed the release since, this gc starts a new operation.
    async fn announce(&self, ledger: &mut Ledger, held: &mut Held<'_>) -> Result<(), Collected> {
        let resumed = match claimed_at(&held.release.metadata) {
            None => self.announced(ledger, held).await,
            Some(_) => self.given_up(ledger, held).await.map(|()| None),
        };
        let resumed = resumed.map_err(Collected::Failed)?;
        let operation = resumed.as_deref().unwrap_or(&self.plan.operation);
        self.write(held, Some(operation)).await?;
        let recorded = match marking::record(ledger, &held.release, self.by).await {
            Ok(()) if resumed.is_some() => Ok(()),
            Ok(()) => self.record(ledger, Action::Collect, held).await,
            Err(error) => Err(error),
        };
        recorded.map_err(Collected::Failed)
    }

    async fn unlabel(&self, ledger: &mut Ledger, held: &mut Held<'_>) -> Result<(), Collected> {
        let given_up = self.given_up(ledger, held).await;
        given_up.map_err(Collected::Failed)?;
        self.write(held, None).await
    }

    /// Returns the operation of an earlier gc that announced the deletion of this release and wrote the audit entry.
    /// None if there was none.
    async fn announced(
        &self,
        ledger: &Ledger,
        held: &Held<'_>,
    ) -> Result<Option<String>, kube::Error> {
        let Some(operation) = held.release.annotations().get(labels::COLLECTING) else {
            return Ok(None);
        };
        let recorded = ledger.recorded(operation, &held.identity()).await?;
        Ok((recorded.last() == Some(&Action::Collect)).then(|| operation.clone()))
    }

    /// Writes an audit entry which says that an announced deletion of the release was not made.
    async fn given_up(&self, ledger: &mut Ledger, held: &Held<'_>) -> Result<(), kube::Error> {
        match self.announced(ledger, held).await? {
            Some(_) => self.record(ledger, Action::Restore, held).await,
            None => Ok(()),
        }
    }

    /// Removes the label of a release and announces its deletion in an annotation. If `operation` is None, removes
    /// the announcement instead. The write fails if another client has changed the release.
    async fn write(&self, held: &mut Held<'_>, operation: Option<&str>) -> Result<(), Collected> {
        let metadata = &held.release.metadata;
        let patch = Patch::Merge(json!({"metadata": {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "labels": {labels::PINNED: null},
            "annotations": {labels::CLAIMED_AT: null, labels::COLLECTING: operation},
        }}));
        let manager = PatchParams::apply(labels::MANAGER_ENGINE);
        let name = held.release.name_any();
        let releases = self.api::<Release>();
        match releases.patch_metadata(&name, &manager, &patch).await {
            Ok(written) => {
                held.release.metadata = written.metadata;
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Err(Collected::Gone),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Err(Collected::Kept(vec![KeepReason::Changed]))
            }
            Err(error) => Err(Collected::Failed(error)),
        }
    }

    async fn record(
        &self,
        ledger: &mut Ledger,
        action: Action,
        held: &Held<'_>,
    ) -> Result<(), kube::Error> {
        let operation = held.release.annotations().get(labels::COLLECTING);
        let done = OnRelease {
            release: held.identity(),
            action,
            operation: operation.map(String::as_str),
            actor: Some(self.by),
            reason: self.plan.reason.as_deref(),
        };
        ledger.write(&done, (self.clock)()).await
    }

    /// Deletes a release, unless another client has changed or replaced it since gc read it.
    async fn delete(&self, held: &Held<'_>) -> Collected {
        let releases = self.api::<Release>();
        let metadata = &held.release.metadata;
        let name = held.release.name_any();
        let as_read = as_read(metadata.uid.clone(), metadata.resource_version.clone());
        let mut last = None;
        for attempt in 1..=ATTEMPTS {
            let error = match releases.delete(&name, &as_read).await {
                Ok(_) => return Collected::Gone,
                Err(error) => error,
            };
            match &error {
                kube::Error::Api(status) if status.code == 404 => return Collected::Gone,
                kube::Error::Api(status) if status.code == 409 => {
                    return Collected::Kept(vec![KeepReason::Changed]);
                }
                // A policy denies the deletion with 403 if somebody has just claimed the release, so gc keeps it.
                kube::Error::Api(status) if status.code == 403 => {}
                error if is_ambiguous(error) => {}
                _ => return Collected::Failed(error),
            }
            match releases.get_metadata_opt(&name).await {
                Ok(None) => return Collected::Gone,
                Ok(Some(now)) if now.metadata.resource_version != metadata.resource_version => {
                    return Collected::Kept(vec![KeepReason::Changed]);
                }
                Ok(Some(_)) if !is_ambiguous(&error) => return Collected::Failed(error),
                Ok(Some(_)) => last = Some(error),
                Err(again) => last = Some(again),
            }
            pause(attempt).await;
        }
        last.map_or(Collected::Gone, Collected::Failed)
    }

    /// Creates a deleted release again, with a claim on it.
    async fn put_back(&self, release: &Release) -> Result<(), kube::Error> {
        let mut again = Release::new(&release.name_any(), release.spec.clone());
        again.metadata.labels = release.metadata.labels.clone();
        again.metadata.annotations = release.metadata.annotations.clone();
        again.metadata.owner_references = release.metadata.owner_references.clone();
        let (label, value) = (labels::PINNED.to_owned(), labels::PINNED_TRUE.to_owned());
        again.labels_mut().insert(label, value);
        again.annotations_mut().remove(labels::COLLECTING);
        let claim = Claim {
            at: Time((self.clock)()),
            operation: self.plan.operation.clone(),
        };
        again
            .annotations_mut()
            .insert(labels::CLAIMED_AT.to_owned(), claim.to_annotation());
        let parameters = PostParams {
            field_manager: Some(labels::MANAGER_ENGINE.to_owned()),
            ..PostParams::default()
        };
        let mut last = None;
        for attempt in 1..=ATTEMPTS {
            match self.api::<Release>().create(&parameters, &again).await {
                Ok(_) => return Ok(()),
                // The release exists already: another client created it, or an earlier attempt without an answer did.
                Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
                Err(error) if is_ambiguous(&error) => last = Some(error),
                Err(error) => return Err(error),
            }
            pause(attempt).await;
        }
        last.map_or(Ok(()), Err)
    }

    /// Deletes a snapshot, unless a ReleasePin now uses it as its current snapshot.
    async fn snapshot(&self, candidate: &Candidate) -> Result<Collected, kube::Error> {
        let snapshots = self.api::<ComponentEnvSnapshot>();
        let name = &*candidate.key.name;
        let Some(found) = snapshots.get_metadata_opt(name).await? else {
            return Ok(Collected::Gone);
        };
        let component = candidate.component.as_deref().unwrap_or_default();
        let current = self.pins(component).await?.into_iter().find(|pin| {
            let status = pin.status.as_ref();
            status.and_then(|status| status.snapshot.as_deref()) == Some(name)
        });
        if let Some(pin) = current {
            let environment = pin.spec.environment;
            return Ok(Collected::Kept(vec![KeepReason::Current(environment)]));
        }
        let as_read = as_read(
            Some(candidate.uid.clone()),
            found.metadata.resource_version.clone(),
        );
        match snapshots.delete(name, &as_read).await {
            Ok(_) => Ok(Collected::Gone),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Collected::Gone),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Ok(Collected::Kept(vec![KeepReason::Changed]))
            }
            Err(error) => Err(error),
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.plan.namespace)
    }
}

/// Returns the reasons for which gc keeps a release now; None if gc can delete it.
fn kept(fresh: &BTreeMap<String, Candidate>, held: &Held<'_>) -> Option<Vec<KeepReason>> {
    match fresh.get(&held.candidate.uid) {
        Some(again) if again.goes() => None,
        Some(again) => Some(again.stays.clone()),
        // The list by component no longer contains the release, so another client has changed it.
        None => Some(vec![KeepReason::Changed]),
    }
}

fn as_read(uid: Option<String>, resource_version: Option<String>) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version,
        }),
        ..DeleteParams::default()
    }
}
