//! The rows of workloads and of their revisions in the read model, and the watches that fill them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::abandoned::Abandoned;
use super::actions::OF_TEMPLATE;
use super::kind::{DAEMON_SET, DEPLOYMENT, STATEFUL_SET};
use super::revisions::{self, EARLIER_NUMBERS, REVISION};
use super::template;
use crate::api::choreo::rendered::Health;
use crate::api::hold::Hold;
use crate::api::labels;
use crate::api::openchoreo::release::Verdict;
use crate::engine::health::{self, Facts};
use crate::engine::ownership::{GitOps, gitops};
use crate::engine::subject::Kind;
use crate::engine::world::feed::Watch;
use crate::engine::world::raw::Raw;
use crate::engine::world::{Event, Key, Labels, Source, Table, World};

impl Source {
    pub const DEPLOYMENTS: Self = Self("Deployments");
    pub const STATEFUL_SETS: Self = Self("StatefulSets");
    pub const DAEMON_SETS: Self = Self("DaemonSets");
    /// The watched kind ReplicaSet. ReplicaSets are the revisions of Deployments.
    pub const REPLICA_SETS: Self = Self("ReplicaSets");
    /// The watched kind ControllerRevision. ControllerRevisions are the revisions of StatefulSets and DaemonSets.
    pub const CONTROLLER_REVISIONS: Self = Self("ControllerRevisions");
}

/// The watched kinds of workloads, and of their revisions.
pub const WORKLOADS: [Source; 5] = [
    Source::DEPLOYMENTS,
    Source::STATEFUL_SETS,
    Source::DAEMON_SETS,
    Source::REPLICA_SETS,
    Source::CONTROLLER_REVISIONS,
];

/// Returns the watches for workloads and their revisions. If the server does not have one of these kinds, or the user
/// may not read it, this is no failure.
pub fn watches() -> [Watch; 5] {
    [
        Watch::new(Source::DEPLOYMENTS, |world, event| {
            apply::<Deployment>(world, event, &DEPLOYMENT, Source::DEPLOYMENTS);
        }),
        Watch::new(Source::STATEFUL_SETS, |world, event| {
            apply::<StatefulSet>(world, event, &STATEFUL_SET, Source::STATEFUL_SETS);
        }),
        Watch::new(Source::DAEMON_SETS, |world, event| {
            apply::<DaemonSet>(world, event, &DAEMON_SET, Source::DAEMON_SETS);
        }),
        Watch::new(Source::REPLICA_SETS, |world, event| {
            apply_revision::<ReplicaSet>(world, event, Source::REPLICA_SETS, &["template"]);
        }),
        Watch::new(Source::CONTROLLER_REVISIONS, |world, event| {
            let template: &[&str] = &["spec", "template"];
            let source = Source::CONTROLLER_REVISIONS;
            apply_revision::<ControllerRevision>(world, event, source, template);
        }),
    ]
    .map(|watch| watch.of_others().of_row(row_of))
}

/// A row of the read model for a workload.
#[derive(Clone, Debug)]
pub struct Row {
    pub kind: &'static Kind,
    /// The namespace of the workload, and its name with the kind, such as `deploy/web`.
    pub key: Key,
    pub uid: Box<str>,
    /// The images of the pod template, as short text for the user.
    pub images: Box<str>,
    /// The hash of the workload's pod template.
    pub hash: Box<str>,
    pub health: Health,
    /// The reason for the workload's health, as words that follow its name in a message.
    pub why: Box<str>,
    /// The number of ready pods and the number of desired pods of the workload.
    pub pods: (u32, u32),
    /// Whether the rollouts of the workload are paused.
    pub paused: bool,
    /// All holds of the workload, including the expired ones.
    pub holds: Box<[Hold]>,
    /// The GitOps tool that owns the workload; None if no tool owns it.
    pub gitops: Option<GitOps>,
    /// The revisions of the workload that a rollback or an undo replaced.
    pub abandoned: Abandoned,
    pub labels: Labels,
    pub created: Timestamp,
    /// The time at which bowline published the pod template; None if another program did.
    pub published: Option<Timestamp>,
    /// The time at which the last rollout of a Deployment was complete; None if it is unknown.
    pub rolled_out: Option<Timestamp>,
    /// The number of changes that bowline has made to the workload.
    pub changes: i64,
}

/// A row of the read model for a stored revision of a workload.
#[derive(Clone, Debug)]
pub struct Revision {
    pub owner: Box<str>,
    pub number: i64,
    /// The images of the revision's pod template, as short text for the user.
    pub images: Box<str>,
    /// The hash of the revision's pod template.
    pub hash: Box<str>,
    /// The number and the images of the revision, as the matrix shows them.
    pub label: Box<str>,
    pub created: Timestamp,
    /// The time at which the revision became the newest one; None if it is unknown.
    pub published: Option<Timestamp>,
    /// Whether a user marked the revision bad.
    pub bad: bool,
}

/// The tables of workloads and their revisions in the read model. The key of a workload contains the name with the
/// kind, such as `deploy/web`.
#[derive(Default)]
struct Tables {
    workloads: HashMap<&'static str, Table<Row>>,
    revisions: HashMap<Source, Table<Revision>>,
    /// The revisions of each workload, by the uid of the workload and the number of the revision.
    of_workload: HashMap<Box<str>, BTreeMap<i64, (Source, Key)>>,
}

static EMPTY: LazyLock<Tables> = LazyLock::new(Tables::default);

impl World {
    fn workload_tables(&self) -> &Tables {
        self.table().unwrap_or(&EMPTY)
    }

    /// Returns the workloads of the read model. The order is undefined. It leaves out the workloads that bowline's
    /// controller renders for a component.
    pub fn workloads(&self) -> impl Iterator<Item = &Row> {
        let tables = self.workload_tables().workloads.values();
        tables.flat_map(|table| table.iter().map(|(_, row)| row))
    }

    /// Returns the workload with this key; None if there is none. The name in the key contains the kind, such as
    /// `deploy/web`.
    pub fn workload(&self, key: &Key) -> Option<&Row> {
        let mut tables = self.workload_tables().workloads.values();
        tables.find_map(|table| table.get(key))
    }

    /// Returns the workload that an object belongs to: the object itself, or the workload that owns the revision.
    /// None if there is none.
    pub fn workload_of(&self, source: Source, key: &Key) -> Option<&Row> {
        let tables = self.workload_tables();
        if let Some(table) = tables.revisions.get(&source) {
            let owner = &table.get(key)?.owner;
            let mut all = self.workloads();
            return all.find(|row| row.uid == *owner);
        }
        let kind = super::KINDS
            .into_iter()
            .find(|kind| plural(kind) == source)?;
        self.workload(&key.beside(&kind.words(&key.name)))
    }

    /// Returns the stored revisions of a workload, oldest first.
    pub fn workload_revisions<'w>(
        &'w self,
        row: &Row,
    ) -> impl DoubleEndedIterator<Item = &'w Revision> + use<'w> {
        let tables = self.workload_tables();
        let of_workload = tables.of_workload.get(&row.uid);
        let keys = of_workload.into_iter().flat_map(BTreeMap::values);
        keys.filter_map(|(source, key)| tables.revisions.get(source)?.get(key))
    }
}

/// Returns the name of the matrix row that shows an object; None if no row does.
fn row_of<'w>(world: &'w World, source: Source, key: &Key) -> Option<&'w Arc<str>> {
    world.workload_of(source, key).map(|row| &row.key.name)
}

fn plural(kind: &Kind) -> Source {
    match kind.name {
        "Deployment" => Source::DEPLOYMENTS,
        "StatefulSet" => Source::STATEFUL_SETS,
        _ => Source::DAEMON_SETS,
    }
}

pub(crate) fn apply<K>(world: &mut World, event: Event<Raw<K>>, kind: &'static Kind, source: Source)
where
    K: Resource<DynamicType = ()>,
{
    let key = |world: &mut World, object: &Raw<K>| {
        world.name(&object.namespace().unwrap_or_default());
        let key = world.key(object);
        let name = world.name(&kind.words(&key.name));
        Key { name, ..key }
    };
    match event {
        Event::Listing => table(world, kind).start_list(),
        Event::Applied(object) => {
            let key = key(world, &object);
            // A workload that the controller renders for a component gets no row, because the matrix shows it in the
            // row of the component.
            let is_rendered = object.labels().get(labels::MANAGED_BY).map(String::as_str)
                == Some(labels::RELEASE_CONTROLLER);
            match is_rendered {
                true => drop(table(world, kind).remove(&key)),
                false => drop(table(world, kind).put(key.clone(), row(kind, key, &object))),
            }
        }
        Event::Deleted(object) => {
            let key = key(world, &object);
            table(world, kind).remove(&key);
        }
        Event::Listed => {
            table(world, kind).remove_unlisted();
            world.listed(source);
        }
    }
}

fn table<'w>(world: &'w mut World, kind: &'static Kind) -> &'w mut Table<Row> {
    let tables = world.table_mut::<Tables>();
    tables.workloads.entry(kind.name).or_default()
}

fn row<K>(kind: &'static Kind, key: Key, object: &Raw<K>) -> Row
where
    K: Resource<DynamicType = ()>,
{
    let template = object.spec.get("template").cloned().unwrap_or_default();
    let empty = crate::api::Object::default();
    let verdict = health::of(&Facts {
        group: "apps",
        kind: kind.name,
        generation: object.metadata.generation,
        deleting: object.metadata.deletion_timestamp.is_some(),
        spec: object.spec.as_object().unwrap_or(&empty),
        status: object.status.as_object(),
    });
    let number = |of: &Value, field: &str| of.get(field).and_then(Value::as_u64);
    let count = |number: Option<u64>| u32::try_from(number.unwrap_or_default()).unwrap_or(u32::MAX);
    let status = |field: &str| number(&object.status, field);
    let wanted = match kind.name {
        "DaemonSet" => status("desiredNumberScheduled"),
        _ => number(&object.spec, "replicas").or(Some(1)),
    };
    let annotation = |name: &str| object.annotations().get(name);
    let holds = annotation(labels::HOLDS).and_then(|text| serde_json::from_str(text).ok());
    let holds: Vec<Hold> = holds.unwrap_or_default();
    let hash = template::hash(&template);
    Row {
        kind,
        key,
        uid: uid(&object.metadata),
        images: template::images(&template).into(),
        published: revisions::recorded(object.annotations(), &hash),
        rolled_out: rolled_out(&object.status),
        hash: hash.into(),
        health: verdict.health,
        why: verdict.message.unwrap_or_default().into(),
        pods: (
            count(status("readyReplicas").or(status("numberReady"))),
            count(wanted),
        ),
        paused: object.spec.get("paused").and_then(Value::as_bool) == Some(true),
        holds: holds.into(),
        gitops: gitops(&object.metadata, OF_TEMPLATE),
        abandoned: Abandoned::of(object.annotations()),
        labels: Labels::of(object.labels()),
        created: created(&object.metadata),
        changes: annotation(labels::CHANGES)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
    }
}

pub(crate) fn apply_revision<K>(
    world: &mut World,
    event: Event<Raw<K>>,
    source: Source,
    path: &[&str],
) where
    K: Resource<DynamicType = ()>,
{
    match event {
        Event::Listing => {
            world
                .table_mut::<Tables>()
                .revisions
                .entry(source)
                .or_default()
                .start_list();
        }
        Event::Applied(object) => {
            world.name(&object.namespace().unwrap_or_default());
            let key = world.key(&object);
            let found = revision(&object, path);
            let tables = world.table_mut::<Tables>();
            tables.forget(source, &key);
            if let Some(revision) = found {
                tables.keep(source, key, revision);
            }
        }
        Event::Deleted(object) => {
            let key = world.key(&object);
            world.table_mut::<Tables>().forget(source, &key);
        }
        Event::Listed => {
            let tables = world.table_mut::<Tables>();
            for key in tables.revisions.entry(source).or_default().unlisted() {
                tables.forget(source, &key);
            }
            world.listed(source);
        }
    }
}

impl Tables {
    fn keep(&mut self, source: Source, key: Key, revision: Revision) {
        let of_workload = self.of_workload.entry(revision.owner.clone()).or_default();
        of_workload.insert(revision.number, (source, key.clone()));
        self.revisions.entry(source).or_default().put(key, revision);
    }

    fn forget(&mut self, source: Source, key: &Key) {
        let Some(old) = self.revisions.entry(source).or_default().remove(key) else {
            return;
        };
        let Some(of_workload) = self.of_workload.get_mut(&old.owner) else {
            return;
        };
        // A newer object may have the same revision number; the index must keep that one.
        if of_workload
            .get(&old.number)
            .is_some_and(|(_, known)| known == key)
        {
            of_workload.remove(&old.number);
        }
        if of_workload.is_empty() {
            self.of_workload.remove(&old.owner);
        }
    }
}

fn revision<K>(object: &Raw<K>, path: &[&str]) -> Option<Revision>
where
    K: Resource<DynamicType = ()>,
{
    let owners = object.metadata.owner_references.iter().flatten();
    let owner = owners
        .into_iter()
        .find(|owner| owner.controller == Some(true))?;
    let number = match object.revision {
        0 => object.annotations().get(REVISION)?.parse().ok()?,
        number => number,
    };
    let content = if object.spec.is_null() {
        &object.data
    } else {
        &object.spec
    };
    let mut steps = path.iter();
    let template = steps.try_fold(content, |value, step| value.get(step))?;
    let images = template::images(template);
    let hash = template::hash(template);
    Some(Revision {
        owner: owner.uid.as_str().into(),
        number,
        label: format!("rev {number} {images}").into(),
        images: images.into(),
        created: created(&object.metadata),
        published: published(object, &hash),
        bad: revisions::verdict(object.annotations(), &hash) == Some(Verdict::Bad),
        hash: hash.into(),
    })
}

/// Returns the time at which a revision became the newest one; None if it is unknown. A revision that is published
/// again keeps its object: Kubernetes only gives it a new number.
fn published<K>(object: &Raw<K>, hash: &str) -> Option<Timestamp>
where
    K: Resource<DynamicType = ()>,
{
    if let Some(recorded) = revisions::recorded(object.annotations(), hash) {
        return Some(recorded);
    }
    if object.annotations().contains_key(EARLIER_NUMBERS) {
        return None;
    }
    let managers = object.metadata.managed_fields.iter().flatten();
    let numbered = managers.filter(|manager| {
        let fields = manager.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0.get("f:revision").is_some())
    });
    let numbered = numbered.filter_map(|manager| Some(manager.time.as_ref()?.0));
    numbered
        .max()
        .or_else(|| Some(object.metadata.creation_timestamp.as_ref()?.0))
}

/// Returns the time at which the last rollout of a Deployment was complete; None if a rollout is not complete.
fn rolled_out(status: &Value) -> Option<Timestamp> {
    let conditions = status.get("conditions")?.as_array()?;
    let text = |condition: &Value, field: &str| Some(condition.get(field)?.as_str()?.to_owned());
    let complete = conditions.iter().find(|condition| {
        text(condition, "type").as_deref() == Some("Progressing")
            && text(condition, "reason").as_deref() == Some("NewReplicaSetAvailable")
    })?;
    text(complete, "lastUpdateTime")?.parse().ok()
}

fn uid(metadata: &ObjectMeta) -> Box<str> {
    metadata.uid.as_deref().unwrap_or_default().into()
}

fn created(metadata: &ObjectMeta) -> Timestamp {
    let created = metadata.creation_timestamp.as_ref();
    created.map_or(Timestamp::UNIX_EPOCH, |created| created.0)
}
