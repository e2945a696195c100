//! What every verb needs that acts: the read model, who we are, what time it is where we act.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::connect::{self, Connection, Options};
use super::error::{Error, Exit};
use crate::connect::Address;
use crate::engine::plan::Asked;
use crate::engine::rules::{self, Refusal};
use crate::engine::whoami::{self, Whoami};
use crate::engine::world::feed::Feed;
use crate::engine::world::{Freshness, Source, World};
use crate::text;

/// What the target says of us and of the time.
pub(super) struct Server {
    pub(super) user: String,
    ahead: SignedDuration,
    now: Timestamp,
}

impl Server {
    /// Asks the target, and says so where its clock and ours disagree.
    pub(super) async fn ask(
        connection: &Connection,
        say: &mut dyn FnMut(String),
    ) -> Result<Self, Error> {
        let clock = &Timestamp::now;
        let Whoami { user, ahead } = whoami::ask(&connection.client, clock).await?;
        let now = clock();
        if !ahead.is_zero() {
            let apart = text::age(ahead.abs().as_secs());
            let way = if ahead.is_negative() {
                "ahead of"
            } else {
                "behind"
            };
            say(format!(
                "this machine's clock is {apart} {way} the target's; bowline uses the target's time"
            ));
        }
        let now = now.checked_add(ahead).unwrap_or(now);
        Ok(Self { user, ahead, now })
    }

    /// Makes what every planner is asked with.
    pub(super) fn asked(&self, connection: &Connection, reason: Option<String>) -> Asked {
        Asked {
            operation: uuid::Uuid::new_v4().to_string(),
            now: self.now,
            user: self.user.clone(),
            reason,
            namespace: connection.namespace.clone(),
        }
    }

    /// Returns a clock that shows the target's time.
    pub(super) fn clock(&self) -> impl Fn() -> Timestamp + Send + Sync + use<> {
        let ahead = self.ahead;
        move || {
            let now = Timestamp::now();
            now.checked_add(ahead).unwrap_or(now)
        }
    }
}

/// Follows the namespace of a connection, once what is asked for of it is known.
pub(super) async fn live(
    connection: &Connection,
    options: &Options,
    sources: &[Source],
) -> Result<Feed, Error> {
    let feed = Feed::start(&connection.client, Some(&connection.namespace));
    settled(feed, connection, options, sources).await
}

/// Follows all namespaces of a connection, once what is asked for of them is known.
pub(super) async fn live_everywhere(
    connection: &Connection,
    options: &Options,
    sources: &[Source],
) -> Result<Feed, Error> {
    let feed = Feed::start(&connection.client, None);
    settled(feed, connection, options, sources).await
}

async fn settled(
    mut feed: Feed,
    connection: &Connection,
    options: &Options,
    sources: &[Source],
) -> Result<Feed, Error> {
    let patience = options.request_timeout.unwrap_or(Duration::from_secs(30));
    let is_settled = |world: &World| world.are_known(sources) || denied(world, sources).is_some();
    let in_time = tokio::time::timeout(patience, feed.until(is_settled)).await;
    let wrong = {
        let world = feed.world();
        let absent = sources.iter().filter(|source| world.is_absent(**source));
        let absent: Vec<_> = absent.map(|source| source.kind()).collect();
        match (in_time, denied(&world, sources)) {
            (Ok(()), None) if !absent.is_empty() => {
                Some(connect::Error::absent(&connection.target, &absent).into())
            }
            (Ok(()), None) => None,
            (_, Some(why)) => Some(Error::new(Exit::NotAllowed, why)),
            (Err(_), None) => Some(not_live(&world, sources)),
        }
    };
    match wrong {
        None => Ok(feed),
        Some(error) => Err(error),
    }
}

/// Says what we may not watch.
fn denied(world: &World, sources: &[Source]) -> Option<String> {
    sources
        .iter()
        .find_map(|source| match world.freshness(*source) {
            Freshness::Stale {
                why, denied: true, ..
            } => Some(why.clone()),
            _ => None,
        })
}

/// Says why the read model is not current.
fn not_live(world: &World, sources: &[Source]) -> Error {
    let why = sources
        .iter()
        .find_map(|source| match world.freshness(*source) {
            Freshness::Stale { why, .. } => Some(why.clone()),
            _ => None,
        });
    let why = why.unwrap_or_else(|| "the target does not list all objects in time".to_owned());
    Error::new(
        Exit::Unreachable,
        format!("cannot watch the objects: {why}"),
    )
    .with_hint("check the connection with kubectl cluster-info; --request-timeout waits longer")
}

/// Makes the error of an action that rules refuse, with the hint of each; the commands in hints name the
/// target.
pub(super) fn refused(refusals: Vec<Refusal>, address: &Address) -> Error {
    let aim = |line: &str| address.bowline(line);
    let hints = refusals.iter().filter_map(|refusal| refusal.hint(&aim));
    hints.fold(without_hints(&refusals), Error::and_hint)
}

/// Makes the error of an action that rules refuse on a target without a running controller. Waiting changes
/// nothing there, so `how`, the hint that says how to run one, replaces the hint to wait.
pub(super) fn refused_without_controller(
    refusals: &[Refusal],
    how: String,
    address: &Address,
) -> Error {
    let aim = |line: &str| address.bowline(line);
    let hints = refusals.iter().filter_map(|refusal| match refusal {
        Refusal::Unready { .. } => Some(rules::UNREADY_ANYWAY.to_owned()),
        refusal => refusal.hint(&aim),
    });
    hints.fold(without_hints(refusals).with_hint(how), Error::and_hint)
}

fn without_hints(refusals: &[Refusal]) -> Error {
    let exit = match refusals.first() {
        Some(refusal) if refusal.is_stale() => Exit::Conflict,
        Some(refusal) if refusal.is_rule() => Exit::Refused,
        _ => Exit::Failed,
    };
    let messages: Vec<_> = refusals.iter().map(ToString::to_string).collect();
    Error::new(exit, messages.join("\n"))
}

/// Returns the component that is meant: the one that was named, else that of the configuration.
pub(super) fn component(connection: &Connection, named: Option<&str>) -> Result<String, Error> {
    let meant = named.or(connection.component.as_deref());
    meant.map(str::to_owned).ok_or_else(|| {
        Error::new(
            Exit::Usage,
            "the component is missing, and config.toml names none for this directory or context",
        )
        .with_hint("name a component; promote also takes --all")
    })
}
