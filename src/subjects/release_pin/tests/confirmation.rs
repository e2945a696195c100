//! Tests of the confirmation that changes of ReleasePins need.

use crate::api::bowline::audit::Action;
use crate::engine::confirmation::Confirmation;
use crate::engine::plan::{Change, Plan};
use crate::fixture;

/// Returns a change of the ReleasePin of a component in an environment.
fn moved(component: &str, environment: &str) -> Change {
    Change {
        is_production: environment.starts_with("production"),
        unchanged: false,
        ..fixture::change(component, environment, "v1")
    }
}

fn unchanged(change: Change) -> Change {
    Change {
        unchanged: true,
        ..change
    }
}

fn strict(change: Change) -> Change {
    Change {
        requires_reason: true,
        ..change
    }
}

#[test]
fn a_plan_with_a_higher_risk_needs_more_input() {
    let cart = |environment| moved("cart", environment);
    let search = |environment| moved("search", environment);
    for (changes, reason, wanted, shown, risk) in [
        (vec![cart("development")], None, "", false, None),
        (vec![cart("staging")], None, "", true, None),
        // An environment outside the pipeline is no first environment, so the user must see the diff.
        (vec![cart("lab")], None, "", true, None),
        (
            vec![cart("production")],
            None,
            "production",
            true,
            Some("a change of the production environment production"),
        ),
        (
            vec![cart("development"), search("development")],
            None,
            "2",
            false,
            None,
        ),
        (
            vec![cart("production"), search("production")],
            None,
            "production 2",
            true,
            Some("a change of the production environment production"),
        ),
        (
            vec![cart("production-eu"), cart("production-us")],
            None,
            "production-eu production-us 2",
            true,
            Some("a change of the production environment production-eu"),
        ),
        // A change that writes nothing needs no confirmation, so it is not counted.
        (
            vec![cart("staging"), unchanged(search("production"))],
            None,
            "",
            true,
            None,
        ),
        (vec![unchanged(cart("production"))], None, "", false, None),
        (vec![strict(cart("development"))], None, "why", false, None),
        (vec![strict(cart("staging"))], Some("late"), "", true, None),
        (
            vec![strict(cart("production"))],
            Some(" "),
            "production and why",
            true,
            Some("a change of the production environment production"),
        ),
    ] {
        let plan = Plan {
            action: Action::Promote,
            operation: "one".to_owned(),
            at: fixture::now(),
            reason: reason.map(str::to_owned),
            changes,
        };
        let found = Confirmation::of_plan(&plan, &fixture::world());
        let is = (found.wanted(), found.shown, found.risk.as_deref());
        assert_eq!(is, (wanted.to_owned(), shown, risk), "{plan:?}");
        assert_eq!(found.is_key(), wanted.is_empty());
        assert_eq!(found.counts.is_some(), wanted.contains('2'));
    }
}
