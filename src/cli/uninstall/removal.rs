//! `uninstall --remove-running`: deletes the ReleasePins and RenderedReleases, so that the controller deletes the
//! workloads.

use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Client, CustomResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::lease::{self, Renewal};
use super::rendered::{self, Rendered};
use super::{Survey, counted};
use crate::api::{ComponentEnvSnapshot, ReleasePin, RenderedRelease, condition, labels};
use crate::bundle::{MANAGER, Piece};
use crate::connect::Address;
use crate::error::{Error, Exit};
use crate::kinds::Kind;
use crate::report::Report;

/// The pause between two lists of the remaining objects.
const LOOK: Duration = Duration::from_millis(500);
/// The largest number of RenderedReleases that a message names.
pub const NAMED: usize = 5;

/// Lists the metadata of the ReleasePins on a cluster; empty if bowline did not install their CRD.
pub async fn pins(client: &Client, pieces: &[Piece]) -> Result<Vec<ObjectMeta>, Error> {
    match rendered::installed(pieces, ReleasePin::crd_name()) {
        Some(kind) => rendered::all(client, &kind).await,
        None => Ok(Vec::new()),
    }
}

/// Adds to the report that a ReleasePin is deleted.
pub fn report_pin(report: &mut Report<'_>, pin: &ObjectMeta) {
    let (namespace, name) = (pin.namespace.as_deref(), pin.name.as_deref());
    let label = format!(
        "ReleasePin {}/{}",
        namespace.unwrap_or_default(),
        name.unwrap_or_default()
    );
    report.add_labelled(&label, namespace, "deleted");
}

/// Returns an error if no controller runs, or if this is still unknown at `end`. The check is needed because only a
/// controller deletes the workloads.
pub async fn check_controller(
    client: &Client,
    survey: &Survey,
    address: &Address,
    end: Instant,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    let workloads = format!(
        "the workloads of {}",
        counted(survey.rendered.len(), "RenderedRelease")
    );
    match lease::renewal(client, end, say).await? {
        Renewal::Renewed => return Ok(()),
        Renewal::Absent => {}
        Renewal::Waiting(holder) => {
            let message = format!(
                "nothing was removed: the controller {holder} has not released its Lease {} in the namespace {}, and has not renewed it either, so it is not known whether a controller runs that could remove {workloads}",
                labels::CONTROLLER_LEASE,
                labels::SYSTEM_NAMESPACE
            );
            let error = Error::new(Exit::Refused, message);
            return Err(error
                .with_hint("wait until the Lease is renewed or ends: --timeout 10m")
                .and_hint("or keep the workloads: leave out --remove-running"));
        }
    }
    let message = format!("nothing was removed: no controller runs that could remove {workloads}");
    let error = Error::new(Exit::Refused, message);
    let is_being_deleted = survey.pieces.iter().any(Piece::is_being_deleted);
    let error = match is_being_deleted {
        false => error.with_hint("start the controller, then repeat this command: bowline install"),
        // `install` is refused as long as an object of the bundle is being deleted, so another command is suggested.
        true => {
            let system = survey.pieces.iter().find(|it| it.is_namespace());
            let is_missing = system.is_some_and(|system| system.found.is_none());
            let mut commands = Vec::new();
            if is_missing {
                commands.push(format!(
                    "kubectl create namespace {}",
                    labels::SYSTEM_NAMESPACE
                ));
            }
            // `address.kubectl` adds no namespace flag, so the suggested controller runs for all namespaces.
            commands.extend(["bowline controller --listen 127.0.0.1:0".to_owned()]);
            let commands = commands.iter().filter_map(|line| address.kubectl(line));
            let commands: Vec<String> = commands.collect();
            error.with_hint(format!(
                "run a controller here until the workloads are gone, and repeat this command in another terminal: {}",
                commands.join(" && ")
            ))
        }
    };
    Err(error.and_hint("or keep the workloads: leave out --remove-running"))
}

/// Deletes all ReleasePins and then all RenderedReleases, and waits until the controller has deleted their workloads.
pub async fn remove(
    client: &Client,
    pieces: &[Piece],
    end: Instant,
    report: &mut Report<'_>,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    let installed = |name: &str| rendered::installed(pieces, name);
    let mut told = false;
    loop {
        let pins = match installed(ReleasePin::crd_name()) {
            Some(kind) => delete_pins(client, &kind, report).await?,
            None => 0,
        };
        let left = rendered::list(client, pieces).await?;
        if let Some(kind) = installed(RenderedRelease::crd_name()) {
            for each in &left {
                // A RenderedRelease is deleted only if two things are true. Its ReleasePin is deleted; otherwise the
                // controller would create the RenderedRelease again. And it has the controller's finalizer; otherwise
                // its workloads would stay.
                let is_ready = each.is_claimed() || !each.may_have_workloads();
                if pins == 0 && is_ready && !each.is_being_deleted() {
                    delete(client, &kind, each.namespace(), each.name(), each.uid()).await?;
                    each.report(report, "deleted");
                }
                mark(client, &kind, each).await?;
            }
        }
        let snapshots = match installed(ComponentEnvSnapshot::crd_name()) {
            Some(kind) => owned_by_pins(client, &kind).await?,
            None => 0,
        };
        if pins == 0 && left.is_empty() && snapshots == 0 {
            return Ok(());
        }
        if !left.is_empty() && !told {
            say("waiting until the controller has removed the workloads".to_owned());
            told = true;
        }
        if Instant::now() > end {
            return Err(remains(client, pins, &left).await);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Deletes all ReleasePins, and returns how many there were.
async fn delete_pins(
    client: &Client,
    kind: &Kind,
    report: &mut Report<'_>,
) -> Result<usize, Error> {
    let found = rendered::all(client, kind).await?;
    for pin in &found {
        let (namespace, name) = (
            pin.namespace.as_deref().unwrap_or_default(),
            pin.name.as_deref().unwrap_or_default(),
        );
        if pin.deletion_timestamp.is_none() {
            delete(client, kind, namespace, name, pin.uid.clone()).await?;
            report_pin(report, pin);
        }
    }
    Ok(found.len())
}

/// Returns the number of objects of a kind that ReleasePins own.
async fn owned_by_pins(client: &Client, kind: &Kind) -> Result<usize, Error> {
    let found = rendered::all(client, kind).await?;
    let pin = ReleasePin::crd().spec.names.kind;
    let owned = found.iter().filter(|object| {
        let mut owners = object.owner_references.iter().flatten();
        owners.any(|owner| owner.kind == pin)
    });
    Ok(owned.count())
}

async fn delete(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    name: &str,
    uid: Option<String>,
) -> Result<(), Error> {
    let objects: Api<DynamicObject> = kind.objects(client, Some(namespace));
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    match objects.delete(name, &params).await {
        Ok(_) => Ok(()),
        // Either the object is already deleted, or a new object has the same name. The next list contains the new
        // object.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Asks the controller to delete the workloads of a RenderedRelease that is being deleted, even if its CRD or
/// namespace is being deleted too. The annotation is only for this deletion, so it has no effect on a later one.
async fn mark(client: &Client, kind: &Kind, each: &Rendered) -> Result<(), Error> {
    let Some(value) = each.deletion().filter(|_| !each.is_marked()) else {
        return Ok(());
    };
    let objects: Api<DynamicObject> = kind.objects(client, Some(each.namespace()));
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let body = json!({"metadata": {
        "uid": each.uid(), "annotations": {labels::REMOVE_RUNNING: value},
    }});
    let patched = objects
        .patch_metadata(each.name(), &params, &Patch::Merge(&body))
        .await;
    match patched {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error after a timeout. It names the remaining objects, and why they remain.
async fn remains(client: &Client, pins: usize, left: &[Rendered]) -> Error {
    let mut message = match (pins, left.len()) {
        (0, left) => format!("{} still exist", counted(left, "RenderedRelease")),
        (pins, _) => format!(
            "{} still exist or were created again",
            counted(pins, "ReleasePin")
        ),
    };
    for each in left.iter().take(NAMED) {
        message += &format!("\n  {each}");
        if !each.is_claimed() {
            message += ": the controller has not claimed it";
            continue;
        }
        let releases: Api<RenderedRelease> = Api::namespaced(client.clone(), each.namespace());
        let found = releases.get_opt(each.name()).await.ok().flatten();
        let conditions = found
            .and_then(|found| found.status)
            .unwrap_or_default()
            .conditions;
        if let Some(found) = condition::find(&conditions, condition::FINALIZING) {
            message += &format!(": {}", found.message);
        }
    }
    let hint = match pins {
        0 => {
            "the controller continues; repeat bowline uninstall --remove-running, with a longer --timeout"
        }
        _ => {
            "a GitOps tool or another controller may create them again: stop it, then repeat bowline uninstall --remove-running"
        }
    };
    Error::new(Exit::Failed, message).with_hint(hint)
}
