use proptest::prelude::*;
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

/// Fits without a complaint.
fn fitted(schema: &Value, value: Value) -> Value {
    let fitted = parse(schema).fit(object(value));
    assert!(fitted.errors.is_empty(), "{schema}: {:?}", fitted.errors);
    assert!(fitted.dropped.is_empty(), "{schema}: {:?}", fitted.dropped);
    Value::Object(fitted.value)
}

#[test]
fn what_values_become() {
    for (schema, given, expected) in [
        // the examples of the specification
        (
            json!({"replicas": "integer | default=1 minimum=0"}),
            json!({}),
            json!({"replicas": 1}),
        ),
        (
            json!({"replicas": "integer | default=1 minimum=0"}),
            json!({"replicas": 0}),
            json!({"replicas": 0}),
        ),
        (
            json!({"tier": "string | enum=web,batch default=web"}),
            json!({}),
            json!({"tier": "web"}),
        ),
        (
            json!({"tier": "string | enum=web,batch default=web"}),
            json!({"tier": "batch"}),
            json!({"tier": "batch"}),
        ),
        (json!({"ports": "[]integer"}), json!({}), json!({})),
        (
            json!({"ports": "[]integer"}),
            json!({"ports": [80, 81]}),
            json!({"ports": [80, 81]}),
        ),
        (
            json!({"notes": "map<string>"}),
            json!({"notes": {"a.b": "c"}}),
            json!({"notes": {"a.b": "c"}}),
        ),
        // a value has the type of its parameter
        (
            json!({"a": "string | default=5"}),
            json!({}),
            json!({"a": "5"}),
        ),
        (
            json!({"a": "string | default=true"}),
            json!({}),
            json!({"a": "true"}),
        ),
        (
            json!({"a": "string | default=null"}),
            json!({}),
            json!({"a": "null"}),
        ),
        (
            json!({"a": "string | default=[x]"}),
            json!({}),
            json!({"a": "[x]"}),
        ),
        (
            json!({"a": "string | default=a=b|c"}),
            json!({}),
            json!({"a": "a=b|c"}),
        ),
        (
            json!({"a": "string | default=\"a b\""}),
            json!({}),
            json!({"a": "a b"}),
        ),
        (
            json!({"a": "string | default=\"a\\n\\\"b\\\"\""}),
            json!({}),
            json!({"a": "a\n\"b\""}),
        ),
        (
            json!({"a": "string | default='a \\n \"b\"'"}),
            json!({}),
            json!({"a": "a \\n \"b\""}),
        ),
        (
            json!({"a": "string | default=\"\""}),
            json!({}),
            json!({"a": ""}),
        ),
        (
            json!({"a": "string | default=''"}),
            json!({}),
            json!({"a": ""}),
        ),
        (
            json!({"a": "integer | default=-3"}),
            json!({}),
            json!({"a": -3}),
        ),
        (
            json!({"a": "integer | default=2.0"}),
            json!({}),
            json!({"a": 2}),
        ),
        (
            json!({"a": "integer | default=\"3\""}),
            json!({}),
            json!({"a": 3}),
        ),
        (
            json!({"a": "number | default=1.5"}),
            json!({}),
            json!({"a": 1.5}),
        ),
        (
            json!({"a": "number | default=1"}),
            json!({}),
            json!({"a": 1}),
        ),
        (
            json!({"a": "boolean | default=true"}),
            json!({}),
            json!({"a": true}),
        ),
        (
            json!({"a": "[]integer | default=[1, 2.0]"}),
            json!({}),
            json!({"a": [1, 2]}),
        ),
        (
            json!({"a": "[]string|default=[\"x y\"] maxItems=3"}),
            json!({}),
            json!({"a": ["x y"]}),
        ),
        (
            json!({"a": "map<integer> | default={\"x\": 1}"}),
            json!({}),
            json!({"a": {"x": 1}}),
        ),
        (
            json!({"a": "object | default={\"x\": [null, {\"y\": null}]}"}),
            json!({}),
            json!({"a": {"x": [null, {"y": null}]}}),
        ),
        (
            json!({"a": "any | default=[1]"}),
            json!({}),
            json!({"a": [1]}),
        ),
        (json!({"a": "any | default=1"}), json!({}), json!({"a": 1})),
        (
            json!({"a": "any | default=word"}),
            json!({}),
            json!({"a": "word"}),
        ),
        (
            json!({"a": "any | default=\"1\""}),
            json!({}),
            json!({"a": "1"}),
        ),
        (
            json!({"a": "integer | nullable=true default=null"}),
            json!({}),
            json!({"a": null}),
        ),
        // whole numbers and nulls
        (json!({"a": "integer"}), json!({"a": 1.0}), json!({"a": 1})),
        (
            json!({"a": "[]integer"}),
            json!({"a": [1.0, -2.0]}),
            json!({"a": [1, -2]}),
        ),
        (json!({"a": "number"}), json!({"a": 1}), json!({"a": 1})),
        (
            json!({"a": "integer | default=1"}),
            json!({"a": null}),
            json!({"a": 1}),
        ),
        (json!({"a": "integer"}), json!({"a": null}), json!({})),
        (
            json!({"a": "integer | nullable=true default=1"}),
            json!({"a": null}),
            json!({"a": null}),
        ),
        (
            json!({"a": "map<integer>"}),
            json!({"a": {"x": null, "y": 1}}),
            json!({"a": {"y": 1}}),
        ),
        (
            json!({"a": "object"}),
            json!({"a": {"x": null}}),
            json!({"a": {"x": null}}),
        ),
        (
            json!({"a": "any"}),
            json!({"a": [1, "b", {"c": null}]}),
            json!({"a": [1, "b", {"c": null}]}),
        ),
        // nested types
        (
            json!({"a": "[]map<integer>"}),
            json!({"a": [{"x": 1.0}, {}]}),
            json!({"a": [{"x": 1}, {}]}),
        ),
        (
            json!({"a": "map<[]string>"}),
            json!({"a": {"x": ["y"]}}),
            json!({"a": {"x": ["y"]}}),
        ),
        (
            json!({"a": " [] [] map < map<any> > "}),
            json!({"a": [[{"x": {"y": null}}]]}),
            json!({"a": [[{"x": {}}]]}),
        ),
        // nested objects
        (
            json!({"auto": {"enabled": "boolean | default=false", "max": "integer"}}),
            json!({}),
            json!({"auto": {"enabled": false}}),
        ),
        (
            json!({"auto": {"enabled": "boolean | default=false", "max": "integer"}}),
            json!({"auto": {"max": 3}}),
            json!({"auto": {"enabled": false, "max": 3}}),
        ),
        (
            json!({"auto": {"enabled": "boolean | default=false"}}),
            json!({"auto": null}),
            json!({"auto": {"enabled": false}}),
        ),
        (json!({"auto": {"max": "integer"}}), json!({}), json!({})),
        (
            json!({"auto": {"max": "integer"}}),
            json!({"auto": {}}),
            json!({"auto": {}}),
        ),
        (
            json!({"a": {"b": {"c": "integer | default=1"}}}),
            json!({}),
            json!({"a": {"b": {"c": 1}}}),
        ),
        (
            json!({"tls": {"secret": "string | required=true", "mode": "string | default=strict"}}),
            json!({}),
            json!({}),
        ),
        (
            json!({"tls": {"secret": "string | required=true", "mode": "string | default=strict"}}),
            json!({"tls": {"secret": "s"}}),
            json!({"tls": {"secret": "s", "mode": "strict"}}),
        ),
        (
            json!({"a": "integer | required=true default=1"}),
            json!({}),
            json!({"a": 1}),
        ),
        (
            json!({"a": "integer | required=false"}),
            json!({}),
            json!({}),
        ),
        // attributes that only document
        (
            json!({"a": "integer | title=x description='a b' example=3 default=1"}),
            json!({}),
            json!({"a": 1}),
        ),
        // names that look like keywords
        (
            json!({"type": "string | default=x", "properties": {"a": "integer | default=1"}}),
            json!({}),
            json!({"type": "x", "properties": {"a": 1}}),
        ),
        // OpenAPI
        (
            json!({"type": "object", "properties": {"replicas": {"type": "integer", "default": 1}}}),
            json!({}),
            json!({"replicas": 1}),
        ),
        (
            json!({"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {"default": 1}}}}}}}),
            json!({"a": [{}, {"b": 2}]}),
            json!({"a": [{"b": 1}, {"b": 2}]}),
        ),
        (
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}),
            json!({"x": 1.0, "y": null}),
            json!({"x": 1}),
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            json!({"x": [null]}),
            json!({"x": [null]}),
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"x": 1}),
            json!({"x": 1}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": true}}}),
            json!({"a": {"b": "c", "d": 1}}),
            json!({"a": {"b": "c", "d": 1}}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {}}}),
            json!({"a": {"x": 1}, "b": [2]}),
            json!({"a": {"x": 1}, "b": [2]}),
        ),
        (
            json!({"type": "object", "properties": {"p": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "default": "http"}}}),
            json!({"p": 80.0}),
            json!({"p": 80}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 2}}}}}),
            json!({}),
            json!({"a": {"b": 2}}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "nullable": true, "enum": ["x", null], "x-anything": {"y": 1}}}}),
            json!({"a": null}),
            json!({"a": null}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "minProperties": 2, "properties": {"b": {"default": 1}}}}}),
            json!({}),
            json!({}),
        ),
    ] {
        assert_eq!(
            fitted(&schema, given.clone()),
            expected,
            "{schema} with {given}"
        );
    }
}

#[test]
fn what_does_not_fit() {
    let openapi = |a: Value| json!({"type": "object", "properties": {"a": a}});
    for (schema, given, errors) in [
        (
            json!({"a": "integer"}),
            json!({"a": "x"}),
            vec!["a: \"x\" is a string; wanted an integer"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": 1.5}),
            vec!["a: 1.5 is a number; wanted an integer"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": true}),
            vec!["a: true is a boolean; wanted an integer"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": u64::MAX}),
            vec!["a: 18446744073709551615 is too large; wanted an integer of 64 bits"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": 1e30}),
            vec!["a: 1e+30 is a number; wanted an integer"],
        ),
        (
            json!({"a": "string"}),
            json!({"a": 1}),
            vec!["a: 1 is an integer; wanted a string"],
        ),
        (
            json!({"a": "number"}),
            json!({"a": "1"}),
            vec!["a: \"1\" is a string; wanted a number"],
        ),
        (
            json!({"a": "boolean"}),
            json!({"a": "true"}),
            vec!["a: \"true\" is a string; wanted true or false"],
        ),
        (
            json!({"a": "object"}),
            json!({"a": [1]}),
            vec!["a: [1] is a list; wanted an object"],
        ),
        (
            json!({"a": "[]integer"}),
            json!({"a": {"b": 1}}),
            vec!["a: {\"b\":1} is an object; wanted a list"],
        ),
        (
            json!({"a": "[]integer"}),
            json!({"a": [1, "x", 3, null]}),
            vec![
                "a[1]: \"x\" is a string; wanted an integer",
                "a[3]: is null; wanted an integer",
            ],
        ),
        (
            json!({"a": "map<integer>"}),
            json!({"a": {"a.b": "x", "c": "y"}}),
            vec![
                "a[\"a.b\"]: \"x\" is a string; wanted an integer",
                "a.c: \"y\" is a string; wanted an integer",
            ],
        ),
        (
            json!({"a": "[]map<[]integer>"}),
            json!({"a": [{}, {"x": [1, "y"]}]}),
            vec!["a[1].x[1]: \"y\" is a string; wanted an integer"],
        ),
        (
            json!({"auto": {"max": "integer"}}),
            json!({"auto": {"max": "x"}}),
            vec!["auto.max: \"x\" is a string; wanted an integer"],
        ),
        (
            json!({"auto": {"max": "integer"}}),
            json!({"auto": 3}),
            vec!["auto: 3 is an integer; wanted an object"],
        ),
        (
            json!({"a": "string"}),
            json!({"a": ["\u{1b}[31m".repeat(50)]}),
            vec![
                "a: [\"\\u001b[31m\\u001b[31m\\u001b[31m\\u001b[31m\\u001… is a list; wanted a string",
            ],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": "pro\u{202e}d"}),
            vec!["a: \"pro\u{fffd}d\" is a string; wanted an integer"],
        ),
        // required
        (
            json!({"a": "integer | required=true"}),
            json!({}),
            vec!["a: is missing; wanted an integer"],
        ),
        (
            json!({"a": "integer | required=true"}),
            json!({"a": null}),
            vec!["a: is missing; wanted an integer"],
        ),
        (
            json!({"tls": {"secret": "string | required=true"}}),
            json!({"tls": {}}),
            vec!["tls.secret: is missing; wanted a string"],
        ),
        // limits
        (
            json!({"a": "integer | minimum=1 maximum=3"}),
            json!({"a": 0}),
            vec!["a: 0 is too small; wanted at least 1"],
        ),
        (
            json!({"a": "integer | minimum=1 maximum=3"}),
            json!({"a": 4}),
            vec!["a: 4 is too large; wanted at most 3"],
        ),
        (
            json!({"a": "number | exclusiveMinimum=1 exclusiveMaximum=2"}),
            json!({"a": 1}),
            vec!["a: 1 is too small; wanted more than 1"],
        ),
        (
            json!({"a": "number | minimum=1 maximum=2 exclusiveMaximum=true"}),
            json!({"a": 2.0}),
            vec!["a: 2.0 is too large; wanted less than 2"],
        ),
        (
            json!({"a": "number | minimum=5 exclusiveMinimum=1"}),
            json!({"a": 4}),
            vec!["a: 4 is too small; wanted at least 5"],
        ),
        (
            json!({"a": "integer | multipleOf=5"}),
            json!({"a": 7}),
            vec!["a: 7 is no multiple of 5"],
        ),
        (
            json!({"a": "integer | format=int32"}),
            json!({"a": 3_000_000_000u32}),
            vec!["a: 3000000000 is no integer of 32 bits, which the format int32 wants"],
        ),
        (
            json!({"a": "string | minLength=2"}),
            json!({"a": "é"}),
            vec!["a: \"é\" has 1 character; wanted at least 2"],
        ),
        (
            json!({"a": "string | maxLength=2"}),
            json!({"a": "éab"}),
            vec!["a: \"éab\" has 3 characters; wanted at most 2"],
        ),
        (
            json!({"a": "string | pattern=^[a-z]+$"}),
            json!({"a": "A"}),
            vec!["a: \"A\" does not match the pattern ^[a-z]+$"],
        ),
        (
            json!({"a": "string | pattern='^\\d+ x$'"}),
            json!({"a": "1"}),
            vec!["a: \"1\" does not match the pattern ^\\d+ x$"],
        ),
        (
            json!({"a": "string | format=ipv4"}),
            json!({"a": "x"}),
            vec!["a: \"x\" does not have the format ipv4"],
        ),
        (
            json!({"a": "string | enum=web,batch"}),
            json!({"a": "x"}),
            vec!["a: \"x\" is not allowed; wanted one of \"web\", \"batch\""],
        ),
        (
            json!({"a": "string | enum=\"a b\",c"}),
            json!({"a": "a"}),
            vec!["a: \"a\" is not allowed; wanted one of \"a b\", \"c\""],
        ),
        (
            json!({"a": "integer | enum=[1, 2]"}),
            json!({"a": 3}),
            vec!["a: 3 is not allowed; wanted one of 1, 2"],
        ),
        (
            json!({"a": "integer | enum=1"}),
            json!({"a": 3}),
            vec!["a: 3 is not allowed; wanted 1"],
        ),
        (
            json!({"a": "[]integer | minItems=1"}),
            json!({"a": []}),
            vec!["a: has 0 items; wanted at least 1"],
        ),
        (
            json!({"a": "[]integer | maxItems=1"}),
            json!({"a": [1, 2]}),
            vec!["a: has 2 items; wanted at most 1"],
        ),
        (
            json!({"a": "[]number | uniqueItems=true"}),
            json!({"a": [1, 2, 1.0]}),
            vec!["a[2]: 1.0 is there twice; items have to differ"],
        ),
        (
            json!({"a": "[]object | uniqueItems=true"}),
            json!({"a": [{"x": 1}, {"x": 1}]}),
            vec!["a[1]: {\"x\":1} is there twice; items have to differ"],
        ),
        (
            json!({"a": "map<any> | minProperties=1"}),
            json!({"a": {}}),
            vec!["a: has 0 keys; wanted at least 1"],
        ),
        (
            json!({"a": "object | maxProperties=1"}),
            json!({"a": {"x": 1, "y": 2}}),
            vec!["a: has 2 keys; wanted at most 1"],
        ),
        (
            json!({"a": "integer | minimum=5", "b": "boolean"}),
            json!({"a": 1, "b": 1}),
            vec![
                "a: 1 is too small; wanted at least 5",
                "b: 1 is an integer; wanted true or false",
            ],
        ),
        // OpenAPI
        (
            openapi(json!({"x-kubernetes-int-or-string": true})),
            json!({"a": true}),
            vec!["a: true is a boolean; wanted an integer or a string"],
        ),
        (
            openapi(json!({"allOf": [{"type": "integer"}, {"minimum": 3}]})),
            json!({"a": 1}),
            vec!["a: 1 is too small; wanted at least 3"],
        ),
        (
            openapi(json!({"anyOf": [{"type": "integer"}, {"pattern": "^x"}]})),
            json!({"a": "y"}),
            vec!["a: \"y\" fits none of the 2 schemas of anyOf"],
        ),
        (
            openapi(json!({"oneOf": [{"type": "integer"}, {"minimum": 3}]})),
            json!({"a": 3}),
            vec!["a: 3 fits 2 of the 2 schemas of oneOf; wanted exactly one"],
        ),
        (
            openapi(json!({"type": "string", "not": {"enum": ["root"]}})),
            json!({"a": "root"}),
            vec!["a: \"root\" fits the schema of not, which it must not"],
        ),
        (
            openapi(
                json!({"type": "object", "properties": {"x": {}, "y": {}}, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}),
            ),
            json!({"a": {}}),
            vec!["a: {} fits 0 of the 2 schemas of oneOf; wanted exactly one"],
        ),
        (
            openapi(
                json!({"type": "object", "properties": {"x": {"type": "integer"}}, "allOf": [{"properties": {"x": {"maximum": 1}}}]}),
            ),
            json!({"a": {"x": 2}}),
            vec!["a.x: 2 is too large; wanted at most 1"],
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({}),
            vec!["a: is missing; wanted anything"],
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "minProperties": 1}),
            json!({}),
            vec!["has 0 keys; wanted at least 1"],
        ),
        (
            openapi(json!({"type": "number", "minimum": 1, "exclusiveMinimum": true})),
            json!({"a": 1}),
            vec!["a: 1 is too small; wanted more than 1"],
        ),
        (
            openapi(json!({"type": "string", "format": "uuid"})),
            json!({"a": "x"}),
            vec!["a: \"x\" does not have the format uuid"],
        ),
    ] {
        let found = parse(&schema).fit(object(given.clone()));
        assert_eq!(lines(&found.errors), errors, "{schema} with {given}");
        assert!(found.dropped.is_empty(), "{schema} with {given}");
    }
}

#[test]
fn what_is_unknown_goes_with_a_warning() {
    for (schema, given, expected, dropped) in [
        (
            json!({"replicas": "integer"}),
            json!({"replicsa": 1}),
            json!({}),
            vec![
                "replicsa: the schema does not know it, so it is dropped, did you mean `replicas`?",
            ],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": 1, "zzzzzz": null}),
            json!({"a": 1}),
            vec!["zzzzzz: the schema does not know it, so it is dropped"],
        ),
        (
            json!({"a": {"b": "integer"}}),
            json!({"a": {"b": 1, "c.d": {"e": 1}}}),
            json!({"a": {"b": 1}}),
            vec!["a[\"c.d\"]: the schema does not know it, so it is dropped"],
        ),
        (
            json!({}),
            json!({"a": 1}),
            json!({}),
            vec!["a: the schema does not know it, so it is dropped"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {}}, "additionalProperties": false}}}}),
            json!({"a": [{"b": 1}, {"\u{1b}[0m": 1}]}),
            json!({"a": [{"b": 1}, {}]}),
            vec!["a[1][\"\u{fffd}[0m\"]: the schema does not know it, so it is dropped"],
        ),
    ] {
        let found = parse(&schema).fit(object(given.clone()));
        assert_eq!(
            Value::Object(found.value),
            expected,
            "{schema} with {given}"
        );
        assert_eq!(lines(&found.dropped), dropped, "{schema} with {given}");
        assert!(found.errors.is_empty());
    }
}

#[test]
fn what_is_wrong_with_the_shorthand() {
    for (text, message) in [
        (
            "",
            "column 1: expected a type: string, integer, number, boolean, object, any, []T or map<T>, found the end",
        ),
        (
            "| default=1",
            "column 1: expected a type: string, integer, number, boolean, object, any, []T or map<T>, found `| default=1`",
        ),
        (
            "integr",
            "column 1: `integr` is no type, did you mean `integer`?; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "int",
            "column 1: `int` is no type, did you mean `integer`?; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "[]list",
            "column 3: `list` is no type, did you mean `[]T`?; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "quux",
            "column 1: `quux` is no type; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "[]",
            "column 3: expected a type: string, integer, number, boolean, object, any, []T or map<T>, found the end",
        ),
        (
            "[string",
            "column 1: expected a type: string, integer, number, boolean, object, any, []T or map<T>, found `[string`",
        ),
        (
            "map",
            "column 4: expected `<` and the type of the values, as in `map<string>`, found the end",
        ),
        (
            "map[string]string",
            "column 4: expected `<` and the type of the values, as in `map<string>`, found `[string]string`",
        ),
        (
            "map<string",
            "column 11: expected `>` for the `map<` of column 1, found the end",
        ),
        (
            "[]map<map<string> | default=1",
            "column 19: expected `>` for the `map<` of column 3, found `| default=1`",
        ),
        (
            "string default=x",
            "column 8: expected `|` and attributes, or the end, found `default=x`",
        ),
        (
            "string |",
            "column 9: expected an attribute after `|`, found the end",
        ),
        (
            "string | defualt=x",
            "column 10: `defualt` is no attribute, did you mean `default`?",
        ),
        (
            "string | default=x zzz=1",
            "column 20: `zzz` is no attribute",
        ),
        (
            "string | required",
            "column 10: `required` has no value: write required=..., and quote a value that has blanks",
        ),
        (
            "string | description=a b",
            "column 24: `b` has no value: write b=..., and quote a value that has blanks",
        ),
        (
            "string | default= x",
            "column 18: expected a value (`\"\"` is the empty text), found ` x`",
        ),
        (
            "string | =x",
            "column 10: expected an attribute, as `default=1`, found `=x`",
        ),
        (
            "string | default=a default=b",
            "column 20: `default` is there twice",
        ),
        (
            "string | default='a",
            "column 18: what begins here does not end",
        ),
        (
            "string | default=\"a",
            "column 18: what begins here does not end",
        ),
        (
            "string | default=\"a\"b",
            "column 21: expected a blank after the value, found `b`",
        ),
        (
            "string | enum=a,",
            "column 17: expected a value (`\"\"` is the empty text), found the end",
        ),
        (
            "[]integer | default=[1,",
            "column 21: what begins here does not end",
        ),
        (
            "[]integer | default=[1,a]",
            "column 24: is no JSON: expected value",
        ),
        (
            "[]integer | default=1,2",
            "column 21: `1,2` is no list; a list is written as JSON, for example [1,2]",
        ),
        (
            "map<string> | default=a",
            "column 23: `a` is no object; an object is written as JSON, for example {\"a\":1}",
        ),
        ("integer | default=x", "column 19: `x` is no number"),
        (
            "integer | default=1.5",
            "column 11: `default` does not fit: 1.5 is a number; wanted an integer",
        ),
        (
            "integer | default=0 minimum=1",
            "column 11: `default` does not fit: 0 is too small; wanted at least 1",
        ),
        (
            "boolean | default=yes",
            "column 19: `yes` is neither true nor false",
        ),
        (
            "string | default=c enum=a,b",
            "column 10: `default` does not fit: \"c\" is not allowed; wanted one of \"a\", \"b\"",
        ),
        (
            "[]integer | default=[1,\"x\"]",
            "column 13: `default` does not fit: at [1]: \"x\" is a string; wanted an integer",
        ),
        (
            "map<integer> | default={\"a\":\"x\"}",
            "column 16: `default` does not fit: at a: \"x\" is a string; wanted an integer",
        ),
        ("integer | default=null", "column 19: `null` is no number"),
        (
            "integer | minimum=5 maximum=1",
            "column 11: `minimum` of 5 is above the maximum of 1: nothing fits",
        ),
        (
            "integer | exclusiveMinimum=1 maximum=1",
            "column 11: `exclusiveMinimum` of 1 is above the maximum of 1: nothing fits",
        ),
        (
            "integer | exclusiveMinimum=true",
            "column 11: `exclusiveMinimum` needs a number, or `minimum` beside it",
        ),
        (
            "string | minLength=5 maxLength=1",
            "column 10: `minLength` of 5 is above the maxLength of 1: nothing fits",
        ),
        (
            "[]any | minItems=-1",
            "column 9: `minItems` is -1; wanted an integer from 0",
        ),
        ("[]any | maxItems=x", "column 18: `x` is no number"),
        (
            "integer | multipleOf=0",
            "column 11: `multipleOf` has to be above 0",
        ),
        ("integer | enum=1,x", "column 18: `x` is no number"),
        (
            "integer | enum=[1,\"x\"]",
            "column 11: `enum` has \"x\", which is a string; wanted an integer",
        ),
        (
            "[]string | enum=a,b",
            "column 12: `enum` is for single values; write the schema as OpenAPI v3 to choose the items of a list or map",
        ),
        (
            "string | pattern=a(b",
            "column 10: `pattern` is no regular expression: unclosed group",
        ),
        (
            "string | pattern=((a{1000}){1000}){1000}",
            "column 10: `pattern` is too large a regular expression",
        ),
        (
            "string | minimum=1",
            "column 10: `minimum` is for integers and numbers, and this is a string",
        ),
        (
            "integer | minLength=1",
            "column 11: `minLength` is for strings, and this is an integer",
        ),
        (
            "string | minItems=1",
            "column 10: `minItems` is for lists, and this is a string",
        ),
        (
            "[]string | maxProperties=1",
            "column 12: `maxProperties` is for objects, and this is a list",
        ),
        (
            "string | format=ipv5",
            "column 10: `format` \"ipv5\" is unknown, did you mean `ipv4`?; known are byte, cidr, date, date-time, duration, email, hostname, ipv4, ipv6, password, uri, uuid, double, float, int32, int64",
        ),
        (
            "boolean | format=date",
            "column 11: `format` date is not for true or false",
        ),
        (
            "string | required=maybe",
            "column 19: `maybe` is neither true nor false",
        ),
        (
            "größe",
            "column 1: `größe` is no type; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "string | title=größe oops=1",
            "column 22: `oops` is no attribute",
        ),
    ] {
        let problems = Schema::parse(&object(json!({"outer": {"a.b": text}}))).expect_err(text);
        assert_eq!(
            lines(&problems),
            [format!("outer[\"a.b\"]: {message}")],
            "{text}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_shorthand_map() {
    let hint = "A schema with keywords is written as OpenAPI v3, from the top: type: object, properties: ...";
    for (schema, problems) in [
        (
            json!({"replicas": {"type": "integer", "default": 1}}),
            vec![format!("replicas.default: is an integer; wanted a type, as \"integer | default=1\". {hint}")],
        ),
        (
            json!({"a": {"enum": ["x"]}}),
            vec![format!("a.enum: is a list; wanted a type, as \"integer | default=1\". {hint}")],
        ),
        (
            json!({"a": null}),
            vec![format!("a: is null; wanted a type, as \"integer | default=1\". {hint}")],
        ),
        (
            json!({"a": {}}),
            vec!["a: is an object without fields; write \"object\" for one of free form".to_owned()],
        ),
        (
            json!({"$types": {"x": "string"}, "": "string"}),
            vec![
                "[\"\"]: a parameter's name is not empty and does not begin with `$`".to_owned(),
                "[\"$types\"]: a parameter's name is not empty and does not begin with `$`".to_owned(),
            ],
        ),
        (
            json!({"a": "integer | min=1", "b": {"c": "text", "d": "string"}}),
            vec![
                "a: column 11: `min` is no attribute".to_owned(),
                "b.c: column 1: `text` is no type, did you mean `string`?; types are string, integer, number, boolean, object, any, []T and map<T>".to_owned(),
            ],
        ),
    ] {
        let found = Schema::parse(&object(schema.clone())).expect_err("a problem");
        assert_eq!(lines(&found), problems, "{schema}");
    }
}

#[test]
fn what_is_wrong_with_an_openapi_schema() {
    for (a, problems) in [
        (
            json!({"$ref": "#/x"}),
            vec!["properties.a[\"$ref\"]: `$ref` is not followed; write the schema out"],
        ),
        (
            json!({"typ": "string"}),
            vec![
                "properties.a.typ: `typ` is no keyword that is understood here, did you mean `type`?",
            ],
        ),
        (
            json!({"if": {}}),
            vec!["properties.a.if: `if` is no keyword that is understood here"],
        ),
        (
            json!({"type": "int"}),
            vec![
                "properties.a.type: `type` is \"int\"; wanted one of string, integer, number, boolean, array, object",
            ],
        ),
        (
            json!({"type": ["string", "null"]}),
            vec![
                "properties.a.type: `type` is a list; wanted one name of a type, and nullable: true where null is allowed",
            ],
        ),
        (
            json!({"type": "string", "x-kubernetes-int-or-string": true}),
            vec![
                "properties.a.type: `type` stands beside x-kubernetes-int-or-string, which says it already",
            ],
        ),
        (
            json!("string"),
            vec!["properties.a: is a string; wanted a schema"],
        ),
        (
            json!({"type": "array", "items": [{}]}),
            vec!["properties.a.items: is a list; wanted a schema"],
        ),
        (
            json!({"type": "array", "items": {"type": "array", "items": {"minimum": "x"}}}),
            vec!["properties.a.items.items.minimum: `minimum` is \"x\"; wanted a number"],
        ),
        (
            json!({"type": "object", "properties": []}),
            vec![
                "properties.a.properties: `properties` is a list; wanted an object of names and schemas",
            ],
        ),
        (
            json!({"type": "object", "properties": {"x.y": {"type": "x"}}}),
            vec![
                "properties.a.properties[\"x.y\"].type: `type` is \"x\"; wanted one of string, integer, number, boolean, array, object",
            ],
        ),
        (
            json!({"type": "object", "properties": {"xyz": {}}, "required": ["xyy"]}),
            vec![
                "properties.a.required: `required` names \"xyy\", which properties does not have, did you mean `xyz`?",
            ],
        ),
        (
            json!({"type": "object", "required": true}),
            vec!["properties.a.required: `required` has to be a list of the names of properties"],
        ),
        (
            json!({"type": "object", "additionalProperties": 1}),
            vec!["properties.a.additionalProperties: is an integer; wanted a schema"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "x"}}),
            vec![
                "properties.a.additionalProperties.type: `type` is \"x\"; wanted one of string, integer, number, boolean, array, object",
            ],
        ),
        (
            json!({"nullable": "yes"}),
            vec!["properties.a.nullable: `nullable` is \"yes\"; wanted true or false"],
        ),
        (
            json!({"type": "string", "pattern": 1}),
            vec!["properties.a.pattern: `pattern` is 1; wanted a string"],
        ),
        (
            json!({"type": "string", "pattern": "a{2,1}"}),
            vec![
                "properties.a.pattern: `pattern` is no regular expression: invalid repetition count range, the start must be <= the end",
            ],
        ),
        (
            json!({"enum": []}),
            vec!["properties.a.enum: `enum` has to be a list of values, and not empty"],
        ),
        (
            json!({"type": "string", "default": 1}),
            vec!["properties.a.default: `default` does not fit: 1 is an integer; wanted a string"],
        ),
        (
            json!({"type": "string", "default": null}),
            vec!["properties.a.default: `default` is null, and nullable is not true"],
        ),
        (
            json!({"type": "object", "properties": {"x": {}}, "default": {"y": 1}}),
            vec![
                "properties.a.default: `default` does not fit: at y: the schema does not know it, so it is dropped, did you mean `x`?",
            ],
        ),
        (
            json!({"type": "object", "properties": {"x": {}}, "required": ["x"], "default": {}}),
            vec!["properties.a.default: `default` does not fit: at x: is missing; wanted anything"],
        ),
        (
            json!({"anyOf": [{"default": 1}]}),
            vec![
                "properties.a.anyOf[0].default: `default` is not for allOf, anyOf, oneOf and not, which only check",
            ],
        ),
        (
            json!({"oneOf": []}),
            vec!["properties.a.oneOf: `oneOf` has to be a list of schemas, and not empty"],
        ),
        (
            json!({"allOf": [1]}),
            vec!["properties.a.allOf[0]: is an integer; wanted a schema"],
        ),
        (
            json!({"not": {"minimum": 2, "maximum": 1}}),
            vec![
                "properties.a.not.minimum: `minimum` of 2 is above the maximum of 1: nothing fits",
            ],
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"a": a}});
        let found = Schema::parse(&object(schema)).expect_err("a problem");
        assert_eq!(lines(&found), problems, "{a}");
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"a": a}}});
        let found = Schema::parse(&object(schema)).expect_err("a problem");
        let wrapped: Vec<String> = problems
            .iter()
            .map(|line| format!("openAPIV3Schema.{line}"))
            .collect();
        assert_eq!(lines(&found), wrapped, "{a}");
    }
    for (schema, problem) in [
        (
            json!({"openAPIV3Schema": {"type": "array", "items": {}}}),
            "openAPIV3Schema.type: `type` has to be object: parameters have names",
        ),
        (
            json!({"openAPIV3Schema": {}}),
            "openAPIV3Schema.type: `type` has to be object: parameters have names",
        ),
        (
            json!({"type": "object", "properties": {}, "default": {}}),
            "default: `default` is for parameters, not for all of them together",
        ),
    ] {
        let found = Schema::parse(&object(schema.clone())).expect_err("a problem");
        assert_eq!(lines(&found), [problem], "{schema}");
    }
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
        first(openapi(nest(
            2_000,
            json!({}),
            |inner| json!({"not": inner})
        ))),
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
    assert!(first(Value::Object(patterns)).contains("too large together"));
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

    // A large default in every item of a long list.
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

    // Many alternatives over a long list, and a way out that exhaustion must not open.
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

/// Texts that are often right.
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

/// Schemas that are often wrong.
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

/// Fitting twice is fitting once, and leaves nothing to drop.
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
        // Only what the outermost level requires can be missing.
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
