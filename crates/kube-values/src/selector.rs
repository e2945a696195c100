//! Label selectors: as text in kubectl's syntax, and as an object with `matchLabels` and `matchExpressions`.

use std::fmt;

use serde_json::Value;

use super::name;

/// A label selector. It matches an object whose labels meet all its requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The requirements of the selector, each on one label.
    pub requirements: Vec<Requirement>,
}

/// A requirement of a selector on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the label, such as `app`.
    pub name: String,
    /// The condition that the label must meet.
    pub wanted: Wanted,
}

/// The condition of a selector on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The label exists.
    Exists,
    /// The label does not exist.
    Absent,
    /// The label has this value.
    Equal(String),
    /// The label has another value, or does not exist.
    NotEqual(String),
    /// The label has one of these values.
    In(Vec<String>),
    /// The label has none of these values, or does not exist.
    NotIn(Vec<String>),
    /// The label's value is an integer larger than this number.
    Greater(i64),
    /// The label's value is an integer smaller than this number.
    Less(i64),
    /// The operator in the selector is unknown, so no object meets this condition.
    Unknown,
}

/// Whether the selector is a whole text or a part of a longer text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The selector is the whole text, for example of a request. Blanks around commas, empty values, `>` and `<` are
    /// allowed. The parser checks label names and values.
    Whole,
    /// The selector is a part of a longer text that a user types. It ends at the first blank after a requirement.
    Part,
}

/// A syntax error in the text of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    /// The offset of the error in the selector's text, in bytes.
    pub at: usize,
    /// What is wrong at this offset.
    pub kind: MistakeKind,
}

/// The kinds of syntax errors in a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MistakeKind {
    /// A label name is missing.
    NoName,
    /// Kubernetes does not allow this label name.
    Name {
        /// The name that is not allowed.
        name: String,
        /// The message of Kubernetes about the label name.
        why: String,
    },
    /// A label value is missing.
    NoValue,
    /// Kubernetes does not allow this label value.
    Value {
        /// The name of the label whose value is not allowed.
        name: String,
        /// The value that is not allowed.
        value: String,
        /// The message of Kubernetes about the label value.
        why: String,
    },
    /// The text after a label name is not an operator.
    Operator,
    /// The text after `>` or `<` is not a number.
    Number,
    /// `(` is missing after `in` or `notin`.
    Open,
    /// `)` or a comma is missing after a value in `(...)`.
    Close,
    /// A comma is missing after a requirement.
    End,
}

impl Selector {
    /// Parses the text of a selector in a request, such as `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        match text.trim() {
            "" => Ok(Self::default()),
            _ => Self::parse_at(text, 0, Extent::Whole).map(|(selector, _)| selector),
        }
    }

    /// Parses a selector that begins at the byte offset `at` of a text. Returns the selector, and the byte offset at
    /// which it ends.
    pub fn parse_at(text: &str, at: usize, extent: Extent) -> Result<(Self, usize), SelectorError> {
        let mut reader = Reader { text, at, extent };
        let requirements = reader.requirements()?;
        Ok((Self { requirements }, reader.at))
    }

    /// Converts a selector from its object form (`matchLabels`, `matchExpressions`), with the requirements in
    /// Kubernetes' order. Null becomes a selector without requirements.
    pub fn from_object(selector: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels = selector["matchLabels"].as_object().into_iter().flatten();
        let mut requirements: Vec<Requirement> = labels
            .map(|(name, value)| Requirement {
                name: name.clone(),
                wanted: Wanted::Equal(text(value)),
            })
            .collect();
        let expressions = selector["matchExpressions"].as_array();
        requirements.extend(expressions.into_iter().flatten().map(|expression| {
            let values = expression["values"].as_array().into_iter().flatten();
            let mut values: Vec<String> = values
                .filter_map(|value| value.as_str().map(str::to_owned))
                .collect();
            values.sort_unstable();
            Requirement {
                name: text(&expression["key"]),
                wanted: match expression["operator"].as_str() {
                    Some("In") => Wanted::In(values),
                    Some("NotIn") => Wanted::NotIn(values),
                    Some("Exists") => Wanted::Exists,
                    Some("DoesNotExist") => Wanted::Absent,
                    _ => Wanted::Unknown,
                },
            }
        }));
        requirements.sort_by(|a, b| a.name.cmp(&b.name));
        Self { requirements }
    }

    /// Returns whether the selector has no requirements, so that it matches every object.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns whether an object's labels meet all requirements. `labels` is null or a JSON object of strings.
    pub fn matches(&self, labels: &Value) -> bool {
        self.requirements
            .iter()
            .all(|Requirement { name, wanted }| wanted.holds(labels[name].as_str()))
    }
}

impl Wanted {
    fn holds(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[String]| {
            value.is_some_and(|value| values.iter().any(|wanted| wanted == value))
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Equal(wanted) => value == Some(wanted),
            Self::NotEqual(other) => value != Some(other),
            Self::In(values) => is_one_of(values),
            Self::NotIn(values) => !is_one_of(values),
            Self::Greater(bound) => number().is_some_and(|number| number > *bound),
            Self::Less(bound) => number().is_some_and(|number| number < *bound),
            Self::Unknown => false,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Requirement { name, wanted }) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match wanted {
                Wanted::Exists => f.write_str(name)?,
                Wanted::Absent => write!(f, "!{name}")?,
                Wanted::Equal(value) => write!(f, "{name}={value}")?,
                Wanted::NotEqual(value) => write!(f, "{name}!={value}")?,
                Wanted::In(values) => write!(f, "{name} in ({})", values.join(","))?,
                Wanted::NotIn(values) => write!(f, "{name} notin ({})", values.join(","))?,
                Wanted::Greater(bound) => write!(f, "{name}>{bound}")?,
                Wanted::Less(bound) => write!(f, "{name}<{bound}")?,
                Wanted::Unknown => f.write_str("<invalid>")?,
            }
        }
        Ok(())
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    extent: Extent,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_whole(&self) -> bool {
        self.extent == Extent::Whole
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn blanks(&mut self) {
        self.take(char::is_whitespace);
    }

    /// Reads a label name or value. For [`Extent::Whole`], the word also contains invalid characters, because the
    /// later check of the word reports them.
    fn word(&mut self, more: &[char]) -> &'t str {
        let is_whole = self.is_whole();
        self.take(|c| match is_whole {
            true => !c.is_whitespace() && !"!=,()<>".contains(c),
            false => c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') || more.contains(&c),
        })
    }

    fn mistake<T>(&self, kind: MistakeKind) -> Result<T, SelectorError> {
        Err(SelectorError { at: self.at, kind })
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut found = Vec::new();
        loop {
            self.blanks();
            found.push(self.requirement()?);
            if self.is_whole() {
                self.blanks();
            }
            if self.eat(",") {
                continue;
            }
            let is_end = match self.extent {
                Extent::Whole => self.rest().is_empty(),
                Extent::Part => {
                    let next = self.rest().chars().next();
                    next.is_none_or(char::is_whitespace)
                }
            };
            return match is_end {
                true => Ok(found),
                false => self.mistake(MistakeKind::End),
            };
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.eat("!");
        if self.is_whole() {
            self.blanks();
        }
        let name = self.word(&['/']).to_owned();
        if name.is_empty() {
            return self.mistake(MistakeKind::NoName);
        }
        if self.is_whole()
            && let Err(why) = name::qualified_name(&name)
        {
            return self.mistake(MistakeKind::Name { name, why });
        }
        let wanted = match absent {
            true => Wanted::Absent,
            false => self.wanted(&name)?,
        };
        Ok(Requirement { name, wanted })
    }

    fn wanted(&mut self, name: &str) -> Result<Wanted, SelectorError> {
        let after = self.at;
        self.blanks();
        if self.eat("!=") {
            return self.value(name).map(Wanted::NotEqual);
        }
        if self.eat("==") || self.eat("=") {
            return self.value(name).map(Wanted::Equal);
        }
        if self.is_whole() && self.eat(">") {
            return self.number().map(Wanted::Greater);
        }
        if self.is_whole() && self.eat("<") {
            return self.number().map(Wanted::Less);
        }
        if let Some(values) = self.set("in", name)? {
            return Ok(Wanted::In(values));
        }
        if let Some(values) = self.set("notin", name)? {
            return Ok(Wanted::NotIn(values));
        }
        if self.is_whole() && !self.rest().is_empty() && !self.rest().starts_with(',') {
            return self.mistake(MistakeKind::Operator);
        }
        // For [`Extent::Part`], the selector ends here: the next word belongs to the longer text.
        self.at = after;
        Ok(Wanted::Exists)
    }

    fn value(&mut self, name: &str) -> Result<String, SelectorError> {
        self.blanks();
        let value = self.word(&[]).to_owned();
        match self.extent {
            Extent::Part if value.is_empty() => self.mistake(MistakeKind::NoValue),
            Extent::Part => Ok(value),
            Extent::Whole => match name::label_value(&value) {
                Ok(()) => Ok(value),
                Err(why) => self.mistake(MistakeKind::Value {
                    name: name.to_owned(),
                    value,
                    why,
                }),
            },
        }
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        self.blanks();
        match self.word(&[]).parse() {
            Ok(number) => Ok(number),
            Err(_) => self.mistake(MistakeKind::Number),
        }
    }

    /// Reads the operator `in` or `notin` and its list, as in `in (a, b)`. None if the next word is not this
    /// operator; for [`Extent::Part`], also if no list follows the operator.
    fn set(&mut self, operator: &str, name: &str) -> Result<Option<Vec<String>>, SelectorError> {
        let start = self.at;
        if self.word(&[]) != operator {
            self.at = start;
            return Ok(None);
        }
        self.blanks();
        if !self.eat("(") {
            if self.is_whole() {
                return self.mistake(MistakeKind::Open);
            }
            self.at = start;
            return Ok(None);
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value(name)?);
            self.blanks();
            if self.eat(")") {
                return Ok(Some(values));
            }
            if !self.eat(",") {
                return self.mistake(MistakeKind::Close);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_written_as_it_is_read() {
        let text = "a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2,n=";
        let selector = Selector::parse(text).unwrap();
        assert_eq!(selector.to_string(), text);
        let spaced = " a = b , c != d,e in ( f , g ),h  notin(i) , j, ! k,l > 1,m<2,n= ";
        assert_eq!(Selector::parse(spaced).unwrap(), selector);
        assert!(Selector::parse(" ").unwrap().is_empty());
    }

    #[test]
    fn mistakes_have_a_place() {
        use MistakeKind as K;
        for (text, at, kind) in [
            ("a,", 2, K::NoName),
            ("a b", 2, K::Operator),
            ("a in b", 5, K::Open),
            ("a in (b c)", 8, K::Close),
            ("a>b", 3, K::Number),
            ("a=b c", 4, K::End),
        ] {
            assert_eq!(
                Selector::parse(text),
                Err(SelectorError { at, kind }),
                "{text}"
            );
        }
        for text in ["_=b", "a=b/c"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_part_ends_before_the_next_word() {
        for (text, end, shown) in [
            ("a b", 1, "a"),
            ("a in b", 1, "a"),
            ("a=b ,c", 3, "a=b"),
            ("a in (b), !c d", 12, "a in (b),!c"),
        ] {
            let (selector, at) = Selector::parse_at(text, 0, Extent::Part).unwrap();
            assert_eq!((at, selector.to_string().as_str()), (end, shown), "{text}");
        }
        for text in ["a=", "a=b=c", "a>1", "! a"] {
            assert!(Selector::parse_at(text, 0, Extent::Part).is_err(), "{text}");
        }
    }

    #[test]
    fn the_object_form_is_sorted() {
        let object = json!({"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": ["y", "x"]},
            {"key": "c", "operator": "Exists"},
        ]});
        let selector = Selector::from_object(&object);
        assert_eq!(selector.to_string(), "a notin (x,y),b=1,c");
        assert!(selector.matches(&json!({"b": "1", "c": ""})));
        assert!(!selector.matches(&json!({"a": "x", "b": "1", "c": ""})));
        let unknown = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
        assert!(!Selector::from_object(&unknown).matches(&json!({"a": "x"})));
        assert!(Selector::from_object(&Value::Null).matches(&Value::Null));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-b!=,()<> äin]{0,20}") {
            let _ = Selector::parse(&text);
            let _ = Selector::parse_at(&text, 0, Extent::Part);
        }
    }
}
