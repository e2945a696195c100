//! Tests the errors in schemas, in both notations.

use serde_json::json;

use super::super::Schema;
use super::{lines, object};

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
            "column 1: `integr` is not a type, did you mean `integer`?; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "int",
            "column 1: `int` is not a type, did you mean `integer`?; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "[]list",
            "column 3: `list` is not a type, did you mean `[]T`?; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "quux",
            "column 1: `quux` is not a type; types are string, integer, number, boolean, object, any, []T and map<T>",
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
            "column 10: `defualt` is not an attribute, did you mean `default`?",
        ),
        (
            "string | default=x zzz=1",
            "column 20: `zzz` is not an attribute",
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
            "column 20: `default` appears twice",
        ),
        (
            "string | default='a",
            "column 18: the closing quote or bracket is missing",
        ),
        (
            "string | default=\"a",
            "column 18: the closing quote or bracket is missing",
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
            "column 21: the closing quote or bracket is missing",
        ),
        (
            "[]integer | default=[1,a]",
            "column 24: is no JSON: expected value",
        ),
        (
            "[]integer | default=1,2",
            "column 21: `1,2` is not a list; a list is written as JSON, for example [1,2]",
        ),
        (
            "map<string> | default=a",
            "column 23: `a` is not an object; an object is written as JSON, for example {\"a\":1}",
        ),
        ("integer | default=x", "column 19: `x` is not a number"),
        (
            "integer | default=1.5",
            "column 11: `default` does not fit: 1.5 is a number; expected an integer",
        ),
        (
            "integer | default=0 minimum=1",
            "column 11: `default` does not fit: 0 is too small; expected at least 1",
        ),
        (
            "boolean | default=yes",
            "column 19: `yes` is neither true nor false",
        ),
        (
            "string | default=c enum=a,b",
            "column 10: `default` does not fit: \"c\" is not allowed; expected one of \"a\", \"b\"",
        ),
        (
            "[]integer | default=[1,\"x\"]",
            "column 13: `default` does not fit: at [1]: \"x\" is a string; expected an integer",
        ),
        (
            "map<integer> | default={\"a\":\"x\"}",
            "column 16: `default` does not fit: at a: \"x\" is a string; expected an integer",
        ),
        (
            "integer | default=null",
            "column 19: `null` is not a number",
        ),
        (
            "integer | minimum=5 maximum=1",
            "column 11: `minimum` of 5 is above the maximum of 1: no value fits",
        ),
        (
            "integer | exclusiveMinimum=1 maximum=1",
            "column 11: `exclusiveMinimum` of 1 is above the maximum of 1: no value fits",
        ),
        (
            "integer | exclusiveMinimum=true",
            "column 11: `exclusiveMinimum` needs a number, or `minimum` beside it",
        ),
        (
            "string | minLength=5 maxLength=1",
            "column 10: `minLength` of 5 is above the maxLength of 1: no value fits",
        ),
        (
            "[]any | minItems=-1",
            "column 9: `minItems` is -1; expected an integer from 0",
        ),
        ("[]any | maxItems=x", "column 18: `x` is not a number"),
        (
            "integer | multipleOf=0",
            "column 11: `multipleOf` has to be above 0",
        ),
        ("integer | enum=1,x", "column 18: `x` is not a number"),
        (
            "integer | enum=[1,\"x\"]",
            "column 11: `enum` has \"x\", which is a string; expected an integer",
        ),
        (
            "[]string | enum=a,b",
            "column 12: `enum` is for single values; write the schema as OpenAPI v3 to choose the items of a list or map",
        ),
        (
            "string | pattern=a(b",
            "column 10: `pattern` is not a regular expression: unclosed group",
        ),
        (
            "string | pattern=((a{1000}){1000}){1000}",
            "column 10: `pattern` is too large a regular expression",
        ),
        (
            "string | minimum=1",
            "column 10: `minimum` applies to integers and numbers, but this is a string",
        ),
        (
            "integer | minLength=1",
            "column 11: `minLength` applies to strings, but this is an integer",
        ),
        (
            "string | minItems=1",
            "column 10: `minItems` applies to lists, but this is a string",
        ),
        (
            "[]string | maxProperties=1",
            "column 12: `maxProperties` applies to objects, but this is a list",
        ),
        (
            "string | format=ipv5",
            "column 10: `format` \"ipv5\" is unknown, did you mean `ipv4`?; known are byte, cidr, date, date-time, duration, email, hostname, ipv4, ipv6, password, uri, uuid, double, float, int32, int64",
        ),
        (
            "boolean | format=date",
            "column 11: `format` date does not apply to true or false",
        ),
        (
            "string | required=maybe",
            "column 19: `maybe` is neither true nor false",
        ),
        (
            "größe",
            "column 1: `größe` is not a type; types are string, integer, number, boolean, object, any, []T and map<T>",
        ),
        (
            "string | title=größe oops=1",
            "column 22: `oops` is not an attribute",
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
            vec![format!("replicas.default: is an integer; expected a type, as \"integer | default=1\". {hint}")],
        ),
        (
            json!({"a": {"enum": ["x"]}}),
            vec![format!("a.enum: is a list; expected a type, as \"integer | default=1\". {hint}")],
        ),
        (
            json!({"a": null}),
            vec![format!("a: is null; expected a type, as \"integer | default=1\". {hint}")],
        ),
        (
            json!({"a": {}}),
            vec!["a: is an object without fields; write \"object\" to allow any fields".to_owned()],
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
                "a: column 11: `min` is not an attribute".to_owned(),
                "b.c: column 1: `text` is not a type, did you mean `string`?; types are string, integer, number, boolean, object, any, []T and map<T>".to_owned(),
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
            vec!["properties.a[\"$ref\"]: `$ref` is not supported; write the schema in its place"],
        ),
        (
            json!({"typ": "string"}),
            vec!["properties.a.typ: `typ` is not a known keyword, did you mean `type`?"],
        ),
        (
            json!({"if": {}}),
            vec!["properties.a.if: `if` is not a known keyword"],
        ),
        (
            json!({"type": "int"}),
            vec![
                "properties.a.type: `type` is \"int\"; expected one of string, integer, number, boolean, array, object",
            ],
        ),
        (
            json!({"type": ["string", "null"]}),
            vec![
                "properties.a.type: `type` is a list; expected one name of a type, and nullable: true where null is allowed",
            ],
        ),
        (
            json!({"type": "string", "x-kubernetes-int-or-string": true}),
            vec!["properties.a.type: `type` is not needed beside x-kubernetes-int-or-string"],
        ),
        (
            json!("string"),
            vec!["properties.a: is a string; expected a schema"],
        ),
        (
            json!({"type": "array", "items": [{}]}),
            vec!["properties.a.items: is a list; expected a schema"],
        ),
        (
            json!({"type": "array", "items": {"type": "array", "items": {"minimum": "x"}}}),
            vec!["properties.a.items.items.minimum: `minimum` is \"x\"; expected a number"],
        ),
        (
            json!({"type": "object", "properties": []}),
            vec![
                "properties.a.properties: `properties` is a list; expected an object of names and schemas",
            ],
        ),
        (
            json!({"type": "object", "properties": {"x.y": {"type": "x"}}}),
            vec![
                "properties.a.properties[\"x.y\"].type: `type` is \"x\"; expected one of string, integer, number, boolean, array, object",
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
            vec!["properties.a.additionalProperties: is an integer; expected a schema"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "x"}}),
            vec![
                "properties.a.additionalProperties.type: `type` is \"x\"; expected one of string, integer, number, boolean, array, object",
            ],
        ),
        (
            json!({"nullable": "yes"}),
            vec!["properties.a.nullable: `nullable` is \"yes\"; expected true or false"],
        ),
        (
            json!({"type": "string", "pattern": 1}),
            vec!["properties.a.pattern: `pattern` is 1; expected a string"],
        ),
        (
            json!({"type": "string", "pattern": "a{2,1}"}),
            vec![
                "properties.a.pattern: `pattern` is not a regular expression: invalid repetition count range, the start must be <= the end",
            ],
        ),
        (
            json!({"enum": []}),
            vec!["properties.a.enum: `enum` has to be a list of values, and not empty"],
        ),
        (
            json!({"type": "string", "default": 1}),
            vec![
                "properties.a.default: `default` does not fit: 1 is an integer; expected a string",
            ],
        ),
        (
            json!({"type": "string", "default": null}),
            vec!["properties.a.default: `default` is null, and nullable is not true"],
        ),
        (
            json!({"type": "object", "properties": {"x": {}}, "default": {"y": 1}}),
            vec![
                "properties.a.default: `default` does not fit: at y: the schema does not have this field, so bowline drops it, did you mean `x`?",
            ],
        ),
        (
            json!({"type": "object", "properties": {"x": {}}, "required": ["x"], "default": {}}),
            vec![
                "properties.a.default: `default` does not fit: at x: is missing; expected anything",
            ],
        ),
        (
            json!({"anyOf": [{"default": 1}]}),
            vec![
                "properties.a.anyOf[0].default: `default` is not allowed in allOf, anyOf, oneOf and not: they only check values",
            ],
        ),
        (
            json!({"oneOf": []}),
            vec!["properties.a.oneOf: `oneOf` has to be a list of schemas, and not empty"],
        ),
        (
            json!({"allOf": [1]}),
            vec!["properties.a.allOf[0]: is an integer; expected a schema"],
        ),
        (
            json!({"not": {"minimum": 2, "maximum": 1}}),
            vec![
                "properties.a.not.minimum: `minimum` of 2 is above the maximum of 1: no value fits",
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
            "default: `default` applies to single parameters, not to the whole schema",
        ),
    ] {
        let found = Schema::parse(&object(schema.clone())).expect_err("a problem");
        assert_eq!(lines(&found), [problem], "{schema}");
    }
}
