//! A table of small rows, one per object of a kind. A watch keeps the rows up to date. A row is found by the
//! name of its object, or by a second key that the rows of several objects can share.
//!
//! The table stores a row before it reports the change of the row. It does not report a change of the object
//! that leaves the row equal.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use futures::{Stream, StreamExt};
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::engine::world::Key;

/// The page size of a list request. The size is small, because the objects may be large.
const PAGE: u32 = 100;

/// The rows of all objects of one kind.
pub struct Table<T> {
    rows: RwLock<Rows<T>>,
    /// Returns the second key of a row, under which [`Table::at`] finds the row. Several rows may have the
    /// same second key.
    place: fn(&Key, &T) -> Key,
    listing: watch::Sender<Listing>,
}

/// Whether the watch of a table has listed the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The first list of the kind is not complete.
    Waiting,
    /// The list is complete, and the watch receives all changes.
    Listed,
    /// The server answers that it does not serve the kind.
    Absent,
}

struct Rows<T> {
    by_name: HashMap<Key, (u32, T)>,
    by_place: HashMap<Key, BTreeSet<Key>>,
    /// The number of the current list. A row with a lower number comes from an earlier list.
    list: u32,
}

/// A reported change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// The namespace and the name of the changed object.
    pub key: Key,
    /// The row before the change; None if the object is new.
    pub before: Option<T>,
    /// The row after the change; None if the object is deleted.
    pub after: Option<T>,
}

impl<T: Clone + PartialEq + Send + Sync + 'static> Table<T> {
    /// Creates an empty table. `place` returns the second key of a row, for [`Table::at`].
    pub fn new(place: fn(&Key, &T) -> Key) -> Arc<Self> {
        Arc::new(Self {
            rows: RwLock::new(Rows {
                by_name: HashMap::new(),
                by_place: HashMap::new(),
                list: 0,
            }),
            place,
            listing: watch::Sender::new(Listing::Waiting),
        })
    }

    /// Returns the row of the object with this namespace and name; None if there is no such row.
    pub fn get(&self, key: &Key) -> Option<T> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        rows.by_name.get(key).map(|(_, row)| row.clone())
    }

    /// Returns the rows that have this second key, sorted by the name of their object.
    pub fn at(&self, place: &Key) -> Vec<(Key, T)> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let names = rows.by_place.get(place).into_iter().flatten();
        names
            .filter_map(|key| Some((key.clone(), rows.by_name.get(key)?.1.clone())))
            .collect()
    }

    /// Waits until the first list of the kind is complete.
    pub async fn until_listed(&self) {
        // The channel cannot be closed, because `self` owns the sender.
        let listed = |listing: &Listing| *listing == Listing::Listed;
        let _ = self.listing.subscribe().wait_for(listed).await;
    }

    /// Waits until the first list is complete, or until the server answers that it does not serve the kind.
    pub async fn until_known(&self) {
        let known = |listing: &Listing| *listing != Listing::Waiting;
        let _ = self.listing.subscribe().wait_for(known).await;
    }

    /// Returns whether the last answer of the server said that it does not serve the kind.
    pub fn is_absent(&self) -> bool {
        *self.listing.borrow() == Listing::Absent
    }

    /// Returns a stream that reports each change of the [`Listing`], for example when the server stops
    /// serving the kind.
    pub fn appearances(self: &Arc<Self>) -> impl Stream<Item = Listing> + Send + use<T> {
        let listing = self.listing.subscribe();
        futures::stream::unfold(listing, |mut listing| async {
            listing.changed().await.ok()?;
            let now = *listing.borrow_and_update();
            Some((now, listing))
        })
    }

    fn is_now(&self, listing: Listing) {
        self.listing.send_if_modified(|before| {
            let is_other = *before != listing;
            *before = listing;
            is_other
        });
    }

    /// Watches a kind, keeps the rows up to date, and reports the changed rows. Works only while the caller
    /// polls the returned stream.
    ///
    /// A failed watch starts again with backoff.
    pub fn follow<K>(
        self: &Arc<Self>,
        api: Api<K>,
        row: fn(K) -> T,
    ) -> impl Stream<Item = Change<T>> + Send + use<K, T>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let table = self.clone();
        let config = watcher::Config::default().page_size(PAGE);
        let events = watcher(api, config).default_backoff();
        events.flat_map(move |event| {
            let changes = match event {
                Ok(event) => table.take(event, row),
                Err(error) => {
                    tracing::warn!(%error, "a watch failed; restarting it");
                    if is_not_served(&error) {
                        table.is_now(Listing::Absent);
                    }
                    Vec::new()
                }
            };
            futures::stream::iter(changes)
        })
    }

    /// Handles an event of the watch, and returns the changed rows.
    fn take<K: ResourceExt>(&self, event: Event<K>, row: fn(K) -> T) -> Vec<Change<T>> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let key = |object: &K| {
            let namespace = object.namespace().unwrap_or_default();
            Key::new(&namespace, &object.name_any())
        };
        match event {
            Event::Init => {
                rows.list += 1;
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let key = key(&object);
                let change = rows.put(key, Some(row(object)), self.place);
                change.into_iter().collect()
            }
            Event::Delete(object) => {
                let change = rows.put(key(&object), None, self.place);
                change.into_iter().collect()
            }
            Event::InitDone => {
                let list = rows.list;
                let gone = rows.by_name.iter().filter(|(_, (seen, _))| *seen != list);
                let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
                let gone = gone.into_iter();
                let changes = gone.filter_map(|key| rows.put(key, None, self.place));
                let changes = changes.collect();
                self.is_now(Listing::Listed);
                changes
            }
        }
    }
}

/// Returns whether a watch failed because the server does not serve the kind.
fn is_not_served(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code,
        watcher::Error::WatchError(status) => status.code,
        _ => return false,
    };
    code == 404
}

impl<T: Clone + PartialEq> Rows<T> {
    fn put(&mut self, key: Key, row: Option<T>, place: fn(&Key, &T) -> Key) -> Option<Change<T>> {
        let list = self.list;
        let before = match &row {
            Some(row) => self.by_name.insert(key.clone(), (list, row.clone())),
            None => self.by_name.remove(&key),
        };
        let before = before.map(|(_, row)| row);
        if before == row {
            return None;
        }
        if let Some(before) = &before {
            let place = place(&key, before);
            if let Some(names) = self.by_place.get_mut(&place) {
                names.remove(&key);
                if names.is_empty() {
                    self.by_place.remove(&place);
                }
            }
        }
        if let Some(row) = &row {
            let names = self.by_place.entry(place(&key, row)).or_default();
            names.insert(key.clone());
        }
        let after = row;
        Some(Change { key, before, after })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn map(name: &str, place: &str) -> ConfigMap {
        let object = json!({"metadata": {"name": name, "namespace": "n"}, "data": {"at": place}});
        serde_json::from_value(object).unwrap()
    }

    fn row(map: ConfigMap) -> String {
        map.data
            .unwrap_or_default()
            .remove("at")
            .unwrap_or_default()
    }

    fn told(
        table: &Table<String>,
        event: Event<ConfigMap>,
    ) -> Vec<(String, Option<String>, Option<String>)> {
        let changes = table.take(event, row).into_iter();
        changes
            .map(|change| (change.key.name.to_string(), change.before, change.after))
            .collect()
    }

    #[test]
    fn rows_are_found_by_place_and_only_changes_are_told() {
        let table = Table::new(|key, row: &String| Key::new(&key.namespace, row));
        let at = |place: &str| {
            let found = table.at(&Key::new("n", place)).into_iter();
            let names = found.map(|(key, _)| key.name.to_string());
            names.collect::<Vec<_>>()
        };
        let (x, y) = (Some("x".to_owned()), Some("y".to_owned()));
        told(&table, Event::Init);
        for name in ["a", "b"] {
            let change = told(&table, Event::InitApply(map(name, "x")));
            assert_eq!(change, [(name.to_owned(), None, x.clone())]);
        }
        assert_eq!(*table.listing.borrow(), Listing::Waiting);
        assert_eq!(told(&table, Event::InitDone), []);
        assert_eq!(*table.listing.borrow(), Listing::Listed);
        assert_eq!(at("x"), ["a", "b"]);
        assert_eq!(told(&table, Event::Apply(map("a", "x"))), [], "as it was");
        let change = told(&table, Event::Apply(map("a", "y")));
        assert_eq!(change, [("a".to_owned(), x.clone(), y.clone())]);
        assert_eq!(
            (at("x"), at("y")),
            (vec!["b".to_owned()], vec!["a".to_owned()])
        );
        // A list that does not contain the row deletes it.
        told(&table, Event::Init);
        assert_eq!(told(&table, Event::InitApply(map("a", "y"))), []);
        assert_eq!(told(&table, Event::InitDone), [("b".to_owned(), x, None)]);
        assert_eq!(table.get(&Key::new("n", "b")), None);
        assert_eq!(
            told(&table, Event::Delete(map("a", ""))),
            [("a".to_owned(), y, None)]
        );
        assert_eq!(told(&table, Event::Delete(map("a", ""))), []);
        assert_eq!((at("x"), at("y")), (vec![], vec![]));
    }
}
