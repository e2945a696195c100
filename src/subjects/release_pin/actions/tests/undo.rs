//! Tests of the plans of undo.

use super::*;
use crate::api::bowline::audit::AuditEntry;
use crate::subjects::release_pin::actions::undo::{self, Undo};

/// Returns the audit entry for one revision of cart's ReleasePin in an environment.
fn entry(environment: &str, revision: i64, to: &str, extra: Value) -> AuditEntry {
    let mut spec = json!({
        "subject": {
            "kind": "ReleasePin", "name": format!("cart-{environment}"),
            "uid": format!("cart-{environment}"),
        },
        "revision": revision, "recordedBy": "ana", "action": "Promote", "at": "2026-01-02T00:00:00Z",
        "to": {"name": to},
    });
    merge(&mut spec, &extra);
    serde_json::from_value(json!({
        "apiVersion": "bowline.dev/v1alpha1", "kind": "AuditEntry",
        "metadata": {"name": format!("entry-{revision}")}, "spec": spec,
    }))
    .unwrap()
}

fn fixing(id: &str, release: Option<&str>) -> Value {
    json!({"id": id, "owner": "bob", "since": "2026-01-03T00:00:00Z", "release": release})
}

#[test]
fn undoing() {
    type Case = (&'static str, Change, Vec<AuditEntry>, &'static str);
    let table: Vec<Case> = vec![
        (
            "a promotion",
            NONE,
            vec![entry("staging", 2, "cart-1", json!({}))],
            "cart-staging: cart-2 -> cart-1 ref cart-1 restores 2",
        ),
        (
            "a promotion from a release that was unhealthy",
            |world| {
                let ran = moves(&[(1, "cart-1", true), (2, "cart-1", false)]);
                world.pins(Event::Applied(pin("cart", "staging", "cart-2", ran)));
            },
            vec![entry("staging", 2, "cart-1", json!({}))],
            "cart-staging: cart-2 -> cart-1 ref cart-1 restores 2 | release cart-1 was unhealthy in staging when it was replaced",
        ),
        (
            "a rollback and its hold",
            |world| {
                let held = json!({"spec": {"holds": [fixing("h", None)]}});
                world.pins(Event::Applied(pin("cart", "staging", "cart-2", held)));
            },
            vec![
                entry("staging", 1, "cart-1", json!({})),
                entry("staging", 2, "cart-3", json!({})),
                entry("staging", 3, "cart-2", json!({})),
            ],
            "cart-staging: cart-2 -> cart-3 ref cart-3 restores 2 | removes the hold h of bob",
        ),
        (
            "the lifting of a hold that fixed a release",
            NONE,
            vec![entry(
                "staging",
                2,
                "cart-1",
                json!({"releaseRef": "cart-2", "holds": [fixing("h", Some("cart-1"))]}),
            )],
            "cart-staging: cart-2 -> cart-1 ref cart-2 holds bob=cart-1 restores 2 | places again the hold h of bob",
        ),
        (
            "a move to what is bad by now",
            |world| {
                let bad = r#"{"verdict":"bad","by":"bob","at":"2026-01-02T03:04:05Z"}"#;
                let mark = json!({"bowline.dev/mark": bad});
                world.releases(Event::Applied(release("cart-1", "cart", 1, mark)));
            },
            vec![entry("staging", 2, "cart-1", json!({}))],
            "release cart-1 is marked bad | choose another release: bowline release list | if cart-1 is good: bowline mark good cart-1 --reason TEXT",
        ),
        (
            "a move of a pin that git owns",
            |world| {
                let owned =
                    json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "x"}}});
                world.pins(Event::Applied(pin("cart", "staging", "cart-2", owned)));
            },
            vec![entry("staging", 2, "cart-1", json!({}))],
            "Argo CD owns cart in staging and would revert a change made here | change it in git: bowline --repo DIR deploy cart -e staging --release cart-1",
        ),
        (
            "what made the pin",
            |world| {
                let first = json!({"metadata": {"generation": 1}});
                world.pins(Event::Applied(pin("cart", "staging", "cart-2", first)));
            },
            vec![],
            "the last action was the first deployment of cart in staging: there is no earlier state | to remove the deployment: bowline delete releasepins.openchoreo.dev cart-staging",
        ),
        (
            "what nobody recorded",
            NONE,
            vec![
                entry("staging", 1, "cart-1", json!({})),
                entry(
                    "staging",
                    2,
                    "cart-1",
                    json!({"action": "Gap", "gap": {"first": 2, "last": 2}}),
                ),
                entry(
                    "staging",
                    2,
                    "cart-1",
                    json!({"subject": {"uid": "another pin"}}),
                ),
            ],
            "revision 2 of cart in staging is not recorded | choose a release with --to RELEASE, from: bowline history cart -e staging",
        ),
    ];
    for (title, change, entries, expected) in table {
        let command = Undo {
            component: "cart".to_owned(),
            environment: "staging".to_owned(),
        };
        let found = match undo::plan(&world(change), &command, &entries, &asked("")) {
            Ok(plan) => {
                let warnings = plan.changes.iter().flat_map(|change| &change.warnings);
                let warnings = warnings.map(|warning| format!(" | {warning}"));
                shown(&plan) + &warnings.collect::<String>()
            }
            Err(refusal) => told(&refusal),
        };
        assert_eq!(found, expected, "{title}");
    }
}
