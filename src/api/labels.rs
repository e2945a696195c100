//! The strings in the metadata of objects: API groups, labels, annotations, finalizers and field managers.
//!
//! All other modules use these constants, so that each string is written only once.

/// The API group of the kinds for components and environments.
pub const OPENCHOREO_GROUP: &str = "openchoreo.dev";
/// The API group of the kind RenderedRelease.
pub const CORE_CHOREO_GROUP: &str = "core.choreo.dev";
/// The API group of bowline's own kinds, such as AuditEntry.
pub const BOWLINE_GROUP: &str = "bowline.dev";
/// The API groups of all kinds of bowline.
pub const GROUPS: [&str; 3] = [OPENCHOREO_GROUP, CORE_CHOREO_GROUP, BOWLINE_GROUP];
/// The category of all kinds of bowline, for `kubectl get bowline`.
pub const CATEGORY: &str = "bowline";

/// Label: the name of the component that an object belongs to.
pub const COMPONENT: &str = "openchoreo.dev/component";
/// Label: the name of the environment that an object belongs to.
pub const ENVIRONMENT: &str = "openchoreo.dev/environment";
/// Label: the version of a Release. Missing if the version is not a valid label value.
pub const VERSION: &str = "openchoreo.dev/version";
/// Label: a ReleasePin names this Release or will name it, so a policy denies its deletion. Only `gc` removes
/// the label, after no ReleasePin names the Release and no claim is active.
pub const PINNED: &str = "bowline.dev/pinned";
/// The only value of [`PINNED`] that has an effect.
pub const PINNED_TRUE: &str = "true";
/// Label on the objects that `bowline install` created and may replace or remove.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// The value of [`PART_OF`].
pub const PART_OF_BOWLINE: &str = "bowline";

/// Annotation: the SHA-256 of the content of a Release or a snapshot.
pub const CONTENT_HASH: &str = "bowline.dev/content-hash";
/// Annotation: the size of a Release or a snapshot as stored, in bytes.
pub const SIZE: &str = "bowline.dev/size";
/// Annotation: the container images of a Release, separated by commas.
pub const IMAGES: &str = "bowline.dev/images";
/// Annotation: the version of a Release as the user typed it.
pub const VERSION_TEXT: &str = "bowline.dev/version";
/// Annotation: the mark of a Release, or of the object that stores a workload's revision, as bad or good, with user
/// and reason ([`crate::api::openchoreo::release::Mark`]).
pub const MARK: &str = "bowline.dev/mark";
/// Annotation: the newest claim on a Release ([`crate::api::openchoreo::release::Claim`]).
pub const CLAIMED_AT: &str = "bowline.dev/claimed-at";
/// Annotation: the id of the operation that is about to delete a Release. After a crash, another process
/// records the deletion under the same id.
pub const COLLECTING: &str = "bowline.dev/collecting";
/// Annotation: the compression of the definitions that a Release embeds.
pub const COMPRESSION: &str = "openchoreo.dev/compression";
/// The only value of [`COMPRESSION`].
pub const COMPRESSION_GZIP: &str = "gzip";
/// Annotation on a snapshot: the SHA-256 of the git references from which the snapshot was resolved.
pub const REFERENCES_HASH: &str = "bowline.dev/references-hash";
/// Annotation on a RenderedRelease: the SHA-256 of its rendered resources.
pub const RENDERED_HASH: &str = "bowline.dev/rendered-hash";
/// Annotation on a ReleasePin: the user who changed its spec last, as the API server recorded it.
pub const CHANGED_BY: &str = "bowline.dev/changed-by";
/// Annotation on a ReleasePin: the operation that changed the spec last
/// ([`crate::api::openchoreo::pin::Operation`]).
pub const OPERATION: &str = "bowline.dev/operation";
/// Annotation on a ReleasePin: the hash of the AuditEntry that was the newest one when the spec changed last.
pub const AUDIT_HEAD: &str = "bowline.dev/audit-head";

/// Label on an applied resource: the name of the program that manages it.
pub const MANAGED_BY: &str = "core.choreo.dev/managed-by";
/// Label on a namespace: the name of the program that created it.
pub const CREATED_BY: &str = "core.choreo.dev/created-by";
/// The value of [`MANAGED_BY`] and [`CREATED_BY`].
pub const RELEASE_CONTROLLER: &str = "release-controller";
/// Label on an applied resource: the id of the resource in the RenderedRelease.
pub const RELEASE_RESOURCE_ID: &str = "core.choreo.dev/release-resource-id";
/// Label on an applied resource: the uid of the RenderedRelease that owns it.
pub const RELEASE_UID: &str = "core.choreo.dev/release-uid";
/// Label on an applied resource: the name of the RenderedRelease that owns it.
pub const RELEASE_NAME: &str = "core.choreo.dev/release-name";
/// Label on an applied resource: the namespace of the RenderedRelease that owns it.
pub const RELEASE_NAMESPACE: &str = "core.choreo.dev/release-namespace";
/// Annotation on an applied resource: a hash of the manifest that was applied.
pub const APPLIED_HASH: &str = "bowline.dev/applied-hash";
/// Label on a namespace that bowline created: the name of the environment.
pub const NAMESPACE_ENVIRONMENT: &str = "core.choreo.dev/environment";
/// Label on a namespace that bowline created: the name of the project.
pub const NAMESPACE_PROJECT: &str = "core.choreo.dev/project";

/// Annotation on a RenderedRelease: the connections of the data planes that may have its resources. The
/// controller writes this list before it applies the first resource, so that a cleanup needs neither the
/// Environment nor the DataPlane.
pub const DATA_PLANES: &str = "bowline.dev/data-planes";
/// Annotation on an object in a data plane that another tool owns. The value `true` allows a RenderedRelease
/// to take the object over, if it has a resource of that kind and name.
pub const ADOPT: &str = "bowline.dev/adopt";
/// The only value of [`ADOPT`] that has an effect.
pub const ADOPT_TRUE: &str = "true";
/// Annotation on an embedded DataPlane: the images whose containers crash, separated by commas. An image that
/// ends in `*` is a prefix.
pub const FAULTY_IMAGES: &str = "bowline.dev/faulty-images";
/// Annotation on an object of an embedded data plane: the simulator writes the status of the object, because
/// no pods run.
pub const SIMULATED: &str = "bowline.dev/simulated";
/// The only value of [`SIMULATED`] that has an effect.
pub const SIMULATED_TRUE: &str = "true";

/// Annotation that requests the cleanup of a RenderedRelease although its whole kind or namespace is being
/// deleted. A user sets it on the RenderedRelease or the namespace. The value is the
/// `metadata.deletionTimestamp` of that object, so the annotation is valid only for this deletion.
pub const REMOVE_RUNNING: &str = "bowline.dev/remove-running";
/// Annotation on an object that `bowline install` created: the JSON that it applied last.
pub const LAST_INSTALLED: &str = "bowline.dev/last-installed";

/// The finalizer of a RenderedRelease. The controller removes the finalizer after it has deleted the
/// resources in all data planes.
pub const DATAPLANE_CLEANUP: &str = "core.choreo.dev/dataplane-cleanup";

/// The field manager of the engine, which performs the actions of users.
pub const MANAGER_ENGINE: &str = "bowline";
/// The field manager of the controllers when they write objects of bowline's kinds.
pub const MANAGER_CONTROLLER: &str = "bowline-controller";
/// The field manager of the RenderedRelease controller when it writes objects in data planes.
pub const MANAGER_DATAPLANE: &str = "bowline-dataplane";
/// The field manager of the simulator of an embedded data plane.
pub const MANAGER_SIMULATOR: &str = "bowline-simulator";

/// The RBAC verb on `environments.openchoreo.dev`. A user with this verb may change the releases of an
/// environment.
pub const PROMOTE_VERB: &str = "promote";

/// The namespace in which the controller is installed.
pub const SYSTEM_NAMESPACE: &str = "bowline-system";
/// The Lease that the controller renews while it runs.
pub const CONTROLLER_LEASE: &str = "bowline-controller";
/// Annotation on a subject whose kind has no field for holds: the list of holds, as JSON.
pub const HOLDS: &str = "bowline.dev/holds";
/// Annotation on a subject: the number of changes that bowline made to it. Used if other programs also
/// increase the generation of the subject.
pub const CHANGES: &str = "bowline.dev/changes";
/// Annotation on a workload: the operation that published its template, if [`OPERATION`] has a later one that left the
/// template as it is.
pub const PUBLISHED: &str = "bowline.dev/published";
/// Annotation on a workload: the revisions that a rollback or an undo replaced.
pub const ABANDONED: &str = "bowline.dev/abandoned-revisions";
/// Annotation on a Deployment: the id of the hold that paused the Deployment.
pub const PAUSED_BY_HOLD: &str = "bowline.dev/frozen-by";
/// Annotation on a Deployment: the operation that resumed the paused Deployment, then `/` and the id of the hold that
/// had paused it. The id is empty if no hold had paused it.
pub const RESUMED: &str = "bowline.dev/resumed-by";
