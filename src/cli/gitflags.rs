//! The flags of verbs that read git references, and what a person's machine says about git.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args;

use super::connect::{Connection, Environment};
use super::error::{Error, Exit};
use crate::resolve::git::{Allowed, Git, Settings};

/// How git references are read.
#[derive(Args, Debug, Default)]
pub struct GitFlags {
    /// Allow git references to repositories on this machine (file:// or loopback)
    #[arg(long)]
    allow_file_repositories: bool,
    /// A directory with one token file per host
    #[arg(long, value_name = "DIR", env = "BOWLINE_GIT_TOKENS")]
    git_tokens: Option<PathBuf>,
}

impl GitFlags {
    /// Makes the reader of git references of a target; what a repository has itself is not fetched.
    pub fn on(&self, connection: &Connection, environment: &Environment) -> Result<Git, Error> {
        Ok(self.git(environment)?.beside(connection.work_tree()))
    }

    /// Makes the reader of git references.
    pub fn git(&self, environment: &Environment) -> Result<Git, Error> {
        let Some(cache) = &environment.cache_dir else {
            return Err(Error::new(
                Exit::Failed,
                "no home directory, so there is no place for the cache",
            )
            .with_hint("set HOME or XDG_CACHE_HOME"));
        };
        let variable = |names: [&str; 2]| {
            let values = names.into_iter().filter_map(|name| {
                let value = environment.variables.get(OsStr::new(name))?;
                value.to_str().filter(|value| !value.is_empty())
            });
            values.map(str::to_owned).next()
        };
        Ok(Git::new(Settings {
            allowed: Allowed {
                file: self.allow_file_repositories,
                loopback_http: self.allow_file_repositories,
            },
            tokens: self.git_tokens.clone(),
            credential_helpers: true,
            environment: environment.variables.clone(),
            proxy: variable(["HTTPS_PROXY", "https_proxy"]),
            no_proxy: variable(["NO_PROXY", "no_proxy"]),
            ..Settings::new(cache.join("git"))
        }))
    }
}
