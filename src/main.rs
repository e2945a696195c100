//! The `bowline` program: wiring only.

fn main() -> std::process::ExitCode {
    bowline::cli::main()
}
