//! Builds the revisions of a ReleasePin. The changes come from its audit entries, the health comes from its status.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams};
use serde::Serialize;

use crate::api::ReleasePin;
use crate::api::bowline::audit::{AuditEntry, AuditEntrySpec, ContentRef, RELEASE_PIN};
use crate::api::hold::Hold;
use crate::api::openchoreo::pin::Outcome;
use crate::engine::audit;
use crate::engine::revisions::{Cause, Revision, Revisions, State, with_missing};
use crate::engine::subject::dynamic;
use crate::subjects::release_pin::kind::KIND;

/// The state of a ReleasePin in one revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pinned {
    /// The effective release of this revision.
    pub release: ContentRef,
    /// The holds of the ReleasePin in this revision; empty if the revision has no audit entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
    /// The release that the releaseRef names in this revision; None if it is not recorded.
    #[serde(skip)]
    pub reference: Option<String>,
    /// The effective release of the previous revision; None if there was none or it is not recorded.
    #[serde(skip)]
    pub replaced: Option<String>,
}

/// The records about one generation of a ReleasePin.
#[derive(Default)]
struct Found<'a> {
    entry: Option<&'a AuditEntrySpec>,
    outcome: Option<&'a Outcome>,
    /// The newest checkpoint, if this generation is the last one that the checkpoint replaces.
    checkpoint: Option<&'a AuditEntrySpec>,
    /// The ReleasePin itself, if this generation is its current one.
    pin: Option<&'a ReleasePin>,
}

/// Builds the revisions of a ReleasePin from audit entries and from its status.
///
/// The result contains the current revision, and each older one with an audit entry or an outcome. Entries of a
/// deleted ReleasePin with the same name are ignored.
pub fn of_pin(pin: &ReleasePin, entries: &[AuditEntry], now: Timestamp) -> Revisions<Pinned> {
    let current = pin.metadata.generation.unwrap_or_default();
    let own = || {
        let specs = entries.iter().map(|entry| &entry.spec);
        specs
            .filter(|spec| spec.subject.kind == RELEASE_PIN && spec.subject.uid == pin.metadata.uid)
    };
    let mut found: BTreeMap<i64, Found<'_>> = BTreeMap::new();
    for spec in own().filter(|spec| spec.gap.is_none() && spec.checkpoint.is_none()) {
        found.entry(spec.revision).or_default().entry = Some(spec);
    }
    let status = pin.status.as_ref();
    for outcome in status.map_or(&[][..], |status| &status.outcomes) {
        found.entry(outcome.generation).or_default().outcome = Some(outcome);
    }
    let checkpoint = own().filter(|spec| spec.checkpoint.is_some());
    let checkpoint = checkpoint.max_by_key(|spec| spec.revision);
    let retired = checkpoint.map_or(0, |spec| spec.revision);
    if let Some(spec) = checkpoint.filter(|spec| spec.to.is_some()) {
        found.entry(spec.revision).or_default().checkpoint = Some(spec);
    }
    if current > 0 {
        found.entry(current).or_default().pin = Some(pin);
    }
    let unseen: Vec<(i64, i64)> = own()
        .filter_map(|spec| spec.gap.as_ref())
        .map(|gap| (gap.first, gap.last))
        .collect();
    let known = found
        .into_iter()
        .map(|(number, found)| found.revision(number, current, now))
        .collect();
    Revisions {
        subject: format!("{} in {}", pin.spec.component, pin.spec.environment),
        current,
        rows: with_missing(known, retired, &unseen),
        record: None,
    }
}

/// Reads a ReleasePin from the server and builds its revisions; None if the ReleasePin does not exist.
pub async fn read_pin(
    client: &Client,
    namespace: &str,
    name: &str,
    now: Timestamp,
) -> Result<Option<(ReleasePin, Revisions<Pinned>)>, kube::Error> {
    // Read the entries before the ReleasePin. A change in between may lack its entry here, but the ReleasePin itself
    // contains the values of its newest change.
    let entries: Api<AuditEntry> = Api::namespaced(client.clone(), namespace);
    let of_pin = ListParams::default().fields(&format!("spec.subject.name={name}"));
    let entries = entries.list(&of_pin).await?.items;
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
    let Some(pin) = pins.get_opt(name).await? else {
        return Ok(None);
    };
    let revisions = self::of_pin(&pin, &entries, now);
    Ok(Some((pin, revisions)))
}

impl Found<'_> {
    fn revision(&self, number: i64, current: i64, now: Timestamp) -> Revision<Pinned> {
        let entry = self.entry.cloned().or_else(|| self.as_on_the_pin(now));
        let content = self.content(entry.as_ref());
        let created = entry.as_ref().map(|entry| entry.at.0);
        Revision {
            number,
            hash: content
                .as_ref()
                .and_then(|content| content.release.hash.clone()),
            created: created.or(self.outcome.map(|outcome| outcome.since.0)),
            restored_from: entry.as_ref().and_then(|entry| entry.restored_from),
            cause: entry.map(|entry| Cause {
                action: entry.action,
                actor: entry.actor,
                reason: entry.reason,
                operation: entry.operation,
            }),
            state: state(self.outcome, number == current),
            why: self.outcome.and_then(|outcome| outcome.why.clone()),
            mark: None,
            content,
        }
    }

    /// Returns the audit entry for the current generation, built from the ReleasePin itself; None if this is an older
    /// generation.
    fn as_on_the_pin(&self, now: Timestamp) -> Option<AuditEntrySpec> {
        let recorder = audit::Recorder {
            by: "",
            now,
            known: &[],
        };
        let missing = audit::missing(&KIND, &dynamic(self.pin?), None, &recorder).ok()?;
        let entry = missing.into_iter().next_back()?;
        Some(entry.spec)
    }

    fn content(&self, entry: Option<&AuditEntrySpec>) -> Option<Pinned> {
        let said = |spec: &AuditEntrySpec| {
            let release = spec.to.clone()?;
            let reference = spec.release_ref.as_deref().unwrap_or(&release.name);
            Some(Pinned {
                reference: Some(reference.to_owned()),
                replaced: spec.from.as_ref().map(|from| from.name.clone()),
                release,
                holds: spec.holds.clone(),
            })
        };
        let ran = || {
            let release = ContentRef::named(&self.outcome?.release);
            Some(Pinned {
                release,
                holds: Vec::new(),
                reference: None,
                replaced: None,
            })
        };
        entry
            .and_then(said)
            .or_else(|| self.checkpoint.and_then(said))
            .or_else(ran)
    }
}

fn state(outcome: Option<&Outcome>, is_current: bool) -> State {
    match outcome {
        Some(outcome) if outcome.healthy == Some(true) => State::Healthy,
        Some(outcome) if outcome.healthy == Some(false) => State::Unhealthy,
        _ if is_current => State::Current,
        Some(_) => State::Unknown,
        None => State::Superseded,
    }
}
