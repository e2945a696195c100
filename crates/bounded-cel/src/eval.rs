//! Evaluates the tree of an expression, and charges every step to the budget.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::functions;
use super::meter::Meter;
use super::tree::{Constant, Field, Node, Operator};
use super::value::{Key, Text, Val};
use super::{AccessQuery, Binding, Bindings, Bound, Budget, CelError, Limits};

/// The largest nesting depth of one evaluation. A policy variable is evaluated inside the expression that uses it, so
/// the depths of policy variables that use each other add up.
const TOTAL_DEPTH: usize = 200;

pub(super) fn evaluate(
    root: &Node,
    limits: &Limits,
    bindings: &Bindings<'_>,
    budget: &mut Budget,
) -> Result<Value, CelError> {
    let mut evaluation = Evaluation::new(limits, bindings, budget);
    let result = evaluation
        .node(root)
        .and_then(|value| value.into_json(&mut evaluation.meter));
    evaluation.meter.settle(budget);
    result
}

/// Evaluates the tree of a template expression; None if the result is an empty optional.
pub(super) fn evaluate_template(
    root: &Node,
    limits: &Limits,
    bindings: &Bindings<'_>,
    budget: &mut Budget,
) -> Result<Option<Value>, CelError> {
    let mut evaluation = Evaluation::new(limits, bindings, budget);
    let result = evaluation
        .node(root)
        .and_then(|value| value.into_template(&mut evaluation.meter));
    evaluation.meter.settle(budget);
    result
}

pub(super) type Evaluated<'a> = Result<Val<'a>, CelError>;

/// The state of one evaluation: its budget, and the variables of the enclosing loops.
pub(super) struct Evaluation<'a> {
    pub(super) bindings: &'a Bindings<'a>,
    pub(super) meter: Meter,
    pub(super) scope: Vec<(&'a str, Val<'a>)>,
    variables: Vec<Option<Evaluated<'a>>>,
    /// The number of policy variables that the current expression may use, because a policy variable may use only
    /// those that were added before it.
    visible: usize,
    depth: usize,
}

impl<'a> Evaluation<'a> {
    fn new(limits: &Limits, bindings: &'a Bindings<'a>, budget: &Budget) -> Self {
        Self {
            bindings,
            meter: Meter::new(limits, budget),
            scope: Vec::new(),
            variables: vec![None; bindings.variables.len()],
            visible: bindings.variables.len(),
            depth: 0,
        }
    }

    /// Evaluates a node. Each type of node has its own function, so that this recursive function needs little stack.
    pub(super) fn node(&mut self, node: &'a Node) -> Evaluated<'a> {
        self.meter.step(1)?;
        if self.depth >= TOTAL_DEPTH {
            return Err(CelError::limit(Bound::Depth, TOTAL_DEPTH));
        }
        self.depth += 1;
        let result = match node {
            Node::Constant(constant) => self.constant(constant),
            Node::Name(name) => self.name(name),
            Node::Select {
                of,
                field,
                optional,
            } => self.select(of, field, *optional),
            Node::Has { of, field } => self.has(of, field),
            Node::Index { of, key, optional } => self.index(of, key, *optional),
            Node::And(sides) => self.both(sides),
            Node::Or(sides) => self.either(sides),
            Node::Not(of) => self.not(of),
            Node::Negate(of) => self.negate(of),
            Node::Choose(parts) => self.choose(parts),
            Node::Binary(operator, sides) => self.binary(*operator, sides),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Loop(looped) => self.looped(looped),
            Node::Call(call) => functions::call(self, call),
        };
        self.depth -= 1;
        result
    }

    fn constant(&mut self, constant: &'a Constant) -> Evaluated<'a> {
        Ok(match constant {
            Constant::Null => Val::Null,
            Constant::Bool(is) => Val::Bool(*is),
            Constant::Int(int) => Val::Int(*int),
            Constant::Uint(uint) => Val::Uint(*uint),
            Constant::Double(double) => Val::Double(*double),
            Constant::Text(text) => Val::Text(Text::Borrowed(text)),
            Constant::Bytes(bytes) => {
                self.meter.make(bytes.len())?;
                Val::Bytes(bytes.as_slice().into())
            }
            Constant::Type(name) => Val::Type(name),
        })
    }

    fn name(&mut self, name: &'a str) -> Evaluated<'a> {
        if let Some((_, value)) = self.scope.iter().rev().find(|(bound, _)| *bound == name) {
            return Ok(value.clone());
        }
        match self.bindings.values.get(name) {
            Some(Binding::Present(value, schema)) => return Ok(Val::json(value, *schema)),
            Some(Binding::Optional(value)) => {
                let value = value.map(|(value, schema)| Rc::new(Val::json(value, schema)));
                return Ok(Val::Optional(value));
            }
            None => {}
        }
        match name {
            "authorizer" if self.bindings.authorizer.is_some() => {
                Ok(Val::Access(Rc::new(AccessQuery::default())))
            }
            "variables" => Ok(Val::Variables),
            _ => Err(CelError::failed(format!("{name} is not defined"))),
        }
    }

    fn select(&mut self, of: &'a Node, field: &'a Field, optional: bool) -> Evaluated<'a> {
        let of = self.node(of)?;
        if let Val::Optional(inner) = &of {
            let found = match inner {
                Some(inner) => self.field(inner, field)?,
                None => None,
            };
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        let found = self.field(&of, field)?;
        match found {
            found if optional => Ok(Val::Optional(found.map(Rc::new))),
            Some(value) => Ok(value),
            None => Err(no_such_key(&field.written)),
        }
    }

    fn has(&mut self, of: &'a Node, field: &'a Field) -> Evaluated<'a> {
        let of = self.node(of)?;
        let found = match &of {
            Val::Optional(None) => None,
            Val::Optional(Some(inner)) => self.field(inner, field)?,
            of => self.field(of, field)?,
        };
        Ok(Val::Bool(found.is_some()))
    }

    fn field(&mut self, of: &Val<'a>, field: &'a Field) -> Result<Option<Val<'a>>, CelError> {
        let name = match &field.property {
            Some(property) if of.declares_properties() => property,
            _ => &field.written,
        };
        match of {
            Val::Json(Value::Object(_), _) | Val::Map(_) => Ok(of.field(name)),
            Val::Variables => self.variable(name).map(Some),
            Val::Access(query)
                if name == "requestResource" && **query == AccessQuery::default() =>
            {
                let query = self.bindings.request_resource.clone();
                Ok(query.map(|query| Val::Access(Rc::new(query))))
            }
            // A scalar and null have no fields, as in Kubernetes. The caller decides whether a missing field is an
            // error.
            _ => Ok(None),
        }
    }

    fn variable(&mut self, name: &str) -> Evaluated<'a> {
        let bindings = self.bindings;
        let known = bindings.variables.iter().take(self.visible);
        let Some((at, (_, program))) = known.enumerate().rfind(|(_, (known, _))| *known == name)
        else {
            return Err(CelError::failed(format!("variables.{name} is not defined")));
        };
        if let Some(Some(result)) = self.variables.get(at) {
            return result.clone();
        }
        let scope = std::mem::take(&mut self.scope);
        let visible = std::mem::replace(&mut self.visible, at);
        let result = self.node(&program.0.root).map_err(|error| match error {
            CelError::Failed(why) => CelError::failed(format!(
                "composited variable \"{name}\" fails to evaluate: {why}"
            )),
            error => error,
        });
        self.scope = scope;
        self.visible = visible;
        if let Some(slot) = self.variables.get_mut(at) {
            *slot = Some(result.clone());
        }
        result
    }

    fn index(&mut self, of: &'a Node, key: &'a Node, optional: bool) -> Evaluated<'a> {
        let of = self.node(of)?;
        let key = self.node(key)?;
        if let Val::Optional(inner) = &of {
            let found = match inner {
                Some(inner) => lookup(inner, &key)?,
                None => None,
            };
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        match lookup(&of, &key)? {
            found if optional => Ok(Val::Optional(found.map(Rc::new))),
            Some(value) => Ok(value),
            None if of.list_len().is_some() => Err(CelError::failed(format!(
                "index out of bounds: {}",
                show_key(&key)
            ))),
            None => Err(no_such_key(&show_key(&key))),
        }
    }

    pub(super) fn truth(&mut self, node: &'a Node) -> Result<bool, CelError> {
        match self.node(node)? {
            Val::Bool(is) => Ok(is),
            other => Err(CelError::failed(format!(
                "no such overload: true or false is needed, not {}",
                other.type_name()
            ))),
        }
    }

    fn both(&mut self, [left, right]: &'a [Node; 2]) -> Evaluated<'a> {
        self.decide(left, right, false)
    }

    fn either(&mut self, [left, right]: &'a [Node; 2]) -> Evaluated<'a> {
        self.decide(left, right, true)
    }

    /// Evaluates `&&` or `||`. `settles` is the value that one side needs to decide the result alone: false for `&&`,
    /// true for `||`. If one side decides, an error of the other side is ignored, except an exceeded limit.
    fn decide(&mut self, left: &'a Node, right: &'a Node, settles: bool) -> Evaluated<'a> {
        let left = match self.truth(left) {
            Ok(is) if is == settles => return Ok(Val::Bool(settles)),
            Err(limit) if limit.is_limit() => return Err(limit),
            other => other,
        };
        match self.truth(right) {
            Ok(is) if is == settles => Ok(Val::Bool(settles)),
            Err(limit) if limit.is_limit() => Err(limit),
            right => left.and(right).map(Val::Bool),
        }
    }

    fn not(&mut self, of: &'a Node) -> Evaluated<'a> {
        Ok(Val::Bool(!self.truth(of)?))
    }

    fn negate(&mut self, of: &'a Node) -> Evaluated<'a> {
        match self.node(of)? {
            Val::Int(int) => int.checked_neg().map(Val::Int).ok_or_else(overflow),
            Val::Double(double) => Ok(Val::Double(-double)),
            Val::Span(nanos) => nanos.checked_neg().map(Val::Span).ok_or_else(overflow),
            other => Err(CelError::failed(format!(
                "no such overload: -({})",
                other.type_name()
            ))),
        }
    }

    fn choose(&mut self, [when, then, or]: &'a [Node; 3]) -> Evaluated<'a> {
        if self.truth(when)? {
            self.node(then)
        } else {
            self.node(or)
        }
    }

    fn binary(&mut self, operator: Operator, [left, right]: &'a [Node; 2]) -> Evaluated<'a> {
        let left = self.node(left)?;
        let right = self.node(right)?;
        functions::operate(operator, left, right, &mut self.meter)
    }

    fn list(&mut self, nodes: &'a [(Node, bool)]) -> Evaluated<'a> {
        self.meter
            .make(std::mem::size_of::<Val<'_>>() * nodes.len())?;
        let mut items = Vec::with_capacity(nodes.len());
        for (node, optional) in nodes {
            match self.node(node)? {
                Val::Optional(value) if *optional => {
                    items.extend(value.map(|value| (*value).clone()));
                }
                other if *optional => return Err(needs_optional(&other)),
                value => items.push(value),
            }
        }
        Ok(Val::list(items))
    }

    fn map(&mut self, nodes: &'a [(Node, Node, bool)]) -> Evaluated<'a> {
        let mut map = BTreeMap::new();
        for (key, value, optional) in nodes {
            let key = self.node(key)?;
            let value = match self.node(value)? {
                Val::Optional(None) if *optional => continue,
                Val::Optional(Some(value)) if *optional => (*value).clone(),
                other if *optional => return Err(needs_optional(&other)),
                value => value,
            };
            self.insert(&mut map, &key, value)?;
        }
        Ok(Val::Map(Rc::new(map)))
    }

    pub(super) fn insert(
        &mut self,
        map: &mut BTreeMap<Key<'a>, Val<'a>>,
        key: &Val<'a>,
        value: Val<'a>,
    ) -> Result<(), CelError> {
        self.meter.make(2 * std::mem::size_of::<Val<'_>>())?;
        let Some(key) = key.key() else {
            return Err(CelError::failed(format!(
                "a {} cannot be a key",
                key.type_name()
            )));
        };
        match map.insert(key, value) {
            None => Ok(()),
            Some(_) => Err(CelError::failed("a key stands twice in a map")),
        }
    }
}

fn lookup<'a>(of: &Val<'a>, key: &Val<'a>) -> Result<Option<Val<'a>>, CelError> {
    if of.list_len().is_some() {
        let at = match key.key() {
            Some(Key::Int(at)) => at,
            _ => {
                return Err(CelError::failed(format!(
                    "unsupported index type '{}' in list",
                    key.type_name()
                )));
            }
        };
        return Ok(usize::try_from(at).ok().and_then(|at| of.item(at)));
    }
    if of.map_len().is_some() {
        return match key.key() {
            Some(key) => Ok(of.entry(&key)),
            None => Err(CelError::failed(format!(
                "a {} cannot be a key",
                key.type_name()
            ))),
        };
    }
    Ok(None)
}

fn no_such_key(key: &str) -> CelError {
    CelError::failed(format!("no such key: {}", shown(key)))
}

fn show_key(key: &Val<'_>) -> String {
    match key {
        Val::Text(text) => (**text).to_owned(),
        Val::Int(int) => int.to_string(),
        Val::Bool(is) => is.to_string(),
        other => other.type_name().to_owned(),
    }
}

/// Shortens a text to 60 characters for a message.
fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn overflow() -> CelError {
    CelError::failed("integer overflow")
}

pub(super) fn needs_optional(value: &Val<'_>) -> CelError {
    CelError::failed(format!(
        "a {} stands where an optional is needed",
        value.type_name()
    ))
}
