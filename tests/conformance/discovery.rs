//! Cases about discovery: versions, groups, resources, OpenAPI.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(the_version),
        case(the_core_versions),
        case(the_groups),
        case(one_group),
        case(a_group_that_is_not_there),
        case(the_core_resources),
        case(the_resources_of_apps),
        case(the_resources_of_a_custom_group),
        case(the_groups_in_one_document),
        case(the_core_in_one_document),
        case(openapi_has_an_index),
        case(openapi_of_a_custom_group),
        case(openapi_of_built_in_kinds),
        case(openapi_in_the_second_version),
        case(health),
        case(kube_discovers),
    ]
}

fn find<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array()
        .into_iter()
        .flatten()
        .find(|item| item["name"] == name || item["resource"] == name)
        .unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

async fn the_version(t: Target) -> Outcome {
    let version = t.get("/version").await.ok();
    same("major", &version["major"], json!("1"));
    same("minor", &version["minor"], json!("36"));
    assert!(
        text(&version, "/gitVersion").starts_with("v1.36"),
        "{version:#}"
    );
    text(&version, "/platform");
    Ok(())
}

async fn the_core_versions(t: Target) -> Outcome {
    let versions = t.get("/api").await.ok();
    same("kind", &versions["kind"], json!("APIVersions"));
    same("versions", &versions["versions"], json!(["v1"]));
    Ok(())
}

async fn the_groups(t: Target) -> Outcome {
    let groups = t.get("/apis").await.ok();
    same("kind", &groups["kind"], json!("APIGroupList"));
    same("apiVersion", &groups["apiVersion"], json!("v1"));
    same(
        "apps",
        find(&groups["groups"], "apps"),
        json!({
            "name": "apps",
            "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
        }),
    );
    for name in [
        "autoscaling",
        "batch",
        "policy",
        "networking.k8s.io",
        "rbac.authorization.k8s.io",
        "coordination.k8s.io",
        "events.k8s.io",
        "apiextensions.k8s.io",
        "admissionregistration.k8s.io",
        widget::GROUP,
    ] {
        find(&groups["groups"], name);
    }
    Ok(())
}

async fn one_group(t: Target) -> Outcome {
    let group = t.get(&format!("/apis/{}", widget::GROUP)).await.ok();
    same(
        "group",
        &group,
        json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": widget::GROUP,
            "versions": [{"groupVersion": widget::API_VERSION, "version": "v1"}],
            "preferredVersion": {"groupVersion": widget::API_VERSION, "version": "v1"},
        }),
    );
    Ok(())
}

async fn a_group_that_is_not_there(t: Target) -> Outcome {
    for path in ["/apis/nobody.example", "/apis/nobody.example/v1", "/api/v9"] {
        let answer = t.get(path).await;
        same(path, &json!(answer.code), json!(404));
    }
    Ok(())
}

async fn the_core_resources(t: Target) -> Outcome {
    let list = t.get("/api/v1").await.ok();
    same("kind", &list["kind"], json!("APIResourceList"));
    same("groupVersion", &list["groupVersion"], json!("v1"));
    let mut configmaps = find(&list["resources"], "configmaps").clone();
    if let Some(resource) = configmaps.as_object_mut() {
        resource.remove("storageVersionHash");
    }
    same(
        "configmaps",
        &configmaps,
        json!({
            "name": "configmaps",
            "singularName": "configmap",
            "namespaced": true,
            "kind": "ConfigMap",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["cm"],
        }),
    );
    same(
        "verbs of namespaces",
        &find(&list["resources"], "namespaces")["verbs"],
        json!([
            "create", "delete", "get", "list", "patch", "update", "watch"
        ]),
    );
    same(
        "namespaces",
        &find(&list["resources"], "namespaces")["namespaced"],
        json!(false),
    );
    Ok(())
}

async fn the_resources_of_apps(t: Target) -> Outcome {
    let list = t.get("/apis/apps/v1").await.ok();
    same("apiVersion", &list["apiVersion"], json!("v1"));
    let deployments = find(&list["resources"], "deployments");
    same("shortNames", &deployments["shortNames"], json!(["deploy"]));
    same("categories", &deployments["categories"], json!(["all"]));
    same(
        "scale",
        find(&list["resources"], "deployments/scale"),
        json!({
            "name": "deployments/scale",
            "singularName": "",
            "namespaced": true,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        }),
    );
    same(
        "status",
        find(&list["resources"], "deployments/status"),
        json!({
            "name": "deployments/status",
            "singularName": "",
            "namespaced": true,
            "kind": "Deployment",
            "verbs": ["get", "patch", "update"],
        }),
    );
    Ok(())
}

async fn the_resources_of_a_custom_group(t: Target) -> Outcome {
    let mut list = t.get(&format!("/apis/{}", widget::API_VERSION)).await.ok();
    for resource in list["resources"].as_array_mut().into_iter().flatten() {
        if let Some(resource) = resource.as_object_mut() {
            resource.remove("storageVersionHash");
        }
    }
    same(
        "widgets",
        find(&list["resources"], "widgets"),
        json!({
            "name": "widgets",
            "singularName": "widget",
            "namespaced": true,
            "kind": "Widget",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["wd"],
            "categories": ["conformance"],
        }),
    );
    same(
        "status",
        find(&list["resources"], "widgets/status"),
        json!({"kind": "Widget", "name": "widgets/status", "namespaced": true, "singularName": "", "verbs": ["get", "patch", "update"]}),
    );
    same(
        "scale",
        find(&list["resources"], "widgets/scale"),
        json!({"group": "autoscaling", "kind": "Scale", "name": "widgets/scale", "namespaced": true, "singularName": "", "verbs": ["get", "patch", "update"], "version": "v1"}),
    );
    Ok(())
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn group<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|item| item["metadata"]["name"] == name || name.is_empty())
        .unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

async fn the_groups_in_one_document(t: Target) -> Outcome {
    let answer = t.get_as("/apis", AGGREGATED).await;
    same(
        "content type",
        &json!(answer.content_type),
        json!(AGGREGATED),
    );
    let list = answer.ok();
    same("kind", &list["kind"], json!("APIGroupDiscoveryList"));
    same(
        "apiVersion",
        &list["apiVersion"],
        json!("apidiscovery.k8s.io/v2"),
    );
    let version = &group(&list, widget::GROUP)["versions"][0];
    same("version", &version["version"], json!("v1"));
    same("freshness", &version["freshness"], json!("Current"));
    same(
        "widgets",
        find(&version["resources"], "widgets"),
        json!({"categories": ["conformance"], "resource": "widgets", "responseKind": {"group": "conformance.bowline.dev", "kind": "Widget", "version": "v1"}, "scope": "Namespaced", "shortNames": ["wd"], "singularResource": "widget", "subresources": [{"responseKind": {"group": "conformance.bowline.dev", "kind": "Widget", "version": "v1"}, "subresource": "status", "verbs": ["get", "patch", "update"]}, {"responseKind": {"group": "autoscaling", "kind": "Scale", "version": "v1"}, "subresource": "scale", "verbs": ["get", "patch", "update"]}], "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]}),
    );
    Ok(())
}

async fn the_core_in_one_document(t: Target) -> Outcome {
    let list = t.get_as("/api", AGGREGATED).await.ok();
    same("kind", &list["kind"], json!("APIGroupDiscoveryList"));
    let version = &group(&list, "")["versions"][0];
    same("version", &version["version"], json!("v1"));
    same(
        "configmaps",
        find(&version["resources"], "configmaps"),
        json!({"resource": "configmaps", "responseKind": {"group": "", "kind": "ConfigMap", "version": ""}, "scope": "Namespaced", "shortNames": ["cm"], "singularResource": "configmap", "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]}),
    );
    Ok(())
}

async fn openapi_has_an_index(t: Target) -> Outcome {
    let index = t.get("/openapi/v3").await.ok();
    for path in ["api/v1", "apis/apps/v1"] {
        let url = text(&index["paths"][path], "/serverRelativeURL");
        let document = t.get(&url).await.ok();
        text(&document, "/openapi");
    }
    Ok(())
}

async fn openapi_of_a_custom_group(t: Target) -> Outcome {
    let path = format!("apis/{}", widget::API_VERSION);
    let index = t
        .until("/openapi/v3", "the kind's entry", |answer| {
            answer.body["paths"][&path].is_object()
        })
        .await
        .ok();
    let url = text(&index["paths"][&path], "/serverRelativeURL");
    let document = t.get(&url).await.ok();
    let schemas = document["components"]["schemas"].as_object();
    let widget = schemas
        .into_iter()
        .flatten()
        .map(|(_, schema)| schema)
        .find(|schema| schema["x-kubernetes-group-version-kind"][0]["kind"] == "Widget")
        .cloned()
        .unwrap_or_default();
    same(
        "kinds",
        &widget["x-kubernetes-group-version-kind"],
        json!([{"group": widget::GROUP, "kind": "Widget", "version": "v1"}]),
    );
    same(
        "description",
        &widget["description"],
        json!("A widget is what conformance cases are made of."),
    );
    same(
        "a default",
        &widget["properties"]["spec"]["properties"]["color"]["default"],
        json!("red"),
    );
    same(
        "a list map",
        &widget["properties"]["spec"]["properties"]["parts"]["x-kubernetes-list-map-keys"],
        json!(["name"]),
    );
    let collection = format!(
        "/apis/{}/namespaces/{{namespace}}/widgets",
        widget::API_VERSION
    );
    assert!(
        document["paths"][&collection]["post"].is_object(),
        "no {collection}"
    );
    Ok(())
}

async fn openapi_of_built_in_kinds(t: Target) -> Outcome {
    let index = t.get("/openapi/v3").await.ok();
    let url = text(&index["paths"]["apis/apps/v1"], "/serverRelativeURL");
    let document = t.get(&url).await.ok();
    let deployment = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    same(
        "kinds",
        &deployment["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "kind": "Deployment", "version": "v1"}]),
    );
    let containers = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
        ["containers"];
    same(
        "merge key",
        &containers["x-kubernetes-patch-merge-key"],
        json!("name"),
    );
    Ok(())
}

async fn openapi_in_the_second_version(t: Target) -> Outcome {
    let document = t.get("/openapi/v2").await.ok();
    same("swagger", &document["swagger"], json!("2.0"));
    let configmap = &document["definitions"]["io.k8s.api.core.v1.ConfigMap"];
    same(
        "kinds",
        &configmap["x-kubernetes-group-version-kind"],
        json!([{"group": "", "kind": "ConfigMap", "version": "v1"}]),
    );
    Ok(())
}

async fn health(t: Target) -> Outcome {
    for path in ["/healthz", "/livez", "/readyz"] {
        let body = t.get(path).await.ok();
        same(path, &body, json!("ok"));
    }
    Ok(())
}

async fn kube_discovers(t: Target) -> Outcome {
    let discovery = kube::discovery::Discovery::new(t.client.clone())
        .filter(&[widget::GROUP, "apps"])
        .run()
        .await?;
    let kind = kube::core::GroupVersionKind::gvk(widget::GROUP, "v1", "Widget");
    let (resource, capabilities) = discovery
        .resolve_gvk(&kind)
        .ok_or("the kind is not discovered")?;
    same("plural", &json!(resource.plural), json!("widgets"));
    assert!(capabilities.supports_operation(kube::discovery::verbs::WATCH));
    let group = kube::discovery::pinned_kind(&t.client, &kind).await?;
    same(
        "plural by oneself",
        &json!(group.0.plural),
        json!("widgets"),
    );
    Ok(())
}
