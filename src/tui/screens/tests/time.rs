//! Tests of the matrix at a past time, and of the changes around an incident.

use serde_json::json;

use super::data::record;
use super::still;
use crate::effect::{Answer, Effect};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Event as Told, Source};
use crate::fixture::{at, key, outcomes, pin, pipeline, release, stored, unready};
use crate::model::Event;
use crate::snapshot_test::{LARGE_SIZES, LOOKS, SnapshotTest, promoted};

fn since(line: &str) -> SnapshotTest {
    let line = format!("\"since {line}\"");
    still().keys(":").keys(&line).keys("enter")
}

#[test]
fn what_may_have_caused_an_incident_is_ranked_and_looked_into() {
    let ranked = || {
        since("13:40")
            .shows("Loading history...")
            .answer(|_| Answer::Record(Ok(record(false))))
            .shows("changes before 13:40:00, the closest first; then the changes after it")
            .shows("INC-42 hotfix")
    };
    ranked().shows("after the start").golden("since");
    ranked().keys("enter").shows("revisions in production");
}

#[test]
fn a_record_that_cannot_be_read_says_why() {
    since("13:40")
        .answer(|_| Answer::Record(Err("nobody may list auditentries".to_owned())))
        .shows("cannot read the audit trail: nobody may list auditentries");
}

/// Opens the matrix at this time of the current day.
fn as_of(still: SnapshotTest, time: &str) -> SnapshotTest {
    let line = format!("\"at {time}\"");
    still
        .keys(":")
        .keys(&line)
        .keys("enter")
        .answer(|_| Answer::Record(Ok(record(false))))
}

#[test]
fn a_past_moment_shows_its_own_totals_health_and_names() {
    // At noon, v1.2.1 was effective in production and nothing failed. The failing release was promoted at 13:38.
    let still = as_of(still(), "12:00")
        .shows("AS OF 12:00:00")
        .shows("1 held");
    let screen = still.screen();
    assert!(!screen.contains("degraded"), "{screen}");
    assert!(!screen.contains("live"), "{screen}");
    let still = still
        .shows("At 12:00:00 v1.2.1 ran there, deployed by tom at 08:00:00")
        .hides("CrashLoopBackOff");
    // At a past time, the footer lists keys for past times, and no key that opens a plan.
    let still = still
        .shows("[ previous change  ] next change  t present")
        .hides("P promote");
    still.golden_in("matrix-past", &LARGE_SIZES, &LOOKS);
    // At a time after the promotion, the row is red, and the total of faults includes it.
    as_of(self::still(), "13:50")
        .shows("AS OF 13:50:00")
        .shows("1 degraded")
        .shows("promoted by ana at 13:38:00: \"INC-42 hotfix\"")
        .keys("esc")
        .hides("AS OF")
        .shows("live");
}

#[test]
fn the_record_that_loads_is_named_until_it_is_there() {
    let loading = || {
        still()
            .keys("T")
            .shows("loading the audit trail")
            .hides("AS OF")
    };
    loading()
        .answer(|_| Answer::Record(Ok(record(false))))
        .shows("AS OF")
        .hides("loading the audit trail");
    loading()
        .answer(|_| Answer::Record(Err("nobody may list auditentries".to_owned())))
        .shows("cannot read the audit trail: nobody may list auditentries")
        .hides("loading the audit trail");
    let cancelled = loading().keys("esc").hides("loading the audit trail");
    let mut effects = cancelled.effects.iter();
    assert!(effects.any(|effect| matches!(effect, Effect::Cancel(_))));
}

#[test]
fn kinds_that_are_still_listed_are_named() {
    let mut world = crate::subjects::read_model();
    world.pins(Told::Applied(pin("cart", "production", "v1")));
    SnapshotTest::of(world)
        .shows("loading ReleasePins and 4 more")
        .hides("live");
}

#[test]
fn what_happens_now_does_not_change_a_past_moment() {
    let mut still = as_of(still(), "12:00");
    let before = still.screen();
    // In the present, cart fails in staging, and there is a new component. The past must not show either.
    let failing = unready(
        pin("cart", "staging", "v0.9.0"),
        "Degraded",
        "0 of 3 ready",
        "13:59:00",
    );
    still.world.pins(Told::Applied(failing));
    still.world.releases(Told::Applied({
        let mut later = release("newcomer", "v1", 1);
        let made = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at("13:59:30"));
        later.metadata.creation_timestamp = Some(made);
        later
    }));
    let touched = |source, name: &str, component: &str| Touched {
        source,
        key: Some(key(name)),
        component: Some(component.into()),
    };
    let still = still.tell(Event::World(vec![
        touched(Source::RELEASE_PINS, "cart-staging", "cart"),
        touched(Source::RELEASES, "newcomer-v1", "newcomer"),
    ]));
    assert_eq!(still.screen().lines().nth(1), before.lines().nth(1));
    let still = still.hides("newcomer").hides("0 of 3 ready");
    still.keys("esc").shows("newcomer").shows("2 degraded");
}

#[test]
fn marks_and_the_cursor_come_back_from_the_past() {
    let still = as_of(still().keys("g g space").shows("1 marked"), "12:00");
    still.keys("esc").shows("1 marked");
}

#[test]
fn a_fault_of_the_pipelines_is_shown_and_leaves_the_matrix() {
    let mut world = super::shop();
    let mut other = stored(pipeline(&[("production", "development")]));
    other.metadata.name = Some("other".to_owned());
    world.pipelines(Told::Applied(other));
    SnapshotTest::of(world)
        .shows("namespace shop has 2 DeploymentPipelines (default, other), but only one is allowed")
        .shows("DEVELOPMENT")
        .shows("▸ checkout-service");
    let mut world = super::shop();
    world.pipelines(Told::Applied(stored(pipeline(&[
        ("development", "staging"),
        ("staging", "production"),
        ("production", "development"),
    ]))));
    SnapshotTest::of(world)
        .shows("DeploymentPipeline default: the promotion paths lead in a circle")
        .shows("▸ checkout-service");
}

#[test]
fn a_release_that_cannot_be_fetched_is_a_fault_with_its_reason() {
    let mut world = super::shop();
    let moves = json!([
        {"generation": 1, "release": "cart-v0.8.7", "since": at("09:00:00"), "until": at("13:30:00"), "healthy": true},
        {"generation": 2, "release": "cart-v0.9.0", "since": at("13:30:00"), "healthy": false},
    ]);
    let mut failing = unready(
        outcomes(pin("cart", "staging", "v0.9.0"), moves),
        "GitFetchFailed",
        "cannot fetch abc of git.example/shop",
        "13:31:00",
    );
    if let Some(status) = &mut failing.status {
        status.applied_release = Some("cart-v0.8.7".to_owned());
    }
    world.pins(Told::Applied(failing));
    SnapshotTest::of(world)
        .shows("2 degraded")
        .keys("g g h")
        .shows("Degraded (GitFetchFailed): cannot fetch abc of git.example/shop.");
}

#[test]
fn a_copy_in_the_past_is_the_release_of_the_past() {
    let still = as_of(still(), "12:00").keys("y");
    assert_eq!(super::copied(&still), Some("checkout-service-v1.2.1"));
}

#[test]
fn the_pipeline_faults_of_today_are_not_drawn_over_the_past() {
    let mut still = still();
    let mut other = stored(pipeline(&[]));
    other.metadata.name = Some("other".to_owned());
    still.world.pipelines(Told::Applied(other));
    let still = still
        .tell(Event::World(Vec::new()))
        .shows("2 DeploymentPipelines (default, other)");
    as_of(still, "12:00").hides("DeploymentPipelines");
}

#[test]
fn a_past_matrix_opens_nothing_of_the_present() {
    let then = || as_of(still(), "13:50");
    for (keys, words) in [
        (
            "P",
            "this is the past: esc returns to the present, where you can plan",
        ),
        ("R", "this is the past"),
        ("H", "this is the past"),
        ("U", "this is the past"),
        ("D", "this is the past"),
        ("B", "this is the past"),
        ("A", "this is the past"),
        ("Z", "this is the past"),
        ("X", "this is the past"),
        (
            "g r",
            "this is the past: esc returns to the present, where you can open the list",
        ),
        ("g p", "this is the past"),
        ("g s", "this is the past"),
        ("g c", "this is the past"),
    ] {
        let still = then().keys(keys).shows(words).shows("AS OF 13:50:00");
        assert_eq!(still.model.stack.len(), 1, "{keys}");
    }
    for line in [
        "promote production",
        "deploy cart-v0.9.0",
        "rollback cart-v0.8.7",
        "pin 4h",
        "hold 4h",
        "unpin",
        "collect",
        "undo",
        "releases",
    ] {
        let line = format!("\"{line}\"");
        let still = then().keys(":").keys(&line).keys("enter");
        let still = still.shows("this is the past").shows("AS OF 13:50:00");
        assert_eq!(still.model.stack.len(), 1, "{line}");
    }
    let jumped = then().keys("ctrl-p").keys("\"searchv770\"").keys("enter");
    jumped.shows("this is the past").shows("AS OF");
    let copied = then().keys("Y");
    let line = super::copied(&copied).unwrap();
    assert!(
        line.starts_with("bowline history checkout-service --environment production "),
        "{line}"
    );
}

#[test]
fn a_past_cell_opens_its_revision_of_that_time() {
    for keys in ["enter", "g v", "g o"] {
        as_of(still(), "12:00")
            .keys(keys)
            .shows("checkout-service in production  at 12:00:00 it was at revision 1;")
            .answer(|_| Answer::Revisions(Ok(Box::new(promoted()))))
            .shows("▸ 1 ");
    }
}
