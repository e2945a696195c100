//! Determines the value of a plain scalar, which is a scalar without quotes, in YAML 1.1 and in the core schema of
//! YAML 1.2.

use serde_json::{Number, Value};

/// The value of a plain scalar, or the reason why it has no clear value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plain {
    /// Both YAML versions read this value.
    Means(Value),
    /// The two YAML versions read different values. Contains the value in YAML 1.1, the value in YAML 1.2, and what
    /// the user can write instead.
    Ambiguous(&'static str, &'static str, &'static str),
    /// Both YAML versions read the same value, but JSON cannot represent it. Contains the value, and what the user
    /// can do.
    Unholdable(&'static str, &'static str),
}

const DECIMAL: &str = "the number in plain decimal digits";

pub(super) fn plain(text: &str) -> Plain {
    other(text).unwrap_or_else(|| Plain::Means(Value::String(text.to_owned())))
}

/// Returns whether both YAML versions read a plain scalar as a string.
pub(super) fn is_text(text: &str) -> bool {
    other(text).is_none()
}

/// Determines the value of a plain scalar that is not a string; None if it is a string.
fn other(text: &str) -> Option<Plain> {
    let word = match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Plain::Means(Value::Null)),
        "true" | "True" | "TRUE" => Some(Plain::Means(Value::Bool(true))),
        "false" | "False" | "FALSE" => Some(Plain::Means(Value::Bool(false))),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            Some(Plain::Ambiguous("true", "a string", "true"))
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Some(Plain::Ambiguous("false", "a string", "false"))
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => Some(Plain::Unholdable(
            "a number that is not finite",
            "quote it if text is meant",
        )),
        _ => None,
    };
    // Only a text that begins with a digit, `+`, `-` or `.` can be a number, in both YAML versions.
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    match text.starts_with(is_number) {
        true => word.or_else(|| number(text)),
        false => word,
    }
}

fn number(text: &str) -> Option<Plain> {
    let signed = text.starts_with(['+', '-']);
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = body.strip_prefix("0x") {
        let digits = |c: char| c.is_ascii_hexdigit();
        return match hex {
            "" => None,
            _ if hex.chars().all(digits) && !signed => {
                Some(integer(u64::from_str_radix(hex, 16).ok().map(Number::from)))
            }
            _ if hex.chars().all(|c| digits(c) || c == '_') && hex.contains(digits) => {
                Some(Plain::Ambiguous("a number", "a string", DECIMAL))
            }
            _ => None,
        };
    }
    if let Some(octal) = body.strip_prefix("0o") {
        let is_octal = !octal.is_empty() && octal.chars().all(|c| ('0'..='7').contains(&c));
        return is_octal.then_some(Plain::Ambiguous("a string", "an octal number", DECIMAL));
    }
    if let Some(binary) = body.strip_prefix("0b") {
        let is_binary =
            binary.contains(['0', '1']) && binary.chars().all(|c| matches!(c, '0' | '1' | '_'));
        return is_binary.then_some(Plain::Ambiguous("a binary number", "a string", DECIMAL));
    }
    if body.contains(':') {
        return sexagesimal(body).then_some(Plain::Ambiguous(
            "a number to base 60",
            "a string",
            "it without colons",
        ));
    }
    if body.contains('_') {
        // A number with underscores is refused, because go-yaml ignores all underscores, but YAML 1.1 only those
        // between digits.
        let dropped: String = body.chars().filter(|c| *c != '_').collect();
        return (body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && number(&dropped).is_some())
        .then_some(Plain::Ambiguous(
            "a number",
            "a string",
            "the number without underscores",
        ));
    }
    if !body.is_empty() && body.chars().all(|c| c.is_ascii_digit()) {
        if body.len() > 1 && body.starts_with('0') {
            return Some(Plain::Ambiguous(
                "an octal number",
                "a decimal number",
                "the number without leading zeros",
            ));
        }
        // `text` still contains the sign, which `str::parse` accepts.
        let value = text
            .parse::<i64>()
            .map(Number::from)
            .or_else(|_| text.parse::<u64>().map(Number::from));
        return Some(integer(value.ok()));
    }
    float(text, body)
}

fn integer(value: Option<Number>) -> Plain {
    match value {
        Some(number) => Plain::Means(Value::Number(number)),
        None => Plain::Unholdable(
            "a number with more than 64 bits",
            "quote it if text is meant",
        ),
    }
}

/// Returns whether YAML 1.1 reads a number without its sign in base 60 (sexagesimal), such as `12:30:45`. The grammar
/// is `[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`; without a fraction, the first digit must not be 0.
fn sexagesimal(body: &str) -> bool {
    let (whole, fraction) = match body.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (body, None),
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let leads = first.starts_with(|c: char| {
        if fraction.is_some() {
            c.is_ascii_digit()
        } else {
            ('1'..='9').contains(&c)
        }
    });
    leads
        && first.chars().all(|c| c.is_ascii_digit() || c == '_')
        && parts.all(|part| match part.as_bytes() {
            [unit] => unit.is_ascii_digit(),
            [ten, unit] => (b'0'..=b'5').contains(ten) && unit.is_ascii_digit(),
            _ => false,
        })
        && fraction.is_none_or(|f| f.chars().all(|c| c.is_ascii_digit() || c == '_'))
}

fn float(text: &str, body: &str) -> Option<Plain> {
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit());
    let has_digit = !whole.is_empty() || fraction.is_some_and(|f| !f.is_empty());
    if !has_digit || !digits(whole) || !fraction.is_none_or(digits) {
        return None;
    }
    if let Some(exponent) = exponent {
        let power = exponent.strip_prefix(['+', '-']);
        if !digits(power.unwrap_or(exponent)) || power.unwrap_or(exponent).is_empty() {
            return None;
        }
        if power.is_none() || fraction.is_none() {
            return Some(Plain::Ambiguous(
                "a string",
                "a number",
                "the number with a point and a signed exponent (1.0e+3)",
            ));
        }
    } else {
        fraction?;
    }
    let value = text.parse::<f64>().ok()?;
    Some(match Number::from_f64(value) {
        Some(number) => Plain::Means(Value::Number(number)),
        None => Plain::Unholdable("a number that is too large", "quote it if text is meant"),
    })
}
