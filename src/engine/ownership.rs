//! Which GitOps tool owns a pin: what it owns is changed in git, for it puts its own back within seconds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::ObjectMeta;

/// A tool that makes a cluster agree with git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GitOps {
    /// Argo CD.
    ArgoCd,
    /// Flux.
    Flux,
}

impl GitOps {
    /// Returns the name that people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::ArgoCd => "Argo CD",
            Self::Flux => "Flux",
        }
    }
}

const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
const FLUX_LABELS: [&str; 2] = [
    "kustomize.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/name",
];
/// The field managers that the tools apply with.
const MANAGERS: [(&str, GitOps); 5] = [
    ("argocd-controller", GitOps::ArgoCd),
    ("argocd-application-controller", GitOps::ArgoCd),
    ("kustomize-controller", GitOps::Flux),
    ("helm-controller", GitOps::Flux),
    ("flux", GitOps::Flux),
];

/// Finds the tool that owns an object: by its field manager on `spec.releaseRef`, by its labels or by its
/// annotations.
pub fn gitops(metadata: &ObjectMeta) -> Option<GitOps> {
    let fields = metadata.managed_fields.iter().flatten();
    let by_manager = fields
        .filter(|entry| owns_release(entry))
        .find_map(|entry| {
            let manager = entry.manager.as_deref()?;
            let known = MANAGERS.iter().find(|(name, _)| *name == manager);
            known.map(|(_, tool)| *tool)
        });
    let has = |map: &Option<std::collections::BTreeMap<String, String>>, key: &str| {
        map.as_ref().is_some_and(|map| map.contains_key(key))
    };
    by_manager
        .or_else(|| has(&metadata.annotations, TRACKING_ID).then_some(GitOps::ArgoCd))
        .or_else(|| {
            let flux = FLUX_LABELS.iter().any(|label| has(&metadata.labels, label));
            flux.then_some(GitOps::Flux)
        })
}

/// Tells whether a manager owns the reference to the release.
fn owns_release(entry: &ManagedFieldsEntry) -> bool {
    let fields = entry.fields_v1.as_ref();
    fields
        .and_then(|fields| fields.0.get("f:spec")?.get("f:releaseRef"))
        .is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_owns_what() {
        let release = json!({"f:spec": {"f:releaseRef": {"f:name": {}}}});
        let labels = json!({"f:metadata": {"f:labels": {}}});
        let by = |manager: &str, fields: &serde_json::Value| json!({"managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": fields}]});
        for (metadata, expected) in [
            (json!({}), None),
            (by("kubectl", &release), None),
            (by("argocd-controller", &release), Some(GitOps::ArgoCd)),
            (by("argocd-controller", &labels), None),
            (by("kustomize-controller", &release), Some(GitOps::Flux)),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:x"}}),
                Some(GitOps::ArgoCd),
            ),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}),
                Some(GitOps::Flux),
            ),
        ] {
            let read: ObjectMeta = serde_json::from_value(metadata.clone()).unwrap();
            assert_eq!(gitops(&read), expected, "{metadata}");
        }
    }
}
