//! Which screen an action opens.

use jiff::Timestamp;

use super::action::Action;
use super::effect::{Effect, Place};
use super::model::{Level, Model, Turn, Wish};
use super::screens::{Screen, component, diff, revisions};
use super::update::front;
use crate::engine::world::World;

/// Says what opening a screen wants of the model; None where the action means nothing here.
pub fn screen(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    action: Action,
    effects: &mut Vec<Effect>,
) -> Option<Wish> {
    let mut open = |model: &mut Model, make: &mut dyn FnMut(&mut Turn<'_>) -> Screen| {
        let opened = front(model, world, now, effects, |_, turn| make(turn));
        opened.map(|screen| Wish::Open(Box::new(screen)))
    };
    match action {
        Action::GoMatrix => {
            model.stack.truncate(1);
            None
        }
        Action::GoComponent | Action::Open if can_open(model, action) => {
            let (component, environment) = match place(model, world) {
                Ok(place) => (place.component, Some(place.environment)),
                Err(why) => match model.front().subject(world).component() {
                    Some(component) => (component.clone(), None),
                    None => return Some(Wish::Say(Level::Warning, why)),
                },
            };
            open(model, &mut |turn| {
                let opened = component::State::open(component.clone(), environment.clone(), turn);
                Screen::Component(Box::new(opened))
            })
        }
        Action::GoRevisions => match place(model, world) {
            Err(why) => Some(Wish::Say(Level::Warning, why)),
            Ok(place) => open(model, &mut |turn| {
                let opened = revisions::State::open(place.clone(), turn);
                Screen::Revisions(Box::new(opened))
            }),
        },
        Action::Diff => {
            let namespace = &model.ground.namespace;
            let compared =
                place(model, world).and_then(|place| diff::of_place(world, namespace, &place, now));
            match compared {
                Err(why) => Some(Wish::Say(Level::Warning, why)),
                Ok(compared) => open(model, &mut |turn| {
                    let opened = diff::State::open(compared.clone(), turn);
                    Screen::Diff(Box::new(opened))
                }),
            }
        }
        action => Some(Wish::Say(
            Level::Info,
            format!("{} means nothing here", action.word()),
        )),
    }
}

/// Tells whether an action opens the component that is selected.
fn can_open(model: &Model, action: Action) -> bool {
    action == Action::GoComponent || matches!(model.front(), Screen::Matrix(_))
}

/// Returns the component and the environment that the cursor is on, whatever is marked.
fn place(model: &Model, world: &World) -> Result<Place, String> {
    let place = match model.front() {
        Screen::Matrix(matrix) => matrix.place(),
        screen => screen.subject(world).place(),
    };
    place.ok_or_else(|| "no component is selected in an environment".to_owned())
}
