//! Parses colours, and reduces them to the colours that a terminal supports.

use ratatui::style::Color;

/// The sixteen ANSI colours with their names. The index in this list is the number of the colour.
const ANSI: [(&str, Color); 16] = [
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::Gray),
    ("bright-black", Color::DarkGray),
    ("bright-red", Color::LightRed),
    ("bright-green", Color::LightGreen),
    ("bright-yellow", Color::LightYellow),
    ("bright-blue", Color::LightBlue),
    ("bright-magenta", Color::LightMagenta),
    ("bright-cyan", Color::LightCyan),
    ("bright-white", Color::White),
];

/// The word in a theme file that means the default colour of the terminal.
const OWN: &str = "default";

/// The six values that a channel (red, green, blue) can have in the colour cube of the 256-colour palette.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Returns the names of colours that theme files can contain.
pub(super) fn names<'n>() -> impl Iterator<Item = &'n str> {
    ANSI.into_iter().map(|(name, _)| name).chain([OWN])
}

/// Parses `#rrggbb`, the name of an ANSI colour, or `default`; None if the text has none of these forms.
pub(super) fn parse(text: &str) -> Option<Color> {
    if let Some(digits) = text.strip_prefix('#') {
        let hex = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| hex)?;
        return Some(Color::from_u32(number));
    }
    if text == OWN {
        return Some(Color::Reset);
    }
    let named = ANSI.into_iter().find(|(name, _)| *name == text);
    named.map(|(_, colour)| colour)
}

/// Returns the colour with this number in the 256-colour palette.
pub(super) fn numbered(number: u8) -> Color {
    let own = ANSI.get(usize::from(number));
    own.map_or(Color::Indexed(number), |(_, colour)| *colour)
}

/// Returns the channels red, green and blue of a colour. None for the ANSI colours, because each terminal defines
/// their values.
pub(super) fn channels(colour: Color) -> Option<[u8; 3]> {
    match colour {
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Indexed(number @ 16..) => Some(of_index(number)),
        _ => None,
    }
}

/// Returns the channels (red, green, blue) of a palette colour with a number from 16 on: first a colour cube, then
/// greys.
fn of_index(number: u8) -> [u8; 3] {
    if number >= 232 {
        return [8 + 10 * (number - 232); 3];
    }
    let within = number.saturating_sub(16);
    let step = |position: u8| STEPS[usize::from(position % 6)];
    [step(within / 36), step(within / 6), step(within)]
}

/// Returns the palette colour that is nearest to a colour, from number 16 on, because only these 240 colours are the
/// same in all terminals.
pub(super) fn of_256(colour: Color) -> Color {
    let Color::Rgb(red, green, blue) = colour else {
        return colour;
    };
    let wanted = Oklab::of([red, green, blue]);
    let nearest = (16..=u8::MAX).min_by(|a, b| {
        let distance = |number| wanted.distance(Oklab::of(of_index(number)));
        distance(*a).total_cmp(&distance(*b))
    });
    nearest.map_or(colour, Color::Indexed)
}

/// Returns the ANSI colour whose name (such as red or grey) people would use for this colour.
pub(super) fn of_16(colour: Color) -> Color {
    let Some(channels) = channels(colour) else {
        return colour;
    };
    let Oklab { light, a, b } = Oklab::of(channels);
    if a.hypot(b) < 0.04 {
        return match light {
            ..0.2 => Color::Black,
            ..0.6 => Color::DarkGray,
            ..0.9 => Color::Gray,
            _ => Color::White,
        };
    }
    let (dull, bright) = match b.atan2(a).to_degrees().rem_euclid(360.0) {
        45.0..125.0 => (Color::Yellow, Color::LightYellow),
        125.0..170.0 => (Color::Green, Color::LightGreen),
        170.0..225.0 => (Color::Cyan, Color::LightCyan),
        225.0..295.0 => (Color::Blue, Color::LightBlue),
        295.0..358.0 => (Color::Magenta, Color::LightMagenta),
        _ => (Color::Red, Color::LightRed),
    };
    if light < 0.7 { dull } else { bright }
}

/// A colour in the Oklab space, in which the distance of two colours is as large as their visible difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Oklab {
    light: f64,
    a: f64,
    b: f64,
}

impl Oklab {
    pub(super) fn of(channels: [u8; 3]) -> Self {
        Self::of_linear(channels.map(linear))
    }

    pub(super) fn of_linear([red, green, blue]: [f64; 3]) -> Self {
        let long = 0.412_221_470_8 * red + 0.536_332_536_3 * green + 0.051_445_992_9 * blue;
        let medium = 0.211_903_498_2 * red + 0.680_699_545_1 * green + 0.107_396_956_6 * blue;
        let short = 0.088_302_461_9 * red + 0.281_718_837_6 * green + 0.629_978_700_5 * blue;
        let [long, medium, short] = [long, medium, short].map(f64::cbrt);
        Self {
            light: 0.210_454_255_3 * long + 0.793_617_785 * medium - 0.004_072_046_8 * short,
            a: 1.977_998_495_1 * long - 2.428_592_205 * medium + 0.450_593_709_9 * short,
            b: 0.025_904_037_1 * long + 0.782_771_766_2 * medium - 0.808_675_766 * short,
        }
    }

    pub(super) fn distance(self, other: Self) -> f64 {
        let [light, a, b] = [self.light - other.light, self.a - other.a, self.b - other.b];
        (light * light + a * a + b * b).sqrt()
    }
}

/// Converts an sRGB channel to linear light, from 0 to 1.
pub(super) fn linear(channel: u8) -> f64 {
    let value = f64::from(channel) / 255.0;
    if value <= 0.040_45 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

/// Returns the relative luminance of a colour as defined by WCAG, from 0 to 1.
pub(super) fn luminance(channels: [u8; 3]) -> f64 {
    let [red, green, blue] = channels.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read() {
        for (text, expected) in [
            ("#ff8000", Some(Color::Rgb(255, 128, 0))),
            ("#FF8000", Some(Color::Rgb(255, 128, 0))),
            ("white", Some(Color::Gray)),
            ("bright-white", Some(Color::White)),
            ("default", Some(Color::Reset)),
            ("#fff", None),
            ("#gggggg", None),
            ("#+12345", None),
            ("#ff80000", None),
            ("#é1234", None),
            ("mauve", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(numbered(9), Color::LightRed);
        assert_eq!(numbered(99), Color::Indexed(99));
    }

    #[test]
    fn the_nearest_of_256_is_one_that_every_terminal_has() {
        for (from, expected) in [
            ([0, 0, 0], 16),
            ([255, 255, 255], 231),
            ([255, 0, 0], 196),
            ([95, 135, 175], 67),
            ([128, 128, 128], 244),
            ([8, 8, 8], 232),
        ] {
            let [red, green, blue] = from;
            let nearest = of_256(Color::Rgb(red, green, blue));
            assert_eq!(nearest, Color::Indexed(expected), "{from:?}");
        }
        for number in 16..=u8::MAX {
            let [red, green, blue] = of_index(number);
            let Color::Indexed(again) = of_256(Color::Rgb(red, green, blue)) else {
                panic!("{number} has no nearest");
            };
            assert_eq!(of_index(again), of_index(number));
        }
        assert_eq!(of_256(Color::Red), Color::Red);
    }

    #[test]
    fn sixteen_colours_keep_their_names() {
        for (text, expected) in [
            ("#e06c75", Color::Red),
            ("#ff5555", Color::Red),
            ("#ff9d94", Color::LightRed),
            ("#e69f00", Color::LightYellow),
            ("#b58900", Color::Yellow),
            ("#98c379", Color::LightGreen),
            ("#2e7d32", Color::Green),
            ("#56b4e9", Color::LightBlue),
            ("#0072b2", Color::Blue),
            ("#00afaf", Color::Cyan),
            ("#d33682", Color::Magenta),
            ("#000000", Color::Black),
            ("#606060", Color::DarkGray),
            ("#c0c0c0", Color::Gray),
            ("#ffffff", Color::White),
        ] {
            assert_eq!(of_16(parse(text).unwrap()), expected, "{text}");
        }
        assert_eq!(of_16(Color::Indexed(196)), Color::Red);
        assert_eq!(of_16(Color::Reset), Color::Reset);
    }
}
