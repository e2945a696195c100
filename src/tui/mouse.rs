//! Handles the mouse, if the user turned it on. Only the wheel has an effect: it scrolls.

use crossterm::event::{MouseEvent, MouseEventKind};
use jiff::Timestamp;

use super::action::Action;
use super::effect::Effect;
use super::model::Model;
use super::update::run;
use crate::engine::world::World;

/// Handles a mouse event: the wheel runs the actions Up and Down.
pub fn used(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    mouse: MouseEvent,
    effects: &mut Vec<Effect>,
) {
    let action = match mouse.kind {
        MouseEventKind::ScrollUp => Action::Up,
        MouseEventKind::ScrollDown => Action::Down,
        _ => return,
    };
    if model.over.is_none() {
        run(model, world, now, action, effects);
    }
}
