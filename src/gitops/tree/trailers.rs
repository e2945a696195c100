//! Reads the trailers of bowline's commits.

use crate::api::bowline::audit::Action;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::git::log::Commit;

/// The trailers of a commit that are about one ReleasePin or one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    pub operation: Option<String>,
    pub action: Option<String>,
    pub component: Option<String>,
    pub environment: Option<String>,
    /// The effective release before the change; None if the commit does not name it.
    pub from: Option<String>,
    /// The effective release after the change; None if the commit does not name it.
    pub to: Option<String>,
    /// The revision that a rollback restored; None for other actions.
    pub restored: Option<i64>,
    /// Whether these trailers combine those of several commits, which somebody squashed into one.
    pub together: bool,
}

impl Trailers {
    /// The name of the trailer with the operation id.
    pub const OPERATION: &'static str = "Bowline-Operation";
    /// The name of the trailer with the action.
    pub const ACTION: &'static str = "Bowline-Action";
    /// The name of the trailer with a component. The trailers that follow it are about this component.
    pub const COMPONENT: &'static str = "Bowline-Component";
    /// The name of the trailer with the environment.
    pub const ENVIRONMENT: &'static str = "Bowline-Environment";
    /// The name of the trailer with the effective release before the change.
    pub const FROM: &'static str = "Bowline-From";
    /// The name of the trailer with the effective release after the change.
    pub const TO: &'static str = "Bowline-To";
    /// The name of the trailer with the revision that a rollback restored.
    pub const RESTORED: &'static str = "Bowline-Restored";

    /// Parses the trailers of a commit. Returns one value for each component that the commit names.
    pub fn read(commit: &Commit) -> Vec<Trailers> {
        let paragraphs = commit.trailer_paragraphs().into_iter();
        paragraphs.flat_map(read_one).collect()
    }

    /// Returns the trailers of a commit that are about the ReleasePin with this spec; None if there are none.
    pub fn of(commit: &Commit, spec: &ReleasePinSpec) -> Option<Trailers> {
        Self::about(commit, &spec.component, &spec.environment)
    }

    /// Returns the trailers of a commit that are about the ReleasePin of a component in an environment; None if there
    /// are none. If the commit was squashed, combines the trailers.
    pub fn about(commit: &Commit, component: &str, environment: &str) -> Option<Trailers> {
        let said = Self::read(commit).into_iter().filter(|own| {
            own.component.as_deref() == Some(component)
                && own.environment.as_deref() == Some(environment)
        });
        let mut said: Vec<Trailers> = said.collect();
        let follow = |said: &[Trailers]| {
            let mut each = said.iter().zip(said.iter().skip(1));
            each.all(|(one, next)| one.to == next.from)
        };
        // Some tools list squashed commits newest first, so the order is reversed if needed.
        if !follow(&said) {
            said.reverse();
        }
        if said.len() < 2 || !follow(&said) {
            // The squashed changes do not follow each other, so they cannot be combined. The last one is returned,
            // and verification reports a difference.
            return said.pop();
        }
        let from = said.first().and_then(|first| first.from.clone());
        said.pop().map(|last| Trailers {
            from,
            together: true,
            ..last
        })
    }

    /// Returns the action of the trailers if it marks or removes releases; otherwise None.
    pub fn deed(&self) -> Option<Action> {
        deed(self.action.as_deref()?)
    }
}

/// Parses the word of an action that marks or removes releases; None for other words.
pub(super) fn deed(word: &str) -> Option<Action> {
    let action = serde_json::from_value(word.into()).ok()?;
    let ours = matches!(action, Action::MarkBad | Action::MarkGood | Action::Collect);
    ours.then_some(action)
}

/// Parses the trailers in one paragraph of a commit message.
fn read_one(paragraph: Vec<(&str, &str)>) -> Vec<Trailers> {
    let mut all = Trailers::default();
    let mut found: Vec<Trailers> = Vec::new();
    for (word, value) in paragraph {
        let value = value.to_owned();
        match (word, found.last_mut()) {
            (Trailers::OPERATION, _) => all.operation = Some(value),
            (Trailers::ACTION, _) => all.action = Some(value),
            (Trailers::COMPONENT, _) => found.push(Trailers {
                component: Some(value),
                ..Trailers::default()
            }),
            (Trailers::ENVIRONMENT, Some(own)) => own.environment = Some(value),
            (Trailers::FROM, Some(own)) => own.from = Some(value),
            (Trailers::TO, Some(own)) => own.to = Some(value),
            (Trailers::RESTORED, Some(own)) => own.restored = value.parse().ok(),
            _ => {}
        }
    }
    for own in &mut found {
        own.operation.clone_from(&all.operation);
        own.action.clone_from(&all.action);
    }
    found
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn squash(moves: &[(&str, &str, &str)]) -> Commit {
        let said = moves.iter().map(|(action, from, to)| {
            format!(
                "\n* {action} cart\n\nBowline-Operation: {action}-{to}\nBowline-Action: {action}\nBowline-Component: cart\nBowline-Environment: prod\nBowline-From: {from}\nBowline-To: {to}\n"
            )
        });
        Commit {
            id: String::new(),
            parents: Vec::new(),
            author: String::new(),
            written: Timestamp::UNIX_EPOCH,
            at: Timestamp::UNIX_EPOCH,
            message: format!("several\n{}", said.collect::<String>()),
            files: Vec::new(),
        }
    }

    #[test]
    fn moves_that_were_squashed_lead_from_the_first_to_the_last() {
        for (moves, action, from, to, together) in [
            (&[("Promote", "a", "b")][..], "Promote", "a", "b", false),
            (
                &[("Promote", "a", "b"), ("Rollback", "b", "c")],
                "Rollback",
                "a",
                "c",
                true,
            ),
            // These trailers are in the order of git: newest first.
            (
                &[
                    ("Undo", "c", "d"),
                    ("Rollback", "b", "c"),
                    ("Promote", "a", "b"),
                ],
                "Undo",
                "a",
                "d",
                true,
            ),
            // The changes do not follow each other, so they are not combined, and verification finds the difference.
            (
                &[("Promote", "a", "b"), ("Rollback", "x", "c")],
                "Promote",
                "a",
                "b",
                false,
            ),
        ] {
            let commit = squash(moves);
            let said = Trailers::about(&commit, "cart", "prod").unwrap();
            let told = (said.from.as_deref(), said.to.as_deref());
            assert_eq!(told, (Some(from), Some(to)), "{moves:?}");
            assert_eq!(said.action.as_deref(), Some(action), "{moves:?}");
            assert_eq!(said.operation, Some(format!("{action}-{to}")));
            assert_eq!(said.together, together, "{moves:?}");
            assert_eq!(Trailers::about(&commit, "cart", "dev"), None);
        }
    }
}
