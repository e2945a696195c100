//! The only way to draw on the screen: bowline removes control characters from every text, and cuts the text to the
//! available width.
//!
//! A [`Sheet`] is a rectangle of the screen; a [`Pen`] writes one line of it from left to right. Screens format every
//! age with [`Sheet::age`], which records the time at which the text of the age changes. The event loop draws the
//! screen again at that time, if no event comes earlier.

use std::cell::{Cell, RefCell};

use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::terminal::links::{self, Link};
use super::theme::{Role, Theme};
use crate::text;

/// The symbols that screens draw, in one character set.
#[derive(Debug, PartialEq, Eq)]
pub struct Glyphs {
    /// The symbol of a cell with the health Ready.
    pub ready: &'static str,
    /// The symbol of a cell with the health Progressing.
    pub progressing: &'static str,
    /// The symbol of a cell with the health Degraded.
    pub degraded: &'static str,
    /// The symbol of a suspended workload.
    pub suspended: &'static str,
    /// The symbol of a cell with the health Unknown.
    pub unknown: &'static str,
    /// The symbol of an empty cell of the matrix: nothing is deployed.
    pub nothing: &'static str,
    /// The symbol of a cell that is behind an earlier environment; the number of revisions follows the symbol.
    pub behind: &'static str,
    /// The symbol of a cell with an active hold.
    pub held: &'static str,
    /// The symbol of a cell whose hold has expired.
    pub expired: &'static str,
    /// The symbol before the revision that a rollback restores.
    pub back: &'static str,
    /// The arrow between an old and a new value.
    pub arrow: &'static str,
    /// The symbol at the left of the selected row.
    pub cursor: &'static str,
    /// The symbol of a row that the user has marked.
    pub marked: &'static str,
    /// The character that repeats to form a horizontal line.
    pub rule: &'static str,
    /// The separator between words of a header.
    pub dot: &'static str,
    /// The character that repeats to form a vertical line.
    pub bar: &'static str,
    pub check: &'static str,
    /// The handle of a scrollbar.
    pub thumb: &'static str,
    /// The arrow at a column that is sorted in ascending order.
    pub rising: &'static str,
    /// The arrow at a column that is sorted in descending order.
    pub falling: &'static str,
    pub caret: &'static str,
}

impl Glyphs {
    /// Returns the arrow for the column by which the rows are sorted.
    pub fn sorted(&self, falling: bool) -> &'static str {
        match falling {
            true => self.falling,
            false => self.rising,
        }
    }
}

pub const UNICODE: Glyphs = Glyphs {
    ready: "●",
    progressing: "◐",
    degraded: "✖",
    suspended: "◌",
    unknown: "?",
    nothing: "·",
    behind: "↑",
    held: "⚓",
    expired: "†",
    back: "⤺",
    arrow: "→",
    cursor: "▸",
    marked: "◆",
    rule: "─",
    dot: "▪",
    bar: "│",
    check: "✓",
    thumb: "▐",
    rising: "▲",
    falling: "▼",
    caret: "█",
};

pub const ASCII: Glyphs = Glyphs {
    ready: "*",
    progressing: "~",
    degraded: "!",
    suspended: "-",
    unknown: "?",
    nothing: ".",
    behind: "^",
    held: "[H]",
    expired: "[h]",
    back: "<-",
    arrow: "->",
    cursor: ">",
    marked: "+",
    rule: "-",
    dot: "|",
    bar: "|",
    check: "v",
    thumb: "#",
    rising: "^",
    falling: "v",
    caret: "_",
};

/// Returns the ASCII character that is most similar to a Unicode character.
fn ascii(character: char) -> char {
    match character {
        text::ELLIPSIS => '~',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '─' | '━' => '-',
        '│' | '┃' | '▐' => '|',
        '├' | '└' | '┌' | '┐' | '┘' | '┤' | '┬' | '┴' | '┼' => '+',
        '→' | '▸' => '>',
        '←' => '<',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        '•' | '·' => '.',
        _ => '?',
    }
}

/// Data of a frame that the cells of its buffer cannot store, such as links.
#[derive(Default)]
pub struct Notes {
    /// The earliest time at which a drawn label, such as an age, changes; None if no label changes.
    pub turns: Cell<Option<Timestamp>>,
    /// The areas of the frame that are links.
    pub links: RefCell<Vec<Link>>,
}

/// A rectangle of the screen to draw on.
pub struct Sheet<'a> {
    buffer: &'a mut Buffer,
    /// The position and size of the sheet on the screen.
    pub area: Rect,
    pub theme: &'a Theme,
    pub glyphs: &'static Glyphs,
    pub now: Timestamp,
    notes: &'a Notes,
}

impl<'a> Sheet<'a> {
    /// Returns a sheet for a whole buffer. Drawing on the sheet also records links and label changes in `notes`.
    pub fn new(
        buffer: &'a mut Buffer,
        theme: &'a Theme,
        glyphs: &'static Glyphs,
        now: Timestamp,
        notes: &'a Notes,
    ) -> Self {
        let area = buffer.area;
        Self {
            buffer,
            area,
            theme,
            glyphs,
            now,
            notes,
        }
    }

    /// Returns a sheet for the part of this sheet that lies in `area`.
    pub fn part(&mut self, area: Rect) -> Sheet<'_> {
        Sheet {
            area: area.intersection(self.area),
            buffer: self.buffer,
            theme: self.theme,
            glyphs: self.glyphs,
            now: self.now,
            notes: self.notes,
        }
    }

    /// Returns a sheet for `count` rows of this sheet, from the row `first`. Rows below its last row are left out.
    pub fn rows(&mut self, first: u16, count: u16) -> Sheet<'_> {
        let first = first.min(self.area.height);
        let area = Rect {
            y: self.area.y + first,
            height: count.min(self.area.height - first),
            ..self.area
        };
        self.part(area)
    }

    pub fn width(&self) -> u16 {
        self.area.width
    }

    pub fn height(&self) -> u16 {
        self.area.height
    }

    /// Returns a pen that writes a line of the sheet. If the row is below the sheet, the pen ignores all text.
    pub fn line(&mut self, row: u16) -> Pen<'_> {
        let inside = row < self.area.height;
        Pen {
            x: self.area.x,
            start: self.area.x,
            end: if inside {
                self.area.right()
            } else {
                self.area.x
            },
            y: self.area.y.saturating_add(row),
            base: Style::new(),
            theme: self.theme,
            links: &self.notes.links,
            buffer: self.buffer,
        }
    }

    /// Fills a row with the background of a role. Text that is written to the row later keeps this background.
    pub fn fill(&mut self, row: u16, role: Role) {
        if row < self.area.height {
            let style = self.theme.style(role);
            let area = Rect {
                y: self.area.y + row,
                height: 1,
                ..self.area
            };
            self.buffer.set_style(area, style);
        }
    }

    /// Draws a horizontal line across the sheet, with a title in it unless `title` is empty.
    pub fn rule(&mut self, row: u16, title: &str, role: Role) {
        let rule = self.glyphs.rule;
        let mut pen = self.line(row);
        pen.put(" ", Role::Border).put(rule, Role::Border);
        if !title.is_empty() {
            pen.put(" ", Role::Border).put(title, role).put(" ", role);
        }
        while pen.room() > 1 {
            pen.put(rule, Role::Border);
        }
    }

    /// Clears the cells and links of the sheet, so that a screen can draw a popup over other content.
    pub fn clear(&mut self) {
        let mut links = self.notes.links.borrow_mut();
        links.retain(|link| !link.area.intersects(self.area));
        drop(links);
        for y in self.area.top()..self.area.bottom() {
            for x in self.area.left()..self.area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }

    /// Formats the time since `since`, and records when the text changes.
    pub fn age(&self, since: Timestamp) -> String {
        let seconds = self.now.duration_since(since).as_secs();
        let step = match seconds {
            ..600 => 1,
            600..10_800 => 60,
            10_800..28_800 => 60,
            28_800..172_800 => 3_600,
            172_800..691_200 => 3_600,
            _ => 86_400,
        };
        let next = seconds.max(0) / step * step + step;
        if let Ok(at) = since.checked_add(SignedDuration::from_secs(next)) {
            self.turn(at);
        }
        text::age(seconds.max(0))
    }

    /// Records that a drawn label changes at this time, so that the event loop draws a new frame
    /// then.
    pub fn turn(&self, at: Timestamp) {
        let turns = &self.notes.turns;
        let sooner = turns.get().is_none_or(|known| at < known);
        if sooner && at > self.now {
            turns.set(Some(at));
        }
    }

    /// Replaces every non-ASCII character in the buffer by a similar ASCII character, if the user's character set is
    /// ASCII. Otherwise does nothing.
    pub fn to_ascii(&mut self) {
        if *self.glyphs != ASCII {
            return;
        }
        for cell in &mut self.buffer.content {
            let symbol = cell.symbol();
            if !symbol.is_ascii() {
                let plain = symbol.chars().next().map_or('?', ascii);
                // The cell after a wide character is empty; terminals show it as a blank.
                cell.set_char(plain);
            }
        }
    }

    /// Draws a ratatui widget. The text of the widget must come from the user and not from a cluster, because nothing
    /// removes control characters from it.
    pub fn widget(&mut self, widget: impl ratatui::widgets::Widget) {
        widget.render(self.area, self.buffer);
    }
}

/// Writes one line of a sheet from left to right.
pub struct Pen<'a> {
    buffer: &'a mut Buffer,
    theme: &'a Theme,
    links: &'a RefCell<Vec<Link>>,
    start: u16,
    x: u16,
    end: u16,
    y: u16,
    base: Style,
}

impl Pen<'_> {
    /// Gives all following text on the line the background of a role.
    pub fn over(&mut self, role: Role) -> &mut Self {
        self.base = self.theme.style(role);
        self
    }

    /// Ends the background that [`Pen::over`] added.
    pub fn plain(&mut self) -> &mut Self {
        self.base = Style::new();
        self
    }

    /// Writes a text without its control characters, cut to the free columns of the line.
    pub fn put(&mut self, text: &str, role: Role) -> &mut Self {
        self.styled(text, self.theme.style(role))
    }

    /// Writes a text as a link to `url`. If `url` is not a web address, writes only the text.
    pub fn link(&mut self, text: &str, role: Role, url: &str) -> &mut Self {
        let x = self.x;
        self.put(text, role);
        let area = Rect::new(x, self.y, self.x - x, 1);
        if area.width > 0 {
            self.links.borrow_mut().extend(Link::new(area, url));
        }
        self
    }

    /// Writes a text, and makes the web addresses in it links.
    pub fn put_linking(&mut self, text: &str, role: Role) -> &mut Self {
        let mut written = 0;
        for found in links::addresses(text) {
            let between = text.get(written..found.start).unwrap_or_default();
            let url = text.get(found.clone()).unwrap_or_default();
            self.put(between, role).link(url, role, url);
            written = found.end;
        }
        self.put(text.get(written..).unwrap_or_default(), role)
    }

    /// Writes one line of a wrapped text, and makes web addresses links. An address at the end of a full line becomes
    /// no link, because it may continue on the next line.
    pub fn put_wrapped(&mut self, line: &str, width: usize, role: Role) -> &mut Self {
        let last = links::addresses(line).pop();
        match last.is_some_and(|last| last.end == line.len()) && text::width(line) >= width {
            true => self.put(line, role),
            false => self.put_linking(line, role),
        }
    }

    /// Writes a text in this style.
    pub fn styled(&mut self, text: &str, style: Style) -> &mut Self {
        let room = self.room();
        if room == 0 || text.is_empty() {
            return self;
        }
        // The background of the row overrides the style of the text, so that the selected row stays visible.
        let style = style.patch(self.base);
        let fitted;
        let text = match text.len() <= room && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        {
            true => text,
            false => {
                fitted = text::fit(text, room);
                fitted.as_str()
            }
        };
        let (x, _) = self.buffer.set_stringn(self.x, self.y, text, room, style);
        self.x = x;
        self
    }

    /// Writes a text in a column of `width`, cut or padded with blanks.
    pub fn cell(&mut self, text: &str, width: u16, role: Role) -> &mut Self {
        let end = self.x.saturating_add(width);
        let cut = text::fit(text, usize::from(width));
        self.put(&cut, role);
        self.advance(end)
    }

    /// Writes a text at the right side of a column of `width`, cut or padded with blanks.
    pub fn cell_right(&mut self, text: &str, width: u16, role: Role) -> &mut Self {
        let end = self.x.saturating_add(width);
        let cut = text::fit(text, usize::from(width));
        let wide = u16::try_from(text::width(&cut)).unwrap_or(width);
        self.advance(end.saturating_sub(wide));
        self.put(&cut, role);
        self.advance(end)
    }

    /// Writes blanks up to a column, counted from the left edge of the sheet.
    pub fn to(&mut self, column: u16) -> &mut Self {
        self.advance(self.start.saturating_add(column))
    }

    /// Writes this number of blanks.
    pub fn skip(&mut self, columns: u16) -> &mut Self {
        self.advance(self.x.saturating_add(columns))
    }

    fn advance(&mut self, to: u16) -> &mut Self {
        let to = to.min(self.end);
        while self.x < to {
            let (x, _) = self.buffer.set_stringn(self.x, self.y, " ", 1, self.base);
            self.x = x;
        }
        self
    }

    /// Writes a text at the right end of the line. Writes nothing if the text does not fit.
    pub fn right(&mut self, text: &str, role: Role) -> &mut Self {
        let wide = text::width(text);
        if wide <= self.room() {
            let at = self.end - u16::try_from(wide).unwrap_or(0);
            self.advance(at);
            self.put(text, role);
        }
        self
    }

    /// Moves the end of the line to a column, counted from the left edge of the sheet. The pen cuts later text there.
    pub fn until(&mut self, columns: u16) -> &mut Self {
        self.end = self.end.min(self.start.saturating_add(columns)).max(self.x);
        self
    }

    /// Fills the rest of the line with blanks.
    pub fn rest(&mut self) -> &mut Self {
        self.advance(self.end)
    }

    pub fn room(&self) -> usize {
        usize::from(self.end.saturating_sub(self.x))
    }

    /// Returns the column of the next text, counted from the left edge of the sheet.
    pub fn column(&self) -> u16 {
        self.x - self.start
    }
}
