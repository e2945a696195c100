//! Records the change of a subject as a Kubernetes Event, for clusters where the kind AuditEntry is not installed.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, PostParams};

use crate::api::names;
use crate::api::operation::Operation;
use crate::engine::repeat::repeat;
use crate::engine::subject::Kind;

/// Writes an Event about the newest change of a subject. The Event's name contains the operation id, so a retry does
/// not write a second Event.
pub(super) async fn record(
    events: &Api<Event>,
    kind: &'static Kind,
    object: &DynamicObject,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let Some(operation) = kind.operation(object) else {
        return Ok(());
    };
    let event = event(kind, object, &operation, now);
    let params = PostParams::default();
    match repeat(|| events.create(&params, &event)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

fn event(kind: &Kind, object: &DynamicObject, operation: &Operation, now: Timestamp) -> Event {
    let resource = (kind.resource)();
    let id: String = operation.id.chars().take(16).collect();
    let mut event = Event {
        action: Some(format!("{:?}", operation.action)),
        reason: Some(format!("{:?}", operation.action)),
        message: Some(message(operation)),
        type_: Some("Normal".to_owned()),
        count: Some(1),
        first_timestamp: Some(operation.at.clone()),
        last_timestamp: Some(Time(now)),
        source: Some(EventSource {
            component: Some("bowline".to_owned()),
            host: None,
        }),
        involved_object: ObjectReference {
            api_version: Some(resource.api_version),
            kind: Some(resource.kind),
            name: Some(object.name_any()),
            namespace: object.namespace(),
            uid: object.uid(),
            ..ObjectReference::default()
        },
        ..Event::default()
    };
    event.metadata.name = Some(names::subdomain(&format!("{}.{id}", object.name_any())));
    event.metadata.namespace = object.namespace();
    event
}

fn message(operation: &Operation) -> String {
    let actor = operation.actor.as_deref().unwrap_or("unknown user");
    let name = |content: &Option<crate::api::bowline::audit::ContentRef>| {
        content.as_ref().map(|content| content.name.clone())
    };
    let content = match (name(&operation.from), name(&operation.to)) {
        (Some(from), Some(to)) if from != to => format!(": {from} -> {to}"),
        (_, Some(to)) => format!(": {to}"),
        _ => String::new(),
    };
    let reason = operation.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("{:?} by {actor}{content}{reason}", operation.action)
}
