//! Finds out when objects came to the branch, which is their creation time.
//!
//! An object that is alone in its file is as old as the file. In a file with several documents, an object is as old
//! as the first readable commit that contains it. The result may be too late but never too early, because gc must not
//! delete a young release.

use std::collections::{BTreeMap, HashMap};

use kube_embedded::catalog::Catalog;
use kube_embedded::object::meta;

use super::branch::Told;
use super::identity::{hash, or_else};
use super::index::{CreationTimes, Held, Index, Known};
use super::moves::{Blobs, State};
use super::read::resource_of;
use crate::api::lists;
use crate::git::GitError;
use crate::git::log::Changed;

/// Returns when an object came to the branch, in seconds since 1970; None if this is unknown.
pub(super) fn born(
    index: &Index,
    path: &str,
    known: &Known,
    held: &Held,
    namespace: &str,
) -> Option<i64> {
    match known.holds_several() {
        false => index.births.get(path).copied(),
        true => {
            let identity = identity(&held.resource, namespace, &held.name);
            index.births_of_each.get(path)?.get(&identity).copied()
        }
    }
}

fn identity(resource: &str, namespace: &str, name: &str) -> String {
    format!("{resource}/{namespace}/{name}")
}

/// Records when files came to the branch. `commits` must be in ascending order.
pub(super) fn bear_all(births: &mut HashMap<String, i64>, commits: &[Told]) {
    for told in commits {
        for file in &told.commit.files {
            bear(births, file, told.commit.at.as_second());
        }
    }
}

fn bear(births: &mut HashMap<String, i64>, file: &Changed, at: i64) {
    if let Some(from) = &file.from {
        if let Some(born) = births.remove(from) {
            births.insert(file.path.clone(), born);
        }
    } else if file.added {
        births.insert(file.path.clone(), at);
    } else if file.blob.is_none() {
        births.remove(&file.path);
    }
}

/// Records when each object of files with several documents came to the branch.
pub(super) fn bear_each(
    blobs: Blobs<'_>,
    commits: &[Told],
    states: &[State<'_>],
    births: &mut BTreeMap<String, CreationTimes>,
    namespace: &str,
    catalog: &Catalog,
) -> Result<(), GitError> {
    let mut documents = Documents {
        catalog,
        namespace,
        read: HashMap::new(),
    };
    let ids: Vec<String> = states
        .iter()
        .filter_map(|(_, file)| file.blob.clone())
        .collect();
    let mut read: HashMap<&str, Option<Vec<String>>> = HashMap::new();
    blobs(&ids, &mut |at, text| {
        let objects = text.and_then(|text| documents.objects(&text));
        read.extend(ids.get(at).map(|id| (id.as_str(), objects)));
    })?;
    for (at, file) in states {
        let was = births.remove(file.from.as_ref().unwrap_or(&file.path));
        let was = was.unwrap_or_default();
        let Some(blob) = &file.blob else {
            continue;
        };
        let objects = read.get(blob.as_str()).cloned().flatten();
        let at = commits.get(*at).map(|told| told.commit.at.as_second());
        let (Some(objects), Some(at)) = (objects, at) else {
            births.insert(file.path.clone(), was);
            continue;
        };
        let each = objects.into_iter().map(|object| {
            let born = was.get(&object).copied().unwrap_or(at);
            (object, born)
        });
        births.insert(file.path.clone(), each.collect());
    }
    Ok(())
}

/// Parses the objects in the states of a file. Most documents are the same in many states, so each document is parsed
/// only once.
struct Documents<'a> {
    catalog: &'a Catalog,
    namespace: &'a str,
    /// The identities of the objects in each document, by the hash of the document. The documents themselves would
    /// need too much memory.
    read: HashMap<String, Option<Vec<String>>>,
}

impl Documents<'_> {
    /// Returns the identities of the objects in a text; None if the text cannot be parsed.
    fn objects(&mut self, text: &[u8]) -> Option<Vec<String>> {
        let mut found = Vec::new();
        for document in bounded_yaml::split(text) {
            let hash = hash(document);
            if !self.read.contains_key(&hash) {
                let objects = self.understand(document);
                self.read.insert(hash.clone(), objects);
            }
            let objects = self.read.get(&hash)?.as_ref()?;
            found.extend(objects.iter().cloned());
        }
        Some(found)
    }

    fn understand(&self, document: &[u8]) -> Option<Vec<String>> {
        let text = std::str::from_utf8(document).ok()?;
        let values = bounded_yaml::documents("", text).ok()?.into_iter();
        let values = values.flat_map(|document| lists::objects(document.value));
        let objects = values.filter_map(|item| {
            let resource = resource_of(self.catalog, &item.value)?;
            let namespace = or_else(meta(&item.value, "namespace"), self.namespace);
            let name = meta(&item.value, "name");
            Some(identity(&resource.storage, namespace, name))
        });
        Some(objects.collect())
    }
}
