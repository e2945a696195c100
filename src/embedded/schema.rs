//! What the server knows about types: one walker for defaults, pruning, validation and merging.
