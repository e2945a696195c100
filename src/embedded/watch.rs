//! Watch streams over the log.
