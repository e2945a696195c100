//! `bowline version`: prints the version of bowline, and that of the target's server.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::connect::{self, Environment, Options};
use super::error::Error;
use super::output;
use crate::text;

/// The arguments of `version`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Print the version of the target too
    #[arg(long)]
    server: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,
}

/// The output formats of `version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A line for each version
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
) -> Result<String, Error> {
    let mut facts = vec![("bowline", env!("CARGO_PKG_VERSION").to_owned())];
    if arguments.server {
        let connection = connect::connect(options, environment).await?;
        let server = connection.client.apiserver_version().await?;
        facts.push(("server", server.git_version));
        facts.push(("target", connection.target.to_string()));
    }
    let value = || -> Map<String, Value> {
        let facts = facts.iter();
        facts
            .map(|(name, fact)| ((*name).to_owned(), fact.as_str().into()))
            .collect()
    };
    Ok(match arguments.output {
        Form::Json => output::json(&value()),
        Form::Yaml => output::yaml(&value()),
        Form::Table => facts
            .iter()
            .map(|(name, fact)| format!("{name} {}\n", text::line(fact)))
            .collect(),
    })
}
