//! `${...}` in the strings of a template.
//!
//! A string that is one expression becomes its value, with its type; expressions among text become text.
//! `$${` stands for `${` itself. What an expression gives is never read as a template again, so `${` and
//! `{{ }}` in data are only data.
//!
//! A template is read as a whole before any of it is evaluated: a mistake in a resource that development
//! leaves out is found there, not in production.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::error::{Column, Fault};
use super::library::Library;
use crate::cel::{self, Bindings, Budget, CelError, Program};

/// The way from the root of a template to a place in it, as the walk goes.
#[derive(Clone, Copy)]
pub(super) struct Trail<'a> {
    before: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

impl<'a> Trail<'a> {
    pub(super) fn root(field: &'a str) -> Self {
        Self {
            before: None,
            step: Step::Field(field),
        }
    }

    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self {
            before: Some(self),
            step: Step::Field(name),
        }
    }

    pub(super) fn item(&'a self, at: usize) -> Self {
        Self {
            before: Some(self),
            step: Step::Item(at),
        }
    }

    fn fault(&self, column: Column, message: impl Into<String>) -> Fault {
        Fault {
            path: self.to_string(),
            column: Some(column),
            message: message.into(),
        }
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.step {
            Step::Item(at) => write!(f, "[{at}]"),
            Step::Field(name) if is_plain(name) => match self.before {
                Some(_) => write!(f, ".{name}"),
                None => f.write_str(name),
            },
            Step::Field(name) => write!(f, "[{name:?}]"),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// A template that was read.
pub(super) enum Template<'t> {
    /// Has no expression in it.
    Constant(&'t Value),
    Text(Text<'t>),
    List(Vec<Template<'t>>),
    Map(Vec<(Text<'t>, Template<'t>)>),
}

/// A string of a template: text and expressions in turn.
pub(super) struct Text<'t>(Vec<Part<'t>>);

enum Part<'t> {
    Text(Cow<'t, str>),
    Expression(Expression),
}

/// One `${...}`.
pub(super) struct Expression {
    program: Program,
    column: Column,
}

/// Reads a template; every mistake in it is added to the faults.
pub(super) fn read<'t>(
    value: &'t Value,
    trail: &Trail<'_>,
    library: &Library,
    faults: &mut Vec<Fault>,
) -> Template<'t> {
    match value {
        Value::String(text) if text.contains("${") => {
            Template::Text(read_text(text, trail, library, faults))
        }
        Value::Array(items) => {
            let items: Vec<_> = items
                .iter()
                .enumerate()
                .map(|(at, item)| read(item, &trail.item(at), library, faults))
                .collect();
            match items.iter().all(Template::is_constant) {
                true => Template::Constant(value),
                false => Template::List(items),
            }
        }
        Value::Object(map) => {
            let entries = read_map(map, trail, library, faults);
            let constant = |(key, value): &(Text<'_>, Template<'_>)| {
                matches!(key.0.as_slice(), [] | [Part::Text(Cow::Borrowed(_))])
                    && value.is_constant()
            };
            match entries.iter().all(constant) {
                true => Template::Constant(value),
                false => Template::Map(entries),
            }
        }
        _ => Template::Constant(value),
    }
}

/// Reads the entries of a map.
pub(super) fn read_map<'t>(
    map: &'t Map<String, Value>,
    trail: &Trail<'_>,
    library: &Library,
    faults: &mut Vec<Fault>,
) -> Vec<(Text<'t>, Template<'t>)> {
    map.iter()
        .map(|(key, value)| {
            let trail = trail.field(key);
            let value = read(value, &trail, library, faults);
            (read_text(key, &trail, library, faults), value)
        })
        .collect()
}

/// Reads a string that has to be one expression, such as a condition.
pub(super) fn read_expression(
    text: &str,
    trail: &Trail<'_>,
    library: &Library,
    faults: &mut Vec<Fault>,
) -> Option<Expression> {
    let before = faults.len();
    let mut parts = read_text(text, trail, library, faults).0;
    match (parts.pop(), parts.is_empty()) {
        (Some(Part::Expression(expression)), true) => return Some(expression),
        _ if faults.len() > before => {}
        _ => faults.push(trail.fault(
            Column::default(),
            "this has to be one expression, as in ${spec.enabled}",
        )),
    }
    None
}

/// Reads a string.
pub(super) fn read_text<'t>(
    text: &'t str,
    trail: &Trail<'_>,
    library: &Library,
    faults: &mut Vec<Fault>,
) -> Text<'t> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${").map(|found| at + found) {
        if text[at..found].ends_with('$') {
            // `$${`: all but the first dollar is what is meant.
            push_text(&mut parts, &text[at..found]);
            push_text(&mut parts, "{");
            at = found + "${".len();
            continue;
        }
        push_text(&mut parts, &text[at..found]);
        let inside = found + "${".len();
        let column = Column::of(text, found);
        let Some(length) = expression_length(&text[inside..]) else {
            let message =
                "this ${ has no } that closes it; write $${ for the characters themselves";
            faults.push(trail.fault(column, message));
            return Text(parts);
        };
        let source = &text[inside..inside + length];
        match library.program(source) {
            Ok(program) => parts.push(Part::Expression(Expression { program, column })),
            Err(error) => faults.push(unreadable(text, inside, trail, &error)),
        }
        at = inside + length + 1;
    }
    push_text(&mut parts, &text[at..]);
    Text(parts)
}

/// Appends text, which stays borrowed while nothing was left out of it.
fn push_text<'t>(parts: &mut Vec<Part<'t>>, text: &'t str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(before)) => before.to_mut().push_str(text),
        _ => parts.push(Part::Text(Cow::Borrowed(text))),
    }
}

fn unreadable(text: &str, inside: usize, trail: &Trail<'_>, error: &CelError) -> Fault {
    let start = Column::of(text, inside);
    match error {
        CelError::Syntax(syntax) => {
            let column = syntax
                .place
                .map_or(start, |(line, column)| start.further(line, column));
            trail.fault(
                column,
                format!("cannot read the expression: {}", syntax.message),
            )
        }
        error => trail.fault(start, error.to_string()),
    }
}

/// Returns the length of an expression up to the `}` that closes it. Braces in strings and comments of
/// CEL do not count.
fn expression_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += text[at..].find('\n')?;
            }
            b'"' | b'\'' => {
                let raw = is_raw(&bytes[..at]);
                at += string_length(&bytes[at..], byte, raw)?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Tells whether what stands before a quote makes it a raw string: `r` or `br`, not the end of a name.
fn is_raw(before: &[u8]) -> bool {
    let word = before
        .iter()
        .rposition(|b| !b.is_ascii_alphanumeric() && *b != b'_')
        .map_or(0, |at| at + 1);
    let word = before.get(word..).unwrap_or_default();
    word.len() <= 2 && word.iter().any(|b| matches!(b, b'r' | b'R'))
}

fn string_length(bytes: &[u8], quote: u8, raw: bool) -> Option<usize> {
    let triple = [quote; 3];
    let end: &[u8] = match bytes.starts_with(&triple) {
        true => &triple,
        false => &triple[..1],
    };
    let mut at = end.len();
    while at < bytes.len() {
        match bytes.get(at) {
            Some(b'\\') if !raw => at += 2,
            _ if bytes.get(at..)?.starts_with(end) => return Some(at + end.len()),
            _ => at += 1,
        }
    }
    None
}

/// What an evaluation may see and spend.
pub(super) struct Scope<'s> {
    pub(super) bindings: &'s Bindings<'s>,
    pub(super) budget: &'s mut Budget,
}

impl Expression {
    /// Tells whether the expression needs a name.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.program.uses(name)
    }

    /// Evaluates the expression; None is an empty optional.
    pub(super) fn value(
        &self,
        trail: &Trail<'_>,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Value>, Fault> {
        self.program
            .evaluate_template(scope.bindings, scope.budget)
            .map_err(|error| self.fault(trail, &error.to_string()))
    }

    /// Evaluates an expression that has to say true or false.
    pub(super) fn holds(&self, trail: &Trail<'_>, scope: &mut Scope<'_>) -> Result<bool, Fault> {
        match self.value(trail, scope)? {
            Some(Value::Bool(holds)) => Ok(holds),
            other => {
                let found = kind(other.as_ref());
                Err(self.fault(trail, &format!("this has to be true or false, not {found}")))
            }
        }
    }

    pub(super) fn fault(&self, trail: &Trail<'_>, message: &str) -> Fault {
        let source = crate::text::fit(&crate::text::line(self.program.source().trim()), 80);
        trail.fault(self.column, format!("${{{source}}}: {message}"))
    }

    fn text(&self, trail: &Trail<'_>, scope: &mut Scope<'_>) -> Result<String, Fault> {
        match self.value(trail, scope)? {
            Some(Value::String(text)) => Ok(text),
            Some(Value::Bool(is)) => Ok(is.to_string()),
            Some(Value::Number(number)) => Ok(match number.as_f64() {
                Some(double) if number.is_f64() => cel::double_text(double),
                _ => number.to_string(),
            }),
            other => {
                let found = kind(other.as_ref());
                let message = format!("{found} cannot stand among text; make a string of it");
                Err(self.fault(trail, &message))
            }
        }
    }
}

fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "an omitted value",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "a map",
    }
}

impl Text<'_> {
    /// Evaluates a string that stays a string; each expression's text goes through `quote`.
    pub(super) fn text(
        &self,
        trail: &Trail<'_>,
        scope: &mut Scope<'_>,
        quote: fn(&str) -> String,
    ) -> Result<String, Fault> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Expression(expression) => {
                    out.push_str(&quote(&expression.text(trail, scope)?));
                }
            }
        }
        Ok(out)
    }

    fn value(&self, trail: &Trail<'_>, scope: &mut Scope<'_>) -> Result<Option<Value>, Fault> {
        match self.0.as_slice() {
            [Part::Expression(expression)] => expression.value(trail, scope),
            _ => Ok(Some(Value::String(self.text(
                trail,
                scope,
                str::to_owned,
            )?))),
        }
    }
}

impl Template<'_> {
    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// Evaluates the template; None where it is an expression that is left out.
    pub(super) fn value(
        &self,
        trail: &Trail<'_>,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Value>, Fault> {
        Ok(Some(match self {
            Self::Constant(value) => (*value).clone(),
            Self::Text(text) => return text.value(trail, scope),
            Self::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    list.extend(item.value(&trail.item(at), scope)?);
                }
                Value::Array(list)
            }
            Self::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let key = key.text(trail, scope, str::to_owned)?;
                    let trail = trail.field(&key);
                    let Some(value) = value.value(&trail, scope)? else {
                        continue;
                    };
                    if map.contains_key(&key) {
                        return Err(trail.fault(Column::default(), "this key comes out twice"));
                    }
                    map.insert(key.clone(), value);
                }
                Value::Object(map)
            }
        }))
    }
}
