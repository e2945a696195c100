//! A key press, in one form for all terminals.
//!
//! Terminals differ: some report a capital letter with shift and some without, ctrl with upper or lower case, and
//! repeats and releases as separate events. A terminal without the kitty protocol cannot distinguish some keys (tab
//! and ctrl-i, enter and ctrl-m). Therefore bowline never distinguishes these keys, so that a keymap works the same
//! in all terminals.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::text;

/// A key with its modifiers, in the form that is the same for all terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    held: KeyModifiers,
}

/// The error for a word that is not the name of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a key; write a character (P, /) or a name (space, enter, esc, tab, backspace, delete, insert, home, end, page-up, page-down, up, down, left, right, f1), with ctrl-, alt- or shift- before it if needed"
)]
pub struct UnknownKey(pub String);

/// The keys that have a name instead of a character.
const NAMES: [(&str, KeyCode); 15] = [
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("page-up", KeyCode::PageUp),
    ("page-down", KeyCode::PageDown),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
];

/// The modifiers, in the order in which bowline prints them.
const HELD: [(&str, KeyModifiers); 3] = [
    ("ctrl-", KeyModifiers::CONTROL),
    ("alt-", KeyModifiers::ALT),
    ("shift-", KeyModifiers::SHIFT),
];

impl Key {
    /// Returns the key of a terminal event. None if the event is the release of a key, a modifier alone, or a key
    /// that a keymap cannot bind. A key that is held down arrives as several presses.
    pub fn of(event: KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        Self::normal(event.code, event.modifiers)
    }

    /// Parses a sequence of keys, such as `g m`.
    pub fn sequence(text: &str) -> Result<Vec<Self>, UnknownKey> {
        text.split_whitespace().map(str::parse).collect()
    }

    /// Formats a sequence of keys so that [`Key::sequence`] can parse it.
    pub fn print(keys: &[Self]) -> String {
        let words: Vec<String> = keys.iter().map(ToString::to_string).collect();
        words.join(" ")
    }

    /// Returns whether the key types a character, so it has neither ctrl nor alt.
    pub fn is_typed(self) -> bool {
        self.character().is_some()
    }

    /// Returns whether the key types a capital letter. The keymap checks this, because only capital letters can open
    /// plans.
    pub fn is_capital(self) -> bool {
        self.character().is_some_and(char::is_uppercase)
    }

    /// Returns the character that the key types; None if it types no character.
    pub fn character(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if self.held.is_empty() => Some(c),
            _ => None,
        }
    }

    /// Returns the terminal event of a press of this key.
    pub fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.held)
    }

    fn normal(code: KeyCode, mut held: KeyModifiers) -> Option<Self> {
        if held.contains(KeyModifiers::META) {
            held.insert(KeyModifiers::ALT);
        }
        if held.intersects(KeyModifiers::SUPER | KeyModifiers::HYPER) {
            return None;
        }
        held &= KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        let shifted = held.contains(KeyModifiers::SHIFT);
        let code = match code {
            KeyCode::Char(c) if text::is_unsafe(c) || (c.is_whitespace() && c != ' ') => {
                return None;
            }
            KeyCode::Char(c) if held.contains(KeyModifiers::CONTROL) => {
                held.remove(KeyModifiers::SHIFT);
                match with_control(c) {
                    code @ KeyCode::Char(_) => code,
                    code => {
                        held.remove(KeyModifiers::CONTROL);
                        code
                    }
                }
            }
            KeyCode::Char(c) => {
                held.remove(KeyModifiers::SHIFT);
                let mut upper = c.to_uppercase();
                match (upper.next(), upper.next()) {
                    (Some(upper), None) if shifted => KeyCode::Char(upper),
                    _ => KeyCode::Char(c),
                }
            }
            KeyCode::BackTab => {
                held.insert(KeyModifiers::SHIFT);
                KeyCode::Tab
            }
            KeyCode::F(1..=24) => code,
            _ if NAMES.iter().any(|(_, named)| *named == code) => code,
            _ => return None,
        };
        Some(Self { code, held })
    }
}

/// Returns the key that a terminal without the kitty protocol reports for ctrl and this character.
fn with_control(c: char) -> KeyCode {
    match c.to_ascii_lowercase() {
        'i' => KeyCode::Tab,
        'm' => KeyCode::Enter,
        '[' | '3' => KeyCode::Esc,
        '@' | '2' => KeyCode::Char(' '),
        '4' => KeyCode::Char('\\'),
        '5' => KeyCode::Char(']'),
        '6' => KeyCode::Char('^'),
        '7' | '_' => KeyCode::Char('/'),
        lower => KeyCode::Char(lower),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, held) in HELD {
            if self.held.contains(held) {
                f.write_str(word)?;
            }
        }
        let named = NAMES.iter().find(|(_, code)| *code == self.code);
        match (named, self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(number)) => write!(f, "f{number}"),
            (None, _) => Ok(()),
        }
    }
}

impl FromStr for Key {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(text.to_owned());
        let mut held = KeyModifiers::NONE;
        let mut rest = text;
        // The key is the text after the last dash. This text may itself be a dash.
        while let Some((word, modifier)) = HELD
            .into_iter()
            .find(|(word, _)| rest.len() > word.len() && rest.starts_with(word))
        {
            if held.contains(modifier) {
                return Err(unknown());
            }
            held.insert(modifier);
            rest = rest.strip_prefix(word).unwrap_or_default();
        }
        let mut characters = rest.chars();
        let code = match (characters.next(), characters.next()) {
            (Some(c), None) if !c.is_whitespace() => KeyCode::Char(c),
            (Some('f'), Some('1'..='9')) => KeyCode::F(
                rest.get(1..)
                    .and_then(|n| n.parse().ok())
                    .ok_or_else(unknown)?,
            ),
            _ => {
                let named = NAMES.iter().find(|(name, _)| *name == rest);
                named.ok_or_else(unknown)?.1
            }
        };
        Self::normal(code, held).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    #[test]
    fn one_key_has_one_form_in_every_terminal() {
        use KeyCode::*;
        const NONE: KeyModifiers = KeyModifiers::NONE;
        const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
        const CTRL: KeyModifiers = KeyModifiers::CONTROL;
        const ALT: KeyModifiers = KeyModifiers::ALT;
        for (code, held, expected) in [
            (Char('P'), SHIFT, "P"),
            (Char('P'), NONE, "P"),
            (Char('p'), SHIFT, "P"),
            (Char('?'), SHIFT, "?"),
            (Char('ß'), SHIFT, "ß"),
            (Char('D'), CTRL | SHIFT, "ctrl-d"),
            (Char('d'), CTRL, "ctrl-d"),
            (Char('i'), CTRL, "tab"),
            (Char('m'), CTRL | ALT, "alt-enter"),
            (Char(' '), CTRL, "ctrl-space"),
            (Char('7'), CTRL, "ctrl-/"),
            (Char('v'), ALT | SHIFT, "alt-V"),
            (Char('<'), ALT, "alt-<"),
            (Char('-'), CTRL, "ctrl--"),
            (Char('x'), KeyModifiers::META, "alt-x"),
            (BackTab, NONE, "shift-tab"),
            (BackTab, SHIFT, "shift-tab"),
            (Tab, SHIFT, "shift-tab"),
            (Left, ALT, "alt-left"),
            (F(1), NONE, "f1"),
            (PageUp, CTRL | SHIFT, "ctrl-shift-page-up"),
            (Char(' '), SHIFT, "space"),
        ] {
            let made = Key::of(KeyEvent::new(code, held)).unwrap();
            assert_eq!(made.to_string(), expected, "{code:?} {held:?}");
            assert_eq!(made, key(expected));
        }
    }

    #[test]
    fn what_is_no_press_of_a_key_is_no_key() {
        for (kind, pressed) in [(KeyEventKind::Release, false), (KeyEventKind::Repeat, true)] {
            let event = KeyEvent::new_with_kind(KeyCode::Char('j'), KeyModifiers::NONE, kind);
            assert_eq!(Key::of(event).is_some(), pressed);
        }
        for (code, held) in [
            (KeyCode::Char('c'), KeyModifiers::SUPER),
            (KeyCode::Char('\u{1b}'), KeyModifiers::NONE),
            (KeyCode::CapsLock, KeyModifiers::NONE),
            (KeyCode::Null, KeyModifiers::NONE),
            (KeyCode::F(99), KeyModifiers::NONE),
        ] {
            assert_eq!(Key::of(KeyEvent::new(code, held)), None, "{code:?}");
        }
        for text in [
            "",
            "ctrl-",
            "pageup",
            "ctrl-ctrl-a",
            "f0",
            "f25",
            "fx",
            "f1x",
            "Space",
            "gg",
            "super-a",
            "\u{200b}",
            "alt-\u{7}",
        ] {
            assert_eq!(text.parse::<Key>(), Err(UnknownKey(text.to_owned())));
        }
    }

    #[test]
    fn capitals_and_typed_characters_are_known() {
        for (text, capital, typed) in [
            ("P", true, true),
            ("É", true, true),
            ("p", false, true),
            ("space", false, true),
            ("ctrl-p", false, false),
            ("alt-P", false, false),
            ("enter", false, false),
        ] {
            let key = key(text);
            assert_eq!(
                (key.is_capital(), key.is_typed()),
                (capital, typed),
                "{text}"
            );
        }
    }

    fn codes() -> impl Strategy<Value = KeyCode> {
        prop_oneof![
            any::<char>().prop_map(KeyCode::Char),
            proptest::char::range('!', '~').prop_map(KeyCode::Char),
            any::<u8>().prop_map(KeyCode::F),
            proptest::sample::select(NAMES.map(|(_, code)| code).to_vec()),
            Just(KeyCode::BackTab),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(code in codes(), held in any::<u8>()) {
            let event = KeyEvent::new(code, KeyModifiers::from_bits_truncate(held));
            if let Some(key) = Key::of(event) {
                prop_assert_eq!(key.to_string().parse::<Key>(), Ok(key));
                prop_assert_eq!(Key::sequence(&Key::print(&[key, key])), Ok(vec![key, key]));
            }
        }

        #[test]
        fn no_text_is_too_strange(text in "(ctrl-|alt-|shift-|f|.){0,4}") {
            if let Ok(key) = text.parse::<Key>() {
                prop_assert_eq!(key.to_string().parse::<Key>(), Ok(key));
            }
        }
    }
}
