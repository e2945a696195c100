//! Writes the changed cells of a frame to the terminal, with as few bytes as possible.
//!
//! ratatui's crossterm backend writes most of its bytes for long cursor moves, for both colours when one changes, for
//! one sequence per attribute, for colours of blanks, and for a reset after each frame. Because of slow connections,
//! moving the selection at 200x60 may write at most 2 KB. Therefore this backend remembers the cursor and the style
//! across frames, writes only differences, and writes all cells of a style in a row together if that is shorter. The
//! tests compare both backends on the same frames.
//!
//! This module is also the last safety check. It never writes control sequences from the text of a cell, even if a
//! screen did not remove them.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};

use super::links::{self, Link};
use super::pen::{self, Look, PLAIN};
use super::symbol::Symbol;

/// The initial capacity of the frame buffer in bytes. The buffer grows for a larger frame, so that each frame is
/// still one write.
const FRAME: usize = 64 * 1024;

const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// The links of the current frame. The caller must set them before it writes the cells of the frame.
pub type Links = Arc<Mutex<Vec<Link>>>;

/// The position of the terminal's cursor. If a coordinate is None, the painter does not know it, and the next cursor
/// move must write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cursor {
    column: Option<u16>,
    row: Option<u16>,
}

/// A ratatui backend that collects the output of a frame, and writes the output with one call.
pub struct Painter {
    out: Box<dyn Write + Send>,
    frame: Vec<u8>,
    size: Size,
    cursor: Cursor,
    shows_cursor: bool,
    look: Look,
    link: Option<String>,
    links: Links,
    last: usize,
    total: u64,
}

impl Painter {
    /// Creates a painter for a terminal of this size. The caller must hide the cursor of the terminal.
    pub fn new(out: Box<dyn Write + Send>, size: Size, links: Links) -> Painter {
        Painter {
            out,
            frame: Vec::with_capacity(FRAME),
            size,
            cursor: Cursor::default(),
            shows_cursor: false,
            look: PLAIN,
            link: None,
            links,
            last: 0,
            total: 0,
        }
    }

    /// Sets the size for the next frame.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.cursor = Cursor::default();
    }

    /// Forgets the style and the cursor position of the terminal. Call this if another program may have changed them.
    pub fn forget(&mut self) {
        self.cursor = Cursor::default();
        self.shows_cursor = false;
        self.look = PLAIN;
        self.link = None;
        self.frame.clear();
    }

    /// Returns two numbers of bytes: of the last frame, and of everything written so far.
    pub fn bytes(&self) -> (usize, u64) {
        (self.last, self.total)
    }

    /// Writes the frame with one call. Writes nothing if the frame contains no changes.
    pub fn send(&mut self) -> io::Result<()> {
        self.last = 0;
        if self.frame.is_empty() {
            return Ok(());
        }
        self.in_no_link();
        self.frame.splice(0..0, BEGIN.iter().copied());
        self.frame.extend_from_slice(END);
        let frame = std::mem::take(&mut self.frame);
        let sent = self.write(&frame);
        self.last = frame.len();
        self.frame = frame;
        self.frame.clear();
        sent
    }

    /// Writes a sequence that changes no cell, such as the window title. Call this only between frames, because the
    /// sequence is written at once.
    pub fn say(&mut self, sequence: &[u8]) -> io::Result<()> {
        self.write(sequence)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.total += bytes.len() as u64;
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    /// Writes the changed cells of a row from left to right, or grouped by style, whichever is shorter. Grouping is
    /// shorter if long colour sequences alternate, because it writes cursor moves instead of them.
    fn row(&mut self, row: &[(u16, u16, &Cell)]) {
        let looks = alike(row);
        let before = (self.frame.len(), self.cursor, self.look, self.link.clone());
        for (x, y, cell) in row {
            self.put(*x, *y, cell);
        }
        // Grouping writes each style once, but also a cursor move for each change between styles.
        if looks.len() * 2 > changes(row) {
            return;
        }
        let as_they_stand = (self.frame.split_off(before.0), self.cursor, self.look);
        let link = std::mem::replace(&mut self.link, before.3);
        (self.cursor, self.look) = (before.1, before.2);
        for look in looks {
            for (x, y, cell) in row.iter().filter(|(_, _, cell)| Look::of(cell) == look) {
                self.put(*x, *y, cell);
            }
        }
        if self.frame.len() - before.0 > as_they_stand.0.len() {
            self.frame.truncate(before.0);
            self.frame.extend_from_slice(&as_they_stand.0);
            (self.cursor, self.look) = (as_they_stand.1, as_they_stand.2);
            self.link = link;
        }
    }

    fn put(&mut self, x: u16, y: u16, cell: &Cell) {
        self.move_to(x, y);
        self.in_link_of(x, y);
        let look = Look::of(cell);
        let symbol = cell.symbol();
        let is_blank = symbol == " ";
        if !(is_blank && look.same_blank(self.look)) {
            pen::change(self.look, look, &mut self.frame);
            self.look = look;
        }
        let symbol = Symbol::of(symbol);
        self.frame.extend_from_slice(symbol.text.as_bytes());
        let after = x.saturating_add(symbol.width);
        self.cursor = match (symbol.is_certain, after < self.size.width) {
            (true, true) => Cursor {
                column: Some(after),
                row: Some(y),
            },
            // After a character at the right edge, the position of the cursor depends on the terminal, so treat it as
            // unknown.
            (true, false) | (false, true) => Cursor {
                column: None,
                row: Some(y),
            },
            // If the terminal draws the character wider than expected, the cursor may be on the next line.
            (false, false) => Cursor::default(),
        };
    }

    /// Moves the cursor with the shortest possible sequence.
    fn move_to(&mut self, x: u16, y: u16) {
        let Cursor { column, row } = self.cursor;
        let (from, to) = (row.map(u32::from), u32::from(y));
        match (column, row) {
            (Some(column), Some(row)) if (column, row) == (x, y) => return,
            (_, Some(row)) if row == y && x == 0 => self.frame.push(b'\r'),
            _ if from.map(|row| row + 1) == Some(to) && x == 0 => {
                self.frame.extend_from_slice(b"\r\n");
            }
            (Some(column), Some(row)) if row == y && x == column.saturating_add(1) => {
                self.frame.extend_from_slice(b"\x1b[C");
            }
            (Some(column), Some(row)) if row == y && x > column && x - column < 10 => {
                self.sequence(format_args!("\x1b[{}C", x - column));
            }
            (_, Some(row)) if row == y => self.sequence(format_args!("\x1b[{}G", u32::from(x) + 1)),
            _ if x == 0 => self.sequence(format_args!("\x1b[{}H", to + 1)),
            _ => self.sequence(format_args!("\x1b[{};{}H", to + 1, u32::from(x) + 1)),
        }
        self.cursor = Cursor {
            column: Some(x),
            row: Some(y),
        };
    }

    fn sequence(&mut self, sequence: std::fmt::Arguments<'_>) {
        // Writing to memory cannot fail.
        let _ = self.frame.write_fmt(sequence);
    }

    fn in_link_of(&mut self, x: u16, y: u16) {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let here = links
            .iter()
            .find(|link| link.area.contains(Position { x, y }));
        let url = here.map(Link::url);
        if url != self.link.as_deref() {
            links::begin(url, &mut self.frame);
            self.link = url.map(str::to_owned);
        }
    }

    fn in_no_link(&mut self) {
        if self.link.take().is_some() {
            links::begin(None, &mut self.frame);
        }
    }
}

/// Returns the different styles in a row, in the order of their first use.
fn alike(row: &[(u16, u16, &Cell)]) -> Vec<Look> {
    let mut looks: Vec<Look> = Vec::new();
    for (_, _, cell) in row {
        let look = Look::of(cell);
        if looks.last() != Some(&look) && !looks.contains(&look) {
            looks.push(look);
        }
    }
    looks
}

/// Returns the number of places in a row where the style changes.
fn changes(row: &[(u16, u16, &Cell)]) -> usize {
    let differ = |pair: &&[(u16, u16, &Cell)]| match pair {
        [(_, _, one), (_, _, other)] => Look::of(one) != Look::of(other),
        _ => false,
    };
    row.windows(2).filter(differ).count()
}

impl Backend for Painter {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut row: Vec<(u16, u16, &Cell)> = Vec::new();
        for changed in content {
            if row.first().is_some_and(|(_, y, _)| *y != changed.1) {
                self.row(&row);
                row.clear();
            }
            row.push(changed);
        }
        self.row(&row);
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.shows_cursor) {
            self.frame.extend_from_slice(b"\x1b[?25l");
        }
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.shows_cursor, true) {
            self.frame.extend_from_slice(b"\x1b[?25h");
        }
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position {
            x: self.cursor.column.unwrap_or_default(),
            y: self.cursor.row.unwrap_or_default(),
        })
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        self.move_to(x, y);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        // A terminal fills cleared cells with its current background colour, so reset the style first.
        pen::change(self.look, PLAIN, &mut self.frame);
        self.look = PLAIN;
        self.frame.extend_from_slice(match clear_type {
            ClearType::All => b"\x1b[2J",
            ClearType::AfterCursor => b"\x1b[J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size,
            pixels: Size::ZERO,
        })
    }

    /// Does nothing, because only [`Painter::send`] writes to the terminal.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
