//! Credential plugins of a kubeconfig (`exec`), kept away from the terminal.
//!
//! The client library lends a plugin our standard input and error unless its
//! mode is `Never`. That alone would still leave it `/dev/tty`, and time without
//! end. So the plugin is started through this program, which first leaves the
//! terminal's session and then waits no longer than it was told.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use kube::config::{ExecConfig, ExecInteractiveMode};

/// The hidden verb of the program under which [`run`] is called.
pub const VERB: &str = "credential-plugin";

/// Changes a kubeconfig's plugin so that it can neither read from nor write to a terminal.
///
/// Returns the plugin's command as the error when it says that it cannot work so.
/// Without a `program` (this executable) the plugin runs directly, in our session.
pub(super) fn detach(
    exec: &mut ExecConfig,
    program: Option<&Path>,
    deadline: Duration,
) -> Result<(), String> {
    let command = exec.command.clone().unwrap_or_default();
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(command);
    }
    exec.interactive_mode = Some(ExecInteractiveMode::Never);
    if let Some(program) = program.and_then(Path::to_str)
        && let Some(plugin) = exec.command.take()
    {
        let own = [
            VERB.to_owned(),
            deadline.as_secs().max(1).to_string(),
            plugin,
        ];
        exec.args = Some(
            own.into_iter()
                .chain(exec.args.take().unwrap_or_default())
                .collect(),
        );
        exec.command = Some(program.to_owned());
    }
    Ok(())
}

/// Runs a plugin in a session of its own and ends both when the time is over.
pub fn run(command: &str, arguments: &[String], deadline: Duration) -> ExitCode {
    #[cfg(unix)]
    {
        // Fails only for the leader of a process group, which a child of ours is not.
        if let Err(error) = rustix::process::setsid() {
            eprintln!("cannot leave the terminal's session: {error}");
            return ExitCode::FAILURE;
        }
    }
    let name = command.to_owned();
    std::thread::spawn(move || {
        std::thread::sleep(deadline);
        eprintln!("credential plugin {name} took longer than {deadline:?}");
        end_session();
    });
    match Command::new(command).args(arguments).status() {
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("credential plugin {command}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(unix)]
fn end_session() {
    // The session is ours alone: this program, the plugin and what it started.
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::KILL);
    std::process::exit(1);
}

#[cfg(not(unix))]
fn end_session() {
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(mode: Option<ExecInteractiveMode>) -> ExecConfig {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "login",
            "args": ["--for", "shop"],
            "interactiveMode": mode,
        }))
        .unwrap()
    }

    #[test]
    fn every_mode_but_always_becomes_never() {
        for mode in [
            None,
            Some(ExecInteractiveMode::Never),
            Some(ExecInteractiveMode::IfAvailable),
        ] {
            let mut exec = plugin(mode);
            detach(
                &mut exec,
                Some(Path::new("/bin/bowline")),
                Duration::from_secs(9),
            )
            .unwrap();
            assert_eq!(exec.interactive_mode, Some(ExecInteractiveMode::Never));
            assert_eq!(exec.command.as_deref(), Some("/bin/bowline"));
            assert_eq!(
                exec.args.unwrap(),
                ["credential-plugin", "9", "login", "--for", "shop"]
            );
        }
    }

    #[test]
    fn without_a_program_the_plugin_runs_directly() {
        let mut exec = plugin(None);
        detach(&mut exec, None, Duration::from_secs(9)).unwrap();
        assert_eq!(exec.interactive_mode, Some(ExecInteractiveMode::Never));
        assert_eq!(exec.command.as_deref(), Some("login"));
    }

    #[test]
    fn a_plugin_that_needs_a_terminal_is_refused_by_name() {
        let mut exec = plugin(Some(ExecInteractiveMode::Always));
        assert_eq!(
            detach(&mut exec, None, Duration::from_secs(9)),
            Err("login".to_owned())
        );
    }
}
