//! Converts drawn screens to plain text, to text with colours, or to SVG, without a terminal.
//!
//! The same buffer always gives the same bytes, so that tests can compare pictures of screens.

mod boxes;
pub mod svg;

use ratatui::buffer::{Buffer, Cell};

use super::terminal::pen::{self, Look, PLAIN};
use super::terminal::symbol::Symbol;

/// A character of a row with its position. A wide character covers two cells, all others cover one.
#[derive(Clone, Copy)]
struct Place<'a> {
    x: u16,
    look: Look,
    symbol: Symbol<'a>,
}

/// Returns the characters of a row. Leaves out the second cell of a wide character, because it is empty.
fn row(buffer: &Buffer, y: u16) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    let mut next = buffer.area.left();
    for x in buffer.area.left()..buffer.area.right() {
        let Some(cell) = buffer.cell((x, y)).filter(|_| x >= next) else {
            continue;
        };
        let symbol = fitting(cell, buffer.area.right() - x);
        next = x + symbol.width;
        places.push(Place {
            x: x - buffer.area.left(),
            look: Look::of(cell),
            symbol,
        });
    }
    places
}

/// Returns the symbol of a cell, or a blank if the symbol is wider than `room` columns.
fn fitting(cell: &Cell, room: u16) -> Symbol<'_> {
    let symbol = Symbol::of(cell.symbol());
    match symbol.width <= room {
        true => symbol,
        false => Symbol::of(" "),
    }
}

/// Converts a buffer to text: one line per row, without trailing blanks.
pub fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let line: String = row(buffer, y)
            .iter()
            .map(|place| place.symbol.text)
            .collect();
        out.push_str(line.trim_end_matches(' '));
        out.push('\n');
    }
    out
}

/// Converts a buffer to text with colour sequences and no other control sequences.
///
/// Every line starts and ends in the default style, so that a user can copy single lines.
pub fn ansi(buffer: &Buffer) -> String {
    let mut out = Vec::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let places = row(buffer, y);
        let is_nothing =
            |place: &Place<'_>| place.symbol.text == " " && place.look.same_blank(PLAIN);
        let end = places.iter().rposition(|place| !is_nothing(place));
        let mut look = PLAIN;
        for place in places.iter().take(end.map_or(0, |end| end + 1)) {
            if !(place.symbol.text == " " && place.look.same_blank(look)) {
                pen::change(look, place.look, &mut out);
                look = place.look;
            }
            out.extend_from_slice(place.symbol.text.as_bytes());
        }
        pen::change(look, PLAIN, &mut out);
        out.push(b'\n');
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Style};

    fn sample() -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(2, 1, 12, 3));
        buffer.set_string(2, 1, "a  b", Style::new().fg(Color::Red).bold());
        buffer.set_string(2, 2, "界x", Style::new().bg(Color::Rgb(1, 2, 3)));
        buffer[(13, 2)].set_symbol("界");
        buffer[(2, 3)].set_symbol("\x1b[2J");
        buffer.set_style(Rect::new(2, 3, 3, 1), Style::new().underlined());
        buffer
    }

    #[test]
    fn text_has_no_blanks_at_the_end_and_nothing_that_steers() {
        assert_eq!(text(&sample()), "a  b\n界x\n\u{fffd}\n");
    }

    #[test]
    fn ansi_has_colours_and_nothing_else() {
        let written = ansi(&sample()).replace('\x1b', "^");
        assert_eq!(
            written,
            "^[1;31ma  b^[m\n^[48;2;1;2;3m界x^[m\n^[4m\u{fffd}  ^[m\n"
        );
    }

    #[test]
    fn ansi_shows_the_buffer() {
        let mut screen = vt100::Parser::new(4u16.try_into().unwrap(), 12u16.try_into().unwrap(), 0);
        screen.process(ansi(&sample()).replace('\n', "\r\n").as_bytes());
        let cell = |y, x| screen.screen().cell(y, x).unwrap().clone();
        assert_eq!(cell(0, 0).fgcolor(), vt100::Color::Idx(1));
        assert!(cell(0, 3).bold());
        assert_eq!(cell(1, 0).contents(), "界");
        assert_eq!(cell(1, 2).bgcolor(), vt100::Color::Rgb(1, 2, 3));
        assert_eq!(cell(1, 3).bgcolor(), vt100::Color::Default);
        // vt100, the terminal that this test uses, stores no replacement characters, so the next character stands one
        // column further left.
        assert!(cell(2, 1).underline());
    }
}
