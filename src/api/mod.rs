//! The kinds that bowline works with: types, labels, names. Nothing here does I/O.
