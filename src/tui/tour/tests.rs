use super::*;
use crate::tui::keymap::Keymap;
use crate::tui::story::Story;

/// Returns what the tour says now, with its title.
fn said(model: &Model) -> String {
    let Some(tour) = &model.tour else {
        return String::new();
    };
    let lines = lines(model, tour, 10_000);
    let words: String = lines
        .into_iter()
        .flatten()
        .map(|(piece, _)| piece)
        .collect();
    format!("{}: {words}", STEPS[tour.step].title)
}

async fn touring() -> Story {
    let mut story = Story::shop().await;
    story.model.tour = Some(begin(0));
    story
}

#[tokio::test]
async fn who_follows_it_comes_to_its_end() {
    let mut story = touring().await;
    story.shows("tour 1 of 11: the matrix").await;
    story
        .keys("g g l l")
        .shows("tour 2 of 11: the difference")
        .await;
    story.keys("d").shows("tour 3 of 11: a diff").await;
    story.keys("esc").shows("tour 4 of 11: a rollback").await;
    story.keys("R").shows("type prod and why").await;
    story.shows("Type prod INC-42 rolled back").await;
    // Leaving a plan is no step back, and no step on.
    story.keys("esc").shows("You cancelled the plan").await;
    story.keys("R").shows("type prod and why").await;
    story.shows("data.image").await;
    story
        .types("prod INC-42")
        .keys("enter")
        .shows("tour 6 of 11: the rollout")
        .await;
    story.shows("cart in prod now runs cart-v1").await;
    story.keys("esc").shows("tour 7 of 11: a promotion").await;
    story.keys("h P").shows("tour 8 of 11: a hold").await;
    story.keys("esc").shows("cart in staging").await;
    story
        .keys("H enter")
        .shows("tour 9 of 11: the audit trail")
        .await;
    story.keys("esc g a").shows("tour 10 of 11: help").await;
    story.keys("?").shows("tour 11 of 11: the end").await;
    story.keys("esc >").hides("tour 11");
    assert!(story.model.tour.is_none());
}

#[tokio::test]
async fn it_waits_for_who_wanders_off() {
    let mut story = touring().await;
    story.keys("g g l l").shows("the difference").await;
    let before = said(&story.model);
    for wandering in ["j k", "f f", "s", "/ esc", ": esc", "P esc", "H esc", "z"] {
        story.keys(wandering);
        assert_eq!(said(&story.model), before, "{wandering}");
    }
    // Who is faster than the tour is not held up by it.
    story.keys("R").shows("type prod and why").await;
    assert!(said(&story.model).starts_with("the confirmation"));
}

#[tokio::test]
async fn it_is_steered_and_dismissed() {
    let mut story = touring().await;
    story.keys("> >").shows("tour 3 of 11").await;
    story.keys("< < <").shows("tour 1 of 11").await;
    story.keys("x").hides("tour 1 of 11");
    assert!(story.model.tour.is_none());
    story
        .keys(":")
        .types("tour")
        .keys("enter")
        .shows("tour 1 of 11")
        .await;
    story
        .keys(":")
        .types("tour off")
        .keys("enter")
        .hides("tour 1 of 11");
    for _ in STEPS {
        story.keys(">");
    }
    story.shows("the end").await;
    story.keys(">").hides("the end");
    assert!(story.model.tour.is_none());
}

#[tokio::test]
async fn its_keys_are_those_of_the_keymap() {
    let mut story = touring().await;
    for (keymap, rollback) in [
        ("default", "press R to plan"),
        ("emacs", "press ctrl-x R to plan"),
    ] {
        story.model.look.keymap = Keymap::built_in(keymap).unwrap();
        for step in 0..STEPS.len() {
            let mut tour = begin(0);
            tour.go_to(step, 0);
            story.model.tour = Some(tour);
            let said = said(&story.model);
            // An action without a key would be named as a command.
            assert!(!said.contains(['{', '}', '@']), "{keymap}: {said}");
            assert_eq!(said.contains(rollback), step == 3, "{keymap}: {said}");
        }
    }
}

#[test]
fn it_names_actions_that_there_are_in_whole_sentences() {
    for step in STEPS {
        let instead = step.astray.map(|(_, words)| words);
        for words in [Some(step.words), instead].into_iter().flatten() {
            for named in words.split('{').skip(1) {
                let (named, _) = named.split_once('}').unwrap();
                assert!(Action::named(named).is_some(), "{named} in {words}");
            }
            assert!(words.ends_with('.'), "{words}");
        }
    }
}
