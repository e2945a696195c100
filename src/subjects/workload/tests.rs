//! Tests of workloads in the read model: which revision is the current one, and which one a rollback
//! restores. Tests of the actions in a store without controllers.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use kube_embedded::{Embedded, Objects, Setup};
use serde_json::json;

use super::kind::DEPLOYMENT;
use super::{actions, matrix, revisions, rows, template};
use crate::api::bowline::audit::{Action, AuditEntry};
use crate::api::labels;
use crate::api::openchoreo::release::Verdict;
use crate::engine::audit::EntriesOf;
use crate::engine::plan::{Asked, Change};
use crate::engine::publish::{Applied, apply};
use crate::engine::subject::SubjectRef;
use crate::engine::subject::command::{Command, Found, Planned, SubjectError, Verb};
use crate::engine::world::{Key, Source, World};
use crate::engine::{compare, diff};
use crate::fixture::{self, create_deployment, deployment, replica_set};
use crate::subjects;
use crate::subjects::release_pin::matrix::Health;

#[tokio::test]
async fn a_workload_has_audit_entries_only_if_the_kind_lists_its_kind() {
    let current = crate::api::store_setup().objects;
    let crds = crate::api::crds();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == "AuditEntry");
    let mut older = serde_json::to_value(crd.unwrap()).unwrap();
    let schema = &mut older["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let subject = &mut schema["properties"]["spec"]["properties"]["subject"];
    subject["properties"]["kind"]["enum"] = json!(["ReleasePin", "Component"]);
    for (objects, expected) in [
        (current, EntriesOf::Kind),
        (Objects::of(vec![older]), EntriesOf::OtherKinds),
        (Objects::default(), EntriesOf::Nothing),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup {
            objects,
            ..Setup::default()
        };
        let file = folder.path().join("store.db");
        let store = Embedded::open(&file, "ana", setup).await.unwrap();
        let client = store.client("shop");
        assert_eq!(EntriesOf::ask(&client, &DEPLOYMENT).await, expected);
    }
}

/// A store with the Deployment web, which has three revisions.
struct Store {
    client: Client,
    _folder: tempfile::TempDir,
}

impl Store {
    /// Opens a store with the kinds in `objects`.
    async fn open(objects: Objects) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup {
            objects,
            ..Setup::default()
        };
        let file = folder.path().join("store.db");
        let store = Embedded::open(&file, "ana", setup).await.unwrap();
        let client = store.client("default");
        create_deployment(&client, "web", &["web:1", "web:2", "web:3"]).await;
        Self {
            client,
            _folder: folder,
        }
    }

    async fn plan(&self, verb: Verb) -> Result<Planned, SubjectError> {
        let command = Command {
            subject: in_store(),
            verb,
        };
        let asked = Asked {
            operation: uuid::Uuid::new_v4().to_string(),
            now: fixture::now(),
            user: "ana".to_owned(),
            reason: Some("INC-1".to_owned()),
            namespace: "default".to_owned(),
        };
        actions::plan(&self.client, &command, &asked).await
    }
}

fn in_store() -> SubjectRef {
    SubjectRef::new(&DEPLOYMENT, Key::new("default", "web"))
}

/// A rollback to the default revision, without a hold.
fn rollback(to: Option<i64>) -> Verb {
    Verb::Rollback {
        to,
        hold: false,
        force: false,
    }
}

#[tokio::test]
async fn without_audit_entries_the_plan_and_the_history_say_where_the_record_is() {
    let with_entries = crate::api::store_setup().objects;
    let note = "this cluster has no AuditEntries: annotations and Events record each change";
    for (objects, expected) in [(Objects::default(), Some(note)), (with_entries, None)] {
        let store = Store::open(objects).await;
        let planned = store.plan(rollback(None)).await.unwrap();
        assert_eq!(planned.record.as_deref(), expected);
        let read = revisions::read(&store.client, &in_store(), fixture::now()).await;
        assert_eq!(read.unwrap().record.as_deref(), expected);
    }
}

/// Plans and applies a command.
impl Store {
    async fn act(&self, verb: Verb) -> Result<Applied, String> {
        let planned = self.plan(verb).await.map_err(|error| error.to_string())?;
        let plan = planned.plan;
        let done = apply(&self.client, &plan, &plan.changes[0], &fixture::now).await;
        done.map_err(|error| error.to_string())
    }

    async fn history(&self) -> Found {
        let read = revisions::read(&self.client, &in_store(), fixture::now()).await;
        read.unwrap()
    }

    /// Returns the number of the revision that a rollback without a target restores.
    async fn last_good(&self) -> Option<i64> {
        let planned = self.plan(rollback(None)).await.ok()?;
        planned.plan.changes[0].restored_from
    }
}

fn mark(revision: i64, verdict: Verdict) -> Verb {
    Verb::Mark { revision, verdict }
}

#[tokio::test]
async fn a_rollback_skips_and_refuses_a_revision_that_is_marked_bad() {
    let store = Store::open(crate::api::store_setup().objects).await;
    assert_eq!(store.last_good().await, Some(2));
    let bad = store.act(mark(2, Verdict::Bad)).await;
    assert_eq!(bad, Ok(Applied::Done(1)));
    assert_eq!(store.last_good().await, Some(1));
    let refused = store.act(rollback(Some(2))).await.unwrap_err();
    assert_eq!(refused, "rev 2 of deploy/web is marked bad by ana: INC-1");
    let found = store.history().await;
    let marked = found.find(2).unwrap();
    assert_eq!(marked.mark, Some(Verdict::Bad));
    assert_eq!(marked.why.as_deref(), Some("marked bad by ana: INC-1"));
    // The mark is recorded, on the workload and as an entry, and does not touch a pod template.
    let entries: Api<AuditEntry> = Api::default_namespaced(store.client.clone());
    let entries = entries.list(&ListParams::default()).await.unwrap().items;
    let entry = &entries[0].spec;
    assert_eq!((entries.len(), entry.action), (1, Action::MarkBad));
    assert_eq!(entry.to.as_ref().unwrap().name, "rev 2 web:2");
    let sets: Api<ReplicaSet> = Api::default_namespaced(store.client.clone());
    let set = sets.get("web-2").await.unwrap();
    let template = set.spec.unwrap().template.unwrap().metadata.unwrap();
    assert_eq!(template.annotations, None);

    let again = store.act(mark(2, Verdict::Bad)).await;
    assert_eq!(again, Ok(Applied::Unchanged));
    let undone = store.act(Verb::Undo).await.unwrap_err();
    assert!(undone.contains("undo does not change marks"), "{undone}");
    let good = store.act(mark(2, Verdict::Good)).await;
    assert_eq!(good, Ok(Applied::Done(2)));
    assert_eq!(store.last_good().await, Some(2));
    let none = store.act(mark(9, Verdict::Bad)).await.unwrap_err();
    assert_eq!(none, "deploy/web has no revision 9; it has 1, 2, 3");
    let sets: Api<ReplicaSet> = Api::default_namespaced(store.client.clone());
    let number = json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "4"}}});
    let (params, number) = (PatchParams::default(), Patch::Merge(number));
    sets.patch("web-2", &params, &number).await.unwrap();
    let gone = store.act(rollback(Some(2))).await.unwrap_err();
    let why = "Kubernetes gives a restored revision a new number";
    assert!(gone.contains(why), "{gone}");
}

#[tokio::test]
async fn a_bad_mark_needs_a_reason_and_a_mark_by_somebody_else_is_not_replaced() {
    let store = Store::open(Objects::default()).await;
    let mut plan = store.plan(mark(2, Verdict::Bad)).await.unwrap().plan;
    plan.reason = None;
    let lacks = plan.lacks_reason().map(Change::reason_rule);
    let rule = "marking rev 2 web:2 of deploy/web bad needs a reason";
    assert_eq!(lacks.as_deref(), Some(rule));
    let refused = apply(&store.client, &plan, &plan.changes[0], &fixture::now).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        format!("{rule}, so nothing was changed")
    );

    plan.reason = Some("INC-2".to_owned());
    store.act(mark(2, Verdict::Good)).await.unwrap();
    let refused = apply(&store.client, &plan, &plan.changes[0], &fixture::now).await;
    assert!(refused.is_err(), "{refused:?}");
    let found = store.history().await;
    assert_eq!(found.find(2).unwrap().mark, Some(Verdict::Good));
}

#[tokio::test]
async fn a_copied_mark_is_about_the_marked_template_only() {
    let store = Store::open(Objects::default()).await;
    store.act(mark(2, Verdict::Bad)).await.unwrap();
    let sets: Api<ReplicaSet> = Api::default_namespaced(store.client.clone());
    let marked = sets.get("web-2").await.unwrap();
    let copied =
        json!({"metadata": {"annotations": {labels::MARK: marked.annotations()[labels::MARK]}}});
    let patch = Patch::Merge(copied);
    sets.patch("web-1", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(store.history().await.find(1).unwrap().mark, None);
    assert_eq!(store.last_good().await, Some(1));
}

#[tokio::test]
async fn the_history_names_a_rollback_after_a_later_mark() {
    let store = Store::open(Objects::default()).await;
    store.act(rollback(Some(2))).await.unwrap();
    store.act(mark(3, Verdict::Bad)).await.unwrap();
    store.act(mark(1, Verdict::Bad)).await.unwrap();
    let found = store.history().await;
    let cause = found.current().unwrap().cause.clone().unwrap();
    assert_eq!((found.current, cause.action), (2, Action::Rollback));
}

#[tokio::test]
async fn a_restart_is_named_and_is_no_target_of_a_rollback() {
    let store = Store::open(Objects::default()).await;
    let at = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-06T08:00:00Z"});
    let restart = json!({"spec": {"template": {"metadata": {"annotations": at}}}});
    let deployments: Api<Deployment> = Api::default_namespaced(store.client.clone());
    let params = PatchParams::default();
    let web = deployments
        .patch("web", &params, &Patch::Merge(restart))
        .await
        .unwrap();
    let mut template = serde_json::to_value(web.spec.unwrap().template).unwrap();
    template["metadata"]["labels"]["pod-template-hash"] = json!("4");
    let sets: Api<ReplicaSet> = Api::default_namespaced(store.client.clone());
    let mut set = sets.get("web-3").await.unwrap();
    set.metadata.resource_version = None;
    set.metadata.uid = None;
    set.metadata.name = Some("web-4".to_owned());
    let number = "deployment.kubernetes.io/revision".to_owned();
    set.annotations_mut().insert(number, "4".to_owned());
    let spec = set.spec.as_mut().unwrap();
    spec.selector.match_labels =
        serde_json::from_value(template["metadata"]["labels"].clone()).unwrap();
    spec.template = serde_json::from_value(template).unwrap();
    sets.create(&PostParams::default(), &set).await.unwrap();

    let found = store.history().await;
    assert_eq!(found.current, 4);
    let labels: Vec<&str> = found
        .known()
        .map(|it| it.content.as_ref().unwrap().label.as_str())
        .collect();
    assert_eq!(labels, ["web:1", "web:2", "web:3", "web:3, restart"]);
    let sides = compare::revisions(&found, (None, None), fixture::now()).unwrap();
    let shown = diff::diff(
        &sides.before.objects,
        &sides.after.objects,
        &diff::Options::default(),
    );
    let text = shown.changes_text();
    assert!(
        text.contains("restartedAt") && text.contains("2026-01-06T08:00:00Z"),
        "{text}"
    );
    assert_eq!(store.last_good().await, Some(2));
}

/// Returns a client for which the server denies one request: with status 403, or if the request is a review, with the
/// answer that the user does not have the right.
fn denying(client: &Client, method: http::Method, ends: &'static str) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let path = request.uri().path();
        let is_denied = request.method() == method && path.ends_with(ends);
        let client = inner.clone();
        async move {
            if !is_denied {
                return Ok::<_, tower::BoxError>(client.send(request).await?);
            }
            let status = kube::core::Status::failure("forbidden", "Forbidden").with_code(403);
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "metadata": {}, "spec": {}, "status": {"allowed": false},
            });
            let (code, body) = match ends.ends_with("reviews") {
                true => (201, serde_json::to_vec(&review)?),
                false => (403, serde_json::to_vec(&status)?),
            };
            let response = http::Response::builder().status(code);
            Ok(response.body(Body::from(body))?)
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_missing_right_is_named_with_the_object() {
    let store = Store::open(Objects::default()).await;
    let read = |ends| denying(&store.client, http::Method::GET, ends);
    let review = denying(
        &store.client,
        http::Method::POST,
        "selfsubjectaccessreviews",
    );
    for (client, expected) in [
        (
            read("deployments/web"),
            "cannot read the revisions of deploy/web in default: no role grants you the verb get on deployments",
        ),
        (
            read("replicasets"),
            "cannot read the revisions of deploy/web in default: no role grants you the verb list on replicasets",
        ),
        (
            review,
            "cannot change deploy/web in default: no role grants you the verb patch on deployments",
        ),
    ] {
        let denied = Store {
            client: client.clone(),
            _folder: tempfile::tempdir().unwrap(),
        };
        let refused = denied.plan(rollback(None)).await.unwrap_err();
        assert!(matches!(refused, SubjectError::Denied(_)), "{refused:?}");
        assert_eq!(refused.to_string(), expected);
        let read = revisions::read(&client, &in_store(), fixture::now()).await;
        if expected.contains("read") {
            assert_eq!(read.unwrap_err().to_string(), expected);
        } else {
            assert!(read.is_ok(), "the user may read");
        }
    }
}

#[tokio::test]
async fn a_user_who_may_not_create_events_changes_a_workload_again_and_again() {
    let store = Store::open(Objects::default()).await;
    let limited = Store {
        client: denying(&store.client, http::Method::POST, "/events"),
        _folder: tempfile::tempdir().unwrap(),
    };
    for number in 1..=2 {
        let done = limited.act(mark(number, Verdict::Bad)).await;
        let is_made = matches!(&done, Ok(Applied::Unrecorded(made, why))
            if *made == number && why.starts_with("its Event is not written"));
        assert!(is_made, "{done:?}");
    }
}

/// Returns whether the Deployment is paused, and the warnings of the plan that `verb` gave.
async fn act_and_read(store: &Store, verb: Verb) -> (bool, Vec<String>) {
    let plan = store.plan(verb).await.unwrap().plan;
    let change = &plan.changes[0];
    let done = apply(&store.client, &plan, change, &fixture::now).await;
    assert!(matches!(done, Ok(Applied::Done(_))), "{done:?}");
    let deployments: Api<Deployment> = Api::default_namespaced(store.client.clone());
    let paused = deployments.get("web").await.unwrap().spec.unwrap().paused;
    (paused == Some(true), change.warnings.clone())
}

/// Sets the status of the Deployment as after a complete rollout.
async fn complete(client: &Client) {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let web = deployments.get("web").await.unwrap();
    let replicas = web.spec.unwrap().replicas.unwrap_or(1);
    let status = Patch::Merge(json!({"status": {
        "observedGeneration": web.metadata.generation, "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
    }}));
    let params = PatchParams::default();
    deployments
        .patch_status("web", &params, &status)
        .await
        .unwrap();
}

#[tokio::test]
async fn undo_pauses_a_deployment_again_or_warns_that_it_does_not() {
    let freeze = || Verb::Pin {
        until: None,
        freeze: true,
    };
    let store = Store::open(Objects::default()).await;
    complete(&store.client).await;
    assert_eq!(act_and_read(&store, freeze()).await, (true, vec![]));
    let unpinned = act_and_read(&store, Verb::Unpin { hold: None }).await;
    assert_eq!(unpinned, (false, vec![]));
    assert_eq!(act_and_read(&store, Verb::Undo).await, (true, vec![]));
    // The hold is again the one that paused the Deployment.
    let unpinned = act_and_read(&store, Verb::Unpin { hold: None }).await;
    assert_eq!(unpinned, (false, vec![]));

    assert_eq!(act_and_read(&store, Verb::Undo).await, (true, vec![]));
    assert_eq!(act_and_read(&store, rollback(None)).await, (false, vec![]));
    let (paused, warnings) = act_and_read(&store, Verb::Undo).await;
    assert!(!paused);
    let command = "bowline pin deploy/web --freeze";
    assert!(warnings[0].contains(command), "{warnings:?}");
}

fn world() -> World {
    let mut world = crate::subjects::read_model();
    deployment(&mut world, "web", &["web:1", "web:2", "web:3"], 2);
    world
}

fn web() -> Key {
    Key::new("shop", "deploy/web")
}

#[test]
fn the_revision_before_the_current_one_is_restored() {
    let world = world();
    let row = world.workload(&web()).unwrap();
    assert_eq!(matrix::current(&world, row).unwrap().number, 3);
    assert_eq!(&*matrix::good(&world, row).unwrap().label, "rev 2 web:2");
}

#[test]
fn a_revision_that_is_published_again_leaves_its_old_number() {
    let mut world = world();
    // A rollback to revision 2 gives the ReplicaSet of revision 2 the new number 4.
    replica_set(&mut world, "web-2", "uid-web", 4, "web:2");
    let row = world.workload(&web()).unwrap();
    let numbers: Vec<i64> = world.workload_revisions(row).map(|it| it.number).collect();
    assert_eq!(numbers, [1, 3, 4]);
}

/// Applies the ReplicaSet of a revision as it is after Kubernetes gave it a new number.
fn renumbered(world: &mut World, name: &str, numbers: (i64, &str), image: &str) {
    let labels = json!({"app": "web"});
    let object = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-06T08:03:00Z",
            "annotations": {
                "deployment.kubernetes.io/revision": numbers.0.to_string(),
                "deployment.kubernetes.io/revision-history": numbers.1,
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web",
                "controller": true,
            }],
        },
        "spec": {"template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }},
    });
    let event = crate::engine::world::Event::Applied(serde_json::from_value(object).unwrap());
    rows::apply_revision::<ReplicaSet>(world, event, Source::REPLICA_SETS, &["template"]);
}

#[test]
fn the_age_of_a_revision_that_is_published_again_is_not_that_of_its_replica_set() {
    let mut world = world();
    let since = |world: &World| {
        let columns = subjects::matrix::columns(world, Some("shop"));
        let cell = subjects::matrix::cell(world, &columns, &web(), 0, Timestamp::UNIX_EPOCH);
        cell.unwrap().since.map(|since| since.to_string())
    };
    assert_eq!(since(&world).as_deref(), Some("2026-01-06T08:03:00Z"));
    // A rollback to revision 2 and its undo give the ReplicaSets the numbers 4 and 5.
    replica_set(&mut world, "web-2", "uid-web", 4, "web:2");
    assert_eq!(since(&world), None);
    renumbered(&mut world, "web-3", (5, "3"), "web:3");
    assert_eq!(since(&world), None);

    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:3"}]},
    });
    let hash = template::hash(&template);
    let operation = json!({
        "id": "one", "generation": 2, "action": "Undo", "at": "2026-01-06T09:00:00Z",
        "from": {"name": "rev 4 web:2", "hash": "other"}, "to": {"name": "rev 3 web:3", "hash": hash},
    });
    let condition = json!({
        "type": "Progressing", "reason": "NewReplicaSetAvailable",
        "lastUpdateTime": "2026-01-06T09:00:20Z",
    });
    for (annotations, conditions, expected) in [
        (
            json!({labels::OPERATION: operation.to_string()}),
            json!([]),
            "2026-01-06T09:00:00Z",
        ),
        (json!({}), json!([condition]), "2026-01-06T09:00:20Z"),
    ] {
        let object = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "annotations": annotations},
            "spec": {"replicas": 2, "template": template}, "status": {"conditions": conditions},
        });
        let event = crate::engine::world::Event::Applied(serde_json::from_value(object).unwrap());
        rows::apply::<Deployment>(&mut world, event, &DEPLOYMENT, Source::DEPLOYMENTS);
        assert_eq!(since(&world).as_deref(), Some(expected));
    }
}

#[test]
fn a_changed_revision_belongs_to_the_row_of_its_workload() {
    let world = world();
    let row = |source, name| {
        let row = world.workload_of(source, &Key::new("shop", name));
        row.map(|row| row.key.name.to_string())
    };
    let web = Some("deploy/web".to_owned());
    assert_eq!(row(Source::REPLICA_SETS, "web-1"), web);
    assert_eq!(row(Source::DEPLOYMENTS, "web"), web);
    assert_eq!(row(Source::DEPLOYMENTS, "api"), None);
}

#[test]
fn a_workload_without_an_environment_has_the_column_of_its_namespace() {
    let mut world = world();
    deployment(&mut world, "api", &["api:1"], 1);
    let columns = subjects::matrix::columns(&world, Some("shop"));
    let names: Vec<&str> = columns.names().iter().map(|name| &**name).collect();
    assert_eq!(names, ["shop"]);
    let api = Key::new("shop", "deploy/api");
    let cell = subjects::matrix::cell(&world, &columns, &api, 0, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(cell.health(), Health::Progressing);
    assert_eq!(cell.progress.unwrap().to_string(), "1/2");
    assert_eq!(cell.good, None);
}

#[tokio::test]
async fn holds_that_cannot_be_read_are_not_overwritten() {
    let store = Store::open(crate::api::store_setup().objects).await;
    let deployments: Api<Deployment> = Api::default_namespaced(store.client.clone());
    for broken in [
        "{{{not json",
        "null",
        r#"{"id": "h1"}"#,
        r#"[{"id": "h1", "owner": "bob", "since": "2026-12-19 10:00"}]"#,
    ] {
        let holds = json!({"metadata": {"annotations": {"bowline.dev/holds": broken}}});
        let patched = Patch::Merge(&holds);
        deployments
            .patch("web", &PatchParams::default(), &patched)
            .await
            .unwrap();
        let pin = Verb::Pin {
            until: None,
            freeze: false,
        };
        for verb in [pin, rollback(None), Verb::Undo] {
            let refused = store.plan(verb).await.err().map(|error| error.to_string());
            let why = refused.unwrap_or_default();
            let expected = "cannot read the annotation bowline.dev/holds";
            assert!(why.contains(expected), "{broken}: {why}");
        }
    }
}
