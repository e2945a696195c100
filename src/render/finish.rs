//! Completes the rendered resources: sets namespaces, finds duplicates, sorts.

use std::collections::BTreeMap;

use serde_json::Value;

use super::labels;
use super::{Definition, Notes, Problem};
use crate::api::Object;
use crate::api::choreo::rendered::RenderedResource;

/// Kubernetes' own cluster-scoped kinds, by API group.
// A kind that is not in this list counts as namespaced. A template of a cluster-scoped custom kind must contain
// `namespace: ""`.
pub(super) const CLUSTER_SCOPED: &[(&str, &[&str])] = &[
    (
        "",
        &["ComponentStatus", "Namespace", "Node", "PersistentVolume"],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    (
        "authentication.k8s.io",
        &["SelfSubjectReview", "TokenReview"],
    ),
    (
        "authorization.k8s.io",
        &[
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    (
        "certificates.k8s.io",
        &["CertificateSigningRequest", "ClusterTrustBundle"],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    (
        "networking.k8s.io",
        &["IPAddress", "IngressClass", "ServiceCIDR"],
    ),
    ("node.k8s.io", &["RuntimeClass"]),
    (
        "rbac.authorization.k8s.io",
        &["ClusterRole", "ClusterRoleBinding"],
    ),
    (
        "resource.k8s.io",
        &["DeviceClass", "DeviceTaintRule", "ResourceSlice"],
    ),
    ("scheduling.k8s.io", &["PriorityClass"]),
    (
        "storage.k8s.io",
        &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    ),
    ("storagemigration.k8s.io", &["StorageVersionMigration"]),
];

/// The identity of a resource, by which resources are compared and sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    kind: String,
    group: String,
    namespace: String,
    name: String,
}

/// A rendered resource and the template that it comes from.
pub(super) struct Made {
    pub(super) resource: RenderedResource,
    pub(super) definition: Definition,
    pub(super) template: String,
}

/// Sets the namespaces of the resources, reports resources with equal identity, and sorts the resources.
pub(super) fn finish(made: Vec<Made>, namespace: &str, notes: &mut Notes) -> Vec<RenderedResource> {
    let mut finished: BTreeMap<Identity, Made> = BTreeMap::new();
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for mut made in made {
        let identity = match identify(&mut made.resource.object, namespace) {
            Ok(identity) => identity,
            Err((field, message)) => {
                let path = format!("template.{field}");
                notes.problems.push(problem(&made, &path, message));
                continue;
            }
        };
        labels::shorten(&mut made.resource.object);
        let place = format!("{}, {}", made.definition, made.template);
        if let Some(first) = ids.insert(made.resource.id.clone(), place) {
            let id = &made.resource.id;
            let message = format!("the id {id} already exists, from {first}; choose another");
            notes.problems.push(problem(&made, "id", message));
        }
        if let Some(first) = finished.get(&identity) {
            let message = format!(
                "{} {} in namespace {:?} already exists, from {}, {}; give one of them another name",
                identity.kind, identity.name, identity.namespace, first.definition, first.template
            );
            notes
                .problems
                .push(problem(&made, "template.metadata.name", message));
            continue;
        }
        finished.insert(identity, made);
    }
    finished.into_values().map(|made| made.resource).collect()
}

fn problem(made: &Made, path: &str, message: String) -> Problem {
    Problem {
        definition: made.definition.clone(),
        template: Some(made.template.clone()),
        path: path.to_owned(),
        column: None,
        message,
    }
}

/// An error in a resource: the name of the wrong field, and the message.
type Wrong = (&'static str, String);

/// Checks that a resource has apiVersion, kind and name.
pub(super) fn check_identity(object: &Object) -> Result<(), Wrong> {
    text(object.get("apiVersion"), "apiVersion")?;
    text(object.get("kind"), "kind")?;
    let metadata = object.get("metadata").and_then(Value::as_object);
    text(
        metadata.and_then(|metadata| metadata.get("name")),
        "metadata.name",
    )?;
    Ok(())
}

/// Returns the identity of a resource, after setting its namespace.
fn identify(object: &mut Object, namespace: &str) -> Result<Identity, Wrong> {
    let version = text(object.get("apiVersion"), "apiVersion")?;
    let kind = text(object.get("kind"), "kind")?;
    let group = version
        .rsplit_once('/')
        .map_or("", |(group, _)| group)
        .to_owned();
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return Err(("metadata", "a resource has metadata, a map".to_owned()));
    };
    let name = text(metadata.get("name"), "metadata.name")?;
    let own = match metadata.remove("namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(own)) => Some(own),
        Some(_) => return Err(("metadata.namespace", "a namespace is a string".to_owned())),
    };
    let namespace = match own {
        _ if is_cluster_scoped(&group, &kind) => match own.filter(|own| !own.is_empty()) {
            None => String::new(),
            Some(_) => {
                let message = format!("a {kind} has no namespace; leave it out");
                return Err(("metadata.namespace", message));
            }
        },
        // This custom kind is cluster-scoped, because its template contains `namespace: ""`.
        Some(own) if own.is_empty() && !is_builtin(&group) => own,
        Some(own) if !own.is_empty() => own,
        _ => namespace.to_owned(),
    };
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), Value::String(namespace.clone()));
    }
    Ok(Identity {
        kind,
        group,
        namespace,
        name,
    })
}

fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    CLUSTER_SCOPED
        .iter()
        .any(|(known, kinds)| *known == group && kinds.contains(&kind))
}

/// Returns whether an API group is one of Kubernetes' own groups.
fn is_builtin(group: &str) -> bool {
    !group.contains('.') || CLUSTER_SCOPED.iter().any(|(known, _)| *known == group)
}

fn text(value: Option<&Value>, field: &'static str) -> Result<String, Wrong> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err((field, "it is empty; a resource needs it".to_owned())),
        Some(_) => Err((field, "it must be a string".to_owned())),
        None => Err((field, "it is missing; a resource needs it".to_owned())),
    }
}
