//! Signals: those that end the program, those that put it to sleep, and the one that it aborts with.
//!
//! A thread of its own answers them, so that the terminal comes back also when the run loop hangs. The
//! loop is told first: it has two seconds to end in order.

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

/// How long the run loop may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// To end; the number is what [`end_by`] takes.
    End(i32),
    /// To give the terminal to the shell and sleep.
    Stop,
    /// To take the terminal again.
    Continued,
}

/// Begins to answer signals, for as long as the program lives.
pub fn watch() -> io::Result<UnboundedReceiver<Signal>> {
    let ends = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
    let mut signals = Signals::new([SIGABRT, SIGTSTP, SIGCONT].iter().chain(&ends))?;
    // After the thread is told, whoever aborts has to wait for it.
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

/// Gives the terminal back and ends the program as if the signal had not been caught.
pub fn end_by(signal: i32) {
    hold::restore();
    let _ = emulate_default_handler(signal);
}

/// Makes a thread that aborts wait inside its own signal handler until the terminal is back.
///
/// A handler may do little more than write to a pipe, and the process is gone when it returns. So it is
/// given a pipe that is full: it waits until [`open_gate`] makes room.
fn gate_of_abort() -> io::Result<PipeReader> {
    let (reader, mut writer) = io::pipe()?;
    pipe::register(SIGABRT, OwnedFd::from(writer.try_clone()?))?;
    // Registering made it one that never waits.
    let flags = fcntl_getfl(&writer)?;
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
    while writer.write(&[0; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags.difference(OFlags::NONBLOCK))?;
    Ok(reader)
}

fn open_gate(mut gate: &PipeReader) {
    let _ = gate.read(&mut [0; 64 * 1024]);
}

/// Tells whether there is a shell that would continue us: one in our session that is not stopped with us.
///
/// In a container a session or a group may have begun outside, and then its number is 0: which is why these
/// are numbers here, and no process ids that cannot be 0.
pub fn can_be_continued() -> bool {
    let Ok(session) = getsid(None) else {
        return false;
    };
    let (group, parent) = (getpgrp(), getppid());
    // The group of the one that leads the session has nobody to wait for it.
    session != getpid()
        && parent.as_raw() != 0
        && getsid(Some(parent)) == Ok(session)
        && (getpgid(Some(parent)) != Ok(group) || group != session)
}

/// Stops the program and whatever the shell started with it, until it is continued.
///
/// This is not SIGTSTP, which is caught, but what SIGTSTP would do.
pub fn stop() -> io::Result<()> {
    Ok(kill_current_process_group(rustix::process::Signal::STOP)?)
}
