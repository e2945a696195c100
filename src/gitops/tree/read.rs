//! Reads a file and parses its objects.
//!
//! Each document or list item of one of bowline's kinds is an object. Patches of kustomize look like objects but are
//! none; templates of a Helm chart are no YAML until they are rendered. If a file names bowline's kinds in content
//! that bowline cannot read as objects, this is a problem ([`super::hidden`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use bounded_yaml::edit::Outline;
use kube_embedded::catalog::{Catalog, Resource};
use kube_embedded::object::{self, Writer, meta, meta_mut};
use kube_embedded::route::FieldValidation;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use super::files::{self, Charts};
use super::identity::{PINS, hash, is_of_us, names_us};
use super::index::{Held, Known, LeftOutPin};
use super::moves::{self, Pin};
use super::stat::{Folder, Stat};
use super::{guess, hidden, index, kustomize, manifest};
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::{labels, lists, names};
use crate::git::Blob;

/// An object of a file. It lacks only the metadata that comes from git.
pub(super) struct Loaded {
    pub(super) held: Held,
    pub(super) object: Value,
}

/// A file that was read, with its objects.
pub(super) struct Read {
    pub(super) path: String,
    pub(super) known: Known,
    pub(super) objects: Vec<Loaded>,
    /// The blob id of the file's content, and the ReleasePins in the file. None if the file also contains other
    /// things.
    pub(super) pins: Option<(String, Vec<Pin>)>,
}

/// The result of reading a file that may have changed.
pub(super) enum ReadResult {
    At(Box<Read>),
    /// The file is not checked out or cannot be read, and the index already says so.
    Same,
    /// The file contains a new release, which is not urgent. A later pass reads the file.
    PutOff,
    /// The file no longer exists.
    Gone,
}

/// The inputs for reading the files of a work tree.
pub(super) struct Reader<'a> {
    /// The opened directory to which all paths are relative.
    pub(super) folder: &'a Folder,
    /// The files that git has not checked out because of a sparse checkout, by path.
    pub(super) left_out: &'a BTreeMap<String, LeftOut>,
    pub(super) charts: &'a Charts,
    /// The paths of the files to read, sorted.
    pub(super) paths: &'a [String],
    /// The paths among `paths` that are submodules.
    pub(super) submodules: &'a BTreeSet<String>,
    /// The root of the work tree. In contrast, `scope` is the directory in it that the user named.
    pub(super) root: &'a Path,
    pub(super) scope: &'a Path,
    pub(super) catalog: &'a Catalog,
    pub(super) now: jiff::Timestamp,
    /// How much of the files a pass reads.
    pub(super) extent: Extent,
}

/// How much of the files and of git's log a pass reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Only the data for the matrix. There are many new releases and audit entries, so they are left out.
    Pressing,
    Whole,
}

impl Reader<'_> {
    /// Reads a file that is new or has changed. `known` is its state in the index; None for a new file.
    pub(super) fn read(&self, path: &str, known: Option<&Known>) -> ReadResult {
        let template = self.charts.is_template(path);
        let known = known.filter(|known| known.template == template);
        let (bytes, stat) = match self.contents(path) {
            Ok(Some((Contents::Whole(bytes), stat))) => (bytes, stat),
            Ok(Some((Contents::TooLarge(problem), stat))) => {
                return unread(path, known, template, stat.read_at(self.now), problem, b"");
            }
            Ok(None) => {
                return match (self.left_out.get(path), self.unfollowed(path)) {
                    (Some(file), _) => left_out(path, known, template, file),
                    (None, problem @ Some(_)) => {
                        let target = self.target(path);
                        unread(path, known, template, Stat::default(), problem, &target)
                    }
                    (None, None) => ReadResult::Gone,
                };
            }
            Err(error) => {
                // After the error is repaired, the file may have the same stat. So the index keeps an empty stat,
                // which makes the next pass read the file again.
                let problem = format!("{path}: it cannot be read ({error}); make it readable");
                return unread(path, known, template, Stat::default(), Some(problem), b"");
            }
        };
        if self.extent == Extent::Pressing && known.is_none() && !template && is_a_release(&bytes) {
            return ReadResult::PutOff;
        }
        let hash = hash(&bytes);
        let stat = stat.read_at(self.now);
        if let Some(known) = known.filter(|known| known.hash == hash) {
            let known = Known {
                stat,
                ..known.clone()
            };
            return ReadResult::At(Box::new(Read {
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
                template,
                ..Known::default()
            },
            objects: Vec::new(),
            pins: None,
        };
        match template {
            true => {
                let problem = hidden::problem_of_template(path, &bytes);
                read.known.problems.extend(problem);
            }
            false => self.understand(&mut read, &bytes),
        }
        read.known.note_unread(path, &bytes);
        let pins = read.objects.iter().map(as_written);
        let pins: Option<Vec<Pin>> = pins.collect();
        if read.known.problems.is_empty()
            && let Some(pins) = pins.filter(|pins| !pins.is_empty())
        {
            read.pins = blob_id(&bytes).map(|id| (id, pins));
        }
        ReadResult::At(Box::new(read))
    }

    /// Returns the problem with a link or a submodule, because bowline does not follow these. None if the path is
    /// neither, or if bowline reads the target of the link anyway.
    pub(super) fn unfollowed(&self, path: &str) -> Option<String> {
        if self.submodules.contains(path) {
            return Some(format!(
                "{path}: it is a submodule, and bowline does not read submodules; name a directory without it with --repo"
            ));
        }
        let link = self.root.join(path);
        if !link.is_symlink() {
            // git lists a file with this path, but on disk it is a directory, a pipe or a device.
            let found = link.symlink_metadata().ok()?;
            return (!found.is_file())
                .then(|| format!("{path}: it is no regular file; put the file in its place"));
        }
        let target = link.canonicalize();
        let is_read = target.as_ref().is_ok_and(|target| {
            let root = self.root.canonicalize();
            let own = root.ok().and_then(|root| target.strip_prefix(root).ok());
            let own = own.map(|own| own.to_string_lossy().replace('\\', "/"));
            match target.is_dir() {
                true => target.starts_with(self.scope),
                false => own.is_some_and(|own| self.paths.binary_search(&own).is_ok()),
            }
        });
        let to = match &target {
            Ok(target) => format!("to {}", target.display()),
            Err(_) => "to nothing".to_owned(),
        };
        (!is_read).then(|| {
            format!(
                "{path}: it is a link {to}, and bowline does not follow links; put the file in its place"
            )
        })
    }

    /// Reads the target of a link, to search it for ReleasePins that bowline would miss. Empty if the target is not a
    /// file of the work tree.
    fn target(&self, path: &str) -> Vec<u8> {
        let (target, root) = (
            self.root.join(path).canonicalize(),
            self.root.canonicalize(),
        );
        let (Ok(target), Ok(root)) = (target, root) else {
            return Vec::new();
        };
        let inside = target.strip_prefix(root).ok();
        let inside = inside.map(|inside| inside.to_string_lossy().replace('\\', "/"));
        let found = inside.and_then(|inside| self.contents(&inside).ok().flatten());
        match found {
            Some((Contents::Whole(bytes), _)) => bytes,
            _ => Vec::new(),
        }
    }

    /// Opens a file and reads its content; None if the file does not exist.
    fn contents(&self, path: &str) -> std::io::Result<Option<(Contents, Stat)>> {
        let Some((mut file, stat)) = self.folder.file(path)? else {
            return Ok(None);
        };
        let limit = bounded_yaml::Limits::default().bytes;
        if stat.size() <= limit {
            let bytes = bytes_of(&mut file, stat.size())?;
            if bytes.len() <= limit {
                return Ok(Some((Contents::Whole(bytes), stat)));
            }
            file.rewind()?;
        }
        let ours = files::is_kustomization(path) || names_us_somewhere(&mut file)?;
        let problem = ours.then(|| {
            let origin = path.to_owned();
            let size = stat.size().max(limit + 1);
            let error = bounded_yaml::YamlError::TooLarge {
                origin,
                size,
                limit,
            };
            error.to_string()
        });
        Ok(Some((Contents::TooLarge(problem), stat)))
    }

    fn understand(&self, read: &mut Read, bytes: &[u8]) {
        let kustomization = files::is_kustomization(&read.path);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                if kustomization || names_us(&letters(bytes)) {
                    let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                    let line = 1 + memchr::memchr_iter(b'\n', before).count();
                    let place = format!("{}:{line}", read.path);
                    let problem = format!("{place}: it is not UTF-8; write it in UTF-8");
                    read.known.problems.push(problem);
                }
                return;
            }
        };
        // Some patches name bowline's kinds without a group, and kustomize replacements name only fields. So the
        // group is not enough to find them.
        let speaks_of_us =
            names_us(bytes) || text.contains("ReleasePin") || text.contains("fieldPaths");
        if !kustomization && !speaks_of_us {
            return;
        }
        let documents = match bounded_yaml::documents(&read.path, text) {
            Ok(documents) => documents,
            Err(error) => {
                // Many JSON files of other tools mention an API group of bowline, but contain no objects. They are no
                // problem.
                let manifest = !files::is_json(&read.path) || text.contains("apiVersion");
                if kustomization || (manifest && names_us(bytes)) {
                    read.known.problems.push(error.to_string());
                }
                return;
            }
        };
        read.known.documents = documents.len();
        let has_list = documents
            .iter()
            .any(|document| lists::is_list(&document.value));
        let outline = has_list.then(|| Outline::read(&read.path, text).ok());
        let outline = outline.flatten();
        for (number, document) in documents.into_iter().enumerate() {
            if kustomization {
                kustomize::read(&read.path, &document.value, &mut read.known);
            }
            for item in lists::objects(document.value) {
                let line = outline
                    .as_ref()
                    .and_then(|outline| outline.line(number, &item.at));
                let line = line.unwrap_or(document.line);
                self.take(read, item, number, line);
            }
        }
    }

    /// Adds an object of a document to the result. If bowline cannot read the object, adds a problem instead.
    fn take(&self, read: &mut Read, item: lists::Item, document: usize, line: usize) {
        let lists::Item { at, value } = item;
        if hidden::changes_pin(&value) {
            read.known.changes_pin.get_or_insert(line);
        }
        let Some(resource) = resource_of(self.catalog, &value) else {
            let problem = hidden::problem(&value);
            let problem = problem.map(|why| format!("{}:{line}: {why}", read.path));
            read.known.problems.extend(problem);
            return;
        };
        match self.load(resource, value) {
            Ok((object, namespace, name)) => {
                let pin = (&*resource.storage == PINS)
                    .then(|| ReleasePinSpec::deserialize(&object["spec"]).ok());
                let pin = pin.flatten();
                let named = pin.iter().flat_map(ReleasePinSpec::named_releases);
                let held = Held {
                    resource: resource.storage.to_string(),
                    says_namespace: !namespace.is_empty(),
                    namespace,
                    name,
                    document,
                    items: at,
                    line,
                    releases: named.map(str::to_owned).collect(),
                };
                read.known.objects.push(held.clone());
                read.objects.push(Loaded { held, object });
            }
            Err(why) => {
                let place = format!("{}:{line}", read.path);
                read.known.problems.push(format!("{place}: {why}"));
            }
        }
    }

    /// Converts a document to an object, with the same checks as for a write through the API. Returns the object, its
    /// namespace (empty if the document names none) and its name. The error is the problem as text.
    fn load(&self, resource: &Resource, value: Value) -> Result<(Value, String, String), String> {
        let name = meta(&value, "name").to_owned();
        let namespace = meta(&value, "namespace").to_owned();
        if name.is_empty() {
            return Err(format!("a {} without a name", resource.subject.kind));
        }
        if !namespace.is_empty() && !names::is_namespace(&namespace) {
            return Err(format!(
                "{} {name}: {namespace:?} cannot be a namespace; {}",
                resource.subject.kind,
                names::NAMESPACE_FORM
            ));
        }
        let writer = Writer {
            user: String::new(),
            manager: String::new(),
            // This time is only a placeholder, because the creation time from git replaces it later.
            now: "1970-01-01T00:00:00Z".to_owned(),
            field_validation: FieldValidation::Ignore,
            stamps: Arc::default(),
        };
        let mut draft = object::create(resource, value, &writer, "", true)
            .map_err(|failure| failure.message)?
            .object;
        if let Some(annotations) = draft["metadata"]["annotations"].as_object_mut() {
            annotations.remove(labels::CHANGED_BY);
        }
        stamp(resource, &mut draft);
        Ok((draft, namespace, name))
    }
}

/// Sets the labels and annotations of a release by which lists find and show it. The component comes from the spec,
/// because a label in the file may be wrong.
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

/// Returns the API resource of a document. None if its kind is none of bowline's, or may not be in a file.
pub(super) fn resource_of<'c>(catalog: &'c Catalog, value: &Value) -> Option<&'c Resource> {
    let version = value["apiVersion"].as_str()?;
    if !is_of_us(version) {
        return None;
    }
    let (group, version) = version.rsplit_once('/')?;
    let kind = value["kind"].as_str()?;
    let found = catalog.of_version(group, version);
    let mut found = found.filter(|resource| resource.subject.kind == kind);
    // In a repository, git's log is the audit trail. So AuditEntries in files are ignored.
    found
        .next()
        .map(|resource| &**resource)
        .filter(|_| kind != "AuditEntry")
}

/// Returns a ReleasePin in the same form as ReleasePins from git's log; None for other kinds.
fn as_written(loaded: &Loaded) -> Option<Pin> {
    let held = &loaded.held;
    if held.resource != PINS {
        return None;
    }
    let spec = ReleasePinSpec::deserialize(&loaded.object["spec"]).ok()?;
    Some((held.namespace.clone(), held.name.clone(), spec))
}

enum Contents {
    Whole(Vec<u8>),
    /// The file is larger than the limit. If the file mentions an API group of bowline, contains the problem.
    TooLarge(Option<String>),
}

/// A file that git has not checked out because of a sparse checkout.
pub(super) struct LeftOut {
    /// The id of the blob with the file's content.
    pub(super) blob: String,
    /// Whether the file can contain objects of bowline.
    pub(super) ours: bool,
    /// The ReleasePins in the file that is not checked out.
    pub(super) pins: Vec<LeftOutPin>,
    /// The names of the releases in the file that is not checked out.
    pub(super) releases: Vec<String>,
}

impl LeftOut {
    /// Parses the blob of a file that git has not checked out.
    pub(super) fn read(blob: String, content: &Blob, template: bool) -> Self {
        let (ours, text) = match content {
            // This clone does not have the blob. So it may contain objects of bowline.
            Blob::Missing => (true, None),
            Blob::TooLarge { has_word, .. } => (*has_word, None),
            Blob::Whole(text) if template => {
                (hidden::problem_of_template("", text).is_some(), None)
            }
            Blob::Whole(text) => (names_us(text), Some(text.as_slice())),
        };
        let text = text.filter(|_| ours);
        let pins = text.and_then(moves::read_pins);
        let pins = pins.unwrap_or_default().into_iter();
        let pins = pins.map(|(namespace, name, spec)| LeftOutPin {
            namespace,
            name,
            component: spec.component,
            environment: spec.environment,
            problem: String::new(),
        });
        let objects = manifest::objects(text.unwrap_or_default()).unwrap_or_default();
        let releases = objects
            .iter()
            .filter(|value| manifest::is_a("Release", value));
        let releases = releases.map(|value| meta(value, "name").to_owned());
        Self {
            blob,
            ours,
            pins: pins.collect(),
            releases: releases.collect(),
        }
    }
}

/// Returns the result for a file whose content was not parsed because of a problem.
fn unread(
    path: &str,
    known: Option<&Known>,
    template: bool,
    stat: Stat,
    problem: Option<String>,
    target: &[u8],
) -> ReadResult {
    let hash = hash(problem.as_deref().unwrap_or_default().as_bytes());
    let mut read = Known {
        stat,
        hash,
        template,
        problems: problem.into_iter().collect(),
        ..Known::default()
    };
    read.note_unread(path, target);
    // bowline does not know the content of the file, so the file may hide ReleasePins.
    read.may_hide_pins = !read.problems.is_empty() && read.left_out.is_empty();
    noted(path, known, read)
}

/// Returns the result for a file that git has not checked out.
fn left_out(path: &str, known: Option<&Known>, template: bool, file: &LeftOut) -> ReadResult {
    let problem = file.ours.then(|| {
        format!(
            "{path}: not checked out, so its content is not known; check it out: {}",
            index::check_out(path)
        )
    });
    let read = Known {
        hash: file.blob.clone(),
        template,
        problems: problem.into_iter().collect(),
        left_out: file.pins.clone(),
        left_out_releases: file.releases.clone(),
        not_checked_out: true,
        ..Known::default()
    };
    noted(path, known, read)
}

impl Known {
    /// Records the ReleasePins that a file with problems seems to contain, although bowline cannot read them.
    fn note_unread(&mut self, path: &str, bytes: &[u8]) {
        let Some(problem) = self.problems.first().cloned() else {
            return;
        };
        if files::is_kustomization(path) {
            return;
        }
        let letters = letters(bytes);
        let text = String::from_utf8_lossy(&letters);
        let is_served = |pin: &LeftOutPin| {
            let mut held = self.objects.iter();
            held.any(|held| held.resource == PINS && held.name == pin.name)
        };
        let mut pins = match self.template {
            true => Vec::new(),
            false => guess::pins(&text),
        };
        pins.retain(|pin| !is_served(pin));
        for pin in &mut pins {
            pin.problem.clone_from(&problem);
        }
        let served = self.objects.iter().any(|held| held.resource == PINS);
        self.may_hide_pins = pins.is_empty() && !served && text.contains("ReleasePin");
        self.left_out = pins;
    }
}

fn noted(path: &str, known: Option<&Known>, read: Known) -> ReadResult {
    match known == Some(&read) {
        true => ReadResult::Same,
        false => ReadResult::At(Box::new(Read {
            path: path.to_owned(),
            known: read,
            objects: Vec::new(),
            pins: None,
        })),
    }
}

/// Removes the zero bytes from a text. This makes ASCII words in UTF-16 readable, because every second byte of them
/// is zero.
pub(super) fn letters(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|byte| *byte != 0).collect()
}

/// Returns whether a file mentions an API group of bowline. It reads the file in pieces, because the file is too
/// large for the memory. See [`names_us`].
fn names_us_somewhere(file: &mut File) -> std::io::Result<bool> {
    const PIECE: u64 = 1 << 20;
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        // A group name may begin in one piece and end in the next. So the end of each piece is kept.
        let longest = labels::GROUPS.iter().map(|group| group.len()).max();
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

/// Returns whether a file seems to be one document with a Release. It checks only single lines, because the answer
/// only decides which files are read first.
pub(super) fn is_a_release(bytes: &[u8]) -> bool {
    let at_margin = |word: &'static [u8]| {
        let found = memmem::find_iter(bytes, word);
        found.filter(|at| *at == 0 || bytes.get(at - 1) == Some(&b'\n'))
    };
    // Returns the line that begins with this word; None if there is no such line or more than one.
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
    // A file that begins with the separator `---` still has only one document.
    let one = || at_margin(b"---").all(|at| at == 0) && at_margin(b"...").next().is_none();
    line(b"kind:") == Some(b"kind: Release") && line(b"apiVersion:").is_some_and(group) && one()
}

/// Returns whether a file of any size can contain objects of bowline.
pub(super) fn names_us_in(file: &Path) -> bool {
    let found = File::open(file).and_then(|mut file| names_us_somewhere(&mut file));
    found.unwrap_or_default()
}

/// Reads a file up to the size limit of files in the work tree.
pub(super) fn read_within_limit(file: &Path) -> std::io::Result<Vec<u8>> {
    let limit = bounded_yaml::Limits::default().bytes;
    let mut bytes = Vec::new();
    let longest = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file)?.take(longest).read_to_end(&mut bytes)?;
    match bytes.len() > limit {
        true => Err(std::io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

/// Reads a file whose size is known. Usually this needs one system call, which saves time because there are many
/// files.
fn bytes_of(file: &mut File, size: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; size + 1];
    let read = file.read(&mut bytes)?;
    bytes.truncate(read);
    // The size has changed since, so read the rest of the file, up to the limit.
    if read != size {
        let limit = u64::try_from(bounded_yaml::Limits::default().bytes).unwrap_or(u64::MAX);
        file.take(limit + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Returns the id that git gives to a blob with this content; None if it cannot be computed.
fn blob_id(bytes: &[u8]) -> Option<String> {
    let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, bytes);
    Some(id.ok()?.to_string())
}
