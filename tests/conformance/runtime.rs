//! The runtime of the crate kube (watchers, reflectors, controllers) must work on the embedded API as on a
//! real cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Event as CoreEvent},
        events::v1::Event,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, CustomResource, Resource, ResourceExt,
    api::{
        DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent,
        WatchParams,
    },
    core::PartialObjectMeta,
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        events::{Event as NewEvent, EventType, Recorder, Reporter},
        finalizer::{Event as FinalizerEvent, finalizer},
        reflector,
        wait::{await_condition, conditions},
        watcher,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{PATIENCE, Target},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(the_typed_api),
        case(errors_are_typed),
        case(entry_makes_and_changes),
        case(entry_conflicts),
        case(a_typed_watch),
        case(a_watcher_lists_in_pages_and_watches),
        case(a_watcher_streams_its_list),
        case(a_metadata_watcher),
        case(a_reflector_keeps_a_store),
        case(a_controller_reconciles),
        case(a_controller_sees_what_it_owns),
        case(a_finalizer_cleans_up),
        case(a_recorder_publishes),
        case(a_condition_is_awaited),
        case(a_deletion_is_awaited),
        case(server_side_apply_with_types),
        case(scale_and_status_with_types),
        case(delete_collection_with_types),
    ]
}

/// The spec of a widget, with the fields that these cases use.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "conformance.bowline.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    schema = "disabled",
    status = "WidgetStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WidgetSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
}

/// The status of a widget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WidgetStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed: Option<i64>,
}

impl Target {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn widget(name: &str, color: &str) -> Widget {
    Widget::new(
        name,
        WidgetSpec {
            color: Some(color.to_owned()),
            replicas: None,
        },
    )
}

fn config(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("k".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| panic!("{what} did not happen"))
}

async fn the_typed_api(t: Target) -> Outcome {
    let widgets: Api<Widget> = t.api();
    let made = widgets
        .create(&PostParams::default(), &widget("a", "blue"))
        .await?;
    assert_eq!(made.spec.color.as_deref(), Some("blue"));
    assert_eq!(made.metadata.generation, Some(1));
    let mut changed = widgets.get("a").await?;
    changed.spec.color = Some("green".to_owned());
    let replaced = widgets
        .replace("a", &PostParams::default(), &changed)
        .await?;
    assert_eq!(replaced.metadata.generation, Some(2));
    let list = widgets.list(&ListParams::default()).await?;
    assert_eq!(list.items.len(), 1);
    let metadata = widgets.get_metadata("a").await?;
    assert_eq!(metadata.metadata.uid, made.metadata.uid);
    assert!(widgets.get_opt("nobody").await?.is_none());
    widgets.delete("a", &DeleteParams::default()).await?;
    assert!(widgets.get_opt("a").await?.is_none());
    Ok(())
}

async fn errors_are_typed(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    let Err(kube::Error::Api(status)) = api.get("a").await else {
        return Err("expected an error of the API".into());
    };
    assert!(status.is_not_found(), "{status:?}");
    let made = api
        .create(&PostParams::default(), &config("a", "1"))
        .await?;
    let Err(kube::Error::Api(status)) = api.create(&PostParams::default(), &config("a", "1")).await
    else {
        return Err("expected an error of the API".into());
    };
    assert!(status.is_already_exists(), "{status:?}");
    let mut changed = made.clone();
    changed.data = None;
    api.replace("a", &PostParams::default(), &changed).await?;
    let Err(kube::Error::Api(status)) = api.replace("a", &PostParams::default(), &made).await
    else {
        return Err("expected an error of the API".into());
    };
    assert!(status.is_conflict(), "{status:?}");
    Ok(())
}

async fn entry_makes_and_changes(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    let mut entry = api.entry("a").await?.or_insert(|| config("a", "1"));
    entry.commit(&PostParams::default()).await?;
    let mut entry = api
        .entry("a")
        .await?
        .and_modify(|object| object.data = Some(BTreeMap::from([("k".to_owned(), "2".to_owned())])))
        .or_insert(|| config("a", "never"));
    entry.commit(&PostParams::default()).await?;
    let stored = api.get("a").await?;
    assert_eq!(stored.data, config("a", "2").data);
    Ok(())
}

async fn entry_conflicts(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    let mut first = api.entry("a").await?.or_insert(|| config("a", "1"));
    let mut second = api.entry("a").await?.or_insert(|| config("a", "2"));
    first.commit(&PostParams::default()).await?;
    let lost = second.commit(&PostParams::default()).await;
    assert!(
        matches!(&lost, Err(kube::api::entry::CommitError::Save(kube::Error::Api(status))) if status.is_already_exists()),
        "{lost:?}"
    );
    Ok(())
}

async fn a_typed_watch(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    let version = t.now().await;
    let stream = api
        .watch(&WatchParams::default().timeout(30), &version)
        .await?;
    let mut stream = std::pin::pin!(stream);
    api.create(&PostParams::default(), &config("a", "1"))
        .await?;
    let event = within("an event", stream.try_next()).await?;
    assert!(
        matches!(&event, Some(WatchEvent::Added(object)) if object.name_any() == "a"),
        "{event:?}"
    );
    Ok(())
}

/// Runs a watcher through its first list, and through one event of each type.
async fn followed(t: Target, settings: watcher::Config) -> Outcome {
    let api: Api<Widget> = t.api();
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &widget(name, "red"))
            .await?;
    }
    let mut events = std::pin::pin!(watcher(api.clone(), settings));
    let wanted = BTreeSet::from(["a", "b", "c"].map(str::to_owned));
    let mut initial = BTreeSet::new();
    let mut listed = false;
    // A streamed list may start at an older version. The missing objects then follow as events.
    while !listed || initial != wanted {
        match within("the first list", events.try_next()).await? {
            Some(watcher::Event::Init) => {}
            Some(watcher::Event::InitApply(object)) if !listed => {
                initial.insert(object.name_any());
            }
            Some(watcher::Event::Apply(object)) if listed => {
                initial.insert(object.name_any());
            }
            Some(watcher::Event::InitDone) => listed = true,
            other => return Err(format!("unexpected in the first list: {other:?}").into()),
        }
    }
    api.patch(
        "a",
        &PatchParams::default(),
        &Patch::Merge(json!({"spec": {"color": "blue"}})),
    )
    .await?;
    let event = within("the change", events.try_next()).await?;
    assert!(
        matches!(&event, Some(watcher::Event::Apply(object)) if object.spec.color.as_deref() == Some("blue")),
        "{event:?}"
    );
    api.delete("b", &DeleteParams::default()).await?;
    let event = within("the deletion", events.try_next()).await?;
    assert!(
        matches!(&event, Some(watcher::Event::Delete(object)) if object.name_any() == "b"),
        "{event:?}"
    );
    Ok(())
}

async fn a_watcher_lists_in_pages_and_watches(t: Target) -> Outcome {
    followed(t, watcher::Config::default().page_size(2)).await
}

async fn a_watcher_streams_its_list(t: Target) -> Outcome {
    followed(t, watcher::Config::default().streaming_lists()).await
}

async fn a_metadata_watcher(t: Target) -> Outcome {
    let api: Api<Widget> = t.api();
    let mut labelled = widget("a", "blue");
    labelled.labels_mut().insert("l".to_owned(), "1".to_owned());
    api.create(&PostParams::default(), &labelled).await?;
    let api: Api<PartialObjectMeta<Widget>> = t.api();
    let stream = watcher(api, watcher::Config::default().labels("l=1")).applied_objects();
    let mut stream = std::pin::pin!(stream);
    let object = within("the object", stream.try_next())
        .await?
        .ok_or("the watcher ended")?;
    assert_eq!(object.name_any(), "a");
    assert_eq!(object.labels().get("l").map(String::as_str), Some("1"));
    Ok(())
}

async fn a_reflector_keeps_a_store(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    api.create(&PostParams::default(), &config("a", "1"))
        .await?;
    let (store, writer) = reflector::store();
    let mut stream = std::pin::pin!(
        reflector(writer, watcher(api.clone(), watcher::Config::default())).touched_objects()
    );
    within("the first object", stream.try_next()).await?;
    let follow = async {
        api.create(&PostParams::default(), &config("b", "2"))
            .await?;
        while store.state().len() < 2 {
            stream.try_next().await.map_err(|error| error.to_string())?;
        }
        api.delete("a", &DeleteParams::default()).await?;
        while store.state().len() > 1 {
            stream.try_next().await.map_err(|error| error.to_string())?;
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    within("the store's growth and shrinking", follow)
        .await
        .map_err(|error| error.to_string())?;
    let left = store.find(|object| object.name_any() == "b");
    assert_eq!(
        left.and_then(|object| object.data.clone()),
        config("b", "2").data
    );
    Ok(())
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct ReconcileError(#[from] kube::Error);

async fn report(object: Arc<Widget>, client: Arc<kube::Client>) -> Result<Action, ReconcileError> {
    let api: Api<Widget> = Api::namespaced(
        kube::Client::clone(&client),
        &object.namespace().unwrap_or_default(),
    );
    let status = json!({"status": {"phase": "Done", "observed": object.metadata.generation}});
    api.patch_status(
        &object.name_any(),
        &PatchParams::default(),
        &Patch::Merge(status),
    )
    .await?;
    Ok(Action::await_change())
}

fn observed(generation: i64) -> impl Fn(Option<&Widget>) -> bool {
    move |object: Option<&Widget>| {
        object
            .and_then(|object| object.status.as_ref())
            .is_some_and(|status| status.observed == Some(generation))
    }
}

async fn a_controller_reconciles(t: Target) -> Outcome {
    let api: Api<Widget> = t.api();
    let controller = Controller::new(api.clone(), watcher::Config::default())
        .run(
            report,
            |_, _, _| Action::requeue(Duration::from_millis(100)),
            Arc::new(t.client.clone()),
        )
        .for_each(|_| std::future::ready(()));
    let running = tokio::spawn(controller);
    api.create(&PostParams::default(), &widget("a", "red"))
        .await?;
    within(
        "the first report",
        await_condition(api.clone(), "a", observed(1)),
    )
    .await?;
    api.patch(
        "a",
        &PatchParams::default(),
        &Patch::Merge(json!({"spec": {"color": "blue"}})),
    )
    .await?;
    within(
        "the second report",
        await_condition(api.clone(), "a", observed(2)),
    )
    .await?;
    running.abort();
    assert_eq!(api.get("a").await?.metadata.generation, Some(2));
    Ok(())
}

async fn keep_child(
    object: Arc<Widget>,
    client: Arc<kube::Client>,
) -> Result<Action, ReconcileError> {
    let api: Api<ConfigMap> = Api::namespaced(
        kube::Client::clone(&client),
        &object.namespace().unwrap_or_default(),
    );
    let mut child = config(&object.name_any(), "kept");
    child.metadata.owner_references = object.controller_owner_ref(&()).map(|owner| vec![owner]);
    api.patch(
        &object.name_any(),
        &PatchParams::apply("keeper").force(),
        &Patch::Apply(&child),
    )
    .await?;
    Ok(Action::await_change())
}

async fn a_controller_sees_what_it_owns(t: Target) -> Outcome {
    let owners: Api<Widget> = t.api();
    let children: Api<ConfigMap> = t.api();
    let controller = Controller::new(owners.clone(), watcher::Config::default())
        .owns(children.clone(), watcher::Config::default())
        .run(
            keep_child,
            |_, _, _| Action::requeue(Duration::from_millis(100)),
            Arc::new(t.client.clone()),
        )
        .for_each(|_| std::future::ready(()));
    let running = tokio::spawn(controller);
    owners
        .create(&PostParams::default(), &widget("a", "red"))
        .await?;
    within(
        "the child",
        await_condition(children.clone(), "a", conditions::is_created()),
    )
    .await?;
    let first = children.get("a").await?.uid().unwrap_or_default();
    children.delete("a", &DeleteParams::default()).await?;
    let replaced = move |object: Option<&ConfigMap>| {
        object.is_some_and(|object| object.uid().is_some_and(|uid| uid != first))
    };
    within(
        "another child",
        await_condition(children.clone(), "a", replaced),
    )
    .await?;
    running.abort();
    Ok(())
}

async fn a_finalizer_cleans_up(t: Target) -> Outcome {
    const NAME: &str = "conformance.bowline.dev/cleanup";
    let api: Api<ConfigMap> = t.api();
    let steps: Mutex<Vec<&'static str>> = Mutex::default();
    let step = async |object: ConfigMap| {
        finalizer(&api, NAME, Arc::new(object), async |event| {
            let name = match event {
                FinalizerEvent::Apply(_) => "apply",
                FinalizerEvent::Cleanup(_) => "cleanup",
            };
            steps.lock().expect("nobody panicked with it").push(name);
            Ok::<_, std::convert::Infallible>(Action::await_change())
        })
        .await
    };
    step(
        api.create(&PostParams::default(), &config("a", "1"))
            .await?,
    )
    .await?;
    let held = api.get("a").await?;
    assert_eq!(held.finalizers(), [NAME]);
    step(held).await?;
    let deleting = api.delete("a", &DeleteParams::default()).await?;
    assert!(deleting.is_left(), "{deleting:?}");
    step(api.get("a").await?).await?;
    assert!(api.get_opt("a").await?.is_none());
    assert_eq!(
        *steps.lock().expect("nobody panicked with it"),
        ["apply", "cleanup"]
    );
    Ok(())
}

async fn a_recorder_publishes(t: Target) -> Outcome {
    let api: Api<Widget> = t.api();
    let object = api
        .create(&PostParams::default(), &widget("a", "red"))
        .await?;
    let reporter = Reporter {
        controller: "conformance".to_owned(),
        instance: Some("one".to_owned()),
    };
    let recorder = Recorder::new(t.client.clone(), reporter);
    let event = NewEvent {
        type_: EventType::Normal,
        reason: "Promoted".to_owned(),
        note: Some("From here to there.".to_owned()),
        action: "Promote".to_owned(),
        secondary: None,
    };
    recorder.publish(&event, &object.object_ref(&())).await?;
    // Publishing the same event again increments its counter and creates no new object.
    recorder.publish(&event, &object.object_ref(&())).await?;
    let events: Api<Event> = t.api();
    let list = events
        .list(&ListParams::default().fields("regarding.name=a"))
        .await?;
    let [published] = list.items.as_slice() else {
        return Err(format!("expected one event, got {:?}", list.items).into());
    };
    assert_eq!(published.reason.as_deref(), Some("Promoted"));
    assert_eq!(published.note.as_deref(), Some("From here to there."));
    assert_eq!(
        published.series.as_ref().map(|series| series.count),
        Some(2)
    );
    let core: Api<CoreEvent> = t.api();
    let same_event = core.get(&published.name_any()).await?;
    assert_eq!(same_event.message, published.note);
    assert_eq!(same_event.involved_object.name.as_deref(), Some("a"));
    Ok(())
}

async fn a_condition_is_awaited(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    let waiting = {
        let api = api.clone();
        tokio::spawn(async move { await_condition(api, "a", conditions::is_created()).await })
    };
    api.create(&PostParams::default(), &config("a", "1"))
        .await?;
    let found = within("the condition", waiting).await??;
    assert_eq!(found.map(|object| object.name_any()).as_deref(), Some("a"));
    Ok(())
}

async fn a_deletion_is_awaited(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    let made = api
        .create(&PostParams::default(), &config("a", "1"))
        .await?;
    let uid = made.uid().unwrap_or_default();
    let waiting = {
        let api = api.clone();
        tokio::spawn(async move { await_condition(api, "a", conditions::is_deleted(&uid)).await })
    };
    let settings = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    let answer = api.delete("a", &settings).await?;
    assert!(answer.is_right(), "{answer:?}");
    within("the condition", waiting).await??;
    Ok(())
}

async fn server_side_apply_with_types(t: Target) -> Outcome {
    let api: Api<Widget> = t.api();
    let settings = PatchParams::apply("one");
    let made = api
        .patch("a", &settings, &Patch::Apply(&widget("a", "blue")))
        .await?;
    assert_eq!(made.spec.color.as_deref(), Some("blue"));
    let refused = api
        .patch(
            "a",
            &PatchParams::apply("two"),
            &Patch::Apply(&widget("a", "green")),
        )
        .await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.is_conflict()),
        "{refused:?}"
    );
    let forced = api
        .patch(
            "a",
            &PatchParams::apply("two").force(),
            &Patch::Apply(&widget("a", "green")),
        )
        .await?;
    assert_eq!(forced.spec.color.as_deref(), Some("green"));
    Ok(())
}

async fn scale_and_status_with_types(t: Target) -> Outcome {
    let api: Api<Widget> = t.api();
    let mut object = widget("a", "blue");
    object.spec.replicas = Some(2);
    api.create(&PostParams::default(), &object).await?;
    let scale = api.get_scale("a").await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
    api.patch_scale(
        "a",
        &PatchParams::default(),
        &Patch::Merge(json!({"spec": {"replicas": 3}})),
    )
    .await?;
    let mut stored = api.get_status("a").await?;
    assert_eq!(stored.spec.replicas, Some(3));
    stored.status = Some(WidgetStatus {
        phase: Some("Done".to_owned()),
        observed: None,
    });
    let reported = api
        .replace_status("a", &PostParams::default(), &stored)
        .await?;
    assert_eq!(reported.status, stored.status);
    Ok(())
}

async fn delete_collection_with_types(t: Target) -> Outcome {
    let api: Api<ConfigMap> = t.api();
    for name in ["a", "b"] {
        api.create(&PostParams::default(), &config(name, "1"))
            .await?;
    }
    let deleted = api
        .delete_collection(
            &DeleteParams::default(),
            &ListParams::default().fields("metadata.name=a"),
        )
        .await?;
    let names: Vec<String> = deleted
        .left()
        .into_iter()
        .flat_map(|list| list.items)
        .map(|object| object.name_any())
        .collect();
    assert_eq!(names, ["a"]);
    assert_eq!(api.list(&ListParams::default()).await?.items.len(), 1);
    Ok(())
}
