//! Computes the number of colours and the background of a terminal from environment variables and from its background
//! colour. The callers pass in these values, because this module does not communicate with the terminal.

use super::colour;
use ratatui::style::Color;

/// The number of colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Mono,
    /// The sixteen ANSI colours, whose values the user configures in the terminal.
    Ansi16,
    Ansi256,
    True,
}

/// The values of `TERM` of terminals that have true colour, even if `COLORTERM` does not say so.
const TRUE: [&str; 7] = [
    "alacritty",
    "contour",
    "foot",
    "wezterm",
    "xterm-ghostty",
    "xterm-kitty",
    "rio",
];

/// The values of `TERM` of terminals without colours.
const NONE: [&str; 6] = ["dumb", "vt52", "vt100", "vt102", "vt220", "xterm-mono"];

impl Depth {
    /// Computes the number of colours from the values of `NO_COLOR`, `COLORTERM` and `TERM`.
    pub fn of(no_color: Option<&str>, colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        let colorterm = colorterm.unwrap_or_default().to_ascii_lowercase();
        if no_color.is_some_and(|value| !value.is_empty()) || NONE.contains(&term) {
            return Self::Mono;
        }
        let says_true = matches!(colorterm.as_str(), "truecolor" | "24bit");
        let is_true = |known: &&str| {
            let rest = term.strip_prefix(known);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        if says_true || term.ends_with("-direct") || TRUE.iter().any(is_true) {
            Self::True
        } else if term.contains("256color") {
            Self::Ansi256
        } else {
            Self::Ansi16
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

impl Background {
    /// Computes whether the background is dark or light from `COLORFGBG`, which some terminals set to the colour
    /// numbers of text and background, for example `15;0`. None if the value is invalid.
    pub fn of_colorfgbg(value: &str) -> Option<Self> {
        match value.rsplit(';').next()?.trim().parse::<u8>().ok()? {
            0..=6 | 8 => Some(Self::Dark),
            7 | 9..=15 => Some(Self::Light),
            number => colour::channels(Color::Indexed(number)).map(Self::of_channels),
        }
    }

    /// Returns the name of the built-in theme that fits this background.
    pub fn theme(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
        }
    }

    /// Decides whether a background colour counts as dark or light.
    pub fn of_channels(channels: [u8; 3]) -> Self {
        // Above this luminance, black text has more contrast than white text.
        if colour::luminance(channels) > 0.179 {
            Self::Light
        } else {
            Self::Dark
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_what_the_environment_says() {
        use Depth::*;
        for (no_color, colorterm, term, expected) in [
            (None, None, None, Ansi16),
            (None, None, Some("xterm"), Ansi16),
            (None, None, Some("linux"), Ansi16),
            (None, None, Some("xterm-256color"), Ansi256),
            (None, None, Some("tmux-256color"), Ansi256),
            (None, Some("truecolor"), Some("xterm-256color"), True),
            (None, Some("24bit"), Some("xterm"), True),
            (None, Some("TrueColor"), None, True),
            (None, Some("yes"), Some("screen"), Ansi16),
            (None, None, Some("xterm-kitty"), True),
            (None, None, Some("foot-extra"), True),
            (None, None, Some("footloose"), Ansi16),
            (None, None, Some("xterm-direct"), True),
            (None, None, Some("dumb"), Mono),
            (None, Some("truecolor"), Some("vt100"), Mono),
            (Some("1"), Some("truecolor"), Some("xterm-256color"), Mono),
            (Some(""), Some("truecolor"), None, True),
        ] {
            let depth = Depth::of(no_color, colorterm, term);
            assert_eq!(depth, expected, "{no_color:?} {colorterm:?} {term:?}");
        }
    }

    #[test]
    fn the_background_is_what_the_terminal_says() {
        use Background::*;
        for (value, expected) in [
            ("15;0", Some(Dark)),
            ("0;15", Some(Light)),
            ("0;default;7", Some(Light)),
            ("12;8", Some(Dark)),
            ("0;231", Some(Light)),
            ("0;16", Some(Dark)),
            ("15;default", None),
            ("", None),
            ("0;300", None),
        ] {
            assert_eq!(Background::of_colorfgbg(value), expected, "{value}");
        }
        for (channels, expected) in [
            ([255, 255, 255], Light),
            ([0xfd, 0xf6, 0xe3], Light),
            ([0x1e, 0x1e, 0x2e], Dark),
            ([0x28, 0x2c, 0x34], Dark),
            ([0, 0, 0], Dark),
        ] {
            assert_eq!(Background::of_channels(channels), expected, "{channels:?}");
        }
        assert_eq!((Dark.theme(), Light.theme()), ("dark", "light"));
    }
}
