//! The identity of an object in a file: resource, namespace, name and uid. Also checks whether a text can contain
//! objects of bowline.

use memchr::memmem;
use sha2::{Digest, Sha256};

use crate::api::labels;

/// The resource of ReleasePins, as `{group}/{plural}`.
pub const PINS: &str = "openchoreo.dev/releasepins";
/// The resource of releases, as `{group}/{plural}`.
pub const RELEASES: &str = "openchoreo.dev/releases";
/// The resource of AuditEntries, as `{group}/{plural}`.
pub(super) const ENTRIES: &str = "bowline.dev/auditentries";

/// Returns the uid of an object. The uid is the same in every clone, because it is computed from resource, namespace
/// and name.
pub(super) fn uid(resource: &str, namespace: &str, name: &str) -> String {
    let hash = hash(format!("{resource}\0{namespace}\0{name}").as_bytes());
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default().to_owned();
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

/// Returns the namespace `own`. If `own` is empty, returns the default namespace `namespace`.
pub(super) fn or_else<'n>(own: &'n str, namespace: &'n str) -> &'n str {
    match own.is_empty() {
        true => namespace,
        false => own,
    }
}

/// Returns the key of a ReleasePin in the index.
pub(super) fn pin_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Returns whether an apiVersion is of one of bowline's API groups ([`labels::GROUPS`]).
pub(super) fn is_of_us(version: &str) -> bool {
    let group = version.split('/').next().unwrap_or_default();
    labels::GROUPS.contains(&group)
}

/// Returns whether a text mentions an API group of bowline. A text that does not cannot contain objects of bowline.
pub(super) fn names_us(bytes: &[u8]) -> bool {
    let mut groups = labels::GROUPS.iter();
    groups.any(|group| memmem::find(bytes, group.as_bytes()).is_some())
}

/// Returns the SHA-256 of bytes as hex digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| DIGITS.get(usize::from(digit)))
        .map(|digit| char::from(*digit))
        .collect()
}
