//! The one place that cleans foreign text for a terminal.
