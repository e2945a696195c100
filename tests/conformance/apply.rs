//! Cases about server-side apply: field owners, conflicts, and fields that a field manager no longer applies.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    fields::owners,
    strategic::deployment,
    target::{Patch, Target, same},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(makes_what_is_not_there),
        case(applying_the_same_again_is_no_write),
        case(another_value_conflicts),
        case(several_conflicts_are_listed),
        case(a_value_from_an_update_conflicts),
        case(force_takes_ownership),
        case(the_same_value_is_shared),
        case(dropped_fields_are_removed),
        case(dropped_fields_that_another_owns_stay),
        case(dropped_fields_that_were_never_owned_stay),
        case(an_updates_value_becomes_shared),
        case(list_elements_have_owners),
        case(a_dropped_list_element_is_removed),
        case(a_dropped_element_that_another_extends_stays),
        case(set_values_have_owners),
        case(atomic_lists_are_replaced),
        case(atomic_maps_conflict_as_one),
        case(open_maps_merge),
        case(defaults_are_not_owned),
        case(yaml_is_the_format),
        case(containers_are_merged_by_name),
        case(ports_have_two_keys),
        case(status_is_applied_on_its_own),
        case(status_in_the_main_resource_is_ignored),
        case(managed_fields_must_be_empty),
        case(the_kind_is_required),
        case(the_name_must_match_the_path),
        case(a_stale_version_conflicts),
        case(a_version_of_what_is_not_there_is_ignored),
        case(an_unknown_field_is_refused),
        case(a_list_key_twice_is_refused),
        case(a_body_that_is_no_yaml),
        case(the_result_is_validated),
        case(update_and_apply_of_one_manager_are_two),
        case(removing_all_managers_starts_over),
    ]
}

fn configmap(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn widget(spec: Value) -> Value {
    widget::with_spec("a", spec)
}

async fn makes_what_is_not_there(t: Target) -> Outcome {
    let path = t.configmaps("/a");
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"l": "1"}},
        "data": {"k": "v"},
    });
    let made = t.apply(&path, "one", &body).await.created();
    same("data", &made["data"], json!({"k": "v"}));
    same(
        "owners",
        &owners(&made),
        json!([{
            "by": "one Apply",
            "fields": {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}},
        }]),
    );
    Ok(())
}

async fn applying_the_same_again_is_no_write(t: Target) -> Outcome {
    let path = t.widgets("/a");
    let made = t
        .apply(
            &path,
            "one",
            &widget(json!({"color": "blue", "tags": ["x"]})),
        )
        .await
        .created();
    let again = t
        .apply(
            &path,
            "one",
            &widget(json!({"color": "blue", "tags": ["x"]})),
        )
        .await
        .ok();
    same("the object", &again, made);
    Ok(())
}

async fn another_value_conflicts(t: Target) -> Outcome {
    let path = t.configmaps("/a");
    t.apply(&path, "one", &configmap(json!({"k": "v"})))
        .await
        .created();
    let details = t
        .apply(&path, "two", &configmap(json!({"k": "w"})))
        .await
        .refused(
            409,
            "Conflict",
            r#"Apply failed with 1 conflict: conflict with "one": .data.k"#,
        );
    same(
        "details",
        &details,
        json!({"causes": [{
            "reason": "FieldManagerConflict",
            "message": r#"conflict with "one""#,
            "field": ".data.k",
        }]}),
    );
    Ok(())
}

async fn several_conflicts_are_listed(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(
        &path,
        "one",
        &widget(json!({"color": "red", "parts": [{"name": "x", "count": 1}], "detail": "d"})),
    )
    .await
    .created();
    let details = t
        .apply(
            &path,
            "two",
            &widget(json!({"color": "blue", "parts": [{"name": "x", "count": 2}], "detail": "e"})),
        )
        .await
        .refused(409, "Conflict", "Apply failed with 3 conflicts: conflicts with \"one\":\n- .spec.color\n- .spec.detail\n- .spec.parts[name=\"x\"].count");
    same(
        "details",
        &details,
        json!({"causes": [{"field": ".spec.color", "message": "conflict with \"one\"", "reason": "FieldManagerConflict"}, {"field": ".spec.detail", "message": "conflict with \"one\"", "reason": "FieldManagerConflict"}, {"field": ".spec.parts[name=\"x\"].count", "message": "conflict with \"one\"", "reason": "FieldManagerConflict"}]}),
    );
    Ok(())
}

async fn a_value_from_an_update_conflicts(t: Target) -> Outcome {
    t.post(
        &format!("{}?fieldManager=maker", t.configmaps("")),
        &configmap(json!({"k": "v", "l": "v"})),
    )
    .await
    .created();
    t.apply(&t.configmaps("/a"), "two", &configmap(json!({"k": "w"})))
        .await
        .refused(
            409,
            "Conflict",
            r#"Apply failed with 1 conflict: conflict with "maker" using v1: .data.k"#,
        );
    let details = t
        .apply(&t.configmaps("/a"), "two", &configmap(json!({"k": "w", "l": "w"})))
        .await
        .refused(
            409,
            "Conflict",
            "Apply failed with 2 conflicts: conflicts with \"maker\" using v1:\n- .data.k\n- .data.l",
        );
    same(
        "causes",
        &json!(details["causes"].as_array().map(Vec::len)),
        json!(2),
    );
    Ok(())
}

async fn force_takes_ownership(t: Target) -> Outcome {
    let path = t.configmaps("/a");
    t.apply(&path, "one", &configmap(json!({"k": "v", "l": "v"})))
        .await
        .created();
    let forced = t
        .force_apply(&path, "two", &configmap(json!({"k": "w"})))
        .await
        .ok();
    same("data", &forced["data"], json!({"k": "w", "l": "v"}));
    same(
        "owners",
        &owners(&forced),
        json!([
            {"by": "one Apply", "fields": {"f:data": {"f:l": {}}}},
            {"by": "two Apply", "fields": {"f:data": {"f:k": {}}}},
        ]),
    );
    Ok(())
}

async fn the_same_value_is_shared(t: Target) -> Outcome {
    let path = t.configmaps("/a");
    t.apply(&path, "one", &configmap(json!({"k": "v"})))
        .await
        .created();
    let shared = t
        .apply(&path, "two", &configmap(json!({"k": "v"})))
        .await
        .ok();
    same(
        "owners",
        &owners(&shared),
        json!([
            {"by": "one Apply", "fields": {"f:data": {"f:k": {}}}},
            {"by": "two Apply", "fields": {"f:data": {"f:k": {}}}},
        ]),
    );
    t.apply(&path, "two", &configmap(json!({"k": "w"})))
        .await
        .refused(
            409,
            "Conflict",
            r#"Apply failed with 1 conflict: conflict with "one": .data.k"#,
        );
    Ok(())
}

async fn dropped_fields_are_removed(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(
        &path,
        "one",
        &widget(json!({"detail": "d", "limits": {"memory": "1"}, "options": {"a": "1", "b": "2"}})),
    )
    .await
    .created();
    let left = t
        .apply(&path, "one", &widget(json!({"options": {"b": "2"}})))
        .await
        .ok();
    same(
        "spec",
        &left["spec"],
        json!({"color": "red", "options": {"b": "2"}}),
    );
    Ok(())
}

async fn dropped_fields_that_another_owns_stay(t: Target) -> Outcome {
    let path = t.configmaps("/a");
    let both = configmap(json!({"k": "v", "l": "v"}));
    t.apply(&path, "one", &both).await.created();
    t.apply(&path, "two", &configmap(json!({"k": "v"})))
        .await
        .ok();
    let left = t.apply(&path, "one", &configmap(json!({}))).await.ok();
    same("data", &left["data"], json!({"k": "v"}));
    Ok(())
}

async fn dropped_fields_that_were_never_owned_stay(t: Target) -> Outcome {
    t.configmap("a").await;
    let path = t.configmaps("/a");
    t.apply(&path, "one", &configmap(json!({"new": "1"})))
        .await
        .ok();
    let left = t.apply(&path, "one", &configmap(json!({}))).await.ok();
    same("data", &left["data"], json!({"k": "v"}));
    Ok(())
}

async fn an_updates_value_becomes_shared(t: Target) -> Outcome {
    t.post(
        &format!("{}?fieldManager=maker", t.configmaps("")),
        &configmap(json!({"k": "v"})),
    )
    .await
    .created();
    let path = t.configmaps("/a");
    let shared = t
        .apply(&path, "one", &configmap(json!({"k": "v"})))
        .await
        .ok();
    same(
        "owners",
        &owners(&shared),
        json!([{"by": "maker Update", "fields": {"f:data": {".": {}, "f:k": {}}}}, {"by": "one Apply", "fields": {"f:data": {"f:k": {}}}}]),
    );
    let left = t.apply(&path, "one", &configmap(json!({}))).await.ok();
    same("data", &left["data"], json!({"k": "v"}));
    Ok(())
}

async fn list_elements_have_owners(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(
        &path,
        "one",
        &widget(json!({"parts": [{"name": "x", "count": 1}]})),
    )
    .await
    .created();
    let both = t
        .apply(
            &path,
            "two",
            &widget(json!({"parts": [{"name": "y", "count": 2}]})),
        )
        .await
        .ok();
    same(
        "parts",
        &both["spec"]["parts"],
        json!([{"name": "x", "count": 1}, {"name": "y", "count": 2}]),
    );
    same(
        "owners",
        &owners(&both),
        json!([{"by": "one Apply", "fields": {"f:spec": {"f:parts": {"k:{\"name\":\"x\"}": {".": {}, "f:count": {}, "f:name": {}}}}}}, {"by": "two Apply", "fields": {"f:spec": {"f:parts": {"k:{\"name\":\"y\"}": {".": {}, "f:count": {}, "f:name": {}}}}}}]),
    );
    Ok(())
}

async fn a_dropped_list_element_is_removed(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(
        &path,
        "one",
        &widget(json!({"parts": [{"name": "x"}, {"name": "y"}, {"name": "z"}]})),
    )
    .await
    .created();
    let left = t
        .apply(
            &path,
            "one",
            &widget(json!({"parts": [{"name": "z"}, {"name": "x"}]})),
        )
        .await
        .ok();
    same(
        "parts",
        &left["spec"]["parts"],
        json!([{"name": "z", "count": 1}, {"name": "x", "count": 1}]),
    );
    Ok(())
}

async fn a_dropped_element_that_another_extends_stays(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(
        &path,
        "one",
        &widget(json!({"parts": [{"name": "x", "count": 3}]})),
    )
    .await
    .created();
    t.apply(
        &path,
        "two",
        &widget(json!({"parts": [{"name": "x", "note": "n"}]})),
    )
    .await
    .ok();
    let left = t.apply(&path, "one", &widget(json!({}))).await.ok();
    same(
        "parts",
        &left["spec"]["parts"],
        json!([{"name": "x", "note": "n", "count": 1}]),
    );
    Ok(())
}

async fn set_values_have_owners(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(&path, "one", &widget(json!({"tags": ["x", "y"]})))
        .await
        .created();
    let both = t
        .apply(&path, "two", &widget(json!({"tags": ["z", "y"]})))
        .await
        .ok();
    same("tags", &both["spec"]["tags"], json!(["x", "z", "y"]));
    let left = t
        .apply(&path, "one", &widget(json!({"tags": []})))
        .await
        .ok();
    same(
        "tags that are left",
        &left["spec"]["tags"],
        json!(["z", "y"]),
    );
    Ok(())
}

async fn atomic_lists_are_replaced(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(&path, "one", &widget(json!({"order": ["a", "b"]})))
        .await
        .created();
    let replaced = t
        .apply(&path, "one", &widget(json!({"order": ["c"]})))
        .await
        .ok();
    same("order", &replaced["spec"]["order"], json!(["c"]));
    t.apply(&path, "two", &widget(json!({"order": ["d"]})))
        .await
        .refused(
            409,
            "Conflict",
            r#"Apply failed with 1 conflict: conflict with "one": .spec.order"#,
        );
    Ok(())
}

async fn atomic_maps_conflict_as_one(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(&path, "one", &widget(json!({"selector": {"a": "1"}})))
        .await
        .created();
    t.apply(&path, "two", &widget(json!({"selector": {"b": "2"}})))
        .await
        .refused(
            409,
            "Conflict",
            r#"Apply failed with 1 conflict: conflict with "one": .spec.selector"#,
        );
    let replaced = t
        .apply(&path, "one", &widget(json!({"selector": {"c": "3"}})))
        .await
        .ok();
    same("selector", &replaced["spec"]["selector"], json!({"c": "3"}));
    Ok(())
}

async fn open_maps_merge(t: Target) -> Outcome {
    let path = t.widgets("/a");
    t.apply(&path, "one", &widget(json!({"options": {"a": "1"}})))
        .await
        .created();
    let both = t
        .apply(&path, "two", &widget(json!({"options": {"b": "2"}})))
        .await
        .ok();
    same(
        "options",
        &both["spec"]["options"],
        json!({"a": "1", "b": "2"}),
    );
    Ok(())
}

async fn defaults_are_not_owned(t: Target) -> Outcome {
    let path = t.widgets("/a");
    let made = t
        .apply(&path, "one", &widget(json!({"parts": [{"name": "x"}]})))
        .await
        .created();
    same(
        "spec",
        &made["spec"],
        json!({"color": "red", "parts": [{"name": "x", "count": 1}]}),
    );
    same(
        "owners",
        &owners(&made),
        json!([{"by": "one Apply", "fields": {"f:spec": {"f:parts": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}}}}]),
    );
    let changed = t
        .apply(&path, "two", &widget(json!({"color": "blue"})))
        .await
        .ok();
    same("color", &changed["spec"]["color"], json!("blue"));
    let back = t.apply(&path, "two", &widget(json!({}))).await.ok();
    same(
        "color is the default again",
        &back["spec"]["color"],
        json!("red"),
    );
    Ok(())
}

async fn yaml_is_the_format(t: Target) -> Outcome {
    let path = format!("{}?fieldManager=one", t.configmaps("/a"));
    let made = t
        .patch_raw(
            &path,
            "application/apply-patch+yaml",
            "# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    two\n    lines\n",
        )
        .await
        .created();
    same("data", &made["data"], json!({"k": "two\nlines\n"}));
    Ok(())
}

fn applied_deployment(containers: Value) -> Value {
    let mut body = deployment("a");
    body["apiVersion"] = json!("apps/v1");
    body["kind"] = json!("Deployment");
    body["spec"]["template"]["spec"]["containers"] = containers;
    body
}

async fn containers_are_merged_by_name(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments/a");
    t.apply(
        &path,
        "one",
        &applied_deployment(json!([
            {"name": "main", "image": "main:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "side", "image": "side:1"},
        ])),
    )
    .await
    .created();
    let patch = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"template": {"spec": {"containers": [
            {"name": "main", "env": [{"name": "B", "value": "2"}]},
        ]}}},
    });
    t.apply(&path, "two", &patch).await.ok();
    let left = t
        .apply(
            &path,
            "one",
            &applied_deployment(json!([{"name": "main", "image": "main:2"}])),
        )
        .await
        .ok();
    let containers: Vec<Value> = left["spec"]["template"]["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| json!([container["name"], container["image"], container["env"]]))
        .collect();
    same(
        "containers",
        &json!(containers),
        json!([["main", "main:2", [{"name": "B", "value": "2"}]]]),
    );
    Ok(())
}

async fn ports_have_two_keys(t: Target) -> Outcome {
    let path = t.core("services/a");
    let body = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"selector": {"app": "a"}, "ports": [
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            {"name": "dns-udp", "port": 53, "protocol": "UDP"},
        ]},
    });
    let made = t.apply(&path, "one", &body).await.created();
    let fields = &owners(&made)[0]["fields"]["f:spec"]["f:ports"];
    same(
        "fields of the ports",
        fields,
        json!({"k:{\"port\":53,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}, "k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}}),
    );
    let mut fewer = body.clone();
    fewer["spec"]["ports"] = json!([{"name": "dns-udp", "port": 53, "protocol": "UDP"}]);
    let left = t.apply(&path, "one", &fewer).await.ok();
    same(
        "ports",
        &left["spec"]["ports"],
        json!([{"name": "dns-udp", "port": 53, "protocol": "UDP", "targetPort": 53}]),
    );
    Ok(())
}

async fn status_is_applied_on_its_own(t: Target) -> Outcome {
    t.apply(&t.widgets("/a"), "one", &widget(json!({"color": "blue"})))
        .await
        .created();
    let mut body = widget(json!({"color": "green"}));
    body["status"] = json!({"phase": "Done"});
    let reported = t.apply(&t.widgets("/a/status"), "one", &body).await.ok();
    same("spec", &reported["spec"], json!({"color": "blue"}));
    same("status", &reported["status"], json!({"phase": "Done"}));
    same(
        "owners",
        &owners(&reported),
        json!([{"by": "one Apply", "fields": {"f:spec": {"f:color": {}}}}, {"by": "one Apply status", "fields": {"f:status": {"f:phase": {}}}}]),
    );
    Ok(())
}

async fn status_in_the_main_resource_is_ignored(t: Target) -> Outcome {
    let mut body = widget(json!({"color": "blue"}));
    body["status"] = json!({"phase": "Done"});
    let made = t.apply(&t.widgets("/a"), "one", &body).await.created();
    same("status", &made["status"], json!(null));
    same(
        "owners",
        &owners(&made),
        json!([{"by": "one Apply", "fields": {"f:spec": {"f:color": {}}}}]),
    );
    Ok(())
}

async fn managed_fields_must_be_empty(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let mut body = configmap(json!({"k": "v"}));
    body["metadata"]["managedFields"] = made["metadata"]["managedFields"].clone();
    t.apply(&t.configmaps("/a"), "one", &body).await.refused(
        400,
        "BadRequest",
        "metadata.managedFields must be nil",
    );
    Ok(())
}

async fn the_kind_is_required(t: Target) -> Outcome {
    t.apply(&t.configmaps("/a"), "one", &json!({"data": {"k": "v"}}))
        .await
        .refused(400, "BadRequest", "invalid object type: /, Kind=");
    t.apply(
        &t.configmaps("/a"),
        "one",
        &json!({"apiVersion": "v1", "kind": "Secret", "data": {}}),
    )
    .await
    .refused(400, "BadRequest", "invalid object type: /v1, Kind=Secret");
    Ok(())
}

async fn the_name_must_match_the_path(t: Target) -> Outcome {
    t.apply(&t.configmaps("/b"), "one", &configmap(json!({"k": "v"})))
        .await
        .refused(
            400,
            "BadRequest",
            "the name of the object (a) does not match the name on the URL (b)",
        );
    Ok(())
}

async fn a_stale_version_conflicts(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    let mut body = configmap(json!({"new": "1"}));
    body["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    t.apply(&t.configmaps("/a"), "one", &body)
        .await
        .refused(409, "Conflict", r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#);
    Ok(())
}

async fn a_version_of_what_is_not_there_is_ignored(t: Target) -> Outcome {
    let mut body = configmap(json!({"new": "1"}));
    body["metadata"]["resourceVersion"] = json!("1");
    let made = t.apply(&t.configmaps("/a"), "one", &body).await.created();
    same("data", &made["data"], json!({"new": "1"}));
    Ok(())
}

async fn an_unknown_field_is_refused(t: Target) -> Outcome {
    t.apply(&t.widgets("/a"), "one", &widget(json!({"nope": 1})))
        .await
        .refused(500, "", "failed to create typed patch object (/a; conformance.bowline.dev/v1, Kind=Widget): .spec.nope: field not declared in schema");
    let mut body = configmap(json!({}));
    body["nope"] = json!(1);
    t.apply(&t.configmaps("/a"), "one", &body)
        .await
        .refused(500, "", "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nope: field not declared in schema");
    Ok(())
}

async fn a_list_key_twice_is_refused(t: Target) -> Outcome {
    t.apply(
        &t.widgets("/a"),
        "one",
        &widget(json!({"parts": [{"name": "x"}, {"name": "x"}]})),
    )
    .await
    .refused(500, "", r#"failed to create typed patch object (/a; conformance.bowline.dev/v1, Kind=Widget): .spec.parts: duplicate entries for key [name="x"]"#);
    Ok(())
}

async fn a_body_that_is_no_yaml(t: Target) -> Outcome {
    let path = format!("{}?fieldManager=one", t.configmaps("/a"));
    t.patch_raw(&path, "application/apply-patch+yaml", "a: [")
        .await
        .refused_with(400, "BadRequest", "error decoding YAML: ");
    Ok(())
}

async fn the_result_is_validated(t: Target) -> Outcome {
    t.apply(&t.widgets("/a"), "one", &widget(json!({"low": 5})))
        .await
        .created();
    t.apply(&t.widgets("/a"), "two", &widget(json!({"high": 3})))
        .await
        .refused(
            422,
            "Invalid",
            r#"Widget.conformance.bowline.dev "a" is invalid: spec: Invalid value: low must not be above high"#,
        );
    Ok(())
}

async fn update_and_apply_of_one_manager_are_two(t: Target) -> Outcome {
    t.post(
        &format!("{}?fieldManager=one", t.configmaps("")),
        &configmap(json!({"k": "v"})),
    )
    .await
    .created();
    let shared = t
        .force_apply(&t.configmaps("/a"), "one", &configmap(json!({"k": "w"})))
        .await
        .ok();
    same(
        "owners",
        &owners(&shared),
        json!([{"by": "one Apply", "fields": {"f:data": {"f:k": {}}}}, {"by": "one Update", "fields": {"f:data": {}}}]),
    );
    Ok(())
}

async fn removing_all_managers_starts_over(t: Target) -> Outcome {
    t.apply(&t.configmaps("/a"), "one", &configmap(json!({"k": "v"})))
        .await
        .created();
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"metadata": {"managedFields": [{}]}}),
    )
    .await
    .ok();
    t.apply(&t.configmaps("/a"), "two", &configmap(json!({"k": "w"})))
        .await
        .refused(
            409,
            "Conflict",
            r#"Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k"#,
        );
    Ok(())
}
