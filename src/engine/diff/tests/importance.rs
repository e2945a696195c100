//! Tests of the order of changes, of lines that several objects share, and of short names for objects.

use serde_json::{Value, json};

use super::super::{Diff, Identity, Options, diff, labels, shortened};
use crate::text;

/// Returns the objects of a test release: two workloads, a ConfigMap and a Service, all with a version label.
fn release(version: &str, image: &str, pool: &str, replicas: u8, flow: Option<&str>) -> Vec<Value> {
    let meta = |name: &str| json!({"name": name, "namespace": "shop", "labels": {"app.kubernetes.io/version": version}});
    let workload = |name: &str, limits: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name),
            "spec": {"replicas": replicas, "template": {
                "metadata": {"labels": {"app.kubernetes.io/version": version}},
                "spec": {"terminationGracePeriodSeconds": replicas, "containers": [{
                    "name": "web", "image": image,
                    "env": [{"name": "POOL", "value": pool}],
                    "resources": {"limits": {"memory": limits}},
                }]},
            }},
        })
    };
    let mut data = json!({"image": "a picture"});
    if let Some(flow) = flow {
        data["new-flow"] = json!(flow);
    }
    vec![
        workload("cart", "1Gi"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("cart"), "data": data}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("cart"), "spec": {"port": replicas}}),
    ]
}

fn changed() -> Diff {
    let before = release("v1", "registry/cart:1.2.3", "40", 2, Some("on"));
    let after = release("v2", "registry/cart:1.2.1", "20", 3, None);
    diff(&before, &after, &Options::default())
}

#[test]
fn images_come_first_then_data_then_scale_and_a_shared_change_is_one_line() {
    assert_eq!(
        changed().changes_text(),
        "\
\x20 ~ Deployment.apps shop/cart
      containers[web].image: registry/cart:1.2.3 -> registry/cart:1.2.1
  ~ ConfigMap shop/cart
      data.new-flow: on -> (removed)
  ~ Deployment.apps shop/cart
      containers[web].env[POOL]: 40 -> 20
      spec.replicas: 2 -> 3
  ~ label app.kubernetes.io/version: v1 -> v2 on 3 objects
  ~ Service shop/cart
      spec.port: 2 -> 3
  ~ Deployment.apps shop/cart
      terminationGracePeriodSeconds: 2 -> 3
"
    );
}

#[test]
fn objects_are_listed_by_their_most_important_change() {
    let found = changed();
    let names = found.by_importance();
    let names = names
        .into_iter()
        .map(|at| found.objects[at].identity.kind.as_str());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["Deployment", "ConfigMap", "Service"]
    );
    let text = found.text();
    let at = |what: &str| text.find(what).unwrap();
    assert!(at("~ Deployment.apps") < at("~ ConfigMap") && at("~ ConfigMap") < at("~ Service"));
}

#[test]
fn a_workload_that_comes_is_as_important_as_its_image() {
    let new = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}});
    let service = |port| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"port": port}});
    let found = diff(&[service(1)], &[service(2), new], &Options::default());
    assert_eq!(
        found.changes_text(),
        "  + StatefulSet.apps db: added\n  ~ Service a\n      spec.port: 1 -> 2\n"
    );
}

#[test]
fn a_sidecar_is_an_image_and_an_env_named_image_is_not() {
    let pod = |containers: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}});
    let before =
        pod(json!([{"name": "web", "image": "a", "env": [{"name": "image", "value": "x"}]}]));
    let after = pod(json!([
        {"name": "web", "image": "a", "env": [{"name": "image", "value": "y"}]},
        {"name": "proxy", "image": "envoy"},
    ]));
    let found = diff(&[before], &[after], &Options::default());
    let lines = found.change_lines();
    let lines: Vec<&str> = lines.iter().map(|line| line.field.as_str()).collect();
    assert_eq!(lines, ["containers[proxy]", "containers[web].env[image]"]);
}

#[test]
fn the_changes_of_two_secrets_are_not_called_the_same() {
    let secret = |name: &str, value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"k": value}});
    let found = diff(
        &[secret("a", "1"), secret("b", "1")],
        &[secret("a", "2"), secret("b", "3")],
        &Options::default(),
    );
    assert_eq!(found.change_lines().len(), 2);
}

#[test]
fn a_large_value_is_one_short_line_of_text() {
    let map = |end: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"file": "x".repeat(100_000) + end}});
    let found = diff(&[map("1")], &[map("2")], &Options::default()).changes_text();
    assert!(found.len() < 1_000, "{} bytes", found.len());
    assert!(
        found.contains("x1 -> ") && found.contains("x2\n"),
        "{found}"
    );
}

#[test]
fn two_fields_of_one_object_with_the_same_end_are_two_lines() {
    let object = |image: &str| {
        let containers = json!([{"name": "web", "image": image}]);
        json!({
            "apiVersion": "example.com/v1", "kind": "Pair", "metadata": {"name": "a"},
            "spec": {"blue": {"containers": containers}, "green": {"containers": containers}},
        })
    };
    let found = diff(&[object("a:1")], &[object("a:2")], &Options::default());
    assert_eq!(
        found.changes_text(),
        "  ~ Pair.example.com a\n      spec.blue.containers[web].image: a:1 -> a:2\n      spec.green.containers[web].image: a:1 -> a:2\n"
    );
}

#[test]
fn the_changed_end_of_a_long_value_stays_in_sight() {
    let digest = |c: char| {
        format!(
            "registry.example/team/shop/cart@sha256:{}",
            String::from(c).repeat(64)
        )
    };
    for (before, after, columns, expected) in [
        ("a", "b", 10, ("a", "b")),
        (
            "registry.example/shop/cart:v1.2.3",
            "registry.example/shop/cart:v1.2.4",
            12,
            ("…cart:v1.2.3", "…cart:v1.2.4"),
        ),
        (
            "pool: 40 and a long tail of text that both have",
            "pool: 20 and a long tail of text that both have",
            12,
            ("pool: 40 an…", "pool: 20 an…"),
        ),
        (
            "a long head that both have 1 a long tail that both have",
            "a long head that both have 2 a long tail that both have",
            12,
            ("…oth have 1…", "…oth have 2…"),
        ),
        (
            "one two three",
            "one two three four five",
            12,
            ("…e two three", "…e four five"),
        ),
        // A value that is cut on both sides has dots there, and shows the changed word to its end.
        (
            "POOL=40;LOG_LEVEL=info;PAYMENT_TIMEOUT=8s",
            "POOL=5;LOG_LEVEL=info;PAYMENT_TIMEOUT=5s",
            20,
            ("…40;LOG_LE…IMEOUT=8s", "…5;LOG_LEV…IMEOUT=5s"),
        ),
        (
            "POOL=40;LOG_LEVEL=info;TIMEOUT=8s;TRACE=off",
            "POOL=5;LOG_LEVEL=info;TIMEOUT=5s;TRACE=off",
            20,
            ("…40;LOG_LE…MEOUT=8s…", "…5;LOG_LEV…MEOUT=5s…"),
        ),
        ("日本語日本語一", "日本語日本語二", 6, ("…語一", "…語二")),
        (
            "short",
            "registry.example/a:1",
            12,
            ("short", "regist…e/a:1"),
        ),
    ] {
        let found = shortened(before, after, columns);
        assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{before}");
        for shown in [&found.0, &found.1] {
            assert!(text::width(shown) <= columns, "{shown} {columns}");
        }
        assert_ne!(found.0, found.1, "{before}");
    }
    // If the difference is too long, only its start and its end are shown.
    let (one, other) = shortened(&digest('a'), &digest('b'), 20);
    assert_eq!(
        (one.as_str(), other.as_str()),
        ("…aaaaaaaaa…aaaaaaaaa", "…bbbbbbbbb…bbbbbbbbb")
    );
}

#[test]
fn names_of_objects_tell_them_apart() {
    let identity = |group: &str, kind: &str, namespace: &str, name: &str| Identity {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let objects = [
        identity("apps", "Deployment", "a", "checkout-service-frontend-web"),
        identity("apps", "Deployment", "a", "checkout-service-frontend-api"),
        identity("", "Service", "a", "checkout"),
        identity("", "Service", "b", "checkout"),
        identity("serving.knative.dev", "Service", "a", "checkout"),
        identity("", "ConfigMap", "a", "x"),
        identity(
            "policy",
            "PodDisruptionBudget",
            "a",
            "checkout-service-frontend-web",
        ),
        identity(
            "example.com",
            "VeryLongKindOfAnOperator",
            "a",
            "checkout-service-a-one-b",
        ),
        identity(
            "example.com",
            "VeryLongKindOfAnOperator",
            "a",
            "checkout-service-a-two-b",
        ),
    ];
    let objects: Vec<&Identity> = objects.iter().collect();
    for columns in [14, 18, 24, 40, 80] {
        let names = labels(&objects, columns);
        for (at, name) in names.iter().enumerate() {
            assert!(text::width(name) <= columns, "{columns}: {name}");
            let others = names.iter().enumerate().filter(|(other, _)| *other != at);
            for (_, other) in others {
                assert_ne!(name, other, "{columns}");
            }
        }
    }
    let wide = labels(&objects, 60);
    assert_eq!(
        wide,
        [
            "Deployment checkout-service-frontend-web",
            "Deployment checkout-service-frontend-api",
            "Service a/checkout",
            "Service b/checkout",
            "Service.serving.knative.dev a/checkout",
            "ConfigMap x",
            "PodDisruptionBudget checkout-service-frontend-web",
            "VeryLongKindOfAnOperator checkout-service-a-one-b",
            "VeryLongKindOfAnOperator checkout-service-a-two-b",
        ]
    );
    let narrow = labels(&objects, 24);
    assert_eq!(narrow[0], "deploy checkout…tend-web");
}
