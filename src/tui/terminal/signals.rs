//! Handles three kinds of signals: signals that end the process, signals that stop and continue it, and SIGABRT.
//!
//! A separate thread handles the signals, so that the terminal is restored even if the event loop hangs. The thread
//! passes each signal to the event loop first, which then has two seconds to end the process.

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

/// The time that the event loop has to end the process after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// The reaction that a signal requests from the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// End the process with this signal number; see [`end_by`].
    End(i32),
    /// Restore the terminal for the shell, then stop the process.
    Stop,
    /// Take over the terminal again, because the shell has continued the process.
    Continued,
}

/// Starts the thread that handles signals until the process ends. Returns the signals that the event loop must
/// handle.
pub fn watch() -> io::Result<UnboundedReceiver<Signal>> {
    let ends = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
    let mut signals = Signals::new([SIGABRT, SIGTSTP, SIGCONT].iter().chain(&ends))?;
    // Register this handler after the handlers above, because handlers run in this order. So the signal thread is
    // woken before the aborting thread starts to wait for it.
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

/// Restores the terminal, and then ends the process in the way that this signal does by default.
pub fn end_by(signal: i32) {
    hold::restore();
    let _ = emulate_default_handler(signal);
}

/// Makes an aborting thread wait in its signal handler until the terminal is restored.
///
/// A signal handler can do little more than write to a pipe, and the process ends when the handler returns. Therefore
/// this function fills the pipe: the write of the handler blocks until `open_gate` reads from the pipe.
fn gate_of_abort() -> io::Result<PipeReader> {
    let (reader, mut writer) = io::pipe()?;
    pipe::register(SIGABRT, OwnedFd::from(writer.try_clone()?))?;
    // The registration has made the pipe non-blocking, so make it blocking again.
    let flags = fcntl_getfl(&writer)?;
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
    while writer.write(&[0; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags.difference(OFlags::NONBLOCK))?;
    Ok(reader)
}

fn open_gate(mut gate: &PipeReader) {
    let _ = gate.read(&mut [0; 64 * 1024]);
}

/// Returns whether a shell can continue the process after a stop. The shell must be in the same session, and the stop
/// of the process must not stop the shell too.
///
/// In a container, the session or the process group may belong to the host; its number is then 0. A process id type
/// cannot store 0, so this code compares plain numbers.
pub fn can_be_continued() -> bool {
    let Ok(session) = getsid(None) else {
        return false;
    };
    let (group, parent) = (getpgrp(), getppid());
    // If this process leads its session, no shell waits for it.
    session != getpid()
        && parent.as_raw() != 0
        && getsid(Some(parent)) == Ok(session)
        && (getpgid(Some(parent)) != Ok(group) || group != session)
}

/// Stops all processes of this process group until the shell continues them. This is what SIGTSTP does by default,
/// but bowline catches that signal.
pub fn stop() -> io::Result<()> {
    Ok(kill_current_process_group(rustix::process::Signal::STOP)?)
}
