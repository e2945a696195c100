//! How a plan is drawn: what, from what to what, what it changes, and the confirmation.

use ratatui::layout::Rect;

use super::{Outcome, Stage, State, is_idle};
use crate::api::release::Verdict;
use crate::engine::actions::gc::Collection;
use crate::engine::actions::mark::Marking;
use crate::engine::matrix::{self, Columns};
use crate::engine::plan::{Item, Plan};
use crate::engine::rollout::Rollout;
use crate::engine::world::{Key, World};
use crate::text;
use crate::tui::action::Action;
use crate::tui::confirm::Confirmation;
use crate::tui::order::Prepared;
use crate::tui::pen::Sheet;
use crate::tui::screens::Scene;
use crate::tui::theme::Role;

/// Where the values of the rows at the top begin.
const VALUES: u16 = 13;
/// As many warnings about the files are shown.
const WARNINGS: usize = 3;

/// Below so many columns there is no room for a button beside a text.
const NARROW: u16 = 60;

impl State {
    /// Draws it.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let mut row = self.title(sheet, scene);
        let height = sheet.height();
        match &self.stage {
            Stage::Planning => {
                sheet
                    .line(row + 1)
                    .skip(3)
                    .put("the plan is being made", Role::Muted);
                self.dropped_keys(sheet, row + 2);
            }
            Stage::Refused(refused) => {
                row += 1;
                for why in &refused.why {
                    row += put_wrapped(sheet, row, "refused", why, Role::Error);
                }
                for hint in &refused.hints {
                    row += put_wrapped(sheet, row, "hint", hint, Role::Text);
                }
                sheet
                    .line(height.saturating_sub(1))
                    .skip(1)
                    .put("esc", Role::Key)
                    .put(" back", Role::KeyDescription);
            }
            Stage::Asking(prepared, shown, confirmation) => {
                row = self.facts(sheet, scene, row, prepared);
                let foot = self.foot_height(confirmation);
                self.changes(sheet, row, height.saturating_sub(foot), prepared, shown);
                self.ask(sheet, scene, height.saturating_sub(foot), confirmation);
            }
            Stage::Applying(prepared, shown) => {
                row = self.facts(sheet, scene, row, prepared);
                self.changes(sheet, row, height.saturating_sub(3), prepared, shown);
                sheet.rule(height.saturating_sub(3), "", Role::Border);
                sheet
                    .line(height.saturating_sub(2))
                    .skip(3)
                    .put("it is being written", Role::Progressing);
            }
            Stage::Applied(prepared, shown, outcome) => {
                row = self.became(sheet, scene, row, outcome);
                self.changes(sheet, row, height.saturating_sub(2), prepared, shown);
                let leave = match outcome.rolling.is_empty() {
                    true => " back",
                    false => " leave it running",
                };
                let mut pen = sheet.line(height.saturating_sub(1));
                pen.skip(1)
                    .put("esc", Role::Key)
                    .put(leave, Role::KeyDescription);
                let keys = scene.model.look.keymap.keys_for(self.modes(), Action::Undo);
                let undo = outcome.can_be_undone() && self.subject().place().is_some();
                if let Some(keys) = keys.filter(|_| undo) {
                    pen.skip(2)
                        .put(&keys, Role::Key)
                        .put(" undo", Role::KeyDescription);
                }
            }
        }
    }

    fn title(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) -> u16 {
        let ground = &scene.model.ground;
        let live = match scene.world.is_live() {
            true => "from live data",
            false => "from data that is not current",
        };
        let when = format!("plan of {}, {live} ", ground.clock(self.opened, sheet.now));
        let mut pen = sheet.line(0);
        pen.skip(1)
            .put(self.order.verb(), Role::PlanTitle)
            .skip(2)
            .put(&self.order.subject(), Role::Title)
            .skip(2)
            .right(&when, Role::Muted);
        1
    }

    fn dropped_keys(&self, sheet: &mut Sheet<'_>, row: u16) {
        if self.dropped > 0 {
            let words = match self.dropped {
                1 => "1 key came before the plan was drawn and was dropped".to_owned(),
                keys => format!("{keys} keys came before the plan was drawn and were dropped"),
            };
            sheet.line(row).skip(3).put(&words, Role::Warning);
        }
    }

    /// Draws what the plan is about; returns the next row.
    fn facts(
        &self,
        sheet: &mut Sheet<'_>,
        scene: &Scene<'_>,
        mut row: u16,
        prepared: &Prepared,
    ) -> u16 {
        match prepared {
            Prepared::Moves(draft) => {
                row = self.moves(sheet, scene, row, &draft.plan);
                for note in &draft.notes {
                    row += put_wrapped(sheet, row, "warning", note, Role::Warning);
                }
            }
            Prepared::Mark(marking) => row = mark(sheet, row, marking),
            Prepared::Collection(collection) => row = collected(sheet, row, collection),
        }
        let warnings = self.files.as_ref().map(|files| files.warnings.as_slice());
        let warnings = warnings.unwrap_or_default();
        for warning in warnings.iter().take(WARNINGS) {
            row += put_wrapped(sheet, row, "warning", warning, Role::Warning);
        }
        if let Some(more @ 1..) = warnings.len().checked_sub(WARNINGS) {
            label(sheet, row, "", &format!("and {more} more"), Role::Warning);
            row += 1;
        }
        if self.dropped > 0 {
            self.dropped_keys(sheet, row);
            row += 1;
        }
        row
    }

    fn moves(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, mut row: u16, plan: &Plan) -> u16 {
        let world = scene.world;
        let [item] = plan.items.as_slice() else {
            for item in plan.items.iter().take(usize::from(sheet.height() / 3)) {
                set_row(sheet, row, item);
                row += 1;
            }
            let more = plan
                .items
                .len()
                .saturating_sub(usize::from(sheet.height() / 3));
            if more > 0 {
                sheet
                    .line(row)
                    .skip(3)
                    .put(&format!("and {more} more"), Role::Muted);
                row += 1;
            }
            return row;
        };
        let columns = Columns::of(world, Some(&item.pin.namespace));
        let component = Key::new(&item.pin.namespace, &item.component);
        let column = columns.position(&item.environment);
        let cell =
            column.and_then(|column| matrix::cell(world, &columns, &component, column, sheet.now));
        let from = match (&item.from, &cell) {
            (Some(from), Some(cell)) => {
                let since = cell.since.map(|since| format!(", {}", sheet.age(since)));
                format!(
                    "{}   {}{}",
                    from.name,
                    cell.health().word(),
                    since.unwrap_or_default()
                )
            }
            (Some(from), None) => from.name.clone(),
            (None, _) => "nothing: it is not deployed there".to_owned(),
        };
        let to = match item.unchanged {
            true => format!("{}   it is so already", item.to.name),
            false => format!("{}   {}", item.to.name, self.why_to(world, item, &cell)),
        };
        row += put_wrapped(sheet, row, "from", &from, Role::Text);
        row += put_wrapped(sheet, row, "to", &to, Role::Text);
        let placed = item.holds.iter().filter(|hold| {
            let before = world.pin(&item.pin);
            before.is_none_or(|pin| pin.holds.iter().all(|known| known.id != hold.id))
        });
        for hold in placed {
            let until = match &hold.until {
                Some(until) => format!("until {}", scene.model.ground.clock(until.0, sheet.now)),
                None => "until lifted".to_owned(),
            };
            let words = format!(
                "a hold for {}, {until}, so that nothing moves it meanwhile",
                hold.owner
            );
            row += put_wrapped(sheet, row, "places", &words, Role::Hold);
        }
        let lifted = world.pin(&item.pin).map(|pin| {
            let gone =
                |hold: &&crate::api::pin::Hold| item.holds.iter().all(|kept| kept.id != hold.id);
            pin.holds.iter().filter(gone).cloned().collect::<Vec<_>>()
        });
        for hold in lifted.unwrap_or_default() {
            let why = hold.reason.as_deref().unwrap_or("no reason was given");
            let words = format!("the hold of {}: {why}", hold.owner);
            row += put_wrapped(sheet, row, "lifts", &words, Role::Hold);
        }
        row
    }

    /// Says why a plan goes to what it goes to.
    fn why_to(&self, world: &World, item: &Item, cell: &Option<matrix::Cell<'_>>) -> String {
        use crate::engine::desk::Order as Move;
        use crate::tui::order::Order;
        let bad = || {
            let component = Key::new(&item.pin.namespace, &item.component);
            let names: Vec<String> = world
                .releases_of(&component)
                .filter(|release| release.mark == Some(Verdict::Bad))
                .map(|release| release.key.name.to_string())
                .collect();
            match names.is_empty() {
                true => String::new(),
                false => format!(".  Marked bad and passed over: {}", names.join(", ")),
            }
        };
        match &self.order {
            Order::Move(Move::Rollback { .. }) => {
                let good = cell.as_ref().and_then(|cell| cell.good.as_ref());
                match good.filter(|good| good.release == item.to.name) {
                    Some(good) => {
                        let ran = good
                            .until
                            .map(|until| text::age(until.duration_since(good.since).as_secs()));
                        let ran = ran.map_or(String::new(), |ran| {
                            format!(": ran {ran} and was ready when it was replaced")
                        });
                        format!("last good here{ran}{}", bad())
                    }
                    None => bad(),
                }
            }
            Order::Move(Move::Promote(promote)) => format!("what runs in {}", promote.from),
            _ => String::new(),
        }
    }

    fn foot_height(&self, confirmation: &Confirmation) -> u16 {
        match confirmation.editor {
            true => 9,
            false => 4,
        }
    }

    /// Draws the confirmation.
    fn ask(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, row: u16, confirmation: &Confirmation) {
        let ground = &scene.model.ground;
        sheet.rule(row, "", Role::Border);
        let typed = confirmation
            .demand
            .read(&confirmation.typed())
            .ok()
            .flatten();
        let same = ground.aimed(self.order.command_line(typed.as_deref()));
        label(sheet, row + 1, "same as", &same, Role::Muted);
        let unwritable = ground.unwritable(sheet.now).filter(|_| !ground.protected);
        let obstacle = self.obstacle(unwritable);
        let complaint = confirmation.complaint.as_deref();
        let (words, role) = match (complaint, obstacle.as_deref()) {
            (Some(complaint), _) => (complaint, Role::Error),
            (None, Some(obstacle)) => (obstacle, Role::Warning),
            (None, None) => ("", Role::Muted),
        };
        sheet.line(row + 3).skip(3).put(words, role);
        let end = sheet.width();
        // On a narrow screen what is typed needs the place, and esc cancels as well.
        let button = match confirmation.takes_text() && end < NARROW {
            true => 0,
            false => 11,
        };
        // From right to left: what is written first is filled up with blanks to its left.
        let mut pen = sheet.line(row + 2);
        match confirmation.demand.is_key() {
            true => {
                let (cancel, apply) = match confirmation.apply {
                    true => (Role::Button, Role::ButtonFocused),
                    false => (Role::ButtonFocused, Role::Button),
                };
                pen.to(end.saturating_sub(24))
                    .put("[ Cancel ]", cancel)
                    .skip(1)
                    .put("[ y apply ]", apply);
            }
            false if button > 0 => {
                pen.to(end.saturating_sub(button))
                    .put("[ Cancel ]", Role::ButtonFocused);
            }
            false => {}
        }
        let mut pen = sheet.line(row + 2);
        pen.skip(3);
        if confirmation.editor {
            pen.put("why, in several lines", Role::Prompt);
            let area = Rect {
                x: sheet.area.x + 3,
                y: sheet.area.y + row + 4,
                width: end.saturating_sub(6),
                height: 4,
            };
            sheet.part(area).widget(&confirmation.line);
        } else if confirmation.takes_text() {
            pen.put(&confirmation.demand.prompt(), Role::Prompt).skip(2);
            let column = pen.column();
            let area = Rect {
                x: sheet.area.x + column,
                y: sheet.area.y + row + 2,
                width: end.saturating_sub(column + button + 1),
                height: 1,
            };
            sheet.part(area).widget(&confirmation.line);
        }
        if is_idle_stage(&self.stage) {
            sheet
                .line(row + 2)
                .skip(3)
                .put("nothing would change", Role::Muted);
        }
    }

    /// Draws what became of it; returns the next row.
    fn became(
        &self,
        sheet: &mut Sheet<'_>,
        scene: &Scene<'_>,
        mut row: u16,
        outcome: &Outcome,
    ) -> u16 {
        for (done, words) in &outcome.lines {
            let (name, role) = match done {
                true => ("done", Role::Good),
                false => ("failed", Role::Error),
            };
            row += put_wrapped(sheet, row, name, words, role);
        }
        for hint in &outcome.hints {
            row += put_wrapped(sheet, row, "hint", hint, Role::Text);
        }
        for (pin, revision) in &outcome.rolling {
            let rollout = Rollout::of(scene.world.pin(pin), *revision);
            let role = match &rollout {
                Rollout::Ready => Role::Good,
                Rollout::Failing(_) | Rollout::Gone => Role::Degraded,
                Rollout::Moving(_) | Rollout::Unseen => Role::Progressing,
            };
            let words = format!("{}: {}", pin.name, rollout.words());
            row += put_wrapped(sheet, row, "rollout", &words, role);
        }
        row
    }
}

fn is_idle_stage(stage: &Stage) -> bool {
    matches!(stage, Stage::Asking(prepared, ..) if is_idle(prepared))
}

/// Draws a row with a name and a value.
fn label(sheet: &mut Sheet<'_>, row: u16, name: &str, value: &str, role: Role) {
    sheet
        .line(row)
        .skip(3)
        .put(name, Role::Muted)
        .to(VALUES)
        .put(value, role);
}

/// Draws a value over as many rows as it takes, three at the most; returns how many.
fn put_wrapped(sheet: &mut Sheet<'_>, row: u16, name: &str, value: &str, role: Role) -> u16 {
    let width = usize::from(sheet.width().saturating_sub(VALUES + 1)).max(10);
    let lines = crate::tui::widgets::wrap(value, width);
    let shown = lines.len().clamp(1, 3);
    for (at, line) in (0u16..).zip(lines.iter().take(shown)) {
        let name = if at == 0 { name } else { "" };
        label(sheet, row + at, name, line, role);
    }
    u16::try_from(shown).unwrap_or(3)
}

/// Draws one change of a set.
fn set_row(sheet: &mut Sheet<'_>, row: u16, item: &Item) {
    let arrow = sheet.glyphs.arrow;
    let from = item
        .from
        .as_ref()
        .map_or("nothing", |from| from.name.as_str());
    let mut pen = sheet.line(row);
    pen.skip(3)
        .cell(&item.component, 28, Role::Text)
        .put(from, Role::Muted);
    match item.unchanged {
        true => pen.put("  it is so already", Role::Muted),
        false => pen
            .put(&format!("  {arrow}  "), Role::Muted)
            .put(&item.to.name, Role::Text),
    };
}

fn mark(sheet: &mut Sheet<'_>, mut row: u16, marking: &Marking) -> u16 {
    let was = match marking.was {
        Some(Verdict::Bad) => "marked bad",
        Some(Verdict::Good) => "marked good",
        None => "not marked",
    };
    row += put_wrapped(sheet, row, "from", was, Role::Text);
    let to = match marking.verdict {
        Verdict::Bad => "marked bad: nothing is promoted or rolled back to it any more",
        Verdict::Good => "marked good: it may be promoted and rolled back to again",
    };
    row += put_wrapped(sheet, row, "to", to, Role::Text);
    if !marking.runs_in.is_empty() {
        row += put_wrapped(
            sheet,
            row,
            "runs in",
            &marking.runs_in.join(", "),
            Role::Text,
        );
    }
    for warning in &marking.warnings {
        row += put_wrapped(sheet, row, "warning", warning, Role::Warning);
    }
    row
}

fn collected(sheet: &mut Sheet<'_>, mut row: u16, collection: &Collection) -> u16 {
    let all = collection.releases.len() + collection.snapshots.len();
    let going = collection.going().count();
    let words = format!(
        "{going} of {all} objects can go, {} are freed",
        text::bytes(collection.frees())
    );
    row += put_wrapped(sheet, row, "frees", &words, Role::Text);
    let days = collection.min_age.as_secs() / 86_400;
    let words = format!(
        "the newest {} of each component, what is younger than {days} days, what a pin or a hold names, what was last good",
        collection.keep
    );
    put_wrapped(sheet, row, "keeps", &words, Role::Muted) + row
}
