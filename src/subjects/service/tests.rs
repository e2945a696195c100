//! Tests of the confirmation that each kind of plan needs.

use super::{Command, Confirmed, PlannedCommand};
use crate::api::openchoreo::release::Verdict;
use crate::engine::confirmation::{Accepted, Answer};
use crate::engine::plan::Asked;
use crate::engine::world::{Event, World};
use crate::fixture::{self, marked_bad, release};
use crate::gitops::propose::BeforePlan;
use crate::subjects::release_pin::actions::gc::{self, Gc};
use crate::subjects::release_pin::actions::mark::{self, Mark};
use crate::subjects::release_pin::actions::pin::{self, PinHold};
use crate::subjects::release_pin::planner::ActionPlan;
use crate::subjects::release_pin::{READ_BY_CHANGES, READ_BY_GC};

/// Returns a read model with a component cart, which is deployed in every environment and has five releases.
/// One of the releases is marked bad.
fn shop() -> World {
    let mut world = fixture::world();
    for (minute, version) in (1..).zip(["v1", "v2", "v3", "v4", "v5"]) {
        let release = release("cart", version, minute);
        let release = match version {
            "v4" => marked_bad(release),
            _ => release,
        };
        world.releases(Event::Applied(release));
    }
    for environment in ["development", "staging", "production"] {
        let pin = fixture::pin("cart", environment, "v1");
        world.pins(Event::Applied(pin));
    }
    world
}

fn asked(reason: Option<&str>) -> Asked {
    Asked {
        operation: "operation".to_owned(),
        now: fixture::now(),
        user: "ana".to_owned(),
        reason: reason.map(str::to_owned),
        namespace: "shop".to_owned(),
    }
}

fn pinned(environment: &str) -> PlannedCommand {
    let command = PinHold {
        component: "cart".to_owned(),
        environment: environment.to_owned(),
        until: None,
        release: None,
    };
    let plan = pin::plan_pin(&shop(), &command, &asked(None)).unwrap();
    PlannedCommand::Changes(Box::new(ActionPlan::of(plan)))
}

fn marked(version: &str, verdict: Verdict, reason: Option<&str>) -> PlannedCommand {
    let command = Mark {
        release: format!("cart-{version}"),
        verdict,
    };
    PlannedCommand::Mark(mark::plan(&shop(), &command, &asked(reason)).unwrap())
}

fn collected(keep: usize) -> PlannedCommand {
    let command = Gc {
        keep: Some(keep),
        min_age: Some(std::time::Duration::ZERO),
        ..Gc::default()
    };
    PlannedCommand::Collection(gc::plan(&shop(), &command, &asked(None)).unwrap())
}

#[test]
fn every_kind_of_plan_has_its_confirmation() {
    let production = "a change of the production environment production";
    // The columns: the plan; the words to type; the words to type on a protected context; the risk; whether the plan
    // lacks a required reason.
    for (planned, wanted, protected, risk, lacks) in [
        (pinned("development"), "", "prod-eu", None, false),
        (pinned("staging"), "", "prod-eu", None, false),
        (
            pinned("production"),
            "production and why",
            "production and why",
            Some(production),
            true,
        ),
        (
            marked("v2", Verdict::Bad, None),
            "why",
            "prod-eu and why",
            None,
            true,
        ),
        (
            marked("v2", Verdict::Bad, Some("leaks")),
            "",
            "prod-eu",
            None,
            false,
        ),
        (
            marked("v2", Verdict::Good, None),
            "",
            "prod-eu",
            None,
            false,
        ),
        (
            marked("v4", Verdict::Good, Some(" ")),
            "why",
            "prod-eu and why",
            None,
            true,
        ),
        (
            collected(1),
            "3",
            "3",
            Some("the deletion of 3 objects"),
            false,
        ),
    ] {
        let world = shop();
        let confirmation = planned.confirmation(&world, None);
        assert_eq!(confirmation.wanted(), wanted, "{planned:?}");
        assert_eq!(confirmation.risk.as_deref(), risk, "{planned:?}");
        let on_protected = planned.confirmation(&world, Some("prod-eu"));
        assert_eq!(on_protected.wanted(), protected, "{planned:?}");
        assert_eq!(planned.lacks_reason().is_some(), lacks, "{planned:?}");
        assert!(!planned.is_idle(), "{planned:?}");
    }
    assert!(collected(5).is_idle());
    assert!(marked("v4", Verdict::Bad, None).is_idle());
}

#[test]
fn a_typed_reason_becomes_the_reason_of_the_plan() {
    let reason = |confirmed: &Confirmed| match &*confirmed.planned {
        PlannedCommand::Changes(action_plan) => action_plan.plan.reason.clone(),
        PlannedCommand::Mark(marking) => marking.reason.clone(),
        PlannedCommand::Collection(collection) => collection.reason.clone(),
    };
    for (planned, typed) in [
        (pinned("production"), "production errors up"),
        (marked("v2", Verdict::Bad, None), "errors up"),
        (collected(1), "3 errors up"),
    ] {
        let confirmation = planned.confirmation(&shop(), None);
        let answer = Answer::Given { typed, shown: true };
        let accepted = confirmation.check(answer).unwrap();
        let confirmed = Confirmed::new(Box::new(planned), None, accepted);
        assert_eq!(reason(&confirmed).as_deref(), Some("errors up"), "{typed}");
        assert!(confirmed.planned.lacks_reason().is_none());
    }
    // The user types no reason, so the plan keeps the reason from the command line.
    let planned = marked("v2", Verdict::Bad, Some("leaks"));
    let accepted = Accepted {
        reason: None,
        answered: true,
    };
    let confirmed = Confirmed::new(Box::new(planned), None, accepted);
    assert_eq!(reason(&confirmed).as_deref(), Some("leaks"));
}

#[test]
fn a_command_names_the_kinds_that_it_reads() {
    let mark = Command::Mark(Mark {
        release: "cart-v1".to_owned(),
        verdict: Verdict::Bad,
    });
    let collect = Command::Collect(Gc::default());
    for (command, reads) in [(mark, &READ_BY_CHANGES[..]), (collect, &READ_BY_GC[..])] {
        assert_eq!(command.reads(), reads);
        assert_eq!(command.before_plan(), BeforePlan::Fetch);
        assert_eq!(command.place(), None);
    }
}
