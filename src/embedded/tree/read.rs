//! From a file to the objects in it.
//!
//! A document with one of our kinds is an object, wherever it lies. Kustomize's patches look like one and
//! are none; a chart's templates are not YAML until they are rendered. Both are left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;

use memchr::memmem;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::chronicle;
use super::index::{Held, Known};
use super::moves::Pin;
use super::stat::Folder;
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
    /// It holds a release that nobody knows yet, and is left for later.
    PutOff,
    /// It is gone meanwhile.
    Gone,
}

/// What reading needs to know.
pub(super) struct Reader<'a> {
    /// What paths are relative to.
    pub(super) folder: &'a Folder,
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
        let opened = self.folder.file(path).and_then(|(mut opened, stat)| {
            let bytes = contents(&mut opened, stat.size()).ok()?;
            Some((bytes, stat))
        });
        let Some((bytes, stat)) = opened else {
            return Looked::Gone;
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

    fn understand(&self, read: &mut Read, bytes: &[u8]) {
        let kustomization = is_kustomization(&read.path);
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        let ours = GROUPS.iter().any(|group| text.contains(group));
        if !ours && !kustomization {
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

/// Tells by its lines alone whether a file is one document, and that one a release.
///
/// Nothing but the order of reading hangs on it.
pub(super) fn is_a_release(bytes: &[u8]) -> bool {
    let at_margin = |word: &'static [u8]| {
        let found = memmem::find_iter(bytes, word);
        found.filter(|at| *at == 0 || bytes.get(at - 1) == Some(&b'\n'))
    };
    let mut kinds = at_margin(b"kind:");
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return false;
    };
    let line = bytes.get(kind..).unwrap_or_default();
    let line = line.split(|byte| *byte == b'\n').next();
    // One that begins with a marker is still one document.
    let one = at_margin(b"---").all(|at| at == 0) && at_margin(b"...").next().is_none();
    one && line.is_some_and(|line| line.trim_ascii_end() == b"kind: Release")
}

/// Reads a file of which the size is known: of most with one call, for there are many.
fn contents(file: &mut File, size: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; size + 1];
    let read = file.read(&mut bytes)?;
    bytes.truncate(read);
    // One that is longer or shorter by now may go on.
    if read != size {
        file.read_to_end(&mut bytes)?;
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
