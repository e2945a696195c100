//! Tells the user when a request waits for an embedded store that another process has locked.

use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::text;

/// The receiver of long waits: more than a second for a lock of an embedded store.
pub struct StoreWaits(watch::Receiver<Option<PathBuf>>);

impl StoreWaits {
    /// Starts to receive long waits. Earlier waits are not received.
    pub fn receive() -> Self {
        Self(kube_embedded::long_waits())
    }

    /// Waits until a request has to wait long for a store, and returns a message for the user.
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
