//! Short names of objects for a narrow list. Different objects always get different names.

use std::collections::HashMap;

use super::Identity;
use crate::text;

/// The short names that kubectl uses for kinds.
const SHORT: &[(&str, &str)] = &[
    ("ConfigMap", "cm"),
    ("CronJob", "cj"),
    ("DaemonSet", "ds"),
    ("Deployment", "deploy"),
    ("HorizontalPodAutoscaler", "hpa"),
    ("Ingress", "ing"),
    ("Namespace", "ns"),
    ("NetworkPolicy", "netpol"),
    ("PersistentVolumeClaim", "pvc"),
    ("PodDisruptionBudget", "pdb"),
    ("ReplicaSet", "rs"),
    ("Service", "svc"),
    ("ServiceAccount", "sa"),
    ("StatefulSet", "sts"),
];

/// The largest width of a kind in a label, in terminal columns. Only for kinds without a short name.
const KIND: usize = 12;

/// Returns one label per object, each at most `columns` wide. Different objects get different labels.
pub fn labels(objects: &[&Identity], columns: usize) -> Vec<String> {
    let full: Vec<String> = objects.iter().map(|one| full(one, objects)).collect();
    let mut labels: Vec<String> = objects
        .iter()
        .zip(&full)
        .map(|(one, full)| fitted(one, full, columns))
        .collect();
    let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, label) in labels.iter().enumerate() {
        alike.entry(label.clone()).or_default().push(at);
    }
    for places in alike.into_values().filter(|places| places.len() > 1) {
        for (number, at) in (1..).zip(places) {
            let number = format!("{number} ");
            let room = columns.saturating_sub(text::width(&number));
            if let (Some(label), Some(full)) = (labels.get_mut(at), full.get(at)) {
                *label = format!("{number}{}", tail(full, room));
            }
        }
    }
    labels
}

/// Returns kind and name of an object. Also returns group and namespace if another object in `objects` has the same
/// kind and name.
fn full(one: &Identity, objects: &[&Identity]) -> String {
    let alike = |other: &&&Identity| other.kind == one.kind && other.name == one.name;
    let mut others = objects.iter().filter(alike);
    let group = others.clone().any(|other| other.group != one.group);
    let namespace = others.any(|other| other.namespace != one.namespace);
    let mut out = one.kind.clone();
    if group && !one.group.is_empty() {
        out += &format!(".{}", one.group);
    }
    out.push(' ');
    if namespace && !one.namespace.is_empty() {
        out += &format!("{}/", one.namespace);
    }
    out + &one.name
}

/// Returns a label that fits into `columns`: shortens the kind first, then the middle of the name.
fn fitted(one: &Identity, full: &str, columns: usize) -> String {
    if text::width(full) <= columns {
        return text::line(full).into_owned();
    }
    let rest = full.strip_prefix(one.kind.as_str()).unwrap_or(full);
    let short = SHORT.iter().find(|(kind, _)| *kind == one.kind);
    let kind = match short {
        Some((_, short)) => (*short).to_owned(),
        None => text::fit_name(&one.kind, KIND.min(columns / 2)),
    };
    let room = columns.saturating_sub(text::width(&kind));
    let (group, name) = rest.split_once(' ').unwrap_or(("", rest));
    match text::width(rest) <= room {
        true => format!("{kind}{rest}"),
        false => {
            let group = text::fit_name(group, room / 3);
            let room = room.saturating_sub(text::width(&group) + 1);
            format!("{kind}{group} {}", text::fit_name(name, room))
        }
    }
}

/// Returns the end of a label. For objects whose names differ only at their ends.
fn tail(full: &str, columns: usize) -> String {
    let cleaned = text::line(full);
    if text::width(&cleaned) <= columns {
        return cleaned.into_owned();
    }
    let mut used = 1;
    let kept = cleaned.char_indices().rev().take_while(|(_, c)| {
        used += text::width(c.encode_utf8(&mut [0; 4]));
        used <= columns
    });
    let start = kept.last().map_or(cleaned.len(), |(at, _)| at);
    let end = cleaned.get(start..).unwrap_or_default();
    format!("{}{end}", text::ELLIPSIS)
}
