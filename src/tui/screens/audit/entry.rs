//! The screen of one audit entry. It also shows the entries before and after this entry in the hash chain.

use std::sync::Arc;

use kube::ResourceExt;

use super::{Whole, comparison, place, view};
use crate::action::Action;
use crate::api::bowline::audit::AuditEntry;
use crate::api::hold::Hold;
use crate::effect::{Comparison, Effect, Object};
use crate::engine::audit::{self, Finding};
use crate::model::{Level, Subject, Turn};
use crate::pen::Sheet;
use crate::rows::page;
use crate::screens::{Handled, Scene, Screen, describe};
use crate::text;
use crate::theme::Role;
use crate::widgets::wrap;

/// The column at which the values of the fields start.
const VALUES: u16 = 16;

/// The entry that the screen shows, and the other entries of its hash chain.
#[derive(Debug)]
pub struct State {
    whole: Arc<Whole>,
    /// The entries of the hash chain, the oldest first, as indexes into the audit trail.
    chain: Vec<usize>,
    /// The position in `chain` of the entry that the screen shows.
    at: usize,
    scroll: usize,
}

impl State {
    /// Opens the audit entry with this name; None if the audit trail has no such entry.
    pub(super) fn of(whole: Arc<Whole>, name: &str) -> Option<Self> {
        let entries = &whole.record.entries;
        let own = |entry: &AuditEntry| entry.metadata.name.as_deref() == Some(name);
        let chains = audit::chains(entries);
        let chain = chains
            .iter()
            .map(audit::Chain::all)
            .find(|chain| chain.iter().any(|entry| own(entry)))?;
        let at = chain.iter().position(|entry| own(entry))?;
        let numbers = chain.iter().filter_map(|of_chain| {
            entries
                .iter()
                .position(|entry| std::ptr::eq(entry, *of_chain))
        });
        let chain = numbers.collect();
        Some(Self {
            whole,
            chain,
            at,
            scroll: 0,
        })
    }

    fn entry(&self, at: usize) -> Option<&AuditEntry> {
        self.whole.record.entries.get(*self.chain.get(at)?)
    }

    pub fn title(&self) -> String {
        let revision = self.entry(self.at).map_or(0, |entry| entry.spec.revision);
        format!("revision {revision}")
    }

    pub fn subject(&self) -> Subject {
        let entry = self.entry(self.at);
        match entry.and_then(|entry| Some((place(entry)?, entry))) {
            None => Subject::default(),
            Some((place, entry)) => Subject {
                components: vec![place.component],
                environment: Some(place.environment),
                release: entry.spec.to.as_ref().map(|to| to.name.clone()),
            },
        }
    }

    /// Returns the comparison of the ReleasePin's revision in this entry with the revision before it; None if there
    /// are not two such revisions.
    pub fn comparison(&self) -> Option<Comparison> {
        let entry = self.entry(self.at)?;
        comparison(&(place(entry)?, entry.spec.revision))
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let page = page(turn.size).unsigned_abs();
        match action {
            Action::Up => self.scroll = self.scroll.saturating_sub(1),
            Action::Down => self.scroll += 1,
            Action::PageUp | Action::HalfPageUp => self.scroll = self.scroll.saturating_sub(page),
            Action::PageDown | Action::HalfPageDown => self.scroll += page,
            Action::Top => self.scroll = 0,
            Action::Left | Action::Right => {
                let next = match action {
                    Action::Left => self.at.checked_sub(1),
                    _ => Some(self.at + 1).filter(|at| *at < self.chain.len()),
                };
                match next {
                    Some(at) => (self.at, self.scroll) = (at, 0),
                    None => turn.say(Level::Info, "the chain ends here"),
                }
            }
            Action::Open | Action::Copy | Action::CopyCommand => {
                let Some(name) = self.entry(self.at).map(ResourceExt::name_any) else {
                    return Handled::No;
                };
                match action {
                    Action::Open => {
                        let state = describe::State::open(Object::Entry(name), turn);
                        turn.open(Screen::Describe(Box::new(state)));
                    }
                    Action::Copy => {
                        turn.say(Level::Info, format!("copied {name}"));
                        turn.effects.push(Effect::Copy(name));
                    }
                    _ => {
                        let line = describe::command_line(&Object::Entry(name), turn.target_info);
                        turn.say(Level::Info, format!("copied {line}"));
                        turn.effects.push(Effect::Copy(line));
                    }
                }
            }
            _ => return Handled::No,
        }
        // This limit is larger than the number of lines of any entry. The exact number is known only when the screen
        // is drawn.
        self.scroll = self.scroll.min(500);
        Handled::Yes
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let Some(entry) = self.entry(self.at) else {
            return;
        };
        let object = format!("auditentry/{}", entry.name_any());
        let own = |finding: &&Finding| finding.object == object;
        let verdict = &self.whole.record.verdict;
        let problems: Vec<Finding> = verdict.problems.iter().filter(own).cloned().collect();
        let bars = view::bar(sheet, &problems);
        let height = sheet.height().saturating_sub(bars);
        let mut below = sheet.rows(bars, height);
        let lines = self.lines(&below, scene, entry, !problems.is_empty());
        let first = self
            .scroll
            .min(lines.len().saturating_sub(usize::from(height)));
        for (row, (head, value, role)) in (0..height).zip(lines.iter().skip(first)) {
            let mut pen = below.line(row);
            pen.skip(3)
                .put(head, Role::Header)
                .to(VALUES)
                .put(value, *role);
        }
    }

    fn lines(
        &self,
        sheet: &Sheet<'_>,
        scene: &Scene<'_>,
        entry: &AuditEntry,
        is_broken: bool,
    ) -> Vec<(&'static str, String, Role)> {
        let spec = &entry.spec;
        let target_info = &scene.model.target_info;
        let width = usize::from(sheet.width().saturating_sub(VALUES + 1));
        let mut lines: Vec<(&'static str, String, Role)> = Vec::new();
        let mut add = |head: &'static str, words: &str, role: Role| {
            let wrapped = wrap(words, width);
            for (at, line) in wrapped.into_iter().enumerate() {
                lines.push((if at == 0 { head } else { "" }, line, role));
            }
        };
        let zoned = spec.at.0.to_zoned(target_info.zone.clone());
        let ago = sheet.age(spec.at.0);
        add(
            "what",
            &format!("{:?} of {}", spec.action, spec.subject.name),
            Role::Title,
        );
        add(
            "when",
            &format!("{}, {ago} ago", zoned.strftime("%Y-%m-%d %H:%M:%S %Z")),
            Role::Text,
        );
        match &spec.actor {
            Some(actor) => add("who", actor, Role::Text),
            None => add(
                "who",
                "not known: the server did not report the user",
                Role::Warning,
            ),
        }
        if spec.actor.as_ref() != Some(&spec.recorded_by) {
            add("recorded by", &spec.recorded_by, Role::Muted);
        }
        match &spec.reason {
            Some(reason) => add("why", reason, Role::Text),
            None => add("why", "no reason was given", Role::Muted),
        }
        let release = |release: &crate::api::bowline::audit::ContentRef| {
            let hash = release.hash.as_deref().map(short);
            let hash = hash
                .map(|hash| format!("  content {hash}"))
                .unwrap_or_default();
            format!("{}{hash}", release.name)
        };
        if let Some(from) = &spec.from {
            add("from", &release(from), Role::Text);
        }
        if let Some(to) = &spec.to {
            add("to", &release(to), Role::Text);
        }
        if let Some(named) = &spec.release_ref {
            add(
                "releaseRef",
                &format!("{named}; a hold fixes another release"),
                Role::Text,
            );
        }
        if let Some(revision) = spec.restored_from {
            add("restored", &format!("revision {revision}"), Role::Text);
        }
        let hold = |hold: &Hold| {
            let until = hold.until.as_ref().map_or("no end".to_owned(), |until| {
                format!("until {}", target_info.clock(until.0, sheet.now))
            });
            let why = hold.reason.as_deref().unwrap_or("no reason was given");
            format!("{}, {until}: {why}", hold.owner)
        };
        for (at, held) in spec.holds.iter().enumerate() {
            add(if at == 0 { "holds" } else { "" }, &hold(held), Role::Hold);
        }
        if let Some(gap) = &spec.gap {
            add(
                "gap",
                &format!("revisions {} to {} were not observed", gap.first, gap.last),
                Role::Warning,
            );
        }
        if let Some(checkpoint) = &spec.checkpoint {
            add(
                "checkpoint",
                &format!(
                    "retention removed {} entries, through revision {}",
                    checkpoint.entries, checkpoint.through
                ),
                Role::Muted,
            );
        }
        add("", "", Role::Text);
        add("entry", &entry.name_any(), Role::Muted);
        if let Some(operation) = &spec.operation {
            add("operation", operation, Role::Muted);
        }
        if let Some(hash) = &spec.rendered_hash {
            add("rendered", &short(hash), Role::Muted);
        }
        add("hash", &short(&audit::hash(entry)), Role::Muted);
        let follows = spec
            .previous
            .as_deref()
            .map_or("none: this is the first entry".to_owned(), short);
        add("follows", &follows, Role::Muted);
        match is_broken {
            false => add(
                "chain",
                &format!("{}, verified", sheet.glyphs.check),
                Role::Good,
            ),
            true => add(
                "chain",
                &format!("{}, changed after it was written", sheet.glyphs.degraded),
                Role::Error,
            ),
        }
        let verdict = &self.whole.record.verdict;
        let object = format!("auditentry/{}", entry.name_any());
        for warning in verdict
            .warnings
            .iter()
            .filter(|found| found.object == object)
        {
            add("warning", &warning.what, Role::Warning);
        }
        add("", "", Role::Text);
        let neighbour = |at: Option<usize>| {
            let entry = at.and_then(|at| self.entry(at))?;
            let who = entry.spec.actor.as_deref().unwrap_or("unattributed");
            let to = entry
                .spec
                .to
                .as_ref()
                .map(|to| format!(" to {}", to.name))
                .unwrap_or_default();
            let when = target_info.clock(entry.spec.at.0, sheet.now);
            Some(
                text::line(&format!(
                    "revision {}  {when}  {who}  {:?}{to}",
                    entry.spec.revision, entry.spec.action
                ))
                .into_owned(),
            )
        };
        let before = neighbour(self.at.checked_sub(1));
        let after = neighbour(self.at.checked_add(1));
        add(
            "before",
            before.as_deref().unwrap_or("nothing"),
            Role::Muted,
        );
        add(
            "after",
            after.as_deref().unwrap_or("nothing yet"),
            Role::Muted,
        );
        lines
    }
}

/// Shortens a hash to its first 16 characters.
fn short(hash: &str) -> String {
    hash.chars().take(16).collect()
}
