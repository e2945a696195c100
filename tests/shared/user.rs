//! A user in a test, who runs the program `bowline`.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crate::place::Target;

/// A user with a home directory, and with the flags that select a target.
#[derive(Clone)]
pub struct User {
    home: PathBuf,
    flags: Vec<String>,
}

/// The exit code and the output of one run of bowline.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl User {
    /// Returns a user who works on a target directly, without a proxy.
    pub fn of(target: &Target) -> User {
        User::with(target, target.flags())
    }

    /// Returns a user with these flags, instead of the flags that select the target.
    pub fn with(target: &Target, flags: Vec<String>) -> User {
        User {
            home: target.home.path().to_owned(),
            flags,
        }
    }

    /// Starts bowline with a command line, and does not wait for its end.
    pub fn start(&self, line: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_bowline"))
            .args(line.split_whitespace())
            .args(&self.flags)
            .current_dir(&self.home)
            .env_clear()
            .env("HOME", &self.home)
            .env("USER", "ana")
            .env("PATH", std::env::var_os("PATH").unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs bowline with a command line, and waits for its end.
    pub async fn run(&self, line: &str) -> Ran {
        ended(self.start(line)).await
    }

    /// Runs a command line of bowline that must succeed. Returns stdout and stderr.
    pub async fn done(&self, line: &str) -> (String, String) {
        let ran = self.run(line).await;
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        (ran.out, ran.err)
    }

    /// Runs a command line of bowline. It must exit with `code` and print the text `why` to stderr.
    pub async fn ends(&self, line: &str, code: i32, why: &str) -> Ran {
        let ran = self.run(line).await;
        assert_eq!(ran.code, code, "{line}: {}", ran.err);
        assert!(ran.err.contains(why), "{line}: {} has no {why:?}", ran.err);
        ran
    }
}

/// Waits until a started bowline ends. Returns its exit code and output.
pub async fn ended(run: Child) -> Ran {
    let output = tokio::task::spawn_blocking(move || run.wait_with_output());
    output.await.unwrap().unwrap().into()
}
