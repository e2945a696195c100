//! Runs work in parallel on all processor cores.

use std::sync::{Mutex, PoisonError};

/// The number of items that a thread takes from the list at a time.
const PART: usize = 128;

/// Calls a function for each item, on all processor cores. The results are in the order of the items.
pub(super) fn on_every_core<T: Send, R: Send>(
    things: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = workers.min(things.len().div_ceil(PART));
    // Some parts need a hundred times longer than others. So each thread takes a new part whenever it has finished
    // one.
    let parts = Mutex::new((0.., things.into_iter()));
    let next = || {
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part: Vec<T> = parts.1.by_ref().take(PART).collect();
        let at: usize = parts.0.next()?;
        (!part.is_empty()).then_some((at, part))
    };
    let run = || {
        let mut done = Vec::new();
        while let Some((at, part)) = next() {
            done.push((at, part.into_iter().map(&work).collect::<Vec<R>>()));
        }
        done
    };
    let mut done: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(run)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        let done = done.map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.flatten().collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().flat_map(|(_, part)| part).collect()
}
