//! Verifies that chains of audit entries are complete and unchanged, and that they agree with their subjects.
//!
//! Four values prove an entry: its seal (an annotation with the hash of the entry); the next entry, which contains
//! the same hash; the audit head annotation of the subject; and for the newest entry, the data of the subject. Limit:
//! nothing proves the newest entry of a component, or of a subject that is deleted. So a user who may delete entries
//! can remove these newest entries unnoticed.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::chain::{Chain, chains, first};
use super::record::{Recorder, present, subject};
use super::{hash, link, name_at, name_of};
use crate::api::bowline::audit::{AuditEntry, SUBJECT_KINDS, Subject};
use crate::api::bowline::verification::{ChainSummary, Finding, Severity, Verification};
use crate::api::labels;
use crate::api::operation::{self, Operation};
use crate::engine::subject::{Kind, Numbering};

/// Parses audit entries from the API server. Returns the parsed entries, and one finding for each entry that cannot
/// be parsed or whose JSON differs from the form that bowline writes.
pub fn read(objects: Vec<Value>) -> (Vec<AuditEntry>, Vec<Finding>) {
    let mut problems = Vec::new();
    let mut entries = Vec::with_capacity(objects.len());
    for object in objects {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default().to_owned();
        let chain = text("/spec/subject/name").unwrap_or_default().to_owned();
        let spec = object.get("spec").cloned();
        let mut problem = |what: String| {
            problems.push(Finding {
                severity: Severity::Tampered,
                chain: chain.clone(),
                object: format!("auditentry/{name}"),
                what,
            });
        };
        match serde_json::from_value::<AuditEntry>(object) {
            Ok(entry) => {
                if serde_json::to_value(&entry.spec).ok() != spec {
                    problem("its spec does not have the form that bowline writes".to_owned());
                }
                entries.push(entry);
            }
            Err(error) => problem(format!("it is not readable: {error}")),
        }
    }
    (entries, problems)
}

/// Checks one audit entry without its chain and returns the findings. `object` is the entry as the API server
/// returned it.
pub fn flaws(object: Value) -> Vec<Finding> {
    let (entries, mut problems) = read(vec![object]);
    for entry in &entries {
        let subject = &entry.spec.subject;
        let found = own_flaws(entry).into_iter();
        let name = entry.name_any();
        problems.extend(found.map(|what| finding(subject, Severity::Tampered, &name, what)));
    }
    problems
}

/// A subject that exists on the server, for the comparison with its chain of audit entries.
pub struct Live {
    pub kind: &'static Kind,
    /// The subject, as the API server returned it.
    pub object: DynamicObject,
}

/// Verifies every chain of audit entries, and compares each subject in `subjects` with its chain.
pub fn verify(subjects: &[Live], entries: &[AuditEntry]) -> Verification {
    let mut verdict = Verification {
        entries: entries.len(),
        ..Verification::default()
    };
    let live: BTreeMap<_, &Live> = subjects
        .iter()
        .map(|live| {
            let object = &live.object;
            (
                (live.kind.name.to_owned(), object.name_any(), object.uid()),
                live,
            )
        })
        .collect();
    let mut recorded = BTreeSet::new();
    for chain in chains(entries) {
        let (problems, warnings) = check(&chain);
        verdict.problems.extend(problems);
        verdict.warnings.extend(warnings);
        let Subject {
            kind, name, uid, ..
        } = chain.subject;
        let key = (kind.clone(), name.clone(), uid.clone());
        if let Some(live) = live.get(&key) {
            live.agree(&chain, &mut verdict.problems);
            recorded.insert(key);
        }
        let root = chain.root.and_then(|root| root.spec.checkpoint.as_ref());
        verdict.chains.push(ChainSummary {
            subject: chain.subject.clone(),
            entries: chain.all().len(),
            removed: root.map_or(0, |checkpoint| checkpoint.entries),
            newest: chain.newest().map_or(0, |entry| entry.spec.revision),
        });
    }
    for (key, live) in &live {
        let subject = subject(live.kind, &live.object);
        if let Some(subject) = subject.filter(|_| !recorded.contains(key)) {
            let generation = live.kind.number(&live.object).unwrap_or_default();
            // bowline has never changed this subject. Changes by other programs have no entries, so there is nothing
            // to compare.
            if generation == 0 {
                continue;
            }
            let mut what = format!(
                "no change of the {} is recorded: {}",
                live.kind.name,
                are_missing(1, generation)
            );
            let entry = name_at(&subject, generation);
            live.check_head(&subject, None, &mut verdict.problems);
            // The subject may have changed before the kind AuditEntry was installed, so a missing chain is only a
            // warning.
            let is_optional = live.kind.numbering != Numbering::Generation;
            let (severity, findings) = match is_optional
                && operation::audit_head(&live.object).is_none()
            {
                true => {
                    what += "; bowline made them before this server had AuditEntries of this kind";
                    (Severity::Warning, &mut verdict.warnings)
                }
                false => (Severity::Incomplete, &mut verdict.problems),
            };
            findings.push(finding(&subject, severity, &entry, what));
        }
    }
    verdict
}

fn finding(subject: &Subject, severity: Severity, entry: &str, what: String) -> Finding {
    Finding {
        severity,
        chain: subject.name.clone(),
        object: format!("auditentry/{entry}"),
        what,
    }
}

fn revisions(first: i64, last: i64) -> String {
    match first == last {
        true => format!("revision {last}"),
        false => format!("revisions {first} to {last}"),
    }
}

fn are_missing(first: i64, last: i64) -> String {
    let verb = if first == last { "is" } else { "are" };
    format!("{} {verb} missing", revisions(first, last))
}

/// Verifies one chain of audit entries without its subject. Returns the problems and the warnings.
pub(super) fn check(chain: &Chain) -> (Vec<Finding>, Vec<Finding>) {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    for entry in chain.all() {
        let flaws = own_flaws(entry).into_iter();
        let name = entry.name_any();
        problems.extend(flaws.map(|what| finding(chain.subject, Severity::Tampered, &name, what)));
    }
    let mut before = chain.root;
    for &entry in &chain.entries {
        let name = entry.name_any();
        let expected = before.map_or(1, |before| before.spec.revision.saturating_add(1));
        let found = first(entry);
        if found > expected {
            let lost = name_at(chain.subject, found.saturating_sub(1));
            let what = format!(
                "{} before auditentry/{name}",
                are_missing(expected, found.saturating_sub(1))
            );
            problems.push(finding(chain.subject, Severity::Incomplete, &lost, what));
        } else if found < expected {
            let what = format!("revision {found} is recorded a second time");
            problems.push(finding(chain.subject, Severity::Tampered, &name, what));
        } else if entry.spec.previous != before.map(link) {
            problems.push(broken_link(chain, before, entry));
        }
        if entry.spec.gap.is_some() {
            let what = format!(
                "no bowline process observed {} of the {}",
                revisions(found, entry.spec.revision),
                chain.subject.kind
            );
            warnings.push(finding(chain.subject, Severity::Warning, &name, what));
        }
        before = Some(entry);
    }
    for entry in &chain.late {
        let what =
            "it was written after another entry had recorded its revision as a gap".to_owned();
        let name = entry.name_any();
        warnings.push(finding(chain.subject, Severity::Warning, &name, what));
    }
    if let (Some(root), count @ 1..) = (chain.root, chain.leftovers.len()) {
        let what = format!("retention has not finished: {count} entries before it are still there");
        let name = root.name_any();
        warnings.push(finding(chain.subject, Severity::Warning, &name, what));
    }
    (problems, warnings)
}

/// Returns the finding for two consecutive audit entries whose hashes do not match. The finding blames the older
/// entry, because the caller has already checked the seals of these two entries.
fn broken_link(chain: &Chain, before: Option<&AuditEntry>, entry: &AuditEntry) -> Finding {
    let name = entry.name_any();
    let (at, what) = match before {
        Some(before) => (
            before.name_any(),
            format!("its hash does not match auditentry/{name}: one of the two was rewritten"),
        ),
        None => (
            name,
            "it is the first entry, but it contains the hash of a previous entry".to_owned(),
        ),
    };
    finding(chain.subject, Severity::Tampered, &at, what)
}

/// Checks one entry without its chain: its name, its seal and its revisions.
fn own_flaws(entry: &AuditEntry) -> Vec<String> {
    let mut flaws = Vec::new();
    let spec = &entry.spec;
    let expected = name_of(spec);
    if entry.metadata.name.as_deref() != Some(expected.as_str()) {
        flaws.push(format!("its content says that its name is {expected}"));
    }
    match entry.annotations().get(labels::CONTENT_HASH) {
        Some(seal) if *seal == hash(entry) => {}
        Some(_) => flaws.push("it was changed: its hash does not match its seal".into()),
        None => flaws.push(format!("it has no seal ({})", labels::CONTENT_HASH)),
    }
    if entry.metadata.generation.is_some_and(|count| count > 1) {
        flaws.push("it was updated after it was written".to_owned());
    }
    let kind = spec.subject.kind.as_str();
    if !SUBJECT_KINDS.contains(&kind) {
        flaws.push(format!("no subject has the kind {kind}"));
    }
    if spec.subject.namespace.is_some() {
        flaws.push("its subject is in another namespace".to_owned());
    }
    if spec.revision < 1 {
        flaws.push(format!("{} is not a revision", spec.revision));
    }
    if let Some(gap) = &spec.gap
        && (gap.last != spec.revision || gap.first > gap.last)
    {
        flaws.push("its gap does not end at its revision".to_owned());
    }
    if let Some(checkpoint) = &spec.checkpoint
        && checkpoint.through != spec.revision
    {
        flaws.push("its checkpoint does not reach to its revision".to_owned());
    }
    flaws
}

impl Live {
    /// Compares the newest entry of a chain with the subject, which still contains the data of the change. Adds the
    /// differences to `problems`.
    fn agree(&self, chain: &Chain, problems: &mut Vec<Finding>) {
        let (kind, subject) = (self.kind.name, chain.subject);
        let generation = self.kind.number(&self.object).unwrap_or_default();
        self.check_head(subject, Some(chain), problems);
        let Some(newest) = chain.newest() else {
            return;
        };
        let (name, revision) = (newest.name_any(), newest.spec.revision);
        let mut tampered =
            |what: String| problems.push(finding(subject, Severity::Tampered, &name, what));
        if revision > generation {
            tampered(format!(
                "it records revision {revision}, but the {kind} is at generation {generation}"
            ));
        } else if revision < generation {
            let what = format!(
                "{}: the {kind} is at generation {generation}; its next change writes the entry",
                are_missing(revision.saturating_add(1), generation)
            );
            let lost = name_at(subject, generation);
            problems.push(finding(subject, Severity::Incomplete, &lost, what));
        } else if newest.spec.checkpoint.is_none() {
            let before = chain.entries.iter().rev().nth(1).copied().or(chain.root);
            for what in self.differences(before, newest) {
                tampered(what);
            }
        }
    }

    /// Builds the audit entry of the current revision again from the subject. Describes how it differs from the
    /// stored entry `newest`.
    fn differences(&self, before: Option<&AuditEntry>, newest: &AuditEntry) -> Vec<String> {
        let Self { kind, object } = self;
        let spec = &newest.spec;
        // The subject does not contain these values: the writer of the entry, the time of an observed edit, and the
        // uid and hash of contents. So the rebuilt entry gets them from the stored entry and they never differ.
        let recorder = Recorder {
            by: &spec.recorded_by,
            now: spec.at.0,
            known: spec.to.as_slice(),
        };
        let fields = |value: &_| match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let mut object = object.clone();
        // Later writes of annotations change the times in the managed fields, so the rebuilt entry must not use these
        // times.
        object.metadata.managed_fields = None;
        let expected = fields(&present(kind, &object, &spec.subject, before, &recorder));
        let found = fields(spec);
        let mut what: Vec<String> = expected
            .iter()
            .chain(found.iter().filter(|(key, _)| !expected.contains_key(*key)))
            // Leave out `previous`, because `check` verifies the links between entries.
            .filter(|(key, _)| *key != "previous" && expected.get(*key) != found.get(*key))
            .map(|(key, _)| format!("spec.{key} does not match the {}", kind.name))
            .collect();
        // Other programs change the fields of such a subject without an audit entry, so a difference is no problem.
        if kind.numbering != Numbering::Generation {
            return what;
        }
        // No entry records whether a GitOps tool owned the subject at that time. So the content is valid if it
        // matches either case.
        let [effective, over_git] =
            [false, true].map(|owned| (kind.content)(&object, spec.at.0, owned).name);
        let to = spec.to.as_ref().map(|to| to.name.as_str());
        if to != Some(&effective) && to != Some(&over_git) {
            what.push(format!(
                "its content is not {effective}, which the {} has",
                kind.name
            ));
        }
        what
    }

    /// Checks the audit head annotation of a subject. It must contain the hash of the entry before bowline's last
    /// change of the subject.
    fn check_head(&self, subject: &Subject, chain: Option<&Chain>, problems: &mut Vec<Finding>) {
        let entries = || {
            let root = chain.and_then(|chain| chain.root);
            let rest = chain.map_or(&[][..], |chain| &chain.entries);
            root.into_iter().chain(rest.iter().copied())
        };
        let object = &self.object;
        let generation = self.kind.number(object).unwrap_or_default();
        let written = object.annotations().get(labels::OPERATION);
        let written: Option<Operation> = written.and_then(|text| serde_json::from_str(text).ok());
        let on_object = written.map(|operation| operation.number);
        let in_chain = entries().filter(|entry| entry.spec.operation.is_some());
        let moved = match on_object {
            Some(moved) => Some(moved).filter(|moved| *moved <= generation),
            None => in_chain.map(|entry| entry.spec.revision).max(),
        };
        let head = operation::audit_head(object);
        let root = chain.and_then(|chain| chain.root);
        let what = match moved {
            // The audit head names an entry that retention removed, so there is nothing to compare.
            Some(moved) if root.is_some_and(|root| root.spec.revision >= moved) => return,
            Some(moved) => {
                let before = entries().rfind(|entry| entry.spec.revision < moved);
                match (before, head) {
                    (None, None) => return,
                    (Some(before), Some(head)) if link(before) == head => return,
                    (Some(before), Some(_)) => format!(
                        "its audit head does not match auditentry/{}, the entry before its last change",
                        before.name_any()
                    ),
                    (Some(before), None) => format!(
                        "its audit head is missing: the hash of auditentry/{}",
                        before.name_any()
                    ),
                    (None, Some(_)) => format!(
                        "its audit head names an entry before revision {moved}, which does not exist"
                    ),
                }
            }
            None => match head {
                None => return,
                Some(head) if entries().any(|entry| link(entry) == head) => return,
                Some(_) => "its audit head matches no entry".to_owned(),
            },
        };
        problems.push(Finding {
            severity: Severity::Tampered,
            chain: subject.name.clone(),
            object: self.kind.words(&subject.name),
            what,
        });
    }
}
