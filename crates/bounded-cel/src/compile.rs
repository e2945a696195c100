//! Compiles the source text of an expression to a tree, and checks the limits on its size.

use std::collections::BTreeSet;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::functions::{self, Pattern};
use super::parser;
use super::tree::{Call, Constant, Field, Loop, LoopKind, Node, Operator};
use super::{Bound, CelError, Limits, SyntaxError, TextFunction};

/// Compiles an expression. Returns its tree, and the names that the caller must bind: all names in the source except
/// types and loop variables.
pub(super) fn compile(
    dialect: Dialect,
    source: &str,
    limits: &Limits,
) -> Result<(Node, BTreeSet<String>), CelError> {
    if source.len() > limits.source {
        return Err(CelError::limit(Bound::Source, limits.source));
    }
    let (text, limits) = (source.to_owned(), *limits);
    parser::run(source.len(), move || parse(dialect, &text, &limits))
        .unwrap_or_else(|why| Err(CelError::syntax(why)))
}

fn parse(
    dialect: Dialect,
    source: &str,
    limits: &Limits,
) -> Result<(Node, BTreeSet<String>), CelError> {
    // The macros of the parser are off, because they would expand loops. So the parser returns a loop as a call, and
    // the builder converts this call to a loop node.
    let parsed = cel::Env::default()
        .parser()
        .enable_ident_escape_syntax(true)
        .parse(source)
        .map_err(|errors| {
            let first = errors.errors.first();
            first.map_or_else(
                || CelError::syntax("it is empty"),
                |error| {
                    let (line, column) = error.pos;
                    let counted = |at| usize::try_from(at).ok().filter(|at| *at > 0);
                    let place = counted(line).zip(counted(column));
                    CelError::Syntax(SyntaxError {
                        message: error.msg.clone(),
                        place,
                    })
                },
            )
        })?;
    let mut builder = Builder {
        dialect,
        limits,
        nodes: 0,
        depth: 0,
        loops: 0,
        bound: Vec::new(),
        names: BTreeSet::new(),
    };
    let node = builder.node(&parsed)?;
    Ok((node, builder.names))
}

/// The functions that an expression may call: those of Kubernetes, or these and those of templates.
#[derive(Clone, Copy)]
pub(super) enum Dialect {
    Kubernetes,
    Template(&'static [(&'static str, TextFunction)]),
}

struct Builder<'l> {
    dialect: Dialect,
    limits: &'l Limits,
    nodes: usize,
    depth: usize,
    loops: usize,
    /// The variables of the loops around the current node.
    bound: Vec<String>,
    names: BTreeSet<String>,
}

type Built<T = Node> = Result<T, CelError>;

impl Builder<'_> {
    fn node(&mut self, ided: &IdedExpr) -> Built {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(CelError::limit(Bound::Nodes, self.limits.nodes));
        }
        self.depth += 1;
        if self.depth > self.limits.depth {
            return Err(CelError::limit(Bound::Depth, self.limits.depth));
        }
        let node = self.expression(&ided.expr)?;
        self.depth -= 1;
        Ok(node)
    }

    fn boxed(&mut self, ided: &IdedExpr) -> Built<Box<Node>> {
        self.node(ided).map(Box::new)
    }

    fn expression(&mut self, expr: &Expr) -> Built {
        Ok(match expr {
            Expr::Unspecified => return Err(CelError::syntax("a part is missing")),
            Expr::Literal(literal) => Node::Constant(constant(literal)),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => Node::Select {
                of: self.boxed(&select.operand)?,
                field: field(&select.field),
                optional: false,
            },
            Expr::List(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for (at, element) in list.elements.iter().enumerate() {
                    items.push((self.node(element)?, list.optional_indices.contains(&at)));
                }
                Node::List(items)
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err(unknown("messages are not supported"));
                    };
                    entries.push((
                        self.node(&entry.key)?,
                        self.node(&entry.value)?,
                        entry.optional,
                    ));
                }
                Node::Map(entries)
            }
            Expr::Struct(message) => {
                return Err(unknown(format!(
                    "message {} is not supported",
                    message.type_name
                )));
            }
            Expr::Comprehension(_) => return Err(unknown("a loop in a form that is not known")),
            Expr::Call(call) => self.call(&call.func_name, call.target.as_deref(), &call.args)?,
        })
    }

    fn name(&mut self, name: &str) -> Node {
        let plain = name.strip_prefix('.').unwrap_or(name);
        if !self.bound.iter().any(|bound| bound == plain) {
            if let Some(kind) = functions::type_named(plain) {
                return Node::Constant(Constant::Type(kind));
            }
            self.names.insert(plain.to_owned());
        }
        Node::Name(plain.to_owned())
    }

    fn call(&mut self, name: &str, target: Option<&IdedExpr>, args: &[IdedExpr]) -> Built {
        if let Some(node) = self.operator(name, args)? {
            return Ok(node);
        }
        match (name, target, args) {
            ("has", None, [of]) => return self.has(of),
            (_, Some(range), args) => {
                if let Some(node) = self.looped(name, range, args)? {
                    return Ok(node);
                }
            }
            _ => {}
        }
        // The name `optional` in `optional.of(x)` is no variable but the namespace of the function.
        let namespace = match target.map(|t| &t.expr) {
            Some(Expr::Ident(space)) if !self.bound.contains(space) => Some(space.as_str()),
            _ => None,
        };
        let count = args.len();
        let (function, target) = match namespace
            .and_then(|space| functions::resolve(&format!("{space}.{name}"), false, count))
        {
            Some(function) => (Some(function), None),
            None => {
                let known = functions::resolve(name, target.is_some(), count);
                let known = known.or_else(|| match (self.dialect, target) {
                    (Dialect::Template(texts), None) => {
                        functions::resolve_for_template(name, count, texts)
                    }
                    _ => None,
                });
                (known, target)
            }
        };
        let Some(function) = function else {
            return Err(unknown(format!(
                "function {name} with {count} arguments is not known"
            )));
        };
        let mut nodes = Vec::with_capacity(count + 1);
        for arg in target.into_iter().chain(args) {
            nodes.push(self.node(arg)?);
        }
        let pattern = match nodes.get(1) {
            Some(Node::Constant(Constant::Text(text))) if function.takes_pattern() => {
                Some(Pattern::new(text)?)
            }
            _ => None,
        };
        Ok(Node::Call(Box::new(Call {
            function,
            args: nodes,
            pattern,
        })))
    }

    fn operator(&mut self, name: &str, args: &[IdedExpr]) -> Built<Option<Node>> {
        let binary = match name {
            operators::ADD => Operator::Add,
            operators::SUBSTRACT => Operator::Subtract,
            operators::MULTIPLY => Operator::Multiply,
            operators::DIVIDE => Operator::Divide,
            operators::MODULO => Operator::Remainder,
            operators::EQUALS => Operator::Equal,
            operators::NOT_EQUALS => Operator::NotEqual,
            operators::LESS => Operator::Less,
            operators::LESS_EQUALS => Operator::LessOrEqual,
            operators::GREATER => Operator::Greater,
            operators::GREATER_EQUALS => Operator::GreaterOrEqual,
            operators::IN => Operator::In,
            _ => return self.other_operator(name, args),
        };
        let [left, right] = args else {
            return Ok(None);
        };
        let sides = Box::new([self.node(left)?, self.node(right)?]);
        Ok(Some(Node::Binary(binary, sides)))
    }

    fn other_operator(&mut self, name: &str, args: &[IdedExpr]) -> Built<Option<Node>> {
        Ok(Some(match (name, args) {
            (operators::LOGICAL_AND, [left, right]) => {
                Node::And(Box::new([self.node(left)?, self.node(right)?]))
            }
            (operators::LOGICAL_OR, [left, right]) => {
                Node::Or(Box::new([self.node(left)?, self.node(right)?]))
            }
            (operators::LOGICAL_NOT, [of]) => Node::Not(self.boxed(of)?),
            (operators::NEGATE, [of]) => Node::Negate(self.boxed(of)?),
            (operators::CONDITIONAL, [when, then, or]) => Node::Choose(Box::new([
                self.node(when)?,
                self.node(then)?,
                self.node(or)?,
            ])),
            (operators::INDEX, [of, key]) => Node::Index {
                of: self.boxed(of)?,
                key: self.boxed(key)?,
                optional: false,
            },
            (operators::OPT_INDEX, [of, key]) => Node::Index {
                of: self.boxed(of)?,
                key: self.boxed(key)?,
                optional: true,
            },
            (operators::OPT_SELECT, [of, field]) => {
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                    return Err(CelError::syntax("a field's name is missing"));
                };
                Node::Select {
                    of: self.boxed(of)?,
                    field: self::field(field.inner()),
                    optional: true,
                }
            }
            _ => return Ok(None),
        }))
    }

    fn has(&mut self, of: &IdedExpr) -> Built {
        match &of.expr {
            Expr::Select(select) => Ok(Node::Has {
                of: self.boxed(&select.operand)?,
                field: field(&select.field),
            }),
            _ => Err(CelError::syntax(
                "has() takes a field, as in has(self.name)",
            )),
        }
    }

    fn looped(&mut self, name: &str, range: &IdedExpr, args: &[IdedExpr]) -> Built<Option<Node>> {
        use LoopKind::{
            All, Exists, ExistsOne, Filter, Map, OptFlatMap, OptMap, TransformList, TransformMap,
            TransformMapEntry,
        };
        let (kind, pairs, filter, body) = match (name, args) {
            ("all", [_, body]) => (All, false, None, body),
            ("all", [_, _, body]) => (All, true, None, body),
            ("exists", [_, body]) => (Exists, false, None, body),
            ("exists", [_, _, body]) => (Exists, true, None, body),
            ("exists_one" | "existsOne", [_, body]) => (ExistsOne, false, None, body),
            ("exists_one" | "existsOne", [_, _, body]) => (ExistsOne, true, None, body),
            ("map", [_, body]) => (Map, false, None, body),
            ("map", [_, filter, body]) => (Map, false, Some(filter), body),
            ("filter", [_, body]) => (Filter, false, None, body),
            ("transformList", [_, _, body]) => (TransformList, true, None, body),
            ("transformList", [_, _, filter, body]) => (TransformList, true, Some(filter), body),
            ("transformMap", [_, _, body]) => (TransformMap, true, None, body),
            ("transformMap", [_, _, filter, body]) => (TransformMap, true, Some(filter), body),
            ("transformMapEntry", [_, _, body]) => (TransformMapEntry, true, None, body),
            ("transformMapEntry", [_, _, filter, body]) => {
                (TransformMapEntry, true, Some(filter), body)
            }
            ("optMap", [_, body]) => (OptMap, false, None, body),
            ("optFlatMap", [_, body]) => (OptFlatMap, false, None, body),
            _ => return Ok(None),
        };
        let range = self.node(range)?;
        let mut variables =
            args.iter()
                .take(if pairs { 2 } else { 1 })
                .map(|arg| match &arg.expr {
                    Expr::Ident(name) if !name.starts_with('.') => Ok(name.clone()),
                    _ => Err(CelError::syntax(format!(
                        "{name}() takes a name first, as in {name}(x, ...)"
                    ))),
                });
        let variable = variables.next().transpose()?.unwrap_or_default();
        let value_variable = variables.next().transpose()?;
        if !matches!(kind, OptMap | OptFlatMap) {
            self.loops += 1;
            if self.loops > self.limits.loops {
                return Err(CelError::limit(Bound::Loops, self.limits.loops));
            }
        }
        let before = self.bound.len();
        self.bound.push(variable.clone());
        self.bound.extend(value_variable.clone());
        let filter = filter.map(|filter| self.node(filter)).transpose()?;
        let body = self.node(body)?;
        self.bound.truncate(before);
        if !matches!(kind, OptMap | OptFlatMap) {
            self.loops -= 1;
        }
        Ok(Some(Node::Loop(Box::new(Loop {
            kind,
            range,
            variable,
            value_variable,
            filter,
            body,
        }))))
    }
}

fn unknown(message: impl Into<String>) -> CelError {
    CelError::Unknown(message.into())
}

fn constant(literal: &LiteralValue) -> Constant {
    match literal {
        LiteralValue::Null => Constant::Null,
        LiteralValue::Boolean(is) => Constant::Bool(*is.inner()),
        LiteralValue::Int(number) => Constant::Int(*number.inner()),
        LiteralValue::UInt(number) => Constant::Uint(*number.inner()),
        LiteralValue::Double(number) => Constant::Double(*number.inner()),
        LiteralValue::String(text) => Constant::Text(text.inner().to_owned()),
        LiteralValue::Bytes(bytes) => Constant::Bytes(bytes.inner().to_owned()),
    }
}

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

fn field(name: &str) -> Field {
    Field {
        written: name.to_owned(),
        property: Some(unescape(name)).filter(|property| property != name),
    }
}

/// Decodes an escaped property name of a CRD rule: `a__dot__b` becomes `a.b`.
fn unescape(field: &str) -> String {
    if !field.contains("__") {
        return field.to_owned();
    }
    if let Some(word) = field.strip_prefix("__").and_then(|f| f.strip_suffix("__"))
        && RESERVED.contains(&word)
    {
        return word.to_owned();
    }
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find("__") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let escape = [
            ("__underscores__", "__"),
            ("__dot__", "."),
            ("__dash__", "-"),
            ("__slash__", "/"),
        ]
        .into_iter()
        .find_map(|(escape, plain)| from.strip_prefix(escape).map(|rest| (plain, rest)));
        let (plain, after) = escape.unwrap_or(("_", from.get(1..).unwrap_or_default()));
        out.push_str(plain);
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn property_names_come_back() {
        for (escaped, plain) in [
            ("name", "name"),
            ("a_b", "a_b"),
            ("__namespace__", "namespace"),
            ("__in__", "in"),
            ("__name__", "__name__"),
            ("foo__dot__bar", "foo.bar"),
            ("x__dash__prop", "x-prop"),
            ("a__slash__b__dot__c", "a/b.c"),
            ("redact__underscores__d", "redact__d"),
            ("x__underscores__dot__underscores__y", "x__dot__y"),
            ("a___dash__b", "a_-b"),
            ("__", "__"),
        ] {
            assert_eq!(unescape(escaped), plain, "{escaped}");
        }
    }
}
