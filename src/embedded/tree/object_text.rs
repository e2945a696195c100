//! Objects in the text of a file: as documents of their own, or in lists.

use serde_json::Value;

use super::{Place, files};
use crate::api::lists;
use crate::yaml;
use crate::yaml::edit::EditError;

fn no_document(place: &Place) -> EditError {
    EditError::NoDocument {
        origin: place.path.clone(),
        document: place.document,
    }
}

/// Reads the document of a text that a place is in.
fn document(place: &Place, text: &str) -> Result<Value, EditError> {
    let documents = yaml::documents(&place.path, text)?;
    let found = documents.into_iter().nth(place.document);
    let found = found.map(|document| document.value);
    found.ok_or_else(|| no_document(place))
}

/// Reads the object at a place of a text, with the apiVersion and the kind that a typed list implies.
pub(super) fn object_at(place: &Place, text: &str) -> Result<Value, EditError> {
    let objects = lists::objects(document(place, text)?).into_iter();
    let mut objects = objects.filter(|item| item.at == place.items);
    let found = objects.next().map(|item| item.value);
    found.ok_or_else(|| no_document(place))
}

/// Makes an object of a text say something else.
pub(super) fn with_object(place: &Place, text: &str, wanted: &Value) -> Result<String, EditError> {
    let mut document = document(place, text)?;
    let own = document.pointer_mut(&lists::pointer(&place.items));
    let own = own.ok_or_else(|| no_document(place))?;
    let mut wanted = wanted.clone();
    // The items of a typed list leave out the apiVersion and the kind that the list implies.
    for field in ["apiVersion", "kind"] {
        if own.get(field).is_none()
            && let Some(wanted) = wanted.as_object_mut()
        {
            wanted.remove(field);
        }
    }
    *own = wanted;
    yaml::edit::edit(&place.path, text, place.document, &document)
}

/// Takes an object out of a text; None where nothing is left of it. A list that would be empty goes with its
/// last object.
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
            let edited = yaml::edit::edit(&place.path, text, place.document, &document)?;
            return Ok(Some(edited));
        }
        at = outer;
    }
    yaml::edit::remove(&place.path, text, place.document)
}

/// Adds an object to a text: to its list, where the text is one list, else as another document. None where
/// the text is JSON of one object, which some tools read as one object only.
pub(super) fn with_another(
    path: &str,
    text: &str,
    object: &Value,
) -> Result<Option<String>, EditError> {
    let documents = yaml::documents(path, text)?;
    if let [only] = documents.as_slice()
        && lists::is_list(&only.value)
    {
        let mut list = only.value.clone();
        if let Some(items) = list.get_mut("items").and_then(Value::as_array_mut) {
            items.push(object.clone());
        }
        let edited = yaml::edit::edit(path, text, 0, &list);
        if edited.is_ok() || files::is_json(path) {
            return Ok(Some(edited?));
        }
    }
    let takes_one = files::is_json(path) && (documents.len() < 2 || !yaml::edit::is_json(text));
    match takes_one {
        true => Ok(None),
        false => Ok(Some(yaml::edit::append(path, text, object)?)),
    }
}

/// Tells whether a text has an object already, be it one that is not served.
pub(super) fn holds(path: &str, text: &str, document: &Value) -> Result<bool, EditError> {
    let known = yaml::documents(path, text)?;
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
