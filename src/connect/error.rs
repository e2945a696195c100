//! What can go wrong on the way to a target, and of which kind it is.

use std::path::PathBuf;
use std::time::Duration;

use kube::client::AuthError;
use kube::config::{InClusterError, KubeconfigError};
use kube::core::{ApiResource, Status};

use super::DeadlineExceeded;
use super::config::NoConfig;
use super::{Target, kinds};
use crate::embedded::OpenError;
use crate::embedded::tree::TreeError;
use crate::text::quoted;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--context` names nothing.
    #[error("the kubeconfig has no context {name}")]
    NoSuchContext {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The user's configuration cannot be used.
    #[error(transparent)]
    Config(#[from] NoConfig),
    /// There are contexts and none is current.
    #[error("the kubeconfig has no current context")]
    NoCurrentContext,
    /// A data plane is to be the embedded store, and there is none.
    #[error("the DataPlane is embedded, and the control plane is a cluster")]
    NoEmbeddedPlane,
    /// The kubeconfig of the data planes is missing.
    #[error("kubeconfig {} does not exist; it must have the context {name}", file.display())]
    NoPlaneKubeconfig {
        /// The context that a DataPlane names.
        name: String,
        /// The file that was looked for.
        file: PathBuf,
    },
    /// A kubeconfig cannot be read.
    #[error("kubeconfig {}: {source}", file.display())]
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// A context refers to something that is not there.
    #[error("context {name}: {source}")]
    Context {
        /// The context.
        name: String,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// The pod's service account cannot be used.
    #[error("the service account of this pod: {0}")]
    Pod(#[source] Box<InClusterError>),
    /// A credential plugin works only with a terminal.
    #[error(
        "context {context}: the credential plugin {command} needs the terminal (interactiveMode: Always)"
    )]
    PluginWantsTerminal {
        /// The context.
        context: String,
        /// The plugin's command.
        command: String,
    },
    /// A credential plugin does not come to an end.
    #[error("context {context}: the credential plugin took longer than {after:?}")]
    PluginTooSlow {
        /// The context.
        context: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// Credentials or certificates are unusable.
    #[error("context {context}: {}", explain(error))]
    Client {
        /// The context.
        context: String,
        /// What is wrong; not a `source`, for its own words can hold credentials.
        error: Box<kube::Error>,
    },
    /// The work was given up while the program ends.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// The machine does not say where data belongs.
    #[error("this user has no data directory")]
    NoDataDirectory,
    /// The data directory cannot be made.
    #[error("data directory {}: {source}", directory.display())]
    DataDirectory {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The embedded store does not open.
    #[error("embedded store: {source}")]
    Store {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: Box<OpenError>,
    },
    /// The work tree cannot be served.
    #[error("repository {}: {source}", directory.display())]
    Repository {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        source: Box<TreeError>,
    },
    /// The cluster of a work tree does not return the status of its ReleasePins.
    #[error("context {context}, the cluster of the repository: {}", explain(error))]
    Beside {
        /// The context.
        context: String,
        /// What it said.
        error: Box<kube::Error>,
    },
    /// A cluster does not have kinds that the command needs.
    #[error(
        "{target} does not have the kinds {kinds}: bowline is not installed there, or only in part; nothing is wrong with the cluster"
    )]
    KindsAbsent {
        /// The target.
        target: String,
        /// The kinds, by group and version.
        kinds: String,
        /// The flag that chooses the target; empty where no flag does.
        flag: String,
    },
    /// A repository has no object of bowline.
    #[error(
        "{} has no objects of bowline: no file names openchoreo.dev, core.choreo.dev or bowline.dev; nothing is wrong with the repository", directory.display()
    )]
    NoObjects {
        /// The directory.
        directory: PathBuf,
    },
    /// A cluster does not answer.
    #[error("{}", unanswered(target, error))]
    Unanswered {
        /// The target.
        target: String,
        /// The error of the request.
        error: Box<kube::Error>,
    },
}

/// No connection to a server.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach {server}: {why}")]
pub(super) struct Unreachable {
    server: String,
    why: String,
}

/// Names the server in an error that means that there is no connection to it. The library's own error names
/// only its layers: `client error (Connect): tcp connect error: ...`.
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

/// Says that a target does not answer; an error that names its server says so itself.
fn unanswered(target: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Service(source) if source.is::<Unreachable>() => source.to_string(),
        error => format!("{target} does not answer: {}", explain(error)),
    }
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command makes no sense for this target.
    Usage,
    /// Another writer was first, or the data is stale.
    Conflict,
    /// The server or the guard does not let this user do it.
    NotAllowed,
    /// No answer, or not in time.
    Unreachable,
    /// The server does not have a kind that the command needs.
    NotInstalled,
    /// Everything else.
    Other,
}

impl Error {
    /// Makes the error of a target that does not have some kinds.
    pub fn absent(target: &Target, absent: &[ApiResource]) -> Self {
        let flag = match target {
            Target::Context { name, .. } => format!(" --context {}", quoted(name)),
            Target::Pod | Target::Embedded { .. } | Target::Repository { .. } => String::new(),
        };
        Error::KindsAbsent {
            target: target.to_string(),
            kinds: kinds::listed(absent),
            flag,
        }
    }

    /// Says of which kind the error is.
    pub fn failure(&self) -> Failure {
        match self {
            Error::NoSuchContext { .. }
            | Error::NoCurrentContext
            | Error::NoEmbeddedPlane
            | Error::NoPlaneKubeconfig { .. }
            | Error::Config(_)
            | Error::Kubeconfig { .. }
            | Error::Context { .. }
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
                OpenError::Absent(_) | OpenError::IsFolder(_) => Failure::Usage,
                _ => Failure::Other,
            },
            Error::Pod(_) | Error::Interrupted(_) | Error::DataDirectory { .. } => Failure::Other,
        }
    }

    /// Says what the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::NoSuchContext { known, .. } if known.is_empty() => {
                Some("the kubeconfig has no contexts; --embedded needs none".to_owned())
            }
            Error::NoSuchContext { known, .. } => Some(format!("the contexts are: {}", known.join(", "))),
            Error::NoCurrentContext => {
                Some("name one with --context NAME, or use --embedded".to_owned())
            }
            Error::NoEmbeddedPlane => {
                Some("give the DataPlane inCluster: {} or context: {name: NAME}".to_owned())
            }
            Error::NoPlaneKubeconfig { .. } => Some(
                "in a cluster, put a kubeconfig under the key config of the Secret bowline-kubeconfig in namespace bowline-system".to_owned(),
            ),
            Error::PluginWantsTerminal { command, .. } => Some(format!(
                "set interactiveMode: IfAvailable for the plugin, and log in with {command} first"
            )),
            Error::KindsAbsent { flag, .. } => Some(format!(
                "bowline install{flag} installs the kinds; bowline get deployments{flag} lists the existing objects"
            )),
            Error::NoObjects { .. } => Some(
                "bowline release create COMPONENT -f DIR makes the first release of your definitions (docs/gitops.md, \"The first objects\"); or name the directory of the objects with --repo DIR".to_owned(),
            ),
            Error::Unanswered { .. } => Some(
                "check the connection with kubectl cluster-info; --request-timeout waits longer".to_owned(),
            ),
            Error::NoDataDirectory => Some("name the file with --embedded=FILE".to_owned()),
            Error::Client { error, .. } if failure(error) == Failure::NotAllowed => {
                Some("log in again outside bowline, then repeat the command".to_owned())
            }
            _ => None,
        }
    }
}

/// Says of which kind the failure of a request is.
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
        // Credentials are renewed inside the stack and fail as one of its services.
        kube::Error::Service(source) if source.is::<AuthError>() => Failure::NotAllowed,
        kube::Error::Service(_) | kube::Error::HyperError(_) => Failure::Unreachable,
        kube::Error::ReadEvents(_) => Failure::Unreachable,
        _ => Failure::Other,
    }
}

/// Tells whether an answer says that the server does not have the kind, and not that an object is missing.
fn is_kind_absent(status: &Status) -> bool {
    // A group that the server does not know, and a kind that a known group does not have.
    let words = [
        "404 page not found",
        "the server could not find the requested resource",
    ];
    status.code == 404 && words.contains(&status.message.trim())
}

/// Tells whether a request ended because the answer did not come in time.
pub(super) fn is_deadline(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(source) if source.is::<DeadlineExceeded>())
}

/// Tells whether an admission policy or a webhook denied a request. Its author chooses the code: without a
/// reason, a ValidatingAdmissionPolicy answers 422, as for an object that the schema refuses.
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

/// Returns the text of a failed request, without the output of a credential plugin:
/// the library quotes all of it, and it may be a token.
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
        // The library's own word for it ("ServiceError") says nothing to a person.
        (None, kube::Error::Service(source)) => with_causes(source.as_ref()),
        (None, error) => with_causes(error),
    }
}

/// Joins an error and its causes, each said once.
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
