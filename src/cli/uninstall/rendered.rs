//! Lists the RenderedReleases of a cluster and removes their finalizers.

use std::fmt;

use kube::api::{Api, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, CustomResourceExt, ResourceExt};
use serde_json::json;

use crate::api::{ReleasePin, RenderedRelease, labels, names};
use crate::bundle::{MANAGER, Piece};
use crate::controllers::rendered::deletion_guard;
use crate::error::{Error, Exit};
use crate::kinds::Kind;
use crate::report::Report;
use crate::text;

/// The largest number of attempts to write an object that other clients may change at the same time.
const ATTEMPTS: usize = 5;
/// The number of objects that one page of a list contains.
const PAGE: u32 = 500;

/// The metadata of a RenderedRelease.
pub struct Rendered {
    metadata: ObjectMeta,
}

impl Rendered {
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn uid(&self) -> Option<String> {
        self.metadata.uid.clone()
    }

    /// Returns whether the RenderedRelease has the finalizer of the controller.
    pub fn is_claimed(&self) -> bool {
        let mut finalizers = self.metadata.finalizers.iter().flatten();
        finalizers.any(|finalizer| finalizer == labels::DATAPLANE_CLEANUP)
    }

    /// Returns whether the controller may have deployed workloads for the RenderedRelease.
    pub fn may_have_workloads(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        self.is_claimed()
            || annotations.is_some_and(|found| found.contains_key(labels::DATA_PLANES))
    }

    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the value of the annotation that asks the controller to delete the workloads of this RenderedRelease.
    /// None if the RenderedRelease is not being deleted.
    pub fn deletion(&self) -> Option<String> {
        deletion_guard::deletion(&self.metadata)
    }

    /// Returns whether the RenderedRelease has the annotation of [`Rendered::deletion`] for its current deletion.
    pub fn is_marked(&self) -> bool {
        deletion_guard::is_wanted(&self.metadata)
    }

    /// Adds the result for this RenderedRelease to the report.
    pub fn report(&self, report: &mut Report<'_>, word: &str) {
        report.add_labelled(&self.to_string(), Some(self.namespace()), word);
    }
}

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = format!("{}/{}", self.namespace(), self.name());
        write!(f, "RenderedRelease {}", text::line(&object))
    }
}

/// Returns the kind that a CRD of the bundle defines.
pub fn defined(piece: &Piece) -> Kind {
    let spec = &piece.value["spec"];
    let text = |at: &str| {
        let found = spec.pointer(at).and_then(|found| found.as_str());
        found.unwrap_or_default().to_owned()
    };
    let (group, version) = (text("/group"), text("/versions/0/name"));
    Kind {
        resource: ApiResource {
            api_version: format!("{group}/{version}"),
            group,
            version,
            kind: text("/names/kind"),
            plural: text("/names/plural"),
        },
        namespaced: text("/scope") == "Namespaced",
    }
}

/// Returns the kind of the CRD `name`; None if bowline did not install the CRD. The objects of another owner's CRD
/// have other finalizers, so bowline must not touch them.
pub fn installed(pieces: &[Piece], name: &str) -> Option<Kind> {
    let piece = pieces
        .iter()
        .find(|piece| piece.is_crd() && piece.place.name == name)?;
    let ours = piece.found.as_ref().is_some_and(|found| found.ours);
    ours.then(|| defined(piece))
}

/// Returns whether `--remove-running` removes all objects that a CRD has.
pub fn is_removed_with_workloads(piece: &Piece) -> bool {
    let names = [RenderedRelease::crd_name(), ReleasePin::crd_name()];
    piece.is_crd() && !piece.is_foreign() && names.contains(&piece.place.name.as_str())
}

/// Lists the metadata of all objects of a kind; empty if the server does not have the kind.
pub async fn all(client: &Client, kind: &Kind) -> Result<Vec<ObjectMeta>, Error> {
    let objects: Api<DynamicObject> = kind.objects(client, None);
    let mut found = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = match objects.list_metadata(&params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(found),
            page => page?,
        };
        found.extend(page.items.into_iter().map(|object| object.metadata));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// Lists the RenderedReleases on a cluster; empty if bowline did not install their CRD.
pub async fn list(client: &Client, pieces: &[Piece]) -> Result<Vec<Rendered>, Error> {
    let Some(kind) = installed(pieces, RenderedRelease::crd_name()) else {
        return Ok(Vec::new());
    };
    let found = all(client, &kind).await?.into_iter();
    Ok(found.map(|metadata| Rendered { metadata }).collect())
}

/// Lists the workloads of RenderedReleases that are already being deleted, such as `Deployment shop/web`. `uninstall`
/// cannot save these workloads, because an API server cannot cancel a deletion.
pub async fn ending(client: &Client, pieces: &[Piece]) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for each in list(client, pieces).await? {
        if !each.is_claimed() {
            continue;
        }
        let releases: Api<RenderedRelease> = Api::namespaced(client.clone(), each.namespace());
        let Some(release) = releases.get_opt(each.name()).await? else {
            continue;
        };
        // The workloads may be in another cluster. So an object of this cluster counts only if it has the label of
        // the release.
        for entry in release.status.unwrap_or_default().resources {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
                &entry.group,
                &entry.version,
                &entry.kind,
            ));
            let objects: Api<DynamicObject> = match entry.namespace.as_deref() {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            // The user may not read the object, or it does not exist here, so it is left out.
            let Ok(Some(object)) = objects.get_metadata_opt(&entry.name).await else {
                continue;
            };
            let is_labelled = object
                .labels()
                .get(labels::RELEASE_NAME)
                .map(String::as_str)
                == Some(&*names::label_value(each.name()));
            if object.metadata.deletion_timestamp.is_some() && is_labelled {
                let name = match &entry.namespace {
                    Some(namespace) => format!("{} {namespace}/{}", entry.kind, entry.name),
                    None => format!("{} {}", entry.kind, entry.name),
                };
                found.push(text::line(&name).into_owned());
            }
        }
    }
    Ok(found)
}

/// Removes the finalizer of the controller from all RenderedReleases, so that their deletion does not delete
/// workloads. Returns how many had the finalizer. The caller must ensure that no controller runs.
pub async fn release(
    client: &Client,
    pieces: &[Piece],
    report: &mut Report<'_>,
) -> Result<usize, Error> {
    let Some(kind) = installed(pieces, RenderedRelease::crd_name()) else {
        return Ok(0);
    };
    let mut count = 0;
    for each in list(client, pieces).await? {
        if each.is_claimed() {
            release_one(client, &kind, &each).await?;
            count += 1;
            each.report(report, "loses its finalizer");
        }
    }
    Ok(count)
}

async fn release_one(client: &Client, kind: &Kind, each: &Rendered) -> Result<(), Error> {
    let objects: Api<DynamicObject> = kind.objects(client, Some(each.namespace()));
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let mut metadata = each.metadata.clone();
    for _ in 0..ATTEMPTS {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != labels::DATAPLANE_CLEANUP);
        // The patch replaces the whole list of finalizers. So it contains the resourceVersion, which makes it fail if
        // the list has changed.
        let body = json!({"metadata": {
            "uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": finalizers,
            "annotations": {labels::REMOVE_RUNNING: null},
        }});
        let patched = objects
            .patch_metadata(each.name(), &params, &Patch::Merge(&body))
            .await;
        match patched {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        match objects.get_metadata_opt(each.name()).await? {
            Some(found)
                if found
                    .finalizers()
                    .iter()
                    .any(|it| it == labels::DATAPLANE_CLEANUP) =>
            {
                metadata = found.metadata;
            }
            _ => return Ok(()),
        }
    }
    let message =
        format!("{each} still has its finalizer: other writers changed it during each attempt");
    Err(Error::new(Exit::Conflict, message).with_hint("repeat bowline uninstall"))
}
