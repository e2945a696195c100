//! Reads and edits an object in the text of a file, where it is a document or an item of a list.

use bounded_yaml::edit::EditError;
use serde_json::Value;

use super::{Place, files};
use crate::api::lists;

fn no_document(place: &Place) -> EditError {
    EditError::NoDocument {
        origin: place.path.clone(),
        document: place.document,
    }
}

/// Parses the document that contains an object.
fn document(place: &Place, text: &str) -> Result<Value, EditError> {
    let documents = bounded_yaml::documents(&place.path, text)?;
    let found = documents.into_iter().nth(place.document);
    let found = found.map(|document| document.value);
    found.ok_or_else(|| no_document(place))
}

/// Parses the object at a place. Adds the apiVersion and the kind that a typed list leaves out.
pub(super) fn object_at(place: &Place, text: &str) -> Result<Value, EditError> {
    let objects = lists::objects(document(place, text)?).into_iter();
    let mut objects = objects.filter(|item| item.at == place.items);
    let found = objects.next().map(|item| item.value);
    found.ok_or_else(|| no_document(place))
}

/// Returns the text with new content for an object.
pub(super) fn with_object(place: &Place, text: &str, wanted: &Value) -> Result<String, EditError> {
    let mut document = document(place, text)?;
    let own = document.pointer_mut(&lists::pointer(&place.items));
    let own = own.ok_or_else(|| no_document(place))?;
    let mut wanted = wanted.clone();
    // In a typed list, the items leave out the apiVersion and the kind.
    for field in ["apiVersion", "kind"] {
        if own.get(field).is_none()
            && let Some(wanted) = wanted.as_object_mut()
        {
            wanted.remove(field);
        }
    }
    *own = wanted;
    bounded_yaml::edit::edit(&place.path, text, place.document, &document)
}

/// Returns the text without an object; None if the text becomes empty. A list without objects is removed too.
pub(super) fn without_object(place: &Place, text: &str) -> Result<Option<String>, EditError> {
    let mut document = document(place, text)?;
    let mut at = place.items.as_slice();
    while let Some((last, outer)) = at.split_last() {
        let list = document.pointer_mut(&lists::pointer(outer));
        let items = list.and_then(|list| list.get_mut("items"));
        let items = items.and_then(Value::as_array_mut);
        let items = items.filter(|items| *last < items.len());
        let items = items.ok_or_else(|| no_document(place))?;
        if items.len() > 1 {
            items.remove(*last);
            let edited = bounded_yaml::edit::edit(&place.path, text, place.document, &document)?;
            return Ok(Some(edited));
        }
        at = outer;
    }
    bounded_yaml::edit::remove(&place.path, text, place.document)
}

/// Returns the text with an additional object: in the list if the text is one list, otherwise as a new
/// document. None if the text is a JSON file with one object, because some tools read only the first one.
pub(super) fn with_another(
    path: &str,
    text: &str,
    object: &Value,
) -> Result<Option<String>, EditError> {
    let documents = bounded_yaml::documents(path, text)?;
    if let [only] = documents.as_slice()
        && lists::is_list(&only.value)
    {
        let mut list = only.value.clone();
        if let Some(items) = list.get_mut("items").and_then(Value::as_array_mut) {
            items.push(object.clone());
        }
        let edited = bounded_yaml::edit::edit(path, text, 0, &list);
        if edited.is_ok() || files::is_json(path) {
            return Ok(Some(edited?));
        }
    }
    let takes_one =
        files::is_json(path) && (documents.len() < 2 || !bounded_yaml::edit::is_json(text));
    match takes_one {
        true => Ok(None),
        false => Ok(Some(bounded_yaml::edit::append(path, text, object)?)),
    }
}

/// Returns whether a text already contains an object, even if bowline does not serve it.
pub(super) fn holds(path: &str, text: &str, document: &Value) -> Result<bool, EditError> {
    let known = bounded_yaml::documents(path, text)?;
    let known = known
        .into_iter()
        .flat_map(|known| lists::objects(known.value));
    let group = |value: &Value| {
        let version = value["apiVersion"].as_str().unwrap_or_default();
        version.split('/').next().map(str::to_owned)
    };
    let namespace = |value: &Value| value["metadata"]["namespace"].as_str().map(str::to_owned);
    let own = namespace(document);
    let mut known = known.map(|item| item.value);
    Ok(known.any(|known| {
        let same_namespace = match (namespace(&known), &own) {
            (Some(known), Some(own)) => known == *own,
            _ => true,
        };
        known["kind"] == document["kind"]
            && known["metadata"]["name"] == document["metadata"]["name"]
            && group(&known) == group(document)
            && same_namespace
    }))
}
