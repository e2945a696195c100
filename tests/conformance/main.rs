//! One test suite for the embedded API and for a real kube-apiserver. Every case runs on both, as
//! `embedded::MODULE::CASE` and `cluster::MODULE::CASE`.
//!
//! The real server is the authority: a case must pass there, and a different answer of the embedded API is a
//! bug. Each case has its own namespace, so cases run at the same time.

#[path = "../cluster/mod.rs"]
mod cluster;
mod target;
mod widget;

mod admission;
mod apply;
mod bodies;
mod builtin;
mod crd;
mod create;
mod delete;
mod dependents;
mod discovery;
mod dryrun;
mod fields;
mod finalizers;
mod goclient;
mod kinds;
mod kubectl;
mod list;
mod names;
mod namespaces;
mod ownership;
mod pagination;
mod patch;
mod read;
mod releases;
mod reviews;
mod runtime;
mod schemas;
mod selectors;
mod strategic;
mod subresources;
mod table;
mod tables;
mod update;
mod validation;
mod watch;

use std::{future::Future, pin::Pin, process::ExitCode, sync::Arc, time::Duration};

use libtest_mimic::{Arguments, Failed, Trial};
use target::{Place, Target};

/// The result of a case. A failed assertion panics instead, with the expected and the actual value.
pub type Outcome = Result<(), Failed>;

type Run = dyn Fn(Target) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync;

/// A test case that runs on both servers.
#[derive(Clone)]
pub struct Case {
    name: String,
    run: Arc<Run>,
    alone: bool,
    cluster_only: bool,
}

/// Makes a case from an async function. The case gets the path of the function as its name.
pub fn case<F, R>(run: F) -> Case
where
    F: Fn(Target) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    let path = std::any::type_name::<F>();
    Case {
        name: path
            .split_once("::")
            .map_or(path, |(_, name)| name)
            .to_owned(),
        run: Arc::new(move |target| Box::pin(run(target))),
        alone: false,
        cluster_only: false,
    }
}

/// Makes a case that runs alone, because it would disturb other cases.
pub fn alone<F, R>(run: F) -> Case
where
    F: Fn(Target) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    Case {
        alone: true,
        ..case(run)
    }
}

/// Makes a case that runs only on the real server. Such a case compares data of kube-embedded with the real
/// server.
pub fn on_the_cluster<F, R>(run: F) -> Case
where
    F: Fn(Target) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    Case {
        cluster_only: true,
        ..case(run)
    }
}

fn cases() -> Vec<Case> {
    [
        admission::cases(),
        apply::cases(),
        bodies::cases(),
        crd::cases(),
        create::cases(),
        delete::cases(),
        dependents::cases(),
        discovery::cases(),
        dryrun::cases(),
        finalizers::cases(),
        fields::cases(),
        kinds::cases(),
        list::cases(),
        names::cases(),
        namespaces::cases(),
        pagination::cases(),
        patch::cases(),
        read::cases(),
        releases::cases(),
        reviews::cases(),
        runtime::cases(),
        selectors::cases(),
        strategic::cases(),
        subresources::cases(),
        table::cases(),
        tables::cases(),
        update::cases(),
        validation::cases(),
        watch::cases(),
    ]
    .concat()
}

const DEADLINE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Cases mostly wait for servers, so eight of them run in parallel.
    arguments.test_threads.get_or_insert(8);
    let runtime = tokio::runtime::Runtime::new().expect("a tokio runtime");
    let cases = cases();
    let wanted = |place: &str| {
        !arguments.list
            && cases.iter().any(|case| {
                let name = format!("{place}::{}", case.name);
                !arguments.is_filtered_out(&Trial::test(name, || Ok(())))
            })
    };
    let embedded = runtime.block_on(async {
        match wanted("embedded") {
            true => Place::embedded().await,
            false => None,
        }
    });
    let cluster = runtime.block_on(async {
        match wanted("cluster") {
            true => Place::cluster().await,
            false => None,
        }
    });
    let mut trials = Vec::new();
    for (name, place) in [("embedded", &embedded), ("cluster", &cluster)] {
        for case in cases
            .iter()
            .filter(|case| name == "cluster" || !case.cluster_only)
        {
            trials.push(trial(name, case.clone(), place.clone(), runtime.handle()));
        }
    }
    let pair = runtime.block_on(kubectl::Pair::start(&arguments));
    trials.extend(kubectl::trials(&pair));
    trials.extend(goclient::trials(&pair));
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Stops the servers before the process ends.
    drop((embedded, cluster, pair));
    conclusion.exit_code()
}

fn trial(
    name: &str,
    case: Case,
    place: Option<Arc<Place>>,
    runtime: &tokio::runtime::Handle,
) -> Trial {
    let runtime = runtime.clone();
    let missing = place.is_none();
    Trial::test(format!("{name}::{}", case.name), move || {
        let Some(place) = place else {
            return Err(Failed::from("there is no such target here"));
        };
        runtime.block_on(async {
            let (_shared, _alone) = if case.alone {
                (None, Some(place.turn.write().await))
            } else {
                (Some(place.turn.read().await), None)
            };
            let work = async {
                let target = Target::new(place.clone(), &case.name).await;
                (case.run)(target).await
            };
            tokio::time::timeout(DEADLINE, work)
                .await
                .unwrap_or_else(|_| {
                    Err(Failed::from(format!(
                        "not finished after {} s",
                        DEADLINE.as_secs()
                    )))
                })
        })
    })
    .with_ignored_flag(missing)
}
