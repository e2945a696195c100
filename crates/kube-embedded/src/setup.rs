//! The settings of a store, and the installation of objects that every store contains.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::status::Failure;
use super::{Clock, Embedded, encode};

/// The settings that the caller supplies for its stores.
#[derive(Clone)]
pub struct Setup {
    /// The name of the field manager that applies [`Setup::objects`].
    pub manager: String,
    /// The objects to install in every store, such as CustomResourceDefinitions and admission policies.
    pub objects: Objects,
    /// The annotations that the API sets to the name of the user who writes.
    pub stamps: Vec<Stamp>,
    /// The clock that gives the times of writes.
    pub clock: Clock,
}

impl Default for Setup {
    /// Returns a setup without objects and stamps, with the system clock.
    fn default() -> Self {
        Self {
            manager: "kube-embedded".to_owned(),
            objects: Objects::default(),
            stamps: Vec::new(),
            clock: Arc::new(jiff::Timestamp::now),
        }
    }
}

/// An annotation in which the API records the user who last changed the spec of an object. Clients cannot change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The API group of the objects that get the annotation.
    pub group: String,
    /// The plural resource name of the objects that get the annotation.
    pub plural: String,
    /// The key of the annotation.
    pub annotation: String,
}

type Make = dyn Fn() -> Result<Vec<Value>, String> + Send + Sync;

/// The objects to install in every store. They must be cluster-scoped.
#[derive(Clone)]
pub struct Objects {
    digest: u64,
    make: Arc<Make>,
}

impl Default for Objects {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Objects {
    /// Creates the set from objects that are already in memory.
    pub fn of(objects: Vec<Value>) -> Self {
        let digest = digest(objects.iter().map(encode::to_bytes));
        Self::lazy(digest, move || Ok(objects.clone()))
    }

    /// Creates the set from a digest and a function that creates the objects. The function is called only if the
    /// store has the objects of another digest, so the digest must change if an object changes; see [`digest`].
    pub fn lazy(
        digest: u64,
        make: impl Fn() -> Result<Vec<Value>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            digest,
            make: Arc::new(make),
        }
    }
}

/// Returns a digest of texts, for [`Objects::lazy`].
pub fn digest(texts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> u64 {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update(text);
    }
    let digest = digest.finalize();
    // Only seven bytes are used, because SQLite stores the digest as a signed integer.
    let first = digest.iter().take(7);
    first.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Returns whether an object is a CustomResourceDefinition.
pub(super) fn is_definition(object: &&Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

impl Embedded {
    /// Returns the objects that must be installed in the store; None if they are already installed.
    pub(super) async fn missing(&self, objects: &Objects) -> Result<Option<Vec<Value>>, Failure> {
        match self.shared.store.installed().await? == objects.digest {
            true => Ok(None),
            false => (objects.make)().map(Some).map_err(Failure::internal),
        }
    }

    /// Installs the objects of the setup, and records their digest in the store.
    pub(super) async fn install(&self, setup: &Setup, objects: &[Value]) -> Result<(), Failure> {
        let namespaces = ["default", "kube-system", "kube-public"].map(
            |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        let kinds = objects.iter().filter(is_definition);
        let first = namespaces.iter().chain(kinds);
        try_join_all(first.map(|object| self.apply(object, &setup.manager))).await?;
        // The definitions come before the other objects, because an admission policy may be about their kinds.
        let others = objects.iter().filter(|object| !is_definition(object));
        try_join_all(others.map(|object| self.apply(object, &setup.manager))).await?;
        let store = &self.shared.store;
        let kept = store.set_installed(setup.objects.digest).await;
        kept.map_err(Failure::from)
    }

    /// Writes one object by server-side apply.
    async fn apply(&self, object: &Value, manager: &str) -> Result<(), Failure> {
        let catalog = self.shared.catalog().await?;
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let resource = catalog
            .of_version(group, version)
            .find(|resource| resource.subject.kind == object["kind"])
            .ok_or_else(Failure::no_such_resource)?;
        let root = if group.is_empty() {
            "api".to_owned()
        } else {
            format!("apis/{group}")
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!(
            "/{root}/{version}/{}/{name}?fieldManager={manager}&force=true",
            resource.subject.plural
        );
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(path)
            .header("content-type", "application/apply-patch+yaml")
            .body(Bytes::from(encode::to_bytes(object)))
            .map_err(Failure::internal)?;
        let answer = self.call(request).await;
        if answer.status().is_success() {
            return Ok(());
        }
        let said = answer
            .into_body()
            .collect()
            .await
            .map_err(Failure::internal)?
            .to_bytes();
        let said: Value = serde_json::from_slice(&said).unwrap_or_default();
        let message = said["message"].as_str().unwrap_or("no reason was given");
        Err(Failure::internal(format!(
            "{} {name}: {message}",
            object["kind"]
        )))
    }
}
