//! Hints for refused plans in the terminal UI. They name keys, because command lines are for the shell.

use super::action::{Action, Mode};
use super::keymap::Keymap;
use super::model::TargetInfo;
use crate::subjects::release_pin::rules::{Refusal, Step};

/// The modes of the screen that shows a refused plan. Hints on this screen name the keys of these modes.
pub const REFUSED: &[Mode] = &[Mode::Plan, Mode::List, Mode::Global];

/// Returns the action whose plan removes the cause of a refusal, and the label of this action in the footer. None if
/// no action removes the cause.
pub fn remedy(refusal: &Refusal) -> Option<(Action, &'static str)> {
    match refusal {
        Refusal::NoPin {
            step, environment, ..
        } => Some(match (step, step.target() == environment) {
            (Step::Deploy { .. }, true) => (Action::Deploy, "deploy it there"),
            (Step::Deploy { .. }, false) => (Action::Deploy, "deploy it first"),
            (Step::Promote { .. }, true) => (Action::Promote, "promote it there"),
            (Step::Promote { .. }, false) => (Action::Promote, "promote it first"),
        }),
        Refusal::Bad { .. } => Some((Action::MarkGood, "mark it good")),
        Refusal::Held { .. } => Some((Action::Unhold, "remove the hold")),
        _ => None,
    }
}

/// Returns hints that tell the user what to do after a refusal. A hint names a key, or a command line if no key does
/// the same.
pub fn of(refusal: &Refusal, keymap: &Keymap, target_info: &TargetInfo) -> Vec<String> {
    let key = |action| keymap.keys_or_word(REFUSED, action);
    let again = || key(Action::PlanAgain);
    vec![match refusal {
        Refusal::NoPin {
            step, environment, ..
        } => match (step, step.target() == environment) {
            (Step::Deploy { .. }, true) => format!("{} deploys it there", key(Action::Deploy)),
            (Step::Deploy { environment }, false) => {
                format!("{} deploys it in {environment} first", key(Action::Deploy))
            }
            (Step::Promote { from, .. }, true) => {
                format!("{} promotes it from {from}", key(Action::Promote))
            }
            (Step::Promote { from, to }, false) => format!(
                "{} promotes it from {from} to {to} first",
                key(Action::Promote)
            ),
        },
        Refusal::NoRelease { .. } | Refusal::Deleting { .. } => {
            format!("{} lists the releases", key(Action::GoReleases))
        }
        Refusal::Bad { .. } => {
            return vec![
                format!(
                    "choose another release: {} lists them",
                    key(Action::GoReleases)
                ),
                format!("{} marks this release good", key(Action::MarkGood)),
            ];
        }
        Refusal::NoPath { from, leads, .. } => match leads.is_empty() {
            true => format!("no path starts at {from}"),
            false => format!("the paths from {from} lead to {}", leads.join(", ")),
        },
        Refusal::NotFirst { first, .. } => match first.is_empty() {
            true => "the pipeline has no paths".to_owned(),
            false => format!(
                "close this plan, put the cursor on {}, press {} there, and then {}",
                first.join(" or "),
                key(Action::Deploy),
                key(Action::Promote)
            ),
        },
        Refusal::NoPipeline { .. } => "create a DeploymentPipeline".to_owned(),
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
        other => return other.hints(&|line| target_info.aimed(line.to_owned())),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot_test;

    #[test]
    fn hints_name_the_keys_of_the_keymap() {
        let refusal = Refusal::Bad {
            release: "cart-v1".to_owned(),
        };
        for (name, key) in [("default", "A"), ("emacs", "ctrl-x A")] {
            let keymap = Keymap::built_in(name).unwrap();
            let expected = format!("{key} marks this release good");
            let hints = of(&refusal, &keymap, &snapshot_test::target_info());
            assert_eq!(hints.last(), Some(&expected));
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
            of(&refusal, &keymap, &snapshot_test::target_info()),
            [
                "to remove the deployment: bowline delete releasepins.openchoreo.dev cart-dev --context prod-eu --kubeconfig /home/ana/.kube/config --namespace shop"
            ]
        );
    }
}
