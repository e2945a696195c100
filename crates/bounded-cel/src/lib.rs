//! Evaluates CEL expressions of other people under limits on steps, memory and time.
//!
//! CRD rules, admission policies and templates contain such expressions. The `cel` crate parses them; this
//! crate evaluates them. The interpreter of the `cel` crate has no limits and cannot be stopped: four nested
//! loops over 300 items took more than 30 seconds, and a sum of 10,000 terms overflowed the stack. So this
//! crate turns the parsed tree into its own tree. The evaluation counts each step and each byte that it
//! allocates, and stops at the first limit with [`CelError::Limit`]; `||` does not absorb that error.
//!
//! - Parsing runs on a thread with a large stack. The length of the source is checked before it, the number
//!   of nodes, the depth and the nesting of loops after it.
//! - Evaluation runs on the caller's thread with a small stack, because the depth of the tree is limited. It
//!   borrows the bindings and does not copy them.
//!
//! Values are JSON: integers are `int`, other numbers `double`, and `1 == 1.0`. A missing key is an error. If
//! a value is bound with a schema, strings of the formats `date-time`, `duration` and `byte` have the types
//! that Kubernetes gives them, and lists of type `set` and `map` are equal in any order.
//!
//! CRD rules write property names that are not CEL identifiers in an escaped form: `__dot__`, `__dash__`,
//! `__slash__`, `__underscores__`, and `__namespace__` and the other reserved words. If a bound schema
//! declares the properties of an object, an escaped field names the property with the unescaped name and no
//! other. In all other expressions, including policies, a field is not unescaped.
//!
//! Supported: the standard library, macros with one and two variables, optionals, the extensions for strings,
//! lists, sets, math, base64 and regex, quantities, the authorizer. Not supported: protobuf messages, URLs, IP
//! addresses, semantic versions, named formats.

#![warn(missing_docs)]

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

pub use functions::double_text;

/// The limits of an expression and of its evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest length of the source, in bytes.
    pub source: usize,
    /// The largest number of nodes of the expression.
    pub nodes: usize,
    /// The largest nesting depth of the expression; `a + b + c` counts each `+`.
    pub depth: usize,
    /// The largest nesting depth of loops (`all`, `map`, ...).
    pub loops: usize,
    /// The largest number of items of one loop.
    pub range: usize,
    /// The largest number of steps of one evaluation.
    pub steps: u64,
    /// The largest number of bytes that one evaluation may allocate in total.
    pub memory: usize,
    /// The largest size of the result as JSON, in bytes.
    pub output: usize,
    /// The longest time of one evaluation.
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

/// The limit that stopped a compilation or an evaluation.
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

/// The reason why an expression could not be compiled or evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CelError {
    /// The source is not valid CEL.
    #[error("cannot read the expression: {0}")]
    Syntax(SyntaxError),
    /// The expression uses a function or a syntax that is not supported.
    #[error("cannot read the expression: {0}")]
    Unknown(String),
    /// A limit is exceeded; no part of the expression can catch this.
    #[error("{bound} (limit {limit}); simplify the expression or make its input smaller")]
    Limit {
        /// The limit.
        bound: Bound,
        /// The value of the limit.
        limit: u64,
    },
    /// The evaluation failed on these values.
    #[error("{0}")]
    Failed(String),
}

/// A syntax error, with its position if the parser gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The message of the parser.
    pub message: String,
    /// The line and the column, both from 1.
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
    /// Returns whether the reason is an exceeded limit.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. })
    }

    /// Returns the exceeded limit; None if the reason is another one.
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

/// A permission query of an expression to the authorizer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessQuery {
    /// The verb of the permission.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource; empty for none.
    pub subresource: String,
    /// The namespace; empty for all namespaces.
    pub namespace: String,
    /// The name of the object; empty for any.
    pub name: String,
    /// The URL path, for queries that are not about a resource.
    pub path: Option<String>,
    /// The namespace and name of the service account in question; None for the user of the request.
    pub service_account: Option<(String, String)>,
}

/// Returns whether the permission in a query is granted. The type is a reference, so that the function may borrow
/// a store.
pub type Authorizer<'b> = &'b dyn Fn(&AccessQuery) -> bool;

/// The variables of an expression, borrowed for one evaluation.
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
    /// Returns bindings without any variable.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable to a borrowed value.
    pub fn with(mut self, name: &'b str, value: &'b Value) -> Self {
        let bound = Binding::Present(Cow::Borrowed(value), None);
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Binds a variable to an owned value.
    pub fn with_owned(mut self, name: &'b str, value: Value) -> Self {
        let bound = Binding::Present(Cow::Owned(value), None);
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Binds a variable to a value with an OpenAPI schema, which gives the types of its parts.
    pub fn with_schema(mut self, name: &'b str, value: &'b Value, schema: &'b Value) -> Self {
        let bound = Binding::Present(Cow::Borrowed(value), Some(schema));
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Binds a variable to null, for a value that does not exist (`oldObject` of a creation).
    pub fn with_absent(self, name: &'b str) -> Self {
        self.with_owned(name, Value::Null)
    }

    /// Binds a variable to a CEL optional (`oldSelf` with `optionalOldSelf`).
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

    /// Adds `variables.NAME`. It is evaluated at its first use, within the limits of the expression that uses
    /// it, and sees the variables that were added before it.
    pub fn with_variable(mut self, name: &'b str, program: &'b Program) -> Self {
        self.variables.push((name, program));
        self
    }

    /// Lets the expression query the authorizer.
    pub fn with_authorizer(mut self, authorizer: Authorizer<'b>) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// Sets the query of `authorizer.requestResource`.
    pub fn with_request_resource(mut self, query: AccessQuery) -> Self {
        self.request_resource = Some(query);
        self
    }
}

/// A budget that several evaluations share, so that many cheap rules are limited too.
#[derive(Debug, Clone)]
pub struct Budget {
    steps: u64,
    output: usize,
    ends: Option<Instant>,
    deadline: Duration,
}

impl Budget {
    /// Creates a budget of `steps` evaluation steps, which ends after `deadline`, counted from now.
    pub fn new(steps: u64, deadline: Duration) -> Self {
        Self {
            steps,
            output: usize::MAX,
            ends: Instant::now().checked_add(deadline),
            deadline,
        }
    }

    /// Limits the results of all evaluations together, in bytes of JSON.
    pub fn with_output(self, bytes: usize) -> Self {
        Self {
            output: bytes,
            ..self
        }
    }

    /// Returns whether the deadline is over.
    pub fn is_late(&self) -> bool {
        self.ends.is_some_and(|ends| Instant::now() > ends)
    }

    /// Returns whether no steps are left.
    pub fn is_spent(&self) -> bool {
        self.steps == 0
    }
}

/// A function that converts a text to another text, for [`Program::compile_template`].
pub type TextFunction = fn(&str) -> String;

/// A compiled expression; cheap to clone, usable from any thread.
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
    /// Parses an expression and checks its limits.
    pub fn compile(source: &str, limits: &Limits) -> Result<Self, CelError> {
        Self::compile_for(compile::Dialect::Kubernetes, source, limits)
    }

    /// Parses an expression of a template. In addition to the functions of Kubernetes, it has `omit()` (an
    /// empty optional), `merge(a, b)` of maps, and the given functions by name: each joins its arguments with
    /// `-` and converts the text.
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

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns the variables that the expression needs, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(String::as_str)
    }

    /// Returns whether the expression needs a variable.
    pub fn uses(&self, name: &str) -> bool {
        self.0.names.contains(name)
    }

    /// Returns the chains of fields that the expression selects from a variable, such as `a`, `b` for
    /// `self.a.b`; leaves out fields that are selected through an index or a loop.
    pub fn selections(&self, name: &str) -> Vec<Vec<&str>> {
        select::chains(&self.0.root, name)
    }

    /// Evaluates the expression. In the result, an empty optional becomes null, times and durations become
    /// strings, bytes become base64.
    pub fn evaluate(&self, bindings: &Bindings<'_>) -> Result<Value, CelError> {
        let limits = &self.0.limits;
        let mut budget = Budget::new(limits.steps, limits.deadline);
        self.evaluate_within(bindings, &mut budget)
    }

    /// Evaluates the expression within its own limits and a shared budget.
    pub fn evaluate_within(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Value, CelError> {
        eval::evaluate(&self.0.root, &self.0.limits, bindings, budget)
    }

    /// Evaluates an expression of a template; None if the result is an empty optional. Empty optionals are
    /// also left out of the maps and lists in the result.
    pub fn evaluate_template(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Value>, CelError> {
        eval::evaluate_template(&self.0.root, &self.0.limits, bindings, budget)
    }

    /// Evaluates an expression whose result must be a boolean.
    pub fn holds(&self, bindings: &Bindings<'_>, budget: &mut Budget) -> Result<bool, CelError> {
        match self.evaluate_within(bindings, budget)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err(CelError::failed(
                "the expression must evaluate to true or false",
            )),
        }
    }
}
