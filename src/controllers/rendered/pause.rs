//! Computes the interval between two passes over a RenderedRelease. Random jitter in the intervals prevents
//! passes over many RenderedReleases at the same time. Pure functions.

use std::time::Duration;

use kube::runtime::controller::Action;

use crate::api::choreo::rendered::RenderedReleaseSpec;
use crate::api::digest;
use crate::api::interval::Interval;

/// The default interval while the resources of a RenderedRelease do not change.
pub const STILL: Duration = Duration::from_secs(300);
/// The default interval while resources of a RenderedRelease progress.
pub const MOVING: Duration = Duration::from_secs(10);
/// The interval at which a cleanup checks whether the deleted objects are gone.
pub const VERIFY: Duration = Duration::from_secs(5);

/// Returns when the next pass over a RenderedRelease runs. `seed` selects the jitter, so it should differ
/// between RenderedReleases and between passes.
pub fn again(spec: &RenderedReleaseSpec, is_moving: bool, seed: &str) -> Action {
    let (given, default) = match is_moving {
        true => (&spec.progressing_interval, MOVING),
        false => (&spec.interval, STILL),
    };
    match interval(given.as_ref(), default) {
        Duration::ZERO => Action::await_change(),
        wait => Action::requeue(jittered(wait, seed)),
    }
}

/// Returns the interval of a setting: at least one second; zero means never. If the setting is missing or
/// invalid, returns `default`.
pub fn interval(given: Option<&Interval>, default: Duration) -> Duration {
    given.map_or(default, |given| given.period().unwrap_or(default))
}

/// Adds jitter of up to a fifth to a wait. The same seed always gives the same jitter.
pub fn jittered(wait: Duration, seed: &str) -> Duration {
    let hash = digest::of_bytes(seed.as_bytes());
    let digits = hash.get(..4).unwrap_or_default();
    let part = u16::from_str_radix(digits, 16).unwrap_or_default();
    wait + wait.mul_f64(0.2 * f64::from(part) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(interval: Option<&str>, progressing: Option<&str>) -> RenderedReleaseSpec {
        RenderedReleaseSpec {
            interval: interval.map(Interval::from),
            progressing_interval: progressing.map(Interval::from),
            ..RenderedReleaseSpec::default()
        }
    }

    #[test]
    fn intervals_are_as_the_spec_says() {
        let seconds = |spec: &RenderedReleaseSpec| {
            [false, true].map(|is_moving| {
                let (given, default) = match is_moving {
                    true => (&spec.progressing_interval, MOVING),
                    false => (&spec.interval, STILL),
                };
                interval(given.as_ref(), default).as_secs()
            })
        };
        for (given, still_and_moving) in [
            ((None, None), [300, 10]),
            ((Some("10m"), Some("5s")), [600, 5]),
            ((Some("0"), Some("0s")), [0, 0]),
            ((Some("1h30m"), None), [5400, 10]),
            ((Some("soon"), Some("")), [300, 10]),
            ((Some("1ns"), Some("250ms")), [1, 1]),
        ] {
            assert_eq!(seconds(&spec(given.0, given.1)), still_and_moving);
        }
        let never = spec(Some("0"), Some("0s"));
        for is_moving in [false, true] {
            assert_eq!(again(&never, is_moving, "a"), Action::await_change());
        }
    }

    proptest! {
        #[test]
        fn up_to_a_fifth_is_added(millis in 1u64..10_000_000, seed in ".{0,20}") {
            let wait = Duration::from_millis(millis);
            let jittered = jittered(wait, &seed);
            prop_assert!(wait <= jittered && jittered <= wait.mul_f64(1.2001));
        }
    }

    #[test]
    fn releases_do_not_come_at_once() {
        let waits: std::collections::HashSet<Duration> = (0..100)
            .map(|n| jittered(STILL, &format!("uid-{n}")))
            .collect();
        assert!(waits.len() > 90);
    }
}
