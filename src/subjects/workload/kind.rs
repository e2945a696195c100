//! Describes Deployments, StatefulSets and DaemonSets as kinds of subjects.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::ApiResource;

use super::template::{self, DEPLOYMENT_KIND, PAUSED, TEMPLATE};
use super::{actions, revisions};
use crate::api::bowline::audit::ContentRef;
use crate::api::labels;
use crate::connect::kinds;
use crate::engine::rights::Right;
use crate::engine::subject::command::Actions;
use crate::engine::subject::{Capability, HoldsIn, Kind, Numbering, field};

/// The apps/v1 Deployment as a kind of subject.
pub static DEPLOYMENT: Kind = Kind {
    numbering: numbering(&[TEMPLATE, PAUSED]),
    ..workload(
        DEPLOYMENT_KIND,
        &["deploy", "deployment"],
        kinds::kind::<Deployment>,
        &[
            Right::list(kinds::kind::<ReplicaSet>),
            Right::patch(kinds::kind::<Deployment>),
        ],
    )
};

/// The apps/v1 StatefulSet as a kind of subject.
pub static STATEFUL_SET: Kind = workload(
    "StatefulSet",
    &["sts", "statefulset"],
    kinds::kind::<StatefulSet>,
    &[
        Right::list(kinds::kind::<ControllerRevision>),
        Right::patch(kinds::kind::<StatefulSet>),
    ],
);

/// The apps/v1 DaemonSet as a kind of subject.
pub static DAEMON_SET: Kind = workload(
    "DaemonSet",
    &["ds", "daemonset"],
    kinds::kind::<DaemonSet>,
    &[
        Right::list(kinds::kind::<ControllerRevision>),
        Right::patch(kinds::kind::<DaemonSet>),
    ],
);

pub static KINDS: [&Kind; 3] = [&DEPLOYMENT, &STATEFUL_SET, &DAEMON_SET];

const fn workload(
    name: &'static str,
    prefixes: &'static [&'static str],
    resource: fn() -> ApiResource,
    rights: &'static [Right],
) -> Kind {
    Kind {
        name,
        prefixes,
        resource,
        main_field: TEMPLATE,
        holds: HoldsIn::Annotation(labels::HOLDS),
        numbering: numbering(&[TEMPLATE]),
        actions: Some(Actions {
            revisions: |client, subject, now| Box::pin(revisions::read(client, subject, now)),
            plan: |client, command, asked| Box::pin(actions::plan(client, command, asked)),
            rights,
        }),
        capabilities: &[
            Capability::Rollback,
            Capability::Pin,
            Capability::Undo,
            Capability::Mark,
        ],
        content,
        release_ref: |_, _| None,
        place: |object| (object.name_any(), object.namespace()),
    }
}

const fn numbering(fields: &'static [&'static [&'static str]]) -> Numbering {
    Numbering::Annotation {
        name: labels::CHANGES,
        fields,
    }
}

fn content(object: &DynamicObject, _: Timestamp, _: bool) -> ContentRef {
    let template = field(object, TEMPLATE).unwrap_or_default();
    ContentRef {
        name: template::images(&template),
        uid: None,
        hash: Some(template::hash(&template)),
    }
}
