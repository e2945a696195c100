//! Finds the API resources for the names of kinds and objects on the command line.
//!
//! bowline knows its own kinds without a request, and prefers them to other kinds with the same name: `release` is
//! always the openchoreo.dev Release, and `rr` the RenderedRelease. Other kinds come from the discovery of the
//! server.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, ResourceExt};

use super::connect::Address;
use super::error::{Error, Exit};
use crate::api;

/// The largest number of concurrent discovery requests to the server.
const AT_ONCE: usize = 16;

/// The largest number of names that a hint lists.
const MANY: usize = 10;

#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The group, version, kind and plural name of the kind.
    pub resource: ApiResource,
    /// Whether objects of the kind have a namespace.
    pub namespaced: bool,
}

impl Kind {
    /// Returns the kind in the form of kubectl: `component.openchoreo.dev`.
    pub fn label(&self) -> String {
        let kind = self.resource.kind.to_lowercase();
        match self.resource.group.as_str() {
            "" => kind,
            group => format!("{kind}.{group}"),
        }
    }

    /// Returns the API client for objects of the kind: in one namespace, or in all if `namespace` is None.
    pub fn objects(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) if self.namespaced => {
                Api::namespaced_with(client.clone(), namespace, &self.resource)
            }
            _ => Api::all_with(client.clone(), &self.resource),
        }
    }
}

/// A kind with all names by which users can name it, in lower case.
struct Known {
    kind: Kind,
    names: Vec<String>,
}

impl Known {
    fn goes_by(&self, said: &str) -> bool {
        let (name, place) = match said.split_once('.') {
            Some((name, place)) => (name, Some(place)),
            None => (said, None),
        };
        let ApiResource { group, version, .. } = &self.kind.resource;
        self.names.iter().any(|known| known == name)
            && place.is_none_or(|place| place == group || place == format!("{version}.{group}"))
    }
}

/// Returns the kinds that bowline defines. The kind name `Release` occurs twice: the openchoreo.dev Release comes
/// first, so users find the RenderedRelease only by its short names or its group.
fn ours() -> Vec<Known> {
    let known = |crd: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition| {
        let spec = crd.spec;
        let version = spec.versions.into_iter().next().map(|version| version.name);
        let version = version.unwrap_or_default();
        let mut names = vec![spec.names.kind.to_lowercase(), spec.names.plural.clone()];
        names.extend(spec.names.singular);
        for short in spec.names.short_names.unwrap_or_default() {
            names.push(format!("{short}s"));
            names.push(short);
        }
        Known {
            kind: Kind {
                resource: ApiResource {
                    api_version: format!("{}/{version}", spec.group),
                    group: spec.group,
                    version,
                    kind: spec.names.kind,
                    plural: spec.names.plural,
                },
                namespaced: spec.scope == "Namespaced",
            },
            names,
        }
    };
    api::crds().into_iter().map(known).collect()
}

/// Reads a kind from a discovery document. Returns None for a subresource, or if objects of the kind cannot be read.
fn discovered(group_version: &str, resource: APIResource) -> Option<Known> {
    let readable = resource
        .verbs
        .iter()
        .any(|verb| verb == "get" || verb == "list");
    if resource.name.contains('/') || !readable {
        return None;
    }
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let mut names = vec![resource.kind.to_lowercase(), resource.name.clone()];
    names.push(resource.singular_name);
    names.extend(resource.short_names.unwrap_or_default());
    Some(Known {
        kind: Kind {
            resource: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: group_version.to_owned(),
                kind: resource.kind,
                plural: resource.name,
            },
            namespaced: resource.namespaced,
        },
        names,
    })
}

pub struct Kinds<'a> {
    client: &'a Client,
    ours: Vec<Known>,
    found: BTreeMap<(String, String), Kind>,
}

impl<'a> Kinds<'a> {
    /// Creates a lookup for kinds of a server. Sends no request yet.
    pub fn new(client: &'a Client) -> Kinds<'a> {
        Kinds {
            client,
            ours: ours(),
            found: BTreeMap::new(),
        }
    }

    /// Finds a kind by the word that a user typed: its kind, plural or short name, with or without the group.
    pub async fn named(&self, said: &str) -> Result<Kind, Error> {
        let wanted = said.to_lowercase();
        if let Some(known) = self.ours.iter().find(|known| known.goes_by(&wanted)) {
            return Ok(known.kind.clone());
        }
        let (kinds, silent) = self.discover(&wanted).await?;
        if let Some(known) = kinds.iter().find(|known| known.goes_by(&wanted)) {
            return Ok(known.kind.clone());
        }
        let message = format!("the server has no kind {said}");
        let hint = match silent.is_empty() {
            false => format!(
                "{} did not answer; it may have this kind",
                silent.join(", ")
            ),
            true => {
                let plurals = self.ours.iter().chain(&kinds);
                let plurals = plurals.map(|known| known.kind.resource.plural.clone());
                match near(&wanted, plurals.collect()) {
                    alike if alike.is_empty() => {
                        "bowline get crds lists the kinds that are installed".to_owned()
                    }
                    alike => format!("did you mean {}?", alike.join(", ")),
                }
            }
        };
        Err(Error::new(Exit::Failed, message).with_hint(hint))
    }

    /// Returns all kinds of the server whose objects have a namespace. A kind with several versions is returned once.
    pub async fn in_namespaces(&self) -> Result<Vec<Kind>, Error> {
        let (known, silent) = self.discover("").await?;
        if !silent.is_empty() {
            let message = format!("{} did not answer", silent.join(", "));
            return Err(Error::new(Exit::Unreachable, message));
        }
        let kinds = known.into_iter().map(|known| known.kind);
        Ok(kinds.filter(|kind| kind.namespaced).collect())
    }

    /// Reads the discovery documents of the server: the preferred version of each group, or all versions of the group
    /// that `wanted` names. Also returns the group versions that did not answer.
    async fn discover(&self, wanted: &str) -> Result<(Vec<Known>, Vec<String>), Error> {
        let place = wanted.split_once('.').map(|(_, place)| place);
        let core = self.client.list_core_api_versions().await?;
        let mut versions = core.versions;
        for group in self.client.list_api_groups().await?.groups {
            let mut all = group
                .versions
                .into_iter()
                .map(|version| version.group_version);
            let preferred = group.preferred_version.map(|version| version.group_version);
            match place {
                None => versions.extend(preferred.or_else(|| all.next())),
                Some(place)
                    if place == group.name || place.ends_with(&format!(".{}", group.name)) =>
                {
                    versions.extend(preferred.clone());
                    versions.extend(all.filter(|version| Some(version) != preferred.as_ref()));
                }
                Some(_) => {}
            }
        }
        let answers: Vec<_> = futures::stream::iter(versions)
            .map(|version| async move {
                let answer = self.resources(&version).await;
                (version, answer)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let (mut kinds, mut silent) = (Vec::new(), Vec::new());
        for (version, answer) in answers {
            match answer {
                Ok(known) => kinds.extend(known),
                Err(_) => silent.push(version),
            }
        }
        Ok((kinds, silent))
    }

    async fn resources(&self, group_version: &str) -> Result<Vec<Known>, kube::Error> {
        let list = match group_version.contains('/') {
            true => self.client.list_api_group_resources(group_version).await?,
            false => self.client.list_core_api_resources(group_version).await?,
        };
        let kinds = list.resources.into_iter();
        Ok(kinds
            .filter_map(|resource| discovered(group_version, resource))
            .collect())
    }

    /// Finds a kind of the server by the apiVersion and kind of an object.
    pub async fn of(&mut self, api_version: &str, kind: &str) -> Result<Kind, Error> {
        let is_it = |known: &&Known| {
            let resource = &known.kind.resource;
            resource.api_version == api_version && resource.kind == kind
        };
        if let Some(known) = self.ours.iter().find(is_it) {
            return Ok(known.kind.clone());
        }
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(found) = self.found.get(&key) {
            return Ok(found.clone());
        }
        for segment in api_version.split('/') {
            check_name("apiVersion", segment)?;
        }
        let known = match self.resources(api_version).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            answer => answer?,
        };
        let Some(known) = known.iter().find(is_it) else {
            let message = format!("the server has no kind {kind} in {api_version}");
            return Err(Error::new(Exit::Failed, message).with_hint(
                "check the spelling, and that its CustomResourceDefinition is installed",
            ));
        };
        self.found.insert(key, known.kind.clone());
        Ok(known.kind.clone())
    }
}

/// Splits the words of a command line into kinds, each with the names of its objects: `pin,release`, `pin a b` or
/// `pin/a release/b`.
pub fn objects_of(words: &[String]) -> Result<Vec<(String, Vec<String>)>, Error> {
    let mut wanted: Vec<(String, Vec<String>)> = Vec::new();
    if words.iter().any(|word| word.contains('/')) {
        for word in words {
            let Some((kind, name)) = word.split_once('/').filter(|(kind, _)| !kind.is_empty())
            else {
                let message = format!("{word} is not KIND/NAME");
                return Err(Error::new(Exit::Usage, message)
                    .with_hint("write either KIND NAME... or KIND/NAME for each"));
            };
            check_name("name", name)?;
            match wanted.last_mut() {
                Some((last, names)) if last == kind => names.push(name.to_owned()),
                _ => wanted.push((kind.to_owned(), vec![name.to_owned()])),
            }
        }
        return Ok(wanted);
    }
    let Some((kinds, names)) = words.split_first() else {
        return Ok(wanted);
    };
    for name in names {
        check_name("name", name)?;
    }
    for kind in kinds.split(',').filter(|kind| !kind.is_empty()) {
        wanted.push((kind.to_owned(), names.to_vec()));
    }
    match wanted.is_empty() {
        true => Err(Error::new(Exit::Usage, format!("{kinds:?} names no kind"))),
        false => Ok(wanted),
    }
}

/// Returns an error if a name contains characters that would change the URL path of a request. `what` says what the
/// name is for.
pub fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let fits = !name.is_empty()
        && name != "."
        && name != ".."
        && name
            .chars()
            .all(|c| c.is_ascii_graphic() && !"/%?#".contains(c));
    let article = match what.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => "an",
        false => "a",
    };
    match fits {
        true => Ok(()),
        false => Err(Error::new(
            Exit::Usage,
            format!("{name:?} cannot be {article} {what}"),
        )),
    }
}

/// Returns the error for an object that does not exist, with similar names of existing objects. `address` adds the
/// flags of the target to the command in the hint.
pub async fn missing(
    kind: &Kind,
    client: &Client,
    namespace: &str,
    name: &str,
    address: &Address,
) -> Error {
    let place = match kind.namespaced {
        true => format!(" in namespace {namespace}"),
        false => String::new(),
    };
    let message = format!("{} {name} does not exist{place}", kind.label());
    let error = Error::new(Exit::Failed, message);
    let objects = kind.objects(client, Some(namespace));
    let Ok(list) = objects
        .list_metadata(&ListParams::default().limit(500))
        .await
    else {
        return error;
    };
    let names: Vec<String> = list.items.iter().map(|object| object.name_any()).collect();
    if names.is_empty() && kind.namespaced {
        return error.with_hint("the namespace has no objects of this kind; check -n");
    }
    match near(name, names) {
        alike if alike.is_empty() => {
            let get = address.bowline(&format!("bowline get {}", kind.label()));
            error.with_hint(format!("list all: {get}"))
        }
        alike => error.with_hint(format!("did you mean {}?", alike.join(", "))),
    }
}

/// Converts the error of a request about an object. It tells whether the server does not have the object or does not
/// have its kind.
pub fn about(kind: &Kind, name: &str, error: kube::Error) -> Error {
    let no_kind = matches!(&error, kube::Error::Api(status)
        if status.code == 404 && status.details.as_ref().is_none_or(|details| details.name.is_empty()));
    let status = match &error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    };
    let hint = match status {
        Some(409) => {
            Some("someone else changed the object; look at it and repeat the command".to_owned())
        }
        Some(404) if no_kind => Some(format!(
            "the kind is {}.{}; install bowline's kinds: bowline install",
            kind.resource.plural, kind.resource.group
        )),
        _ => None,
    };
    let mut error = Error::from(error);
    if no_kind {
        error.message = "the server does not have this kind".to_owned();
    }
    let label = kind.label();
    let object = match name {
        "" => label,
        name => format!("{label}/{name}"),
    };
    error.message = format!("{object}: {}", error.message);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Returns the names that are most similar to a word, at most ten. If there are no more than that, returns all names.
fn near(word: &str, names: Vec<String>) -> Vec<String> {
    let alike = |name: &str| {
        let same = |(a, b): &(char, char)| a == b;
        let head = word.chars().zip(name.chars()).take_while(same).count();
        let tail = word.chars().rev().zip(name.chars().rev());
        head + tail.take_while(same).count()
    };
    let few = names.len() <= MANY;
    let mut names: Vec<_> = names
        .into_iter()
        .map(|name| (std::cmp::Reverse(alike(&name)), name))
        .filter(|(alike, _)| few || alike.0 > 1)
        .collect();
    names.sort();
    names.dedup();
    names.truncate(MANY);
    names.into_iter().map(|(_, name)| name).collect()
}
