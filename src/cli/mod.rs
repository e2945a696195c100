//! The command line: all code that reads arguments or prints.
//!
//! Each verb has a file. Results go to stdout in a stable format; messages for the user go to stderr.

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
mod subject;
mod surroundings;
mod target_object;
mod theme;
mod uninstall;
mod version;

// These imports give the modules the same paths, such as `crate::engine`, in every package.
use bowline_controllers as controllers;
#[cfg(test)]
use bowline_core::fixture;
use bowline_core::{api, connect, engine, git, gitops, resolve, subjects, text};

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use futures::future::BoxFuture;

use crate::connect::{Environment, Options, StoreWaits, plugin};
use crate::resolve::git::Git;
use crate::text::CleanWriter;
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
    /// Show the revisions of a component in an environment, or of a workload, and who made them
    History(history::Arguments),
    /// Compare two environments, revisions or releases, or the rendered manifests with the live objects
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
    /// Create or change the objects of files, by server-side apply
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
    /// Import a theme of another program
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

/// The functions that open or draw the terminal UI. The main program passes them in, because `cli` does not depend on
/// `tui`.
pub struct Screens {
    /// Opens the terminal UI on a target. Returns when the user quits.
    pub open: fn(Options, Environment, Git, Interactive) -> Opened,
    /// Draws one screen of the terminal UI without a terminal, and returns it as text.
    pub draw: fn(Options, Environment, Git, screenshot::Arguments) -> Drawn,
}

/// The future that [`Screens::draw`] returns.
pub type Drawn = BoxFuture<'static, Result<String, ScreenError>>;

/// The future that [`Screens::open`] returns.
pub type Opened = BoxFuture<'static, Result<(), ScreenError>>;

/// The reason why the terminal UI failed or ended early.
pub enum ScreenError {
    /// The connection to the target could not be opened.
    Connect(connect::Error),
    /// The terminal UI cannot use the terminal. Contains the reason.
    Terminal(String),
    /// A signal ended the terminal UI. Contains the number of the signal.
    Signal(i32),
}

/// The options of the terminal UI.
#[derive(Args, Clone, Debug, Default)]
pub struct Interactive {
    /// The theme of the terminal UI [default: follows the terminal's background]
    #[arg(long, value_name = "NAME", env = "BOWLINE_THEME")]
    pub theme: Option<String>,
    /// The keymap of the terminal UI: default or emacs; your keymap.toml can change single keys of it
    #[arg(long, value_name = "NAME", env = "BOWLINE_KEYMAP")]
    pub keymap: Option<String>,
    /// Draw only ASCII characters
    #[arg(long)]
    pub ascii: bool,
    /// Use the mouse in the terminal UI
    #[arg(long)]
    pub mouse: bool,
    /// Whether the guided tour starts.
    #[arg(skip)]
    pub tour: bool,
}

/// Returns the clap command of bowline. A test uses it to list all texts.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Returns the clap command that parses the command line. Its help hides flags without an effect.
fn parser() -> clap::Command {
    global::hide_ignored(Cli::command())
}

pub fn main(screens: &Screens) -> ExitCode {
    let Cli {
        global,
        interactive,
        verb,
    } = match parsed(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to stdout, usage errors go to stderr.
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
        // While the terminal UI is open, a log on stderr would overwrite the screen, so there is no log.
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
                let options = Options {
                    needs_store: true,
                    ..options
                };
                say_if_store_is_locked();
                screenshot::run(arguments, screens, options, environment).await
            }
            Some(Verb::Demo(arguments)) if demo::has_terminal() => {
                demo::open(arguments, screens, &environment, jiff::Timestamp::now()).await
            }
            Some(verb) => {
                let kinds = required::kinds(&verb);
                let options = Options {
                    kinds,
                    needs_store: required::store(&verb),
                    ..options
                };
                run(verb, &options, &environment).await
            }
            None => open(screens, options, environment, interactive).await,
        }
    });
    // Do not wait for blocking tasks, because a credential plugin may hang.
    runtime.shutdown_background();
    finish(result)
}

/// Parses the command line. Returns an error if a flag would have no effect.
fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = parser().try_get_matches_from(words)?;
    if let Some(message) = ignored::flags(&matches, demo::has_terminal()) {
        let kind = clap::error::ErrorKind::ArgumentConflict;
        return Err(parser().error(kind, message));
    }
    Cli::from_arg_matches(&matches)
}

/// Returns the text of a usage error without control characters. The text quotes words of the command line, so the
/// command line is parsed again with cleaned words.
fn usage(error: &clap::Error) -> String {
    let words = std::env::args_os();
    let words: Vec<OsString> = words
        .map(|word| text::line(&word.to_string_lossy()).into_owned().into())
        .collect();
    let cleaned = parsed(&words).err();
    let shown = cleaned.as_ref().unwrap_or(error).to_string();
    text::clean(&shown).into_owned()
}

async fn open(
    screens: &Screens,
    options: Options,
    environment: Environment,
    interactive: Interactive,
) -> Result<Exit, Error> {
    let git = gitflags::GitFlags::default().git(&environment)?;
    ended((screens.open)(options, environment, git, interactive).await)
}

/// Converts the result of the terminal UI to the exit code of bowline.
fn ended(opened: Result<(), ScreenError>) -> Result<Exit, Error> {
    match opened {
        Ok(()) => Ok(Exit::Done),
        // End bowline by the same signal, as if it had not handled the signal. The call returns only if the system
        // ignores the signal.
        Err(ScreenError::Signal(signal)) => {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            Ok(Exit::Failed)
        }
        Err(ScreenError::Connect(error)) => Err(error.into()),
        Err(ScreenError::Terminal(why)) => Err(Error::new(Exit::Usage, why)
            .with_hint("print the matrix: bowline status")
            .and_hint("list the verbs: bowline --help")),
    }
}

/// The output of a verb, with the exit code of bowline.
pub struct Outcome {
    text: String,
    exit: Exit,
    /// Whether the verb has changed something. Then an error while printing does not count as a failure of the verb.
    made: bool,
}

impl Outcome {
    /// Creates the outcome of a verb that succeeded with this output.
    pub fn done(text: String) -> Outcome {
        Outcome::ending(text, Exit::Done)
    }

    /// Creates the outcome of a verb that ends with this output and this exit code.
    pub fn ending(text: String, exit: Exit) -> Outcome {
        Outcome {
            text,
            exit,
            made: false,
        }
    }

    /// Creates the outcome of a dry run that found something to change.
    pub fn changes(text: String) -> Outcome {
        Outcome::ending(text, Exit::Changes)
    }

    /// Records that the verb has changed something.
    pub fn made(self) -> Outcome {
        Outcome { made: true, ..self }
    }
}

/// Prints a message if bowline has to wait because another process has locked the embedded store. Prints it only
/// once.
fn say_if_store_is_locked() {
    let mut waits = StoreWaits::receive();
    tokio::spawn(async move {
        let line = waits.next().await;
        let _ = writeln!(std::io::stderr(), "{line}");
    });
}

async fn run(verb: Verb, options: &Options, environment: &Environment) -> Result<Exit, Error> {
    // `bowline controller` has a log that reports the wait, so it prints no message.
    if !matches!(verb, Verb::Controller(_)) {
        say_if_store_is_locked();
    }
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
        Verb::Completions(arguments) => Outcome::done(completions::run(&arguments, parser())),
        Verb::Man(arguments) => Outcome::done(man::run(&arguments, parser())?),
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

/// Returns the exit code after the output of a verb was printed. If the reader of stdout has closed the pipe, that is
/// no failure. If the verb changed something or failed already, a failed print is only a warning.
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
        // The reader of stdout has closed the pipe, which is no failure.
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

    /// The verbs that have no option `-o json`, each with the reason.
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
    fn help_lists_the_own_options_of_a_verb_first_and_the_flags_of_commits_where_they_apply() {
        let help = |verb: &str| {
            let words = ["bowline"]
                .into_iter()
                .chain(verb.split(' '))
                .chain(["--help"]);
            parser()
                .try_get_matches_from(words)
                .unwrap_err()
                .to_string()
        };
        for (verb, own, commits) in [
            ("promote", "--skip-path", true),
            ("release create", "--embed", true),
            ("mark bad", "--reason", true),
            ("status", "--output", false),
            ("release list", "--output", false),
            ("apply", "--recursive", false),
        ] {
            let text = help(verb);
            let at = |word: &str| text.find(word);
            assert!(
                at("Options:") < at(own) && at(own) < at("Target:"),
                "{text}"
            );
            assert!(at("Target:") < at("--context"), "{text}");
            assert_eq!(at("--push").is_some(), commits, "{text}");
        }
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
