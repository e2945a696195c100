use serde_json::{Value, json};

use super::super::status::Subject;
use super::jsonpath::Path;
use super::{age, builtin, cells, custom_cell};

const NOW: &str = "2026-01-10T12:00:00Z";

#[test]
fn stamps_become_ages() {
    assert_eq!(age::since(&json!("2026-01-10T11:55:00.25Z"), NOW), "5m");
    assert_eq!(age::since(&Value::Null, NOW), "<unknown>");
    assert_eq!(age::since(&json!("yesterday"), NOW), "<invalid>");
}

#[test]
fn paths_lead_to_the_first_value() {
    let object = json!({
        "metadata": {"name": "a", "labels": {"a.b/c": "dotted", "plain": "p"}},
        "spec": {"list": [{"n": 1}, {"n": 2}], "words": ["x", "y"]},
        "status": {"conditions": [
            {"type": "Synced", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "it's"},
        ]},
    });
    for (path, value) in [
        (".metadata.name", json!("a")),
        ("$.metadata.name", json!("a")),
        (r".metadata.labels.a\.b/c", json!("dotted")),
        (".metadata.labels['a.b/c']", json!("dotted")),
        (r#".metadata.labels["plain"]"#, json!("p")),
        (".spec.list[0].n", json!(1)),
        (".spec.list[-1].n", json!(2)),
        (".spec.list[*].n", json!(1)),
        (".spec.words", json!(["x", "y"])),
        (
            r#".status.conditions[?(@.type=="Ready")].status"#,
            json!("True"),
        ),
        (
            ".status.conditions[?(@.type == 'Ready')].reason",
            json!("it's"),
        ),
        (
            ".status.conditions[?(@.type!='Synced')].status",
            json!("True"),
        ),
        (".spec.list[?(@.n>1)].n", json!(2)),
        (".spec.list[?(@.n<=1)].n", json!(1)),
    ] {
        let path = Path::parse(path).unwrap_or_else(|| panic!("{path} is not read"));
        assert_eq!(path.first(&object), Some(&value), "{path:?}");
    }
    for nowhere in [
        ".spec.list[2].n",
        ".spec.list[-3].n",
        ".spec.nothing",
        ".metadata.name.more",
    ] {
        let path = Path::parse(nowhere).unwrap();
        assert_eq!(path.first(&object), None, "{nowhere}");
    }
    for broken in [
        "spec",
        ".a[",
        ".a[?(@.b)]",
        ".a[?(b==1)]",
        ".a..b",
        ".a[x]",
        ".a\\",
    ] {
        assert_eq!(Path::parse(broken), None, "{broken}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in r#"[.\[\]?(@)='"\\a-c0-9<>!*-]{0,24}"#) {
        if let Some(path) = Path::parse(&text) {
            path.first(&json!({"a": [{"b": 1}, {"c": "x"}], "b": {"c": true}}));
        }
    }
}

#[test]
fn custom_cells_have_the_type_of_their_column() {
    for (kind, value, cell) in [
        ("string", json!("a"), json!("a")),
        ("string", json!(3), json!("3")),
        ("string", json!(true), json!("true")),
        ("string", json!(["a"]), json!("[\"a\"]")),
        ("string", json!({"a": 1}), json!("{\"a\":1}")),
        ("integer", json!(3), json!(3)),
        ("integer", json!(3.7), json!(3)),
        ("integer", json!("3"), Value::Null),
        ("number", json!(3), json!(3.0)),
        ("boolean", json!(false), json!(false)),
        ("boolean", json!("false"), Value::Null),
        ("date", json!("2026-01-10T11:59:00Z"), json!("60s")),
        ("date", json!("never"), json!("<invalid>")),
        ("date", json!(5), Value::Null),
    ] {
        assert_eq!(
            custom_cell(kind, value.clone(), NOW),
            cell,
            "{kind} {value}"
        );
    }
}

fn line(kind: &str, object: Value) -> String {
    let subject = Subject {
        group: String::new(),
        plural: String::new(),
        kind: kind.to_owned(),
    };
    let cells: Vec<String> = builtin::cells(&subject, &object, NOW)
        .iter()
        .map(cells::shown)
        .collect();
    assert_eq!(cells.len(), builtin::columns(&subject).len(), "{kind}");
    cells.join("|")
}

#[test]
fn every_kind_has_as_many_cells_as_columns() {
    for resource in super::super::builtin::resources() {
        line(&resource.kind, json!({}));
    }
}

#[test]
fn pods_say_what_their_containers_do() {
    let pod = |status: Value| {
        line(
            "Pod",
            json!({
                "metadata": {"name": "p", "creationTimestamp": "2026-01-10T11:58:20Z"},
                "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]},
                "status": status,
            }),
        )
    };
    let tail = "|100s|<none>|<none>|<none>|<none>";
    for (status, expected) in [
        (json!({"phase": "Pending"}), "p|0/2|Pending|0"),
        (
            json!({"phase": "Failed", "reason": "Evicted"}),
            "p|0/2|Evicted|0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [
                {"ready": true, "restartCount": 2, "state": {"running": {}}, "lastState": {"terminated": {"finishedAt": "2026-01-10T11:59:00Z"}}},
                {"ready": false, "restartCount": 0, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            ]}),
            "p|1/2|CrashLoopBackOff|2 (60s ago)",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
            "p|0/2|Init:0/1|0",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 3}}}]}),
            "p|0/2|Init:ExitCode:3|0",
        ),
        (
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
                {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                {"ready": true, "state": {"running": {}}},
            ]}),
            "p|1/2|Running|0",
        ),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "p|0/2|SchedulingGated|0",
        ),
    ] {
        assert_eq!(pod(status.clone()), format!("{expected}{tail}"), "{status}");
    }
}

#[test]
fn services_and_autoscalers_are_told_in_words() {
    for (kind, object, expected) in [
        (
            "Service",
            json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.7"], "selector": {"a": "b"},
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}}),
            "s|LoadBalancer|10.0.0.7|<pending>|80:30080/TCP,53/UDP|<unknown>|a=b",
        ),
        (
            "HorizontalPodAutoscaler",
            json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
                {"type": "External", "external": {"target": {"value": "1"}}},
            ]}}),
            "h|Deployment/d|cpu: <unknown>/80%, <unknown>/10 + 1 more...|<unset>|3|0|<unknown>",
        ),
        (
            "NetworkPolicy",
            json!({"metadata": {"name": "n"}, "spec": {"podSelector": {"matchLabels": {"b": "1"}, "matchExpressions": [
                {"key": "c", "operator": "Exists"}, {"key": "a", "operator": "NotIn", "values": ["y", "x"]}]}}}),
            "n|a notin (x,y),b=1,c|<unknown>",
        ),
    ] {
        assert_eq!(line(kind, object), expected);
    }
}
