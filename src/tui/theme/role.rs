//! The roles of text on the screen. Screens use only roles, and a theme defines the style of each role.

/// The purpose of a text on the screen. The theme defines a style for each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Normal text. A frame starts filled with this role, so its background is also the background of the screen.
    Text,
    /// Less important text: ages, units, missing values.
    Muted,
    /// The name of the program, and the name of the front screen.
    Title,
    Header,
    /// The titles of the other open screens.
    Breadcrumb,
    /// The row or cell under the cursor.
    Selection,
    /// The row or cell under the cursor, while another part of the screen receives the keys.
    SelectionUnfocused,
    /// A row that the user has marked.
    Marked,
    Border,
    /// The name of a key in the footer and the help.
    Key,
    /// The description of a key in the footer and the help.
    KeyDescription,
    /// A good state, such as Ready or done.
    Good,
    /// A rollout in progress.
    Progressing,
    /// A fault, such as a failed rollout.
    Degraded,
    /// An unknown state, or a cell in which nothing is deployed.
    Unknown,
    Hold,
    /// The number of releases by which an environment is behind.
    Behind,
    /// The age of stale data, for which bowline no longer receives changes.
    Stale,
    /// The badge in the header for a read-only session.
    Readonly,
    /// The badge in the header for a protected context while it allows writes.
    Armed,
    Warning,
    Error,
    /// The characters of a text that match a filter or a search.
    Match,
    /// The line in which the user types commands and filters.
    Prompt,
    /// A line of a diff that only the new side contains.
    Added,
    /// A line of a diff that only the old side contains.
    Removed,
    /// The new words in an added line of a diff.
    AddedWord,
    /// The deleted words in a removed line of a diff.
    RemovedWord,
    /// An object of a diff that exists on both sides and differs.
    Changed,
    /// An unchanged line of a diff, next to a change.
    ContextLine,
    /// A release in a row of the matrix. The first different release of a row has tint 1, the second tint 2, and so
    /// on.
    Tint1,
    /// The second of the different releases in a row of the matrix.
    Tint2,
    /// The third of the different releases in a row of the matrix.
    Tint3,
    /// The fourth of the different releases in a row of the matrix.
    Tint4,
    /// The fifth of the different releases in a row of the matrix.
    Tint5,
    /// The sixth of the different releases in a row of the matrix.
    Tint6,
    /// A button without the focus.
    Button,
    /// The button with the focus; enter presses it.
    ButtonFocused,
    Production,
    /// The badge in the header that shows a past time.
    AsOf,
    PlanTitle,
    Scrollbar,
}

impl Role {
    /// All roles, each with the word that names it in themes.
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

    /// The tints for the different releases in a row of the matrix.
    pub const TINTS: [Role; 6] = [
        Role::Tint1,
        Role::Tint2,
        Role::Tint3,
        Role::Tint4,
        Role::Tint5,
        Role::Tint6,
    ];

    /// Returns the role that a theme names by this word; None if the word is unknown.
    pub fn named(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, role)| *role)
    }

    /// Returns the word that names the role in themes.
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
