//! The rows above the diffs of a plan: the old and the new release, holds, warnings, and facts that are no longer
//! true.

use jiff::Timestamp;

use super::page::{PageInputs, Spans};
use super::{Outcome, State};
use crate::api::openchoreo::release::Verdict;
use crate::engine::plan::Change;
use crate::engine::world::Key;
use crate::subjects::release_pin::actions::gc::Collection;
use crate::subjects::release_pin::marking::Marking;
use crate::subjects::release_pin::matrix::{self, Columns};
use crate::subjects::release_pin::planner::ActionRequest as Move;
use crate::subjects::release_pin::rollout::Rollout;
use crate::subjects::service::{Command, PlannedCommand};
use crate::tasks;
use crate::text;
use crate::theme::Role;

/// A labelled row at the top of the plan. Its value is visible on every screen size; on a small screen, the user may
/// have to scroll to its detail.
pub(super) struct FixedRow {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// The label of the detail, if the detail has a row of its own.
    pub(super) about: &'static str,
    pub(super) detail: String,
}

/// A labelled row to which the user may have to scroll.
pub(super) struct Block {
    pub(super) name: &'static str,
    pub(super) words: String,
    pub(super) role: Role,
}

/// All rows above the diffs of a plan.
#[derive(Default)]
pub(super) struct Head {
    pub(super) essential: Vec<FixedRow>,
    pub(super) blocks: Vec<Block>,
    /// One row per change, if the plan is for several components.
    pub(super) set: Vec<Spans>,
    /// The times whose ages the rows show, because the screen must be drawn again when an age changes.
    pub(super) ages: Vec<Timestamp>,
}

impl Head {
    fn essential(&mut self, name: &'static str, value: &str, about: &'static str, detail: &str) {
        self.essential.push(FixedRow {
            name,
            value: value.to_owned(),
            about,
            detail: detail.to_owned(),
        });
    }

    fn block(&mut self, name: &'static str, words: impl Into<String>, role: Role) {
        self.blocks.push(Block {
            name,
            words: words.into(),
            role,
        });
    }
}

/// Returns the rows of a plan that waits for its confirmation, or that bowline is applying.
pub(super) fn head(state: &State, sight: &PageInputs<'_>, prepared: &PlannedCommand) -> Head {
    let mut head = Head::default();
    for what in &state.stale {
        head.block("changed", what.clone(), Role::Error);
    }
    if let Some(words) = state.dropped.words() {
        head.block("dropped", words, Role::Warning);
    }
    match prepared {
        PlannedCommand::Changes(action_plan) => {
            match action_plan.plan.changes.as_slice() {
                [change] => one(&mut head, state, sight, prepared, change),
                changes => {
                    head.set = changes
                        .iter()
                        .map(|change| set_row(sight, change))
                        .collect();
                    if !sight.is_roomy() {
                        first_of_set(&mut head, sight, changes);
                    }
                }
            }
            for note in &action_plan.notes {
                head.block("warning", note.clone(), Role::Warning);
            }
            if let Some(record) = &action_plan.record {
                head.block("record", record.clone(), Role::Warning);
            }
        }
        PlannedCommand::Mark(marking) => mark(&mut head, marking),
        PlannedCommand::Collection(collection) => collected(&mut head, collection),
    }
    let warnings = state.files.iter().flat_map(|files| &files.warnings);
    for warning in warnings {
        head.block("warning", warning.clone(), Role::Warning);
    }
    head
}

/// Adds the rows for the change of one ReleasePin.
fn one(
    head: &mut Head,
    state: &State,
    sight: &PageInputs<'_>,
    prepared: &PlannedCommand,
    change: &Change,
) {
    if let Some(mark) = &change.mark {
        return verdict(head, mark.was, mark.verdict);
    }
    let world = sight.world;
    let columns = Columns::of(world, Some(&change.key().namespace));
    let component = Key::new(&change.key().namespace, &change.name);
    let column = columns.position(&change.environment);
    let cell =
        column.and_then(|column| matrix::cell(world, &columns, &component, column, sight.now));
    // Omit the health if it describes another release than the planned one.
    let running = cell.as_ref().filter(|cell| {
        let from = change.from.as_ref();
        from.is_none_or(|from| from.name == cell.release)
    });
    match (&change.from, running) {
        (Some(from), Some(cell)) => {
            let age = cell.since.map(|since| {
                head.ages.push(since);
                let seconds = sight.now.duration_since(since).as_secs();
                format!(", {}", text::age(seconds.max(0)))
            });
            let health = format!("{}{}", cell.health().word(), age.unwrap_or_default());
            head.essential("from", &from.name, "now", &health);
        }
        (Some(from), None) => head.essential("from", &from.name, "", ""),
        (None, _) => head.essential("from", "nothing", "now", "it is not deployed there"),
    }
    let why = match change.unchanged {
        true => super::outcome::already(prepared).to_lowercase(),
        false => why_to(state, change, &cell),
    };
    head.essential("to", &change.to.name, "why", &why);
    for hold in change.placed() {
        let until = match &hold.until {
            Some(until) => format!("until {}", sight.target_info.clock(until.0, sight.now)),
            None => "no end".to_owned(),
        };
        let words = format!(
            "a hold of {}, {until}: it stops promotions and automation",
            hold.owner
        );
        head.block("places", words, Role::Hold);
    }
    match change.holds.len() - change.placed().count() {
        0 => {}
        count => head.block("keeps", text::counted(count, "holds"), Role::Hold),
    }
    for hold in change.lifted() {
        head.block("lifts", hold.words(), Role::Hold);
    }
}

/// Returns the text that says why the plan chose its release.
fn why_to(state: &State, change: &Change, cell: &Option<matrix::Cell<'_>>) -> String {
    match &state.command {
        Command::Change(Move::Rollback { .. }) => {
            let good = cell.as_ref().and_then(|cell| cell.good.as_ref());
            match good.filter(|good| good.release == change.to.name) {
                Some(good) => {
                    let ran = good
                        .until
                        .map(|until| text::age(until.duration_since(good.since).as_secs()));
                    let ran = ran.map_or(String::new(), |ran| {
                        format!(": ran {ran} and was ready when replaced")
                    });
                    format!("last good here{ran}")
                }
                None => String::new(),
            }
        }
        Command::Change(Move::Promote(promote)) => format!("the release of {}", promote.from),
        _ => String::new(),
    }
}

/// Adds the rows that must stay visible for a plan for several components: the number of changes, and the first
/// change.
fn first_of_set(head: &mut Head, sight: &PageInputs<'_>, changes: &[Change]) {
    let changing = || changes.iter().filter(|change| !change.unchanged);
    let Some(first) = changing().next() else {
        return;
    };
    let (count, arrow) = (changing().count(), sight.look.glyphs.arrow);
    let from = first.from.as_ref();
    let from = from.map_or("nothing", |from| from.name.as_str());
    let subject = format!("1 of {count}, {}", first.name);
    head.essential("first", &subject, "", "");
    let values = format!("{from} {arrow} {}", first.to.name);
    head.essential("", &values, "", "");
}

/// Returns the row for one change of a plan for several components.
fn set_row(sight: &PageInputs<'_>, change: &Change) -> Spans {
    let arrow = sight.look.glyphs.arrow;
    let from = change.from.as_ref();
    let from = from.map_or("nothing", |from| from.name.as_str());
    let mut spans = vec![
        (format!("{}  ", change.name), Role::Title),
        (from.to_owned(), Role::Muted),
    ];
    match change.unchanged {
        true => spans.push(("  already done".to_owned(), Role::Muted)),
        false => {
            spans.push((format!(" {arrow} "), Role::Muted));
            spans.push((change.to.name.clone(), Role::Text));
        }
    }
    spans
}

/// Adds the rows for a mark: the verdict before, and the verdict to write.
fn verdict(head: &mut Head, was: Option<Verdict>, to: Verdict) {
    let was = match was {
        Some(Verdict::Bad) => "marked bad",
        Some(Verdict::Good) => "marked good",
        None => "not marked",
    };
    head.essential("from", was, "", "");
    let (to, means) = match to {
        Verdict::Bad => (
            "marked bad",
            "bowline refuses to promote it or to roll back to it",
        ),
        Verdict::Good => ("marked good", "promotion and rollback are allowed again"),
    };
    head.essential("to", to, "means", means);
}

fn mark(head: &mut Head, marking: &Marking) {
    verdict(head, marking.was, marking.verdict);
    if !marking.runs_in.is_empty() {
        head.block("runs in", marking.runs_in.join(", "), Role::Text);
    }
    for warning in &marking.warnings {
        head.block("warning", warning.clone(), Role::Warning);
    }
}

fn collected(head: &mut Head, collection: &Collection) {
    let all = collection.releases.len() + collection.snapshots.len();
    let going = collection.going().count();
    let freed = text::bytes(collection.frees());
    let value = format!("{going} of {all} objects can be deleted, {freed} freed");
    head.essential("frees", &value, "", "");
    let days = collection.min_age.as_secs() / 86_400;
    let words = format!(
        "the newest {} of each component, objects younger than {days} days, releases that a ReleasePin or a hold names, last good releases",
        collection.keep
    );
    head.block("keeps", words, Role::Muted);
}

/// Returns the rows that describe the outcome of a plan after bowline applied it.
pub(super) fn became(state: &State, sight: &PageInputs<'_>, outcome: &Outcome) -> Vec<Block> {
    let mut head = Head::default();
    for (done, words) in &outcome.lines {
        match done {
            true => head.block("done", words.clone(), Role::Good),
            false => head.block("failed", words.clone(), Role::Error),
        }
    }
    for hint in &outcome.hints {
        head.block("hint", hint.clone(), Role::Text);
    }
    if let Some(record) = &outcome.record {
        head.block("record", record.clone(), Role::Text);
    }
    // Prefer the rollouts in the task, because it stores outcomes that the read model no longer
    // has.
    let task = sight.tasks.iter().find(|task| task.ticket == state.ticket);
    let rolling = match task.map(|task| &task.state) {
        Some(tasks::State::Rolling(rolling)) => rolling,
        _ => &outcome.rolling,
    };
    for one in rolling {
        let rollout = one.rollout(sight.world);
        let role = match &rollout {
            rollout if rollout.is_ready() => Role::Good,
            Rollout::Moving(_) | Rollout::Unseen => Role::Progressing,
            _ => Role::Degraded,
        };
        let words = match &rollout {
            Rollout::Ready => format!("{} became ready with {}", one.pin.name, one.release),
            rollout => format!("{}: {}", one.pin.name, rollout.words()),
        };
        head.block("rollout", words, role);
    }
    head.blocks
}
