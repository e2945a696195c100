//! The surroundings of the process: its environment, and where its log goes.

use std::ffi::OsStr;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::controller::LogFormat;
use crate::connect::Environment;
use crate::text::CleanWriter;

/// Reads what the rest of the program is told about the process's surroundings.
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

/// Turns `BOWLINE_LOG=debug` into a log on stderr; without it only what is there by default is logged.
///
/// Colours are for terminals, never for files, and not where `NO_COLOR` is set.
pub(super) fn log_to_stderr(default: Option<&str>, format: LogFormat) {
    let filter = EnvFilter::try_from_env("BOWLINE_LOG").ok();
    let Some(filter) = filter.or_else(|| default.map(EnvFilter::new)) else {
        return;
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    let no_color = std::env::var_os("NO_COLOR");
    let _ = match format {
        LogFormat::Text if has_colours(std::io::stderr().is_terminal(), no_color.as_deref()) => {
            // The library escapes what events quote.
            log.with_ansi(true).with_writer(std::io::stderr).try_init()
        }
        LogFormat::Text => log
            .with_ansi(false)
            .with_writer(|| CleanWriter(std::io::stderr()))
            .try_init(),
        LogFormat::Json => log
            .with_ansi(false)
            .with_writer(|| CleanWriter(std::io::stderr()))
            .json()
            .flatten_event(true)
            .try_init(),
    };
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
}
