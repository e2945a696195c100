//! Cases about ValidatingAdmissionPolicy: denials with their messages, and warnings.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Answer, Patch, Target, same},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(denies_with_a_message),
        case(denies_with_the_rule_where_there_is_no_message),
        case(denies_with_an_expression_and_a_reason),
        case(warns),
        case(knows_the_old_object_and_the_user),
        case(guards_deletion),
        case(guards_patches_and_apply),
        case(guards_dry_runs),
        case(has_variables_and_conditions),
        case(without_a_binding_does_nothing),
        case(of_one_operation_leaves_others),
        case(of_a_status_subresource),
        case(that_does_not_compile_is_refused),
    ]
}

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// Returns a ValidatingAdmissionPolicy for widgets in the namespace of the case.
fn policy(t: &Target, operations: Value, resources: Value, spec: Value) -> Value {
    let mut whole = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": t.namespace}},
            "resourceRules": [{
                "apiGroups": [widget::GROUP],
                "apiVersions": ["v1"],
                "operations": operations,
                "resources": resources,
            }],
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    json!({"metadata": {"name": t.namespace}, "spec": whole})
}

async fn bind(t: &Target, actions: Value) {
    t.post(
        BINDINGS,
        &json!({
            "metadata": {"name": t.namespace},
            "spec": {"policyName": t.namespace, "validationActions": actions},
        }),
    )
    .await
    .created();
}

async fn install(t: &Target, actions: Value, operations: Value, spec: Value) {
    t.post(POLICIES, &policy(t, operations, json!(["widgets"]), spec))
        .await
        .created();
    bind(t, actions).await;
}

async fn attempt(t: &Target, spec: Value) -> Answer {
    let path = format!("{}?dryRun=All", t.widgets(""));
    t.post(&path, &widget::with_spec("probe", spec)).await
}

/// Creates a widget by dry run, again and again, until `active` is true for the answer. Then the server
/// enforces the policy.
async fn until_active(t: &Target, spec: Value, active: impl Fn(&Answer) -> bool) -> Answer {
    let deadline = tokio::time::Instant::now() + crate::target::PATIENCE;
    loop {
        let answer = attempt(t, spec.clone()).await;
        if active(&answer) {
            return answer;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "the policy never acted; last: {} {:#}",
            answer.code,
            answer.body
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

fn refusal(answer: &Answer) -> bool {
    answer.code >= 400
}

const NO_BLUE: &str = "!has(object.spec.color) || object.spec.color != 'blue'";

async fn denies_with_a_message(t: Target) -> Outcome {
    install(
        &t,
        json!(["Deny"]),
        json!(["CREATE", "UPDATE"]),
        json!({"validations": [{"expression": NO_BLUE, "message": "blue is out"}]}),
    )
    .await;
    let name = t.namespace.clone();
    let details = until_active(&t, json!({"color": "blue"}), refusal)
        .await
        .refused(
            422,
            "Invalid",
            &format!(
                r#"widgets.conformance.bowline.dev "probe" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: blue is out"#
            ),
        );
    same(
        "details",
        &details,
        json!({
            "name": "probe",
            "group": widget::GROUP,
            "kind": "widgets",
            "causes": [{"message": format!("ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: blue is out")}],
        }),
    );
    attempt(&t, json!({"color": "green"})).await.created();
    Ok(())
}

async fn denies_with_the_rule_where_there_is_no_message(t: Target) -> Outcome {
    install(
        &t,
        json!(["Deny"]),
        json!(["CREATE"]),
        json!({"validations": [{"expression": NO_BLUE}]}),
    )
    .await;
    let name = t.namespace.clone();
    until_active(&t, json!({"color": "blue"}), refusal)
        .await
        .refused(
            422,
            "Invalid",
            &format!(
                r#"widgets.conformance.bowline.dev "probe" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: failed expression: {NO_BLUE}"#
            ),
        );
    Ok(())
}

async fn denies_with_an_expression_and_a_reason(t: Target) -> Outcome {
    install(
        &t,
        json!(["Deny"]),
        json!(["CREATE"]),
        json!({"validations": [{
            "expression": NO_BLUE,
            "messageExpression": "'no ' + object.spec.color + ' in ' + request.namespace",
            "reason": "Forbidden",
        }]}),
    )
    .await;
    let name = t.namespace.clone();
    until_active(&t, json!({"color": "blue"}), refusal)
        .await
        .refused(
            403,
            "Forbidden",
            &format!(
                r#"widgets.conformance.bowline.dev "probe" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: no blue in {name}"#
            ),
        );
    Ok(())
}

async fn warns(t: Target) -> Outcome {
    install(
        &t,
        json!(["Warn"]),
        json!(["CREATE"]),
        json!({"validations": [{"expression": NO_BLUE, "message": "blue is out"}]}),
    )
    .await;
    let answer = until_active(&t, json!({"color": "blue"}), |answer| {
        !answer.warnings.is_empty()
    })
    .await;
    let name = &t.namespace;
    same(
        "warnings",
        &json!(answer.warnings),
        json!([format!(
            r#"299 - "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': blue is out""#
        )]),
    );
    answer.created();
    Ok(())
}

async fn knows_the_old_object_and_the_user(t: Target) -> Outcome {
    install(
        &t,
        json!(["Deny"]),
        json!(["CREATE", "UPDATE"]),
        json!({"validations": [
            {"expression": NO_BLUE, "message": "blue is out"},
            {
                "expression": "oldObject == null || object.spec.color == oldObject.spec.color",
                "messageExpression": "request.userInfo.username + ' cannot ' + request.operation",
            },
        ]}),
    )
    .await;
    until_active(&t, json!({"color": "blue"}), refusal).await;
    t.widget("a", json!({"color": "green"})).await;
    let name = t.namespace.clone();
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"spec": {"color": "red"}}),
    )
    .await
    .refused(
        422,
        "Invalid",
        &format!(
            r#"widgets.conformance.bowline.dev "a" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: admin cannot UPDATE"#
        ),
    );
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"spec": {"detail": "d"}}),
    )
    .await
    .ok();
    Ok(())
}

async fn guards_deletion(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    t.widget("b", json!({"detail": "free"})).await;
    install(
        &t,
        json!(["Deny"]),
        json!(["CREATE", "DELETE"]),
        json!({"validations": [{
            "expression": "request.operation == 'CREATE' ? !has(object.spec.color) || object.spec.color != 'blue' : has(oldObject.spec.detail)",
            "message": "it stays",
        }]}),
    )
    .await;
    until_active(&t, json!({"color": "blue"}), refusal).await;
    let name = t.namespace.clone();
    t.delete(&t.widgets("/a")).await.refused(
        422,
        "Invalid",
        &format!(
            r#"widgets.conformance.bowline.dev "a" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: it stays"#
        ),
    );
    t.delete(&t.widgets("/b")).await.ok();
    t.get(&t.widgets("/a")).await.ok();
    Ok(())
}

async fn no_blue(t: &Target) {
    install(
        t,
        json!(["Deny"]),
        json!(["CREATE", "UPDATE"]),
        json!({"validations": [{"expression": NO_BLUE, "message": "blue is out"}]}),
    )
    .await;
    until_active(t, json!({"color": "blue"}), refusal).await;
}

async fn guards_patches_and_apply(t: Target) -> Outcome {
    no_blue(&t).await;
    let made = t.widget("a", json!({"color": "green"})).await;
    let path = t.widgets("/a");
    let mut body = made.clone();
    body["spec"]["color"] = json!("blue");
    let answers = [
        t.put(&path, &body).await,
        t.patch(&path, Patch::Merge, &json!({"spec": {"color": "blue"}}))
            .await,
        t.patch(
            &path,
            Patch::Json,
            &json!([{"op": "replace", "path": "/spec/color", "value": "blue"}]),
        )
        .await,
        t.force_apply(
            &path,
            "one",
            &widget::with_spec("a", json!({"color": "blue"})),
        )
        .await,
        t.force_apply(
            &t.widgets("/b"),
            "one",
            &widget::with_spec("b", json!({"color": "blue"})),
        )
        .await,
    ];
    for answer in answers {
        same("code", &json!(answer.code), json!(422));
        same("reason", &answer.body["reason"], json!("Invalid"));
    }
    same("the object", &t.get(&path).await.ok(), made);
    Ok(())
}

async fn guards_dry_runs(t: Target) -> Outcome {
    no_blue(&t).await;
    let answer = attempt(&t, json!({"color": "blue"})).await;
    same("code", &json!(answer.code), json!(422));
    Ok(())
}

async fn has_variables_and_conditions(t: Target) -> Outcome {
    install(
        &t,
        json!(["Deny"]),
        json!(["CREATE"]),
        json!({
            "matchConditions": [{"name": "not-free", "expression": "!has(object.spec.detail) || object.spec.detail != 'free'"}],
            "variables": [{"name": "color", "expression": "has(object.spec.color) ? object.spec.color : 'none'"}],
            "validations": [{"expression": "variables.color != 'blue'", "message": "blue is out"}],
        }),
    )
    .await;
    until_active(&t, json!({"color": "blue"}), refusal).await;
    attempt(&t, json!({"color": "blue", "detail": "free"}))
        .await
        .created();
    Ok(())
}

async fn without_a_binding_does_nothing(t: Target) -> Outcome {
    let spec = json!({"validations": [{"expression": "false", "message": "never"}]});
    let made = t
        .post(
            POLICIES,
            &policy(&t, json!(["CREATE"]), json!(["widgets"]), spec),
        )
        .await
        .created();
    same("generation", &made["metadata"]["generation"], json!(1));
    t.widget("a", json!({})).await;
    Ok(())
}

async fn of_one_operation_leaves_others(t: Target) -> Outcome {
    install(
        &t,
        json!(["Deny"]),
        json!(["CREATE"]),
        json!({"validations": [{"expression": NO_BLUE, "message": "blue is out"}]}),
    )
    .await;
    until_active(&t, json!({"color": "blue"}), refusal).await;
    t.widget("a", json!({})).await;
    let patched = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"spec": {"color": "blue"}}),
        )
        .await
        .ok();
    same("color", &patched["spec"]["color"], json!("blue"));
    Ok(())
}

async fn of_a_status_subresource(t: Target) -> Outcome {
    let spec = json!({"validations": [{
        "expression": "request.operation == 'CREATE' ? !has(object.spec.color) || object.spec.color != 'blue' : !has(object.status) || object.status.phase != 'Lost'",
        "message": "not so",
    }]});
    t.post(
        POLICIES,
        &policy(
            &t,
            json!(["CREATE", "UPDATE"]),
            json!(["widgets", "widgets/status"]),
            spec,
        ),
    )
    .await
    .created();
    bind(&t, json!(["Deny"])).await;
    until_active(&t, json!({"color": "blue"}), refusal).await;
    t.widget("a", json!({})).await;
    let path = t.widgets("/a/status");
    let answer = t
        .patch(&path, Patch::Merge, &json!({"status": {"phase": "Lost"}}))
        .await;
    same("code", &json!(answer.code), json!(422));
    t.patch(&path, Patch::Merge, &json!({"status": {"phase": "Done"}}))
        .await
        .ok();
    Ok(())
}

async fn that_does_not_compile_is_refused(t: Target) -> Outcome {
    let spec = json!({"validations": [{"expression": "object.spec ==", "message": "never"}]});
    let answer = t
        .post(
            POLICIES,
            &policy(&t, json!(["CREATE"]), json!(["widgets"]), spec),
        )
        .await;
    same("code", &json!(answer.code), json!(422));
    same(
        "field",
        &answer.body["details"]["causes"][0]["field"],
        json!("spec.validations[0].expression"),
    );
    Ok(())
}
