//! Where in an object a value stands.

use std::fmt;

/// A place in an object. It is spelt out only where something is wrong, and most values are as they should be.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// The object itself.
    Root,
    /// A field of an object, as `spec.name`.
    Field(&'a Place<'a>, &'a str),
    /// What a map holds under a key, as `spec.name`, or `.name` at the root.
    Member(&'a Place<'a>, &'a str),
    /// What a map holds under a key, as `spec[name]`.
    Key(&'a Place<'a>, &'a str),
    /// An element of a list, as `spec[0]`.
    Element(&'a Place<'a>, usize),
}

impl Place<'_> {
    pub(super) fn is_root(&self) -> bool {
        matches!(self, Place::Root)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => f.write_str(name),
            Place::Field(above, name) | Place::Member(above, name) => write!(f, "{above}.{name}"),
            Place::Key(above, name) => write!(f, "{above}[{name}]"),
            Place::Element(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}
