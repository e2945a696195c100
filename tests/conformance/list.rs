//! Cases about the answers to list requests: their format, their order and their resourceVersion.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, names, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(have_a_kind_and_a_version),
        case(of_custom_objects),
        case(are_in_the_order_of_names),
        case(of_all_namespaces),
        case(of_nothing_are_empty),
        case(at_any_version),
        case(not_older_than_a_version),
        case(at_exactly_a_version),
        case(with_a_match_but_no_version),
        case(with_a_match_that_nobody_knows),
        case(at_a_version_to_come),
        case(see_every_write_before_them),
    ]
}

async fn have_a_kind_and_a_version(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let list = t.get(&t.configmaps("")).await.ok();
    same("kind", &list["kind"], json!("ConfigMapList"));
    same("apiVersion", &list["apiVersion"], json!("v1"));
    let listed: u64 = text(&list, "/metadata/resourceVersion").parse()?;
    let written: u64 = text(&made, "/metadata/resourceVersion").parse()?;
    assert!(
        listed >= written,
        "the list at {listed} has what was written at {written}"
    );
    let mut item = made;
    if let Some(item) = item.as_object_mut() {
        // In a list of a built-in kind, the items have no kind and apiVersion, because the list has them.
        item.remove("kind");
        item.remove("apiVersion");
    }
    same("items", &list["items"], json!([item]));
    Ok(())
}

async fn of_custom_objects(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let list = t.get(&t.widgets("")).await.ok();
    same("kind", &list["kind"], json!("WidgetList"));
    same(
        "apiVersion",
        &list["apiVersion"],
        json!(widget::API_VERSION),
    );
    same("items", &list["items"], json!([made]));
    Ok(())
}

async fn are_in_the_order_of_names(t: Target) -> Outcome {
    for name in ["b", "a-1", "a.1", "c", "a", "a1"] {
        t.configmap(name).await;
    }
    let list = t.get(&t.configmaps("")).await.ok();
    same(
        "names",
        &json!(names(&list)),
        json!(["a", "a-1", "a.1", "a1", "b", "c"]),
    );
    Ok(())
}

async fn of_all_namespaces(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let list = t
        .get(&format!("/apis/{}/widgets", widget::API_VERSION))
        .await
        .ok();
    let here = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|item| item["metadata"]["namespace"] == t.namespace.as_str())
        .count();
    same("how many are ours", &json!(here), json!(1));
    let path = format!(
        "/apis/{}/widgets?fieldSelector=metadata.namespace%3D{}",
        widget::API_VERSION,
        t.namespace
    );
    let list = t.get(&path).await.ok();
    same("names", &json!(names(&list)), json!(["a"]));
    Ok(())
}

async fn of_nothing_are_empty(t: Target) -> Outcome {
    let list = t.get(&t.widgets("")).await.ok();
    same("items", &list["items"], json!([]));
    text(&list, "/metadata/resourceVersion").parse::<u64>()?;
    let list = t.get(&t.configmaps("")).await.ok();
    same("items", &list["items"], json!([]));
    Ok(())
}

async fn at_any_version(t: Target) -> Outcome {
    t.configmap("a").await;
    t.now().await;
    let path = format!("{}?resourceVersion=0", t.configmaps(""));
    let list = t.get(&path).await.ok();
    same("names", &json!(names(&list)), json!(["a"]));
    Ok(())
}

async fn not_older_than_a_version(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let version = text(&made, "/metadata/resourceVersion");
    for suffix in ["", "&resourceVersionMatch=NotOlderThan"] {
        let path = format!("{}?resourceVersion={version}{suffix}", t.configmaps(""));
        let list = t.get(&path).await.ok();
        same("names", &json!(names(&list)), json!(["a"]));
    }
    Ok(())
}

async fn at_exactly_a_version(t: Target) -> Outcome {
    t.configmap("a").await;
    let second = t.configmap("b").await;
    t.delete(&t.configmaps("/a")).await.ok();
    t.patch(
        &t.configmaps("/b"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    t.configmap("c").await;
    let version = text(&second, "/metadata/resourceVersion");
    let path = format!(
        "{}?resourceVersion={version}&resourceVersionMatch=Exact",
        t.configmaps("")
    );
    let list = t.get(&path).await.ok();
    same("names", &json!(names(&list)), json!(["a", "b"]));
    same("data of b", &list["items"][1]["data"], json!({"k": "v"}));
    same(
        "version of the list",
        &list["metadata"]["resourceVersion"],
        json!(version),
    );
    Ok(())
}

async fn with_a_match_but_no_version(t: Target) -> Outcome {
    let path = format!("{}?resourceVersionMatch=Exact", t.configmaps(""));
    let details = t.get(&path).await.refused(422, "Invalid", r#"ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"#);
    same(
        "details",
        &details,
        json!({"causes": [{"field": "resourceVersionMatch", "message": "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided", "reason": "FieldValueForbidden"}], "group": "meta.k8s.io", "kind": "ListOptions"}),
    );
    Ok(())
}

async fn with_a_match_that_nobody_knows(t: Target) -> Outcome {
    let path = format!(
        "{}?resourceVersion=1&resourceVersionMatch=Some",
        t.configmaps("")
    );
    t.get(&path).await.refused(422, "Invalid", r#"ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Some": supported values: "Exact", "NotOlderThan", """#);
    Ok(())
}

async fn at_a_version_to_come(t: Target) -> Outcome {
    let path = format!("{}?resourceVersion=99999999", t.configmaps(""));
    let answer = t.get(&path).await;
    same("code", &json!(answer.code), json!(504));
    same("reason", &answer.body["reason"], json!("Timeout"));
    same(
        "cause",
        &answer.body["details"]["causes"],
        json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]),
    );
    same(
        "retryAfterSeconds",
        &answer.body["details"]["retryAfterSeconds"],
        json!(1),
    );
    Ok(())
}

async fn see_every_write_before_them(t: Target) -> Outcome {
    for round in 0..30 {
        t.configmap(&format!("c{round:02}")).await;
        let list = t.get(&t.configmaps("")).await.ok();
        same("how many", &json!(names(&list).len()), json!(round + 1));
    }
    Ok(())
}
