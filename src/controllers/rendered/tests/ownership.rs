//! Tests how the controller finds the owner of a live object.

use serde_json::{Value, json};

use crate::api::builtin::is_builtin;
use crate::api::choreo::rendered::RenderedResource;
use crate::api::labels;
use crate::rendered::apply::{Step, step};
use crate::rendered::desired::{Desired, desired, named};
use crate::rendered::kinds::{Kind, WELL_KNOWN};
use crate::rendered::live::{Live, Owner, Standing, Whole};

fn owner() -> Owner {
    Owner {
        uid: "u1".to_owned(),
        namespace: "default".to_owned(),
        name: "web-dev".to_owned(),
    }
}

/// Returns a live object with the owner labels of a RenderedRelease and with these managed fields.
fn object(uid: &str, name: &str, managers: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "shop", "uid": "o1", "resourceVersion": "7",
            "labels": {
                labels::MANAGED_BY: labels::RELEASE_CONTROLLER, labels::RELEASE_UID: uid,
                labels::RELEASE_NAME: name, labels::RELEASE_NAMESPACE: "default",
            },
            "managedFields": managers,
        },
    })
}

fn ours() -> Value {
    json!([{
        "manager": labels::MANAGER_DATAPLANE, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-01-06T12:00:00Z",
        "fieldsV1": {"f:metadata": {"f:labels": {format!("f:{}", labels::RELEASE_UID): {}}}},
    }])
}

fn changed(of: Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut value = of;
    change(&mut value);
    value
}

fn live(object: &Value) -> Live {
    // The object is parsed as from a watch event.
    let seen: Whole = serde_json::from_value(object.clone()).unwrap();
    seen.keep("", "ConfigMap")
}

#[test]
fn only_what_carries_the_labels_and_was_applied_by_us_is_ours() {
    let mine = object("u1", "web-dev", ours());
    let foreign =
        |names: &[&str]| Standing::Foreign(names.iter().map(|it| (*it).to_owned()).collect());
    for (what, object, is_of, standing, standing_if_known) in [
        ("ours", mine.clone(), true, Standing::Ours, Standing::Ours),
        (
            "labels that anybody can write",
            object(
                "u1",
                "web-dev",
                json!([{"manager": "kubectl", "operation": "Update", "apiVersion": "v1"}]),
            ),
            false,
            foreign(&["kubectl"]),
            foreign(&["kubectl"]),
        ),
        (
            "labels and no managers at all",
            object("u1", "web-dev", json!([])),
            false,
            foreign(&[]),
            foreign(&[]),
        ),
        (
            "our name on an update, not an apply",
            object(
                "u1",
                "web-dev",
                changed(ours(), |it| it[0]["operation"] = json!("Update")),
            ),
            false,
            foreign(&[]),
            foreign(&[]),
        ),
        (
            "our name on a status",
            object(
                "u1",
                "web-dev",
                changed(ours(), |it| it[0]["subresource"] = json!("status")),
            ),
            false,
            foreign(&[]),
            foreign(&[]),
        ),
        (
            "a label that somebody else wrote on an object that we applied",
            object(
                "u1",
                "web-dev",
                changed(ours(), |it| it[0]["fieldsV1"] = json!({"f:data": {}})),
            ),
            false,
            Standing::Ours,
            Standing::Ours,
        ),
        (
            "of another release",
            object("u2", "cart-dev", ours()),
            false,
            Standing::OfAnother("default".to_owned(), "cart-dev".to_owned()),
            Standing::OfAnother("default".to_owned(), "cart-dev".to_owned()),
        ),
        (
            "of a release of the same name that is no more",
            object("u0", "web-dev", ours()),
            false,
            Standing::Inherited,
            Standing::Inherited,
        ),
        (
            "without labels, applied by us",
            changed(mine.clone(), |it| it["metadata"]["labels"] = json!({})),
            false,
            foreign(&[]),
            Standing::Ours,
        ),
        (
            "somebody else's, handed over",
            changed(object("", "", json!([])), |it| {
                it["metadata"]["annotations"] = json!({labels::ADOPT: "true"})
            }),
            false,
            Standing::Adoptable,
            Standing::Adoptable,
        ),
        (
            "somebody else's, not quite handed over",
            changed(object("", "", json!([])), |it| {
                it["metadata"]["annotations"] = json!({labels::ADOPT: "yes"})
            }),
            false,
            foreign(&[]),
            foreign(&[]),
        ),
    ] {
        let live = live(&object);
        assert_eq!(live.is_of(&owner()), is_of, "{what}");
        assert_eq!(live.standing(&owner(), false), standing, "{what}");
        assert_eq!(
            live.standing(&owner(), true),
            standing_if_known,
            "{what}, known"
        );
    }
}

#[test]
fn objects_of_any_form_are_read() {
    for spec in [
        json!(null),
        json!(1),
        json!(-1),
        json!(0.5),
        json!("x"),
        json!(true),
        json!([1, {"a": 2}]),
        json!({"replicas": 2, "template": {"a": 1}}),
    ] {
        for status in [json!(null), json!("x"), json!([]), json!({})] {
            let made = json!({"apiVersion": "a.b/v1", "kind": "C", "metadata": {"name": "a"}, "spec": spec, "status": status});
            let text = made.to_string();
            let seen: Whole = serde_json::from_str(&text).unwrap();
            assert_eq!(seen.keep("a.b", "C").status, None, "{text}");
        }
    }
}

#[test]
fn what_we_own_has_a_hash_that_changes_with_it() {
    let hash = |managers: Value| {
        live(&object("u1", "web-dev", managers))
            .applied_fields
            .unwrap()
    };
    let first = hash(ours());
    assert_eq!(first, hash(ours()));
    let beside = changed(ours(), |it| {
        let other = json!({"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:x": {}}});
        it.as_array_mut().unwrap().push(other);
    });
    assert_eq!(first, hash(beside), "what others own is not ours");
    assert_ne!(
        first,
        hash(changed(ours(), |it| it[0]["fieldsV1"]["f:data"] = json!({})))
    );
    assert_ne!(
        first,
        hash(changed(ours(), |it| it[0]["time"] = json!("2026-01-06T12:00:01Z")))
    );
    let mut within_the_second = object("u1", "web-dev", ours());
    within_the_second["metadata"]["annotations"] = json!({labels::APPLIED_HASH: "another"});
    assert_ne!(Some(first), live(&within_the_second).applied_fields);
}

fn wanted(object: Value) -> Desired {
    let resource = RenderedResource {
        id: "config".to_owned(),
        object: object.as_object().unwrap().clone(),
    };
    let kind = Kind {
        resource: kube::core::ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&()),
        namespaced: true,
    };
    desired(&named(&resource).unwrap(), &kind, "shop", &owner())
}

#[test]
fn what_is_wanted_says_whose_it_is_and_nothing_that_the_server_says() {
    let given = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "status": {"x": 1},
        "metadata": {
            "name": "a", "labels": {"app": "web", labels::RELEASE_UID: "forged"}, "uid": "x", "resourceVersion": "1",
            "managedFields": [], "creationTimestamp": null, "annotations": {"n": "1"},
        },
        "data": {"a": "b"},
    });
    let hash = |given: Value| {
        let annotations = &wanted(given).object["metadata"]["annotations"];
        annotations[labels::APPLIED_HASH]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let applied = hash(given.clone());
    assert_eq!(applied, hash(given.clone()));
    let other = changed(given.clone(), |it| it["data"]["a"] = json!("c"));
    assert_ne!(applied, hash(other));
    let desired = wanted(given);
    assert_eq!(
        desired.object,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "a", "namespace": "shop", "annotations": {"n": "1", labels::APPLIED_HASH: applied},
                "labels": {
                    "app": "web", labels::MANAGED_BY: labels::RELEASE_CONTROLLER, labels::RELEASE_RESOURCE_ID: "config",
                    labels::RELEASE_UID: "u1", labels::RELEASE_NAME: "web-dev", labels::RELEASE_NAMESPACE: "default",
                },
            },
            "data": {"a": "b"},
        })
    );
}

#[test]
fn what_is_not_enough_to_apply_is_said() {
    for (object, why) in [
        (json!({}), "it has no apiVersion"),
        (json!({"apiVersion": "v1"}), "it has no kind"),
        (
            json!({"apiVersion": "v1", "kind": "Pod"}),
            "it has no metadata.name",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ".."}}),
            "its metadata.name \"..\" is not a name",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}),
            "its metadata.name \"a/b\" is not a name",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "x?y"}}),
            "its metadata.namespace \"x?y\" is not a name",
        ),
    ] {
        let resource = RenderedResource {
            id: "a".to_owned(),
            object: object.as_object().unwrap().clone(),
        };
        assert_eq!(named(&resource).unwrap_err(), why, "{object}");
    }
}

#[test]
fn an_object_is_touched_only_when_it_has_to_be() {
    let desired = wanted(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}),
    );
    let mine = live(&object("u1", "web-dev", ours()));
    let entry = |applied: Option<String>| crate::api::choreo::rendered::ResourceStatus {
        applied,
        ..Default::default()
    };
    let as_applied = entry(desired.applied(&mine));
    let not_applied = entry(None);
    let decide = |live: Option<&Live>, known| {
        step(&desired, live, &owner(), known).map_err(|error| error.to_string())
    };
    assert_eq!(decide(None, None), Ok(Step::Make));
    assert_eq!(decide(Some(&mine), Some(&as_applied)), Ok(Step::Leave));
    assert_eq!(decide(Some(&mine), Some(&not_applied)), Ok(Step::Force));
    assert_eq!(decide(Some(&mine), None), Ok(Step::Force));
    let drifted = live(&object(
        "u1",
        "web-dev",
        changed(ours(), |it| it[0]["fieldsV1"]["f:x"] = json!({})),
    ));
    assert_eq!(decide(Some(&drifted), Some(&as_applied)), Ok(Step::Force));
    let reborn = Live {
        uid: "o2".to_owned(),
        ..mine.clone()
    };
    assert_eq!(decide(Some(&reborn), Some(&as_applied)), Ok(Step::Force));
    let dying = Live {
        deleting: true,
        ..mine.clone()
    };
    assert_eq!(decide(Some(&dying), None), Ok(Step::Leave));
    let theirs = live(&object(
        "",
        "",
        json!([{"manager": "helm", "operation": "Update", "apiVersion": "v1"}]),
    ));
    let refused = decide(Some(&theirs), None).unwrap_err();
    assert!(
        refused.contains("written by helm") && refused.contains("bowline.dev/adopt=true"),
        "{refused}"
    );
    let of_another = live(&object("u2", "cart-dev", ours()));
    assert!(
        decide(Some(&of_another), None)
            .unwrap_err()
            .contains("cart-dev")
    );
}

#[test]
fn the_role_of_the_controller_grants_what_it_looks_at() {
    let roles: Vec<Value> = crate::api::rbac()
        .split("\n---\n")
        .map(|document| serde_yaml::from_str(document).unwrap())
        .collect();
    let role = roles
        .iter()
        .find(|role| role["metadata"]["name"] == "bowline-data-plane")
        .unwrap();
    for (group, version, kind) in WELL_KNOWN {
        let gvk = kube::core::GroupVersionKind::gvk(group, version, kind);
        let plural = kube::core::ApiResource::from_gvk(&gvk).plural;
        let has = |list: &Value, item: &str| list.as_array().unwrap().iter().any(|it| it == item);
        let rules = role["rules"].as_array().unwrap();
        let granted = rules.iter().any(|rule| {
            has(&rule["apiGroups"], group)
                && has(&rule["resources"], &plural)
                && ["get", "list", "watch", "patch", "delete"]
                    .iter()
                    .all(|verb| has(&rule["verbs"], verb))
        });
        assert!(granted, "{plural} of {group:?}");
        assert_eq!(is_builtin(group), *group != "gateway.networking.k8s.io");
    }
}
