//! Runs the credential plugins of a kubeconfig (`exec`) without access to the terminal.
//!
//! The client library gives a plugin the standard input and error of bowline, unless the plugin's mode is `Never`.
//! Even with `Never`, a plugin could open `/dev/tty`, run or write without end, or leave a process behind that keeps
//! its output open. Therefore the client library starts bowline a second time with a hidden verb, and this second
//! process runs the plugin. It leaves the session of the terminal, limits the time and the output of the plugin, and
//! ends when the plugin ends.

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use kube::config::{ExecConfig, ExecInteractiveMode};

use super::settings::{BadSetting, has_bad_token};
use crate::child::{self, Limits};

/// The hidden verb with which bowline runs a credential plugin; see [`run`].
pub const VERB: &str = "credential-plugin";

/// Changes the credential plugin of a kubeconfig so that it runs without access to a terminal.
///
/// If the plugin needs a terminal, fails with the plugin's command. `program` is the path of bowline's executable; if
/// it is None, the plugin runs directly, in the session of this process.
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

/// The largest size of a credential plugin's output, in bytes.
const OUTPUT: usize = 1 << 20;

/// Runs a credential plugin in a new session, kills it at the deadline, and copies its output to the output of this
/// process.
pub fn run(command: &str, arguments: &[String], deadline: Duration) -> ExitCode {
    #[cfg(unix)]
    {
        // `setsid` fails only in a process that leads a process group. This process does not, because another bowline
        // process has started it.
        if let Err(error) = rustix::process::setsid() {
            eprintln!("cannot leave the terminal's session: {error}");
            return ExitCode::FAILURE;
        }
    }
    let limits = Limits {
        time: Some(deadline),
        output: OUTPUT,
        is_group: true,
    };
    match child::run(Command::new(command).args(arguments), b"", &limits) {
        Ok(output) => passed_on(command, &output),
        Err(error) => {
            eprintln!("credential plugin {command}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Copies the output of a credential plugin to the output of this process. Fails if the output contains a token that
/// is not valid in an HTTP header.
fn passed_on(command: &str, output: &Output) -> ExitCode {
    let _ = std::io::stderr().write_all(&output.stderr);
    if has_bad_token(&String::from_utf8_lossy(&output.stdout)) {
        eprintln!("credential plugin {command}: {}", BadSetting::Token);
        return ExitCode::FAILURE;
    }
    let mut stdout = std::io::stdout();
    let written = stdout.write_all(&output.stdout);
    if written.and_then(|()| stdout.flush()).is_err() {
        return ExitCode::FAILURE;
    }
    let code = output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
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
