//! Compares the files in deploy/ with the Rust types, and checks the schemas of the types.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// The environment variable that makes the test write deploy/crds instead of comparing the files.
const BLESS: &str = "BOWLINE_BLESS";

#[test]
fn deploy_holds_the_crds_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    let mut expected = BTreeSet::new();
    for crd in crds() {
        let name = format!("{}.yaml", crd.metadata.name.as_deref().unwrap());
        let text = format!(
            "# Generated from the Rust types; BOWLINE_BLESS=1 cargo test -p bowline-core api writes it anew.\n{}",
            crd_yaml(&crd)
        );
        let file = folder.join(&name);
        if std::env::var_os(BLESS).is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            stored == text,
            "deploy/crds/{name} differs from the types; run with {BLESS}=1 to write it anew"
        );
        // With BLESS the files may be newer than this program, which contains their old text.
        let is_written = WRITTEN_CRDS.contains(&text.as_str());
        assert!(is_written || std::env::var_os(BLESS).is_some(), "{name}");
        expected.insert(name);
    }
    assert_eq!(WRITTEN_CRDS.len(), expected.len());
    let found: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn every_kind_is_namespaced_described_and_in_the_category() {
    let mut names = BTreeSet::new();
    for crd in crds() {
        let name = crd.metadata.name.clone().unwrap();
        assert_eq!(crd.spec.scope, "Namespaced", "{name}");
        assert_eq!(
            crd.spec.names.categories.as_deref(),
            Some(&[labels::CATEGORY.to_owned()][..])
        );
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().unwrap();
            let schema = serde_json::to_value(schema.open_api_v3_schema.as_ref().unwrap()).unwrap();
            assert_eq!(schema["required"], json!(["spec"]), "{name}");
            assert_described(&name, &schema);
        }
        assert!(names.insert(name));
    }
    assert_eq!(names.len(), 13);
}

fn assert_described(path: &str, schema: &Value) {
    assert!(schema.get("nullable").is_none() || schema.get("type").is_none());
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        // The fields of embedded foreign objects need no descriptions.
        let foreign = ["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str());
        assert!(
            foreign || property.get("description").is_some(),
            "{path} has no description"
        );
        assert_described(&path, property);
        assert_described(&format!("{path}[]"), &property["items"]);
    }
}

/// A server drops every field that its CRD does not have, without an error. An audit entry that loses a field
/// looks changed, so the previous CRDs must have every field.
#[test]
fn the_crds_of_the_previous_version_have_every_field_that_is_written() {
    let packed = include_bytes!("../../tests/upgrade/install.yaml.gz");
    let mut installed = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&packed[..]);
    unpacked.read_to_string(&mut installed).unwrap();
    let installed = documents(&installed);
    let mut new = Vec::new();
    for crd in crds() {
        let crd = serde_json::to_value(crd).unwrap();
        let name = crd["metadata"]["name"].as_str().unwrap();
        let is_same = |old: &&Value| old["metadata"]["name"] == name;
        // The server tells a client that it does not have a kind.
        let Some(old) = installed.iter().find(is_same) else {
            continue;
        };
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        let schema = |crd: &Value| crd.pointer(schema).unwrap().clone();
        new_fields(name, &schema(old), &schema(&crd), &mut new);
    }
    // bowline does not write this field.
    assert_eq!(new, ["auditentries.bowline.dev.spec.subject.namespace"]);
}

fn new_fields(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    if old["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    for (name, property) in new["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match old["properties"].get(name) {
            Some(old) => new_fields(&path, old, property, found),
            None => found.push(path),
        }
    }
    for part in ["items", "additionalProperties"] {
        if new[part].is_object() {
            new_fields(&format!("{path}[]"), &old[part], &new[part], found);
        }
    }
}

#[test]
fn all_crds_are_one_stream() {
    let kinds: Vec<String> = documents(&crds_yaml())
        .iter()
        .map(|document| {
            document["spec"]["names"]["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds.len(), 13);
    assert_eq!(kinds.iter().filter(|kind| *kind == "Release").count(), 2);
}

#[test]
fn every_policy_fails_closed_and_is_bound() {
    let documents = documents(policies());
    let named = |kind: &str| -> BTreeSet<String> {
        documents
            .iter()
            .filter(|document| document["kind"] == kind)
            .map(|document| document["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    for kind in ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"] {
        let policies = named(kind);
        assert!(!policies.is_empty());
        let bound: BTreeSet<String> = documents
            .iter()
            .filter(|document| document["kind"] == format!("{kind}Binding"))
            .map(|document| document["spec"]["policyName"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(policies, bound);
    }
    for document in &documents {
        let name = &document["metadata"]["name"];
        assert_eq!(
            document["metadata"]["labels"][labels::PART_OF],
            labels::PART_OF_BOWLINE,
            "{name}"
        );
        match document["kind"].as_str().unwrap() {
            "ValidatingAdmissionPolicyBinding" => {
                assert_eq!(document["spec"]["validationActions"], json!(["Deny"]));
            }
            "MutatingAdmissionPolicyBinding" => {}
            _ => assert_eq!(document["spec"]["failurePolicy"], "Fail", "{name}"),
        }
    }
}

#[test]
fn roles_speak_of_kinds_that_exist() {
    let ours: BTreeSet<(String, String)> = crds()
        .into_iter()
        .flat_map(|crd| {
            let plural = crd.spec.names.plural;
            let group = crd.spec.group;
            ["", "/status", "/finalizers"]
                .map(|suffix| (group.clone(), format!("{plural}{suffix}")))
        })
        .collect();
    let roles = documents(rbac());
    let promoters = roles
        .iter()
        .filter(|role| {
            role["rules"].as_array().unwrap().iter().any(|rule| {
                rule["verbs"] == json!([labels::PROMOTE_VERB])
                    && rule["resources"] == json!(["environments"])
            })
        })
        .count();
    assert!(promoters >= 1);
    for role in &roles {
        for rule in role["rules"].as_array().unwrap() {
            for group in strings(&rule["apiGroups"]) {
                if !["openchoreo.dev", "core.choreo.dev", "bowline.dev"].contains(&group.as_str()) {
                    continue;
                }
                for resource in strings(&rule["resources"]) {
                    assert!(
                        ours.contains(&(group.clone(), resource.clone())),
                        "{}: {group} has no {resource}",
                        role["metadata"]["name"]
                    );
                }
            }
        }
    }
}

fn strings(list: &Value) -> Vec<String> {
    serde_json::from_value(list.clone()).unwrap()
}

fn documents(yaml: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(yaml)
        .map(|document| Value::deserialize(document).unwrap())
        .filter(|document| !document.is_null())
        .collect()
}
