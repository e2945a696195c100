//! Reads the environment of the bowline process, and configures its log.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use super::controller::LogFormat;
use crate::connect::Environment;
use crate::text;

/// Reads the environment variables, directories and user name of the bowline process.
pub(super) fn environment() -> Environment {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let user = ["USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    Environment {
        kubeconfig: variable("KUBECONFIG"),
        home: directories::BaseDirs::new().map(|base| base.home_dir().to_owned()),
        data_dir: directories::ProjectDirs::from("", "", "bowline")
            .map(|project| project.data_dir().to_owned()),
        config_dir: directories::ProjectDirs::from("", "", "bowline")
            .map(|project| project.config_dir().to_owned()),
        working_dir: std::env::current_dir().ok(),
        cache_dir: directories::ProjectDirs::from("", "", "bowline")
            .map(|project| project.cache_dir().to_owned()),
        variables: std::env::vars_os().collect(),
        in_pod: variable("KUBERNETES_SERVICE_HOST").is_some()
            && std::path::Path::new("/var/run/secrets/kubernetes.io/serviceaccount/token").exists(),
        user: user.unwrap_or_else(|| "local".to_owned()),
        program: std::env::current_exe().ok(),
    }
}

/// Logs to stderr. The environment variable `BOWLINE_LOG` sets the level, or else `default`. Without the
/// variable and `default`, there is no log.
///
/// The log has colours only on a terminal, and only if `NO_COLOR` is not set.
pub(super) fn log_to_stderr(default: Option<&str>, format: LogFormat) {
    let filter = EnvFilter::try_from_env("BOWLINE_LOG").ok();
    let Some(filter) = filter.or_else(|| default.map(EnvFilter::new)) else {
        return;
    };
    let no_color = std::env::var_os("NO_COLOR");
    let colours = has_colours(std::io::stderr().is_terminal(), no_color.as_deref());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours && format == LogFormat::Text)
        .with_writer(|| LogWriter(std::io::stderr()));
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}

/// Writes log events to `W`. Removes control characters except the log's own colours, and indents all lines of an
/// event after the first. So text in an event cannot look like another event.
struct LogWriter<W>(W);

impl<W: Write> Write for LogWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let event = String::from_utf8_lossy(bytes);
        let cleaned = without_controls(event.trim_end_matches('\n'));
        self.0.write_all(format!("{cleaned}\n").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Removes control characters from a log event, but keeps escape sequences that select a colour or a weight (`ESC [
/// 32 m`). These come only from the log library, because it has escaped those in quoted texts.
fn without_controls(event: &str) -> String {
    let mut cleaned = String::new();
    let mut rest = event;
    while let Some(at) = rest.find("\u{1b}[") {
        let after = &rest[at + 2..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let end = match after[digits..].starts_with('m') && digits <= 2 {
            true => at + 2 + digits + 1,
            false => {
                cleaned += &text::clean(&rest[..at + 2]);
                rest = after;
                continue;
            }
        };
        cleaned += &text::clean(&rest[..at]);
        cleaned += &rest[at..end];
        rest = &rest[end..];
    }
    cleaned += &text::clean(rest);
    cleaned.replace('\n', "\n  ")
}

fn has_colours(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_colours_on_a_terminal_only_and_never_with_no_color() {
        for (is_terminal, no_color, colours) in [
            (true, None, true),
            (true, Some(""), true),
            (true, Some("1"), false),
            (false, None, false),
            (false, Some(""), false),
        ] {
            let no_color = no_color.map(OsStr::new);
            assert_eq!(has_colours(is_terminal, no_color), colours, "{no_color:?}");
        }
    }

    #[test]
    fn a_quoted_text_in_the_log_steers_no_terminal_and_starts_no_line() {
        for (event, written) in [
            (
                "\u{1b}[32m INFO\u{1b}[0m started\n",
                "\u{1b}[32m INFO\u{1b}[0m started\n",
            ),
            ("a\u{202e}b\nERROR forged\n", "a\u{fffd}b\n  ERROR forged\n"),
            (
                "a\u{1b}[2Jb\u{1b}]0;t\u{7}\n",
                "a\u{fffd}[2Jb\u{fffd}]0;t\u{fffd}\n",
            ),
            ("\u{1b}[\u{1b}[1m", "\u{fffd}[\u{1b}[1m\n"),
        ] {
            let mut out = Vec::new();
            LogWriter(&mut out).write_all(event.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
