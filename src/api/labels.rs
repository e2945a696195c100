//! The words that stand in metadata: API groups, labels, annotations, finalizers and field managers.
//!
//! Nothing else in the program spells one of these strings.

/// The group of the kinds that describe components and where they run.
pub const OPENCHOREO_GROUP: &str = "openchoreo.dev";
/// The group of the RenderedRelease.
pub const CORE_CHOREO_GROUP: &str = "core.choreo.dev";
/// The group of bowline's own kinds.
pub const BOWLINE_GROUP: &str = "bowline.dev";
/// The category of every kind here: `kubectl get bowline`.
pub const CATEGORY: &str = "bowline";

/// Label: the component that an object belongs to.
pub const COMPONENT: &str = "openchoreo.dev/component";
/// Label: the environment that an object belongs to.
pub const ENVIRONMENT: &str = "openchoreo.dev/environment";
/// Label: the version of a Release, where it fits a label.
pub const VERSION: &str = "openchoreo.dev/version";
/// Label on a Release that a pin names or is about to name; a policy denies its deletion.
pub const PINNED: &str = "bowline.dev/pinned";
/// The only value of [`PINNED`] that means anything.
pub const PINNED_TRUE: &str = "true";
/// Label on what `bowline install` created and may replace or remove.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// The value of [`PART_OF`].
pub const PART_OF_BOWLINE: &str = "bowline";

/// Annotation: the SHA-256 of a Release's or a snapshot's content.
pub const CONTENT_HASH: &str = "bowline.dev/content-hash";
/// Annotation: the size of an object's content in bytes.
pub const SIZE: &str = "bowline.dev/size";
/// Annotation: the images of a Release, separated by commas.
pub const IMAGES: &str = "bowline.dev/images";
/// Annotation: the version of a Release as it was given.
pub const VERSION_TEXT: &str = "bowline.dev/version";
/// Annotation: whether a Release was marked bad or good, by whom and why ([`crate::api::release::Mark`]).
pub const MARK: &str = "bowline.dev/mark";
/// Annotation: when and by which operation a Release was claimed ([`crate::api::release::Claim`]).
pub const CLAIMED_AT: &str = "bowline.dev/claimed-at";
/// Annotation: the operation that is about to delete a Release, so that who comes after it records the
/// deletion as the same.
pub const COLLECTING: &str = "bowline.dev/collecting";
/// Annotation: how embedded content is compressed.
pub const COMPRESSION: &str = "openchoreo.dev/compression";
/// The only value of [`COMPRESSION`].
pub const COMPRESSION_GZIP: &str = "gzip";
/// Annotation on a snapshot: the SHA-256 of the references that it was resolved from.
pub const REFERENCES_HASH: &str = "bowline.dev/references-hash";
/// Annotation on a RenderedRelease: the SHA-256 of its rendered resources.
pub const RENDERED_HASH: &str = "bowline.dev/rendered-hash";
/// Annotation on a pin: who changed its spec last, by the API server's word.
pub const CHANGED_BY: &str = "bowline.dev/changed-by";
/// Annotation on a pin: the operation that changed its spec last ([`crate::api::pin::Operation`]).
pub const OPERATION: &str = "bowline.dev/operation";
/// Annotation on a pin: the hash of its newest AuditEntry when it last moved.
pub const AUDIT_HEAD: &str = "bowline.dev/audit-head";

/// Label on applied resources: who manages them.
pub const MANAGED_BY: &str = "core.choreo.dev/managed-by";
/// Label on created namespaces: who created them.
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
/// Annotation on applied resources: a hash of what was applied, whoever else writes the object.
pub const APPLIED_HASH: &str = "bowline.dev/applied-hash";
/// Label on created namespaces: the environment that they are for.
pub const NAMESPACE_ENVIRONMENT: &str = "core.choreo.dev/environment";
/// Label on created namespaces: the project that they are for.
pub const NAMESPACE_PROJECT: &str = "core.choreo.dev/project";

/// Annotation on a RenderedRelease: the data planes that may hold resources of it, by how they are
/// reached, as a list. It is written before the first resource and outlives Environment and DataPlane.
pub const DATA_PLANES: &str = "bowline.dev/data-planes";
/// Annotation on an object of a data plane that somebody else made: with the value `true` it may be taken
/// over by the RenderedRelease that names it.
pub const ADOPT: &str = "bowline.dev/adopt";
/// The only value of [`ADOPT`] that means anything.
pub const ADOPT_TRUE: &str = "true";
/// Annotation on a DataPlane that is embedded: images that crash there, separated by commas; one that ends
/// in `*` stands for all that begin so.
pub const FAULTY_IMAGES: &str = "bowline.dev/faulty-images";
/// Annotation on an object of an embedded data plane: its status is the simulator's, nothing runs.
pub const SIMULATED: &str = "bowline.dev/simulated";
/// The only value of [`SIMULATED`] that means anything.
pub const SIMULATED_TRUE: &str = "true";

/// Annotation on a RenderedRelease, or on a namespace of RenderedReleases, that is being deleted: the
/// controller removes their workloads also while a whole kind or namespace is being deleted. The value is the
/// object's `metadata.deletionTimestamp`, so that it is valid for one deletion.
pub const REMOVE_RUNNING: &str = "bowline.dev/remove-running";
/// Annotation on an installed object: the object as `bowline install` applied it last, as JSON.
pub const LAST_INSTALLED: &str = "bowline.dev/last-installed";

/// The finalizer of a RenderedRelease: its resources leave the data plane first.
pub const DATAPLANE_CLEANUP: &str = "core.choreo.dev/dataplane-cleanup";

/// The field manager of the engine: what a person does through bowline.
pub const MANAGER_ENGINE: &str = "bowline";
/// The field manager of the controllers on our own kinds.
pub const MANAGER_CONTROLLER: &str = "bowline-controller";
/// The field manager of what the RenderedRelease controller applies to a data plane.
pub const MANAGER_DATAPLANE: &str = "bowline-dataplane";
/// The field manager of the simulator of an embedded data plane.
pub const MANAGER_SIMULATOR: &str = "bowline-simulator";

/// The verb that RBAC grants on `environments.openchoreo.dev` to those who may move pins there.
pub const PROMOTE_VERB: &str = "promote";

/// The namespace that the controller runs in.
pub const SYSTEM_NAMESPACE: &str = "bowline-system";
/// The Lease that the controller renews while it runs.
pub const CONTROLLER_LEASE: &str = "bowline-controller";
