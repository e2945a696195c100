//! What every store holds from the start: a few namespaces, bowline's kinds, bowline's rules.

use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::status::Failure;
use super::{Embedded, encode};
use crate::{api, yaml};

/// Returns bowline's kinds, as definitions.
fn kinds() -> Result<Vec<Value>, Failure> {
    let kinds = api::crds();
    let kinds = kinds.iter().map(serde_json::to_value);
    kinds.collect::<Result<_, _>>().map_err(Failure::internal)
}

/// What tells the kinds and rules of this program from those of another.
fn mark() -> u64 {
    let mut digest = Sha256::new();
    for definition in api::WRITTEN_CRDS {
        digest.update(definition);
    }
    digest.update(api::policies());
    let digest = digest.finalize();
    let first = digest.iter().take(7);
    first.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl Embedded {
    /// Returns the kinds that the store does not have as this program knows them; None where it has all.
    pub(super) async fn missing(&self) -> Result<Option<Vec<Value>>, Failure> {
        match self.shared.store.installed().await? == mark() {
            true => Ok(None),
            false => kinds().map(Some),
        }
    }

    /// Brings the store up to what this program knows.
    pub(super) async fn install(&self, kinds: &[Value]) -> Result<(), Failure> {
        let namespaces = ["default", "kube-system", "kube-public"].map(
            |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        try_join_all(
            namespaces
                .iter()
                .chain(kinds)
                .map(|object| self.lay_down(object)),
        )
        .await?;
        // The stamp of the mutating policy is put by this service itself.
        let rules = yaml::documents("policies.yaml", api::policies()).map_err(Failure::internal)?;
        let rules = rules.iter().map(|document| &document.value);
        let validating = rules.filter(|rule| {
            rule["kind"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("Validating"))
        });
        try_join_all(validating.map(|object| self.lay_down(object))).await?;
        self.shared
            .store
            .set_installed(mark())
            .await
            .map_err(Failure::from)
    }

    /// Applies one object through the front door.
    async fn lay_down(&self, object: &Value) -> Result<(), Failure> {
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
            "/{root}/{version}/{}/{name}?fieldManager=bowline&force=true",
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
