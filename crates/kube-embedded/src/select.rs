//! The label selectors and field selectors of requests, with the error messages of kube-apiserver.

use kube_values::selector::{MistakeKind, Selector, SelectorError};
use serde_json::Value;

use super::status::Failure;

/// Parses the label selector of a request. The error is the answer for the client.
pub fn labels(text: &str) -> Result<Selector, Failure> {
    Selector::parse(text).map_err(|mistake| Failure::bad_request(message(text, mistake)))
}

fn message(text: &str, SelectorError { at, kind }: SelectorError) -> String {
    let found = first_token(text.get(at..).unwrap_or_default());
    let why = match kind {
        MistakeKind::End => return format!("found '{found}', expected: ',' or 'end of string'"),
        MistakeKind::NoName => "a label key is missing".to_owned(),
        MistakeKind::Name { name, why } => format!("key: Invalid value: {name:?}: {why}"),
        MistakeKind::NoValue => "a value is missing".to_owned(),
        MistakeKind::Value { name, value, why } => {
            format!("values[0][{name}]: Invalid value: {value:?}: {why}")
        }
        MistakeKind::Operator => "found something else than an operator".to_owned(),
        MistakeKind::Number => "> and < take a whole number".to_owned(),
        MistakeKind::Open => format!("found '{found}' expected: '('"),
        MistakeKind::Close => ") is missing".to_owned(),
    };
    format!("unable to parse requirement: {why}")
}

/// Returns the first operator, sign or word of a selector's text, for an error message.
fn first_token(text: &str) -> &str {
    const SIGNS: [&str; 9] = ["!=", "==", "=", "!", ",", "(", ")", ">", "<"];
    let text = text.trim_start();
    let sign = SIGNS.into_iter().find(|sign| text.starts_with(sign));
    let end = text.find(|c: char| c.is_whitespace() || "!=,()<>".contains(c));
    sign.unwrap_or(text.get(..end.unwrap_or(text.len())).unwrap_or_default())
}

/// A field selector: a list of requirements, all of which an object must meet. Each requirement contains a field, a
/// value, and whether they must be equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String, bool)>);

impl Fields {
    /// Parses a field selector such as `a.b=c,d!=e`. A backslash escapes a comma, an equals sign or a
    /// backslash.
    pub fn parse(text: &str) -> Result<Fields, Failure> {
        let mut found = Vec::new();
        for term in split_unescaped(text) {
            if term.is_empty() {
                continue;
            }
            let parsed = ["!=", "==", "="].into_iter().find_map(|sign| {
                let (field, value) = term.split_once(sign)?;
                (!field.ends_with('!')).then(|| (field.to_owned(), unescape(value), sign != "!="))
            });
            match parsed {
                Some(term) => found.push(term),
                None => {
                    return Err(Failure::bad_request(format!(
                        "invalid selector: '{text}'; can't understand '{term}'"
                    )));
                }
            }
        }
        Ok(Fields(found))
    }

    /// Returns whether the selector has no requirements, so that it matches every object.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the fields that the requirements are about.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(field, _, _)| field.as_str())
    }

    /// Returns whether all requirements are about metadata fields.
    pub fn metadata_only(&self) -> bool {
        self.names().all(|field| field.starts_with("metadata."))
    }

    /// Returns the object name that the selector requires; None if it does not require one.
    pub fn name(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|(field, _, equal)| field == "metadata.name" && *equal)
            .map(|(_, value, _)| value.as_str())
    }

    /// Returns whether an object meets all requirements of the selector. A missing field is equal to an empty value.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(field, wanted, equal)| {
            let mut value = object;
            for part in field.split('.') {
                value = &value[part];
            }
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            let same = text == *wanted;
            same == *equal
        })
    }
}

fn split_unescaped(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        if let Some(term) = terms.last_mut() {
            term.push(c);
        }
    }
    terms
}

fn unescape(value: &str) -> String {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}
