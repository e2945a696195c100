//! Retries requests that get no answer.
//!
//! This module repeats reads and idempotent writes. For other writes the sender has to find out whether
//! the write was made.

use std::time::Duration;

/// The number of attempts; enough for a server to restart.
pub const ATTEMPTS: u32 = 10;

/// Returns whether an error leaves the result unknown, or may be temporary.
pub fn is_ambiguous(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 408 | 429 | 500 | 502 | 503 | 504),
        kube::Error::Auth(_) | kube::Error::BuildRequest(_) => false,
        _ => true,
    }
}

/// Waits before the next attempt, with exponential backoff up to 2 seconds.
pub async fn pause(attempt: u32) {
    let grown = Duration::from_millis(10) * 2_u32.saturating_pow(attempt);
    tokio::time::sleep(grown.min(Duration::from_secs(2))).await;
}

/// Sends an idempotent request until the server answers, at most [`ATTEMPTS`] times.
pub async fn repeat<T, F>(send: impl Fn() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let mut attempt = 1;
    loop {
        match send().await {
            Err(error) if is_ambiguous(&error) && attempt < ATTEMPTS => pause(attempt).await,
            answer => return answer,
        }
        attempt += 1;
    }
}
