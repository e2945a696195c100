//! The fields by which a GitOps tool owns a ReleasePin or a release.

use jiff::Timestamp;

use crate::api::ReleasePin;
use crate::engine::ownership::gitops;

/// The field by which a tool owns a ReleasePin.
pub const OF_PIN: &[&str] = &["f:spec", "f:releaseRef"];
/// The field by which a tool owns a release.
pub const OF_RELEASE: &[&str] = &["f:spec"];

/// Returns the effective release of a ReleasePin at `now`, also if a GitOps tool owns the ReleasePin.
pub fn effective_release(pin: &ReleasePin, now: Timestamp) -> &str {
    let owned = gitops(&pin.metadata, OF_PIN).is_some();
    pin.spec.release_at(now, owned)
}
