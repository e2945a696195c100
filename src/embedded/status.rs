//! Answers that are not objects: Status, as a real API server words it.
