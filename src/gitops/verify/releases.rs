//! Verifies the releases of a commit: compares its trailers with the releases that it adds, marks, changes or
//! removes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Facts, report, unknown};
use crate::api::bowline::audit::Action;
use crate::api::bowline::verification::{Severity, Verification};
use crate::api::labels;
use crate::api::openchoreo::release::Verdict;
use crate::git::log::Commit;
use crate::gitops::tree::{Trailers, is_a};

/// The change of a release by a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Made,
    Marked(Verdict),
    Unmarked,
    Changed,
    Removed,
}

impl Deed {
    fn words(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Marked(Verdict::Bad) => "marked bad",
            Self::Marked(Verdict::Good) => "marked good",
            Self::Unmarked => "removed the mark of",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// A release in the files before a commit or after it.
#[derive(Clone, Debug)]
struct ReleaseState {
    /// The namespace of the release as the file names it, and its name.
    key: (String, String),
    component: String,
    mark: Option<Verdict>,
    spec: Value,
}

fn stated(object: &Value) -> Option<ReleaseState> {
    if !is_a("Release", object) {
        return None;
    }
    let meta = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(ReleaseState {
        key: (text(&meta["namespace"]), text(&meta["name"])),
        component: text(&object["spec"]["component"]["name"]),
        mark: meta["annotations"][labels::MARK]
            .as_str()
            .map(Verdict::of_mark),
        spec: object["spec"].clone(),
    })
}

/// Adds a finding to `findings` for each difference between the trailers of a commit and its changes of releases.
pub(super) fn judge(
    findings: &mut Verification,
    commit: &Commit,
    facts: &Facts,
    is_asked: &dyn Fn(&str) -> bool,
) {
    // This clone does not have the parents of the commit, so the commit seems to add all its files and marks. It is
    // not compared.
    if facts.cut.contains(&commit.id) {
        return;
    }
    let (before, after) = (facts.before(commit, stated), facts.after(commit, stated));
    let said = said(commit);
    if !(before.whole && after.whole) {
        if !said.is_empty() {
            let what = "this clone does not have all files of the commit, so its change of releases is not known";
            let finding = unknown(super::object(&commit.id), what.to_owned());
            findings.warnings.push(finding);
        }
        return;
    }
    for (component, what) in disagreements(&said, &deeds(&before.found, &after.found)) {
        if is_asked(&component) {
            let chain = format!("{component} releases");
            report(findings, Severity::Tampered, &chain, commit, what);
        }
    }
}

/// Returns the changes of releases that the trailers of a commit name, each as component, release and change. The
/// release is None for a removal, because its trailers name no release.
fn said(commit: &Commit) -> Vec<(String, Option<String>, Deed)> {
    let said = Trailers::read(commit).into_iter();
    let read = said.filter_map(|said| {
        let deed = match (said.action.as_deref(), said.deed()) {
            (Some("Release"), _) => Deed::Made,
            (_, Some(Action::MarkBad)) => Deed::Marked(Verdict::Bad),
            (_, Some(Action::MarkGood)) => Deed::Marked(Verdict::Good),
            (_, Some(Action::Collect)) => Deed::Removed,
            _ => return None,
        };
        Some((said.component?, said.to, deed))
    });
    read.collect()
}

/// Returns the changes of releases in the files of a commit, each as component, release and change.
fn deeds(before: &[ReleaseState], after: &[ReleaseState]) -> Vec<(String, String, Deed)> {
    let by_name = |side: &[ReleaseState]| -> BTreeMap<(String, String), ReleaseState> {
        let side = side.iter();
        side.map(|release| (release.key.clone(), release.clone()))
            .collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let mut found = Vec::new();
    let mut note = |release: &ReleaseState, deed| {
        found.push((release.component.clone(), release.key.1.clone(), deed));
    };
    for (key, release) in &before {
        if !after.contains_key(key) {
            note(release, Deed::Removed);
        }
    }
    for (key, release) in &after {
        let was = before.get(key);
        if was.is_none() {
            note(release, Deed::Made);
        }
        if was.is_some_and(|was| was.spec != release.spec) {
            note(release, Deed::Changed);
        }
        let old = was.and_then(|was| was.mark);
        match release.mark {
            mark if mark == old => {}
            Some(verdict) => note(release, Deed::Marked(verdict)),
            None => note(release, Deed::Unmarked),
        }
    }
    found
}

/// Returns the differences between the trailers of a commit and its changes, each as component and text.
fn disagreements(
    said: &[(String, Option<String>, Deed)],
    done: &[(String, String, Deed)],
) -> Vec<(String, String)> {
    let agree = |said: &(String, Option<String>, Deed), done: &(String, String, Deed)| {
        let named = said.2 == Deed::Removed || said.1.as_ref() == Some(&done.1);
        said.2 == done.2 && said.0 == done.0 && named
    };
    let mut found = Vec::new();
    for own in done {
        let (component, release, deed) = own;
        // A deploy commits its new release together with the ReleasePin, without a trailer for the release.
        if *deed != Deed::Made && !said.iter().any(|said| agree(said, own)) {
            let what = format!(
                "the commit {} {release}, but its trailers do not name this",
                deed.words()
            );
            found.push((component.clone(), what));
        }
    }
    for own in said {
        if !done.iter().any(|done| agree(own, done)) {
            let (component, release, deed) = own;
            let release = release.clone().unwrap_or_else(|| "releases".to_owned());
            let what = format!(
                "its trailers say that it {} {release}, but the commit does not",
                deed.words()
            );
            found.push((component.clone(), what));
        }
    }
    found
}
