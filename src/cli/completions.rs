//! `bowline completions`: what a shell needs to complete bowline's verbs and flags.

use clap::{Args, Command};
use clap_complete::Shell;

/// What `completions` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Returns the script for the shell.
pub fn run(arguments: &Arguments, mut command: Command) -> String {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
