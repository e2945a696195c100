//! What commits of ours say to programs, in the trailers of their messages.

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
        let mut all = Trailers::default();
        let mut found: Vec<Trailers> = Vec::new();
        for (word, value) in commit.trailers() {
            let value = value.to_owned();
            match (word, found.last_mut()) {
                (Self::OPERATION, _) => all.operation = Some(value),
                (Self::ACTION, _) => all.action = Some(value),
                (Self::COMPONENT, _) => found.push(Trailers {
                    component: Some(value),
                    ..Trailers::default()
                }),
                (Self::ENVIRONMENT, Some(own)) => own.environment = Some(value),
                (Self::FROM, Some(own)) => own.from = Some(value),
                (Self::TO, Some(own)) => own.to = Some(value),
                (Self::RESTORED, Some(own)) => own.restored = value.parse().ok(),
                _ => {}
            }
        }
        for own in &mut found {
            own.operation.clone_from(&all.operation);
            own.action.clone_from(&all.action);
        }
        found
    }

    /// Finds what a commit says of a pin.
    pub fn of(commit: &Commit, spec: &ReleasePinSpec) -> Option<Trailers> {
        Self::read(commit).into_iter().find(|own| {
            own.component.as_deref() == Some(spec.component.as_str())
                && own.environment.as_deref() == Some(spec.environment.as_str())
        })
    }
}
