//! The table columns and cells of the often used built-in kinds. All other kinds have only a name and a creation
//! time.

use serde_json::Value;

use super::super::status::Subject;
use super::cells::{
    NONE, UNSET, at, count, items, joined, labels, number, selector, selector_or_none, shown, text,
    text_or,
};
use super::words::{
    access_modes, balancers, capital, class_parameters, completions, controller, default_marked,
    endpoints, event, external_addresses, hosts, job_duration, job_status, metrics, parameter,
    parameter_kind, phase, quota, service_ports, slice_addresses, slice_ports, subjects,
};
use super::{Column, age, pod};

/// Returns the columns of a kind in one line of text, with the names of kube-apiserver. `+` marks a column for `-o
/// wide`. After a colon follows the type of the column, if it is not text.
fn line(kind: &str) -> &'static str {
    match kind {
        "Pod" => {
            "Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates"
        }
        "PodTemplate" => "Name, Containers, Images, Pod Labels",
        "ReplicationController" | "ReplicaSet" => {
            "Name, Desired:integer, Current:integer, Ready:integer, Age, +Containers, +Images, +Selector"
        }
        "ConfigMap" => "Name, Data, Age",
        "Secret" => "Name, Type, Data, Age",
        "Namespace" => "Name, Status, Age",
        "ServiceAccount" => "Name, Age",
        "Service" => "Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector",
        "Endpoints" => "Name, Endpoints, Age",
        "Event" => {
            "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name"
        }
        "PersistentVolume" => {
            "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, +VolumeMode"
        }
        "PersistentVolumeClaim" => {
            "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode"
        }
        "ResourceQuota" => "Name, Request, Limit, Age",
        "Deployment" => "Name, Ready, Up-to-date, Available, Age, +Containers, +Images, +Selector",
        "StatefulSet" => "Name, Ready, Age, +Containers, +Images",
        "DaemonSet" => {
            "Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector, Age, +Containers, +Images, +Selector"
        }
        "ControllerRevision" => "Name, Controller, Revision, Age",
        "Job" => "Name, Status, Completions, Duration, Age, +Containers, +Images, +Selector",
        "CronJob" => {
            "Name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, +Containers, +Images, +Selector"
        }
        "HorizontalPodAutoscaler" => "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
        "PodDisruptionBudget" => {
            "Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age"
        }
        "Ingress" => "Name, Class, Hosts, Address, Ports, Age",
        "IngressClass" => "Name, Controller, Parameters, Age",
        "NetworkPolicy" => "Name, Pod-Selector, Age",
        "Lease" => "Name, Holder, Age",
        "EndpointSlice" => "Name, AddressType, Ports, Endpoints, Age",
        "RoleBinding" | "ClusterRoleBinding" => {
            "Name, Role, Age, +Users, +Groups, +ServiceAccounts"
        }
        "ValidatingAdmissionPolicy" => "Name, Validations:integer, ParamKind, Age",
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            "Name, PolicyName, ParamRef, Age"
        }
        "MutatingAdmissionPolicy" => "Name, Mutations:integer, ParamKind, Age",
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            "Name, Webhooks:integer, Age"
        }
        "PriorityClass" => "Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy",
        "StorageClass" => {
            "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age"
        }
        _ => "Name, Created At:date",
    }
}

/// Returns the table columns of a kind.
pub(super) fn columns(subject: &Subject) -> Vec<Column> {
    let read = |word: &'static str| {
        let (word, priority) = match word.strip_prefix('+') {
            Some(word) => (word, 1),
            None => (word, 0),
        };
        let (name, kind) = word.split_once(':').unwrap_or((word, "string"));
        Column {
            name,
            kind,
            priority,
        }
    };
    line(&subject.kind).split(", ").map(read).collect()
}

/// Returns the conditions of an object's table row; null for all kinds except Pod.
pub(super) fn row_conditions(subject: &Subject, object: &Value) -> Value {
    match (subject.group.as_str(), subject.kind.as_str()) {
        ("", "Pod") => pod::conditions(object),
        _ => Value::Null,
    }
}

/// Returns the table cells of an object, one for each column of its kind.
pub(super) fn cells(subject: &Subject, object: &Value, now: &str) -> Vec<Value> {
    let name = at(object, "/metadata/name").clone();
    let created = at(object, "/metadata/creationTimestamp");
    let age = Value::from(age::since(created, now));
    let text = |pointer: &str| Value::from(text(object, pointer));
    let number = |pointer: &str| Value::from(number(object, pointer));
    let count = |pointer: &str| Value::from(count(object, pointer));
    let names = |pointer: &str| Value::from(joined(items(object, pointer), "/name"));
    let images = |pointer: &str| Value::from(joined(items(object, pointer), "/image"));
    let ready = format!(
        "{}/{}",
        number("/status/readyReplicas"),
        number("/spec/replicas")
    );
    const CONTAINERS: &str = "/spec/template/spec/containers";
    match subject.kind.as_str() {
        "Pod" => pod::cells(object, now),
        "PodTemplate" => vec![
            name,
            names("/template/spec/containers"),
            images("/template/spec/containers"),
            labels(at(object, "/template/metadata/labels")).into(),
        ],
        "ReplicationController" | "ReplicaSet" => vec![
            name,
            number("/spec/replicas"),
            number("/status/replicas"),
            number("/status/readyReplicas"),
            age,
            names(CONTAINERS),
            images(CONTAINERS),
            match subject.kind.as_str() {
                "ReplicaSet" => selector_or_none(at(object, "/spec/selector")),
                _ => labels(at(object, "/spec/selector")),
            }
            .into(),
        ],
        "Deployment" => vec![
            name,
            ready.into(),
            number("/status/updatedReplicas"),
            number("/status/availableReplicas"),
            age,
            names(CONTAINERS),
            images(CONTAINERS),
            selector(at(object, "/spec/selector")).into(),
        ],
        "StatefulSet" => vec![
            name,
            ready.into(),
            age,
            names(CONTAINERS),
            images(CONTAINERS),
        ],
        "DaemonSet" => vec![
            name,
            number("/status/desiredNumberScheduled"),
            number("/status/currentNumberScheduled"),
            number("/status/numberReady"),
            number("/status/updatedNumberScheduled"),
            number("/status/numberAvailable"),
            labels(at(object, "/spec/template/spec/nodeSelector")).into(),
            age,
            names(CONTAINERS),
            images(CONTAINERS),
            selector_or_none(at(object, "/spec/selector")).into(),
        ],
        "ControllerRevision" => vec![name, controller(object).into(), number("/revision"), age],
        "Job" => vec![
            name,
            job_status(object).into(),
            completions(object).into(),
            job_duration(object, now).into(),
            age,
            names(CONTAINERS),
            images(CONTAINERS),
            selector_or_none(at(object, "/spec/selector")).into(),
        ],
        "CronJob" => {
            const CONTAINERS: &str = "/spec/jobTemplate/spec/template/spec/containers";
            let last = at(object, "/status/lastScheduleTime");
            vec![
                name,
                text("/spec/schedule"),
                text_or(object, "/spec/timeZone", NONE).into(),
                capital(at(object, "/spec/suspend")).into(),
                count("/status/active"),
                match last {
                    Value::Null => NONE.into(),
                    last => age::since(last, now).into(),
                },
                age,
                names(CONTAINERS),
                images(CONTAINERS),
                selector_or_none(at(object, "/spec/jobTemplate/spec/selector")).into(),
            ]
        }
        "ConfigMap" => {
            let entries =
                super::cells::count(object, "/data") + super::cells::count(object, "/binaryData");
            vec![name, entries.into(), age]
        }
        "Secret" => vec![name, text("/type"), count("/data"), age],
        "Namespace" => vec![name, text("/status/phase"), age],
        "ServiceAccount" => vec![name, age],
        "Service" => vec![
            name,
            text("/spec/type"),
            text_or(
                object,
                "/spec/clusterIPs/0",
                text_or(object, "/spec/clusterIP", NONE),
            )
            .into(),
            external_addresses(object).into(),
            service_ports(object).into(),
            age,
            labels(at(object, "/spec/selector")).into(),
        ],
        "Endpoints" => vec![name, endpoints(object).into(), age],
        "EndpointSlice" => vec![
            name,
            text("/addressType"),
            slice_ports(object).into(),
            slice_addresses(object).into(),
            age,
        ],
        "Event" => event(object, now),
        "PersistentVolume" => vec![
            name,
            text_or(object, "/spec/capacity/storage", "0").into(),
            access_modes(at(object, "/spec/accessModes")).into(),
            text("/spec/persistentVolumeReclaimPolicy"),
            phase(object).into(),
            match at(object, "/spec/claimRef") {
                Value::Null => "".into(),
                claim => format!("{}/{}", shown(&claim["namespace"]), shown(&claim["name"])).into(),
            },
            text("/spec/storageClassName"),
            text_or(object, "/spec/volumeAttributesClassName", UNSET).into(),
            text("/status/reason"),
            age,
            text_or(object, "/spec/volumeMode", UNSET).into(),
        ],
        "PersistentVolumeClaim" => {
            let bound = !text("/spec/volumeName")
                .as_str()
                .unwrap_or_default()
                .is_empty();
            let (capacity, modes) = match bound {
                true => (
                    text_or(object, "/status/capacity/storage", "0").to_owned(),
                    access_modes(at(object, "/status/accessModes")),
                ),
                false => Default::default(),
            };
            vec![
                name,
                phase(object).into(),
                text("/spec/volumeName"),
                capacity.into(),
                modes.into(),
                text("/spec/storageClassName"),
                text_or(object, "/spec/volumeAttributesClassName", UNSET).into(),
                age,
                text_or(object, "/spec/volumeMode", UNSET).into(),
            ]
        }
        "ResourceQuota" => {
            let (requests, limits) = quota(object);
            vec![name, requests.into(), limits.into(), age]
        }
        "HorizontalPodAutoscaler" => vec![
            name,
            format!(
                "{}/{}",
                shown(at(object, "/spec/scaleTargetRef/kind")),
                shown(at(object, "/spec/scaleTargetRef/name"))
            )
            .into(),
            metrics(object).into(),
            match at(object, "/spec/minReplicas") {
                Value::Null => UNSET.into(),
                least => least.to_string().into(),
            },
            number("/spec/maxReplicas"),
            number("/status/currentReplicas"),
            age,
        ],
        "PodDisruptionBudget" => {
            let bound = |pointer: &str| match at(object, pointer) {
                Value::Null => "N/A".to_owned(),
                bound => shown(bound),
            };
            vec![
                name,
                bound("/spec/minAvailable").into(),
                bound("/spec/maxUnavailable").into(),
                number("/status/disruptionsAllowed"),
                age,
            ]
        }
        "Ingress" => vec![
            name,
            text_or(object, "/spec/ingressClassName", NONE).into(),
            hosts(object).into(),
            balancers(object).into(),
            match items(object, "/spec/tls") {
                [] => "80",
                _ => "80, 443",
            }
            .into(),
            age,
        ],
        "IngressClass" => vec![
            default_marked(object, "ingressclass.kubernetes.io/is-default-class").into(),
            text("/spec/controller"),
            class_parameters(object).into(),
            age,
        ],
        "NetworkPolicy" => vec![
            name,
            selector_or_none(at(object, "/spec/podSelector")).into(),
            age,
        ],
        "Lease" => vec![name, text("/spec/holderIdentity"), age],
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = format!(
                "{}/{}",
                shown(at(object, "/roleRef/kind")),
                shown(at(object, "/roleRef/name"))
            );
            let of = |kind: &str| Value::from(subjects(object, kind));
            vec![
                name,
                role.into(),
                age,
                of("User"),
                of("Group"),
                of("ServiceAccount"),
            ]
        }
        "ValidatingAdmissionPolicy" => vec![
            name,
            count("/spec/validations"),
            parameter_kind(object).into(),
            age,
        ],
        "MutatingAdmissionPolicy" => vec![
            name,
            count("/spec/mutations"),
            parameter_kind(object).into(),
            age,
        ],
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => vec![
            name,
            text("/spec/policyName"),
            parameter(object).into(),
            age,
        ],
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            vec![name, count("/webhooks"), age]
        }
        "PriorityClass" => vec![
            name,
            number("/value"),
            (at(object, "/globalDefault") == true).into(),
            age,
            text("/preemptionPolicy"),
        ],
        "StorageClass" => vec![
            default_marked(object, "storageclass.kubernetes.io/is-default-class").into(),
            text("/provisioner"),
            text_or(object, "/reclaimPolicy", "Delete").into(),
            text_or(object, "/volumeBindingMode", "Immediate").into(),
            (at(object, "/allowVolumeExpansion") == true).into(),
            age,
        ],
        _ => vec![name, created.clone()],
    }
}
