//! Hints about refusals for the terminal UI: they name keys.

use super::action::{Action, Mode};
use super::keymap::Keymap;
use super::model::Ground;
use crate::engine::rules::Refusal;

/// The keys of the matrix, where the user goes on after a refusal.
const MATRIX: &[Mode] = &[Mode::Matrix, Mode::List, Mode::Global];

/// Returns what the user can do; a command line only where no key does it.
pub fn of(refusal: &Refusal, keymap: &Keymap, ground: &Ground) -> Option<String> {
    let key = |action| keymap.keys_or_word(MATRIX, action);
    let again = || keymap.keys_or_word(&[Mode::Plan, Mode::Global], Action::PlanAgain);
    Some(match refusal {
        Refusal::NoPin { .. } => format!("{} deploys it there", key(Action::Deploy)),
        Refusal::NoRelease { .. } => format!("{} lists the releases", key(Action::GoReleases)),
        Refusal::Bad { .. } => format!(
            "choose another release; {} marks this one good again",
            key(Action::MarkGood)
        ),
        Refusal::NoPath { from, leads, .. } => match leads.is_empty() {
            true => format!("no path starts at {from}"),
            false => format!("the paths from {from} lead to {}", leads.join(", ")),
        },
        Refusal::NotFirst { first, .. } => match first.is_empty() {
            true => "the pipeline has no paths".to_owned(),
            false => format!(
                "{} in {}, and {} from there",
                key(Action::Deploy),
                first.join(" or "),
                key(Action::Promote)
            ),
        },
        Refusal::NoPipeline { .. } => "apply a DeploymentPipeline".to_owned(),
        Refusal::Unready { .. } => format!("wait until it is ready; {} plans again", again()),
        Refusal::Held {
            component,
            environment,
            ..
        } => format!(
            "{} removes the hold on {component} in {environment}",
            key(Action::Unhold)
        ),
        Refusal::OwnedByGit { .. } => "change it in git".to_owned(),
        Refusal::NoReason { .. } | Refusal::NoNote { .. } => "type a reason".to_owned(),
        Refusal::Stale { .. } | Refusal::Loading { .. } => {
            format!("{} plans again", again())
        }
        Refusal::NoLastGood { .. }
        | Refusal::NotObserved { .. }
        | Refusal::NoController { .. }
        | Refusal::NotOnRecord { .. } => format!(
            "{} lists the revisions; {} on one rolls back to it",
            key(Action::GoRevisions),
            key(Action::Rollback)
        ),
        other => return other.hint(&|line| ground.aimed(line.to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::still;

    #[test]
    fn hints_name_the_keys_of_the_keymap() {
        let refusal = Refusal::Bad {
            release: "cart-v1".to_owned(),
        };
        for (name, key) in [("default", "A"), ("emacs", "ctrl-x A")] {
            let keymap = Keymap::built_in(name).unwrap();
            let expected = format!("choose another release; {key} marks this one good again");
            assert_eq!(of(&refusal, &keymap, &still::ground()), Some(expected));
        }
    }

    #[test]
    fn a_command_that_no_key_runs_names_the_target() {
        let refusal = Refusal::NothingBefore {
            pin: "cart-dev".to_owned(),
            component: "cart".to_owned(),
            environment: "dev".to_owned(),
        };
        let keymap = Keymap::built_in("default").unwrap();
        assert_eq!(
            of(&refusal, &keymap, &still::ground()).unwrap(),
            "to remove it: bowline delete releasepins.openchoreo.dev cart-dev --context prod-eu --kubeconfig /home/ana/.kube/config --namespace shop"
        );
    }
}
