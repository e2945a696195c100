//! `bowline mark`: calls a release bad, or good again.

use clap::{Args, Subcommand};

use super::Outcome;
use super::commits;
use super::confirm;
use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::session::{Server, live, refused};
use crate::api::release::Verdict;
use crate::engine::actions::mark::{self, Mark};
use crate::engine::marking::{self, MarkError, Marked};
use crate::engine::repository;
use crate::engine::world::Source;

/// What `mark` can be told.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Nothing is promoted or rolled back to it any more
    Bad(Arguments),
    /// It may be promoted and rolled back to again
    Good(Arguments),
}

/// What both can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The release
    release: String,
    /// Why it is bad, or good again
    #[arg(long, visible_alias = "note", value_name = "TEXT")]
    reason: Option<String>,
    /// Say what would be done, change nothing, and exit with 3 if something would change
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Plans, asks and marks.
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
    commits::begin(&connection, options, say).await?;
    let server = Server::ask(&connection, say).await?;
    let plan = {
        let feed = live(&connection, options, &Source::OF_MOVES).await?;
        let command = Mark {
            release: arguments.release.clone(),
            verdict,
        };
        let asked = server.asked(&connection, arguments.reason.clone());
        let planned = mark::plan(&feed.world(), &command, &asked);
        let planned = planned.and_then(|plan| plan.noted().map(|()| plan));
        planned.map_err(|refusal| refused(vec![refusal]))?
    };
    plan.warnings.iter().cloned().for_each(&mut *say);
    let (release, word) = (&arguments.release, marking::word(verdict));
    if plan.unchanged {
        let commits = commits::of(&connection, options)?;
        let commits = commits.as_ref().filter(|_| !arguments.dry_run);
        let exit = commits::push_again(commits, say).await?;
        let text = format!("{release} is marked {word} already\n");
        return Ok(Outcome::ending(text, exit));
    }
    let shown = format!("{release} is marked {word}\n");
    if arguments.dry_run {
        return Ok(Outcome::changes(shown));
    }
    if !arguments.yes && confirm::can_ask() {
        confirm::ask(&shown, "y")?;
        connection = connection.for_confirmed_plan();
    }
    let clock = server.clock();
    if let Some(commits) = commits::of(&connection, options)? {
        let proposal = repository::marking(&commits.repository.tree, &plan)?;
        let committed = commits.commit(&proposal).await?;
        return Ok(Outcome::ending(shown, commits::told(&committed, say)));
    }
    let marked = marking::mark(&connection.client, &plan, &server.user, &clock)
        .await
        .map_err(failed)?;
    if let Marked::Unrecorded(why) = marked {
        say(format!(
            "the audit entry of {release} follows with what is done to it next: {why}"
        ));
    }
    Ok(Outcome::done(shown))
}

fn failed(error: MarkError) -> Error {
    match error {
        MarkError::Target(error) => error.into(),
        error => Error::new(Exit::Conflict, error.to_string()),
    }
}
