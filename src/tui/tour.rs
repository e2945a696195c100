//! The guided tour of the demo: a few lines at the bottom that go on when they were followed.

use super::action::Action;

/// Where the tour is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tour {
    /// The step that is shown.
    pub step: usize,
}

/// One step: what is said, and what leads to the next one.
struct Step {
    words: &'static str,
    next: Action,
}

impl Tour {
    /// Returns what is said now; None at its end.
    pub fn words(&self) -> Option<&'static str> {
        STEPS.get(self.step).map(|step| step.words)
    }

    /// Returns which step this is, of how many.
    pub fn place(&self) -> (usize, usize) {
        (self.step + 1, STEPS.len())
    }

    /// Goes on, if the action is the one that the step is about.
    pub fn follow(&mut self, action: Action) {
        if STEPS.get(self.step).is_some_and(|step| step.next == action) {
            self.step += 1;
        }
    }

    /// Tells whether there is nothing left to say.
    pub fn is_over(&self) -> bool {
        self.step >= STEPS.len()
    }
}

const STEPS: &[Step] = &[
    Step {
        words: "Each line is a component, each column an environment. The cursor is on the worst place in production. The pane below says what is wrong. Press d to see how it differs from the environment before.",
        next: Action::Diff,
    },
    Step {
        words: "This is what differs, object by object. n and N go from hunk to hunk. Press esc to go back.",
        next: Action::Back,
    },
    Step {
        words: "Press R to plan a rollback to the last good release. Nothing is changed until you confirm the plan.",
        next: Action::Rollback,
    },
    Step {
        words: "Production wants its name and a reason: type them on the line below and press enter. Or press esc and nothing has happened.",
        next: Action::Confirm,
    },
    Step {
        words: "The rollout is followed here, and a hold keeps automation from undoing it. esc leaves it running under tasks (g t).",
        next: Action::Back,
    },
    Step {
        words: "Move to another environment with h and l and press P to promote what runs there.",
        next: Action::Promote,
    },
    Step {
        words: "Press esc, then g a: every change is on record, in chains that cannot be rewritten unseen.",
        next: Action::GoAudit,
    },
    Step {
        words: "? lists every key here, : takes commands, / filters. :tour off ends this tour; it starts again with :tour.",
        next: Action::Help,
    },
];
