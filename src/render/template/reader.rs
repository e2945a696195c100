//! Parses all templates of a definition before the first evaluation.

use std::borrow::Cow;

use bounded_cel::{CelError, Program};
use serde_json::{Map, Value};

use super::trail::Trail;
use super::{Expression, Part, Template, Text};
use crate::render::error::{Column, Fault};
use crate::render::library::Library;

/// The largest number of expressions in a definition. It limits the time to parse a definition.
const EXPRESSIONS: usize = 2000;
/// The largest total size of the expressions in a definition, in bytes. It limits the time to parse a definition.
const SOURCES: usize = 256 << 10;

/// Parses the templates of a definition, and collects the errors in them.
pub(in crate::render) struct Reader<'r> {
    library: &'r Library,
    names: Vec<&'r str>,
    faults: Vec<Fault>,
    expressions: usize,
    bytes: usize,
}

impl<'r> Reader<'r> {
    /// Creates a reader for templates. `names` are the variables that their expressions can use.
    pub(in crate::render) fn new(library: &'r Library, names: &[&'r str]) -> Self {
        Self {
            library,
            names: names.to_vec(),
            faults: Vec::new(),
            expressions: 0,
            bytes: 0,
        }
    }

    /// Returns whether expressions can use the variable `name`.
    pub(in crate::render) fn knows(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Calls `read`. Until it returns, expressions can also use the variable `name`.
    pub(in crate::render) fn with_name<T>(
        &mut self,
        name: &'r str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.names.push(name);
        let result = read(self);
        self.names.pop();
        result
    }

    pub(in crate::render) fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Returns the errors that were collected, and removes them from the reader.
    pub(in crate::render) fn faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.faults)
    }

    /// Parses a template from the value of a field.
    pub(in crate::render) fn template<'t>(
        &mut self,
        value: &'t Value,
        trail: &Trail<'_>,
    ) -> Template<'t> {
        match value {
            Value::String(text) if text.contains("${") => Template::Text(self.text(text, trail)),
            Value::Array(items) => {
                let items: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| self.template(item, &trail.item(at)))
                    .collect();
                match items.iter().all(Template::is_constant) {
                    true => Template::Constant(value),
                    false => Template::List(items),
                }
            }
            Value::Object(map) => {
                let entries = self.map(map, trail);
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

    /// Parses the keys and values of a map in a template.
    pub(in crate::render) fn map<'t>(
        &mut self,
        map: &'t Map<String, Value>,
        trail: &Trail<'_>,
    ) -> Vec<(Text<'t>, Template<'t>)> {
        map.iter()
            .map(|(key, value)| {
                let trail = trail.field(key);
                let value = self.template(value, &trail);
                (self.text(key, &trail), value)
            })
            .collect()
    }

    /// Parses a string that must be one expression, such as a condition. Returns None after an error, which is
    /// collected.
    pub(in crate::render) fn expression(
        &mut self,
        text: &str,
        trail: &Trail<'_>,
    ) -> Option<Expression> {
        let before = self.faults.len();
        let mut parts = self.text(text, trail).0;
        match (parts.pop(), parts.is_empty()) {
            (Some(Part::Expression(expression)), true) => return Some(expression),
            _ if self.faults.len() > before => {}
            _ => self.fault(trail.fault(
                Column::default(),
                "this must be one expression, as in ${spec.enabled}",
            )),
        }
        None
    }

    /// Parses a string of a template, which can contain expressions.
    pub(in crate::render) fn text<'t>(&mut self, text: &'t str, trail: &Trail<'_>) -> Text<'t> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(found) = text[at..].find("${").map(|found| at + found) {
            if text[at..found].ends_with('$') {
                // `$${` is an escaped `${`: the first dollar is removed.
                push_text(&mut parts, &text[at..found]);
                push_text(&mut parts, "{");
                at = found + "${".len();
                continue;
            }
            push_text(&mut parts, &text[at..found]);
            let inside = found + "${".len();
            let Some(length) = expression_length(&text[inside..]) else {
                let message = "this ${ has no closing }; write $${ for the characters ${";
                self.fault(trail.fault(Column::of(text, found), message));
                return Text(parts);
            };
            let source = &text[inside..inside + length];
            match self.program(source) {
                Ok(program) => {
                    let expression = Expression {
                        program,
                        column: Column::of(text, found),
                    };
                    self.check_names(&expression, trail);
                    parts.push(Part::Expression(expression));
                }
                Err(error) => self.fault(unreadable(Column::of(text, inside), trail, &error)),
            }
            at = inside + length + 1;
        }
        push_text(&mut parts, &text[at..]);
        Text(parts)
    }

    fn program(&mut self, source: &str) -> Result<Program, CelError> {
        self.expressions += 1;
        self.bytes += source.len();
        if self.expressions > EXPRESSIONS || self.bytes > SOURCES {
            return Err(CelError::Failed(format!(
                "the definition has more than {EXPRESSIONS} expressions, or they have more than {SOURCES} bytes"
            )));
        }
        self.library.program(source)
    }

    /// Reports the unknown variables in an expression, even if they are in a part that is never evaluated.
    fn check_names(&mut self, expression: &Expression, trail: &Trail<'_>) {
        for name in expression.program.names() {
            if !self.knows(name) {
                let known = self.names.join(", ");
                let message = format!("{name} is not defined; there is {known}");
                self.faults.push(expression.fault(trail, &message));
            }
        }
    }
}

fn unreadable(start: Column, trail: &Trail<'_>, error: &CelError) -> Fault {
    match error {
        CelError::Syntax(syntax) => {
            let column = syntax
                .place
                .map_or(start, |(line, column)| start.further(line, column));
            let message = format!("cannot read the expression: {}", syntax.message);
            trail.fault(column, message)
        }
        error => trail.fault(start, error.to_string()),
    }
}

/// Appends plain text to the parts of a string. The text is borrowed from the template, unless several pieces must be
/// joined.
fn push_text<'t>(parts: &mut Vec<Part<'t>>, text: &'t str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(before)) => before.to_mut().push_str(text),
        _ => parts.push(Part::Text(Cow::Borrowed(text))),
    }
}

/// Returns the length of the expression before its closing `}`; None if there is no closing `}`. Braces in CEL
/// strings and comments do not count.
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

/// Returns whether the quote after `before` starts a raw string of CEL, because the word before the quote is `r` or
/// `br`.
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
