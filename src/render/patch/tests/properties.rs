//! Tests properties of patch operations with random resources, paths and values.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::path::Segment;
use super::super::{PatchVerb, Path, apply, escape, parse_index};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..9i64).prop_map(Value::from),
        prop_oneof![Just("main"), Just("x"), Just("a/b")].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 60, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_container() -> impl Strategy<Value = Value> {
    any_json().prop_map(|value| match value {
        Value::Array(_) | Value::Object(_) => value,
        other => json!([other]),
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop_oneof![Just("a"), Just("b"), Just("name"), Just("0"), Just("-"), Just("a/b"), Just("[*]")]
            .prop_map(str::to_owned),
        1 => "\\PC{1,4}",
    ]
}

fn any_path() -> impl Strategy<Value = Path> {
    let literal = prop_oneof![
        key().prop_map(|text| format!("'{}'", escape(&text))),
        (-2..9i64).prop_map(|number| number.to_string()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(|n| json!(n).to_string()),
    ];
    let fields = prop::collection::vec(key(), 0..3).prop_map(|fields| {
        fields
            .iter()
            .map(|field| format!("['{}']", escape(field)))
            .collect::<String>()
    });
    let condition = (fields, prop_oneof![Just("=="), Just("!=")], literal)
        .prop_map(|(fields, operator, literal)| format!("@{fields}{operator}{literal}"));
    let segment = prop_oneof![
        4 => key().prop_map(|key| escape(&key)),
        1 => Just("[*]".to_owned()),
        1 => prop::collection::vec(condition, 1..3).prop_map(|all| format!("[?({})]", all.join(" && "))),
    ];
    prop::collection::vec(segment, 0..5).prop_map(|segments| {
        let text: String = segments
            .iter()
            .map(|segment| format!("/{segment}"))
            .collect();
        Path::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    })
}

/// Adds to `out` all paths at which `add` can add a value: one new key for each map, and all indices of each list.
fn additions(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            out.push(format!("{path}/fresh"));
            for (key, value) in map {
                additions(value, format!("{path}/{}", escape(key)), out);
            }
        }
        Value::Array(items) => {
            out.extend((0..=items.len()).map(|at| format!("{path}/{at}")));
            for (at, value) in items.iter().enumerate() {
                additions(value, format!("{path}/{at}"), out);
            }
        }
        _ => {}
    }
}

fn any_verb() -> impl Strategy<Value = PatchVerb> {
    prop_oneof![
        Just(PatchVerb::Add),
        Just(PatchVerb::Replace),
        Just(PatchVerb::Remove),
        Just(PatchVerb::Merge)
    ]
}

proptest! {
    #[test]
    fn paths_survive_being_written(path in any_path()) {
        prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "[/\\[\\]?()@.'\"=!&*~0-9a é-]{0,40}") {
        match Path::parse(&text) {
            Ok(path) => prop_assert_eq!(Path::parse(&path.to_string()), Ok(path)),
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.column)),
        }
    }

    #[test]
    fn all_or_nothing(resource in any_json(), verb in any_verb(), path in any_path(), value in prop::option::of(any_json())) {
        let mut patched = resource.clone();
        if apply(&mut patched, verb, &path, value.as_ref()).is_err() {
            prop_assert_eq!(patched, resource);
        }
    }

    #[test]
    fn removing_what_was_added_restores(
        resource in any_container(), place in any::<prop::sample::Index>(), value in any_json()
    ) {
        let mut places = Vec::new();
        additions(&resource, String::new(), &mut places);
        let path = Path::parse(place.get(places.as_slice()).as_str()).unwrap();
        let mut patched = resource.clone();
        prop_assert!(apply(&mut patched, PatchVerb::Add, &path, Some(&value)).is_ok());
        prop_assert_ne!(&patched, &resource);
        prop_assert_eq!(apply(&mut patched, PatchVerb::Remove, &path, None), Ok(0));
        prop_assert_eq!(patched, resource);
    }

    #[test]
    fn adding_twice_is_adding_once_to_maps(resource in any_json(), path in any_path(), value in any_json()) {
        let segments = path.segments.into_iter();
        let path = Path {
            segments: segments
                .filter(|segment| matches!(segment, Segment::Key(key) if key != "-" && parse_index(key).is_none()))
                .collect(),
        };
        let mut once = resource;
        if apply(&mut once, PatchVerb::Add, &path, Some(&value)).is_ok() {
            let mut twice = once.clone();
            prop_assert!(apply(&mut twice, PatchVerb::Add, &path, Some(&value)).is_ok());
            prop_assert_eq!(twice, once);
        }
    }
}
