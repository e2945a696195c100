use std::cell::RefCell;

use bounded_cel::AccessQuery;
use serde_json::{Value, json};

use super::*;

fn rules(schema: Value) -> CrdRules {
    let (rules, warnings) = CrdRules::compile(&schema);
    assert_eq!(warnings, Vec::<String>::new());
    rules
}

fn said(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}

fn pin_schema() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-validations": [{
            "rule": "self.metadata.name == self.spec.maker + '-' + self.spec.place",
            "message": "the name must be {maker}-{place}",
        }],
        "properties": {
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "x-kubernetes-validations": [
                    {"rule": "self.maker == oldSelf.maker", "message": "the maker never changes", "fieldPath": ".maker", "reason": "FieldValueForbidden"},
                    {"rule": "has(self.sourceRef)", "messageExpression": "'widget of ' + self.maker + ' names no source'", "reason": "FieldValueRequired", "fieldPath": ".sourceRef"},
                ],
                "properties": {
                    "maker": {"type": "string"},
                    "place": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": " fixed "}]},
                    "sourceRef": {"type": "object", "properties": {"name": {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() > 0"}]}}},
                    "holds": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["id"],
                        "items": {
                            "type": "object",
                            "x-kubernetes-validations": [{"rule": "self.by == oldSelf.by", "message": "a hold keeps its author"}],
                            "properties": {
                                "id": {"type": "string"},
                                "by": {"type": "string"},
                                "from": {"type": "string", "format": "date-time"},
                                "until": {"type": "string", "format": "date-time", "x-kubernetes-validations": [{"rule": "self > timestamp('2020-01-01T00:00:00Z')", "message": "too early"}]},
                            },
                        },
                    },
                    "limits": {"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": [{"rule": "self <= 10", "message": "at most 10"}]}},
                    "plain": {"type": "array", "items": {"type": "object", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "never said"}]}},
                    "count": {"type": "integer", "x-kubernetes-validations": [
                        {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "message": "never shrinks", "optionalOldSelf": true},
                        {"rule": "oldSelf.hasValue() || self == 1", "message": "begins at 1", "optionalOldSelf": true},
                    ]},
                    "broken": {"type": "object", "x-kubernetes-validations": [{"rule": "self.missing == 1", "message": "cannot say"}]},
                },
            },
        },
    })
}

fn widget() -> Value {
    json!({
        "metadata": {"name": "shop-production"},
        "spec": {"maker": "shop", "place": "production", "sourceRef": {"name": "shop-v1"}},
    })
}

/// Returns the test object with the field `key` of its spec replaced. The value null removes the field.
fn changed(key: &str, value: Value) -> Value {
    let mut widget = widget();
    let spec = widget["spec"].as_object_mut().unwrap();
    match value {
        Value::Null => {
            spec.remove(key);
        }
        value => {
            spec.insert(key.to_owned(), value);
        }
    }
    widget
}

#[test]
fn crd_rules_in_the_words_of_a_real_server() {
    let rules = rules(pin_schema());
    let none: &[&str] = &[];
    for (what, object, old, expected) in [
        ("a good one", widget(), None, none),
        ("nothing changed", widget(), Some(widget()), none),
        (
            "the object's own rule",
            json!({"metadata": {"name": "x"}, "spec": widget()["spec"]}),
            None,
            &["<nil>: Invalid value: the name must be {maker}-{place}"],
        ),
        (
            "message expression, path and reason",
            changed("sourceRef", Value::Null),
            None,
            &["spec.sourceRef: Required value: widget of shop names no source"],
        ),
        (
            "a scalar shows its value",
            changed("sourceRef", json!({"name": ""})),
            None,
            &["spec.sourceRef.name: Invalid value: \"\": failed rule: self.size() > 0"],
        ),
        (
            "transition",
            changed("place", json!("test")),
            Some(widget()),
            &[
                "<nil>: Invalid value: the name must be {maker}-{place}",
                "spec.place: Invalid value: \"test\": fixed",
            ],
        ),
        (
            "forbidden",
            changed("maker", json!("cart")),
            Some(widget()),
            &[
                "<nil>: Invalid value: the name must be {maker}-{place}",
                "spec.maker: Forbidden: the maker never changes",
            ],
        ),
        (
            "maps by key",
            changed("limits", json!({"a": 3, "b": 12})),
            None,
            &["spec.limits[b]: Invalid value: 12: at most 10"],
        ),
        (
            "lists by index, typed",
            changed(
                "holds",
                json!([{"id": "1", "by": "ana", "until": "2026-01-01T00:00:00Z"}, {"id": "2", "by": "bo", "until": "2019-01-01T00:00:00Z"}]),
            ),
            None,
            &["spec.holds[1].until: Invalid value: \"2019-01-01T00:00:00Z\": too early"],
        ),
        (
            "lists of type map are paired by key",
            changed(
                "holds",
                json!([{"id": "2", "by": "bo"}, {"id": "1", "by": "eve"}]),
            ),
            Some(changed(
                "holds",
                json!([{"id": "1", "by": "ana"}, {"id": "2", "by": "bo"}]),
            )),
            &["spec.holds[1]: Invalid value: a hold keeps its author"],
        ),
        (
            "a new item of such a list has no past",
            changed("holds", json!([{"id": "3", "by": "cy"}])),
            Some(changed("holds", json!([{"id": "1", "by": "ana"}]))),
            none,
        ),
        (
            "other lists are not paired",
            changed("plain", json!([{"a": 1}])),
            Some(changed("plain", json!([{"a": 2}]))),
            none,
        ),
        (
            "optional old self, created",
            changed("count", json!(2)),
            None,
            &["spec.count: Invalid value: 2: begins at 1"],
        ),
        (
            "optional old self, new field",
            changed("count", json!(2)),
            Some(widget()),
            &["spec.count: Invalid value: 2: begins at 1"],
        ),
        (
            "optional old self, updated",
            changed("count", json!(1)),
            Some(changed("count", json!(2))),
            &["spec.count: Invalid value: 1: never shrinks"],
        ),
        (
            "a rule that fails",
            changed("broken", json!({"a": 1})),
            None,
            &[
                "spec.broken: Invalid value: \"object\": no such key: missing evaluating rule: cannot say",
            ],
        ),
        (
            "null is not checked",
            json!({"metadata": {"name": "shop-production"}, "spec": {"maker": "shop", "place": "production", "sourceRef": {"name": null}}}),
            None,
            none,
        ),
    ] {
        assert_eq!(
            said(&rules.check(&object, old.as_ref())),
            expected,
            "{what}"
        );
    }
}

#[test]
fn what_was_wrong_before_is_a_warning() {
    let rules = rules(json!({
        "type": "object",
        "properties": {
            "bad": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "is bad"}]},
            "list": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "is bad"}]}},
            "other": {"type": "string"},
        },
    }));
    let old = json!({"bad": "bad", "list": ["bad"], "other": "a"});
    let findings = rules.findings(
        &json!({"bad": "bad", "list": ["bad"], "other": "b"}),
        Some(&old),
    );
    assert_eq!(said(&findings.violations), Vec::<String>::new());
    assert_eq!(
        said(&findings.warnings),
        [
            "bad: Invalid value: \"bad\": is bad",
            "list[0]: Invalid value: \"bad\": is bad"
        ]
    );
    let findings = rules.findings(
        &json!({"bad": "bad", "list": ["bad", "good"], "other": "a"}),
        Some(&old),
    );
    assert_eq!(
        said(&findings.violations),
        ["list[0]: Invalid value: \"bad\": is bad"]
    );
}

#[test]
fn rules_below_all_of() {
    let rules = rules(json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "allOf": [
            {"x-kubernetes-validations": [{"rule": "self.a < self.b", "message": "a before b"}]},
            {"properties": {"a": {"x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]}}},
        ],
    }));
    assert_eq!(
        said(&rules.check(&json!({"a": 0, "b": 0}), None)),
        [
            "<nil>: Invalid value: a before b",
            "a: Invalid value: 0: positive"
        ]
    );
}

#[test]
fn rules_that_cannot_be_compiled_are_reported_and_left_out() {
    let (rules, warnings) = CrdRules::compile(&json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-validations": [
            {"rule": "self.a ==", "message": "syntax"},
            {"rule": "isURL(self.a)"},
            {"rule": "object.a == 1"},
            {"rule": "true", "messageExpression": "nobody"},
            {"rule": "self.a == 1", "message": "one"},
            {"rule": " "},
        ]}},
    }));
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(
        warnings[0]
            .starts_with("the rule on spec is not enforced here: cannot read the expression: "),
        "{}",
        warnings[0]
    );
    assert_eq!(
        warnings[2],
        "the rule on spec is not enforced here: undeclared reference to 'object': object.a == 1"
    );
    assert_eq!(
        said(&rules.check(&json!({"spec": {"a": 2}}), None)),
        ["spec: Invalid value: one"]
    );
    assert!(CrdRules::compile(&json!({"type": "object"})).0.is_empty());
}

#[test]
fn all_rules_of_an_object_share_a_budget() {
    let rules = rules(json!({
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"type": "object", "x-kubernetes-validations": [
            {"rule": "self.n.all(a, self.n.all(b, a + b >= 0))"},
        ]}}},
    }));
    let item = json!({"n": (0..200).collect::<Vec<_>>()});
    let object = json!({"list": vec![item; 100]});
    let violations = rules.check(&object, None);
    assert_eq!(violations.len(), 1);
    assert_eq!(
        violations[0].value,
        ViolationValue::TypeName("object".to_owned())
    );
    assert!(
        violations[0]
            .message
            .starts_with("validation failed due to running out of cost budget")
    );
}

#[test]
fn a_runaway_rule_is_a_violation() {
    let rules = rules(json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "self.n.all(a, self.n.all(b, self.n.all(c, a + b + c >= 0)))", "message": "sums"},
        {"rule": "self.n.size() == 1", "message": "after it"},
    ]}));
    let said = said(&rules.check(&json!({"n": (0..300).collect::<Vec<_>>()}), None));
    assert_eq!(
        said,
        [
            "<nil>: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: sums"
        ]
    );
}

fn nobody(_: &AccessQuery) -> bool {
    false
}

fn request<'a>(
    operation: Operation,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
) -> Admission<'a> {
    Admission {
        operation,
        group: "example.com",
        version: "v1alpha1",
        resource: "models",
        subresource: "",
        namespace: Some("shop"),
        name: "shop-v1",
        kind: "Model",
        object,
        old_object: old,
        namespace_object: None,
        username: "ana",
        groups: &[],
        dry_run: false,
        allowed: &nobody,
    }
}

fn policy(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

fn binding(policy: &str, actions: Value) -> Value {
    json!({"metadata": {"name": format!("{policy}-binding")}, "spec": {"policyName": policy, "validationActions": actions}})
}

fn models(operations: Value) -> Value {
    json!({"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["models"], "operations": operations}]})
}

fn compiled(policies: &[Value], bindings: &[Value]) -> Policies {
    let (policies, warnings) = Policies::compile(policies, bindings);
    assert_eq!(warnings, Vec::<String>::new());
    policies
}

#[test]
fn a_model_never_changes() {
    let policies = compiled(
        &[policy(
            "immutable",
            json!({
                "matchConstraints": models(json!(["UPDATE"])),
                "validations": [{"expression": "object.spec == oldObject.spec", "message": "the spec of a Model never changes", "reason": "Forbidden"}],
            }),
        )],
        &[binding("immutable", json!(["Deny"]))],
    );
    let old = json!({"metadata": {"name": "shop-v1"}, "spec": {"a": 1, "unknown": {"deep": [1]}}});
    let labelled = json!({"metadata": {"name": "shop-v1", "labels": {"x": "y"}}, "spec": {"a": 1.0, "unknown": {"deep": [1]}}});
    let changed =
        json!({"metadata": {"name": "shop-v1"}, "spec": {"a": 1, "unknown": {"deep": [2]}}});
    let removed = json!({"metadata": {"name": "shop-v1"}});
    assert_eq!(
        policies.check(&request(Operation::Update, Some(&labelled), Some(&old))),
        Verdict::default()
    );
    assert_eq!(
        policies.check(&request(Operation::Create, Some(&changed), None)),
        Verdict::default()
    );
    let change = request(Operation::Update, Some(&changed), Some(&old));
    let denial = policies.check(&change).denial.unwrap();
    assert_eq!(denial, Denial {
        policy: "immutable".into(),
        binding: "immutable-binding".into(),
        message: "ValidatingAdmissionPolicy 'immutable' with binding 'immutable-binding' denied request: the spec of a Model never changes".into(),
        reason: "Forbidden".into(),
        code: 403,
    });
    assert_eq!(
        denial.status_message(&change),
        format!(
            "models.example.com \"shop-v1\" is forbidden: {}",
            denial.message
        )
    );
    let denial = policies
        .check(&request(Operation::Update, Some(&removed), Some(&old)))
        .denial
        .unwrap();
    assert_eq!(
        denial.message,
        "ValidatingAdmissionPolicy 'immutable' with binding 'immutable-binding' denied request: expression 'object.spec == oldObject.spec' resulted in error: no such key: spec"
    );
    assert_eq!((denial.reason.as_str(), denial.code), ("Invalid", 422));
}

#[test]
fn who_may_enter() {
    let policies = compiled(
        &[policy(
            "enter",
            json!({
                "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1alpha1"], "resources": ["widgets"], "operations": ["CREATE", "UPDATE"]}]},
                "matchConditions": [{"name": "moved", "expression": "request.operation == 'CREATE' || object.spec.sourceRef != oldObject.spec.sourceRef || object.spec.?holds != oldObject.spec.?holds"}],
                "variables": [
                    {"name": "place", "expression": "object.spec.place"},
                    {"name": "allowed", "expression": "authorizer.group('example.com').resource('places').namespace(request.namespace).name(variables.place).check('enter').allowed()"},
                ],
                "validations": [{"expression": "variables.allowed", "messageExpression": "request.userInfo.username + ' may not enter ' + variables.place", "reason": "Forbidden"}],
            }),
        )],
        &[binding("enter", json!(["Deny", "Warn", "Audit"]))],
    );
    let asked = RefCell::new(Vec::new());
    let allowed = |query: &AccessQuery| {
        asked.borrow_mut().push(query.clone());
        query.name == "test"
    };
    let widget = |place: &str, model: &str| json!({"metadata": {"name": "p"}, "spec": {"place": place, "sourceRef": {"name": model}}});
    let check = |old: Option<&Value>, new: &Value| {
        policies.check(&Admission {
            resource: "widgets",
            kind: "Widget",
            name: "p",
            allowed: &allowed,
            ..request(
                if old.is_some() {
                    Operation::Update
                } else {
                    Operation::Create
                },
                Some(new),
                old,
            )
        })
    };
    assert_eq!(check(None, &widget("test", "v1")), Verdict::default());
    let verdict = check(
        Some(&widget("production", "v1")),
        &widget("production", "v2"),
    );
    let denial = verdict.denial.unwrap();
    assert_eq!(
        denial.message,
        "ValidatingAdmissionPolicy 'enter' with binding 'enter-binding' denied request: ana may not enter production"
    );
    assert_eq!(denial.code, 403);
    assert_eq!(
        verdict.warnings,
        [
            "Validation failed for ValidatingAdmissionPolicy 'enter' with binding 'enter-binding': ana may not enter production"
        ]
    );
    assert_eq!(
        asked.borrow()[1],
        AccessQuery {
            verb: "enter".into(),
            group: "example.com".into(),
            resource: "places".into(),
            namespace: "shop".into(),
            name: "production".into(),
            ..AccessQuery::default()
        }
    );
    let before = asked.borrow().len();
    assert_eq!(
        check(
            Some(&widget("production", "v1")),
            &widget("production", "v1")
        ),
        Verdict::default()
    );
    assert_eq!(
        asked.borrow().len(),
        before,
        "nothing moved, nobody was asked"
    );
}

#[test]
fn a_labelled_model_is_not_deleted() {
    let policies = compiled(
        &[policy(
            "claimed",
            json!({
                "matchConstraints": models(json!(["DELETE"])),
                "validations": [{"expression": "!('example.com/kept' in oldObject.metadata.?labels.orValue({})) || has(namespaceObject.metadata.deletionTimestamp)"}],
            }),
        )],
        &[binding("claimed", json!(["Deny"]))],
    );
    let free = json!({"metadata": {"name": "r"}});
    let kept = json!({"metadata": {"name": "r", "labels": {"example.com/kept": "true"}}});
    let namespace = json!({"metadata": {"name": "shop"}});
    let going = json!({"metadata": {"name": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let check = |old: &Value, namespace: &Value| {
        policies
            .check(&Admission {
                namespace_object: Some(namespace),
                ..request(Operation::Delete, None, Some(old))
            })
            .denial
    };
    assert_eq!(check(&free, &namespace), None);
    assert_eq!(check(&kept, &going), None);
    let denial = check(&kept, &namespace).unwrap();
    assert!(
        denial
            .message
            .contains("denied request: failed expression: !('example.com/kept' in "),
        "{}",
        denial.message
    );
}

#[test]
fn which_requests_a_policy_is_about() {
    let object = json!({"metadata": {"name": "a", "labels": {"tier": "web"}}});
    let namespace = json!({"metadata": {"name": "shop", "labels": {"team": "red"}}});
    let base = || Admission {
        namespace_object: Some(&namespace),
        ..request(Operation::Create, Some(&object), None)
    };
    let rule = |changes: Value| {
        let mut rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]});
        for (key, value) in changes.as_object().unwrap() {
            rule[key] = value.clone();
        }
        json!({"resourceRules": [rule]})
    };
    let in_status = || Admission {
        subresource: "status",
        ..base()
    };
    let cluster = || Admission {
        namespace: None,
        namespace_object: None,
        ..base()
    };
    let space = json!({"metadata": {"name": "n", "labels": {"team": "blue"}}});
    let writes_namespace = || Admission {
        group: "",
        version: "v1",
        resource: "namespaces",
        kind: "Namespace",
        namespace: Some("n"),
        name: "n",
        object: Some(&space),
        namespace_object: Some(&namespace),
        ..base()
    };
    for (constraints, request, matches) in [
        (rule(json!({})), base(), true),
        (json!({}), base(), true),
        (rule(json!({"operations": ["UPDATE"]})), base(), false),
        (
            rule(json!({"operations": ["UPDATE", "CREATE"]})),
            base(),
            true,
        ),
        (rule(json!({"apiGroups": [""]})), base(), false),
        (rule(json!({"apiVersions": ["v1"]})), base(), false),
        (rule(json!({"resources": ["models"]})), base(), true),
        (rule(json!({"resources": ["widgets"]})), base(), false),
        (rule(json!({"resources": ["models"]})), in_status(), false),
        (rule(json!({"resources": ["*"]})), in_status(), false),
        (
            rule(json!({"resources": ["models/status"]})),
            in_status(),
            true,
        ),
        (rule(json!({"resources": ["models/*"]})), in_status(), true),
        (rule(json!({"resources": ["models/*"]})), base(), true),
        (rule(json!({"resources": ["*/status"]})), in_status(), true),
        (rule(json!({"resources": ["*/status"]})), base(), false),
        (rule(json!({"resourceNames": ["shop-v1"]})), base(), true),
        (rule(json!({"resourceNames": ["other"]})), base(), false),
        (rule(json!({"scope": "Namespaced"})), base(), true),
        (rule(json!({"scope": "Cluster"})), base(), false),
        (rule(json!({"scope": "Cluster"})), cluster(), true),
        (rule(json!({"scope": "Cluster"})), writes_namespace(), true),
        (
            json!({"excludeResourceRules": rule(json!({"resources": ["models"]}))["resourceRules"]}),
            base(),
            false,
        ),
        (
            json!({"objectSelector": {"matchLabels": {"tier": "web"}}}),
            base(),
            true,
        ),
        (
            json!({"objectSelector": {"matchLabels": {"tier": "db"}}}),
            base(),
            false,
        ),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}, {"key": "tier", "operator": "Exists"}]}}),
            base(),
            true,
        ),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}}),
            base(),
            false,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "red"}}}),
            base(),
            true,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "blue"}}}),
            base(),
            false,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "blue"}}}),
            cluster(),
            true,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "blue"}}}),
            writes_namespace(),
            true,
        ),
    ] {
        let denies = json!([{"expression": "false"}]);
        let everything = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*", "*/*"], "operations": ["*"]}]});
        // The match rules of a policy and of a binding have the same format, so each is tested in both.
        let by_policy = compiled(
            &[policy(
                "p",
                json!({"matchConstraints": constraints, "validations": denies}),
            )],
            &[binding("p", json!(["Deny"]))],
        );
        let mut bound = binding("p", json!(["Deny"]));
        bound["spec"]["matchResources"] = constraints.clone();
        let by_binding = compiled(
            &[policy(
                "p",
                json!({"matchConstraints": everything, "validations": denies}),
            )],
            &[bound],
        );
        assert_eq!(
            by_policy.check(&request).denial.is_some(),
            matches,
            "policy {constraints}"
        );
        assert_eq!(
            by_binding.check(&request).denial.is_some(),
            matches,
            "binding {constraints}"
        );
    }
}

#[test]
fn failures_conditions_and_actions() {
    let object = json!({"metadata": {"name": "a"}});
    let verdict = |spec: Value, actions: Value| {
        let mut spec = spec;
        spec["matchConstraints"] = models(json!(["*"]));
        compiled(&[policy("p", spec)], &[binding("p", actions)]).check(&request(
            Operation::Create,
            Some(&object),
            None,
        ))
    };
    let fails = json!([{"expression": "object.missing == 1"}]);
    let denies = json!([{"expression": "false", "message": " no "}]);
    for (what, spec, actions, denied, warned) in [
        (
            "a failure denies",
            json!({"validations": fails}),
            json!(["Deny"]),
            Some("expression 'object.missing == 1' resulted in error: no such key: missing"),
            0,
        ),
        (
            "unless ignored",
            json!({"validations": fails, "failurePolicy": "Ignore"}),
            json!(["Deny"]),
            None,
            0,
        ),
        (
            "a condition that is false",
            json!({"validations": denies, "matchConditions": [{"name": "c", "expression": "false"}]}),
            json!(["Deny"]),
            None,
            0,
        ),
        (
            "a condition that is false outweighs a failure",
            json!({"validations": denies, "matchConditions": [{"name": "a", "expression": "object.missing"}, {"name": "b", "expression": "false"}]}),
            json!(["Deny"]),
            None,
            0,
        ),
        (
            "a condition that fails",
            json!({"validations": denies, "matchConditions": [{"name": "a", "expression": "object.missing"}]}),
            json!(["Deny"]),
            Some("expression 'object.missing' resulted in error: no such key: missing"),
            0,
        ),
        (
            "a condition that fails, ignored",
            json!({"validations": denies, "failurePolicy": "Ignore", "matchConditions": [{"name": "a", "expression": "object.missing"}]}),
            json!(["Deny"]),
            None,
            0,
        ),
        (
            "only a warning",
            json!({"validations": denies}),
            json!(["Warn"]),
            None,
            1,
        ),
        (
            "only an audit",
            json!({"validations": denies}),
            json!(["Audit"]),
            None,
            0,
        ),
        (
            "a message that fails falls back",
            json!({"validations": [{"expression": "false", "message": "plain", "messageExpression": "object.missing"}]}),
            json!(["Deny"]),
            Some("plain"),
            0,
        ),
        (
            "a message of two lines falls back",
            json!({"validations": [{"expression": "false", "message": "plain", "messageExpression": "'a\\nb'"}]}),
            json!(["Deny"]),
            Some("plain"),
            0,
        ),
        (
            "the first of two",
            json!({"validations": [{"expression": "true"}, {"expression": "1 == 2"}, {"expression": "false"}]}),
            json!(["Deny", "Warn"]),
            Some("failed expression: 1 == 2"),
            2,
        ),
        (
            "what is absent",
            json!({"validations": [{"expression": "oldObject == null && params == null && namespaceObject == null && !has(request.subResource) && request.kind.kind == 'Model' && request.dryRun == false"}]}),
            json!(["Deny"]),
            None,
            0,
        ),
    ] {
        let verdict = verdict(spec, actions);
        let denied = denied.map(|message| {
            format!(
                "ValidatingAdmissionPolicy 'p' with binding 'p-binding' denied request: {message}"
            )
        });
        assert_eq!(
            verdict.denial.map(|denial| denial.message),
            denied,
            "{what}"
        );
        assert_eq!(verdict.warnings.len(), warned, "{what}");
    }
}

/// Each expected message is copied from kube-apiserver 1.36.
#[test]
fn failures_are_worded_as_a_real_server_does() {
    let object = json!({"metadata": {"name": "a"}, "spec": {"s": "x", "z": 0, "l": [1]}});
    let mut spec = json!({"variables": [{"name": "v", "expression": "object.missing"}]});
    spec["matchConstraints"] = models(json!(["*"]));
    for (expression, error) in [
        ("object.spec.s.x == 1", "no such key: x"),
        ("oldObject.spec == 1", "no such key: spec"),
        ("object.spec.l[5] == 1", "index out of bounds: 5"),
        ("5 % object.spec.z == 1", "modulus by zero"),
        (
            "9223372036854775807 - (object.spec.z - 1) == 1",
            "integer overflow",
        ),
        ("object.spec.z + 'a' == 'x'", "no such overload"),
        ("object.spec.z < 'a'", "no such overload"),
        ("object.spec.z && true", "no such overload"),
        ("size(object.spec.z) == 1", "no such overload: size"),
        (
            "int(object.spec.s) == 1",
            "type conversion error from 'string' to 'int'",
        ),
        (
            "variables.v == 1",
            "composited variable \"v\" fails to evaluate: no such key: missing",
        ),
        ("has(oldObject.spec)", ""),
    ] {
        spec["validations"] = json!([{"expression": expression}]);
        let policies = compiled(
            &[policy("p", spec.clone())],
            &[binding("p", json!(["Deny"]))],
        );
        let request = request(Operation::Create, Some(&object), None);
        let denial = policies.check(&request).denial.unwrap();
        let said = match error {
            "" => format!("failed expression: {expression}"),
            error => format!("expression '{expression}' resulted in error: {error}"),
        };
        assert!(
            denial.message.ends_with(&format!("denied request: {said}")),
            "{}",
            denial.message
        );
    }
}

#[test]
fn policies_that_cannot_be_enforced_are_reported() {
    let object = json!({"metadata": {"name": "a"}});
    let (policies, warnings) = Policies::compile(
        &[
            policy(
                "with-params",
                json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "false"}]}),
            ),
            policy(
                "odd-condition",
                json!({"matchConditions": [{"name": "a", "expression": "ip('1.2.3.4') == 1"}], "validations": [{"expression": "false"}]}),
            ),
            policy(
                "half",
                json!({"validations": [{"expression": "self.a"}, {"expression": "object.metadata.name == 'b'", "message": "name it b"}]}),
            ),
            policy("unbound", json!({"validations": [{"expression": "false"}]})),
        ],
        &[
            binding("with-params", json!(["Deny"])),
            binding("odd-condition", json!(["Deny"])),
            binding("half", json!(["Deny"])),
        ],
    );
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert_eq!(
        warnings[2],
        "ValidatingAdmissionPolicy 'half': a validation is not enforced here: undeclared reference to 'self': self.a"
    );
    let denial = policies
        .check(&request(Operation::Create, Some(&object), None))
        .denial
        .unwrap();
    assert_eq!(denial.policy, "half");
    assert!(!policies.is_empty());
    assert!(Policies::default().is_empty());
    // A policy that denies all requests does not apply to policies, so it can still be deleted.
    let policies_themselves = Admission {
        group: "admissionregistration.k8s.io",
        resource: "validatingadmissionpolicies",
        ..request(Operation::Delete, None, Some(&object))
    };
    assert_eq!(policies.check(&policies_themselves), Verdict::default());
}
