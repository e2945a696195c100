//! Label and field selectors: parsing (with the grammar of Kubernetes) and matching.

use std::collections::BTreeSet;

use serde_json::Value;

use super::status::Failure;

/// A label selector: all requirements must be true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl Labels {
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
    pub fn parse(text: &str) -> Result<Labels, Failure> {
        let mut reader = Reader {
            tokens: tokens(text),
        };
        reader.requirements().map(Labels)
    }

    /// Parses the form `{matchLabels, matchExpressions}`.
    pub fn from_json(selector: &Value) -> Labels {
        let mut found = Vec::new();
        if let Some(labels) = selector["matchLabels"].as_object() {
            for (key, value) in labels {
                let values = BTreeSet::from([value.as_str().unwrap_or_default().to_owned()]);
                found.push(Requirement {
                    key: key.clone(),
                    test: Test::In(values),
                });
            }
        }
        for expression in selector["matchExpressions"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let values: BTreeSet<String> = expression["values"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|value| value.as_str().map(str::to_owned))
                .collect();
            let test = match expression["operator"].as_str() {
                Some("In") => Test::In(values),
                Some("NotIn") => Test::NotIn(values),
                Some("DoesNotExist") => Test::Absent,
                _ => Test::Exists,
            };
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            found.push(Requirement { key, test });
        }
        Labels(found)
    }

    /// Returns whether the selector is empty, so that it matches every object.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the labels in an object's metadata match.
    pub fn matches(&self, metadata: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let value = metadata["labels"][&requirement.key].as_str();
            requirement.test.holds(value)
        })
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Test::In(set) => value.is_some_and(|value| set.contains(value)),
            Test::NotIn(set) => value.is_none_or(|value| !set.contains(value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Greater(bound) => number().is_some_and(|number| number > *bound),
            Test::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

const SIGNS: [&str; 9] = ["!=", "==", "=", "!", ",", "(", ")", ">", "<"];

fn tokens(text: &str) -> std::collections::VecDeque<Token> {
    let mut found = std::collections::VecDeque::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            found.push_back(Token::Sign(sign));
            rest = rest[sign.len()..].trim_start();
            continue;
        }
        let end = rest
            .find(|c: char| c.is_whitespace() || "!=,()<>".contains(c))
            .unwrap_or(rest.len());
        found.push_back(Token::Word(rest[..end].to_owned()));
        rest = rest[end..].trim_start();
    }
    found
}

struct Reader {
    tokens: std::collections::VecDeque<Token>,
}

impl Reader {
    fn wrong(&self, why: &str) -> Failure {
        Failure::bad_request(format!("unable to parse requirement: {why}"))
    }

    /// The next token, for error messages.
    fn shown(&self) -> &str {
        match self.tokens.front() {
            Some(Token::Word(word)) => word,
            Some(Token::Sign(sign)) => sign,
            None => "",
        }
    }

    fn sign(&mut self, sign: &str) -> bool {
        let there = self.tokens.front()
            == Some(&Token::Sign(match sign_of(sign) {
                Some(sign) => sign,
                None => return false,
            }));
        if there {
            self.tokens.pop_front();
        }
        there
    }

    fn word(&mut self) -> Option<String> {
        match self.tokens.front() {
            Some(Token::Word(_)) => match self.tokens.pop_front() {
                Some(Token::Word(word)) => Some(word),
                _ => None,
            },
            _ => None,
        }
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, Failure> {
        let mut found = Vec::new();
        if self.tokens.is_empty() {
            return Ok(found);
        }
        loop {
            found.push(self.requirement()?);
            if self.tokens.is_empty() {
                return Ok(found);
            }
            if !self.sign(",") {
                return Err(Failure::bad_request(format!(
                    "found '{}', expected: ',' or 'end of string'",
                    self.shown()
                )));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Failure> {
        let absent = self.sign("!");
        let Some(key) = self.word() else {
            return Err(self.wrong("a label key is missing"));
        };
        if let Err(why) = super::names::qualified_name(&key) {
            return Err(Failure::bad_request(format!(
                "unable to parse requirement: key: Invalid value: {key:?}: {why}"
            )));
        }
        if absent {
            return Ok(Requirement {
                key,
                test: Test::Absent,
            });
        }
        let test = if self.sign("=") || self.sign("==") {
            Test::In(BTreeSet::from([self.value(&key)?]))
        } else if self.sign("!=") {
            Test::NotIn(BTreeSet::from([self.value(&key)?]))
        } else if self.sign(">") {
            Test::Greater(self.number()?)
        } else if self.sign("<") {
            Test::Less(self.number()?)
        } else {
            match self.tokens.front() {
                Some(Token::Word(word)) if word == "in" => {
                    self.tokens.pop_front();
                    Test::In(self.set(&key)?)
                }
                Some(Token::Word(word)) if word == "notin" => {
                    self.tokens.pop_front();
                    Test::NotIn(self.set(&key)?)
                }
                Some(Token::Word(_)) | Some(Token::Sign("(" | ")" | "!")) => {
                    return Err(self.wrong("found something else than an operator"));
                }
                _ => Test::Exists,
            }
        };
        Ok(Requirement { key, test })
    }

    /// Parses a value, which may be empty: `a=` matches an empty label.
    fn value(&mut self, key: &str) -> Result<String, Failure> {
        let value = self.word().unwrap_or_default();
        self.checked(key, value)
    }

    fn checked(&self, key: &str, value: String) -> Result<String, Failure> {
        match super::names::label_value(&value) {
            Ok(()) => Ok(value),
            Err(why) => Err(Failure::bad_request(format!(
                "unable to parse requirement: values[0][{key}]: Invalid value: {value:?}: {why}"
            ))),
        }
    }

    fn number(&mut self) -> Result<i64, Failure> {
        self.word()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| self.wrong("> and < take a whole number"))
    }

    fn set(&mut self, key: &str) -> Result<BTreeSet<String>, Failure> {
        if !self.sign("(") {
            return Err(self.wrong(&format!("found '{}' expected: '('", self.shown())));
        }
        let mut values = BTreeSet::new();
        loop {
            let value = self.word().unwrap_or_default();
            values.insert(self.checked(key, value)?);
            if self.sign(")") {
                return Ok(values);
            }
            if !self.sign(",") {
                return Err(self.wrong(") is missing"));
            }
        }
    }
}

fn sign_of(sign: &str) -> Option<&'static str> {
    SIGNS.into_iter().find(|known| *known == sign)
}

/// A field selector: all (field, value, equal or not) requirements must be true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String, bool)>);

impl Fields {
    /// Parses `a.b=c,d!=e`; a backslash escapes a comma, an equals sign or a backslash.
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

    /// Returns whether the selector is empty, so that it matches every object.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the fields in the selector.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(field, _, _)| field.as_str())
    }

    /// Returns whether the selector uses only metadata fields.
    pub fn metadata_only(&self) -> bool {
        self.names().all(|field| field.starts_with("metadata."))
    }

    /// The name of the only object that can match, if the selector contains it.
    pub fn name(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|(field, _, equal)| field == "metadata.name" && *equal)
            .map(|(_, value, _)| value.as_str())
    }

    /// Returns whether the fields of an object match; a missing field is like an empty one.
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
