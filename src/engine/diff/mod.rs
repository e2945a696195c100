//! What changed between two sets of objects: by identity, then by field, then by line and word.
