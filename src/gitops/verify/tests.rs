use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::git::log::Changed;

fn spec(release: &str) -> ReleasePinSpec {
    let spec = json!({"component": "cart", "environment": "prod", "releaseRef": {"name": release}});
    serde_json::from_value(spec).unwrap()
}

fn commit(trailers: &str, old: Option<&str>, blob: Option<&str>) -> Arc<Commit> {
    let message = match trailers.is_empty() {
        true => "by hand\n".to_owned(),
        false => format!("promote\n\n{trailers}\n"),
    };
    let file = Changed {
        from: None,
        path: "pins/prod/cart.yaml".to_owned(),
        old: old.map(str::to_owned),
        blob: blob.map(str::to_owned),
        added: old.is_none(),
    };
    Arc::new(Commit {
        id: "0123456789abcdef".to_owned(),
        parents: Vec::new(),
        author: "Ana".to_owned(),
        written: Timestamp::UNIX_EPOCH,
        at: Timestamp::UNIX_EPOCH,
        message,
        files: (old.is_some() || blob.is_some())
            .then_some(file)
            .into_iter()
            .collect(),
    })
}

fn change(commit: &Arc<Commit>, before: Option<&str>, after: &str) -> Change {
    Change {
        namespace: String::new(),
        name: "cart-prod".to_owned(),
        before: before.map(spec),
        earlier: None,
        found: before.map(spec),
        after: spec(after),
        at: Timestamp::UNIX_EPOCH,
        commit: commit.clone(),
    }
}

/// Returns the facts for a commit whose files can be the blobs `a`, `b` and `c`. Each blob contains a ReleasePin that
/// names the release of the same name. The clone does not have the blob `lost`.
fn facts(cut: bool) -> Facts {
    let pin = |release: &str| json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin", "spec": spec(release)});
    let blobs = ["a", "b", "c"].map(|name| (name.to_owned(), Some(vec![pin(name)])));
    let lost = ("lost".to_owned(), None);
    Facts {
        blobs: blobs.into_iter().chain([lost]).collect(),
        cut: cut
            .then(|| "0123456789abcdef".to_owned())
            .into_iter()
            .collect(),
    }
}

fn trailers(component: &str, from: &str, to: &str) -> String {
    format!(
        "Bowline-Operation: x\nBowline-Action: Promote\nBowline-Component: {component}\nBowline-Environment: prod\nBowline-From: {from}\nBowline-To: {to}"
    )
}

/// Returns the findings about a log that has only one commit.
fn found(
    trailers: &str,
    (old, blob): (Option<&str>, Option<&str>),
    cut: bool,
) -> Vec<(Severity, String)> {
    let commit = commit(trailers, old, blob);
    let facts = facts(cut);
    let changes = match blob.filter(|blob| old != Some(blob) && *blob != "lost") {
        Some(blob) => vec![change(&commit, old.filter(|old| *old != "lost"), blob)],
        None => Vec::new(),
    };
    let log = Logged {
        changes,
        claims: (!trailers.is_empty())
            .then_some(commit)
            .into_iter()
            .collect(),
        cut: facts.cut.clone(),
        ..Logged::default()
    };
    let verdict = judge(&log, &facts, None);
    let nobody = judge(&log, &facts, Some("search"));
    assert_eq!((nobody.entries, nobody.problems.len()), (0, 0));
    let found = verdict.problems.into_iter().chain(verdict.warnings);
    found.map(|found| (found.severity, found.what)).collect()
}

#[test]
fn trailers_are_compared_with_the_change_of_their_commit() {
    use Severity::{NotKnown, Tampered, Warning};
    let moved = (Some("a"), Some("b"));
    for (said, files, expected) in [
        (trailers("cart", "a", "b"), moved, None),
        (
            String::new(),
            moved,
            Some((Warning, "edited by hand by Ana")),
        ),
        // A ReleasePin that a user creates by hand causes no finding.
        (String::new(), (None, Some("a")), None),
        (
            trailers("cart", "a", "c"),
            moved,
            Some((Tampered, "the effective release is c, and it is b")),
        ),
        (
            trailers("cart", "c", "b"),
            moved,
            Some((Tampered, "the effective release was c before, and it was a")),
        ),
        (
            trailers("cart", "a", "b"),
            (None, Some("b")),
            Some((
                Tampered,
                "the effective release was a before, and it was nothing",
            )),
        ),
        (
            trailers("cart", "a", "b"),
            (Some("a"), None),
            Some((Tampered, "the effective release is b, and it is nothing")),
        ),
        // In the first case the commit changes no file; in the second it changes other files.
        (
            trailers("cart", "a", "b"),
            (None, None),
            Some((Tampered, "a change of this ReleasePin that it did not make")),
        ),
        (
            trailers("cart", "a", "b"),
            (Some("a"), Some("a")),
            Some((Tampered, "a change of this ReleasePin that it did not make")),
        ),
        // The clone does not have the blob `lost`, so the change is not known.
        (
            trailers("cart", "a", "b"),
            (Some("lost"), Some("b")),
            Some((NotKnown, "does not have all files of the commit")),
        ),
        (
            trailers("cart", "a", "b"),
            (Some("a"), Some("lost")),
            Some((NotKnown, "does not have all files of the commit")),
        ),
    ] {
        let found = found(&said, files, false);
        let brief = found.first().map(|(severity, _)| *severity);
        assert_eq!(
            brief,
            expected.map(|(severity, _)| severity),
            "{said} {files:?}: {found:?}"
        );
        if let Some((_, words)) = expected {
            assert!(found[0].1.contains(words), "{said} {files:?}: {found:?}");
        }
        assert!(found.len() < 2, "{said} {files:?}: {found:?}");
    }
    let found = found(&trailers("mail", "a", "b"), moved, false);
    let words: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
    assert_eq!(
        words,
        [
            "it changed this ReleasePin, and its trailers name only others",
            "its trailers name a change of this ReleasePin that it did not make"
        ]
    );
}

#[test]
fn the_oldest_commit_of_a_shallow_clone_is_not_known() {
    // If the parents of a commit are missing, git lists all its files as added.
    for (said, after, tampered) in [
        (trailers("cart", "a", "b"), "b", false),
        (trailers("mail", "a", "b"), "b", false),
        (String::new(), "b", false),
        // The files after the commit are known, even if the parents of the commit are missing.
        (trailers("cart", "a", "c"), "b", true),
    ] {
        let found = found(&said, (None, Some(after)), true);
        let is = |wanted| found.iter().any(|(severity, _)| *severity == wanted);
        assert!(is(Severity::NotKnown), "{said}: {found:?}");
        assert_eq!(is(Severity::Tampered), tampered, "{said}: {found:?}");
    }
}

#[test]
fn a_release_that_a_commit_did_not_make_is_found() {
    let said = "Bowline-Operation: x\nBowline-Action: Release\nBowline-Component: cart\nBowline-To: cart-9";
    let words = "its trailers say that it made cart-9, but the commit does not";
    let release = json!({
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Release",
        "metadata": {"name": "cart-9"}, "spec": {"component": {"name": "cart"}},
    });
    let mut facts = facts(false);
    facts.blobs.insert("made".to_owned(), Some(vec![release]));
    for (old, blob, expected) in [
        (None, Some("made"), false),
        (Some("a"), Some("made"), false),
        (None, None, true),
        (None, Some("a"), true),
        (Some("made"), Some("made"), true),
        (Some("lost"), Some("a"), false),
    ] {
        let log = Logged {
            claims: vec![commit(said, old, blob)],
            ..Logged::default()
        };
        let verdict = judge(&log, &facts, None);
        let found = verdict.problems.first().map(|found| found.what.as_str());
        assert_eq!(found, expected.then_some(words), "{old:?} {blob:?}");
    }
}

#[test]
fn marks_and_removals_of_releases_are_compared_with_the_trailers_of_every_commit() {
    let release = |name: &str, mark: Option<&str>, image: &str| {
        let mark = mark.map(|verdict| {
            let mark = json!({"verdict": verdict, "by": "ana", "at": "2026-01-01T00:00:00Z"});
            json!({"bowline.dev/mark": mark.to_string()})
        });
        json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Release",
            "metadata": {"name": name, "annotations": mark},
            "spec": {"component": {"name": "cart"}, "workload": image},
        })
    };
    let plain = || release("cart-1", None, "a");
    let bad = || release("cart-1", Some("bad"), "a");
    let said = |action: &str, rest: &str| {
        format!("Bowline-Operation: x\nBowline-Action: {action}\nBowline-Component: cart\n{rest}")
    };
    let marks = "Bowline-To: cart-1";
    let promotes = "Bowline-Environment: prod\nBowline-From: a\nBowline-To: b";
    let other = || release("cart-2", None, "a");
    for (said, before, after, words) in [
        (said("MarkBad", marks), vec![plain()], vec![bad()], ""),
        (
            said("MarkGood", marks),
            vec![plain()],
            vec![bad()],
            "the commit marked bad cart-1, but its trailers do not name this",
        ),
        (
            said("MarkBad", marks),
            vec![bad()],
            vec![bad()],
            "its trailers say that it marked bad cart-1, but the commit does not",
        ),
        (
            said("MarkBad", marks),
            vec![plain(), other()],
            vec![bad()],
            "the commit removed cart-2, but its trailers do not name this",
        ),
        (said("Collect", ""), vec![plain(), other()], vec![], ""),
        (
            said("Collect", ""),
            vec![plain()],
            vec![plain()],
            "its trailers say that it removed releases, but the commit does not",
        ),
        // The trailers name another action than the one that made the change.
        (
            said("Promote", promotes),
            vec![bad()],
            vec![plain()],
            "the commit removed the mark of cart-1, but its trailers do not name this",
        ),
        (
            said("Promote", promotes),
            vec![bad()],
            vec![release("cart-1", Some("good"), "a")],
            "the commit marked good cart-1, but its trailers do not name this",
        ),
        (
            said("Promote", promotes),
            vec![plain()],
            vec![],
            "the commit removed cart-1, but its trailers do not name this",
        ),
        (
            said("Promote", promotes),
            vec![plain()],
            vec![release("cart-1", None, "b")],
            "the commit changed cart-1, but its trailers do not name this",
        ),
        // A deploy also adds the release that it needs, which is no finding.
        (said("Deploy", promotes), vec![], vec![plain()], ""),
        // The trailers name an action, but no component.
        (
            "Bowline-Operation: x\nBowline-Action: Collect".to_owned(),
            vec![plain()],
            vec![],
            "the commit removed cart-1, but its trailers do not name this",
        ),
    ] {
        let mut facts = facts(false);
        let with_pin = |name: &str, mut objects: Vec<Value>| {
            objects.extend(facts.blobs[name].clone().unwrap());
            objects
        };
        let blobs = [
            ("before", with_pin("a", before)),
            ("after", with_pin("b", after)),
        ];
        facts
            .blobs
            .extend(blobs.map(|(name, objects)| (name.to_owned(), Some(objects))));
        let log = Logged {
            claims: vec![commit(&said, Some("before"), Some("after"))],
            ..Logged::default()
        };
        let problems = judge(&log, &facts, None).problems;
        let found = problems.first().map_or("", |found| found.what.as_str());
        assert_eq!(found, words, "{said}: {problems:?}");
        assert_eq!(judge(&log, &facts, Some("search")).problems, []);
        facts.cut.insert("0123456789abcdef".to_owned());
        let cut = judge(&log, &facts, None).problems;
        assert!(
            cut.iter().all(|found| found.chain != "cart releases"),
            "{cut:?}"
        );
    }
}

#[test]
fn an_action_is_compared_with_the_change_of_the_holds() {
    let hold = |id: &str| json!({"id": id, "owner": id, "since": "2026-01-01T00:00:00Z"});
    let pin = |release: &str, holds: &[&Value]| -> ReleasePinSpec {
        let spec = json!({
            "component": "cart", "environment": "prod", "releaseRef": {"name": release}, "holds": holds,
        });
        serde_json::from_value(spec).unwrap()
    };
    let (ana, tom) = (hold("ana"), hold("tom"));
    let longer = json!({"id": "ana", "owner": "ana", "since": "2026-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"});
    let held = |holds: &[&Value]| pin("a", holds);
    for (actions, before, after, words) in [
        (&["Pin"][..], held(&[]), held(&[&ana]), ""),
        (&["Pin"], held(&[&ana]), held(&[&ana, &tom]), ""),
        (
            &["Pin"],
            held(&[&ana]),
            held(&[]),
            "say Pin, but it also removes or changes the hold of ana",
        ),
        (
            &["Pin"],
            held(&[&ana]),
            held(&[&longer, &tom]),
            "removes or changes the hold of ana",
        ),
        (
            &["Pin"],
            held(&[]),
            pin("b", &[&tom]),
            "say Pin, but it also changes releaseRef",
        ),
        (&["Unpin"], held(&[&ana]), held(&[]), ""),
        (
            &["Unpin"],
            held(&[&ana]),
            held(&[&tom]),
            "say Unpin, but it also adds a hold of tom",
        ),
        (&["Promote"], held(&[&ana]), pin("b", &[&ana]), ""),
        (
            &["Promote"],
            held(&[&ana]),
            pin("b", &[]),
            "say Promote, but it also removes",
        ),
        (
            &["Promote"],
            held(&[]),
            pin("b", &[&tom]),
            "also adds a hold of tom",
        ),
        (&["Rollback"], held(&[&ana]), pin("b", &[&ana, &tom]), ""),
        (
            &["Rollback"],
            held(&[&ana]),
            pin("b", &[&tom]),
            "removes or changes the hold of ana",
        ),
        (&["Undo"], held(&[&ana]), pin("b", &[&tom]), ""),
        // The next cases are squashed commits with several actions.
        (&["Unpin", "Promote"], held(&[&ana]), pin("b", &[]), ""),
        (
            &[""],
            held(&[&ana]),
            held(&[]),
            "say nothing, but it also removes",
        ),
    ] {
        let actions: Vec<Option<Action>> = actions
            .iter()
            .map(|word| serde_json::from_value((*word).into()).ok())
            .collect();
        let found = unsaid_holds(&actions, &[before], &[after]).unwrap_or_default();
        assert!(
            found.contains(words) && found.is_empty() == words.is_empty(),
            "{actions:?} {words}: {found}"
        );
    }
}

#[test]
fn a_removal_and_a_creation_after_it_are_reported() {
    use Severity::{Tampered, Warning};
    let promote = trailers("cart", "a", "b");
    let other = trailers("search", "a", "b");
    for (said, expected) in [
        (
            "",
            [
                (Warning, "removed by hand by Ana, and it named a"),
                (
                    Warning,
                    "created again by hand by Ana with b, and it named a before its removal",
                ),
            ],
        ),
        // The trailers name a promotion. This does not explain why the commit removes a ReleasePin, not even that of
        // the promoted component.
        (
            &promote,
            [
                (Tampered, "it removed ReleasePin cart-prod, which named a"),
                (Tampered, ""),
            ],
        ),
        (
            &other,
            [
                (Tampered, "it removed ReleasePin cart-prod, which named a"),
                (Tampered, ""),
            ],
        ),
    ] {
        let commit = commit(said, None, None);
        let removal = Removal {
            name: "cart-prod".to_owned(),
            before: spec("a"),
            commit: commit.clone(),
        };
        let again = Change {
            earlier: Some(spec("a")),
            ..change(&commit, None, "b")
        };
        let found = [
            unsaid_removal(&removal),
            unsaid(&again, &facts(false)).or(Some((Tampered, String::new()))),
        ];
        for (found, (severity, words)) in found.into_iter().zip(expected) {
            let (own, what) = found.unwrap();
            assert!(own == severity && what.contains(words), "{said}: {what}");
        }
    }
}

#[test]
fn a_commit_with_trailers_moves_no_release_pin_to_another_place() {
    let commit = commit(&trailers("cart", "a", "b"), Some("a"), Some("b"));
    let mut moved = change(&commit, Some("a"), "b");
    assert_eq!(unsaid(&moved, &facts(false)), None);
    moved.before.as_mut().unwrap().environment = "dev".to_owned();
    let (severity, what) = unsaid(&moved, &facts(false)).unwrap();
    assert_eq!(severity, Severity::Tampered);
    assert!(what.contains("from cart in dev to cart in prod"), "{what}");
}
