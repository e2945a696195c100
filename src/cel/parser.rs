//! Threads for the parser, which needs a stack far larger than it looks.
//!
//! It recurses once per link of a chain like `a.b.c`; measured: under 4 KiB per byte of source,
//! unoptimised. A level of brackets costs it some hundred KiB, and it takes 96. A thread with such a stack
//! costs more than parsing an ordinary expression, so a few are kept and used again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

const STACK_PER_BYTE: usize = 8 << 10;
const STACK_AT_LEAST: usize = 64 << 20;
/// The longest source that a kept thread can parse.
const LONGEST: usize = 16 << 10;
/// How many threads are kept.
const KEPT: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that have nothing to do.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Runs work on a source of some length where there is stack enough for it; the error says why not.
pub(super) fn run<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (give, take) = channel();
    let job: Job = Box::new(move || {
        // The parsed tree is dropped in here too: dropping recurses like parsing.
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

/// Starts a thread that works until nobody holds its sender any more.
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
