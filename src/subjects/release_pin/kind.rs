//! Describes the ReleasePin as a kind of subject, for the engine.

use jiff::Timestamp;
use kube::api::DynamicObject;

use crate::api::ReleasePin;
use crate::api::bowline::audit::{ContentRef, RELEASE_PIN};
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::connect::kinds;
use crate::engine::audit::Live;
use crate::engine::plan::Change;
use crate::engine::subject::{Capability, HoldsIn, Kind, Numbering, dynamic};

/// The path of the field in a ReleasePin that names the release.
pub(crate) const RELEASE_REF: &[&str] = &["spec", "releaseRef", "name"];

pub static KIND: Kind = Kind {
    name: RELEASE_PIN,
    prefixes: &["releasepin", "pin"],
    resource: kinds::kind::<ReleasePin>,
    main_field: RELEASE_REF,
    holds: HoldsIn::Field(&["spec", "holds"]),
    numbering: Numbering::Generation,
    actions: None,
    capabilities: &[
        Capability::Deploy,
        Capability::Promote,
        Capability::Rollback,
        Capability::Pin,
        Capability::Undo,
    ],
    content,
    release_ref: differing_release_ref,
    place,
};

/// Returns ReleasePins in the form that the verification of audit entries needs.
pub fn live(pins: &[ReleasePin]) -> Vec<Live> {
    let live = |pin: &ReleasePin| Live {
        kind: &KIND,
        object: dynamic(pin),
    };
    pins.iter().map(live).collect()
}

/// Returns the release that the releaseRef of a ReleasePin names after a change.
pub fn release_ref(change: &Change) -> &str {
    let name = change.field(RELEASE_REF);
    name.and_then(|name| name.as_str()).unwrap_or_default()
}

fn spec(object: &DynamicObject) -> ReleasePinSpec {
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    serde_json::from_value(spec).unwrap_or_default()
}

fn content(object: &DynamicObject, at: Timestamp, owned: bool) -> ContentRef {
    ContentRef::named(spec(object).release_at(at, owned))
}

fn differing_release_ref(object: &DynamicObject, to: &ContentRef) -> Option<String> {
    Some(spec(object).release_ref.name).filter(|named| *named != to.name)
}

fn place(object: &DynamicObject) -> (String, Option<String>) {
    let spec = spec(object);
    (spec.component, Some(spec.environment))
}
