//! Builds claims on releases; see [`crate::engine::claim`].

use super::rows::ReleaseRow;
use crate::api::Release;
use crate::connect::kinds;
use crate::engine::claim::ClaimOn;
use crate::engine::world::Key;

/// Returns a claim on a release of the read model, by its uid.
pub fn on(release: &ReleaseRow) -> ClaimOn {
    ClaimOn {
        uid: Some(release.uid.to_string()),
        ..on_name(release.key.clone())
    }
}

/// Returns a claim on a release by its name. For a release that the read model does not have.
pub(super) fn on_name(key: Key) -> ClaimOn {
    ClaimOn {
        resource: kinds::kind::<Release>(),
        word: "release",
        key,
        uid: None,
    }
}
