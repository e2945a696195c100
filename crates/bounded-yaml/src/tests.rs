use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(text: &str) -> Result<Vec<Value>, YamlError> {
    documents("a.yaml", text).map(|docs| docs.into_iter().map(|doc| doc.value).collect())
}

fn one(text: &str) -> Value {
    match read(text) {
        Ok(docs) => match <[Value; 1]>::try_from(docs) {
            Ok([value]) => value,
            Err(docs) => panic!("{text:?} has {} documents", docs.len()),
        },
        Err(error) => panic!("{text:?}: {error}"),
    }
}

#[test]
fn plain_scalars_that_both_versions_read_alike() {
    for (text, value) in [
        ("true", json!(true)),
        ("False", json!(false)),
        ("0", json!(0)),
        ("-7", json!(-7)),
        ("+7", json!(7)),
        ("18446744073709551615", json!(18446744073709551615u64)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("0x1F", json!(31)),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("5.", json!(5.0)),
        ("1.0e+3", json!(1000.0)),
        ("-2.5E-1", json!(-0.25)),
        ("01.5", json!(1.5)),
        ("nope", json!("nope")),
        ("yess", json!("yess")),
        ("tRUE", json!("tRUE")),
        ("nULL", json!("nULL")),
        ("1.2.3", json!("1.2.3")),
        ("v1", json!("v1")),
        ("8080:80", json!("8080:80")),
        ("08:30", json!("08:30")),
        ("1:60", json!("1:60")),
        ("_1", json!("_1")),
        ("1_a", json!("1_a")),
        ("0xZ", json!("0xZ")),
        ("0o8", json!("0o8")),
        ("0b2", json!("0b2")),
        ("e3", json!("e3")),
        ("1e", json!("1e")),
        (".", json!(".")),
        ("--", json!("--")),
        ("+", json!("+")),
        ("2001-12-14", json!("2001-12-14")),
        ("2001-12-14T21:59:43Z", json!("2001-12-14T21:59:43Z")),
        ("100m", json!("100m")),
        ("1Gi", json!("1Gi")),
        ("10.0.0.1", json!("10.0.0.1")),
        ("4f2c1e0", json!("4f2c1e0")),
        ("=", json!("=")),
    ] {
        assert_eq!(
            one(&format!("key: {text}\n")),
            json!({"key": value}),
            "{text}"
        );
        assert_eq!(one(&format!("[{text}]")), json!([value]), "[{text}]");
    }
    for text in ["", "~", "null", "Null", "NULL"] {
        assert_eq!(
            one(&format!("key: {text}\n")),
            json!({"key": null}),
            "{text}"
        );
    }
}

#[test]
fn plain_scalars_that_the_versions_read_differently_are_refused() {
    for text in [
        "y",
        "Y",
        "n",
        "N",
        "yes",
        "Yes",
        "YES",
        "no",
        "No",
        "NO",
        "on",
        "On",
        "ON",
        "off",
        "Off",
        "OFF",
        "012",
        "00",
        "08",
        "-012",
        "+07",
        "0o17",
        "-0o17",
        "0b11",
        "-0b1",
        "0b_1",
        "-0x1F",
        "+0x1F",
        "0xA_B",
        "1_000",
        "1__0",
        "1_",
        "1_000.5",
        "-1_0",
        "1_0e3",
        "1:30",
        "-1:30",
        "190:20:30",
        "190:20:30.15",
        "0:30.5",
        "22:22",
        "1e3",
        "1E3",
        "1e+3",
        "1.5e3",
        "12e03",
        "1e10",
    ] {
        for (document, column) in [
            (format!("key: {text}\n"), 6),
            (format!("- x\n- {text}\n"), 3),
        ] {
            match read(&document) {
                Err(YamlError::Ambiguous {
                    place, text: shown, ..
                }) => {
                    assert_eq!(shown, text);
                    assert_eq!(place.column, column, "{document:?}");
                    assert_eq!(place.origin, "a.yaml");
                }
                other => panic!("{document:?} gave {other:?}"),
            }
        }
        assert!(
            matches!(
                read(&format!("{text}: value\n")),
                Err(YamlError::Ambiguous { .. })
            ),
            "key {text}"
        );
        // Both YAML versions read quoted, tagged and block scalars as strings.
        for quoted in [
            format!("'{text}'"),
            format!("\"{text}\""),
            format!("!!str {text}"),
            format!("|-\n  {text}"),
            format!(">-\n  {text}"),
        ] {
            assert_eq!(
                one(&format!("key: {quoted}\n")),
                json!({"key": text}),
                "{quoted}"
            );
        }
        assert_eq!(one(&format!("'{text}': 1\n")), json!({text: 1}));
    }
}

#[test]
fn an_ambiguous_scalar_comes_with_a_hint() {
    let error = read("spec:\n  enabled: no\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.yaml:2:12: no is false in YAML 1.1 and a string in YAML 1.2; quote it ('no') or write false"
    );
    let error = read("mode: 0644").unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.yaml:1:7: 0644 is an octal number in YAML 1.1 and a decimal number in YAML 1.2; quote it ('0644') or write the number without leading zeros"
    );
}

#[test]
fn documents_and_their_lines() {
    let docs = documents(
        "d",
        "# first\n\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n---\n~\n--- c\n",
    )
    .unwrap();
    let seen: Vec<_> = docs.iter().map(|d| (d.line, d.value.clone())).collect();
    assert_eq!(
        seen,
        vec![(3, json!({"a": 1})), (8, json!({"b": 2})), (12, json!("c"))]
    );
    for empty in [
        "",
        "\n",
        "# only a comment\n",
        "---\n",
        "---\n---\n...\n",
        "\u{feff}",
    ] {
        assert_eq!(documents("d", empty), Ok(vec![]), "{empty:?}");
    }
}

#[test]
fn what_is_read() {
    for (text, value) in [
        (
            r#"{"a": [1, 2.5, "x", null, true], "b": {"c": "\u00e9\ud83d\ude00\n"}}"#,
            json!({"a": [1, 2.5, "x", null, true], "b": {"c": "é😀\n"}}),
        ),
        ("\u{feff}a: b", json!({"a": "b"})),
        ("a: b\r\nc: d\r\n", json!({"a": "b", "c": "d"})),
        (
            "base: &b {x: 1}\nuse: *b\n",
            json!({"base": {"x": 1}, "use": {"x": 1}}),
        ),
        ("- &k key\n- {*k : 1}\n", json!(["key", {"key": 1}])),
        (
            "1: a\ntrue: b\n1.5: c\n-3: d\n",
            json!({"1": "a", "true": "b", "1.5": "c", "-3": "d"}),
        ),
        ("text: |\n  a\n   b\n\n", json!({"text": "a\n b\n"})),
        ("text: >\n  a\n  b\n", json!({"text": "a b\n"})),
        ("!!map {a: !!seq [!!str 1]}", json!({"a": ["1"]})),
        ("a: ! 12", json!({"a": "12"})),
        ("'<<': 1", json!({"<<": 1})),
        ("url: http://x/y?a=b#c", json!({"url": "http://x/y?a=b#c"})),
        (
            "template: ${metadata.name}",
            json!({"template": "${metadata.name}"}),
        ),
    ] {
        assert_eq!(one(text), value, "{text:?}");
    }
}

#[test]
fn what_is_refused_and_where() {
    for (text, line, column, says) in [
        (
            "a: 1\nb: 2\na: 3\n",
            3,
            1,
            "key a stands twice in the same map (first on line 1)",
        ),
        ("{a: 1, \"a\": 2}", 1, 8, "stands twice"),
        ("1: a\n'1': b\n", 2, 1, "stands twice"),
        ("a: &x 1\n<<: {b: 1}\n", 2, 1, "merge keys"),
        ("a: !!binary aGk=\n", 1, 13, "tag !!binary"),
        ("a: !Ref x\n", 1, 9, "tag !Ref"),
        ("!custom {a: 1}", 1, 9, "tag !custom"),
        ("a: !!int '5'\n", 1, 10, "tag !!int"),
        ("{[a]: 1}", 1, 2, "a key that is a map or a list"),
        ("? {a: 1}\n: 2\n", 1, 3, "a key that is a map or a list"),
        (": 1\n", 1, 1, "empty or null"),
        ("~: 1\n", 1, 1, "empty or null"),
        ("0x10: a\n", 1, 1, "would become 16"),
        ("True: a\n", 1, 1, "would become true"),
        ("1.50: a\n", 1, 1, "would become 1.5"),
        ("a: .inf\n", 1, 4, "not finite"),
        ("a: 1.0e+999\n", 1, 4, "too large"),
        ("a: 99999999999999999999\n", 1, 4, "more than 64 bits"),
        ("a: &x [*x]\n", 1, 8, "an alias inside of what it names"),
        ("a: [1, 2\nb: 3\n", 2, 2, ""),
        ("a: *nobody\n", 1, 4, ""),
        ("a:\n\tb: 1\n", 2, 2, "tabs"),
    ] {
        match read(text) {
            Err(error) => {
                let place = error.place().unwrap();
                assert_eq!(
                    (place.line, place.column),
                    (line, column),
                    "{text:?}: {error}"
                );
                assert!(
                    error
                        .to_string()
                        .starts_with(&format!("a.yaml:{line}:{column}: ")),
                    "{error}"
                );
                assert!(error.to_string().contains(says), "{text:?}: {error}");
            }
            Ok(value) => panic!("{text:?} was read as {value:?}"),
        }
    }
}

#[test]
fn limits_end_what_grows() {
    let laughs = {
        let mut text = String::from("a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol,lol]\n");
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            text.push_str(&format!(
                "a{level}: &a{level} [{}]\n",
                [below.as_str(); 10].join(",")
            ));
        }
        text
    };
    let wide = format!(
        "a: &a \"{}\"\nb: [{}]\n",
        "x".repeat(100_000),
        vec!["*a"; 1000].join(",")
    );
    let nested_anchors: String = (0..90).map(|at| format!("&n{at} [")).collect::<String>()
        + &"x".repeat(200_000)
        + &"]".repeat(90);
    let deep_flow = "[".repeat(5000) + &"]".repeat(5000);
    let deep_block: String = (0..3000)
        .map(|at| format!("{}a:\n", " ".repeat(at)))
        .collect();
    let deep_dashes = "- ".repeat(20_000) + "x";
    let many = "[".to_owned() + &"0,".repeat(600_000) + "]";
    let documents = "---\na\n".repeat(5000);
    for (name, text, what) in [
        ("billion laughs", &laughs, Some("nodes (aliases expanded)")),
        ("one big string", &wide, Some("bytes copied by aliases")),
        (
            "nested anchors",
            &nested_anchors,
            Some("bytes copied by aliases"),
        ),
        ("deep flow", &deep_flow, None),
        ("deep block", &deep_block, None),
        ("deep dashes", &deep_dashes, None),
        ("many nodes", &many, Some("nodes (aliases expanded)")),
        ("many documents", &documents, Some("documents")),
    ] {
        match read(text) {
            Err(YamlError::Limit { what: passed, .. }) => {
                assert_eq!(passed, what.unwrap_or("levels of nesting"), "{name}");
            }
            Err(YamlError::Syntax { message, .. }) if what.is_none() => {
                assert!(
                    message.contains("nest")
                        || message.contains("depth")
                        || message.contains("limit"),
                    "{name}: {message}"
                );
            }
            other => panic!("{name} gave {:?}", other.map(|docs| docs.len())),
        }
    }
    assert!(matches!(
        read(&"a".repeat((8 << 20) + 1)),
        Err(YamlError::TooLarge { .. })
    ));
    let tight = Limits {
        depth: 2,
        ..Limits::default()
    };
    assert!(documents_with("d", "a: [1]", &tight).is_ok());
    assert!(documents_with("d", "a: [[1]]", &tight).is_err());
    assert!(
        documents_with("d", "x: &x [1]\na: [*x]", &tight).is_err(),
        "an alias counts with its depth"
    );
}

#[test]
fn what_is_written() {
    let value = json!({
        "kind": "ConfigMap",
        "empty": {"list": [], "map": {}, "text": "", "null": null},
        "data": {"script": "#!/bin/sh\necho hi\n", "no-end": "a\nb", "many-ends": "a\n\n", "no": "no", "on": ["yes", "1", "012", "1e3", "~", "x: y", "- a", "a #b", "2024-01-01"]},
        "numbers": [1, -2, 1.0, 1e30, 2.5e-9],
        "lists": [[1, [2]], {"a": 1, "b": [1]}, "a\nb\n"],
    });
    let text = write(&value);
    assert_eq!(one(&text), value);
    assert_eq!(
        text,
        "\
data:
  many-ends: |+
    a

  \"no\": \"no\"
  no-end: |-
    a
    b
  \"on\":
  - \"yes\"
  - \"1\"
  - \"012\"
  - \"1e3\"
  - \"~\"
  - \"x: y\"
  - \"- a\"
  - \"a #b\"
  - \"2024-01-01\"
  script: |
    #!/bin/sh
    echo hi
empty:
  list: []
  map: {}
  \"null\": null
  text: \"\"
kind: ConfigMap
lists:
- - 1
  - - 2
- a: 1
  b:
  - 1
- |
  a
  b
numbers:
- 1
- -2
- 1.0
- 1.0e+30
- 2.5e-9
"
    );
    assert_eq!(write(&json!("---")), "\"---\"\n");
    assert_eq!(write(&json!({})), "{}\n");
}

#[test]
fn a_key_longer_than_a_simple_key_comes_back() {
    for length in [990, 1024, 1025, 3000] {
        let value = json!({"k".repeat(length): {"a": [1, {"b": "c\nd"}]}, "z": {"y".repeat(length): "a\nb"}});
        assert_eq!(one(&write(&value)), value, "{length}");
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9._:/ -]{0,12}",
        "[yYnNeEsSoOfFtTrRuUlL~]{1,5}",
        "[-+]?[0-9_:.xobeE]{1,8}",
        "[ \t\n#:&*!|>'\"%@`{}\\[\\],?a-]{0,12}",
        "(a|b| |\n|\t|-|#|:){0,16}",
        "\\PC{0,8}",
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |f| serde_json::Number::from_f64(f)
            .map(Value::Number)),
        text().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(text(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_written_reads_back(value in value()) {
        let text = write(&value);
        let docs = read(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        let back = docs.into_iter().next().unwrap_or(Value::Null);
        prop_assert_eq!(&back, &value, "{}", text);
        // serde_yaml must read the same value, although it has its own rules for plain scalars.
        let other: Value = serde_yaml::from_str(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&other, &value, "{}", text);
        prop_assert_eq!(write(&back), text);
    }

    #[test]
    fn json_is_yaml(value in value()) {
        let text = value.to_string();
        // A text of JSON may be refused as ambiguous, because YAML 1.1 does not know all of JSON's exponents.
        match read(&text) {
            Ok(docs) => prop_assert_eq!(docs.into_iter().next().unwrap_or(Value::Null), value),
            Err(YamlError::Ambiguous { .. }) => {}
            Err(YamlError::Syntax { message, .. }) => prop_assert!(text.len() > 1000 || text.chars().any(|c| !(' '..='~').contains(&c)), "{}\n{}", message, text),
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        }
    }

    #[test]
    fn no_text_panics(text in "[ \\t\\n\\-#:&*!|>'\"%@`{}\\[\\],?a-c0-3<~.]{0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn no_characters_panic(text in any::<String>()) {
        let _ = read(&text);
    }
}
