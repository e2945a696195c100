//! One server process that cannot outlive the process that started it.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

/// The shell keeps our pipe as descriptor 3; the end of that pipe is the end of the server,
/// which also holds when this process is killed and no destructor runs.
const LEASH: &str = r#"exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(cat <&3 >/dev/null; kill -9 "$server") >/dev/null 2>&1 &
exec 3<&-
wait "$server""#;

/// A running server and the file that it logs to.
pub struct Server {
    name: &'static str,
    leash: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `program`, with everything that it prints in `NAME.log` below `directory`.
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
            // An interrupt in the terminal ends the tests; the leash then ends the server.
            .process_group(0)
            .spawn()
            .expect("sh starts");
        Self { name, leash, log }
    }

    /// Returns what it is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns how the server ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.leash.try_wait().ok().flatten()
    }

    /// Returns the last lines of the log, under a heading.
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
