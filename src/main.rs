//! The `bowline` program: wiring only.

use std::process::ExitCode;

use bowline::cli::{self, Opened, ScreenError, Screens};
use bowline::connect::{Environment, Options};
use bowline::resolve::git::Git;
use bowline::tui::run::{self, RunError, Start};

fn main() -> ExitCode {
    cli::main(&Screens { open })
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
            error => ScreenError::Terminal(error.to_string()),
        })
    })
}
