//! Connects to a target and creates a `kube::Client` for it. No other module knows whether the target is a cluster,
//! an embedded store or a repository.
//!
//! Every client has these layers, from the outside to the inside: the read-only guard, the deadlines, the retry of
//! reads (never of writes), and the backend that answers the requests; see [`guard`]. The caller passes the
//! environment of the process as [`Environment`], so that tests can choose it.

mod address;
mod answer;
mod config;
mod deadline;
mod error;
pub mod kinds;
mod planes;
pub mod plugin;
mod readonly;
mod repository;
mod retry;
mod settings;
mod store_waits;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::ApiResource;
use kube_embedded::{Embedded, OpenError};
use tower::retry::Retry;
use tower::{BoxError, Service, ServiceExt};

use crate::api::{labels, names};
use crate::git::WorkTree;
use answer::Asked;
use config::Config;
pub use config::Looks;

pub use address::Address;
pub use deadline::{DeadlineExceeded, Deadlines};
pub use error::{Error, Failure, explain, failure};
pub use planes::{DataPlanes, Version};
pub use readonly::{WriteGuard, only_reads};
pub use repository::{LeftOut, NotFollowed, Repository};
pub use settings::BadSetting;
pub use store_waits::StoreWaits;

/// Which file an embedded store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFile {
    /// The file `bowline.db` in the user's data directory.
    Default,
    /// A file that the user names.
    At(PathBuf),
}

/// The options of a connection. Most of them come from the flags of a command.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--context`: the name of a context in the kubeconfig.
    pub context: Option<String>,
    /// `--kubeconfig`: the kubeconfig file, instead of the default files.
    pub kubeconfig: Option<PathBuf>,
    /// `--embedded[=FILE]`: connect to an embedded store.
    pub embedded: Option<StoreFile>,
    /// `--repo`: connect to the git work tree that contains this directory.
    pub repo: Option<PathBuf>,
    /// `--branch`: the branch that receives bowline's commits, instead of the checked-out branch.
    pub branch: Option<String>,
    /// `--push`: push each commit that bowline makes.
    pub push: bool,
    /// `--remote`: the git remote to which bowline pushes commits, instead of the remote of the branch.
    pub remote: Option<String>,
    /// `-n`: the namespace, instead of the namespace of the context.
    pub namespace: Option<String>,
    /// `--as`: the user to impersonate.
    pub impersonate: Option<String>,
    /// `--readonly`: send no request that could change anything.
    pub readonly: bool,
    /// `--request-timeout`: the longest time until the head of an answer arrives, and after it the longest time until
    /// the body ends. None for the default deadlines.
    pub request_timeout: Option<Duration>,
    /// Whether `connect` may return before it has connected to the cluster whose status a repository shows. The
    /// terminal UI sets this.
    pub asks_cluster_later: bool,
    /// Whether `connect` fails if the embedded store does not exist. Otherwise it creates the store.
    pub needs_store: bool,
    /// The kinds that the command needs. `connect` fails if a cluster does not have one of them; embedded stores and
    /// repositories have all kinds.
    pub kinds: Vec<ApiResource>,
}

/// The parts of the process environment that a connection needs.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `KUBECONFIG`: a list of files in the format of `PATH`.
    pub kubeconfig: Option<OsString>,
    pub home: Option<PathBuf>,
    /// The directory for bowline's data.
    pub data_dir: Option<PathBuf>,
    /// The directory of the user's configuration.
    pub config_dir: Option<PathBuf>,
    pub working_dir: Option<PathBuf>,
    /// The directory for data that bowline can fetch again, such as git objects.
    pub cache_dir: Option<PathBuf>,
    /// All environment variables, which bowline passes to git.
    pub variables: BTreeMap<OsString, OsString>,
    /// Whether this process runs in a pod with a service account.
    pub in_pod: bool,
    /// The name of the operating system user. An embedded store records it as the author of requests.
    pub user: String,
    /// The path of the running bowline executable, which is started a second time to run a credential plugin.
    pub program: Option<PathBuf>,
}

/// The place whose objects a connection reads and writes.
#[derive(Clone, Debug)]
pub enum Target {
    /// A cluster that a context of a kubeconfig selects.
    Context {
        name: String,
        /// The whole kubeconfig.
        kubeconfig: Box<Kubeconfig>,
    },
    /// The cluster in which this pod runs.
    Pod,
    /// An embedded store: a Kubernetes API inside bowline, with its objects in one file.
    Embedded {
        /// The file of the store.
        file: PathBuf,
    },
    /// A repository: a Kubernetes API inside bowline, with its objects in the files of a git work tree.
    Repository {
        /// The directory in the work tree that the user named with `--repo`.
        directory: PathBuf,
    },
}

impl Target {
    /// Returns whether the target is a cluster, and not an embedded store or a repository.
    pub fn is_cluster(&self) -> bool {
        matches!(self, Self::Context { .. } | Self::Pod)
    }

    /// Returns whether the target can store objects of an API group. A repository stores only the groups of bowline.
    pub fn stores(&self, group: &str) -> bool {
        !matches!(self, Self::Repository { .. }) || labels::GROUPS.contains(&group)
    }

    /// Returns whether the target records for each field which manager owns it. A repository does not, because only
    /// git changes its objects.
    pub fn has_field_managers(&self) -> bool {
        !matches!(self, Self::Repository { .. })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Context { name, .. } => write!(f, "context {name}"),
            Target::Pod => write!(f, "the cluster of this pod"),
            Target::Embedded { file } => write!(f, "embedded store {}", file.display()),
            Target::Repository { directory } => write!(f, "repository {}", directory.display()),
        }
    }
}

/// A client for a target, with the user's settings for the target.
#[derive(Clone)]
pub struct Connection {
    /// The client. Its read-only guard checks every request.
    pub client: kube::Client,
    pub target: Target,
    /// The namespace that commands use by default.
    pub namespace: String,
    /// The reason why the read-only guard of the client refuses writes. None if it allows writes.
    pub readonly: Option<String>,
    /// The component that commands use by default; None if the user configured none.
    pub component: Option<String>,
    /// The git work tree of the target; None if the target is not a repository.
    pub repository: Option<Repository>,
    bars: WriteGuard,
    /// A client that sends writes even on a protected context, only for plans that the user has confirmed. None if
    /// the context is not protected.
    unbarred: Option<kube::Client>,
}

impl Connection {
    /// Creates a connection to `target` from an existing client, without a read-only guard.
    pub fn of(client: kube::Client, target: Target, namespace: &str) -> Self {
        Self {
            client,
            target,
            namespace: namespace.to_owned(),
            readonly: None,
            component: None,
            repository: None,
            bars: WriteGuard::fixed(None),
            unbarred: None,
        }
    }

    /// Returns the git work tree; None if the target is not a repository.
    pub fn work_tree(&self) -> Option<&WorkTree> {
        let repository = self.repository.as_ref();
        repository.map(|repository| repository.tree.work())
    }

    /// Checks that the target has the kinds. Fails if a cluster does not have one of them. Also fails if ReleasePin
    /// is one of them and the target is a repository without bowline objects. An embedded store has all kinds.
    pub async fn require(&self, kinds: &[ApiResource]) -> Result<(), Error> {
        match &self.target {
            Target::Context { .. } | Target::Pod => {
                kinds::require(&self.client, kinds, &self.target).await
            }
            Target::Repository { directory } => {
                let pins = kinds::kind::<crate::api::ReleasePin>();
                let repository = self.repository.as_ref().filter(|_| kinds.contains(&pins));
                match repository.is_some_and(|repository| repository.tree.is_plain()) {
                    true => Err(Error::NoObjects {
                        directory: directory.clone(),
                    }),
                    false => Ok(()),
                }
            }
            Target::Embedded { .. } => Ok(()),
        }
    }

    /// Returns whether the context is protected, so that bowline sends only reads until the user allows writes.
    pub fn is_protected(&self) -> bool {
        self.bars.is_protected()
    }

    /// Returns the name of the context if it is protected, otherwise None.
    pub fn protected_context(&self) -> Option<&str> {
        match &self.target {
            Target::Context { name, .. } if self.is_protected() => Some(name),
            _ => None,
        }
    }

    /// Allows writes on a protected context for the duration `lasting`. If the context is not protected, changes
    /// nothing and returns false.
    pub fn arm(&self, lasting: Duration) -> bool {
        self.bars.arm(lasting)
    }

    /// Returns a connection for a plan that the user has confirmed by typing. It also sends writes on a protected
    /// context, but not if bowline is read-only.
    pub fn for_confirmed_plan(&self) -> Self {
        match &self.unbarred {
            None => self.clone(),
            Some(client) => Self {
                client: client.clone(),
                readonly: None,
                bars: WriteGuard::default(),
                unbarred: None,
                ..self.clone()
            },
        }
    }
}

/// A context of the kubeconfig, with bowline's settings for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    /// The name of the context's cluster in the kubeconfig.
    pub cluster: String,
    /// The default namespace of the context.
    pub namespace: String,
    /// The name of the context's user in the kubeconfig.
    pub user: String,
    /// Whether bowline is read-only on the context, because of `--readonly` or the user's configuration.
    pub readonly: bool,
    /// Whether the user's configuration protects the context, so that the user must allow writes.
    pub protected: bool,
}

/// Returns the target that the flags select, or else the current context, or else the cluster of this pod, or else
/// the default embedded store.
pub fn choose(options: &Options, environment: &Environment) -> Result<Target, Error> {
    if let Some(store) = &options.embedded {
        return Ok(Target::Embedded {
            file: store_file(store, environment)?,
        });
    }
    if let Some(directory) = &options.repo {
        return Ok(Target::Repository {
            directory: directory.clone(),
        });
    }
    let kubeconfig = read_kubeconfig(options, environment)?;
    if let Some(name) = &options.context {
        if !kubeconfig
            .contexts
            .iter()
            .any(|context| context.name == *name)
        {
            return Err(Error::NoSuchContext {
                name: name.clone(),
                known: kubeconfig
                    .contexts
                    .into_iter()
                    .map(|context| context.name)
                    .collect(),
            });
        }
        return Ok(Target::Context {
            name: name.clone(),
            kubeconfig: Box::new(kubeconfig),
        });
    }
    match &kubeconfig.current_context {
        Some(name) if !name.is_empty() => Ok(Target::Context {
            name: name.clone(),
            kubeconfig: Box::new(kubeconfig),
        }),
        // A kubeconfig without a current context is an error, because a user who has clusters does not expect an
        // embedded store.
        _ if !kubeconfig.contexts.is_empty() || options.kubeconfig.is_some() => {
            Err(Error::NoCurrentContext)
        }
        _ if environment.in_pod => Ok(Target::Pod),
        _ => Ok(Target::Embedded {
            file: store_file(&StoreFile::Default, environment)?,
        }),
    }
}

/// Returns all contexts in the kubeconfig; empty if the kubeconfig cannot be read.
pub fn contexts(options: &Options, environment: &Environment) -> Vec<Known> {
    let contexts = read_kubeconfig(options, environment).map(|kubeconfig| kubeconfig.contexts);
    // An invalid configuration is ignored here, because `connect` reports it.
    let config = Config::read(environment.config_dir.as_deref()).unwrap_or_default();
    let known = contexts.unwrap_or_default().into_iter().map(|named| {
        let context = named.context.unwrap_or_default();
        Known {
            readonly: options.readonly || config.is_readonly(&named.name),
            protected: config.is_protected(&named.name),
            name: named.name,
            cluster: context.cluster,
            namespace: context.namespace.unwrap_or_else(|| "default".to_owned()),
            user: context.user.unwrap_or_default(),
        }
    });
    known.collect()
}

/// Returns the theme and the keymap in the user's configuration file. Both are None if the file cannot be read.
pub fn looks(environment: &Environment) -> Looks {
    let config = Config::read(environment.config_dir.as_deref());
    config.unwrap_or_default().looks()
}

/// Returns an error for a name that is not valid for a namespace. Such a name could select other objects, because it
/// becomes part of the path of requests.
fn check_namespace(namespace: &str) -> Result<(), Error> {
    match names::is_namespace(namespace) {
        true => Ok(()),
        false => Err(Error::Namespace(namespace.to_owned())),
    }
}

fn store_file(store: &StoreFile, environment: &Environment) -> Result<PathBuf, Error> {
    match store {
        StoreFile::At(file) => Ok(file.clone()),
        StoreFile::Default => environment
            .data_dir
            .as_ref()
            .map(|directory| directory.join("bowline.db"))
            .ok_or(Error::NoDataDirectory),
    }
}

/// Reads the kubeconfig as kubectl does. The file of `--kubeconfig` must exist, but the files of `KUBECONFIG` may be
/// missing. If no file exists, the kubeconfig is empty.
fn read_kubeconfig(options: &Options, environment: &Environment) -> Result<Kubeconfig, Error> {
    let read = |file: &Path| {
        Kubeconfig::read_from(file).map_err(|source| Error::Kubeconfig {
            file: file.to_owned(),
            source: Box::new(source),
        })
    };
    if let Some(file) = &options.kubeconfig {
        return read(file);
    }
    let mut merged = Kubeconfig::default();
    for file in listed_kubeconfigs(environment)
        .iter()
        .filter(|file| file.exists())
    {
        merged = merged
            .merge(read(file)?)
            .map_err(|source| Error::Kubeconfig {
                file: file.clone(),
                source: Box::new(source),
            })?;
    }
    Ok(merged)
}

/// Returns the paths of the files in `KUBECONFIG`, or else of the default kubeconfig. These files may be missing.
fn listed_kubeconfigs(environment: &Environment) -> Vec<PathBuf> {
    match &environment.kubeconfig {
        Some(list) if !list.is_empty() => std::env::split_paths(list)
            .filter(|file| !file.as_os_str().is_empty())
            .collect(),
        _ => environment
            .home
            .iter()
            .map(|home| home.join(".kube").join("config"))
            .collect(),
    }
}

/// Connects to the target that the options and the environment select.
///
/// If [`Options::kinds`] is not empty, checks that a cluster has these kinds. If it is empty, no request is sent, so
/// the caller's first request fails if the cluster is down.
pub async fn connect(options: &Options, environment: &Environment) -> Result<Connection, Error> {
    if let Some(namespace) = &options.namespace {
        check_namespace(namespace)?;
    }
    let target = choose(options, environment)?;
    let deadlines = deadlines(options);
    let config = Config::read(environment.config_dir.as_deref())?;
    let context = match &target {
        Target::Context { name, .. } => Some(name.as_str()),
        Target::Pod | Target::Embedded { .. } | Target::Repository { .. } => None,
    };
    let mut repository = None;
    let configured = context.filter(|name| config.is_readonly(name));
    let configured = configured.map(|name| format!("the configuration of context {name} says so"));
    let readonly = options.readonly.then(|| "--readonly was given".to_owned());
    let protected = context.filter(|name| config.is_protected(name));
    let bars = match (readonly.or(configured), protected) {
        // `--readonly` and `readonly = true` apply until bowline ends, so the user cannot allow writes later.
        (Some(why), _) => WriteGuard::fixed(Some(why)),
        (None, Some(name)) => WriteGuard::protected(format!("context {name} is protected")),
        (None, None) => WriteGuard::default(),
    };
    let component = config
        .component(environment.working_dir.as_deref(), context)
        .map(str::to_owned);
    let (client, unbarred, namespace) = match &target {
        Target::Repository { directory } => {
            let (served, opened) =
                repository::open(directory, options, environment, &config).await?;
            let namespace = options.namespace.clone();
            let namespace = namespace.unwrap_or_else(|| opened.tree.namespace());
            repository = Some(opened);
            (
                guarded(served, &namespace, bars.clone(), deadlines),
                None,
                namespace,
            )
        }
        Target::Embedded { file } => {
            let store = match options.readonly {
                true => read_store(file, options, environment).await?,
                false if options.needs_store && !file.exists() => {
                    return Err(no_store(file, OpenError::Absent(file.clone()), false));
                }
                false => open_store(file, options, environment).await?,
            };
            let namespace = options
                .namespace
                .clone()
                .unwrap_or_else(|| "default".to_owned());
            let client = guarded(store, &namespace, bars.clone(), deadlines);
            (client, None, namespace)
        }
        Target::Context { name, kubeconfig } => {
            let chosen = KubeConfigOptions {
                context: Some(name.clone()),
                ..KubeConfigOptions::default()
            };
            let config = kube::Config::from_custom_kubeconfig((**kubeconfig).clone(), &chosen)
                .await
                .map_err(|source| match source {
                    KubeconfigError::ParseClusterUrl(_) => Error::Setting {
                        context: name.clone(),
                        wrong: BadSetting::Server(settings::server(kubeconfig, name)),
                    },
                    source => Error::Context {
                        name: name.clone(),
                        source: Box::new(source),
                    },
                })?;
            cluster(config, name, options, environment, &bars).await?
        }
        Target::Pod => {
            let config =
                kube::Config::incluster().map_err(|source| Error::Pod(Box::new(source)))?;
            cluster(config, "in this pod", options, environment, &bars).await?
        }
    };
    check_namespace(&namespace)?;
    let connection = Connection {
        client,
        target,
        namespace,
        readonly: bars.why().map(str::to_owned),
        component,
        repository,
        bars,
        unbarred,
    };
    connection.require(&options.kinds).await?;
    Ok(connection)
}

/// Opens the embedded store that the options name, or else the default store.
///
/// This is for callers that need the store itself and not a client, such as `bowline serve`.
pub async fn embedded(
    options: &Options,
    environment: &Environment,
) -> Result<(Embedded, PathBuf), Error> {
    let file = store_file(
        options.embedded.as_ref().unwrap_or(&StoreFile::Default),
        environment,
    )?;
    let store = open_store(&file, options, environment).await?;
    Ok((store, file))
}

async fn open_store(
    file: &Path,
    options: &Options,
    environment: &Environment,
) -> Result<Embedded, Error> {
    // Only bowline's own data directory is created here. A missing directory that the user named is an error.
    if let Some(directory) = &environment.data_dir
        && file.starts_with(directory)
    {
        make_private(directory).map_err(|source| Error::DataDirectory {
            directory: directory.clone(),
            source,
        })?;
    }
    let user = options.impersonate.as_deref().unwrap_or(&environment.user);
    let opened = Embedded::open(file, user, crate::api::store_setup()).await;
    opened.map_err(|source| no_store(file, source, std::fs::File::open(file).is_ok()))
}

/// Opens an existing embedded store read-only. This never changes the files of the store.
async fn read_store(
    file: &Path,
    options: &Options,
    environment: &Environment,
) -> Result<Embedded, Error> {
    let user = options.impersonate.as_deref().unwrap_or(&environment.user);
    let opened = Embedded::open_readonly(file, user).await;
    opened.map_err(|source| no_store(file, source, false))
}

fn no_store(file: &Path, source: OpenError, readonly_helps: bool) -> Error {
    Error::Store {
        file: file.to_owned(),
        readonly_helps,
        source: Box::new(source),
    }
}

fn make_private(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn deadlines(options: &Options) -> Deadlines {
    options
        .request_timeout
        .map_or_else(Deadlines::default, |timeout| Deadlines {
            answer: timeout,
            body: timeout,
        })
}

/// The longest time that a credential plugin may run. It is long enough for a login that the user has to confirm on a
/// phone.
const PLUGIN_DEADLINE: Duration = Duration::from_secs(60);

async fn cluster(
    mut config: kube::Config,
    name: &str,
    options: &Options,
    environment: &Environment,
    bars: &WriteGuard,
) -> Result<(kube::Client, Option<kube::Client>, String), Error> {
    let deadlines = deadlines(options);
    // The retry policy of the library is off, because it would also repeat writes; the module `retry` repeats
    // only reads.
    config.default_retry = false;
    config.connect_timeout = Some(deadlines.answer);
    if let Some(user) = &options.impersonate {
        config.auth_info.impersonate = Some(user.clone());
    }
    if let Some(namespace) = &options.namespace {
        config.default_namespace = namespace.clone();
    } else if config.default_namespace.is_empty() {
        // An empty namespace in a context means the namespace `default`, as in kubectl.
        config.default_namespace = "default".to_owned();
    }
    settings::check(&mut config).map_err(|wrong| Error::Setting {
        context: name.to_owned(),
        wrong,
    })?;
    if let Some(exec) = &mut config.auth_info.exec {
        plugin::detach(exec, environment.program.as_deref(), PLUGIN_DEADLINE).map_err(
            |command| Error::PluginWantsTerminal {
                context: name.to_owned(),
                command,
            },
        )?;
    }
    let server = settings::shown(&config.cluster_url.to_string());
    let server = server.trim_end_matches('/').to_owned();
    // `try_from` runs the credential plugin and blocks until the plugin ends.
    let built = tokio::task::spawn_blocking(move || kube::Client::try_from(config));
    let slack = Duration::from_secs(5);
    let backend = tokio::time::timeout(PLUGIN_DEADLINE + slack, built)
        .await
        .map_err(|_elapsed| Error::PluginTooSlow {
            context: name.to_owned(),
            after: PLUGIN_DEADLINE,
        })?
        .map_err(|source| Error::Interrupted(source.to_string()))?
        .map_err(|error| Error::Client {
            context: name.to_owned(),
            error: Box::new(error),
        })?;
    let namespace = backend.default_namespace().to_owned();
    let valid_until = *backend.valid_until();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (backend, server) = (backend.clone(), server.clone());
        async move {
            let asked = Asked::of(&server, &request);
            let answer = backend.send(request).await;
            let answer = answer.map_err(|error| error::naming(&server, error))?;
            let answer = asked.check(answer);
            answer.map_err(|error| kube::Error::Service(Box::new(error)))
        }
    });
    let client = |bars| {
        let client = guarded(service.clone(), &namespace, bars, deadlines);
        client.with_valid_until(valid_until)
    };
    let unbarred = bars.is_protected().then(|| client(WriteGuard::default()));
    Ok((client(bars.clone()), unbarred, namespace))
}

/// Adds the layers that every client has to a backend: the read-only guard, the deadlines, the retry of reads.
pub fn guard<S, B>(
    backend: S,
    namespace: &str,
    readonly: Option<String>,
    deadlines: Deadlines,
) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    guarded(backend, namespace, WriteGuard::fixed(readonly), deadlines)
}

/// Does the same as [`guard`], with a read-only guard that the caller has created.
fn guarded<S, B>(
    backend: S,
    namespace: &str,
    bars: WriteGuard,
    deadlines: Deadlines,
) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let backend = Retry::new(retry::ReadsOnly::new(), backend.map_err(Into::into));
    let backend = deadline::Deadline {
        deadlines,
        inner: backend,
    };
    let backend = readonly::ReadOnly {
        bars,
        inner: backend,
    };
    kube::Client::new(backend, namespace)
}
