//! `bowline version`: this program, and the server that a target leads to.

use clap::Args;

use super::connect::{self, Environment, Options};
use super::error::Error;
use crate::text;

/// What `version` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Ask the target for its version as well
    #[arg(long)]
    server: bool,
}

/// Returns what `version` prints.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
) -> Result<String, Error> {
    let mut lines = format!("bowline {}\n", env!("CARGO_PKG_VERSION"));
    if arguments.server {
        let connection = connect::connect(options, environment).await?;
        let server = connection.client.apiserver_version().await?;
        lines += &format!("server {}\n", text::clean(&server.git_version));
        lines += &format!("target {}\n", text::clean(&connection.target.to_string()));
    }
    Ok(lines)
}
