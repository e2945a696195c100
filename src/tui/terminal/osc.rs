//! OSC sequences for the terminal: copy to the clipboard, set the title, request the background colour.
//!
//! Parts of their text come from clusters. This module encodes the text or removes control characters, so that the
//! text cannot end its sequence and start another.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use crate::text;

/// The maximum length in bytes of an encoded text to copy, because xterm and tmux ignore longer sequences without an
/// error.
const LONGEST_COPY: usize = 74_994;

/// The maximum length in bytes of a string that GNU screen passes on to the terminal. Longer sequences are split.
const SCREEN_CHUNK: usize = 700;

/// The maximum width of a window title, in columns.
const LONGEST_TITLE: usize = 120;

/// A terminal multiplexer between bowline and the terminal. It passes a sequence on only if the sequence is wrapped
/// in a special form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    #[default]
    Nothing,
    Tmux,
    Screen,
}

/// The reasons why bowline cannot copy a text.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The text is too long. A terminal would ignore it without an error.
    #[error("{} is too much to copy through the terminal (limit {})", text::bytes(*.length as u64), text::bytes(*.limit as u64))]
    TooLong {
        /// The length of the text, in bytes.
        length: usize,
        /// The maximum length of a text, in bytes.
        limit: usize,
    },
    /// The terminal has no sequence for copying to the clipboard.
    #[error("this terminal cannot copy: it does not support OSC sequences")]
    NotThere,
    #[error("cannot write to the terminal: {0}")]
    Write(#[from] std::io::Error),
}

/// A colour that a terminal reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
}

/// The sequence that requests the background colour. The terminal sends the colour as input, or ignores the request.
pub const ASK_BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";

/// Returns the sequences that copy a text to the clipboard; fails if the text is too long.
pub fn copy(text: &str, between: Between) -> Result<Vec<u8>, CopyError> {
    let encoded = STANDARD.encode(text);
    if encoded.len() > LONGEST_COPY {
        return Err(CopyError::TooLong {
            length: text.len(),
            limit: LONGEST_COPY / 4 * 3,
        });
    }
    let sequence = format!("\x1b]52;c;{encoded}\x1b\\").into_bytes();
    Ok(match between {
        Between::Nothing => sequence,
        // tmux accepts the plain sequence if its option set-clipboard is on, and the wrapped sequence if its option
        // allow-passthrough is on. So send both.
        Between::Tmux => [sequence.clone(), tmux(&sequence)].concat(),
        Between::Screen => screen(&sequence),
    })
}

fn tmux(sequence: &[u8]) -> Vec<u8> {
    let mut out = b"\x1bPtmux;".to_vec();
    for &byte in sequence {
        if byte == 0x1b {
            out.push(byte);
        }
        out.push(byte);
    }
    out.extend_from_slice(b"\x1b\\");
    out
}

fn screen(sequence: &[u8]) -> Vec<u8> {
    // GNU screen would treat the end of the inner sequence as the end of its own sequence, so end the inner sequence
    // with BEL instead.
    let inner = sequence.strip_suffix(b"\x1b\\").unwrap_or(sequence);
    let inner = [inner, b"\x07"].concat();
    let mut out = Vec::new();
    for chunk in inner.chunks(SCREEN_CHUNK) {
        out.extend_from_slice(b"\x1bP");
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\x1b\\");
    }
    out
}

/// Returns the sequence that sets the window title, cut to the maximum width.
pub fn title(name: &str) -> Vec<u8> {
    let name = text::fit(name, LONGEST_TITLE);
    format!("\x1b]2;{name}\x1b\\").into_bytes()
}

/// Parses the part of the terminal's report after `11;`, for example `rgb:1e1e/1e1e/2e2e`. None if this part is
/// invalid.
pub fn background(answer: &str) -> Option<Rgb> {
    let channels = answer
        .strip_prefix("rgb:")
        .or_else(|| answer.strip_prefix("rgba:"))?;
    let mut channels = channels.split('/').map(channel);
    let (red, green, blue) = (channels.next()??, channels.next()??, channels.next()??);
    // After the three colour channels, only an opacity is allowed.
    let opacity = channels.next().is_none_or(|channel| channel.is_some());
    (opacity && channels.next().is_none()).then_some(Rgb { red, green, blue })
}

/// Parses one to four hex digits, and scales the value to 0..=255.
fn channel(digits: &str) -> Option<u8> {
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    let largest = 16u32.pow(u32::try_from(digits.len()).ok()?) - 1;
    u8::try_from((value * 255 + largest / 2) / largest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text: &str, between: Between) -> String {
        String::from_utf8(copy(text, between).unwrap())
            .unwrap()
            .replace('\x1b', "^")
            .replace('\x07', "$")
    }

    #[test]
    fn a_copy_gets_through_what_is_in_between() {
        for (between, written) in [
            (Between::Nothing, "^]52;c;aGk=^\\"),
            (Between::Tmux, "^]52;c;aGk=^\\^Ptmux;^^]52;c;aGk=^^\\^\\"),
            (Between::Screen, "^P^]52;c;aGk=$^\\"),
        ] {
            assert_eq!(copied("hi", between), written, "{between:?}");
        }
        let long = copied(&"x".repeat(3000), Between::Screen);
        let parts: Vec<&str> = long.split_terminator("^\\").collect();
        assert_eq!(parts.len(), 6);
        assert!(parts.iter().all(|part| part.starts_with("^P")));
        let joined: String = parts.iter().map(|part| &part[2..]).collect();
        assert_eq!(joined.len(), "^]52;c;$".len() + 4000);
    }

    #[test]
    fn what_terminals_would_drop_is_refused() {
        let error = copy(&"x".repeat(60_000), Between::Nothing).unwrap_err();
        assert_eq!(
            error.to_string(),
            "59 KB is too much to copy through the terminal (limit 55 KB)"
        );
    }

    #[test]
    fn a_title_cannot_end_its_sequence() {
        let written = title("a\x1b\\\x07\x1b]52;c;AAAA\x07b\nc");
        let written = String::from_utf8(written).unwrap();
        let inner = written.strip_prefix("\x1b]2;").unwrap();
        let inner = inner.strip_suffix("\x1b\\").unwrap();
        assert!(!inner.chars().any(char::is_control), "{inner:?}");
    }

    #[test]
    fn backgrounds_are_read_in_every_form() {
        let rgb = |red, green, blue| Some(Rgb { red, green, blue });
        for (answer, read) in [
            ("rgb:1e1e/1e1e/2e2e", rgb(30, 30, 46)),
            ("rgb:ffff/ffff/ffff", rgb(255, 255, 255)),
            ("rgb:ff/80/00", rgb(255, 128, 0)),
            ("rgb:f/8/0", rgb(255, 136, 0)),
            ("rgba:0000/0000/0000/ffff", rgb(0, 0, 0)),
            ("rgb:fffff/0/0", None),
            ("rgb:ff/80", None),
            ("rgb:ff/80/00/", None),
            ("rgb:ffff/ffff/ffff/ffff/ffff", None),
            ("rgb:gg/00/00", None),
            ("rgb:+f/00/00", None),
            ("", None),
        ] {
            assert_eq!(background(answer), read, "{answer}");
        }
    }
}
