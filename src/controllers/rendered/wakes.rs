//! Triggers passes over releases when an object in a data plane changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::RenderedRelease;

/// Maps changes in a data plane to releases, and triggers their reconciles.
pub struct Wakes {
    sender: UnboundedSender<ObjectRef<RenderedRelease>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The releases by uid. The labels of an object contain the uid of its release, but not always the full
    /// name.
    releases: HashMap<String, ObjectRef<RenderedRelease>>,
    /// The uids of the releases that wait until all kinds can be read.
    troubled: HashSet<String>,
}

impl Wakes {
    /// Creates the map. The sender gets the releases to reconcile.
    pub fn new(sender: UnboundedSender<ObjectRef<RenderedRelease>>) -> Self {
        Self {
            sender,
            known: Mutex::default(),
        }
    }

    /// Adds a release.
    pub fn remember(&self, uid: &str, release: ObjectRef<RenderedRelease>) {
        self.lock().releases.insert(uid.to_owned(), release);
    }

    /// Removes a deleted release.
    pub fn forget(&self, uid: &str) {
        let mut known = self.lock();
        known.releases.remove(uid);
        known.troubled.remove(uid);
    }

    /// Sets whether a release waits until all kinds can be read.
    pub fn troubled(&self, uid: &str, is_troubled: bool) {
        let mut known = self.lock();
        match is_troubled {
            true => known.troubled.insert(uid.to_owned()),
            false => known.troubled.remove(uid),
        };
    }

    /// Triggers a pass over a release.
    pub fn wake(&self, uid: &str) {
        if let Some(release) = self.lock().releases.get(uid) {
            // The receiver is gone when the controller has stopped.
            let _ = self.sender.send(release.clone());
        }
    }

    /// Triggers a pass over every release that waits until all kinds can be read.
    pub fn wake_troubled(&self) {
        let known = self.lock();
        for release in known
            .troubled
            .iter()
            .filter_map(|it| known.releases.get(it))
        {
            let _ = self.sender.send(release.clone());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
