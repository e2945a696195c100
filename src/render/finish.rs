//! Makes resources fit to be applied: complete, in a namespace, told apart, in order.

use std::collections::BTreeMap;

use serde_json::Value;

use super::make::Made;
use super::{Notes, Problem};
use crate::api::rendered::RenderedResource;
use crate::api::{Object, names};

/// The kinds of Kubernetes itself that have no namespace, by group.
// A custom kind is taken for a namespaced one; a template says `namespace: ""` where it is not.
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

/// What tells one object from another; its order is that of the resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    kind: String,
    group: String,
    namespace: String,
    name: String,
}

/// Finishes the resources and puts them in order.
pub(super) fn finish(made: Vec<Made>, namespace: &str, notes: &mut Notes) -> Vec<RenderedResource> {
    let mut finished: BTreeMap<Identity, Made> = BTreeMap::new();
    for mut made in made {
        let identity = match identify(&mut made.resource.object, namespace) {
            Ok(identity) => identity,
            Err((path, message)) => {
                notes.problems.push(problem(&made, path, message));
                continue;
            }
        };
        if let Some(Value::Object(metadata)) = made.resource.object.get_mut("metadata") {
            shorten(metadata.get_mut("labels"));
        }
        shorten_selectors(&mut made.resource.object);
        if let Some(first) = finished.get(&identity) {
            let message = format!(
                "{} {} in namespace {:?} is there already, from {}, {}; give one of them another name",
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

/// Reads who an object is, and gives it its namespace.
fn identify(object: &mut Object, namespace: &str) -> Result<Identity, (&'static str, String)> {
    let version = text(object.get("apiVersion"), "template.apiVersion")?;
    let kind = text(object.get("kind"), "template.kind")?;
    let group = version
        .rsplit_once('/')
        .map_or("", |(group, _)| group)
        .to_owned();
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return Err((
            "template.metadata",
            "a resource has metadata, a map".to_owned(),
        ));
    };
    let name = text(metadata.get("name"), "template.metadata.name")?;
    let cluster_scoped = CLUSTER_SCOPED
        .iter()
        .any(|(known, kinds)| *known == group && kinds.contains(&kind.as_str()));
    let namespace = match metadata.get("namespace") {
        // Said to have none.
        Some(Value::String(own)) if own.is_empty() => String::new(),
        None | Some(Value::Null) if cluster_scoped => String::new(),
        None | Some(Value::Null) => namespace.to_owned(),
        Some(Value::String(own)) => own.clone(),
        Some(_) => {
            return Err((
                "template.metadata.namespace",
                "a namespace is a string".to_owned(),
            ));
        }
    };
    match namespace.is_empty() {
        true => metadata.remove("namespace"),
        false => metadata.insert("namespace".to_owned(), Value::String(namespace.clone())),
    };
    Ok(Identity {
        kind,
        group,
        namespace,
        name,
    })
}

fn text(value: Option<&Value>, path: &'static str) -> Result<String, (&'static str, String)> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err((path, "it is empty; a resource needs it".to_owned())),
        Some(_) => Err((path, "it has to be a string".to_owned())),
        None => Err((path, "it is missing; a resource needs it".to_owned())),
    }
}

/// Cuts the values of labels that are too long, with a hash.
fn shorten(labels: Option<&mut Value>) {
    let Some(Value::Object(labels)) = labels else {
        return;
    };
    for value in labels.values_mut() {
        if let Value::String(text) = value
            && text.len() > names::DNS_LABEL
        {
            *text = names::label_value(text);
        }
    }
}

/// Cuts the same values where they are looked for: in selectors, and in the labels of pod templates.
fn shorten_selectors(object: &mut Object) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else {
        return;
    };
    for within in [
        &["selector"][..],
        &["selector", "matchLabels"],
        &["podSelector", "matchLabels"],
        &["template", "metadata", "labels"],
        &["jobTemplate", "metadata", "labels"],
        &["jobTemplate", "spec", "template", "metadata", "labels"],
    ] {
        shorten(follow(spec, within));
    }
}

fn follow<'o>(object: &'o mut Object, path: &[&str]) -> Option<&'o mut Value> {
    let (first, rest) = path.split_first()?;
    let mut value = object.get_mut(*first)?;
    for step in rest {
        value = value.as_object_mut()?.get_mut(*step)?;
    }
    Some(value)
}
