//! Builders for tests: read models with components, environments and releases.

#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PartialObjectMeta, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use super::READ_BY_GC;
use super::kind::{KIND, RELEASE_REF};
use crate::api::bowline::audit::ContentRef;
use crate::api::{self, Release, ReleasePin};
use crate::engine::plan::{Change, Field};
use crate::engine::subject::{Expected, SubjectRef};
use crate::engine::world::{Event, Key, Source, World};

/// The time that tests use as the current time.
pub const NOW: &str = "2026-11-17T14:00:00Z";

/// Returns the time that tests use as the current time.
pub fn now() -> Timestamp {
    at("14:00:00")
}

/// Returns a time on the day that tests use as today.
pub fn at(time: &str) -> Timestamp {
    format!("2026-11-17T{time}Z").parse().unwrap()
}

/// Returns a key in the namespace that tests use.
pub fn key(name: &str) -> Key {
    Key::new("shop", name)
}

/// Returns a change that writes nothing, because the ReleasePin already has this release.
pub fn change(component: &str, environment: &str, release: &str) -> Change {
    let name = api::names::pin(component, environment);
    Change {
        subject: SubjectRef::new(&KIND, key(&name)),
        name: component.to_owned(),
        environment: environment.to_owned(),
        is_production: false,
        requires_reason: false,
        expected: Some(Expected {
            uid: String::new(),
            number: 1,
            fields: None,
        }),
        fields: vec![Field::set(RELEASE_REF, release)],
        holds_before: Vec::new(),
        holds: Vec::new(),
        claims: Vec::new(),
        from: Some(ContentRef::named(release)),
        to: ContentRef::named(release),
        restored_from: None,
        rendered_hash: None,
        unchanged: true,
        facts: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Returns a read model with the environments development, staging and production in one pipeline.
pub fn world() -> World {
    let mut world = crate::subjects::read_model();
    for name in ["development", "staging", "production"] {
        let environment = serde_json::from_value(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Environment",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"dataPlaneRef": {"name": "d"}, "namespace": name, "isProduction": name == "production"},
        }));
        world.environments(Event::Applied(environment.unwrap()));
    }
    world.pipelines(Event::Applied(pipeline(&[
        ("development", "staging"),
        ("staging", "production"),
    ])));
    world.all_listed(&READ_BY_GC);
    world
}

/// Returns a pipeline with these promotion paths.
pub fn pipeline(paths: &[(&str, &str)]) -> crate::api::DeploymentPipeline {
    let paths = paths.iter().map(|(from, to)| {
        json!({"sourceEnvironmentRef": {"name": from}, "targetEnvironmentRefs": [{"name": to}]})
    });
    serde_json::from_value(json!({
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "DeploymentPipeline",
        "metadata": {"name": "default", "namespace": "shop"},
        "spec": {"promotionPaths": paths.collect::<Vec<_>>()},
    }))
    .unwrap()
}

/// Returns the release `{component}-{version}`, created yesterday at this minute.
pub fn release(component: &str, version: &str, minute: u8) -> PartialObjectMeta<Release> {
    let name = format!("{component}-{version}");
    serde_json::from_value(json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {
            "name": name, "namespace": "shop", "uid": name,
            "labels": {"openchoreo.dev/component": component},
            "creationTimestamp": format!("2026-11-16T08:{minute:02}:00Z"),
            "annotations": {"bowline.dev/size": "4711", "bowline.dev/version": version},
        },
    }))
    .unwrap()
}

/// Returns a ReleasePin whose status says that the controller has observed it and that it is ready.
pub fn pin(component: &str, environment: &str, version: &str) -> ReleasePin {
    let release = format!("{component}-{version}");
    serde_json::from_value(json!({
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
        "metadata": {
            "name": format!("{component}-{environment}"), "namespace": "shop",
            "uid": format!("{component}-{environment}"), "generation": 1,
            "labels": {"openchoreo.dev/component": component, "openchoreo.dev/environment": environment},
        },
        "spec": {"component": component, "environment": environment, "releaseRef": {"name": release}},
        "status": {
            "appliedRelease": release, "observedGeneration": 1,
            "outcomes": [{"generation": 1, "release": release, "since": "2026-11-17T10:00:00Z", "healthy": true}],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ReconcileSuccess",
                "message": "", "lastTransitionTime": "2026-11-17T10:01:00Z",
            }],
        },
    }))
    .unwrap()
}

/// Makes a ReleasePin not ready since a time.
pub fn unready(mut pin: ReleasePin, reason: &str, message: &str, since: &str) -> ReleasePin {
    if let Some(status) = &mut pin.status {
        status.conditions = serde_json::from_value(json!([{
            "type": "Ready", "status": "False", "reason": reason,
            "message": message, "lastTransitionTime": at(since),
        }]))
        .unwrap();
    }
    pin
}

/// Sets the outcomes in the status of a ReleasePin.
pub fn outcomes(mut pin: ReleasePin, outcomes: Value) -> ReleasePin {
    if let Some(status) = &mut pin.status {
        status.outcomes = serde_json::from_value(outcomes).unwrap();
        let last = status.outcomes.last().map_or(1, |last| last.generation);
        status.observed_generation = Some(last);
        pin.metadata.generation = Some(last);
    }
    pin
}

pub fn held(mut pin: ReleasePin, holds: Value) -> ReleasePin {
    pin.spec.holds = serde_json::from_value(holds).unwrap();
    pin
}

pub fn labelled<K: ResourceExt>(mut object: K, name: &str, value: &str) -> K {
    object
        .labels_mut()
        .insert(name.to_owned(), value.to_owned());
    object
}

pub fn marked_bad(mut release: PartialObjectMeta<Release>) -> PartialObjectMeta<Release> {
    let mark = json!({"verdict": "Bad", "by": "tom", "at": NOW, "note": "leaks"}).to_string();
    release
        .annotations_mut()
        .insert("bowline.dev/mark".to_owned(), mark);
    release
}

/// Deletes the CRDs of some sources from a server.
pub async fn remove_kinds(client: &kube::Client, sources: &[Source]) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let read_model = crate::subjects::read_model();
    for source in sources {
        let kind = read_model.kind(*source).unwrap();
        let name = format!("{}.{}", kind.plural, kind.group);
        let now = DeleteParams::default();
        let deleted = definitions.delete(&name, &now).await.unwrap();
        // The server deletes a CRD only after all its objects are deleted.
        if let Some(definition) = deleted.left() {
            let uid = definition.uid().unwrap();
            let gone = conditions::is_deleted(&uid);
            let gone = await_condition(definitions.clone(), &name, gone);
            gone.await.unwrap();
        }
    }
}

/// Installs the CRDs of bowline on a server.
pub async fn install_kinds(client: &kube::Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let manager = PatchParams::apply("tests").force();
    for definition in api::crds() {
        let name = definition.metadata.name.clone().unwrap();
        let patch = Patch::Apply(&definition);
        definitions.patch(&name, &manager, &patch).await.unwrap();
    }
}
