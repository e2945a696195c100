//! The one place that evaluates foreign expressions, under bounds.
//!
//! CRD rules, admission policies and templates hold CEL that somebody else wrote. The cel
//! crate reads it; this module evaluates it. The crate's own interpreter cannot be stopped
//! and has no limits (four nested loops over 300 items ran past 30 seconds, a sum of
//! 10,000 terms overflowed the stack), so the tree that it parses is turned into one of our
//! own whose evaluation counts every step and every byte that it makes, and stops at the
//! first limit. What was stopped is a [`CelError::Limit`], which no `||` absorbs.
//!
//! - Parsing happens on a thread with a large stack; the source is bounded before, the
//!   nodes, the depth and the nesting of loops after.
//! - Evaluation stays on the caller's thread: depth is bounded by the tree, so it needs a
//!   small stack; steps, bytes and the clock are checked as it goes; bindings are borrowed,
//!   never copied.
//!
//! Values are JSON: integers are `int`, other numbers `double`, and `1 == 1.0`. A missing
//! key is an error. Where a schema is bound beside a value, strings of the formats
//! `date-time`, `duration` and `byte` have the types that Kubernetes gives them, and lists
//! of type `set` and `map` are equal in any order.
//!
//! Kubernetes lets CRD rules name properties that are no CEL identifiers in an escaped form.
//! Where a bound schema declares an object's properties, a field that is written with
//! `__dot__`, `__dash__`, `__slash__`, `__underscores__`, or as `__namespace__` and the other
//! reserved words, names the property with that meaning, and only it. Everywhere else, in
//! policies too, a field is what is written.
//!
//! There: the standard library, macros with one and two variables, optionals, the
//! extensions for strings, lists, sets, math, base64 and regex, quantities, the authorizer.
//! Not there: protobuf messages, URLs, IP addresses, semantic versions, named formats.

mod compile;
mod eval;
mod functions;
mod loops;
mod meter;
mod parser;
mod select;
mod tree;
mod value;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use functions::double_text;

/// Bounds what an expression may be and may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The length of the source in bytes.
    pub source: usize,
    /// The number of nodes of the expression.
    pub nodes: usize,
    /// How deep the expression may be nested; `a + b + c` counts each `+`.
    pub depth: usize,
    /// How many loops (`all`, `map`, ...) may stand inside each other.
    pub loops: usize,
    /// How many items one loop may run over.
    pub range: usize,
    /// The steps that one evaluation may take.
    pub steps: u64,
    /// The bytes that one evaluation may make, in all.
    pub memory: usize,
    /// The size of the result as JSON, in bytes.
    pub output: usize,
    /// How long one evaluation may take.
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source: 16 << 10,
            nodes: 4000,
            depth: 100,
            loops: 5,
            range: 20_000,
            steps: 1_000_000,
            memory: 32 << 20,
            output: 4 << 20,
            deadline: Duration::from_secs(3),
        }
    }
}

/// The limit that ended a compilation or an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// [`Limits::source`].
    Source,
    /// [`Limits::nodes`].
    Nodes,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::loops`].
    Loops,
    /// [`Limits::range`].
    Range,
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::output`].
    Output,
    /// [`Limits::deadline`].
    Deadline,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Source => "the expression is too long",
            Self::Nodes => "the expression has too many parts",
            Self::Depth => "the expression is nested too deeply",
            Self::Loops => "too many loops stand inside each other",
            Self::Range => "a loop would run over too many items",
            Self::Steps => "the evaluation took too many steps",
            Self::Memory => "the evaluation made too much data",
            Self::Output => "the result is too large",
            Self::Deadline => "the evaluation took too long",
        })
    }
}

/// Why an expression could not be compiled or evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CelError {
    /// The source is not CEL.
    #[error("cannot read the expression: {0}")]
    Syntax(SyntaxError),
    /// The expression names a function or form that is not known here.
    #[error("cannot read the expression: {0}")]
    Unknown(String),
    /// A limit is passed; no part of the expression can catch this.
    #[error("{bound} (limit {limit}); simplify the expression or make its input smaller")]
    Limit {
        /// Which one.
        bound: Bound,
        /// Its value.
        limit: u64,
    },
    /// The expression failed on these values.
    #[error("{0}")]
    Failed(String),
}

/// What is wrong with a source, and where if the parser says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong.
    pub message: String,
    /// The line and the column, from 1.
    pub place: Option<(usize, usize)>,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl CelError {
    /// Tells whether a limit ended it.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. })
    }

    /// Returns the limit that ended it, if one did.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Self::Limit { bound, .. } => Some(*bound),
            _ => None,
        }
    }

    fn limit(bound: Bound, limit: impl TryInto<u64>) -> Self {
        Self::Limit {
            bound,
            limit: limit.try_into().unwrap_or(u64::MAX),
        }
    }

    fn syntax(message: impl Into<String>) -> Self {
        Self::Syntax(SyntaxError {
            message: message.into(),
            place: None,
        })
    }

    fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

/// The question that an expression asks the authorizer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessQuery {
    /// The verb that is asked for.
    pub verb: String,
    /// The API group; empty for the core one.
    pub group: String,
    /// The resource, plural.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The namespace, or empty for all.
    pub namespace: String,
    /// The object's name, or empty for any.
    pub name: String,
    /// The URL path, for questions about no resource.
    pub path: Option<String>,
    /// The namespace and name of the service account that is asked about, if not the requester.
    pub service_account: Option<(String, String)>,
}

/// Answers questions of the authorizer; borrowed, so that it may look into a store.
pub type Authorizer<'b> = &'b dyn Fn(&AccessQuery) -> bool;

/// The names that an expression can use, borrowed for one evaluation.
#[derive(Default)]
pub struct Bindings<'b> {
    values: BTreeMap<Cow<'b, str>, Binding<'b>>,
    variables: Vec<(&'b str, &'b Program)>,
    authorizer: Option<Authorizer<'b>>,
    request_resource: Option<AccessQuery>,
}

enum Binding<'b> {
    Present(Cow<'b, Value>, Option<&'b Value>),
    Optional(Option<(&'b Value, Option<&'b Value>)>),
}

impl<'b> Bindings<'b> {
    /// Begins without any name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a name to a value that is borrowed.
    pub fn with(mut self, name: &'b str, value: &'b Value) -> Self {
        let bound = Binding::Present(Cow::Borrowed(value), None);
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Binds a name to a value that is handed over.
    pub fn with_owned(mut self, name: &'b str, value: Value) -> Self {
        let bound = Binding::Present(Cow::Owned(value), None);
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Binds a name to a value with the OpenAPI schema that gives its parts their types.
    pub fn with_schema(mut self, name: &'b str, value: &'b Value, schema: &'b Value) -> Self {
        let bound = Binding::Present(Cow::Borrowed(value), Some(schema));
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Binds a name to null: known, with nothing there (`oldObject` of a creation).
    pub fn with_absent(self, name: &'b str) -> Self {
        self.with_owned(name, Value::Null)
    }

    /// Binds a name to a CEL optional (`oldSelf` under `optionalOldSelf`).
    pub fn with_optional(
        mut self,
        name: &'b str,
        value: Option<&'b Value>,
        schema: Option<&'b Value>,
    ) -> Self {
        let bound = Binding::Optional(value.map(|value| (value, schema)));
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Adds `variables.NAME`, evaluated when it is first asked for, within the limits of the
    /// expression that asks; it sees the variables that were added before it.
    pub fn with_variable(mut self, name: &'b str, program: &'b Program) -> Self {
        self.variables.push((name, program));
        self
    }

    /// Lets the expression ask the authorizer.
    pub fn with_authorizer(mut self, authorizer: Authorizer<'b>) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// Sets what `authorizer.requestResource` asks about.
    pub fn with_request_resource(mut self, query: AccessQuery) -> Self {
        self.request_resource = Some(query);
        self
    }
}

/// What several evaluations may take together, so that many cheap rules are bounded too.
#[derive(Debug, Clone)]
pub struct Budget {
    steps: u64,
    output: usize,
    ends: Option<Instant>,
    deadline: Duration,
}

impl Budget {
    /// Allows so many steps, and so much time from now on.
    pub fn new(steps: u64, deadline: Duration) -> Self {
        Self {
            steps,
            output: usize::MAX,
            ends: Instant::now().checked_add(deadline),
            deadline,
        }
    }

    /// Bounds the results of all evaluations together, in bytes of JSON.
    pub fn with_output(self, bytes: usize) -> Self {
        Self {
            output: bytes,
            ..self
        }
    }

    /// Tells whether the time is over.
    pub fn is_late(&self) -> bool {
        self.ends.is_some_and(|ends| Instant::now() > ends)
    }

    /// Tells whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.steps == 0
    }
}

/// Makes one text of another, for templates: see [`Program::compile_template`].
pub type TextFunction = fn(&str) -> String;

/// An expression that was read and bounded; cheap to clone, usable from any thread.
#[derive(Debug, Clone)]
pub struct Program(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: String,
    root: tree::Node,
    names: BTreeSet<String>,
    limits: Limits,
}

impl Program {
    /// Reads an expression and bounds it.
    pub fn compile(source: &str, limits: &Limits) -> Result<Self, CelError> {
        Self::compile_for(compile::Dialect::Kubernetes, source, limits)
    }

    /// Reads an expression of a template. It has what Kubernetes has, `omit()`, which is an empty
    /// optional, `merge(a, b)` of maps, and the functions that are given by name: each joins its
    /// arguments with `-` and makes a text of the result.
    pub fn compile_template(
        source: &str,
        limits: &Limits,
        functions: &'static [(&'static str, TextFunction)],
    ) -> Result<Self, CelError> {
        Self::compile_for(compile::Dialect::Template(functions), source, limits)
    }

    fn compile_for(
        dialect: compile::Dialect,
        source: &str,
        limits: &Limits,
    ) -> Result<Self, CelError> {
        let (root, names) = compile::compile(dialect, source, limits)?;
        Ok(Self(Arc::new(Compiled {
            source: source.to_owned(),
            root,
            names,
            limits: *limits,
        })))
    }

    /// Returns the text that it was compiled from.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns the names that the expression needs bound, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(String::as_str)
    }

    /// Tells whether the expression needs a name bound.
    pub fn uses(&self, name: &str) -> bool {
        self.0.names.contains(name)
    }

    /// Returns the chains of fields that the expression selects from a name, such as `a`, `b`
    /// for `self.a.b`; what is reached through an index or a loop is left out.
    pub fn selections(&self, name: &str) -> Vec<Vec<&str>> {
        select::chains(&self.0.root, name)
    }

    /// Evaluates the expression. An empty optional becomes null, times and durations become
    /// strings, bytes become base64.
    pub fn evaluate(&self, bindings: &Bindings<'_>) -> Result<Value, CelError> {
        let limits = &self.0.limits;
        let mut budget = Budget::new(limits.steps, limits.deadline);
        self.evaluate_within(bindings, &mut budget)
    }

    /// Evaluates the expression within its own limits and a budget that it shares with others.
    pub fn evaluate_within(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Value, CelError> {
        eval::evaluate(&self.0.root, &self.0.limits, bindings, budget)
    }

    /// Evaluates an expression of a template: None where it is an empty optional, which is left out of
    /// the maps and lists that it makes, too.
    pub fn evaluate_template(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Value>, CelError> {
        eval::evaluate_template(&self.0.root, &self.0.limits, bindings, budget)
    }

    /// Evaluates an expression that has to say true or false.
    pub fn holds(&self, bindings: &Bindings<'_>, budget: &mut Budget) -> Result<bool, CelError> {
        match self.evaluate_within(bindings, budget)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err(CelError::failed(
                "the expression must evaluate to true or false",
            )),
        }
    }
}
