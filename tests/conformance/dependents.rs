//! Cases about what happens to dependents when their owner is deleted.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, same},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(go_in_the_background_by_default),
        case(go_in_the_background),
        case(go_first_in_the_foreground),
        case(that_do_not_block_do_not_hold_the_foreground),
        case(are_orphaned),
        case(are_orphaned_in_the_older_way),
        case(stay_while_another_owner_is_there),
        case(of_nobody_go),
        case(of_another_uid_go),
        case(go_generation_by_generation),
        case(of_a_custom_owner_go),
        case(with_finalizers_wait),
        case(need_a_whole_reference),
        case(have_one_controller_at_most),
    ]
}

fn reference(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    })
}

async fn owned(t: &Target, name: &str, owners: Value, finalizers: Value) -> Value {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}}),
    )
    .await
    .created()
}

async fn go_in_the_background_by_default(t: Target) -> Outcome {
    let owner = t.configmap("owner").await;
    owned(&t, "one", json!([reference(&owner, false)]), json!([])).await;
    let answer = t.delete(&t.configmaps("/owner")).await.ok();
    same("status", &answer["status"], json!("Success"));
    t.gone(&t.configmaps("/one")).await;
    Ok(())
}

async fn go_in_the_background(t: Target) -> Outcome {
    let owner = t.configmap("owner").await;
    for name in ["one", "two"] {
        owned(&t, name, json!([reference(&owner, true)]), json!([])).await;
    }
    t.delete_with(
        &t.configmaps("/owner"),
        &json!({"propagationPolicy": "Background"}),
    )
    .await
    .ok();
    let answer = t.get(&t.configmaps("/owner")).await;
    same("code of the owner", &json!(answer.code), json!(404));
    for name in ["/one", "/two"] {
        t.gone(&t.configmaps(name)).await;
    }
    Ok(())
}

async fn go_first_in_the_foreground(t: Target) -> Outcome {
    let owner = t.configmap("owner").await;
    owned(
        &t,
        "one",
        json!([reference(&owner, true)]),
        json!(["bowline.dev/x"]),
    )
    .await;
    let answer = t
        .delete_with(
            &t.configmaps("/owner"),
            &json!({"propagationPolicy": "Foreground"}),
        )
        .await
        .ok();
    same(
        "finalizers",
        &answer["metadata"]["finalizers"],
        json!(["foregroundDeletion"]),
    );
    assert!(
        answer["metadata"]["deletionTimestamp"].is_string(),
        "{answer:#}"
    );
    t.until(&t.configmaps("/one"), "deletion", |answer| {
        answer.body["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    t.get(&t.configmaps("/owner")).await.ok();
    t.patch(
        &t.configmaps("/one"),
        Patch::Merge,
        &json!({"metadata": {"finalizers": []}}),
    )
    .await
    .ok();
    t.gone(&t.configmaps("/one")).await;
    t.gone(&t.configmaps("/owner")).await;
    Ok(())
}

async fn that_do_not_block_do_not_hold_the_foreground(t: Target) -> Outcome {
    let owner = t.configmap("owner").await;
    owned(
        &t,
        "one",
        json!([reference(&owner, false)]),
        json!(["bowline.dev/x"]),
    )
    .await;
    t.delete_with(
        &t.configmaps("/owner"),
        &json!({"propagationPolicy": "Foreground"}),
    )
    .await
    .ok();
    t.gone(&t.configmaps("/owner")).await;
    t.until(&t.configmaps("/one"), "deletion", |answer| {
        answer.body["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    Ok(())
}

async fn are_orphaned(t: Target) -> Outcome {
    let owner = t.configmap("owner").await;
    owned(&t, "one", json!([reference(&owner, false)]), json!([])).await;
    t.delete_with(
        &t.configmaps("/owner"),
        &json!({"propagationPolicy": "Orphan"}),
    )
    .await
    .ok();
    t.gone(&t.configmaps("/owner")).await;
    let left = t.get(&t.configmaps("/one")).await.ok();
    same(
        "ownerReferences",
        &left["metadata"]["ownerReferences"],
        json!(null),
    );
    Ok(())
}

async fn are_orphaned_in_the_older_way(t: Target) -> Outcome {
    let owner = t.configmap("owner").await;
    owned(&t, "one", json!([reference(&owner, false)]), json!([])).await;
    let path = format!("{}?orphanDependents=true", t.configmaps("/owner"));
    t.delete(&path).await.ok();
    t.gone(&t.configmaps("/owner")).await;
    t.get(&t.configmaps("/one")).await.ok();
    Ok(())
}

async fn stay_while_another_owner_is_there(t: Target) -> Outcome {
    let first = t.configmap("first").await;
    let second = t.configmap("second").await;
    owned(
        &t,
        "one",
        json!([reference(&first, false), reference(&second, false)]),
        json!([]),
    )
    .await;
    t.delete(&t.configmaps("/first")).await.ok();
    let left = t
        .until(&t.configmaps("/one"), "loss of one owner", |answer| {
            answer.body["metadata"]["ownerReferences"]
                .as_array()
                .is_some_and(|references| references.len() == 1)
        })
        .await
        .ok();
    same(
        "the owner that is left",
        &left["metadata"]["ownerReferences"][0]["name"],
        json!("second"),
    );
    t.delete(&t.configmaps("/second")).await.ok();
    t.gone(&t.configmaps("/one")).await;
    Ok(())
}

async fn of_nobody_go(t: Target) -> Outcome {
    let nobody = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody",
        "uid": "00000000-0000-0000-0000-000000000001",
    }]);
    owned(&t, "one", nobody, json!([])).await;
    t.gone(&t.configmaps("/one")).await;
    Ok(())
}

async fn of_another_uid_go(t: Target) -> Outcome {
    let mut owner = t.configmap("owner").await;
    owner["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000001");
    owned(&t, "one", json!([reference(&owner, false)]), json!([])).await;
    t.gone(&t.configmaps("/one")).await;
    t.get(&t.configmaps("/owner")).await.ok();
    Ok(())
}

async fn go_generation_by_generation(t: Target) -> Outcome {
    let grandparent = t.configmap("grandparent").await;
    let parent = owned(
        &t,
        "parent",
        json!([reference(&grandparent, true)]),
        json!([]),
    )
    .await;
    owned(&t, "child", json!([reference(&parent, true)]), json!([])).await;
    t.delete_with(
        &t.configmaps("/grandparent"),
        &json!({"propagationPolicy": "Foreground"}),
    )
    .await
    .ok();
    for name in ["/child", "/parent", "/grandparent"] {
        t.gone(&t.configmaps(name)).await;
    }
    Ok(())
}

async fn of_a_custom_owner_go(t: Target) -> Outcome {
    let owner = t.widget("owner", json!({})).await;
    owned(&t, "one", json!([reference(&owner, false)]), json!([])).await;
    let mut child = widget::with_spec("child", json!({}));
    child["metadata"]["ownerReferences"] = json!([reference(&owner, false)]);
    t.post(&t.widgets(""), &child).await.created();
    t.delete(&t.widgets("/owner")).await.ok();
    t.gone(&t.configmaps("/one")).await;
    t.gone(&t.widgets("/child")).await;
    Ok(())
}

async fn with_finalizers_wait(t: Target) -> Outcome {
    let owner = t.configmap("owner").await;
    owned(
        &t,
        "one",
        json!([reference(&owner, false)]),
        json!(["bowline.dev/x"]),
    )
    .await;
    t.delete(&t.configmaps("/owner")).await.ok();
    t.until(&t.configmaps("/one"), "deletion", |answer| {
        answer.body["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    t.patch(
        &t.configmaps("/one"),
        Patch::Merge,
        &json!({"metadata": {"finalizers": null}}),
    )
    .await
    .ok();
    t.gone(&t.configmaps("/one")).await;
    Ok(())
}

async fn need_a_whole_reference(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap"}]}}),
    )
    .await
    .refused(422, "Invalid", r#"ConfigMap "a" is invalid: [metadata.ownerReferences.name: Invalid value: "": must not be empty, metadata.ownerReferences.uid: Invalid value: "": must not be empty]"#);
    Ok(())
}

async fn have_one_controller_at_most(t: Target) -> Outcome {
    let mut first = reference(&t.configmap("first").await, false);
    let mut second = reference(&t.configmap("second").await, false);
    first["controller"] = json!(true);
    second["controller"] = json!(true);
    let answer = t
        .post(
            &t.configmaps(""),
            &json!({"metadata": {"name": "a", "ownerReferences": [first, second]}}),
        )
        .await;
    same("code", &json!(answer.code), json!(422));
    same(
        "field",
        &answer.body["details"]["causes"][0]["field"],
        json!("metadata.ownerReferences"),
    );
    Ok(())
}
