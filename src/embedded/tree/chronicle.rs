//! What git's log knows: when files came, what pins were, who moved them and why.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::branch::{Told, branch};
use super::fills::uid;
use super::index::{Index, Recorded};
use super::read::{Loaded, Read};
use super::sync::PINS;
use super::trailers::Trailers;
use super::{Dealt, Tree, releases};
use crate::api::audit::{Action, AuditEntrySpec, ReleaseIdentity, Subject, SubjectKind};
use crate::api::pin::ReleasePinSpec;
use crate::api::{labels, names};
use crate::git::log::{Changed, Commit};
use crate::git::{GitError, WorkTree};
use crate::yaml;

/// Commits that came since the log was last read.
#[derive(Default)]
pub(super) struct News {
    /// The commit that is checked out.
    head: Option<String>,
    /// Whether everything that was known of the log is to be forgotten.
    anew: bool,
    /// The commits of the branch, oldest first.
    commits: Vec<Told>,
    /// When files came to the branch, in seconds, where everything else is forgotten.
    births: HashMap<String, i64>,
}

/// What a commit made of a pin.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The namespace, as the file says it.
    pub namespace: String,
    /// The name of the pin.
    pub name: String,
    /// What it said before; None where it was not there.
    pub before: Option<ReleasePinSpec>,
    /// What it says afterwards.
    pub after: ReleasePinSpec,
    /// When it came to the branch.
    pub at: Timestamp,
    /// The commit that says who and why; one commit may change many pins.
    pub commit: Arc<Commit>,
}

/// An audit entry that is to be served, or one that is to go.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) namespace: String,
    /// What it is about: a pin, or the releases of a component.
    kind: SubjectKind,
    name: String,
    revision: i64,
    what: What,
}

/// What an entry says.
#[derive(Debug)]
enum What {
    /// Nothing: it is to go.
    Gone,
    /// What became of a pin, and the release that counted before.
    Move(Box<Change>, Option<String>),
    /// What was done to a release.
    Deed(Arc<Dealt>, usize),
}

impl Entry {
    /// Lists the entries of a chain that are to go.
    fn gone(kind: SubjectKind, key: &str, newest: i64) -> impl Iterator<Item = Self> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        (1..=newest).map(move |revision| Self {
            namespace: namespace.to_owned(),
            kind,
            name: name.to_owned(),
            revision,
            what: What::Gone,
        })
    }

    /// Says it, with the labels that it is found by; None where it is to go.
    fn tell(&self) -> Option<(AuditEntrySpec, Value)> {
        match &self.what {
            What::Gone => None,
            What::Move(change, from) => Some(moved(change, from.clone(), self.revision)),
            What::Deed(dealt, at) => {
                let deed = dealt.deeds.get(*at)?;
                let labels = json!({labels::COMPONENT: deed.component});
                Some((releases::spec(dealt, deed, self.revision), labels))
            }
        }
    }
}

/// How a pin is known here.
pub(super) fn pin_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Returns what counts of a pin's spec, in one form however it is written.
pub(super) fn spec(written: &Value) -> Value {
    let read = ReleasePinSpec::deserialize(written);
    let read = read.and_then(serde_json::to_value);
    read.unwrap_or_else(|_| written.clone())
}

/// Reads what came to the log since it was last read.
pub(super) fn news(work: &WorkTree, index: &Index) -> Result<News, GitError> {
    let head = work.commit_of("HEAD")?;
    if head == index.head {
        return Ok(News {
            head,
            ..News::default()
        });
    }
    if let Some(since) = &index.head
        && work.commit_of(since)?.is_some()
    {
        let commits = branch(work.log("HEAD", Some(since), &[])?, head.as_deref());
        let first = commits.first().and_then(|told| told.commit.parents.first());
        if first == Some(since) {
            return Ok(News {
                head,
                commits,
                ..News::default()
            });
        }
    }
    let commits = match &head {
        Some(_) => branch(work.log("HEAD", None, &[])?, head.as_deref()),
        None => Vec::new(),
    };
    let files = commits.iter().map(|told| told.commit.files.len());
    let mut births = HashMap::with_capacity(files.sum());
    bear_all(&mut births, &commits);
    Ok(News {
        head,
        anew: true,
        commits,
        births,
    })
}

impl News {
    /// Tells whether there is none.
    pub(super) fn is_nothing(&self, index: &Index) -> bool {
        self.head == index.head && !self.anew
    }

    /// Returns the files of which the log says something new.
    pub(super) fn touched(&self, index: &Index) -> BTreeSet<String> {
        let files = self.commits.iter().flat_map(|told| &told.commit.files);
        let files = files.map(|file| file.path.clone());
        let known = files.filter(|path| index.files.contains_key(path));
        match self.anew {
            // What is forgotten is forgotten of all.
            true => index.files.keys().cloned().collect(),
            false => known.collect(),
        }
    }
}

/// Takes news in: when files came, and what pins became. Files that hold pins now are followed back through
/// their renames. Returns the entries that are to be stored.
pub(super) fn take(
    work: &WorkTree,
    index: &mut Index,
    news: &mut News,
    read: &[Read],
) -> Result<Vec<Arc<Entry>>, GitError> {
    let mut entries: Vec<Entry> = Vec::new();
    if news.anew {
        for (key, recorded) in &index.pins {
            let kind = SubjectKind::ReleasePin;
            entries.extend(Entry::gone(kind, key, recorded.revisions));
        }
        for (key, newest) in &index.components {
            entries.extend(Entry::gone(SubjectKind::Component, key, *newest));
        }
        index.pins.clear();
        index.components.clear();
        index.births = std::mem::take(&mut news.births);
    } else {
        bear_all(&mut index.births, &news.commits);
    }
    index.head.clone_from(&news.head);
    if news.commits.is_empty() {
        return Ok(shared(entries));
    }
    let holds_pins = |known: &super::index::Known| {
        let mut objects = known.objects.iter();
        objects.any(|held| held.resource == PINS)
    };
    let files = index.files.iter().filter(|(_, known)| holds_pins(known));
    let paths: HashSet<&str> = files.map(|(path, _)| path.as_str()).collect();
    let mut before: BTreeMap<String, ReleasePinSpec> = BTreeMap::new();
    for (key, recorded) in &index.pins {
        if let Ok(spec) = serde_json::from_value(recorded.spec.clone()) {
            before.insert(key.clone(), spec);
        }
    }
    // What a commit left as it is now was just read.
    let now = read.iter().filter_map(|read| {
        let (blob, pins) = read.pins.as_ref()?;
        Some((blob.as_str(), pins.as_slice()))
    });
    for change in changes(work, &news.commits, paths, before, &now.collect())? {
        let key = pin_key(&change.namespace, &change.name);
        let recorded = index.pins.entry(key).or_default();
        let now = Recorded {
            revisions: recorded.revisions + 1,
            spec: serde_json::to_value(&change.after).unwrap_or_default(),
            release: Some(change.after.effective_release(change.at).to_owned()),
            by: change.commit.author.clone(),
        };
        let before = std::mem::replace(recorded, now);
        entries.push(Entry {
            namespace: change.namespace.clone(),
            kind: SubjectKind::ReleasePin,
            name: change.name.clone(),
            revision: recorded.revisions,
            what: What::Move(Box::new(change), before.release),
        });
    }
    for dealt in releases::dealt(work, &news.commits)? {
        let dealt = Arc::new(dealt);
        for (at, deed) in dealt.deeds.iter().enumerate() {
            let key = pin_key(&deed.namespace, &deed.component);
            let number = index.components.entry(key).or_default();
            *number += 1;
            entries.push(Entry {
                namespace: deed.namespace.clone(),
                kind: SubjectKind::Component,
                name: deed.component.clone(),
                revision: *number,
                what: What::Deed(dealt.clone(), at),
            });
        }
    }
    Ok(shared(entries))
}

fn shared(entries: Vec<Entry>) -> Vec<Arc<Entry>> {
    entries.into_iter().map(Arc::new).collect()
}

/// Returns a pin as the log would tell it; None where the object is none.
pub(super) fn as_written(loaded: &Loaded) -> Option<Pin> {
    let held = &loaded.held;
    if held.resource != PINS {
        return None;
    }
    let spec = ReleasePinSpec::deserialize(&loaded.object["spec"]).ok()?;
    Some((held.namespace.clone(), held.name.clone(), spec))
}

fn bear_all(births: &mut HashMap<String, i64>, commits: &[Told]) {
    for told in commits {
        for file in &told.commit.files {
            bear(births, file, told.commit.at);
        }
    }
}

fn bear(births: &mut HashMap<String, i64>, file: &Changed, at: Timestamp) {
    if let Some(from) = &file.from {
        if let Some(born) = births.remove(from) {
            births.insert(file.path.clone(), born);
        }
    } else if file.added {
        births.insert(file.path.clone(), at.as_second());
    } else if file.blob.is_none() {
        births.remove(&file.path);
    }
}

/// Lists every change of a pin that the branch of a work tree has, oldest first.
pub fn changes_of(
    work: &WorkTree,
    revision: &str,
    paths: BTreeSet<String>,
) -> Result<Vec<Change>, GitError> {
    let Some(head) = work.commit_of(revision)? else {
        return Ok(Vec::new());
    };
    let commits = branch(work.log(&head, None, &[])?, Some(&head));
    let paths = paths.iter().map(String::as_str).collect();
    changes(work, &commits, paths, BTreeMap::new(), &HashMap::new())
}

/// A pin of a file: its namespace as the file says it, its name and its spec.
pub(super) type Pin = (String, String, ReleasePinSpec);

/// Lists the changes that commits made to the pins of files; of the blobs in `known` it is known what they
/// hold.
fn changes<'c>(
    work: &WorkTree,
    commits: &'c [Told],
    mut paths: HashSet<&'c str>,
    mut before: BTreeMap<String, ReleasePinSpec>,
    known: &HashMap<&str, &[Pin]>,
) -> Result<Vec<Change>, GitError> {
    let mut wanted: Vec<(usize, &Changed)> = Vec::new();
    for (at, told) in commits.iter().enumerate().rev() {
        for file in &told.commit.files {
            if file.blob.is_some() && paths.contains(file.path.as_str()) {
                wanted.push((at, file));
                paths.extend(file.from.as_deref());
            }
        }
    }
    wanted.reverse();
    let blobs = wanted.iter().filter_map(|(_, file)| file.blob.clone());
    let blobs: Vec<String> = blobs
        .filter(|blob| !known.contains_key(blob.as_str()))
        .collect();
    let mut texts = work.blobs(&blobs)?.into_iter();
    let mut found = Vec::new();
    for (at, file) in wanted {
        let (Some(told), Some(blob)) = (commits.get(at), &file.blob) else {
            continue;
        };
        let pins = match known.get(blob.as_str()) {
            Some(pins) => pins.to_vec(),
            None => pins(&texts.next().flatten().unwrap_or_default()),
        };
        for (namespace, name, spec) in pins {
            let key = pin_key(&namespace, &name);
            if before.get(&key) == Some(&spec) {
                continue;
            }
            found.push(Change {
                namespace,
                name,
                before: before.insert(key, spec.clone()),
                after: spec,
                at: told.commit.at,
                commit: told.teller(file).clone(),
            });
        }
    }
    Ok(found)
}

/// What a pin said, and what it says now.
pub type Between = (Option<ReleasePinSpec>, Option<ReleasePinSpec>);

/// Compares the pins of a commit with those of the work tree, by namespace and name: those that differ.
pub fn pins_between(
    tree: &Tree,
    base: &str,
) -> Result<BTreeMap<(String, String), Between>, GitError> {
    let work = tree.work();
    let listed = work.ask(["diff", "--name-only", "-z", "--no-renames", base, "--"])?;
    let paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    let before: Vec<String> = paths.iter().map(|path| format!("{base}:{path}")).collect();
    let before = work.blobs(&before)?;
    let namespace = tree.namespace();
    let mut found: BTreeMap<(String, String), Between> = BTreeMap::new();
    let key = |own: String, name: String| match own.is_empty() {
        true => (namespace.clone(), name),
        false => (own, name),
    };
    for (path, before) in paths.iter().zip(before) {
        for (own, name, spec) in pins(&before.unwrap_or_default()) {
            found.entry(key(own, name)).or_default().0 = Some(spec);
        }
        let now = std::fs::read(work.root().join(path)).unwrap_or_default();
        for (own, name, spec) in pins(&now) {
            found.entry(key(own, name)).or_default().1 = Some(spec);
        }
    }
    found.retain(|_, (before, after)| before != after);
    Ok(found)
}

/// Reads the pins of a file as it was.
fn pins(bytes: &[u8]) -> Vec<Pin> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    // What could not be read then is no state that anybody had.
    let documents = match text.contains("ReleasePin") {
        true => yaml::documents("", text).unwrap_or_default(),
        false => Vec::new(),
    };
    let documents = documents.into_iter().map(|document| document.value);
    documents
        .filter(|value| value["kind"] == "ReleasePin")
        .filter_map(|value| {
            let text = |field: &str| {
                value["metadata"][field]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            let spec = serde_json::from_value(value["spec"].clone()).ok()?;
            Some((text("namespace"), text("name"), spec))
        })
        .collect()
}

/// Writes the entry of what became of a pin, with the labels that it is found by.
fn moved(change: &Change, from: Option<String>, revision: i64) -> (AuditEntrySpec, Value) {
    let spec = &change.after;
    let trailers = Trailers::of(&change.commit, spec).unwrap_or_default();
    let action = trailers.action.as_deref();
    let action = action.and_then(|word| serde_json::from_value::<Action>(word.into()).ok());
    let body = change.commit.body();
    let reason = match (action, body.is_empty()) {
        (Some(_), true) => None,
        (Some(_), false) => Some(body),
        // Who edits by hand says why in the subject.
        (None, _) => Some(change.commit.subject().to_owned()),
    };
    let to = spec.effective_release(change.at);
    let spec = AuditEntrySpec {
        subject: Subject {
            kind: SubjectKind::ReleasePin,
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
        from: from.map(ReleaseIdentity::named),
        to: Some(ReleaseIdentity::named(to)),
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

/// Returns the name of an entry, and what is served of it; nothing where it is to go.
pub(super) fn object(entry: &Entry, namespace: &str) -> (String, Option<Value>) {
    let pin = (entry.kind == SubjectKind::ReleasePin).then(|| uid(PINS, namespace, &entry.name));
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
