//! What the screens draw, by meaning. A theme says how each of these looks, and screens know nothing else.

/// What something that is drawn means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// What is read; drawn over the whole screen first, and so the ground of everything.
    Text,
    /// What is there but need not be read: ages, units, what is absent.
    Muted,
    /// The name of the program and of what is shown.
    Title,
    /// The heads of columns.
    Header,
    /// Where one is in the stack of screens.
    Breadcrumb,
    /// The row or cell under the cursor.
    Selection,
    /// The same where the keys go elsewhere.
    SelectionUnfocused,
    /// Rows that are marked for an action on a set.
    Marked,
    /// Lines between things.
    Border,
    /// A key, in the footer and the help.
    Key,
    /// What a key does.
    KeyDescription,
    /// Ready, and nothing to say about it.
    Good,
    /// Rolling out.
    Progressing,
    /// Something is wrong.
    Degraded,
    /// Nobody knows, or nothing is there.
    Unknown,
    /// A hold.
    Hold,
    /// How far an environment is behind the one before.
    Behind,
    /// Data that is older than it should be.
    Stale,
    /// The badge of a read-only session.
    Readonly,
    /// The badge of a protected context that takes writes for a while.
    Armed,
    /// What one should know before going on.
    Warning,
    /// What failed.
    Error,
    /// The part of a text that a filter or a jump found.
    Match,
    /// The line that takes commands and filters.
    Prompt,
    /// A line that only the new side has.
    Added,
    /// A line that only the old side has.
    Removed,
    /// The words of an added line that are new.
    AddedWord,
    /// The words of a removed line that are gone.
    RemovedWord,
    /// What is there on both sides and differs.
    Changed,
    /// A line around a change.
    ContextLine,
    /// The release that most of a row runs; its siblings are the other releases of the row.
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
    /// The button that enter would press.
    ButtonFocused,
    /// The name of an environment that is production.
    Production,
    /// The badge that says that a past moment is shown.
    AsOf,
    /// What a plan is about to do.
    PlanTitle,
    /// The part of a list that is seen.
    Scrollbar,
}

impl Role {
    /// Every role with the word that themes name it by, in order.
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

    /// Finds the role that a word names.
    pub fn named(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, role)| *role)
    }

    /// Returns the word that names it.
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
