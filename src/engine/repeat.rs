//! Retries requests that get no answer from the server.
//!
//! Use it only for reads and idempotent writes. After any other write without an answer, the caller must find out
//! whether the server made the write.

use std::time::Duration;

/// The largest number of attempts for one request. With the pauses between the attempts, a server has enough time to
/// restart.
pub const ATTEMPTS: u32 = 10;

/// Returns whether the server may have processed the request in spite of this error, or may answer a retry.
pub fn is_ambiguous(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 408 | 429 | 500 | 502 | 503 | 504),
        kube::Error::Auth(_) | kube::Error::BuildRequest(_) => false,
        _ => true,
    }
}

/// Sleeps before the next attempt: 10 ms after attempt 0, then twice as long after each attempt, at most 2 seconds.
pub async fn pause(attempt: u32) {
    let grown = Duration::from_millis(10) * 2_u32.saturating_pow(attempt);
    tokio::time::sleep(grown.min(Duration::from_secs(2))).await;
}

/// Sends an idempotent request until the server answers, at most [`ATTEMPTS`] times. If no attempt succeeds, returns
/// the last error.
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
