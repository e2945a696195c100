//! `bowline mark`: marks a release or a revision of a workload bad, or good again.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::actions::Changes;
use super::connect::{self, Address, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::{GitFlags, no_git};
use super::output::{self, Format};
use super::session::{Server, live, not_applied, not_planned, refused};
use super::subject::named;
use super::{Outcome, commits, confirm};
use crate::api::openchoreo::release::Verdict;
use crate::engine::subject::command as subject;
use crate::subjects::release_pin::actions::mark::Mark;
use crate::subjects::release_pin::marking::{MarkError, Marked};
use crate::subjects::service::{self, Command, Confirmed, PlannedCommand, Service};
use crate::text;

/// The arguments of `mark`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Mark a release or a revision bad: bowline refuses to promote it or to roll back to it
    Bad(Arguments),
    /// Mark a release or a revision good again
    Good(Arguments),
}

/// The arguments of both verbs.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The name of the release, or a workload with its kind (deploy/web)
    release: String,
    /// The revision of the workload
    #[arg(long, value_name = "N")]
    revision: Option<i64>,
    /// The reason for the mark; required for a bad mark, and for a good mark that replaces a bad one
    #[arg(long, visible_alias = "note", value_name = "TEXT")]
    reason: Option<String>,
    /// Change nothing; exit with 3 if something would change
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

impl Arguments {
    /// Returns the flags of the mark of a revision, which starts no rollout to wait for.
    fn changes(&self) -> Changes {
        Changes {
            reason: self.reason.clone(),
            dry_run: self.dry_run,
            yes: self.yes,
            wait: false,
            timeout: Duration::ZERO,
            output: self.output,
            git: GitFlags::default(),
        }
    }

    /// Returns the text above the question for confirmation.
    fn question(&self, verdict: Verdict) -> String {
        let reason = self.reason.iter().map(|reason| format!(" ({reason})"));
        let (word, reason) = (verdict.word(), reason.collect::<String>());
        format!("Marks {} {word}{reason}.\n", self.release)
    }

    /// Returns the result of the mark as text in the output format.
    fn print(&self, verdict: Verdict, reason: Option<&str>, result: &str) -> String {
        let (release, word) = (text::line(&self.release), verdict.word());
        let value = json!({
            "release": self.release, "mark": word, "reason": reason, "result": result,
        });
        match self.output {
            Format::Json => output::json(&value),
            Format::Yaml => output::yaml(&value),
            Format::Name => output::name_line("release.openchoreo.dev", &self.release),
            Format::Table | Format::Wide if result == UNCHANGED => {
                format!("{release} is already marked {word}\n")
            }
            Format::Table | Format::Wide if result == PLANNED => {
                format!("{release} would be marked {word}\n")
            }
            Format::Table | Format::Wide => format!("{release} is marked {word}\n"),
        }
    }
}

/// The result in the output if bowline has written the mark.
const DONE: &str = "done";
/// The result in the output if the release or revision already has the mark.
const UNCHANGED: &str = "unchanged";
/// The result in the output of a dry run that would write the mark.
const PLANNED: &str = "planned";

/// Plans a mark, asks for confirmation, and marks the release.
pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let (arguments, verdict) = match verb {
        Verb::Bad(arguments) => (arguments, Verdict::Bad),
        Verb::Good(arguments) => (arguments, Verdict::Good),
    };
    let release = &arguments.release;
    if let Some(named) = named(release) {
        let Some(revision) = arguments.revision else {
            let error = Error::new(Exit::Usage, format!("the revision of {release} is missing"));
            return Err(error.with_hint("add --revision N"));
        };
        let verb = |_| Ok(subject::Verb::Mark { revision, verdict });
        let changes = arguments.changes();
        return named.act(verb, &changes, options, environment, say).await;
    }
    if arguments.revision.is_some() {
        let why = "--revision needs a workload with its kind, such as deploy/web";
        return Err(Error::new(Exit::Usage, why));
    }
    let command = Command::Mark(Mark {
        release: release.clone(),
        verdict,
    });
    let connection = connect::connect(options, environment).await?;
    commits::begin(
        &connection,
        options,
        command.before_plan(),
        arguments.dry_run,
        say,
    )
    .await?;
    let server = Server::ask(&connection, say).await?;
    let service = Service {
        connection: &connection,
        feed: &live(&connection, options, command.reads()).await?,
        git: &no_git(),
    };
    let asked = server.asked(&connection, arguments.reason.clone());
    let address = Address::of(&connection, options, environment);
    let planned = service.plan(&command, &asked).await;
    let planned = planned.map_err(|error| not_planned(error, &address))?;
    // On a terminal, the user can type the missing reason at the question. Otherwise the mark is refused.
    let asks = confirm::asks(arguments.yes) && !arguments.dry_run;
    if let Some(lacks) = planned.lacks_reason().filter(|_| !asks) {
        return Err(refused(vec![lacks], &address));
    }
    if let PlannedCommand::Mark(marking) = &planned {
        marking.warnings.iter().cloned().for_each(&mut *say);
    }
    if planned.is_idle() {
        let exit = match arguments.dry_run {
            true => Exit::Done,
            false => commits::push_again(&connection, say).await,
        };
        let reason = arguments.reason.as_deref();
        let text = arguments.print(verdict, reason, UNCHANGED);
        return Ok(Outcome::ending(text, exit));
    }
    if arguments.dry_run {
        let text = arguments.print(verdict, arguments.reason.as_deref(), PLANNED);
        return Ok(Outcome::changes(text));
    }
    let files = service.files(&planned).await?.map(Arc::new);
    let protected = connection.protected_context();
    let confirmation = planned.confirmation(&service.feed.world(), protected);
    let question = arguments.question(verdict);
    let accepted = confirm::confirm(confirmation, arguments.yes, &question)?;
    let typed = accepted.reason.clone();
    let mut confirmed = Confirmed::new(Box::new(planned), files, accepted);
    let (clock, never) = (server.clock(), AtomicBool::new(false));
    let applied = service.apply(&mut confirmed, &server.user, &clock, &never);
    let applied = applied.await.map_err(|error| not_applied(error, &address));
    let exit = match applied? {
        service::Outcome::Committed(committed) => commits::told(&committed, say),
        service::Outcome::Marked(marked) => {
            if let Marked::Unrecorded(why) = marked.map_err(not_marked)? {
                say(format!(
                    "warning: the next change of {release} writes the audit entry of this one: {why}"
                ));
            }
            Exit::Done
        }
        service::Outcome::Changed { .. } | service::Outcome::Collected { .. } => {
            unreachable!("BUG: a mark changed or collected something")
        }
    };
    let reason = typed.as_deref().or(arguments.reason.as_deref());
    let text = arguments.print(verdict, reason, DONE);
    Ok(Outcome::ending(text, exit).made())
}

fn not_marked(error: MarkError) -> Error {
    match error {
        MarkError::Target(error) => error.into(),
        error => Error::new(Exit::Conflict, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_result_says_that_the_release_is_marked() {
        let arguments = Arguments {
            release: "cart-v1".to_owned(),
            revision: None,
            reason: Some("leaks".to_owned()),
            dry_run: false,
            yes: false,
            output: Format::Table,
        };
        let bad = Verdict::Bad;
        assert_eq!(arguments.question(bad), "Marks cart-v1 bad (leaks).\n");
        for (result, says) in [
            (PLANNED, "cart-v1 would be marked bad\n"),
            (DONE, "cart-v1 is marked bad\n"),
            (UNCHANGED, "cart-v1 is already marked bad\n"),
        ] {
            assert_eq!(arguments.print(bad, Some("leaks"), result), says);
        }
    }
}
