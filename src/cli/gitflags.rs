//! The flags of verbs that read git references, and the git settings of this machine.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args;

use super::connect::{Connection, Environment};
use super::error::{Error, Exit};
use crate::resolve::git::{Allowed, Git, Settings};

/// The heading above these flags in the help text.
pub(super) const GIT: &str = "Git";

/// The flags for reading git references.
#[derive(Args, Debug, Default)]
pub struct GitFlags {
    /// Allow git references to repositories on this machine (file:// and loopback addresses)
    #[arg(long, help_heading = GIT)]
    allow_file_repositories: bool,
    /// A directory of git tokens: the file with the name of a host contains the token for that host
    #[arg(long, value_name = "DIR", env = "BOWLINE_GIT_TOKENS", help_heading = GIT)]
    git_tokens: Option<PathBuf>,
}

/// Returns a reader of git references that contacts no git server. For verbs that need no git reference.
pub fn no_git() -> Git {
    Git::new(Settings::new(PathBuf::new())).offline()
}

impl GitFlags {
    /// Creates the reader of git references for a target. If the target is a repository, the reader first looks for
    /// commits in its work tree.
    pub fn on(&self, connection: &Connection, environment: &Environment) -> Result<Git, Error> {
        Ok(self.git(environment)?.beside(connection.work_tree()))
    }

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
