//! A child process (ssh or git) with a deadline.
//!
//! The child process has its own process group, only the environment variables in the settings, and no terminal.
//! Reading its output waits only until the deadline, so the caller is not delayed by a process that hangs, or by one
//! that the child process left behind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

#[cfg(unix)]
pub(super) use unix::Process;

#[cfg(not(unix))]
pub(super) use elsewhere::Process;

/// Gives a command the environment variables in the settings and no others. Leaves out variables with which git or
/// ssh would run other programs or ask the user.
pub(super) fn environment(command: &mut Command, variables: &BTreeMap<OsString, OsString>) {
    command.env_clear();
    for (name, value) in variables {
        let shown = name.to_string_lossy();
        if !shown.starts_with("GIT_") && !shown.starts_with("SSH_ASKPASS") && shown != "DISPLAY" {
            command.env(name, value);
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    use super::super::budget::Budget;

    /// The time between two checks whether the child process has exited.
    const MOMENT: Duration = Duration::from_millis(20);

    /// The number of bytes of the child process's stderr that are kept.
    const COMPLAINT: usize = 2048;

    pub(in super::super) struct Process<'a> {
        child: Child,
        input: Option<ChildStdin>,
        output: ChildStdout,
        errors: Option<ChildStderr>,
        complaint: Vec<u8>,
        ended: bool,
        budget: &'a Budget,
    }

    impl<'a> Process<'a> {
        pub fn start(mut command: Command, budget: &'a Budget) -> io::Result<Self> {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()?;
            let (input, errors) = (child.stdin.take(), child.stderr.take());
            let output = child
                .stdout
                .take()
                .ok_or_else(|| io::Error::other("the program has no output"))?;
            Ok(Self {
                child,
                input,
                output,
                errors,
                complaint: Vec::new(),
                ended: false,
                budget,
            })
        }

        /// Writes to the stdin of the child process. An error is ignored, because the next read of its output then
        /// fails too.
        pub fn write(&mut self, bytes: &[u8]) {
            if let Some(input) = &mut self.input {
                let _ = input.write_all(bytes);
            }
        }

        /// Closes the stdin of the child process.
        pub fn close_input(&mut self) {
            self.input = None;
        }

        /// Returns the stdin of the child process; None if it was closed or returned before.
        pub fn take_input(&mut self) -> Option<ChildStdin> {
            self.input.take()
        }

        /// Kills the child process if it still runs, and returns its stderr.
        pub fn complaint(&mut self) -> String {
            if !self.ended {
                self.kill();
            }
            while let Ok(left) = self.budget.remaining() {
                let Some(errors) = &self.errors else { break };
                let mut waiting = [PollFd::new(errors, PollFlags::IN)];
                match wait(&mut waiting, left.min(MOMENT)) {
                    Ok(true) => self.drain(),
                    // The child process has exited. The pipe may still be open, because another process has it, but
                    // the output of that process is not needed.
                    Ok(false) if self.has_exited() => break,
                    Ok(false) => {}
                    Err(_) => break,
                }
            }
            String::from_utf8_lossy(&self.complaint).into_owned()
        }

        fn id(&self) -> Option<Pid> {
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        }

        /// Returns whether the child process has exited. The process is not reaped, so its id cannot become that of
        /// another process.
        fn has_exited(&self) -> bool {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.id()
                .is_none_or(|id| !matches!(waitid(WaitId::Pid(id), look), Ok(None)))
        }

        fn kill(&self) {
            // The id of the process group is still valid, because the child process was not reaped.
            if let Some(group) = self.id() {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }

        fn drain(&mut self) {
            let mut bytes = [0; 1024];
            let Some(errors) = &mut self.errors else {
                return;
            };
            match errors.read(&mut bytes) {
                Ok(read) if read > 0 => {
                    let room = COMPLAINT.saturating_sub(self.complaint.len());
                    self.complaint.extend(bytes.iter().take(read.min(room)));
                }
                _ => self.errors = None,
            }
        }
    }

    /// Waits at most the time `left` until one of the pipes has bytes. Returns whether one has.
    fn wait(waiting: &mut [PollFd<'_>], left: Duration) -> io::Result<bool> {
        let left =
            Timespec::try_from(left).map_err(|_| io::Error::other("the deadline is too far"))?;
        match poll(waiting, Some(&left)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    impl Read for Process<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            loop {
                let left = self.budget.remaining()?;
                let mut waiting = vec![PollFd::new(&self.output, PollFlags::IN)];
                waiting.extend(
                    self.errors
                        .iter()
                        .map(|errors| PollFd::new(errors, PollFlags::IN)),
                );
                wait(&mut waiting, left)?;
                let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
                drop(waiting);
                if ready.get(1) == Some(&true) {
                    self.drain();
                }
                if ready.first() == Some(&true) {
                    let read = self.output.read(buffer)?;
                    self.ended = read == 0;
                    self.budget.receive(read)?;
                    return Ok(read);
                }
            }
        }
    }

    impl Drop for Process<'_> {
        fn drop(&mut self) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::io::{self, Read};
    use std::process::{ChildStdin, Command};

    use super::super::budget::Budget;

    /// A replacement for platforms without process groups: starting a child process always fails.
    pub(in super::super) struct Process<'a>(&'a Budget);

    impl<'a> Process<'a> {
        pub fn start(_: Command, _: &'a Budget) -> io::Result<Self> {
            Err(io::Error::other(
                "ssh and credential helpers need a Unix system; use https with a token",
            ))
        }

        pub fn write(&mut self, _: &[u8]) {}

        pub fn close_input(&mut self) {}

        pub fn take_input(&mut self) -> Option<ChildStdin> {
            None
        }

        pub fn complaint(&mut self) -> String {
            String::new()
        }
    }

    impl Read for Process<'_> {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0.remaining()?;
            Ok(0)
        }
    }
}
