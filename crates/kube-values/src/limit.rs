//! The limits of a schema on numbers and counts, and the rule `multipleOf`. Integers are compared without rounding.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The minimum or the maximum of a number in a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The number that is the minimum or the maximum.
    pub limit: Number,
    /// Whether the minimum or maximum itself is forbidden.
    pub exclusive: bool,
}

impl Bound {
    /// Treats this limit as a minimum, and returns whether a number respects it.
    pub fn admits_above(&self, number: &Number) -> bool {
        self.admits(number, Ordering::Greater)
    }

    /// Treats this limit as a maximum, and returns whether a number respects it.
    pub fn admits_below(&self, number: &Number) -> bool {
        self.admits(number, Ordering::Less)
    }

    fn admits(&self, number: &Number, side: Ordering) -> bool {
        let order = compare(number, &self.limit);
        order == side || !self.exclusive && order == Ordering::Equal
    }
}

/// The limits of a schema on the number of characters, items or keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The smallest allowed count; None if there is no minimum.
    pub least: Option<u64>,
    /// The largest allowed count; None if there is no maximum.
    pub most: Option<u64>,
}

impl Count {
    /// Returns the minimum if `count` is below it; None if `count` is large enough.
    pub fn too_few(&self, count: usize) -> Option<u64> {
        self.least.filter(|&least| (count as u64) < least)
    }

    /// Returns the maximum if `count` is above it; None if `count` is small enough.
    pub fn too_many(&self, count: usize) -> Option<u64> {
        self.most.filter(|&most| count as u64 > most)
    }
}

/// Compares two numbers: integers exactly, all other numbers as floats.
pub fn compare(a: &Number, b: &Number) -> Ordering {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or_default();
            float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal)
        }
    }
}

/// Returns whether a number is a multiple of a step. If one of them has a fraction, the number may deviate by a
/// billionth of the step.
pub fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (number.as_i128(), step.as_i128()) {
        return step != 0 && number % step == 0;
    }
    let (Some(number), Some(step)) = (number.as_f64(), step.as_f64()) else {
        return false;
    };
    let times = number / step;
    (times - times.round()).abs() < 1e-9
}

/// Returns whether two JSON values are equal. The numbers `1` and `1.0` are equal, unless they are inside an array or
/// object.
pub fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        _ => a == b,
    }
}

/// Converts a float without a fraction to an integer of 64 bits; None if the float has a fraction or is too
/// large.
pub fn whole(float: f64) -> Option<i64> {
    // The upper limit, 2^63, is the smallest float that is too large. Both limits are exact as floats.
    let fits = float.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&float);
    fits.then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(value: Value) -> Number {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn large_integers_are_compared_exactly() {
        let bound = |exclusive| Bound {
            limit: number(json!(9_007_199_254_740_993_i64)),
            exclusive,
        };
        let below = number(json!(9_007_199_254_740_992_i64));
        assert!(!bound(false).admits_above(&below));
        assert!(bound(false).admits_below(&below));
        let equal = bound(false).limit;
        assert!(bound(false).admits_above(&equal) && !bound(true).admits_above(&equal));
        assert!(is_same(&json!(1), &json!(1.0)) && !is_same(&json!("1"), &json!(1)));
    }

    #[test]
    fn fractions_are_multiples_up_to_their_precision() {
        for (value, step, expected) in [
            (json!(6), json!(3), true),
            (json!(7), json!(3), false),
            (json!(0.3), json!(0.1), true),
            (json!(0.35), json!(0.1), false),
            (json!(1), json!(0), false),
        ] {
            let found = is_multiple(&number(value.clone()), &number(step.clone()));
            assert_eq!(found, expected, "{value} and {step}");
        }
    }

    #[test]
    fn counts_have_two_ends() {
        let count = Count {
            least: Some(1),
            most: Some(2),
        };
        assert_eq!((count.too_few(0), count.too_many(0)), (Some(1), None));
        assert_eq!((count.too_few(2), count.too_many(2)), (None, None));
        assert_eq!((count.too_few(3), count.too_many(3)), (None, Some(2)));
    }

    #[test]
    fn whole_floats_are_integers() {
        for (float, integer) in [
            (3.0, Some(3)),
            (-0.0, Some(0)),
            (0.5, None),
            (9.3e18, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(whole(float), integer, "{float}");
        }
    }
}
