//! Verifies commits of bowline: the trailers of a commit must match its changes.
//!
//! For each commit, compares the trailers with the files before and after the commit. If this clone does not have one
//! of the files, the result is "not known", which proves nothing. A file that cannot be parsed or is too large counts
//! as a file without objects.

mod releases;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::tree::{
    Change, Logged, Removal, Trailers, Tree, blob_limits, is_a, is_manifest, logged, objects,
};
use crate::api::bowline::audit::{Action, COMPONENT, RELEASE_PIN, Subject};
use crate::api::bowline::verification::{ChainSummary, Finding, Severity, Verification};
use crate::api::hold::Hold;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::git::log::Commit;
use crate::git::{Blob, GitError, WorkTree};
use crate::text;

/// Verifies every commit that changes ReleasePins or releases, or whose trailers name them. If `component` is given,
/// verifies only commits about this component.
pub fn verify(tree: &Tree, component: Option<&str>) -> Result<Verification, GitError> {
    match verify_log(tree, component) {
        Err(error) if error.is_of_partial_clone() => Ok(Verification {
            warnings: vec![unknown(
                "commit/HEAD".to_owned(),
                format!("this clone does not have the log, and git cannot fetch it: {error}"),
            )],
            ..Verification::default()
        }),
        verdict => verdict,
    }
}

fn verify_log(tree: &Tree, component: Option<&str>) -> Result<Verification, GitError> {
    let truth = tree.work().unreplaced();
    let (work, log) = match logged(tree, &truth, &BTreeSet::new()) {
        Ok(log) => (&truth, log),
        // A graft or a replace ref hides a commit, and this clone may not have the hidden commit.
        Err(_) => (
            tree.work(),
            logged(tree, tree.work(), &tree.work().replaced()?)?,
        ),
    };
    let facts = Facts::read(work, &log)?;
    let mut verdict = judge(&log, &facts, component);
    verdict.warnings.extend(without_release(tree));
    Ok(verdict)
}

/// Returns a finding for each ReleasePin that names a release which is in no file.
fn without_release(tree: &Tree) -> Vec<Finding> {
    // If bowline has not read all files, the release may be in another file, so nothing is reported.
    let dangling = match tree.is_whole() {
        true => tree.dangling(),
        false => Vec::new(),
    };
    let dangling = dangling.into_iter();
    let found = dangling.map(|problem| Finding {
        severity: Severity::Warning,
        chain: "history".to_owned(),
        object: "commit/HEAD".to_owned(),
        what: problem.what,
    });
    found.collect()
}

fn unknown(object: String, what: String) -> Finding {
    Finding {
        severity: Severity::NotKnown,
        chain: "history".to_owned(),
        object,
        what,
    }
}

/// The objects before and after each commit, to compare them with the trailers.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The objects in each blob; None for a blob that this clone does not have.
    blobs: HashMap<String, Option<Vec<Value>>>,
    /// The ids of the commits whose parents this clone does not have.
    cut: BTreeSet<String>,
}

/// The objects of one kind in the files before, or after, a commit.
#[derive(Debug, PartialEq)]
struct Side<T> {
    /// The objects in those of the files that this clone has.
    found: Vec<T>,
    /// Whether this clone has all of the files.
    whole: bool,
}

impl Facts {
    fn read(work: &WorkTree, log: &Logged) -> Result<Self, GitError> {
        let files = log.claims.iter().flat_map(|commit| &commit.files);
        let files = files.filter(|file| is_manifest(&file.path));
        let ids: BTreeSet<&String> = files
            .flat_map(|file| file.old.iter().chain(&file.blob))
            .collect();
        let ids: Vec<String> = ids.into_iter().cloned().collect();
        let mut blobs = HashMap::with_capacity(ids.len());
        work.each_blob_of_log(&ids, blob_limits(), &mut |at, blob| {
            let objects = match blob {
                Blob::Missing => None,
                // The file is too large, which another finding reports. So here it counts as empty.
                Blob::TooLarge { .. } => Some(Vec::new()),
                Blob::Whole(text) => Some(objects(&text).unwrap_or_default()),
            };
            let brief = objects.map(|objects| objects.into_iter().filter_map(brief).collect());
            blobs.extend(ids.get(at).map(|id| (id.clone(), brief)));
        })?;
        Ok(Self {
            blobs,
            cut: log.cut.clone(),
        })
    }

    fn before<T>(&self, commit: &Commit, pick: impl Fn(&Value) -> Option<T>) -> Side<T> {
        if self.cut.contains(&commit.id) {
            return Side {
                found: Vec::new(),
                whole: false,
            };
        }
        let files = commit.files.iter().filter(|file| is_manifest(&file.path));
        self.side(files.filter_map(|file| file.old.as_ref()), pick)
    }

    fn after<T>(&self, commit: &Commit, pick: impl Fn(&Value) -> Option<T>) -> Side<T> {
        let files = commit.files.iter().filter(|file| is_manifest(&file.path));
        self.side(files.filter_map(|file| file.blob.as_ref()), pick)
    }

    fn side<'b, T>(
        &self,
        blobs: impl Iterator<Item = &'b String>,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Side<T> {
        let (mut found, mut whole) = (Vec::new(), true);
        for blob in blobs {
            match self.blobs.get(blob) {
                Some(Some(objects)) => found.extend(objects.iter().filter_map(&pick)),
                _ => whole = false,
            }
        }
        Side { found, whole }
    }
}

/// Returns the parts of an object that verification compares; None for a kind that no trailer names. The spec of a
/// release can be large, so only a hash of it is kept.
fn brief(mut object: Value) -> Option<Value> {
    if is_a("Release", &object) {
        let spec = object["spec"].take();
        let hash = Sha256::digest(spec.to_string()).to_vec();
        object["spec"] = json!({"component": {"name": spec["component"]["name"]}, "hash": hash});
        return Some(object);
    }
    is_a("ReleasePin", &object).then_some(object)
}

fn pin_of<'a>(
    component: &'a str,
    environment: &'a str,
) -> impl Fn(&Value) -> Option<ReleasePinSpec> + 'a {
    move |object| {
        let spec = Some(object).filter(|object| is_a("ReleasePin", object))?;
        let spec = ReleasePinSpec::deserialize(&spec["spec"]).ok()?;
        (spec.component == component && spec.environment == environment).then_some(spec)
    }
}

pub(super) fn judge(log: &Logged, facts: &Facts, component: Option<&str>) -> Verification {
    let is_asked = |name: &str| component.is_none_or(|component| component == name);
    let mut verdict = Verification::default();
    for commit in &log.cut {
        let what = "this clone does not have the commit before it, so its change is not known; git fetch --unshallow fetches the rest";
        verdict
            .warnings
            .push(unknown(object(commit), what.to_owned()));
    }
    if log.lacking > 0 {
        let what = format!(
            "{} states of files that the log names are not in this clone, and git could not fetch them",
            log.lacking
        );
        verdict
            .warnings
            .push(unknown("commit/HEAD".to_owned(), what));
    }
    for state in &log.too_large {
        let what = format!(
            "{} has {} in this commit, more than the {} that bowline reads, so its objects are not known",
            state.path,
            text::bytes(state.size as u64),
            text::bytes(blob_limits().bytes as u64)
        );
        verdict.warnings.push(unknown(object(&state.commit), what));
    }
    let mut chains: BTreeMap<&str, usize> = BTreeMap::new();
    let changes = log.changes.iter();
    for change in changes.filter(|change| is_asked(&change.after.component)) {
        verdict.entries += 1;
        *chains.entry(&change.name).or_default() += 1;
        if let Some((severity, what)) = unsaid(change, facts) {
            report(&mut verdict, severity, &change.name, &change.commit, what);
        }
    }
    let removals = log.removals.iter();
    for removal in removals.filter(|removal| is_asked(&removal.before.component)) {
        if let Some((severity, what)) = unsaid_removal(removal) {
            report(&mut verdict, severity, &removal.name, &removal.commit, what);
        }
    }
    for commit in &log.claims {
        let said = Trailers::read(commit).into_iter();
        let pins = said.filter_map(|said| Some((said.component?, said.environment?)));
        for (component, environment) in pins.collect::<BTreeSet<_>>() {
            let said = Trailers::about(commit, &component, &environment);
            let said = said.filter(|_| is_asked(&component));
            let found = said.and_then(|said| disagreement(commit, &said, facts));
            if let Some((severity, what)) = found {
                let chain = format!("{component}-{environment}");
                report(&mut verdict, severity, &chain, commit, what);
            }
        }
        releases::judge(&mut verdict, commit, facts, &is_asked);
    }
    verdict.chains = chains
        .into_iter()
        .map(|(name, entries)| summary(RELEASE_PIN, name, entries))
        .collect();
    let mut chains: BTreeMap<&str, usize> = BTreeMap::new();
    // This clone does not have the parents of these commits, so the commits seem to add all their files and marks.
    // They are left out.
    let whole = log
        .dealt
        .iter()
        .filter(|dealt| !facts.cut.contains(&dealt.commit.id));
    let deeds = whole.flat_map(|dealt| &dealt.deeds);
    for deed in deeds.filter(|deed| is_asked(&deed.component)) {
        verdict.entries += 1;
        *chains.entry(&deed.component).or_default() += 1;
    }
    let summaries = chains.into_iter();
    let summaries = summaries.map(|(name, entries)| summary(COMPONENT, name, entries));
    verdict.chains.extend(summaries);
    verdict
}

fn report(
    verdict: &mut Verification,
    severity: Severity,
    chain: &str,
    commit: &Commit,
    what: String,
) {
    let finding = Finding {
        severity,
        chain: chain.to_owned(),
        object: object(&commit.id),
        what,
    };
    match severity {
        Severity::Warning | Severity::NotKnown => verdict.warnings.push(finding),
        Severity::Tampered | Severity::Incomplete => verdict.problems.push(finding),
    }
}

fn summary(kind: &str, name: &str, entries: usize) -> ChainSummary {
    ChainSummary {
        subject: Subject {
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
            uid: None,
        },
        entries,
        removed: 0,
        newest: i64::try_from(entries).unwrap_or_default(),
    }
}

/// Returns the finding about a change of a ReleasePin that the trailers of its commit do not name. None if the change
/// needs no trailers.
fn unsaid(change: &Change, facts: &Facts) -> Option<(Severity, String)> {
    let Change {
        name,
        before,
        after,
        commit,
        ..
    } = change;
    let place = |spec: &ReleasePinSpec| format!("{} in {}", spec.component, spec.environment);
    let has_trailers = !Trailers::read(commit).is_empty();
    let left = before
        .as_ref()
        .map(place)
        .filter(|left| *left != place(after));
    if let Some(left) = left.filter(|_| has_trailers && !facts.cut.contains(&commit.id)) {
        let what = format!(
            "it moved ReleasePin {name} from {left} to {}, and its trailers do not name this",
            place(after)
        );
        return Some((Severity::Tampered, what));
    }
    if Trailers::of(commit, after).is_some() || facts.cut.contains(&commit.id) {
        return None;
    }
    if has_trailers {
        let pick = pin_of(&after.component, &after.environment);
        let (before, after) = (facts.before(commit, &pick), facts.after(commit, &pick));
        if !(before.whole && after.whole) {
            return Some((Severity::NotKnown, LACKING.to_owned()));
        }
        let what = "it changed this ReleasePin, and its trailers name only others";
        return (before != after).then(|| (Severity::Tampered, what.to_owned()));
    }
    let (author, subject) = (&commit.author, commit.subject());
    let what = match (before, &change.earlier) {
        (Some(_), _) => format!("edited by hand by {author}: {subject}"),
        (None, Some(earlier)) => format!(
            "ReleasePin {name} was created again by hand by {author} with {}, and it named {} before its removal: {subject}",
            change.counted(after),
            change.counted(earlier)
        ),
        // Users may create a ReleasePin by hand, so that is no finding. Any other manual change is a warning.
        (None, None) => return None,
    };
    Some((Severity::Warning, what))
}

/// Returns the finding about a removed ReleasePin. There is always one, because no action of bowline with trailers
/// removes a ReleasePin.
fn unsaid_removal(removal: &Removal) -> Option<(Severity, String)> {
    let Removal {
        name,
        before,
        commit,
    } = removal;
    let release = before.effective_release(commit.written);
    if Trailers::read(commit).is_empty() {
        let (author, subject) = (&commit.author, commit.subject());
        let what = format!(
            "ReleasePin {name} was removed by hand by {author}, and it named {release}: {subject}"
        );
        return Some((Severity::Warning, what));
    }
    let said = Trailers::of(commit, before);
    let is_said = said.is_some_and(|said| said.to.is_none() && said.action.is_some());
    (!is_said).then(|| {
        let what = format!(
            "it removed ReleasePin {name}, which named {release}, and its trailers do not name this"
        );
        (Severity::Tampered, what)
    })
}

/// The text of the finding about a change that cannot be verified.
const LACKING: &str =
    "this clone does not have all files of the commit, so its change is not known";

/// Returns the finding about a commit whose trailers do not match its change of a ReleasePin; None if they match.
fn disagreement(commit: &Commit, said: &Trailers, facts: &Facts) -> Option<(Severity, String)> {
    let (component, environment) = (said.component.as_deref()?, said.environment.as_deref()?);
    let pick = pin_of(component, environment);
    let (before, after) = (facts.before(commit, &pick), facts.after(commit, &pick));
    // A squashed commit may combine a change and its revert. Then its trailers name a change, but its files do not
    // change.
    let nothing = said.together && said.from == said.to;
    let tampered = |what: String| Some((Severity::Tampered, what));
    let is_cut = facts.cut.contains(&commit.id);
    if before == after || (after.found.is_empty() && before.found.is_empty()) {
        return match before.whole && after.whole {
            _ if nothing || is_cut => None,
            true => tampered(
                "its trailers name a change of this ReleasePin that it did not make".to_owned(),
            ),
            false => Some((Severity::NotKnown, LACKING.to_owned())),
        };
    }
    let counted = |side: &Side<ReleasePinSpec>| -> Vec<String> {
        let counted = side.found.iter();
        let counted = counted.map(|spec| spec.effective_release(commit.written).to_owned());
        counted.collect()
    };
    let word = |release: Option<&String>| release.map_or("nothing", String::as_str).to_owned();
    let agrees = |said: &Option<String>, found: &[String]| match said {
        None => found.is_empty(),
        Some(said) => found.contains(said),
    };
    let (from, to) = (counted(&before), counted(&after));
    if !agrees(&said.from, &from) {
        match before.whole {
            true => {
                return tampered(format!(
                    "its trailers say that the effective release was {} before, and it was {}",
                    word(said.from.as_ref()),
                    word(from.first())
                ));
            }
            false if !is_cut => return Some((Severity::NotKnown, LACKING.to_owned())),
            // The parent of this commit is missing, which another finding reports.
            false => {}
        }
    }
    if !agrees(&said.to, &to) {
        return match after.whole {
            true => tampered(format!(
                "its trailers say that the effective release is {}, and it is {}",
                word(said.to.as_ref()),
                word(to.first())
            )),
            false => Some((Severity::NotKnown, LACKING.to_owned())),
        };
    }
    if !(before.whole && after.whole) {
        return None;
    }
    let actions = actions(commit, component, environment);
    unsaid_holds(&actions, &before.found, &after.found).map(|what| (Severity::Tampered, what))
}

/// Returns the actions on a ReleasePin that the trailers of a commit name. They are several if the commit was
/// squashed.
fn actions(commit: &Commit, component: &str, environment: &str) -> Vec<Option<Action>> {
    let said = Trailers::read(commit).into_iter();
    let said = said.filter(|said| {
        said.component.as_deref() == Some(component)
            && said.environment.as_deref() == Some(environment)
    });
    let action = |said: Trailers| serde_json::from_value(said.action?.into()).ok();
    said.map(action).collect()
}

/// Describes changes that none of the named actions makes: a change of holds, or of a releaseRef while a hold fixes
/// another release. None if there are none.
fn unsaid_holds(
    actions: &[Option<Action>],
    before: &[ReleasePinSpec],
    after: &[ReleasePinSpec],
) -> Option<String> {
    use Action::{AutoDeploy, Deploy, Pin, Promote, Rollback, Undo, Unpin};
    let names = |known: &[Action]| {
        actions
            .iter()
            .flatten()
            .any(|action| known.contains(action))
    };
    let holds = |side: &[ReleasePinSpec]| -> Vec<Hold> {
        side.iter().flat_map(|spec| spec.holds.clone()).collect()
    };
    let refs = |side: &[ReleasePinSpec]| -> Vec<String> {
        side.iter()
            .map(|spec| spec.release_ref.name.clone())
            .collect()
    };
    let (had, has) = (holds(before), holds(after));
    let list = |from: &[Hold], without: &[Hold]| -> Option<String> {
        let only = from.iter().filter(|hold| !without.contains(hold));
        let only: Vec<&str> = only.map(|hold| hold.owner.as_str()).collect();
        (!only.is_empty()).then(|| only.join(", "))
    };
    let words: Vec<String> = actions
        .iter()
        .map(|action| action.map_or("nothing".to_owned(), |action| format!("{action:?}")))
        .collect();
    let words = words.join(", ");
    if let Some(owners) = list(&had, &has).filter(|_| !names(&[Unpin, Undo])) {
        return Some(format!(
            "its trailers say {words}, but it also removes or changes the hold of {owners}"
        ));
    }
    if let Some(owners) = list(&has, &had).filter(|_| !names(&[Pin, Rollback, Undo])) {
        return Some(format!(
            "its trailers say {words}, but it also adds a hold of {owners}"
        ));
    }
    let moves = names(&[Deploy, AutoDeploy, Promote, Rollback, Undo]);
    if !moves && refs(before) != refs(after) {
        return Some(format!(
            "its trailers say {words}, but it also changes releaseRef"
        ));
    }
    None
}

fn object(commit: &str) -> String {
    format!("commit/{}", commit.get(..12).unwrap_or(commit))
}

#[cfg(test)]
mod tests;
