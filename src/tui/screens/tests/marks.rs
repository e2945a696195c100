//! Tests of how lists show holds and marks.

use serde_json::json;

use super::data::shop;
use super::still;
use crate::engine::world::Event;
use crate::fixture::{self, pin};
use crate::snapshot_test::SnapshotTest;

#[test]
fn a_hold_that_has_ended_is_shown_as_expired() {
    let mut world = shop();
    let mut held = pin("ledger", "production", "v3.0.9");
    held.spec.holds = serde_json::from_value(json!([{
        "id": "freeze", "owner": "mei", "reason": "INC-41",
        "since": "2026-11-12T10:00:00Z", "until": "2026-11-17T13:00:00Z",
    }]))
    .unwrap();
    world.pins(Event::Applied(held));
    let still = SnapshotTest::of(world).hides("⚓").shows("v3.0.9 †");
    let still = still.keys("g g j j").shows("ledger in production");
    let still = still.shows("Held by mei, expired 13:00:00");
    still.keys("g p").shows("† expired");
}

#[test]
fn what_is_marked_in_several_environments_is_not_taken_for_nothing() {
    for key in ["P", "R"] {
        let still = still()
            .keys("g p /")
            .keys("\"checkout\"")
            .keys("enter *")
            .keys(key);
        still.shows("the marked rows are in several environments");
    }
}

#[test]
fn a_promotion_with_two_pipelines_names_the_fault() {
    let mut still = super::still();
    let mut other = fixture::stored(fixture::pipeline(&[]));
    other.metadata.name = Some("other".to_owned());
    still
        .world
        .pipelines(crate::engine::world::Event::Applied(other));
    still
        .keys("P")
        .shows("namespace shop has 2 DeploymentPipelines (default, other)");
}

#[test]
fn several_marked_rows_mark_no_release() {
    super::still()
        .keys("g g space space B")
        .shows("select a release first");
}
