//! Answers discovery requests, in both formats of Kubernetes: the older one and the aggregated one.

use http::{HeaderMap, header};
use serde_json::{Value, json};

use super::catalog::{Catalog, Resource, api_version};
use super::service::{Answer, Content};
use super::status::Failure;

/// The Kubernetes version that the API reports: that of the kube-apiserver from which the table of built-in kinds was
/// generated.
const SERVED: (&str, &str, &str) = ("1", "36", "v1.36.3");

/// Answers a request for `/version`.
pub(super) fn server_version() -> Answer {
    let (major, minor, git) = SERVED;
    Answer::json(
        200,
        json!({
            "major": major,
            "minor": minor,
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": "35",
            "gitVersion": format!("{git}+embedded"),
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "",
            "goVersion": "",
            "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        }),
    )
}

/// Answers a request for `/api`.
pub(super) fn legacy(catalog: &Catalog, headers: &HeaderMap) -> Answer {
    if let Some(form) = aggregated(headers) {
        return aggregate(catalog, form, |group| group.is_empty());
    }
    Answer::json(
        200,
        json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        }),
    )
}

/// Answers a request for `/apis`.
pub(super) fn groups(catalog: &Catalog, headers: &HeaderMap) -> Answer {
    if let Some(form) = aggregated(headers) {
        return aggregate(catalog, form, |group| !group.is_empty());
    }
    let groups: Vec<Value> = catalog
        .groups()
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_json(group, versions))
        .collect();
    Answer::json(
        200,
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
    )
}

/// Answers a request for `/apis/{group}`.
pub(super) fn group(catalog: &Catalog, name: &str) -> Result<Answer, Failure> {
    let found = catalog
        .groups()
        .iter()
        .find(|(group, _)| group == name && !name.is_empty());
    let Some((group, versions)) = found else {
        return Err(Failure::no_such_resource());
    };
    let mut object = group_json(group, versions);
    object["kind"] = "APIGroup".into();
    object["apiVersion"] = "v1".into();
    Ok(Answer::json(200, object))
}

fn group_json(group: &str, versions: &[String]) -> Value {
    let each: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(group, version), "version": version}))
        .collect();
    json!({"name": group, "versions": each, "preferredVersion": each.first()})
}

/// Answers a request for `/api/v1` or `/apis/{group}/{version}` with the resources in this version.
pub(super) fn version(catalog: &Catalog, group: &str, version: &str) -> Result<Answer, Failure> {
    let mut resources = Vec::new();
    for resource in catalog.of_version(group, version) {
        let subject = &resource.subject;
        let mut entry = json!({
            "name": subject.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": subject.kind,
            "verbs": resource.verbs,
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        if resource.verbs.iter().any(|verb| verb == "list") {
            entry["storageVersionHash"] = storage_hash(resource).into();
        }
        resources.push(entry);
        for part in &resource.subresources {
            let (part_group, part_version, kind) = &part.kind;
            let mut entry = json!({
                "name": format!("{}/{}", subject.plural, part.name),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": part.verbs,
            });
            if (part_group.as_str(), part_version.as_str()) != (group, version) {
                entry["group"] = part_group.as_str().into();
                entry["version"] = part_version.as_str().into();
            }
            resources.push(entry);
        }
    }
    if resources.is_empty() {
        return Err(Failure::no_such_resource());
    }
    Ok(Answer::json(
        200,
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": api_version(group, version),
            "resources": resources,
        }),
    ))
}

fn storage_hash(resource: &Resource) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    use sha2::{Digest, Sha256};
    let text = format!("{}/{}", resource.storage, resource.subject.kind);
    let digest = Sha256::digest(text.as_bytes());
    BASE64_STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// Returns the version of the aggregated format that the client accepts; None if the client accepts only the older
/// format.
fn aggregated(headers: &HeaderMap) -> Option<&'static str> {
    let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
    accept.split(',').find_map(|clause| {
        let has = |part: &str| clause.split(';').any(|word| word.trim() == part);
        if !has("application/json")
            || !has("g=apidiscovery.k8s.io")
            || !has("as=APIGroupDiscoveryList")
        {
            return None;
        }
        ["v2", "v2beta1"]
            .into_iter()
            .find(|version| has(&format!("v={version}")))
    })
}

fn aggregate(catalog: &Catalog, form: &str, wanted: impl Fn(&str) -> bool) -> Answer {
    let groups = catalog.groups().iter().filter(|(group, _)| wanted(group));
    let items: Vec<Value> = groups
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = catalog
                        .of_version(group, version)
                        .map(|r| aggregated_entry(r))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = match group.as_str() {
                "" => json!({"creationTimestamp": null}),
                group => json!({"name": group, "creationTimestamp": null}),
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{form}"),
        "metadata": {},
        "items": items,
    });
    Answer {
        code: 200,
        content: Content::Aggregated(list, form.to_owned()),
        warnings: Vec::new(),
    }
}

fn aggregated_entry(resource: &Resource) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let subject = &resource.subject;
    // The group and version of a built-in kind are left out here, because the entry around it contains them.
    let (group, version) = match resource.custom {
        Some(_) => (subject.group.as_str(), resource.version.as_str()),
        None => ("", ""),
    };
    let mut entry = json!({
        "resource": subject.plural,
        "responseKind": kind(group, version, &subject.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        entry["subresources"] = resource
            .subresources
            .iter()
            .map(|part| {
                let (group, version, name) = &part.kind;
                json!({
                    "subresource": part.name,
                    "responseKind": kind(group, version, name),
                    "verbs": part.verbs,
                })
            })
            .collect();
    }
    entry
}
