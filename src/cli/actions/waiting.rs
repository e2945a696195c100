//! Waits until the changes of a plan are ready, for `--wait`.

use std::io::IsTerminal;
use std::time::Duration;

use super::applied::{Became, Result as Changed};
use crate::engine::plan::{Change, Plan};
use crate::engine::world::World;
use crate::engine::world::feed::Feed;
use crate::error::{Error, Exit};
use crate::subjects::release_pin::rollout::Rollout;

/// The reason why a wait for rollouts ended.
#[derive(Clone, Copy)]
enum End {
    /// Every rollout of the plan is ready, or a rollout has failed.
    Over,
    Late,
    Interrupted,
}

/// Waits until every ReleasePin of a plan is ready. Prints progress only on a terminal. Each error message also says
/// that the change itself was made.
pub(super) async fn wait(
    feed: &mut Feed,
    plan: &Plan,
    became: &Became,
    patience: Duration,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    let changed: Vec<(&Change, i64)> = plan
        .changes
        .iter()
        .zip(&became.results)
        .filter(|(_, result)| result.is_done())
        .filter_map(|(change, result)| Some((change, result.revision().or(change.number())?)))
        .collect();
    let progress = std::io::stderr().is_terminal();
    let mut told: Vec<String> = Vec::new();
    let over = async {
        loop {
            let states = states(&feed.world(), &changed);
            let lines: Vec<String> = states
                .iter()
                .map(|(change, state)| line(change, state))
                .collect();
            for line in lines.iter().filter(|line| progress && !told.contains(line)) {
                say(line.clone());
            }
            told = lines;
            if states.iter().all(|(_, state)| state.is_ready())
                || states.iter().any(|(_, state)| state.is_final_failure())
            {
                return;
            }
            feed.changed().await;
        }
    };
    let end = tokio::select! {
        over = tokio::time::timeout(patience, over) => match over {
            Ok(()) => End::Over,
            Err(_elapsed) => End::Late,
        },
        Ok(()) = tokio::signal::ctrl_c() => End::Interrupted,
    };
    let states = states(&feed.world(), &changed);
    let unready = states.iter().filter(|(_, state)| !state.is_ready());
    let unready: Vec<String> = unready.map(|(change, state)| line(change, state)).collect();
    match unready.is_empty() {
        true => Ok(()),
        false => Err(failed(became, end, &unready)),
    }
}

fn failed(became: &Became, end: End, unready: &[String]) -> Error {
    let is_made = |result: &Changed| matches!(result, Changed::Done(_) | Changed::Committed);
    let made = match became.results.iter().any(is_made) {
        true => "the change was made",
        false => "no change was needed",
    };
    let why = match end {
        End::Over => "its rollout failed",
        End::Late => "it is not ready in time",
        End::Interrupted => "you stopped the wait, and the rollout continues",
    };
    let message = format!("{made}, but {why}: {}", unready.join("\n"));
    Error::new(Exit::Failed, message).with_hint("watch the progress: bowline status")
}

fn states<'p>(world: &World, changed: &[(&'p Change, i64)]) -> Vec<(&'p Change, Rollout)> {
    let state = |(change, revision): &(&'p Change, i64)| {
        let rollout = Rollout::of(world.pin(change.key()), *revision, &change.to.name);
        (*change, rollout)
    };
    changed.iter().map(state).collect()
}

fn line(change: &Change, state: &Rollout) -> String {
    let (component, environment) = (&change.name, &change.environment);
    format!("{component} in {environment}: {}", state.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_fails_says_that_the_change_was_made() {
        let line = ["cart in dev: crashes (Degraded)".to_owned()];
        for (result, end, message) in [
            (
                Changed::Done(2),
                End::Late,
                "the change was made, but it is not ready in time: cart in dev: crashes (Degraded)",
            ),
            (
                Changed::Done(2),
                End::Over,
                "the change was made, but its rollout failed: cart in dev: crashes (Degraded)",
            ),
            (
                Changed::Unchanged,
                End::Late,
                "no change was needed, but it is not ready in time: cart in dev: crashes (Degraded)",
            ),
        ] {
            let became = Became {
                results: vec![result],
                exit: Exit::Done,
                interrupted: false,
            };
            let error = failed(&became, end, &line);
            assert_eq!(
                (error.exit, error.message.as_str()),
                (Exit::Failed, message)
            );
        }
    }
}
