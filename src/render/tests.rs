use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::{AddonDefinition, Component, Workload};

/// Returns the definitions of a component. `parts` contains the spec of each definition.
fn definitions(parts: &Value) -> Definitions {
    let part = |name: &str| parts.get(name).cloned().unwrap_or_else(|| json!({}));
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let mut component = part("component");
    let fields = component.as_object_mut().unwrap();
    fields.insert("componentType".into(), "deployment/t".into());
    let mut type_ = part("type");
    let fields = type_.as_object_mut().unwrap();
    fields.insert("workloadType".into(), "deployment".into());
    let mut component: Component =
        serde_json::from_value(object("Component", "cart", component)).unwrap();
    component.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
    let workload: Workload =
        serde_json::from_value(object("Workload", "cart", part("workload"))).unwrap();
    let addons = component
        .spec
        .addons
        .iter()
        .map(|instance| AddonDefinition {
            name: instance.name.clone(),
            instance_id: instance.instance_id.clone(),
            addon: serde_json::from_value(object("Addon", &instance.name, part(&instance.name)))
                .unwrap(),
        });
    Definitions {
        addons: addons.collect(),
        component_type_definition: serde_json::from_value(object(
            "ComponentTypeDefinition",
            "t",
            type_,
        ))
        .unwrap(),
        component,
        workload,
    }
}

fn environment() -> Environment {
    serde_json::from_value(json!({
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "production"},
        "spec": {"dataPlaneRef": {"name": "d"}, "isProduction": true, "namespace": "shop-production"},
    }))
    .unwrap()
}

fn render_parts(parts: &Value) -> Result<Rendered, String> {
    let definitions = definitions(parts);
    let settings: Option<EnvSettings> = parts.get("settings").map(|settings| {
        let mut settings = settings.clone();
        let fields = settings.as_object_mut().unwrap();
        fields.insert("owner".into(), json!({"componentName": "cart"}));
        fields.insert("environment".into(), "production".into());
        serde_json::from_value(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "EnvSettings",
            "metadata": {"name": "cart-production"}, "spec": settings,
        }))
        .unwrap()
    });
    let inputs = Inputs {
        definitions: &definitions,
        settings: settings.as_ref(),
        environment: &environment(),
        namespace: "shop",
    };
    render(&inputs, &Library::new()).map_err(|error| error.to_string())
}

fn parse(text: &str) -> Value {
    bounded_yaml::documents("case", text)
        .unwrap()
        .remove(0)
        .value
}

fn render_yaml(text: &str) -> Result<Rendered, String> {
    render_parts(&parse(text))
}

/// Renders a ConfigMap whose key `out` contains the template `written`, and returns the value of this key. Null if
/// the key was left out.
fn value_of(written: &Value) -> Result<Value, String> {
    let parts = json!({
        "component": {
            "parameters": {
                "n": 3, "half": 0.5, "whole": 2.0, "yes": true, "no": false, "word": "cart", "empty": "",
                "list": [1, 2, 3], "words": ["a", "b"], "none": [],
                "map": {"a": 1, "b": {"c": 2, "d": 3}}, "bare": {},
                "ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 9000}],
                "labels": {"a.b/c": "d"}, "code": "${spec.word}", "mustache": "{{ .host }}:{{ .port }}",
                "long": "x".repeat(80),
            },
            "build": {"commit": "abc"},
        },
        "workload": {"image": "shop/cart:1", "endpoints": [{"name": "api", "port": 8080}], "size": "small"},
        "type": {"resources": [{"id": "r", "template": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cart"}, "out": written,
        }}]},
    });
    let rendered = render_parts(&parts)?;
    let object = &rendered.resources.first().unwrap().object;
    Ok(object.get("out").cloned().unwrap_or_default())
}

#[test]
fn what_values_become() {
    let table: &[(Value, Value)] = &[
        // A string that is one expression becomes the value of the expression, with its type.
        (json!("${spec.n}"), json!(3)),
        (json!("${ spec.n }"), json!(3)),
        (json!("${spec.half}"), json!(0.5)),
        (json!("${spec.whole}"), json!(2.0)),
        (json!("${spec.yes}"), json!(true)),
        (json!("${spec.word}"), json!("cart")),
        (json!("${spec.empty}"), json!("")),
        (json!("${spec.list}"), json!([1, 2, 3])),
        (json!("${spec.map}"), json!({"a": 1, "b": {"c": 2, "d": 3}})),
        (json!("${spec.none}"), json!([])),
        (json!("${spec.bare}"), json!({})),
        (json!("${null}"), Value::Null),
        (json!("${spec.n + 1}"), json!(4)),
        (json!("${spec.n > 2 ? 'many' : 'few'}"), json!("many")),
        (json!("${string(spec.n)}"), json!("3")),
        (json!("${{'a': {'b': spec.n}}}"), json!({"a": {"b": 3}})),
        (json!("${'}'}"), json!("}")),
        (json!("${\"a}b\" + '{'}"), json!("a}b{")),
        (json!(r"${'it\'s }'}"), json!("it's }")),
        (json!(r"${r'\'}"), json!("\\")),
        (json!("${'''a } ' b'''}"), json!("a } ' b")),
        (json!("${spec.n // } no end\n + 1}"), json!(4)),
        (json!("${spec.labels['a.b/c']}"), json!("d")),
        // An expression inside text becomes text.
        (json!("a-${spec.n}-b"), json!("a-3-b")),
        (json!("${spec.word}-${spec.n}"), json!("cart-3")),
        (json!(" ${spec.n}"), json!(" 3")),
        (json!("${spec.half} and ${spec.whole}"), json!("0.5 and 2")),
        (json!("${spec.yes}!"), json!("true!")),
        (json!("${spec.empty}${spec.empty}"), json!("")),
        (json!("ä${spec.word}ö"), json!("äcartö")),
        (json!("a\n${spec.n}\nb"), json!("a\n3\nb")),
        // A text without an expression stays unchanged.
        (json!("plain"), json!("plain")),
        (json!("$"), json!("$")),
        (json!("$5 {a}"), json!("$5 {a}")),
        (
            json!("{{ .host }}:{{ .port }}"),
            json!("{{ .host }}:{{ .port }}"),
        ),
        (json!("$${spec.n}"), json!("${spec.n}")),
        (json!("$${HOME}/${spec.word}"), json!("${HOME}/cart")),
        (json!("$$${spec.n}"), json!("$${spec.n}")),
        (json!(7), json!(7)),
        (json!(null), Value::Null),
        (json!([1, "a", null]), json!([1, "a", null])),
        // The result of an expression is not parsed as a template.
        (json!("${spec.code}"), json!("${spec.word}")),
        (json!("x${spec.code}"), json!("x${spec.word}")),
        (json!("${spec.mustache}"), json!("{{ .host }}:{{ .port }}")),
        // These templates use optionals and `omit()`.
        (json!("${spec.?missing}"), Value::Null),
        (json!({"a": "${spec.?missing}", "b": 1}), json!({"b": 1})),
        (json!(["${spec.?missing}", 1]), json!([1])),
        (json!("${spec.?n}"), json!(3)),
        (json!("${spec.?missing.orValue(9)}"), json!(9)),
        (json!("${spec.?n.orValue(9)}"), json!(3)),
        (json!("${spec.?map.?b.?c}"), json!(2)),
        (json!("${spec.?map.?x.?c.orValue('-')}"), json!("-")),
        (json!("${spec.list[?5]}"), Value::Null),
        (json!("${has(spec.missing) ? 1 : 2}"), json!(2)),
        (json!({"a": "${omit()}", "b": 1}), json!({"b": 1})),
        (json!(["${omit()}", "${spec.n}"]), json!([3])),
        (json!("${spec.no ? 'x' : omit()}"), Value::Null),
        (json!("${spec.yes ? 'x' : omit()}"), json!("x")),
        (
            json!("${{'a': omit(), 'b': [1, omit()]}}"),
            json!({"b": [1]}),
        ),
        (json!({"a": {"b": "${omit()}"}}), json!({"a": {}})),
        (json!("${spec.?missing.optMap(m, m + 1)}"), Value::Null),
        (json!("${spec.?n.optMap(n, n + 1)}"), json!(4)),
        // These templates use the function `merge`.
        (
            json!("${merge(spec.map, {'b': {'c': 9}})}"),
            json!({"a": 1, "b": {"c": 9, "d": 3}}),
        ),
        (
            json!("${merge(spec.map, {'a': null})}"),
            json!({"b": {"c": 2, "d": 3}}),
        ),
        (
            json!("${merge(spec.map, {'b': {'d': null}, 'e': [1]})}"),
            json!({"a": 1, "b": {"c": 2}, "e": [1]}),
        ),
        (
            json!("${merge({'l': [1, 2]}, {'l': [3]})}"),
            json!({"l": [3]}),
        ),
        (
            json!("${merge({}, spec.map)}"),
            json!({"a": 1, "b": {"c": 2, "d": 3}}),
        ),
        (
            json!("${merge(spec.map, {'b': 1})}"),
            json!({"a": 1, "b": 1}),
        ),
        (
            json!("${merge(spec.bare, {'a': {'b': null, 'c': 1}})}"),
            json!({"a": {"c": 1}}),
        ),
        (
            json!("${merge(merge({'a': 1}, {'b': 2}), {'c': 3})}"),
            json!({"a": 1, "b": 2, "c": 3}),
        ),
        // These templates use the functions that create names.
        (
            json!("${dns(metadata.name, 'Settings')}"),
            json!("cart-settings"),
        ),
        (json!("${dns('a', spec.n)}"), json!("a-3")),
        (json!("${size(dns(spec.long))}"), json!(63)),
        (
            json!("${dns(spec.long) == dns(spec.long + 'y')}"),
            json!(false),
        ),
        (json!("${subdomain('A.b', 'c')}"), json!("a.b-c")),
        (json!("${size(labelValue(spec.long))}"), json!(63)),
        (
            json!("${labelValue('v1+2').startsWith('v1-2-')}"),
            json!(true),
        ),
        // These templates use functions for lists, strings and encodings.
        (json!("${spec.ports.map(p, p.port)}"), json!([80, 9000])),
        (
            json!("${spec.ports.filter(p, p.name == 'http')}"),
            json!([{"name": "http", "port": 80}]),
        ),
        (json!("${spec.words.join(',')}"), json!("a,b")),
        (json!("${spec.word.upperAscii()}"), json!("CART")),
        (
            json!("${'%s:%d'.format([spec.word, spec.n])}"),
            json!("cart:3"),
        ),
        (
            json!("${base64.encode(bytes(spec.word))}"),
            json!("Y2FydA=="),
        ),
        (
            json!("${spec.map.transformMap(k, v, k + '!')}"),
            json!({"a": "a!", "b": "b!"}),
        ),
        (
            json!("${spec.words.map(w, {'name': w})}"),
            json!([{"name": "a"}, {"name": "b"}]),
        ),
        (json!("${lists.range(3)}"), json!([0, 1, 2])),
        // These templates use the variables of templates.
        (
            json!("${metadata.name}.${metadata.namespace}"),
            json!("cart.shop"),
        ),
        (json!("${metadata.labels}"), json!({"team": "shop"})),
        (json!("${metadata.annotations}"), json!({})),
        (json!("${workload.image}"), json!("shop/cart:1")),
        (json!("${workload.size}"), json!("small")),
        (json!("${workload.endpoints[0].port}"), json!(8080)),
        (json!("${build.commit}"), json!("abc")),
        (json!("${environment.name}"), json!("production")),
        (json!("${environment.namespace}"), json!("shop-production")),
        (json!("${environment.isProduction}"), json!(true)),
        // These templates have expressions in keys.
        (
            json!({"${spec.word}": 1, "k-${spec.n}": 2}),
            json!({"cart": 1, "k-3": 2}),
        ),
        (json!({"$${x}": 1}), json!({"${x}": 1})),
        // These templates have expressions in nested lists and maps.
        (
            json!([{"a": ["${spec.n}", {"b": "${spec.word}"}]}]),
            json!([{"a": [3, {"b": "cart"}]}]),
        ),
    ];
    for (written, expected) in table {
        let found = value_of(written);
        assert_eq!(found.as_ref(), Ok(expected), "{written}");
    }
}

#[test]
fn what_is_wrong_says_where() {
    let table: &[(Value, &str)] = &[
        (
            json!("${spec.n"),
            "template.out, column 1: this ${ has no closing }",
        ),
        (
            json!("a ${spec.n} b ${'}"),
            "template.out, column 15: this ${ has no closing }",
        ),
        (
            json!("ä ${spec.n"),
            "template.out, column 3: this ${ has no closing }",
        ),
        (
            json!("a\nbc ${x"),
            "template.out, line 2, column 4: this ${ has no closing }",
        ),
        (
            json!({"a": [{"b": "${"}]}),
            "template.out.a[0].b, column 1: this ${",
        ),
        (
            json!({"a.b/c": "${"}),
            "template.out[\"a.b/c\"], column 1: this ${",
        ),
        (json!({"${": 1}), "template.out[\"${\"], column 1: this ${"),
        (
            json!("${}"),
            "template.out, column 3: cannot read the expression",
        ),
        (
            json!("${spec.}"),
            "template.out, column 8: cannot read the expression",
        ),
        (json!("ab ${spec.n +}"), "cannot read the expression"),
        (json!("${spec.n ++ 1}"), "cannot read the expression"),
        (
            json!("x\ny ${1 +\n  * 2}"),
            "template.out, line 3, column 3: cannot read the expression",
        ),
        (
            json!("${nope(1)}"),
            "template.out, column 3: cannot read the expression: function nope",
        ),
        (json!("${omit(1)}"), "function omit with 1 arguments"),
        (json!("${has(spec)}"), "has() takes a field"),
        (
            json!("${spec.missing}"),
            "template.out, column 1: ${spec.missing}: no such key: missing",
        ),
        (
            json!("ab ${spec.missing}"),
            "template.out, column 4: ${spec.missing}: no such key: missing",
        ),
        (
            json!({"a": ["x", "${spec.missing}"]}),
            "template.out.a[1], column 1",
        ),
        (json!("${spec.list[7]}"), "index out of bounds: 7"),
        (json!("${nothing}"), "${nothing}: nothing is not defined"),
        (json!("${resource}"), "resource is not defined"),
        (json!("${instanceId}"), "instanceId is not defined"),
        (json!("${component}"), "component is not defined"),
        (json!("${spec.word + 1}"), "no such overload"),
        (json!("${1 / 0}"), "${1 / 0}: "),
        (
            json!("${merge(spec.map, 1)}"),
            "no such overload: merge(map, int)",
        ),
        (
            json!("${merge(spec.list, {})}"),
            "no such overload: merge(list, map)",
        ),
        (json!("${dns(spec.map)}"), "no such overload: dns(map)"),
        (
            json!("${spec.?missing.value()}"),
            "the optional has no value",
        ),
        (
            json!("a${spec.list}"),
            "template.out, column 2: ${spec.list}: a list cannot be part of a text",
        ),
        (json!("a${spec.map}"), "a map cannot be part of a text"),
        (json!("a${null}"), "null cannot be part of a text"),
        (
            json!("a${omit()}"),
            "an omitted value cannot be part of a text",
        ),
        (
            json!({"a${omit()}": 1}),
            "an omitted value cannot be part of a text",
        ),
        (
            json!({"${spec.n}": 1, "3": 2}),
            "template.out.3, column 1: this key appears twice in the result",
        ),
        (json!("${'a'.matches('(')}"), "template.out, column 3"),
    ];
    for (written, expected) in table {
        let found = value_of(written).expect_err(&written.to_string());
        let place = "ComponentTypeDefinition t, resource r, ";
        assert!(found.starts_with(place), "{written}: {found}");
        assert!(
            found.contains(expected),
            "{written}: {found} has no {expected}"
        );
    }
}

#[test]
fn bombs_are_stopped() {
    let doubled = "x".repeat(1 << 10);
    let table: &[(Value, &str)] = &[
        (
            json!(format!("${{{}1{}}}", "(".repeat(500), ")".repeat(500))),
            "column",
        ),
        (json!(format!("${{{}}}", "1 + ".repeat(9000) + "1")), "too"),
        (json!(format!("${{[{}]}}", "1, ".repeat(9000))), "too"),
        (
            json!("${lists.range(3000).map(a, lists.range(3000).map(b, lists.range(3000)))}"),
            "too",
        ),
        (
            json!(format!("${{lists.range(20000).map(i, '{doubled}')}}")),
            "too",
        ),
        (
            json!(vec![
                format!("${{lists.range(3000).map(i, '{doubled}')}}");
                9
            ]),
            "too",
        ),
        (
            json!("${lists.range(20000).all(a, lists.range(20000).all(b, a >= 0))}"),
            "too",
        ),
        (json!("${spec.long.matches('(x+x+)+y')}"), ""),
    ];
    for (written, expected) in table {
        let found = value_of(written);
        let said = match &found {
            Ok(value) => value.to_string(),
            Err(error) => error.clone(),
        };
        assert!(said.contains(expected), "{said}");
        assert!(said.len() < 4000, "{} bytes", said.len());
    }
}

/// Each entry contains whole definitions, and the expected result: resources as `id kind/name`, or errors.
#[test]
fn what_definitions_become() {
    let template = "template: {apiVersion: v1, kind: ConfigMap, metadata: {name: ";
    for (title, text, expected) in [
        ("one", format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}"), "a ConfigMap/a"),
        ("none", "type: {resources: []}".to_owned(), ""),
        (
            "includeWhen that does not hold",
            format!("type: {{resources: [{{id: a, includeWhen: '${{spec.enabled}}', {template} a}}}}}}]}}\ncomponent: {{parameters: {{enabled: false}}}}"),
            "",
        ),
        (
            "includeWhen that holds",
            format!("type: {{resources: [{{id: a, includeWhen: '${{spec.enabled && environment.isProduction}}', {template} a}}}}}}]}}\ncomponent: {{parameters: {{enabled: true}}}}"),
            "a ConfigMap/a",
        ),
        (
            "includeWhen by what may be absent",
            format!("type: {{resources: [{{id: a, includeWhen: '${{spec.?enabled.orValue(false)}}', {template} a}}}}}}]}}"),
            "",
        ),
        (
            "forEach over a list",
            format!("type: {{resources: [{{id: a, forEach: '${{spec.l}}', var: one, {template} 'a-${{one}}'}}}}}}]}}\ncomponent: {{parameters: {{l: [v, x]}}}}"),
            "a-0 ConfigMap/a-v, a-1 ConfigMap/a-x",
        ),
        (
            "forEach calls it item",
            format!("type: {{resources: [{{id: a, forEach: '${{spec.l}}', {template} 'a-${{item.num}}'}}}}}}]}}\ncomponent: {{parameters: {{l: [{{num: x}}]}}}}"),
            "a-0 ConfigMap/a-x",
        ),
        (
            "forEach over a map, by key",
            format!("type: {{resources: [{{id: a, forEach: '${{spec.m}}', var: e, {template} '${{e.key}}-${{e.value}}'}}}}}}]}}\ncomponent: {{parameters: {{m: {{z: 1, b: 2}}}}}}"),
            "a-0 ConfigMap/b-2, a-1 ConfigMap/z-1",
        ),
        (
            "forEach over nothing",
            format!("type: {{resources: [{{id: a, forEach: '${{spec.?l}}', {template} a}}}}}}, {{id: b, forEach: '${{[]}}', {template} b}}}}}}]}}"),
            "",
        ),
        (
            "includeWhen by item",
            format!("type: {{resources: [{{id: a, forEach: '${{spec.l}}', var: one, includeWhen: '${{one > 1}}', {template} 'a-${{one}}'}}}}}}]}}\ncomponent: {{parameters: {{l: [1, 2, 3]}}}}"),
            "a-1 ConfigMap/a-2, a-2 ConfigMap/a-3",
        ),
        (
            "includeWhen before forEach",
            format!("type: {{resources: [{{id: a, forEach: '${{spec.missing}}', includeWhen: '${{false}}', {template} a}}}}}}]}}"),
            "",
        ),
        (
            "the order is that of kind, group, namespace and name",
            "type: {resources: [
              {id: 1, template: {apiVersion: v1, kind: Service, metadata: {name: a}}},
              {id: 2, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}},
              {id: 3, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: z}}},
              {id: 4, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}},
              {id: 5, template: {apiVersion: x.io/v1, kind: ConfigMap, metadata: {name: a}}}]}".replace("id: ", "id: r"),
            "r4 ConfigMap/a, r2 ConfigMap/b, r3 ConfigMap/a, r5 ConfigMap/a, r1 Service/a",
        ),
        (
            "an addon creates",
            format!("component: {{addons: [{{name: pvc, instanceId: data, config: {{size: 1Gi}}}}, {{name: pvc, instanceId: logs}}]}}\npvc: {{creates: [{{id: claim, {template} '${{metadata.name}}-${{instanceId}}-${{spec.?size.orValue(\"none\").lowerAscii()}}'}}}}}}]}}"),
            "pvc-data-claim ConfigMap/cart-data-1gi, pvc-logs-claim ConfigMap/cart-logs-none",
        ),
        (
            "an addon sees the component",
            format!("component: {{parameters: {{num: 2}}, addons: [{{name: x, instanceId: i, config: {{num: 5}}}}]}}\nx: {{creates: [{{id: c, {template} 'a-${{spec.num}}-${{component.num}}'}}}}}}]}}"),
            "x-i-c ConfigMap/a-5-2",
        ),
        (
            "settings override",
            format!("component: {{parameters: {{num: one}}, addons: [{{name: x, instanceId: i, config: {{num: b}}}}]}}\nsettings: {{overrides: {{num: two}}, addonOverrides: {{x: {{i: {{num: c}}}}}}}}\ntype: {{resources: [{{id: a, {template} '${{spec.num}}'}}}}}}]}}\nx: {{creates: [{{id: c, {template} '${{spec.num}}'}}}}}}]}}"),
            "x-i-c ConfigMap/c, a ConfigMap/two",
        ),
        (
            "an omitted operation",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: replace, path: /metadata/name, value: '${{omit()}}'}}]}}]}}"),
            "a ConfigMap/a",
        ),
        (
            "a patch by expression",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}, {{id: b, {template} b}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap, where: '${{resource.metadata.name == \"b\"}}'}}, operations: [{{op: replace, path: '/metadata/${{\"name\"}}', value: '${{resource.metadata.name}}-${{instanceId}}'}}]}}]}}"),
            "a ConfigMap/a, b ConfigMap/b-i",
        ),
        (
            "a patch of what an addon before it made",
            format!("component: {{addons: [{{name: x, instanceId: i}}, {{name: z, instanceId: j}}]}}\nx: {{creates: [{{id: c, {template} c}}}}}}]}}\nz: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: replace, path: /metadata/name, value: d}}]}}]}}"),
            "x-i-c ConfigMap/d",
        ),
        // The following definitions contain errors.
        (
            "a name that nothing has, in what is left out",
            format!("type: {{resources: [{{id: a, includeWhen: '${{false}}', {template} 'a-${{sepc.x}}'}}}}}}]}}"),
            "template.metadata.name, column 3: ${sepc.x}: sepc is not defined; there is metadata, spec, build, workload, environment",
        ),
        (
            "a path that is wrong where nothing is done",
            "component: {addons: [{name: x, instanceId: i}]}\nx: {patches: [{target: {kind: A}, operations: [{op: add, path: 'nopath[', value: '${omit()}'}]}]}".to_owned(),
            "Addon x, patch 0, operations[0].path: ",
        ),
        (
            "var that is not a name",
            format!("type: {{resources: [{{id: a, forEach: '${{[1]}}', var: my-port, {template} a}}}}}}]}}"),
            "resource a, var: \"my-port\" is not a name for an expression",
        ),
        (
            "var that is reserved",
            format!("type: {{resources: [{{id: a, forEach: '${{[1]}}', var: 'true', {template} a}}}}}}]}}"),
            "resource a, var: \"true\" is not a name",
        ),
        (
            "var that hides",
            format!("type: {{resources: [{{id: a, forEach: '${{[1]}}', var: spec, {template} a}}}}}}]}}"),
            "resource a, var: spec already exists",
        ),
        (
            "two of one id",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}, {{id: a, {template} b}}}}}}]}}"),
            "resource a, id: the id a already exists, from ComponentTypeDefinition t, resource a",
        ),
        (
            "an id that a forEach makes too",
            format!("type: {{resources: [{{id: a-0, {template} a}}}}}}, {{id: a, forEach: '${{[1]}}', {template} b}}}}}}]}}"),
            "the id a-0 already exists, from ComponentTypeDefinition t, resource a-0",
        ),
        (
            "an empty id",
            format!("type: {{resources: [{{id: '', {template} a}}}}}}]}}"),
            "id: it is empty",
        ),
        (
            "a patch that takes the name away",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: remove, path: /metadata/name}}]}}]}}"),
            "Addon x, patch 0, operations: the patched resource has no valid metadata.name",
        ),
        (
            "a patch to null",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: add, path: /data, value: null}}]}}]}}"),
            "a ConfigMap/a",
        ),
        (
            "a path that came out wrong",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: add, path: '/data/${{\"k\"}}/[bad', value: 1}}]}}]}}"),
            "operations[0].path: /data/k/[bad: ",
        ),
        (
            "a namespace where there is none",
            "type: {resources: [{id: a, template: {apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: b}}}]}".to_owned(),
            "template.metadata.namespace: a Namespace has no namespace",
        ),
        (
            "a parameter of the component beside one of the settings",
            "type: {schema: {parameters: {r: {cpu: integer, mem: integer}}}}\ncomponent: {parameters: {r: {cpu: bad}}}\nsettings: {overrides: {r: {mem: 1}}}".to_owned(),
            "Component cart, parameters.r.cpu: ",
        ),
        (
            "includeWhen that is no expression",
            format!("type: {{resources: [{{id: a, includeWhen: 'true', {template} a}}}}}}]}}"),
            "ComponentTypeDefinition t, resource a, includeWhen, column 1: this must be one expression",
        ),
        (
            "includeWhen with text around",
            format!("type: {{resources: [{{id: a, includeWhen: ' ${{true}}', {template} a}}}}}}]}}"),
            "includeWhen, column 1: this must be one expression",
        ),
        (
            "includeWhen that is no condition",
            format!("type: {{resources: [{{id: a, includeWhen: '${{1}}', {template} a}}}}}}]}}"),
            "includeWhen, column 1: ${1}: this must be true or false, not a number",
        ),
        (
            "includeWhen that is left out",
            format!("type: {{resources: [{{id: a, includeWhen: '${{spec.?enabled}}', {template} a}}}}}}]}}"),
            "this must be true or false, not an omitted value",
        ),
        (
            "forEach over a number",
            format!("type: {{resources: [{{id: a, forEach: '${{3}}', {template} a}}}}}}]}}"),
            "resource a, forEach, column 1: ${3}: this must be a list or a map",
        ),
        (
            "forEach with the wrong name",
            format!("type: {{resources: [{{id: a, forEach: '${{[1]}}', var: one, {template} '${{item}}'}}}}}}]}}"),
            "template.metadata.name, column 1: ${item}: item is not defined",
        ),
        (
            "var without forEach",
            format!("type: {{resources: [{{id: a, var: one, {template} a}}}}}}]}}"),
            "resource a, var: it names the item of a forEach",
        ),
        (
            "a mistake in what is left out",
            format!("type: {{resources: [{{id: a, includeWhen: '${{false}}', {template} '${{x'}}}}}}]}}"),
            "template.metadata.name, column 1: this ${ has no closing }",
        ),
        (
            "every mistake is named",
            format!("type: {{resources: [{{id: a, {template} '${{x'}}}}}}, {{id: b, {template} '${{w.'}}}}}}]}}"),
            "resource b, template.metadata.name",
        ),
        (
            "no kind",
            "type: {resources: [{id: a, template: {apiVersion: v1, metadata: {name: a}}}]}".to_owned(),
            "resource a, template.kind: it is missing",
        ),
        (
            "no name",
            "type: {resources: [{id: a, template: {apiVersion: v1, kind: Pod, metadata: {name: '${omit()}'}}}]}".to_owned(),
            "resource a, template.metadata.name: it is missing",
        ),
        (
            "a name that is no string",
            format!("type: {{resources: [{{id: a, {template} '${{7}}'}}}}}}]}}"),
            "resource a, template.metadata.name: it must be a string",
        ),
        (
            "an empty name",
            format!("type: {{resources: [{{id: a, {template} ''}}}}}}]}}"),
            "it is empty",
        ),
        (
            "no metadata",
            "type: {resources: [{id: a, template: {apiVersion: v1, kind: Pod}}]}".to_owned(),
            "resource a, template.metadata: a resource has metadata",
        ),
        (
            "two of the same name",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}, {{id: b, {template} a}}}}}}]}}"),
            "resource b, template.metadata.name: ConfigMap a in namespace \"shop-production\" already exists, from ComponentTypeDefinition t, resource a",
        ),
        (
            "a patch without a target",
            "component: {addons: [{name: x, instanceId: i}]}\nx: {patches: [{target: {kind: Deployment}, operations: [{op: remove, path: /a}]}]}".to_owned(),
            "Addon x, patch 0, target.kind: no Deployment is among the resources that were rendered before",
        ),
        (
            "a patch whose filter holds for none",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap, where: '${{false}}'}}, operations: [{{op: remove, path: /a}}]}}]}}"),
            "Addon x, patch 0, target.where, column 1: ${false}: it selects no ConfigMap",
        ),
        (
            "a patch whose filter is wrong",
            "component: {addons: [{name: x, instanceId: i}]}\nx: {patches: [{target: {kind: ConfigMap, where: '${resource.}'}, operations: [{op: remove, path: /a}]}]}".to_owned(),
            "Addon x, patch 0, target.where, column 12: cannot read the expression",
        ),
        (
            "a patch whose path is wrong",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: remove, path: a}}]}}]}}"),
            "Addon x, patch 0, operations[0].path: ",
        ),
        (
            "a patch of what is not there",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: remove, path: /data}}]}}]}}"),
            "Addon x, patch 0, operations[0].path: ",
        ),
        (
            "a patch whose value is wrong",
            format!("type: {{resources: [{{id: a, {template} a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{{op: add, path: /data, value: {{a: '${{spec.no}}'}}}}]}}]}}"),
            "Addon x, patch 0, operations[0].value.a, column 1: ${spec.no}: no such key: no",
        ),
        (
            "a parameter of the wrong type",
            "type: {schema: {parameters: {num: integer}}}\ncomponent: {parameters: {num: x}}".to_owned(),
            "Component cart, parameters.num: ",
        ),
        (
            "a setting of the wrong type",
            "type: {schema: {parameters: {num: integer}}}\nsettings: {overrides: {num: x}}".to_owned(),
            "EnvSettings cart-production, overrides.num: ",
        ),
        (
            "an addon's parameter of the wrong type",
            "component: {addons: [{name: x, instanceId: i, config: {num: x}}]}\nx: {schema: {parameters: {num: integer}}}".to_owned(),
            "Component cart, addons[0].config.num: ",
        ),
        (
            "an addon's setting of the wrong type",
            "component: {addons: [{name: x, instanceId: i}]}\nx: {schema: {parameters: {num: integer}}}\nsettings: {addonOverrides: {x: {i: {num: x}}}}".to_owned(),
            "EnvSettings cart-production, addonOverrides.x.i.num: ",
        ),
        (
            "a schema that is wrong",
            "type: {schema: {parameters: {num: intger}}}".to_owned(),
            "ComponentTypeDefinition t, schema.parameters.num: ",
        ),
    ] {
        let named = |resource: &RenderedResource| {
            let object = Value::Object(resource.object.clone());
            let said = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
            format!("{} {}/{}", resource.id, said("/kind"), said("/metadata/name"))
        };
        let (found, right) = match render_yaml(&text) {
            Ok(rendered) => {
                let named: Vec<_> = rendered.resources.iter().map(named).collect();
                let named = named.join(", ");
                let right = named == expected;
                (named, right)
            }
            Err(error) => {
                let right = !expected.is_empty() && error.contains(expected);
                (error, right)
            }
        };
        assert!(right, "{title}: {found}, not {expected}");
    }
}

#[test]
fn resources_are_finished() {
    let long = "x".repeat(70);
    let text = format!(
        "type: {{resources: [
          {{id: a, template: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a, labels: {{l: {long}, s: short}}}},
             spec: {{selector: {{matchLabels: {{l: {long}}}}}, template: {{metadata: {{labels: {{l: {long}}}}}}}}}}}}},
          {{id: b, template: {{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: b}}}}}},
          {{id: c, template: {{apiVersion: x.io/v1, kind: Global, metadata: {{name: c, namespace: ''}}}}}},
          {{id: d, template: {{apiVersion: v1, kind: Secret, metadata: {{name: d, namespace: own}}}}}},
          {{id: e, template: {{apiVersion: v1, kind: Service, metadata: {{name: e}}, spec: {{selector: {{l: {long}}}}}}}}}]}}"
    );
    let rendered = render_yaml(&text).unwrap();
    let at = |id: &str, pointer: &str| {
        let found = rendered.resources.iter().find(|one| one.id == id).unwrap();
        Value::Object(found.object.clone())
            .pointer(pointer)
            .cloned()
            .unwrap_or_default()
    };
    for (id, namespace) in [
        ("a", json!("shop-production")),
        ("b", Value::Null),
        ("c", Value::Null),
        ("d", json!("own")),
        ("e", json!("shop-production")),
    ] {
        assert_eq!(at(id, "/metadata/namespace"), namespace, "{id}");
    }
    let cut = json!(crate::api::names::label_value(&long));
    assert_eq!(at("a", "/metadata/labels/l"), cut);
    assert_eq!(at("a", "/metadata/labels/s"), json!("short"));
    assert_eq!(at("a", "/spec/selector/matchLabels/l"), cut);
    assert_eq!(at("a", "/spec/template/metadata/labels/l"), cut);
    assert_eq!(at("e", "/spec/selector/l"), cut);
}

#[test]
fn labels_are_cut_wherever_they_are_looked_for() {
    let long = "x".repeat(70);
    let text = format!(
        "type: {{resources: [
          {{id: a, template: {{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: a}}, spec: {{
            template: {{spec: {{affinity: {{podAntiAffinity: {{required: [{{labelSelector: {{matchLabels: {{l: {long}}}}}}}]}}}}}}}},
            volumeClaimTemplates: [{{metadata: {{labels: {{l: {long}}}}}}}]}}}}}},
          {{id: b, template: {{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {{name: b}}, spec: {{
            ingress: [{{from: [{{podSelector: {{matchExpressions: [{{key: l, operator: In, values: [{long}]}}]}}}}]}}]}}}}}},
          {{id: c, template: {{apiVersion: x.io/v1, kind: Query, metadata: {{name: c, annotations: {{l: {long}}}}}, spec: {{selector: {{query: {long}}}, labels: {{l: {long}}}}}}}}}]}}"
    );
    let rendered = render_yaml(&text).unwrap();
    let text = |id: &str| {
        let found = rendered.resources.iter().find(|one| one.id == id);
        serde_json::to_string(&found.unwrap().object).unwrap()
    };
    let cut = crate::api::names::label_value(&long);
    for (id, times) in [("a", 2), ("b", 1), ("c", 0)] {
        assert_eq!(text(id).matches(&cut).count(), times, "{id}");
    }
    assert_eq!(text("c").matches(&long).count(), 3);
}

#[test]
fn what_grows_deep_is_refused() {
    let mut value = "'${resource.data}'".to_owned();
    for _ in 0..60 {
        value = format!("{{a: {value}}}");
    }
    let patch = format!(
        "{{target: {{kind: ConfigMap}}, operations: [{{op: replace, path: /data, value: {value}}}]}}"
    );
    let patches = vec![patch; 75].join(", ");
    let text = format!(
        "type: {{resources: [{{id: a, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: x}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{patches}]}}"
    );
    let error = render_yaml(&text).unwrap_err();
    assert!(
        error.contains("patch 1, operations: the resource is nested more than 100 levels"),
        "{error}"
    );
}

#[test]
fn floods_are_bounded() {
    let many: Vec<String> = (0..20_000).map(|_| "'${'".to_owned()).collect();
    let template = format!(
        "template: {{apiVersion: v1, kind: A, metadata: {{name: a}}, l: [{}]}}",
        many.join(", ")
    );
    let error = render_yaml(&format!("type: {{resources: [{{id: a, {template}}}]}}")).unwrap_err();
    assert_eq!(error.lines().count(), 100);
    assert!(
        error.ends_with("(19900 more problems are not shown)"),
        "{error}"
    );
    let many: Vec<String> = (0..2100).map(|at| format!("'${{{at}}}'")).collect();
    let template = format!(
        "template: {{apiVersion: v1, kind: A, metadata: {{name: a}}, l: [{}]}}",
        many.join(", ")
    );
    let error = render_yaml(&format!("type: {{resources: [{{id: a, {template}}}]}}")).unwrap_err();
    assert!(
        error.contains("template.l[2000], column 3: the definition has more than 2000 expressions"),
        "{error}"
    );
}

#[test]
fn what_is_dropped_is_said() {
    let rendered = render_yaml(
        "type: {schema: {parameters: {num: integer | default=1}}}
component: {parameters: {m: 1}, addons: [{name: x, instanceId: i, config: {k: 1}}]}
settings: {overrides: {o: 1}, addonOverrides: {x: {i: {l: 1}, other: {}}, z: {i: {}}}}
x: {schema: {parameters: {num: integer | default=1}}}",
    )
    .unwrap();
    let warnings: Vec<_> = rendered.warnings.iter().map(ToString::to_string).collect();
    for (warning, expected) in warnings.iter().zip([
        "Component cart, parameters.m: ",
        "EnvSettings cart-production, overrides.o: ",
        "Component cart, addons[0].config.k: ",
        "EnvSettings cart-production, addonOverrides.x.i.l: ",
        "EnvSettings cart-production, addonOverrides.x.other: ",
        "EnvSettings cart-production, addonOverrides.z.i: ",
    ]) {
        assert!(warning.starts_with(expected), "{warning}, not {expected}");
    }
    assert_eq!(warnings.len(), 6);
}

#[test]
fn too_many_resources_are_refused() {
    let template = "template: {apiVersion: v1, kind: ConfigMap, metadata: {name: 'a-${item}'}}";
    let many =
        format!("type: {{resources: [{{id: a, forEach: '${{lists.range(1001)}}', {template}}}]}}");
    let error = render_yaml(&many).unwrap_err();
    assert!(error.contains("more than 1000 resources"), "{error}");
    let large = "x".repeat(10_000);
    let template = format!(
        "template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: 'a-${{item}}'}}, data: {{k: {large}}}}}"
    );
    let many =
        format!("type: {{resources: [{{id: a, forEach: '${{lists.range(900)}}', {template}}}]}}");
    let error = render_yaml(&many).unwrap_err();
    assert!(error.contains("bytes; make them smaller"), "{error}");
    let large = "x".repeat(100_000);
    let operation = |at: usize| format!("{{op: add, path: /data/k{at}, value: {large}}}");
    let operations: Vec<_> = (0..50).map(operation).collect();
    let growing = format!(
        "type: {{resources: [{{id: a, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}}}]}}\ncomponent: {{addons: [{{name: x, instanceId: i}}]}}\nx: {{patches: [{{target: {{kind: ConfigMap}}, operations: [{}]}}]}}",
        operations.join(", ")
    );
    let error = render_yaml(&growing).unwrap_err();
    assert!(
        error.contains("Addon x, patch 0, operations: the resources have more"),
        "{error}"
    );
}

#[test]
fn the_kinds_without_a_namespace_are_those_of_the_server() {
    let known = kube_embedded::builtin::resources();
    let mut count = 0;
    for resource in known.iter().filter(|resource| !resource.namespaced) {
        let (group, kind) = (&*resource.group, &*resource.kind);
        let listed = finish::CLUSTER_SCOPED
            .iter()
            .any(|(own, kinds)| *own == group && kinds.contains(&kind));
        assert!(listed, "{kind} of {group:?}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

proptest! {
    #[test]
    fn no_text_breaks_a_template(text in ".{0,80}", code in "[$]{0,3}[{]?[-a-z.'\"(){}\\[\\]\\\\r/ \n0-9+]{0,60}[}]?") {
        let _ = value_of(&json!(text));
        let _ = value_of(&json!(code));
        let _ = value_of(&json!({ code.clone(): [text] }));
    }

    #[test]
    fn text_without_expressions_stays(text in "[^$]{0,80}") {
        let expected = json!(text);
        prop_assert_eq!(value_of(&expected), Ok(expected));
    }
}
