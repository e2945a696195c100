//! The layout of the plan screen for one terminal size. Drawing and scrolling use this layout, and also the check
//! whether the user can read a production change.
//!
//! At every size, the name of the subject, both releases and the typed text stay visible. The other rows stay visible
//! if there is room; otherwise they scroll.

use jiff::Timestamp;

use super::facts::{self, Block, Head};
use super::{Shown, Stage, State, changes};
use crate::action::{Action, Mode};
use crate::confirm::ConfirmationLine;
use crate::engine::world::World;
use crate::hints;
use crate::model::{Look, TargetInfo, Turn};
use crate::pen::Sheet;
use crate::screens::Scene;
use crate::subjects::service::PlannedCommand;
use crate::tasks::Task;
use crate::text;
use crate::theme::Role;
use crate::view::FRAME;
use crate::widgets::wrap;

/// The minimum supported terminal size: columns and rows.
const SMALLEST: (u16, u16) = (40, 10);
/// From this terminal size on (columns and rows), more rows than the essential ones stay visible.
const ROOMY: (u16, u16) = (60, 14);
/// The number of rows to keep free for the diffs, if there is room.
const CHANGES: usize = 5;
/// The minimum width of the typed text if it is next to its prompt; otherwise it is below the prompt.
const TYPED: usize = 12;
/// From this width on, in columns, the page shows the changed files and the changed objects side by side.
const ABREAST: u16 = 160;

/// A line: pieces of text, each with its role.
pub(super) type Spans = Vec<(String, Role)>;

/// A part of the page: a title and the lines below it.
pub(super) type Part = (String, Vec<Spans>);

/// The data and the terminal size from which the layout of the plan screen is computed.
pub(super) struct PageInputs<'a> {
    pub(super) world: &'a World,
    pub(super) target_info: &'a TargetInfo,
    pub(super) look: &'a Look,
    pub(super) tasks: &'a [Task],
    pub(super) now: Timestamp,
    /// The size of the area in which the plan screen draws: columns and rows.
    pub(super) size: (u16, u16),
    /// The number of terminal rows that are not free for the plan screen, because the frame, the tour and a notice
    /// use them.
    taken: u16,
}

impl<'a> PageInputs<'a> {
    pub(super) fn of_turn(turn: &Turn<'a>) -> Self {
        Self {
            world: turn.world,
            target_info: turn.target_info,
            look: turn.look,
            tasks: turn.tasks,
            now: turn.now,
            size: turn.body,
            taken: turn.size.1.saturating_sub(turn.body.1),
        }
    }

    pub(super) fn of_scene(scene: &Scene<'a>, sheet: &Sheet<'_>) -> Self {
        let model = scene.model;
        Self {
            world: scene.world,
            target_info: &model.target_info,
            look: &model.look,
            tasks: &model.tasks,
            now: sheet.now,
            size: (sheet.width(), sheet.height()),
            taken: model.size.1.saturating_sub(sheet.height()).max(FRAME),
        }
    }

    /// Returns the keys that run an action, as text for a message.
    pub(super) fn keys_for(&self, modes: &[Mode], action: Action) -> String {
        self.look.keymap.keys_or_word(modes, action)
    }

    pub(super) fn is_roomy(&self) -> bool {
        self.size.0 >= ROOMY.0 && self.size.1 >= ROOMY.1
    }

    /// Returns two columns of the screen: where labels start, and where values start.
    fn columns(&self) -> (usize, usize) {
        match self.size.0 < ROOMY.0 {
            true => (1, 7),
            false => (3, 13),
        }
    }

    /// Wraps a label and its value to lines that fit the screen.
    fn label(&self, name: &str, value: &str, role: Role) -> Vec<Spans> {
        let (indent, column) = self.columns();
        let width = usize::from(self.size.0).saturating_sub(column + 1).max(10);
        let first = format!("{:indent$}{name:<wide$}", "", wide = column - indent);
        // A label that fills its whole column needs an extra blank before the value.
        let first = match text::width(&first) > column || first.ends_with(|c| c != ' ') {
            true => format!("{} ", first.trim_end()),
            false => first,
        };
        let mut rows = Vec::new();
        for line in wrap(value, width.saturating_sub(text::width(&first) - column)) {
            let before = match rows.is_empty() {
                true => (first.clone(), Role::Muted),
                false => (" ".repeat(text::width(&first)), Role::Muted),
            };
            rows.push(vec![before, (line, role)]);
        }
        rows
    }
}

/// The layout of the plan screen for one terminal size.
#[derive(Default)]
pub(super) struct Page {
    /// The title row, with the time of the plan at its right end; None on a small screen.
    pub(super) title: Option<Spans>,
    /// The rows below the title that stay visible when the user scrolls.
    pub(super) top: Vec<Spans>,
    /// Whether a horizontal line with a title is above the scrolled lines.
    pub(super) rule: bool,
    pub(super) part: Part,
    /// A second part to the right of the first; None if the page has only one part.
    pub(super) beside: Option<Part>,
    /// The number of rows on the screen for the lines that scroll.
    pub(super) room: usize,
    /// The rows with the command line that does the same as the plan, below a horizontal line.
    pub(super) same: Vec<Spans>,
    /// The rows above the typed text that say what to type.
    pub(super) prompt: Vec<String>,
    /// Whether the page has a row for typed text or buttons.
    pub(super) asks: bool,
    /// The number of rows of the multi-line editor; 0 if the editor is closed.
    pub(super) editor: u16,
    /// The rows of the message at the bottom: missing input, the reason why the plan cannot be applied, or the
    /// progress.
    pub(super) message: Vec<Spans>,
    /// The reason why the user cannot read a production change at this terminal size; None if the user can.
    pub(super) unreadable: Option<String>,
    /// The times whose ages the page shows, because the screen must be drawn again when an age changes.
    pub(super) ages: Vec<Timestamp>,
}

impl Page {
    /// Computes the layout of a plan screen.
    pub(super) fn of(state: &State, sight: &PageInputs<'_>) -> Self {
        let mut page = Self::default();
        page.title(state, sight);
        match &state.stage {
            Stage::Planning => {
                page.scrolls(sight.label("", "Planning...", Role::Muted));
                if let Some(words) = state.dropped.words() {
                    page.scrolls(sight.label("dropped", &words, Role::Warning));
                }
            }
            Stage::Refused(refused) => {
                for why in &refused.why {
                    page.scrolls(sight.label("refused", why, Role::Error));
                }
                let keymap = &sight.look.keymap;
                let refusals = refused.refusals.iter();
                let hints = refusals.flat_map(|one| hints::of(one, keymap, sight.target_info));
                for hint in hints.chain(refused.hints.iter().cloned()) {
                    page.scrolls(sight.label("hint", &hint, Role::Text));
                }
            }
            Stage::Asking(prepared, shown, confirmation) => {
                page.asking(state, sight, prepared, shown, confirmation);
                return page;
            }
            Stage::Applying(prepared, shown) => {
                let words = "bowline writes the changes";
                page.message = sight.label("", words, Role::Progressing);
                let head = facts::head(state, sight, prepared);
                page.head(sight, head);
                page.changes(state, sight, prepared, shown);
            }
            Stage::Applied(prepared, shown, outcome) => {
                for block in facts::became(state, sight, outcome) {
                    page.scrolls(sight.label(block.name, &block.words, block.role));
                }
                page.changes(state, sight, prepared, shown);
            }
        }
        page.rule = matches!(state.stage, Stage::Applying(..));
        page.fit(sight);
        page
    }

    /// Returns the maximum scroll position: the last line is then at the bottom.
    pub(super) fn last(&self) -> usize {
        let beside = self.beside.as_ref().map_or(0, |(_, lines)| lines.len());
        let lines = self.part.1.len().max(beside);
        lines.saturating_sub(self.room)
    }

    fn title(&mut self, state: &State, sight: &PageInputs<'_>) {
        let width = usize::from(sight.size.0);
        let (verb, subject) = (state.command.verb(), state.command.subject());
        if sight.is_roomy() && text::width(&subject) + text::width(verb) + 4 <= width {
            self.title = Some(vec![
                (format!(" {verb}  "), Role::PlanTitle),
                (subject, Role::Title),
            ]);
            return;
        }
        let words = format!("{verb} {}", state.command.short_subject());
        for line in wrap(&words, width.saturating_sub(1)) {
            self.top.push(vec![(format!(" {line}"), Role::Title)]);
        }
    }

    fn scrolls(&mut self, lines: Vec<Spans>) {
        self.part.1.extend(lines);
    }

    /// Puts the essential rows at the top, and the other rows above the diffs.
    fn head(&mut self, sight: &PageInputs<'_>, head: Head) {
        self.ages.extend(&head.ages);
        let blocks = self.essential(sight, &head);
        for block in blocks.iter().chain(&head.blocks) {
            self.scrolls(sight.label(block.name, &block.words, block.role));
        }
        self.scrolls(set(&head.set, sight));
    }

    /// Puts the essential rows at the top; returns their details that do not fit there.
    fn essential(&mut self, sight: &PageInputs<'_>, head: &Head) -> Vec<Block> {
        let mut left = Vec::new();
        for row in &head.essential {
            let alone = sight.label(row.name, &row.value, Role::Text);
            let both = format!("{}   {}", row.value, row.detail);
            let both = sight.label(row.name, both.trim_end(), Role::Text);
            // Wrapping would remove the gap before the detail, so a row that fits on one line is built without
            // wrapping.
            let gap = text::width(&row.detail) + 3;
            let wide: usize = alone.iter().flatten().map(|(it, _)| text::width(it)).sum();
            let on_one = alone.len() == 1 && wide + gap < usize::from(sight.size.0);
            match both.len() == alone.len() || sight.is_roomy() {
                true if on_one && !row.detail.is_empty() => {
                    let detail = format!("   {}", text::line(&row.detail));
                    let mut alone = alone;
                    if let Some(last) = alone.last_mut() {
                        last.push((detail, Role::Text));
                    }
                    self.top.extend(alone);
                }
                true => self.top.extend(both),
                false => {
                    self.top.extend(alone);
                    left.push(Block {
                        name: row.about,
                        words: row.detail.clone(),
                        role: Role::Text,
                    });
                }
            }
        }
        left
    }

    fn asking(
        &mut self,
        state: &State,
        sight: &PageInputs<'_>,
        prepared: &PlannedCommand,
        shown: &Shown,
        confirmation: &ConfirmationLine,
    ) {
        let head = facts::head(state, sight, prepared);
        self.ages.extend(&head.ages);
        let height = usize::from(sight.size.1);
        let details = self.essential(sight, &head);
        self.asks = true;
        self.prompt(sight, confirmation);
        let needed = self.fixed() + 1;
        self.unreadable = unreadable(sight, prepared, needed);
        if needed > height {
            self.compact(state, sight, &head);
        }
        if confirmation.editor {
            let most = height.saturating_sub(self.fixed() + 2).clamp(1, 4);
            self.editor = u16::try_from(most).unwrap_or(1);
        }
        self.message(state, sight, confirmation);
        let reason = state.typed_reason();
        let same = state
            .command
            .aimed(reason.as_deref(), &sight.target_info.address);
        let same = sight.label("same as", &same, Role::Muted);
        self.rule = self.fixed() + 2 <= height;
        let mut below = true;
        if sight.is_roomy() && self.fixed() + same.len() + 2 + CHANGES <= height {
            self.same.clone_from(&same);
            below = false;
        }
        // Rows go to the top while enough rows remain for the diffs. All other rows scroll: warnings above the diffs,
        // the rest below them.
        let mut after = Vec::new();
        let mut full = !sight.is_roomy();
        for block in head.blocks.iter().chain(&details) {
            let rows = sight.label(block.name, &block.words, block.role);
            full = full || self.fixed() + rows.len() + CHANGES >= height;
            match (full, block.role) {
                (false, _) => self.top.extend(rows),
                (true, Role::Error | Role::Warning) => self.scrolls(rows),
                (true, _) => after.extend(rows),
            }
        }
        self.scrolls(set(&head.set, sight));
        self.changes(state, sight, prepared, shown);
        self.scrolls(after);
        if below {
            self.scrolls(same);
        }
        self.fit(sight);
    }

    /// Uses one line each for the title and the essential rows, and cuts long names in the middle.
    fn compact(&mut self, state: &State, sight: &PageInputs<'_>, head: &Head) {
        let (indent, column) = sight.columns();
        let width = usize::from(sight.size.0);
        let title = format!("{} {}", state.command.verb(), state.command.short_subject());
        let title = text::fit_name(&title, width.saturating_sub(2));
        self.title = None;
        self.top = vec![vec![(format!(" {title}"), Role::Title)]];
        for row in &head.essential {
            let name = format!("{:indent$}{:<wide$}", "", row.name, wide = column - indent);
            let value = text::fit_name(&row.value, width.saturating_sub(column + 1));
            self.top
                .push(vec![(name, Role::Muted), (value, Role::Text)]);
        }
    }

    /// Places the prompt to the left of the typed text, or above it on a narrow screen.
    fn prompt(&mut self, sight: &PageInputs<'_>, confirmation: &ConfirmationLine) {
        let (indent, _) = sight.columns();
        let width = usize::from(sight.size.0).saturating_sub(indent + 1);
        let words = match confirmation.editor {
            true => format!("{}, in several lines", confirmation.needed.prompt_or_why()),
            false => confirmation.needed.prompt(),
        };
        let beside = text::width(&words) + 1 + TYPED <= width;
        if !beside && confirmation.takes_text() {
            self.prompt = wrap(&words, width);
        }
    }

    /// Adds the message about the typed text, or the reason why the plan cannot be applied, whatever the user types.
    fn message(&mut self, state: &State, sight: &PageInputs<'_>, confirmation: &ConfirmationLine) {
        let obstacle = state.obstacle(sight).or_else(|| self.unreadable.clone());
        // On a small screen, leave out this message, because the rows about the changed facts need its room. The
        // footer names the key that makes the plan again.
        let obstacle = obstacle.filter(|_| state.stale.is_empty() || sight.is_roomy());
        let (words, role) = match (&confirmation.complaint, obstacle) {
            (Some(complaint), _) => (complaint.clone(), Role::Error),
            (None, Some(obstacle)) => (obstacle, Role::Warning),
            (None, None) => return,
        };
        let (indent, _) = sight.columns();
        let width = usize::from(sight.size.0).saturating_sub(indent + 1);
        let mut lines = wrap(&words, width);
        // The message is more important than the diffs, so on a small screen it uses their rows.
        let room = usize::from(sight.size.1).saturating_sub(self.fixed());
        let room = room.clamp(1, 3);
        if lines.len() > room {
            lines.truncate(room);
            if let Some(last) = lines.last_mut() {
                *last = text::fit(&format!("{last} {}", text::ELLIPSIS), width);
            }
        }
        let row = |line: String| vec![(format!("{:indent$}{line}", ""), role)];
        self.message = lines.into_iter().map(row).collect();
    }

    fn changes(
        &mut self,
        state: &State,
        sight: &PageInputs<'_>,
        prepared: &PlannedCommand,
        shown: &Shown,
    ) {
        let files = state.files.as_deref();
        let (width, _) = sight.size;
        let abreast = files.is_some() && width >= ABREAST;
        let columns = usize::from(if abreast { width / 2 } else { width });
        let arrow = sight.look.glyphs.arrow;
        let objects = changes::objects(prepared, shown, arrow, columns);
        let files = files.map(|files| changes::in_files(files, columns));
        let (first, second) = match files {
            Some(files) => (Some(files), objects),
            None => (objects, None),
        };
        if let Some((title, lines)) = first {
            self.part.0 = title;
            self.scrolls(lines);
        }
        match second {
            None => {}
            Some(second) if abreast => self.beside = Some(second),
            Some((title, lines)) => {
                self.scrolls(vec![vec![(format!("   {title}"), Role::Title)]]);
                self.scrolls(lines);
            }
        }
    }

    /// Returns the number of rows that stay visible when the user scrolls.
    fn fixed(&self) -> usize {
        let same = match self.same.len() {
            0 => 0,
            rows => rows + 1,
        };
        usize::from(self.title.is_some())
            + self.top.len()
            + same
            + self.prompt.len()
            + usize::from(self.asks)
            + usize::from(self.editor)
            + self.message.len()
    }

    /// Computes how many rows remain for the lines that scroll. On a very small screen, first drops the prompt and
    /// then the top rows.
    fn fit(&mut self, sight: &PageInputs<'_>) {
        let height = usize::from(sight.size.1);
        self.rule &= !self.part.1.is_empty();
        // If the rows below the top do not fit, drop the prompt first. If there is a message, then drop the typed
        // text too, because the message is more important.
        let below = |page: &Self| page.fixed() - page.top.len();
        if below(self) > height {
            self.prompt.clear();
        }
        if below(self) > height && !self.message.is_empty() {
            self.asks = false;
        }
        self.top.truncate(height.saturating_sub(below(self)));
        // A single free row shows a change and not the rule, so that the user can read and scroll the changes.
        self.rule &= height.saturating_sub(self.fixed()) > 1;
        self.room = height.saturating_sub(self.fixed() + usize::from(self.rule));
    }
}

/// Returns the reason why the user cannot read a production change at this terminal size, with the required size.
/// None for other plans, or if the size is sufficient.
fn unreadable(sight: &PageInputs<'_>, prepared: &PlannedCommand, needed: usize) -> Option<String> {
    let production = prepared
        .plan()
        .is_some_and(|plan| plan.production().is_some());
    let (width, height) = sight.size;
    let needed = u16::try_from(needed).unwrap_or(u16::MAX);
    if !production || (width >= SMALLEST.0 && height >= needed) {
        return None;
    }
    // If the screen is also too narrow, the message names the minimum supported width.
    let wide = width.max(SMALLEST.0);
    let high = needed.saturating_add(sight.taken).max(SMALLEST.1);
    let is = height.saturating_add(sight.taken);
    Some(format!(
        "needs {wide}x{high} for a change of production, has {width}x{is}"
    ))
}

/// Wraps the rows of a plan for several components to the width of the screen.
fn set(rows: &[Spans], sight: &PageInputs<'_>) -> Vec<Spans> {
    let (indent, _) = sight.columns();
    let width = usize::from(sight.size.0).saturating_sub(1);
    let mut lines = Vec::new();
    for row in rows {
        let wide: usize = row.iter().map(|(words, _)| text::width(words)).sum();
        let mut first = vec![(" ".repeat(indent), Role::Muted)];
        match (indent + wide <= width, row.split_first()) {
            (false, Some((name, rest))) => {
                first.push(name.clone());
                lines.push(first);
                let words: String = rest.iter().map(|(words, _)| words.as_str()).collect();
                for line in wrap(&words, width.saturating_sub(indent + 2)) {
                    lines.push(vec![(format!("{:indent$}  {line}", ""), Role::Text)]);
                }
            }
            _ => {
                first.extend(row.iter().cloned());
                lines.push(first);
            }
        }
    }
    lines
}
