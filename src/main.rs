//! The program `bowline`. It only connects the command line and the terminal UI, so all other code is in the
//! library.

use std::process::ExitCode;

use bowline::cli::screenshot::{Arguments, Format};
use bowline::cli::{self, Drawn, Opened, ScreenError, Screens};
use bowline::connect::{Environment, Options};
use bowline::resolve::git::Git;
use bowline::tui::run::{self, RunError, Start};
use bowline::tui::screenshot::{Form, ScreenshotError, Wanted, screenshot};

fn main() -> ExitCode {
    cli::main(&Screens { open, draw })
}

fn open(options: Options, environment: Environment, git: Git, how: cli::Interactive) -> Opened {
    let start = Start {
        tour: how.tour,
        theme: how.theme,
        keymap: how.keymap,
        ascii: how.ascii,
        mouse: how.mouse,
    };
    Box::pin(async move {
        let ended = run::open(options, environment, git, start).await;
        ended.map_err(|error| match error {
            RunError::Connect(error) => ScreenError::Connect(error),
            RunError::Signal(signal) => ScreenError::Signal(signal),
            error => ScreenError::Terminal(error.to_string()),
        })
    })
}

fn draw(options: Options, environment: Environment, git: Git, what: Arguments) -> Drawn {
    let wanted = Wanted {
        screen: what.screen,
        size: what.size,
        form: match what.format {
            Format::Text => Form::Text,
            Format::Ansi => Form::Ansi,
            Format::Svg => Form::Svg,
        },
        theme: what.theme,
        ascii: what.ascii,
        frame: what.frame,
    };
    Box::pin(async move {
        let drawn = screenshot(&options, &environment, git, &wanted).await;
        drawn.map_err(|error| match error {
            ScreenshotError::Connect(error) => ScreenError::Connect(error),
            error => ScreenError::Terminal(error.to_string()),
        })
    })
}
