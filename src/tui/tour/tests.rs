use super::*;
use crate::keymap::Keymap;
use crate::model::Event;
use crate::snapshot_test::SnapshotTest;
use crate::story::Story;

/// Returns the title and the text of the current step.
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
    // Closing a plan without applying it does not end the current step.
    story.keys("esc").shows("No plan is open").await;
    story.keys("R").shows("type prod and why").await;
    story.shows("data.image").await;
    story
        .types("prod INC-42")
        .keys("enter")
        .shows("tour 6 of 11: the rollout")
        .await;
    story.shows("cart in prod rolls out cart-v1").await;
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
    // The user may be faster than the tour: a step also ends if the user does it early.
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
    story
        .keys(">")
        .shows("no tour is open; :tour starts it")
        .await;
    story.command("tour").shows("tour 1 of 11").await;
    for _ in STEPS.iter().skip(1) {
        story.keys(">");
    }
    story.shows("the end").await;
    story.keys(">").hides("the end");
    story.keys(">").hides("tour 1 of 11");
    assert!(story.model.tour.is_none());
}

#[test]
fn a_small_terminal_names_the_size_that_the_tour_needs() {
    let still = SnapshotTest::fleet().tell(Event::Resize(40, 10));
    let still = still.keys(":").keys("\"tour\"").keys("enter");
    let still = still.shows("the tour needs 17 rows, this");
    assert!(still.model.tour.is_none());
    let still = still.tell(Event::Resize(80, 17));
    still
        .keys(":")
        .keys("\"tour\"")
        .keys("enter")
        .shows("tour 1 of 11");
}

#[test]
fn a_skipped_step_is_not_a_cancelled_plan() {
    let still = SnapshotTest::fleet()
        .keys(":")
        .keys("\"tour\"")
        .keys("enter");
    let still = still.keys("> > > >").shows("tour 5 of 11");
    still.shows("No plan is open").hides("cancelled");
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
            // The text contains no placeholders, so every action of the tour has a key or a command.
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
