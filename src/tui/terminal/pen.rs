//! Changes the text style of a terminal with as few bytes as possible.
//!
//! Each change of the style is one SGR sequence. The sequence starts with a reset if that is shorter than removing
//! single attributes. Its parameters contain only digits, `;` and `:`.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

/// The style of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub fg: Color,
    pub bg: Color,
    pub line: Color,
    /// The attributes of the style, such as bold, dim and reversed.
    pub modifier: Modifier,
}

pub const PLAIN: Look = Look {
    fg: Color::Reset,
    bg: Color::Reset,
    line: Color::Reset,
    modifier: Modifier::empty(),
};

/// The attributes, as (flag, SGR parameter that sets the attribute, SGR parameter that removes it).
const ATTRIBUTES: [(Modifier, &str, &str); 9] = [
    (Modifier::BOLD, "1", "22"),
    (Modifier::DIM, "2", "22"),
    (Modifier::ITALIC, "3", "23"),
    (Modifier::UNDERLINED, "4", "24"),
    (Modifier::SLOW_BLINK, "5", "25"),
    (Modifier::RAPID_BLINK, "6", "25"),
    (Modifier::REVERSED, "7", "27"),
    (Modifier::HIDDEN, "8", "28"),
    (Modifier::CROSSED_OUT, "9", "29"),
];

/// The attributes that are visible on a blank cell.
const ON_BLANKS: Modifier = Modifier::UNDERLINED
    .union(Modifier::REVERSED)
    .union(Modifier::CROSSED_OUT);

impl Look {
    pub fn of(cell: &Cell) -> Look {
        Look {
            fg: cell.fg,
            bg: cell.bg,
            line: cell.underline_color,
            modifier: cell.modifier,
        }
    }

    /// Returns whether a blank looks the same in both styles. The text colours may differ, unless an attribute makes
    /// them visible on blanks.
    pub fn same_blank(self, other: Look) -> bool {
        let shown = |look: Look| look.modifier.intersection(ON_BLANKS);
        self.bg == other.bg
            && shown(self) == shown(other)
            && (shown(self).is_empty() || (self.fg == other.fg && self.line == other.line))
    }
}

/// Writes the sequence that changes the style from `from` to `to`. Writes nothing if both are equal.
pub fn change(from: Look, to: Look, out: &mut Vec<u8>) {
    if from == to {
        return;
    }
    let mut onwards = Parameters::default();
    onwards.attributes(from.modifier, to.modifier);
    onwards.colours(from, to);
    let mut anew = Parameters::default();
    anew.push("0");
    anew.attributes(Modifier::empty(), to.modifier);
    anew.colours(PLAIN, to);
    let shorter = match anew.text.len() < onwards.text.len() {
        true => anew,
        false => onwards,
    };
    out.extend_from_slice(b"\x1b[");
    // The parameter 0 (reset) is the default, so a single 0 can be omitted.
    if shorter.text != "0" {
        out.extend_from_slice(shorter.text.as_bytes());
    }
    out.push(b'm');
}

#[derive(Default)]
struct Parameters {
    text: String,
}

impl Parameters {
    fn push(&mut self, parameter: &str) {
        if !self.text.is_empty() {
            self.text.push(';');
        }
        self.text.push_str(parameter);
    }

    fn attributes(&mut self, from: Modifier, to: Modifier) {
        let mut left = from;
        for (attribute, _, off) in ATTRIBUTES {
            if left.contains(attribute) && !to.contains(attribute) {
                self.push(off);
                // Bold and dim share the parameter that removes them, and so do both kinds of blinking.
                for (other, _, same) in ATTRIBUTES {
                    if same == off {
                        left.remove(other);
                    }
                }
            }
        }
        for (attribute, on, _) in ATTRIBUTES {
            if to.contains(attribute) && !left.contains(attribute) {
                self.push(on);
            }
        }
    }

    fn colours(&mut self, from: Look, to: Look) {
        if from.fg != to.fg {
            let parameter = colour(to.fg, Layer::Text);
            self.push(&parameter);
        }
        if from.bg != to.bg {
            let parameter = colour(to.bg, Layer::Behind);
            self.push(&parameter);
        }
        if from.line != to.line {
            let parameter = line_colour(to.line);
            self.push(&parameter);
        }
    }
}

#[derive(Clone, Copy)]
enum Layer {
    Text = 30,
    Behind = 40,
}

fn colour(colour: Color, layer: Layer) -> String {
    let base = layer as u16;
    match colour {
        Color::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue}", base + 8),
        Color::Reset => (base + 9).to_string(),
        named => match index(named) {
            index @ 0..=7 => (base + u16::from(index)).to_string(),
            index @ 8..=15 => (base + 52 + u16::from(index)).to_string(),
            index => format!("{};5;{index}", base + 8),
        },
    }
}

/// Returns the parameter for the colour of the underline. It contains colons instead of semicolons, so that a
/// terminal without underline colours ignores the whole parameter.
fn line_colour(colour: Color) -> String {
    match colour {
        Color::Rgb(red, green, blue) => format!("58:2::{red}:{green}:{blue}"),
        Color::Reset => "59".to_owned(),
        named => format!("58:5:{}", index(named)),
    }
}

/// Returns the index of a colour in the 256-colour palette; 0 if the colour has no index.
pub fn index(colour: Color) -> u8 {
    match colour {
        Color::Indexed(index) => index,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Black | Color::Reset | Color::Rgb(..) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    fn look(style: Style) -> Look {
        Look::of(Cell::default().set_style(style))
    }

    fn changed(from: Style, to: Style) -> String {
        let mut out = Vec::new();
        change(look(from), look(to), &mut out);
        String::from_utf8(out).unwrap().replace('\x1b', "^")
    }

    #[test]
    fn a_change_is_one_short_sequence() {
        let plain = Style::new();
        let red = plain.fg(Color::Red);
        for (from, to, written) in [
            (plain, plain, ""),
            (plain, red, "^[31m"),
            (red, plain, "^[m"),
            (red, plain.fg(Color::LightRed), "^[91m"),
            (plain, plain.bg(Color::LightRed), "^[101m"),
            (plain, plain.fg(Color::Indexed(3)), "^[33m"),
            (plain, plain.fg(Color::Indexed(214)), "^[38;5;214m"),
            (plain, plain.bg(Color::Rgb(1, 20, 255)), "^[48;2;1;20;255m"),
            (red.bold(), red, "^[22m"),
            (red.bold().dim(), red.bold(), "^[22;1m"),
            (plain.bold(), plain.dim(), "^[0;2m"),
            (red.bold(), red.dim(), "^[22;2m"),
            (plain.bold(), plain, "^[m"),
            (red.reversed(), red.underlined(), "^[27;4m"),
            (
                plain.bg(Color::Rgb(1, 2, 3)).bold(),
                plain.bg(Color::Rgb(1, 2, 3)).fg(Color::Blue),
                "^[22;34m",
            ),
            (
                red.bold().italic().underlined().reversed(),
                plain.fg(Color::Blue),
                "^[0;34m",
            ),
            (
                plain,
                plain.underlined().underline_color(Color::Rgb(9, 8, 7)),
                "^[4;58:2::9:8:7m",
            ),
            (
                red.underlined().underline_color(Color::Red),
                red.underlined(),
                "^[59m",
            ),
        ] {
            assert_eq!(changed(from, to), written, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn blanks_differ_only_in_what_shows() {
        let plain = Style::new();
        for (one, other, same) in [
            (plain.fg(Color::Red), plain.bold(), true),
            (plain.bg(Color::Red), plain, false),
            (plain.underlined(), plain, false),
            (plain.underlined().fg(Color::Red), plain.underlined(), false),
            (plain.reversed(), plain.reversed().bold(), true),
        ] {
            assert_eq!(
                look(one).same_blank(look(other)),
                same,
                "{one:?} and {other:?}"
            );
        }
    }
}
