//! From a file to the objects in it.
//!
//! A document with one of our kinds is an object, wherever it lies. Kustomize's patches look like one and
//! are none; a chart's templates are not YAML until they are rendered. Both are left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Seek as _};

use memchr::memmem;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::chronicle;
use super::index::{Held, Known};
use super::moves::Pin;
use super::stat::{Folder, Stat};
use crate::api::labels;
use crate::embedded::catalog::{Catalog, Resource};
use crate::embedded::object::{self, Writer, meta, meta_mut};
use crate::embedded::route::FieldValidation;
use crate::yaml;

/// An object of a file, ready to be served but for what git knows of it.
pub(super) struct Loaded {
    pub(super) held: Held,
    pub(super) object: Value,
}

/// What was read of a file.
pub(super) struct Read {
    pub(super) path: String,
    pub(super) known: Known,
    pub(super) objects: Vec<Loaded>,
    /// What git calls a file that says this, and its pins, where it holds nothing else.
    pub(super) pins: Option<(String, Vec<Pin>)>,
}

/// What became of a file that changed.
pub(super) enum Looked {
    /// It was read.
    At(Box<Read>),
    /// It cannot be read, or is left out, and that is known.
    Same,
    /// It holds a release that nobody knows yet, and is left for later.
    PutOff,
    /// It is gone meanwhile.
    Gone,
}

/// What reading needs to know.
pub(super) struct Reader<'a> {
    /// What paths are relative to.
    pub(super) folder: &'a Folder,
    /// What need not be there.
    pub(super) left_out: &'a BTreeMap<String, LeftOut>,
    pub(super) catalog: &'a Catalog,
    pub(super) now: jiff::Timestamp,
    /// How much is read.
    pub(super) extent: Extent,
}

/// How much of the files and of the log a look takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All but new releases and the entries of the log: those are many, and a matrix needs neither.
    Pressing,
    /// Everything.
    Whole,
}

/// The words without which a file has no object of ours.
const GROUPS: [&str; 3] = [
    labels::OPENCHOREO_GROUP,
    labels::CORE_CHOREO_GROUP,
    labels::BOWLINE_GROUP,
];

impl Reader<'_> {
    /// Reads a file that is not known, or not as it was.
    pub(super) fn read(&self, path: &str, known: Option<&Known>) -> Looked {
        let (bytes, stat) = match self.contents(path) {
            Ok(Some((Contents::Whole(bytes), stat))) => (bytes, stat),
            Ok(Some((Contents::TooLarge(problem), stat))) => {
                return unread(path, known, stat.read_at(self.now), problem);
            }
            Ok(None) => {
                return match self.left_out.get(path) {
                    Some(file) => left_out(path, known, file),
                    None => Looked::Gone,
                };
            }
            Err(error) => {
                // It is tried again whatever its stat says: that may stay as it is when the error goes.
                let problem = format!("{path}: it cannot be read ({error}); make it readable");
                return unread(path, known, Stat::default(), Some(problem));
            }
        };
        if self.extent == Extent::Pressing && known.is_none() && is_a_release(&bytes) {
            return Looked::PutOff;
        }
        let hash = hash(&bytes);
        let stat = stat.read_at(self.now);
        if let Some(known) = known.filter(|known| known.hash == hash) {
            let known = Known {
                stat,
                ..known.clone()
            };
            return Looked::At(Box::new(Read {
                path: path.to_owned(),
                known,
                objects: Vec::new(),
                pins: None,
            }));
        }
        let mut read = Read {
            path: path.to_owned(),
            known: Known {
                stat,
                hash,
                ..Known::default()
            },
            objects: Vec::new(),
            pins: None,
        };
        self.understand(&mut read, &bytes);
        let pins = read.objects.iter().map(chronicle::as_written);
        let pins: Option<Vec<Pin>> = pins.collect();
        if read.known.problems.is_empty()
            && let Some(pins) = pins.filter(|pins| !pins.is_empty())
        {
            read.pins = blob_id(&bytes).map(|id| (id, pins));
        }
        Looked::At(Box::new(read))
    }

    /// Opens and reads a file; None where there is none.
    fn contents(&self, path: &str) -> std::io::Result<Option<(Contents, Stat)>> {
        let Some((mut file, stat)) = self.folder.file(path)? else {
            return Ok(None);
        };
        let limit = yaml::Limits::default().bytes;
        if stat.size() <= limit {
            let bytes = bytes_of(&mut file, stat.size())?;
            if bytes.len() <= limit {
                return Ok(Some((Contents::Whole(bytes), stat)));
            }
            file.rewind()?;
        }
        let ours = is_kustomization(path) || names_us_somewhere(&mut file)?;
        let problem = ours.then(|| {
            let origin = path.to_owned();
            let size = stat.size().max(limit + 1);
            let error = yaml::YamlError::TooLarge {
                origin,
                size,
                limit,
            };
            error.to_string()
        });
        Ok(Some((Contents::TooLarge(problem), stat)))
    }

    fn understand(&self, read: &mut Read, bytes: &[u8]) {
        let kustomization = is_kustomization(&read.path);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                // In UTF-16, every other byte of a word is none.
                let letters: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
                if kustomization || names_us(&letters) {
                    let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                    let line = 1 + memchr::memchr_iter(b'\n', before).count();
                    let place = format!("{}:{line}", read.path);
                    let problem = format!("{place}: it is not UTF-8; write it in UTF-8");
                    read.known.problems.push(problem);
                }
                return;
            }
        };
        if !kustomization && !names_us(bytes) {
            return;
        }
        let documents = match yaml::documents(&read.path, text) {
            Ok(documents) => documents,
            Err(error) => {
                read.known.problems.push(error.to_string());
                return;
            }
        };
        read.known.documents = documents.len();
        if kustomization {
            for document in &documents {
                name_files(&read.path, &document.value, &mut read.known);
            }
        }
        for (at, document) in documents.into_iter().enumerate() {
            let Some(resource) = resource_of(self.catalog, &document.value) else {
                continue;
            };
            match self.load(resource, document.value, at, document.line) {
                Ok(loaded) => {
                    read.known.objects.push(loaded.held.clone());
                    read.objects.push(loaded);
                }
                Err(why) => {
                    let place = format!("{}:{}", read.path, document.line);
                    read.known.problems.push(format!("{place}: {why}"));
                }
            }
        }
    }

    /// Makes an object of a document, by the same rules as any other writer's.
    fn load(
        &self,
        resource: &Resource,
        value: Value,
        document: usize,
        line: usize,
    ) -> Result<Loaded, String> {
        let name = meta(&value, "name").to_owned();
        let namespace = meta(&value, "namespace").to_owned();
        if name.is_empty() {
            return Err(format!("a {} without a name", resource.subject.kind));
        }
        let writer = Writer {
            user: String::new(),
            manager: String::new(),
            // When it was made is what git says.
            now: "1970-01-01T00:00:00Z".to_owned(),
            field_validation: FieldValidation::Ignore,
        };
        let mut draft = object::create(resource, value, &writer, "", true)
            .map_err(|failure| failure.message)?
            .object;
        if let Some(annotations) = draft["metadata"]["annotations"].as_object_mut() {
            annotations.remove(labels::CHANGED_BY);
        }
        stamp(resource, &mut draft);
        Ok(Loaded {
            held: Held {
                resource: resource.storage.to_string(),
                says_namespace: !namespace.is_empty(),
                namespace,
                name,
                document,
                line,
            },
            object: draft,
        })
    }
}

/// Says in the metadata what lists show; the file need not, and of a release the spec counts.
fn stamp(resource: &Resource, object: &mut Value) {
    if resource.subject.kind != "Release" || resource.subject.group != labels::OPENCHOREO_GROUP {
        return;
    }
    let component = object["spec"]["component"]["name"]
        .as_str()
        .map(str::to_owned);
    let size = object["spec"].to_string().len().to_string();
    let meta = meta_mut(object);
    if let Some(component) = component {
        let labels = object::map_of(meta.entry("labels").or_insert(Value::Null));
        labels.insert(labels::COMPONENT.to_owned(), component.into());
    }
    let annotations = object::map_of(meta.entry("annotations").or_insert(Value::Null));
    annotations
        .entry(labels::SIZE)
        .or_insert_with(|| size.into());
}

/// Finds the resource of a document, where it is one of ours that files may hold.
pub(super) fn resource_of<'c>(catalog: &'c Catalog, value: &Value) -> Option<&'c Resource> {
    let version = value["apiVersion"].as_str()?;
    let (group, version) = version.rsplit_once('/')?;
    if !GROUPS.contains(&group) {
        return None;
    }
    let kind = value["kind"].as_str()?;
    let found = catalog.of_version(group, version);
    let mut found = found.filter(|resource| resource.subject.kind == kind);
    // The audit of a repository is its log.
    found
        .next()
        .map(|resource| &**resource)
        .filter(|_| kind != "AuditEntry")
}

/// What a file holds.
enum Contents {
    /// All of it.
    Whole(Vec<u8>),
    /// More than is read, and what is wrong with that where it says anything of ours.
    TooLarge(Option<String>),
}

/// A file that a sparse checkout leaves out.
pub(super) struct LeftOut {
    /// What git calls what it says.
    pub(super) blob: String,
    /// Whether it can have objects of ours.
    pub(super) ours: bool,
}

/// What is known of a file that is not read.
fn unread(path: &str, known: Option<&Known>, stat: Stat, problem: Option<String>) -> Looked {
    let hash = hash(problem.as_deref().unwrap_or_default().as_bytes());
    noted(path, known, stat, hash, problem)
}

/// What is known of a file that is not there to be read.
fn left_out(path: &str, known: Option<&Known>, file: &LeftOut) -> Looked {
    let problem = file.ours.then(|| {
        format!(
            "{path}: it is not checked out, so what it says is not known; git sparse-checkout add its directory"
        )
    });
    noted(path, known, Stat::default(), file.blob.clone(), problem)
}

fn noted(
    path: &str,
    known: Option<&Known>,
    stat: Stat,
    hash: String,
    problem: Option<String>,
) -> Looked {
    let read = Known {
        stat,
        hash,
        problems: problem.into_iter().collect(),
        ..Known::default()
    };
    match known == Some(&read) {
        true => Looked::Same,
        false => Looked::At(Box::new(Read {
            path: path.to_owned(),
            known: read,
            objects: Vec::new(),
            pins: None,
        })),
    }
}

/// Tells whether a text can have objects of ours.
pub(super) fn names_us(bytes: &[u8]) -> bool {
    let mut groups = GROUPS.iter();
    groups.any(|group| memmem::find(bytes, group.as_bytes()).is_some())
}

/// Tells the same of a file that is too large to be read at once.
fn names_us_somewhere(file: &mut File) -> std::io::Result<bool> {
    const PIECE: u64 = 1 << 20;
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        // A word may stand across two pieces.
        let longest = GROUPS.iter().map(|group| group.len()).max();
        let done = bytes.len().saturating_sub(longest.unwrap_or_default());
        bytes.drain(..done);
        if file.by_ref().take(PIECE).read_to_end(&mut bytes)? == 0 {
            return Ok(false);
        }
        if names_us(&bytes) {
            return Ok(true);
        }
    }
}

/// Tells by its lines alone whether a file is one document, and that one a release of ours.
///
/// Nothing but the order of reading hangs on it.
pub(super) fn is_a_release(bytes: &[u8]) -> bool {
    let at_margin = |word: &'static [u8]| {
        let found = memmem::find_iter(bytes, word);
        found.filter(|at| *at == 0 || bytes.get(at - 1) == Some(&b'\n'))
    };
    // The line that begins with a word, where only one does.
    let line = |word: &'static [u8]| {
        let mut found = at_margin(word);
        let (Some(at), None) = (found.next(), found.next()) else {
            return None;
        };
        let line = bytes.get(at..)?.split(|byte| *byte == b'\n').next();
        line.map(<[u8]>::trim_ascii_end)
    };
    let group = |line: &[u8]| {
        let version = line.strip_prefix(b"apiVersion: ").unwrap_or_default();
        let rest = version.strip_prefix(labels::OPENCHOREO_GROUP.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    };
    // One that begins with a marker is still one document.
    let one = || at_margin(b"---").all(|at| at == 0) && at_margin(b"...").next().is_none();
    line(b"kind:") == Some(b"kind: Release") && line(b"apiVersion:").is_some_and(group) && one()
}

/// Reads a file of which the size is known: of most with one call, for there are many.
fn bytes_of(file: &mut File, size: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; size + 1];
    let read = file.read(&mut bytes)?;
    bytes.truncate(read);
    // One that is longer or shorter by now may go on, as far as any is read.
    if read != size {
        let limit = u64::try_from(yaml::Limits::default().bytes).unwrap_or(u64::MAX);
        file.take(limit + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// What git calls a file; None where it does not say.
fn blob_id(bytes: &[u8]) -> Option<String> {
    let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, bytes);
    Some(id.ok()?.to_string())
}

fn is_kustomization(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        "kustomization.yaml" | "kustomization.yml" | "Kustomization"
    )
}

/// Notes which files a kustomization names, as paths from the root.
fn name_files(path: &str, value: &Value, known: &mut Known) {
    let add = |into: &mut Vec<String>, named: &Value| {
        if let Some(named) = named.as_str().filter(|text| !text.contains('\n')) {
            into.extend(beside(path, named));
        }
    };
    let list = |field: &str| value[field].as_array().into_iter().flatten();
    for field in ["patches", "patchesJson6902"] {
        list(field).for_each(|patch| add(&mut known.patches, &patch["path"]));
    }
    list("patchesStrategicMerge").for_each(|patch| add(&mut known.patches, patch));
    for field in ["resources", "components", "bases"] {
        list(field).for_each(|resource| add(&mut known.resources, resource));
    }
}

/// Returns the path of what a file names relative to itself; None where that is outside of the root.
fn beside(path: &str, named: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in named.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

pub(super) fn hash(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| DIGITS.get(usize::from(digit)))
        .map(|digit| char::from(*digit))
        .collect()
}

/// Chooses the files that can hold objects: YAML that is neither a template of a chart nor a patch.
pub(super) fn candidates(files: Vec<String>) -> Vec<String> {
    let charts: BTreeSet<String> = files
        .iter()
        .filter_map(|file| file.strip_suffix("Chart.yaml"))
        .filter(|folder| folder.is_empty() || folder.ends_with('/'))
        .map(|folder| format!("{folder}templates/"))
        .collect();
    let is_template = |file: &str| {
        charts
            .iter()
            .any(|folder| file.starts_with(folder.as_str()))
    };
    let is_yaml =
        |file: &str| file.ends_with(".yaml") || file.ends_with(".yml") || is_kustomization(file);
    let mut chosen: Vec<String> = files
        .into_iter()
        .filter(|file| is_yaml(file) && !is_template(file))
        .collect();
    chosen.sort();
    chosen.dedup();
    chosen
}

/// Returns the files that kustomizations name as patches, or as resources.
pub(super) fn named(files: &BTreeMap<String, Known>) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let patches = files.values().flat_map(|known| &known.patches);
    let resources = files.values().flat_map(|known| &known.resources);
    (
        patches.map(String::as_str).collect(),
        resources.map(String::as_str).collect(),
    )
}
