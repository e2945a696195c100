//! Finds the credentials for https servers: in the token file of the host, or with git's credential helpers.
//!
//! bowline never writes, logs or shows credentials, and removes them from messages of servers. bowline also never
//! changes the credentials that a credential helper stores, even if a server refuses them.

use std::io::Read;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Settings;
use super::address::Origin;
use super::budget::Budget;
use super::error::Cause;
use super::process::{self, Process};

/// The user name if a token file contains only a token. Any name works, because servers that accept tokens ignore the
/// user name.
const TOKEN_USER: &str = "x-access-token";

/// The largest size of a token file, and of a credential helper's output, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Returns the value of the HTTP header `Authorization` for an origin; None if no credentials are configured for it.
pub(super) fn find(
    settings: &Settings,
    origin: &Origin,
    path: &str,
    budget: &Budget,
) -> Result<Option<String>, Cause> {
    let found = match token(settings, origin)? {
        Some(found) => Some(found),
        None => helper(settings, origin, path, budget)?,
    };
    Ok(found.map(|(user, secret)| {
        let encoded = STANDARD.encode(format!("{user}:{secret}"));
        budget.hide(&secret);
        budget.hide(&encoded);
        format!("Basic {encoded}")
    }))
}

/// Returns the user and the token in the file `HOST` or `HOST_PORT` of the token directory; None if the file
/// does not exist.
fn token(settings: &Settings, origin: &Origin) -> Result<Option<(String, String)>, Cause> {
    let Some(directory) = &settings.tokens else {
        return Ok(None);
    };
    // The host name is safe as a file name, because the address parser accepts only letters, digits, dots and dashes
    // in it. An IPv6 address in brackets has no token file.
    let name = match origin.port {
        Some(port) => format!("{}_{port}", origin.host),
        None => origin.host.clone(),
    };
    let unreadable = |why: String| Cause::Token {
        host: name.clone(),
        why,
    };
    let mut text = String::new();
    match std::fs::File::open(directory.join(&name)) {
        Ok(file) => file
            .take(LONGEST)
            .read_to_string(&mut text)
            .map_err(|error| unreadable(error.kind().to_string()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.kind().to_string())),
    };
    let text = text.trim();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(unreadable("it is empty or has several lines".to_owned()));
    }
    let (user, secret) = text.split_once(':').unwrap_or((TOKEN_USER, text));
    Ok(Some((user.to_owned(), secret.to_owned())))
}

/// Returns the user and the password from git's credential helpers; None if no helper has credentials.
fn helper(
    settings: &Settings,
    origin: &Origin,
    path: &str,
    budget: &Budget,
) -> Result<Option<(String, String)>, Cause> {
    if !settings.credential_helpers {
        return Ok(None);
    }
    let mut command = Command::new(&settings.git);
    command.args(["-c", "credential.interactive=false", "credential", "fill"]);
    process::environment(&mut command, &settings.environment);
    // With these settings, git reads no repository's configuration, whatever the working directory is.
    command.current_dir("/").env("GIT_DIR", "/dev/null/none");
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GCM_INTERACTIVE", "never");
    let scheme = if origin.secure { "https" } else { "http" };
    let port = origin
        .port
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let host = &origin.host;
    let question = format!("protocol={scheme}\nhost={host}{port}\npath={path}\n\n");

    let unusable = |why: String| Cause::Program {
        program: "git credential".to_owned(),
        why,
    };
    let mut process =
        Process::start(command, budget).map_err(|error| unusable(error.to_string()))?;
    process.write(question.as_bytes());
    process.close_input();
    let mut answer = String::new();
    let read = (&mut process).take(LONGEST).read_to_string(&mut answer);
    read.map_err(|error| budget.verdict(|| unusable(error.kind().to_string())))?;
    let value = |key: &str| {
        answer
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .map(ToOwned::to_owned)
    };
    // If git fails, no helper has credentials, which is no error.
    Ok(value("username").zip(value("password")))
}
