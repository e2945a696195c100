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
fn actions_that_the_user_may_not_do_are_dimmed_with_the_reason() {
    let why = "no role grants you the verb patch on deployments";
    let mut still = cluster();
    let of_footer = |still: &SnapshotTest, word: &str| {
        let drawn = still.draw((120, 40));
        let last: Vec<_> = drawn.content.rchunks(120).next().unwrap().to_vec();
        let text: String = last.iter().map(|cell| cell.symbol()).collect();
        last[text.find(word).unwrap()].fg
    };
    still = still.keys("G");
    let usual = of_footer(&still, "R rollback");
    still.model.target_info.lacking = [("Deployment", why.to_owned())].into();
    assert_ne!(of_footer(&still, "R rollback"), usual);
    still.shows(&format!("Its actions are not available: {why}."));
}

#[test]
fn a_mark_of_a_workload_is_about_its_current_revision() {
    for (key, expected) in [
        ("B", "bowline mark bad deploy/web --revision 2"),
        ("A", "bowline mark good deploy/web --revision 2"),
    ] {
        let still = cluster().keys(&format!("G {key}"));
        assert_eq!(ordered(&still).command_lines(None), [expected]);
    }
}

#[test]
fn a_workload_is_not_promoted() {
    cluster()
        .keys("G P")
        .shows("deploy/web has no releases: promote needs a component");
}
