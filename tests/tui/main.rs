//! The program in a real terminal: what it draws, what it does for keys, and how it leaves.
//!
//! Proofs run on the embedded API and on a real cluster, as `embedded::proof` and `cluster::proof`; those
//! about the terminal alone as `terminal::proof`. `cargo test --test tui -- --nocapture` prints what they
//! measured; a word before `--` chooses a proof.

// Clippy allows it in `#[test]` functions only, not in what they share.
#![allow(clippy::unwrap_used)]

mod echo;
mod escapes;
mod pty;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

/// Nothing takes this long; what does hangs.
const HANG: Duration = Duration::from_secs(60);

macro_rules! proofs {
    ($($module:ident :: $proof:ident),* $(,)?) => {
        [$((
            concat!(stringify!($module), "::", stringify!($proof)),
            $module::$proof as fn(),
        )),*]
    };
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut words = std::env::args().skip(1);
    if let (Some("--play"), Some(part)) = (words.next().as_deref(), words.next()) {
        runtime.block_on(echo::play(&part));
        runtime.shutdown_background();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    // Side by side they would measure each other.
    arguments.test_threads.get_or_insert(1);
    let alone = proofs![
        escapes::what_passes,
        terminal::comes_back_at_the_end,
        terminal::tells_what_comes_from_it,
        terminal::comes_back_after_a_panic,
        terminal::comes_back_after_an_abort,
        terminal::comes_back_after_a_signal,
        terminal::sleeps_and_wakes,
        terminal::draws_a_burst_at_once,
    ];
    let mut trials = Vec::new();
    for (name, run) in alone {
        trials.push(Trial::test(name, move || {
            run();
            Ok(())
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
