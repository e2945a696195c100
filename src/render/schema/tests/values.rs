//! Tests the values and the errors that checking parameters returns.

use serde_json::{Value, json};

use super::{lines, object, parse};

/// Checks a value with a schema, and returns the result. The check must report no errors and no warnings.
fn fitted(schema: &Value, value: Value) -> Value {
    let fitted = parse(schema).fit(object(value));
    assert!(fitted.errors.is_empty(), "{schema}: {:?}", fitted.errors);
    assert!(fitted.dropped.is_empty(), "{schema}: {:?}", fitted.dropped);
    Value::Object(fitted.value)
}

#[test]
fn what_values_become() {
    for (schema, given, expected) in [
        // These examples are in the specification.
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
        // In these examples, a value gets the type of its parameter.
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
        // These examples contain whole numbers and nulls.
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
        // These examples contain nested lists and maps.
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
        // These examples contain nested objects.
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
        // In these examples, attributes only document the parameter.
        (
            json!({"a": "integer | title=x description='a b' example=3 default=1"}),
            json!({}),
            json!({"a": 1}),
        ),
        // In these examples, parameters have names that look like OpenAPI keywords.
        (
            json!({"type": "string | default=x", "properties": {"a": "integer | default=1"}}),
            json!({}),
            json!({"type": "x", "properties": {"a": 1}}),
        ),
        // These schemas are in OpenAPI.
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
            vec!["a: \"x\" is a string; expected an integer"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": 1.5}),
            vec!["a: 1.5 is a number; expected an integer"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": true}),
            vec!["a: true is a boolean; expected an integer"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": u64::MAX}),
            vec!["a: 18446744073709551615 is too large; expected an integer of 64 bits"],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": 1e30}),
            vec!["a: 1e+30 is a number; expected an integer"],
        ),
        (
            json!({"a": "string"}),
            json!({"a": 1}),
            vec!["a: 1 is an integer; expected a string"],
        ),
        (
            json!({"a": "number"}),
            json!({"a": "1"}),
            vec!["a: \"1\" is a string; expected a number"],
        ),
        (
            json!({"a": "boolean"}),
            json!({"a": "true"}),
            vec!["a: \"true\" is a string; expected true or false"],
        ),
        (
            json!({"a": "object"}),
            json!({"a": [1]}),
            vec!["a: [1] is a list; expected an object"],
        ),
        (
            json!({"a": "[]integer"}),
            json!({"a": {"b": 1}}),
            vec!["a: {\"b\":1} is an object; expected a list"],
        ),
        (
            json!({"a": "[]integer"}),
            json!({"a": [1, "x", 3, null]}),
            vec![
                "a[1]: \"x\" is a string; expected an integer",
                "a[3]: is null; expected an integer",
            ],
        ),
        (
            json!({"a": "map<integer>"}),
            json!({"a": {"a.b": "x", "c": "y"}}),
            vec![
                "a[\"a.b\"]: \"x\" is a string; expected an integer",
                "a.c: \"y\" is a string; expected an integer",
            ],
        ),
        (
            json!({"a": "[]map<[]integer>"}),
            json!({"a": [{}, {"x": [1, "y"]}]}),
            vec!["a[1].x[1]: \"y\" is a string; expected an integer"],
        ),
        (
            json!({"auto": {"max": "integer"}}),
            json!({"auto": {"max": "x"}}),
            vec!["auto.max: \"x\" is a string; expected an integer"],
        ),
        (
            json!({"auto": {"max": "integer"}}),
            json!({"auto": 3}),
            vec!["auto: 3 is an integer; expected an object"],
        ),
        (
            json!({"a": "string"}),
            json!({"a": ["\u{1b}[31m".repeat(50)]}),
            vec![
                "a: [\"\\u001b[31m\\u001b[31m\\u001b[31m\\u001b[31m\\u001… is a list; expected a string",
            ],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": "pro\u{202e}d"}),
            vec!["a: \"pro\u{fffd}d\" is a string; expected an integer"],
        ),
        // In these examples, a required parameter is missing.
        (
            json!({"a": "integer | required=true"}),
            json!({}),
            vec!["a: is missing; expected an integer"],
        ),
        (
            json!({"a": "integer | required=true"}),
            json!({"a": null}),
            vec!["a: is missing; expected an integer"],
        ),
        (
            json!({"tls": {"secret": "string | required=true"}}),
            json!({"tls": {}}),
            vec!["tls.secret: is missing; expected a string"],
        ),
        // In these examples, a value exceeds a limit.
        (
            json!({"a": "integer | minimum=1 maximum=3"}),
            json!({"a": 0}),
            vec!["a: 0 is too small; expected at least 1"],
        ),
        (
            json!({"a": "integer | minimum=1 maximum=3"}),
            json!({"a": 4}),
            vec!["a: 4 is too large; expected at most 3"],
        ),
        (
            json!({"a": "number | exclusiveMinimum=1 exclusiveMaximum=2"}),
            json!({"a": 1}),
            vec!["a: 1 is too small; expected more than 1"],
        ),
        (
            json!({"a": "number | minimum=1 maximum=2 exclusiveMaximum=true"}),
            json!({"a": 2.0}),
            vec!["a: 2.0 is too large; expected less than 2"],
        ),
        (
            json!({"a": "number | minimum=5 exclusiveMinimum=1"}),
            json!({"a": 4}),
            vec!["a: 4 is too small; expected at least 5"],
        ),
        (
            json!({"a": "integer | multipleOf=5"}),
            json!({"a": 7}),
            vec!["a: 7 is not a multiple of 5"],
        ),
        (
            json!({"a": "integer | format=int32"}),
            json!({"a": 3_000_000_000u32}),
            vec!["a: 3000000000 is not an integer of 32 bits, which the format int32 requires"],
        ),
        (
            json!({"a": "string | minLength=2"}),
            json!({"a": "é"}),
            vec!["a: \"é\" has 1 character; expected at least 2"],
        ),
        (
            json!({"a": "string | maxLength=2"}),
            json!({"a": "éab"}),
            vec!["a: \"éab\" has 3 characters; expected at most 2"],
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
            vec!["a: \"x\" is not allowed; expected one of \"web\", \"batch\""],
        ),
        (
            json!({"a": "string | enum=\"a b\",c"}),
            json!({"a": "a"}),
            vec!["a: \"a\" is not allowed; expected one of \"a b\", \"c\""],
        ),
        (
            json!({"a": "integer | enum=[1, 2]"}),
            json!({"a": 3}),
            vec!["a: 3 is not allowed; expected one of 1, 2"],
        ),
        (
            json!({"a": "integer | enum=1"}),
            json!({"a": 3}),
            vec!["a: 3 is not allowed; expected 1"],
        ),
        (
            json!({"a": "[]integer | minItems=1"}),
            json!({"a": []}),
            vec!["a: has 0 items; expected at least 1"],
        ),
        (
            json!({"a": "[]integer | maxItems=1"}),
            json!({"a": [1, 2]}),
            vec!["a: has 2 items; expected at most 1"],
        ),
        (
            json!({"a": "[]number | uniqueItems=true"}),
            json!({"a": [1, 2, 1.0]}),
            vec!["a[2]: 1.0 appears twice; the items must differ"],
        ),
        (
            json!({"a": "[]object | uniqueItems=true"}),
            json!({"a": [{"x": 1}, {"x": 1}]}),
            vec!["a[1]: {\"x\":1} appears twice; the items must differ"],
        ),
        (
            json!({"a": "map<any> | minProperties=1"}),
            json!({"a": {}}),
            vec!["a: has 0 keys; expected at least 1"],
        ),
        (
            json!({"a": "object | maxProperties=1"}),
            json!({"a": {"x": 1, "y": 2}}),
            vec!["a: has 2 keys; expected at most 1"],
        ),
        (
            json!({"a": "integer | minimum=5", "b": "boolean"}),
            json!({"a": 1, "b": 1}),
            vec![
                "a: 1 is too small; expected at least 5",
                "b: 1 is an integer; expected true or false",
            ],
        ),
        // These schemas are in OpenAPI.
        (
            openapi(json!({"x-kubernetes-int-or-string": true})),
            json!({"a": true}),
            vec!["a: true is a boolean; expected an integer or a string"],
        ),
        (
            openapi(json!({"allOf": [{"type": "integer"}, {"minimum": 3}]})),
            json!({"a": 1}),
            vec!["a: 1 is too small; expected at least 3"],
        ),
        (
            openapi(json!({"anyOf": [{"type": "integer"}, {"pattern": "^x"}]})),
            json!({"a": "y"}),
            vec!["a: \"y\" fits none of the 2 schemas of anyOf"],
        ),
        (
            openapi(json!({"oneOf": [{"type": "integer"}, {"minimum": 3}]})),
            json!({"a": 3}),
            vec!["a: 3 fits 2 of the 2 schemas of oneOf; expected exactly one"],
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
            vec!["a: {} fits 0 of the 2 schemas of oneOf; expected exactly one"],
        ),
        (
            openapi(
                json!({"type": "object", "properties": {"x": {"type": "integer"}}, "allOf": [{"properties": {"x": {"maximum": 1}}}]}),
            ),
            json!({"a": {"x": 2}}),
            vec!["a.x: 2 is too large; expected at most 1"],
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({}),
            vec!["a: is missing; expected anything"],
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "minProperties": 1}),
            json!({}),
            vec!["has 0 keys; expected at least 1"],
        ),
        (
            openapi(json!({"type": "number", "minimum": 1, "exclusiveMinimum": true})),
            json!({"a": 1}),
            vec!["a: 1 is too small; expected more than 1"],
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
                "replicsa: the schema does not have this field, so bowline drops it, did you mean `replicas`?",
            ],
        ),
        (
            json!({"a": "integer"}),
            json!({"a": 1, "zzzzzz": null}),
            json!({"a": 1}),
            vec!["zzzzzz: the schema does not have this field, so bowline drops it"],
        ),
        (
            json!({"a": {"b": "integer"}}),
            json!({"a": {"b": 1, "c.d": {"e": 1}}}),
            json!({"a": {"b": 1}}),
            vec!["a[\"c.d\"]: the schema does not have this field, so bowline drops it"],
        ),
        (
            json!({}),
            json!({"a": 1}),
            json!({}),
            vec!["a: the schema does not have this field, so bowline drops it"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {}}, "additionalProperties": false}}}}),
            json!({"a": [{"b": 1}, {"\u{1b}[0m": 1}]}),
            json!({"a": [{"b": 1}, {}]}),
            vec!["a[1][\"\u{fffd}[0m\"]: the schema does not have this field, so bowline drops it"],
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
