//! Finds the objects inside lists: `kind: List`, typed lists such as ReleasePinList, and nested lists.
//!
//! Kubernetes tools handle every object with an array `items` as a list, and apply the items one by one. An
//! item of a typed list may leave out its apiVersion and kind, because the kind of the list determines both.

use serde_json::Value;

/// One object of a YAML or JSON document.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The path to the object: its index in each array `items`, the outermost list first. Empty if the
    /// document itself is the object.
    pub at: Vec<usize>,
    /// The object. If it left out its apiVersion and kind, they are added from its typed list.
    pub value: Value,
}

/// Returns whether Kubernetes tools handle a value as a list: the value has a kind and an array `items`.
pub fn is_list(value: &Value) -> bool {
    value["kind"].is_string() && value["items"].is_array()
}

/// Returns the objects in the lists of a document; the document itself if it is not a list.
pub fn objects(document: Value) -> Vec<Item> {
    let mut found = Vec::new();
    flatten(document, Vec::new(), &mut found);
    found
}

fn flatten(mut value: Value, at: Vec<usize>, found: &mut Vec<Item>) {
    if !is_list(&value) {
        found.push(Item { at, value });
        return;
    }
    let kind = value["kind"].as_str().unwrap_or_default();
    let kind = kind.strip_suffix("List").unwrap_or_default().to_owned();
    let version = value["apiVersion"].take();
    let Value::Array(items) = value["items"].take() else {
        return;
    };
    for (index, mut item) in items.into_iter().enumerate() {
        if let Some(fields) = item.as_object_mut()
            && !kind.is_empty()
            && !fields.contains_key("kind")
            && !fields.contains_key("apiVersion")
        {
            fields.insert("apiVersion".to_owned(), version.clone());
            fields.insert("kind".to_owned(), kind.as_str().into());
        }
        let mut at = at.clone();
        at.push(index);
        flatten(item, at, found);
    }
}

/// Returns the JSON pointer to an object in its document. `at` is [`Item::at`].
pub fn pointer(at: &[usize]) -> String {
    at.iter().map(|index| format!("/items/{index}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_item_of_every_list_is_an_object() {
        let pin = |name: &str| json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin", "metadata": {"name": name}});
        let bare = |name: &str| json!({"metadata": {"name": name}});
        let list = |kind: &str, items: Value| json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": kind, "items": items});
        for (document, expected) in [
            (pin("a"), vec![(vec![], pin("a"))]),
            (list("List", json!([])), vec![]),
            (
                list("List", json!([pin("a"), pin("b")])),
                vec![(vec![0], pin("a")), (vec![1], pin("b"))],
            ),
            (
                list(
                    "List",
                    json!([
                        list("ReleasePinList", json!([bare("a"), pin("b")])),
                        pin("c")
                    ]),
                ),
                vec![
                    (vec![0, 0], pin("a")),
                    (vec![0, 1], pin("b")),
                    (vec![1], pin("c")),
                ],
            ),
            // The items of a plain List get no kind from the list, and a value without a kind is not a list.
            (list("List", json!([bare("a")])), vec![(vec![0], bare("a"))]),
            (
                json!({"items": [pin("a")]}),
                vec![(vec![], json!({"items": [pin("a")]}))],
            ),
        ] {
            let found = objects(document.clone()).into_iter();
            let found: Vec<(Vec<usize>, Value)> = found.map(|item| (item.at, item.value)).collect();
            assert_eq!(found, expected, "{document}");
            for (at, value) in &found {
                let there = document.pointer(&pointer(at)).unwrap();
                assert_eq!(there["metadata"], value["metadata"]);
            }
        }
    }
}
