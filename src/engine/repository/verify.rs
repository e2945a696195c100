//! Whether what commits say is what they did.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::audit::{Subject, SubjectKind};
use crate::api::pin::ReleasePinSpec;
use crate::connect::Repository;
use crate::embedded::tree::{Change, Trailers, changes_of};
use crate::engine::audit::{ChainSummary, Finding, Severity, Verdict};
use crate::git::GitError;
use crate::git::log::Commit;

/// Compares the trailers of every commit that changed a pin with what the commit made of it.
pub fn verify(repository: &Repository, component: Option<&str>) -> Result<Verdict, GitError> {
    let tree = &repository.tree;
    let changes = changes_of(tree.work(), "HEAD", tree.files_of_pins())?;
    Ok(judge(&changes, component))
}

pub(super) fn judge(changes: &[Change], component: Option<&str>) -> Verdict {
    let is_asked = |name: &str| component.is_none_or(|component| component == name);
    let mut verdict = Verdict::default();
    let mut chains: BTreeMap<&str, usize> = BTreeMap::new();
    let mut made: BTreeSet<(&str, &str, &str)> = BTreeSet::new();
    for change in changes
        .iter()
        .filter(|change| is_asked(&change.after.component))
    {
        verdict.entries += 1;
        *chains.entry(&change.name).or_default() += 1;
        let ReleasePinSpec {
            component,
            environment,
            ..
        } = &change.after;
        made.insert((&change.commit.id, component, environment));
        if let Some((severity, what)) = finding(change) {
            let finding = Finding {
                severity,
                chain: change.name.clone(),
                object: format!("commit/{}", short(&change.commit)),
                what,
            };
            match severity {
                Severity::Warning => verdict.warnings.push(finding),
                _ => verdict.problems.push(finding),
            }
        }
    }
    // What a commit says of a pin that it did not change.
    let mut seen = BTreeSet::new();
    for change in changes {
        if !seen.insert(&change.commit.id) {
            continue;
        }
        for said in Trailers::read(&change.commit) {
            let (Some(component), Some(environment)) = (&said.component, &said.environment) else {
                continue;
            };
            if is_asked(component) && !made.contains(&(&*change.commit.id, component, environment))
            {
                verdict.problems.push(Finding {
                    severity: Severity::Tampered,
                    chain: format!("{component}-{environment}"),
                    object: format!("commit/{}", short(&change.commit)),
                    what: "its trailers name a change of this pin that it did not make".to_owned(),
                });
            }
        }
    }
    verdict.chains = chains
        .into_iter()
        .map(|(name, entries)| ChainSummary {
            subject: Subject {
                kind: SubjectKind::ReleasePin,
                name: name.to_owned(),
                uid: None,
            },
            entries,
            removed: 0,
            newest: i64::try_from(entries).unwrap_or_default(),
        })
        .collect();
    verdict
}

fn finding(change: &Change) -> Option<(Severity, String)> {
    if let Some(said) = Trailers::of(&change.commit, &change.after) {
        let what = disagreement(change, &said)?;
        return Some((Severity::Tampered, what));
    }
    if !Trailers::read(&change.commit).is_empty() {
        let what = "it changed this pin, and its trailers name only others";
        return Some((Severity::Tampered, what.to_owned()));
    }
    // How a pin began is whoever made it; a move by hand is worth knowing.
    change.before.as_ref()?;
    let Commit { author, .. } = &change.commit;
    let what = format!("edited by hand by {author}: {}", change.commit.subject());
    Some((Severity::Warning, what))
}

/// Says where trailers and the change disagree.
fn disagreement(change: &Change, said: &Trailers) -> Option<String> {
    let at = change.at;
    let counted = |spec: &ReleasePinSpec| spec.effective_release(at).to_owned();
    let (from, to) = (change.before.as_ref().map(counted), counted(&change.after));
    let word = |release: &Option<String>| release.clone().unwrap_or_else(|| "nothing".to_owned());
    if said.from != from {
        return Some(format!(
            "its trailers say that {} counted before, and {} did",
            word(&said.from),
            word(&from)
        ));
    }
    if said.to.as_deref() != Some(to.as_str()) {
        return Some(format!(
            "its trailers say that {} counts, and {to} does",
            word(&said.to)
        ));
    }
    None
}

fn short(commit: &Commit) -> &str {
    commit.id.get(..12).unwrap_or(&commit.id)
}
