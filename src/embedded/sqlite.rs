//! The store: an append-only log of changes in one SQLite file.
