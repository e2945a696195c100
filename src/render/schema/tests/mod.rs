mod notations;
mod properties;
mod values;

use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn parse(parameters: &Value) -> Schema {
    Schema::parse(&object(parameters.clone()))
        .unwrap_or_else(|problems| panic!("{parameters}: {problems:?}"))
}

fn lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn schemas_are_bounded() {
    let nest = |levels: usize, leaf: Value, wrap: fn(Value) -> Value| {
        (0..levels).fold(leaf, |inner, _| wrap(inner))
    };
    let openapi = |inner: Value| json!({"type": "object", "properties": {"a": inner}});
    let first = |schema: Value| match Schema::parse(&object(schema)) {
        Ok(_) => "fine".to_owned(),
        Err(problems) => problems[0].message.clone(),
    };
    let deep = "the schema is nested more than 50 levels deep";
    assert_eq!(
        first(nest(49, json!({"a": "any"}), |inner| json!({"a": inner}))),
        "fine"
    );
    assert_eq!(
        first(nest(100, json!("any"), |inner| json!({"a": inner}))),
        deep
    );
    assert_eq!(
        first(nest(500, json!("any"), |inner| json!({"a": inner}))),
        deep
    );
    assert_eq!(
        first(openapi(nest(500, json!({}), |inner| json!({"not": inner})))),
        deep
    );
    assert_eq!(
        first(openapi(nest(
            100,
            json!({}),
            |inner| json!({"anyOf": [inner]})
        ))),
        deep
    );
    assert_eq!(
        first(openapi(nest(
            100,
            json!({}),
            |inner| json!({"type": "array", "items": inner})
        ))),
        deep
    );
    assert_eq!(
        first(json!({"a": format!("{}any", "[]".repeat(100))})),
        "column 103: the type is nested more than 50 levels deep"
    );
    assert_eq!(
        first(json!({"a": format!("{}any", "map<".repeat(5_000))})),
        "column 1: the text is longer than 16384 bytes"
    );
    assert_eq!(
        first(json!({"a": format!("{}any{}", "map<".repeat(50), ">".repeat(50))})),
        deep
    );
    let many: Object = (0..5_000)
        .map(|n| (format!("p{n}"), json!("integer")))
        .collect();
    assert_eq!(
        first(Value::Object(many)),
        "the schema has more than 4096 types"
    );
    let patterns: Object = (0..300)
        .map(|n| (format!("p{n}"), json!("string | pattern=^[a-z]$")))
        .collect();
    assert!(first(Value::Object(patterns)).contains("together are over the limit"));
    let large: Object = (0..100)
        .map(|n| {
            (
                format!("p{n}"),
                json!("string | pattern=((a{1000}){1000}){9}"),
            )
        })
        .collect();
    let problems = Schema::parse(&large).expect_err("problems");
    assert!(
        problems[0]
            .message
            .contains("too large a regular expression")
    );
    assert!(problems[99].message.contains("together are over the limit"));
    let wrong: Object = (0..300).map(|n| (format!("p{n}"), json!("x"))).collect();
    assert_eq!(
        Schema::parse(&wrong).expect_err("problems").len(),
        MAX_PROBLEMS
    );
    let default = nest(100, json!(1), |inner| json!([inner]));
    assert_eq!(
        first(json!({"a": format!("any | default={default}")})),
        "column 7: `default` is nested too deep"
    );
    assert_eq!(
        first(openapi(
            json!({"default": nest(500, json!(1), |inner| json!([inner]))})
        )),
        "`default` is nested too deep"
    );
}

#[test]
fn fitting_is_bounded() {
    let deep = (0..500).fold(json!(1), |inner, _| json!({"a": inner}));
    let found = parse(&json!({"a": "any"})).fit(object(deep));
    assert_eq!(
        lines(&found.errors),
        ["the parameters are nested more than 128 levels deep"]
    );
    let fine = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    assert!(
        parse(&json!({"a": "any"}))
            .fit(object(fine))
            .errors
            .is_empty()
    );

    // This schema adds a large default to every item of a long list, so the limit for added defaults is exceeded.
    let schema = parse(
        &json!({"type": "object", "properties": {"a": {"type": "array", "items": {
            "type": "object", "properties": {"b": {"type": "string", "default": "x".repeat(100_000)}}
        }}}}),
    );
    let found = schema.fit(object(json!({"a": vec![json!({}); 1_000]})));
    assert_eq!(found.errors.len(), 1);
    assert!(
        found.errors[0].message.contains("defaults"),
        "{:?}",
        found.errors
    );

    // These schemas try many alternatives for a long list, so the limit for steps is exceeded. The exceeded limit
    // must not count as a matching alternative.
    let branches = vec![json!({"items": {"minimum": 5}}); 100];
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let schema = parse(
            &json!({"type": "object", "properties": {"a": {"type": "array", "items": {}, keyword: branches}}}),
        );
        let found = schema.fit(object(json!({"a": vec![json!(9); 100_000]})));
        assert!(
            found
                .errors
                .iter()
                .any(|problem| problem.message.contains("too many values"))
                || keyword == "anyOf",
            "{keyword}"
        );
    }
    let schema = parse(
        &json!({"type": "object", "properties": {"a": {"type": "array", "items": {}, "not": {"allOf": branches}}}}),
    );
    let found = schema.fit(object(json!({"a": vec![json!(9); 100_000]})));
    assert!(
        lines(&found.errors)[0].contains("too many values"),
        "{:?}",
        found.errors
    );

    let found = parse(&json!({"a": "[]integer"})).fit(object(json!({"a": vec!["x"; 1_000]})));
    assert_eq!(found.errors.len(), MAX_PROBLEMS);
    let unknown: Object = (0..1_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let found = parse(&json!({})).fit(unknown);
    assert_eq!((found.dropped.len(), found.value.len()), (MAX_PROBLEMS, 0));
}
