use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::verify::{judge, judge_releases};
use super::*;
use crate::api::audit::Action;
use crate::api::pin::ReleasePinSpec;
use crate::embedded::tree::{Change, Dealt, Deed};
use crate::engine::audit::{Severity, Verdict};
use crate::git::log::Commit;

fn spec(release: &str) -> ReleasePinSpec {
    let spec = json!({"component": "cart", "environment": "prod", "releaseRef": {"name": release}});
    serde_json::from_value(spec).unwrap()
}

fn change(before: Option<&str>, after: &str, trailers: &str) -> Change {
    let message = match trailers.is_empty() {
        true => "by hand\n".to_owned(),
        false => format!("promote\n\n{trailers}\n"),
    };
    Change {
        namespace: String::new(),
        name: "cart-prod".to_owned(),
        before: before.map(spec),
        found: before.map(spec),
        after: spec(after),
        at: Timestamp::UNIX_EPOCH,
        commit: Arc::new(Commit {
            id: format!("id-{after}-{}", trailers.len()),
            parents: Vec::new(),
            author: "Ana".to_owned(),
            written: Timestamp::UNIX_EPOCH,
            at: Timestamp::UNIX_EPOCH,
            message,
            files: Vec::new(),
        }),
    }
}

#[test]
fn trailers_are_compared_with_what_was_changed() {
    let of = |component: &str, from: &str, to: &str| {
        format!(
            "Bowline-Operation: x\nBowline-Action: Promote\nBowline-Component: {component}\nBowline-Environment: prod\nBowline-From: {from}\nBowline-To: {to}"
        )
    };
    for (trailers, expected, words) in [
        (of("cart", "a", "b"), None, ""),
        (
            String::new(),
            Some(Severity::Warning),
            "edited by hand by Ana",
        ),
        (
            of("cart", "a", "c"),
            Some(Severity::Tampered),
            "say that c counts, and b does",
        ),
        (
            of("cart", "z", "b"),
            Some(Severity::Tampered),
            "say that z counted before, and a did",
        ),
        (
            of("mail", "a", "b"),
            Some(Severity::Tampered),
            "its trailers name only others",
        ),
    ] {
        let verdict = judge(&[change(Some("a"), "b", &trailers)], None);
        let found = verdict.problems.iter().chain(&verdict.warnings).next();
        assert_eq!(
            found.map(|found| found.severity),
            expected,
            "{trailers}: {verdict:?}"
        );
        assert!(
            found.is_none_or(|found| found.what.contains(words)),
            "{verdict:?}"
        );
        assert_eq!(verdict.entries, 1);
    }
    // How a pin began is nobody's edit; another component's is not asked for.
    let verdict = judge(&[change(None, "a", "")], None);
    assert!(verdict.warnings.is_empty() && verdict.is_valid());
    assert_eq!(judge(&[change(None, "a", "")], Some("mail")).entries, 0);
}

#[test]
fn marks_and_collections_are_compared_with_what_they_say() {
    let deed = |component: &str, release: &str, action| Deed {
        namespace: String::new(),
        component: component.to_owned(),
        release: release.to_owned(),
        action,
    };
    let dealt = |action, said: &str, deeds: Vec<Deed>| {
        let trailers = format!("Bowline-Operation: x\nBowline-Action: {action:?}\n{said}");
        Dealt {
            commit: change(None, "a", &trailers).commit,
            at: Timestamp::UNIX_EPOCH,
            deeds,
        }
    };
    let marks = "Bowline-Component: cart\nBowline-To: cart-1";
    let bad = || deed("cart", "cart-1", Action::MarkBad);
    let gone = |component, release| deed(component, release, Action::Collect);
    let both = "Bowline-Component: cart\nBowline-Component: mail";
    for (dealt, words) in [
        (dealt(Action::MarkBad, marks, vec![bad()]), None),
        (
            dealt(Action::MarkGood, marks, vec![bad()]),
            Some("it marked bad cart-1, and its trailers do not say so"),
        ),
        (
            dealt(Action::MarkBad, marks, Vec::new()),
            Some("its trailers say that it marked bad cart-1, and it did not"),
        ),
        (
            dealt(Action::MarkBad, marks, vec![bad(), gone("cart", "cart-2")]),
            Some("it removed cart-2, and its trailers do not say so"),
        ),
        (
            dealt(
                Action::Collect,
                both,
                vec![gone("cart", "a"), gone("mail", "b")],
            ),
            None,
        ),
        (
            dealt(Action::Collect, both, vec![gone("cart", "a")]),
            Some("its trailers say that it removed releases, and it did not"),
        ),
    ] {
        let mut verdict = Verdict::default();
        judge_releases(&mut verdict, std::slice::from_ref(&dealt), None);
        let found = verdict.problems.first();
        assert_eq!(found.is_some(), words.is_some(), "{verdict:?}");
        assert!(
            found.is_none_or(|found| Some(found.what.as_str()) == words),
            "{verdict:?}"
        );
        assert_eq!(verdict.entries, dealt.deeds.len());
        let mut verdict = Verdict::default();
        judge_releases(&mut verdict, &[dealt], Some("search"));
        assert_eq!((verdict.entries, verdict.problems.len()), (0, 0));
    }
}

#[test]
fn a_proposal_shows_what_changes_in_the_files() {
    let edit = |path: &str, before: Option<&str>, after: Option<&str>| FileEdit {
        path: path.to_owned(),
        before: before.map(|text| text.as_bytes().to_vec()),
        after: after.map(|text| text.as_bytes().to_vec()),
    };
    let proposal = Proposal {
        operation: "x".to_owned(),
        message: "promote\n\nwhy\n".to_owned(),
        edits: vec![
            edit("a.yaml", Some("a: 1\nb: 2\n"), Some("a: 1\nb: 3\n")),
            edit("b.yaml", None, Some("c: 4\n")),
            edit("c.yaml", Some("d: 5\n"), None),
        ],
        grounds: Default::default(),
        warnings: Vec::new(),
    };
    assert_eq!(proposal.subject(), "promote");
    let files = proposal.json();
    assert_eq!(
        (&files[0]["path"], &files[1]["change"], &files[2]["change"]),
        (&json!("a.yaml"), &json!("added"), &json!("removed"))
    );
    // The same files with another outcome are the same plan; other files are not.
    let mut other = proposal.clone();
    other.edits[0].after = Some(b"a: 1\nb: 4\n".to_vec());
    assert_eq!(other.differs_from(&proposal), None);
    other.edits[1].before = Some(b"c: 3\n".to_vec());
    assert_eq!(other.differs_from(&proposal), Some("b.yaml"));
    let shown = proposal.diff();
    for words in [
        "--- a/a.yaml\n+++ b/a.yaml\n",
        "-b: 2\n+b: 3\n",
        "--- /dev/null\n+++ b/b.yaml\n",
        "removed c.yaml\n",
    ] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
}
