//! Evaluates the JSONPath expressions of printer columns. A column needs one value, so only the first selected value
//! is found.
//!
//! A path consists of names (`.spec.a`, `.a\.b`, `['a.b']`), indexes (`[0]`, `[-1]`), wildcards (`[*]`, `.*`) and
//! comparisons (`[?(@.type=="Ready")]`). Ranges, unions and recursive descent are not supported.

use serde_json::Value;

/// A parsed JSONPath expression.
#[derive(Debug, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Name(String),
    Position(i64),
    All,
    Where(Vec<Step>, Comparison, Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The comparison operators. Longer operators come first, because otherwise `<=` would be parsed as `<`.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Path {
    /// Parses a JSONPath expression; None if its syntax is not supported.
    pub fn parse(text: &str) -> Option<Path> {
        let text = text.trim();
        let text = text.strip_prefix('$').unwrap_or(text);
        steps(text).map(Path)
    }

    /// Returns the first value in an object that the path selects; None if it selects none.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        find(&self.0, object)
    }
}

fn steps(text: &str) -> Option<Vec<Step>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let (name, next) = name(after)?;
            match name.as_str() {
                "" if next.starts_with('[') || next.is_empty() && found.is_empty() => {}
                "" => return None,
                "*" => found.push(Step::All),
                _ => found.push(Step::Name(name)),
            }
            rest = next;
        } else {
            let inner = rest.strip_prefix('[')?;
            let end = closing(inner)?;
            found.push(bracket(inner.get(..end)?.trim())?);
            rest = inner.get(end + 1..)?;
        }
    }
    Some(found)
}

/// Parses a name up to the next `.` or `[` that is not escaped. Returns the name and the rest of the text.
fn name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => return Some((name, text.get(at..)?)),
            _ => name.push(character),
        }
    }
    Some((name, ""))
}

/// Returns the byte offset of the bracket that closes an expression. Skips quoted text and inner brackets.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => {
                characters.next()?;
            }
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(") {
        return comparison(filter.strip_suffix(')')?.trim());
    }
    match literal(text)? {
        Value::String(name) => Some(Step::Name(name)),
        Value::Number(position) => Some(Step::Position(position.as_i64()?)),
        _ => None,
    }
}

fn comparison(text: &str) -> Option<Step> {
    let inner = text.strip_prefix('@')?;
    let at = inner.find(['=', '!', '<', '>'])?;
    let (path, rest) = inner.split_at_checked(at)?;
    let (sign, kind) = COMPARISONS
        .into_iter()
        .find(|(sign, _)| rest.starts_with(sign))?;
    let value = literal(rest.get(sign.len()..)?.trim())?;
    Some(Step::Where(steps(path.trim())?, kind, value))
}

/// Parses a literal of a comparison: a quoted string, a number, true or false.
fn literal(text: &str) -> Option<Value> {
    for quote in ['\'', '"'] {
        let Some(inner) = text
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        else {
            continue;
        };
        let mut word = String::new();
        let mut characters = inner.chars();
        while let Some(character) = characters.next() {
            word.push(match character {
                '\\' => characters.next()?,
                other => other,
            });
        }
        return Some(word.into());
    }
    serde_json::from_str(text)
        .ok()
        .filter(|value: &Value| value.is_number() || value.is_boolean())
}

fn find<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        Step::Name(name) => find(rest, value.get(name)?),
        Step::Position(position) => {
            let items = value.as_array()?;
            let at = match usize::try_from(*position) {
                Ok(at) => at,
                Err(_) => items
                    .len()
                    .checked_sub(usize::try_from(position.unsigned_abs()).ok()?)?,
            };
            find(rest, items.get(at)?)
        }
        Step::All => children(value).find_map(|child| find(rest, child)),
        Step::Where(path, kind, wanted) => children(value)
            .filter(|child| find(path, child).is_some_and(|found| holds(*kind, found, wanted)))
            .find_map(|child| find(rest, child)),
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn holds(kind: Comparison, found: &Value, wanted: &Value) -> bool {
    let order = match (found, wanted) {
        (Value::String(found), Value::String(wanted)) => Some(found.cmp(wanted)),
        (Value::Number(found), Value::Number(wanted)) => found
            .as_f64()
            .zip(wanted.as_f64())
            .and_then(|(found, wanted)| found.partial_cmp(&wanted)),
        (Value::Bool(found), Value::Bool(wanted)) => Some(found.cmp(wanted)),
        _ => None,
    };
    match kind {
        Comparison::Equal => order.is_some_and(|order| order.is_eq()),
        Comparison::NotEqual => order.is_some_and(|order| order.is_ne()),
        Comparison::Less => order.is_some_and(|order| order.is_lt()),
        Comparison::LessOrEqual => order.is_some_and(|order| order.is_le()),
        Comparison::Greater => order.is_some_and(|order| order.is_gt()),
        Comparison::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
    }
}
