//! The command line: everything that reads arguments or prints.
//!
//! A verb is a file. It gets its arguments, the connection's options and a place
//! to write; results go to stdout and are stable, everything said to a person
//! goes to stderr.

mod actions;
mod apply;
mod audit;
pub mod bundle;
mod check;
mod commits;
mod completions;
mod confirm;
mod controller;
mod delete;
pub mod demo;
mod diff;
pub mod error;
mod gc;
mod get;
mod gitflags;
mod history;
mod install;
mod kinds;
mod man;
mod manifests;
mod mark;
pub mod output;
mod release;
mod render;
mod revisions;
pub mod screenshot;
pub mod serve;
mod session;
mod socket;
mod status;
mod theme;
mod uninstall;
mod version;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use futures::future::BoxFuture;
use tracing_subscriber::EnvFilter;

use crate::connect::{self, Environment, Options, StoreFile, plugin};
use crate::resolve::git::Git;
use controller::LogFormat;
use error::{Error, Exit};

/// Release promotion on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "bowline", version, disable_version_flag = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    interactive: Interactive,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// The flags that every verb has, as kubectl spells them.
#[derive(Args, Debug)]
struct Global {
    /// The context of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "embedded")]
    context: Option<String>,
    /// The kubeconfig file to use
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "embedded")]
    kubeconfig: Option<PathBuf>,
    /// Use the embedded store, in FILE or in the data directory
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true
    )]
    embedded: Option<Option<PathBuf>>,
    /// Use the files of the git work tree that DIR is in; actions are commits
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "embedded")]
    repo: Option<PathBuf>,
    /// Commit to this branch instead of the one that is checked out; it is made where it is not there
    #[arg(long, global = true, value_name = "NAME")]
    branch: Option<String>,
    /// Push the commit
    #[arg(long, global = true)]
    push: bool,
    /// Push to this remote instead of the branch's own
    #[arg(long, global = true, value_name = "NAME", requires = "push")]
    remote: Option<String>,
    /// The namespace to work in
    #[arg(short, long, global = true, value_name = "NAME")]
    namespace: Option<String>,
    /// The user to act as
    #[arg(long = "as", global = true, value_name = "USER")]
    impersonate: Option<String>,
    /// Send nothing that could change anything
    #[arg(long, global = true)]
    readonly: bool,
    /// How long one request may take (30s, 2m)
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    request_timeout: Option<Duration>,
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
        }
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show a small world at work in a store of its own, with a guided tour; without a terminal, its matrix
    Demo(demo::Arguments),
    #[command(flatten)]
    Act(actions::Verb),
    /// Call a release bad, or good again
    #[command(subcommand)]
    Mark(mark::Verb),
    /// Remove releases and snapshots that nobody needs any more
    Gc(gc::Arguments),
    /// Draw any screen of the terminal UI without a terminal
    Screenshot(screenshot::Arguments),
    /// Show what runs where: components against environments
    Status(status::Arguments),
    /// Show what ran in an environment, and who put it there
    History(history::Arguments),
    /// Compare environments, revisions, releases, or what is rendered with what is there
    Diff(diff::Arguments),
    /// List the revisions of a subject, and compare them
    #[command(subcommand, visible_alias = "revision")]
    Revisions(revisions::Verb),
    /// Print the manifests of a component in an environment, and touch nothing
    Render(render::Arguments),
    /// Make releases, look into them, list them
    #[command(subcommand, visible_alias = "releases")]
    Release(release::Verb),
    /// List what was done and by whom, and check that nobody rewrote it
    #[command(subcommand)]
    Audit(audit::Verb),
    /// Check that what a repository says holds together, and print what a change of it promotes
    Check(check::Arguments),
    /// Print objects of any kind
    Get(get::Arguments),
    /// Put the objects of files onto the target, by server-side apply
    Apply(apply::Arguments),
    /// Delete objects, by name or as files name them
    Delete(delete::Arguments),
    /// Print the CustomResourceDefinitions of bowline's kinds
    Crds,
    /// Put bowline's kinds, rules and controller on a cluster
    Install(install::Arguments),
    /// Take away what install put on a cluster, and say what stays
    Uninstall(uninstall::Arguments),
    /// Run the controllers, which make a target agree with its pins
    Controller(controller::Arguments),
    /// Put the embedded store on a socket, for kubectl and other clients
    Serve(serve::Arguments),
    /// Bring the looks of other programs along
    #[command(subcommand)]
    Theme(theme::Verb),
    /// Print the version of the program and, with --server, of the target
    Version(version::Arguments),
    /// Print what a shell needs to complete verbs and flags
    Completions(completions::Arguments),
    /// Print the manual page, or write one for each verb
    Man(man::Arguments),
    /// Run a credential plugin away from the terminal
    #[command(name = plugin::VERB, hide = true)]
    CredentialPlugin {
        seconds: u64,
        command: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// What opens screens. The program gives it, for the two front ends do not know each other.
pub struct Screens {
    /// Opens the terminal UI on a target, until the person leaves it.
    pub open: fn(Options, Environment, Git, Interactive) -> Opened,
    /// Draws a screen of a target without a terminal.
    pub draw: fn(Options, Environment, Git, screenshot::Arguments) -> Drawn,
}

/// A screen while it is drawn.
pub type Drawn = BoxFuture<'static, Result<String, ScreenError>>;

/// The terminal UI while it is open, and why it ended where it failed.
pub type Opened = BoxFuture<'static, Result<(), ScreenError>>;

/// Why there are no screens.
pub enum ScreenError {
    /// The target cannot be had.
    Connect(connect::Error),
    /// The terminal cannot be had.
    Terminal(String),
    /// A signal ended the program.
    Signal(i32),
}

/// How the terminal UI is opened.
#[derive(Args, Clone, Debug, Default)]
pub struct Interactive {
    /// The theme of the terminal UI; as the terminal's background wants it where it is left out
    #[arg(long, value_name = "NAME", env = "BOWLINE_THEME")]
    pub theme: Option<String>,
    /// The keymap of the terminal UI that your own lines are laid over
    #[arg(long, value_name = "NAME", env = "BOWLINE_KEYMAP")]
    pub keymap: Option<String>,
    /// Draw nothing but ASCII characters
    #[arg(long)]
    pub ascii: bool,
    /// Use the mouse in the terminal UI
    #[arg(long)]
    pub mouse: bool,
    /// Whether the guided tour begins.
    #[arg(skip)]
    pub tour: bool,
}

/// Runs the program and returns its exit code.
pub fn main(screens: &Screens) -> ExitCode {
    let Cli {
        global,
        interactive,
        verb,
    } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help is a result and goes to stdout; clap knows which is which.
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(Exit::Usage.into(), ExitCode::from);
        }
    };
    if let Some(Verb::CredentialPlugin {
        seconds,
        command,
        arguments,
    }) = &verb
    {
        return plugin::run(command, arguments, Duration::from_secs(*seconds));
    }
    match &verb {
        Some(Verb::Controller(arguments)) => log_to_stderr(Some("info"), arguments.log_format),
        // A log would be drawn over the screens.
        None => {}
        Some(Verb::Demo(_)) if demo::has_terminal() => {}
        _ => log_to_stderr(None, LogFormat::Text),
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return finish(Err(Error::from(error))),
    };
    let (options, environment) = (Options::from(global), environment());
    let result = runtime.block_on(async {
        match verb {
            Some(Verb::Screenshot(arguments)) => {
                screenshot::run(arguments, screens, options, environment).await
            }
            Some(Verb::Demo(arguments)) if demo::has_terminal() => {
                demo::open(arguments, screens, &environment, jiff::Timestamp::now()).await
            }
            Some(verb) => run(verb, &options, &environment).await,
            None => open(screens, options, environment, interactive).await,
        }
    });
    // A credential plugin that hangs must not keep the program from ending.
    runtime.shutdown_background();
    finish(result)
}

/// Opens the terminal UI.
async fn open(
    screens: &Screens,
    options: Options,
    environment: Environment,
    interactive: Interactive,
) -> Result<Exit, Error> {
    let git = gitflags::GitFlags::default().git(&environment)?;
    ended((screens.open)(options, environment, git, interactive).await)
}

/// Says how the program ends after its screens.
fn ended(opened: Result<(), ScreenError>) -> Result<Exit, Error> {
    match opened {
        Ok(()) => Ok(Exit::Done),
        // As if nobody had caught it; it comes back only where the signal is ignored.
        Err(ScreenError::Signal(signal)) => {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            Ok(Exit::Failed)
        }
        Err(ScreenError::Connect(error)) => Err(error.into()),
        Err(ScreenError::Terminal(why)) => Err(Error::new(Exit::Usage, why)
            .with_hint("bowline --help lists the verbs; bowline status prints the matrix")),
    }
}

/// What a verb prints, and how the program ends.
pub struct Outcome {
    text: String,
    exit: Exit,
}

impl Outcome {
    /// It was done.
    pub fn done(text: String) -> Outcome {
        Outcome {
            text,
            exit: Exit::Done,
        }
    }

    /// It ended as the exit code says, with something to print all the same.
    pub fn ending(text: String, exit: Exit) -> Outcome {
        Outcome { text, exit }
    }

    /// A dry run found that something would change.
    pub fn changes(text: String) -> Outcome {
        Outcome {
            text,
            exit: Exit::Changes,
        }
    }
}

async fn run(verb: Verb, options: &Options, environment: &Environment) -> Result<Exit, Error> {
    let mut out = std::io::stdout();
    let clock = jiff::Timestamp::now;
    let now = clock();
    let mut say = |line: String| {
        let _ = writeln!(std::io::stderr(), "{}", crate::text::clean(&line));
    };
    let outcome = match verb {
        Verb::Demo(_) => Outcome::done(demo::run(environment, now).await?),
        Verb::Render(arguments) => {
            let rendered = render::run(&arguments, options, environment, now, &mut say).await?;
            Outcome::done(rendered)
        }
        Verb::Status(arguments) => {
            Outcome::done(status::run(&arguments, options, environment, now).await?)
        }
        Verb::History(arguments) => {
            Outcome::done(history::run(&arguments, options, environment, now).await?)
        }
        Verb::Diff(arguments) => {
            diff::run(&arguments, options, environment, clock, &mut say).await?
        }
        Verb::Revisions(verb) => {
            revisions::run(&verb, options, environment, clock, &mut say).await?
        }
        Verb::Act(verb) => actions::run(&verb, options, environment, &mut say).await?,
        Verb::Mark(verb) => mark::run(&verb, options, environment, &mut say).await?,
        Verb::Gc(arguments) => gc::run(&arguments, options, environment, &mut say).await?,
        Verb::Release(verb) => release::run(&verb, options, environment, now, &mut say).await?,
        Verb::Audit(verb) => audit::run(&verb, options, environment, now, &mut say).await?,
        Verb::Check(arguments) => {
            check::run(&arguments, options, environment, now, &mut say).await?
        }
        Verb::Get(arguments) => {
            get::run(&arguments, options, environment, now, &mut out, &mut say).await?
        }
        Verb::Apply(arguments) => {
            let exit = apply::run(&arguments, options, environment, &mut out, &mut say).await?;
            Outcome::ending(String::new(), exit)
        }
        Verb::Delete(arguments) => {
            let exit = delete::run(&arguments, options, environment, &mut out, &mut say).await?;
            Outcome::ending(String::new(), exit)
        }
        Verb::Completions(arguments) => Outcome::done(completions::run(&arguments, Cli::command())),
        Verb::Man(arguments) => Outcome::done(man::run(&arguments, Cli::command())?),
        Verb::Crds => Outcome::done(crate::api::crds_yaml()),
        Verb::Install(arguments) => {
            let exit = install::run(&arguments, options, environment, &mut out, &mut say).await?;
            Outcome::ending(String::new(), exit)
        }
        Verb::Uninstall(arguments) => {
            let exit = uninstall::run(&arguments, options, environment, &mut out, &mut say).await?;
            Outcome::ending(String::new(), exit)
        }
        Verb::Controller(arguments) => {
            controller::run(&arguments, options, environment, &mut out).await?;
            Outcome::done(String::new())
        }
        Verb::Serve(arguments) => {
            serve::run(&arguments, options, environment, &mut out).await?;
            Outcome::done(String::new())
        }
        Verb::Theme(verb) => Outcome::done(theme::run(&verb, environment, &mut say)?),
        Verb::Version(arguments) => {
            Outcome::done(version::run(&arguments, options, environment).await?)
        }
        Verb::Screenshot(_) | Verb::CredentialPlugin { .. } => Outcome::done(String::new()),
    };
    print(&mut out, &outcome.text)?;
    Ok(outcome.exit)
}

fn print(out: &mut impl Write, text: &str) -> Result<(), Error> {
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn finish(result: Result<Exit, Error>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        // Whoever read our output has had enough of it.
        Err(error) if error.is_broken_pipe() => Exit::Done.into(),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            error.exit.into()
        }
    }
}

/// Reads what the rest of the program is told about the process's surroundings.
fn environment() -> Environment {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let user = ["USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    Environment {
        kubeconfig: variable("KUBECONFIG"),
        home: directories::BaseDirs::new().map(|base| base.home_dir().to_owned()),
        data_dir: directories::ProjectDirs::from("", "", "bowline")
            .map(|project| project.data_dir().to_owned()),
        config_dir: directories::ProjectDirs::from("", "", "bowline")
            .map(|project| project.config_dir().to_owned()),
        working_dir: std::env::current_dir().ok(),
        cache_dir: directories::ProjectDirs::from("", "", "bowline")
            .map(|project| project.cache_dir().to_owned()),
        variables: std::env::vars_os().collect(),
        in_pod: variable("KUBERNETES_SERVICE_HOST").is_some()
            && std::path::Path::new("/var/run/secrets/kubernetes.io/serviceaccount/token").exists(),
        user: user.unwrap_or_else(|| "local".to_owned()),
        program: std::env::current_exe().ok(),
    }
}

/// Turns `BOWLINE_LOG=debug` into a log on stderr; without it only what is there by default is logged.
fn log_to_stderr(default: Option<&str>, format: LogFormat) {
    let filter = EnvFilter::try_from_env("BOWLINE_LOG").ok();
    let Some(filter) = filter.or_else(|| default.map(EnvFilter::new)) else {
        return;
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}

fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().map(Duration::from_secs).ok();
    let parsed = seconds.or_else(|| {
        let signed = text.parse::<jiff::SignedDuration>().ok()?;
        Duration::try_from(signed).ok()
    });
    match parsed {
        Some(duration) if !duration.is_zero() => Ok(duration),
        Some(_) => Err("every request has a deadline; give one longer than 0".to_owned()),
        None => Err("write it as 30s or 2m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_choose_the_target() {
        let parse = |line: &[&str]| {
            Cli::try_parse_from([&["bowline"], line].concat()).map(|cli| Options::from(cli.global))
        };
        let options = parse(&["version", "--embedded"]).unwrap();
        assert_eq!(options.embedded, Some(StoreFile::Default));
        let options = parse(&["--embedded=a.db", "version", "-n", "shop"]).unwrap();
        assert_eq!(options.embedded, Some(StoreFile::At("a.db".into())));
        assert_eq!(options.namespace.as_deref(), Some("shop"));
        let options = parse(&["version", "--as", "ana", "--request-timeout", "1m30s"]).unwrap();
        assert_eq!(options.impersonate.as_deref(), Some("ana"));
        assert_eq!(options.request_timeout, Some(Duration::from_secs(90)));
        for wrong in [
            &["version", "--embedded", "--context", "prod"][..],
            &["version", "--request-timeout", "0"],
            &["version", "--request-timeout", "soon"],
            &["frobnicate"],
        ] {
            let code = parse(wrong).unwrap_err().exit_code();
            assert_eq!(code, Exit::Usage as i32, "{wrong:?}");
        }
    }
}
