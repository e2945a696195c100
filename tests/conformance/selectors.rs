//! Cases about label and field selectors.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, names, same},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(labels_select),
        case(labels_that_cannot_be_read),
        case(a_label_value_that_cannot_be),
        case(names_select),
        case(fields_that_are_not_selectable),
        case(custom_fields_that_are_not_selectable),
        case(fields_that_cannot_be_read),
        case(pods_by_phase_and_node),
        case(events_by_what_they_are_about),
        case(secrets_by_type),
        case(custom_objects_by_their_fields),
        case(labels_and_fields_together),
    ]
}

fn encoded(selector: &str) -> String {
    percent_encoding::utf8_percent_encode(selector, percent_encoding::NON_ALPHANUMERIC).to_string()
}

async fn selected(t: &Target, path: &str, query: &str, selector: &str) -> Value {
    let path = format!("{path}?{query}={}", encoded(selector));
    json!(names(&t.get(&path).await.ok()))
}

async fn labels_select(t: Target) -> Outcome {
    for (name, labels) in [
        ("a", json!({"tier": "web", "track": "stable"})),
        ("b", json!({"tier": "web", "track": "canary"})),
        ("c", json!({"tier": "db"})),
        ("d", json!({"bowline.dev/x": ""})),
    ] {
        t.post(
            &t.configmaps(""),
            &json!({"metadata": {"name": name, "labels": labels}}),
        )
        .await
        .created();
    }
    for (selector, expected) in [
        ("tier=web", json!(["a", "b"])),
        ("tier==web", json!(["a", "b"])),
        ("tier = web", json!(["a", "b"])),
        ("tier!=web", json!(["c", "d"])),
        ("tier in (web,db)", json!(["a", "b", "c"])),
        ("tier in (db)", json!(["c"])),
        ("tier notin (db)", json!(["a", "b", "d"])),
        ("tier", json!(["a", "b", "c"])),
        ("!tier", json!(["d"])),
        ("tier=web,track=canary", json!(["b"])),
        ("tier=web,!track", json!([])),
        ("tier,track notin (canary)", json!(["a", "c"])),
        ("bowline.dev/x", json!(["d"])),
        ("bowline.dev/x=", json!(["d"])),
        ("tier in (web, )", json!(["a", "b"])),
        ("", json!(["a", "b", "c", "d"])),
        ("tier=", json!([])),
    ] {
        let found = selected(&t, &t.configmaps(""), "labelSelector", selector).await;
        same(selector, &found, expected);
    }
    Ok(())
}

async fn labels_that_cannot_be_read(t: Target) -> Outcome {
    for selector in ["=", "a in b", "a in (", "a=b c", "a,,b", "(a)", "a=b=c"] {
        let path = format!("{}?labelSelector={}", t.configmaps(""), encoded(selector));
        let answer = t.get(&path).await;
        same(selector, &json!(answer.code), json!(400));
        same(selector, &answer.body["reason"], json!("BadRequest"));
    }
    let path = format!("{}?labelSelector={}", t.configmaps(""), encoded("a in b"));
    t.get(&path).await.refused(
        400,
        "BadRequest",
        "unable to parse requirement: found 'b' expected: '('",
    );
    let path = format!("{}?labelSelector={}", t.configmaps(""), encoded("a=b c"));
    t.get(&path).await.refused(
        400,
        "BadRequest",
        "found 'c', expected: ',' or 'end of string'",
    );
    Ok(())
}

async fn a_label_value_that_cannot_be(t: Target) -> Outcome {
    let path = format!("{}?labelSelector={}", t.configmaps(""), encoded("a=-b"));
    t.get(&path).await.refused(400, "BadRequest", r#"unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#);
    Ok(())
}

async fn names_select(t: Target) -> Outcome {
    for name in ["a", "b", "c"] {
        t.configmap(name).await;
        t.widget(name, json!({})).await;
    }
    let here = t.namespace.clone();
    for (selector, expected) in [
        ("metadata.name=a".to_owned(), json!(["a"])),
        ("metadata.name==a".to_owned(), json!(["a"])),
        ("metadata.name!=a".to_owned(), json!(["b", "c"])),
        ("metadata.name!=a,metadata.name!=b".to_owned(), json!(["c"])),
        (format!("metadata.namespace={here}"), json!(["a", "b", "c"])),
        (format!("metadata.namespace!={here}"), json!([])),
        ("metadata.name=nobody".to_owned(), json!([])),
    ] {
        for path in [t.configmaps(""), t.widgets("")] {
            let found = selected(&t, &path, "fieldSelector", &selector).await;
            same(&format!("{selector} at {path}"), &found, expected.clone());
        }
    }
    Ok(())
}

async fn fields_that_are_not_selectable(t: Target) -> Outcome {
    let path = format!("{}?fieldSelector=data.k%3Dv", t.configmaps(""));
    t.get(&path).await.refused(
        400,
        "BadRequest",
        r#""data.k" is not a known field selector: only "metadata.name", "metadata.namespace""#,
    );
    let path = format!("{}?watch=true&fieldSelector=data.k%3Dv", t.configmaps(""));
    t.get(&path).await.refused(
        400,
        "BadRequest",
        r#""data.k" is not a known field selector: only "metadata.name", "metadata.namespace""#,
    );
    Ok(())
}

async fn custom_fields_that_are_not_selectable(t: Target) -> Outcome {
    let path = format!("{}?fieldSelector=spec.detail%3Dx", t.widgets(""));
    t.get(&path)
        .await
        .refused(400, "BadRequest", "field label not supported: spec.detail");
    Ok(())
}

async fn fields_that_cannot_be_read(t: Target) -> Outcome {
    for selector in ["a", "metadata.name in (a)"] {
        let path = format!("{}?fieldSelector={}", t.configmaps(""), encoded(selector));
        t.get(&path).await.refused(
            400,
            "BadRequest",
            &format!("invalid selector: '{selector}'; can't understand '{selector}'"),
        );
    }
    Ok(())
}

async fn pods_by_phase_and_node(t: Target) -> Outcome {
    for (name, node) in [("a", json!("one")), ("b", json!("two")), ("c", json!(null))] {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "main:1"}]},
        });
        t.post(&t.core("pods"), &pod).await.created();
    }
    t.patch(
        &t.core("pods/a/status"),
        Patch::Merge,
        &json!({"status": {"phase": "Running"}}),
    )
    .await
    .ok();
    for (selector, expected) in [
        ("spec.nodeName=one", json!(["a"])),
        ("spec.nodeName=", json!(["c"])),
        ("status.phase=Running", json!(["a"])),
        ("status.phase!=Running", json!(["b", "c"])),
        ("status.phase=Pending,spec.nodeName=two", json!(["b"])),
        ("spec.restartPolicy=Always", json!(["a", "b", "c"])),
    ] {
        let found = selected(&t, &t.core("pods"), "fieldSelector", selector).await;
        same(selector, &found, expected);
    }
    Ok(())
}

async fn events_by_what_they_are_about(t: Target) -> Outcome {
    for (name, about, kind) in [("a", "one", "Pod"), ("b", "two", "Widget")] {
        let event = json!({
            "metadata": {"name": name},
            "involvedObject": {"kind": kind, "name": about, "namespace": t.namespace, "uid": format!("u-{about}")},
            "reason": "Because",
            "message": "It happened.",
            "type": "Normal",
        });
        t.post(&t.core("events"), &event).await.created();
    }
    for (selector, expected) in [
        ("involvedObject.name=one", json!(["a"])),
        ("involvedObject.kind=Widget", json!(["b"])),
        ("involvedObject.uid=u-two", json!(["b"])),
        ("type=Normal,reason=Because", json!(["a", "b"])),
        ("reason!=Because", json!([])),
    ] {
        let found = selected(&t, &t.core("events"), "fieldSelector", selector).await;
        same(selector, &found, expected);
    }
    Ok(())
}

async fn secrets_by_type(t: Target) -> Outcome {
    t.post(&t.core("secrets"), &json!({"metadata": {"name": "a"}}))
        .await
        .created();
    t.post(
        &t.core("secrets"),
        &json!({"metadata": {"name": "b"}, "type": "bowline.dev/x"}),
    )
    .await
    .created();
    let found = selected(
        &t,
        &t.core("secrets"),
        "fieldSelector",
        "type=bowline.dev/x",
    )
    .await;
    same("by type", &found, json!(["b"]));
    let found = selected(&t, &t.core("secrets"), "fieldSelector", "type=Opaque").await;
    same("by the default type", &found, json!(["a"]));
    Ok(())
}

async fn custom_objects_by_their_fields(t: Target) -> Outcome {
    t.widget("a", json!({"color": "blue"})).await;
    t.widget("b", json!({})).await;
    for (selector, expected) in [
        ("spec.color=blue", json!(["a"])),
        ("spec.color=red", json!(["b"])),
        ("spec.color!=red", json!(["a"])),
        ("spec.color=blue,metadata.name=b", json!([])),
    ] {
        let found = selected(&t, &t.widgets(""), "fieldSelector", selector).await;
        same(selector, &found, expected);
    }
    Ok(())
}

async fn labels_and_fields_together(t: Target) -> Outcome {
    for name in ["a", "b"] {
        t.post(
            &t.configmaps(""),
            &json!({"metadata": {"name": name, "labels": {"l": "1"}}}),
        )
        .await
        .created();
    }
    let path = format!(
        "{}?labelSelector=l%3D1&fieldSelector=metadata.name%3Db",
        t.configmaps("")
    );
    same(
        "names",
        &json!(names(&t.get(&path).await.ok())),
        json!(["b"]),
    );
    Ok(())
}
