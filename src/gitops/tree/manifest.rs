//! Parses the objects of a manifest, and compares the meaning of two contents of a file.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::files::{self, is_manifest};
use super::identity::{is_of_us, names_us};
use super::index::Known;
use super::{hidden, kustomize};
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::{labels, lists};

/// The error for a manifest that mentions an API group of bowline, but is no valid YAML or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Returns the objects of a manifest; for a list, its items. Returns none if the manifest does not mention an API
/// group of bowline.
pub fn objects(bytes: &[u8]) -> Result<Vec<Value>, Unreadable> {
    match names_us(bytes) {
        true => values(bytes),
        false => Ok(Vec::new()),
    }
}

/// Returns the objects of a manifest; for a list, its items. Parses the manifest even if it does not mention an API
/// group of bowline.
pub(super) fn values(bytes: &[u8]) -> Result<Vec<Value>, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable)?;
    let documents = bounded_yaml::documents("", text).map_err(|_| Unreadable)?;
    let documents = documents.into_iter();
    let objects = documents.flat_map(|document| lists::objects(document.value));
    Ok(objects.map(|item| item.value).collect())
}

/// Returns whether an object has this kind in the group openchoreo.dev.
pub fn is_a(kind: &str, object: &Value) -> bool {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    let group = group.split('/').next();
    group == Some(labels::OPENCHOREO_GROUP) && object["kind"] == kind
}

/// Returns whether two contents of a file mean the same to bowline: equal specs and marks of the same objects, and
/// the same patches and hidden ReleasePins. A content is None if the file does not exist.
pub fn mean_the_same(path: &str, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    if one == other {
        return true;
    }
    let meanings = [one, other].map(|bytes| meaning(path, bytes.unwrap_or_default()));
    match meanings {
        [Ok(one), Ok(other)] => one == other,
        _ => false,
    }
}

fn meaning(path: &str, bytes: &[u8]) -> Result<BTreeSet<String>, Unreadable> {
    if !is_manifest(path) {
        // Any change of a template that contains ReleasePins may matter, so its whole text is compared.
        let hides = files::is_template(path) && hidden::problem_of_template("", bytes).is_some();
        let text = hides.then(|| String::from_utf8_lossy(bytes).into_owned());
        return Ok(text.into_iter().collect());
    }
    let kustomization = files::is_kustomization(path);
    let speaks_of_us = names_us(bytes) || memchr::memmem::find(bytes, b"ReleasePin").is_some();
    if !kustomization && !speaks_of_us {
        return Ok(BTreeSet::new());
    }
    let values = values(bytes)?;
    let mut found: BTreeSet<String> = values.iter().filter_map(of_object).collect();
    if kustomization {
        let mut known = Known::default();
        for value in &values {
            kustomize::read(path, value, &mut known);
        }
        let patches: BTreeSet<&String> = known.patches.iter().collect();
        found.insert(json!([patches, known.renames]).to_string());
    }
    Ok(found)
}

/// Returns the meaning of an object as text, to compare it. None for an object of another tool that hides no
/// ReleasePins.
fn of_object(object: &Value) -> Option<String> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    if !is_of_us(version) {
        let hides = hidden::changes_pin(object) || hidden::problem(object).is_some();
        return hides.then(|| object.to_string());
    }
    let spec = match is_a("ReleasePin", object) {
        // Parse the spec, because a file can write the same time in several forms.
        true => ReleasePinSpec::deserialize(&object["spec"])
            .and_then(serde_json::to_value)
            .unwrap_or_else(|_| object["spec"].clone()),
        false => object["spec"].clone(),
    };
    let meta = &object["metadata"];
    let meaning = json!([
        version,
        object["kind"],
        meta["namespace"],
        meta["name"],
        spec,
        object["$patch"],
        meta["annotations"][labels::MARK],
    ]);
    Some(meaning.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\nmetadata:\n  name: cart-prod\nspec:\n  component: cart\n  environment: prod\n  releaseRef:\n    name: cart-1\n";

    fn both_ways(path: &str, one: Option<&str>, other: Option<&str>) -> bool {
        let [one, other] = [one, other].map(|text| text.map(str::as_bytes));
        let same = mean_the_same(path, one, other);
        assert_eq!(mean_the_same(path, other, one), same, "{path} {other:?}");
        same
    }

    #[test]
    fn a_file_that_is_only_formatted_means_the_same() {
        let item = "{apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, metadata: {name: cart-prod}, spec: {component: cart, environment: prod, releaseRef: {name: cart-1}}}";
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {item}\n");
        let bare = item.replace(
            "apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, ",
            "",
        );
        let typed = format!(
            "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePinList\nitems:\n- {bare}\n"
        );
        let labelled = PIN.replace("  name: cart-prod", "  labels: {a: b}\n  name: cart-prod");
        let twice = format!("{PIN}---\n{}", PIN.replace("cart-prod", "cart-dev"));
        let crlf = PIN.replace('\n', "\r\n");
        let quoted = PIN.replace("cart-1", "\"cart-1\" # formatted");
        let moved = PIN.replace("cart-1", "cart-2");
        let moved_in_list = typed.replace("cart-1", "cart-2");
        let renamed = PIN.replace("cart-prod", "cart-test");
        for (other, same) in [
            (Some(PIN), true),
            (Some(crlf.as_str()), true),
            (Some(quoted.as_str()), true),
            (Some(labelled.as_str()), true),
            (Some(list.as_str()), true),
            (Some(typed.as_str()), true),
            (Some(moved.as_str()), false),
            (Some(moved_in_list.as_str()), false),
            (Some(renamed.as_str()), false),
            (Some(twice.as_str()), false),
            (
                Some("apiVersion: openchoreo.dev/v1alpha1\nkind: [\n"),
                false,
            ),
            (Some(""), false),
            (None, false),
        ] {
            for path in ["pin.yaml", "pin.YML", "a/pin.json", "Pin.JSON"] {
                assert_eq!(both_ways(path, Some(PIN), other), same, "{path} {other:?}");
            }
        }
        assert!(both_ways("README.md", None, Some(PIN)));
        assert!(both_ways("ci.yaml", Some("on: [push]\n"), None));
    }

    #[test]
    fn a_patch_or_a_template_of_a_release_pin_has_a_meaning() {
        let patch = "{op: replace, path: /spec/releaseRef/name, value: cart-1}";
        let by_file = "resources: [pins]\npatches: [{path: p.yaml, target: {kind: ReleasePin}}]\n";
        let inline = format!("patches:\n- target: {{kind: ReleasePin}}\n  patch: '[{patch}]'\n");
        for (path, one, other, same) in [
            (
                "kustomization.yaml",
                "resources: [pins]\n",
                "resources:\n- pins\n- more\n",
                true,
            ),
            ("kustomization.yaml", "resources: [pins]\n", by_file, false),
            (
                "kustomization.yaml",
                by_file,
                "resources: [pins]\npatches:\n  - path: p.yaml\n    target:\n      kind: ReleasePin\n",
                true,
            ),
            ("a/Kustomization", "", inline.as_str(), false),
            ("kustomization.yml", "", "namePrefix: x-\n", false),
            (
                "p.yaml",
                "kind: ReleasePin\nspec: {releaseRef: {name: a}}\n",
                "kind: ReleasePin\nspec: {releaseRef: {name: b}}\n",
                false,
            ),
            ("pins.jsonnet", "", "{ kind: 'ReleasePin' }\n", false),
            ("pins.jsonnet", "", "{ kind: 'Deployment' }\n", true),
            (
                "configmap.yaml",
                "",
                "kind: ConfigMap\ndata: {pin.yaml: 'kind: ReleasePin'}\n",
                false,
            ),
        ] {
            assert_eq!(
                both_ways(path, Some(one), Some(other)),
                same,
                "{path} {other}"
            );
        }
    }

    #[test]
    fn only_a_manifest_that_names_our_groups_can_be_unreadable() {
        for (text, expected) in [
            ("kind: [", Ok(0)),
            (
                "apiVersion: openchoreo.dev/v1alpha1\nkind: [",
                Err(Unreadable),
            ),
            (PIN, Ok(1)),
        ] {
            let found = objects(text.as_bytes()).map(|found| found.len());
            assert_eq!(found, expected, "{text}");
        }
    }
}
