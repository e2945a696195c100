//! Cases about the rules of bowline's kinds: a Release never changes, and the name of a ReleasePin matches
//! its spec.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Answer, PATIENCE, Patch, Target, names, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(never_change_by_replacement),
        case(never_change_by_merge_patch),
        case(never_change_by_json_patch),
        case(never_change_by_apply),
        case(never_change_by_other_doors),
        case(take_labels_and_annotations),
        case(have_one_of_reference_and_content),
        case(are_found_by_component),
        case(pins_are_named_after_what_they_pin),
        case(pins_keep_component_and_environment),
        case(pins_move_and_count),
        case(pins_are_found_by_what_they_pin),
        case(pins_show_columns),
    ]
}

const API_VERSION: &str = "openchoreo.dev/v1alpha1";

impl Target {
    fn releases(&self, rest: &str) -> String {
        self.group(API_VERSION, &format!("releases{rest}"))
    }

    fn pins(&self, rest: &str) -> String {
        self.group(API_VERSION, &format!("releasepins{rest}"))
    }
}

fn release() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Release",
        "metadata": {"name": "cart-v1"},
        "spec": {
            "component": {"name": "cart", "content": {
                "apiVersion": API_VERSION,
                "kind": "Component",
                "metadata": {"name": "cart"},
                "spec": {"parameters": {"replicas": 2, "big": 9_007_199_254_740_993_i64}},
            }},
            "componentTypeDefinition": {"name": "web-app", "content": {
                "apiVersion": API_VERSION,
                "kind": "ComponentTypeDefinition",
                "metadata": {"name": "web-app"},
                "spec": {"workloadType": "deployment", "resources": []},
            }},
            "workload": {
                "apiVersion": API_VERSION,
                "kind": "Workload",
                "metadata": {"name": "cart"},
                "spec": {"image": "cart:v1", "unknown": "x"},
            },
        },
    })
}

fn image(image: &str) -> Value {
    json!({"spec": {"workload": {"spec": {"image": image}}}})
}

/// Creates a Release by apply, and waits until the server enforces the policy on Releases.
async fn made(t: &Target) -> Value {
    let made = t
        .apply(&t.releases("/cart-v1"), "maker", &release())
        .await
        .created();
    let path = format!("{}?dryRun=All", t.releases("/cart-v1"));
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = t.patch(&path, Patch::Merge, &image("cart:v2")).await;
        if answer.code == 422 {
            return made;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "the rule is not in force: {answer:?}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Asserts that an attempt to change a Release failed, or changed nothing. `way` names the attempt.
async fn still(t: &Target, made: &Value, way: &str, answer: Answer) {
    let now = t.get(&t.releases("/cart-v1")).await.ok();
    same(
        &format!("spec after {way}"),
        &now["spec"],
        made["spec"].clone(),
    );
    for field in ["uid", "generation"] {
        same(
            &format!("{field} after {way}"),
            &now["metadata"][field],
            made["metadata"][field].clone(),
        );
    }
    assert!(
        answer.code >= 400 || now["spec"] == answer.body["spec"],
        "{way} was answered with another spec: {answer:?}"
    );
}

async fn never_change_by_replacement(t: Target) -> Outcome {
    let made = made(&t).await;
    let path = t.releases("/cart-v1");
    let changed = |pointer: &str, value: Value| {
        let mut body = made.clone();
        match body.pointer_mut(pointer) {
            Some(place) => *place = value,
            None => panic!("no {pointer}"),
        }
        body
    };
    let mut without = made.clone();
    if let Some(body) = without.as_object_mut() {
        body.remove("spec");
    }
    let mut more = made.clone();
    more["spec"]["workload"]["spec"]["new"] = json!(1);
    let mut typed = made.clone();
    typed["spec"]["new"] = json!(1);
    let mut other_generation = changed("/spec/workload/spec/image", json!("cart:v2"));
    other_generation["metadata"]["generation"] = json!(40);
    for (way, body) in [
        (
            "another image",
            changed("/spec/workload/spec/image", json!("cart:v2")),
        ),
        ("another image and generation", other_generation),
        ("no spec", without),
        ("a null spec", changed("/spec", json!(null))),
        ("an empty spec", changed("/spec", json!({}))),
        ("an unknown field more", more),
        ("a field that is dropped", typed),
        (
            "a number as a float",
            changed(
                "/spec/component/content/spec/parameters/replicas",
                json!(2.0),
            ),
        ),
        (
            "a big number that is nearly the same",
            changed(
                "/spec/component/content/spec/parameters/big",
                json!(9_007_199_254_740_992.0),
            ),
        ),
        ("a name", changed("/spec/component/name", json!("basket"))),
        (
            "metadata within",
            changed("/spec/workload/metadata", json!({"name": "basket"})),
        ),
    ] {
        let answer = t.put(&path, &body).await;
        still(&t, &made, way, answer).await;
    }
    let refused = t
        .put(
            &path,
            &changed("/spec/workload/spec/image", json!("cart:v2")),
        )
        .await;
    let message = text(&refused.body, "/message");
    assert!(
        message.ends_with("the spec of a Release cannot change; create another Release"),
        "message: {message}"
    );
    Ok(())
}

async fn never_change_by_merge_patch(t: Target) -> Outcome {
    let made = made(&t).await;
    let path = t.releases("/cart-v1");
    for (way, body) in [
        ("an image", image("cart:v2")),
        ("a null spec", json!({"spec": null})),
        ("a null workload", json!({"spec": {"workload": null}})),
        (
            "an unknown field",
            json!({"spec": {"workload": {"spec": {"new": 1}}}}),
        ),
        (
            "an unknown field less",
            json!({"spec": {"workload": {"spec": {"unknown": null}}}}),
        ),
        (
            "unknown fields swapped",
            json!({"spec": {"workload": {"spec": {"unknown": null, "new": "x"}}}}),
        ),
        (
            "a change beside a label",
            json!({"metadata": {"labels": {"l": "1"}}, "spec": {"workload": {"spec": {"image": "cart:v2"}}}}),
        ),
    ] {
        let answer = t.patch(&path, Patch::Merge, &body).await;
        still(&t, &made, way, answer).await;
        let ignoring = format!("{path}?fieldValidation=Ignore");
        let answer = t.patch(&ignoring, Patch::Merge, &body).await;
        still(&t, &made, way, answer).await;
    }
    Ok(())
}

async fn never_change_by_json_patch(t: Target) -> Outcome {
    let made = made(&t).await;
    let path = t.releases("/cart-v1");
    let mut other = made["spec"].clone();
    other["workload"]["spec"]["image"] = json!("cart:v2");
    for (way, body) in [
        (
            "replace",
            json!([{"op": "replace", "path": "/spec/workload/spec/image", "value": "cart:v2"}]),
        ),
        (
            "remove",
            json!([{"op": "remove", "path": "/spec/workload/spec/image"}]),
        ),
        (
            "remove the spec",
            json!([{"op": "remove", "path": "/spec"}]),
        ),
        (
            "remove the spec and put another",
            json!([{"op": "remove", "path": "/spec"}, {"op": "add", "path": "/spec", "value": other}]),
        ),
        (
            "add an unknown field",
            json!([{"op": "add", "path": "/spec/workload/spec/new", "value": null}]),
        ),
        (
            "move",
            json!([{"op": "move", "from": "/spec/workload/spec/image", "path": "/spec/workload/spec/picture"}]),
        ),
        (
            "copy",
            json!([{"op": "copy", "from": "/spec/workload/spec/image", "path": "/spec/workload/spec/picture"}]),
        ),
    ] {
        let answer = t.patch(&path, Patch::Json, &body).await;
        still(&t, &made, way, answer).await;
    }
    Ok(())
}

async fn never_change_by_apply(t: Target) -> Outcome {
    let made = made(&t).await;
    let path = t.releases("/cart-v1");
    let mut other = release();
    other["spec"]["workload"]["spec"]["image"] = json!("cart:v2");
    let mut fewer = release();
    if let Some(spec) = fewer.pointer_mut("/spec/component/content/spec/parameters") {
        *spec = json!({});
    }
    let mut bare = release();
    if let Some(body) = bare.as_object_mut() {
        body.remove("spec");
    }
    let mut git = release();
    git["spec"]["component"] = json!({"name": "cart"});
    for (way, manager, body) in [
        ("the maker's other image", "maker", &other),
        ("another's image", "other", &other),
        ("the maker's fewer fields", "maker", &fewer),
        ("the maker's no fields", "maker", &bare),
        ("the maker's reference without content", "maker", &git),
    ] {
        let answer = t.force_apply(&path, manager, body).await;
        still(&t, &made, way, answer).await;
    }
    Ok(())
}

async fn never_change_by_other_doors(t: Target) -> Outcome {
    let made = made(&t).await;
    let mut other = made.clone();
    other["spec"]["workload"]["spec"]["image"] = json!("cart:v2");
    let path = t.releases("/cart-v1");
    for subresource in ["status", "scale", "spec"] {
        let answer = t.put(&format!("{path}/{subresource}"), &other).await;
        same(subresource, &json!(answer.code), json!(404));
        still(&t, &made, subresource, answer).await;
    }
    let answer = t
        .put(&t.group("openchoreo.dev/v1", "releases/cart-v1"), &other)
        .await;
    same("another version", &json!(answer.code), json!(404));
    still(&t, &made, "another version", answer).await;
    let answer = t.patch(&path, Patch::Strategic, &image("cart:v2")).await;
    same("a strategic patch", &json!(answer.code), json!(415));
    still(&t, &made, "a strategic patch", answer).await;
    let mut again = release();
    again["spec"]["workload"]["spec"]["image"] = json!("cart:v2");
    let answer = t.post(&t.releases(""), &again).await;
    same("a second creation", &json!(answer.code), json!(409));
    still(&t, &made, "a second creation", answer).await;
    Ok(())
}

async fn take_labels_and_annotations(t: Target) -> Outcome {
    made(&t).await;
    let patched = t
        .patch(
            &t.releases("/cart-v1"),
            Patch::Merge,
            &json!({"metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}}}),
        )
        .await
        .ok();
    same("labels", &patched["metadata"]["labels"], json!({"l": "1"}));
    same("generation", &patched["metadata"]["generation"], json!(1));
    Ok(())
}

async fn have_one_of_reference_and_content(t: Target) -> Outcome {
    let mut body = release();
    body["spec"]["component"] = json!({"name": "cart"});
    let answer = t.post(&t.releases(""), &body).await;
    same("code", &json!(answer.code), json!(422));
    same(
        "cause",
        &answer.body["details"]["causes"],
        json!([{
            "reason": "FieldValueInvalid",
            "message": "Invalid value: a reference must have exactly one of gitRef and content",
            "field": "spec.component",
        }]),
    );
    Ok(())
}

async fn are_found_by_component(t: Target) -> Outcome {
    t.post(&t.releases(""), &release()).await.created();
    for (component, expected) in [("cart", json!(["cart-v1"])), ("basket", json!([]))] {
        let path = format!(
            "{}?fieldSelector=spec.component.name%3D{component}",
            t.releases("")
        );
        same(component, &json!(names(&t.get(&path).await.ok())), expected);
    }
    Ok(())
}

fn pin(name: &str, environment: &str, release: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ReleasePin",
        "metadata": {
            "name": name,
            "labels": {"openchoreo.dev/component": "cart", "openchoreo.dev/environment": environment},
        },
        "spec": {"component": "cart", "environment": environment, "releaseRef": {"name": release}},
    })
}

async fn pins_are_named_after_what_they_pin(t: Target) -> Outcome {
    let answer = t
        .post(&t.pins(""), &pin("other", "staging", "cart-v1"))
        .await;
    same("code", &json!(answer.code), json!(422));
    let message = text(&answer.body, "/message");
    assert!(
        message.contains("the name of a ReleasePin must be {component}-{environment}"),
        "message: {message}"
    );
    Ok(())
}

async fn pins_keep_component_and_environment(t: Target) -> Outcome {
    t.post(&t.pins(""), &pin("cart-staging", "staging", "cart-v1"))
        .await
        .created();
    for field in ["component", "environment"] {
        let answer = t
            .patch(
                &t.pins("/cart-staging"),
                Patch::Merge,
                &json!({"spec": {field: "other"}}),
            )
            .await;
        same(field, &json!(answer.code), json!(422));
        let message = text(&answer.body, "/message");
        assert!(
            message.contains(&format!(
                "the {field} of a ReleasePin cannot change; create another ReleasePin"
            )),
            "message: {message}"
        );
    }
    Ok(())
}

async fn pins_move_and_count(t: Target) -> Outcome {
    let made = t
        .post(&t.pins(""), &pin("cart-staging", "staging", "cart-v1"))
        .await
        .created();
    same("generation", &made["metadata"]["generation"], json!(1));
    let mut moved = made.clone();
    moved["spec"]["releaseRef"]["name"] = json!("cart-v2");
    let moved = t.put(&t.pins("/cart-staging"), &moved).await.ok();
    same("generation", &moved["metadata"]["generation"], json!(2));
    let reported = t
        .patch(
            &t.pins("/cart-staging/status"),
            Patch::Merge,
            &json!({"status": {"appliedRelease": "cart-v2"}}),
        )
        .await
        .ok();
    same("generation", &reported["metadata"]["generation"], json!(2));
    let answer = t.put(&t.pins("/cart-staging"), &made).await;
    same("a stale move", &json!(answer.code), json!(409));
    Ok(())
}

async fn pins_are_found_by_what_they_pin(t: Target) -> Outcome {
    for environment in ["staging", "production"] {
        let name = format!("cart-{environment}");
        t.post(&t.pins(""), &pin(&name, environment, "cart-v1"))
            .await
            .created();
    }
    for (selector, expected) in [
        ("spec.environment%3Dstaging", json!(["cart-staging"])),
        (
            "spec.releaseRef.name%3Dcart-v1",
            json!(["cart-production", "cart-staging"]),
        ),
        ("spec.component%3Dbasket", json!([])),
    ] {
        let path = format!("{}?fieldSelector={selector}", t.pins(""));
        same(selector, &json!(names(&t.get(&path).await.ok())), expected);
    }
    Ok(())
}

async fn pins_show_columns(t: Target) -> Outcome {
    t.post(&t.pins(""), &pin("cart-staging", "staging", "cart-v1"))
        .await
        .created();
    t.patch(
        &t.pins("/cart-staging/status"),
        Patch::Merge,
        &json!({"status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "Fine",
            "message": "",
            "lastTransitionTime": "2026-01-05T13:40:00Z",
        }]}}),
    )
    .await
    .ok();
    let table = t
        .get_as(&t.pins(""), "application/json;as=Table;g=meta.k8s.io;v=v1")
        .await
        .ok();
    let cells = table["rows"][0]["cells"].as_array();
    let shown: Vec<&Value> = cells.into_iter().flatten().take(6).collect();
    same(
        "cells",
        &json!(shown),
        json!(["cart-staging", "cart", "staging", "cart-v1", null, "True"]),
    );
    Ok(())
}
