//! `bowline controller`: runs the controllers in their own process.
//!
//! In a cluster, only the process that holds the Lease runs the controllers; the other processes wait. For an
//! embedded store, only the process that has locked a file next to the store runs them. HTTP endpoints report
//! liveness, readiness and metrics.

mod endpoint;

use std::ffi::OsStr;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::sync::{oneshot, watch};

use super::apply::writable;
use super::connect::{self, Connection, DataPlanes, Environment, Options, Target, explain};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::socket;
use crate::controllers::all::{self, Stop};
use crate::controllers::beside;
use crate::controllers::fence::Fence;
use crate::controllers::lease::Election;
use crate::controllers::lock::Lock;
use crate::controllers::{Clock, Context};
use crate::engine::whoami;
use endpoint::{Standing, State};

/// The arguments of `controller`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The address of /healthz, /readyz and /metrics; port 0 chooses a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The duration of the leader Lease; if the leader stops, another process becomes the leader after at most
    /// this time
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = whole_seconds)]
    lease_duration: u16,
    /// The time that reconciles have to finish after a stop signal
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = super::duration)]
    grace: Duration,
    /// The format of the log on stderr; the variable BOWLINE_LOG sets its level, else it is info
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(super) log_format: LogFormat,
    /// The kubeconfig with the contexts that DataPlanes name [default: the kubeconfig of the target]
    #[arg(long, value_name = "FILE", env = "BOWLINE_DATA_PLANES")]
    data_planes: Option<PathBuf>,
    #[command(flatten)]
    git: GitFlags,
}

/// The formats of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line per event
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

fn whole_seconds(text: &str) -> Result<u16, String> {
    let duration = super::duration(text)?;
    match u16::try_from(duration.as_secs()) {
        Ok(seconds @ 1..) if duration.subsec_nanos() == 0 => Ok(seconds),
        _ => Err(format!(
            "the lease duration is a whole number of seconds, from 1s to {}s",
            u16::MAX
        )),
    }
}

/// Runs the controllers until SIGINT or SIGTERM.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut connection = connect::connect(options, environment).await?;
    writable(&connection, "controller")?;
    if let Target::Repository { .. } = &connection.target {
        let message = "a repository has no controllers: they run in the clusters that apply it";
        return Err(
            Error::new(Exit::Usage, message).with_hint("choose a cluster with --context NAME")
        );
    }
    if let Target::Embedded { .. } = &connection.target {
        connection = beside::connection(options, environment).await?;
    }
    let git = arguments.git.git(environment)?;
    let listener = socket::bind(arguments.listen).await?;
    let stop = all::stop(socket::stop_signal()?);
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    out.flush()?;
    let state = Arc::new(State::default());
    state.metrics.reads_git(&git);
    let process = Process {
        clock: TargetTime::default(),
        // Without the flag `-n`, the controllers run for all namespaces, and not only for the namespace of the
        // kubeconfig context.
        namespace: options.namespace.clone(),
        grace: arguments.grace,
        connection: &connection,
        options,
        environment,
        planes: match &arguments.data_planes {
            None => DataPlanes::of(&connection, options, environment),
            Some(file) => DataPlanes::in_file(&connection, file, options, environment),
        },
        state: state.clone(),
        stop: stop.clone(),
        git,
        missing: Mutex::default(),
    };
    let (ended, end) = oneshot::channel::<()>();
    // The endpoints answer until the process ends, also while the controllers stop.
    let telling = tokio::spawn(socket::serve(
        listener,
        async {
            let _ = end.await;
        },
        move |request| {
            let answer = endpoint::answer(&request, &state);
            async move { answer }
        },
    ));
    let result = match &connection.target {
        Target::Embedded { file } => process.beside(file).await,
        _ => {
            let name = identity(environment);
            process.elected(name, arguments.lease_duration).await
        }
    };
    drop(ended);
    let _ = telling.await;
    result
}

/// Returns a unique name for this process: the name of the host or pod, and a random id.
fn identity(environment: &Environment) -> String {
    let host = environment.variables.get(OsStr::new("HOSTNAME"));
    let host = host.and_then(|name| name.to_str()).unwrap_or("bowline");
    format!("{host}_{}", uuid::Uuid::new_v4())
}

/// The clock of the target: the clock of this machine, corrected by the last known difference.
#[derive(Clone, Default)]
struct TargetTime {
    ahead: Arc<AtomicI64>,
}

impl TargetTime {
    /// Asks the target for its time, to update the difference. If the target does not answer, keeps the old
    /// difference.
    async fn ask(&self, client: &Client) {
        if let Ok(said) = whoami::ask(client, &Timestamp::now).await {
            self.ahead.store(said.ahead.as_secs(), Ordering::Relaxed);
        }
    }

    fn clock(&self) -> Clock {
        let ahead = self.ahead.clone();
        Arc::new(move || {
            let now = Timestamp::now();
            let ahead = SignedDuration::from_secs(ahead.load(Ordering::Relaxed));
            now.checked_add(ahead).unwrap_or(now)
        })
    }
}

/// The settings and the state that all parts of the controller process share.
struct Process<'a> {
    connection: &'a Connection,
    options: &'a Options,
    environment: &'a Environment,
    planes: DataPlanes,
    namespace: Option<String>,
    git: crate::resolve::git::Git,
    clock: TargetTime,
    grace: Duration,
    state: Arc<State>,
    stop: Stop,
    /// The missing kinds at the last check. The log gets a line only when they change.
    missing: Mutex<String>,
}

impl Process<'_> {
    /// Logs which kinds of bowline the target does not have, if they differ from the last check. Each controller
    /// waits until the kinds that it needs exist.
    async fn log_missing_kinds(&self) {
        let kinds = all::missing(&self.connection.client).await;
        let kinds = connect::kinds::listed(&kinds);
        let mut logged = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if *logged != kinds && !kinds.is_empty() {
            tracing::warn!(
                "{} does not have the kinds {kinds}; bowline install installs them, and the controllers wait until then",
                self.connection.target
            );
        }
        *logged = kinds;
    }

    /// Runs the controllers as long as this process holds the Lease.
    ///
    /// A separate thread with its own connection renews the Lease, so that busy controllers cannot delay the renewal.
    async fn elected(&self, identity: String, seconds: u16) -> Result<(), Error> {
        let fence = Fence::default();
        let (told, mut terms) = watch::channel(None);
        let (acted, over) = oneshot::channel::<()>();
        let candidate = Candidate {
            options: self.options.clone(),
            environment: self.environment.clone(),
            identity,
            seconds,
            clock: self.clock.clock(),
            fence: fence.clone(),
            state: self.state.clone(),
        };
        let running = std::thread::Builder::new()
            .name("lease".to_owned())
            .spawn(move || candidate.run(&told, over))?;
        let client = &self.connection.client;
        tokio::select! {
            () = self.log_missing_kinds() => {}
            () = self.stop.clone() => {}
        }
        loop {
            // The channel is closed if the thread could not start, so there is no term.
            let term = tokio::select! {
                term = terms.wait_for(Option::is_some) => term.ok().and_then(|term| *term),
                () = self.stop.clone() => None,
            };
            let Some(term) = term else {
                break;
            };
            let behind = fence.clone();
            let planes = self.planes.clone();
            let planes = planes.behind(move |client| behind.around(client));
            let lost = tokio::select! {
                lost = terms.wait_for(|now| *now != Some(term)) => lost.is_ok(),
                () = self.act(fence.around(client), planes) => false,
            };
            if !lost {
                break;
            }
        }
        drop(acted);
        let ended = tokio::task::spawn_blocking(move || running.join()).await;
        match ended {
            Ok(Ok(ended)) => ended,
            _ => Err(Error::new(
                Exit::Failed,
                "the leader election ended with an error",
            )),
        }
    }

    /// Runs the controllers of an embedded store as long as this process holds the lock on the store's lock file.
    async fn beside(&self, store: &Path) -> Result<(), Error> {
        let waiting = || {
            tracing::info!(
                "another process runs the controllers of this store; waiting until it stops"
            );
            self.state.stands(Standing::Waiting(None));
        };
        let lock = tokio::select! {
            lock = Lock::win(store, waiting) => lock.map_err(|error| {
                let message = format!("the lock beside {}: {error}", store.display());
                Error::new(Exit::Failed, message)
            })?,
            () = self.stop.clone() => return Ok(()),
        };
        let client = self.connection.client.clone();
        self.act(client, self.planes.clone()).await;
        drop(lock);
        Ok(())
    }

    /// Runs the controllers until the process must stop. Running reconciles may then continue for the grace period.
    async fn act(&self, client: Client, planes: DataPlanes) {
        self.clock.ask(&client).await;
        self.log_missing_kinds().await;
        let context = Arc::new(Context::new(
            client,
            self.namespace.clone(),
            self.clock.clock(),
            self.git.clone(),
            self.state.metrics.clone(),
        ));
        let _term = Term::begin(&self.state, &context);
        let patience = async {
            self.stop.clone().await;
            tracing::info!("stopping: running reconciles finish first");
            tokio::time::sleep(self.grace).await;
        };
        tokio::select! {
            () = all::run(all::all(planes), &context, self.stop.clone()) => {}
            () = patience => tracing::warn!("running reconciles did not finish in time"),
        }
    }
}

/// The values that the thread which renews the Lease needs.
struct Candidate {
    options: Options,
    environment: Environment,
    identity: String,
    seconds: u16,
    clock: Clock,
    fence: Fence,
    state: Arc<State>,
}

impl Candidate {
    /// Gets the Lease and holds it until the controllers have stopped.
    fn run(
        self,
        terms: &watch::Sender<Option<u64>>,
        over: oneshot::Receiver<()>,
    ) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ended = runtime.block_on(async {
            let connection = connect::connect(&self.options, &self.environment).await?;
            tracing::info!(target = %connection.target, identity = self.identity, "waiting for the lease");
            let election = Election::new(
                &connection.client,
                self.identity.clone(),
                self.seconds,
                self.clock.clone(),
                self.fence.clone(),
            );
            let end = all::stop(async {
                let _ = over.await;
            });
            election.take_part(terms, |seen| self.seen(seen), end).await;
            Ok(())
        });
        runtime.shutdown_background();
        ended
    }

    /// Records for the endpoints which process holds the Lease, or the error because of which this is unknown.
    fn seen(&self, seen: Result<Option<&str>, &kube::Error>) {
        let error = match seen {
            Ok(holder) => {
                let holder = holder.map(str::to_owned);
                self.state.stands(Standing::Waiting(holder));
                return;
            }
            Err(error) => error,
        };
        let why = explain(error);
        let missing = matches!(error, kube::Error::Api(status) if status.code == 404);
        let hint = if missing {
            "; bowline install creates the missing objects"
        } else {
            ""
        };
        if self.state.stands(Standing::Unreachable(why.clone())) {
            tracing::warn!("cannot get the lease: {why}{hint}");
        }
    }
}

/// The time during which this process is the leader. Dropping the value tells the endpoints that this time has ended.
struct Term<'a>(&'a State);

impl<'a> Term<'a> {
    fn begin(state: &'a State, context: &Arc<Context>) -> Self {
        tracing::info!("this process is the leader now");
        state.metrics.leads(true);
        state.metrics.follow(context);
        state.stands(Standing::Acting(context.clone()));
        Self(state)
    }
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        self.0.metrics.leads(false);
        self.0.stands(Standing::Starting);
        tracing::info!("this process is no longer the leader");
    }
}
