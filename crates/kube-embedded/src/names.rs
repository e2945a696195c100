//! The names, label keys and label values that Kubernetes accepts, and its error messages for others.

use serde_json::Value;

use super::status::Cause;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SERVICE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
/// The limit for all annotations of one object together.
const ANNOTATION_BYTES: usize = 256 << 10;

/// The rule for the names of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Dots are allowed; for most kinds.
    Subdomain,
    /// One DNS label; for namespaces.
    Label,
    /// A DNS label that begins with a letter; for services.
    Service,
    /// Any name that is valid in a path; for roles and bindings.
    PathSegment,
}

impl Form {
    /// The name rule of a resource.
    pub fn of(group: &str, plural: &str) -> Form {
        match (group, plural) {
            ("", "namespaces") => Form::Label,
            ("", "services") => Form::Service,
            ("rbac.authorization.k8s.io", _) => Form::PathSegment,
            _ => Form::Subdomain,
        }
    }

    /// Checks a name; the error says why Kubernetes refuses it.
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

fn dns_label(text: &str, letter_first: bool) -> bool {
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

/// Checks the key of a label or an annotation; the error says why Kubernetes refuses it.
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

/// Checks a key of a ConfigMap or Secret; the error says why Kubernetes refuses it.
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

/// Checks a label value; the error says why Kubernetes refuses it.
pub fn label_value(value: &str) -> Result<(), String> {
    match value {
        value if value.len() > 63 => Err("must be no more than 63 bytes".into()),
        "" => Ok(()),
        value if name_part(value) => Ok(()),
        _ => Err(VALUE.into()),
    }
}

/// The finalizers without a domain, with their indexes; such a name may collide with another controller's.
pub fn plain_finalizers(metadata: &Value) -> impl Iterator<Item = (usize, &str)> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let list = metadata["finalizers"].as_array().into_iter().flatten();
    list.enumerate()
        .filter_map(|(index, finalizer)| Some((index, finalizer.as_str()?)))
        .filter(|(_, finalizer)| {
            !finalizer.contains('/') && !finalizer.contains('.') && !STANDARD.contains(finalizer)
        })
}

/// Checks the rules for the metadata of every object.
pub fn check_metadata(metadata: &Value, form: Form) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut refuse = |field: String, value: &str, why: String| {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {value:?}: {why}"),
            field,
        });
    };
    let name = metadata["name"].as_str().unwrap_or_default();
    if let Err(why) = form.check(name) {
        refuse("metadata.name".into(), name, why);
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if let Err(why) = qualified_name(key) {
            refuse("metadata.labels".into(), key, why);
        }
        let value = value.as_str().unwrap_or_default();
        if let Err(why) = label_value(value) {
            refuse("metadata.labels".into(), value, why);
        }
    }
    let mut bytes = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        if let Err(why) = qualified_name(&key.to_lowercase()) {
            refuse("metadata.annotations".into(), key, why);
        }
    }
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        if let Err(why) = qualified_name(finalizer) {
            refuse("metadata.finalizers".into(), finalizer, why);
        }
    }
    let mut controllers = Vec::new();
    for (index, owner) in metadata["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                refuse(
                    format!("metadata.ownerReferences.{field}"),
                    "",
                    "must not be empty".into(),
                );
            }
        }
        if owner["controller"] == true {
            controllers.push(index);
        }
    }
    if controllers.len() > 1 {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {}: Only one reference can have Controller set to true.",
                metadata["ownerReferences"]
            ),
            field: "metadata.ownerReferences".into(),
        });
    }
    if bytes > ANNOTATION_BYTES {
        causes.push(Cause {
            reason: "FieldValueTooLong".into(),
            message: format!("Too long: may not be more than {ANNOTATION_BYTES} bytes"),
            field: "metadata.annotations".into(),
        });
    }
    causes
}
