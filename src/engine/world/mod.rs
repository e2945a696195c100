//! The read model: what runs where, updated in place for one changed object.
