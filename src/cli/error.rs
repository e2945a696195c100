//! Exit codes, and errors as people read them: `error:` what happened, `hint:` what to do.

use std::fmt;
use std::process::ExitCode;

use crate::connect::{self, Failure};
use crate::controllers::beside::BesideError;
use crate::text;

/// What the exit code of the program says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It was done.
    Done = 0,
    /// It failed.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A dry run found that something would change.
    Changes = 3,
    /// Somebody else was first, or what was read is stale.
    Conflict = 4,
    /// A rule refuses it: a hold, a path, a bad release.
    Refused = 5,
    /// The user may not do it.
    NotAllowed = 6,
    /// The target does not answer.
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
            Failure::Other => Exit::Failed,
        }
    }
}

/// The end of a command that did not do what it was told.
#[derive(Debug)]
pub struct Error {
    /// The exit code.
    pub exit: Exit,
    /// What happened.
    pub message: String,
    /// What the user can do.
    pub hint: Option<String>,
    output_closed: bool,
}

impl Error {
    /// Makes an error without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Error {
        Error {
            exit,
            message: message.into(),
            hint: None,
            output_closed: false,
        }
    }

    /// Says whether the reader of our output went away, which is no failure of ours.
    pub fn is_broken_pipe(&self) -> bool {
        self.output_closed
    }

    /// Adds what the user can do.
    pub fn with_hint(self, hint: impl Into<String>) -> Error {
        Error {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", text::clean(&self.message))?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", text::clean(hint))?;
        }
        Ok(())
    }
}

impl From<connect::Error> for Error {
    fn from(error: connect::Error) -> Error {
        let (exit, hint) = (error.failure().into(), error.hint());
        Error {
            hint,
            ..Error::new(exit, error.to_string())
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
        let hint = match exit {
            Exit::Unreachable => Some("does kubectl cluster-info reach it?".to_owned()),
            _ => None,
        };
        Error {
            hint,
            ..Error::new(exit, connect::explain(error))
        }
    }
}

impl From<BesideError> for Error {
    fn from(error: BesideError) -> Error {
        match error {
            BesideError::Connect(error) => error.into(),
            BesideError::Lock(error) => error.into(),
            error @ BesideError::Watch(_) => Error::new(Exit::Failed, error.to_string()),
            error @ BesideError::NotObserved => Error::new(Exit::Failed, error.to_string())
                .with_hint("it was done; BOWLINE_LOG=info shows what the controllers do"),
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

/// The failures of a command that tries everything that it was told.
#[derive(Debug, Default)]
pub struct Failures(Option<Exit>);

impl Failures {
    /// Says an error now and remembers how the program has to end.
    pub fn add(&mut self, error: Error, say: &mut dyn FnMut(String)) {
        self.0 = match self.0 {
            Some(exit) if exit != error.exit => Some(Exit::Failed),
            _ => Some(error.exit),
        };
        say(error.to_string());
    }

    /// Says whether nothing failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns how the program ends: as all failures say, or as failed where they differ.
    pub fn exit(&self) -> Exit {
        self.0.unwrap_or(Exit::Done)
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
}
