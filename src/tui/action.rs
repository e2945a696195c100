//! The actions that keys run. A keymap names actions by these words and can bind nothing else.
//!
//! No action writes to a target. An action that leads to a change opens a plan, and the user confirms the
//! plan.

/// An action that a key, a command or a line of the help runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Closes the screen; on the matrix, leaves the program.
    Quit,
    /// Leaves the program from any screen.
    Leave,
    /// Goes back: closes the open line or choice, clears the filter or the marks, or closes the screen.
    Back,
    /// Stops the work of the front screen, or closes the screen; never leaves the program.
    Interrupt,
    /// Goes to the previous screen in the history of screens.
    HistoryBack,
    /// Goes to the next screen in the history of screens.
    HistoryForth,
    /// Switches to the target that bowline has just connected to.
    Switch,
    /// Draws the whole screen again.
    Redraw,
    /// Suspends the program, as ctrl-z does in a shell.
    Suspend,

    /// Moves up.
    Up,
    /// Moves down.
    Down,
    /// Moves left.
    Left,
    /// Moves right.
    Right,
    /// Moves a page up.
    PageUp,
    /// Moves a page down.
    PageDown,
    /// Moves half a page up.
    HalfPageUp,
    /// Moves half a page down.
    HalfPageDown,
    /// Moves to the first row.
    Top,
    /// Moves to the last row.
    Bottom,
    /// Moves to the next row with a fault.
    NextFault,
    /// Moves to the previous row with a fault.
    PreviousFault,

    /// Opens the selected row or cell.
    Open,
    /// Marks the selected row, or removes its mark. An action applies to all marked rows.
    Mark,
    /// Marks all rows that the filter shows.
    MarkAll,
    /// Removes all marks.
    Unmark,
    /// Sorts by the next column.
    Sort,
    /// Reverses the sort order.
    SortReverse,
    /// Shows the next set of columns.
    Columns,
    /// Shows only the rows with a fault.
    FaultsOnly,
    /// Opens or closes the lower pane.
    Pane,

    /// Opens the command prompt.
    Command,
    /// Opens the filter.
    Filter,
    /// Opens the jump prompt, which finds any object by a part of its name.
    Jump,
    /// Shows the help for the keys.
    Help,
    /// Copies the selected row, or the text of the screen.
    Copy,
    /// Copies the command line that shows the same data or does the same as the screen.
    CopyCommand,

    /// Plans a promotion of the selected or marked components.
    Promote,
    /// Plans a rollback.
    Rollback,
    /// Plans to pin: to place a hold.
    Hold,
    /// Plans to unpin: to remove a hold.
    Unhold,
    /// Plans to mark the release bad.
    MarkBad,
    /// Plans to mark the release good.
    MarkGood,
    /// Plans to undo the last action.
    Undo,
    /// Plans a deployment.
    Deploy,
    /// Plans to delete the releases and snapshots that nobody needs.
    Collect,

    /// Confirms the plan or the question in front.
    Confirm,
    /// Applies the plan if its confirmation needs no typed text.
    Apply,
    /// Makes the plan again, and keeps the text that the user has typed.
    PlanAgain,
    /// Opens or closes the editor, which takes the place of the line of the confirmation and has several lines.
    Editor,
    /// Moves to the next button or field.
    NextField,
    /// Accepts the completion.
    Complete,

    /// Opens a comparison.
    Diff,
    /// Goes to the next hunk.
    NextHunk,
    /// Goes to the previous hunk.
    PreviousHunk,
    /// Goes to the next object.
    NextObject,
    /// Goes to the previous object.
    PreviousObject,
    /// Shows or hides noise: fields that servers and controllers write, empty values, reorderings.
    Noise,
    /// Switches the diff between side by side and unified.
    Layout,
    /// Folds or unfolds an object.
    Fold,

    /// Shows the matrix at a past time.
    TimeTravel,
    /// Steps to the previous change of the matrix.
    StepBack,
    /// Steps to the next change of the matrix.
    StepForth,
    /// Returns from a past time to the live matrix.
    Live,

    /// Goes to the matrix.
    GoMatrix,
    /// Goes to the selected component.
    GoComponent,
    /// Goes to the releases.
    GoReleases,
    /// Goes to the ReleasePins.
    GoPins,
    /// Goes to the snapshots.
    GoSnapshots,
    /// Goes to the revisions of the selected ReleasePin.
    GoRevisions,
    /// Goes to the objects that can be collected.
    GoCollect,
    /// Goes to the audit trail.
    GoAudit,
    /// Goes to the tasks.
    GoTasks,
    /// Goes to the command log.
    GoLog,
    /// Goes to the contexts.
    GoContexts,

    /// Goes to the next step of the tour.
    TourNext,
    /// Goes to the previous step of the tour.
    TourBack,
    /// Ends the tour.
    TourOff,
}

/// All actions, each with its word in keymaps.
#[rustfmt::skip]
pub const WORDS: &[(&str, Action)] = &[
    ("quit", Action::Quit), ("leave", Action::Leave), ("back", Action::Back), ("interrupt", Action::Interrupt),
    ("history-back", Action::HistoryBack), ("history-forth", Action::HistoryForth), ("switch", Action::Switch),
    ("redraw", Action::Redraw), ("suspend", Action::Suspend),
    ("up", Action::Up), ("down", Action::Down), ("left", Action::Left), ("right", Action::Right),
    ("page-up", Action::PageUp), ("page-down", Action::PageDown),
    ("half-page-up", Action::HalfPageUp), ("half-page-down", Action::HalfPageDown),
    ("top", Action::Top), ("bottom", Action::Bottom),
    ("next-fault", Action::NextFault), ("previous-fault", Action::PreviousFault),
    ("open", Action::Open), ("mark", Action::Mark), ("mark-all", Action::MarkAll), ("unmark", Action::Unmark),
    ("sort", Action::Sort), ("sort-reverse", Action::SortReverse), ("columns", Action::Columns),
    ("faults-only", Action::FaultsOnly), ("pane", Action::Pane),
    ("command", Action::Command), ("filter", Action::Filter), ("jump", Action::Jump), ("help", Action::Help),
    ("copy", Action::Copy), ("copy-command", Action::CopyCommand),
    ("promote", Action::Promote), ("rollback", Action::Rollback), ("pin", Action::Hold), ("unpin", Action::Unhold),
    ("mark-bad", Action::MarkBad), ("mark-good", Action::MarkGood), ("undo", Action::Undo),
    ("deploy", Action::Deploy), ("collect", Action::Collect),
    ("confirm", Action::Confirm), ("apply", Action::Apply), ("plan-again", Action::PlanAgain),
    ("editor", Action::Editor), ("next-field", Action::NextField), ("complete", Action::Complete),
    ("diff", Action::Diff), ("next-hunk", Action::NextHunk), ("previous-hunk", Action::PreviousHunk),
    ("next-object", Action::NextObject), ("previous-object", Action::PreviousObject),
    ("noise", Action::Noise), ("layout", Action::Layout), ("fold", Action::Fold),
    ("time-travel", Action::TimeTravel), ("step-back", Action::StepBack), ("step-forth", Action::StepForth), ("live", Action::Live),
    ("go-matrix", Action::GoMatrix), ("go-component", Action::GoComponent), ("go-releases", Action::GoReleases),
    ("go-pins", Action::GoPins), ("go-snapshots", Action::GoSnapshots), ("go-revisions", Action::GoRevisions),
    ("go-collect", Action::GoCollect), ("go-audit", Action::GoAudit), ("go-tasks", Action::GoTasks),
    ("go-log", Action::GoLog), ("go-contexts", Action::GoContexts),
    ("tour-next", Action::TourNext), ("tour-back", Action::TourBack), ("tour-off", Action::TourOff),
];

/// Older words for actions; keymaps of users may still contain them.
const OLD_WORDS: &[(&str, Action)] = &[("hold", Action::Hold), ("unhold", Action::Unhold)];

impl Action {
    /// Returns the action with this word in keymaps; None if there is no such action.
    pub fn named(word: &str) -> Option<Self> {
        let known = WORDS.iter().chain(OLD_WORDS);
        let found = known.into_iter().find(|(known, _)| *known == word);
        found.map(|(_, action)| *action)
    }

    /// Returns the action's word in keymaps.
    pub fn word(self) -> &'static str {
        let found = WORDS.iter().find(|(_, action)| *action == self);
        found.map_or("", |(word, _)| word)
    }

    /// Returns whether the action does the same on every screen.
    pub fn is_everywhere(self) -> bool {
        matches!(
            self,
            Self::Quit
                | Self::Leave
                | Self::Back
                | Self::Interrupt
                | Self::HistoryBack
                | Self::HistoryForth
                | Self::Redraw
                | Self::Suspend
                | Self::Command
                | Self::Jump
                | Self::Help
        ) || self.word().starts_with("go-")
            || self.word().starts_with("tour-")
    }

    /// Returns whether the action opens a plan.
    pub fn plans(self) -> bool {
        matches!(
            self,
            Self::Promote
                | Self::Rollback
                | Self::Hold
                | Self::Unhold
                | Self::MarkBad
                | Self::MarkGood
                | Self::Undo
                | Self::Deploy
                | Self::Collect
        )
    }
}

/// A group of key bindings. The screen in front decides which modes apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// All screens, except where the user types text.
    Global,
    /// All screens with rows.
    List,
    /// The matrix.
    Matrix,
    /// A diff.
    Diff,
    /// A plan.
    Plan,
    /// A line or an editor in which the user types text.
    Text,
}

impl Mode {
    /// All modes, each with its word in keymaps.
    pub const WORDS: [(&str, Mode); 6] = [
        ("global", Mode::Global),
        ("list", Mode::List),
        ("matrix", Mode::Matrix),
        ("diff", Mode::Diff),
        ("plan", Mode::Plan),
        ("text", Mode::Text),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_and_actions_are_one_to_one() {
        let words: BTreeSet<_> = WORDS.iter().map(|(word, _)| word).collect();
        let actions: BTreeSet<_> = WORDS.iter().map(|(_, action)| action).collect();
        assert_eq!((words.len(), actions.len()), (WORDS.len(), WORDS.len()));
        for (word, action) in WORDS {
            assert_eq!(Action::named(word), Some(*action));
            assert_eq!(action.word(), *word);
        }
        assert_eq!(Action::named("frobnicate"), None);
        assert_eq!(Action::named("hold"), Some(Action::Hold));
        assert_eq!(Action::named("unhold"), Some(Action::Unhold));
    }
}
