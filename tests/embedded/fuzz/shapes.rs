//! Replaces each field of each kind by values of other types. The requests are not random, so they are the
//! same in every run.
//!
//! The test takes a valid object and replaces one field after the other. It sends each changed object with
//! every type of request. If the server accepts the object, the test reads, changes and deletes it.

use std::sync::{Mutex, Once};

use kube_embedded::sqlite::{Expect, Key, Put, Write};

use super::*;

/// The panic messages of all tasks in this process.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.lock().unwrap().push(panic.to_string());
            usual(panic);
        }));
    });
}

/// Returns one value of each JSON type, and the largest number, which overflows if the server increments it.
fn odd_values() -> Vec<Value> {
    vec![
        json!("x"),
        json!(3),
        json!(i64::MAX),
        json!(true),
        json!([]),
        json!([1]),
        json!({}),
        Value::Null,
    ]
}

/// A kind to test: a valid object of the kind, with the path of its collection.
pub(super) struct Subject {
    collection: String,
    /// A valid object. It contains the text `shape` wherever its value must be unique.
    pub(super) object: Value,
    parts: &'static [&'static str],
    depth: usize,
    /// The test stores only each `kept`-th object, and sends the others as dry runs. The number is more than
    /// 1 only for kinds whose objects slow down all later requests.
    kept: usize,
}

pub(super) fn subject(collection: &str, object: Value, parts: &'static [&'static str]) -> Subject {
    Subject {
        collection: collection.to_owned(),
        object,
        parts,
        depth: sized(3, 6),
        kept: 1,
    }
}

impl Subject {
    /// Returns the object with `number` in its names, which makes them unique.
    fn number(&self, number: usize) -> Value {
        let text = self.object.to_string();
        serde_json::from_str(&text.replace("shape", &format!("shape{number}"))).unwrap()
    }

    fn custom(&self) -> bool {
        self.collection.contains(".example") || self.collection.contains("openchoreo")
    }

    /// Returns the request paths of the object and its subresources, for dry runs.
    fn doors(&self, path: &str) -> impl Iterator<Item = String> {
        let parts = self.parts.iter().map(|part| format!("/{part}"));
        let paths = [String::new()].into_iter().chain(parts);
        paths.map(move |part| format!("{path}{part}?dryRun=All"))
    }

    fn path(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap();
        format!("{}/{name}", self.collection)
    }
}

/// Returns metadata without ownerReferences. With an owner that does not exist, the garbage collector could
/// delete the object during the test.
fn metadata() -> Value {
    json!({"name": "shape", "labels": {"app": "web"}, "annotations": {"a": "b"}})
}

fn core(plural: &str) -> String {
    format!("/api/v1/namespaces/default/{plural}")
}

fn grouped(group: &str, plural: &str) -> String {
    format!("/apis/{group}/namespaces/default/{plural}")
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
        {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}],
         "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    ]}})
}

fn core_kinds() -> Vec<Subject> {
    let of = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": metadata()});
    let with = |kind: &str, more: Value| merged(of(kind), more);
    vec![
        subject(
            &core("configmaps"),
            with(
                "ConfigMap",
                json!({"data": {"a": "1"}, "binaryData": {"b": "MQ=="}, "immutable": false}),
            ),
            &[],
        ),
        subject(
            &core("secrets"),
            with(
                "Secret",
                json!({"stringData": {"a": "1"}, "data": {"b": "MQ=="}, "type": "Opaque"}),
            ),
            &[],
        ),
        subject(
            &core("pods"),
            with(
                "Pod",
                json!({"spec": template()["spec"], "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "web", "ready": true, "restartCount": 1,
            "image": "web:1", "imageID": "", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}),
            ),
            &["status"],
        ),
        subject(
            &core("services"),
            with(
                "Service",
                json!({"spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}}),
            ),
            &["status"],
        ),
        subject(
            "/api/v1/namespaces",
            with(
                "Namespace",
                json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}),
            ),
            &["status", "finalize"],
        ),
        subject(
            &core("events"),
            with(
                "Event",
                json!({"involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}, "reason": "Made",
            "message": "m", "type": "Normal", "count": 2, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "c"}}),
            ),
            &[],
        ),
        subject(
            &grouped("events.k8s.io/v1", "events"),
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": metadata(),
            "regarding": {"kind": "Pod", "name": "a", "namespace": "default"}, "reason": "Made", "note": "m", "type": "Normal", "action": "Make",
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "c.example/d", "reportingInstance": "i"}),
            &[],
        ),
        subject(
            &grouped("coordination.k8s.io/v1", "leases"),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata(),
            "spec": {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 5}}),
            &[],
        ),
    ]
}

fn workloads() -> Vec<Subject> {
    let selector = json!({"matchLabels": {"app": "web"}});
    let mut once = template();
    once["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"template": once, "backoffLimit": 2});
    let of = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": metadata(), "spec": spec});
    let deployment = of(
        "apps/v1",
        "Deployment",
        json!({"replicas": 1, "selector": selector, "template": template()}),
    );
    let deployment = merged(
        deployment,
        json!({"status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}}),
    );
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    vec![
        subject(
            &grouped("apps/v1", "deployments"),
            deployment,
            &["status", "scale"],
        ),
        subject(
            &grouped("batch/v1", "jobs"),
            of("batch/v1", "Job", job.clone()),
            &["status"],
        ),
        subject(
            &grouped("batch/v1", "cronjobs"),
            of(
                "batch/v1",
                "CronJob",
                json!({"schedule": "* * * * *", "jobTemplate": {"spec": job}}),
            ),
            &["status"],
        ),
        subject(
            &grouped("autoscaling/v2", "horizontalpodautoscalers"),
            of(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}),
            ),
            &["status"],
        ),
        subject(
            &grouped("autoscaling/v1", "horizontalpodautoscalers"),
            of(
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50}),
            ),
            &["status"],
        ),
    ]
}

/// Returns bowline's kinds, and a custom kind whose CRD uses every feature of CRDs.
fn custom_kinds() -> Vec<Subject> {
    let mut found: Vec<Subject> = Vec::new();
    let plurals = [
        ("DataPlane", "dataplanes"),
        ("Environment", "environments"),
        ("DeploymentPipeline", "deploymentpipelines"),
        ("ComponentTypeDefinition", "componenttypedefinitions"),
        ("Component", "components"),
        ("Workload", "workloads"),
        ("Release", "releases"),
        ("ReleasePin", "releasepins"),
    ];
    let world = bounded_yaml::documents("kinds.yaml", include_str!("kinds.yaml")).unwrap();
    for (kind, plural) in plurals {
        let document = world.iter().find(|document| document.value["kind"] == kind);
        let mut object = document.unwrap().value.clone();
        object["metadata"]["name"] = json!("shape");
        if kind == "ReleasePin" {
            object["metadata"]["name"] = json!("shape-development");
            object["metadata"]["labels"]["openchoreo.dev/component"] = json!("shape");
            object["spec"]["component"] = json!("shape");
        }
        let mut found_kind = subject(
            &grouped("openchoreo.dev/v1alpha1", plural),
            object,
            &["status"],
        );
        // Four levels are enough, because the definitions inside a Release have no schema.
        found_kind.depth = found_kind.depth.min(4);
        found.push(found_kind);
    }
    let thing = seeds()
        .into_iter()
        .find(|(_, object)| object["kind"] == "Thing");
    let (collection, mut thing) = thing.unwrap();
    thing["metadata"] = metadata();
    thing["status"] = json!({"replicas": 1, "conditions": [{"type": "Ready", "status": "True"}]});
    found.push(subject(&collection, thing, &["status", "scale"]));
    found
}

fn definitions() -> Vec<Subject> {
    let (collection, definition) = seeds().into_iter().next().unwrap();
    let text = definition
        .to_string()
        .replace("fuzz.example", "shape.example");
    let mut definition: Value = serde_json::from_str(&text).unwrap();
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    let mut deep = subject(&collection, definition, &["status"]);
    deep.depth = sized(4, 12);
    deep.kept = sized(8, 1);
    vec![deep]
}

fn policies() -> Vec<Subject> {
    let of = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata(), "spec": spec});
    let policy = json!({"failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": ["fuzz.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}},
        "matchConditions": [{"name": "c", "expression": "true"}],
        "variables": [{"name": "v", "expression": "1"}],
        "validations": [{"expression": "variables.v == 1", "message": "m", "reason": "Invalid"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]});
    let binding = json!({"policyName": "shape", "validationActions": ["Deny"],
        "matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}});
    let at = |plural: &str| format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let found = vec![
        subject(
            &at("validatingadmissionpolicies"),
            of("ValidatingAdmissionPolicy", policy),
            &["status"],
        ),
        subject(
            &at("validatingadmissionpolicybindings"),
            of("ValidatingAdmissionPolicyBinding", binding),
            &[],
        ),
    ];
    let cheap = |subject| Subject {
        kept: sized(8, 1),
        ..subject
    };
    found.into_iter().map(cheap).collect()
}

fn merged(mut object: Value, more: Value) -> Value {
    for (field, value) in more.as_object().unwrap() {
        object[field] = value.clone();
    }
    object
}

/// Returns the JSON pointers to the fields of an object, down to a depth. Adds important fields that the
/// object does not have.
fn shallow_places(object: &Value, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    places(object, String::new(), &mut found);
    found.retain(|at| !at.is_empty() && at.matches('/').count() <= depth);
    for at in [
        "/metadata/finalizers",
        "/metadata/ownerReferences",
        "/metadata/generateName",
        "/metadata/deletionTimestamp",
        "/metadata/generation",
        "/metadata/managedFields",
        "/spec",
        "/status",
        "/unknown",
    ] {
        if object.pointer(at).is_none() {
            found.push(at.to_owned());
        }
    }
    found
}

fn replaced(mut object: Value, at: &str, new: &Value) -> Value {
    if let Some(place) = object.pointer_mut(at) {
        *place = new.clone();
        return object;
    }
    let (parent, last) = at.rsplit_once('/').unwrap();
    if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
        parent.insert(last.to_owned(), new.clone());
    }
    object
}

pub(super) fn sent(method: &str, path: String, kind: &str, body: &Value) -> Sent {
    Sent {
        method: method.into(),
        path,
        headers: vec![("content-type", kind.into())],
        body: body.to_string().into_bytes(),
    }
}

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";
pub(super) const JSON_PATCH: &str = "application/json-patch+json";

/// Counts the requests, and collects all wrong answers. So one run shows all of them.
#[derive(Default)]
pub(super) struct Tally {
    requests: usize,
    accepted: usize,
    wrong: Vec<String>,
}

impl Tally {
    pub(super) fn ask(&mut self, world: &World, sent: &Sent) -> (u16, Value) {
        self.requests += 1;
        let asked = std::panic::AssertUnwindSafe(|| answered(world, sent));
        match std::panic::catch_unwind(asked) {
            Ok(Ok(answer)) => {
                self.accepted += usize::from(answer.0 < 300);
                answer
            }
            // This error is correct for an object that the test damaged in the store.
            Ok(Err(wrong)) if wrong.contains("is damaged in the store") => (500, Value::Null),
            Ok(Err(wrong)) => {
                self.wrong.push(wrong);
                (0, Value::Null)
            }
            Err(_) => {
                self.wrong.push(format!("a panic: {sent:?}"));
                (0, Value::Null)
            }
        }
    }

    pub(super) fn end(self, world: &World, round: &str) {
        println!(
            "{round}: {} requests, {} accepted",
            self.requests, self.accepted
        );
        let shown: Vec<String> = self.wrong.iter().take(10).cloned().collect();
        assert!(
            self.wrong.is_empty(),
            "{} answers are wrong, among them:\n{}",
            self.wrong.len(),
            shown.join("\n\n")
        );
        // The server must accept some requests; otherwise the test only reaches its first check.
        assert!(self.accepted > 0 && self.accepted < self.requests);
        still_works(world, round);
        let panics = PANICS.lock().unwrap();
        assert!(panics.is_empty(), "{panics:?}");
    }
}

/// Sends every changed object of each kind to the server. In the short form, sends each with two types of
/// requests in turn; in the full form, with all types.
fn through_every_door(round: &str, subjects: Vec<Subject>) {
    listen_for_panics();
    let world = World::with(&seeds()[..1]);
    let mut tally = Tally::default();
    let mut number = 0;
    for subject in &subjects {
        let whole = sent("POST", subject.collection.clone(), JSON, &subject.object);
        let (code, said) = tally.ask(&world, &whole);
        assert_eq!(code, 201, "{said}");
        let path = subject.path(&said);
        let (_, stored) = tally.ask(&world, &sent("GET", path.clone(), JSON, &Value::Null));
        for (turn, at) in shallow_places(&subject.object, subject.depth)
            .iter()
            .enumerate()
        {
            for (value, turn) in odd_values().iter().zip(turn..) {
                number += 1;
                let odd = replaced(subject.number(number), at, value);
                let kept = turn % subject.kept == 0;
                let dry = if kept { "" } else { "?dryRun=All" };
                let made = sent("POST", format!("{}{dry}", subject.collection), JSON, &odd);
                let (code, made) = tally.ask(&world, &made);
                if code == 201 && kept {
                    use_and_delete(&world, subject, &made, &mut tally);
                }
                let odd = replaced(subject.object.clone(), at, value);
                for sent in in_turn(changes(subject, &path, &odd, at), turn) {
                    tally.ask(&world, &sent);
                }
            }
        }
        // The stored object also has the defaults of the server, so its fields are changed too.
        for (turn, at) in shallow_places(&stored, subject.depth).iter().enumerate() {
            for value in in_turn(odd_values(), turn) {
                let odd = replaced(stored.clone(), at, &value);
                let puts = subject
                    .doors(&path)
                    .map(|path| sent("PUT", path, JSON, &odd));
                for sent in in_turn(puts.collect(), turn) {
                    tally.ask(&world, &sent);
                }
            }
        }
        tally.ask(&world, &sent("DELETE", path, JSON, &Value::Null));
    }
    tally.end(&world, round);
}

/// In the short form, returns one element of `all`, selected by `turn`. In the full form, returns all
/// elements.
fn in_turn<T>(mut all: Vec<T>, turn: usize) -> Vec<T> {
    match sized(true, false) {
        true => vec![all.swap_remove(turn % all.len())],
        false => all,
    }
}

/// Returns the requests that change one field of a valid object: one request per type of patch and per
/// subresource.
fn changes(subject: &Subject, path: &str, odd: &Value, at: &str) -> Vec<Sent> {
    let mut found = Vec::new();
    let value = odd.pointer(at).unwrap_or(&Value::Null);
    let operations = json!([{"op": "add", "path": at, "value": value}]);
    for path in subject.doors(path) {
        let applied = format!("{path}&fieldManager=fuzz&force=true");
        found.push(sent("PATCH", applied, APPLY, odd));
        found.push(sent("PATCH", path.clone(), MERGE, odd));
        if !subject.custom() && !path.contains("/scale") {
            found.push(sent("PATCH", path.clone(), STRATEGIC, odd));
        }
        found.push(sent("PATCH", path, JSON_PATCH, &operations));
    }
    found
}

/// Checks that an object that the server accepted can be read, changed and deleted.
fn use_and_delete(world: &World, subject: &Subject, made: &Value, tally: &mut Tally) {
    let path = subject.path(made);
    let mut table = sent("GET", path.clone(), JSON, &Value::Null);
    table.headers.push((
        "accept",
        b"application/json;as=Table;v=v1;g=meta.k8s.io".to_vec(),
    ));
    tally.ask(world, &table);
    tally.ask(
        world,
        &sent(
            "PATCH",
            path.clone(),
            MERGE,
            &json!({"metadata": {"labels": {"b": "c"}}}),
        ),
    );
    for part in subject.parts {
        let body = json!({"spec": {"replicas": 2}, "status": {"replicas": 2}});
        tally.ask(
            world,
            &sent("PATCH", format!("{path}/{part}"), MERGE, &body),
        );
    }
    tally.ask(world, &sent("DELETE", path.clone(), JSON, &Value::Null));
    if made["metadata"]["finalizers"].is_array() {
        tally.ask(
            world,
            &sent(
                "PATCH",
                path,
                MERGE,
                &json!({"metadata": {"finalizers": null}}),
            ),
        );
    }
}

#[test]
fn core_kinds_of_any_shape() {
    through_every_door("core", core_kinds());
}

#[test]
fn workloads_of_any_shape() {
    through_every_door("workloads", workloads());
}

#[test]
fn custom_kinds_of_any_shape() {
    through_every_door("custom", custom_kinds());
}

#[test]
fn definitions_of_any_shape() {
    through_every_door("definitions", definitions());
}

#[test]
fn policies_of_any_shape() {
    through_every_door("policies", policies());
}

#[test]
fn questions_and_deletions_of_any_shape() {
    listen_for_panics();
    let world = World::with(&seeds()[1..3]);
    let mut tally = Tally::default();
    let attributes = json!({"namespace": "default", "verb": "get", "group": "", "version": "*", "resource": "pods", "name": "a"});
    let user = json!({"user": "ana", "groups": ["a"], "extra": {"a": ["b"]}, "uid": "u"});
    let access = json!({"metadata": {"labels": {"a": "b"}}, "spec": merged(user, json!({"resourceAttributes": attributes})), "status": {"allowed": false}});
    let rules = json!({"metadata": {}, "spec": {"namespace": "default"}, "status": {}});
    let token = json!({"metadata": {}, "spec": {"token": "t", "audiences": ["a"]}, "status": {"user": {"username": "u"}}});
    let authorization = "/apis/authorization.k8s.io/v1";
    let doors = [
        (
            "POST",
            format!("{authorization}/selfsubjectaccessreviews"),
            access.clone(),
        ),
        (
            "POST",
            format!("{authorization}/subjectaccessreviews"),
            access.clone(),
        ),
        (
            "POST",
            format!("{authorization}/namespaces/default/localsubjectaccessreviews"),
            access,
        ),
        (
            "POST",
            format!("{authorization}/selfsubjectrulesreviews"),
            rules.clone(),
        ),
        (
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews".into(),
            token,
        ),
        (
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews".into(),
            rules,
        ),
        ("DELETE", core("configmaps/one"), options()),
        ("DELETE", core("configmaps"), options()),
        ("DELETE", "/api/v1/namespaces/side".into(), options()),
    ];
    for (method, path, body) in doors {
        let path = format!("{path}?dryRun=All");
        for at in shallow_places(&body, 4).iter().chain([&String::new()]) {
            for value in odd_values() {
                let odd = replaced(body.clone(), at, &value);
                tally.ask(&world, &sent(method, path.clone(), JSON, &odd));
            }
        }
    }
    tally.end(&world, "questions");
}

fn options() -> Value {
    json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "gracePeriodSeconds": 1,
        "preconditions": {"uid": "u", "resourceVersion": "1"}, "dryRun": ["All"]})
}

/// Another process may write anything into the store file. The server may refuse such an object, but must
/// still serve all other objects.
#[test]
fn rows_of_any_shape() {
    listen_for_panics();
    let world = World::with(&seeds()[..1]);
    let mut tally = Tally::default();
    let kinds = [
        core_kinds(),
        workloads(),
        custom_kinds(),
        definitions(),
        policies(),
    ];
    let mut number = 0;
    for subject in kinds.into_iter().flatten() {
        let mut places = shallow_places(&subject.object, 2);
        places.insert(0, String::new());
        for (turn, at) in places.iter().enumerate().step_by(sized(2, 1)) {
            let odd = vec![json!("x"), json!(i64::MAX), json!([1]), Value::Null];
            for value in in_turn(odd, turn / 2) {
                number += 1;
                let mut object = subject.number(number);
                if subject.collection.contains("/namespaces/") {
                    object["metadata"]["namespace"] = json!("default");
                }
                let path = subject.path(&object);
                let odd = replaced(object.clone(), at, &value);
                world
                    .runtime
                    .block_on(store_row(&world, &subject, &object, &odd));
                for (method, body, kind) in [
                    ("GET", Value::Null, JSON),
                    ("PATCH", json!({"metadata": {"labels": {"b": "c"}}}), MERGE),
                    ("PUT", object.clone(), JSON),
                    ("PATCH", object.clone(), APPLY),
                    ("DELETE", Value::Null, JSON),
                ] {
                    let path = format!("{path}?fieldManager=fuzz");
                    tally.ask(&world, &sent(method, path, kind, &body));
                }
                for part in subject.parts {
                    tally.ask(
                        &world,
                        &sent(
                            "PATCH",
                            format!("{path}/{part}"),
                            MERGE,
                            &json!({"spec": {"replicas": 2}}),
                        ),
                    );
                }
            }
        }
        for path in [
            "/openapi/v2",
            "/openapi/v3",
            "/apis",
            "/openapi/v3/apis/shape1.example/v1",
        ] {
            tally.ask(&world, &sent("GET", path.into(), JSON, &Value::Null));
        }
        let mut table = sent("GET", subject.collection.clone(), JSON, &Value::Null);
        tally.ask(&world, &table);
        table.headers.push((
            "accept",
            b"application/json;as=Table;v=v1;g=meta.k8s.io".to_vec(),
        ));
        tally.ask(&world, &table);
    }
    tally.end(&world, "rows");
}

/// Writes an object directly into the store file, without any check by the API.
pub(super) async fn store_row(world: &World, subject: &Subject, object: &Value, odd: &Value) {
    let parts: Vec<&str> = subject.collection.split('/').collect();
    let namespaced = parts.contains(&"namespaces") && parts.last() != Some(&"namespaces");
    let group = match parts[1] {
        "apis" if parts[2] != "events.k8s.io" => parts[2],
        _ => "",
    };
    let mut rest = odd.clone();
    let mut meta = odd.get("metadata").cloned().unwrap_or_default();
    if let Some(rest) = rest.as_object_mut() {
        rest.remove("metadata");
        rest.remove("apiVersion");
        rest.remove("kind");
    }
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("uid".into(), json!("22222222-2222-2222-2222-222222222222"));
    }
    let put = Put {
        key: Key {
            resource: format!("{group}/{}", parts.last().unwrap()).into(),
            namespace: if namespaced {
                "default".into()
            } else {
                String::new()
            },
            name: object["metadata"]["name"].as_str().unwrap().into(),
        },
        expect: Expect::Absent,
        uid: uuid::Uuid::new_v4().to_string(),
        deleting: false,
        meta: meta.to_string().into_bytes(),
        rest: rest.to_string().into_bytes(),
        owners_gained: Vec::new(),
        owners_lost: Vec::new(),
        follow_ups: Vec::new(),
    };
    world.embedded.store().write(Write::Put(put)).await.unwrap();
}
