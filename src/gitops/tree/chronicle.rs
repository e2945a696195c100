//! Builds the history from git's log: the creation times of objects, and the revisions of ReleasePins with authors
//! and reasons.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_embedded::catalog::Catalog;
use serde::Deserialize;
use serde_json::{Value, json};

use super::births::{bear_all, bear_each};
use super::branch::{Told, branch};
use super::identity::{PINS, or_else, pin_key, uid};
use super::index::{Index, Known};
use super::moves::{self, Change, Standing, back};
use super::read::Read;
use super::trailers::Trailers;
use super::{ReleaseCommit, kustomize, releases};
use crate::api::bowline::audit::{
    Action, AuditEntrySpec, CLONE_ENDS, COMPONENT, ContentRef, RELEASE_PIN, Subject,
};
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::{labels, names};
use crate::git::{Blob, GitError, WorkTree};

/// The new commits since bowline last read git's log.
#[derive(Default)]
pub(super) struct News {
    /// The id of the checked out commit; None if there is none.
    head: Option<String>,
    /// The commits at which the history of a shallow clone ends; None if the clone is complete.
    shallow: Option<String>,
    /// Whether bowline read the log from the beginning. Then `commits` replaces the whole history in the index.
    anew: bool,
    /// The new commits of the branch, oldest first.
    commits: Vec<Told>,
    /// The time when each file came to the branch, in seconds since 1970, by path. Set only if `anew` is true.
    births: HashMap<String, i64>,
}

/// A commit as an audit entry, which the API of the repository returns.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) namespace: String,
    /// The kind of the changed subject: `ReleasePin`, or `Component` for an action on the releases of a component.
    kind: &'static str,
    name: String,
    revision: i64,
    what: What,
    /// Whether this clone does not have the parents of the commit. Then git lists all its files as added, even old
    /// ones.
    cut: bool,
}

/// The change that an audit entry records.
#[derive(Debug)]
enum What {
    /// A change of a ReleasePin.
    Move(Box<Change>),
    /// A mark or a removal of a release. Contains the commit, and the index of the action in
    /// [`ReleaseCommit::deeds`].
    Deed(Arc<ReleaseCommit>, usize),
}

impl Entry {
    /// Returns the spec of the audit entry, and the labels by which lists select it. None if the commit no longer has
    /// the action.
    fn tell(&self) -> Option<(AuditEntrySpec, Value)> {
        match &self.what {
            What::Move(change) => {
                let (mut spec, labels) = moved(change, self.revision);
                if self.cut {
                    spec = AuditEntrySpec {
                        operation: None,
                        actor: None,
                        action: Action::Edit,
                        reason: Some(CLONE_ENDS.to_owned()),
                        from: None,
                        restored_from: None,
                        ..spec
                    };
                }
                Some((spec, labels))
            }
            What::Deed(dealt, at) => {
                let deed = dealt.deeds.get(*at)?;
                let labels = json!({labels::COMPONENT: deed.component});
                Some((releases::spec(dealt, deed, self.revision), labels))
            }
        }
    }
}

/// Converts the spec of a ReleasePin to a normal form, to compare specs. The normal form is the same for all ways to
/// write the same spec.
pub(super) fn spec(written: &Value) -> Value {
    let read = ReleasePinSpec::deserialize(written);
    let read = read.and_then(serde_json::to_value);
    read.unwrap_or_else(|_| written.clone())
}

/// Reads the commits that are new since bowline last read git's log.
pub(super) fn news(work: &WorkTree, index: &Index) -> Result<News, GitError> {
    let head = work.commit_of("HEAD")?;
    let shallow = work.shallow();
    // After a shallow clone is deepened, its new commits are older than the known ones, so the whole log is read
    // again.
    let deepened = shallow != index.shallow;
    if head == index.head && !deepened {
        return Ok(News {
            head,
            shallow,
            ..News::default()
        });
    }
    if let Some(since) = index.head.as_ref().filter(|_| !deepened)
        && work.commit_of(since)?.is_some()
    {
        let commits = branch(work.log("HEAD", Some(since))?, head.as_deref());
        let first = commits.first().and_then(|told| told.commit.parents.first());
        if first == Some(since) {
            return Ok(News {
                head,
                shallow,
                commits,
                ..News::default()
            });
        }
    }
    News::whole(work, head, shallow)
}

impl News {
    /// Reads git's log from the beginning.
    fn whole(
        work: &WorkTree,
        head: Option<String>,
        shallow: Option<String>,
    ) -> Result<Self, GitError> {
        let commits = match &head {
            Some(head) => branch(work.log(head, None)?, Some(head)),
            None => Vec::new(),
        };
        let files = commits.iter().map(|told| told.commit.files.len());
        let mut births = HashMap::with_capacity(files.sum());
        bear_all(&mut births, &commits);
        Ok(Self {
            head,
            shallow,
            anew: true,
            commits,
            births,
        })
    }

    /// Returns whether there is nothing to add to the history in the index.
    pub(super) fn is_nothing(&self, index: &Index) -> bool {
        self.head == index.head && !self.anew
    }

    /// Returns whether the newest commit of the branch contains the file `path`. If bowline read only the new commits
    /// of the log, returns false for a file that one of them added.
    fn keeps(&self, index: &Index, path: &str) -> bool {
        if self.anew {
            return self.births.contains_key(path);
        }
        let mut files = self.commits.iter().flat_map(|told| &told.commit.files);
        let went = files.any(|file| match file.path == path {
            true => file.blob.is_none(),
            false => file.from.as_deref() == Some(path),
        });
        index.births.contains_key(path) && !went
    }

    /// Returns the files whose history differs between the index `before` and the new index.
    pub(super) fn touched(&self, before: &Index, index: &Index) -> BTreeSet<String> {
        if !self.anew {
            let files = self.commits.iter().flat_map(|told| &told.commit.files);
            let files = files.map(|file| file.path.clone());
            let known = files.filter(|path| before.files.contains_key(path));
            return known.collect();
        }
        let differs = |path: &str| {
            before.births.get(path) != index.births.get(path)
                || before.births_of_each.get(path) != index.births_of_each.get(path)
        };
        let files = before.files.iter();
        let files = files.filter(|(path, known)| known.holds_pins() || differs(path));
        files.map(|(path, _)| path.clone()).collect()
    }
}

/// The largest number of paths for one git command, because the length of a command line is limited.
const MANY: usize = 1000;

/// The files whose content has to be read in every state in the log.
struct Followed {
    /// The paths of the files with ReleasePins.
    pins: HashSet<String>,
    /// The paths of the files with several documents.
    several: HashSet<String>,
}

impl Followed {
    fn of(index: &Index, news: &News) -> Self {
        let (patches, _) = kustomize::named(&index.files);
        let those = |holds: fn(&Known) -> bool| {
            let files = index.files.iter();
            let files = files.filter(|(path, known)| holds(known) && !patches.contains(&***path));
            files.map(|(path, _)| path.clone()).collect()
        };
        let mut pins: HashSet<String> = those(Known::holds_pins);
        // A file that is missing only on disk may come back, so it stays among the followed files.
        let known = index.files_of_pins.keys();
        let known = known.filter(|path| !index.files.contains_key(*path));
        pins.extend(known.filter(|path| news.keeps(index, path)).cloned());
        Self {
            pins,
            several: those(Known::holds_several),
        }
    }

    /// Returns whether the new commits can simply be added to the known history. This is possible if the known
    /// history contains every followed file, except files that are new.
    fn go_on(&self, work: &WorkTree, index: &Index, news: &News) -> Result<bool, GitError> {
        let (_, pins) = back(&news.commits, &self.pins);
        let (_, several) = back(&news.commits, &self.several);
        let (were_there, new): (Vec<&str>, Vec<&str>) = pins
            .iter()
            .partition(|path| index.births.contains_key(**path));
        let mut several = several.iter();
        // Without a new commit, a ReleasePin that is missing in a file on disk may come back, so its history is kept.
        let fewer = !news.commits.is_empty() && were_there.len() < index.files_of_pins.len();
        let same = !fewer
            && were_there
                .iter()
                .all(|path| index.files_of_pins.contains_key(*path))
            && several.all(|path| {
                !index.births.contains_key(*path) || index.births_of_each.contains_key(*path)
            });
        match &index.head {
            Some(since) if same && !news.commits.is_empty() => {
                Ok(new.len() < MANY && !work.has_had(since, &new)?)
            }
            _ => Ok(same),
        }
    }
}

/// Adds the new commits to the index: the creation times of objects and the changes of ReleasePins. Follows renamed
/// files with ReleasePins back to their old names. Returns the audit entries to store.
pub(super) fn take(
    work: &WorkTree,
    catalog: &Catalog,
    index: &mut Index,
    news: &mut News,
    read: &[Read],
) -> Result<Vec<Arc<Entry>>, GitError> {
    let followed = Followed::of(index, news);
    if !news.anew && !followed.go_on(work, index, news)? {
        *news = News::whole(work, news.head.take(), news.shallow.take())?;
    }
    if news.anew {
        index.pins.clear();
        index.components.clear();
        index.files_of_pins.clear();
        index.births_of_each.clear();
        index.late.clear();
        index.short = false;
        index.anew = true;
        index.births = std::mem::take(&mut news.births);
    } else {
        bear_all(&mut index.births, &news.commits);
    }
    index.head.clone_from(&news.head);
    index.shallow.clone_from(&news.shallow);
    let mut entries: Vec<Entry> = Vec::new();
    if news.commits.is_empty() {
        return Ok(shared(entries));
    }
    let mut lacking = 0;
    let mut blobs = |ids: &[String], take: &mut dyn FnMut(usize, Option<Vec<u8>>)| {
        work.each_blob_of_log(ids, moves::blob_limits(), &mut |at, blob| {
            lacking += usize::from(blob == Blob::Missing);
            take(at, blob.whole());
        })
    };
    let namespace = index.namespace.clone();
    let (states, _) = back(&news.commits, &followed.several);
    let each = &mut index.births_of_each;
    bear_each(
        &mut blobs,
        &news.commits,
        &states,
        each,
        &namespace,
        catalog,
    )?;
    each.retain(|path, _| followed.several.contains(path));

    let mut standing = Standing {
        held: std::mem::take(&mut index.files_of_pins)
            .into_iter()
            .collect(),
        ..Standing::default()
    };
    for (key, recorded) in &index.pins {
        if let Ok(spec) = serde_json::from_value(recorded.spec.clone()) {
            standing.specs.insert(key.clone(), spec);
        }
    }
    // The content of an unchanged file was just read from disk, so it need not be read from git again.
    let now = read.iter().filter_map(|read| {
        let (blob, pins) = read.pins.as_ref()?;
        Some((blob.as_str(), pins.as_slice()))
    });
    let (states, _) = back(&news.commits, &followed.pins);
    let changes = moves::changes(
        &mut blobs,
        &news.commits,
        &states,
        &mut standing,
        &namespace,
        now.collect(),
    )?;
    let shallow = news.shallow.clone().unwrap_or_default();
    let shallow: HashSet<&str> = shallow.lines().map(str::trim).collect();
    for change in changes {
        let cut = shallow.contains(change.commit.id.as_str());
        let key = pin_key(&change.namespace, &change.name);
        let recorded = index.pins.entry(key).or_default();
        recorded.revisions += 1;
        recorded.spec = serde_json::to_value(&change.after).unwrap_or_default();
        recorded.by = match cut {
            true => String::new(),
            false => change.commit.author.clone(),
        };
        entries.push(Entry {
            namespace: change.namespace.clone(),
            kind: RELEASE_PIN,
            name: change.name.clone(),
            revision: recorded.revisions,
            what: What::Move(Box::new(change)),
            cut,
        });
    }
    for (key, recorded) in &mut index.pins {
        if !standing.specs.contains_key(key) {
            recorded.spec = Value::Null;
        }
    }
    let there = followed.pins.into_iter();
    let there = there.filter(|path| index.births.contains_key(path));
    index.files_of_pins = there
        .map(|path| {
            let pins = standing.held.remove(&path).unwrap_or_default();
            (path, pins)
        })
        .collect();
    for dealt in releases::dealt(&mut blobs, &news.commits)? {
        // This clone does not have the parents of the commit, so every mark in its files would wrongly look new.
        if shallow.contains(dealt.commit.id.as_str()) {
            continue;
        }
        let dealt = Arc::new(dealt);
        for (at, deed) in dealt.deeds.iter().enumerate() {
            let namespace = or_else(&deed.namespace, &namespace);
            let key = pin_key(namespace, &deed.component);
            let number = index.components.entry(key).or_default();
            *number += 1;
            entries.push(Entry {
                namespace: namespace.to_owned(),
                kind: COMPONENT,
                name: deed.component.clone(),
                revision: *number,
                what: What::Deed(dealt.clone(), at),
                cut: false,
            });
        }
    }
    if lacking > 0 {
        index.short = true;
        tracing::warn!(
            "this clone lacks {lacking} older file states, and they cannot be fetched: the history is incomplete"
        );
    }
    Ok(shared(entries))
}

fn shared(entries: Vec<Entry>) -> Vec<Arc<Entry>> {
    entries.into_iter().map(Arc::new).collect()
}

/// Returns the audit entry for a change of a ReleasePin, and the labels by which lists select the entry.
fn moved(change: &Change, revision: i64) -> (AuditEntrySpec, Value) {
    let spec = &change.after;
    let trailers = Trailers::of(&change.commit, spec).unwrap_or_default();
    let action = trailers.action.as_deref();
    let action = action.and_then(|word| serde_json::from_value::<Action>(word.into()).ok());
    let body = change.commit.body();
    let reason = match (action, body.is_empty()) {
        (Some(_), true) => None,
        (Some(_), false) => Some(body),
        // A manual commit has no trailers, so its subject line is taken as the reason.
        (None, _) => Some(change.commit.subject().to_owned()),
    };
    let from = change.before.as_ref().map(|spec| change.counted(spec));
    let to = change.counted(spec);
    let spec = AuditEntrySpec {
        subject: Subject {
            kind: RELEASE_PIN.to_owned(),
            namespace: None,
            name: change.name.clone(),
            uid: None,
        },
        revision,
        operation: trailers.operation,
        actor: Some(change.commit.author.clone()),
        recorded_by: change.commit.recorder(),
        action: action.unwrap_or(Action::Edit),
        at: Time(change.at),
        reason,
        from: from.map(ContentRef::named),
        to: Some(ContentRef::named(to)),
        release_ref: (to != spec.release_ref.name).then(|| spec.release_ref.name.clone()),
        holds: spec.holds.clone(),
        restored_from: trailers.restored,
        rendered_hash: None,
        previous: None,
        gap: None,
        checkpoint: None,
    };
    let environment = change.after.environment.clone();
    let component = change.after.component.clone();
    let labels = json!({labels::COMPONENT: component, labels::ENVIRONMENT: environment});
    (spec, labels)
}

/// Returns the name of an audit entry, and its object. The object is None if the commit no longer has the action.
pub(super) fn object(entry: &Entry) -> (String, Option<Value>) {
    let namespace = entry.namespace.as_str();
    let pin = (entry.kind == RELEASE_PIN).then(|| uid(PINS, namespace, &entry.name));
    let name = match &pin {
        Some(uid) => names::audit_entry(&entry.name, uid, entry.revision),
        None => names::release_audit_entry(&entry.name, entry.revision),
    };
    let object = entry.tell().map(|(mut spec, labels)| {
        spec.subject.uid.clone_from(&pin);
        json!({
            "metadata": {
                "name": name, "namespace": namespace, "labels": labels,
                "creationTimestamp": spec.at, "generation": 1,
            },
            "spec": spec,
        })
    });
    (name, object)
}
