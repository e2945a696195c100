//! Fetches over ssh with the user's ssh program, because this program already handles keys, agents and known hosts.

use std::io::Read;
use std::process::Command;

use gix::ObjectId;
use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection;

use super::Settings;
use super::address::Transport;
use super::budget::Budget;
use super::error::Cause;
use super::process::{self, Process};

/// Fetches a commit into a directory, from `git-upload-pack` on the ssh server.
pub(super) fn receive(
    settings: &Settings,
    transport: &Transport,
    commit: ObjectId,
    directory: &std::path::Path,
    budget: &Budget,
) -> Result<(), Cause> {
    let command = command(settings, transport)?;
    let unusable = |why: String| Cause::Program {
        program: "ssh".to_owned(),
        why,
    };
    let mut process =
        Process::start(command, budget).map_err(|error| unusable(error.to_string()))?;
    let input = process
        .take_input()
        .ok_or_else(|| unusable("it takes no input".to_owned()))?;
    let connection = Connection::new(
        &mut process as &mut dyn Read,
        input,
        Protocol::V2,
        "",
        None::<(String, Option<u16>)>,
        ConnectMode::Process,
        false,
    );
    let received = super::fetch::receive(connection, commit, directory, &settings.limits, budget);
    match received {
        // If the connection was lost, the reason is in the stderr of ssh.
        Err(Cause::Broken { why }) => {
            let words = process.complaint();
            Err(budget.verdict(|| complaint(&words, why, budget)))
        }
        received => received,
    }
}

/// Converts the stderr of ssh to the cause of a failed fetch. If stderr is empty, the cause contains `otherwise`.
fn complaint(words: &str, otherwise: String, budget: &Budget) -> Cause {
    // The error is the last line of stderr, because banners and warnings come before it.
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    let Some(line) = line else {
        return Cause::Broken { why: otherwise };
    };
    let why = budget.repeat(line);
    let has = |part: &str| words.contains(part);
    if has("not our ref") {
        // The server has closed the connection in the middle of the request, so it does not have the commit.
        Cause::NoCommit { why }
    } else if has("Permission denied")
        || has("Host key verification failed")
        || has("IDENTIFICATION HAS CHANGED")
    {
        Cause::Denied { why }
    } else if has("does not appear to be a git repository") || has("epository not found") {
        let why = words
            .lines()
            .find(|line| line.contains("appear to be") || line.contains("epository not found"))
            .map_or(why, |line| budget.repeat(line));
        Cause::NoRepository { why }
    } else if has("onnection") || has("resolve") || has("route to host") || has("timed out") {
        Cause::Unreachable { why }
    } else {
        Cause::Broken { why }
    }
}

fn command(settings: &Settings, transport: &Transport) -> Result<Command, Cause> {
    let Transport::Ssh {
        user,
        host,
        port,
        path,
    } = transport
    else {
        return Err(Cause::Program {
            program: "ssh".to_owned(),
            why: "the address is not one of ssh".to_owned(),
        });
    };
    let mut words = settings.ssh.iter();
    let Some(program) = words.next() else {
        return Err(Cause::Program {
            program: "ssh".to_owned(),
            why: "the settings name no program".to_owned(),
        });
    };
    let mut command = Command::new(program);
    process::environment(&mut command, &settings.environment);
    command.args(words);
    // With these options, ssh asks no questions and forwards nothing. The variable asks the server for version 2 of
    // the git protocol; a server that does not accept it uses another version.
    command.args([
        "-o",
        "BatchMode=yes",
        "-o",
        "ForwardAgent=no",
        "-o",
        "ForwardX11=no",
        "-o",
        "ClearAllForwardings=yes",
    ]);
    command.args([
        "-o",
        "PermitLocalCommand=no",
        "-o",
        "SendEnv=GIT_PROTOCOL",
        "-T",
    ]);
    command.env("GIT_PROTOCOL", "version=2");
    if let Some(port) = port {
        command.arg("-p").arg(port.to_string());
    }
    command.arg("--");
    command.arg(match user {
        Some(user) => format!("{user}@{host}"),
        None => host.clone(),
    });
    // The path cannot end the quotes, because the address parser accepts no quotes in it.
    command.arg(format!("git-upload-pack '{path}'"));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    use super::super::{Allowed, parse};
    use super::*;

    /// Returns addresses that could act as an option of ssh or as a command on the server.
    fn option_like() -> impl Strategy<Value = String> {
        let begin = prop::sample::select(vec![
            "ssh://",
            "ssh://git@",
            "git@",
            "-",
            "ssh://-",
            "git@-",
            "ssh://-oProxyCommand=",
            "",
        ]);
        let odd = "([a-z0-9.]{1,8}|[a-z0-9@:/'.;$`~-]{0,8})";
        let middle = prop::sample::select(vec!["/", ":", ":22/", "/-", ":-", "/'", "@"]);
        (begin, odd, middle, odd)
            .prop_map(|(begin, host, middle, path)| format!("{begin}{host}{middle}{path}"))
    }

    #[test]
    fn an_address_is_no_option_of_ssh() {
        const STRINGS: u32 = 10_000;
        let config = Config {
            cases: STRINGS,
            failure_persistence: None,
            ..Config::default()
        };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let settings = Settings::new("/nowhere");
        let reached = std::cell::Cell::new(0);
        let ran = TestRunner::new_with_rng(config, rng).run(&option_like(), |text| {
            let address = parse(&text, Allowed::default());
            let Ok(transport) = address.map(|address| address.transport) else {
                return Ok(());
            };
            if !matches!(transport, Transport::Ssh { .. }) {
                return Ok(());
            }
            reached.set(reached.get() + 1);
            let command = command(&settings, &transport).unwrap();
            let words: Vec<&str> = command
                .get_args()
                .map(|word| word.to_str().unwrap())
                .collect();
            let end = words.iter().position(|word| *word == "--").unwrap();
            let [host, remote] = words[end + 1..] else {
                panic!("{text:?}: {words:?}");
            };
            prop_assert!(
                !host.starts_with('-') && !host.contains("@-"),
                "{text:?}: {host:?}"
            );
            let path = remote
                .strip_prefix("git-upload-pack '")
                .and_then(|path| path.strip_suffix('\''));
            let path = path.unwrap_or("'");
            prop_assert!(
                !path.contains('\'') && !path.starts_with('-'),
                "{text:?}: {remote:?}"
            );
            Ok(())
        });
        ran.unwrap();
        assert!(reached.get() > 100, "{}", reached.get());
        println!(
            "{STRINGS} addresses, {} of them reach ssh: none is an option of ssh",
            reached.get()
        );
    }
}
