//! Cases about replacing an object: the resourceVersion as precondition, the uid, and writes that change
//! nothing.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Target, same, text, without_metadata},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(replaces_everything),
        case(a_stale_copy_conflicts),
        case(a_stale_copy_of_a_custom_object_conflicts),
        case(without_a_version_built_in_kinds_are_overwritten),
        case(without_a_version_custom_objects_are_refused),
        case(without_a_version_leases_are_refused),
        case(a_version_that_is_no_number),
        case(another_uid_conflicts),
        case(the_name_must_match_the_path),
        case(the_namespace_must_match_the_path),
        case(a_name_is_required),
        case(what_is_not_there_is_not_made),
        case(what_is_not_there_is_made_of_a_lease),
        case(identity_cannot_be_changed),
        case(deletion_cannot_be_set),
        case(a_write_that_changes_nothing_is_no_write),
        case(of_many_writers_one_wins),
        case(every_write_moves_the_version_on),
    ]
}

fn set(mut object: Value, pointer: &str, value: Value) -> Value {
    match object.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => panic!("no {pointer} in {object:#}"),
    }
    object
}

async fn replaces_everything(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let mut wanted = made.clone();
    wanted["data"] = json!({"other": "w"});
    wanted["metadata"]["labels"] = json!({"l": "1"});
    let replaced = t.put(&t.configmaps("/a"), &wanted).await.ok();
    same("data", &replaced["data"], json!({"other": "w"}));
    same("labels", &replaced["metadata"]["labels"], json!({"l": "1"}));
    same(
        "uid",
        &replaced["metadata"]["uid"],
        made["metadata"]["uid"].clone(),
    );
    assert_ne!(
        replaced["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    same(
        "what is stored",
        &t.get(&t.configmaps("/a")).await.ok(),
        replaced,
    );
    Ok(())
}

async fn a_stale_copy_conflicts(t: Target) -> Outcome {
    let stale = t.configmap("a").await;
    t.put(
        &t.configmaps("/a"),
        &set(stale.clone(), "/data/k", json!("w")),
    )
    .await
    .ok();
    let details = t
        .put(&t.configmaps("/a"), &set(stale, "/data/k", json!("x")))
        .await
        .refused(
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#,
        );
    same(
        "details",
        &details,
        json!({"name": "a", "kind": "configmaps"}),
    );
    let stored = t.get(&t.configmaps("/a")).await.ok();
    same("data", &stored["data"], json!({"k": "w"}));
    Ok(())
}

async fn a_stale_copy_of_a_custom_object_conflicts(t: Target) -> Outcome {
    let stale = t.widget("a", json!({})).await;
    t.put(
        &t.widgets("/a"),
        &set(stale.clone(), "/spec/color", json!("blue")),
    )
    .await
    .ok();
    let details = t
        .put(&t.widgets("/a"), &set(stale, "/spec/color", json!("green")))
        .await
        .refused(
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on widgets.conformance.bowline.dev "a": the object has been modified; please apply your changes to the latest version and try again"#,
        );
    same(
        "details",
        &details,
        json!({"name": "a", "group": widget::GROUP, "kind": "widgets"}),
    );
    Ok(())
}

async fn without_a_version_built_in_kinds_are_overwritten(t: Target) -> Outcome {
    t.configmap("a").await;
    let replaced = t
        .put(
            &t.configmaps("/a"),
            &json!({"metadata": {"name": "a"}, "data": {"k": "w"}}),
        )
        .await
        .ok();
    same("data", &replaced["data"], json!({"k": "w"}));
    Ok(())
}

async fn without_a_version_custom_objects_are_refused(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let details = t
        .put(&t.widgets("/a"), &widget::with_spec("a", json!({})))
        .await
        .refused(422, "Invalid", r#"widgets.conformance.bowline.dev "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#);
    same(
        "details",
        &details,
        json!({"causes": [{"field": "metadata.resourceVersion", "message": "Invalid value: 0: must be specified for an update", "reason": "FieldValueInvalid"}], "group": "conformance.bowline.dev", "kind": "widgets", "name": "a"}),
    );
    Ok(())
}

async fn without_a_version_leases_are_refused(t: Target) -> Outcome {
    let path = t.group("coordination.k8s.io/v1", "leases");
    let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "one"}});
    t.post(&path, &lease).await.created();
    t.put(&format!("{path}/a"), &lease)
        .await
        .refused(422, "Invalid", r#"leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#);
    Ok(())
}

async fn a_version_that_is_no_number(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    t.put(
        &t.configmaps("/a"),
        &set(made, "/metadata/resourceVersion", json!("abc")),
    )
    .await
    .refused(
        500,
        "",
        r#"strconv.ParseUint: parsing "abc": invalid syntax"#,
    );
    Ok(())
}

async fn another_uid_conflicts(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let uid = text(&made, "/metadata/uid");
    let other = "11111111-1111-1111-1111-111111111111";
    let details = t
        .put(
            &t.configmaps("/a"),
            &set(without_metadata(&made, "resourceVersion"), "/metadata/uid", json!(other)),
        )
        .await
        .refused(
            409,
            "Conflict",
            &format!(
                r#"Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/{}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {other}, UID in object meta: {uid}"#,
                t.namespace
            ),
        );
    same(
        "details",
        &details,
        json!({"name": "a", "kind": "configmaps"}),
    );
    Ok(())
}

async fn the_name_must_match_the_path(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    t.put(
        &t.configmaps("/a"),
        &set(made, "/metadata/name", json!("b")),
    )
    .await
    .refused(
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
    );
    let made = t.widget("a", json!({})).await;
    t.put(&t.widgets("/a"), &set(made, "/metadata/name", json!("b")))
        .await
        .refused(
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        );
    Ok(())
}

async fn the_namespace_must_match_the_path(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    t.put(
        &t.configmaps("/a"),
        &set(made, "/metadata/namespace", json!("elsewhere")),
    )
    .await
    .refused(
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    );
    Ok(())
}

async fn a_name_is_required(t: Target) -> Outcome {
    t.configmap("a").await;
    t.put(&t.configmaps("/a"), &json!({"data": {"k": "w"}}))
        .await
        .refused(
            400,
            "BadRequest",
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        );
    Ok(())
}

async fn what_is_not_there_is_not_made(t: Target) -> Outcome {
    t.put(&t.configmaps("/a"), &json!({"metadata": {"name": "a"}}))
        .await
        .refused(404, "NotFound", r#"configmaps "a" not found"#);
    let mut widget = widget::with_spec("a", json!({}));
    widget["metadata"]["resourceVersion"] = json!("1");
    t.put(&t.widgets("/a"), &widget).await.refused(
        404,
        "NotFound",
        r#"widgets.conformance.bowline.dev "a" not found"#,
    );
    Ok(())
}

async fn what_is_not_there_is_made_of_a_lease(t: Target) -> Outcome {
    let made = t
        .put(
            &t.group("coordination.k8s.io/v1", "leases/a"),
            &json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "one"}}),
        )
        .await
        .created();
    same("spec", &made["spec"], json!({"holderIdentity": "one"}));
    Ok(())
}

async fn identity_cannot_be_changed(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let mut changed = made.clone();
    changed["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    changed["metadata"]["generation"] = json!(40);
    changed["spec"]["color"] = json!("blue");
    let replaced = t.put(&t.widgets("/a"), &changed).await.ok();
    for field in ["creationTimestamp", "uid"] {
        same(
            field,
            &replaced["metadata"][field],
            made["metadata"][field].clone(),
        );
    }
    same("generation", &replaced["metadata"]["generation"], json!(2));
    Ok(())
}

async fn deletion_cannot_be_set(t: Target) -> Outcome {
    let mut changed = t.widget("a", json!({})).await;
    changed["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    t.put(&t.widgets("/a"), &changed)
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: metadata.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable"#);
    Ok(())
}

async fn a_write_that_changes_nothing_is_no_write(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let mut watch = t
        .watch(&format!(
            "{}?resourceVersion={}",
            t.configmaps(""),
            text(&made, "/metadata/resourceVersion")
        ))
        .await;
    let again = t.put(&t.configmaps("/a"), &made).await.ok();
    same("the object", &again, made);
    t.configmap("b").await;
    watch.expect("ADDED", "b").await;
    Ok(())
}

async fn of_many_writers_one_wins(t: Target) -> Outcome {
    let mut current = t.configmap("a").await;
    for _ in 0..5 {
        let path = t.configmaps("/a");
        let writes = (0..10).map(|writer| {
            let wanted = set(
                current.clone(),
                "/data/k",
                json!(format!("{writer} of {current}")),
            );
            let (t, path) = (t.clone(), path.clone());
            async move { t.put(&path, &wanted).await }
        });
        let answers = join_all(writes).await;
        let codes: Vec<u16> = answers.iter().map(|answer| answer.code).collect();
        let winners = codes.iter().filter(|code| **code == 200).count();
        let losers = codes.iter().filter(|code| **code == 409).count();
        assert_eq!((winners, losers), (1, 9), "codes: {codes:?}");
        current = t.get(&path).await.ok();
        current["data"]["k"] = json!("v");
        current = t.put(&path, &current).await.ok();
    }
    Ok(())
}

async fn every_write_moves_the_version_on(t: Target) -> Outcome {
    let mut last: u64 = 0;
    for round in 0..5 {
        let name = format!("c{round}");
        for object in [t.configmap(&name).await, t.widget(&name, json!({})).await] {
            let version: u64 = text(&object, "/metadata/resourceVersion").parse()?;
            assert!(version > last, "after {last} came {version}");
            last = version;
        }
    }
    Ok(())
}
