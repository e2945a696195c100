//! The setup that all verbs share which change something: the read model, the name of the user, and the target's
//! clock.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::commits;
use super::connect::{self, Connection, Options};
use super::error::{self, Error, Exit};
use super::kinds::check_name;
use crate::connect::{Address, Target};
use crate::engine::plan::Asked;
use crate::engine::whoami::{self, Whoami};
use crate::engine::world::feed::Feed;
use crate::engine::world::{Freshness, Source, World};
use crate::subjects::release_pin::READ_BY_CHANGES;
use crate::subjects::release_pin::planner::NotPlanned;
use crate::subjects::release_pin::rules::{self, Refusal};
use crate::subjects::service::NotApplied;
use crate::subjects::workload::WORKLOADS;
use crate::{subjects, text};

/// The name of the user and the clock, as the target reports them.
pub(super) struct Server {
    pub(super) user: String,
    ahead: SignedDuration,
    now: Timestamp,
}

impl Server {
    /// Asks the target for the name of the user and the time. Prints a message if the target's clock differs from
    /// that of this machine.
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

    /// Builds the part of a request that is the same for all planners: operation id, time, user and reason.
    pub(super) fn asked(&self, connection: &Connection, reason: Option<String>) -> Asked {
        Asked {
            operation: uuid::Uuid::new_v4().to_string(),
            now: self.now,
            user: self.user.clone(),
            reason,
            namespace: connection.namespace.clone(),
        }
    }

    /// Returns a function that returns the current time of the target.
    pub(super) fn clock(&self) -> impl Fn() -> Timestamp + Send + Sync + use<> {
        let ahead = self.ahead;
        move || {
            let now = Timestamp::now();
            now.checked_add(ahead).unwrap_or(now)
        }
    }
}

/// Starts the watches of ReleasePins in the namespace of the connection. Returns when the first lists of `sources`
/// are complete.
pub(super) async fn live(
    connection: &Connection,
    options: &Options,
    sources: &[Source],
) -> Result<Feed, Error> {
    let feed = subjects::watch(&connection.client, Some(&connection.namespace));
    settled(feed, connection, options, sources, (None, &[])).await
}

/// Starts the watches of ReleasePins in all namespaces. Returns when the first lists of `sources` are complete.
pub(super) async fn live_everywhere(
    connection: &Connection,
    options: &Options,
    sources: &[Source],
) -> Result<Feed, Error> {
    let feed = subjects::watch(&connection.client, None);
    settled(feed, connection, options, sources, (None, &[])).await
}

/// Starts the watches for the whole matrix, including workloads. Returns when the first lists are complete. If the
/// cluster has workloads, it does not need the CRDs of bowline.
pub(super) async fn live_matrix(
    connection: &Connection,
    options: &Options,
    namespace: Option<&str>,
) -> Result<Feed, Error> {
    let client = &connection.client;
    if !connection.target.stores("apps") {
        let feed = subjects::watch(client, namespace);
        return settled(feed, connection, options, &READ_BY_CHANGES, (None, &[])).await;
    }
    let feed = subjects::watch_matrix(client, namespace);
    settled(
        feed,
        connection,
        options,
        &READ_BY_CHANGES,
        (namespace, &WORKLOADS),
    )
    .await
}

/// Returns the reasons why kinds of workloads could not be read, each once; empty if every kind was read.
pub(super) fn unread_workloads(world: &World) -> BTreeSet<String> {
    let reasons = WORKLOADS
        .iter()
        .filter_map(|source| world.why_stale(*source));
    reasons.map(str::to_owned).collect()
}

async fn settled(
    mut feed: Feed,
    connection: &Connection,
    options: &Options,
    sources: &[Source],
    (namespace, of_others): (Option<&str>, &[Source]),
) -> Result<Feed, Error> {
    let patience = options.request_timeout.unwrap_or(Duration::from_secs(30));
    // The client has already retried requests to a busy server, so a failed watch is not waited for.
    let is_settled = |world: &World| {
        let mut of_others = of_others.iter();
        stale(world, sources).is_some()
            || world.are_known(sources)
                && of_others.all(|source| *world.freshness(*source) != Freshness::Loading)
    };
    let in_time = tokio::time::timeout(patience, feed.until(is_settled)).await;
    let wrong = {
        let world = feed.world();
        let absent = sources.iter().filter(|source| world.is_absent(**source));
        let absent: Vec<_> = absent
            .filter_map(|source| world.kind(*source).cloned())
            .collect();
        let is_store = matches!(connection.target, Target::Embedded { .. });
        match (denied(&world, sources), stale(&world, sources), in_time) {
            (Some(why), ..) => Some(Error::new(Exit::NotAllowed, why)),
            (None, Some(why), _) if is_store => Some(Error::new(
                Exit::Failed,
                format!("{}: {why}", connection.target),
            )),
            (None, Some(why), _) => Some(
                Error::new(Exit::Unreachable, format!("cannot read the objects: {why}"))
                    .with_hint("check the connection: kubectl cluster-info"),
            ),
            (None, None, Err(_)) => Some(
                Error::new(
                    Exit::Unreachable,
                    "the target did not list all objects in time",
                )
                .with_hint("wait longer: --request-timeout 2m"),
            ),
            (None, None, Ok(())) if !absent.is_empty() && world.workloads().next().is_none() => {
                let absent = connect::Error::absent(&connection.target, &absent).into();
                Some(match (of_others, denied(&world, of_others)) {
                    ([], _) => absent,
                    (_, Some(why)) => Error::new(Exit::NotAllowed, why)
                        .with_hint("ask for the right to list workloads, or name another namespace: -n NAMESPACE"),
                    (_, None) => without_workloads(absent, namespace),
                })
            }
            (None, None, Ok(())) => None,
        }
    };
    match wrong {
        None => Ok(feed),
        Some(error) => Err(error),
    }
}

/// Adds to the error of a cluster without bowline's kinds that it has no workloads either. `namespace` is None for all
/// namespaces.
fn without_workloads(mut absent: Error, namespace: Option<&str>) -> Error {
    let place = match namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in any namespace".to_owned(),
    };
    absent.message = format!(
        "there is no Deployment, StatefulSet or DaemonSet {place}, and {}",
        absent.message
    );
    match namespace {
        Some(_) => absent.and_hint("or look at another namespace: -n NAMESPACE"),
        None => {
            // The other hint says to look in all namespaces.
            absent.hints.truncate(1);
            absent
        }
    }
}

/// Returns a message about the first of `sources` that the server denies the user; None if the user may read all.
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

/// Returns the error of the first of `sources` whose watch failed; None if no watch failed.
fn stale(world: &World, sources: &[Source]) -> Option<String> {
    let mut reasons = sources.iter().filter_map(|source| world.why_stale(*source));
    reasons.next().map(str::to_owned)
}

/// Returns the error for a command that rules refuse, with their hints. The commands in the hints contain the flags
/// that select the target.
pub(super) fn refused(refusals: Vec<Refusal>, address: &Address) -> Error {
    let aim = |line: &str| address.bowline(line);
    let hints = refusals.iter().flat_map(|refusal| refusal.hints(&aim));
    hints.fold(without_hints(&refusals), Error::and_hint)
}

/// Returns the error for a command that rules refuse while no controller runs. It is useless to wait then, so the
/// hint `how`, which says how to run a controller, replaces the hint to wait.
pub(super) fn refused_without_controller(
    refusals: &[Refusal],
    how: String,
    address: &Address,
) -> Error {
    let aim = |line: &str| address.bowline(line);
    let hints = refusals.iter().flat_map(|refusal| match refusal {
        Refusal::Unready { .. } => vec![rules::UNREADY_ANYWAY.to_owned()],
        refusal => refusal.hints(&aim),
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

/// Returns the error for a command that could not be planned.
pub(super) fn not_planned(error: NotPlanned, address: &Address) -> Error {
    match error {
        NotPlanned::Refused(refusals) => refused(refusals, address),
        NotPlanned::Catalog(error) => error.into(),
        NotPlanned::Reference(error) => commits::no_reference(&error, "", address),
        NotPlanned::Subject(error) => error::of_subject(error, address),
        NotPlanned::Target(error) => error.into(),
    }
}

/// Returns the error for a plan that failed before its first change.
pub(super) fn not_applied(error: NotApplied, address: &Address) -> Error {
    match error {
        NotApplied::NotPlanned(error) => not_planned(error, address),
        NotApplied::NotCommitted(error) => error.into(),
    }
}

/// Returns the component that the user named. If the user named none, returns the component from the configuration;
/// an error if there is none.
pub(super) fn component(connection: &Connection, named: Option<&str>) -> Result<String, Error> {
    let Some(meant) = named.or(connection.component.as_deref()) else {
        let error = Error::new(
            Exit::Usage,
            "the component is missing, and config.toml names none for this directory or context",
        );
        return Err(error
            .with_hint("name a component")
            .and_hint("promote can also take all components: --all"));
    };
    check_name("component", meant).map_err(|error| match meant.contains('/') {
        true => error.with_hint(format!(
            "name a component, or one of {}",
            subjects::words_of_kinds("NAME").join(", ")
        )),
        false => error,
    })?;
    Ok(meant.to_owned())
}
