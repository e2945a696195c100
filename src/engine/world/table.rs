//! A table of the read model: the rows of one kind.

use std::collections::HashMap;

use super::Key;

/// The rows of one kind. Each row has the number of the newest list that contained its object.
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

    /// Adds or replaces a row, and returns the old row.
    pub fn put(&mut self, key: Key, row: T) -> Option<T> {
        self.rows.insert(key, (self.list, row)).map(|(_, old)| old)
    }

    pub fn remove(&mut self, key: &Key) -> Option<T> {
        self.rows.remove(key).map(|(_, row)| row)
    }

    /// Returns all rows with their keys, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        self.rows.iter().map(|(key, (_, row))| (key, row))
    }

    /// Starts a new list. Rows that nobody puts again before the end of the list belong to deleted objects.
    pub fn start_list(&mut self) {
        self.list += 1;
    }

    /// Returns the keys that the finished list did not contain.
    pub fn unlisted(&self) -> Vec<Key> {
        let old = self.rows.iter().filter(|(_, (list, _))| *list != self.list);
        old.map(|(key, _)| key.clone()).collect()
    }

    /// Removes the rows that the finished list did not contain.
    pub fn remove_unlisted(&mut self) {
        let list = self.list;
        self.rows.retain(|_, (seen, _)| *seen == list);
    }
}
