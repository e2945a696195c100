//! Asks for a confirmation before a change.

use std::io::{BufRead, IsTerminal, Write};

use super::error::{Error, Exit};
use crate::text;

/// Returns whether there is a terminal to ask on.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Returns the error of a change of production that runs without a terminal.
pub fn production_unconfirmed(environment: &str) -> Error {
    no_confirmation(&format!(
        "a change of the production environment {environment}"
    ))
}

/// Returns the error of a command that needs a confirmation and runs without a terminal.
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
    check(&answer, wanted)
}

/// Compares the typed answer with the wanted word.
fn check(answer: &str, wanted: &str) -> Result<(), Error> {
    match answer.trim() == wanted {
        true => Ok(()),
        false => {
            let message = format!("nothing was changed: the answer was not {wanted}");
            Err(Error::new(Exit::Refused, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_answer_than_the_wanted_one_changes_nothing_and_says_why() {
        for (answer, wanted, says) in [
            ("y\n", "y", None),
            (" production-eu \r\n", "production-eu", None),
            ("", "y", Some("nothing was changed: the answer was not y")),
            (
                "bowline status\n",
                "staging 3",
                Some("nothing was changed: the answer was not staging 3"),
            ),
        ] {
            let found = check(answer, wanted).map_err(|error| error.message);
            assert_eq!(found.err().as_deref(), says, "{answer:?}");
        }
    }
}
