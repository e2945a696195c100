//! Evaluates untrusted CEL expressions under limits on steps, memory and time.
//!
//! CRD rules, admission policies and templates contain such expressions. The `cel` crate parses them, and
//! this crate evaluates them. The interpreter of the `cel` crate has no limits and cannot be stopped: four
//! nested loops over 300 items took more than 30 seconds, and a sum of 10,000 terms overflowed the stack.
//! This crate converts the parsed tree to its own tree. It counts each step of the evaluation and each byte
//! that it allocates, and stops at the first exceeded limit with [`CelError::Limit`]; `||` does not hide that
//! error.
//!
//! - Parsing runs on a thread with a large stack. The length of the source is checked before parsing; the
//!   number of nodes, the depth and the nesting of loops are checked after parsing.
//! - Evaluation runs on the caller's thread with a small stack, because the depth of the tree is limited. It
//!   borrows the bindings and does not copy them.
//!
//! Values are JSON: integers are `int`, other numbers are `double`, and `1 == 1.0`. A missing key is an
//! error. If a value is bound with a schema, strings of the formats `date-time`, `duration` and `byte` have
//! the types that Kubernetes gives them, and the equality of lists of type `set` and `map` ignores their
//! order.
//!
//! CRD rules write property names that are not CEL identifiers in an escaped form: `__dot__`, `__dash__`,
//! `__slash__`, `__underscores__`, and `__namespace__` and the other reserved words. If a bound schema
//! declares the properties of an object, an escaped field name selects only the property with the unescaped
//! name. All other expressions, including policies, do not unescape field names.
//!
//! Supported: the standard library, macros with one and two variables, optionals, the extensions for strings,
//! lists, sets, math, base64 and regex, quantities, the authorizer. Not supported: protobuf messages, URLs,
//! IP addresses, semantic versions, named formats.

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
    /// The largest number of nodes in the expression.
    pub nodes: usize,
    /// The largest nesting depth of the expression. `a + b + c` has depth 3, because each `+` adds a level.
    pub depth: usize,
    /// The largest nesting depth of loops (`all`, `map`, ...).
    pub loops: usize,
    /// The largest number of items over which one loop may run.
    pub range: usize,
    /// The largest number of steps of one evaluation.
    pub steps: u64,
    /// The largest number of bytes that one evaluation may allocate in total.
    pub memory: usize,
    /// The largest size of the result as JSON, in bytes.
    pub output: usize,
    /// The longest time that one evaluation may take.
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
    /// The source text is longer than [`Limits::source`].
    Source,
    /// The expression has more nodes than [`Limits::nodes`].
    Nodes,
    /// The expression is nested deeper than [`Limits::depth`], or it uses policy variables that together are nested
    /// too deep.
    Depth,
    /// Loops are nested deeper than [`Limits::loops`].
    Loops,
    /// A loop runs over more items than [`Limits::range`].
    Range,
    /// The evaluation needs more steps than [`Limits::steps`].
    Steps,
    /// The evaluation allocates more bytes than [`Limits::memory`].
    Memory,
    /// The result is larger than [`Limits::output`].
    Output,
    /// The evaluation takes longer than [`Limits::deadline`].
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
    /// The source is not valid CEL. Contains the error of the parser.
    #[error("cannot read the expression: {0}")]
    Syntax(SyntaxError),
    /// The expression uses an unsupported function or syntax. Contains the message.
    #[error("cannot read the expression: {0}")]
    Unknown(String),
    /// A limit is exceeded. `||` and optionals do not hide this error.
    #[error("{bound} (limit {limit}); simplify the expression or make its input smaller")]
    Limit {
        /// The limit that was exceeded.
        bound: Bound,
        /// The value of the limit, in its own unit; the deadline is in milliseconds.
        limit: u64,
    },
    /// The evaluation failed for the bound values, for example because a key is missing. Contains the message.
    #[error("{0}")]
    Failed(String),
}

/// A syntax error, with its position if the parser reports one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The message of the parser about the error.
    pub message: String,
    /// The line and the column of the error, both counted from 1; None if the parser reports no position.
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
    /// Returns whether the error is an exceeded limit.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. })
    }

    /// Returns the exceeded limit; None for all other errors.
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

/// A permission query that an expression sends to the authorizer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessQuery {
    /// The verb that the user or service account must be allowed, such as `get`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
    /// The namespace; empty for all namespaces.
    pub namespace: String,
    /// The name of the object; empty for all objects.
    pub name: String,
    /// The URL path of the query; None if the query is about a resource.
    pub path: Option<String>,
    /// The namespace and name of the service account whose permissions are queried; None for the user of the request.
    pub service_account: Option<(String, String)>,
}

/// A function that returns whether a permission is granted. The type is a borrowed closure, so that the function can
/// use borrowed data, such as a store.
pub type Authorizer<'b> = &'b dyn Fn(&AccessQuery) -> bool;

/// The variables that an expression can use, borrowed for one evaluation.
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
    /// Creates bindings without variables.
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

    /// Binds a variable to a value with an OpenAPI schema. The schema determines the types of strings and
    /// lists in the value.
    pub fn with_schema(mut self, name: &'b str, value: &'b Value, schema: &'b Value) -> Self {
        let bound = Binding::Present(Cow::Borrowed(value), Some(schema));
        self.values.insert(Cow::Borrowed(name), bound);
        self
    }

    /// Binds a variable to null, because its value does not exist: for example `oldObject` when an object is created.
    pub fn with_absent(self, name: &'b str) -> Self {
        self.with_owned(name, Value::Null)
    }

    /// Binds a variable to a CEL optional; None becomes an empty optional. An example is `oldSelf` in a rule with
    /// `optionalOldSelf`.
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

    /// Adds the policy variable `variables.NAME`. It is evaluated when the expression first uses it, within the
    /// limits of `program`. A policy variable can use those that were added before it.
    pub fn with_variable(mut self, name: &'b str, program: &'b Program) -> Self {
        self.variables.push((name, program));
        self
    }

    /// Adds an authorizer, which answers the permission queries of the expression.
    pub fn with_authorizer(mut self, authorizer: Authorizer<'b>) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// Sets the permission query that `authorizer.requestResource` starts with: the resource of the request.
    pub fn with_request_resource(mut self, query: AccessQuery) -> Self {
        self.request_resource = Some(query);
        self
    }
}

/// A budget that several evaluations share, so that many cheap rules together are limited too.
#[derive(Debug, Clone)]
pub struct Budget {
    steps: u64,
    output: usize,
    ends: Option<Instant>,
    deadline: Duration,
}

impl Budget {
    /// Creates a budget with this number of steps and a deadline, which is counted from now.
    pub fn new(steps: u64, deadline: Duration) -> Self {
        Self {
            steps,
            output: usize::MAX,
            ends: Instant::now().checked_add(deadline),
            deadline,
        }
    }

    /// Limits the size of the results of all evaluations together, in bytes of JSON.
    pub fn with_output(self, bytes: usize) -> Self {
        Self {
            output: bytes,
            ..self
        }
    }

    /// Returns whether the deadline of the budget has passed.
    pub fn is_late(&self) -> bool {
        self.ends.is_some_and(|ends| Instant::now() > ends)
    }

    /// Returns whether all steps of the budget are used.
    pub fn is_spent(&self) -> bool {
        self.steps == 0
    }
}

/// A template function that converts a text to another text; see [`Program::compile_template`].
pub type TextFunction = fn(&str) -> String;

/// A compiled expression. It is cheap to clone and can be used from any thread.
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
    /// Compiles an expression that may call the functions of Kubernetes.
    pub fn compile(source: &str, limits: &Limits) -> Result<Self, CelError> {
        Self::compile_for(compile::Dialect::Kubernetes, source, limits)
    }

    /// Compiles a template expression. In addition to the functions of Kubernetes, it may call `omit()` (an empty
    /// optional), `merge(a, b)` for maps, and the given `functions` by their names. Such a function gets its
    /// arguments joined with `-`.
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

    /// Returns the source text of the expression.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns the names that the expression uses and its caller must bind, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(String::as_str)
    }

    /// Returns whether the expression uses the variable `name`.
    pub fn uses(&self, name: &str) -> bool {
        self.0.names.contains(name)
    }

    /// Returns the fields that the expression selects from a variable, such as `[a, b]` for `self.a.b`. Does not
    /// include fields that it selects through an index or a loop.
    pub fn selections(&self, name: &str) -> Vec<Vec<&str>> {
        select::chains(&self.0.root, name)
    }

    /// Evaluates the expression with its own limits. The result is JSON: an empty optional becomes null,
    /// times and durations become strings, bytes become base64.
    pub fn evaluate(&self, bindings: &Bindings<'_>) -> Result<Value, CelError> {
        let limits = &self.0.limits;
        let mut budget = Budget::new(limits.steps, limits.deadline);
        self.evaluate_within(bindings, &mut budget)
    }

    /// Evaluates the expression with its own limits, and also within a budget that it shares with other evaluations.
    pub fn evaluate_within(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Value, CelError> {
        eval::evaluate(&self.0.root, &self.0.limits, bindings, budget)
    }

    /// Evaluates a template expression; None if the result is an empty optional. An empty optional inside a map or
    /// list of the result is left out.
    pub fn evaluate_template(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Value>, CelError> {
        eval::evaluate_template(&self.0.root, &self.0.limits, bindings, budget)
    }

    /// Evaluates the expression, which must return a boolean. Any other result is an error.
    pub fn holds(&self, bindings: &Bindings<'_>, budget: &mut Budget) -> Result<bool, CelError> {
        match self.evaluate_within(bindings, budget)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err(CelError::failed(
                "the expression must evaluate to true or false",
            )),
        }
    }
}
