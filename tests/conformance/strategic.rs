//! Cases about strategic merge patches, which merge the lists of built-in kinds by a key of their items.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, same},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(containers_are_merged_by_name),
        case(environment_is_merged_by_name),
        case(ports_are_merged_by_number),
        case(an_element_can_be_deleted),
        case(a_list_can_be_replaced),
        case(a_map_can_be_replaced),
        case(an_element_that_says_replace_empties_the_list),
        case(plain_lists_are_replaced),
        case(finalizers_are_united),
        case(values_of_a_plain_list_can_be_deleted),
        case(the_order_can_be_set),
        case(keys_that_do_not_stay_are_dropped),
        case(null_removes),
        case(an_element_without_its_key),
        case(an_unknown_directive),
    ]
}

/// Returns a Deployment with two containers.
pub fn deployment(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [
                    {
                        "name": "main",
                        "image": "main:1",
                        "args": ["a", "b"],
                        "env": [{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "2"}],
                        "ports": [{"containerPort": 80, "name": "http"}],
                    },
                    {"name": "side", "image": "side:1"},
                ]},
            },
        },
    })
}

async fn patched(t: &Target, patch: Value) -> Value {
    let path = t.group("apps/v1", "deployments");
    t.post(&path, &deployment("a")).await.created();
    t.patch(&format!("{path}/a"), Patch::Strategic, &patch)
        .await
        .ok()
}

fn pod(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

fn containers(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"]
}

async fn containers_are_merged_by_name(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        pod(json!([{"name": "side", "image": "side:2"}, {"name": "third", "image": "third:1"}])),
    )
    .await;
    let images: Vec<Value> = containers(&deployment)
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| json!([container["name"], container["image"]]))
        .collect();
    same(
        "images",
        &json!(images),
        json!([["main", "main:1"], ["side", "side:2"], ["third", "third:1"]]),
    );
    Ok(())
}

async fn environment_is_merged_by_name(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        pod(json!([{"name": "main", "env": [{"name": "TWO", "value": "zwei"}]}])),
    )
    .await;
    same(
        "env",
        &containers(&deployment)[0]["env"],
        json!([{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "zwei"}]),
    );
    same(
        "args",
        &containers(&deployment)[0]["args"],
        json!(["a", "b"]),
    );
    Ok(())
}

async fn ports_are_merged_by_number(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        pod(json!([{"name": "main", "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81}]}])),
    )
    .await;
    same(
        "ports",
        &containers(&deployment)[0]["ports"],
        json!([{"containerPort": 80, "name": "web", "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]),
    );
    Ok(())
}

async fn an_element_can_be_deleted(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        pod(json!([
            {"name": "side", "$patch": "delete"},
            {"name": "main", "env": [{"name": "ONE", "$patch": "delete"}]},
        ])),
    )
    .await;
    same(
        "containers left",
        &json!(containers(&deployment).as_array().map(Vec::len)),
        json!(1),
    );
    same(
        "env",
        &containers(&deployment)[0]["env"],
        json!([{"name": "TWO", "value": "2"}]),
    );
    Ok(())
}

async fn a_list_can_be_replaced(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        pod(json!([{"name": "main", "env": [{"$patch": "replace"}, {"name": "NEW", "value": "n"}]}])),
    )
    .await;
    same(
        "env",
        &containers(&deployment)[0]["env"],
        json!([{"name": "NEW", "value": "n"}]),
    );
    Ok(())
}

async fn a_map_can_be_replaced(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a"}, "data": {"one": "1", "two": "2"}}),
    )
    .await
    .created();
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Strategic,
            &json!({"data": {"$patch": "replace", "three": "3"}}),
        )
        .await
        .ok();
    same("data", &patched["data"], json!({"three": "3"}));
    Ok(())
}

async fn an_element_that_says_replace_empties_the_list(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    t.post(&path, &deployment("a")).await.created();
    // The directive "replace" replaces the list; the element with the directive is not added to it.
    t.patch(
        &format!("{path}/a"),
        Patch::Strategic,
        &pod(json!([{"$patch": "replace", "name": "main", "image": "main:2"}])),
    )
    .await
    .refused(
        422,
        "Invalid",
        r#"Deployment.apps "a" is invalid: spec.template.spec.containers: Required value"#,
    );
    Ok(())
}

async fn plain_lists_are_replaced(t: Target) -> Outcome {
    let deployment = patched(&t, pod(json!([{"name": "main", "args": ["c"]}]))).await;
    same("args", &containers(&deployment)[0]["args"], json!(["c"]));
    Ok(())
}

async fn finalizers_are_united(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "finalizers": ["bowline.dev/one"]}}),
    )
    .await
    .created();
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Strategic,
            &json!({"metadata": {"finalizers": ["bowline.dev/two", "bowline.dev/one"]}}),
        )
        .await
        .ok();
    same(
        "finalizers",
        &patched["metadata"]["finalizers"],
        json!(["bowline.dev/two", "bowline.dev/one"]),
    );
    Ok(())
}

async fn values_of_a_plain_list_can_be_deleted(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "finalizers": ["bowline.dev/one", "bowline.dev/two"]}}),
    )
    .await
    .created();
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Strategic,
            &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["bowline.dev/one"]}}),
        )
        .await
        .ok();
    same(
        "finalizers",
        &patched["metadata"]["finalizers"],
        json!(["bowline.dev/two"]),
    );
    Ok(())
}

async fn the_order_can_be_set(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "side"}, {"name": "new"}, {"name": "main"}],
            "containers": [{"name": "new", "image": "new:1"}],
        }}}}),
    )
    .await;
    let order: Vec<&Value> = containers(&deployment)
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| &container["name"])
        .collect();
    same("order", &json!(order), json!(["side", "new", "main"]));
    Ok(())
}

async fn keys_that_do_not_stay_are_dropped(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    )
    .await;
    same(
        "strategy",
        &deployment["spec"]["strategy"],
        json!({"type": "Recreate"}),
    );
    Ok(())
}

async fn null_removes(t: Target) -> Outcome {
    let deployment = patched(
        &t,
        pod(json!([{"name": "main", "args": null, "env": null}])),
    )
    .await;
    same("args", &containers(&deployment)[0]["args"], json!(null));
    same("env", &containers(&deployment)[0]["env"], json!(null));
    Ok(())
}

async fn an_element_without_its_key(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    t.post(&path, &deployment("a")).await.created();
    t.patch(
        &format!("{path}/a"),
        Patch::Strategic,
        &pod(json!([{"image": "main:2"}])),
    )
    .await
    .refused_with(
        500,
        "",
        "map: map[image:main:2] does not contain declared merge key: name",
    );
    Ok(())
}

async fn an_unknown_directive(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Strategic,
        &json!({"data": {"$patch": "polish"}}),
    )
    .await
    .refused(
        500,
        "",
        "unknown patch type: polish in map: map[$patch:polish]",
    );
    Ok(())
}
