//! Asks for confirmation on the terminal. The module [`crate::engine::confirmation`] decides what the user must type.

use std::io::{BufRead, IsTerminal, Write};

use super::error::{Error, Exit};
use crate::engine::confirmation::{Accepted, Answer, Confirmation, NotConfirmed};
use crate::text;

/// Returns whether bowline asks the user for confirmation: only if stdin is a terminal and the user gave no flag that
/// confirms in advance.
pub fn asks(flag: bool) -> bool {
    !flag && std::io::stdin().is_terminal()
}

/// Confirms a change by the flag, or by asking the user below the text `shown`. Without a terminal and a flag, only a
/// change without a risk is confirmed.
pub fn confirm(confirmation: Confirmation, flag: bool, shown: &str) -> Result<Accepted, Error> {
    let confirmation = confirmation.on_a_line();
    if asks(flag) {
        let typed = ask(&confirmation, shown)?;
        return answered(&confirmation, &typed);
    }
    let answer = match flag {
        true => Answer::Flag,
        false => Answer::Absent,
    };
    let checked = confirmation.check(answer);
    checked.map_err(|error| {
        let hint = match error {
            NotConfirmed::Unasked { .. } => "add --yes",
            _ => "add --reason TEXT",
        };
        Error::new(Exit::Refused, error.to_string()).with_hint(hint)
    })
}

/// Prints the text `shown` and a question, and reads the line that the user types.
fn ask(confirmation: &Confirmation, shown: &str) -> Result<String, Error> {
    let mut err = std::io::stderr();
    let (shown, wanted) = (text::clean(shown), confirmation.wanted());
    let _ = write!(err, "{shown}Type {} to confirm: ", text::line(&wanted));
    let _ = err.flush();
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    Ok(typed)
}

/// Checks the line that the user typed. The text above the question counts as the diff that the user has seen.
fn answered(confirmation: &Confirmation, typed: &str) -> Result<Accepted, Error> {
    let answer = Answer::Given { typed, shown: true };
    confirmation.check(answer).map_err(|error| match error {
        NotConfirmed::Reason { .. } => {
            let words = confirmation.words.join(" ");
            Error::new(Exit::Refused, "nothing was changed: the reason is missing")
                .with_hint(format!("type the reason after {words}"))
                .and_hint("or add --reason TEXT")
        }
        _ => {
            let message = format!(
                "nothing was changed: the answer was not {}",
                confirmation.words.join(" ")
            );
            Error::new(Exit::Refused, message)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::confirmation::Reason;

    #[test]
    fn the_command_line_asks_for_the_confirmation_of_the_engine() {
        let production = || Confirmation::of_production(["production-eu"]);
        let mut set = production();
        set.words.push("3".to_owned());
        set.counts = Some("components");
        let strict = Confirmation {
            reason: Reason::Required,
            ..Confirmation::default()
        };
        let mut protected = Confirmation::default();
        protected.on_protected("prod-eu");
        let ok = |reason: &str| Ok(Some(reason.to_owned()));
        let no = |why: &str| Err(format!("nothing was changed: {why}"));
        for (confirmation, answer, expected) in [
            (Confirmation::default(), "y\n", Ok(None)),
            (Confirmation::default(), "y late\n", ok("late")),
            (Confirmation::default(), "", no("the answer was not y")),
            (production(), " production-eu \r\n", Ok(None)),
            (production(), "production-eu errors up\n", ok("errors up")),
            (production(), "y\n", no("the answer was not production-eu")),
            (set.clone(), "production-eu 3\n", Ok(None)),
            (
                set.clone(),
                "production-eu\n",
                no("the answer was not production-eu 3"),
            ),
            (
                set,
                "bowline status\n",
                no("the answer was not production-eu 3"),
            ),
            (strict.clone(), "y leaks\n", ok("leaks")),
            (strict.clone(), "leaks\n", no("the answer was not y")),
            (strict, "y\n", no("the reason is missing")),
            (protected.clone(), "prod-eu\n", Ok(None)),
            (protected, "y\n", no("the answer was not prod-eu")),
        ] {
            let found = answered(&confirmation.on_a_line(), answer);
            let found = found.map(|accepted| accepted.reason);
            assert_eq!(found.map_err(|error| error.message), expected, "{answer:?}");
        }
    }
}
