//! Finds ReleasePins that bowline cannot read as objects: inside objects of other kinds, in patches, in texts and in
//! templates.
//!
//! Gc must know about them, because they may name releases. This module finds them by keywords and reports them as
//! problems, but does not interpret them.

use regex::Regex;
use serde_json::Value;

use super::identity::is_of_us;
use crate::api::labels;

/// The kind of objects that name releases.
const PIN: &str = "ReleasePin";

/// Returns the problem with an object that hides a ReleasePin or that bowline cannot read; None if there is no
/// problem.
pub(super) fn problem(value: &Value) -> Option<String> {
    let said = |field: &str| value[field].as_str().filter(|text| !text.is_empty());
    if let Some(version) = said("apiVersion").filter(|version| is_of_us(version)) {
        return match said("kind") {
            // In a repository, git's log is the audit trail. So AuditEntries in files are ignored.
            Some("AuditEntry") => None,
            Some(kind) => Some(format!(
                "bowline does not know the kind {kind} of {version}; correct apiVersion and kind, or move the file out of the directory that --repo names"
            )),
            None => Some(format!(
                "an object of {version} without a kind; add its kind"
            )),
        };
    }
    match find("", value)? {
        Found::Object => {
            let name = value["metadata"]["name"].as_str().unwrap_or_default();
            let what = match said("kind") {
                Some(kind) => format!("{kind} {name}"),
                None => "the document".to_owned(),
            };
            let what = what.trim_end();
            Some(format!(
                "{what} contains a ReleasePin, and bowline does not read it there; write the ReleasePin as an object of its own"
            ))
        }
        Found::Patch => Some(PATCHED.to_owned()),
    }
}

/// The message about a patch that may change a ReleasePin.
pub(super) const PATCHED: &str = "a patch changes a ReleasePin or may select one, so bowline does not know which release runs; write the change into the file of the ReleasePin";

/// Returns the problem with a template that contains a ReleasePin; None if the template contains none.
pub(super) fn problem_of_template(path: &str, bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    names_pin(&text).then(|| {
        format!(
            "{path}: a template makes a ReleasePin, and bowline does not read templates; write the ReleasePin as an object of its own, or move the template out of the directory that --repo names"
        )
    })
}

/// Returns whether an object would change the release or the holds of a ReleasePin if a tool used the object as a
/// patch.
pub(super) fn changes_pin(value: &Value) -> bool {
    value["kind"] == PIN && touches_release(value)
}

/// Returns whether a patch sets fields for the release or the holds of a ReleasePin, whatever kind the patch names.
fn touches_release(patch: &Value) -> bool {
    let spec = &patch["spec"];
    let fields = ["releaseRef", "holds", "$patch"];
    let touches = fields.iter().any(|field| spec.get(*field).is_some());
    touches || patch.get("$patch").is_some()
}

/// What an object of another kind hides inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A ReleasePin, as an object or in a text.
    Object,
    /// A patch of ReleasePins.
    Patch,
}

/// Searches a value for hidden ReleasePins and patches; None if it hides none. `within` is the name of the field that
/// contains the value.
fn find(within: &str, value: &Value) -> Option<Found> {
    match value {
        Value::String(text) => (text.contains(PIN) && names_pin(text)).then_some(Found::Object),
        Value::Array(items) => items.iter().find_map(|item| find(within, item)),
        Value::Object(fields) => {
            let is_object = fields.contains_key("metadata") || fields.contains_key("spec");
            if value["kind"] == PIN && fields.contains_key("apiVersion") && is_object {
                return Some(Found::Object);
            }
            if let Some(patches) = patches_pins(within, value) {
                return patches.then_some(Found::Patch);
            }
            fields.iter().find_map(|(field, value)| find(field, value))
        }
        _ => None,
    }
}

/// Returns whether an item in a list of patches changes ReleasePins; None if the value is no patch. `within` is the
/// name of the list field.
fn patches_pins(within: &str, value: &Value) -> Option<bool> {
    if let Some(fields) = value.get("fieldPaths").and_then(Value::as_array) {
        let mut fields = fields.iter().filter_map(Value::as_str);
        let touches = fields.any(|field| is_of_release(field.split('.')));
        return Some(touches && selects_pins(&value["select"]));
    }
    let target = value.get("target").filter(|target| target.is_object());
    let target = target.map(selects_pins);
    if let Some(patch) = value.get("patch").and_then(Value::as_str) {
        let Ok(documents) = bounded_yaml::documents("", patch) else {
            return Some(target.unwrap_or_else(|| names_pin(patch)));
        };
        let mut documents = documents.into_iter().map(|document| document.value);
        return Some(
            documents.any(|document| match (document.as_array(), target) {
                (Some(operations), target) => {
                    target.unwrap_or(true) && operations.iter().any(moves_pin)
                }
                // If a target is given, kustomize ignores the kind in the patch and applies the patch to all selected
                // objects.
                (None, Some(selects)) => selects && touches_release(&document),
                (None, None) => changes_pin(&document),
            }),
        );
    }
    let by_file = value.get("path").is_some_and(Value::is_string);
    // Objects that are no patches can have the fields `path` and `target` too.
    let is_patch = within.starts_with("patches") || value["target"]["kind"].is_string();
    target.filter(|_| by_file && is_patch)
}

/// Returns whether a kustomize selector can select ReleasePins. If it names no kind or group, it can.
fn selects_pins(selector: &Value) -> bool {
    let said = |field: &str| selector[field].as_str().filter(|text| !text.is_empty());
    let admits = |field: &str, word: &str| {
        // Kustomize treats this text as a regular expression that must match the whole word.
        let expression = |text| Regex::new(&format!("^(?:{text})$"));
        said(field).is_none_or(|text| expression(text).map_or(true, |own| own.is_match(word)))
    };
    admits("kind", PIN) && admits("group", labels::OPENCHOREO_GROUP)
}

/// Returns whether one operation of a JSON patch changes the release or the holds of a ReleasePin.
fn moves_pin(operation: &Value) -> bool {
    let path = operation["path"].as_str().unwrap_or_default();
    is_of_release(path.split('/').skip(1))
}

/// Returns whether a field path leads to the release or the holds of a ReleasePin, or to a parent of these fields.
fn is_of_release<'p>(path: impl Iterator<Item = &'p str>) -> bool {
    let parts: Vec<&str> = path.take(2).collect();
    matches!(
        parts.as_slice(),
        [] | ["spec"] | ["spec", "releaseRef" | "holds" | "*"]
    )
}

/// Returns whether a text contains `kind: ReleasePin`, with or without quotes.
fn names_pin(text: &str) -> bool {
    text.match_indices(PIN).any(|(at, word)| {
        let quote = ['"', '\'', '`', '\\'];
        let before = text.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(quote).trim_end_matches([' ', '\t']);
        let before = before.strip_suffix([':', '=']).unwrap_or_default();
        let before = before.trim_end_matches([' ', '\t']).trim_end_matches(quote);
        let after = text.get(at + word.len()..).unwrap_or_default();
        let after = after.strip_prefix("List").unwrap_or(after);
        before.ends_with("kind") && !after.starts_with(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        bounded_yaml::documents("test", text)
            .unwrap()
            .remove(0)
            .value
    }

    #[test]
    fn content_that_makes_or_changes_release_pins_is_found() {
        let (object, patch) = (Some(Found::Object), Some(Found::Patch));
        for (text, expected) in [
            // These objects mention ReleasePin but hide none.
            (
                "{kind: CustomResourceDefinition, spec: {group: openchoreo.dev, names: {kind: ReleasePin}}}",
                None,
            ),
            (
                "{kind: ClusterRole, rules: [{apiGroups: [openchoreo.dev], resources: [releasepins]}]}",
                None,
            ),
            (
                "{kind: Event, involvedObject: {apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, name: x}}",
                None,
            ),
            (
                "{kind: Deployment, metadata: {labels: {openchoreo.dev/component: cart}}}",
                None,
            ),
            (
                "{kind: Policy, spec: {kinds: [ReleasePin], message: a ReleasePin is needed}}",
                None,
            ),
            // These objects hide a ReleasePin, as an object or in a text.
            (
                "{kind: Graph, spec: {resources: [{template: {apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, spec: {}}}]}}",
                object,
            ),
            (
                "{kind: ConfigMap, data: {pin.yaml: \"apiVersion: openchoreo.dev/v1alpha1\\nkind: ReleasePin\\n\"}}",
                object,
            ),
            (
                "{kind: ConfigMap, data: {pin.json: '{\"kind\":\"ReleasePin\"}'}}",
                object,
            ),
            (
                "{kind: ConfigMap, data: {pins.json: '{\"kind\": \"ReleasePinList\"}'}}",
                object,
            ),
            (
                "{kind: ConfigMap, data: {text: 'kind: ReleasePinning'}}",
                None,
            ),
            // These kustomizations patch a ReleasePin, in a file or in the kustomization itself.
            (
                "{patches: [{path: p.yaml, target: {kind: ReleasePin}}]}",
                patch,
            ),
            (
                "{patches: [{path: p.yaml, target: {kind: Deployment}}]}",
                None,
            ),
            ("{patches: [{path: p.yaml}]}", None),
            // A target that names no kind can select ReleasePins.
            ("{patches: [{path: p.yaml, target: {name: cart}}]}", patch),
            ("{patches: [{path: p.yaml, target: {kind: ''}}]}", patch),
            (
                "{patches: [{path: p.yaml, target: {group: openchoreo.dev}}]}",
                patch,
            ),
            ("{patches: [{path: p.yaml, target: {group: apps}}]}", None),
            (
                "{patches: [{path: p.yaml, target: {kind: 'Release.+|Job'}}]}",
                patch,
            ),
            (
                "{patches: [{path: p.yaml, target: {kind: 'Deploy.*'}}]}",
                None,
            ),
            (
                "{kind: Route, spec: {rules: [{path: /x, target: {name: cart}}]}}",
                None,
            ),
            (
                "{patches: [{target: {kind: ReleasePin}, patch: '{kind: any, metadata: {name: any}, spec: {releaseRef: {name: y}}}'}]}",
                patch,
            ),
            (
                "{patches: [{target: {labelSelector: a=b}, patch: '{kind: any, spec: {holds: []}}'}]}",
                patch,
            ),
            (
                "{patches: [{target: {labelSelector: a=b}, patch: '{kind: any, spec: {replicas: 2}}'}]}",
                None,
            ),
            (
                "{patches: [{target: {kind: ReleasePin}, patch: '[{op: replace, path: /spec/releaseRef/name, value: x}]'}]}",
                patch,
            ),
            (
                "{patches: [{target: {name: cart}, patch: '[{op: replace, path: /spec/releaseRef/name, value: x}]'}]}",
                patch,
            ),
            (
                "{patches: [{target: {kind: ReleasePin}, patch: '[{op: add, path: /metadata/labels/x, value: x}]'}]}",
                None,
            ),
            (
                "{patches: [{target: {kind: Deployment}, patch: '[{op: replace, path: /spec, value: {}}]'}]}",
                None,
            ),
            (
                "{patches: [{patch: '{kind: ReleasePin, metadata: {name: x}, spec: {releaseRef: {name: y}}}'}]}",
                patch,
            ),
            (
                "{patches: [{patch: '{kind: ReleasePin, metadata: {name: x, labels: {a: b}}}'}]}",
                None,
            ),
            (
                "{patches: [{patch: '{kind: ReleasePin, $patch: delete, metadata: {name: x}}'}]}",
                patch,
            ),
            (
                "{spec: {kustomize: {patches: [{target: {kind: ReleasePin}, patch: '{'}]}}}",
                patch,
            ),
            (
                "{replacements: [{targets: [{select: {kind: ReleasePin}, fieldPaths: [spec.releaseRef.name]}]}]}",
                patch,
            ),
            (
                "{replacements: [{targets: [{select: {name: cart}, fieldPaths: [spec.releaseRef.name]}]}]}",
                patch,
            ),
            (
                "{replacements: [{targets: [{fieldPaths: ['spec.*']}]}]}",
                patch,
            ),
            (
                "{replacements: [{targets: [{select: {name: cart}, fieldPaths: [spec.template.spec]}]}]}",
                None,
            ),
            (
                "{replacements: [{targets: [{select: {kind: ReleasePin}, fieldPaths: [metadata.labels.x]}]}]}",
                None,
            ),
        ] {
            assert_eq!(find("", &read(text)), expected, "{text}");
        }
    }

    #[test]
    fn an_unknown_kind_of_our_groups_is_a_problem() {
        for (text, words) in [
            (
                "{apiVersion: openchoreo.dev/v1beta1, kind: ReleasePin}",
                "does not know the kind ReleasePin of openchoreo.dev/v1beta1",
            ),
            (
                "{apiVersion: core.choreo.dev/v1, kind: Project}",
                "does not know the kind Project",
            ),
            ("{apiVersion: openchoreo.dev/v1alpha1}", "without a kind"),
            ("{apiVersion: bowline.dev/v1alpha1, kind: AuditEntry}", ""),
            ("{apiVersion: openchoreo.dev.example/v1, kind: Project}", ""),
            ("{apiVersion: v1, kind: ConfigMap}", ""),
        ] {
            let found = problem(&read(text)).unwrap_or_default();
            assert!(
                found.contains(words) && found.is_empty() == words.is_empty(),
                "{text}: {found}"
            );
        }
    }

    #[test]
    fn a_template_is_told_by_its_words() {
        for (text, expected) in [
            ("{{ if .Values.x }}\nkind: ReleasePin\n{{ end }}", true),
            ("{ kind: 'ReleasePin', apiVersion: v }", true),
            ("kind: \"ReleasePin\"", true),
            ("local kind = 'ReleasePin';", true),
            ("// makes no ReleasePin", false),
            ("kind: Deployment # openchoreo.dev", false),
        ] {
            let found = problem_of_template("t", text.as_bytes());
            assert_eq!(found.is_some(), expected, "{text}");
        }
    }
}
