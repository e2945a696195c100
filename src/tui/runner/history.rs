//! Reads the revisions of a ReleasePin or a workload for the history screen.

use super::Session;
use crate::api::bowline::audit::ContentRef;
use crate::connect::explain;
use crate::effect::CellKey;
use crate::engine::revisions::Revisions;
use crate::subjects::matrix::named;
use crate::subjects::release_pin::revisions::{NoSubject, Pinned, Subject};

/// Reads the revisions of a ReleasePin or a workload. The error is a message for the user.
pub async fn revisions(session: &Session, place: &CellKey) -> Result<Revisions<Pinned>, String> {
    let connection = &session.connection;
    if let Some((subject, actions)) = named(&connection.namespace, &place.component) {
        let read = (actions.revisions)(&connection.client, &subject, session.now()).await;
        let found = read.map_err(|error| error.to_string())?;
        return Ok(found.map(|content| Pinned {
            release: ContentRef::named(content.label),
            holds: Vec::new(),
            reference: None,
            replaced: None,
        }));
    }
    let subject = Subject::of(&place.component, &place.environment);
    let read = subject
        .read(&connection.client, &connection.namespace, session.now())
        .await;
    match read {
        Ok((_, revisions)) => Ok(revisions),
        Err(NoSubject::Target(error)) => Err(explain(&error)),
        Err(error) => Err(error.to_string()),
    }
}
