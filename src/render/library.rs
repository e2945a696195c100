//! A cache of compiled expressions and schemas: each is compiled once for all components.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bounded_cel::{CelError, Program, TextFunction};

use super::schema::{Problem, Schema};
use crate::api::{Object, names};

/// The functions of templates in addition to the functions of Kubernetes: they make names of a valid length.
const NAMES: &[(&str, TextFunction)] = &[
    ("dns", names::label),
    ("subdomain", names::subdomain),
    ("labelValue", names::label_value),
];

/// The limit of cached source text in bytes. A compiled expression or schema needs some hundred times the
/// memory of its source, so the cache needs at most some hundred MB.
const SOURCES: usize = 1 << 20;

/// A cache of compiled expressions and schemas by their source. The cache changes the cost of rendering,
/// never the result.
#[derive(Default)]
pub struct Library {
    programs: Mutex<Shelf<Program>>,
    schemas: Mutex<Shelf<Arc<Schema>>>,
}

struct Shelf<T> {
    known: HashMap<String, T>,
    bytes: usize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            bytes: 0,
        }
    }
}

impl Library {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the compiled expression of a source, from the cache if it is there.
    pub(super) fn program(&self, source: &str) -> Result<Program, CelError> {
        found(&self.programs, source, || {
            Program::compile_template(source, &bounded_cel::Limits::default(), NAMES)
        })
    }

    /// Returns the schema that a definition declares, from the cache if it is there.
    pub(super) fn schema(&self, parameters: &Object) -> Result<Arc<Schema>, Vec<Problem>> {
        let source = serde_json::to_string(parameters).unwrap_or_default();
        found(&self.schemas, &source, || {
            Schema::parse(parameters).map(Arc::new)
        })
    }
}

/// Returns the compiled form of a source, from the cache or new. Two threads may compile the same source.
fn found<T: Clone, E>(
    shelf: &Mutex<Shelf<T>>,
    source: &str,
    compile: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let lock = || shelf.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().known.get(source) {
        return Ok(known.clone());
    }
    let compiled = compile()?;
    let mut shelf = lock();
    if shelf.bytes + source.len() > SOURCES {
        *shelf = Shelf::default();
    }
    shelf.bytes += source.len();
    shelf.known.insert(source.to_owned(), compiled.clone());
    Ok(compiled)
}
