//! Requests that get no answer, and which of them may be sent again.
//!
//! What reads, and what has the same effect twice, is repeated here. What has not is settled by who sent
//! it: only they know what to look for.

use std::time::Duration;

/// How often something is sent: a server that is restarted is back by then.
pub(super) const ATTEMPTS: u32 = 10;

/// Tells whether an error leaves open what happened, or may be gone in a moment.
pub(super) fn is_ambiguous(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 408 | 429 | 500 | 502 | 503 | 504),
        kube::Error::Auth(_) | kube::Error::BuildRequest(_) => false,
        _ => true,
    }
}

/// Waits before the next attempt, longer each time.
pub(super) async fn pause(attempt: u32) {
    let grown = Duration::from_millis(10) * 2_u32.saturating_pow(attempt);
    tokio::time::sleep(grown.min(Duration::from_secs(2))).await;
}

/// Sends what may be sent twice until it is answered.
pub(super) async fn repeat<T, F>(send: impl Fn() -> F) -> Result<T, kube::Error>
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
