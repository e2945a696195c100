//! Runs the parser of the `cel` crate on threads with a very large stack.
//!
//! The parser needs such a stack because it recurses for each step of a chain like `a.b.c`: up to 4 KiB per byte of
//! source in a debug build. A level of brackets needs some hundred KiB, and the parser accepts 96 levels. A few of
//! these threads are kept and reused, because starting one costs more than parsing a normal expression.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

const STACK_PER_BYTE: usize = 8 << 10;
const STACK_AT_LEAST: usize = 64 << 20;
/// The longest source that a reused thread can parse, in bytes. A longer source gets its own thread.
const LONGEST: usize = 16 << 10;
/// The largest number of idle threads that are kept for reuse.
const KEPT: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

/// The channels to idle parser threads.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Runs `work` for a source of `length` bytes on a thread with a large enough stack. Fails with the reason if
/// no thread can be started.
pub(super) fn run<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (give, take) = channel();
    let job: Job = Box::new(move || {
        // The parsed tree is dropped on this thread too, because dropping it is as recursive as parsing.
        let _ = give.send(catch_unwind(AssertUnwindSafe(work)));
    });
    let worker = match length <= LONGEST {
        true => idle().pop(),
        false => None,
    };
    let worker = match worker {
        Some(worker) => worker,
        None => start(length)?,
    };
    let gave_up = || "the parser gave up".to_owned();
    worker.send(job).map_err(|_| gave_up())?;
    let result = take.recv().map_err(|_| gave_up())?.map_err(|_| gave_up());
    if length <= LONGEST {
        let mut idle = idle();
        if idle.len() < KEPT {
            idle.push(worker);
        }
    }
    result
}

fn idle() -> std::sync::MutexGuard<'static, Vec<Sender<Job>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a parser thread. It ends when the returned sender is dropped.
fn start(length: usize) -> Result<Sender<Job>, String> {
    let (worker, jobs): (Sender<Job>, Receiver<Job>) = channel();
    let stack = STACK_AT_LEAST.saturating_add(length.max(LONGEST).saturating_mul(STACK_PER_BYTE));
    thread::Builder::new()
        .name("cel-parser".to_owned())
        .stack_size(stack)
        .spawn(move || jobs.into_iter().for_each(|job| job()))
        .map_err(|error| format!("no thread to parse on: {error}"))?;
    Ok(worker)
}
