//! Columns and cells of the built-in kinds that a data plane has; any other kind shows its name
//! and when it was made.

use serde_json::Value;

use super::super::status::Subject;
use super::cells::{
    NONE, UNSET, at, count, is_true, items, joined, labels, number, selector, selector_or_none,
    shortened, shown, text, text_or,
};
use super::{Column, age, pod};

/// The columns of a kind, as a real server names them: `+` marks those for `-o wide`, and what
/// is no text has its type after a colon.
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

/// The columns of a kind.
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

/// What a row says beside its cells.
pub(super) fn row_conditions(subject: &Subject, object: &Value) -> Value {
    match (subject.group.as_str(), subject.kind.as_str()) {
        ("", "Pod") => pod::conditions(object),
        _ => Value::Null,
    }
}

/// The cells of an object, one for each column of its kind.
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

fn capital(value: &Value) -> &'static str {
    match value {
        Value::Bool(true) => "True",
        Value::Bool(false) => "False",
        _ => UNSET,
    }
}

fn phase(object: &Value) -> &str {
    match at(object, "/metadata/deletionTimestamp") {
        Value::Null => text(object, "/status/phase"),
        _ => "Terminating",
    }
}

fn default_marked(object: &Value, annotation: &str) -> String {
    let name = text(object, "/metadata/name");
    match object["metadata"]["annotations"][annotation].as_str() {
        Some("true") => format!("{name} (default)"),
        _ => name.to_owned(),
    }
}

fn controller(object: &Value) -> String {
    let owner = items(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == true);
    let Some(owner) = owner else {
        return NONE.to_owned();
    };
    let kind = text(owner, "/kind").to_lowercase();
    let name = text(owner, "/name");
    match text(owner, "/apiVersion").rsplit_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// The first of a job's conditions that tells how it stands.
fn job_status(job: &Value) -> &'static str {
    if is_true(job, "Complete") {
        "Complete"
    } else if is_true(job, "Failed") {
        "Failed"
    } else if !at(job, "/metadata/deletionTimestamp").is_null() {
        "Terminating"
    } else {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
            .into_iter()
            .find(|kind| is_true(job, kind))
            .unwrap_or("Running")
    }
}

fn completions(job: &Value) -> String {
    let done = number(job, "/status/succeeded");
    match (
        at(job, "/spec/completions").as_i64(),
        number(job, "/spec/parallelism"),
    ) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

fn job_duration(job: &Value, now: &str) -> String {
    let from = at(job, "/status/startTime");
    let to = match at(job, "/status/completionTime") {
        Value::Null => Value::from(now),
        to => to.clone(),
    };
    age::between(from, &to).unwrap_or_default()
}

/// The addresses that a load balancer gave, sorted and each once.
fn balancers(object: &Value) -> String {
    let mut found: Vec<&str> = items(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| text_or(ingress, "/ip", text(ingress, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    found.sort_unstable();
    found.dedup();
    found.join(",")
}

fn external_addresses(service: &Value) -> String {
    let own: Vec<&str> = items(service, "/spec/externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let own = own.join(",");
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" if own.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => own,
        "LoadBalancer" => match (balancers(service), own) {
            (given, own) if given.is_empty() && own.is_empty() => "<pending>".to_owned(),
            (given, own) if own.is_empty() => given,
            (given, own) if given.is_empty() => own,
            (given, own) => format!("{given},{own}"),
        },
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service_ports(service: &Value) -> String {
    let ports: Vec<String> = items(service, "/spec/ports")
        .iter()
        .map(|port| {
            let (number, protocol) = (number(port, "/port"), text(port, "/protocol"));
            match port["nodePort"].as_i64() {
                Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    match ports.as_slice() {
        [] => NONE.to_owned(),
        ports => ports.join(","),
    }
}

fn endpoints(object: &Value) -> String {
    let mut found = Vec::new();
    for subset in items(object, "/subsets") {
        let addresses = items(subset, "/addresses");
        let ips = || addresses.iter().map(|address| text(address, "/ip"));
        match items(subset, "/ports") {
            [] => found.extend(ips().map(str::to_owned)),
            ports => {
                for port in ports {
                    let number = number(port, "/port");
                    found.extend(ips().map(|ip| match ip.contains(':') {
                        true => format!("[{ip}]:{number}"),
                        false => format!("{ip}:{number}"),
                    }));
                }
            }
        }
    }
    match items(object, "/subsets") {
        [] => NONE.to_owned(),
        _ => shortened(&found, 3, ","),
    }
}

fn slice_ports(slice: &Value) -> String {
    let ports: Vec<String> = items(slice, "/ports")
        .iter()
        .map(|port| match port["port"].as_i64() {
            Some(number) => number.to_string(),
            None => text_or(port, "/name", "*").to_owned(),
        })
        .collect();
    shortened_or_unset(&ports)
}

fn slice_addresses(slice: &Value) -> String {
    let addresses: Vec<String> = items(slice, "/endpoints")
        .iter()
        .flat_map(|endpoint| items(endpoint, "/addresses"))
        .map(shown)
        .collect();
    shortened_or_unset(&addresses)
}

fn shortened_or_unset(list: &[String]) -> String {
    match shortened(list, 3, ",") {
        empty if empty.is_empty() => UNSET.to_owned(),
        some => some,
    }
}

/// Events of both groups: the newer one has other names for the same things.
fn event(event: &Value, now: &str) -> Vec<Value> {
    let either = |old: &str, new: &str| match at(event, old) {
        Value::Null => at(event, new).clone(),
        found => found.clone(),
    };
    let word = |old: &str, new: &str| shown_or_empty(&either(old, new));
    let first = match either("/firstTimestamp", "/deprecatedFirstTimestamp") {
        Value::Null => age::since(at(event, "/eventTime"), now),
        stamp => age::since(&stamp, now),
    };
    let mut last = match either("/lastTimestamp", "/deprecatedLastTimestamp") {
        Value::Null => first.clone(),
        stamp => age::since(&stamp, now),
    };
    let mut count = either("/count", "/deprecatedCount")
        .as_i64()
        .unwrap_or_default();
    if at(event, "/series").is_object() {
        last = age::since(at(event, "/series/lastObservedTime"), now);
        count = number(event, "/series/count");
    } else if count == 0 {
        count = 1;
    }
    let kind = word("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let object = match word("/involvedObject/name", "/regarding/name") {
        name if name.is_empty() => kind,
        name => format!("{kind}/{name}"),
    };
    let source = |old: &str, deprecated: &str, new: &[&str]| {
        let old = word(old, deprecated);
        match old.is_empty() {
            true => new
                .iter()
                .map(|pointer| text(event, pointer))
                .find(|text| !text.is_empty())
                .unwrap_or_default()
                .to_owned(),
            false => old,
        }
    };
    let component = source(
        "/source/component",
        "/deprecatedSource/component",
        &["/reportingComponent", "/reportingController"],
    );
    let host = source(
        "/source/host",
        "/deprecatedSource/host",
        &["/reportingInstance"],
    );
    let from = match host.is_empty() {
        true => component,
        false => format!("{component}, {host}"),
    };
    vec![
        last.into(),
        at(event, "/type").as_str().unwrap_or_default().into(),
        at(event, "/reason").as_str().unwrap_or_default().into(),
        object.into(),
        word("/involvedObject/fieldPath", "/regarding/fieldPath").into(),
        from.into(),
        word("/message", "/note").trim().into(),
        first.into(),
        count.into(),
        at(event, "/metadata/name").clone(),
    ]
}

fn shown_or_empty(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => shown(value),
    }
}

fn access_modes(modes: &Value) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |name: &str| {
        modes
            .as_array()
            .into_iter()
            .flatten()
            .any(|mode| mode == name)
    };
    let found: Vec<&str> = short
        .into_iter()
        .filter(|(name, _)| has(name))
        .map(|(_, short)| short)
        .collect();
    found.join(",")
}

fn quota(quota: &Value) -> (String, String) {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in at(quota, "/status/hard").as_object().into_iter().flatten() {
        let used = match &quota["status"]["used"][resource] {
            Value::Null => "0".to_owned(),
            used => shown(used),
        };
        let word = format!("{resource}: {used}/{}", shown(hard));
        match resource.starts_with("limits.") {
            true => limits.push(word),
            false => requests.push(word),
        }
    }
    (requests.join(", "), limits.join(", "))
}

/// What an autoscaler measures against what it wants, two of them at most.
fn metrics(scaler: &Value) -> String {
    let current = items(scaler, "/status/currentMetrics");
    let mut found: Vec<String> = items(scaler, "/spec/metrics")
        .iter()
        .enumerate()
        .map(|(position, metric)| {
            metric_word(metric, current.get(position).unwrap_or(&Value::Null))
        })
        .collect();
    // The first version of the API knows one metric only, and names it otherwise.
    if let Some(wanted) = at(scaler, "/spec/targetCPUUtilizationPercentage").as_i64() {
        let now = at(scaler, "/status/currentCPUUtilizationPercentage")
            .as_i64()
            .map_or("<unknown>".to_owned(), |now| format!("{now}%"));
        found.push(format!("cpu: {now}/{wanted}%"));
    }
    match found.as_slice() {
        [] => NONE.to_owned(),
        found => shortened(found, 2, ", "),
    }
}

fn metric_word(metric: &Value, status: &Value) -> String {
    let kind = text(metric, "/type");
    let (field, named) = match kind {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let target = &metric[field]["target"];
    let current = &status[field]["current"];
    let now = |field: &str, unit: &str| match &current[field] {
        Value::Null => "<unknown>".to_owned(),
        value => format!("{}{unit}", shown(value)),
    };
    let average = &target["averageValue"];
    let word = match (average, named) {
        (Value::Null, true) => {
            let wanted = match &target["averageUtilization"] {
                Value::Null => "<auto>".to_owned(),
                value => format!("{}%", shown(value)),
            };
            format!("{}/{wanted}", now("averageUtilization", "%"))
        }
        (Value::Null, false) => format!("{}/{}", now("value", ""), shown(&target["value"])),
        (average, false) if kind != "Pods" => {
            format!("{}/{} (avg)", now("averageValue", ""), shown(average))
        }
        (average, _) => format!("{}/{}", now("averageValue", ""), shown(average)),
    };
    match named {
        true => format!("{}: {word}", shown(&metric[field]["name"])),
        false => word,
    }
}

fn hosts(ingress: &Value) -> String {
    let rules = items(ingress, "/spec/rules");
    let found: Vec<&str> = rules
        .iter()
        .map(|rule| text(rule, "/host"))
        .filter(|host| !host.is_empty())
        .collect();
    let some = found.iter().take(3).copied().collect::<Vec<_>>().join(",");
    match (found.len(), rules.len()) {
        (0, _) => "*".to_owned(),
        (3.., all) if all > 3 => format!("{some} + {} more...", all - 3),
        _ => some,
    }
}

fn class_parameters(class: &Value) -> String {
    let parameters = at(class, "/spec/parameters");
    if parameters.is_null() {
        return NONE.to_owned();
    }
    let (kind, name) = (text(parameters, "/kind"), text(parameters, "/name"));
    match text(parameters, "/apiGroup") {
        "" => format!("{kind}/{name}"),
        group => format!("{kind}.{group}/{name}"),
    }
}

fn subjects(binding: &Value, kind: &str) -> String {
    let found: Vec<String> = items(binding, "/subjects")
        .iter()
        .filter(|subject| text(subject, "/kind") == kind)
        .map(|subject| match kind {
            "ServiceAccount" => {
                format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"))
            }
            _ => text(subject, "/name").to_owned(),
        })
        .collect();
    found.join(", ")
}

fn parameter_kind(policy: &Value) -> String {
    match at(policy, "/spec/paramKind") {
        Value::Null => UNSET.to_owned(),
        kind => format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")),
    }
}

fn parameter(binding: &Value) -> String {
    let reference = at(binding, "/spec/paramRef");
    match (text(reference, "/namespace"), text(reference, "/name")) {
        (_, "") if reference["selector"].is_object() => selector(&reference["selector"]),
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
