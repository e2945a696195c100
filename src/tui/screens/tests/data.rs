//! Test data for screens: a shop with sizes, images, owners, snapshots and an audit trail.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::PartialObjectMeta;
use serde_json::{Value, json};

use crate::api::bowline::audit::{Action, AuditEntry, ContentRef};
use crate::api::{ComponentEnvSnapshot, Release, ReleasePin, labels};
use crate::effect::Record;
use crate::engine::audit::{self, OnRelease, Recorder};
use crate::engine::plan::Asked;
use crate::engine::subject::dynamic;
use crate::engine::world::{Event, World};
use crate::fixture::{at, outcomes, pin, release, unready};
use crate::snapshot_test::fleet;
use crate::subjects::release_pin::actions::gc::{self, Gc};
use crate::subjects::release_pin::kind::KIND;
use crate::subjects::service::PlannedCommand;

fn dressed(component: &str, version: &str, minute: u8) -> PartialObjectMeta<Release> {
    let mut made = release(component, version, minute);
    let size = 31_000 + 700 * version.bytes().map(usize::from).sum::<usize>() % 9_000;
    let image = format!("registry/{component}:{}", version.trim_start_matches('v'));
    let annotations = made.annotations_mut();
    annotations.insert(labels::SIZE.into(), size.to_string());
    annotations.insert(labels::IMAGES.into(), image);
    annotations.insert(labels::CONTENT_HASH.into(), "9f1c2ab4".repeat(8));
    made
}

fn snapshot(
    component: &str,
    environment: &str,
    number: u8,
    size: u32,
) -> PartialObjectMeta<ComponentEnvSnapshot> {
    let name = format!("{component}-{environment}-{number}");
    serde_json::from_value(json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {
            "name": name, "namespace": "shop", "uid": name,
            "labels": {labels::COMPONENT: component, labels::ENVIRONMENT: environment},
            "creationTimestamp": format!("2026-11-{:02}T08:00:00Z", 10 + number),
            "annotations": {labels::SIZE: size.to_string()},
        },
    }))
    .unwrap()
}

/// Returns the fleet with all data that lists show.
pub fn shop() -> World {
    let mut world = fleet();
    for (component, versions) in [
        ("checkout-service", &["v1.2.1", "v1.2.3", "v1.2.4"][..]),
        ("cart", &["v0.8.6", "v0.8.7", "v0.9.0"]),
        ("ledger", &["v3.0.8", "v3.0.9", "v3.1.0"]),
        ("search", &["v7.6.4", "v7.7.0", "v7.7.1"]),
    ] {
        for version in versions {
            let minute = if *version == "v1.2.1" { 1 } else { 3 };
            world.releases(Event::Applied(dressed(component, version, minute)));
        }
    }
    for (month, version) in (3..).zip(["v1.0.0", "v1.0.1", "v1.1.0", "v1.1.1", "v1.1.2", "v1.1.3"])
    {
        let mut old = dressed("checkout-service", version, 0);
        let made: Timestamp = format!("2026-{month:02}-03T08:00:00Z").parse().unwrap();
        old.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(made));
        world.releases(Event::Applied(old));
    }
    let mut owned = pin("cart", "production", "v0.8.7");
    let annotations = owned.annotations_mut();
    annotations.insert(
        "argocd.argoproj.io/tracking-id".into(),
        "shop:openchoreo.dev/ReleasePin:shop/cart-production".into(),
    );
    annotations.insert(labels::CHANGED_BY.into(), "argocd".into());
    world.pins(Event::Applied(owned));
    let mut broken = outcomes(
        pin("checkout-service", "production", "v1.2.3"),
        json!([
            {"generation": 1, "release": "checkout-service-v1.2.1", "since": "2026-11-08T13:38:00Z", "until": "2026-11-17T13:38:00Z", "healthy": true},
            {"generation": 2, "release": "checkout-service-v1.2.3", "since": "2026-11-17T13:38:00Z", "healthy": false},
        ]),
    );
    broken
        .annotations_mut()
        .insert(labels::CHANGED_BY.into(), "ana".into());
    if let Some(status) = &mut broken.status {
        status.snapshot = Some("checkout-service-production-2".into());
    }
    let message = "2 of 5 ready, web CrashLoopBackOff";
    world.pins(Event::Applied(unready(
        broken, "Degraded", message, "13:40:00",
    )));
    for (component, environment, number, size) in [
        ("checkout-service", "production", 1, 61_200),
        ("checkout-service", "production", 2, 62_100),
        ("checkout-service", "staging", 2, 62_100),
        ("cart", "production", 1, 28_900),
        ("search", "staging", 3, 140_300),
    ] {
        world.snapshots(Event::Applied(snapshot(
            component,
            environment,
            number,
            size,
        )));
    }
    world
}

/// A change of a ReleasePin, as (time, user, action, release, reason).
type Moved = (
    &'static str,
    Option<&'static str>,
    Action,
    &'static str,
    Option<&'static str>,
);

fn chain(component: &str, environment: &str, moves: &[Moved]) -> Vec<AuditEntry> {
    let mut entries: Vec<AuditEntry> = Vec::new();
    let mut from: Option<String> = None;
    for (generation, (when, who, action, version, why)) in (1..).zip(moves) {
        let mut pin: ReleasePin = pin(component, environment, version);
        let to = pin.spec.release_ref.name.clone();
        pin.metadata.generation = Some(generation);
        let operation = json!({
            "id": format!("op-{component}-{generation}"), "generation": generation, "action": action,
            "at": at(when), "reason": why,
            "from": from.as_deref().map(ContentRef::named), "to": ContentRef::named(&to),
        });
        let mut operation: Value = operation;
        if let Some(map) = operation.as_object_mut() {
            map.retain(|_, value| !value.is_null());
        }
        let annotations = pin.annotations_mut();
        annotations.insert(labels::OPERATION.into(), operation.to_string());
        annotations.extend(who.map(|who| (labels::CHANGED_BY.to_owned(), who.to_owned())));
        let recorder = Recorder {
            by: who.unwrap_or("system:serviceaccount:bowline:controller"),
            now: at(when),
            known: &[],
        };
        let missing = audit::missing(&KIND, &dynamic(&pin), entries.last(), &recorder).unwrap();
        entries.extend(missing);
        from = Some(to);
    }
    entries
}

/// Returns the audit trail. If `rewritten` is true, one entry was changed without computing its hash again, as by an
/// attacker.
pub fn record(rewritten: bool) -> Box<Record> {
    let mut entries = chain(
        "checkout-service",
        "production",
        &[
            ("08:00:00", Some("tom"), Action::Deploy, "v1.2.1", None),
            (
                "13:38:00",
                Some("ana"),
                Action::Promote,
                "v1.2.3",
                Some("INC-42 hotfix"),
            ),
        ],
    );
    if rewritten && let Some(first) = entries.first_mut() {
        first.spec.actor = Some("mallory".into());
    }
    entries.extend(chain(
        "cart",
        "staging",
        &[
            (
                "09:00:00",
                Some("ana"),
                Action::Deploy,
                "v0.8.7",
                Some("weekly"),
            ),
            ("11:30:00", None, Action::Edit, "v0.9.0", None),
        ],
    ));
    let marked = OnRelease {
        release: ContentRef::named("checkout-service-v1.2.2"),
        action: Action::MarkBad,
        operation: Some("op-mark"),
        actor: Some("tom"),
        reason: Some("leaks connections"),
    };
    let recorder = Recorder {
        by: "tom",
        now: at("09:30:00"),
        known: &[],
    };
    entries.push(audit::of_release(
        "checkout-service",
        &marked,
        None,
        &recorder,
    ));
    for entry in &mut entries {
        entry.metadata.namespace = Some("shop".into());
    }
    let verdict = audit::verify(&[], &entries);
    Box::new(Record { entries, verdict })
}

/// Returns the plan of a garbage collection.
pub fn collection(world: &World, now: Timestamp) -> PlannedCommand {
    let asked = Asked {
        operation: "op-gc".into(),
        now,
        user: "ana".into(),
        reason: None,
        namespace: "shop".into(),
    };
    PlannedCommand::Collection(gc::plan(world, &Gc::default(), &asked).unwrap())
}
