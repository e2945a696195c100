//! Reads and edits an object in the text of a file. The object is a document of the file or an item of a list.

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

/// Parses the document of a file that contains the object at `place`.
fn document(place: &Place, text: &str) -> Result<Value, EditError> {
    let documents = bounded_yaml::documents(&place.path, text)?;
    let found = documents.into_iter().nth(place.document);
    let found = found.map(|document| document.value);
    found.ok_or_else(|| no_document(place))
}

/// Parses the object at a place in the text of a file. In a typed list, the items have no apiVersion and kind, so the
/// function adds these two fields.
pub(super) fn object_at(place: &Place, text: &str) -> Result<Value, EditError> {
    let objects = lists::objects(document(place, text)?).into_iter();
    let mut objects = objects.filter(|item| item.at == place.items);
    let found = objects.next().map(|item| item.value);
    found.ok_or_else(|| no_document(place))
}

/// Returns the text of a file in which the object at `place` has the new content `wanted`.
pub(super) fn with_object(place: &Place, text: &str, wanted: &Value) -> Result<String, EditError> {
    let mut document = document(place, text)?;
    let own = document.pointer_mut(&lists::pointer(&place.items));
    let own = own.ok_or_else(|| no_document(place))?;
    let mut wanted = wanted.clone();
    // The items of a typed list have no apiVersion and kind, so these fields are not written.
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

/// Returns the text of a file without the object at `place`. A list that becomes empty is removed too. None if the
/// whole text becomes empty.
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

/// Returns the text of a file with one more object. If the text is one list, the object becomes an item of it,
/// otherwise a new document. None for a JSON file with one object, because some tools read only the first one.
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

/// Returns whether the text of a file already contains an object with this kind and name, even if bowline does not
/// read it from there.
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
