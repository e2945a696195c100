//! The path of a value in an object, for error messages.

use std::fmt;

/// The path of a value. Each element refers to the one before it, and the path becomes text only in an error message,
/// because most values have no error.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// The object itself.
    Root,
    /// A field of an object, shown as `spec.name`.
    Field(&'a Place<'a>, &'a str),
    /// The value of a map key. The path is shown as `spec.name`, and at the root as `.name`.
    Member(&'a Place<'a>, &'a str),
    /// The value of a map key, shown as `spec[name]`.
    Key(&'a Place<'a>, &'a str),
    /// An element of a list, shown as `spec[0]`.
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
