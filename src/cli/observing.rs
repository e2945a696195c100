//! After a command changes ReleasePins in an embedded store, the controllers run in this process until they
//! have observed the change, and a message says how an unfinished rollout goes on.

use jiff::Timestamp;
use kube::Client;
use kube::api::Api;

use super::connect::{Connection, Options, StoreFile, Target};
use crate::api::ReleasePin;
use crate::controllers::beside::Beside;
use crate::engine::presence::{self, Presence};
use crate::engine::rollout::Rollout;
use crate::engine::world::{Key, Pin};

/// Runs the controllers of an embedded store until they have observed generations of ReleasePins. The change
/// is made, so nothing that goes wrong here is an error of the command.
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
        say(format!("warning: the change was made, and {error}"));
        say(format!("hint: {}", how_to_go_on(beside.options)));
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
        say(format!("hint: {}", how_to_go_on(beside.options)));
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

/// Tells whether the target is an embedded store, and no process runs its controllers.
pub(super) async fn is_unattended(connection: &Connection) -> bool {
    let Target::Embedded { .. } = connection.target else {
        return false;
    };
    let found = presence::controller(connection, Timestamp::now()).await;
    matches!(found, Ok(Presence::Absent(_)))
}

/// Says which command goes on with a rollout that no process looks after.
pub(super) fn how_to_go_on(options: &Options) -> String {
    let store = match &options.embedded {
        Some(StoreFile::At(file)) => format!("--embedded={}", file.display()),
        Some(StoreFile::Default) | None => "--embedded".to_owned(),
    };
    format!(
        "no process runs the controllers of this store: bowline controller {store} runs them, and a command with --wait runs them until its change is ready"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_store() {
        for (embedded, command) in [
            (None, "bowline controller --embedded runs"),
            (
                Some(StoreFile::Default),
                "bowline controller --embedded runs",
            ),
            (
                Some(StoreFile::At("shop.db".into())),
                "bowline controller --embedded=shop.db runs",
            ),
        ] {
            let options = Options {
                embedded,
                ..Options::default()
            };
            let said = how_to_go_on(&options);
            assert!(said.contains(command), "{said}");
        }
    }
}
