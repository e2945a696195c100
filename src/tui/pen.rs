//! The one way onto the screen: every text is cleaned and cut on its way into a cell.
//!
//! A [`Sheet`] is a part of the screen, a [`Pen`] writes one line of it from left to right. Whatever shows
//! an age goes through [`Sheet::age`], which notes when the label turns over: nothing else has to be drawn
//! again while nothing happens.

use std::cell::{Cell, RefCell};

use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::terminal::links::{self, Link};
use super::theme::{Role, Theme};
use crate::text;

/// The characters that stand for things, in Unicode or in ASCII.
#[derive(Debug, PartialEq, Eq)]
pub struct Glyphs {
    /// Everything is in order.
    pub ready: &'static str,
    /// It moves.
    pub progressing: &'static str,
    /// Something is wrong.
    pub degraded: &'static str,
    /// It is told to stand still.
    pub suspended: &'static str,
    /// Nobody knows.
    pub unknown: &'static str,
    /// Nothing is there.
    pub nothing: &'static str,
    /// Behind another environment.
    pub behind: &'static str,
    /// Held.
    pub held: &'static str,
    /// Was held, until a moment that is past.
    pub expired: &'static str,
    /// What a rollback restores.
    pub back: &'static str,
    /// From one thing to another.
    pub arrow: &'static str,
    /// The selected row.
    pub cursor: &'static str,
    /// A marked row.
    pub marked: &'static str,
    /// A line across.
    pub rule: &'static str,
    /// Between two words of a header.
    pub dot: &'static str,
    /// A line down.
    pub bar: &'static str,
    /// In order.
    pub check: &'static str,
    /// The part of a scrollbar that is seen.
    pub thumb: &'static str,
    /// Sorted, the smallest first.
    pub rising: &'static str,
    /// Sorted, the largest first.
    pub falling: &'static str,
    /// Where the next character is typed.
    pub caret: &'static str,
}

impl Glyphs {
    /// Returns the arrow of a sorted column.
    pub fn sorted(&self, falling: bool) -> &'static str {
        match falling {
            true => self.falling,
            false => self.rising,
        }
    }
}

/// The characters of a terminal that shows Unicode.
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

/// The characters of one that does not.
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

/// Returns the ASCII character that comes closest to another one.
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

/// What a frame says beside its cells.
#[derive(Default)]
pub struct Notes {
    /// When the first label on it turns over.
    pub turns: Cell<Option<Timestamp>>,
    /// The cells that lead somewhere.
    pub links: RefCell<Vec<Link>>,
}

/// A part of the screen to draw on.
pub struct Sheet<'a> {
    buffer: &'a mut Buffer,
    /// Where it is.
    pub area: Rect,
    /// Its colours.
    pub theme: &'a Theme,
    /// Its characters.
    pub glyphs: &'static Glyphs,
    /// What time it is.
    pub now: Timestamp,
    notes: &'a Notes,
}

impl<'a> Sheet<'a> {
    /// Makes a sheet of a whole buffer; `notes` gets what is said beside its cells.
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

    /// Returns a part of it as a sheet of its own.
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

    /// Returns some of its rows as a sheet of their own.
    pub fn rows(&mut self, first: u16, count: u16) -> Sheet<'_> {
        let first = first.min(self.area.height);
        let area = Rect {
            y: self.area.y + first,
            height: count.min(self.area.height - first),
            ..self.area
        };
        self.part(area)
    }

    /// Returns how wide it is.
    pub fn width(&self) -> u16 {
        self.area.width
    }

    /// Returns how high it is.
    pub fn height(&self) -> u16 {
        self.area.height
    }

    /// Begins a line; one below the sheet takes nothing.
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

    /// Gives a row the style of a role, under what is written on it afterwards.
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

    /// Draws a line across, with a title in it where there is one.
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

    /// Empties it, for what is drawn over something else.
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

    /// Words how long ago something was, and notes when that turns over.
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

    /// Notes that something drawn turns over at a moment.
    pub fn turn(&self, at: Timestamp) {
        let turns = &self.notes.turns;
        let sooner = turns.get().is_none_or(|known| at < known);
        if sooner && at > self.now {
            turns.set(Some(at));
        }
    }

    /// Replaces every character that is not ASCII, where the terminal shows nothing else.
    pub fn to_ascii(&mut self) {
        if *self.glyphs != ASCII {
            return;
        }
        for cell in &mut self.buffer.content {
            let symbol = cell.symbol();
            if !symbol.is_ascii() {
                let plain = symbol.chars().next().map_or('?', ascii);
                // A wide character leaves the cell behind it empty, which shows as a blank.
                cell.set_char(plain);
            }
        }
    }

    /// Draws a widget of ratatui's; the text in it must be a person's own.
    pub fn widget(&mut self, widget: impl ratatui::widgets::Widget) {
        widget.render(self.area, self.buffer);
    }
}

/// Writes one line from left to right.
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
    /// Puts a style under everything that follows.
    pub fn over(&mut self, role: Role) -> &mut Self {
        self.base = self.theme.style(role);
        self
    }

    /// Puts nothing under what follows.
    pub fn plain(&mut self) -> &mut Self {
        self.base = Style::new();
        self
    }

    /// Writes a text, cleaned, as far as there is room.
    pub fn put(&mut self, text: &str, role: Role) -> &mut Self {
        self.styled(text, self.theme.style(role))
    }

    /// Writes a text that leads to an address; one that is none of the web leads nowhere.
    pub fn link(&mut self, text: &str, role: Role, url: &str) -> &mut Self {
        let x = self.x;
        self.put(text, role);
        let area = Rect::new(x, self.y, self.x - x, 1);
        if area.width > 0 {
            self.links.borrow_mut().extend(Link::new(area, url));
        }
        self
    }

    /// Writes a text in which the addresses of the web lead there.
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

    /// Writes a line of a text that was wrapped; an address that may go on below leads nowhere.
    pub fn put_wrapped(&mut self, line: &str, width: usize, role: Role) -> &mut Self {
        let last = links::addresses(line).pop();
        match last.is_some_and(|last| last.end == line.len()) && text::width(line) >= width {
            true => self.put(line, role),
            false => self.put_linking(line, role),
        }
    }

    /// Writes a text in a style of its own.
    pub fn styled(&mut self, text: &str, style: Style) -> &mut Self {
        let room = self.room();
        if room == 0 || text.is_empty() {
            return self;
        }
        // What lies under it decides where both say something: a selection is seen whatever it covers.
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

    /// Writes a text in a column of its own, cut or filled to its width.
    pub fn cell(&mut self, text: &str, width: u16, role: Role) -> &mut Self {
        let end = self.x.saturating_add(width);
        let cut = text::fit(text, usize::from(width));
        self.put(&cut, role);
        self.advance(end)
    }

    /// Writes a text at the right of a column of its own.
    pub fn cell_right(&mut self, text: &str, width: u16, role: Role) -> &mut Self {
        let end = self.x.saturating_add(width);
        let cut = text::fit(text, usize::from(width));
        let wide = u16::try_from(text::width(&cut)).unwrap_or(width);
        self.advance(end.saturating_sub(wide));
        self.put(&cut, role);
        self.advance(end)
    }

    /// Goes on at a column of the sheet.
    pub fn to(&mut self, column: u16) -> &mut Self {
        self.advance(self.start.saturating_add(column))
    }

    /// Goes on after some blanks.
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

    /// Writes a text at the right end, if there is room for it.
    pub fn right(&mut self, text: &str, role: Role) -> &mut Self {
        let wide = text::width(text);
        if wide <= self.room() {
            let at = self.end - u16::try_from(wide).unwrap_or(0);
            self.advance(at);
            self.put(text, role);
        }
        self
    }

    /// Keeps some columns at the right end free of what follows.
    pub fn until(&mut self, columns: u16) -> &mut Self {
        self.end = self.end.min(self.start.saturating_add(columns)).max(self.x);
        self
    }

    /// Fills the rest of the line.
    pub fn rest(&mut self) -> &mut Self {
        self.advance(self.end)
    }

    /// Returns how many columns are left.
    pub fn room(&self) -> usize {
        usize::from(self.end.saturating_sub(self.x))
    }

    /// Returns the column that comes next, from the left of the sheet.
    pub fn column(&self) -> u16 {
        self.x - self.start
    }
}
