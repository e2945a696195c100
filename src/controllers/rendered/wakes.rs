//! Which releases have to be looked at again because something in a data plane changed.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::RenderedRelease;

/// The way from a data plane back to the releases.
pub struct Wakes {
    sender: UnboundedSender<ObjectRef<RenderedRelease>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By uid. A label holds a name only where it is short.
    releases: HashMap<String, ObjectRef<RenderedRelease>>,
    /// Those that could not do everything for want of sight.
    troubled: HashSet<String>,
}

impl Wakes {
    /// Makes the way, given where it leads.
    pub fn new(sender: UnboundedSender<ObjectRef<RenderedRelease>>) -> Self {
        Self {
            sender,
            known: Mutex::default(),
        }
    }

    /// Remembers a release, so that it can be woken.
    pub fn remember(&self, uid: &str, release: ObjectRef<RenderedRelease>) {
        self.lock().releases.insert(uid.to_owned(), release);
    }

    /// Forgets a release that is no more.
    pub fn forget(&self, uid: &str) {
        let mut known = self.lock();
        known.releases.remove(uid);
        known.troubled.remove(uid);
    }

    /// Remembers whether a release waits for sight.
    pub fn troubled(&self, uid: &str, is_troubled: bool) {
        let mut known = self.lock();
        match is_troubled {
            true => known.troubled.insert(uid.to_owned()),
            false => known.troubled.remove(uid),
        };
    }

    /// Wakes a release.
    pub fn wake(&self, uid: &str) {
        if let Some(release) = self.lock().releases.get(uid) {
            // Nobody listens when the controller has stopped.
            let _ = self.sender.send(release.clone());
        }
    }

    /// Wakes every release that waits for sight.
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
