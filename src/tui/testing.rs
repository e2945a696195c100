//! Golden screens and keys for tests: a model on fixed ground, and what it draws at every size.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::effect::Effect;
use super::keymap::Keymap;
use super::model::{Event, Ground, Look, Model};
use super::theme::Theme;
use super::update::update;
use super::{pen, picture, view};
use crate::engine::world::World;

/// The sizes that every screen is drawn at.
pub(crate) const SIZES: [(u16, u16); 4] = [(200, 60), (120, 40), (80, 24), (40, 10)];

/// Makes a model on ground that never changes: ana in the namespace that worlds of tests are in.
pub(crate) fn model() -> Model {
    let ground = Ground {
        target: "prod-eu".to_owned(),
        namespace: "shop".to_owned(),
        user: "ana".to_owned(),
        readonly: None,
        protected: false,
        armed: None,
        simulated: false,
        contexts: Vec::new(),
        rights: Default::default(),
        zone: TimeZone::UTC,
    };
    let look = Look {
        theme: theme("dark"),
        keymap: Keymap::built_in("default").unwrap(),
        glyphs: &pen::UNICODE,
    };
    Model::new(ground, look, (120, 40))
}

fn theme(name: &str) -> Theme {
    Theme::built_in(name).unwrap()
}

/// Lets a model take in the world, as after it was listed.
pub(crate) fn listed(model: &mut Model, world: &World, now: Timestamp) -> Vec<Effect> {
    update(model, world, now, Event::World(Vec::new()))
}

/// Presses keys, written as keymaps write them with a blank between two, and returns what is wanted.
pub(crate) fn press(model: &mut Model, world: &World, now: Timestamp, keys: &str) -> Vec<Effect> {
    let keys = keys.split(' ').map(key);
    keys.flat_map(|key| update(model, world, now, Event::Key(key)))
        .collect()
}

/// Types a text, character by character.
pub(crate) fn type_in(model: &mut Model, world: &World, now: Timestamp, text: &str) -> Vec<Effect> {
    let keys = text
        .chars()
        .map(|c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    keys.flat_map(|key| update(model, world, now, Event::Key(key)))
        .collect()
}

fn key(word: &str) -> KeyEvent {
    let (modifiers, rest) = match word.strip_prefix("ctrl-") {
        Some(rest) => (KeyModifiers::CONTROL, rest),
        None => (KeyModifiers::NONE, word),
    };
    let code = match rest {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "space" => KeyCode::Char(' '),
        "tab" => KeyCode::Tab,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "backspace" => KeyCode::Backspace,
        one => {
            let mut letters = one.chars();
            let letter = letters.next().unwrap();
            assert_eq!(letters.next(), None, "{word} is no key");
            KeyCode::Char(letter)
        }
    };
    KeyEvent::new(code, modifiers)
}

/// Draws a model at a size.
pub(crate) fn drawn(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    (width, height): (u16, u16),
) -> Buffer {
    update(model, world, now, Event::Resize(width, height));
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    view::view(model, world, now, &mut buffer);
    buffer
}

/// Draws a model as text without colours.
pub(crate) fn seen(model: &mut Model, world: &World, now: Timestamp, size: (u16, u16)) -> String {
    picture::text(&drawn(model, world, now, size))
}

/// Compares a screen with what it looked like before: at every size, plain and in the colours of `dark`.
///
/// An escape character is written as `␛`, so that the files can be read and compared.
pub(crate) fn golden(name: &str, model: &mut Model, world: &World, now: Timestamp) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/tui"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for size in SIZES {
            let (width, height) = size;
            model.look.theme = theme("monochrome");
            let plain = picture::text(&drawn(model, world, now, size));
            insta::assert_snapshot!(format!("{name}-{width}x{height}"), plain);
            model.look.theme = theme("dark");
            let dark = picture::ansi(&drawn(model, world, now, size));
            let dark = dark.replace('\x1b', "␛");
            insta::assert_snapshot!(format!("{name}-{width}x{height}-dark"), dark);
        }
    });
}
