//! Cases about creating, changing and deleting CRDs.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, names, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(is_established_and_served),
        case(accepts_its_names),
        case(conflicting_names_are_not_accepted),
        case(must_be_named_after_plural_and_group),
        case(needs_a_structural_schema),
        case(with_a_rule_that_does_not_compile),
        case(with_a_default_that_is_invalid),
        case(takes_its_objects_with_it),
        case(a_new_column_and_field_are_served),
        case(a_second_version_serves_the_same_objects),
        case(a_version_that_is_not_served),
        case(without_a_version_to_store),
        case(defaults_fill_in_what_is_stored),
        case(its_kind_can_be_discovered),
        case(keeps_unknown_fields_on_request),
        case(a_change_of_scope_is_refused),
        case(short_names_and_categories_are_shown),
    ]
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a CRD in an API group that no other case uses.
fn definition(t: &Target, plural: &str, kind: &str, spec_schema: Value) -> Value {
    let group = format!("{}.test", t.namespace);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec_schema}}},
            }],
        },
    })
}

fn open() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}})
}

fn condition(crd: &Value, name: &str) -> Value {
    crd["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == name)
        .map_or(Value::Null, |condition| {
            json!([
                condition["status"],
                condition["reason"],
                condition["message"]
            ])
        })
}

async fn established(t: &Target, definition: &Value) -> Value {
    t.post(CRDS, definition).await.created();
    let path = format!("{CRDS}/{}", text(definition, "/metadata/name"));
    t.until(&path, "establishment", |answer| {
        condition(&answer.body, "Established")[0] == "True"
    })
    .await
    .ok()
}

fn path_of(t: &Target, version: &str, rest: &str) -> String {
    t.group(&format!("{}.test/{version}", t.namespace), rest)
}

fn object(t: &Target, version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{}.test/{version}", t.namespace),
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// Waits until the server serves the collection at a path.
async fn served(t: &Target, path: &str) {
    t.until(path, "serving", |answer| answer.code == 200).await;
}

async fn is_established_and_served(t: Target) -> Outcome {
    let crd = established(&t, &definition(&t, "cogs", "Cog", open())).await;
    same(
        "Established",
        &condition(&crd, "Established"),
        json!([
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted"
        ]),
    );
    same(
        "NamesAccepted",
        &condition(&crd, "NamesAccepted"),
        json!(["True", "NoConflicts", "no conflicts found"]),
    );
    served(&t, &path_of(&t, "v1", "cogs")).await;
    let made = t
        .post(
            &path_of(&t, "v1", "cogs"),
            &object(&t, "v1", "Cog", "a", json!({"n": 1})),
        )
        .await
        .created();
    same("spec", &made["spec"], json!({"n": 1}));
    Ok(())
}

async fn accepts_its_names(t: Target) -> Outcome {
    let crd = established(&t, &definition(&t, "cogs", "Cog", open())).await;
    same(
        "names",
        &crd["spec"]["names"],
        json!({"plural": "cogs", "singular": "cog", "kind": "Cog", "listKind": "CogList"}),
    );
    same(
        "acceptedNames",
        &crd["status"]["acceptedNames"],
        json!({"plural": "cogs", "singular": "cog", "kind": "Cog", "listKind": "CogList"}),
    );
    same(
        "storedVersions",
        &crd["status"]["storedVersions"],
        json!(["v1"]),
    );
    same(
        "conversion",
        &crd["spec"]["conversion"],
        json!({"strategy": "None"}),
    );
    Ok(())
}

async fn conflicting_names_are_not_accepted(t: Target) -> Outcome {
    established(&t, &definition(&t, "cogs", "Cog", open())).await;
    let second = definition(&t, "gears", "Cog", open());
    t.post(CRDS, &second).await.created();
    let path = format!("{CRDS}/{}", text(&second, "/metadata/name"));
    let crd = t
        .until(&path, "refusal of its names", |answer| {
            condition(&answer.body, "NamesAccepted")[0] == "False"
        })
        .await
        .ok();
    same(
        "NamesAccepted",
        &condition(&crd, "NamesAccepted"),
        json!(["False", "ListKindConflict", "\"CogList\" is already in use"]),
    );
    same(
        "Established",
        &condition(&crd, "Established"),
        json!(["False", "NotAccepted", "not all names are accepted"]),
    );
    Ok(())
}

async fn must_be_named_after_plural_and_group(t: Target) -> Outcome {
    let mut body = definition(&t, "cogs", "Cog", open());
    body["metadata"]["name"] = json!("cogs.example.com");
    let details = t
        .post(CRDS, &body)
        .await
        .refused(
            422,
            "Invalid",
            r#"CustomResourceDefinition.apiextensions.k8s.io "cogs.example.com" is invalid: metadata.name: Invalid value: "cogs.example.com": must be spec.names.plural+"."+spec.group"#,
        );
    same(
        "field",
        &details["causes"][0]["field"],
        json!("metadata.name"),
    );
    Ok(())
}

async fn needs_a_structural_schema(t: Target) -> Outcome {
    let body = definition(&t, "cogs", "Cog", json!({"properties": {"n": {}}}));
    let answer = t.post(CRDS, &body).await;
    same("code", &json!(answer.code), json!(422));
    let fields: Vec<&Value> = answer.body["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| &cause["field"])
        .collect();
    same(
        "fields",
        &json!(fields),
        json!([
            "spec.validation.openAPIV3Schema.properties[spec].properties[n].type",
            "spec.validation.openAPIV3Schema.properties[spec].type"
        ]),
    );
    Ok(())
}

async fn with_a_rule_that_does_not_compile(t: Target) -> Outcome {
    let mut schema = open();
    schema["x-kubernetes-validations"] = json!([{"rule": "self.absent > 1"}]);
    let answer = t.post(CRDS, &definition(&t, "cogs", "Cog", schema)).await;
    same("code", &json!(answer.code), json!(422));
    let cause = &answer.body["details"]["causes"][0];
    same(
        "field",
        &cause["field"],
        json!("spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"),
    );
    let message = text(cause, "/message");
    assert!(
        message.contains("compilation failed: ") && message.contains("undefined field 'absent'"),
        "message: {message}"
    );
    Ok(())
}

async fn with_a_default_that_is_invalid(t: Target) -> Outcome {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "default": "one"}}});
    let answer = t.post(CRDS, &definition(&t, "cogs", "Cog", schema)).await;
    same("code", &json!(answer.code), json!(422));
    same(
        "field",
        &answer.body["details"]["causes"][0]["field"],
        json!("spec.validation.openAPIV3Schema.properties[spec].properties[n].default"),
    );
    Ok(())
}

async fn takes_its_objects_with_it(t: Target) -> Outcome {
    let body = definition(&t, "cogs", "Cog", open());
    established(&t, &body).await;
    let path = path_of(&t, "v1", "cogs");
    served(&t, &path).await;
    t.post(&path, &object(&t, "v1", "Cog", "a", json!({})))
        .await
        .created();
    let crd = format!("{CRDS}/{}", text(&body, "/metadata/name"));
    t.delete(&crd).await.ok();
    t.gone(&crd).await;
    t.gone(&path).await;
    // The kind has no objects when it is created again.
    established(&t, &body).await;
    served(&t, &path).await;
    let list = t.get(&path).await.ok();
    same("names", &json!(names(&list)), json!([]));
    Ok(())
}

async fn a_new_column_and_field_are_served(t: Target) -> Outcome {
    let body = definition(&t, "cogs", "Cog", open());
    established(&t, &body).await;
    let path = path_of(&t, "v1", "cogs");
    served(&t, &path).await;
    let made = t
        .post(
            &path,
            &object(&t, "v1", "Cog", "a", json!({"n": 1, "m": 2})),
        )
        .await
        .created();
    same("spec", &made["spec"], json!({"n": 1}));
    let crd = format!("{CRDS}/{}", text(&body, "/metadata/name"));
    t.patch(
        &crd,
        Patch::Json,
        &json!([
            {
                "op": "add",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/m",
                "value": {"type": "integer", "default": 7},
            },
            {
                "op": "add",
                "path": "/spec/versions/0/additionalPrinterColumns",
                "value": [{"name": "M", "type": "integer", "jsonPath": ".spec.m"}],
            },
        ]),
    )
    .await
    .ok();
    let read = t
        .until(&format!("{path}/a"), "the new default", |answer| {
            answer.body["spec"]["m"].is_number()
        })
        .await
        .ok();
    same("spec", &read["spec"], json!({"n": 1, "m": 7}));
    // Waits for the list, which fails until the storage of the changed CRD is ready.
    t.until(&path, "a list", |answer| answer.code == 200).await;
    let table = t
        .get_as(&path, "application/json;as=Table;g=meta.k8s.io;v=v1")
        .await
        .ok();
    same("cells", &table["rows"][0]["cells"], json!(["a", 7]));
    Ok(())
}

fn with_versions(mut definition: Value, versions: Value) -> Value {
    let schema = definition["spec"]["versions"][0]["schema"].clone();
    definition["spec"]["versions"] = versions
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| {
            json!({
                "name": version[0],
                "served": version[1],
                "storage": version[2],
                "schema": schema,
            })
        })
        .collect();
    definition
}

async fn a_second_version_serves_the_same_objects(t: Target) -> Outcome {
    let body = with_versions(
        definition(&t, "cogs", "Cog", open()),
        json!([["v1", true, true], ["v1beta1", true, false]]),
    );
    established(&t, &body).await;
    served(&t, &path_of(&t, "v1beta1", "cogs")).await;
    t.post(
        &path_of(&t, "v1beta1", "cogs"),
        &object(&t, "v1beta1", "Cog", "a", json!({"n": 1})),
    )
    .await
    .created();
    let read = t.get(&path_of(&t, "v1", "cogs/a")).await.ok();
    same(
        "apiVersion",
        &read["apiVersion"],
        json!(format!("{}.test/v1", t.namespace)),
    );
    same("spec", &read["spec"], json!({"n": 1}));
    Ok(())
}

async fn a_version_that_is_not_served(t: Target) -> Outcome {
    let body = with_versions(
        definition(&t, "cogs", "Cog", open()),
        json!([["v1", true, true], ["v1alpha1", false, false]]),
    );
    established(&t, &body).await;
    served(&t, &path_of(&t, "v1", "cogs")).await;
    let answer = t.get(&path_of(&t, "v1alpha1", "cogs")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn without_a_version_to_store(t: Target) -> Outcome {
    let body = with_versions(
        definition(&t, "cogs", "Cog", open()),
        json!([["v1", true, false]]),
    );
    let answer = t.post(CRDS, &body).await;
    same("code", &json!(answer.code), json!(422));
    let cause = &answer.body["details"]["causes"][0];
    same("field", &cause["field"], json!("spec.versions"));
    let message = text(cause, "/message");
    assert!(
        message.ends_with(": must have exactly one version marked as storage version"),
        "message: {message}"
    );
    Ok(())
}

async fn defaults_fill_in_what_is_stored(t: Target) -> Outcome {
    let schema = json!({
        "type": "object",
        "default": {},
        "properties": {
            "deep": {
                "type": "object",
                "default": {"x": 1},
                "properties": {"x": {"type": "integer"}, "y": {"type": "string", "default": "why"}},
            },
            "many": {
                "type": "array",
                "items": {"type": "object", "properties": {"z": {"type": "boolean", "default": true}}},
            },
        },
    });
    established(&t, &definition(&t, "cogs", "Cog", schema)).await;
    let path = path_of(&t, "v1", "cogs");
    served(&t, &path).await;
    let mut body = object(&t, "v1", "Cog", "a", json!({"many": [{}, {"z": false}]}));
    let made = t.post(&path, &body).await.created();
    same(
        "spec",
        &made["spec"],
        json!({"deep": {"x": 1, "y": "why"}, "many": [{"z": true}, {"z": false}]}),
    );
    body["metadata"]["name"] = json!("b");
    if let Some(body) = body.as_object_mut() {
        body.remove("spec");
    }
    let made = t.post(&path, &body).await.created();
    same("spec", &made["spec"], json!({"deep": {"x": 1, "y": "why"}}));
    Ok(())
}

async fn its_kind_can_be_discovered(t: Target) -> Outcome {
    established(&t, &definition(&t, "cogs", "Cog", open())).await;
    let answer = t
        .until(
            &format!("/apis/{}.test/v1", t.namespace),
            "discovery",
            |answer| answer.code == 200,
        )
        .await
        .ok();
    same("name", &answer["resources"][0]["name"], json!("cogs"));
    same("kind", &answer["resources"][0]["kind"], json!("Cog"));
    Ok(())
}

async fn keeps_unknown_fields_on_request(t: Target) -> Outcome {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    established(&t, &definition(&t, "cogs", "Cog", schema)).await;
    let path = path_of(&t, "v1", "cogs");
    served(&t, &path).await;
    let spec = json!({"any": {"thing": [1, "two", {"three": true}]}});
    let answer = t
        .post(&path, &object(&t, "v1", "Cog", "a", spec.clone()))
        .await;
    same("warnings", &json!(answer.warnings), json!([]));
    same("spec", &answer.created()["spec"], spec);
    Ok(())
}

async fn a_change_of_scope_is_refused(t: Target) -> Outcome {
    let body = definition(&t, "cogs", "Cog", open());
    established(&t, &body).await;
    let path = format!("{CRDS}/{}", text(&body, "/metadata/name"));
    let answer = t
        .patch(&path, Patch::Merge, &json!({"spec": {"scope": "Cluster"}}))
        .await;
    same("code", &json!(answer.code), json!(422));
    same(
        "cause",
        &answer.body["details"]["causes"][0],
        json!({"field": "spec.scope", "message": "Invalid value: \"Cluster\": field is immutable", "reason": "FieldValueInvalid"}),
    );
    Ok(())
}

async fn short_names_and_categories_are_shown(t: Target) -> Outcome {
    let mut body = definition(&t, "cogs", "Cog", open());
    body["spec"]["names"]["shortNames"] = json!(["cg"]);
    body["spec"]["names"]["categories"] = json!(["all"]);
    let crd = established(&t, &body).await;
    same(
        "acceptedNames",
        &crd["status"]["acceptedNames"]["shortNames"],
        json!(["cg"]),
    );
    let table = t
        .get_as(
            &format!("{CRDS}/{}", text(&body, "/metadata/name")),
            "application/json;as=Table;g=meta.k8s.io;v=v1",
        )
        .await
        .ok();
    let columns: Vec<&Value> = table["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| &column["name"])
        .collect();
    same("columns", &json!(columns), json!(["Name", "Created At"]));
    Ok(())
}
