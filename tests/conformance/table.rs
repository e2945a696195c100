//! Cases about answers in other formats than the whole object: as a table, or with the metadata only.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, names, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(of_a_custom_kind),
        case(of_one_custom_object),
        case(of_config_maps),
        case(of_deployments),
        case(rows_carry_metadata),
        case(rows_carry_nothing_or_everything),
        case(rows_for_missing_values),
        case(of_a_watch),
        case(in_pages),
        case(else_json),
        case(metadata_of_one_object),
        case(metadata_of_a_list),
        case(metadata_of_a_watch),
        case(metadata_by_labels),
        case(a_form_that_nobody_writes),
    ]
}

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn columns(table: &Value) -> Value {
    table["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| {
            json!([
                column["name"],
                column["type"],
                column["format"],
                column["priority"]
            ])
        })
        .collect()
}

async fn of_a_custom_kind(t: Target) -> Outcome {
    t.widget("a", json!({"color": "blue", "replicas": 2, "detail": "d"}))
        .await;
    let table = t.get_as(&t.widgets(""), TABLE).await.ok();
    same("kind", &table["kind"], json!("Table"));
    same("apiVersion", &table["apiVersion"], json!("meta.k8s.io/v1"));
    text(&table, "/metadata/resourceVersion").parse::<u64>()?;
    same(
        "columns",
        &columns(&table),
        json!([
            ["Name", "string", "name", 0],
            ["Color", "string", "", 0],
            ["Replicas", "integer", "", 0],
            ["Detail", "string", "", 1],
            ["Age", "date", "", 0],
        ]),
    );
    same(
        "description of a column",
        &table["columnDefinitions"][2]["description"],
        json!("How many there are."),
    );
    let mut cells = table["rows"][0]["cells"].clone();
    let age = cells[4].take();
    assert!(
        age.as_str().is_some_and(|age| age.ends_with('s')),
        "age: {age}"
    );
    same("cells", &cells, json!(["a", "blue", 2, "d", null]));
    Ok(())
}

async fn of_one_custom_object(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let table = t.get_as(&t.widgets("/a"), TABLE).await.ok();
    same("kind", &table["kind"], json!("Table"));
    same(
        "rows",
        &json!(table["rows"].as_array().map(Vec::len)),
        json!(1),
    );
    same(
        "resourceVersion",
        &table["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"].clone(),
    );
    Ok(())
}

async fn of_config_maps(t: Target) -> Outcome {
    t.configmap("a").await;
    let table = t.get_as(&t.configmaps(""), TABLE).await.ok();
    same(
        "columns",
        &columns(&table),
        json!([
            ["Name", "string", "name", 0],
            ["Data", "string", "", 0],
            ["Age", "string", "", 0],
        ]),
    );
    same("name", &table["rows"][0]["cells"][0], json!("a"));
    same("data", &table["rows"][0]["cells"][1], json!(1));
    Ok(())
}

async fn of_deployments(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    t.post(&path, &crate::strategic::deployment("a"))
        .await
        .created();
    let table = t.get_as(&path, TABLE).await.ok();
    same(
        "columns",
        &columns(&table),
        json!([
            ["Name", "string", "name", 0],
            ["Ready", "string", "", 0],
            ["Up-to-date", "string", "", 0],
            ["Available", "string", "", 0],
            ["Age", "string", "", 0],
            ["Containers", "string", "", 1],
            ["Images", "string", "", 1],
            ["Selector", "string", "", 1]
        ]),
    );
    let mut cells = table["rows"][0]["cells"].clone();
    cells[4].take();
    same(
        "cells",
        &cells,
        json!([
            "a",
            "0/2",
            0,
            0,
            null,
            "main,side",
            "main:1,side:1",
            "app=a"
        ]),
    );
    Ok(())
}

async fn rows_carry_metadata(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let table = t.get_as(&t.configmaps(""), TABLE).await.ok();
    let object = &table["rows"][0]["object"];
    same("kind", &object["kind"], json!("PartialObjectMetadata"));
    same("apiVersion", &object["apiVersion"], json!("meta.k8s.io/v1"));
    same("metadata", &object["metadata"], made["metadata"].clone());
    same("data", &object["data"], json!(null));
    Ok(())
}

async fn rows_carry_nothing_or_everything(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let path = format!("{}?includeObject=Object", t.configmaps(""));
    let table = t.get_as(&path, TABLE).await.ok();
    same("object", &table["rows"][0]["object"], made);
    let path = format!("{}?includeObject=None", t.configmaps(""));
    let table = t.get_as(&path, TABLE).await.ok();
    same("no object", &table["rows"][0]["object"], json!(null));
    Ok(())
}

async fn rows_for_missing_values(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let table = t.get_as(&t.widgets(""), TABLE).await.ok();
    let mut cells = table["rows"][0]["cells"].clone();
    cells[4].take();
    same("cells", &cells, json!(["a", "red", null, null, null]));
    Ok(())
}

async fn of_a_watch(t: Target) -> Outcome {
    let path = format!("{}?resourceVersion={}", t.widgets(""), t.now().await);
    let mut watch = t.watch_as(&path, TABLE).await;
    t.widget("a", json!({})).await;
    t.widget("b", json!({})).await;
    let first = watch.next().await;
    same("type", &first["type"], json!("ADDED"));
    same("kind", &first["object"]["kind"], json!("Table"));
    same(
        "name of the row",
        &first["object"]["rows"][0]["object"]["metadata"]["name"],
        json!("a"),
    );
    same(
        "columns of the first event",
        &json!(
            first["object"]["columnDefinitions"]
                .as_array()
                .map(Vec::len)
        ),
        json!(5),
    );
    let second = watch.next().await;
    same(
        "columns of the second event",
        &second["object"]["columnDefinitions"],
        json!(null),
    );
    Ok(())
}

async fn in_pages(t: Target) -> Outcome {
    for name in ["a", "b", "c"] {
        t.configmap(name).await;
    }
    let path = format!("{}?limit=2", t.configmaps(""));
    let table = t.get_as(&path, TABLE).await.ok();
    same(
        "rows",
        &json!(table["rows"].as_array().map(Vec::len)),
        json!(2),
    );
    same(
        "remaining",
        &table["metadata"]["remainingItemCount"],
        json!(1),
    );
    text(&table, "/metadata/continue");
    Ok(())
}

async fn else_json(t: Target) -> Outcome {
    t.configmap("a").await;
    // The Accept header of kubectl asks for a table if possible, otherwise for the object.
    let accept =
        format!("{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
    let table = t.get_as(&t.configmaps(""), &accept).await.ok();
    same("kind", &table["kind"], json!("Table"));
    let answer = t.get_as(&t.configmaps("/b"), &accept).await;
    answer.refused(404, "NotFound", r#"configmaps "b" not found"#);
    Ok(())
}

async fn metadata_of_one_object(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let answer = t.get_as(&t.widgets("/a"), METADATA).await.ok();
    same(
        "answer",
        &answer,
        json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"],
        }),
    );
    Ok(())
}

async fn metadata_of_a_list(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let list = t.get_as(&t.configmaps(""), METADATA_LIST).await.ok();
    same("kind", &list["kind"], json!("PartialObjectMetadataList"));
    same("apiVersion", &list["apiVersion"], json!("meta.k8s.io/v1"));
    same(
        "items",
        &list["items"],
        json!([{
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"],
        }]),
    );
    Ok(())
}

async fn metadata_of_a_watch(t: Target) -> Outcome {
    let path = format!("{}?resourceVersion={}", t.configmaps(""), t.now().await);
    let mut watch = t.watch_as(&path, METADATA).await;
    let made = t.configmap("a").await;
    let object = watch.expect("ADDED", "a").await;
    same(
        "object",
        &object,
        json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"],
        }),
    );
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    let object = watch.expect("MODIFIED", "a").await;
    same("data", &object["data"], json!(null));
    Ok(())
}

async fn metadata_by_labels(t: Target) -> Outcome {
    t.configmap("a").await;
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "b", "labels": {"l": "1"}}}),
    )
    .await
    .created();
    let path = format!("{}?labelSelector=l", t.configmaps(""));
    let list = t.get_as(&path, METADATA_LIST).await.ok();
    same("names", &json!(names(&list)), json!(["b"]));
    Ok(())
}

async fn a_form_that_nobody_writes(t: Target) -> Outcome {
    t.configmap("a").await;
    t.get_as(
        &t.configmaps("/a"),
        "application/json;as=Picture;g=meta.k8s.io;v=v1",
    )
    .await
    .refused(406, "NotAcceptable", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf");
    Ok(())
}
