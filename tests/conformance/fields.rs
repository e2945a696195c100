//! Cases about the metadata fields that the server maintains: generation and managedFields.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    strategic::deployment,
    target::{Patch, Target, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(generation_counts_changes_of_the_spec),
        case(generation_ignores_metadata_and_status),
        case(generation_of_a_deployment),
        case(generation_of_a_kind_without_a_status_subresource),
        case(status_writes_have_entries_of_their_own),
        case(an_update_takes_over_what_it_changes),
        case(an_update_gives_up_what_it_removes),
        case(an_entry_without_fields_goes),
        case(set_values_and_list_keys_are_fields),
        case(atomic_fields_are_one_field),
        case(reads_can_leave_them_to_metadata),
    ]
}

/// Returns the manager, operation, subresource and fields of every entry in managedFields.
///
/// Sorts the entries by manager. The server sorts them by time, and times are whole seconds, so its order is
/// not fixed.
pub fn owners(object: &Value) -> Value {
    let mut entries: Vec<Value> = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            json!({
                "by": format!(
                    "{} {}{}",
                    entry["manager"].as_str().unwrap_or_default(),
                    entry["operation"].as_str().unwrap_or_default(),
                    entry["subresource"].as_str().map(|name| format!(" {name}")).unwrap_or_default(),
                ),
                "fields": entry["fieldsV1"],
            })
        })
        .collect();
    entries.sort_by_key(|entry| text(entry, "/by"));
    Value::Array(entries)
}

async fn generation_counts_changes_of_the_spec(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    for (generation, color) in [(2, "blue"), (3, "green"), (3, "green")] {
        let patched = t
            .patch(
                &t.widgets("/a"),
                Patch::Merge,
                &json!({"spec": {"color": color}}),
            )
            .await
            .ok();
        same(
            "generation",
            &patched["metadata"]["generation"],
            json!(generation),
        );
    }
    Ok(())
}

async fn generation_ignores_metadata_and_status(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let labelled = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}, "finalizers": ["bowline.dev/x"]}}),
        )
        .await
        .ok();
    same("generation", &labelled["metadata"]["generation"], json!(1));
    let reported = t
        .patch(
            &t.widgets("/a/status"),
            Patch::Merge,
            &json!({"status": {"phase": "Done"}}),
        )
        .await
        .ok();
    same("generation", &reported["metadata"]["generation"], json!(1));
    assert_ne!(
        reported["metadata"]["resourceVersion"],
        labelled["metadata"]["resourceVersion"]
    );
    Ok(())
}

async fn generation_of_a_deployment(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    let made = t.post(&path, &deployment("a")).await.created();
    same("generation", &made["metadata"]["generation"], json!(1));
    let path = format!("{path}/a");
    let labelled = t
        .patch(
            &path,
            Patch::Merge,
            &json!({"metadata": {"labels": {"l": "1"}}}),
        )
        .await
        .ok();
    same("generation", &labelled["metadata"]["generation"], json!(1));
    let scaled = t
        .patch(&path, Patch::Merge, &json!({"spec": {"replicas": 3}}))
        .await
        .ok();
    same("generation", &scaled["metadata"]["generation"], json!(2));
    Ok(())
}

async fn generation_of_a_kind_without_a_status_subresource(t: Target) -> Outcome {
    let path = format!("/apis/{}/gadgets", crate::widget::API_VERSION);
    let made = t
        .post(&path, &crate::widget::gadget(&t.namespace))
        .await
        .created();
    same("generation", &made["metadata"]["generation"], json!(1));
    let path = format!("{path}/{}", t.namespace);
    let changed = t
        .patch(&path, Patch::Merge, &json!({"status": {"n": 1}}))
        .await
        .ok();
    same(
        "after a status change",
        &changed["metadata"]["generation"],
        json!(2),
    );
    let labelled = t
        .patch(
            &path,
            Patch::Merge,
            &json!({"metadata": {"labels": {"l": "1"}}}),
        )
        .await
        .ok();
    same(
        "after a label",
        &labelled["metadata"]["generation"],
        json!(2),
    );
    Ok(())
}

async fn status_writes_have_entries_of_their_own(t: Target) -> Outcome {
    let path = format!("{}?fieldManager=maker", t.widgets(""));
    t.post(
        &path,
        &crate::widget::with_spec("a", json!({"color": "blue"})),
    )
    .await
    .created();
    let path = format!("{}?fieldManager=maker", t.widgets("/a/status"));
    let reported = t
        .patch(&path, Patch::Merge, &json!({"status": {"phase": "Done"}}))
        .await
        .ok();
    same(
        "owners",
        &owners(&reported),
        json!([{"by": "maker Update", "fields": {"f:spec": {".": {}, "f:color": {}}}}, {"by": "maker Update status", "fields": {"f:status": {".": {}, "f:phase": {}}}}]),
    );
    Ok(())
}

async fn an_update_takes_over_what_it_changes(t: Target) -> Outcome {
    let path = |manager: &str| format!("{}?fieldManager={manager}", t.configmaps("/a"));
    t.post(
        &format!("{}?fieldManager=one", t.configmaps("")),
        &json!({"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}}),
    )
    .await
    .created();
    let changed = t
        .put(
            &path("two"),
            &json!({"metadata": {"name": "a"}, "data": {"k": "x", "l": "w"}}),
        )
        .await
        .ok();
    same(
        "owners",
        &owners(&changed),
        json!([{"by": "one Update", "fields": {"f:data": {".": {}, "f:l": {}}}}, {"by": "two Update", "fields": {"f:data": {"f:k": {}}}}]),
    );
    Ok(())
}

async fn an_update_gives_up_what_it_removes(t: Target) -> Outcome {
    t.post(
        &format!("{}?fieldManager=one", t.configmaps("")),
        &json!({"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}}),
    )
    .await
    .created();
    let changed = t
        .put(
            &format!("{}?fieldManager=two", t.configmaps("/a")),
            &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}),
        )
        .await
        .ok();
    same(
        "owners",
        &owners(&changed),
        json!([{"by": "one Update", "fields": {"f:data": {".": {}, "f:k": {}}}}]),
    );
    Ok(())
}

async fn an_entry_without_fields_goes(t: Target) -> Outcome {
    t.post(
        &format!("{}?fieldManager=one", t.configmaps("")),
        &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}),
    )
    .await
    .created();
    let changed = t
        .put(
            &format!("{}?fieldManager=two", t.configmaps("/a")),
            &json!({"metadata": {"name": "a"}}),
        )
        .await
        .ok();
    same("owners", &owners(&changed), json!([]));
    Ok(())
}

async fn set_values_and_list_keys_are_fields(t: Target) -> Outcome {
    let path = format!("{}?fieldManager=maker", t.widgets(""));
    let made = t
        .post(
            &path,
            &crate::widget::with_spec(
                "a",
                json!({"tags": ["x"], "parts": [{"name": "one", "count": 2}], "order": ["b"]}),
            ),
        )
        .await
        .created();
    same(
        "owners",
        &owners(&made),
        json!([{"by": "maker Update", "fields": {"f:spec": {".": {}, "f:color": {}, "f:order": {}, "f:parts": {".": {}, "k:{\"name\":\"one\"}": {".": {}, "f:count": {}, "f:name": {}}}, "f:tags": {".": {}, "v:\"x\"": {}}}}}]),
    );
    Ok(())
}

async fn atomic_fields_are_one_field(t: Target) -> Outcome {
    let path = format!("{}?fieldManager=maker", t.widgets(""));
    let made = t
        .post(
            &path,
            &crate::widget::with_spec(
                "a",
                json!({"selector": {"a": "1"}, "options": {"a": "1"}, "anything": {"deep": {"er": 1}}}),
            ),
        )
        .await
        .created();
    same(
        "owners",
        &owners(&made),
        json!([{"by": "maker Update", "fields": {"f:spec": {".": {}, "f:anything": {".": {}, "f:deep": {".": {}, "f:er": {}}}, "f:color": {}, "f:options": {".": {}, "f:a": {}}, "f:selector": {}}}}]),
    );
    Ok(())
}

async fn reads_can_leave_them_to_metadata(t: Target) -> Outcome {
    t.configmap("a").await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let read = t.get_as(&t.configmaps("/a"), accept).await.ok();
    let whole = t.get(&t.configmaps("/a")).await.ok();
    same(
        "managedFields",
        &read["metadata"]["managedFields"],
        whole["metadata"]["managedFields"].clone(),
    );
    Ok(())
}
