//! Draws the audit screen.

use super::{Shown, Standing, State, word};
use crate::engine::audit::Finding;
use crate::pen::Sheet;
use crate::screens::{Scene, is_bad};
use crate::text;
use crate::theme::Role;
use crate::widgets::table::{self, Cell, Column, Line, MARGIN, Window, bad, cell};
use crate::widgets::wrap;

const COLUMNS: &[Column] = &[
    Column::new("", 1, 100),
    Column::new("WHEN", 16, 82),
    Column::new("WHO", 8, 80),
    Column::new("WHAT", 8, 85),
    Column::new("WHERE", 18, 95).named(),
    Column::new("CHANGE", 14, 70),
    Column::new("WHY", 14, 60),
];

impl State {
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        if self.stale
            && let Ok(at) = self.asked.checked_add(super::PAUSE)
        {
            sheet.turn(at);
        }
        let whole = match &self.read {
            None => {
                sheet
                    .line(1)
                    .skip(MARGIN)
                    .put("Loading and verifying the audit trail...", Role::Muted);
                return;
            }
            Some(Err(why)) => {
                let width = usize::from(sheet.width().saturating_sub(MARGIN + 1));
                for (row, line) in (1..).zip(wrap(why, width)) {
                    sheet.line(row).skip(MARGIN).put(&line, Role::Error);
                }
                return;
            }
            Some(Ok(whole)) => whole,
        };
        let problems = &whole.record.verdict.problems;
        let bars = bar(sheet, problems);
        let height = sheet.height().saturating_sub(bars);
        let mut below = sheet.rows(bars, height);
        let (first, seen) = self.rows.window(usize::from(height.saturating_sub(1)));
        let lines: Vec<Line> = seen
            .into_iter()
            .map(|(selected, shown)| line(&below, scene, selected, shown))
            .collect();
        let window = Window {
            first,
            count: self.rows.len(),
        };
        table::draw(&mut below, COLUMNS, &lines, window);
        if lines.is_empty() {
            let words = match self.rows.total() {
                0 => "no audit entries yet".to_owned(),
                _ => scene.no_match(),
            };
            below.line(2).skip(MARGIN).put(&words, Role::Muted);
        }
    }
}

/// Draws one bar for each problem that the verification found. Returns the number of used rows.
pub(super) fn bar(sheet: &mut Sheet<'_>, problems: &[Finding]) -> u16 {
    let most = usize::from(sheet.height() / 4).clamp(1, 3);
    let shown = problems.len().min(most);
    for (row, problem) in (0..).zip(problems.iter().take(shown)) {
        let more = problems.len() - shown;
        let mut words = format!(
            "{}  {}: {}",
            problem.severity.to_string().to_uppercase(),
            problem.object,
            problem.what
        );
        if usize::from(row) + 1 == shown && more > 0 {
            words += &format!("  (and {more} more)");
        }
        let mut pen = sheet.line(row);
        pen.over(Role::Armed)
            .skip(1)
            .put(&words, Role::Armed)
            .rest();
    }
    u16::try_from(shown).unwrap_or_default()
}

fn line(sheet: &Sheet<'_>, scene: &Scene<'_>, selected: bool, shown: &Shown) -> Line {
    let row = &shown.row;
    let glyphs = sheet.glyphs;
    let sign = match shown.standing {
        Standing::Whole => cell(glyphs.check, Role::Good),
        Standing::Doubted => cell("!", Role::Warning),
        Standing::Broken => cell(glyphs.degraded, Role::Error),
    };
    let mut when = cell(
        scene.model.target_info.clock(row.at, sheet.now),
        Role::Muted,
    );
    if row.clock_disagrees {
        when.push((" ?".to_owned(), Role::Warning));
    }
    let who = match &row.actor {
        Some(actor) => cell(actor, Role::Text),
        None => cell("unattributed", Role::Warning),
    };
    Line {
        cells: vec![
            sign,
            when,
            who,
            cell(word(row), Role::Text),
            cell(&shown.place, Role::Text),
            change(sheet, scene, shown),
            match &row.reason {
                Some(reason) => cell(format!("\"{}\"", text::line(reason)), Role::Muted),
                None => Vec::new(),
            },
        ],
        selected,
        marked: false,
    }
}

/// Returns the table cell with the old and the new release. Leaves out the component at the start of the release
/// names.
fn change(sheet: &Sheet<'_>, scene: &Scene<'_>, shown: &Shown) -> Cell {
    let row = &shown.row;
    let namespace = &scene.model.target_info.namespace;
    let marked = |name: &Option<String>| {
        let name = name.as_ref();
        name.filter(|name| is_bad(scene.world, namespace, name))
            .map(|_| bad())
    };
    let short = |name: &String| {
        let rest = name
            .strip_prefix(&shown.component)
            .and_then(|rest| rest.strip_prefix('-'));
        rest.unwrap_or(name).to_owned()
    };
    let (from, to) = (row.from.as_ref().map(short), row.to.as_ref().map(short));
    match (from, to) {
        (Some(from), Some(to)) if from == to => {
            let to = cell(to, Role::Muted).into_iter();
            to.chain(marked(&row.to)).collect()
        }
        (Some(from), Some(to)) => {
            let from = cell(from, Role::Muted).into_iter().chain(marked(&row.from));
            let arrow = (format!(" {} ", sheet.glyphs.arrow), Role::Muted);
            let to = [arrow, (to, Role::Text)].into_iter();
            from.chain(to).chain(marked(&row.to)).collect()
        }
        (Some(from), None) => {
            let from = cell(from, Role::Muted).into_iter();
            from.chain(marked(&row.from)).collect()
        }
        (None, Some(to)) => {
            let to = cell(to, Role::Text).into_iter();
            to.chain(marked(&row.to)).collect()
        }
        (None, None) => Vec::new(),
    }
}
