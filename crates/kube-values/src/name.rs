//! Checks the names, label keys and label values of objects. The errors are the messages of Kubernetes.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SERVICE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The rule of Kubernetes for the names of objects of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A DNS subdomain: labels with dots between them. Most kinds use this rule.
    Subdomain,
    /// A DNS label, without dots. Namespaces use this rule.
    Label,
    /// A DNS label that begins with a letter. Services use this rule.
    Service,
    /// A name that is valid as a segment of a path. Roles and role bindings use this rule.
    PathSegment,
}

impl Form {
    /// Checks an object name by this rule. The error is the message of Kubernetes.
    pub fn check(self, name: &str) -> Result<(), String> {
        match self {
            Form::PathSegment => match name {
                "." | ".." => Err(format!("may not be '{name}'")),
                _ => match name.chars().find(|c| "/%".contains(*c)) {
                    Some(c) => Err(format!("may not contain '{c}'")),
                    None => Ok(()),
                },
            },
            Form::Subdomain if name.len() > 253 => {
                Err("must be no more than 253 characters".into())
            }
            Form::Label | Form::Service if name.len() > 63 => {
                Err("must be no more than 63 characters".into())
            }
            Form::Subdomain => match name.split('.').all(|part| dns_label(part, false)) {
                true => Ok(()),
                false => Err(SUBDOMAIN.into()),
            },
            Form::Label if dns_label(name, false) => Ok(()),
            Form::Label if name.contains('.') => Err("must not contain dots".into()),
            Form::Label => Err(LABEL.into()),
            Form::Service if dns_label(name, true) => Ok(()),
            Form::Service => Err(SERVICE.into()),
        }
    }
}

/// Returns whether a text is a DNS label. With `letter_first`, a digit at the start is forbidden.
pub fn dns_label(text: &str, letter_first: bool) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            inner(*last)
                && if letter_first {
                    first.is_ascii_lowercase()
                } else {
                    inner(*first)
                }
                && bytes.iter().all(|b| inner(*b) || *b == b'-')
        }
        _ => false,
    }
}

fn name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// Checks the key of a label or an annotation. The error is the message of Kubernetes.
pub fn qualified_name(key: &str) -> Result<(), String> {
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return Err("a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')".into());
        }
        Some(("", _)) => return Err("prefix part must be non-empty".into()),
        Some((prefix, name)) => {
            if let Err(why) = Form::Subdomain.check(prefix) {
                return Err(format!("prefix part {why}"));
            }
            name
        }
    };
    match name {
        "" => Err(format!("name part must be non-empty; {QUALIFIED}")),
        name if name.len() > 63 => Err("name part must be no more than 63 bytes".into()),
        name if !name_part(name) => Err(QUALIFIED.into()),
        _ => Ok(()),
    }
}

/// Checks a key in a ConfigMap or Secret. The error is the message of Kubernetes.
pub fn config_key(key: &str) -> Result<(), String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    match key {
        "." | ".." => Err(format!("must not be '{key}'")),
        key if key.len() > 253 => Err("must be no more than 253 characters".into()),
        key if key.starts_with("..") => Err("must not start with '..'".into()),
        key if !key.is_empty() && key.bytes().all(fits) => Ok(()),
        _ => Err("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".into()),
    }
}

/// Checks the value of a label. The error is the message of Kubernetes.
pub fn label_value(value: &str) -> Result<(), String> {
    match value {
        value if value.len() > 63 => Err("must be no more than 63 bytes".into()),
        "" => Ok(()),
        value if name_part(value) => Ok(()),
        _ => Err(VALUE.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fits_is_a_label_value() {
        for (text, fits) in [
            ("", true),
            ("v1.2.3", true),
            ("A_b-c.9", true),
            ("1.2.3+5", false),
            ("-a", false),
            ("a.", false),
            ("é", false),
            (&"a".repeat(63), true),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(label_value(text).is_ok(), fits, "{text:?}");
        }
    }
}
