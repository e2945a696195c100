//! The flags of verbs that read git references, and what a person's machine says about git.

use std::path::PathBuf;

use clap::Args;

use super::connect::Environment;
use super::error::{Error, Exit};
use crate::resolve::git::{Allowed, Git, Settings};

/// How git references are read.
#[derive(Args, Debug)]
pub struct GitFlags {
    /// Let git references name repositories on this machine
    #[arg(long)]
    allow_file_repositories: bool,
    /// A directory with a file per host that holds the token for it
    #[arg(long, value_name = "DIR", env = "BOWLINE_GIT_TOKENS")]
    git_tokens: Option<PathBuf>,
}

impl GitFlags {
    /// Makes the reader of git references.
    pub fn git(&self, environment: &Environment) -> Result<Git, Error> {
        let Some(cache) = &environment.cache_dir else {
            return Err(Error::new(
                Exit::Failed,
                "there is no home directory to keep a cache in",
            )
            .with_hint("set HOME or XDG_CACHE_HOME"));
        };
        let proxy = ["HTTPS_PROXY", "https_proxy"]
            .into_iter()
            .find_map(|name| environment.variables.get(std::ffi::OsStr::new(name)))
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty());
        Ok(Git::new(Settings {
            allowed: Allowed {
                file: self.allow_file_repositories,
                loopback_http: self.allow_file_repositories,
            },
            tokens: self.git_tokens.clone(),
            credential_helpers: true,
            environment: environment.variables.clone(),
            proxy: proxy.map(str::to_owned),
            ..Settings::new(cache.join("git"))
        }))
    }
}
