//! Asks for a confirmation before a change.

use std::io::{BufRead, IsTerminal, Write};

use super::error::{Error, Exit};
use crate::text;

/// Tells whether there is a terminal to ask on.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Makes the error of a change of production that runs without a terminal.
pub fn production_unconfirmed(environment: &str) -> Error {
    no_confirmation(&format!(
        "a change of the production environment {environment}"
    ))
}

/// Makes the error of a command that needs a confirmation and runs without a terminal.
pub fn no_confirmation(what: &str) -> Error {
    let message =
        format!("nothing was changed: {what} needs a confirmation and there is no terminal");
    Error::new(Exit::Refused, message).with_hint("add --yes")
}

/// Shows a plan and asks the user to type a word.
pub fn ask(shown: &str, wanted: &str) -> Result<(), Error> {
    let mut err = std::io::stderr();
    let (shown, word) = (text::clean(shown), text::line(wanted));
    let _ = write!(err, "{shown}Type {word} to confirm: ");
    let _ = err.flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() == wanted {
        true => Ok(()),
        false => Err(Error::new(Exit::Refused, "nothing was changed")),
    }
}
