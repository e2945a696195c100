//! From objects that are wanted to bytes of files, and writes that come through the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{BadWord, Place, Tree, TreeError, place, read};
use crate::api::labels;
use crate::embedded::Shared;
use crate::embedded::catalog::Resource;
use crate::embedded::object::{map_of, meta};
use crate::embedded::sqlite::Revision;
use crate::embedded::status::Failure;
use crate::embedded::write::Stored;
use crate::git::GitError;
use crate::git::commit::FileEdit;
use crate::yaml;
use crate::yaml::edit::EditError;

/// What is wanted of one object.
#[derive(Clone, Debug)]
pub enum Wish {
    /// A document shall say this.
    Set {
        /// Where it lies.
        place: Place,
        /// What it shall say.
        document: Value,
    },
    /// A new object.
    New {
        /// `{group}/{plural}`.
        resource: String,
        /// What it says.
        document: Value,
    },
    /// A document shall go.
    Remove {
        /// Where it lies.
        place: Place,
    },
}

/// Why files cannot be edited as wanted.
#[derive(Debug, thiserror::Error)]
pub enum EditsError {
    /// The text does not let itself be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file is not text.
    #[error("{0} is not UTF-8")]
    NotText(String),
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file for a new object is none that could show it.
    #[error("a new {kind} would go to {path}, {why}")]
    NoPlace {
        /// Of what kind it is.
        kind: String,
        /// The file.
        path: String,
        /// What is with it.
        why: String,
    },
    /// The new object says something that no file's path can.
    #[error(transparent)]
    Word(#[from] BadWord),
    /// Git could not be asked, or the path leads out of the work tree.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl EditsError {
    /// Says what the person can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoPlace { .. } => Some(
                "bowline check says what is wrong with files; [layout] in .bowline.toml says where new objects go",
            ),
            _ => None,
        }
    }
}

/// A file that is being edited.
struct Editing {
    before: Option<Vec<u8>>,
    now: Option<String>,
}

impl Tree {
    /// Reads the document that lies at a place, and the bytes of its file.
    pub fn document(&self, place: &Place) -> Result<Value, EditsError> {
        let text = self.text(&place.path)?.unwrap_or_default();
        let documents = yaml::documents(&place.path, &text).map_err(EditError::from)?;
        let found = documents.into_iter().nth(place.document);
        found.map(|document| document.value).ok_or_else(|| {
            EditError::NoDocument {
                origin: place.path.clone(),
                document: place.document,
            }
            .into()
        })
    }

    fn text(&self, path: &str) -> Result<Option<String>, EditsError> {
        let file = self.work().inside(path)?;
        let bytes = match std::fs::read(file) {
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

    /// Says which bytes of which files make wishes come true; nothing is written.
    pub fn edits(&self, wishes: &[Wish]) -> Result<Vec<FileEdit>, EditsError> {
        let mut files: BTreeMap<String, Editing> = BTreeMap::new();
        let mut removed: Vec<&Place> = Vec::new();
        let index = self.index();
        for wish in wishes {
            match wish {
                Wish::Set { place, document } => {
                    let file = self.editing(&mut files, &place.path)?;
                    let text = file.now.take().unwrap_or_default();
                    file.now = Some(yaml::edit::edit(
                        &place.path,
                        &text,
                        place.document,
                        document,
                    )?);
                }
                Wish::New { resource, document } => {
                    let path = self.new_file(resource, document)?;
                    let no_place = |why: String| EditsError::NoPlace {
                        kind: document["kind"].as_str().unwrap_or_default().to_owned(),
                        path: path.clone(),
                        why,
                    };
                    if let Some(why) = self.hides(&path)? {
                        return Err(no_place(why));
                    }
                    let file = self.editing(&mut files, &path)?;
                    file.now = Some(match file.now.take() {
                        None => yaml::write(document),
                        Some(text) => {
                            if holds(&path, &text, document)? {
                                return Err(no_place("which has it already".to_owned()));
                            }
                            yaml::edit::append(&path, &text, document)?
                        }
                    });
                }
                Wish::Remove { place } => removed.push(place),
            }
        }
        // The last first, so that the numbers of the others stay what they are.
        removed.sort_by_key(|place| std::cmp::Reverse(place.document));
        for place in removed {
            let file = self.editing(&mut files, &place.path)?;
            if let Some(text) = file.now.take() {
                let alone = index.files.get(&place.path).is_some_and(|known| {
                    known.documents == 1 && known.hash == read::hash(text.as_bytes())
                });
                file.now = match alone {
                    true => None,
                    false => yaml::edit::remove(&place.path, &text, place.document)?,
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

    /// Says why a new object would not be seen in a file, where it would not.
    fn hides(&self, path: &str) -> Result<Option<String>, EditsError> {
        let index = self.index();
        let (patches, _) = read::named(&index.files);
        if patches.contains(path) {
            return Ok(Some("which a kustomization names as a patch".to_owned()));
        }
        let file = self.work().inside(path)?;
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
        let candidates = read::candidates(listed);
        let is_one = candidates.iter().any(|candidate| candidate == path);
        Ok((!is_one).then(|| "which is a template of a chart".to_owned()))
    }

    /// Returns the file for a new object.
    pub fn new_file(&self, resource: &str, document: &Value) -> Result<String, BadWord> {
        let scope = self.work().scope().strip_prefix(self.work().root());
        let within = scope.map(|scope| scope.to_string_lossy().into_owned());
        let within = within.unwrap_or_default().replace('\\', "/");
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

/// Tells whether a text has an object already, be it one that is not served.
fn holds(path: &str, text: &str, document: &Value) -> Result<bool, EditsError> {
    let known = yaml::documents(path, text).map_err(EditError::from)?;
    let group = |value: &Value| {
        let version = value["apiVersion"].as_str().unwrap_or_default();
        version.split('/').next().map(str::to_owned)
    };
    let namespace = |value: &Value| value["metadata"]["namespace"].as_str().map(str::to_owned);
    let own = namespace(document);
    Ok(known.iter().any(|known| {
        let known = &known.value;
        let same_namespace = match (namespace(known), &own) {
            (Some(known), Some(own)) => known == *own,
            _ => true,
        };
        known["kind"] == document["kind"]
            && known["metadata"]["name"] == document["metadata"]["name"]
            && group(known) == group(document)
            && same_namespace
    }))
}

/// Takes out what the server writes and no file holds.
pub(super) fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    map_of(&mut object).remove("status");
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "selfLink",
        ] {
            meta.remove(field);
        }
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            for name in [labels::CHANGED_BY, labels::OPERATION, labels::AUDIT_HEAD] {
                annotations.remove(name);
            }
            if annotations.is_empty() {
                meta.remove("annotations");
            }
        }
    }
    object
}

/// Carries what differs between two states of an object over to its document.
fn carry(document: &mut Map<String, Value>, old: &Map<String, Value>, new: &Map<String, Value>) {
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(before), _) if before == value => {}
            (Some(Value::Object(before)), Value::Object(after)) => {
                let own = document.entry(key.clone()).or_insert(Value::Null);
                carry(map_of(own), before, after);
            }
            _ => {
                document.insert(key.clone(), value.clone());
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        document.remove(key);
    }
}

fn refused(resource: &Resource, name: &str, error: impl std::fmt::Display) -> Failure {
    let kind = resource.subject.qualified_kind();
    Failure::other(422, "Invalid", format!("{kind} {name:?}: {error}"))
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        Failure::internal(error)
    }
}

/// Writes that come through the API: the file is edited, and what it says then is served.
impl Shared {
    /// Tells whether the objects of a resource lie in files.
    pub(in crate::embedded) fn tree_of(&self, resource: &Resource) -> Option<&Arc<Tree>> {
        let group = resource.subject.group.as_str();
        let ours = [
            labels::OPENCHOREO_GROUP,
            labels::CORE_CHOREO_GROUP,
            labels::BOWLINE_GROUP,
        ];
        self.tree.as_ref().filter(|_| ours.contains(&group))
    }

    pub(in crate::embedded) async fn create_in_tree(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        object: &Value,
    ) -> Result<Revision, Failure> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        if &*resource.storage == super::sync::ENTRIES {
            return Err(Failure::other(
                405,
                "MethodNotAllowed",
                "the audit of a repository is its log: nothing is written to it",
            ));
        }
        let _turn = tree.syncing.lock().await;
        // It may have come to the files a moment ago.
        self.sync_now(tree).await?;
        let key = resource.key(namespace, name);
        if self.store.get(&key).await?.is_some() {
            return Err(Failure::already_exists(&resource.subject, name));
        }
        let mut document = plain(object);
        if tree.namespace() == namespace
            && let Some(meta) = document.get_mut("metadata").and_then(Value::as_object_mut)
            && !tree.says_namespaces(&resource.storage)
        {
            meta.remove("namespace");
        }
        let wish = Wish::New {
            resource: resource.storage.to_string(),
            document,
        };
        let edits = self.write_files(tree, resource, name, &[wish]).await?;
        if let Some(row) = self.store.get(&key).await? {
            return Ok(row.revision);
        }
        // Whoever tries once more must not find it written twice.
        let back: Vec<FileEdit> = edits.into_iter().map(FileEdit::reversed).collect();
        self.put_files(tree, &back).await?;
        let why = "it is not seen in the file that it was written to, so that is as it was";
        Err(refused(resource, name, why))
    }

    pub(in crate::embedded) async fn put_in_tree(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        old: &Value,
        object: &Value,
    ) -> Result<Revision, Stored> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        if old["status"] != object["status"] {
            return Err(Stored::Failed(Failure::other(
                405,
                "MethodNotAllowed",
                "a repository has no status: the controllers are elsewhere",
            )));
        }
        let _turn = tree.syncing.lock().await;
        self.sync_now(tree)
            .await
            .map_err(|error| Stored::Failed(error.into()))?;
        let row = self.store.get(&resource.key(namespace, name)).await?;
        let row = row.ok_or(Stored::Conflict)?;
        if row.revision.to_string() != meta(old, "resourceVersion") {
            return Err(Stored::Conflict);
        }
        let (before, after) = (plain(old), plain(object));
        if before == after {
            return Ok(row.revision);
        }
        let wish = || {
            let place = tree.place(&resource.storage, namespace, name);
            let place = place.ok_or_else(|| refused(resource, name, "it lies in no file"))?;
            let mut document = tree
                .document(&place)
                .map_err(|error| refused(resource, name, error))?;
            if let (Value::Object(own), Value::Object(before), Value::Object(after)) =
                (&mut document, &before, &after)
            {
                carry(own, before, after);
            }
            Ok(Wish::Set { place, document })
        };
        let wish = wish().map_err(Stored::Failed)?;
        let written = self.write_files(tree, resource, name, &[wish]).await;
        written.map_err(Stored::Failed)?;
        let row = self.store.get(&resource.key(namespace, name)).await?;
        row.map(|row| row.revision).ok_or(Stored::Conflict)
    }

    pub(in crate::embedded) async fn remove_from_tree(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        object: &Value,
        revision: Revision,
    ) -> Result<Revision, Stored> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        let _turn = tree.syncing.lock().await;
        self.sync_now(tree)
            .await
            .map_err(|error| Stored::Failed(error.into()))?;
        let row = self.store.get(&resource.key(namespace, name)).await?;
        if row.is_none_or(|row| row.revision != revision) {
            return Err(Stored::Conflict);
        }
        let place = tree.place(&resource.storage, namespace, name);
        let place =
            place.ok_or_else(|| Stored::Failed(refused(resource, name, "it lies in no file")))?;
        let wish = Wish::Remove { place };
        let written = self.write_files(tree, resource, name, &[wish]).await;
        written.map_err(Stored::Failed)?;
        Ok(self.store.newest().await?)
    }

    /// Edits files, and serves what they say then; the caller holds the turn. Returns what was edited.
    async fn write_files(
        &self,
        tree: &Arc<Tree>,
        resource: &Resource,
        name: &str,
        wishes: &[Wish],
    ) -> Result<Vec<FileEdit>, Failure> {
        let edits = tree.edits(wishes).map_err(|error| match error.hint() {
            Some(hint) => refused(resource, name, format!("{error}; {hint}")),
            None => refused(resource, name, error),
        })?;
        self.put_files(tree, &edits).await?;
        Ok(edits)
    }

    async fn put_files(&self, tree: &Arc<Tree>, edits: &[FileEdit]) -> Result<(), Failure> {
        for edit in edits {
            let written = match &edit.after {
                Some(bytes) => tree.work().replace(&edit.path, bytes),
                None => {
                    let file = tree.work().root().join(&edit.path);
                    std::fs::remove_file(&file).map_err(|error| GitError::File { file, error })
                }
            };
            written.map_err(Failure::internal)?;
        }
        self.sync_now(tree).await?;
        Ok(())
    }
}

impl Tree {
    /// Tells whether objects of a resource say their namespace in their files.
    pub fn says_namespaces(&self, resource: &str) -> bool {
        let index = self.index();
        let objects = || index.files.values().flat_map(|known| &known.objects);
        let mut same = objects().filter(|held| held.resource == resource);
        match same.next() {
            Some(first) => first.says_namespace,
            None => objects().next().is_none_or(|held| held.says_namespace),
        }
    }
}
