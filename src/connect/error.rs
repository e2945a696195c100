//! The errors of connections and requests, their kinds, and the hints for users.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::client::AuthError;
use kube::config::{InClusterError, KubeconfigError};
use kube::core::Status;
use kube_embedded::OpenError;

use super::answer::BadAnswer;
use super::config::ConfigError;
use super::{BadSetting, DeadlineExceeded};
use crate::api::names;
use crate::git::GitError;
use crate::gitops::tree::TreeError;
use crate::text::quoted;

/// The reason why bowline cannot connect to a target.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig does not have the context that the user gave with `--context`.
    #[error("the kubeconfig has no context {name}")]
    NoSuchContext {
        name: String,
        /// The names of all contexts in the kubeconfig.
        known: Vec<String>,
    },
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The kubeconfig has contexts, but none of them is the current context, and the user gave none.
    #[error("the kubeconfig has no current context")]
    NoCurrentContext,
    /// A DataPlane refers to the embedded store of its control plane, but the control plane is not an embedded store.
    #[error("the DataPlane is embedded, and the control plane is a cluster")]
    NoEmbeddedPlane,
    /// The kubeconfig with the contexts of the data planes does not exist.
    #[error("kubeconfig {} does not exist; it must have the context {name}", file.display())]
    NoPlaneKubeconfig {
        /// The name of the context that a DataPlane needs.
        name: String,
        /// The path of the missing kubeconfig.
        file: PathBuf,
    },
    /// A kubeconfig cannot be read.
    #[error("{}", unread_kubeconfig(file, source))]
    Kubeconfig {
        file: PathBuf,
        source: Box<KubeconfigError>,
    },
    /// A context of the kubeconfig names a cluster or user that the kubeconfig does not have.
    #[error("context {name}: {source}")]
    Context {
        name: String,
        source: Box<KubeconfigError>,
    },
    /// A setting of a context in the kubeconfig is invalid.
    #[error("context {context}: {wrong}")]
    Setting {
        context: String,
        /// The invalid setting, and why it is invalid.
        wrong: BadSetting,
    },
    /// bowline runs in a pod, but cannot use the service account of the pod.
    #[error("the service account of this pod: {0}")]
    Pod(#[source] Box<InClusterError>),
    /// A credential plugin needs the terminal, but bowline gives credential plugins no access to it.
    #[error(
        "context {context}: the credential plugin {command} needs the terminal (interactiveMode: Always)"
    )]
    PluginWantsTerminal {
        context: String,
        /// The command of the credential plugin.
        command: String,
    },
    /// A credential plugin did not finish before its deadline.
    #[error("context {context}: the credential plugin took longer than {after:?}")]
    PluginTooSlow {
        context: String,
        /// The longest time that a credential plugin may run.
        after: Duration,
    },
    /// The client library cannot use the credentials or the certificates of a context.
    #[error("context {context}: {}", explain(error))]
    Client {
        context: String,
        /// The error of the client library. It is not a `source`, because its text can contain credentials.
        error: Box<kube::Error>,
    },
    /// The user ended bowline while it was doing this. Contains what bowline was doing.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// The text is not valid as the name of a namespace. Contains the text.
    #[error("{0:?} cannot be a namespace")]
    Namespace(String),
    /// There is no directory for the default embedded store, because the environment names no data directory for the
    /// user.
    #[error("this user has no data directory")]
    NoDataDirectory,
    /// bowline cannot create its data directory.
    #[error("data directory {}: {source}", directory.display())]
    DataDirectory {
        directory: PathBuf,
        source: std::io::Error,
    },
    /// The embedded store cannot be opened.
    #[error("embedded store: {source}")]
    Store {
        file: PathBuf,
        /// Whether the user could open the store with `--readonly`: the file is readable, and the user did not give
        /// this flag.
        readonly_helps: bool,
        source: Box<OpenError>,
    },
    /// The git work tree that the user named cannot be used.
    #[error("repository {}: {source}", directory.display())]
    Repository {
        /// The directory that the user named with `--repo`.
        directory: PathBuf,
        source: Box<TreeError>,
    },
    /// A repository shows the status of ReleasePins from a cluster, but this cluster does not return them.
    #[error(
        "cannot read the cluster of this repository (context {context}): {}",
        explain(error)
    )]
    Beside {
        context: String,
        error: Box<kube::Error>,
    },
    /// A cluster does not have kinds that the command needs.
    #[error(
        "{target} does not have the kinds {kinds}: bowline is not installed there, or only in part; nothing is wrong with the cluster"
    )]
    KindsAbsent {
        /// The cluster, as error messages name it.
        target: String,
        /// The missing kinds, as [`listed`](super::kinds::listed) formats them.
        kinds: String,
        /// The flag that selects the cluster, for a command in the hint; empty if no flag selects it.
        flag: String,
    },
    /// An embedded store does not have kinds that every store has.
    #[error(
        "embedded store {} does not have the kinds {kinds}, which every store has: it is corrupt, or somebody deleted them; restore it from a backup, or move it away (with its -wal and -shm files) to begin with an empty store", file.display()
    )]
    StoreWithoutKinds {
        file: PathBuf,
        /// The missing kinds, as [`listed`](super::kinds::listed) formats them.
        kinds: String,
    },
    /// Neither the files nor the log of a repository contain bowline objects.
    #[error(
        "{} has no objects of bowline: no file mentions openchoreo.dev, core.choreo.dev or bowline.dev; nothing is wrong with the repository", directory.display()
    )]
    NoObjects {
        /// The directory that the user named with `--repo`.
        directory: PathBuf,
    },
    /// A cluster does not answer.
    #[error("{}", unanswered(target, error))]
    Unanswered {
        /// The cluster, as error messages name it.
        target: String,
        error: Box<kube::Error>,
    },
}

/// The connection to a server could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach {server}: {why}")]
pub(super) struct Unreachable {
    server: String,
    why: String,
}

/// Adds the name of the server to a connection error, because the error of the client library does not contain it:
/// `client error (Connect): tcp connect error: ...`.
pub(super) fn naming(server: &str, error: kube::Error) -> kube::Error {
    use hyper_util::client::legacy;
    let source = match &error {
        kube::Error::Service(source) => source.downcast_ref::<legacy::Error>(),
        _ => None,
    };
    let Some(source) = source.filter(|source| source.is_connect()) else {
        return error;
    };
    let mut cause: &dyn std::error::Error = source;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let refused = cause
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
    let why = match refused {
        true => "connection refused".to_owned(),
        false => cause.to_string(),
    };
    kube::Error::Service(Box::new(Unreachable {
        server: server.to_owned(),
        why,
    }))
}

/// Returns the message for a kubeconfig that cannot be read. The message contains the path once; in the message of
/// the client library, it is missing or repeated.
fn unread_kubeconfig(file: &Path, source: &KubeconfigError) -> String {
    match source {
        KubeconfigError::ReadConfig(error, _) => format!("kubeconfig {}: {error}", file.display()),
        error => format!("kubeconfig {}: {error}", file.display()),
    }
}

/// Returns the message for a target that does not answer. If the error already names the server, its text is the
/// message.
fn unanswered(target: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Service(source) if source.is::<Unreachable>() || source.is::<BadAnswer>() => {
            source.to_string()
        }
        error => format!("{target} does not answer: {}", explain(error)),
    }
}

/// The kind of a failure. Callers handle the kinds differently, for example with different exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The flags or the configuration are wrong, or the target does not support the command.
    Usage,
    /// Another writer has changed the object since the caller read it.
    Conflict,
    /// The server or the read-only guard has refused the request.
    NotAllowed,
    /// The target cannot be reached or did not answer in time.
    Unreachable,
    /// The server does not have a kind that the command needs.
    NotInstalled,
    /// All other failures.
    Other,
}

impl Error {
    /// Returns the kind of this failure.
    pub fn failure(&self) -> Failure {
        match self {
            Error::NoSuchContext { .. }
            | Error::NoCurrentContext
            | Error::NoEmbeddedPlane
            | Error::NoPlaneKubeconfig { .. }
            | Error::Config(_)
            | Error::Kubeconfig { .. }
            | Error::Context { .. }
            | Error::Setting { .. }
            | Error::Namespace(_)
            | Error::NoDataDirectory => Failure::Usage,
            Error::PluginWantsTerminal { .. } | Error::PluginTooSlow { .. } => Failure::NotAllowed,
            Error::KindsAbsent { .. } | Error::NoObjects { .. } => Failure::NotInstalled,
            Error::Client { error, .. }
            | Error::Beside { error, .. }
            | Error::Unanswered { error, .. } => failure(error),
            Error::Repository { source, .. } => match **source {
                TreeError::Git(_) | TreeError::Layout { .. } => Failure::Usage,
                _ => Failure::Other,
            },
            Error::Store { source, .. } => match **source {
                OpenError::Absent(_) | OpenError::IsFolder(_) | OpenError::NotAFile(_) => {
                    Failure::Usage
                }
                _ => Failure::Other,
            },
            Error::StoreWithoutKinds { .. }
            | Error::Pod(_)
            | Error::Interrupted(_)
            | Error::DataDirectory { .. } => Failure::Other,
        }
    }

    /// Returns the next steps for the user; empty if there are none.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Error::NoSuchContext { known, .. } if known.is_empty() => steps(&[
                "there is no kubeconfig, or it has no contexts: name one with --kubeconfig FILE",
                "or use the embedded store: --embedded",
            ]),
            Error::NoSuchContext { known, .. } => {
                vec![format!("the contexts are: {}", known.join(", "))]
            }
            Error::NoCurrentContext => steps(&[
                "name a context: --context NAME",
                "or use the embedded store: --embedded",
            ]),
            Error::NoEmbeddedPlane => {
                steps(&["give the DataPlane inCluster: {} or context: {name: NAME}"])
            }
            Error::NoPlaneKubeconfig { .. } => steps(&[
                "in a cluster, put a kubeconfig under the key config of the Secret bowline-kubeconfig in namespace bowline-system",
            ]),
            Error::PluginWantsTerminal { command, .. } => vec![
                "set interactiveMode: IfAvailable for the plugin in the kubeconfig".to_owned(),
                format!("then log in: {command}"),
            ],
            Error::PluginTooSlow { .. } => {
                steps(&["log in again outside bowline, then repeat the command"])
            }
            Error::Setting { wrong, .. } => vec![wrong.hint()],
            Error::KindsAbsent { flag, .. } => vec![
                format!("install the kinds: bowline install{flag}"),
                format!("or look at the workloads that run without them: bowline status -A{flag}"),
            ],
            Error::NoObjects { directory } => vec![
                "if the objects are in another directory, name it: --repo DIR".to_owned(),
                format!(
                    "if there are none yet, write Environments, a DeploymentPipeline and the definitions of a component (docs/gitops.md, \"The first objects\"), and then create the first release: bowline release create COMPONENT --repo {}",
                    quoted(&directory.to_string_lossy())
                ),
            ],
            Error::Repository { source, .. }
                if matches!(**source, TreeError::Git(GitError::NoWorkTree { .. })) =>
            {
                steps(&[
                    "name a directory of a git work tree: --repo DIR",
                    "or make this directory a work tree: git init",
                ])
            }
            Error::Unanswered { .. } => steps(&[
                "check the connection: kubectl cluster-info",
                "or wait longer: --request-timeout 2m",
            ]),
            Error::Namespace(_) => vec![names::NAMESPACE_FORM.to_owned()],
            Error::NoDataDirectory => steps(&["name the file: --embedded=FILE"]),
            Error::Store {
                source,
                readonly_helps,
                ..
            } => steps(store_hints(source, *readonly_helps)),
            Error::Client { error, .. } if failure(error) == Failure::NotAllowed => {
                steps(&["log in again outside bowline, then repeat the command"])
            }
            _ => Vec::new(),
        }
    }
}

fn steps(steps: &[&str]) -> Vec<String> {
    steps.iter().map(|step| (*step).to_owned()).collect()
}

/// Returns the next steps for the user after an embedded store could not be opened; empty if there are none.
fn store_hints(error: &OpenError, readonly_helps: bool) -> &'static [&'static str] {
    const ANOTHER: &str = "or choose another file: --embedded=FILE";
    match error {
        OpenError::Locked { .. } => {
            &["repeat the command when the other process has finished its write"]
        }
        OpenError::Absent(_) => &[
            "create a store: bowline apply -f DIR --embedded=FILE",
            ANOTHER,
        ],
        OpenError::Sqlite { .. } if readonly_helps => &[
            "make the file and its folder writable",
            "or read the file without writing: --readonly",
            ANOTHER,
        ],
        OpenError::Sqlite { .. } => &["make the file and its folder readable", ANOTHER],
        OpenError::IsFolder(_) | OpenError::NotAFile(_) | OpenError::Unfolded { .. } => {
            &["name the file: --embedded=FILE"]
        }
        OpenError::Folder { .. } | OpenError::Network { .. } | OpenError::Foreign(_) => {
            &["choose another file: --embedded=FILE"]
        }
        OpenError::Damaged { .. }
        | OpenError::Newer { .. }
        | OpenError::NoSpace { .. }
        | OpenError::SetUp { .. } => &[],
    }
}

/// Returns the kind of the failure of a request.
pub fn failure(error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => match status.code {
            401 | 403 => Failure::NotAllowed,
            404 if is_kind_absent(status) => Failure::NotInstalled,
            _ if is_denied_by_policy(status) => Failure::NotAllowed,
            409 => Failure::Conflict,
            503 | 504 => Failure::Unreachable,
            _ => Failure::Other,
        },
        kube::Error::Auth(_) => Failure::NotAllowed,
        // The client renews credentials while it sends a request, and reports a failed renewal as a service error.
        kube::Error::Service(source) if source.is::<AuthError>() => Failure::NotAllowed,
        kube::Error::Service(source) if is_of_store(source.as_ref()) => Failure::Other,
        kube::Error::Service(_) | kube::Error::HyperError(_) => Failure::Unreachable,
        kube::Error::ReadEvents(_) => Failure::Unreachable,
        _ => Failure::Other,
    }
}

/// Returns whether the error means that an embedded store failed in the middle of an answer.
fn is_of_store(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut chain = std::iter::successors(Some(error), |error| error.source());
    chain.any(|error| {
        let inner = error.downcast_ref::<std::io::Error>();
        let inner = inner.and_then(std::io::Error::get_ref);
        inner.is_some_and(|inner| inner.is::<kube_embedded::status::Failure>())
    })
}

/// Returns whether the answer 404 means that the server does not have the kind, and not that an object is missing.
fn is_kind_absent(status: &Status) -> bool {
    // The server sends the first text for an unknown API group, and the second for an unknown kind in a known group.
    let words = [
        "404 page not found",
        "the server could not find the requested resource",
    ];
    status.code == 404 && words.contains(&status.message.trim())
}

/// Returns whether the next request would fail for the same reason: the server exceeded a deadline, or is no
/// Kubernetes API server.
pub(super) fn is_lasting(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(source) if source.is::<DeadlineExceeded>() || source.is::<BadAnswer>())
}

/// Returns whether an admission policy or a webhook has denied a request. The message decides, because the status
/// code does not: the author of a policy chooses the code, and its default, 422, is also the code for an object that
/// does not match the schema.
fn is_denied_by_policy(status: &kube::core::Status) -> bool {
    let message = &status.message;
    let has = |begin: &str, end: &str| {
        let at = message.find(begin);
        at.is_some_and(|at| message[at..].contains(end))
    };
    matches!(status.code, 400..500)
        && (has("ValidatingAdmissionPolicy '", " denied request: ")
            || has("admission webhook \"", " denied the request"))
}

/// Returns the message for the user about a failed request. It leaves out the standard output of a credential plugin,
/// which the client library quotes, because the output may contain a token.
pub fn explain(error: &kube::Error) -> String {
    let credentials = match error {
        kube::Error::Auth(error) => Some(error),
        kube::Error::Service(source) => source.downcast_ref::<AuthError>(),
        _ => None,
    };
    match (credentials, error) {
        (Some(AuthError::AuthExecRun { out, .. }), _) => {
            let said = String::from_utf8_lossy(&out.stderr);
            format!(
                "the credential plugin failed ({}): {}",
                out.status,
                said.trim()
            )
        }
        (Some(AuthError::AuthExecParse(_)), _) => {
            "the output of the credential plugin is not an ExecCredential".to_owned()
        }
        (Some(error), _) => with_causes(error),
        (None, kube::Error::Api(status)) if is_kind_absent(status) => {
            "the server does not have this kind".to_owned()
        }
        (None, kube::Error::Api(status)) if !status.message.is_empty() => status.message.clone(),
        // The cause is shown without the text of the client library ("ServiceError"), which does not help the user.
        (None, kube::Error::Service(source)) => with_causes(source.as_ref()),
        (None, error) => with_causes(error),
    }
}

/// Joins the messages of an error and of its causes, and leaves out repeated messages.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !message.contains(&said) {
            message = format!("{message}: {said}");
        }
        cause = next.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_open_names_the_flag_for_another_file() {
        let store = |source: OpenError| Error::Store {
            file: "a.db".into(),
            readonly_helps: false,
            source: Box::new(source),
        };
        let foreign = store(OpenError::Foreign("a.db".into()));
        let says = "embedded store: a.db is not a store of the embedded API";
        assert_eq!(foreign.to_string(), says);
        assert_eq!(foreign.hints(), ["choose another file: --embedded=FILE"]);
        let absent = store(OpenError::Absent("a.db".into())).hints();
        assert!(absent[0].contains("bowline apply -f DIR"));
        let locked = store(OpenError::Locked {
            path: "a.db".into(),
        });
        assert_eq!(
            locked.to_string(),
            "embedded store: a.db is locked: another process is writing to it"
        );
        assert!(locked.hints()[0].contains("repeat the command"));
        let unreadable = OpenError::Sqlite {
            path: "a.db".into(),
            cause: rusqlite::Error::InvalidQuery,
        };
        let hints = store(unreadable).hints();
        assert!(hints.iter().all(|hint| !hint.contains("--readonly")));
    }

    #[tokio::test]
    async fn a_refused_connection_names_the_server() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);
        let client =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new());
        let client: hyper_util::client::legacy::Client<_, String> = client.build_http();
        let error = client.get(server.parse().unwrap()).await.unwrap_err();
        let error = naming(&server, kube::Error::Service(Box::new(error)));
        let says = format!("cannot reach {server}: connection refused");
        assert_eq!(explain(&error), says);
        assert_eq!(failure(&error), Failure::Unreachable);
        let error = Error::Unanswered {
            target: "context c".to_owned(),
            error: Box::new(error),
        };
        assert_eq!(error.to_string(), says);
    }
}
