//! Triggers a pass over a RenderedRelease when one of its objects in a data plane changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::RenderedRelease;

/// Maps the changed objects of a data plane to RenderedReleases, and triggers their reconciles.
pub struct ReconcileTriggers {
    sender: UnboundedSender<ObjectRef<RenderedRelease>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The RenderedReleases by uid. The labels of an object contain the uid of its RenderedRelease, but not
    /// always its full name.
    releases: HashMap<String, ObjectRef<RenderedRelease>>,
    /// The uids of the RenderedReleases whose pass could not read all kinds.
    troubled: HashSet<String>,
}

impl ReconcileTriggers {
    /// Creates the map. The sender gets the RenderedReleases to reconcile.
    pub fn new(sender: UnboundedSender<ObjectRef<RenderedRelease>>) -> Self {
        Self {
            sender,
            known: Mutex::default(),
        }
    }

    /// Adds a RenderedRelease to the map.
    pub fn remember(&self, uid: &str, release: ObjectRef<RenderedRelease>) {
        self.lock().releases.insert(uid.to_owned(), release);
    }

    /// Removes a deleted RenderedRelease from the map.
    pub fn forget(&self, uid: &str) {
        let mut known = self.lock();
        known.releases.remove(uid);
        known.troubled.remove(uid);
    }

    /// Records whether the last pass over a RenderedRelease could not read all kinds.
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

    /// Triggers a pass over every RenderedRelease whose last pass could not read all kinds.
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
