//! Tests of workloads in the matrix: the matrix shows them without any object of bowline.

use super::ordered;
use crate::fixture::deployment;
use crate::snapshot_test::SnapshotTest;

fn cluster() -> SnapshotTest {
    let mut world = crate::subjects::read_model();
    deployment(&mut world, "api", &["api:1"], 1);
    deployment(&mut world, "web", &["web:1", "web:2"], 2);
    SnapshotTest::of(world)
}

#[test]
fn the_matrix_shows_workloads_and_the_revision_that_a_rollback_restores() {
    let still = cluster().keys("G");
    let still = still.shows("deploy/api").shows("1/2").shows("deploy/web");
    let still = still.shows("⤺ rev 1 web:1").shows("deploy/web in shop");
    still
        .shows("Revision 2: web:2")
        .shows("A rollback restores rev 1 web:1");
}

#[test]
fn a_rollback_of_a_workload_is_a_command_without_an_environment() {
    let still = cluster().keys("G R");
    assert_eq!(
        ordered(&still).command_lines(None),
        ["bowline rollback deploy/web"]
    );
}

#[test]
fn a_filter_finds_workloads_by_kind_and_image() {
    let still = cluster().keys("/").keys("\"web\"").keys("enter");
    still.shows("deploy/web").hides("deploy/api");
}

#[test]
fn a_workload_is_not_promoted() {
    cluster()
        .keys("G P")
        .shows("deploy/web has no releases: promote needs a component");
}
