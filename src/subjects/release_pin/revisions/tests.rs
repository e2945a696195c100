//! Tests of the revisions of ReleasePins as tables, and of the revisions that retention removes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;

use super::*;
use crate::api::ReleasePin;
use crate::api::bowline::audit::{
    Action, AuditEntry, AuditEntrySpec, COMPONENT, Checkpoint, ContentRef, Gap, RELEASE_PIN,
    Subject,
};
use crate::api::hold::Hold;
use crate::api::openchoreo::pin::{Outcome, ReleasePinSpec, ReleasePinStatus};
use crate::api::openchoreo::reference::NameRef;
use crate::api::operation::Operation;
use crate::engine::revisions::{Cause, Revision, Revisions, Row, State, beyond};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn pin(generation: i64, release: &str, outcomes: Vec<Outcome>) -> ReleasePin {
    let spec = ReleasePinSpec {
        component: "cart".into(),
        environment: "staging".into(),
        release_ref: NameRef::new(release),
        ..Default::default()
    };
    let mut pin = ReleasePin::new("cart-staging", spec);
    pin.metadata.generation = Some(generation);
    pin.metadata.uid = Some("u1".into());
    pin.status = Some(ReleasePinStatus {
        outcomes,
        ..Default::default()
    });
    pin
}

fn outcome(generation: i64, release: &str, healthy: Option<bool>) -> Outcome {
    Outcome {
        generation,
        release: release.into(),
        since: Time(at(generation)),
        until: None,
        healthy,
        why: None,
    }
}

fn entry(revision: i64, action: Action, to: Option<&str>) -> AuditEntry {
    let spec = AuditEntrySpec {
        subject: Subject {
            kind: RELEASE_PIN.to_owned(),
            namespace: None,
            name: "cart-staging".into(),
            uid: Some("u1".into()),
        },
        revision,
        operation: Some(format!("op-{revision}")),
        actor: Some("ana".into()),
        recorded_by: "ana".into(),
        action,
        at: Time(at(revision)),
        reason: Some("INC-42".into()),
        from: None,
        to: to.map(|name| ContentRef {
            name: name.into(),
            uid: Some(format!("uid-{name}")),
            hash: Some(format!("hash-{name}")),
        }),
        release_ref: None,
        holds: Vec::new(),
        restored_from: (action == Action::Rollback).then_some(1),
        rendered_hash: None,
        previous: None,
        gap: None,
        checkpoint: None,
    };
    AuditEntry::new(&format!("cart-staging-u1-{revision}"), spec)
}

fn gap(first: i64, last: i64) -> AuditEntry {
    let mut entry = entry(last, Action::Gap, None);
    entry.spec.gap = Some(Gap { first, last });
    entry
}

fn checkpoint(through: i64, to: &str) -> AuditEntry {
    let mut entry = entry(through, Action::Checkpoint, Some(to));
    entry.spec.checkpoint = Some(Checkpoint {
        through,
        entries: through,
        hash: "0".repeat(64),
    });
    entry
}

/// Returns each row of the history as short text, to compare it with the expected text.
fn words(revisions: &Revisions<Pinned>) -> Vec<String> {
    let row = |row: &Row<Pinned>| match row {
        Row::Missing(missing) => format!(
            "{}-{} {}",
            missing.first,
            missing.last,
            missing.missing.words()
        ),
        Row::Known(revision) => {
            let content = revision.content.as_ref();
            format!(
                "{} {} {} {}",
                revision.number,
                content.map_or("?", |content| content.release.name.as_str()),
                revision
                    .cause
                    .as_ref()
                    .map_or("?".into(), |cause| format!("{:?}", cause.action)),
                revision.state.word()
            )
        }
    };
    revisions.rows.iter().map(row).collect()
}

#[test]
fn what_there_is_makes_the_revisions() {
    let deploy = |revision, to| entry(revision, Action::Deploy, Some(to));
    let mut of_another = deploy(9, "z");
    of_another.spec.subject.uid = Some("u0".into());
    let mut of_component = deploy(8, "y");
    of_component.spec.subject.kind = COMPONENT.to_owned();
    for (what, pin, entries, expected) in [
        (
            "moves and outcomes",
            pin(
                3,
                "a",
                vec![
                    outcome(1, "a", Some(true)),
                    outcome(2, "b", Some(false)),
                    outcome(3, "a", None),
                ],
            ),
            vec![
                deploy(1, "a"),
                deploy(2, "b"),
                entry(3, Action::Rollback, Some("a")),
            ],
            vec![
                "1 a Deploy healthy",
                "2 b Deploy unhealthy",
                "3 a Rollback not known yet",
            ],
        ),
        (
            "entries without outcomes, in any order, and those of others",
            pin(2, "b", vec![]),
            vec![of_another, deploy(2, "b"), of_component, deploy(1, "a")],
            vec!["1 a Deploy superseded", "2 b Deploy not known yet"],
        ),
        (
            "outcomes without entries",
            pin(
                3,
                "c",
                vec![outcome(1, "a", None), outcome(2, "b", Some(true))],
            ),
            vec![],
            vec!["1 a ? unknown", "2 b ? healthy", "3 c Edit not known yet"],
        ),
        (
            "nothing but the pin",
            pin(1, "a", vec![]),
            vec![],
            vec!["1 a Edit not known yet"],
        ),
        (
            "a gap, of which the controller saw a part",
            pin(7, "g", vec![outcome(4, "d", Some(true))]),
            vec![deploy(1, "a"), gap(2, 6), deploy(7, "g")],
            vec![
                "1 a Deploy superseded",
                "2-3 not observed",
                "4 d ? healthy",
                "5-6 not observed",
                "7 g Deploy not known yet",
            ],
        ),
        (
            "a checkpoint, and what it keeps of the last that it stands for",
            pin(6, "f", vec![outcome(3, "c", Some(true))]),
            vec![checkpoint(4, "d"), deploy(5, "e"), deploy(6, "f")],
            vec![
                "1-2 removed by retention",
                "3 c ? healthy",
                "4 d ? superseded",
                "5 e Deploy superseded",
                "6 f Deploy not known yet",
            ],
        ),
        (
            "an entry that its checkpoint did not yet replace, and older checkpoints",
            pin(3, "c", vec![]),
            vec![
                checkpoint(1, "a"),
                checkpoint(2, "b"),
                deploy(2, "b"),
                deploy(3, "c"),
            ],
            vec![
                "1-1 removed by retention",
                "2 b Deploy superseded",
                "3 c Deploy not known yet",
            ],
        ),
        (
            "a hole that nobody recorded, cut where reasons meet",
            pin(12, "l", vec![]),
            vec![checkpoint(2, "b"), gap(5, 7), deploy(10, "j")],
            vec![
                "1-1 removed by retention",
                "2 b ? superseded",
                "3-4 not recorded",
                "5-7 not observed",
                "8-9 not recorded",
                "10 j Deploy superseded",
                "11-11 not recorded",
                "12 l Edit not known yet",
            ],
        ),
        (
            "an entry that does not say to what",
            pin(2, "b", vec![outcome(1, "a", None)]),
            vec![entry(1, Action::Edit, None), deploy(2, "b")],
            vec!["1 a Edit unknown", "2 b Deploy not known yet"],
        ),
        (
            "a pin that was not stored",
            pin(0, "a", vec![]),
            vec![],
            vec![],
        ),
    ] {
        let revisions = of_pin(&pin, &entries, at(100));
        assert_eq!(words(&revisions), expected, "{what}");
    }
}

#[test]
fn a_revision_says_what_is_on_record() {
    let mut rollback = entry(2, Action::Rollback, Some("a"));
    let hold = Hold {
        id: "hold-1".into(),
        owner: "ana".into(),
        reason: None,
        since: Time(at(2)),
        until: None,
        release: None,
    };
    rollback.spec.holds = vec![hold.clone()];
    let mut outcome = outcome(2, "a", Some(false));
    outcome.why = Some("crashing".into());
    let revisions = of_pin(&pin(2, "a", vec![outcome]), &[rollback], at(100));
    let expected = Revision {
        number: 2,
        hash: Some("hash-a".into()),
        created: Some(at(2)),
        cause: Some(Cause {
            action: Action::Rollback,
            actor: Some("ana".into()),
            reason: Some("INC-42".into()),
            operation: Some("op-2".into()),
        }),
        restored_from: Some(1),
        state: State::Unhealthy,
        why: Some("crashing".into()),
        mark: None,
        content: Some(Pinned {
            release: ContentRef {
                name: "a".into(),
                uid: Some("uid-a".into()),
                hash: Some("hash-a".into()),
            },
            holds: vec![hold],
            reference: Some("a".into()),
            replaced: None,
        }),
    };
    assert_eq!(revisions.current(), Ok(&expected));
}

#[test]
fn a_move_whose_entry_is_not_written_yet_is_read_off_the_pin() {
    let mut pin = pin(2, "b", vec![]);
    let operation = Operation {
        id: "op-2".into(),
        number: 2,
        action: Action::Promote,
        at: Time(at(2)),
        reason: Some("ship".into()),
        from: None,
        to: Some(ContentRef::named("b")),
        actor: None,
        holds_before: Vec::new(),
        rendered_hash: None,
        restored_from: None,
    };
    let annotations = pin.metadata.annotations.get_or_insert_default();
    annotations.insert(
        crate::api::labels::OPERATION.into(),
        operation.to_annotation(),
    );
    let first = entry(1, Action::Deploy, Some("a"));
    let revisions = of_pin(&pin, &[first], at(100));
    assert_eq!(
        words(&revisions),
        ["1 a Deploy superseded", "2 b Promote not known yet"]
    );
    let cause = revisions.current().unwrap().cause.as_ref().unwrap();
    assert_eq!(cause.operation.as_deref(), Some("op-2"));
    assert_eq!(revisions.before(2).unwrap().number, 1);
}

#[test]
fn what_cannot_be_found_is_explained() {
    let pin = pin(6, "f", vec![]);
    let entries = [
        checkpoint(2, "b"),
        gap(3, 4),
        entry(6, Action::Deploy, Some("f")),
    ];
    let revisions = of_pin(&pin, &entries, at(100));
    for (number, expected) in [
        (
            1,
            "revision 1 of cart in staging is not available: revisions 1 to 1 were removed by retention; known revisions: 2, 6",
        ),
        (
            4,
            "revision 4 of cart in staging is not available: revisions 3 to 4 were not observed; known revisions: 2, 6",
        ),
        (
            5,
            "revision 5 of cart in staging is not available: revisions 5 to 5 were not recorded; known revisions: 2, 6",
        ),
        (7, "cart in staging has no revision 7; it has 2, 6"),
        (-1, "cart in staging has no revision -1; it has 2, 6"),
    ] {
        assert_eq!(revisions.find(number).unwrap_err().to_string(), expected);
    }
    let error = revisions.before(2).unwrap_err().to_string();
    assert_eq!(error, "cart in staging has no revision before 2");
}

#[test]
fn a_limit_keeps_the_current_the_referenced_and_the_newest() {
    for (numbers, current, referenced, limit, expected) in [
        (&[][..], 0, &[][..], 3, &[][..]),
        (&[1, 2, 3], 3, &[], 3, &[]),
        (&[1, 2, 3, 4, 5], 5, &[], 3, &[1, 2]),
        (&[5, 1, 4, 2, 3], 5, &[], 3, &[1, 2]),
        (&[1, 2, 3, 4, 5], 1, &[], 3, &[2]),
        (&[1, 2, 3, 4, 5], 5, &[2], 3, &[1]),
        (&[1, 2, 3, 4, 5], 5, &[1, 2, 9], 3, &[]),
        (&[1, 2, 3], 3, &[], 0, &[1, 2]),
        (&[1, 1, 2, 2], 2, &[], 1, &[1]),
    ] {
        let referenced: BTreeSet<i64> = referenced.iter().copied().collect();
        let found = beyond(numbers, current, &referenced, limit);
        assert_eq!(
            found, expected,
            "{numbers:?} {current} {referenced:?} {limit}"
        );
    }
}

proptest! {
    #[test]
    fn every_number_up_to_the_newest_stands_once_whatever_is_on_record(
        generation in 0i64..30,
        entries in proptest::collection::vec((1i64..30, 0u8..4, 1i64..8), 0..12),
        outcomes in proptest::collection::vec(1i64..30, 0..8),
    ) {
        let entries: Vec<AuditEntry> = entries
            .into_iter()
            .map(|(number, kind, length)| match kind {
                0 => gap((number - length).max(1), number),
                1 => checkpoint(number, "x"),
                _ => entry(number, Action::Deploy, Some("x")),
            })
            .collect();
        let outcomes = outcomes.into_iter().map(|number| outcome(number, "x", None)).collect();
        let revisions = of_pin(&pin(generation, "x", outcomes), &entries, at(100));
        let mut next = 1;
        for row in &revisions.rows {
            let (first, last) = match row {
                Row::Known(revision) => (revision.number, revision.number),
                Row::Missing(missing) => (missing.first, missing.last),
            };
            prop_assert_eq!(first, next);
            prop_assert!(first <= last);
            next = last + 1;
        }
        prop_assert!(next > generation);
    }

    #[test]
    fn what_a_limit_keeps_is_what_it_says(
        numbers in proptest::collection::btree_set(1i64..100, 0..40),
        referenced in proptest::collection::btree_set(1i64..100, 0..10),
        current in 1i64..100,
        limit in 0usize..20,
    ) {
        let list: Vec<i64> = numbers.iter().copied().collect();
        let going: BTreeSet<i64> = beyond(&list, current, &referenced, limit).into_iter().collect();
        prop_assert!(going.is_subset(&numbers));
        let newest: BTreeSet<i64> = numbers.iter().rev().take(limit).copied().collect();
        for number in &numbers {
            let stays = *number == current || referenced.contains(number) || newest.contains(number);
            prop_assert_eq!(stays, !going.contains(number));
        }
    }
}

fn hold(owner: &str, release: Option<&str>, until: Option<i64>) -> Hold {
    Hold {
        id: owner.into(),
        owner: owner.into(),
        reason: None,
        since: Time(at(1)),
        until: until.map(|until| Time(at(until))),
        release: release.map(str::to_owned),
    }
}

#[test]
fn the_change_that_made_a_release_effective_is_not_the_newest_change() {
    let by = |actor: &str, revision, action, to: &str| {
        let mut made = entry(revision, action, Some(to));
        made.spec.actor = Some(actor.into());
        made
    };
    let fixed = |mut made: AuditEntry, reference: &str, hold: Hold| {
        made.spec.release_ref = Some(reference.into());
        made.spec.holds = vec![hold];
        made
    };
    let replacing = |mut made: AuditEntry, from: &str| {
        made.spec.from = Some(ContentRef::named(from));
        made
    };
    for (what, pin, entries, expected) in [
        (
            "a hold on a release that somebody else promoted",
            pin(3, "b", vec![]),
            vec![
                by("ci", 1, Action::Deploy, "a"),
                by("tom", 2, Action::Promote, "b"),
                by("ana", 3, Action::Pin, "b"),
            ],
            "Promote tom 2",
        ),
        (
            "an undo that brings an earlier release back",
            pin(3, "a", vec![]),
            vec![
                by("ci", 1, Action::Deploy, "a"),
                by("tom", 2, Action::Promote, "b"),
                by("mei", 3, Action::Undo, "a"),
            ],
            "Undo mei 3",
        ),
        (
            "an undo that only lifts a hold",
            pin(3, "b", vec![]),
            vec![
                by("tom", 1, Action::Promote, "b"),
                by("ana", 2, Action::Pin, "b"),
                by("mei", 3, Action::Undo, "b"),
            ],
            "Promote tom 1",
        ),
        (
            "a hold that fixes another release",
            pin(2, "b", vec![]),
            vec![
                by("tom", 1, Action::Promote, "b"),
                fixed(
                    by("ana", 2, Action::Rollback, "b"),
                    "c",
                    hold("ana", Some("b"), None),
                ),
            ],
            "Promote tom 1",
        ),
        (
            "a change whose entry is not written yet",
            {
                let mut pin = pin(2, "b", vec![]);
                let operation = Operation {
                    id: "op-2".into(),
                    number: 2,
                    action: Action::Promote,
                    at: Time(at(2)),
                    reason: None,
                    from: Some(ContentRef::named("a")),
                    to: Some(ContentRef::named("b")),
                    actor: None,
                    holds_before: Vec::new(),
                    rendered_hash: None,
                    restored_from: None,
                };
                let annotations = pin.metadata.annotations.get_or_insert_default();
                annotations.insert("bowline.dev/operation".into(), operation.to_annotation());
                annotations.insert("bowline.dev/changed-by".into(), "tom".into());
                pin
            },
            vec![by("ci", 1, Action::Deploy, "a")],
            "Promote tom 2",
        ),
        (
            "a hold after revisions that nobody saw",
            pin(4, "b", vec![]),
            vec![
                by("ci", 1, Action::Deploy, "a"),
                gap(2, 3),
                replacing(by("ana", 4, Action::Pin, "b"), "b"),
            ],
            "nobody",
        ),
        (
            "a promotion after revisions that nobody saw",
            pin(4, "b", vec![]),
            vec![
                by("ci", 1, Action::Deploy, "a"),
                gap(2, 3),
                replacing(by("tom", 4, Action::Promote, "b"), "a"),
            ],
            "Promote tom 4",
        ),
    ] {
        let made = of_pin(&pin, &entries, at(100)).made(&pin.spec.release_ref.name, at(100), false);
        let since = made
            .since
            .map(|since| format!(" {}", since.as_second() - 1_800_000_000));
        let who = made.cause.map_or("nobody".to_owned(), |cause| {
            format!("{:?} {}", cause.action, cause.actor.unwrap_or_default())
        });
        let found = format!("{who}{}", since.unwrap_or_default());
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn the_end_of_a_hold_makes_the_named_release_effective() {
    let mut promoted = entry(1, Action::Promote, Some("b"));
    promoted.spec.actor = Some("tom".into());
    let mut held = entry(2, Action::Rollback, Some("a"));
    held.spec.release_ref = Some("b".into());
    held.spec.holds = vec![hold("ana", Some("a"), Some(50))];
    let mut now = pin(2, "b", vec![]);
    now.spec.holds = held.spec.holds.clone();
    let revisions = of_pin(&now, &[promoted, held], at(100));
    let made = revisions.made("b", at(100), false);
    assert_eq!(made.cause.unwrap().actor.as_deref(), Some("tom"));
    assert_eq!(
        (made.ended.unwrap().owner.as_str(), made.since),
        ("ana", Some(at(50)))
    );
}

#[test]
fn a_change_after_the_end_of_a_hold_did_not_make_the_release() {
    for action in [Action::Pin, Action::Unpin] {
        let by = |actor: &str, mut made: AuditEntry| {
            made.spec.actor = Some(actor.into());
            made
        };
        let mut fixed = entry(2, Action::Rollback, Some("a"));
        fixed.spec.release_ref = Some("b".into());
        fixed.spec.holds = vec![hold("ana", Some("a"), Some(50))];
        let mut later = entry(60, action, Some("b"));
        later.spec.revision = 3;
        later.spec.from = Some(ContentRef::named("b"));
        let entries = [
            by("tom", entry(1, Action::Promote, Some("b"))),
            by("ana", fixed),
            by("carl", later),
        ];
        let revisions = of_pin(&pin(3, "b", vec![]), &entries, at(100));
        let made = revisions.made("b", at(100), false);
        let owner = made.ended.map(|hold| hold.owner);
        assert_eq!(made.cause.unwrap().actor.as_deref(), Some("tom"));
        assert_eq!(
            (owner.as_deref(), made.since),
            (Some("ana"), Some(at(50))),
            "{action:?}"
        );
    }
}

#[test]
fn a_hold_that_fixes_a_release_of_a_gitops_tool_has_no_end() {
    let mut fixed = entry(2, Action::Rollback, Some("a"));
    fixed.spec.release_ref = Some("b".into());
    fixed.spec.holds = vec![hold("ana", Some("a"), Some(50))];
    let entries = [entry(1, Action::Deploy, Some("b")), fixed];
    let mut now = pin(2, "b", vec![]);
    now.spec.holds = entries[1].spec.holds.clone();
    let revisions = of_pin(&now, &entries, at(100));
    let made = revisions.made("a", at(100), true);
    assert_eq!(made.cause.unwrap().action, Action::Rollback);
    assert_eq!(made.ended, None);
}
