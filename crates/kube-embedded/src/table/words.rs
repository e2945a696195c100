//! Formats the texts of table cells for built-in kinds.

use serde_json::Value;

use super::age;
use super::cells::{
    NONE, UNSET, at, is_true, items, number, selector, shortened, shown, text, text_or,
};

pub(super) fn capital(value: &Value) -> &'static str {
    match value {
        Value::Bool(true) => "True",
        Value::Bool(false) => "False",
        _ => UNSET,
    }
}

pub(super) fn phase(object: &Value) -> &str {
    match at(object, "/metadata/deletionTimestamp") {
        Value::Null => text(object, "/status/phase"),
        _ => "Terminating",
    }
}

pub(super) fn default_marked(object: &Value, annotation: &str) -> String {
    let name = text(object, "/metadata/name");
    match object["metadata"]["annotations"][annotation].as_str() {
        Some("true") => format!("{name} (default)"),
        _ => name.to_owned(),
    }
}

pub(super) fn controller(object: &Value) -> String {
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

/// Returns the status of a job as one word, from its conditions.
pub(super) fn job_status(job: &Value) -> &'static str {
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

pub(super) fn completions(job: &Value) -> String {
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

pub(super) fn job_duration(job: &Value, now: &str) -> String {
    let from = at(job, "/status/startTime");
    let to = match at(job, "/status/completionTime") {
        Value::Null => Value::from(now),
        to => to.clone(),
    };
    age::between(from, &to).unwrap_or_default()
}

/// Returns the addresses of a load balancer, sorted, without duplicates, and joined by commas.
pub(super) fn balancers(object: &Value) -> String {
    let mut found: Vec<&str> = items(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| text_or(ingress, "/ip", text(ingress, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    found.sort_unstable();
    found.dedup();
    found.join(",")
}

pub(super) fn external_addresses(service: &Value) -> String {
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

pub(super) fn service_ports(service: &Value) -> String {
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

pub(super) fn endpoints(object: &Value) -> String {
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

pub(super) fn slice_ports(slice: &Value) -> String {
    let ports: Vec<String> = items(slice, "/ports")
        .iter()
        .map(|port| match port["port"].as_i64() {
            Some(number) => number.to_string(),
            None => text_or(port, "/name", "*").to_owned(),
        })
        .collect();
    shortened_or_unset(&ports)
}

pub(super) fn slice_addresses(slice: &Value) -> String {
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

/// Returns the table cells of an Event. A field may have two names, because the two API groups of Events name it
/// differently.
pub(super) fn event(event: &Value, now: &str) -> Vec<Value> {
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

pub(super) fn access_modes(modes: &Value) -> String {
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

pub(super) fn quota(quota: &Value) -> (String, String) {
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

/// Returns the current and target values of an autoscaler's metrics; at most two metrics are shown.
pub(super) fn metrics(scaler: &Value) -> String {
    let current = items(scaler, "/status/currentMetrics");
    let mut found: Vec<String> = items(scaler, "/spec/metrics")
        .iter()
        .enumerate()
        .map(|(position, metric)| {
            metric_word(metric, current.get(position).unwrap_or(&Value::Null))
        })
        .collect();
    // autoscaling/v1 has only the CPU metric, in its own field.
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

pub(super) fn hosts(ingress: &Value) -> String {
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

pub(super) fn class_parameters(class: &Value) -> String {
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

pub(super) fn subjects(binding: &Value, kind: &str) -> String {
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

pub(super) fn parameter_kind(policy: &Value) -> String {
    match at(policy, "/spec/paramKind") {
        Value::Null => UNSET.to_owned(),
        kind => format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")),
    }
}

pub(super) fn parameter(binding: &Value) -> String {
    let reference = at(binding, "/spec/paramRef");
    match (text(reference, "/namespace"), text(reference, "/name")) {
        (_, "") if reference["selector"].is_object() => selector(&reference["selector"]),
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
