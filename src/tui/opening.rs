//! Which screen an action opens.

use jiff::Timestamp;

use super::action::Action;
use super::effect::Effect;
use super::model::{Level, Model, Wish};
use crate::engine::world::World;

/// Says what opening a screen wants of the model; None where the action means nothing here.
pub fn screen(
    model: &mut Model,
    _: &World,
    _: Timestamp,
    action: Action,
    _: &mut Vec<Effect>,
) -> Option<Wish> {
    match action {
        Action::GoMatrix => {
            model.stack.truncate(1);
            None
        }
        action => Some(Wish::Say(
            Level::Info,
            format!("{} means nothing here", action.word()),
        )),
    }
}
