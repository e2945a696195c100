//! Jumps to any object by a part of its name.

use jiff::Timestamp;

use super::effect::Effect;
use super::model::Model;
use super::prompt::Offer;
use super::screens::Screen;
use crate::engine::world::{Key, World};

/// Offers the objects whose names are nearest.
pub fn offers(model: &Model, world: &World, _: Timestamp, text: &str) -> Vec<Offer> {
    let mut found: Vec<Offer> = world
        .components()
        .filter(|key| *key.namespace == *model.ground.namespace && key.name.contains(text))
        .take(20)
        .map(|key| Offer {
            text: key.name.to_string(),
            about: "component".to_owned(),
        })
        .collect();
    found.sort_by(|one, other| one.text.cmp(&other.text));
    found
}

/// Goes to what was chosen.
pub fn go(model: &mut Model, _: &World, _: Timestamp, offer: &Offer, _: &mut Vec<Effect>) {
    let key = Key::new(&model.ground.namespace, &offer.text);
    model.stack.truncate(1);
    if let Some(Screen::Matrix(matrix)) = model.stack.first_mut() {
        matrix.select(&key, None);
    }
}
