//! Asks a person before something is done.

use std::io::{BufRead, IsTerminal, Write};

use super::error::{Error, Exit};
use crate::text;

/// Tells whether somebody can be asked.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Says that production is not touched unasked.
pub fn nobody_to_ask(environment: &str) -> Error {
    let message =
        format!("{environment} is production, and there is no terminal to ask for confirmation");
    Error::new(Exit::Refused, message).with_hint("add --yes")
}

/// Makes the error of a command that a person has to confirm, and that runs without a terminal.
pub fn nobody_confirms(what: &str) -> Error {
    let message = format!("nothing was done: {what}, and nobody can be asked");
    Error::new(Exit::Refused, message).with_hint("add --yes")
}

/// Shows what would be done and wants a word typed.
pub fn ask(shown: &str, wanted: &str) -> Result<(), Error> {
    let mut err = std::io::stderr();
    let (shown, word) = (text::clean(shown), text::line(wanted));
    let _ = write!(err, "{shown}Type {word} to do it: ");
    let _ = err.flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() == wanted {
        true => Ok(()),
        false => Err(Error::new(Exit::Refused, "nothing was changed")),
    }
}
