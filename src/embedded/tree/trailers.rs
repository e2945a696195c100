//! What commits of ours say to programs, in the trailers of their messages.

use crate::api::audit::Action;
use crate::api::pin::ReleasePinSpec;
use crate::git::log::Commit;

/// What the trailers of a commit say of one pin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The operation.
    pub operation: Option<String>,
    /// What was done.
    pub action: Option<String>,
    /// The component.
    pub component: Option<String>,
    /// The environment.
    pub environment: Option<String>,
    /// The release that counted before.
    pub from: Option<String>,
    /// The release that counts afterwards.
    pub to: Option<String>,
    /// The revision that was restored.
    pub restored: Option<i64>,
    /// Whether several commits say it together, squashed into one.
    pub together: bool,
}

impl Trailers {
    /// Names the operation.
    pub const OPERATION: &'static str = "Bowline-Operation";
    /// Names what was done.
    pub const ACTION: &'static str = "Bowline-Action";
    /// Names a component; what follows is of it.
    pub const COMPONENT: &'static str = "Bowline-Component";
    /// Names an environment.
    pub const ENVIRONMENT: &'static str = "Bowline-Environment";
    /// Names the release before.
    pub const FROM: &'static str = "Bowline-From";
    /// Names the release afterwards.
    pub const TO: &'static str = "Bowline-To";
    /// Names the revision that was restored.
    pub const RESTORED: &'static str = "Bowline-Restored";

    /// Reads what a commit says, one for each component that it names.
    pub fn read(commit: &Commit) -> Vec<Trailers> {
        let paragraphs = commit.trailer_paragraphs().into_iter();
        paragraphs.flat_map(read_one).collect()
    }

    /// Finds what a commit says of a pin.
    pub fn of(commit: &Commit, spec: &ReleasePinSpec) -> Option<Trailers> {
        Self::about(commit, &spec.component, &spec.environment)
    }

    /// Finds what a commit says of the pin of a component in an environment; of several moves, where they
    /// lead together.
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
        // Some list what they squash from the newest on.
        if !follow(&said) {
            said.reverse();
        }
        if said.len() < 2 || !follow(&said) {
            // Nobody could have made what does not follow, and it is found to disagree.
            return said.pop();
        }
        let from = said.first().and_then(|first| first.from.clone());
        said.pop().map(|last| Trailers {
            from,
            together: true,
            ..last
        })
    }

    /// Returns what was done to releases, where that is what it says.
    pub fn deed(&self) -> Option<Action> {
        deed(self.action.as_deref()?)
    }
}

/// Reads an action that is done to releases.
pub(super) fn deed(word: &str) -> Option<Action> {
    let action = serde_json::from_value(word.into()).ok()?;
    let ours = matches!(action, Action::MarkBad | Action::MarkGood | Action::Collect);
    ours.then_some(action)
}

/// Reads what one paragraph says.
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
            // As git lists them: the newest first.
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
            // What does not follow is not put together, so that it is found.
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
