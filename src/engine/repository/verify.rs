//! Whether what commits say is what they did.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::audit::{Action, Subject, SubjectKind};
use crate::api::pin::ReleasePinSpec;
use crate::connect::Repository;
use crate::embedded::tree::{Change, Dealt, Deed, Trailers, changes_of, dealt_with};
use crate::engine::audit::{ChainSummary, Finding, Severity, Verdict};
use crate::git::GitError;
use crate::git::log::Commit;

/// Compares the trailers of every commit that changed a pin, or that says that it marked or collected
/// releases, with what the commit did.
pub fn verify(repository: &Repository, component: Option<&str>) -> Result<Verdict, GitError> {
    let tree = &repository.tree;
    let changes = changes_of(tree, "HEAD")?;
    let mut verdict = judge(&changes, component);
    judge_releases(&mut verdict, &dealt_with(tree.work(), "HEAD")?, component);
    Ok(verdict)
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
    for Change { commit, .. } in changes {
        if !seen.insert(&commit.id) {
            continue;
        }
        let said = Trailers::read(commit).into_iter();
        let pins = said.filter_map(|said| Some((said.component?, said.environment?)));
        for (component, environment) in pins.collect::<BTreeSet<_>>() {
            let said = Trailers::about(commit, &component, &environment);
            // Of what was squashed, one may take back what another did.
            let nothing = said.is_some_and(|said| said.together && said.from == said.to);
            let is_made = made.contains(&(&*commit.id, &*component, &*environment));
            if is_asked(&component) && !is_made && !nothing {
                verdict.problems.push(Finding {
                    severity: Severity::Tampered,
                    chain: format!("{component}-{environment}"),
                    object: format!("commit/{}", short(commit)),
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

/// Holds marks and collections to what they say.
pub(super) fn judge_releases(verdict: &mut Verdict, dealt: &[Dealt], component: Option<&str>) {
    let is_asked = |name: &str| component.is_none_or(|component| component == name);
    let mut chains: BTreeMap<&str, usize> = BTreeMap::new();
    for dealt in dealt {
        for deed in dealt.deeds.iter().filter(|deed| is_asked(&deed.component)) {
            verdict.entries += 1;
            *chains.entry(&deed.component).or_default() += 1;
        }
        let found = disagreements(dealt).into_iter();
        let found = found.filter(|(component, _)| is_asked(component));
        verdict
            .problems
            .extend(found.map(|(component, what)| Finding {
                severity: Severity::Tampered,
                chain: format!("{component} releases"),
                object: format!("commit/{}", short(&dealt.commit)),
                what,
            }));
    }
    let summaries = chains.into_iter().map(|(component, entries)| ChainSummary {
        subject: Subject {
            kind: SubjectKind::Component,
            name: component.to_owned(),
            uid: None,
        },
        entries,
        removed: 0,
        newest: i64::try_from(entries).unwrap_or_default(),
    });
    verdict.chains.extend(summaries);
}

/// Says where the trailers of a mark or a collection and what it did disagree, by component.
fn disagreements(dealt: &Dealt) -> Vec<(String, String)> {
    let said = Trailers::read(&dealt.commit).into_iter();
    let said = said.filter_map(|said| Some((said.deed()?, said)));
    let said: Vec<(Action, Trailers)> = said.collect();
    let names = |(action, said): &(Action, Trailers), deed: &Deed| {
        let whole = deed.action == Action::Collect || said.to.as_ref() == Some(&deed.release);
        *action == deed.action && said.component.as_ref() == Some(&deed.component) && whole
    };
    let mut found = Vec::new();
    for deed in &dealt.deeds {
        if !said.iter().any(|said| names(said, deed)) {
            let what = format!(
                "it {} {}, and its trailers do not say so",
                done(deed.action),
                deed.release
            );
            found.push((deed.component.clone(), what));
        }
    }
    for own in &said {
        if !dealt.deeds.iter().any(|deed| names(own, deed)) {
            let (action, said) = own;
            let component = said.component.clone().unwrap_or_default();
            let release = said.to.clone().unwrap_or_else(|| "releases".to_owned());
            let what = format!(
                "its trailers say that it {} {release}, and it did not",
                done(*action)
            );
            found.push((component, what));
        }
    }
    found
}

fn done(action: Action) -> &'static str {
    match action {
        Action::MarkBad => "marked bad",
        Action::MarkGood => "marked good",
        _ => "removed",
    }
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
    let Commit { author, .. } = &*change.commit;
    let what = format!("edited by hand by {author}: {}", change.commit.subject());
    Some((Severity::Warning, what))
}

/// Says where trailers and the change disagree.
fn disagreement(change: &Change, said: &Trailers) -> Option<String> {
    let counted = |spec: &ReleasePinSpec| change.counted(spec).to_owned();
    let (from, to) = (change.found.as_ref().map(counted), counted(&change.after));
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
