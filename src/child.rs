//! Runs an external program until it ends, with limits for its time and its output.
//!
//! A program can leave a background process that keeps the output pipes open, for example a job of a git
//! hook. Therefore this module waits for the end of the program, and not for the end of its output.

use std::io;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The limits for one run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest time of the run; None for no limit.
    pub time: Option<Duration>,
    /// The maximum size of stdout and stderr together, in bytes.
    pub output: usize,
    /// Whether the program gets its own process group, so that all its processes can be killed at a limit.
    /// Such a program cannot read from the terminal.
    pub is_group: bool,
}

/// The reasons why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program could not be started, or its output could not be read.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The program exceeded this time limit and was killed.
    #[error("it took longer than {0:?}")]
    TooLong(Duration),
    /// The program exceeded this output limit (bytes) and was killed.
    #[error("it wrote more than {}", crate::text::bytes(*.0 as u64))]
    TooMuch(usize),
}

/// Runs a program with `input` as its standard input. Returns its output and exit status.
pub fn run(command: &mut Command, input: &[u8], limits: &Limits) -> Result<Output, RunError> {
    let mut said = Vec::new();
    let mut output = run_into(command, input, limits, &mut |bytes| said.extend(bytes))?;
    output.stdout = said;
    Ok(output)
}

/// Runs a program and passes its standard output to `stdout` in pieces, so that a long output needs little
/// memory. Therefore the field `stdout` of the result is empty.
pub fn run_into(
    command: &mut Command,
    input: &[u8],
    limits: &Limits,
    stdout: &mut dyn FnMut(&[u8]),
) -> Result<Output, RunError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    if limits.is_group {
        std::os::unix::process::CommandExt::process_group(command, 0);
    }
    let mut child = command.spawn()?;
    let ended = system::output(&mut child, input, limits, stdout);
    if ended.is_err() {
        system::end(&mut child, limits.is_group);
    }
    ended
}

#[cfg(unix)]
mod system {
    use std::io::{self, ErrorKind, Read, Write};
    use std::os::fd::AsFd;
    use std::process::{Child, Output};
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::ioctl_fionbio;
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    use super::{Limits, RunError};

    /// The interval between two checks whether the program has ended.
    const MOMENT: Duration = Duration::from_millis(20);
    /// How long a program may take to exit after the signal TERM, before it is killed.
    const FAREWELL: Duration = Duration::from_secs(1);
    /// The maximum number of bytes to read from a pipe between two checks whether the program has ended.
    const PIECE: usize = 1 << 20;

    /// Writes the input to the program, and passes its standard output to `take` until the program ends.
    pub(super) fn output(
        child: &mut Child,
        mut input: &[u8],
        limits: &Limits,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Output, RunError> {
        let start = Instant::now();
        let (mut stdin, mut stdout, mut stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes = [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            ioctl_fionbio(pipe, true).map_err(io::Error::from)?;
        }
        let (mut said, mut complained) = (Vec::new(), Vec::new());
        let mut length: usize = 0;
        loop {
            if let Some(pipe) = &mut stdin
                && !write(pipe, &mut input)
            {
                stdin = None;
            }
            // The check comes before the reads: if the program has ended, all its output is already in the
            // pipes.
            let ended = child.try_wait()?;
            if stdout.as_mut().is_some_and(|pipe| !read(pipe, &mut said)) {
                stdout = None;
            }
            if stderr
                .as_mut()
                .is_some_and(|pipe| !read(pipe, &mut complained))
            {
                stderr = None;
            }
            length = length.saturating_add(said.len());
            if length.saturating_add(complained.len()) > limits.output {
                return Err(RunError::TooMuch(limits.output));
            }
            take(&said);
            said.clear();
            if let Some(status) = ended {
                return Ok(Output {
                    status,
                    stdout: Vec::new(),
                    stderr: complained,
                });
            }
            if let Some(time) = limits.time
                && start.elapsed() >= time
            {
                return Err(RunError::TooLong(time));
            }
            let mut pipes = Vec::new();
            pipes.extend(stdin.iter().map(|it| PollFd::new(it, PollFlags::OUT)));
            pipes.extend(stdout.iter().map(|it| PollFd::new(it, PollFlags::IN)));
            pipes.extend(stderr.iter().map(|it| PollFd::new(it, PollFlags::IN)));
            match (stdout.is_some() || stderr.is_some(), limits.time) {
                // The program has closed its output and has no time limit. It should end at once, so a
                // blocking wait is enough.
                (false, None) => {
                    drop(pipes);
                    stdin = None;
                    child.wait()?;
                }
                (false, Some(_)) => std::thread::sleep(Duration::from_millis(1)),
                (true, _) => wait(&mut pipes)?,
            }
        }
    }

    /// Waits until one of the pipes is ready, for at most one [`MOMENT`].
    fn wait(pipes: &mut [PollFd<'_>]) -> Result<(), RunError> {
        let moment = Timespec::try_from(MOMENT).ok();
        match poll(pipes, moment.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Writes as many bytes as the pipe accepts. Returns whether some input is still unwritten.
    fn write(pipe: &mut impl Write, input: &mut &[u8]) -> bool {
        while !input.is_empty() {
            match pipe.write(input) {
                Ok(written) => *input = input.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        false
    }

    /// Reads the bytes that are now in the pipe. Returns false if no more bytes can come.
    fn read(pipe: &mut impl Read, into: &mut Vec<u8>) -> bool {
        let mut bytes = [0; 64 << 10];
        let begin = into.len();
        while into.len() - begin < PIECE {
            match pipe.read(&mut bytes) {
                Ok(0) => return false,
                Ok(read) => into.extend(bytes.iter().take(read)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// Kills a program and all processes that it started.
    pub(super) fn end(child: &mut Child, is_group: bool) {
        // Nobody has waited for the child yet, so its process id is still valid.
        let id = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw);
        let Some(own) = id(child.id()) else { return };
        if is_group {
            let _ = kill_process_group(own, Signal::KILL);
        } else {
            let started = descendants(child.id());
            // The signal TERM first: git removes its lock files when it gets TERM.
            let _ = kill_process(own, Signal::TERM);
            let begun = Instant::now();
            while begun.elapsed() < FAREWELL && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            for process in started.into_iter().filter_map(id) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Returns the process ids of all descendants of a process; an empty list on a system without `/proc`.
    fn descendants(process: u32) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let parents: Vec<(u32, u32)> = numbers
            .filter_map(|process: u32| {
                let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
                // The format is `NUMBER (NAME) STATE PARENT ...`. A name can contain parentheses and spaces.
                let (_, rest) = stat.rsplit_once(')')?;
                Some((process, rest.split_whitespace().nth(1)?.parse().ok()?))
            })
            .collect();
        let mut found = vec![process];
        let mut next = 0;
        while let Some(&of) = found.get(next) {
            next += 1;
            let own = parents.iter().filter(|(_, parent)| *parent == of);
            found.extend(own.map(|(process, _)| *process));
        }
        found.split_off(1)
    }
}

#[cfg(not(unix))]
mod system {
    use std::io::{Read, Write};
    use std::process::{Child, Output};

    use super::{Limits, RunError};

    /// Reads the output until its end, because this system has no way to poll the pipes.
    pub(super) fn output(
        child: &mut Child,
        input: &[u8],
        _: &Limits,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Output, RunError> {
        let (stdin, mut stdout, mut stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut complained = Vec::new();
        std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                scope.spawn(move || drop(stdin.write_all(input)));
            }
            if let Some(stderr) = &mut stderr {
                scope.spawn(|| drop(stderr.read_to_end(&mut complained)));
            }
            if let Some(stdout) = &mut stdout {
                let mut bytes = [0; 64 << 10];
                while let Ok(read @ 1..) = stdout.read(&mut bytes) {
                    take(bytes.get(..read).unwrap_or_default());
                }
            }
        });
        Ok(Output {
            status: child.wait()?,
            stdout: Vec::new(),
            stderr: complained,
        })
    }

    pub(super) fn end(child: &mut Child, _: bool) {
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8], limits: &Limits) -> Result<Output, RunError> {
        run(Command::new("sh").args(["-c", script]), input, limits)
    }

    const PLAIN: Limits = Limits {
        time: None,
        output: 1 << 20,
        is_group: false,
    };

    #[test]
    fn the_end_of_the_program_is_awaited_and_not_the_end_of_its_output() {
        for is_group in [false, true] {
            let limits = Limits { is_group, ..PLAIN };
            let begun = std::time::Instant::now();
            let output = shell("sleep 60 & echo $!; echo no >&2; exit 3", b"", &limits).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(30));
            assert_eq!(output.status.code(), Some(3));
            assert_eq!(output.stderr, b"no\n");
            let job = String::from_utf8(output.stdout).unwrap();
            let killed = Command::new("kill").arg(job.trim()).status().unwrap();
            assert!(killed.success(), "the job of the program still runs");
        }
    }

    #[test]
    fn all_input_is_read_and_all_output_is_collected() {
        let input = vec![b'x'; 900_000];
        let output = shell("cat", &input, &PLAIN).unwrap();
        assert_eq!(output.stdout, input);
        // A program that does not read its input does not block the writer.
        let output = shell("exec 0<&-; echo done", &input, &PLAIN).unwrap();
        assert_eq!(output.stdout, b"done\n");
        let output = shell("exec >&- 2>&-; exit 4", b"", &PLAIN).unwrap();
        assert_eq!(output.status.code(), Some(4));
    }

    #[test]
    fn a_limit_ends_the_program() {
        for is_group in [false, true] {
            let endless = Limits { is_group, ..PLAIN };
            let error = shell("exec yes", b"", &endless).unwrap_err();
            assert!(matches!(error, RunError::TooMuch(_)), "{error}");
            assert_eq!(error.to_string(), "it wrote more than 1.0 MB");
            let slow = Limits {
                time: Some(Duration::from_millis(50)),
                ..endless
            };
            for script in [
                "exec sleep 60",
                "sleep 60; true",
                "exec >&- 2>&-; exec sleep 60",
            ] {
                let begun = std::time::Instant::now();
                let error = shell(script, b"", &slow).unwrap_err();
                assert!(matches!(error, RunError::TooLong(_)), "{error}");
                assert!(begun.elapsed() < Duration::from_secs(30), "{script}");
            }
        }
    }
}
