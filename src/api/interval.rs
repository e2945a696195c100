//! A duration as people write it in YAML: `5m`, `1h30m`, `30d`, `0`.
//!
//! The type stores the text and parses it only when the duration is needed. So reading and writing an object
//! does not change the text.

use std::borrow::Cow;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube_values::duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The shortest interval between two reconciles of one object. A shorter interval would keep the controller
/// busy.
pub const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

/// A duration in the units of Go or in days (`d`). `0`, as a number or a text, means none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Interval(pub IntOrString);

/// The error if a text is not a duration. Contains the text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a duration; write for example 30s, 5m, 1h30m or 30d, or 0 for none")]
pub struct NotADuration(String);

impl From<&str> for Interval {
    fn from(text: &str) -> Self {
        Self(IntOrString::String(text.to_owned()))
    }
}

impl Interval {
    /// Parses the duration. Fails if the text is not a duration.
    pub fn duration(&self) -> Result<Duration, NotADuration> {
        match &self.0 {
            IntOrString::Int(0) => Ok(Duration::ZERO),
            IntOrString::Int(number) => Err(NotADuration(number.to_string())),
            IntOrString::String(text) => {
                duration::with_days(text).ok_or_else(|| NotADuration(text.clone()))
            }
        }
    }

    /// Returns the duration as the interval of a repetition: at least [`SHORTEST_PERIOD`]; zero means no
    /// repetition.
    pub fn period(&self) -> Result<Duration, NotADuration> {
        let duration = self.duration()?;
        Ok(match duration.is_zero() {
            true => duration,
            false => duration.max(SHORTEST_PERIOD),
        })
    }
}

impl JsonSchema for Interval {
    fn schema_name() -> Cow<'static, str> {
        "Interval".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The numeric bounds of a schema apply only to numbers, and the pattern only to texts.
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "minimum": 0,
            "maximum": 0,
            "maxLength": 64,
            "pattern": "^(0|([0-9]+([.][0-9]+)?(ns|us|\u{b5}s|\u{3bc}s|ms|s|m|h|d))+)$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("0", Some(0.0)),
            ("0s", Some(0.0)),
            ("10s", Some(10.0)),
            ("5m", Some(300.0)),
            ("1h30m", Some(5400.0)),
            ("1.5h", Some(5400.0)),
            ("250ms", Some(0.25)),
            ("30d", Some(2_592_000.0)),
            ("1d12h", Some(129_600.0)),
            ("", None),
            ("5", None),
            ("m", None),
            ("5 m", None),
            ("-5m", None),
            ("5.m", None),
            (".5m", None),
            ("1.2.3s", None),
            ("5y", None),
            ("99999999999999999999d", None),
        ] {
            let found = Interval::from(text).duration().ok();
            assert_eq!(found.map(|d| d.as_secs_f64()), seconds, "{text:?}");
        }
        let zero: Interval = serde_json::from_str("0").unwrap();
        assert_eq!(zero.duration(), Ok(Duration::ZERO));
        let five: Interval = serde_json::from_str("5").unwrap();
        assert!(five.duration().is_err());
    }

    #[test]
    fn a_period_is_at_least_one_second() {
        for (text, period) in [
            ("0", 0),
            ("0s", 0),
            ("0.0ns", 0),
            ("1ns", 1),
            ("999ms", 1),
            ("1s", 1),
            ("5m", 300),
        ] {
            let found = Interval::from(text).period();
            assert_eq!(found, Ok(Duration::from_secs(period)), "{text:?}");
        }
        assert!(Interval::from("soon").period().is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Interval::from(text.as_str()).duration();
        }

        #[test]
        fn what_the_schema_admits_is_read(text in "([0-9]{1,4}([.][0-9]{1,3})?(ns|us|ms|s|m|h|d)){1,4}") {
            prop_assert!(Interval::from(text.as_str()).duration().is_ok());
        }
    }
}
