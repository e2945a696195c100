//! The limits of one fetch: its deadline, and the bytes that it may receive.
//!
//! Code that stops a fetch stores the reason in the budget, and callers report this stored reason. They do not report
//! the error of gix, because gix wraps the reason in several layers of text.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::text;

use super::error::Cause;

/// The largest length of a server's message that bowline repeats, in terminal columns.
const REPEATED: usize = 200;

pub(super) struct Budget {
    ends: Instant,
    allowed: Duration,
    bytes: u64,
    received: AtomicU64,
    stopped: Mutex<Option<Cause>>,
    secrets: Mutex<Vec<String>>,
}

impl Budget {
    pub fn new(allowed: Duration, bytes: u64) -> Self {
        let now = Instant::now();
        Self {
            ends: now.checked_add(allowed).unwrap_or(now),
            allowed,
            bytes,
            received: AtomicU64::new(0),
            stopped: Mutex::default(),
            secrets: Mutex::default(),
        }
    }

    /// Returns the time until the deadline of the fetch. After the deadline, stops the fetch and returns its error.
    pub fn remaining(&self) -> io::Result<Duration> {
        match self.ends.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(self.stop(self.deadline())),
        }
    }

    /// Counts received bytes. Stops the fetch if they exceed the limit.
    pub fn receive(&self, bytes: usize) -> io::Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.received.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.bytes {
            return Err(self.stop(Cause::TooLarge {
                what: "the data that the server sends for the commit",
                limit: self.bytes,
                unit: "bytes",
            }));
        }
        Ok(())
    }

    /// Stops the fetch: stores the reason, and returns an error with it. If a reason is stored already, it stays.
    pub fn stop(&self, cause: Cause) -> io::Error {
        let error = io::Error::other(cause.to_string());
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.get_or_insert(cause);
        error
    }

    /// Stops the fetch because its deadline has passed, and returns the error.
    pub fn stop_late(&self) -> io::Error {
        self.stop(self.deadline())
    }

    fn deadline(&self) -> Cause {
        Cause::Deadline {
            allowed: self.allowed,
        }
    }

    /// Returns the reason why the fetch failed: the stored reason, or `otherwise` if none is stored.
    pub fn verdict(&self, otherwise: impl FnOnce() -> Cause) -> Cause {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.take().unwrap_or_else(otherwise)
    }

    /// Registers a secret, such as a password. [`repeat`](Self::repeat) removes it from the messages of servers.
    pub fn hide(&self, secret: &str) {
        if !secret.is_empty() {
            let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
            secrets.push(secret.to_owned());
        }
    }

    /// Formats a server's message for a message of bowline: short, on one line, without secrets.
    pub fn repeat(&self, foreign: &str) -> String {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut clean = foreign.trim().to_owned();
        for secret in secrets.iter() {
            clean = clean.replace(secret, "***");
        }
        text::fit(&clean, REPEATED)
    }
}
