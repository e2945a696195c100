//! Computes the edits of files that add, change or remove objects. This module does not write the files.

use std::collections::BTreeMap;

use bounded_yaml::edit::EditError;
use kube_embedded::object::meta;
use serde_json::Value;

use super::files::{self, Charts};
use super::index::{Held, Index, Known};
use super::object_text::{holds, object_at, with_another, with_object, without_object};
use super::{BadWord, Place, Tree, identity, index, kustomize, place, read};
use crate::git::GitError;
use crate::git::commit::FileEdit;
use crate::text;

/// The change of one object in the files of a work tree.
#[derive(Clone, Debug)]
pub enum ObjectEdit {
    /// Replace the content of an object.
    Set {
        /// The place of the object whose content changes.
        place: Place,
        document: Value,
    },
    /// Add a new object.
    New {
        /// The resource of the new object, as `{group}/{plural}`.
        resource: String,
        document: Value,
    },
    /// Remove an object.
    Remove {
        /// The place of the object to remove.
        place: Place,
    },
}

/// The reason why the edits of the files cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum EditsError {
    /// The YAML of a file cannot be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file contains bytes that are not text. Contains the path of the file.
    #[error("{0} is not UTF-8")]
    NotText(String),
    #[error("{path}: {error}")]
    File { path: String, error: std::io::Error },
    /// The layout chooses a file for the new object from which bowline would not read the object.
    #[error("a new {kind} would go to {path}, {why}")]
    NoPlace {
        kind: String,
        /// The path of the chosen file.
        path: String,
        /// The reason why bowline would not read the object from the chosen file.
        why: String,
    },
    /// The object is in two files. Other tools apply both, so a change in one of them may have no effect.
    #[error(
        "{kind} {name} is in {first} and in {second}, so a change of one of them may have no effect"
    )]
    Twice {
        kind: String,
        name: String,
        /// The first place of the object, as file and line.
        first: String,
        /// The second place of the object, as file and line.
        second: String,
    },
    /// A file that git has not checked out may already contain the new object.
    #[error("cannot add {kind} {name}: {path} may contain it, and this file is not checked out")]
    NotCheckedOut {
        /// The path of the file that is not checked out.
        path: String,
        /// The kind of the new object.
        kind: String,
        /// The name of the new object.
        name: String,
    },
    /// A file that bowline cannot read may already contain the new object.
    #[error("cannot add {kind} {name}: {path} may contain it, and bowline cannot read this file")]
    MayExist {
        path: String,
        kind: String,
        name: String,
    },
    /// The layout would put a field of the new object into the path of its file, but the field is no valid file name.
    #[error(transparent)]
    Word(#[from] BadWord),
    /// A git command failed, or the path of a file leads out of the work tree.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl EditsError {
    /// Returns the next step for the user; None if there is none.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoPlace { .. } => Some(
                "set the file of new objects under [layout] in .bowline.toml; list the problems of the files: bowline check"
                    .to_owned(),
            ),
            Self::Twice { first, second, .. } => Some(format!(
                "remove it from {first} or from {second}, and commit that"
            )),
            Self::NotCheckedOut { path, .. } => {
                Some(format!("check it out: {}", index::check_out(path)))
            }
            Self::MayExist { .. } => {
                Some("list the problems of the file: bowline check".to_owned())
            }
            _ => None,
        }
    }
}

/// A file during the computation of its edits.
struct Editing {
    before: Option<Vec<u8>>,
    now: Option<String>,
}

impl Tree {
    /// Returns the object at a place in the files. In a typed list, the items have no apiVersion and kind, so the
    /// function adds these two fields.
    pub fn document(&self, place: &Place) -> Result<Value, EditsError> {
        let text = self.text(&place.path)?.unwrap_or_default();
        Ok(object_at(place, &text)?)
    }

    fn text(&self, path: &str) -> Result<Option<String>, EditsError> {
        let file = self.work().inside(path)?;
        let bytes = match read::read_within_limit(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(EditsError::File {
                    path: path.to_owned(),
                    error,
                });
            }
        };
        let text = String::from_utf8(bytes);
        text.map(Some)
            .map_err(|_| EditsError::NotText(path.to_owned()))
    }

    /// Converts changes of objects to edits of files.
    pub fn edits(&self, edits: &[ObjectEdit]) -> Result<Vec<FileEdit>, EditsError> {
        let mut files: BTreeMap<String, Editing> = BTreeMap::new();
        let mut removed: Vec<&Place> = Vec::new();
        let index = self.index();
        for edit in edits {
            match edit {
                ObjectEdit::Set { place, document } => {
                    self.is_there_once(&index, place)?;
                    let file = self.editing(&mut files, &place.path)?;
                    let text = file.now.take().unwrap_or_default();
                    file.now = Some(with_object(place, &text, document)?);
                }
                ObjectEdit::New { resource, document } => {
                    let path = self.new_file(resource, document)?;
                    let no_place = |why: String| EditsError::NoPlace {
                        kind: document["kind"].as_str().unwrap_or_default().to_owned(),
                        path: path.clone(),
                        why,
                    };
                    self.is_nowhere_unread(&index, document)?;
                    if let Some(why) = self.hides(&path)? {
                        return Err(no_place(why));
                    }
                    let file = self.editing(&mut files, &path)?;
                    file.now = Some(match file.now.take() {
                        None => bounded_yaml::edit::new_text(document, files::is_json(&path)),
                        Some(text) => {
                            if holds(&path, &text, document)? {
                                return Err(no_place("which has it already".to_owned()));
                            }
                            with_another(&path, &text, document)?
                                .ok_or_else(|| no_place(ONE_JSON.to_owned()))?
                        }
                    });
                }
                ObjectEdit::Remove { place } => removed.push(place),
            }
        }
        // Remove documents from the last to the first, so that the indexes of the remaining documents stay valid.
        removed.sort_by_key(|place| std::cmp::Reverse((place.document, &place.items)));
        for place in removed {
            self.is_there_once(&index, place)?;
            let file = self.editing(&mut files, &place.path)?;
            if let Some(text) = file.now.take() {
                let alone = index.files.get(&place.path).is_some_and(|known| {
                    known.documents == 1 && known.hash == identity::hash(text.as_bytes())
                });
                file.now = match alone && place.items.is_empty() {
                    true => None,
                    false => without_object(place, &text)?,
                };
            }
        }
        let edits = files.into_iter().map(|(path, file)| FileEdit {
            path,
            before: file.before,
            after: file.now.map(String::into_bytes),
        });
        Ok(edits.filter(|edit| edit.before != edit.after).collect())
    }

    /// Returns an error if the object to change is in two files. Other tools apply both, so the unchanged one might
    /// win.
    fn is_there_once(&self, index: &Index, place: &Place) -> Result<(), EditsError> {
        let here = index.files.get(&place.path);
        let mut here = here.into_iter().flat_map(|known| &known.objects);
        let own = here.find(|held| held.document == place.document && held.items == place.items);
        let Some(own) = own else {
            return Ok(());
        };
        let (patches, _) = kustomize::named(&index.files);
        for (path, known) in &index.files {
            let mut held = known.objects.iter();
            let is_other = |held: &&Held| {
                index.identity(held) == index.identity(own) && !std::ptr::eq(*held, own)
            };
            if let Some(other) = held.find(is_other)
                && !patches.contains(path.as_str())
            {
                return Err(EditsError::Twice {
                    kind: own.resource.clone(),
                    name: own.name.clone(),
                    first: place.to_string(),
                    second: Place::of(path, other).to_string(),
                });
            }
        }
        Ok(())
    }

    /// Returns an error if the new object is a ReleasePin that a file which cannot be read may already contain.
    fn is_nowhere_unread(&self, index: &Index, document: &Value) -> Result<(), EditsError> {
        let (kind, name) = (document["kind"].as_str(), meta(document, "name"));
        if kind != Some("ReleasePin") {
            return Ok(());
        }
        let has = |bytes: &[u8], word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
        let may_have = |(path, known): &(&String, &Known)| {
            if known.problems.is_empty() {
                return false;
            }
            if known.may_hide_pins || known.left_out.iter().any(|pin| pin.name == name) {
                return true;
            }
            let file = self.work().inside(path).ok();
            let bytes = file.and_then(|file| read::read_within_limit(&file).ok());
            let bytes = bytes.map(|bytes| read::letters(&bytes));
            bytes.is_some_and(|bytes| has(&bytes, "ReleasePin") && has(&bytes, name))
        };
        let may_exist = |path: &str| EditsError::MayExist {
            path: text::line(path).into_owned(),
            kind: "ReleasePin".to_owned(),
            name: name.to_owned(),
        };
        match index.files.iter().find(may_have) {
            Some((path, known)) if known.not_checked_out => {
                return Err(EditsError::NotCheckedOut {
                    path: text::line(path).into_owned(),
                    kind: "ReleasePin".to_owned(),
                    name: name.to_owned(),
                });
            }
            Some((path, _)) => return Err(may_exist(path)),
            None => {}
        }
        // A kustomization can also name a file that bowline does not read because of the file's extension.
        let (_, resources) = kustomize::named(&index.files);
        let mut unread = resources.into_iter();
        let unread =
            unread.find(|path| !index.files.contains_key(*path) && self.is_unread_manifest(path));
        match unread {
            Some(path) => Err(may_exist(path)),
            None => Ok(()),
        }
    }

    /// Returns the reason why bowline would not read a new object from the file `path`; None if bowline would read
    /// it.
    fn hides(&self, path: &str) -> Result<Option<String>, EditsError> {
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        if patches.contains(path) {
            return Ok(Some("which a kustomization names as a patch".to_owned()));
        }
        let file = match self.work().inside(path) {
            Err(GitError::Outside(_)) => {
                let mut parts = path.split('/');
                let why = match parts.any(|part| part.eq_ignore_ascii_case(".git")) {
                    true => "which is inside the .git directory",
                    false => {
                        "which is behind a link to a directory, and bowline does not follow links"
                    }
                };
                return Ok(Some(why.to_owned()));
            }
            file => file?,
        };
        if file.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Ok(Some("which is no regular file".to_owned()));
        }
        if let Some(known) = index.files.get(path) {
            let problem = known.problems.first();
            return Ok(problem.map(|problem| format!("which has something wrong in it: {problem}")));
        }
        if self.work().ignores(path)? {
            return Ok(Some("which git ignores".to_owned()));
        }
        let mut listed = self.work().files()?.paths;
        let mut others = listed.iter().filter(|listed| listed.ends_with('/'));
        if others.any(|other| path.starts_with(other.as_str())) {
            return Ok(Some("which is in another repository".to_owned()));
        }
        listed.push(path.to_owned());
        let is_template = Charts::of(&listed).is_template(path);
        Ok(is_template.then(|| "which is a template of a chart".to_owned()))
    }

    /// Returns the edit that adds an object. The document names the namespace only if existing objects of the same
    /// kind do.
    pub fn edit_of_new(&self, resource: String, mut document: Value) -> ObjectEdit {
        let namespace = document["metadata"]["namespace"].as_str();
        let own = namespace.is_none_or(|namespace| namespace == self.namespace());
        if own
            && !self.says_namespaces(&resource)
            && let Some(meta) = document.get_mut("metadata").and_then(Value::as_object_mut)
        {
            meta.remove("namespace");
        }
        ObjectEdit::New { resource, document }
    }

    /// Returns the path of the file for a new object.
    pub fn new_file(&self, resource: &str, document: &Value) -> Result<String, BadWord> {
        let within = self.work().within();
        place::choose(&self.layout, &self.index(), &within, resource, document)
    }

    fn editing<'f>(
        &self,
        files: &'f mut BTreeMap<String, Editing>,
        path: &str,
    ) -> Result<&'f mut Editing, EditsError> {
        use std::collections::btree_map::Entry;
        match files.entry(path.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let now = self.text(path)?;
                let before = now.clone().map(String::into_bytes);
                Ok(place.insert(Editing { before, now }))
            }
        }
    }
}

/// The reason why a new object cannot be added to a JSON file with one object, as the end of a message.
const ONE_JSON: &str = "which is a JSON file with one object";

impl Tree {
    /// Returns whether the objects of a resource have a namespace field in their files. Without such objects, the
    /// objects of other resources decide.
    fn says_namespaces(&self, resource: &str) -> bool {
        let index = self.index();
        let objects = || index.files.values().flat_map(|known| &known.objects);
        let mut same = objects().filter(|held| held.resource == resource);
        match same.next() {
            Some(first) => first.says_namespace,
            None => objects().next().is_none_or(|held| held.says_namespace),
        }
    }
}
