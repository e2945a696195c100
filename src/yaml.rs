//! The one place that reads foreign YAML, under bounds.
