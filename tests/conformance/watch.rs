//! Cases about watches: the first events, the filters, and how a watch ends.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, alone, case,
    target::{Patch, Target, Watch, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(from_a_version_on),
        case(from_zero_begin_with_what_is_there),
        case(without_a_version_begin_with_what_is_there),
        case(carry_whole_objects),
        case(deletions_carry_the_version_of_the_deletion),
        case(of_one_object),
        case(by_labels_see_objects_come_and_go),
        case(by_fields_see_objects_come_and_go),
        case(of_all_namespaces),
        case(do_not_see_other_namespaces),
        case(end_after_their_time),
        case(resume_with_nothing_lost_or_doubled),
        case(of_many_watchers_see_the_same),
        case(mark_the_end_of_initial_events),
        case(initial_events_by_labels),
        case(initial_events_need_a_match),
        case(without_initial_events_need_no_list),
        case(a_bookmark_comes_before_the_end),
        alone(from_what_was_compacted_are_gone),
        case(from_a_version_that_is_no_number),
        case(keep_the_order_of_writes),
        case(a_removed_label_in_the_same_write_as_a_change),
    ]
}

async fn from_now(t: &Target, query: &str) -> Watch {
    let now = t.now().await;
    t.watch(&format!(
        "{}?resourceVersion={now}{query}",
        t.configmaps("")
    ))
    .await
}

async fn from_a_version_on(t: Target) -> Outcome {
    let first = t.configmap("a").await;
    t.configmap("b").await;
    let version = text(&first, "/metadata/resourceVersion");
    let mut watch = t
        .watch(&format!("{}?resourceVersion={version}", t.configmaps("")))
        .await;
    watch.expect("ADDED", "b").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    watch.expect("MODIFIED", "a").await;
    t.delete(&t.configmaps("/a")).await.ok();
    watch.expect("DELETED", "a").await;
    Ok(())
}

async fn from_zero_begin_with_what_is_there(t: Target) -> Outcome {
    t.configmap("a").await;
    t.configmap("b").await;
    // A list at the newest version makes sure that the cache of the server has seen both objects.
    t.now().await;
    let mut watch = t
        .watch(&format!("{}?resourceVersion=0", t.configmaps("")))
        .await;
    watch.expect("ADDED", "a").await;
    watch.expect("ADDED", "b").await;
    t.configmap("c").await;
    watch.expect("ADDED", "c").await;
    Ok(())
}

async fn without_a_version_begin_with_what_is_there(t: Target) -> Outcome {
    t.configmap("a").await;
    t.configmap("b").await;
    let mut watch = t.watch(&t.configmaps("")).await;
    watch.expect("ADDED", "a").await;
    watch.expect("ADDED", "b").await;
    t.delete(&t.configmaps("/a")).await.ok();
    watch.expect("DELETED", "a").await;
    Ok(())
}

async fn carry_whole_objects(t: Target) -> Outcome {
    let mut watch = from_now(&t, "").await;
    let made = t.configmap("a").await;
    same("the object", &watch.expect("ADDED", "a").await, made);
    let mut custom = t
        .watch(&format!(
            "{}?resourceVersion={}",
            t.widgets(""),
            t.now().await
        ))
        .await;
    let made = t.widget("a", json!({"color": "blue"})).await;
    same(
        "the custom object",
        &custom.expect("ADDED", "a").await,
        made,
    );
    Ok(())
}

async fn deletions_carry_the_version_of_the_deletion(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let mut watch = from_now(&t, "").await;
    t.delete(&t.configmaps("/a")).await.ok();
    let next = t.configmap("b").await;
    let deleted = watch.expect("DELETED", "a").await;
    let version = |object: &Value| text(object, "/metadata/resourceVersion").parse::<u64>();
    assert!(version(&made)? < version(&deleted)?, "{deleted:#}");
    assert!(version(&deleted)? < version(&next)?, "{deleted:#}");
    same("data", &deleted["data"], made["data"].clone());
    Ok(())
}

async fn of_one_object(t: Target) -> Outcome {
    let mut watch = from_now(&t, "&fieldSelector=metadata.name%3Da").await;
    t.configmap("b").await;
    t.configmap("a").await;
    watch.expect("ADDED", "a").await;
    t.delete(&t.configmaps("/b")).await.ok();
    t.delete(&t.configmaps("/a")).await.ok();
    watch.expect("DELETED", "a").await;
    Ok(())
}

async fn label(t: &Target, name: &str, label: Value) -> Value {
    t.patch(
        &t.configmaps(&format!("/{name}")),
        Patch::Merge,
        &json!({"metadata": {"labels": {"l": label}}}),
    )
    .await
    .ok()
}

async fn by_labels_see_objects_come_and_go(t: Target) -> Outcome {
    t.configmap("a").await;
    let mut watch = from_now(&t, "&labelSelector=l%3Dyes").await;
    label(&t, "a", json!("no")).await;
    let matching = label(&t, "a", json!("yes")).await;
    same("the object", &watch.expect("ADDED", "a").await, matching);
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    let modified = watch.expect("MODIFIED", "a").await;
    let left = label(&t, "a", json!("no")).await;
    let deleted = watch.expect("DELETED", "a").await;
    same(
        "version of the deletion",
        &deleted["metadata"]["resourceVersion"],
        left["metadata"]["resourceVersion"].clone(),
    );
    same(
        "labels are those that matched",
        &deleted["metadata"]["labels"],
        modified["metadata"]["labels"].clone(),
    );
    t.delete(&t.configmaps("/a")).await.ok();
    t.configmap("b").await;
    label(&t, "b", json!("yes")).await;
    watch.expect("ADDED", "b").await;
    Ok(())
}

async fn a_removed_label_in_the_same_write_as_a_change(t: Target) -> Outcome {
    t.configmap("a").await;
    label(&t, "a", json!("yes")).await;
    let mut watch = from_now(&t, "&labelSelector=l").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"metadata": {"labels": null}, "data": {"k": "new"}}),
    )
    .await
    .ok();
    let deleted = watch.expect("DELETED", "a").await;
    same("data is the old one", &deleted["data"], json!({"k": "v"}));
    Ok(())
}

async fn by_fields_see_objects_come_and_go(t: Target) -> Outcome {
    t.widget("a", json!({"color": "red"})).await;
    let mut watch = t
        .watch(&format!(
            "{}?resourceVersion={}&fieldSelector=spec.color%3Dblue",
            t.widgets(""),
            t.now().await
        ))
        .await;
    for color in ["green", "blue", "red"] {
        t.patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"spec": {"color": color}}),
        )
        .await
        .ok();
    }
    watch.expect("ADDED", "a").await;
    watch.expect("DELETED", "a").await;
    Ok(())
}

async fn of_all_namespaces(t: Target) -> Outcome {
    let made = t.configmap(&t.namespace).await;
    let mut watch = t
        .watch(&format!(
            "/api/v1/configmaps?resourceVersion={}&fieldSelector=metadata.name%3D{}",
            text(&made, "/metadata/resourceVersion"),
            t.namespace
        ))
        .await;
    let path = t.configmaps(&format!("/{}", t.namespace));
    t.delete(&path).await.ok();
    watch.expect("DELETED", &t.namespace).await;
    Ok(())
}

async fn do_not_see_other_namespaces(t: Target) -> Outcome {
    let mut watch = from_now(&t, "").await;
    t.post(
        "/api/v1/namespaces/default/configmaps",
        &json!({"metadata": {"name": t.namespace}}),
    )
    .await
    .created();
    t.configmap("a").await;
    watch.expect("ADDED", "a").await;
    Ok(())
}

async fn end_after_their_time(t: Target) -> Outcome {
    let mut watch = from_now(&t, "&timeoutSeconds=1").await;
    t.configmap("a").await;
    watch.expect("ADDED", "a").await;
    same("the end", &json!(watch.poll().await), json!(null));
    Ok(())
}

async fn resume_with_nothing_lost_or_doubled(t: Target) -> Outcome {
    const WRITES: usize = 60;
    let mut version = t.now().await;
    let writer = {
        let t = t.clone();
        tokio::spawn(async move {
            t.configmap("a").await;
            for round in 1..WRITES {
                t.patch(
                    &t.configmaps("/a"),
                    Patch::Merge,
                    &json!({"data": {"round": round.to_string()}}),
                )
                .await
                .ok();
            }
        })
    };
    let mut seen = Vec::new();
    while seen.len() < WRITES {
        let mut watch = t
            .watch(&format!("{}?resourceVersion={version}", t.configmaps("")))
            .await;
        for _ in 0..7.min(WRITES - seen.len()) {
            let event = watch.next().await;
            version = text(&event, "/object/metadata/resourceVersion");
            seen.push(event["object"]["data"]["round"].clone());
        }
    }
    writer.await?;
    let mut expected = vec![json!(null)];
    expected.extend((1..WRITES).map(|round| json!(round.to_string())));
    same("rounds", &json!(seen), json!(expected));
    Ok(())
}

async fn of_many_watchers_see_the_same(t: Target) -> Outcome {
    let mut watches = Vec::new();
    for _ in 0..10 {
        watches.push(from_now(&t, "").await);
    }
    for round in 0..10 {
        t.configmap(&format!("c{round}")).await;
    }
    for watch in &mut watches {
        for round in 0..10 {
            watch.expect("ADDED", &format!("c{round}")).await;
        }
    }
    Ok(())
}

const STREAMING: &str =
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn mark_the_end_of_initial_events(t: Target) -> Outcome {
    t.configmap("a").await;
    t.configmap("b").await;
    let now = t.now().await;
    let mut watch = t.watch(&format!("{}?{STREAMING}", t.configmaps(""))).await;
    watch.expect("ADDED", "a").await;
    watch.expect("ADDED", "b").await;
    let mut bookmark = watch.next().await;
    let version = text(&bookmark, "/object/metadata/resourceVersion");
    assert!(
        version.parse::<u64>()? >= now.parse::<u64>()?,
        "{version} is before {now}"
    );
    bookmark["object"]["metadata"]["resourceVersion"] = json!(null);
    same(
        "bookmark",
        &bookmark,
        json!({
            "type": "BOOKMARK",
            "object": {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": null,
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            },
        }),
    );
    t.configmap("c").await;
    watch.expect("ADDED", "c").await;
    Ok(())
}

async fn initial_events_by_labels(t: Target) -> Outcome {
    t.configmap("a").await;
    t.configmap("b").await;
    label(&t, "b", json!("yes")).await;
    let mut watch = t
        .watch(&format!(
            "{}?{STREAMING}&labelSelector=l%3Dyes",
            t.configmaps("")
        ))
        .await;
    watch.expect("ADDED", "b").await;
    same("type", &watch.next().await["type"], json!("BOOKMARK"));
    Ok(())
}

async fn initial_events_need_a_match(t: Target) -> Outcome {
    t.get(&format!(
        "{}?watch=true&sendInitialEvents=true",
        t.configmaps("")
    ))
    .await
    .refused(422, "Invalid", r#"ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"#);
    Ok(())
}

async fn without_initial_events_need_no_list(t: Target) -> Outcome {
    t.configmap("a").await;
    let mut watch = t
        .watch(&format!(
            "{}?sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={}",
            t.configmaps(""),
            t.now().await
        ))
        .await;
    t.configmap("b").await;
    watch.expect("ADDED", "b").await;
    Ok(())
}

async fn a_bookmark_comes_before_the_end(t: Target) -> Outcome {
    let mut watch = from_now(&t, "&allowWatchBookmarks=true&timeoutSeconds=4").await;
    t.configmap("a").await;
    let added = watch.expect("ADDED", "a").await;
    let mut last = None;
    while let Some(event) = watch.poll().await {
        last = Some(event);
    }
    let bookmark = last.unwrap_or_default();
    same("type", &bookmark["type"], json!("BOOKMARK"));
    same("kind", &bookmark["object"]["kind"], json!("ConfigMap"));
    let version: u64 = text(&bookmark, "/object/metadata/resourceVersion").parse()?;
    let written: u64 = text(&added, "/metadata/resourceVersion").parse()?;
    assert!(version >= written, "{version} is before {written}");
    Ok(())
}

fn gone(event: &Value) {
    let status = &event["object"];
    same("type", &event["type"], json!("ERROR"));
    same("kind", &status["kind"], json!("Status"));
    same("status", &status["status"], json!("Failure"));
    same("code", &status["code"], json!(410));
    same("reason", &status["reason"], json!("Expired"));
    let message = text(status, "/message");
    same(
        "message",
        &json!(message),
        json!("The resourceVersion for the provided watch is too old."),
    );
}

async fn from_what_was_compacted_are_gone(t: Target) -> Outcome {
    let path = t.core("serviceaccounts");
    let account = |name: &str| json!({"metadata": {"name": name}});
    let made = t.post(&path, &account("a")).await.created();
    t.post(&path, &account("b")).await.created();
    t.delete(&format!("{path}/a")).await.ok();
    t.compact().await;
    let version = text(&made, "/metadata/resourceVersion");
    let mut watch = t.watch(&format!("{path}?resourceVersion={version}")).await;
    gone(&watch.next().await);
    same("the end", &json!(watch.poll().await), json!(null));
    // After the error, a new list and a watch from its version work.
    let list = t.get(&path).await.ok();
    let version = text(&list, "/metadata/resourceVersion");
    let mut watch = t.watch(&format!("{path}?resourceVersion={version}")).await;
    t.post(&path, &account("c")).await.created();
    watch.expect("ADDED", "c").await;
    Ok(())
}

async fn from_a_version_that_is_no_number(t: Target) -> Outcome {
    t.get(&format!("{}?watch=true&resourceVersion=abc", t.configmaps("")))
        .await
        .refused(500, "", r#"resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#);
    Ok(())
}

async fn keep_the_order_of_writes(t: Target) -> Outcome {
    let mut watch = from_now(&t, "").await;
    let writes = (0..20).map(|round| {
        let t = t.clone();
        async move { t.configmap(&format!("c{round}")).await }
    });
    let made = futures::future::join_all(writes).await;
    let mut versions: Vec<u64> = Vec::new();
    for object in &made {
        versions.push(text(object, "/metadata/resourceVersion").parse()?);
    }
    versions.sort_unstable();
    for version in versions {
        let event = watch.next().await;
        same(
            "resourceVersion",
            &event["object"]["metadata"]["resourceVersion"],
            json!(version.to_string()),
        );
    }
    Ok(())
}
