//! Tests of the controllers as processes: only one process acts at a time, a killed process loses no work,
//! and a process writes nothing if nothing changed. Also tests the installation and removal of bowline.
//!
//! A test runs on an embedded store, on a cluster or on both, as `embedded::NAME` and `cluster::NAME`.
//! `BOWLINE_FULL=1 cargo test --test controllers -- --nocapture` runs the long form of the tests and prints
//! measurements. A word before `--` selects tests by name.

// Clippy allows unwrap only in `#[test]` functions, not in their helpers.
#![allow(clippy::unwrap_used)]

#[path = "../cluster/mod.rs"]
mod cluster;
#[allow(dead_code)] // proofs about the terminal use the rest
#[path = "../tui/escapes.rs"]
mod escapes;
#[allow(dead_code)] // proofs about actions use the rest
#[path = "../shared/place.rs"]
mod place;
#[allow(dead_code)] // as above
#[path = "../shared/proxy.rs"]
mod proxy;
#[allow(dead_code)] // proofs about the terminal use the rest
#[path = "../tui/pty.rs"]
mod pty;
#[allow(dead_code)] // as above
#[path = "../shared/shop.rs"]
mod shop;
#[allow(dead_code)] // as above
#[path = "../shared/user.rs"]
mod user;

mod absent;
mod beside;
mod crash;
mod dice;
mod examples;
mod install;
mod leadership;
mod node;
mod orders;
mod pins;
mod planes;
mod process;
mod quiet;
mod uninstall;
mod upgrade;
mod values;
mod workloads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use cluster::{Cluster, Options};
use libtest_mimic::{Arguments, Failed, Trial};
use place::{Place, Target};

/// The longest wait in a test; after it, the test fails.
const HANG: Duration = Duration::from_secs(120);

/// Returns `full` if BOWLINE_FULL is set, else `short`.
fn sized<T>(short: T, full: T) -> T {
    match std::env::var_os("BOWLINE_FULL") {
        None => short,
        Some(_) => full,
    }
}

type Proof<T> = fn(Arc<T>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! proofs {
    ($of:ty; $($module:ident :: $proof:ident),* $(,)?) => {
        vec![$((
            concat!(stringify!($module), "::", stringify!($proof)),
            (|target| Box::pin($module::$proof(target))) as Proof<$of>,
        )),*]
    };
}

/// Starts a cluster with bowline's kinds and policies, the workload controllers of Kubernetes, and a fake
/// node. Returns None if the programs of a cluster are missing.
async fn whole_cluster() -> Option<Place> {
    let mut cluster = Cluster::start(Options::default()).await?;
    cluster::install_bowline(&cluster.client()).await;
    cluster.start_node().await;
    Some(Place::Cluster(Arc::new(cluster)))
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // In the short form, tests mostly wait for servers, so three run at a time. In the full form they
    // measure, so they run one at a time.
    arguments.test_threads.get_or_insert(sized(3, 1));
    // The tests that need a cluster with bowline.
    let on_cluster = proofs![Target;
        node::pods_become_ready,
        leadership::one_acts_at_a_time,
        quiet::a_second_look_writes_nothing,
        planes::a_second_cluster_is_reached_through_the_kubeconfig_of_the_data_planes,
    ];
    // The tests that need an embedded store.
    let on_embedded = proofs![Target;
        beside::a_command_runs_them_until_its_pin_is_observed,
        beside::one_process_runs_them_and_another_takes_over,
    ];
    // The tests that run on both targets.
    let on_both = proofs![Target;
        crash::a_killed_controller_loses_nothing,
        orders::the_order_does_not_matter,
    ];
    // The tests that need a cluster without bowline.
    let on_bare = proofs![Cluster;
        absent::a_verb_names_the_kinds_that_a_cluster_does_not_have,
        absent::a_controller_waits_for_the_kinds_that_a_cluster_does_not_have,
        workloads::a_workload_that_nobody_prepared_is_rolled_back_and_undone,
        workloads::holds_and_owners_of_a_workload_are_obeyed,
        workloads::a_reader_of_workloads_changes_nothing,
        workloads::the_terminal_ui_rolls_a_workload_back_and_undoes_it,
        install::a_cluster_gets_and_loses_everything,
        install::what_others_created_is_not_touched,
        install::deploy_is_what_is_installed,
        values::values_that_others_set_stay,
        values::an_installation_by_kubectl_keeps_its_values,
        values::print_needs_no_cluster,
        examples::the_readme_deploys_the_example_with_bowline_and_applies_it_with_kubectl,
        uninstall::running_workloads_match_the_promise_of_each_step,
        uninstall::workloads_survive_the_deletion_of_a_kind,
        uninstall::finalizers_stay_while_a_controller_acts,
        uninstall::the_hint_for_a_kind_that_is_being_deleted_works,
        uninstall::a_denial_has_its_exit_code,
        // The last one, because its objects stay.
        upgrade::a_cluster_of_the_previous_version_is_changed_before_and_after_its_upgrade,
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let wanted =
        |name: &str| !arguments.list && !arguments.is_filtered_out(&Trial::test(name, || Ok(())));
    let any = |mut names: Box<dyn Iterator<Item = String>>| names.any(|name| wanted(&name));
    let cluster = match any(Box::new(
        on_cluster
            .iter()
            .chain(&on_both)
            .map(|(name, _)| format!("cluster::{name}")),
    )) {
        true => runtime.block_on(whole_cluster()),
        false => None,
    };
    let bare = match any(Box::new(
        on_bare.iter().map(|(name, _)| format!("bare::{name}")),
    )) {
        true => runtime.block_on(async {
            let mut cluster = Cluster::start(Options::default()).await?;
            cluster.start_node().await;
            Some(cluster)
        }),
        false => None,
    };
    let bare = bare.map(Arc::new);
    let mut trials = Vec::new();
    let embedded = on_embedded.iter().chain(&on_both);
    let embedded = embedded.map(|proof| (Some(Place::Embedded), proof));
    let on_cluster = on_cluster.iter().chain(&on_both);
    let on_cluster = on_cluster.map(|proof| (cluster.clone(), proof));
    for (place, &(name, run)) in embedded.chain(on_cluster) {
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
    // The tests on the bare cluster share it, so they run one after the other, but at the same time as the
    // other tests.
    let (mut turns, mut waiting) = (Vec::new(), Vec::new());
    for (name, run) in on_bare {
        let name = format!("bare::{name}");
        let (done, result) = mpsc::channel();
        if let Some(cluster) = bare.clone().filter(|_| wanted(&name)) {
            turns.push((run, cluster, done));
        }
        waiting.push((name, result));
    }
    let handle = runtime.handle().clone();
    let turns = Mutex::new(Some(move || {
        for (run, cluster, done) in turns {
            let turn = AssertUnwindSafe(|| handle.block_on(run(cluster)));
            let _ = done.send(catch_unwind(turn).is_ok());
        }
    }));
    let start = Arc::new(move || {
        if let Some(turns) = turns.lock().unwrap().take() {
            std::thread::spawn(turns);
        }
    });
    // In the full form these tests start later, because no other test may run while one measures.
    if sized(true, false) {
        start();
    }
    for (name, result) in waiting {
        let start = start.clone();
        let trial = Trial::test(name, move || {
            start();
            match result.recv() {
                Ok(true) => Ok(()),
                Ok(false) => Err(Failed::from("it panicked; the message is above")),
                Err(_) => Err(Failed::from("there is no such target here")),
            }
        });
        trials.push(trial.with_ignored_flag(bare.is_none()));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Stops the servers before the process ends.
    drop((cluster, bare));
    conclusion.exit_code()
}
