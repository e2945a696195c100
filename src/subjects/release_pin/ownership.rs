//! The fields that show whether a GitOps tool owns a ReleasePin or a release.

use jiff::Timestamp;

use crate::api::ReleasePin;
use crate::engine::ownership::gitops;

/// The path, in managed fields, of the ReleasePin field that an owning GitOps tool writes.
pub const OF_PIN: &[&str] = &["f:spec", "f:releaseRef"];
/// The path, in managed fields, of the release field that an owning GitOps tool writes.
pub const OF_RELEASE: &[&str] = &["f:spec"];

/// Returns the effective release of a ReleasePin at `now`. Holds count in another way if a GitOps tool owns the
/// ReleasePin, which the function finds out from the metadata.
pub fn effective_release(pin: &ReleasePin, now: Timestamp) -> &str {
    let owned = gitops(&pin.metadata, OF_PIN).is_some();
    pin.spec.release_at(now, owned)
}
