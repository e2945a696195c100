//! Tests of audit chains: each chain that bowline writes is valid, and verification finds every manipulation.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::api::bowline::audit::{Action, AuditEntry, COMPONENT, ContentRef, Gap};
use crate::api::hold::Hold;
use crate::api::openchoreo::pin::{ReleasePin, ReleasePinSpec};
use crate::api::openchoreo::reference::NameRef;
use crate::api::operation::Operation;
use crate::api::{digest, labels};
use crate::engine::audit;
use crate::engine::audit::{
    OnRelease, Recorder, Severity, Span, Verification, chains, checkpoint, hash, link, markdown,
    name_at, of_release, read, sealed, timeline,
};
use crate::engine::subject::dynamic;
use crate::subjects::release_pin::kind::{KIND, live};

fn missing(
    pin: &ReleasePin,
    newest: Option<&AuditEntry>,
    recorder: &Recorder,
) -> Result<Vec<AuditEntry>, audit::NotStored> {
    audit::missing(&KIND, &dynamic(pin), newest, recorder)
}

fn verify(pins: &[ReleasePin], entries: &[AuditEntry]) -> Verification {
    audit::verify(&live(pins), entries)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Move(u8),
    /// bowline writes the ReleasePin and stops before it writes the audit entry.
    HalfMove(u8),
    Hold(Option<u8>),
    /// Somebody edits the ReleasePin with kubectl, and the controller observes it.
    Edit(u8),
    /// Somebody edits the ReleasePin with kubectl, and no controller observes it.
    Unseen(u8),
    Mark(u8),
    Collect(u8),
    Retire(i64),
    /// Retention writes the checkpoint and stops before it deletes an entry.
    HalfRetire(i64),
    Recreate,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Move),
        1 => any::<u8>().prop_map(Step::HalfMove),
        2 => proptest::option::of(any::<u8>()).prop_map(Step::Hold),
        2 => any::<u8>().prop_map(Step::Edit),
        2 => any::<u8>().prop_map(Step::Unseen),
        1 => any::<u8>().prop_map(Step::Mark),
        1 => any::<u8>().prop_map(Step::Collect),
        1 => (0i64..12).prop_map(Step::Retire),
        1 => (0i64..12).prop_map(Step::HalfRetire),
        1 => Just(Step::Recreate),
    ]
}

/// The ReleasePin of one component in one environment, with its audit entries.
struct History {
    pin: ReleasePin,
    entries: Vec<AuditEntry>,
    clock: i64,
    pins: u32,
}

impl History {
    fn new() -> History {
        let mut history = History {
            pin: ReleasePin::default(),
            entries: Vec::new(),
            clock: 0,
            pins: 0,
        };
        history.create();
        history
    }

    fn of(steps: &[Step]) -> History {
        let mut history = History::new();
        for step in steps {
            history.step(step);
        }
        history.settle();
        history
    }

    fn create(&mut self) {
        self.pins += 1;
        let spec = ReleasePinSpec {
            component: "checkout".into(),
            environment: "production".into(),
            ..Default::default()
        };
        self.pin = ReleasePin::new("checkout-production", spec);
        self.pin.metadata.uid = Some(format!("{:08x}-8b86-d011", self.pins));
        self.pin.metadata.generation = Some(0);
        self.engine(Action::Deploy, |pin| {
            pin.spec.release_ref = NameRef::new("checkout-0");
        });
        self.settle();
    }

    fn recorder(&self) -> Recorder<'static> {
        Recorder {
            by: "system:serviceaccount:bowline:controller",
            now: at(self.clock),
            known: &[],
        }
    }

    fn newest(&self) -> Option<AuditEntry> {
        let uid = self.pin.uid();
        chains(&self.entries)
            .into_iter()
            .find(|chain| chain.subject.uid == uid)
            .and_then(|chain| chain.newest().cloned())
    }

    fn settle(&mut self) {
        let new = missing(&self.pin, self.newest().as_ref(), &self.recorder()).unwrap();
        self.entries.extend(new);
    }

    /// Changes the ReleasePin like an API server: increments the generation and records the user.
    fn write(&mut self, who: &str, change: impl FnOnce(&mut ReleasePin)) {
        self.clock += 7;
        change(&mut self.pin);
        *self.pin.metadata.generation.as_mut().unwrap() += 1;
        self.pin
            .annotations_mut()
            .insert(labels::CHANGED_BY.into(), who.into());
        self.pin.metadata.managed_fields = Some(vec![ManagedFieldsEntry {
            time: Some(Time(at(self.clock))),
            ..Default::default()
        }]);
    }

    fn engine(&mut self, action: Action, change: impl FnOnce(&mut ReleasePin)) {
        if self.pin.metadata.generation != Some(0) {
            self.settle();
        }
        let head = self.newest().as_ref().map(link);
        let now = at(self.clock + 7);
        let from = self.pin.spec.effective_release(now).to_owned();
        let id = format!("op-{}", self.clock);
        self.write("ana", |pin| {
            change(pin);
            let identity = |name: &str| ContentRef {
                name: name.into(),
                uid: Some(format!("uid-of-{name}")),
                hash: Some(digest::of_bytes(name.as_bytes())),
            };
            let operation = Operation {
                id,
                number: pin.metadata.generation.unwrap() + 1,
                action,
                at: Time(now),
                reason: Some("INC-42 | it burns".into()),
                from: (!from.is_empty()).then(|| identity(&from)),
                to: Some(identity(pin.spec.effective_release(now))),
                actor: None,
                holds_before: Vec::new(),
                rendered_hash: Some(digest::of_bytes(b"rendered")),
                restored_from: (action == Action::Rollback).then_some(1),
            };
            let annotations = pin.annotations_mut();
            annotations.insert(labels::OPERATION.into(), operation.to_annotation());
            match head {
                Some(head) => annotations.insert(labels::AUDIT_HEAD.into(), head),
                None => annotations.remove(labels::AUDIT_HEAD),
            };
        });
    }

    fn on_release(&mut self, action: Action, release: u8) {
        let newest = chains(&self.entries)
            .into_iter()
            .find(|chain| chain.subject.kind == COMPONENT)
            .and_then(|chain| chain.newest().cloned());
        let done = OnRelease {
            release: ContentRef::named(format!("checkout-{release}")),
            action,
            operation: Some("op-m"),
            actor: Some("bo"),
            reason: Some("it leaks"),
        };
        self.entries.push(of_release(
            "checkout",
            &done,
            newest.as_ref(),
            &self.recorder(),
        ));
    }

    fn retire(&mut self, through: i64, finish: bool) {
        let mut gone = Vec::new();
        let mut new = Vec::new();
        for chain in chains(&self.entries) {
            let live = chain.subject.uid == self.pin.uid();
            let head = self.pin.audit_head().filter(|_| live);
            if let Some(retired) = checkpoint(&chain, through, head, &self.recorder()).unwrap() {
                gone.extend(retired.removed);
                new.push(retired.checkpoint);
            }
        }
        if finish {
            self.entries
                .retain(|entry| !gone.contains(&entry.name_any()));
        }
        self.entries.extend(new);
    }

    fn step(&mut self, step: &Step) {
        let release = |number: &u8| NameRef::new(format!("checkout-{number}"));
        match step {
            Step::Move(number) => {
                let actions = [Action::Promote, Action::Rollback, Action::AutoDeploy];
                let action = actions[usize::from(*number) % actions.len()];
                self.engine(action, |pin| pin.spec.release_ref = release(number));
                self.settle();
            }
            Step::HalfMove(number) => {
                self.engine(Action::Undo, |pin| pin.spec.release_ref = release(number));
            }
            Step::Hold(fixed) => {
                let hold = Hold {
                    id: format!("hold-{}", self.clock),
                    owner: "ana".into(),
                    reason: Some("sale".into()),
                    since: Time(at(self.clock)),
                    until: fixed.map(|end| Time(at(self.clock + i64::from(end)))),
                    release: fixed.map(|number| format!("checkout-{number}")),
                };
                self.engine(Action::Pin, |pin| pin.spec.holds = vec![hold]);
                self.settle();
            }
            Step::Edit(number) => {
                self.write("kim", |pin| pin.spec.release_ref = release(number));
                self.clock += 3;
                self.settle();
            }
            Step::Unseen(number) => self.write("kim", |pin| pin.spec.release_ref = release(number)),
            Step::Mark(number) => self.on_release(Action::MarkBad, *number),
            Step::Collect(number) => self.on_release(Action::Collect, *number),
            Step::Retire(through) => self.retire(*through, true),
            Step::HalfRetire(through) => self.retire(*through, false),
            Step::Recreate => {
                self.settle();
                self.create();
            }
        }
    }

    fn verdict(&self) -> Verification {
        verdict(&self.pin, self.entries.iter().map(stored).collect())
    }
}

fn stored(entry: &AuditEntry) -> Value {
    serde_json::to_value(entry).unwrap()
}

fn verdict(pin: &ReleasePin, objects: Vec<Value>) -> Verification {
    let (entries, problems) = read(objects);
    let mut verdict = verify(std::slice::from_ref(pin), &entries);
    verdict.problems.extend(problems);
    verdict
}

fn names_it(verdict: &Verification, name: &str) -> bool {
    let named = format!("auditentry/{name}");
    verdict.problems.iter().any(|problem| {
        problem.object == named
            || problem
                .what
                .split([' ', ':', ','])
                .any(|word| word == named)
    })
}

/// Returns a history that contains every kind of step.
fn eventful() -> History {
    History::of(&[
        Step::Move(1),
        Step::Edit(2),
        Step::Hold(Some(3)),
        Step::Mark(1),
        Step::Unseen(4),
        Step::Unseen(5),
        Step::Edit(6),
        Step::Recreate,
        Step::Move(1),
        Step::Move(2),
        Step::HalfMove(3),
        Step::Unseen(4),
        Step::Move(5),
        Step::Mark(2),
        Step::Retire(2),
        Step::Collect(2),
        Step::Hold(None),
        Step::Move(7),
    ])
}

/// Collects copies of a JSON value. In each copy, one value inside is changed by one byte.
fn each_changed_leaf(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                each_changed_leaf(inner, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (place, inner) in items.iter().enumerate() {
                each_changed_leaf(inner, &format!("{path}/{place}"), found);
            }
        }
        Value::String(text) => {
            let mut bytes = text.clone().into_bytes();
            let last = bytes.last_mut().unwrap();
            *last = if *last == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(bytes).unwrap();
            found.push((path.to_owned(), Value::from(changed)));
        }
        Value::Number(number) => {
            let number = number.as_i64().unwrap();
            found.push((path.to_owned(), Value::from(number + 1)));
            found.push((path.to_owned(), Value::from(number - 1)));
        }
        _ => panic!("{path} is {value}"),
    }
}

fn changed(object: &Value, path: &str, leaf: Value) -> Value {
    let mut object = object.clone();
    *object.pointer_mut(path).unwrap() = leaf;
    object
}

fn resealed(object: Value) -> Option<Value> {
    let mut entry: AuditEntry = serde_json::from_value(object).ok()?;
    let seal = hash(&entry);
    entry
        .annotations_mut()
        .insert(labels::CONTENT_HASH.into(), seal);
    Some(stored(&entry))
}

#[test]
fn one_changed_byte_anywhere_is_seen_and_named() {
    let history = eventful();
    assert_eq!(history.verdict().problems, []);
    let objects: Vec<Value> = history.entries.iter().map(stored).collect();
    let mut tried = 0;
    for (place, object) in objects.iter().enumerate() {
        let name = history.entries[place].name_any();
        let mut leaves = Vec::new();
        each_changed_leaf(&object["spec"], "/spec", &mut leaves);
        for (path, leaf) in leaves {
            let mut all = objects.clone();
            all[place] = changed(object, &path, leaf.clone());
            let verdict = verdict(&history.pin, all);
            assert!(names_it(&verdict, &name), "{name} {path} {leaf}");
            tried += 1;
        }
        for label in [labels::COMPONENT, labels::ENVIRONMENT] {
            let mut entry = history.entries[place].clone();
            entry.labels_mut().insert(label.into(), "other".into());
            let mut all = objects.clone();
            all[place] = stored(&entry);
            assert!(
                names_it(&verdict(&history.pin, all), &name),
                "{name} {label}"
            );
        }
        let mut all = objects.clone();
        all[place] = changed(object, "/metadata/name", "other-1".into());
        assert!(names_it(&verdict(&history.pin, all), "other-1"), "{name}");
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn whoever_seals_again_is_seen_by_the_next_entry_or_the_pin() {
    let history = eventful();
    let objects: Vec<Value> = history.entries.iter().map(stored).collect();
    let newest = history.newest().unwrap().name_any();
    let chains = chains(&history.entries);
    let ends: Vec<String> = chains
        .iter()
        .map(|chain| chain.newest().unwrap().name_any())
        .collect();
    for (place, object) in objects.iter().enumerate() {
        let entry = &history.entries[place];
        let name = entry.name_any();
        let alone = ends.contains(&name) && name != newest;
        if alone || entry.spec.checkpoint.is_some() {
            continue;
        }
        let mut leaves = Vec::new();
        each_changed_leaf(&object["spec"], "/spec", &mut leaves);
        for (path, leaf) in leaves {
            // The ReleasePin does not contain the name of the user who wrote its newest entry. A policy checks that
            // name, so verification cannot.
            if name == newest && path == "/spec/recordedBy" {
                continue;
            }
            let Some(forged) = resealed(changed(object, &path, leaf.clone())) else {
                continue;
            };
            let mut all = objects.clone();
            all[place] = forged;
            let verdict = verdict(&history.pin, all);
            assert!(
                names_it(&verdict, &name),
                "{name} {path} {leaf} {verdict:#?}"
            );
        }
    }
}

#[test]
fn the_pin_vouches_for_the_head_the_release_and_the_holds() {
    type Change = fn(&mut ReleasePin);
    let changes: [(Change, &str); 9] = [
        (
            |pin| {
                let head = "0".repeat(64);
                pin.annotations_mut()
                    .insert(labels::AUDIT_HEAD.into(), head);
            },
            "audit head does not match",
        ),
        (
            |pin| {
                pin.annotations_mut().remove(labels::AUDIT_HEAD);
            },
            "audit head is missing",
        ),
        (
            |pin| pin.spec.release_ref = NameRef::new("checkout-evil"),
            "its content is not checkout-evil",
        ),
        (|pin| pin.spec.holds.clear(), "spec.holds does not match"),
        (
            |pin| pin.metadata.generation = Some(99),
            "revisions 9 to 99 are missing",
        ),
        (
            |pin| pin.metadata.generation = Some(3),
            "the ReleasePin is at generation 3",
        ),
        (
            |pin| pin.metadata.uid = Some("ffffffff-0000".into()),
            "no change of the ReleasePin is recorded",
        ),
        (
            |pin| {
                pin.annotations_mut()
                    .insert(labels::CHANGED_BY.into(), "eve".into());
            },
            "spec.actor does not match",
        ),
        (
            |pin| {
                pin.annotations_mut().remove(labels::OPERATION);
            },
            "spec.action does not match",
        ),
    ];
    for (change, expected) in changes {
        let mut history = eventful();
        change(&mut history.pin);
        let problems = history.verdict().problems;
        assert!(
            problems
                .iter()
                .any(|problem| problem.what.contains(expected)),
            "{expected}: {problems:#?}"
        );
    }
}

#[test]
fn a_chain_that_is_rewritten_to_its_end_disagrees_with_the_pin() {
    let steps = [Step::Move(1), Step::Edit(2), Step::Move(3), Step::Edit(4)];
    let history = History::of(&steps);
    for start in 0..3 {
        let mut entries = history.entries.clone();
        entries[start].spec.reason = Some("nothing happened".into());
        for place in start..entries.len() {
            let before = place.checked_sub(1).map(|before| link(&entries[before]));
            let mut spec = entries[place].spec.clone();
            spec.previous = before;
            entries[place] = sealed(spec, "checkout", Some("production"));
        }
        let verdict = verify(std::slice::from_ref(&history.pin), &entries);
        let [problem] = &verdict.problems[..] else {
            panic!("{verdict:#?}");
        };
        assert_eq!(problem.object, "releasepin/checkout-production");
        assert!(names_it(&verdict, "checkout-production-00000001-3"));
    }
}

#[test]
fn an_operation_counts_for_its_generation_only() {
    let history = History::of(&[Step::Move(1), Step::Edit(2)]);
    let [created, moved, edited] = &history.entries[..] else {
        panic!("{:#?}", history.entries);
    };
    assert_eq!(created.name_any(), "checkout-production-00000001-1");
    assert_eq!(created.spec.previous, None);
    assert_eq!(moved.spec.previous, Some(hash(created)));
    assert_eq!(history.pin.audit_head(), Some(hash(created).as_str()));
    assert_eq!(moved.spec.action, Action::Rollback);
    assert_eq!(moved.spec.restored_from, Some(1));
    assert_eq!(moved.spec.operation.as_deref(), Some("op-7"));
    assert_eq!(edited.spec.action, Action::Edit);
    assert_eq!(edited.spec.operation, None);
    assert_eq!(edited.spec.reason, None);
    assert_eq!(edited.spec.actor.as_deref(), Some("kim"));
    assert_eq!(edited.spec.from, moved.spec.to);
    assert_eq!(edited.spec.to, Some(ContentRef::named("checkout-2")));
    // The entry has the time of the edit, which the API server recorded. The controller observed the edit three
    // seconds later.
    assert_eq!(edited.spec.at, Time(at(21)));
}

#[test]
fn what_nobody_saw_is_one_gap_and_a_warning() {
    let history = History::of(&[Step::Unseen(1), Step::Unseen(2), Step::Unseen(3)]);
    let [_, gap, edited] = &history.entries[..] else {
        panic!("{:#?}", history.entries);
    };
    assert_eq!(gap.spec.gap, Some(Gap { first: 2, last: 3 }));
    assert_eq!(gap.name_any(), "checkout-production-00000001-3");
    assert_eq!(edited.spec.revision, 4);
    let verdict = history.verdict();
    assert_eq!(verdict.problems, []);
    assert_eq!(verdict.warnings.len(), 1);
    assert_eq!(
        verdict.warnings[0].what,
        "no bowline process observed revisions 2 to 3 of the ReleasePin"
    );
}

#[test]
fn a_pin_from_before_bowline_starts_with_a_gap() {
    let mut pin = History::new().pin;
    pin.metadata.generation = Some(7);
    pin.metadata.annotations = None;
    let recorder = History::new().recorder();
    let entries = missing(&pin, None, &recorder).unwrap();
    assert_eq!(entries[0].spec.gap, Some(Gap { first: 1, last: 6 }));
    assert_eq!(entries[1].spec.actor, None);
    assert!(verify(&[pin.clone()], &entries).is_valid());
    pin.metadata.uid = None;
    assert!(missing(&pin, None, &recorder).is_err());
}

#[test]
fn an_entry_that_comes_after_its_gap_is_no_tampering() {
    let mut history = History::of(&[Step::HalfMove(1)]);
    let late = history.entries.pop().unwrap();
    for step in [Step::Unseen(2), Step::Edit(3)] {
        history.step(&step);
    }
    history.entries.push(late.clone());
    let verdict = history.verdict();
    assert_eq!(verdict.problems, []);
    let object = format!("auditentry/{}", late.name_any());
    assert!(
        verdict
            .warnings
            .iter()
            .any(|warning| warning.object == object)
    );
}

#[test]
fn a_missing_last_entry_is_incomplete_and_named() {
    let mut history = History::of(&[Step::Move(1)]);
    history.engine(Action::Promote, |_| {});
    let verdict = history.verdict();
    assert_eq!(verdict.problems.len(), 1, "{verdict:#?}");
    assert_eq!(verdict.problems[0].severity, Severity::Incomplete);
    assert!(names_it(&verdict, "checkout-production-00000001-3"));
    history.settle();
    assert!(history.verdict().is_valid());
}

#[test]
fn retention_stops_at_the_head_and_refuses_what_was_rewritten() {
    let mut history = History::of(&[Step::Move(1), Step::Edit(2), Step::Edit(3), Step::Edit(4)]);
    let by_hand = history.entries.clone();
    history.retire(4, true);
    // The audit head names the first entry, so retention must keep all later entries.
    let names: Vec<String> = history
        .entries
        .iter()
        .map(|entry| entry.name_any())
        .collect();
    assert_eq!(
        names,
        [
            "checkout-production-00000001-2",
            "checkout-production-00000001-3",
            "checkout-production-00000001-4",
            "checkout-production-00000001-5",
            "checkout-production-00000001-checkpoint-1",
        ]
    );
    assert!(history.verdict().is_valid());
    history.step(&Step::Move(6));
    history.retire(4, true);
    let root = history.entries.last().unwrap().spec.checkpoint.clone();
    assert_eq!(root.map(|root| (root.through, root.entries)), Some((4, 4)));
    assert!(history.verdict().is_valid());

    let mut forged = by_hand;
    forged[1].spec.reason = Some("nothing happened".into());
    let found = chains(&forged);
    let refused = checkpoint(&found[0], 4, None, &history.recorder()).unwrap_err();
    assert_eq!(refused.object, "auditentry/checkout-production-00000001-2");
}

#[test]
fn clocks_that_disagree_are_marked_and_order_stays() {
    let history = History::of(&[Step::Move(1), Step::Move(2), Step::Mark(1)]);
    let mut entries = history.entries;
    entries[1].spec.at = Time(at(-100));
    let rows = timeline(&entries, &Span::default());
    let order: Vec<(&str, i64, bool)> = rows
        .iter()
        .map(|row| (row.subject.as_str(), row.revision, row.clock_disagrees))
        .collect();
    assert_eq!(
        order,
        [
            ("checkout-production", 1, false),
            ("checkout-production", 2, true),
            ("checkout-production", 3, false),
            ("checkout", 1, false),
        ]
    );
    for (since, until, expected) in [
        (Some(8), None, 2),
        (None, Some(8), 2),
        (None, Some(-50), 1),
        (Some(7), Some(21), 2),
        (Some(1000), None, 0),
    ] {
        let span = Span {
            since: since.map(at),
            until: until.map(at),
        };
        let rows = timeline(&entries, &span);
        assert_eq!(rows.len(), expected, "{span:?}");
    }
    assert!(markdown(&rows, "Incident").contains("(clocks disagree)"));
    assert!(markdown(&[], "Incident").contains("No audit entries"));
}

#[test]
fn a_hostile_reason_stays_in_its_cell() {
    let mut history = History::of(&[Step::Move(1)]);
    history.entries[1].spec.reason = Some(
        "x | y \\| z\r\n| forged | row |\n# title <img src=x> [a](javascript:b) `c` &#124;\u{1b}[2J\u{2028}\u{202e}"
            .into(),
    );
    let text = markdown(&timeline(&history.entries, &Span::default()), "a\n| b |");
    assert_eq!(text.lines().count(), 6, "{text}");
    for line in text.lines().skip(2) {
        assert_eq!(line.matches('|').count(), 10, "{line}");
    }
    assert_eq!(crate::text::clean(&text), text);
    for raw in ["<img", "[a]", "`c`", "](", "&#124;[2J"] {
        assert!(
            !text.contains(raw) || raw == "](" && text.contains("\\]("),
            "{raw}: {text}"
        );
    }
    assert!(text.contains("&amp;\\#124;"), "{text}");
}

#[test]
fn what_reads_the_same_and_is_written_otherwise_is_seen() {
    let history = History::of(&[Step::Move(1)]);
    let objects: Vec<Value> = history.entries.iter().map(stored).collect();
    let name = history.entries[0].name_any();
    let moment = objects[0]["spec"]["at"]
        .as_str()
        .unwrap()
        .replace('Z', ".000Z");
    let mut with_null = objects[0].clone();
    with_null["spec"]["holds"] = json!([]);
    let mut updated = objects[0].clone();
    updated["metadata"]["generation"] = json!(2);
    let mut unsealed = objects[0].clone();
    unsealed["metadata"]["annotations"] = json!({});
    for object in [
        changed(&objects[0], "/spec/at", moment.into()),
        with_null,
        updated,
        unsealed,
        changed(&objects[0], "/spec/action", "Vanish".into()),
    ] {
        let all = vec![object.clone(), objects[1].clone()];
        assert!(names_it(&verdict(&history.pin, all), &name), "{object}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_history_of_ours_is_valid(steps in proptest::collection::vec(step(), 0..25)) {
        let history = History::of(&steps);
        let verdict = history.verdict();
        prop_assert_eq!(&verdict.problems, &vec![]);
        prop_assert_eq!(verdict.entries, history.entries.len());
        // The timeline contains every entry, and entries of a chain keep their order. Only a checkpoint may have a
        // later time than the next row.
        let rows = timeline(&history.entries, &Span::default());
        prop_assert_eq!(rows.len(), history.entries.len());
        for chain in chains(&history.entries) {
            let stem = name_at(chain.subject, 1);
            let stem = stem.trim_end_matches('1');
            let order: Vec<i64> = rows
                .iter()
                .filter(|row| row.removed.is_none() && row.entry.starts_with(stem))
                .map(|row| row.revision)
                .collect();
            prop_assert!(order.is_sorted(), "{:?}", order);
        }
    }

    #[test]
    fn what_is_removed_doubled_or_swapped_is_seen(
        steps in proptest::collection::vec(step(), 1..20),
        one in any::<prop::sample::Index>(),
        two in any::<prop::sample::Index>(),
    ) {
        let history = History::of(&steps);
        let objects: Vec<Value> = history.entries.iter().map(stored).collect();
        let (one, two) = (one.index(objects.len()), two.index(objects.len()));
        let name = history.entries[one].name_any();

        let mut doubled = objects.clone();
        doubled.push(objects[one].clone());
        let found = verdict(&history.pin, doubled);
        let chains = chains(&history.entries);
        let loose = chains.iter().any(|chain| {
            let root = chain.root.map(|root| root.name_any());
            let loose = chain.leftovers.iter().chain(&chain.late);
            root == Some(name.clone()) || loose.into_iter().any(|entry| entry.name_any() == name)
        });
        prop_assert!(loose || names_it(&found, &name), "doubled {}", name);

        let mut copied = objects.clone();
        copied.push(changed(&objects[one], "/metadata/name", "copy-1".into()));
        prop_assert!(names_it(&verdict(&history.pin, copied), "copy-1"));

        if one != two {
            let mut swapped = objects.clone();
            swapped[one]["spec"] = objects[two]["spec"].clone();
            swapped[two]["spec"] = objects[one]["spec"].clone();
            let found = verdict(&history.pin, swapped);
            prop_assert!(names_it(&found, &name), "swapped {}", name);
            prop_assert!(names_it(&found, &history.entries[two].name_any()));
        }

        // If the ReleasePin is deleted, nothing proves the newest entry of its chain, so a change there is not found.
        let end = chains.iter().any(|chain| {
            chain.newest().is_some_and(|newest| newest.name_any() == name)
                && chain.subject.uid != history.pin.uid()
        });
        if !loose && !end {
            let mut removed = objects.clone();
            removed.remove(one);
            let found = verdict(&history.pin, removed);
            prop_assert!(names_it(&found, &name), "removed {}: {:#?}", name, found);
        }
    }
}

#[test]
fn entries_of_bowline_0_1_are_read_and_verified() {
    let stored: Value = serde_json::from_str(include_str!("entries_of_0_1.json")).unwrap();
    let pin: ReleasePin = serde_json::from_value(stored["releasePin"].clone()).unwrap();
    let entries: Vec<AuditEntry> = serde_json::from_value(stored["entries"].clone()).unwrap();
    let verdict = verify(std::slice::from_ref(&pin), &entries);
    assert!(verdict.is_valid(), "{:?}", verdict.problems);
    assert_eq!((verdict.entries, verdict.chains.len()), (4, 2));
    let held = entries.iter().find(|entry| entry.spec.revision == 3);
    assert_eq!(held.unwrap().spec.release_ref.as_deref(), Some("cart-v2"));
    // Verification also finds a changed value in an entry of the old format.
    for path in ["/spec/releaseRef", "/spec/holds/0/owner", "/spec/to/name"] {
        let mut tampered = stored["entries"].clone();
        *tampered[2].pointer_mut(path).unwrap() = json!("evil");
        let tampered: Vec<AuditEntry> = serde_json::from_value(tampered).unwrap();
        let verdict = verify(std::slice::from_ref(&pin), &tampered);
        assert!(!verdict.is_valid(), "{path}");
    }
}
