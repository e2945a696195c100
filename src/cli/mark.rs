//! `bowline mark`: marks a release bad, or good again.

use clap::{Args, Subcommand};
use serde_json::json;

use super::connect::{self, Address, Environment, Options};
use super::error::{Error, Exit};
use super::output::{self, Format};
use super::session::{Server, live, refused};
use super::{Outcome, commits, confirm};
use crate::api::release::Verdict;
use crate::subjects::release_pin::READ_BY_MOVES;
use crate::subjects::release_pin::actions::mark::{self, Mark};
use crate::subjects::release_pin::marking::{self, MarkError, Marked};
use crate::subjects::release_pin::repository::{self, BeforePlan};
use crate::text;

/// The arguments of `mark`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Mark the release bad: bowline refuses to promote it or to roll back to it
    Bad(Arguments),
    /// Mark the release good again
    Good(Arguments),
}

/// The arguments of both verbs.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The release
    release: String,
    /// The reason for the mark
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
    /// Returns the text above the question.
    fn question(&self, verdict: Verdict) -> String {
        let reason = self.reason.iter().map(|reason| format!(" ({reason})"));
        let (word, reason) = (marking::word(verdict), reason.collect::<String>());
        format!("Marks {} {word}{reason}.\n", self.release)
    }

    /// Prints the result for the release.
    fn print(&self, verdict: Verdict, result: &str) -> String {
        let (release, word) = (text::line(&self.release), marking::word(verdict));
        let value = json!({
            "release": self.release, "mark": word, "reason": self.reason, "result": result,
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

/// The results of a mark; the last one is that of a dry run.
const DONE: &str = "done";
const UNCHANGED: &str = "unchanged";
const PLANNED: &str = "planned";

/// Plans, asks for a confirmation, and marks the release.
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
    let mut connection = connect::connect(options, environment).await?;
    commits::begin(
        &connection,
        options,
        BeforePlan::Fetch,
        arguments.dry_run,
        say,
    )
    .await?;
    let server = Server::ask(&connection, say).await?;
    let plan = {
        let feed = live(&connection, options, &READ_BY_MOVES).await?;
        let command = Mark {
            release: arguments.release.clone(),
            verdict,
        };
        let asked = server.asked(&connection, arguments.reason.clone());
        let planned = mark::plan(&feed.world(), &command, &asked);
        let planned = planned.and_then(|plan| plan.noted().map(|()| plan));
        let address = Address::of(&connection, options, environment);
        planned.map_err(|refusal| refused(vec![refusal], &address))?
    };
    plan.warnings.iter().cloned().for_each(&mut *say);
    let release = &arguments.release;
    if plan.unchanged {
        let commits = commits::of(&connection, options)?;
        let commits = commits.as_ref().filter(|_| !arguments.dry_run);
        let exit = commits::push_again(commits, say).await?;
        return Ok(Outcome::ending(arguments.print(verdict, UNCHANGED), exit));
    }
    if arguments.dry_run {
        return Ok(Outcome::changes(arguments.print(verdict, PLANNED)));
    }
    if !arguments.yes && confirm::can_ask() {
        confirm::ask(&arguments.question(verdict), "y")?;
        connection = connection.for_confirmed_plan();
    }
    let clock = server.clock();
    let shown = arguments.print(verdict, DONE);
    if let Some(commits) = commits::of(&connection, options)? {
        let proposal = repository::marking(&commits.repository.tree, &plan)?;
        let committed = commits.commit(&proposal).await?;
        return Ok(Outcome::ending(shown, commits::told(&committed, say)).made());
    }
    let marked = marking::mark(&connection.client, &plan, &server.user, &clock)
        .await
        .map_err(failed)?;
    if let Marked::Unrecorded(why) = marked {
        say(format!(
            "warning: the next change of {release} writes the audit entry of this one: {why}"
        ));
    }
    Ok(Outcome::done(shown).made())
}

fn failed(error: MarkError) -> Error {
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
            assert_eq!(arguments.print(bad, result), says);
        }
    }
}
