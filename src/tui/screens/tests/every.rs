//! Rules that hold on every screen.

use crate::tui::action::Action;
use crate::tui::effect::Answer;
use crate::tui::screens::diff;
use crate::tui::screens::history::tests::opened;
use crate::tui::still::{Still, rolled_back};

use super::data::record;
use super::{copied, still, with_tasks};

/// Returns every screen with something on it.
fn screens() -> Vec<(&'static str, Still)> {
    let audit = || {
        still()
            .keys("g a")
            .answer(|_| Answer::Record(Ok(record(false))))
    };
    let described = still()
        .keys("g r enter")
        .answer(|_| Answer::Described(Ok("kind: Release\n".to_owned())));
    let mut log = with_tasks(still());
    for logged in &mut log.model.log {
        logged.aim(&log.model.ground);
    }
    vec![
        ("matrix", still()),
        ("component", opened("enter")),
        ("revisions", opened("g v")),
        ("releases", still().keys("g r")),
        ("ReleasePins", still().keys("g p")),
        ("snapshots", still().keys("g s")),
        ("describe", described),
        ("gc", still().keys("g c")),
        ("audit", audit()),
        ("entry", audit().keys("enter")),
        ("tasks", with_tasks(still()).keys("g t")),
        ("log", log.keys("g l")),
        ("contexts", still().keys("g x")),
        ("diff", diff::tests::opened(diff::tests::compare())),
        ("plan", rolled_back(Still::fleet().keys("R"))),
        ("help", still().keys("?")),
    ]
}

#[test]
fn a_copied_command_names_the_target_on_every_screen() {
    for (name, still) in screens() {
        let modes = still.model.front().modes();
        let Some(keys) = still.model.look.keymap.keys_for(modes, Action::CopyCommand) else {
            assert_eq!(name, "help");
            continue;
        };
        let still = still.keys(&keys);
        let Some(line) = copied(&still) else {
            still.shows("Nothing to copy here");
            continue;
        };
        assert!(
            line.contains("--context prod-eu --kubeconfig /home/ana/.kube/config"),
            "{name}: {line}"
        );
    }
}
