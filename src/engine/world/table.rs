//! A table of the read model: the rows of one kind.

use std::collections::HashMap;

use super::Key;

/// The rows of one kind, by key. Each row also has the number of the newest list that contained its object, to find
/// deleted objects.
pub struct Table<T> {
    rows: HashMap<Key, (u32, T)>,
    list: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            rows: HashMap::new(),
            list: 0,
        }
    }
}

impl<T> Table<T> {
    pub fn get(&self, key: &Key) -> Option<&T> {
        self.rows.get(key).map(|(_, row)| row)
    }

    /// Adds a row, or replaces the row with this key. Returns the old row; None if there was none.
    pub fn put(&mut self, key: Key, row: T) -> Option<T> {
        self.rows.insert(key, (self.list, row)).map(|(_, old)| old)
    }

    pub fn remove(&mut self, key: &Key) -> Option<T> {
        self.rows.remove(key).map(|(_, row)| row)
    }

    /// Returns all rows with their keys. The order is undefined.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        self.rows.iter().map(|(key, (_, row))| (key, row))
    }

    /// Starts a new list. A row that is not put again before the end of the list belongs to a deleted object.
    pub fn start_list(&mut self) {
        self.list += 1;
    }

    /// Returns the keys of the rows whose objects the newest list did not contain.
    pub fn unlisted(&self) -> Vec<Key> {
        let old = self.rows.iter().filter(|(_, (list, _))| *list != self.list);
        old.map(|(key, _)| key.clone()).collect()
    }

    /// Removes the rows whose objects the newest list did not contain.
    pub fn remove_unlisted(&mut self) {
        let list = self.list;
        self.rows.retain(|_, (seen, _)| *seen == list);
    }
}
