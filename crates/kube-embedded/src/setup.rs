//! The settings of the caller, and the objects that every store contains from the start.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::status::Failure;
use super::{Clock, Embedded, encode};

/// The settings that the caller of the library gives to a new store.
#[derive(Clone)]
pub struct Setup {
    /// The field manager that applies the objects.
    pub manager: String,
    /// The objects that every store contains: kinds, admission policies.
    pub objects: Objects,
    /// The annotations that the API writes itself.
    pub stamps: Vec<Stamp>,
    /// The clock that dates writes.
    pub clock: Clock,
}

impl Default for Setup {
    /// Returns a setup without objects and stamps, with the clock of the system.
    fn default() -> Self {
        Self {
            manager: "kube-embedded".to_owned(),
            objects: Objects::default(),
            stamps: Vec::new(),
            clock: Arc::new(jiff::Timestamp::now),
        }
    }
}

/// An annotation with the name of the user who last changed the spec of an object. Clients cannot change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The group of the stamped objects.
    pub group: String,
    /// The plural name of the stamped objects.
    pub plural: String,
    /// The name of the annotation.
    pub annotation: String,
}

type Make = dyn Fn() -> Result<Vec<Value>, String> + Send + Sync;

/// The objects that every store contains. They have no namespace.
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
    /// Takes objects as JSON.
    pub fn of(objects: Vec<Value>) -> Self {
        let digest = digest(objects.iter().map(encode::to_bytes));
        Self::lazy(digest, move || Ok(objects.clone()))
    }

    /// Takes a function that makes the objects. A store keeps the digest of its objects, and the function is
    /// called only for a store with another digest. So the digest has to change when an object changes; [`digest`]
    /// computes a digest.
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

/// Computes the digest of texts.
pub fn digest(texts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> u64 {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update(text);
    }
    let digest = digest.finalize();
    // SQLite stores signed integers: seven bytes fit.
    let first = digest.iter().take(7);
    first.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Tells whether an object defines a kind.
pub(super) fn is_definition(object: &&Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

impl Embedded {
    /// Returns the objects of the setup; None if they are already installed in the store.
    pub(super) async fn missing(&self, objects: &Objects) -> Result<Option<Vec<Value>>, Failure> {
        match self.shared.store.installed().await? == objects.digest {
            true => Ok(None),
            false => (objects.make)().map(Some).map_err(Failure::internal),
        }
    }

    /// Applies the objects of the setup.
    pub(super) async fn install(&self, setup: &Setup, objects: &[Value]) -> Result<(), Failure> {
        let namespaces = ["default", "kube-system", "kube-public"].map(
            |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        let kinds = objects.iter().filter(is_definition);
        let first = namespaces.iter().chain(kinds);
        try_join_all(first.map(|object| self.apply(object, &setup.manager))).await?;
        // The kinds are applied before the other objects, because an admission policy may name the kinds.
        let others = objects.iter().filter(|object| !is_definition(object));
        try_join_all(others.map(|object| self.apply(object, &setup.manager))).await?;
        let store = &self.shared.store;
        let kept = store.set_installed(setup.objects.digest).await;
        kept.map_err(Failure::from)
    }

    /// Applies one object, as a request.
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
