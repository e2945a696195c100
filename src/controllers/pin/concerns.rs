//! An index from an object, such as a release, to the ReleasePins whose last reconcile read that object.
//!
//! A reconcile registers an object in the index before it reads the object. When an object changes, the read
//! model contains the change before the controller asks the index. So either the reconcile sees the change,
//! or the index returns the ReleasePin for another reconcile.

use std::collections::{BTreeSet, HashMap};

use crate::engine::world::Key;

/// An object that ReleasePins refer to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReferredObject {
    Release(Key),
    Snapshot(Key),
    Environment(Key),
    DataPlane(Key),
}

/// The index from objects to ReleasePins, and from ReleasePins to objects.
#[derive(Default)]
pub(super) struct DependencyIndex {
    pins: HashMap<ReferredObject, BTreeSet<Key>>,
    objects: HashMap<Key, Vec<ReferredObject>>,
}

impl DependencyIndex {
    /// Registers the objects that a ReleasePin refers to, and removes its earlier entries.
    pub(super) fn note(&mut self, pin: &Key, objects: Vec<ReferredObject>) {
        if self.objects.get(pin) == Some(&objects) {
            return;
        }
        self.forget(pin);
        for object in &objects {
            let pins = self.pins.entry(object.clone()).or_default();
            pins.insert(pin.clone());
        }
        self.objects.insert(pin.clone(), objects);
    }

    /// Removes a ReleasePin and all its entries.
    pub(super) fn forget(&mut self, pin: &Key) {
        for object in self.objects.remove(pin).into_iter().flatten() {
            if let Some(pins) = self.pins.get_mut(&object) {
                pins.remove(pin);
                if pins.is_empty() {
                    self.pins.remove(&object);
                }
            }
        }
    }

    /// Returns the ReleasePins that refer to this object.
    pub(super) fn of(&self, object: &ReferredObject) -> Vec<Key> {
        let pins = self.pins.get(object).into_iter().flatten();
        pins.cloned().collect()
    }

    /// Returns every ReleasePin of the index.
    pub(super) fn all(&self) -> Vec<Key> {
        self.objects.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("shop", name)
    }

    #[test]
    fn a_thing_concerns_the_pins_that_looked_at_it_last() {
        let release = |name: &str| ReferredObject::Release(key(name));
        let dev = ReferredObject::Environment(key("dev"));
        let mut concerns = DependencyIndex::default();
        concerns.note(&key("a-dev"), vec![release("a-1"), dev.clone()]);
        concerns.note(&key("b-dev"), vec![release("b-1"), dev.clone()]);
        assert_eq!(concerns.of(&release("a-1")), [key("a-dev")]);
        assert_eq!(concerns.of(&dev), [key("a-dev"), key("b-dev")]);
        assert_eq!(concerns.of(&ReferredObject::DataPlane(key("dev"))), []);
        // The ReleasePin changes to another release.
        concerns.note(&key("a-dev"), vec![release("a-2"), dev.clone()]);
        assert_eq!(concerns.of(&release("a-1")), []);
        assert_eq!(concerns.of(&release("a-2")), [key("a-dev")]);
        concerns.forget(&key("b-dev"));
        assert_eq!(concerns.of(&dev), [key("a-dev")]);
        assert_eq!(concerns.all(), [key("a-dev")]);
        concerns.forget(&key("a-dev"));
        assert!(concerns.pins.is_empty() && concerns.objects.is_empty());
    }
}
