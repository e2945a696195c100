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

impl Embedded {
    /// Brings the store up to what this program knows; does nothing when it is.
    pub(super) async fn install(&self) -> Result<(), Failure> {
        let kinds: Vec<Value> = api::crds()
            .iter()
            .map(|definition| serde_json::to_value(definition).map_err(Failure::internal))
            .collect::<Result<_, _>>()?;
        let rules = api::policies();
        let mut digest = Sha256::new();
        digest.update(encode::to_bytes(&kinds));
        digest.update(rules);
        let mark = digest
            .finalize()
            .iter()
            .take(7)
            .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        if self.shared.store.installed().await? == mark {
            return Ok(());
        }
        let namespaces = ["default", "kube-system", "kube-public"].map(
            |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        try_join_all(
            namespaces
                .iter()
                .chain(&kinds)
                .map(|object| self.lay_down(object)),
        )
        .await?;
        // The stamp of the mutating policy is put by this service itself.
        let rules = yaml::documents("policies.yaml", rules).map_err(Failure::internal)?;
        let rules = rules.iter().map(|document| &document.value);
        let validating = rules.filter(|rule| {
            rule["kind"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("Validating"))
        });
        try_join_all(validating.map(|object| self.lay_down(object))).await?;
        self.shared
            .store
            .set_installed(mark)
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
