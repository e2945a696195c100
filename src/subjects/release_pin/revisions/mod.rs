//! The revisions of a ReleasePin, one per generation. They come from the audit entries, and from the outcomes in the
//! status.

mod made;
mod pin;
mod subject;
#[cfg(test)]
mod tests;

pub use made::Made;
pub(in crate::subjects::release_pin) use made::{Span, origin};
pub use pin::{Pinned, of_pin, read_pin};
pub use subject::{NoSubject, Subject};
