//! Signals: those that end the program, those that stop it, and SIGABRT.
//!
//! A separate thread handles them, so that the terminal is restored even if the event loop hangs. The event loop
//! gets the signal first, and has two seconds to end the program.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::unistd::{getpgid, getpgrp, getpid, getppid, getsid};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::kill_current_process_group;
use signal_hook::consts::{SIGABRT, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, pipe};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::hold;

/// The time limit for the event loop to end.
const GRACE: Duration = Duration::from_secs(2);

/// The request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// End the program; the number is the argument of [`end_by`].
    End(i32),
    /// Return the terminal to the shell and stop.
    Stop,
    /// Take over the terminal again, because the shell continues the program.
    Continued,
}

/// Starts to handle signals, until the program ends.
pub fn watch() -> io::Result<UnboundedReceiver<Signal>> {
    let ends = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
    let mut signals = Signals::new([SIGABRT, SIGTSTP, SIGCONT].iter().chain(&ends))?;
    // Registered after the signals above: the signal thread is notified first, then the aborting thread waits
    // for it.
    let gate = gate_of_abort()?;
    let (tell, told) = mpsc::unbounded_channel();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut has_ended = false;
            for signal in signals.forever() {
                answer(signal, &tell, &gate, &mut has_ended);
            }
        })?;
    Ok(told)
}

fn answer(signal: i32, tell: &UnboundedSender<Signal>, gate: &PipeReader, has_ended: &mut bool) {
    let held = hold::is_held();
    match signal {
        SIGCONT => {
            let _ = tell.send(Signal::Continued);
        }
        SIGTSTP if held => {
            let _ = tell.send(Signal::Stop);
        }
        SIGTSTP => {
            let _ = emulate_default_handler(signal);
        }
        SIGABRT => {
            hold::restore();
            open_gate(gate);
            end_by(signal);
        }
        end if held && !*has_ended && tell.send(Signal::End(end)).is_ok() => {
            *has_ended = true;
            std::thread::spawn(move || {
                std::thread::sleep(GRACE);
                end_by(end);
            });
        }
        end => end_by(end),
    }
}

/// Restores the terminal and ends the program as if the signal had not been caught.
pub fn end_by(signal: i32) {
    hold::restore();
    let _ = emulate_default_handler(signal);
}

/// Makes an aborting thread wait inside its own signal handler until the terminal is restored.
///
/// A signal handler can do little more than write to a pipe, and the process ends when the handler returns. So the
/// pipe is full: the write of the handler blocks until [`open_gate`] makes room.
fn gate_of_abort() -> io::Result<PipeReader> {
    let (reader, mut writer) = io::pipe()?;
    pipe::register(SIGABRT, OwnedFd::from(writer.try_clone()?))?;
    // Registering made the pipe non-blocking.
    let flags = fcntl_getfl(&writer)?;
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
    while writer.write(&[0; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags.difference(OFlags::NONBLOCK))?;
    Ok(reader)
}

fn open_gate(mut gate: &PipeReader) {
    let _ = gate.read(&mut [0; 64 * 1024]);
}

/// Returns whether a shell could continue the program: a shell in the same session that is not stopped together
/// with the program.
///
/// In a container, the session or the group may come from outside and then has the number 0. That is why
/// these are plain numbers, not process ids, which cannot be 0.
pub fn can_be_continued() -> bool {
    let Ok(session) = getsid(None) else {
        return false;
    };
    let (group, parent) = (getpgrp(), getppid());
    // Nobody waits for the group of the session leader.
    session != getpid()
        && parent.as_raw() != 0
        && getsid(Some(parent)) == Ok(session)
        && (getpgid(Some(parent)) != Ok(group) || group != session)
}

/// Stops the program and its process group until the shell continues it.
///
/// bowline catches SIGTSTP; this function does what SIGTSTP does by default.
pub fn stop() -> io::Result<()> {
    Ok(kill_current_process_group(rustix::process::Signal::STOP)?)
}
