//! Converts a drawn buffer to a self-contained SVG: without scripts, font files or links.
//!
//! All coordinates of cells are whole numbers. Adjacent cells of the same style are one text element with a fixed
//! width, so that a font with other widths does not move the text. Lines and blocks are shapes, because the glyphs of
//! fonts leave gaps. A character whose width depends on the font has its own element.

use std::collections::BTreeMap;
use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use super::boxes::{self, HEIGHT, Shape, WIDTH};
use super::{Place, row};
use crate::terminal::pen::{self, Look};
use crate::text;

/// The margin around the cells, in SVG units.
const MARGIN: u16 = 12;
/// The height of the title bar, in SVG units.
const TITLE: u16 = 34;
/// The distance from the top of a cell to the baseline of its text, in SVG units.
const BASELINE: u16 = 14;

/// The font size at which the characters of Menlo and DejaVu Sans Mono are exactly 9 units wide. `textLength`
/// stretches or narrows the text of other fonts to this width.
const FONT: &str = "14.95px \"DejaVu Sans Mono\",Menlo,\"Cascadia Mono\",Consolas,\"Liberation Mono\",ui-monospace,monospace";

/// The colours that a terminal, and not the theme, defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// The default colour of text.
    pub fg: [u8; 3],
    /// The default colour of the background.
    pub bg: [u8; 3],
    /// The sixteen named ANSI colours.
    pub palette: [[u8; 3]; 16],
}

/// The colours of a terminal with a dark background.
pub const DARK: Paper = Paper {
    fg: [0xd8, 0xdb, 0xe2],
    bg: [0x16, 0x18, 0x1d],
    palette: [
        [0x2a, 0x2e, 0x37],
        [0xe0, 0x6c, 0x75],
        [0x8f, 0xc0, 0x7a],
        [0xe0, 0xb8, 0x6c],
        [0x6c, 0xa4, 0xe8],
        [0xc6, 0x86, 0xd8],
        [0x62, 0xbd, 0xc4],
        [0xb9, 0xbf, 0xca],
        [0x6b, 0x72, 0x80],
        [0xf0, 0x8a, 0x92],
        [0xad, 0xd8, 0x9a],
        [0xf0, 0xd0, 0x90],
        [0x93, 0xbf, 0xf5],
        [0xdc, 0xa8, 0xea],
        [0x8a, 0xd8, 0xde],
        [0xf4, 0xf5, 0xf7],
    ],
};

/// The colours of a terminal with a light background.
pub const LIGHT: Paper = Paper {
    fg: [0x24, 0x29, 0x2f],
    bg: [0xfc, 0xfc, 0xfa],
    palette: [
        [0x24, 0x29, 0x2f],
        [0xc0, 0x2a, 0x36],
        [0x2f, 0x7d, 0x32],
        [0x92, 0x62, 0x00],
        [0x1c, 0x5f, 0xc4],
        [0x86, 0x34, 0xa6],
        [0x0c, 0x74, 0x80],
        [0x6a, 0x73, 0x7d],
        [0x8a, 0x93, 0x9d],
        [0xd7, 0x3a, 0x49],
        [0x3f, 0x9a, 0x42],
        [0xb0, 0x7a, 0x05],
        [0x2f, 0x7b, 0xe6],
        [0xa0, 0x4c, 0xc0],
        [0x16, 0x8c, 0x9a],
        [0xff, 0xff, 0xff],
    ],
};

impl Paper {
    fn rgb(&self, colour: Color, plain: [u8; 3]) -> [u8; 3] {
        match colour {
            Color::Reset => plain,
            Color::Rgb(red, green, blue) => [red, green, blue],
            named => self.indexed(pen::index(named)),
        }
    }

    /// Returns a colour of the 256-colour palette: 16 named colours, a cube with 6 levels per
    /// channel, 24 greys.
    fn indexed(&self, index: u8) -> [u8; 3] {
        if let Some(named) = self.palette.get(usize::from(index)) {
            return *named;
        }
        if index >= 232 {
            return [8 + 10 * (index - 232); 3];
        }
        let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
        let at = index - 16;
        [level(at / 36), level(at / 6 % 6), level(at % 6)]
    }

    /// Returns the colours of text and background as the user sees them: swapped if reversed, paler if dim.
    fn seen(&self, look: Look) -> Seen {
        let mut fg = self.rgb(look.fg, self.fg);
        let mut bg = self.rgb(look.bg, self.bg);
        if look.modifier.contains(Modifier::REVERSED) {
            std::mem::swap(&mut fg, &mut bg);
        }
        if look.modifier.contains(Modifier::DIM) {
            let blend = |n: usize| ((u16::from(fg[n]) * 3 + u16::from(bg[n]) * 2) / 5) as u8;
            fg = [blend(0), blend(1), blend(2)];
        }
        let line = self.rgb(look.line, fg);
        Seen { fg, bg, line }
    }
}

struct Seen {
    fg: [u8; 3],
    bg: [u8; 3],
    line: [u8; 3],
}

/// Converts a buffer to an SVG. With a title, draws a window frame with this title around it.
pub fn svg(buffer: &Buffer, paper: &Paper, title: Option<&str>) -> String {
    let mut drawing = Drawing {
        paper,
        backgrounds: String::new(),
        letters: String::new(),
        strokes: BTreeMap::new(),
        blocks: String::new(),
        classes: Vec::new(),
    };
    for y in buffer.area.top()..buffer.area.bottom() {
        drawing.row(&row(buffer, y), y - buffer.area.top());
    }
    drawing.finish(buffer, title)
}

struct Drawing<'a> {
    paper: &'a Paper,
    backgrounds: String,
    letters: String,
    /// The SVG paths by colour and width, because all strokes of the same colour and width become one path element.
    strokes: BTreeMap<(String, u8), String>,
    blocks: String,
    /// The CSS classes for colours and weights of text, in the order of their first use.
    classes: Vec<String>,
}

impl Drawing<'_> {
    fn row(&mut self, places: &[Place<'_>], y: u16) {
        self.background(places, y);
        self.lines(places, y);
        let mut run: Vec<Place<'_>> = Vec::new();
        for place in places {
            if place.look.modifier.contains(Modifier::HIDDEN) {
                self.letters(&mut run, y);
                continue;
            }
            if self.shaped(place, y) {
                self.letters(&mut run, y);
                continue;
            }
            // Letters of the same style, with single blanks between them, are one text element.
            let is_letter = place.symbol.is_certain && place.symbol.width == 1;
            let fits = run.last().is_some_and(|last: &Place<'_>| {
                let two_blanks = last.symbol.text == " " && place.symbol.text == " ";
                let ended = last.x + 1 != place.x || !last.symbol.is_certain;
                let same = place.symbol.text == " " || self.class(place) == self.class(first(&run));
                is_letter && !two_blanks && !ended && same
            });
            if !fits {
                self.letters(&mut run, y);
            }
            if !(run.is_empty() && place.symbol.text == " ") {
                run.push(*place);
            }
        }
        self.letters(&mut run, y);
    }

    fn background(&mut self, places: &[Place<'_>], y: u16) {
        let mut from = 0;
        while let Some(first) = places.get(from) {
            let colour = self.paper.seen(first.look).bg;
            let rest = places.get(from..).unwrap_or_default();
            let same = rest
                .iter()
                .take_while(|place| self.paper.seen(place.look).bg == colour);
            let count = same.count();
            if colour != self.paper.bg
                && let Some(last) = places.get(from + count - 1)
            {
                let (left, right) = (first.x * WIDTH, (last.x + last.symbol.width) * WIDTH);
                let _ = writeln!(
                    self.backgrounds,
                    "<path fill=\"{}\" d=\"M{left} {}H{right}v{HEIGHT}H{left}\"/>",
                    hex(colour),
                    y * HEIGHT,
                );
            }
            from += count;
        }
    }

    /// Draws underlines and strikethroughs, including those below blanks.
    fn lines(&mut self, places: &[Place<'_>], y: u16) {
        for (modifier, offset) in [(Modifier::UNDERLINED, 16.5), (Modifier::CROSSED_OUT, 9.5)] {
            let mut open: Option<(String, u16, u16)> = None;
            for place in places {
                let seen = self.paper.seen(place.look);
                let colour = match modifier {
                    Modifier::UNDERLINED => hex(seen.line),
                    _ => hex(seen.fg),
                };
                let is_on = place.look.modifier.contains(modifier);
                let end = place.x + place.symbol.width;
                open = match open.take() {
                    Some((same, from, to)) if is_on && same == colour && to == place.x => {
                        Some((same, from, end))
                    }
                    ended => {
                        self.line(ended, y, offset);
                        is_on.then_some((colour, place.x, end))
                    }
                };
            }
            self.line(open, y, offset);
        }
    }

    fn line(&mut self, line: Option<(String, u16, u16)>, y: u16, offset: f32) {
        let Some((colour, from, to)) = line else {
            return;
        };
        let at = boxes::number(f32::from(y * HEIGHT) + offset);
        let path = self.strokes.entry((colour, 1)).or_default();
        let _ = write!(path, "M{} {at}H{}", from * WIDTH, to * WIDTH);
    }

    /// Draws a box-drawing or block character as a shape; returns false for other characters.
    fn shaped(&mut self, place: &Place<'_>, y: u16) -> bool {
        let colour = hex(self.paper.seen(place.look).fg);
        match boxes::shape(place.symbol.text, place.x, y) {
            None => return false,
            Some(Shape::Strokes(width, path)) => {
                let drawn = self.strokes.entry((colour, width)).or_default();
                match joined(drawn, &path) {
                    Some(longer) => *drawn = longer,
                    None => drawn.push_str(&path),
                }
            }
            Some(Shape::Block([x, y, width, height])) => {
                let _ = writeln!(
                    self.blocks,
                    "<path fill=\"{colour}\" d=\"M{x} {y}h{width}v{height}h-{width}\"/>"
                );
            }
        }
        true
    }

    fn letters(&mut self, run: &mut Vec<Place<'_>>, y: u16) {
        while run.last().is_some_and(|last| last.symbol.text == " ") {
            run.pop();
        }
        let (Some(from), Some(last)) = (run.first(), run.last()) else {
            return;
        };
        let class = self.class(from);
        let number = match self.classes.iter().position(|known| *known == class) {
            Some(number) => number,
            None => {
                self.classes.push(class);
                self.classes.len() - 1
            }
        };
        let _ = write!(
            self.letters,
            "<text class=\"s{number}\" x=\"{}\" y=\"{}\"",
            from.x * WIDTH,
            y * HEIGHT + BASELINE
        );
        if run.len() > 1 {
            let columns = last.x + last.symbol.width - from.x;
            let _ = write!(self.letters, " textLength=\"{}\"", columns * WIDTH);
        }
        self.letters.push('>');
        for place in run.iter() {
            escape(place.symbol.text, &mut self.letters);
        }
        self.letters.push_str("</text>\n");
        run.clear();
    }

    fn class(&self, place: &Place<'_>) -> String {
        let mut class = format!("fill:{}", hex(self.paper.seen(place.look).fg));
        if place.look.modifier.contains(Modifier::BOLD) {
            class.push_str(";font-weight:bold");
        }
        if place.look.modifier.contains(Modifier::ITALIC) {
            class.push_str(";font-style:italic");
        }
        class
    }

    fn finish(self, buffer: &Buffer, title: Option<&str>) -> String {
        let top = match title {
            Some(_) => TITLE,
            None => MARGIN,
        };
        let width = buffer.area.width * WIDTH + 2 * MARGIN;
        let height = buffer.area.height * HEIGHT + top + MARGIN;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n<style>text{{font:{FONT}}}"
        );
        for (number, class) in self.classes.iter().enumerate() {
            let _ = write!(out, ".s{number}{{{class}}}");
        }
        let bg = hex(self.paper.bg);
        let _ = writeln!(
            out,
            "</style>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{bg}\"/>"
        );
        if let Some(title) = title {
            self.window(title, width, &mut out);
        }
        let _ = writeln!(out, "<g transform=\"translate({MARGIN} {top})\">");
        out.push_str(&self.backgrounds);
        out.push_str(&self.blocks);
        for ((colour, stroke), path) in &self.strokes {
            let _ = writeln!(
                out,
                "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\" d=\"{path}\"/>",
                f32::from(*stroke) * 1.2
            );
        }
        out.push_str(&self.letters);
        out.push_str("</g>\n</svg>\n");
        out
    }

    fn window(&self, title: &str, width: u16, out: &mut String) {
        let faint = hex(self.paper.indexed(8));
        for (x, colour) in [(20, 9), (40, 11), (60, 10)] {
            let colour = hex(self.paper.indexed(colour));
            let _ = writeln!(
                out,
                "<circle cx=\"{x}\" cy=\"17\" r=\"6\" fill=\"{colour}\"/>"
            );
        }
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"22\" text-anchor=\"middle\" fill=\"{faint}\">",
            width / 2
        );
        escape(&text::fit(title, 60), out);
        out.push_str("</text>\n");
    }
}

fn first<'a, 'b>(run: &'b [Place<'a>]) -> &'b Place<'a> {
    run.first().expect("BUG: a run that has a last has a first")
}

/// Joins a horizontal stroke to the last stroke in `drawn`; returns None unless the last stroke
/// ends where the new one starts.
fn joined(drawn: &str, path: &str) -> Option<String> {
    let (start, to) = path.split_once('H')?;
    let (x, y) = start.strip_prefix('M')?.split_once(' ')?;
    let last = drawn.rfind('M')?;
    let (head, end) = drawn.get(last..)?.split_once('H')?;
    let (_, row) = head.split_once(' ')?;
    (end == x && row == y).then(|| format!("{}{head}H{to}", drawn.get(..last).unwrap_or_default()))
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // XML does not allow these characters.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    fn drawn(paint: impl FnOnce(&mut Buffer)) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 4));
        paint(&mut buffer);
        svg(&buffer, &DARK, None)
    }

    fn count(svg: &str, what: &str) -> usize {
        svg.matches(what).count()
    }

    #[test]
    fn a_run_of_one_look_is_one_element() {
        let svg = drawn(|buffer| {
            buffer.set_string(2, 1, "one run of words", Style::new());
            buffer.set_string(25, 1, "apart", Style::new());
            buffer.set_string(2, 2, "red", Style::new().fg(Color::Red));
            buffer.set_string(5, 2, "bold", Style::new().bold());
        });
        assert!(
            svg.contains(
                "<text class=\"s0\" x=\"18\" y=\"32\" textLength=\"144\">one run of words</text>"
            ),
            "{svg}"
        );
        assert!(
            svg.contains("x=\"225\" y=\"32\" textLength=\"45\">apart<"),
            "{svg}"
        );
        assert_eq!(count(&svg, "<text"), 4);
        assert!(
            svg.contains(".s1{fill:#e06c75}.s2{fill:#d8dbe2;font-weight:bold}"),
            "{svg}"
        );
    }

    #[test]
    fn wide_and_uncertain_characters_have_their_own_place() {
        let svg = drawn(|buffer| {
            buffer.set_string(0, 0, "a界b●c", Style::new());
        });
        for element in [
            "x=\"0\" y=\"14\">a<",
            "x=\"9\" y=\"14\">界<",
            "x=\"27\" y=\"14\">b<",
            "x=\"36\" y=\"14\">●<",
            "x=\"45\" y=\"14\">c<",
        ] {
            assert!(svg.contains(element), "{element} in {svg}");
        }
    }

    #[test]
    fn lines_of_one_colour_are_one_path() {
        let svg = drawn(|buffer| {
            buffer.set_string(0, 0, "┌────────┐", Style::new());
            buffer.set_string(0, 1, "└────────┘", Style::new());
        });
        assert_eq!(count(&svg, "<path"), 1);
        assert!(svg.contains("M4.5 9H9"), "{svg}");
        assert!(svg.contains("M9 9H85.5M"), "joined: {svg}");
        assert_eq!(count(&svg, "<text"), 0);
    }

    #[test]
    fn looks_become_colours() {
        for (style, expected) in [
            (
                Style::new().reversed(),
                "fill=\"#d8dbe2\" d=\"M0 0H36v18H0\"",
            ),
            (
                Style::new().bg(Color::Indexed(196)),
                "fill=\"#ff0000\" d=\"M0 0H36",
            ),
            (
                Style::new().bg(Color::Indexed(244)),
                "fill=\"#808080\" d=\"M0 0H36",
            ),
            (Style::new().dim(), ".s0{fill:#8a8d93}"),
            (Style::new().italic(), "font-style:italic"),
            (
                Style::new().underlined(),
                "stroke=\"#d8dbe2\" stroke-width=\"1.2\" d=\"M0 16.5H36\"",
            ),
            (Style::new().crossed_out(), "d=\"M0 9.5H36\""),
        ] {
            let svg = drawn(|buffer| {
                buffer.set_string(0, 0, "word", style);
            });
            assert!(svg.contains(expected), "{style:?}: {svg}");
        }
        let hidden = drawn(|buffer| buffer.set_string(0, 0, "word", Style::new().hidden()));
        assert!(!hidden.contains("word"), "{hidden}");
    }

    #[test]
    fn text_cannot_leave_its_element() {
        let svg = drawn(|buffer| {
            buffer.set_string(0, 0, "</text><script>&", Style::new());
            buffer[(30, 0)].set_symbol("\x1b");
        });
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;&amp;"), "{svg}");
        assert!(!svg.contains('\x1b') && !svg.contains("<script"));
        let titled = super::svg(
            &Buffer::empty(Rect::new(0, 0, 4, 1)),
            &LIGHT,
            Some("<a>\x1b"),
        );
        assert!(titled.contains("&lt;a&gt;\u{fffd}"), "{titled}");
    }

    /// Draws a sample of all styles and symbols that screens use.
    fn sample() -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 61, 9));
        let plain = Style::new();
        let dim = plain.fg(Color::DarkGray);
        let mut put = |x, y, text: &str, style| buffer.set_string(x, y, text, style);
        put(1, 0, "bowline", plain.bold());
        put(10, 0, "prod-eu ▪ shop ▪ ana", dim);
        put(48, 0, " READ-ONLY ", plain.reversed());
        put(
            0,
            1,
            "╭─ matrix ─────────────────────┬────────────────────────────╮",
            dim,
        );
        for y in 2..6 {
            put(0, y, "│", dim);
            put(31, y, "│", dim);
            put(60, y, "│", dim);
        }
        put(
            0,
            6,
            "╰──────────────────────────────┴────────────────────────────╯",
            dim,
        );
        put(2, 2, "● v1.2.4", plain.fg(Color::Green));
        put(14, 2, "checkout-service", plain);
        put(2, 3, "✖ v1.2.3", plain.fg(Color::Red).bold());
        put(14, 3, "↑1 ⚓ 2/5", plain.fg(Color::Yellow));
        put(2, 4, "界 wide", plain.italic());
        put(14, 4, "crossed out", plain.crossed_out().dim());
        put(2, 5, "link", plain.underlined().fg(Color::LightBlue));
        put(34, 2, "▁▂▃▄▅▆▇█ ▉▊▋▌▍▎▏▐▀", plain.fg(Color::Cyan));
        put(34, 3, "├──┼──┤ ┏━┓", plain.fg(Color::Indexed(208)));
        put(34, 4, "└──┴──┘ ┗━┛", plain.fg(Color::Indexed(208)));
        put(34, 5, "a < b && c > d", plain.fg(Color::Rgb(200, 160, 255)));
        put(1, 8, "P promote  R rollback  ? help", dim);
        buffer.set_style(Rect::new(1, 3, 30, 1), plain.bg(Color::Rgb(48, 52, 70)));
        buffer
    }

    #[test]
    fn a_screen_as_a_picture() {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../../snapshots/tui");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| {
            insta::assert_snapshot!("picture-dark", svg(&sample(), &DARK, Some("bowline")));
            insta::assert_snapshot!("picture-text", super::super::text(&sample()));
        });
    }
}
