use crate::engine::world::Event;
use crate::engine::world::fixture::pin;
use crate::tui::effect::Effect;
use crate::tui::screens::history::tests::{answer, opened, press, shop};
use crate::tui::still::Still;

#[test]
fn golden_screens() {
    opened("enter").keys("j").golden("component");
}

#[test]
fn left_and_right_choose_the_environment_and_ask_for_its_revisions() {
    let mut still = opened("g o");
    let asked = |effects: &[Effect]| -> Vec<String> {
        let places = effects.iter().filter_map(|effect| match effect {
            Effect::Revisions(_, place) => Some(place.environment.to_string()),
            _ => None,
        });
        places.collect()
    };
    for (keys, expected) in [
        ("l", vec![]),
        ("h", vec!["staging"]),
        ("h", vec!["development"]),
    ] {
        let effects = press(&mut still, keys);
        assert_eq!(asked(&effects), expected);
        if !expected.is_empty() {
            answer(&mut still, &effects);
        }
    }
    let subject = still.model.front().subject(&still.world);
    assert_eq!(subject.environment.as_deref(), Some("development"));
    assert_eq!(subject.release.as_deref(), Some("checkout-service-v1.2.4"));
    // Back is where it came from.
    press(&mut still, "esc");
    assert_eq!(still.model.stack.len(), 1);
}

#[test]
fn what_is_not_deployed_says_so() {
    let mut world = shop();
    let gone = pin("checkout-service", "staging", "v1.2.3");
    world.pins(Event::Deleted(gone));
    Still::of(world)
        .keys("enter h")
        .shows("checkout-service is not deployed in staging");
}
