//! `bowline history`: what ran in an environment, since when, who put it there, and what became of it.

use clap::Args;
use jiff::Timestamp;

use super::connect::{self, Environment, Options};
use super::error::Error;
use super::output::Format;
use super::{commits, revisions, session};
use crate::engine::revisions::Subject;

/// The arguments of `history`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component [default: the component that the configuration names]
    component: Option<String>,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Returns the revisions of a ReleasePin, newest first.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    let connection = connect::connect(options, environment).await?;
    commits::say_where_the_log_ends(&connection, say);
    let component = session::component(&connection, arguments.component.as_deref())?;
    let subject = Subject::of(&component, &arguments.environment);
    let (client, namespace) = (&connection.client, &connection.namespace);
    let (_, found) = subject.read(client, namespace, now).await?;
    Ok(revisions::print(&found, arguments.output, now))
}
