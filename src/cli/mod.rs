//! The command line: everything that reads arguments or prints.

use std::process::ExitCode;

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
