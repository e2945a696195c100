//! What was read of definitions before: a definition is read once for all its components.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::schema::{Problem, Schema};
use crate::api::{Object, names};
use crate::cel::{self, CelError, Program, TextFunction};

/// What templates have beside the functions of Kubernetes: names that always fit.
const NAMES: &[(&str, TextFunction)] = &[
    ("dns", names::label),
    ("subdomain", names::subdomain),
    ("labelValue", names::label_value),
];

/// A compiled expression or schema costs some hundred times its source; with this many bytes of source
/// a library has at most some hundred MB.
const SOURCES: usize = 1 << 20;

/// Expressions and schemas by their source. It changes what rendering costs, never what it gives.
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
    /// Begins with nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the program of an expression.
    pub(super) fn program(&self, source: &str) -> Result<Program, CelError> {
        found(&self.programs, source, || {
            Program::compile_template(source, &cel::Limits::default(), NAMES)
        })
    }

    /// Returns the schema that a definition declares.
    pub(super) fn schema(&self, parameters: &Object) -> Result<Arc<Schema>, Vec<Problem>> {
        let source = serde_json::to_string(parameters).unwrap_or_default();
        found(&self.schemas, &source, || {
            Schema::parse(parameters).map(Arc::new)
        })
    }
}

/// Finds what a source was compiled to, or compiles it. Two who ask at once may both compile.
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
