//! A cache of compiled expressions and schemas. All components share it, so that each source text is compiled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bounded_cel::{CelError, Program, TextFunction};

use super::schema::{Problem, Schema};
use crate::api::{Object, names};

/// The functions that only templates have: they create names of a valid length.
const NAMES: &[(&str, TextFunction)] = &[
    ("dns", names::label),
    ("subdomain", names::subdomain),
    ("labelValue", names::label_value),
];

/// The largest total size of the cached source texts, in bytes. A compiled source needs some hundred times its size,
/// so the cache needs at most some hundred MB of memory.
const SOURCES: usize = 1 << 20;

/// A cache of compiled expressions and schemas, by their source text. The cache makes rendering faster and never
/// changes its result.
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
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a compiled expression from the cache, or compiles it.
    pub(super) fn program(&self, source: &str) -> Result<Program, CelError> {
        found(&self.programs, source, || {
            Program::compile_template(source, &bounded_cel::Limits::default(), NAMES)
        })
    }

    /// Returns a parsed schema of a definition from the cache, or parses it.
    pub(super) fn schema(&self, parameters: &Object) -> Result<Arc<Schema>, Vec<Problem>> {
        let source = serde_json::to_string(parameters).unwrap_or_default();
        found(&self.schemas, &source, || {
            Schema::parse(parameters).map(Arc::new)
        })
    }
}

/// Returns the compiled form of a source text from the cache, or compiles it. Two threads may compile the same source
/// text at the same time, because the cache is not locked meanwhile.
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
