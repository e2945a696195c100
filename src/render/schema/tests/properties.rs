//! Tests properties of checks with random schemas and values.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::node::Node;
use super::super::{Object, Schema};
use super::object;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9i64).prop_map(Value::from),
        prop_oneof![Just(1.0), Just(1.5), Just(-0.0), Just(1e300)].prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-e]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_parameters() -> impl Strategy<Value = Object> {
    prop::collection::btree_map("[a-e]", any_json(), 0..5).prop_map(|map| map.into_iter().collect())
}

/// Returns texts of the shorthand. Many of them are valid.
fn any_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        (
            -3..9i64,
            prop::option::of(-9..-3i64),
            prop::option::of(9..12i64)
        )
            .prop_map(|(default, min, max)| {
                let min = min.map(|min| format!(" minimum={min}")).unwrap_or_default();
                let max = max.map(|max| format!(" maximum={max}")).unwrap_or_default();
                format!("integer | default={default}{min}{max}")
            }),
        Just("integer".to_owned()),
        Just("number | exclusiveMinimum=0".to_owned()),
        Just("string | enum=a,b,ab default=a".to_owned()),
        Just("string | maxLength=2 required=true".to_owned()),
        Just("boolean | default=false nullable=true".to_owned()),
        Just("any".to_owned()),
        Just("object | default={\"a\":[null]}".to_owned()),
        Just("object | maxProperties=2".to_owned()),
    ];
    let around = prop_oneof![
        Just("[]integer".to_owned()),
        Just("[]map<string> | uniqueItems=true".to_owned()),
        Just("map<[]integer> | default={\"x\":[1.0]} minProperties=1".to_owned()),
        Just("map<number>".to_owned()),
    ];
    prop_oneof![3 => scalar, 1 => around]
}

fn any_shorthand() -> impl Strategy<Value = Object> {
    let map = |inner: BoxedStrategy<Value>| {
        prop::collection::btree_map("[a-e]", inner, 1..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    };
    let flat = map(any_text().prop_map(Value::from).boxed());
    flat.prop_recursive(3, 20, 4, move |inner| {
        map(prop_oneof![any_text().prop_map(Value::from), inner].boxed())
    })
    .prop_map(object)
}

/// Returns OpenAPI schemas. Many of them are invalid.
fn any_openapi() -> impl Strategy<Value = Value> {
    let keyword = prop_oneof![
        prop_oneof![
            Just("string"),
            Just("integer"),
            Just("array"),
            Just("object")
        ]
        .prop_map(|name| ("type", json!(name))),
        any_json().prop_map(|value| ("default", value)),
        any_json().prop_map(|value| ("enum", value)),
        any_json().prop_map(|value| ("minimum", value)),
        (0..3u64).prop_map(|count| ("maxProperties", json!(count))),
        (0..3u64).prop_map(|count| ("minItems", json!(count))),
        any_json().prop_map(|value| ("required", value)),
        "[a-c(\\[*?]{0,4}".prop_map(|pattern| ("pattern", json!(pattern))),
        any::<bool>().prop_map(|flag| ("nullable", json!(flag))),
    ];
    let schema = |keywords: Vec<(&'static str, Value)>| {
        Value::Object(
            keywords
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    };
    let leaf = prop::collection::vec(keyword.clone(), 0..3).prop_map(schema);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let nested = prop_oneof![
            prop::collection::btree_map("[a-e]", inner.clone(), 0..4)
                .prop_map(|map| ("properties", json!(map))),
            inner.clone().prop_map(|schema| ("items", schema)),
            inner
                .clone()
                .prop_map(|schema| ("additionalProperties", schema)),
            inner.clone().prop_map(|schema| ("not", schema)),
            prop::collection::vec(inner, 0..3).prop_map(|schemas| ("anyOf", json!(schemas))),
        ];
        (nested, prop::collection::vec(keyword.clone(), 0..2)).prop_map(
            move |(nested, keywords)| schema(keywords.into_iter().chain([nested]).collect()),
        )
    })
}

/// Checks parameters twice, and asserts that the second check changes nothing.
fn check_idempotence(schema: &Schema, value: Object) -> Result<(), TestCaseError> {
    let once = schema.fit(value);
    let twice = schema.fit(once.value.clone());
    prop_assert_eq!(&twice.value, &once.value);
    prop_assert_eq!(&twice.errors, &once.errors);
    prop_assert!(twice.dropped.is_empty());
    Ok(())
}

fn requires_nothing(node: &Node) -> bool {
    node.required.is_empty() && node.rules.is_empty()
}

proptest! {
    #[test]
    fn fitting_twice_is_fitting_once(shorthand in any_shorthand(), value in any_parameters()) {
        let schema = Schema::parse(&shorthand).unwrap();
        check_idempotence(&schema, value)?;
    }

    #[test]
    fn defaults_fit(shorthand in any_shorthand()) {
        let schema = Schema::parse(&shorthand).unwrap();
        let found = schema.fit(Object::new());
        prop_assert!(found.dropped.is_empty());
        if requires_nothing(&schema.root) {
            prop_assert!(found.errors.is_empty(), "{:?}", found.errors);
        }
        // The only possible error is that a required parameter is missing at the outermost level.
        for error in &found.errors {
            prop_assert!(error.message.starts_with("is missing"), "{}", error);
            prop_assert!(schema.root.required.contains(&error.path), "{}", error);
        }
    }

    #[test]
    fn openapi_never_breaks(properties in prop::collection::btree_map("[a-e]", any_openapi(), 0..4), value in any_parameters()) {
        let schema = object(json!({"type": "object", "properties": properties}));
        match Schema::parse(&schema) {
            Ok(schema) => {
                prop_assert_eq!(schema.fit(Object::new()).errors, vec![]);
                check_idempotence(&schema, value)?;
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                prop_assert!(problems.iter().all(|problem| problem.path.starts_with("properties")));
            }
        }
    }

    #[test]
    fn no_text_breaks_the_shorthand(text in "(string|integer|\\[\\]|map<|>| |any){0,4}[|]?[ a-z=,\"'\\[\\]{}0-9é.:-]{0,30}") {
        let columns = text.chars().count() + 1;
        if let Err(problems) = Schema::parse(&object(json!({"a": text}))) {
            for problem in problems {
                prop_assert_eq!(&problem.path, "a");
                let column = problem.message.strip_prefix("column ").and_then(|rest| rest.split(':').next()).unwrap();
                prop_assert!((1..=columns).contains(&column.parse::<usize>().unwrap()), "{}", problem);
            }
        }
    }

    #[test]
    fn anything_may_be_a_schema(schema in any_parameters(), value in any_parameters()) {
        if let Ok(schema) = Schema::parse(&schema) {
            check_idempotence(&schema, value)?;
        }
    }
}
