//! Determines which names of a CustomResourceDefinition are free, because no other definition of its API group uses
//! them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The names of a definition that are accepted, and the conflict because of which others are not.
pub struct Naming {
    /// The value of `status.acceptedNames`.
    pub accepted: Value,
    /// The reason and the message of the last name conflict; None if all names are accepted.
    pub conflict: Option<(&'static str, String)>,
}

/// Determines the accepted names of a definition, by comparing them with the accepted names of the other definitions
/// in its group.
pub fn of(definition: &Value, others: &[Value]) -> Naming {
    let names = &definition["spec"]["names"];
    let held = &definition["status"]["acceptedNames"];
    let (resources, kinds) = taken(definition, others);
    let mut accepted = held.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    let mut settle = |key: &str, reason: &'static str, taken: &BTreeSet<&str>| {
        let wanted: Vec<&str> = texts(&names[key]);
        let had: Vec<&str> = texts(&held[key]);
        let used: Vec<String> = wanted
            .iter()
            .filter(|name| !had.contains(name) && taken.contains(*name))
            .map(|name| format!("{name:?} is already in use"))
            .collect();
        match used.as_slice() {
            [] => copy(&mut accepted, key, &names[key]),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    };
    settle("plural", "PluralConflict", &resources);
    settle("singular", "SingularConflict", &resources);
    settle("shortNames", "ShortNamesConflict", &resources);
    settle("kind", "KindConflict", &kinds);
    settle("listKind", "ListKindConflict", &kinds);
    copy(&mut accepted, "categories", &names["categories"]);
    for always in ["plural", "kind"] {
        accepted.entry(always).or_insert_with(|| "".into());
    }
    Naming {
        accepted: Value::Object(accepted),
        conflict,
    }
}

/// Returns the names that other definitions of the same group use: the names of resources, and the kinds.
fn taken<'o>(definition: &Value, others: &'o [Value]) -> (BTreeSet<&'o str>, BTreeSet<&'o str>) {
    let mut resources = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for other in others {
        if other["spec"]["group"] != definition["spec"]["group"]
            || other["metadata"]["name"] == definition["metadata"]["name"]
        {
            continue;
        }
        let names = &other["status"]["acceptedNames"];
        for key in ["plural", "singular", "shortNames"] {
            resources.extend(texts(&names[key]));
        }
        for key in ["kind", "listKind"] {
            kinds.extend(texts(&names[key]));
        }
    }
    (resources, kinds)
}

/// Returns the non-empty strings in a value that is a string or a list.
fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().into_iter().flatten();
    let all = list.chain([value]).filter_map(Value::as_str);
    all.filter(|name| !name.is_empty()).collect()
}

fn copy(into: &mut Map<String, Value>, key: &str, value: &Value) {
    match value.is_null() {
        true => into.remove(key),
        false => into.insert(key.to_owned(), value.clone()),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::of;

    fn named(name: &str, names: Value) -> Value {
        json!({"metadata": {"name": name}, "spec": {"group": "g", "names": names}})
    }

    #[test]
    fn the_last_conflict_is_named() {
        let mut first = named(
            "cogs.g",
            json!({"plural": "cogs", "singular": "cog", "kind": "Cog", "listKind": "CogList", "shortNames": ["c"]}),
        );
        first["status"] = json!({"acceptedNames": first["spec"]["names"]});
        for (names, wanted) in [
            (
                json!({"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}),
                None,
            ),
            (
                json!({"plural": "gears", "singular": "cogs", "kind": "Gear", "listKind": "GearList"}),
                Some("SingularConflict"),
            ),
            (
                json!({"plural": "gears", "singular": "gear", "shortNames": ["g", "c"], "kind": "Gear", "listKind": "GearList"}),
                Some("ShortNamesConflict"),
            ),
            (
                json!({"plural": "gears", "singular": "gear", "kind": "CogList", "listKind": "GearList"}),
                Some("KindConflict"),
            ),
            (
                json!({"plural": "gears", "singular": "cog", "kind": "Cog", "listKind": "CogList"}),
                Some("ListKindConflict"),
            ),
        ] {
            let second = named("gears.g", names.clone());
            let found = of(&second, std::slice::from_ref(&first));
            assert_eq!(found.conflict.as_ref().map(|(reason, _)| *reason), wanted);
            assert_eq!(found.accepted["plural"], "gears");
            if wanted.is_none() {
                assert_eq!(found.accepted, names);
            }
        }
    }

    #[test]
    fn its_own_names_and_other_groups_do_not_matter() {
        let mut first = named("cogs.g", json!({"plural": "cogs", "kind": "Cog"}));
        first["status"] = json!({"acceptedNames": first["spec"]["names"]});
        assert!(of(&first, std::slice::from_ref(&first)).conflict.is_none());
        let mut elsewhere = named("gears.h", json!({"plural": "gears", "kind": "Cog"}));
        elsewhere["spec"]["group"] = json!("h");
        assert!(of(&elsewhere, &[first]).conflict.is_none());
    }
}
