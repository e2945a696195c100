//! The flags that every verb has: they select the target and set the limits of requests.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command};

use super::gitflags::GIT;
use crate::api::names;
use crate::connect::{Options, StoreFile};

/// The flags for the commit that some verbs make in a repository.
const OF_THE_COMMIT: [&str; 3] = ["branch", "push", "remote"];

/// The verbs that make a commit if the target is a repository.
const COMMITS: [&str; 10] = [
    "deploy", "promote", "rollback", "pin", "unpin", "undo", "mark", "gc", "create", "release",
];

/// The flags that every verb has, as kubectl spells them.
#[derive(Args, Debug)]
#[command(next_help_heading = "Target")]
pub(super) struct Global {
    /// Use this context of the kubeconfig [default: the current context]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "embedded")]
    context: Option<String>,
    /// Use this kubeconfig file [default: the files in KUBECONFIG, else ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "embedded")]
    kubeconfig: Option<PathBuf>,
    /// Use the embedded store instead of a cluster [default FILE: bowline.db in your data directory]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true
    )]
    embedded: Option<Option<PathBuf>>,
    /// Use the git work tree of DIR as the target; actions such as promote make a commit there
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "embedded")]
    repo: Option<PathBuf>,
    /// Commit to this branch, and create it if it does not exist; needs --repo [default: the current branch]
    #[arg(long, global = true, value_name = "NAME", help_heading = GIT)]
    branch: Option<String>,
    /// Push the branch with the new commit to the branch of the same name on the remote; needs --repo
    #[arg(long, global = true, help_heading = GIT)]
    push: bool,
    /// Push to this remote, a name or an address; needs --push [default: the branch's remote, else origin]
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        requires = "push",
        help_heading = GIT
    )]
    remote: Option<String>,
    /// Use this namespace [default: the namespace of the context or the repository, else default]
    #[arg(short, long, global = true, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,
    /// Send requests in the name of this user (impersonation) [default: your own user]
    #[arg(long = "as", global = true, value_name = "USER", value_parser = user)]
    impersonate: Option<String>,
    /// Send no request that could change anything
    #[arg(long, global = true)]
    readonly: bool,
    /// Cancel a request that takes longer than this (30s, 2m) [default: 30s until the answer begins, 2m for its
    /// content]
    #[arg(long, global = true, value_name = "DURATION", value_parser = super::duration)]
    request_timeout: Option<Duration>,
}

/// Hides the flags for commits in the help text of verbs that make no commit.
pub(super) fn hide_ignored(command: Command) -> Command {
    fn hide(verb: Command, commits: bool) -> Command {
        let commits = commits || COMMITS.contains(&verb.get_name());
        let verb =
            verb.mut_args(
                |argument| match OF_THE_COMMIT.contains(&argument.get_id().as_str()) {
                    true => argument.hide(!commits),
                    false => argument,
                },
            );
        // All verbs below `mark` make commits, so they keep the flags.
        let all = verb.get_name() == "mark";
        verb.mut_subcommands(|verb| hide(verb, all))
    }
    // clap adds the global flags to the verbs in this call, so the flags can be hidden only afterwards.
    let mut command = command;
    command.build();
    command.mut_subcommands(|verb| hide(verb, false))
}

fn namespace(text: &str) -> Result<String, String> {
    match names::is_namespace(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} cannot be a namespace")),
    }
}

fn user(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("the name of a user cannot be empty".to_owned()),
        false => Ok(text.to_owned()),
    }
}

impl From<Global> for Options {
    fn from(flags: Global) -> Options {
        Options {
            context: flags.context,
            kubeconfig: flags.kubeconfig,
            embedded: flags
                .embedded
                .map(|file| file.map_or(StoreFile::Default, StoreFile::At)),
            repo: flags.repo,
            branch: flags.branch,
            push: flags.push,
            remote: flags.remote,
            namespace: flags.namespace,
            impersonate: flags.impersonate,
            readonly: flags.readonly,
            request_timeout: flags.request_timeout,
            asks_cluster_later: false,
            needs_store: false,
            kinds: Vec::new(),
        }
    }
}
