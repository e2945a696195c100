//! Computes comparisons in the background: reads and renders both sides, then compares them on a
//! separate thread.

use std::time::{Duration, Instant};

use super::Session;
use crate::api::openchoreo::environment::Reach;
use crate::connect::explain;
use crate::effect::{Compare, Compared, Comparison, Half};
use crate::engine::compare::{self, Side, Sides};
use crate::engine::diff;
use crate::subjects::matrix::named;
use crate::subjects::release_pin::compare::{CompareError, Comparer};
use crate::subjects::release_pin::revisions::{NoSubject, Subject};

/// The time limit for comparing line by line. If a comparison needs longer, bowline compares whole blocks of lines
/// instead.
const DEADLINE: Duration = Duration::from_secs(2);

/// Computes a comparison. The error is a message for the user.
pub async fn compare(session: &Session, asked: Comparison) -> Result<Compare, String> {
    let mut notes = Vec::new();
    let sides = sides(session, &asked.what, &mut notes).await;
    let sides = sides.map_err(|error| said(&error))?;
    let noise = asked.noise;
    let work = tokio::task::spawn_blocking(move || differences(sides, noise, notes));
    work.await
        .map_err(|error| format!("the comparison failed: {error}"))
}

async fn sides(
    session: &Session,
    what: &Compared,
    notes: &mut Vec<String>,
) -> Result<Sides, CompareError> {
    let comparer = Comparer::new(&session.connection, &session.git, || session.now());
    match what {
        Compared::Environments {
            component,
            from,
            to,
        } => comparer.environments(component, [from, to], notes).await,
        Compared::Revisions { place, from, to } => {
            let wanted = (Some(*from), Some(*to));
            if let Some((subject, actions)) = named(&session.connection.namespace, &place.component)
            {
                let now = session.now();
                let client = &session.connection.client;
                let found = (actions.revisions)(client, &subject, now).await;
                let found = found.map_err(|error| CompareError::Other(error.to_string()))?;
                return Ok(compare::revisions(&found, wanted, now)?);
            }
            let subject = Subject::of(&place.component, &place.environment);
            comparer.revisions(&subject, wanted, notes).await
        }
        Compared::Releases { from, to } => comparer.releases([from, to], notes).await,
        Compared::Live(place) => {
            let context = |name: String| async move {
                let client = session.planes.client(Reach::Context(&name)).await?;
                Ok((client, name))
            };
            comparer
                .live(&place.component, &place.environment, context, notes)
                .await
        }
    }
}

fn differences(sides: Sides, noise: bool, notes: Vec<String>) -> Compare {
    let Sides {
        before,
        after,
        is_live,
    } = sides;
    let options = diff::Options {
        show_noise: noise,
        live: is_live.then_some(diff::Side::After),
        lines: true,
        context: diff::WHOLE,
        deadline: Instant::now().checked_add(DEADLINE),
    };
    let found = diff::diff(&before.objects, &after.objects, &options);
    let half = |side: Side| Half {
        what: side.what,
        read: side.read,
    };
    Compare {
        before: half(before),
        after: half(after),
        diff: found,
        notes,
    }
}

/// Returns the message for the user: why the comparison failed, and the next step.
fn said(error: &CompareError) -> String {
    match error {
        CompareError::Target(error) | CompareError::Subject(NoSubject::Target(error)) => {
            explain(error)
        }
        CompareError::Live(failed) => format!("{}: {}", failed.object, explain(&failed.error)),
        error => error.to_string(),
    }
}
