//! Tests of the plans and refusals of marks.

use super::*;
use crate::api::openchoreo::release::Verdict;
use crate::subjects::release_pin::actions::mark::{self, Mark};

#[test]
fn marks() {
    let bad = r#"{"verdict":"bad","by":"bob","at":"2026-01-02T03:04:05Z"}"#;
    let marked: Change = |world| {
        let bad = r#"{"verdict":"bad","by":"bob","at":"2026-01-02T03:04:05Z"}"#;
        let mark = json!({"bowline.dev/mark": bad});
        world.releases(Event::Applied(release("cart-2", "cart", 2, mark)));
    };
    assert!(serde_json::from_str::<crate::api::openchoreo::release::Mark>(bad).is_ok());
    type Case = (
        &'static str,
        Change,
        &'static str,
        Verdict,
        &'static str,
        &'static str,
    );
    let table: &[Case] = &[
        (
            "bad, with a note",
            NONE,
            "cart-2",
            Verdict::Bad,
            "leaks",
            "None -> Bad; cart-2 still runs in staging: a mark does not stop it; use bowline rollback",
        ),
        (
            "bad, without one",
            NONE,
            "cart-2",
            Verdict::Bad,
            " ",
            "marking cart-2 bad needs a reason | add --reason TEXT",
        ),
        (
            "good again",
            marked,
            "cart-2",
            Verdict::Good,
            "mended",
            "Some(Bad) -> Good",
        ),
        (
            "good again, without a note",
            marked,
            "cart-2",
            Verdict::Good,
            " ",
            "marking cart-2 good needs a reason | add --reason TEXT",
        ),
        (
            "good, and not bad before",
            NONE,
            "cart-2",
            Verdict::Good,
            "",
            "None -> Good",
        ),
        (
            "bad twice",
            marked,
            "cart-2",
            Verdict::Bad,
            "",
            "Some(Bad) -> Bad unchanged; cart-2 still runs in staging: a mark does not stop it; use bowline rollback",
        ),
        (
            "what is not there",
            NONE,
            "cart-9",
            Verdict::Bad,
            "x",
            "release cart-9 does not exist; known: cart-3, cart-2, cart-1 | list all releases: bowline release list",
        ),
        (
            "what nobody knows",
            NONE,
            "x",
            Verdict::Bad,
            "x",
            "release x does not exist | list all releases: bowline release list",
        ),
    ];
    for (title, change, release, verdict, reason, expected) in table {
        let command = Mark {
            release: (*release).to_owned(),
            verdict: *verdict,
        };
        let planned = mark::plan(&world(change), &command, &asked(reason.trim()));
        let found = match planned.and_then(|plan| plan.noted().map(|()| plan)) {
            Ok(plan) => {
                let mut words = format!("{:?} -> {:?}", plan.was, plan.verdict);
                if plan.unchanged {
                    words += " unchanged";
                }
                let rest = plan.warnings.iter().map(|warning| format!("; {warning}"));
                words + &rest.collect::<String>()
            }
            Err(refusal) => told(&refusal),
        };
        assert_eq!(found, *expected, "{title}");
    }
}
