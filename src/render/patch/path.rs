//! Parses the path of a patch operation: a JSON pointer that can also contain filters and wildcards.

use std::fmt;

use serde_json::{Number, Value};

use crate::text;

/// The largest number of segments in a path.
pub const MAX_SEGMENTS: usize = 64;
/// The largest length of a path, in bytes.
pub const MAX_LENGTH: usize = 16 << 10;

const MAX_CONDITIONS: usize = 16;

/// The characters that are escaped in a path, each with the digit that stands for it after `~`.
///
/// The escapes for `~` and `/` are those of RFC 6901. The others are necessary because any text can be a key, or can
/// stand between the quotes of a filter.
const ESCAPES: [(char, char); 5] = [('0', '~'), ('1', '/'), ('2', '['), ('3', '\''), ('4', '"')];

/// The path of a patch operation, which selects values in a resource: `/spec/containers/[?(@.name=='main')]/env/-`.
///
/// A segment is a key of a map, an index of a list, a wildcard `[*]` (all items of a list, all values of a map), or a
/// filter. A wildcard or a filter can also follow a key without a `/` before it. The empty path selects the whole
/// resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub(super) segments: Vec<Segment>,
}

/// The error for a text that is not a valid path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct PathError {
    /// The column of the error in the path, counted in characters from 1.
    pub column: usize,
    /// The message about the error at this column.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Segment {
    /// A key of a map, an index of a list, or `-` for the end of a list.
    Key(String),
    /// The wildcard `[*]`: selects all items of a list, or all values of a map.
    All,
    /// A filter `[?(...)]`: selects the items of a list that fulfil all conditions.
    Filter(Vec<Condition>),
}

/// One condition of a filter, such as `@.a.b == 'x'`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    fields: Vec<String>,
    equal: bool,
    literal: Literal,
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Text(String),
    Number(Number),
    Flag(bool),
}

/// Escapes a text so that it is one key of a path, or can stand between the quotes of a filter.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match ESCAPES.iter().find(|(_, plain)| *plain == c) {
            Some((digit, _)) => out.extend(['~', *digit]),
            None => out.push(c),
        }
    }
    out
}

impl Path {
    /// Parses the text of a path.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        if text.len() > MAX_LENGTH {
            return Err(PathError {
                column: 1,
                message: format!("the path is longer than {MAX_LENGTH} bytes"),
            });
        }
        let mut scan = Scan { text, at: 0 };
        let mut segments = Vec::new();
        while !scan.is_done() {
            if !scan.eat("/") {
                return Err(scan.expected(if segments.is_empty() {
                    "a path that begins with `/`"
                } else {
                    "`/` or the end of the path"
                }));
            }
            let key = scan.text_until(&['/', '['])?;
            let has_key = !key.is_empty();
            if has_key {
                segments.push(Segment::Key(key));
            }
            let before = segments.len();
            while scan.peek() == Some('[') {
                segments.push(scan.bracket()?);
            }
            if !has_key && segments.len() == before {
                return Err(scan.error(
                    "a segment is empty; the whole resource is the empty path, and a path does not end with `/`",
                ));
            }
            if segments.len() > MAX_SEGMENTS {
                return Err(scan.error(format!("the path has more than {MAX_SEGMENTS} segments")));
            }
        }
        Ok(Path { segments })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments
            .iter()
            .try_for_each(|segment| write!(f, "/{segment}"))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Key(key) => f.write_str(&escape(key)),
            Segment::All => f.write_str("[*]"),
            Segment::Filter(conditions) => {
                f.write_str("[?(")?;
                for (at, condition) in conditions.iter().enumerate() {
                    if at > 0 {
                        f.write_str(" && ")?;
                    }
                    write!(f, "{condition}")?;
                }
                f.write_str(")]")
            }
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("@")?;
        for field in &self.fields {
            if !field.is_empty() && field.chars().all(is_word) {
                write!(f, ".{field}")?;
            } else {
                write!(f, "['{}']", escape(field))?;
            }
        }
        f.write_str(if self.equal { "==" } else { "!=" })?;
        match &self.literal {
            Literal::Text(text) => write!(f, "'{}'", escape(text)),
            Literal::Number(number) => write!(f, "{number}"),
            Literal::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

impl Condition {
    /// Returns whether an item of a list fulfils this condition of a filter. If the item does not have the field, the
    /// field is not equal to any literal.
    pub(super) fn holds(&self, item: &Value) -> bool {
        let found = self
            .fields
            .iter()
            .try_fold(item, |value, field| value.as_object()?.get(field));
        let same = found.is_some_and(|found| match (&self.literal, found) {
            (Literal::Text(wanted), Value::String(found)) => wanted == found,
            (Literal::Flag(wanted), Value::Bool(found)) => wanted == found,
            (Literal::Number(wanted), Value::Number(found)) => {
                wanted == found || wanted.as_f64() == found.as_f64()
            }
            _ => false,
        });
        same == self.equal
    }
}

/// Parses a JSON number of a filter. A fraction is parsed with `str::parse`, because serde_json may round it
/// differently.
fn number(word: &str) -> Option<Number> {
    let number: Number = serde_json::from_str(word).ok()?;
    if number.is_f64() {
        return Number::from_f64(word.parse().ok()?);
    }
    Some(number)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_done(&self) -> bool {
        self.rest().is_empty()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn error(&self, message: impl Into<String>) -> PathError {
        self.error_at(self.at, message)
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> PathError {
        let before = self.text.get(..at).unwrap_or(self.text);
        PathError {
            column: before.chars().count() + 1,
            message: message.into(),
        }
    }

    fn expected(&self, what: &str) -> PathError {
        let found = match self.rest() {
            "" => "the end of the path".to_owned(),
            rest => format!("`{}`", text::fit(rest, 20)),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    fn need(&mut self, token: &str, what: &str) -> Result<(), PathError> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }

    /// Reads a text up to one of the characters `ends` or the end of the path, and resolves the escapes in the text.
    fn text_until(&mut self, ends: &[char]) -> Result<String, PathError> {
        let start = self.at;
        let raw = self.take_while(|c| !ends.contains(&c));
        let mut out = String::with_capacity(raw.len());
        let mut chars = raw.char_indices();
        while let Some((at, c)) = chars.next() {
            if c != '~' {
                out.push(c);
                continue;
            }
            let digit = chars.next().map(|(_, digit)| digit);
            match ESCAPES.iter().find(|(known, _)| Some(*known) == digit) {
                Some((_, plain)) => out.push(*plain),
                None => {
                    return Err(self.error_at(
                        start + at,
                        "`~` begins an escape: ~0 is ~, ~1 is /, ~2 is [, ~3 is ' and ~4 is \"",
                    ));
                }
            }
        }
        Ok(out)
    }

    fn bracket(&mut self) -> Result<Segment, PathError> {
        let start = self.at;
        if self.eat("[*]") {
            return Ok(Segment::All);
        }
        if self.eat("[?") {
            self.blanks();
            self.need("(", "`(` after `[?`")?;
            return self.filter();
        }
        self.eat("[");
        let index = self.take_while(|c| c.is_ascii_digit());
        if index.is_empty() || !self.eat("]") {
            return Err(self.error_at(
                start,
                "a bracket holds `*`, an index or a filter as in `[?(@.name=='main')]`; write ~2 for a `[` in a key",
            ));
        }
        Ok(Segment::Key(index.to_owned()))
    }

    fn filter(&mut self) -> Result<Segment, PathError> {
        let mut conditions = Vec::new();
        loop {
            if conditions.len() == MAX_CONDITIONS {
                return Err(self.error(format!("a filter has at most {MAX_CONDITIONS} conditions")));
            }
            conditions.push(self.condition()?);
            self.blanks();
            if !self.eat("&&") {
                break;
            }
        }
        self.need(")", "`&&` or `)]`")?;
        self.blanks();
        self.need("]", "`]` after the filter")?;
        Ok(Segment::Filter(conditions))
    }

    fn condition(&mut self) -> Result<Condition, PathError> {
        self.blanks();
        self.need("@", "`@`, which is the item, as in `@.name`")?;
        let mut fields = Vec::new();
        loop {
            if fields.len() > MAX_SEGMENTS {
                return Err(self.error(format!("a field has more than {MAX_SEGMENTS} parts")));
            }
            if self.eat(".") {
                let field = self.take_while(is_word);
                if field.is_empty() {
                    return Err(self.expected("the name of a field"));
                }
                fields.push(field.to_owned());
            } else if self.eat("[") {
                fields.push(self.quoted("a quoted name of a field, as in `@['a.b']`")?);
                self.need("]", "`]` after the name")?;
            } else {
                break;
            }
        }
        self.blanks();
        let equal = if self.eat("==") {
            true
        } else if self.eat("!=") {
            false
        } else {
            return Err(self.expected("`==` or `!=`"));
        };
        self.blanks();
        Ok(Condition {
            fields,
            equal,
            literal: self.literal()?,
        })
    }

    fn quoted(&mut self, what: &str) -> Result<String, PathError> {
        let start = self.at;
        let quote = if self.eat("'") {
            '\''
        } else if self.eat("\"") {
            '"'
        } else {
            return Err(self.expected(what));
        };
        let text = self.text_until(&[quote])?;
        if self.eat(quote.encode_utf8(&mut [0; 4])) {
            Ok(text)
        } else {
            Err(self.error_at(start, "the quote is not closed"))
        }
    }

    fn literal(&mut self) -> Result<Literal, PathError> {
        let what = "a text in quotes, a number, true or false";
        if matches!(self.peek(), Some('\'' | '"')) {
            return self.quoted(what).map(Literal::Text);
        }
        let start = self.at;
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        let literal = match word {
            "true" => Some(Literal::Flag(true)),
            "false" => Some(Literal::Flag(false)),
            word => number(word).map(Literal::Number),
        };
        literal.ok_or_else(|| {
            self.at = start;
            self.expected(what)
        })
    }
}
