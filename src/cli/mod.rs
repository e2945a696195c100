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
mod crds;
mod delete;
pub mod demo;
mod diff;
pub mod error;
mod gc;
mod get;
mod gitflags;
mod global;
mod history;
mod ignored;
mod install;
mod kinds;
mod man;
mod manifests;
mod mark;
mod observing;
pub mod output;
mod release;
mod render;
mod report;
mod required;
mod revisions;
pub mod screenshot;
pub mod serve;
mod session;
mod socket;
mod status;
mod surroundings;
mod theme;
mod uninstall;
mod version;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use futures::future::BoxFuture;

use crate::connect::{self, Environment, Options, plugin};
use crate::resolve::git::Git;
use crate::text::{self, CleanWriter};
use controller::LogFormat;
use error::{Error, Exit};
use global::Global;
use surroundings::{environment, log_to_stderr};

/// Release promotion on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "bowline", version)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    interactive: Interactive,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show bowline on an example with a guided tour; needs no cluster
    Demo(demo::Arguments),
    #[command(flatten)]
    Act(actions::Verb),
    /// Mark a release bad, or good again
    #[command(subcommand)]
    Mark(mark::Verb),
    /// Delete releases and snapshots that are no longer needed
    Gc(gc::Arguments),
    /// Print a screen of the terminal UI as text, ANSI or SVG
    Screenshot(screenshot::Arguments),
    /// Show the matrix: which release runs in which environment
    Status(status::Arguments),
    /// Show the revisions of a component in an environment, and who made them
    History(history::Arguments),
    /// Compare environments, revisions, releases, or rendered with live objects
    Diff(diff::Arguments),
    /// List and compare the revisions of a subject
    #[command(subcommand, visible_alias = "revision")]
    Revisions(revisions::Verb),
    /// Print the manifests of a component in an environment
    Render(render::Arguments),
    /// Create, show and list releases
    #[command(subcommand, visible_alias = "releases")]
    Release(release::Verb),
    /// List, export and verify the audit trail
    #[command(subcommand)]
    Audit(audit::Verb),
    /// Check the files of a repository, and print the promotions of a change
    Check(check::Arguments),
    /// Print objects of any kind
    Get(get::Arguments),
    /// Apply the objects of files by server-side apply
    Apply(apply::Arguments),
    /// Delete objects by name or by file
    Delete(delete::Arguments),
    /// Print the CustomResourceDefinitions of bowline's kinds
    Crds(crds::Arguments),
    /// Install bowline's kinds, policies and controller on a cluster
    Install(install::Arguments),
    /// Remove bowline from a cluster
    Uninstall(uninstall::Arguments),
    /// Run the controllers, which deploy the releases that the ReleasePins name
    Controller(controller::Arguments),
    /// Serve the embedded store over HTTP, for kubectl and other clients
    Serve(serve::Arguments),
    /// Import themes of other programs
    #[command(subcommand)]
    Theme(theme::Verb),
    /// Print the version of the program and, with --server, of the target
    Version(version::Arguments),
    /// Print the completion script of a shell
    Completions(completions::Arguments),
    /// Print the manual page, or write one page per verb
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
    /// The theme of the terminal UI [default: follows the terminal's background]
    #[arg(long, value_name = "NAME", env = "BOWLINE_THEME")]
    pub theme: Option<String>,
    /// The keymap of the terminal UI; your keymap.toml can change single keys of it
    #[arg(long, value_name = "NAME", env = "BOWLINE_KEYMAP")]
    pub keymap: Option<String>,
    /// Draw only ASCII characters
    #[arg(long)]
    pub ascii: bool,
    /// Use the mouse in the terminal UI
    #[arg(long)]
    pub mouse: bool,
    /// Whether the guided tour begins.
    #[arg(skip)]
    pub tour: bool,
}

/// Returns the commands of the program, for the table of texts.
#[cfg(test)]
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program and returns its exit code.
pub fn main(screens: &Screens) -> ExitCode {
    let Cli {
        global,
        interactive,
        verb,
    } = match parsed(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help is a result and goes to stdout; clap knows which is which.
            let _ = match error.use_stderr() {
                true => write!(std::io::stderr(), "{}", usage(&error)),
                false => error.print(),
            };
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
            Some(verb) => {
                let kinds = required::kinds(&verb);
                let options = Options { kinds, ..options };
                run(verb, &options, &environment).await
            }
            None => open(screens, options, environment, interactive).await,
        }
    });
    // A credential plugin that hangs must not keep the program from ending.
    runtime.shutdown_background();
    finish(result)
}

/// Reads the command line; a flag that its verb would ignore is an error.
fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches_from(words)?;
    if let Some(message) = ignored::flags(&matches, demo::has_terminal()) {
        let kind = clap::error::ErrorKind::ArgumentConflict;
        return Err(Cli::command().error(kind, message));
    }
    Cli::from_arg_matches(&matches)
}

/// Returns the text of a usage error. It quotes words of the command line, which may come from anywhere: the
/// command line is read once more with each word cleaned to one line.
fn usage(error: &clap::Error) -> String {
    let words = std::env::args_os();
    let words: Vec<OsString> = words
        .map(|word| text::line(&word.to_string_lossy()).into_owned().into())
        .collect();
    let cleaned = parsed(&words).err();
    let shown = cleaned.as_ref().unwrap_or(error).to_string();
    text::clean(&shown).into_owned()
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
    /// Whether a change was made, which stays made whatever happens to the text.
    made: bool,
}

impl Outcome {
    /// It was done.
    pub fn done(text: String) -> Outcome {
        Outcome::ending(text, Exit::Done)
    }

    /// It ended as the exit code says, with something to print all the same.
    pub fn ending(text: String, exit: Exit) -> Outcome {
        Outcome {
            text,
            exit,
            made: false,
        }
    }

    /// A dry run found that something would change.
    pub fn changes(text: String) -> Outcome {
        Outcome::ending(text, Exit::Changes)
    }

    /// The change that the text tells of was made.
    pub fn made(self) -> Outcome {
        Outcome { made: true, ..self }
    }
}

async fn run(verb: Verb, options: &Options, environment: &Environment) -> Result<Exit, Error> {
    let mut out = CleanWriter(std::io::stdout());
    let clock = jiff::Timestamp::now;
    let now = clock();
    let mut say = |line: String| {
        let _ = writeln!(std::io::stderr(), "{}", text::block(&line));
    };
    let outcome = match verb {
        Verb::Demo(_) => Outcome::done(demo::run(environment, now).await?),
        Verb::Render(arguments) => {
            let rendered = render::run(&arguments, options, environment, now, &mut say).await?;
            Outcome::done(rendered)
        }
        Verb::Status(arguments) => {
            Outcome::done(status::run(&arguments, options, environment, now, &mut say).await?)
        }
        Verb::History(arguments) => {
            Outcome::done(history::run(&arguments, options, environment, now, &mut say).await?)
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
        Verb::Crds(arguments) => Outcome::done(crds::run(&arguments)),
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
            serve::run(&arguments, options, environment, &mut out, &mut say).await?;
            Outcome::done(String::new())
        }
        Verb::Theme(verb) => Outcome::done(theme::run(&verb, environment, &mut say)?),
        Verb::Version(arguments) => {
            Outcome::done(version::run(&arguments, options, environment).await?)
        }
        Verb::Screenshot(_) | Verb::CredentialPlugin { .. } => Outcome::done(String::new()),
    };
    let Outcome { text, exit, made } = outcome;
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let made = made || !matches!(exit, Exit::Done | Exit::Changes);
    told(printed, made, &mut say)?;
    Ok(exit)
}

/// Judges whether a result was printed. A reader that went away is no failure; where a change was made, or
/// something else failed already, a result that could not be printed is a warning.
fn told(
    printed: std::io::Result<()>,
    made: bool,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    match printed {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) if made => {
            say(format!("warning: cannot print the result: {error}"));
            Ok(())
        }
        printed => Ok(printed?),
    }
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

fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().map(Duration::from_secs).ok();
    let parsed = seconds.or_else(|| {
        let signed = text.parse::<jiff::SignedDuration>().ok()?;
        Duration::try_from(signed).ok()
    });
    match parsed {
        Some(duration) if !duration.is_zero() => Ok(duration),
        Some(_) => Err("the deadline must be longer than 0".to_owned()),
        None => Err("write a duration as 30s or 2m".to_owned()),
    }
}

#[cfg(test)]
mod options_of_git_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::StoreFile;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Verbs without `-o json`, and why.
    const WITHOUT_JSON: &[(&str, &str)] = &[
        ("demo", "opens the terminal UI"),
        ("screenshot", "prints a picture"),
        ("controller", "runs until it is stopped"),
        ("serve", "runs until it is stopped"),
        ("import", "prints a theme"),
        ("completions", "prints a script"),
        ("man", "prints a page"),
    ];

    fn without_json(command: &clap::Command, into: &mut Vec<String>) {
        let mut verbs = command.get_subcommands().peekable();
        if verbs.peek().is_none() && !command.is_hide_set() {
            let mut arguments = command.get_arguments();
            let output = arguments.find(|argument| argument.get_long() == Some("output"));
            let values = output.map(clap::Arg::get_possible_values);
            let has_json =
                values.is_some_and(|values| values.iter().any(|it| it.matches("json", true)));
            if !has_json {
                into.push(command.get_name().to_owned());
            }
        }
        verbs.for_each(|verb| without_json(verb, into));
    }

    #[test]
    fn every_verb_takes_output_json_or_prints_no_result() {
        let mut found = Vec::new();
        without_json(&Cli::command(), &mut found);
        found.sort();
        let mut known: Vec<&str> = WITHOUT_JSON.iter().map(|(verb, _)| *verb).collect();
        known.sort_unstable();
        assert_eq!(found, known);
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
