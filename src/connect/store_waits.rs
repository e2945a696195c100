//! Reports that a request waits for an embedded store, because another process has locked the store.

use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::text;

/// Receives each wait for a lock of an embedded store that takes longer than a second.
pub struct StoreWaits(watch::Receiver<Option<PathBuf>>);

impl StoreWaits {
    /// Receives the waits from now on.
    pub fn receive() -> Self {
        Self(kube_embedded::long_waits())
    }

    /// Waits for the next long wait, and returns a line for the user.
    pub async fn next(&mut self) -> String {
        loop {
            if self.0.changed().await.is_err() {
                return std::future::pending().await;
            }
            let file = self.0.borrow().clone();
            if let Some(file) = file {
                return line(&file);
            }
        }
    }
}

fn line(file: &Path) -> String {
    let file = file.to_string_lossy();
    format!(
        "waiting for embedded store {}: another process has locked it",
        text::line(&file)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_names_the_store() {
        let (sender, receiver) = watch::channel(None);
        let mut waits = StoreWaits(receiver);
        sender.send_replace(Some(PathBuf::from("/data/a.db")));
        assert_eq!(
            waits.next().await,
            "waiting for embedded store /data/a.db: another process has locked it"
        );
    }
}
