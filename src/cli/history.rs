//! `bowline history`: prints the revisions of a subject, each with start time, author and health.

use clap::Args;
use jiff::Timestamp;

use super::actions::named_environment;
use super::connect::{self, Environment, Options};
use super::error::Error;
use super::output::Format;
use super::subject::{Named, named_by};
use super::{commits, revisions, session};
use crate::subjects::release_pin::revisions::{NoSubject, Subject};

/// The arguments of `history`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component, or a workload with its kind (deploy/web) [default: the component that config.toml names]
    component: Option<String>,
    /// The environment of the component; a workload needs none
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

impl Arguments {
    /// Returns the subject if the user named it together with its kind, such as `deploy/web`; None if the user named
    /// a component.
    pub(super) fn subject(&self) -> Option<Named> {
        named_by(self.component.as_ref())
    }
}

/// Returns the revisions of a ReleasePin or of a workload as output, newest first.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    if let Some(named) = arguments.subject() {
        let found = named.revisions(options, environment, now).await?;
        found.record.iter().cloned().for_each(&mut *say);
        return Ok(revisions::print(&found, arguments.output, now));
    }
    let place = named_environment(&arguments.environment)?;
    let connection = connect::connect(options, environment).await?;
    commits::say_where_the_log_ends(&connection, say);
    let component = session::component(&connection, arguments.component.as_deref())?;
    let subject = Subject::of(&component, &place);
    let (client, namespace) = (&connection.client, &connection.namespace);
    commits::say_namespaces(&connection, options, say);
    let read = subject.read(client, namespace, now).await;
    let (_, found) = read.map_err(|error| {
        let unknown = commits::not_known(&connection, &component, &place);
        unknown
            .filter(|_| matches!(error, NoSubject::NotDeployed { .. }))
            .unwrap_or_else(|| error.into())
    })?;
    Ok(revisions::print(&found, arguments.output, now))
}
