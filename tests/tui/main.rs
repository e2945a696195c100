//! Tests of bowline in a pseudo-terminal: the screens, the reactions to keys, and how the program ends.
//!
//! The tests run on the embedded API and on a real cluster, as `embedded::NAME` and `cluster::NAME`. Tests
//! that need no API have the name `terminal::NAME`. `cargo test --test tui -- --nocapture` prints
//! measurements. A word before `--` selects tests by name.

// Clippy allows unwrap only in `#[test]` functions, not in their helpers.
#![allow(clippy::unwrap_used)]

#[path = "../cluster/mod.rs"]
mod cluster;
#[allow(dead_code)] // other proofs use the rest
#[path = "../shared/place.rs"]
mod place;
#[allow(dead_code)] // as above
#[path = "../controllers/process.rs"]
mod process;
#[allow(dead_code)] // as above
#[path = "../shared/shop.rs"]
mod shop;
#[allow(dead_code)] // as above
#[path = "../shared/user.rs"]
mod user;

mod cut;
mod echo;
mod escapes;
mod hostile;
mod pty;
mod slow;
mod story;
mod terminal;

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use place::{Place, Target};

/// The longest wait in a test; after it, the test fails.
const HANG: Duration = Duration::from_secs(60);

type Proof = fn(Arc<Target>) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! proofs {
    ($($module:ident :: $proof:ident),* $(,)?) => {
        [$((
            concat!(stringify!($module), "::", stringify!($proof)),
            (|target| Box::pin($module::$proof(target))) as Proof,
        )),*]
    };
}

macro_rules! alone {
    ($($module:ident :: $proof:ident),* $(,)?) => {
        [$((
            concat!(stringify!($module), "::", stringify!($proof)),
            $module::$proof as fn(),
        )),*]
    };
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut words = std::env::args().skip(1);
    if let (Some("--play"), Some(part)) = (words.next().as_deref(), words.next()) {
        runtime.block_on(echo::play(&part));
        runtime.shutdown_background();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    // Programs in terminals mostly wait, so three tests run at a time.
    arguments.test_threads.get_or_insert(3);
    let alone = alone![
        escapes::what_passes,
        terminal::comes_back_at_the_end,
        terminal::tells_what_comes_from_it,
        terminal::comes_back_after_a_panic,
        terminal::comes_back_after_an_abort,
        terminal::comes_back_after_a_signal,
        terminal::sleeps_and_wakes,
        terminal::draws_a_burst_at_once,
    ];
    let on_both = proofs![story::every_action_from_the_keyboard, story::every_way_out];
    let on_embedded = proofs![
        story::a_moved_selection_is_cheap,
        story::a_screen_without_a_terminal,
        hostile::nothing_foreign_steers_the_terminal,
        slow::a_context_is_connected_to_beside_the_keyboard,
        slow::a_connection_waits_until_the_typed_line_is_done,
        slow::a_slow_context_at_the_start_is_named,
    ];
    let on_repository = proofs![
        story::a_promotion_on_a_repository_is_a_commit,
        slow::a_silent_cluster_beside_a_repository_holds_nothing_up,
    ];
    let wanted =
        |name: &str| !arguments.list && !arguments.is_filtered_out(&Trial::test(name, || Ok(())));
    let on_cluster = on_both
        .iter()
        .any(|(name, _)| wanted(&format!("cluster::{name}")));
    let cluster = match on_cluster {
        true => runtime.block_on(Place::cluster()),
        false => None,
    };
    let mut trials = Vec::new();
    for (name, run) in alone {
        trials.push(Trial::test(name, move || {
            run();
            Ok(())
        }));
    }
    let embedded = on_both.iter().chain(&on_embedded);
    let embedded = embedded.map(|proof| (Some(Place::Embedded), proof));
    let both = on_both.iter().map(|proof| (cluster.clone(), proof));
    let repository = on_repository
        .iter()
        .map(|proof| (Some(Place::Repository), proof));
    for (place, &(name, run)) in embedded.chain(both).chain(repository) {
        let kind = place.as_ref().map_or("cluster", Place::name);
        let (missing, runtime) = (place.is_none(), runtime.handle().clone());
        let trial = Trial::test(format!("{kind}::{name}"), move || {
            let place = place.ok_or_else(|| Failed::from("there is no such target here"))?;
            runtime.block_on(async {
                let target = Target::new(&place, name).await;
                run(Arc::new(target)).await;
            });
            Ok(())
        });
        trials.push(trial.with_ignored_flag(missing));
    }
    let handle = runtime.handle().clone();
    trials.push(Trial::test("cut::a_killed_server_is_survived", move || {
        handle.block_on(cut::a_killed_server_is_survived());
        Ok(())
    }));
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Stops the servers before the process ends.
    drop(cluster);
    conclusion.exit_code()
}
