//! Recognizes the API groups of Kubernetes itself.

/// The API groups of Kubernetes whose names contain a dot. This list is sufficient, because every group
/// without a dot belongs to Kubernetes.
const BUILTIN: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Returns whether an API group belongs to Kubernetes itself.
pub fn is_builtin(group: &str) -> bool {
    !group.contains('.') || BUILTIN.contains(&group)
}
