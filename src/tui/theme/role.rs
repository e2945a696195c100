//! The roles of drawn text. A theme defines the style of each role, and screens use only roles.

/// The meaning of a drawn text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Normal text. The whole screen is filled with it first, so its background is the background of the
    /// screen.
    Text,
    /// Less important text: ages, units, missing values.
    Muted,
    /// The name of the program and of the front screen.
    Title,
    /// The heads of columns.
    Header,
    /// The path of open screens.
    Breadcrumb,
    /// The row or cell under the cursor.
    Selection,
    /// The row or cell under the cursor while the keys go elsewhere.
    SelectionUnfocused,
    /// Rows that are marked for an action on several objects.
    Marked,
    /// Lines between parts of the screen.
    Border,
    /// A key, in the footer and the help.
    Key,
    /// The description of a key.
    KeyDescription,
    /// A good state: ready, or done.
    Good,
    /// A rollout that is not finished.
    Progressing,
    /// A fault, such as a failed rollout.
    Degraded,
    /// Unknown, or not deployed.
    Unknown,
    /// A hold.
    Hold,
    /// The number of releases that an environment is behind.
    Behind,
    /// Stale data.
    Stale,
    /// The badge of a read-only session.
    Readonly,
    /// The badge of a protected context that allows writes for some time.
    Armed,
    /// A warning.
    Warning,
    /// An error.
    Error,
    /// The part of a text that matches a filter or a jump.
    Match,
    /// The line for commands and filters.
    Prompt,
    /// A line that only the new side has.
    Added,
    /// A line that only the old side has.
    Removed,
    /// The words of an added line that are new.
    AddedWord,
    /// The words of a removed line that are gone.
    RemovedWord,
    /// An object that exists on both sides and differs.
    Changed,
    /// A line around a change.
    ContextLine,
    /// The first release of a row; each other release of the row has the next tint.
    Tint1,
    /// A second release of a row.
    Tint2,
    /// A third release of a row.
    Tint3,
    /// A fourth release of a row.
    Tint4,
    /// A fifth release of a row.
    Tint5,
    /// A sixth release of a row.
    Tint6,
    /// A button.
    Button,
    /// The button that enter presses.
    ButtonFocused,
    /// The name of a production environment.
    Production,
    /// The badge for a past time.
    AsOf,
    /// The title of a plan.
    PlanTitle,
    /// The handle of a scrollbar.
    Scrollbar,
}

impl Role {
    /// All roles, each with its word in themes, in order.
    #[rustfmt::skip]
    pub const WORDS: [(&str, Role); 42] = [
        ("text", Role::Text), ("muted", Role::Muted), ("title", Role::Title), ("header", Role::Header),
        ("breadcrumb", Role::Breadcrumb), ("selection", Role::Selection),
        ("selection-unfocused", Role::SelectionUnfocused), ("marked", Role::Marked), ("border", Role::Border),
        ("key", Role::Key), ("key-description", Role::KeyDescription),
        ("good", Role::Good), ("progressing", Role::Progressing), ("degraded", Role::Degraded),
        ("unknown", Role::Unknown), ("hold", Role::Hold), ("behind", Role::Behind), ("stale", Role::Stale),
        ("readonly", Role::Readonly), ("armed", Role::Armed), ("warning", Role::Warning), ("error", Role::Error),
        ("match", Role::Match), ("prompt", Role::Prompt),
        ("added", Role::Added), ("removed", Role::Removed), ("added-word", Role::AddedWord),
        ("removed-word", Role::RemovedWord), ("changed", Role::Changed), ("context-line", Role::ContextLine),
        ("tint1", Role::Tint1), ("tint2", Role::Tint2), ("tint3", Role::Tint3), ("tint4", Role::Tint4),
        ("tint5", Role::Tint5), ("tint6", Role::Tint6),
        ("button", Role::Button), ("button-focused", Role::ButtonFocused), ("production", Role::Production),
        ("as-of", Role::AsOf), ("plan-title", Role::PlanTitle), ("scrollbar", Role::Scrollbar),
    ];

    /// The tints of the releases along a row.
    pub const TINTS: [Role; 6] = [
        Role::Tint1,
        Role::Tint2,
        Role::Tint3,
        Role::Tint4,
        Role::Tint5,
        Role::Tint6,
    ];

    /// Returns the role with this word.
    pub fn named(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, role)| *role)
    }

    /// Returns the role's word in themes.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_in_the_order_of_roles() {
        for (position, (word, role)) in Role::WORDS.into_iter().enumerate() {
            assert_eq!(role as usize, position, "{word}");
            assert_eq!((Role::named(word), role.word()), (Some(role), word));
        }
        assert_eq!(Role::named("frobnicate"), None);
    }
}
