//! The objects that the bytes of a file hold, wherever these bytes come from: the disk, a commit, a blob.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::labels;
use crate::api::pin::ReleasePinSpec;
use crate::yaml;

/// Tells whether a file at a path can hold objects.
pub(super) fn is_yaml(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// Lists the objects of a file, those inside a List one by one; None where it cannot be read.
pub(super) fn objects(bytes: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.contains(labels::OPENCHOREO_GROUP) {
        return Some(Vec::new());
    }
    let documents = yaml::documents("", text).ok()?;
    let mut found = Vec::new();
    for document in documents {
        take(document.value, &mut found);
    }
    Some(found)
}

fn take(value: Value, found: &mut Vec<Value>) {
    let is_list = value["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    match value.get("items").and_then(Value::as_array) {
        Some(items) if is_list => items.iter().for_each(|item| take(item.clone(), found)),
        _ => found.push(value),
    }
}

/// Tells whether an object is of a kind.
pub(super) fn is_a(kind: &str, object: &Value) -> bool {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    let group = group.split('/').next();
    group == Some(labels::OPENCHOREO_GROUP) && object["kind"] == kind
}

/// Tells whether two states of a file hold objects that mean the same: the same names, specs and marks.
pub(super) fn mean_the_same(path: &str, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    let meanings = |bytes: Option<&[u8]>| {
        let objects = objects(bytes.unwrap_or_default())?;
        Some(objects.iter().map(meaning).collect::<BTreeSet<String>>())
    };
    if one == other || !is_yaml(path) {
        return true;
    }
    let one = meanings(one);
    one.is_some() && one == meanings(other)
}

fn meaning(object: &Value) -> String {
    let spec = match is_a("ReleasePin", object) {
        // A time can be written in several ways.
        true => ReleasePinSpec::deserialize(&object["spec"])
            .and_then(serde_json::to_value)
            .unwrap_or_else(|_| object["spec"].clone()),
        false => object["spec"].clone(),
    };
    let meta = &object["metadata"];
    json!([
        object["apiVersion"],
        object["kind"],
        meta["namespace"],
        meta["name"],
        spec,
        meta["annotations"][labels::MARK],
    ])
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\nmetadata:\n  name: cart-prod\nspec:\n  component: cart\n  environment: prod\n  releaseRef:\n    name: cart-1\n";

    #[test]
    fn a_file_that_is_only_formatted_means_the_same() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, metadata: {name: cart-prod}, spec: {component: cart, environment: prod, releaseRef: {name: cart-1}}}\n";
        let labelled = PIN.replace("  name: cart-prod", "  labels: {a: b}\n  name: cart-prod");
        let twice = format!("{PIN}---\n{}", PIN.replace("cart-prod", "cart-dev"));
        let crlf = PIN.replace('\n', "\r\n");
        let quoted = PIN.replace("cart-1", "\"cart-1\" # formatted");
        let moved = PIN.replace("cart-1", "cart-2");
        let renamed = PIN.replace("cart-prod", "cart-test");
        for (other, same) in [
            (Some(PIN), true),
            (Some(crlf.as_str()), true),
            (Some(quoted.as_str()), true),
            (Some(labelled.as_str()), true),
            (Some(list), true),
            (Some(moved.as_str()), false),
            (Some(renamed.as_str()), false),
            (Some(twice.as_str()), false),
            (
                Some("apiVersion: openchoreo.dev/v1alpha1\nkind: [\n"),
                false,
            ),
            (Some(""), false),
            (None, false),
        ] {
            let (one, other) = (Some(PIN.as_bytes()), other.map(str::as_bytes));
            assert_eq!(mean_the_same("pin.yaml", one, other), same, "{other:?}");
            assert_eq!(mean_the_same("pin.yaml", other, one), same, "{other:?}");
        }
        let other = Some(b"anything".as_slice());
        assert!(mean_the_same("README.md", None, other));
        assert!(mean_the_same("ci.yaml", Some(b"on: [push]\n"), None));
    }
}
