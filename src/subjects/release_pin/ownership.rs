//! The fields that show whether a GitOps tool owns a ReleasePin or a release.

use jiff::Timestamp;

use crate::api::ReleasePin;
use crate::engine::ownership::gitops;

/// The field of a ReleasePin that its owner manages, as a path in managed fields.
pub const OF_PIN: &[&str] = &["f:spec", "f:releaseRef"];
/// The field of a release that its owner manages, as a path in managed fields.
pub const OF_RELEASE: &[&str] = &["f:spec"];

/// Returns the effective release of a ReleasePin at `now`. Finds out from the metadata whether a GitOps tool
/// owns the ReleasePin.
pub fn effective_release(pin: &ReleasePin, now: Timestamp) -> &str {
    let owned = gitops(&pin.metadata, OF_PIN).is_some();
    pin.spec.release_at(now, owned)
}
