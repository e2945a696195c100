//! The actions that a key binding can run. A keymap names an action by its word in [`WORDS`].
//!
//! No action writes to a target. An action that leads to a write opens a plan, which the user
//! confirms or cancels.

/// An operation of the UI that the user starts with a key, with a command, or from the help screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Closes the front screen. If the matrix is in front, leaves the program.
    Quit,
    /// Leaves the program from any screen.
    Leave,
    /// Goes one step back: closes the open prompt or choice, else clears the filter or the marks,
    /// else closes the front screen.
    Back,
    /// Stops the work of the front screen (for example a search), or else closes the screen; never
    /// leaves the program.
    Interrupt,
    /// Goes back in the history of screens, as in a web browser.
    HistoryBack,
    /// Goes forward in the history of screens, as in a web browser.
    HistoryForth,
    /// Switches to the target that bowline has connected to in the background.
    Switch,
    /// Draws every cell of the terminal again, because another program may have written over the screen.
    Redraw,
    /// Suspends the program, as ctrl-z does in a shell.
    Suspend,

    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    HalfPageUp,
    HalfPageDown,
    Top,
    Bottom,
    /// Moves to the next row with a fault.
    NextFault,
    /// Moves to the previous row with a fault.
    PreviousFault,

    Open,
    /// Marks the selected row, or removes its mark. If rows are marked, a later action applies to them instead of the
    /// selected row.
    Mark,
    /// Marks all rows that the filter shows.
    MarkAll,
    Unmark,
    /// Sorts by the next column.
    Sort,
    /// Reverses the sort order.
    SortReverse,
    /// Shows the next set of columns, if the table has more columns than the terminal can show.
    Columns,
    /// Shows only the rows with a fault.
    FaultsOnly,
    Pane,

    Command,
    /// Opens the prompt for a filter of the rows.
    Filter,
    /// Opens the jump prompt, which finds any object by a part of its name.
    Jump,
    Help,
    /// Copies the selected row to the clipboard. On a screen without rows, copies the text of the screen.
    Copy,
    /// Copies a `bowline` command line: one that shows the data of the front screen, or one that does the same as the
    /// open plan.
    CopyCommand,

    Promote,
    Rollback,
    /// Plans to pin the selected or marked components. The plan places one hold on each.
    Hold,
    /// Plans to unpin the selected or marked components. The plan removes one hold from each.
    Unhold,
    /// Plans to mark the selected or effective release bad.
    MarkBad,
    /// Plans to mark the selected or effective release good.
    MarkGood,
    /// Plans to undo the last action on the selected or marked components.
    Undo,
    Deploy,
    /// Plans to delete the releases and snapshots that nothing uses any more.
    Collect,

    /// Confirms the plan or the question that is in front.
    Confirm,
    /// Applies the open plan, if its confirmation needs no typed text.
    Apply,
    /// Computes the plan again from the current state, and keeps the text that the user has typed.
    PlanAgain,
    /// Opens or closes a multi-line editor for the text that the user types to confirm a plan.
    Editor,
    /// Moves the focus to the next button or field.
    NextField,
    /// Accepts the selected completion of the prompt.
    Complete,

    /// Opens a comparison of the selected subject.
    Diff,
    NextHunk,
    PreviousHunk,
    /// Goes to the next object in the diff.
    NextObject,
    /// Goes to the previous object in the diff.
    PreviousObject,
    /// Shows only the rows with a fault, or all rows again.
    Noise,
    Layout,
    /// Folds or unfolds the object under the cursor.
    Fold,

    /// Shows the matrix at a past time that the user names.
    TimeTravel,
    /// Moves the displayed past time back to the previous change of the matrix.
    StepBack,
    /// Moves the displayed past time forward to the next change of the matrix.
    StepForth,
    /// Returns from a past time to the live matrix.
    Live,

    GoMatrix,
    GoComponent,
    GoReleases,
    GoPins,
    GoSnapshots,
    GoRevisions,
    /// Goes to the releases and snapshots that can be deleted (gc).
    GoCollect,
    GoAudit,
    GoTasks,
    GoLog,
    GoContexts,

    TourNext,
    TourBack,
    TourOff,
}

/// All actions, each with the word that names it in keymaps.
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

/// Former words of renamed actions. bowline still accepts these words, because keymaps of users contain them.
const OLD_WORDS: &[(&str, Action)] = &[("hold", Action::Hold), ("unhold", Action::Unhold)];

impl Action {
    /// Returns the action that a keymap names by this word; None if the word is unknown.
    pub fn named(word: &str) -> Option<Self> {
        let known = WORDS.iter().chain(OLD_WORDS);
        let found = known.into_iter().find(|(known, _)| *known == word);
        found.map(|(_, action)| *action)
    }

    /// Returns the word that names the action in keymaps.
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

    /// Returns whether the action opens a plan of writes.
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

/// A group of key bindings, such as those for lists. The front screen decides which modes are active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Active on all screens, except while the user types text.
    Global,
    /// Active on all screens with rows.
    List,
    Matrix,
    Diff,
    Plan,
    /// Active while the user types text into a line or an editor.
    Text,
}

impl Mode {
    /// All modes, each with the word that names it in keymaps.
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
