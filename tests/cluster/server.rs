//! A server process that ends together with the test process that started it.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

/// The shell script that runs a server. Its descriptor 3 is a pipe from the test process, and it kills the
/// server when the pipe closes. So the server also ends if the test process is killed and runs no destructor.
const LEASH: &str = r#"exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(cat <&3 >/dev/null; kill -9 "$server") >/dev/null 2>&1 &
exec 3<&-
wait "$server""#;

/// A running server, with its log file.
pub struct Server {
    name: &'static str,
    leash: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `program`. Its output goes to the file `NAME.log` in `directory`.
    pub fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        directory: &Path,
    ) -> Self {
        let log = directory.join(format!("{name}.log"));
        let out = fs::File::create(&log).expect("a log file in the cluster's directory");
        let err = out.try_clone().expect("a second handle of the log file");
        let leash = Command::new("sh")
            .args(["-c", LEASH, name])
            .arg(program)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(out)
            .stderr(err)
            // With its own process group, the server does not get the interrupt of the terminal. It ends when
            // the tests end and the pipe closes.
            .process_group(0)
            .spawn()
            .expect("sh starts");
        Self { name, leash, log }
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the exit status of the server; None while the server runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.leash.try_wait().ok().flatten()
    }

    /// Returns the last 25 lines of the server's log, with a heading.
    pub fn tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(25);
        let last = lines.get(from..).unwrap_or_default().join("\n");
        format!("--- last lines of {}:\n{last}", self.name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.leash.stdin.take());
        let _ = self.leash.wait();
    }
}
