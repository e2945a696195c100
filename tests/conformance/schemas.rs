//! Invalid custom resources. The embedded API must report the same errors with the same messages as a real
//! server.

use std::collections::BTreeSet;

use kube::Client;
use kube_embedded::schema::Schema;
use serde_json::{Value, json};

/// The schema of a CRD that contains each type of validation rule once.
const SCHEMA: &str = r#"{"type": "object", "required": ["spec"], "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}}},
        "spec": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
            "int": {"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 2},
            "small": {"type": "integer", "format": "int32"},
            "ratio": {"type": "number", "minimum": 0.5, "exclusiveMinimum": true, "maximum": 1.5},
            "flag": {"type": "boolean"},
            "size": {"type": "string", "enum": ["S", "M"]},
            "level": {"type": "integer", "enum": [1, 2]},
            "port": {"x-kubernetes-int-or-string": true},
            "bounded": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%$"},
            "when": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
            "address": {"type": "string", "format": "ipv4"}, "net": {"type": "string", "format": "cidr"},
            "bytes": {"type": "string", "format": "byte"}, "id": {"type": "string", "format": "uuid"},
            "span": {"type": "string", "format": "duration"}, "host": {"type": "string", "format": "hostname"},
            "link": {"type": "string", "format": "uri"}, "odd": {"type": "string", "format": "nonsense"},
            "maybe": {"type": "string", "nullable": true},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 2, "minItems": 1, "items": {"type": "string"}},
            "rows": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id", "kind"],
                "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "kind": {"type": "string", "default": "x"}, "n": {"type": "integer"}}}},
            "labels": {"type": "object", "maxProperties": 2, "minProperties": 1, "additionalProperties": {"type": "string", "maxLength": 3}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "choice": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "any": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "anyOf": [{"properties": {"a": {"enum": ["x"]}}, "required": ["a"]}, {"required": ["b"]}]},
            "never": {"type": "string", "not": {"enum": ["x"]}},
            "both": {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^a"}]}}}}}"#;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema above is JSON")
}

fn cases() -> Vec<Value> {
    let with = |extra: Value| {
        let mut spec = json!({"name": "abc"});
        for (key, value) in extra.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"spec": spec})
    };
    let mut cases: Vec<Value> = [
        json!({"name": "a"}),
        json!({"name": "abcdef"}),
        json!({"name": "A1"}),
        json!({"name": 5}),
        json!({"name": true}),
        json!({"name": ["x"]}),
        json!({"name": {"a": 1}}),
        json!({"int": 0}),
        json!({"int": 7}),
        json!({"int": 3}),
        json!({"int": "x"}),
        json!({"int": 2.5}),
        json!({"int": 2.0}),
        json!({"int": true}),
        json!({"int": 9}),
        json!({"int": -1}),
        json!({"small": 5_000_000_000_i64}),
        json!({"small": "x"}),
        json!({"small": true}),
        json!({"small": 1.5}),
        json!({"small": {}}),
        json!({"ratio": 0.5}),
        json!({"ratio": 0.25}),
        json!({"ratio": 2}),
        json!({"ratio": 1}),
        json!({"ratio": "x"}),
        json!({"ratio": 1e21}),
        json!({"flag": "true"}),
        json!({"flag": 1}),
        json!({"size": "L"}),
        json!({"size": ""}),
        json!({"size": 3}),
        json!({"level": 3}),
        json!({"level": "x"}),
        json!({"port": true}),
        json!({"port": 1.5}),
        json!({"port": []}),
        json!({"port": "x"}),
        json!({"port": 5}),
        json!({"bounded": "x"}),
        json!({"bounded": "5%"}),
        json!({"bounded": 5}),
        json!({"bounded": false}),
        json!({"when": "now"}),
        json!({"when": "2020-01-01T00:00:00Z"}),
        json!({"when": "2020-01-01T00:00:00.123+02:00"}),
        json!({"when": 5}),
        json!({"day": "2020-13-01"}),
        json!({"day": "2020-12-01"}),
        json!({"address": "1.2.3"}),
        json!({"address": "1.2.3.4"}),
        json!({"net": "1.2.3.4"}),
        json!({"net": "1.2.3.0/24"}),
        json!({"net": "::/129"}),
        json!({"bytes": "%%"}),
        json!({"bytes": "YQ=="}),
        json!({"id": "x"}),
        json!({"id": "123E4567-e89b-12d3-a456-426614174000"}),
        json!({"span": "1h30m"}),
        json!({"span": "1 fortnight"}),
        json!({"span": "3 days"}),
        json!({"host": "-a"}),
        json!({"host": "a.example.com"}),
        json!({"link": "http://a/b"}),
        json!({"link": "x y"}),
        json!({"link": "/path"}),
        json!({"odd": "anything"}),
        json!({"tags": ["a", "a"]}),
        json!({"tags": ["a", "b", "c"]}),
        json!({"tags": []}),
        json!({"tags": ["a", 1]}),
        json!({"tags": "a"}),
        json!({"tags": [1, 1, 1]}),
        json!({"rows": [{"id": "1"}, {"id": "1"}]}),
        json!({"rows": [{"id": "1"}, {"id": "1", "kind": "y"}]}),
        json!({"rows": [{}]}),
        json!({"rows": [{"id": "1", "n": "x"}]}),
        json!({"rows": ["x"]}),
        json!({"rows": [{"id": "1"}, {"id": "1"}, {"id": "1"}]}),
        json!({"labels": {}}),
        json!({"labels": {"a": "abcd"}}),
        json!({"labels": {"a": 1}}),
        json!({"labels": {"a": "1", "b": "2", "c": "3"}}),
        json!({"free": {"x": 1, "a": {"b": 2}}}),
        json!({"free": "x"}),
        json!({"inner": {}}),
        json!({"inner": {"kind": "X"}}),
        json!({"inner": {"kind": "X", "apiVersion": "v1"}}),
        json!({"inner": {"kind": "", "apiVersion": "v1"}}),
        json!({"inner": {"kind": "a b", "apiVersion": "a/b/c", "metadata": {"name": "A_"}}}),
        json!({"choice": {}}),
        json!({"choice": {"a": "1", "b": "2"}}),
        json!({"choice": {"a": 1}}),
        json!({"any": {}}),
        json!({"any": {"a": "y"}}),
        json!({"any": {"b": 1}}),
        json!({"never": "x"}),
        json!({"never": "y"}),
        json!({"both": "b"}),
        json!({"both": "a"}),
        json!({"both": "ab"}),
        json!({"size": "<&>\"\n\u{7}é"}),
        json!({"int": 9, "size": "L", "flag": "x", "tags": [], "labels": {"k": "long"}}),
    ]
    .into_iter()
    .map(with)
    .collect();
    cases.extend([
        json!({}),
        json!({"spec": {}}),
        json!({"spec": "x"}),
        json!({"spec": []}),
        json!({"spec": {"name": "abc"}, "metadata": {"name": "far-too-long-a-name"}}),
    ]);
    cases
}

/// Sends every case to the real server as a dry run. Compares the causes in the answer with those of the
/// embedded API.
pub async fn check(client: &Client) -> Result<(), String> {
    let schema = schema();
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cases.validation.bowline.dev"},
        "spec": {"group": "validation.bowline.dev", "scope": "Namespaced", "names": {"plural": "cases", "kind": "Case"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let post = |path: &'static str, body: Value| {
        let request = http::Request::post(path)
            .header("Content-Type", "application/json")
            .body(body.to_string().into_bytes());
        async move {
            let request = request.map_err(|e| e.to_string())?;
            match client.request_text(request).await {
                Ok(text) => serde_json::from_str::<Value>(&text)
                    .map(Ok)
                    .map_err(|e| e.to_string()),
                Err(kube::Error::Api(status)) => Ok(Err(status)),
                Err(e) => Err(e.to_string()),
            }
        }
    };
    if let Err(status) = post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        crd,
    )
    .await?
        && status.code != 409
    {
        return Err(status.message);
    }
    let typed = Schema::from_openapi(&schema).map_err(|e| e.to_string())?;
    let mut wrong = Vec::new();
    for case in cases() {
        let mut object = case.clone();
        object["apiVersion"] = json!("validation.bowline.dev/v1");
        object["kind"] = json!("Case");
        if object.get("metadata").is_none() {
            object["metadata"] = json!({"name": "case"});
        }
        let mut answer = Err("the server does not serve the new kind".to_owned());
        for _ in 0..200 {
            answer = post(
                "/apis/validation.bowline.dev/v1/namespaces/default/cases?dryRun=All",
                object.clone(),
            )
            .await;
            if !matches!(&answer, Ok(Err(status)) if status.code == 404) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let theirs: BTreeSet<String> = match answer? {
            Ok(_) => BTreeSet::new(),
            Err(status) => {
                let causes = status
                    .details
                    .as_ref()
                    .map(|d| d.causes.as_slice())
                    .unwrap_or_default();
                let said: BTreeSet<String> = causes
                    .iter()
                    .map(|c| format!("{} {}: {}", c.reason, c.field, c.message))
                    .collect();
                if said.is_empty() {
                    BTreeSet::from([status.message])
                } else {
                    said
                }
            }
        };
        let mut ours = object.clone();
        typed.prune(&mut ours);
        typed.fill_defaults(&mut ours);
        let ours: BTreeSet<String> = typed
            .validate(&ours)
            .iter()
            .map(|e| format!("{} {}: {}", e.reason.as_str(), e.path, e.message))
            .collect();
        if ours != theirs {
            let only_here: Vec<&String> = ours.difference(&theirs).collect();
            let only_there: Vec<&String> = theirs.difference(&ours).collect();
            wrong.push(format!(
                "{case}:\n  here {only_here:?}\n  there {only_there:?}"
            ));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}
