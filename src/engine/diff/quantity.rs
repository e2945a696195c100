//! Compares Kubernetes quantities by amount: `2` equals `2000m`, and `1Gi` equals `1024Mi`. An API server may store
//! another form than the user wrote, so only another amount is a change.

use serde_json::Value;

/// Returns whether both values are quantities with the same amount.
pub(super) fn are_equal(before: &Value, after: &Value) -> bool {
    amount(before).is_some_and(|before| amount(after) == Some(before))
}

/// Returns the amount of a quantity in billionths (nano). Returns None if the value is no quantity, or if its amount
/// is too large or too precise.
fn amount(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        _ => None,
    }
}

fn parse(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let (factor, exponent) = scale(suffix)?;
    let places = i32::try_from(fraction.len()).ok()?;
    let power = 9_i32.checked_sub(places)?.checked_add(exponent)?;
    let power = 10_i128.checked_pow(u32::try_from(power).ok()?)?;
    let amount = digits.checked_mul(factor)?.checked_mul(power)?;
    Some(match text.starts_with('-') {
        true => -amount,
        false => amount,
    })
}

/// Returns the factor and the power of ten that a quantity suffix stands for, such as `Ki` or `m`. None if the suffix
/// is unknown.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let decimal = match suffix {
        "n" => Some(-9),
        "u" => Some(-6),
        "m" => Some(-3),
        "" => Some(0),
        "k" => Some(3),
        "M" => Some(6),
        "G" => Some(9),
        "T" => Some(12),
        "P" => Some(15),
        "E" => Some(18),
        _ => None,
    };
    if let Some(exponent) = decimal {
        return Some((1, exponent));
    }
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(at) = binary.iter().position(|known| *known == suffix) {
        let factor = 1024_i128.checked_pow(u32::try_from(at).ok()? + 1)?;
        return Some((factor, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((1, exponent.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_equal_by_amount() {
        for (one, other, expected) in [
            (json!("2000m"), json!("2"), true),
            (json!(2), json!("2"), true),
            (json!(0.5), json!("500m"), true),
            (json!("1Gi"), json!("1024Mi"), true),
            (json!("1.5Gi"), json!("1536Mi"), true),
            (json!("1e3"), json!("1k"), true),
            (json!("1E"), json!("1000P"), true),
            (json!("128974848"), json!("123Mi"), true),
            (json!("1G"), json!("1Gi"), false),
            (json!("2"), json!("3"), false),
            (json!("-1"), json!("1"), false),
            (json!("two"), json!("two "), false),
            (json!(""), json!("0"), false),
            (json!("1e999999999999"), json!("1e999999999999"), false),
            (json!("é"), json!("1"), false),
            (json!(true), json!(true), false),
        ] {
            assert_eq!(are_equal(&one, &other), expected, "{one} {other}");
        }
    }
}
