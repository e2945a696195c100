//! How far a change of a pin has come in its environment.

use super::world::Pin;

/// What a controller has made of a change so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// The pin is gone.
    Gone,
    /// No controller has seen the change yet.
    Unseen,
    /// It is on its way, and this is what is said of it.
    Moving(String),
    /// Something is wrong with it.
    Failing(String),
    /// Everything is as it should be.
    Ready,
}

impl Rollout {
    /// Looks at what a pin says of one of its revisions, or of a newer one: that is somebody else's, and
    /// whether ours was ready is history then.
    pub fn of(pin: Option<&Pin>, revision: i64) -> Self {
        let Some(pin) = pin else {
            return Self::Gone;
        };
        if pin.observed.is_none_or(|observed| observed < revision) {
            return Self::Unseen;
        }
        match &pin.ready {
            Some(ready) if &*ready.status == "True" => Self::Ready,
            Some(ready) => {
                let said = format!("{} ({})", ready.message, ready.reason);
                match &*ready.reason == crate::api::condition::PROGRESSING {
                    true => Self::Moving(said),
                    false => Self::Failing(said),
                }
            }
            None => Self::Moving("nothing is known of it".to_owned()),
        }
    }

    /// Tells whether there is nothing left to wait for.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// Says it.
    pub fn words(&self) -> &str {
        match self {
            Self::Gone => "its pin is gone",
            Self::Unseen => "no controller has seen the change yet",
            Self::Moving(said) | Self::Failing(said) => said,
            Self::Ready => "ready",
        }
    }
}
