//! The modes that bowline sets on a terminal, and the sequences that reset the modes.
//!
//! `TERM` decides which modes are set. bowline does not ask the terminal which modes it supports, because a terminal
//! ignores unknown modes, and waiting for an answer would delay the start.

use super::osc::{ASK_BACKGROUND, Between};

/// The modes that bowline sets on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether bowline receives mouse events. If true, the user cannot select text with the terminal's own selection.
    pub mouse: bool,
    /// Whether to enable the kitty keyboard protocol, with which bowline can distinguish `ctrl-i` from `tab`.
    pub keyboard: bool,
    /// Whether the terminal understands OSC sequences, which set the title, copy text, write links
    /// and request the background colour.
    pub osc: bool,
    /// The terminal multiplexer between bowline and the terminal, if any.
    pub between: Between,
}

impl Options {
    /// Chooses the modes from the values of `TERM` and `TMUX`; None if the terminal cannot move its cursor.
    pub fn of(term: &str, in_tmux: bool, mouse: bool) -> Option<Options> {
        let family = term.split(['-', '.']).next().unwrap_or_default();
        let options = |keyboard, osc, between| Options {
            mouse,
            keyboard,
            osc,
            between,
        };
        match family {
            "" | "dumb" | "unknown" | "emacs" => None,
            _ if in_tmux => Some(options(true, true, Between::Tmux)),
            "tmux" => Some(options(true, true, Between::Tmux)),
            "screen" => Some(options(false, true, Between::Screen)),
            // Consoles of kernels, and hardware terminals. They do not understand OSC sequences.
            "linux" | "cons25" | "sun" | "vt52" | "vt100" | "vt102" | "vt220" | "vt320"
            | "ansi" => Some(options(false, false, Between::Nothing)),
            _ => Some(options(true, true, Between::Nothing)),
        }
    }

    /// Returns the sequences that set the modes: alternate screen, bracketed paste, focus reports, keyboard protocol,
    /// hidden cursor.
    pub fn enter(&self) -> Vec<u8> {
        let mut out = b"\x1b[?1049h\x1b[?2004h\x1b[?1004h".to_vec();
        if self.mouse {
            out.extend_from_slice(b"\x1b[?1000h\x1b[?1002h\x1b[?1006h");
        }
        if self.osc {
            // Let the terminal save its old title, so that `leave` can restore it.
            out.extend_from_slice(b"\x1b[22;2t");
        }
        if self.keyboard {
            out.extend_from_slice(b"\x1b[>1u");
        }
        out.extend_from_slice(b"\x1b[?25l");
        out
    }

    /// Returns the sequence that requests the background colour; empty if the terminal cannot
    /// report it.
    pub fn ask(&self) -> &'static [u8] {
        match self.osc {
            true => ASK_BACKGROUND,
            false => b"",
        }
    }

    /// Returns the sequences that restore the terminal. They also work if bowline was interrupted while it wrote a
    /// frame.
    pub fn leave(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.osc {
            // End a string sequence that may be unfinished, then a link that may be open.
            out.extend_from_slice(b"\x1b\\\x1b]8;;\x1b\\");
        }
        out.extend_from_slice(b"\x1b[?2026l\x1b[m");
        if self.keyboard {
            // The keyboard modes of the alternate screen are separate, so reset them before leaving that screen.
            out.extend_from_slice(b"\x1b[<u");
        }
        if self.osc {
            out.extend_from_slice(b"\x1b[23;2t");
        }
        if self.mouse {
            out.extend_from_slice(b"\x1b[?1006l\x1b[?1002l\x1b[?1000l");
        }
        out.extend_from_slice(b"\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?1049l");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_is_asked_for_depends_on_its_name() {
        for (term, tmux, expected) in [
            (
                "xterm-256color",
                false,
                Some((true, true, Between::Nothing)),
            ),
            ("xterm-kitty", false, Some((true, true, Between::Nothing))),
            ("tmux-256color", true, Some((true, true, Between::Tmux))),
            ("screen-256color", true, Some((true, true, Between::Tmux))),
            (
                "screen.xterm-256color",
                false,
                Some((false, true, Between::Screen)),
            ),
            ("linux", false, Some((false, false, Between::Nothing))),
            ("vt100", false, Some((false, false, Between::Nothing))),
            ("dumb", false, None),
            ("", false, None),
        ] {
            let options = Options::of(term, tmux, false);
            let told = options.map(|options| (options.keyboard, options.osc, options.between));
            assert_eq!(told, expected, "{term}");
        }
    }

    #[test]
    fn every_mode_that_is_set_is_taken_back() {
        for mouse in [false, true] {
            for term in ["xterm", "linux", "screen"] {
                let options = Options::of(term, false, mouse).unwrap();
                let text = |bytes| String::from_utf8(bytes).unwrap();
                let (enter, leave) = (text(options.enter()), text(options.leave()));
                let modes = |text: &str, end: char| -> Vec<String> {
                    let mut modes: Vec<String> = text
                        .split("\x1b[?")
                        .skip(1)
                        .filter_map(|rest| {
                            let stop = rest.find(|c: char| !c.is_ascii_digit())?;
                            (rest[stop..].starts_with(end)).then(|| rest[..stop].to_owned())
                        })
                        .collect();
                    modes.sort();
                    modes
                };
                let mut set = modes(&enter, 'h');
                // `leave` must also show the cursor, because `enter` hides it, and must end an unfinished frame.
                set.extend(modes(&enter, 'l'));
                set.push("2026".to_owned());
                set.sort();
                let mut back = modes(&leave, 'l');
                back.extend(modes(&leave, 'h'));
                back.sort();
                assert_eq!(set, back, "{term}");
                assert_eq!(enter.contains("\x1b[>1u"), leave.contains("\x1b[<u"));
                assert_eq!(enter.contains("\x1b[22;2t"), leave.contains("\x1b[23;2t"));
            }
        }
    }
}
