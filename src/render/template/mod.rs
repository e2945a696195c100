//! Parses and evaluates `${...}` in the strings of a template.
//!
//! A string that consists of one expression becomes the value of the expression, of any type. An expression inside
//! other text becomes text. `$${` is an escaped `${`. The result of an expression is never parsed as a template, so
//! `${` and `{{ }}` in data have no effect.
//!
//! All templates are parsed before the first evaluation, so that an error in a resource that only production uses is
//! found in development too.

mod reader;
mod trail;

use std::borrow::Cow;

use bounded_cel::{Bindings, Budget, Program};
use serde_json::{Map, Value};

use super::error::{Column, Fault};

pub(super) use reader::Reader;
pub(super) use trail::Trail;

/// A parsed template: a JSON value whose strings and keys can contain expressions.
pub(super) enum Template<'t> {
    /// A part of the template that contains no expressions.
    Constant(&'t Value),
    Text(Text<'t>),
    List(Vec<Template<'t>>),
    Map(Vec<(Text<'t>, Template<'t>)>),
}

/// A string in a template, split into plain texts and expressions.
pub(super) struct Text<'t>(Vec<Part<'t>>);

enum Part<'t> {
    Text(Cow<'t, str>),
    Expression(Expression),
}

/// An expression `${...}`, with its position in the string of the template.
pub(super) struct Expression {
    program: Program,
    column: Column,
}

/// The variables that an expression can use, and the budget for its evaluation.
pub(super) struct Scope<'s> {
    pub(super) bindings: &'s Bindings<'s>,
    pub(super) budget: &'s mut Budget,
}

impl Expression {
    /// Returns whether the expression uses the variable `name`.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.program.uses(name)
    }

    /// Evaluates the expression. None if the result is an empty optional.
    pub(super) fn value(
        &self,
        trail: &Trail<'_>,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Value>, Fault> {
        self.program
            .evaluate_template(scope.bindings, scope.budget)
            .map_err(|error| self.fault(trail, &error.to_string()))
    }

    /// Evaluates an expression whose result must be a boolean.
    pub(super) fn holds(&self, trail: &Trail<'_>, scope: &mut Scope<'_>) -> Result<bool, Fault> {
        match self.value(trail, scope)? {
            Some(Value::Bool(holds)) => Ok(holds),
            other => {
                let found = kind(other.as_ref());
                Err(self.fault(trail, &format!("this must be true or false, not {found}")))
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
                Some(double) if number.is_f64() => bounded_cel::double_text(double),
                _ => number.to_string(),
            }),
            other => {
                let found = kind(other.as_ref());
                let message = format!("{found} cannot be part of a text; convert it to a string");
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
    /// Returns whether the string contains no expressions.
    pub(super) fn is_constant(&self) -> bool {
        !self
            .0
            .iter()
            .any(|part| matches!(part, Part::Expression(_)))
    }

    /// Evaluates the expressions in the string, and returns the string with their results. `quote` escapes each
    /// result.
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

    /// Evaluates the template. None if the template is one expression whose result is an empty optional; then the
    /// caller leaves out the key or item.
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
                        return Err(
                            trail.fault(Column::default(), "this key appears twice in the result")
                        );
                    }
                    map.insert(key.clone(), value);
                }
                Value::Object(map)
            }
        }))
    }
}
