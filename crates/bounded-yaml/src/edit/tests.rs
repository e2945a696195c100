use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Changes the value of the first document of a text with `change`, and returns the edited text.
fn edited(text: &str, change: impl FnOnce(&mut Value)) -> Result<String, EditError> {
    let mut wanted = documents("a.yaml", text).unwrap()[0].value.clone();
    change(&mut wanted);
    edit("a.yaml", text, 0, &wanted)
}

/// Returns the number of lines that were added, and of lines that were removed.
fn changed_lines(before: &str, after: &str) -> (usize, usize) {
    let diff = similar::TextDiff::from_lines(before, after);
    let count = |tag| {
        diff.iter_all_changes()
            .filter(|change| change.tag() == tag)
            .count()
    };
    (
        count(similar::ChangeTag::Insert),
        count(similar::ChangeTag::Delete),
    )
}

#[test]
fn one_scalar_changes_and_nothing_else() {
    let set = |value: &mut Value| value["spec"]["sourceRef"]["name"] = "cart-2".into();
    for (before, after) in [
        (
            "spec:\n  sourceRef:\n    name: cart-1 # why\n",
            "cart-2 # why",
        ),
        (
            "spec:\r\n  sourceRef:\r\n    name: cart-1\r\n  x: 1\r\n",
            "name: cart-2\r\n",
        ),
        (
            "spec: {sourceRef: {name: cart-1}, x: [1, 2]}\n",
            "{name: cart-2}",
        ),
        (
            "spec:\n  sourceRef: {name: 'cart-1'} # a\tb\n",
            "{name: 'cart-2'} # a\tb",
        ),
        (
            "spec:\n      sourceRef:\n         name: \"cart-1\"\n",
            "name: \"cart-2\"",
        ),
        (
            "spec:\n  sourceRef:\n    name: &r cart-1\n",
            "name: &r cart-2",
        ),
        (
            "spec:\n  sourceRef:\n    name: !!str cart-1\n",
            "name: !!str cart-2",
        ),
        (
            "spec:\n  sourceRef:\n    name: >-\n      cart-1\n  x: 1\n",
            ">-\n      cart-2\n  x",
        ),
        (
            "# ä\nspec:\n  note: |\n    name: cart-1\n  sourceRef:\n    name: cart-1\n",
            "sourceRef:\n    name: cart-2",
        ),
        (
            "\u{feff}spec:\n  sourceRef:\n    name: cart-1",
            "name: cart-2",
        ),
        ("spec:\n  ? sourceRef\n  : name: cart-1\n", ": name: cart-2"),
    ] {
        let edited = edited(before, set).unwrap();
        assert!(edited.contains(after), "{before:?} became {edited:?}");
        assert_eq!(
            changed_lines(before, &edited),
            (1, 1),
            "{before:?} became {edited:?}"
        );
    }
}

#[test]
fn what_cannot_be_edited_alone_is_refused() {
    let set = |value: &mut Value| value["spec"]["name"] = "b".into();
    for (text, why) in [
        ("x: &a a\nspec:\n  name: *a\n", "alias"),
        ("spec:\n  name: &a a\nx: *a\n", "more than was asked"),
        ("spec: &s\n  name: a\nx: *s\n", "more than was asked"),
        ("spec:\n  name: |\n    a\n    b\n", "several lines"),
    ] {
        let error = edited(text, set).unwrap_err().to_string();
        assert!(error.contains(why), "{text:?}: {error}");
    }
    let gone = |value: &mut Value| {
        value.as_object_mut().unwrap().remove("x");
    };
    let error = edited("- 1\n", |value| *value = json!({})).unwrap_err();
    assert!(
        matches!(error, EditError::NotSafe { line: 1, .. }),
        "{error}"
    );
    assert!(edited("x: 1\n", gone).is_err());
}

#[test]
fn entries_come_and_go_as_lines() {
    let holds = json!([{"id": "h", "owner": "ana", "since": "2026-01-01T00:00:00Z"}]);
    for (before, after) in [
        (
            "spec:\n  a: 1 # one\n# end\n",
            "spec:\n  a: 1 # one\n  holds:\n    - id: h\n      owner: ana\n      since: \"2026-01-01T00:00:00Z\"\n# end\n",
        ),
        (
            "spec:\r\n    l:\r\n    - 1\r\n    a: |\r\n       text\r\n\r\nz: 1\r\n",
            "spec:\r\n    l:\r\n    - 1\r\n    a: |\r\n       text\r\n    holds:\r\n    - id: h\r\n      owner: ana\r\n      since: \"2026-01-01T00:00:00Z\"\r\n\r\nz: 1\r\n",
        ),
        (
            "spec: {a: 1}",
            "spec: {a: 1, holds: [{id: h, owner: ana, since: \"2026-01-01T00:00:00Z\"}]}",
        ),
        (
            "spec:\n  holds: []\n  a: 1\n",
            "spec:\n  holds: [{id: h, owner: ana, since: \"2026-01-01T00:00:00Z\"}]\n  a: 1\n",
        ),
        (
            "spec:\n  holds: # none\n  a: 1\n",
            "spec:\n  holds: # none\n    - id: h\n      owner: ana\n      since: \"2026-01-01T00:00:00Z\"\n  a: 1\n",
        ),
    ] {
        let wanted = holds.clone();
        let edited = edited(before, |value| value["spec"]["holds"] = wanted).unwrap();
        assert_eq!(edited, after);
        // The reverse edit must restore the text, except in these cases.
        if before.contains("holds") || before.contains('{') {
            continue;
        }
        let back = self::edited(&edited, |value| {
            value["spec"].as_object_mut().unwrap().remove("holds");
        });
        assert_eq!(back.unwrap(), before);
    }
    let list = "l:\n  # first\n  - a: 1\n    b: 2\n  # second\n  - a: 3\n  - a: 4 # last\n";
    let without = edited(list, |value| {
        value["l"].as_array_mut().unwrap().remove(1);
    });
    assert_eq!(
        without.unwrap(),
        "l:\n  # first\n  - a: 1\n    b: 2\n  # second\n  - a: 4 # last\n"
    );
    let more = edited(list, |value| {
        value["l"].as_array_mut().unwrap().push(json!({"a": 5}))
    });
    assert_eq!(more.unwrap(), format!("{list}  - a: 5\n"));
}

#[test]
fn documents_are_cut_out_and_appended() {
    let text = "# head\na: 1\n---\n# second\nb: |\n  --- no\n---\nc: 3\n";
    for (at, left) in [
        (0, "# second\nb: |\n  --- no\n---\nc: 3\n"),
        (1, "# head\na: 1\n---\nc: 3\n"),
        (2, "# head\na: 1\n---\n# second\nb: |\n  --- no\n"),
    ] {
        assert_eq!(remove("a.yaml", text, at).unwrap().unwrap(), left);
    }
    assert_eq!(remove("a.yaml", "a: 1\n", 0).unwrap(), None);
    assert!(remove("a.yaml", "a: 1\n", 1).is_err());
    for (text, appended) in [
        ("", "b: 2\n"),
        ("# head\n", "# head\n---\nb: 2\n"),
        ("a: 1", "a: 1\n---\nb: 2\n"),
        ("a: 1\r\n", "a: 1\r\n---\r\nb: 2\r\n"),
        ("a: 1\n...\n", "a: 1\n...\n---\nb: 2\n"),
    ] {
        let found = append("a.yaml", text, &json!({"b": 2})).unwrap();
        assert_eq!(found, appended, "{text:?}");
    }
    // Appending fails for a text that cannot be parsed, and for a text that would get another meaning.
    for text in ["mode: 0644\n", "a: [1\n", "a: 'x\n"] {
        assert!(
            append("a.yaml", text, &json!({"b": 2})).is_err(),
            "{text:?}"
        );
    }
}

#[test]
fn json_stays_json_and_every_other_byte_stays() {
    let hold = || json!([{"id": "h"}]);
    for (before, after) in [
        (
            r#"{"spec":{"name":"a","n":1}}"#,
            r#"{"spec":{"name":"b","n":1, "holds": [{"id": "h"}]}}"#,
        ),
        (
            "{\n\t\"spec\": {\n\t\t\"name\": \"a\",\n\t\t\"n\": 1\n\t}\n}\n",
            "{\n\t\"spec\": {\n\t\t\"name\": \"b\",\n\t\t\"n\": 1,\n\t\t\"holds\": [\n\t\t\t{\n\t\t\t\t\"id\": \"h\"\n\t\t\t}\n\t\t]\n\t}\n}\n",
        ),
    ] {
        let edited = edited(before, |value| {
            value["spec"]["name"] = "b".into();
            value["spec"]["holds"] = hold();
        });
        let edited = edited.unwrap();
        assert_eq!(edited, after);
        serde_json::from_str::<Value>(&edited).unwrap();
        let back = self::edited(&edited, |value| {
            value["spec"]["name"] = "a".into();
            value["spec"].as_object_mut().unwrap().remove("holds");
        });
        assert_eq!(back.unwrap(), before);
    }
    // Entries at the end of a list are removed together with the commas before them.
    let gone = edited("{\"l\": [1, 2, 3, 4]}", |value| value["l"] = json!([1, 2]));
    assert_eq!(gone.unwrap(), "{\"l\": [1, 2]}");
}

#[test]
fn a_stream_of_json_objects_is_several_documents() {
    let text = "{\"a\": \"x\\ty\"}{\n\t\"b\": 2\n}\n\n{\"c\": 3}\n";
    let read = documents("a.json", text).unwrap();
    let values: Vec<(Value, usize)> = read
        .into_iter()
        .map(|read| (read.value, read.line))
        .collect();
    let expected = [
        (json!({"a": "x\ty"}), 1),
        (json!({"b": 2}), 1),
        (json!({"c": 3}), 5),
    ];
    assert_eq!(values, expected);
    let edited = edit("a.json", text, 1, &json!({"b": "two"})).unwrap();
    assert_eq!(edited, text.replace('2', "\"two\""));
    let cut = remove("a.json", text, 1).unwrap().unwrap();
    assert_eq!(documents("a.json", &cut).unwrap().len(), 2);
    let more = append("a.json", text, &json!({"d": 4})).unwrap();
    assert_eq!(more, format!("{text}{{\n  \"d\": 4\n}}\n"));
    let error = documents("a.json", "{\"a\": 1}\n{\"b\": 1, \"b\": 2}").unwrap_err();
    assert!(error.to_string().starts_with("a.json:2:"), "{error}");
    assert!(is_json(text) && !is_json("{a: 1}\n") && !is_json("a: {}\n"));
}

#[test]
fn an_outline_knows_the_lines_of_items() {
    let text = "a: 1\n---\nkind: List\nitems:\n- x: 1\n- kind: List\n  items:\n  # two\n  - y: 2\n";
    let outline = Outline::read("a.yaml", text).unwrap();
    for (document, at, expected) in [
        (0, &[][..], Some(1)),
        (1, &[], Some(3)),
        (1, &[0], Some(5)),
        (1, &[1], Some(6)),
        (1, &[1, 0], Some(9)),
        (1, &[2], None),
        (2, &[], None),
    ] {
        assert_eq!(outline.line(document, at), expected, "{document} {at:?}");
    }
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z]{1,6}".prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (0..1000i64).prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-e]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// An edit either returns a text with the wanted value, or fails.
    #[test]
    fn an_edit_says_what_is_wanted_or_is_refused(before in tree(), after in tree(), crlf: bool) {
        let (before, after) = (json!({"x": before, "k": 1}), json!({"x": after, "k": 1}));
        let mut text = format!("# head\n{}# tail\n---\nother: 1\n", crate::write(&before));
        if crlf {
            text = text.replace('\n', "\r\n");
        }
        if let Ok(edited) = edit("a.yaml", &text, 0, &after) {
            let read = documents("a.yaml", &edited).unwrap();
            prop_assert_eq!(&read[0].value, &after);
            prop_assert_eq!(&read[1].value, &json!({"other": 1}));
            prop_assert!(edited.starts_with("# head"));
            prop_assert!(edited.contains("# tail"));
            prop_assert!(!crlf || !edited.replace("\r\n", "").contains('\n'));
        }
    }
}
