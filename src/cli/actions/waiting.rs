//! Waits until what was done is ready.

use std::io::IsTerminal;
use std::time::Duration;

use super::applied::Became;
use crate::cli::error::Exit;
use crate::engine::plan::{Item, Plan};
use crate::engine::rollout::Rollout;
use crate::engine::world::World;
use crate::engine::world::feed::Feed;

/// Waits until every pin that was changed is ready; progress is told on a terminal only.
pub(super) async fn wait(
    feed: &mut Feed,
    plan: &Plan,
    became: &Became,
    patience: Duration,
    say: &mut dyn FnMut(String),
) -> Exit {
    let changed: Vec<(&Item, i64)> = plan
        .items
        .iter()
        .zip(&became.results)
        .filter(|(_, result)| result.is_done())
        .filter_map(|(item, result)| Some((item, result.revision().or(item.generation)?)))
        .collect();
    let progress = std::io::stderr().is_terminal();
    let mut told: Vec<String> = Vec::new();
    let ended = tokio::time::timeout(patience, async {
        loop {
            let states = states(&feed.world(), &changed);
            let lines = || states.iter().map(|(_, line)| line);
            for line in lines().filter(|line| progress && !told.contains(line)) {
                say(line.clone());
            }
            told = lines().cloned().collect();
            if states.iter().all(|(ready, _)| *ready) {
                return;
            }
            feed.changed().await;
        }
    });
    tokio::select! {
        ended = ended => if ended.is_ok() {
            return Exit::Done;
        },
        Ok(()) = tokio::signal::ctrl_c() => {
            say("interrupted: what was done goes on without being waited for".to_owned());
        }
    }
    let unready = states(&feed.world(), &changed);
    for (_, line) in unready.into_iter().filter(|(ready, _)| !ready) {
        say(format!("not ready in time: {line}"));
    }
    Exit::Failed
}

/// Says of each pin whether it is ready, and how it is doing.
fn states(world: &World, changed: &[(&Item, i64)]) -> Vec<(bool, String)> {
    let state = |(item, revision): &(&Item, i64)| {
        let rollout = Rollout::of(world.pin(&item.pin), *revision);
        let (component, environment) = (&item.component, &item.environment);
        let line = format!("{component} in {environment}: {}", rollout.words());
        (rollout.is_ready(), line)
    };
    changed.iter().map(state).collect()
}
