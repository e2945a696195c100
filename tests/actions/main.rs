//! Tests of actions, through the engine and through the program. If many operators act, one wins. No step is
//! done twice, no change is lost, a rewritten audit entry is detected, and invalid commands are refused with
//! a reason.
//!
//! Every test runs on the embedded API and on a real cluster, as `embedded::NAME` and `cluster::NAME`. Some
//! tests also run on a git repository, as `repository::NAME`. By default a test runs in a short form.
//! `BOWLINE_FULL=1 cargo test --test actions -- --nocapture` runs the long form and prints measurements. A
//! word before `--` selects tests by name.

// Clippy allows unwrap only in `#[test]` functions, not in their helpers.
#![allow(clippy::unwrap_used)]

#[path = "../cluster/mod.rs"]
mod cluster;
#[path = "../shared/place.rs"]
mod place;
#[path = "../shared/proxy.rs"]
mod proxy;
#[allow(dead_code)] // proofs about controllers use the rest
#[path = "../shared/shop.rs"]
mod shop;
#[path = "../shared/user.rs"]
mod user;

mod contention;
mod flapping;
mod gitops;
mod kill;
mod lost;
mod nonsense;
mod races;
mod stories;
mod tampering;

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use place::{Place, Target};

/// The longest wait in a test; after it, the test fails.
const HANG: Duration = Duration::from_secs(60);

/// Returns `full` if BOWLINE_FULL is set, else `short`.
fn sized<T>(short: T, full: T) -> T {
    match std::env::var_os("BOWLINE_FULL") {
        None => short,
        Some(_) => full,
    }
}

type Run = fn(Arc<Target>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! proofs {
    ($($module:ident :: $proof:ident),* $(,)?) => {
        [$((
            concat!(stringify!($module), "::", stringify!($proof)),
            (|target| Box::pin($module::$proof(target))) as Run,
        )),*]
    };
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // In the short form, tests mostly wait for servers, so three run at a time. In the full form they
    // measure, so they run one at a time.
    arguments.test_threads.get_or_insert(sized(3, 1));
    let proofs = proofs![
        stories::from_the_first_deployment_to_gc,
        stories::waiting_ends_when_it_is_ready,
        contention::one_of_fifty_wins,
        contention::one_of_many_processes_wins,
        flapping::a_status_that_flaps_stops_nobody,
        gitops::a_rollback_outlives_what_git_says,
        lost::answers_that_are_lost_change_nothing,
        kill::a_second_run_finishes_what_was_killed,
        kill::an_interrupt_ends_a_set_between_two_changes,
        races::gc_leaves_no_pin_without_its_release,
        races::a_blind_delete_leaves_no_pin_without_its_release,
        races::gc_puts_back_what_a_pin_names_without_a_claim,
        tampering::one_changed_byte_is_found,
        nonsense::what_is_not_there_is_named,
        nonsense::a_pipeline_that_leads_in_a_circle_is_refused,
        nonsense::a_hold_that_has_expired_stops_nothing,
        nonsense::a_pin_whose_release_is_gone_can_be_rolled_back,
        nonsense::clocks_that_disagree_do_no_harm,
        nonsense::names_as_long_as_they_may_be,
    ];
    // A repository has no status, no claims, no requests that can get lost and no stored audit entries, so
    // the tests about these do not run on it. tests/release kills commands and loses pushes on a repository.
    let on_repository = proofs![
        stories::from_the_first_deployment_to_gc,
        contention::one_of_many_commits_wins,
        nonsense::what_is_not_there_is_named,
        nonsense::a_pipeline_that_leads_in_a_circle_is_refused,
        nonsense::a_hold_that_has_expired_stops_nothing,
        nonsense::a_pin_whose_release_is_gone_can_be_rolled_back,
        nonsense::names_as_long_as_they_may_be,
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let wanted =
        |name: &str| !arguments.list && !arguments.is_filtered_out(&Trial::test(name, || Ok(())));
    let on_cluster = proofs
        .iter()
        .any(|(name, _)| wanted(&format!("cluster::{name}")));
    let cluster = match on_cluster {
        true => runtime.block_on(Place::cluster()),
        false => None,
    };
    let mut trials = Vec::new();
    for (place, proofs) in [
        (Some(Place::Embedded), proofs.as_slice()),
        (cluster.clone(), &proofs),
        (Some(Place::Repository), &on_repository),
    ] {
        for &(name, run) in proofs {
            let kind = place.as_ref().map_or("cluster", Place::name);
            let (place, runtime) = (place.clone(), runtime.handle().clone());
            let missing = place.is_none();
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
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Stops the servers before the process ends.
    drop(cluster);
    conclusion.exit_code()
}
