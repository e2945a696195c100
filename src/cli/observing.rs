//! Runs the controllers of an embedded store in this process for a short time, after a verb has changed ReleasePins.
//! They run until they have observed the change. A message says how to continue a rollout that has not ended.

use jiff::Timestamp;
use kube::Client;
use kube::api::Api;

use super::connect::{Address, Connection, Target};
use crate::api::ReleasePin;
use crate::controllers::beside::Beside;
use crate::engine::controller_status::{self, ControllerStatus};
use crate::engine::world::Key;
use crate::subjects::release_pin::rollout::Rollout;
use crate::subjects::release_pin::rows::Pin;

/// Runs the controllers of an embedded store until they have observed these generations of ReleasePins. An error is
/// only a warning, because the changes are already made.
pub(super) async fn observe(
    beside: &Beside<'_>,
    changed: &[(Key, i64)],
    say: &mut dyn FnMut(String),
) {
    let Target::Embedded { .. } = beside.connection.target else {
        return;
    };
    if changed.is_empty() {
        return;
    }
    if let Err(error) = beside.observed(changed).await {
        say(format!("warning: the change was made, but {error}"));
        say(format!("hint: {}", how_to_continue(&address(beside))));
        return;
    }
    if !is_unattended(beside.connection).await {
        return;
    }
    let mut is_over = true;
    for (key, _) in changed {
        let Ok(pin) = read(&beside.connection.client, key).await else {
            continue;
        };
        let rollout = Rollout::newest(pin.as_ref());
        if let (Some(pin), false) = (&pin, rollout.is_ready()) {
            let (component, environment) = (&pin.component, &pin.environment);
            let words = rollout.words();
            say(format!(
                "{component} in {environment} is not ready yet: {words}"
            ));
            is_over = false;
        }
    }
    if !is_over {
        say(format!("hint: {}", how_to_continue(&address(beside))));
    }
}

async fn read(client: &Client, key: &Key) -> Result<Option<Pin>, kube::Error> {
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), &key.namespace);
    let found = pins.get_opt(&key.name).await?;
    Ok(found.map(|pin| {
        let (component, environment) = (&pin.spec.component, &pin.spec.environment);
        let (component, environment) = (component.as_str().into(), environment.as_str().into());
        Pin::of(&pin, key.clone(), component, environment)
    }))
}

/// Returns whether the target is an embedded store, and no process runs its controllers.
pub(super) async fn is_unattended(connection: &Connection) -> bool {
    let Target::Embedded { .. } = connection.target else {
        return false;
    };
    let found = controller_status::controller(connection, Timestamp::now()).await;
    matches!(found, Ok(ControllerStatus::Absent(_)))
}

/// Returns the hint for a rollout that has not ended: the commands that continue it.
pub(super) fn how_to_continue(address: &Address) -> String {
    format!(
        "no process runs the controllers of this store; add --wait to a command, or run them: {}",
        address.controller()
    )
}

/// Returns the hint with the command that runs the controllers of the store.
pub(super) fn how_to_run(address: &Address) -> String {
    format!(
        "no process runs the controllers of this store; run them: {}",
        address.controller()
    )
}

/// Returns the flags that select the target, for the commands in hints.
pub(super) fn address(beside: &Beside<'_>) -> Address {
    Address::of(beside.connection, beside.options, beside.environment)
}
