//! Draws the plan screen: its page, the typed text, and the buttons.

use ratatui::layout::Rect;

use super::page::{Page, PageInputs, Part, Spans};
use super::{Stage, State};
use crate::action::Action;
use crate::confirm::ConfirmationLine;
use crate::pen::{Pen, Sheet};
use crate::screens::Scene;
use crate::text;
use crate::theme::Role;

/// Below this screen width, in columns, a button does not fit next to the typed text.
const NARROW: u16 = 60;

impl State {
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let page = Page::of(self, &PageInputs::of_scene(scene, sheet));
        for at in &page.ages {
            // The page has already formatted this age. Call `age` only to record when its text changes.
            sheet.age(*at);
        }
        if let Some(due) = self.due() {
            sheet.turn(due);
        }
        let mut row = 0;
        if let Some(title) = &page.title {
            let live = match scene.world.is_current() {
                true => "from live data",
                false => "from stale data",
            };
            let clock = scene.model.target_info.clock(self.opened, sheet.now);
            let mut pen = sheet.line(0);
            put(&mut pen, title);
            pen.right(&format!("  plan of {clock}, {live} "), Role::Muted);
            row += 1;
        }
        row = rows(sheet, row, &page.top);
        let lines = u16::try_from(page.room).unwrap_or(u16::MAX);
        let height = lines + u16::from(page.rule);
        let area = sheet.rows(row, height).area;
        let keymap = &scene.model.look.keymap;
        let scrolls = keymap.keys_for(self.modes(), Action::Down);
        let scrolls = scrolls.unwrap_or_default();
        match &page.beside {
            None => self.part(&mut sheet.part(area), &page, &page.part, &scrolls),
            Some(beside) => {
                let half = area.width / 2;
                let side = |x, width| Rect { x, width, ..area };
                let left = side(area.x, half);
                self.part(&mut sheet.part(left), &page, &page.part, &scrolls);
                let right = side(area.x + half, area.width - half);
                self.part(&mut sheet.part(right), &page, beside, &scrolls);
            }
        }
        row += height;
        if !page.same.is_empty() {
            sheet.rule(row, "", Role::Border);
            row = rows(sheet, row + 1, &page.same);
        }
        if let Stage::Asking(_, _, confirmation) = &self.stage
            && page.asks
        {
            let sight = PageInputs::of_scene(scene, sheet);
            let apply = sight.keys_for(self.modes(), Action::Apply);
            row = self.ask(sheet, row, &page, confirmation, &apply);
        }
        rows(sheet, row, &page.message);
    }

    /// Draws a part of the page: its title, and its lines from the scroll position on. `scrolls` names the keys that
    /// scroll.
    fn part(&self, sheet: &mut Sheet<'_>, page: &Page, (title, lines): &Part, scrolls: &str) {
        let first = self.scroll.min(page.last());
        let mut row = 0;
        if page.rule {
            let seen = match lines.len() > page.room {
                false => String::new(),
                true => {
                    let (from, to) = (first + 1, (first + page.room).min(lines.len()));
                    format!("  {from}-{to} of {}  {scrolls} scrolls", lines.len())
                }
            };
            let room = usize::from(sheet.width()).saturating_sub(6);
            let short = title.split([':', ',']).next().unwrap_or_default();
            let title = match text::width(title) + text::width(&seen) <= room {
                true if title.is_empty() => "details",
                true => title,
                false => short,
            };
            let title = text::fit(&format!("{title}{seen}"), room);
            sheet.rule(0, &title, Role::Title);
            row = 1;
        }
        let end = first.saturating_add(page.room).min(lines.len());
        rows(sheet, row, lines.get(first..end).unwrap_or_default());
        let last = u16::try_from(end.saturating_sub(first + 1)).unwrap_or_default();
        if !page.rule && first < end && end < lines.len() {
            // There is no room for a title, so the last line names the keys that scroll, if its text leaves room.
            let mut pen = sheet.line(last);
            put(&mut pen, &lines[end - 1]);
            pen.right(&format!("  {scrolls} scrolls "), Role::Title);
        }
    }

    /// Draws the confirmation of the plan; returns the index of the next free row of the sheet.
    fn ask(
        &self,
        sheet: &mut Sheet<'_>,
        mut row: u16,
        page: &Page,
        confirmation: &ConfirmationLine,
        key: &str,
    ) -> u16 {
        let end = sheet.width();
        let indent = if end < NARROW { 1 } else { 3 };
        for line in &page.prompt {
            sheet.line(row).skip(indent).put(line, Role::Prompt);
            row += 1;
        }
        // On a narrow screen, there is no Cancel button next to the typed text; the key esc still cancels.
        let button = match confirmation.takes_text() && end < NARROW {
            true => 0,
            false => 11,
        };
        let mut pen = sheet.line(row);
        match confirmation.needed.is_key() {
            true => {
                let (cancel, apply) = match confirmation.apply {
                    true => (Role::Button, Role::ButtonFocused),
                    false => (Role::ButtonFocused, Role::Button),
                };
                let button = format!("[ {key} apply ]");
                let wide = u16::try_from(text::width(&button)).unwrap_or(11);
                pen.to(end.saturating_sub(wide + 13))
                    .put("[ Cancel ]", cancel)
                    .skip(1)
                    .put(&button, apply);
            }
            false if button > 0 => {
                pen.to(end.saturating_sub(button))
                    .put("[ Cancel ]", Role::ButtonFocused);
            }
            false => {}
        }
        if matches!(&self.stage, Stage::Asking(prepared, ..) if prepared.is_idle()) {
            let mut pen = sheet.line(row);
            pen.skip(indent).put("nothing would change", Role::Muted);
            return row + 1;
        }
        let mut pen = sheet.line(row);
        pen.skip(indent);
        if page.prompt.is_empty() && confirmation.takes_text() {
            let words = match confirmation.editor {
                true => format!("{}, in several lines", confirmation.needed.prompt_or_why()),
                false => confirmation.needed.prompt(),
            };
            pen.put(&words, Role::Prompt).skip(1);
        }
        let column = pen.column();
        row += 1;
        let area = sheet.area;
        let typed = match confirmation.editor {
            true => Rect {
                x: area.x + indent,
                y: area.y + row,
                width: end.saturating_sub(2 * indent),
                height: page.editor,
            },
            false => Rect {
                x: area.x + column,
                y: area.y + row - 1,
                width: end.saturating_sub(column + button + 1),
                height: 1,
            },
        };
        if confirmation.takes_text() {
            sheet.part(typed).widget(&confirmation.text);
        }
        row + page.editor
    }
}

/// Draws rows from top to bottom; returns the index of the next free row of the sheet.
fn rows(sheet: &mut Sheet<'_>, row: u16, lines: &[Spans]) -> u16 {
    let mut row = row;
    for line in lines {
        put(&mut sheet.line(row), line);
        row += 1;
    }
    row
}

fn put(pen: &mut Pen<'_>, spans: &Spans) {
    for (words, role) in spans {
        pen.put(words, *role);
    }
}
