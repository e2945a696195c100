//! Finds the GitOps tool that owns an object. The tool reverts changes on the cluster within seconds, so bowline
//! tells users to change the object in git instead.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::ObjectMeta;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GitOps {
    ArgoCd,
    Flux,
}

impl GitOps {
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
/// The names of field managers, each with the GitOps tool that uses the name.
const MANAGERS: [(&str, GitOps); 5] = [
    ("argocd-controller", GitOps::ArgoCd),
    ("argocd-application-controller", GitOps::ArgoCd),
    ("kustomize-controller", GitOps::Flux),
    ("helm-controller", GitOps::Flux),
    ("flux", GitOps::Flux),
];

/// Finds the GitOps tool that owns a field of an object; None if no tool owns it. The field manager decides, or else
/// the labels and annotations of the object.
pub fn gitops(metadata: &ObjectMeta, field: &[&str]) -> Option<GitOps> {
    let fields = metadata.managed_fields.iter().flatten();
    let by_manager = fields.filter(|entry| owns(entry, field)).find_map(|entry| {
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

/// Returns whether a field manager owns the field or a part of the field.
fn owns(entry: &ManagedFieldsEntry, field: &[&str]) -> bool {
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
    let found = field.iter();
    let found = found.fold(fields, |inside, step| {
        inside.and_then(|inside| inside.get(step))
    });
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_owns_what() {
        let template = json!({"f:spec": {"f:template": {"f:image": {}}}});
        let labels = json!({"f:metadata": {"f:labels": {}}});
        let by = |manager: &str, fields: &serde_json::Value| json!({"managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": fields}]});
        for (metadata, expected) in [
            (json!({}), None),
            (by("kubectl", &template), None),
            (by("argocd-controller", &template), Some(GitOps::ArgoCd)),
            (by("argocd-controller", &labels), None),
            (by("kustomize-controller", &template), Some(GitOps::Flux)),
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
            assert_eq!(
                gitops(&read, &["f:spec", "f:template"]),
                expected,
                "{metadata}"
            );
        }
    }
}
