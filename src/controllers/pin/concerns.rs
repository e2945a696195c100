//! An index from an object to the ReleasePins whose last reconcile read it.
//!
//! A reconcile registers an object here before it reads the object. The read model contains a change before
//! the controller asks this index which ReleasePins the change affects. So either the reconcile sees the
//! change, or the index returns the ReleasePin: no order of events loses a change.

use std::collections::{BTreeSet, HashMap};

use crate::engine::world::Key;

/// An object that ReleasePins refer to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Thing {
    Release(Key),
    Snapshot(Key),
    Environment(Key),
    DataPlane(Key),
}

/// The index from objects to ReleasePins, and from ReleasePins to objects.
#[derive(Default)]
pub(super) struct Concerns {
    pins: HashMap<Thing, BTreeSet<Key>>,
    things: HashMap<Key, Vec<Thing>>,
}

impl Concerns {
    /// Replaces the objects that a ReleasePin refers to.
    pub(super) fn note(&mut self, pin: &Key, things: Vec<Thing>) {
        if self.things.get(pin) == Some(&things) {
            return;
        }
        self.forget(pin);
        for thing in &things {
            let pins = self.pins.entry(thing.clone()).or_default();
            pins.insert(pin.clone());
        }
        self.things.insert(pin.clone(), things);
    }

    /// Removes a ReleasePin.
    pub(super) fn forget(&mut self, pin: &Key) {
        for thing in self.things.remove(pin).into_iter().flatten() {
            if let Some(pins) = self.pins.get_mut(&thing) {
                pins.remove(pin);
                if pins.is_empty() {
                    self.pins.remove(&thing);
                }
            }
        }
    }

    /// Returns the ReleasePins that refer to an object.
    pub(super) fn of(&self, thing: &Thing) -> Vec<Key> {
        let pins = self.pins.get(thing).into_iter().flatten();
        pins.cloned().collect()
    }

    /// Returns every ReleasePin of the index.
    pub(super) fn all(&self) -> Vec<Key> {
        self.things.keys().cloned().collect()
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
        let release = |name: &str| Thing::Release(key(name));
        let dev = Thing::Environment(key("dev"));
        let mut concerns = Concerns::default();
        concerns.note(&key("a-dev"), vec![release("a-1"), dev.clone()]);
        concerns.note(&key("b-dev"), vec![release("b-1"), dev.clone()]);
        assert_eq!(concerns.of(&release("a-1")), [key("a-dev")]);
        assert_eq!(concerns.of(&dev), [key("a-dev"), key("b-dev")]);
        assert_eq!(concerns.of(&Thing::DataPlane(key("dev"))), []);
        // The ReleasePin moves to another release.
        concerns.note(&key("a-dev"), vec![release("a-2"), dev.clone()]);
        assert_eq!(concerns.of(&release("a-1")), []);
        assert_eq!(concerns.of(&release("a-2")), [key("a-dev")]);
        concerns.forget(&key("b-dev"));
        assert_eq!(concerns.of(&dev), [key("a-dev")]);
        assert_eq!(concerns.all(), [key("a-dev")]);
        concerns.forget(&key("a-dev"));
        assert!(concerns.pins.is_empty() && concerns.things.is_empty());
    }
}
