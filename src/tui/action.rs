//! What a key can mean. Keymaps name actions by these words, and nothing else can be bound.
//!
//! No action changes anything on a target: those that are about to open a plan, which a person confirms.

/// Something that a key, a command or a line of the help runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Leaves the screen, and on the matrix the program.
    Quit,
    /// Leaves the program, whatever is open.
    Leave,
    /// Goes back: closes what is open, clears what is set, leaves the screen.
    Back,
    /// Stops what is under way in front; never leaves the program with work undone.
    Interrupt,
    /// Goes to the screen before, in the history of screens.
    HistoryBack,
    /// Goes to the screen after, in the history of screens.
    HistoryForth,
    /// Switch to the target that was connected to.
    Switch,
    /// Draws everything anew.
    Redraw,
    /// Puts the program to sleep, as the shell does.
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
    /// Moves to the next row that is at fault.
    NextFault,
    /// Moves to the row before that is at fault.
    PreviousFault,

    /// Opens what is selected.
    Open,
    /// Marks or unmarks what is selected, for actions on sets.
    Mark,
    /// Marks everything that is shown.
    MarkAll,
    /// Unmarks everything.
    Unmark,
    /// Sorts by the next column.
    Sort,
    /// Turns the order around.
    SortReverse,
    /// Shows the next set of columns.
    Columns,
    /// Shows only what is at fault.
    FaultsOnly,
    /// Opens or closes the pane below.
    Pane,

    /// Opens the line of commands.
    Command,
    /// Opens the filter.
    Filter,
    /// Jumps to any object by a part of its name.
    Jump,
    /// Shows what the keys do.
    Help,
    /// Copies what is selected.
    Copy,
    /// Copies the command line that does the same.
    CopyCommand,

    /// Plans a promotion of what is selected or marked.
    Promote,
    /// Plans a rollback.
    Rollback,
    /// Plans a hold.
    Hold,
    /// Plans the lifting of a hold.
    Unhold,
    /// Plans to mark the release bad.
    MarkBad,
    /// Plans to mark the release good.
    MarkGood,
    /// Plans the reverse of the last action.
    Undo,
    /// Plans a deployment.
    Deploy,
    /// Plans to collect what nobody needs.
    Collect,

    /// Confirms, where something waits for it.
    Confirm,
    /// Applies a plan that a key confirms.
    Apply,
    /// Makes a plan again and keeps the typed text.
    PlanAgain,
    /// Opens the line as an editor of several lines.
    Editor,
    /// Moves to the next button or field.
    NextField,
    /// Takes the completion.
    Complete,

    /// Compares.
    Diff,
    /// Goes to the next hunk.
    NextHunk,
    /// Goes to the hunk before.
    PreviousHunk,
    /// Goes to the next object.
    NextObject,
    /// Goes to the object before.
    PreviousObject,
    /// Shows or hides noise.
    Noise,
    /// Changes between side by side and unified.
    Layout,
    /// Folds or unfolds.
    Fold,

    /// Shows the matrix as of a moment.
    TimeTravel,
    /// Steps to the change before.
    StepBack,
    /// Steps to the next change.
    StepForth,
    /// Comes back to the present.
    Live,

    /// Goes to the matrix.
    GoMatrix,
    /// Goes to the component that is selected.
    GoComponent,
    /// Goes to the releases.
    GoReleases,
    /// Goes to the pins.
    GoPins,
    /// Goes to the snapshots.
    GoSnapshots,
    /// Goes to the revisions of what is selected.
    GoRevisions,
    /// Goes to what can be collected.
    GoCollect,
    /// Goes to the audit trail.
    GoAudit,
    /// Goes to the tasks.
    GoTasks,
    /// Goes to the command log.
    GoLog,
    /// Goes to the contexts.
    GoContexts,

    /// Goes on with the tour, or begins it.
    TourNext,
    /// Goes a step of the tour back.
    TourBack,
    /// Ends the tour.
    TourOff,
}

/// Every action with the word that keymaps name it by.
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

/// Words that the keymaps of users may still name actions by.
const OLD_WORDS: &[(&str, Action)] = &[("hold", Action::Hold), ("unhold", Action::Unhold)];

impl Action {
    /// Finds the action that a word names.
    pub fn named(word: &str) -> Option<Self> {
        let known = WORDS.iter().chain(OLD_WORDS);
        let found = known.into_iter().find(|(known, _)| *known == word);
        found.map(|(_, action)| *action)
    }

    /// Returns the word that names it.
    pub fn word(self) -> &'static str {
        let found = WORDS.iter().find(|(_, action)| *action == self);
        found.map_or("", |(word, _)| word)
    }

    /// Tells whether it does the same on every screen.
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

    /// Tells whether it opens a plan.
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

/// Where keys are looked up: what is in front decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Everywhere but in text.
    Global,
    /// Wherever rows are listed.
    List,
    /// The matrix.
    Matrix,
    /// A diff.
    Diff,
    /// A plan.
    Plan,
    /// A line or an editor that takes text.
    Text,
}

impl Mode {
    /// Every mode with the word that keymaps name it by.
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
