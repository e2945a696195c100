//! Reads the revisions of a ReleasePin.

use super::Session;
use crate::connect::explain;
use crate::engine::revisions::Revisions;
use crate::subjects::release_pin::revisions::{NoSubject, Pinned, Subject};
use crate::tui::effect::Place;

/// Reads the revisions of a ReleasePin, or returns the reason why that is impossible.
pub async fn revisions(session: &Session, place: &Place) -> Result<Revisions<Pinned>, String> {
    let subject = Subject::of(&place.component, &place.environment);
    let connection = &session.connection;
    let read = subject
        .read(&connection.client, &connection.namespace, session.now())
        .await;
    match read {
        Ok((_, revisions)) => Ok(revisions),
        Err(NoSubject::Target(error)) => Err(explain(&error)),
        Err(error) => Err(error.to_string()),
    }
}
