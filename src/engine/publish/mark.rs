//! Marks the object that stores a revision of a subject.
//!
//! The subject records the mark first, so that no mark is without a record. The mark itself is one merge patch that
//! names the uid of the object; a repeated patch does no harm.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::swap::Swap;
use crate::api::labels;
use crate::api::openchoreo::release::{Mark, Verdict};
use crate::engine::plan::{Change, MarkOn};
use crate::engine::repeat::repeat;

fn api(client: &Client, mark: &MarkOn) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), &mark.key.namespace, &mark.resource)
}

/// Describes how the object or its mark differs from plan time; None if it does not differ.
pub(super) async fn changed(
    client: &Client,
    change: &Change,
    mark: &MarkOn,
) -> Result<Option<String>, kube::Error> {
    let api = api(client, mark);
    let found = repeat(|| api.get_opt(&mark.key.name)).await?;
    let revision = change.marked();
    let Some(found) = found.filter(|found| found.metadata.uid.as_ref() == Some(&mark.uid)) else {
        return Ok(Some(format!("{revision} no longer exists")));
    };
    let text = found.annotations().get(labels::MARK);
    let text = text.map_or("", String::as_str);
    let is = match text {
        "" => None,
        text => Verdict::on_content(text, &mark.hash),
    };
    if is == mark.was {
        return Ok(None);
    }
    let other: Option<Mark> = serde_json::from_str(text).ok();
    Ok(Some(match (is, other) {
        (Some(verdict), Some(other)) => {
            let verdict = verdict.word();
            format!(
                "{revision} was marked {verdict} by {} at {}",
                other.by, other.at.0
            )
        }
        (Some(verdict), None) => format!("{revision} was marked {}", verdict.word()),
        (None, _) => format!("the mark of {revision} was removed"),
    }))
}

/// Writes the mark.
pub(super) async fn write(
    client: &Client,
    swap: &Swap<'_>,
    mark: &MarkOn,
) -> Result<(), kube::Error> {
    let text = serde_json::to_string(&Mark {
        verdict: mark.verdict,
        by: swap.audit.by().to_owned(),
        at: Time(swap.at),
        note: swap.plan.reason.clone(),
        operation: Some(swap.plan.operation.clone()),
        hash: Some(mark.hash.clone()),
    });
    let patch = Patch::Merge(json!({"metadata": {
        "uid": mark.uid, "annotations": {labels::MARK: text.unwrap_or_default()},
    }}));
    let (api, manager) = (
        api(client, mark),
        PatchParams::apply(labels::MANAGER_ENGINE),
    );
    repeat(|| api.patch_metadata(&mark.key.name, &manager, &patch)).await?;
    Ok(())
}
