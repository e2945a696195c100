//! The constants of metadata: API groups, labels, annotations, finalizers and field managers.
//!
//! No other module contains these strings.

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

/// Label: the component that an object belongs to.
pub const COMPONENT: &str = "openchoreo.dev/component";
/// Label: the environment that an object belongs to.
pub const ENVIRONMENT: &str = "openchoreo.dev/environment";
/// Label: the version of a Release, if it is a valid label value.
pub const VERSION: &str = "openchoreo.dev/version";
/// Label on a Release that a ReleasePin names or will name; a policy denies its deletion. The label stays
/// until `gc` finds that no ReleasePin names the Release and that no claim is active.
pub const PINNED: &str = "bowline.dev/pinned";
/// The only value of [`PINNED`] that has an effect.
pub const PINNED_TRUE: &str = "true";
/// Label on the objects that `bowline install` created and may replace or remove.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// The value of [`PART_OF`].
pub const PART_OF_BOWLINE: &str = "bowline";

/// Annotation: the SHA-256 of the content of a Release or a snapshot.
pub const CONTENT_HASH: &str = "bowline.dev/content-hash";
/// Annotation: the size of the content of a Release or a snapshot, in bytes.
pub const SIZE: &str = "bowline.dev/size";
/// Annotation: the container images of a Release, separated by commas.
pub const IMAGES: &str = "bowline.dev/images";
/// Annotation: the version of a Release as the user wrote it.
pub const VERSION_TEXT: &str = "bowline.dev/version";
/// Annotation: the mark of a Release, or of the object that stores a workload's revision, as bad or good, with user
/// and reason ([`crate::api::openchoreo::release::Mark`]).
pub const MARK: &str = "bowline.dev/mark";
/// Annotation: the time and the operation of the claim on a Release ([`crate::api::openchoreo::release::Claim`]).
pub const CLAIMED_AT: &str = "bowline.dev/claimed-at";
/// Annotation: the operation that is about to delete a Release, so that a later process records the deletion
/// under the same operation.
pub const COLLECTING: &str = "bowline.dev/collecting";
/// Annotation: the compression of embedded content.
pub const COMPRESSION: &str = "openchoreo.dev/compression";
/// The only value of [`COMPRESSION`].
pub const COMPRESSION_GZIP: &str = "gzip";
/// Annotation on a snapshot: the SHA-256 of the references that it was resolved from.
pub const REFERENCES_HASH: &str = "bowline.dev/references-hash";
/// Annotation on a RenderedRelease: the SHA-256 of its rendered resources.
pub const RENDERED_HASH: &str = "bowline.dev/rendered-hash";
/// Annotation on a ReleasePin: the user of the last change of its spec, as the API server stamped it.
pub const CHANGED_BY: &str = "bowline.dev/changed-by";
/// Annotation on a ReleasePin: the operation that changed its spec last ([`crate::api::openchoreo::pin::Operation`]).
pub const OPERATION: &str = "bowline.dev/operation";
/// Annotation on a ReleasePin: the hash of its newest AuditEntry at the last change of its spec.
pub const AUDIT_HEAD: &str = "bowline.dev/audit-head";

/// Label on applied resources: the program that manages them.
pub const MANAGED_BY: &str = "core.choreo.dev/managed-by";
/// Label on created namespaces: the program that created them.
pub const CREATED_BY: &str = "core.choreo.dev/created-by";
/// The value of [`MANAGED_BY`] and [`CREATED_BY`].
pub const RELEASE_CONTROLLER: &str = "release-controller";
/// Label on applied resources: the resource's id in the RenderedRelease.
pub const RELEASE_RESOURCE_ID: &str = "core.choreo.dev/release-resource-id";
/// Label on applied resources: the uid of the RenderedRelease.
pub const RELEASE_UID: &str = "core.choreo.dev/release-uid";
/// Label on applied resources: the name of the RenderedRelease.
pub const RELEASE_NAME: &str = "core.choreo.dev/release-name";
/// Label on applied resources: the namespace of the RenderedRelease.
pub const RELEASE_NAMESPACE: &str = "core.choreo.dev/release-namespace";
/// Annotation on applied resources: a hash of the applied content.
pub const APPLIED_HASH: &str = "bowline.dev/applied-hash";
/// Label on created namespaces: the environment.
pub const NAMESPACE_ENVIRONMENT: &str = "core.choreo.dev/environment";
/// Label on created namespaces: the project.
pub const NAMESPACE_PROJECT: &str = "core.choreo.dev/project";

/// Annotation on a RenderedRelease: the connection names of the data planes that may have its resources. The
/// controller writes the list before it applies the first resource. The list is valid even after the
/// Environment and the DataPlane are deleted.
pub const DATA_PLANES: &str = "bowline.dev/data-planes";
/// Annotation on an object of another owner in a data plane: with the value `true`, a RenderedRelease with a
/// resource of that name may take over the object.
pub const ADOPT: &str = "bowline.dev/adopt";
/// The only value of [`ADOPT`] that has an effect.
pub const ADOPT_TRUE: &str = "true";
/// Annotation on an embedded DataPlane: the images that crash there, separated by commas. An image that ends
/// in `*` is a prefix.
pub const FAULTY_IMAGES: &str = "bowline.dev/faulty-images";
/// Annotation on an object of an embedded data plane: the simulator writes its status, because no pods run.
pub const SIMULATED: &str = "bowline.dev/simulated";
/// The only value of [`SIMULATED`] that has an effect.
pub const SIMULATED_TRUE: &str = "true";

/// Annotation on a RenderedRelease that is being deleted, or on its namespace: the controller deletes the
/// workloads even if a whole kind or namespace is being deleted. The value is the
/// `metadata.deletionTimestamp` of the annotated object, so the annotation is valid only for this deletion.
pub const REMOVE_RUNNING: &str = "bowline.dev/remove-running";
/// Annotation on an installed object: the JSON of the object that `bowline install` applied last.
pub const LAST_INSTALLED: &str = "bowline.dev/last-installed";

/// The finalizer of a RenderedRelease. The controller removes it after it has deleted the resources in the
/// data planes.
pub const DATAPLANE_CLEANUP: &str = "core.choreo.dev/dataplane-cleanup";

/// The field manager of the engine, which performs the actions of users.
pub const MANAGER_ENGINE: &str = "bowline";
/// The field manager of the controllers for objects of bowline's kinds.
pub const MANAGER_CONTROLLER: &str = "bowline-controller";
/// The field manager of the RenderedRelease controller for objects in data planes.
pub const MANAGER_DATAPLANE: &str = "bowline-dataplane";
/// The field manager of the simulator of an embedded data plane.
pub const MANAGER_SIMULATOR: &str = "bowline-simulator";

/// The RBAC verb on `environments.openchoreo.dev` for users who may move the ReleasePins of an environment.
pub const PROMOTE_VERB: &str = "promote";

/// The namespace of the controller.
pub const SYSTEM_NAMESPACE: &str = "bowline-system";
/// The Lease that the controller renews while it runs.
pub const CONTROLLER_LEASE: &str = "bowline-controller";
/// Annotation on a subject whose kind has no field for holds: the list of holds, as JSON.
pub const HOLDS: &str = "bowline.dev/holds";
/// Annotation on a subject whose generation other programs change often: the number of changes that bowline
/// has made to the subject.
pub const CHANGES: &str = "bowline.dev/changes";
/// Annotation on a workload: the operation that published its template, if [`OPERATION`] has a later one that left the
/// template as it is.
pub const PUBLISHED: &str = "bowline.dev/published";
/// Annotation on a workload: the revisions that a rollback or an undo replaced.
pub const ABANDONED: &str = "bowline.dev/abandoned-revisions";
/// Annotation on a Deployment: the id of the hold that paused it.
pub const PAUSED_BY_HOLD: &str = "bowline.dev/frozen-by";
