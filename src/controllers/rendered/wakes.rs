//! Starts a pass over a RenderedRelease when one of its objects in a data plane changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::RenderedRelease;

/// Knows the RenderedReleases of a data plane, and triggers their reconciles.
pub struct ReconcileTriggers {
    sender: UnboundedSender<ObjectRef<RenderedRelease>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The RenderedReleases by uid. The labels of an object contain this uid, but not always the full name of
    /// the RenderedRelease.
    releases: HashMap<String, ObjectRef<RenderedRelease>>,
    /// The uids of the RenderedReleases for which at least one kind could not be read in the last pass.
    troubled: HashSet<String>,
}

impl ReconcileTriggers {
    /// Creates an empty map. The triggers send the RenderedReleases to reconcile to `sender`.
    pub fn new(sender: UnboundedSender<ObjectRef<RenderedRelease>>) -> Self {
        Self {
            sender,
            known: Mutex::default(),
        }
    }

    /// Adds a RenderedRelease to the map, so that changes of its objects can trigger a pass.
    pub fn remember(&self, uid: &str, release: ObjectRef<RenderedRelease>) {
        self.lock().releases.insert(uid.to_owned(), release);
    }

    /// Removes a deleted RenderedRelease from the map.
    pub fn forget(&self, uid: &str) {
        let mut known = self.lock();
        known.releases.remove(uid);
        known.troubled.remove(uid);
    }

    /// Records whether at least one kind could not be read in the last pass over a RenderedRelease.
    pub fn troubled(&self, uid: &str, is_troubled: bool) {
        let mut known = self.lock();
        match is_troubled {
            true => known.troubled.insert(uid.to_owned()),
            false => known.troubled.remove(uid),
        };
    }

    /// Triggers a pass over a RenderedRelease.
    pub fn wake(&self, uid: &str) {
        if let Some(release) = self.lock().releases.get(uid) {
            // A send fails only after the controller has stopped.
            let _ = self.sender.send(release.clone());
        }
    }

    /// Triggers a pass over every RenderedRelease for which at least one kind could not be read in its last
    /// pass.
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
