//! Kinds that are served in two versions which name the same things differently.
//!
//! One form is stored: events as the core group has them, autoscalers as autoscaling/v2 has
//! them. Custom kinds are never converted: their definitions allow the strategy `None` only.
//! What autoscaling/v1 cannot say (other metrics than the CPU's, behaviour) it does not show,
//! where a real server puts it into annotations.

use serde_json::{Map, Value, json};

/// The same field in the core group and in events.k8s.io.
const EVENT: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

const NEWER_EVENT: (&str, &str) = ("events.k8s.io/v1", "Event");
const OLDER_SCALER: (&str, &str) = ("autoscaling/v1", "HorizontalPodAutoscaler");

/// The place of a group's resource in the store; two groups can share one.
pub(super) fn storage(group: &str, plural: &str) -> String {
    match (group, plural) {
        ("events.k8s.io", "events") => "/events".to_owned(),
        (group, plural) => format!("{group}/{plural}"),
    }
}

/// Whether a version is stored in another form than it is served in.
pub(super) fn differs(api_version: &str, kind: &str) -> bool {
    [NEWER_EVENT, OLDER_SCALER].contains(&(api_version, kind))
}

/// Turns an object of a version into what is stored.
pub(super) fn to_stored(api_version: &str, kind: &str, object: &mut Map<String, Value>) {
    match (api_version, kind) {
        NEWER_EVENT => rename(object, EVENT.map(|(old, new)| (new, old))),
        OLDER_SCALER => to_newer_scaler(object),
        _ => {}
    }
}

/// Turns what is stored into an object of a version.
pub(super) fn from_stored(api_version: &str, kind: &str, object: &mut Map<String, Value>) {
    match (api_version, kind) {
        NEWER_EVENT => rename(object, EVENT),
        OLDER_SCALER => to_older_scaler(object),
        _ => {}
    }
}

fn rename<const N: usize>(object: &mut Map<String, Value>, names: [(&str, &str); N]) {
    for (from, to) in names {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

fn to_newer_scaler(object: &mut Map<String, Value>) {
    let cpu = |field: &str, number: Value| {
        let (kind, of) = match field {
            "target" => (json!({"type": "Utilization"}), "target"),
            _ => (json!({}), "current"),
        };
        let mut of_cpu = kind;
        of_cpu["averageUtilization"] = number;
        json!([{"type": "Resource", "resource": {"name": "cpu", of: of_cpu}}])
    };
    let moves = [
        (
            "spec",
            "targetCPUUtilizationPercentage",
            "metrics",
            "target",
        ),
        (
            "status",
            "currentCPUUtilizationPercentage",
            "currentMetrics",
            "current",
        ),
    ];
    for (part, old, new, field) in moves {
        if let Some(Value::Object(part)) = object.get_mut(part)
            && let Some(number) = part.remove(old)
        {
            part.insert(new.to_owned(), cpu(field, number));
        }
    }
}

fn to_older_scaler(object: &mut Map<String, Value>) {
    let moves = [
        (
            "spec",
            "targetCPUUtilizationPercentage",
            "metrics",
            "target",
        ),
        (
            "status",
            "currentCPUUtilizationPercentage",
            "currentMetrics",
            "current",
        ),
    ];
    for (part, old, new, field) in moves {
        let Some(Value::Object(part)) = object.get_mut(part) else {
            continue;
        };
        let metrics = part.remove(new).unwrap_or_default();
        let number = metrics
            .as_array()
            .into_iter()
            .flatten()
            .filter(|metric| metric["resource"]["name"] == "cpu")
            .map(|metric| metric["resource"][field]["averageUtilization"].clone())
            .find(Value::is_number);
        if let Some(number) = number {
            part.insert(old.to_owned(), number);
        }
        part.remove("behavior");
        part.remove("conditions");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(api_version: &str, kind: &str, served: Value, stored: Value) {
        let mut object = served.as_object().cloned().unwrap();
        to_stored(api_version, kind, &mut object);
        assert_eq!(Value::from(object.clone()), stored);
        from_stored(api_version, kind, &mut object);
        assert_eq!(Value::from(object), served);
    }

    #[test]
    fn both_groups_see_the_same_event() {
        there_and_back(
            "events.k8s.io/v1",
            "Event",
            json!({"note": "n", "reason": "r", "regarding": {"name": "a"}, "deprecatedCount": 2}),
            json!({"message": "n", "reason": "r", "involvedObject": {"name": "a"}, "count": 2}),
        );
        let core = json!({"message": "n", "involvedObject": {}});
        there_and_back("v1", "Event", core.clone(), core);
    }

    #[test]
    fn an_old_autoscaler_is_a_new_one_with_one_metric() {
        there_and_back(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}, "status": {"currentReplicas": 1}}),
            json!({"spec": {"maxReplicas": 3, "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]},
                "status": {"currentReplicas": 1}}),
        );
    }
}
