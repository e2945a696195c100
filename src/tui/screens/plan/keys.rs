//! The actions that a plan accepts in its current stage. The footer, the help and the plan screen use the same list.

use crossterm::event::KeyEvent;

use super::{Stage, State};
use crate::action::Action;
use crate::hints;
use crate::keymap::{Key, Step};
use crate::model::Turn;
use crate::screens::Handled;

/// An action that a plan accepts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanKey {
    pub action: Action,
    /// The label of the action: one or two words for its effect on this plan.
    pub does: &'static str,
    pub footer: bool,
}

/// The input that the screen ignored because the terminal had not shown the plan yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The number of ignored key presses.
    pub keys: usize,
    /// The number of ignored pastes.
    pub pastes: usize,
}

impl Dropped {
    /// Describes the ignored input for a message; None if no input was ignored.
    pub fn words(self) -> Option<String> {
        let keys = match self.keys {
            0 => None,
            1 => Some("1 key".to_owned()),
            keys => Some(format!("{keys} keys")),
        };
        let pastes = match self.pastes {
            0 => None,
            1 => Some("1 pasted text".to_owned()),
            pastes => Some(format!("{pastes} pasted texts")),
        };
        let many = self.keys + self.pastes > 1;
        let what = match (keys, pastes) {
            (None, None) => return None,
            (Some(one), None) | (None, Some(one)) => one,
            (Some(keys), Some(pastes)) => format!("{keys} and {pastes}"),
        };
        let was = if many { "were" } else { "was" };
        Some(format!(
            "{what} {was} ignored: typed before the plan was shown"
        ))
    }
}

impl State {
    /// Returns the actions that the plan accepts now, the most important first.
    pub fn keys(&self) -> Vec<PlanKey> {
        let mut keys: Vec<PlanKey> = Vec::new();
        let mut add = |footer: bool, does: &'static str, actions: &[Action]| {
            keys.extend(actions.iter().map(|action| PlanKey {
                action: *action,
                does,
                footer,
            }));
        };
        let again = (true, "plan again", &[Action::PlanAgain][..]);
        let mut leave = "back";
        match &self.stage {
            Stage::Planning => leave = "cancel",
            Stage::Refused(refused) => {
                for (action, does) in refused.refusals.iter().filter_map(hints::remedy) {
                    add(true, does, &[action]);
                }
                add(again.0, again.1, again.2);
            }
            Stage::Asking(prepared, _, confirmation) => {
                leave = "cancel";
                let idle = prepared.is_idle();
                // If facts are no longer true, the user must make the plan again before the confirmation.
                let current = self.stale.is_empty();
                add(!current, again.1, again.2);
                match (confirmation.editor, confirmation.takes_text()) {
                    (true, _) => {
                        leave = "close the editor";
                        add(true, "one line", &[Action::Editor]);
                    }
                    (false, true) => {
                        if !idle {
                            add(current, "confirm", &[Action::Confirm]);
                        }
                        add(true, leave, &[Action::Back]);
                        add(true, "editor", &[Action::Editor]);
                    }
                    (false, false) if idle => add(true, leave, &[Action::Confirm]),
                    (false, false) => {
                        add(current, "apply", &[Action::Apply]);
                        let enter = if confirmation.apply { "apply" } else { leave };
                        add(true, enter, &[Action::Confirm]);
                        add(true, leave, &[Action::Back]);
                        add(true, "other button", &[Action::NextField]);
                        add(false, "other button", &[Action::Left, Action::Right]);
                        add(true, "add a reason", &[Action::Editor]);
                    }
                }
            }
            Stage::Applying(..) => leave = "leave it running",
            Stage::Applied(prepared, _, outcome) => {
                leave = match outcome.rolling.is_empty() || outcome.rolled_out {
                    true => "back",
                    false => "leave it running",
                };
                if !outcome.is_done() {
                    add(again.0, again.1, again.2);
                }
                if !outcome.undone(prepared).is_empty() {
                    add(true, "undo", &[Action::Undo]);
                }
            }
        }
        add(true, leave, &[Action::Back]);
        add(false, leave, &[Action::Interrupt]);
        if matches!(self.stage, Stage::Refused(_) | Stage::Applied(..)) {
            add(false, leave, &[Action::Confirm, Action::Open]);
        }
        if !matches!(self.stage, Stage::Planning) {
            add(false, leave, &[Action::Quit]);
            add(true, "scroll", &[Action::PageDown]);
            add(
                false,
                "scroll",
                &[
                    Action::PageUp,
                    Action::Down,
                    Action::Up,
                    Action::HalfPageDown,
                    Action::HalfPageUp,
                    Action::Top,
                    Action::Bottom,
                ],
            );
            let prepared = match &self.stage {
                Stage::Asking(prepared, ..)
                | Stage::Applying(prepared, _)
                | Stage::Applied(prepared, ..) => Some(prepared),
                Stage::Planning | Stage::Refused(_) => None,
            };
            if prepared.is_some_and(|prepared| prepared.plan().is_some()) {
                add(true, "diff", &[Action::Diff]);
            }
            add(true, "copy the command", &[Action::CopyCommand]);
        }
        // If an action is listed twice, keep only the first entry, which has the most important label.
        let mut known: Vec<Action> = Vec::new();
        keys.retain(|key| {
            let new = !known.contains(&key.action);
            known.push(key.action);
            new
        });
        keys
    }

    /// Returns the actions and their labels for the footer.
    pub fn hints(&self) -> Vec<(Action, &'static str)> {
        let keys = self.keys().into_iter().filter(|key| key.footer);
        keys.map(|key| (key.action, key.does)).collect()
    }

    pub(super) fn takes(&self, action: Action) -> bool {
        self.keys().iter().any(|key| key.action == action)
    }

    /// Returns whether the terminal has not shown the plan yet.
    pub(super) fn is_early(&self) -> bool {
        match &self.stage {
            Stage::Planning => true,
            Stage::Asking(..) => !self.drawn,
            Stage::Refused(_) | Stage::Applying(..) | Stage::Applied(..) => false,
        }
    }

    /// Before the terminal has shown the plan, ignores and counts a key press, unless the key leaves the screen.
    pub(super) fn drop_key(&mut self, event: KeyEvent, turn: &Turn<'_>) -> Handled {
        let Some(key) = Key::of(event) else {
            return Handled::Yes;
        };
        let cancels = [Action::Back, Action::Interrupt];
        match turn.look.keymap.step(self.modes(), &[key]) {
            Step::Run(action) if cancels.contains(&action) || leaves(action) => Handled::No,
            _ => {
                self.dropped.keys += 1;
                Handled::Yes
            }
        }
    }

    /// Records that the terminal has shown the current plan, so that the screen accepts all keys from now on.
    pub fn was_drawn(&mut self) {
        if let Stage::Asking(_, shown, _) = &self.stage {
            self.drawn = true;
            self.shown = !matches!(shown, super::Shown::Rendering);
        }
    }
}

/// Returns whether an action concerns the whole program (leave, suspend, redraw). The screen accepts such an action
/// even before the terminal has shown the plan.
pub(super) fn leaves(action: Action) -> bool {
    matches!(action, Action::Leave | Action::Suspend | Action::Redraw)
}
