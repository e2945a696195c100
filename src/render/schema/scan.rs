//! Parses the text of one parameter in the shorthand: its type and its attributes.

use serde_json::{Value, json};

use super::MAX_DEPTH;
use super::words::did_you_mean;
use crate::api::Object;
use crate::text;

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "object", "any"];

const OPEN: &str = "the closing quote or bracket is missing";

/// The form in which an attribute's value is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    Flag,
    Number,
    NumberOrFlag,
    Text,
    /// One value that has the type of the parameter.
    Value,
    /// Several values that have the type of the parameter.
    Values,
}

pub(super) const ATTRIBUTES: [(&str, Form); 21] = [
    ("default", Form::Value),
    ("description", Form::Text),
    ("enum", Form::Values),
    ("example", Form::Text),
    ("exclusiveMaximum", Form::NumberOrFlag),
    ("exclusiveMinimum", Form::NumberOrFlag),
    ("format", Form::Text),
    ("maxItems", Form::Number),
    ("maxLength", Form::Number),
    ("maxProperties", Form::Number),
    ("maximum", Form::Number),
    ("minItems", Form::Number),
    ("minLength", Form::Number),
    ("minProperties", Form::Number),
    ("minimum", Form::Number),
    ("multipleOf", Form::Number),
    ("nullable", Form::Flag),
    ("pattern", Form::Text),
    ("required", Form::Flag),
    ("title", Form::Text),
    ("uniqueItems", Form::Flag),
];

/// A syntax error in the text of a parameter: its byte offset, and the message.
pub(super) type Fault = (usize, String);

pub(super) struct Attribute<'a> {
    pub(super) at: usize,
    pub(super) name: &'a str,
    /// The form that the attribute's value must have; None if the attribute is unknown.
    pub(super) form: Option<Form>,
    /// The values of the attribute: one or more for `enum`, exactly one for all other attributes.
    pub(super) values: Vec<Raw>,
}

impl Attribute<'_> {
    /// Returns whether the attribute's only value is this word.
    pub(super) fn says(&self, word: &str) -> bool {
        matches!(&self.values[..], [Raw::Text { text, .. }] if text == word)
    }
}

/// The value of an attribute, before it is converted to the type of the parameter.
pub(super) enum Raw {
    Text {
        at: usize,
        text: String,
        quoted: bool,
    },
    Json(Value),
}

/// Converts a byte offset to a column, counted in characters from 1.
pub(super) fn column(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).chars().count() + 1
}

pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub(super) fn blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn expected(&self, what: &str) -> Fault {
        let found = match self.rest() {
            "" => "the end".to_owned(),
            rest => format!("`{}`", text::fit(rest, 20)),
        };
        (self.at, format!("expected {what}, found {found}"))
    }

    /// Parses the type of the parameter, which is the text before the first attribute. Returns it as OpenAPI
    /// keywords.
    pub(super) fn header(&mut self) -> Result<Object, Fault> {
        let keywords = self.type_keywords()?;
        self.blanks();
        if self.rest().is_empty() {
            return Ok(keywords);
        }
        if !self.eat("|") {
            return Err(self.expected("`|` and attributes, or the end"));
        }
        self.blanks();
        if self.rest().is_empty() {
            return Err(self.expected("an attribute after `|`"));
        }
        Ok(keywords)
    }

    fn type_keywords(&mut self) -> Result<Object, Fault> {
        // The lists and maps around the inner type, outermost first. For a map, a closing bracket must follow.
        let mut around = Vec::new();
        let inner = loop {
            self.blanks();
            let start = self.at;
            if around.len() > MAX_DEPTH {
                return Err((
                    start,
                    format!("the type is nested more than {MAX_DEPTH} levels deep"),
                ));
            }
            if self.eat("[]") {
                around.push(None);
                continue;
            }
            let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
            if word == "map" {
                self.blanks();
                if !self.eat("<") {
                    return Err(
                        self.expected("`<` and the type of the values, as in `map<string>`")
                    );
                }
                around.push(Some(start));
                continue;
            }
            if word == "any" {
                break Object::new();
            }
            if TYPES.contains(&word) {
                break Object::from_iter([("type".to_owned(), json!(word))]);
            }
            self.at = start;
            return Err(self.no_type(word));
        };
        let mut keywords = inner;
        for wrap in around.into_iter().rev() {
            let (name, key) = match wrap {
                None => ("array", "items"),
                Some(start) => {
                    self.blanks();
                    if !self.eat(">") {
                        let column = column(self.text, start);
                        return Err(
                            self.expected(&format!("`>` for the `map<` of column {column}"))
                        );
                    }
                    ("object", "additionalProperties")
                }
            };
            keywords = Object::from_iter([
                ("type".to_owned(), json!(name)),
                (key.to_owned(), Value::Object(keywords)),
            ]);
        }
        Ok(keywords)
    }

    fn no_type(&self, word: &str) -> Fault {
        if word.is_empty() {
            return self
                .expected("a type: string, integer, number, boolean, object, any, []T or map<T>");
        }
        let known = match word.to_ascii_lowercase().as_str() {
            "int" | "int32" | "int64" | "long" => "integer",
            "bool" => "boolean",
            "str" | "text" => "string",
            "float" | "double" => "number",
            "list" | "array" => "[]T",
            "dict" | "mapping" => "map<T>",
            _ => "",
        };
        let hint = match known {
            "" => did_you_mean(word, TYPES),
            known => format!(", did you mean `{known}`?"),
        };
        let message = format!(
            "`{}` is not a type{hint}; types are {}, []T and map<T>",
            text::fit(word, 40),
            TYPES.join(", ")
        );
        (self.at, message)
    }

    pub(super) fn attribute(&mut self, type_name: &str) -> Result<Attribute<'a>, Fault> {
        let at = self.at;
        let name = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
        if name.is_empty() {
            return Err(self.expected("an attribute, as `default=1`"));
        }
        if !self.eat("=") {
            let shown = text::fit(name, 40);
            let message = format!(
                "`{shown}` has no value: write {shown}=..., and quote a value that has blanks"
            );
            return Err((at, message));
        }
        let form = ATTRIBUTES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, form)| *form);
        let is_composite = matches!(type_name, "array" | "object" | "any");
        let begins_json = match form {
            Some(Form::Value) => is_composite && self.rest().starts_with(['[', '{']),
            Some(Form::Values) => self.rest().starts_with('['),
            _ => false,
        };
        let mut values = Vec::new();
        if begins_json {
            values.push(Raw::Json(self.json()?));
        } else if form == Some(Form::Values) {
            values.push(self.word(&[','])?);
            while self.eat(",") {
                values.push(self.word(&[','])?);
            }
        } else {
            values.push(self.word(&[])?);
        }
        if !self.rest().is_empty() && !self.rest().starts_with(char::is_whitespace) {
            return Err(self.expected("a blank after the value"));
        }
        Ok(Attribute {
            at,
            name,
            form,
            values,
        })
    }

    fn json(&mut self) -> Result<Value, Fault> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) if error.is_eof() => Err((self.at, OPEN.to_owned())),
            Some(Err(error)) => {
                let within = if error.line() == 1 {
                    error.column().saturating_sub(1)
                } else {
                    0
                };
                let error = error.to_string();
                // The position is removed from the message of serde_json, because it counts from the start of the
                // value.
                let what = error.split(" at line ").next().unwrap_or_default();
                Err((
                    self.at + within,
                    format!("is no JSON: {}", text::fit(what, 80)),
                ))
            }
            None => Err(self.expected("JSON")),
        }
    }

    /// Reads a quoted text, or a text without quotes that ends at a blank or at one of the characters `ends`.
    fn word(&mut self, ends: &[char]) -> Result<Raw, Fault> {
        let at = self.at;
        if self.rest().starts_with('"') {
            return match self.json()? {
                Value::String(text) => Ok(Raw::Text {
                    at,
                    text,
                    quoted: true,
                }),
                other => Ok(Raw::Json(other)),
            };
        }
        if self.eat("'") {
            let text = self.take_while(|c| c != '\'').to_owned();
            return if self.eat("'") {
                Ok(Raw::Text {
                    at,
                    text,
                    quoted: true,
                })
            } else {
                Err((at, OPEN.to_owned()))
            };
        }
        let text = self
            .take_while(|c| !c.is_whitespace() && !ends.contains(&c))
            .to_owned();
        if text.is_empty() {
            return Err(self.expected("a value (`\"\"` is the empty text)"));
        }
        Ok(Raw::Text {
            at,
            text,
            quoted: false,
        })
    }
}
