//! Tests of the list, audit and log screens: their drawn rows and their keys.

mod contexts;
mod data;
mod every;
mod links;
mod marks;
mod notices;
mod targets;
mod time;
mod window;
mod workloads;

use std::time::Duration;

use super::Screen;
use crate::action::Action;
use crate::effect::{Answer, Effect, Object};
use crate::fixture::at;
use crate::model::{Event, Level, Model};
use crate::snapshot_test::SnapshotTest;
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::planner;
use crate::subjects::service::Command;
use crate::tasks::{Logged, Rolling, State, Task};
use data::{record, shop};

fn still() -> SnapshotTest {
    SnapshotTest::of(shop())
}

/// Returns the command of the plan that is the front screen.
fn ordered(still: &SnapshotTest) -> &Command {
    match still.model.front() {
        Screen::Plan(state) => &state.command,
        other => panic!("no plan is in front but {}", other.title()),
    }
}

fn copied(still: &SnapshotTest) -> Option<&str> {
    still.effects.iter().rev().find_map(|effect| match effect {
        Effect::Copy(text) => Some(text.as_str()),
        _ => None,
    })
}

#[test]
fn releases_say_where_they_run_and_what_somebody_thinks_of_them() {
    still()
        .keys("g r")
        .shows("matrix > releases")
        .shows("bad, tom: leaks connections")
        .shows("● staging  ✖ production")
        .golden("releases");
}

#[test]
fn pins_say_how_they_are_who_holds_them_and_who_owns_them() {
    still()
        .keys("g p")
        .shows("⚓ mei: INC-41")
        .shows("✖ Degraded 2/5")
        .shows("Argo CD")
        .golden("pins");
}

#[test]
fn snapshots_say_which_pin_uses_them() {
    still()
        .keys("g s")
        .shows("checkout-service-production")
        .shows("nobody")
        .golden("snapshots");
}

#[test]
fn an_object_is_shown_as_text_and_searched() {
    let yaml = "apiVersion: openchoreo.dev/v1alpha1\nkind: Release\nmetadata:\n  name: checkout-service-v1.2.3\nspec:\n  component:\n    name: checkout-service\n    content:\n      spec:\n        parameters:\n          replicas: 5\n  workload:\n    image: registry/checkout:1.2.3\n";
    still()
        .keys("g r enter")
        .shows("Loading...")
        .answer(|effect| {
            assert!(matches!(effect, Effect::Describe(_, Object::Release(name)) if name == "checkout-service-v1.2.3"));
            Answer::Described(Ok(yaml.to_owned()))
        })
        .shows("13 lines")
        .keys("/")
        .keys("\"replicas\"")
        .shows("1 found")
        .keys("enter")
        .golden("describe");
}

#[test]
fn gc_says_of_every_object_why_it_stays_or_goes() {
    let still = still().keys("g c");
    let still = still
        .shows("can be deleted")
        .shows("no ReleasePin refers to it")
        .shows("number 3 of the newest 5");
    still.golden("gc");
    let still = self::still().keys("g c f").hides("stays").keys("X");
    assert!(matches!(ordered(&still), Command::Collect(_)));
}

#[test]
fn the_record_is_a_line_per_change_with_the_verdict_of_its_chain() {
    let still = still().keys("g a").shows("Loading and verifying");
    still
        .answer(|_| Answer::Record(Ok(record(false))))
        .shows("✓")
        .shows("checkout-service/production")
        .shows("v1.2.1 → v1.2.3")
        .shows("whole")
        .golden("audit");
}

#[test]
fn a_broken_chain_is_a_bar_that_names_the_entry() {
    let broken = || {
        still()
            .keys("g a")
            .answer(|_| Answer::Record(Ok(record(true))))
            .shows("TAMPERED  auditentry/checkout-service-production-")
            .shows("it was changed: its hash does not match its seal")
    };
    broken().golden("audit-broken");
    broken()
        .keys("e enter")
        .shows("changed after it was written")
        .golden("audit-entry-broken");
}

#[test]
fn an_entry_is_shown_whole_between_its_neighbours() {
    let entry = || {
        still()
            .keys("g a")
            .answer(|_| Answer::Record(Ok(record(false))))
            .keys("enter")
    };
    entry()
        .shows("Promote of checkout-service-production")
        .shows("INC-42 hotfix")
        .golden("audit-entry");
    entry()
        .shows("nothing yet")
        .keys("h")
        .shows("revision 1")
        .keys("h")
        .shows("the chain ends here");
}

#[test]
fn the_record_is_filtered_and_written_as_a_timeline() {
    let still = still()
        .keys("g a")
        .answer(|_| Answer::Record(Ok(record(false))))
        .keys("/")
        .keys("\"!mark ana\"")
        .hides("tom")
        .keys("enter :")
        .keys("\"export incident now.md\"")
        .keys("enter");
    let Some(Effect::Export(_, path, text)) = still.effects.last() else {
        panic!("nothing is written: {:?}", still.effects.last());
    };
    assert_eq!(path.to_str(), Some("now.md"));
    assert!(
        text.starts_with("# Timeline of shop in prod-eu, only "),
        "{text}"
    );
    assert!(
        text.contains("INC-42 hotfix") && !text.contains("tom"),
        "{text}"
    );
    let still = still.answer(|_| Answer::Exported(Ok("/tmp/now.md".into())));
    assert_eq!(still.model.notice.as_ref().unwrap().level, Level::Done);
}

#[test]
fn a_timeline_tells_of_the_span_that_is_asked_for() {
    let exported = |span: &str| {
        let still = still()
            .keys("g a")
            .answer(|_| Answer::Record(Ok(record(false))))
            .keys(":")
            .keys(&format!("\"export incident {span} now.md\""))
            .keys("enter");
        match still.effects.last() {
            Some(Effect::Export(_, _, text)) => text.clone(),
            other => panic!("nothing is written: {other:?}"),
        }
    };
    let whole = exported("");
    let hotfix = "INC-42 hotfix";
    assert!(whole.contains(hotfix), "{whole}");
    let around = exported("13:30 13:50");
    assert!(around.contains(hotfix), "{around}");
    let title =
        "# Timeline of shop in prod-eu from 2026-11-17 13:30:00 UTC to 2026-11-17 13:50:00 UTC";
    assert!(around.starts_with(title), "{around}");
    let after = exported("13:50");
    assert!(!after.contains(hotfix), "{after}");
    let before = exported("yesterday 13:50 10:00");
    assert!(!before.contains(hotfix), "{before}");
    still()
        .keys(":")
        .keys("\"export incident 14:00 13:00\"")
        .keys("enter")
        .shows("write the start first");
}

#[test]
fn a_timeline_that_was_not_read_yet_is_written_when_it_is() {
    let still = self::still()
        .keys(":")
        .keys("\"export incident\"")
        .keys("enter");
    assert!(matches!(still.effects.last(), Some(Effect::Record(_))));
    let still = still.answer(|_| Answer::Record(Ok(record(false))));
    let Some(Effect::Export(_, path, _)) = still.effects.last() else {
        panic!("nothing is written");
    };
    assert_eq!(path.to_str(), Some("incident-2026-11-17-1400.md"));
}

#[test]
fn the_record_is_read_anew_when_a_pin_moved_and_not_too_often() {
    let mut still = still()
        .keys("g a")
        .answer(|_| Answer::Record(Ok(record(false))));
    let touched = || crate::engine::world::feed::Touched {
        source: crate::engine::world::Source::RELEASE_PINS,
        key: Some(crate::fixture::key("search-production")),
        component: Some("search".into()),
    };
    let asked = |still: &SnapshotTest| {
        let records = still.effects.iter();
        records
            .filter(|effect| matches!(effect, Effect::Record(_)))
            .count()
    };
    assert_eq!(asked(&still), 1);
    still = still.tell(Event::World(vec![touched()]));
    assert_eq!(asked(&still), 1);
    still.now = at("14:00:06");
    still = still.tell(Event::Tick);
    assert_eq!(asked(&still), 2);
}

#[test]
fn a_list_is_filtered_sorted_and_marked() {
    let still = still()
        .keys("g r /")
        .keys("\"cart bad\"")
        .shows("no row matches");
    let still = still.keys("esc").hides("no row matches");
    let still = still
        .keys("/")
        .keys("\"bad\"")
        .keys("enter")
        .shows("1 shown");
    let still = still.keys("esc").hides("1 shown");
    let still = still
        .keys("s")
        .shows("sorted by name")
        .keys("S")
        .shows("reversed");
    let still = still.keys("g g space space").shows("2 marked, ");
    let still = still.keys("esc").hides("2 marked");
    still.keys("c").shows("CONTENT").keys("c").shows("RUNS IN");
}

#[test]
fn the_cursor_of_a_list_begins_on_what_the_matrix_was_about() {
    for (keys, command) in [
        (
            "g r Y",
            "bowline release show checkout-service-v1.2.3 --context prod-eu --kubeconfig /home/ana/.kube/config --namespace shop",
        ),
        (
            "g p Y",
            "kubectl get releasepins.openchoreo.dev checkout-service-production --namespace shop --output yaml --context prod-eu --kubeconfig /home/ana/.kube/config",
        ),
        (
            "g s Y",
            "kubectl get componentenvsnapshots.openchoreo.dev checkout-service-production-2 --namespace shop --output yaml --context prod-eu --kubeconfig /home/ana/.kube/config",
        ),
    ] {
        let still = still().keys(keys);
        assert_eq!(copied(&still), Some(command));
    }
}

#[test]
fn actions_work_on_what_a_list_has_selected() {
    let rollback = still().keys("g p R");
    assert!(matches!(
        ordered(&rollback),
        Command::Change(planner::ActionRequest::Rollback { component, environment, to: Target::LastGood, .. })
            if component == "checkout-service" && environment == "production"
    ));
    let marked = still().keys("g r B");
    assert!(
        matches!(ordered(&marked), Command::Mark(mark) if mark.release == "checkout-service-v1.2.3")
    );
    // D deploys the selected release. R rolls an environment back to it, if another release is effective there.
    let deployed = still().keys("g r D");
    assert!(matches!(
        ordered(&deployed),
        Command::Change(planner::ActionRequest::Deploy { environment, release: Some(release), .. })
            if environment == "development" && release == "checkout-service-v1.2.3"
    ));
    let back = still().keys("g r /").keys("\"v1.2.1\"").keys("enter R");
    let back = back.shows("roll back in which environment?").keys("3");
    assert!(matches!(
        ordered(&back),
        Command::Change(planner::ActionRequest::Rollback { environment, to: Target::Release(release), .. })
            if environment == "production" && release == "checkout-service-v1.2.1"
    ));
    // If several rows are marked, one action applies to all their components.
    let set = still()
        .keys("g p /")
        .keys("\"env:staging\"")
        .keys("enter * P");
    assert!(matches!(
        ordered(&set),
        Command::Change(planner::ActionRequest::Promote(promote)) if promote.components.len() == 5 && promote.to == "production"
    ));
}

#[test]
fn a_list_follows_the_world() {
    let mut still = still().keys("g r").shows("20 releases");
    let gone = crate::fixture::release("cart", "v0.8.6", 1);
    still
        .world
        .releases(crate::engine::world::Event::Deleted(gone));
    let touched = crate::engine::world::feed::Touched {
        source: crate::engine::world::Source::RELEASES,
        key: Some(crate::fixture::key("cart-v0.8.6")),
        component: Some("cart".into()),
    };
    still.tell(Event::World(vec![touched])).shows("19 releases");
}

/// Adds tasks to a model, and an entry to its command log.
fn with_tasks(mut still: SnapshotTest) -> SnapshotTest {
    let rollback = Command::Change(planner::ActionRequest::Rollback {
        component: "checkout-service".into(),
        environment: "production".into(),
        to: Target::LastGood,
        hold: true,
    });
    let prepared = Box::new(data::collection(&still.world, still.now));
    let task = |ticket, command: &Command, since, state| Task {
        target: crate::tasks::Target::of(&crate::snapshot_test::target_info()),
        frozen: None,
        ticket,
        command: command.clone(),
        prepared: prepared.clone(),
        reason: Some("errors up since 13:41".into()),
        since: at(since),
        state,
    };
    let collect = Command::Collect(Default::default());
    let pin = crate::fixture::key("checkout-service-production");
    let rolling = State::Rolling(vec![Rolling::new(&pin, 2, "checkout-service-v1.2.3")]);
    still.model.tasks = vec![
        task(901, &collect, "13:10:00", State::Done("3 removed".into())),
        task(
            902,
            &collect,
            "13:20:00",
            State::Failed("nobody may delete releases.openchoreo.dev".into()),
        ),
        task(903, &rollback, "13:58:00", rolling),
        task(904, &collect, "13:59:58", State::Applying),
    ];
    still.model.log = vec![
        Logged {
            at: at("13:10:04"),
            bowline: collect.command_lines(None),
            kubectl: prepared.kubectl(),
            outcome: "3 removed".into(),
        },
        Logged {
            at: at("13:58:02"),
            bowline: rollback.command_lines(Some("errors up since 13:41")),
            kubectl: vec!["kubectl patch releasepins.openchoreo.dev checkout-service-production --namespace shop --type merge --patch '{\"spec\":{\"releaseRef\":{\"name\":\"checkout-service-v1.2.1\"}}}'".into()],
            outcome: "checkout-service in production now runs checkout-service-v1.2.1, revision 3".into(),
        },
    ];
    still
}

#[test]
fn tasks_say_how_far_they_are() {
    let tasks = || with_tasks(still()).keys("g t");
    tasks()
        .shows("is writing")
        .shows("3 removed")
        .golden("tasks");
    // A task that is cancelled while it writes stops between two objects.
    let stopped = tasks().keys("ctrl-c");
    assert!(matches!(stopped.effects.last(), Some(Effect::Cancel(904))));
    // The tasks screen can undo a finished task.
    let undo = tasks().keys("j Z");
    assert!(matches!(
        ordered(&undo),
        Command::Change(planner::ActionRequest::Undo(_))
    ));
    still().keys("g t").shows("no tasks yet");
}

#[test]
fn the_log_says_what_was_done_as_commands() {
    let log = || with_tasks(still()).keys("g l");
    log().shows("kubectl patch").golden("log");
    let bowline = log().keys("y");
    assert_eq!(
        copied(&bowline),
        Some(
            "bowline rollback checkout-service --environment production --reason 'errors up since 13:41'"
        )
    );
    let kubectl = log().keys("Y");
    assert!(copied(&kubectl).unwrap().starts_with("kubectl patch"));
    let older = log().keys("j y");
    assert_eq!(copied(&older), Some("bowline gc --confirm"));
    let filtered = log().keys("/").keys("\"removed\"").keys("enter");
    let filtered = filtered.hides("errors up").keys("y");
    assert_eq!(copied(&filtered), Some("bowline gc --confirm"));
    filtered.keys("esc").shows("errors up");
}

#[test]
fn help_lists_the_keys_narrows_and_runs() {
    still()
        .keys("?")
        .shows("of the matrix screen")
        .golden("help");
    let narrowed = still()
        .keys("?")
        .keys("\"roll back\"")
        .shows("R")
        .hides("promote to the next");
    let plan = narrowed.keys("enter");
    assert!(matches!(
        ordered(&plan),
        Command::Change(planner::ActionRequest::Rollback { .. })
    ));
    // Choosing a command in the help opens the command prompt with it, because the command may need arguments.
    still()
        .keys("?")
        .keys("\":theme\"")
        .keys("enter")
        .shows(":theme");
    // If the user opens the help from a list, the help shows the keys of lists.
    still()
        .keys("g r ?")
        .shows("of the releases screen")
        .keys("\"time\"")
        .hides("as of a moment");
    still()
        .keys("?")
        .keys("\"xyzzy\"")
        .shows("no key and no command")
        .keys("esc esc")
        .shows("COMPONENT");
}

#[test]
fn help_dims_what_is_refused_and_says_why() {
    let mut still = still();
    still.model.target_info.readonly = Some("--readonly was given".into());
    still
        .keys("?")
        .keys("\"promote\"")
        .shows("(read-only: --readonly was given)");
}

#[test]
fn a_screen_that_is_open_already_is_gone_back_to() {
    let still = still().keys("g r g p g r");
    assert_eq!(still.model.stack.len(), 2);
    let still = still.keys("g m");
    assert_eq!(still.model.stack.len(), 1);
}

fn protect(model: &mut Model) {
    model.target_info.readonly = Some("context prod-eu is protected".into());
    model.target_info.protected = true;
}

#[test]
fn only_what_is_protected_is_armed() {
    // Each case: whether the context is read-only, whether it is protected, the typed command, and the duration for
    // which bowline then allows writes.
    for (readonly, protected, line, armed) in [
        (false, false, "write 15m", None),
        (true, false, "write 15m", None),
        (true, true, "write", Some(Duration::from_secs(900))),
        (true, true, "write 5m", Some(Duration::from_secs(300))),
        (true, true, "write off", Some(Duration::ZERO)),
        (true, true, "write soon", None),
    ] {
        let mut still = still();
        still.model.target_info.protected = protected;
        still.model.target_info.readonly = readonly.then(|| "it says so".into());
        let still = still.keys(":").keys(&format!("\"{line}\"")).keys("enter");
        let found = still.effects.iter().find_map(|effect| match effect {
            Effect::Arm(lasting) => Some(*lasting),
            _ => None,
        });
        assert_eq!(found, armed, "{line}");
        let passes = still.model.target_info.unwritable(still.now).is_none();
        let lasts = armed.is_some_and(|lasting| !lasting.is_zero());
        assert_eq!(passes, lasts || !readonly, "{line}");
    }
}

#[test]
fn a_protected_context_shows_that_it_is_and_for_how_long_it_is_armed() {
    let mut still = still();
    protect(&mut still.model);
    let still = still.shows(" READ-ONLY ");
    let still = still.keys(":").keys("\"write 15m\"").keys("enter");
    let mut still = still.shows(" WRITE 15m ").hides("READ-ONLY");
    still.now = at("14:15:01");
    still.shows(" READ-ONLY ").hides("WRITE 15m");
}

#[test]
fn what_means_nothing_here_says_so() {
    let still = still().keys("g r");
    let mut told = still.tell(Event::Tick);
    assert!(told.model.notice.is_none());
    told = told.keys("T");
    assert!(told.model.notice.is_some());
    assert_ne!(Action::TimeTravel, Action::Live);
}
