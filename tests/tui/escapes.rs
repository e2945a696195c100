//! A strict parser for what bowline writes to a terminal. It accepts text, line ends and a short list of
//! escape sequences. Any other sequence is an error, because it must come from foreign data.

use bowline::text;

/// The numbers of the terminal modes that bowline may set and reset.
const MODES: [&str; 8] = ["25", "1000", "1002", "1004", "1006", "1049", "2004", "2026"];

/// Checks the output of bowline. The error contains the first forbidden sequence and the text before it.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match element(rest) {
            Some(length) => rest = &rest[length..],
            None => {
                let at = bytes.len() - rest.len();
                let from = at.saturating_sub(60);
                let to = (at + 40).min(bytes.len());
                let around = String::from_utf8_lossy(&bytes[from..to]);
                return Err(format!(
                    "what is at byte {at} may not be written: {around:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Returns the length in bytes of the first character or sequence; None if it is forbidden.
fn element(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\r' | b'\n', ..] => Some(1),
        [0x1b, b'[', rest @ ..] => Some(2 + control(rest)?),
        [0x1b, b']', rest @ ..] => Some(2 + string(rest)?),
        // This sequence ends a string that an incomplete frame left open.
        [0x1b, b'\\', ..] => Some(2),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Option<usize> {
    let longest = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&longest[..error.valid_up_to()]).ok()?,
    };
    let c = valid.chars().next()?;
    (!c.is_control() && !text::is_unsafe(c)).then(|| c.len_utf8())
}

/// Returns the length of a control sequence (CSI) after its first two bytes; None if the sequence is
/// forbidden.
fn control(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    let parameters = std::str::from_utf8(&bytes[..end]).ok()?;
    let numbers = |allowed: &str| {
        parameters
            .chars()
            .all(|c| c.is_ascii_digit() || allowed.contains(c))
    };
    let is_known = match bytes[end] {
        b'm' => numbers(";:"),
        b'H' => numbers(";"),
        b'G' | b'C' | b'J' | b'K' => numbers(""),
        b'h' | b'l' => {
            let mode = parameters.strip_prefix('?');
            mode.is_some_and(|mode| MODES.contains(&mode))
        }
        b'u' => [">1", "<"].contains(&parameters),
        b't' => ["22;2", "23;2"].contains(&parameters),
        _ => false,
    };
    is_known.then_some(end + 1)
}

/// Returns the length of an operating system command (OSC) after its first two bytes; None if the command is
/// forbidden.
fn string(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|pair| pair == b"\x1b\\")?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let is_clean = !text.chars().any(|c| c.is_control() || text::is_unsafe(c));
    let is_base64 = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
    };
    let is_known = text == "11;?"
        || text == "8;;"
        || text.starts_with("2;")
        || text.starts_with("8;;https://")
        || text.starts_with("8;;http://")
        || text.strip_prefix("52;c;").is_some_and(is_base64);
    (is_clean && is_known).then_some(end + 2)
}

/// Tests which sequences the parser accepts and which it refuses.
pub fn what_passes() {
    for fine in [
        "plain text, größe 界 ● │\r\nnext\n",
        "\x1b[1;31mred\x1b[m\x1b[38;2;1;2;3m\x1b[58:2::1:2:3m",
        "\x1b[?1049h\x1b[?2026h\x1b[3;4H\x1b[17G\x1b[C\x1b[2J\x1b[?2026l\x1b[>1u\x1b[<u",
        "\x1b]8;;https://a.example/x\x1b\\here\x1b]8;;\x1b\\",
        "\x1b]52;c;aGk=\x1b\\\x1b]2;bowline\x1b\\\x1b]11;?\x1b\\\x1b\\",
    ] {
        check(fine.as_bytes()).unwrap();
    }
    for wrong in [
        "\x07",
        "\x08",
        "\t",
        "\x1b",
        "\x1bc",
        "\x1b[6n",
        "\x1b[?47h",
        "\x1b[?25",
        "\x1b[31;1",
        "\x1b]0;title\x07",
        "\x1b]52;c;?\x1b\\",
        "\x1b]8;;file:///etc\x1b\\",
        "\x1b]2;a\u{202e}b\x1b\\",
        "\x1bPtmux;\x1b\\",
        "\u{9b}31m",
        "\u{202e}",
        "\u{200b}",
        "\u{feff}",
        "\u{e0041}",
    ] {
        assert!(check(wrong.as_bytes()).is_err(), "{wrong:?}");
    }
    assert!(check(b"\xff\xfe").is_err());
    assert!(check(b"ok\xc3").is_err());
}
