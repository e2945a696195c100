use crate::engine::world::fixture::now;
use crate::tui::screens::history::tests::{opened, shop};
use crate::tui::testing::{golden, press, seen};

#[test]
fn golden_screens() {
    let world = shop();
    let mut model = opened(&world, "g v");
    press(&mut model, &world, now(), "j j space space");
    golden("revisions", &mut model, &world, now());
}

#[test]
fn it_says_what_is_selected_and_where_there_is_nothing() {
    let world = shop();
    let mut model = opened(&world, "g v");
    let screen = seen(&mut model, &world, now(), (120, 40));
    assert!(
        screen.contains("promoted by ana: \"INC-42 hotfix\""),
        "{screen}"
    );
    press(&mut model, &world, now(), "j j j j");
    let screen = seen(&mut model, &world, now(), (120, 40));
    assert!(
        screen.contains("cannot be compared or gone back to"),
        "{screen}"
    );
    press(&mut model, &world, now(), "p");
    let screen = seen(&mut model, &world, now(), (120, 40));
    assert!(!screen.contains("cannot be compared"), "{screen}");
}
