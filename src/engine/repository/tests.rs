use jiff::Timestamp;
use serde_json::json;

use super::verify::judge;
use super::*;
use crate::api::pin::ReleasePinSpec;
use crate::embedded::tree::Change;
use crate::engine::audit::Severity;
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
        after: spec(after),
        at: Timestamp::UNIX_EPOCH,
        commit: Commit {
            id: format!("id-{after}-{}", trailers.len()),
            parents: Vec::new(),
            author: "Ana".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            message,
            files: Vec::new(),
        },
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
        warnings: Vec::new(),
    };
    assert_eq!(proposal.subject(), "promote");
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
