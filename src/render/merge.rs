//! Merges parameters: maps are merged at every depth, lists are replaced, and a null removes its key.
//!
//! The rules are those of JSON merge patches (RFC 7396). The module `schema` checks the parameters.

use serde_json::Value;

use crate::api::Object;

/// Merges the parameters `over` into the parameters `base`.
///
/// - A map in `over` is merged key by key into the map that `base` has at the same key, at every depth. If `base` has
///   another value there, the map replaces it.
/// - A null in `over` removes its key from `base`. A map that `base` does not have yet is added without its null
///   keys.
/// - A list or a scalar in `over` replaces the value in `base`. Nulls inside a list are kept.
/// - A null in `base` is kept if `over` does not have its key.
pub fn merge(base: &mut Object, over: &Object) {
    // The merge does not recurse, because the maps of a user may be nested very deeply.
    let mut pairs = vec![(base, over)];
    while let Some((base, over)) = pairs.pop() {
        for (key, value) in over {
            match value {
                Value::Null => {
                    base.remove(key);
                }
                Value::Object(_) => {
                    let slot = base.entry(key.as_str()).or_insert(Value::Null);
                    if !slot.is_object() {
                        *slot = Value::Object(Object::new());
                    }
                }
                _ => {
                    base.insert(key.clone(), value.clone());
                }
            }
        }
        for (key, value) in base.iter_mut() {
            if let (Value::Object(base), Some(Value::Object(over))) = (value, over.get(key)) {
                pairs.push((base, over));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        serde_json::from_value(value).unwrap()
    }

    fn merged(base: &Object, over: &Object) -> Object {
        let mut out = base.clone();
        merge(&mut out, over);
        out
    }

    #[test]
    fn what_over_does_to_base() {
        for (base, over, expected) in [
            (json!({}), json!({}), json!({})),
            (json!({"a": 1}), json!({}), json!({"a": 1})),
            (json!({"a": 1}), json!({"a": 2}), json!({"a": 2})),
            (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            (json!({"a": 1}), json!({"a": null}), json!({})),
            (json!({}), json!({"a": null}), json!({})),
            (json!({"a": null}), json!({}), json!({"a": null})),
            (json!({"a": null}), json!({"a": 1}), json!({"a": 1})),
            (
                json!({"a": null}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1}}),
            ),
            (
                json!({"a": {"n": null}}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1, "n": null}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({"a": [1, 2]}), json!({"a": []}), json!({"a": []})),
            (json!({"a": {"b": 1}}), json!({"a": [1]}), json!({"a": [1]})),
            (
                json!({"a": [1]}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1}}),
            ),
            (json!({"a": 1}), json!({"a": {"b": null}}), json!({"a": {}})),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {}}),
                json!({"a": {"b": 1}}),
            ),
            (json!({"a": {"b": 1}}), json!({"a": 1}), json!({"a": 1})),
            (
                json!({"a": {"b": {"c": 1, "d": 2}}}),
                json!({"a": {"b": {"c": null, "e": 3}}}),
                json!({"a": {"b": {"d": 2, "e": 3}}}),
            ),
            (
                json!({}),
                json!({"a": {"b": {"c": null}}}),
                json!({"a": {"b": {}}}),
            ),
            (
                json!({}),
                json!({"a": [null, {"b": null}]}),
                json!({"a": [null, {"b": null}]}),
            ),
            (
                json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "replicas": 1}),
                json!({"resources": {"limits": {"cpu": "4"}}, "replicas": 3}),
                json!({"resources": {"limits": {"cpu": "4", "memory": "1Gi"}}, "replicas": 3}),
            ),
        ] {
            let shown = format!("{base} over {over}");
            assert_eq!(
                Value::Object(merged(&object(base), &object(over))),
                expected,
                "{shown}"
            );
        }
    }

    #[test]
    fn depth_is_no_danger() {
        let mut deep = json!(1);
        for _ in 0..1_000 {
            deep = json!({"a": deep});
        }
        let deep = object(deep);
        assert_eq!(merged(&Object::new(), &deep), deep);
        assert_eq!(merged(&deep, &deep), deep);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..9i64).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_object() -> impl Strategy<Value = Object> {
        prop::collection::btree_map("[a-d]", any_value(), 0..4)
            .prop_map(|map| map.into_iter().collect())
    }

    /// Returns objects without nulls. If a key has a map as its value in one of the objects, it has a map in all of
    /// them.
    fn shaped() -> impl Strategy<Value = Object> {
        let flat = prop::collection::btree_map("[xy]", (0..9i64).prop_map(Value::from), 0..3)
            .prop_map(|map| map.into_iter().collect::<Object>());
        flat.prop_recursive(3, 30, 3, |inner| {
            (
                prop::collection::btree_map("[xy]", (0..9i64).prop_map(Value::from), 0..3),
                prop::collection::btree_map("[mn]", inner.prop_map(Value::Object), 0..3),
                prop::option::of(prop::collection::vec(0..9i64, 0..3)),
            )
                .prop_map(|(scalars, maps, list)| {
                    scalars
                        .into_iter()
                        .chain(maps)
                        .chain(list.map(|list| ("list".to_owned(), json!(list))))
                        .collect()
                })
        })
    }

    fn has_null(object: &Object) -> bool {
        object.values().any(|value| match value {
            Value::Null => true,
            Value::Object(inner) => has_null(inner),
            _ => false,
        })
    }

    proptest! {
        #[test]
        fn merging_twice_changes_nothing(base in any_object(), over in any_object()) {
            let once = merged(&base, &over);
            prop_assert_eq!(merged(&once, &over), once);
        }

        #[test]
        fn nothing_over_something_is_something(base in any_object()) {
            prop_assert_eq!(merged(&base, &Object::new()), base);
        }

        #[test]
        fn over_nothing_only_its_nulls_go(over in any_object()) {
            let out = merged(&Object::new(), &over);
            prop_assert!(!has_null(&out));
            if !has_null(&over) {
                prop_assert_eq!(out, over);
            }
        }

        #[test]
        fn order_of_merging_does_not_matter_where_shapes_agree(
            a in shaped(), b in shaped(), c in shaped()
        ) {
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        }

        #[test]
        fn keys_that_over_does_not_have_stay(base in any_object(), over in any_object()) {
            let out = merged(&base, &over);
            for (key, value) in &base {
                if !over.contains_key(key) {
                    prop_assert_eq!(out.get(key), Some(value));
                }
            }
            for key in out.keys() {
                prop_assert!(base.contains_key(key) || over.contains_key(key));
            }
        }
    }
}
