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
    let message = format!("{environment} is production, and nobody can be asked");
    Error::new(Exit::Refused, message).with_hint("add --yes")
}

/// Shows what would be done and wants a word typed.
pub fn ask(shown: &str, wanted: &str) -> Result<(), Error> {
    let mut err = std::io::stderr();
    let _ = write!(err, "{}Type {wanted} to do it: ", text::clean(shown));
    let _ = err.flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() == wanted {
        true => Ok(()),
        false => Err(Error::new(Exit::Refused, "nothing was done")),
    }
}
