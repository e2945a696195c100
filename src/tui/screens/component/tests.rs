use crate::engine::world::fixture::now;
use crate::tui::effect::Effect;
use crate::tui::screens::history::tests::{answer, opened, shop};
use crate::tui::testing::{golden, listed, model, press, seen};

#[test]
fn golden_screens() {
    let world = shop();
    let mut model = opened(&world, "enter");
    press(&mut model, &world, now(), "j");
    golden("component", &mut model, &world, now());
}

#[test]
fn left_and_right_choose_the_environment_and_ask_for_its_revisions() {
    let world = shop();
    let mut model = opened(&world, "g o");
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
        let effects = press(&mut model, &world, now(), keys);
        assert_eq!(asked(&effects), expected);
        if !expected.is_empty() {
            answer(&mut model, &world, &effects);
        }
    }
    let subject = model.front().subject(&world);
    assert_eq!(subject.environment.as_deref(), Some("development"));
    assert_eq!(subject.release.as_deref(), Some("checkout-service-v1.2.4"));
    // Back is where it came from.
    press(&mut model, &world, now(), "esc");
    assert_eq!(model.stack.len(), 1);
}

#[test]
fn what_is_not_deployed_says_so() {
    let mut world = shop();
    let gone = crate::engine::world::fixture::pin("checkout-service", "staging", "v1.2.3");
    world.pins(crate::engine::world::Event::Deleted(gone));
    let mut model = model();
    listed(&mut model, &world, now());
    press(&mut model, &world, now(), "enter h");
    let screen = seen(&mut model, &world, now(), (120, 40));
    assert!(
        screen.contains("checkout-service is not deployed in staging"),
        "{screen}"
    );
}
